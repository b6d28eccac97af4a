//! The parts of a clip. Each part is a run of a plan, and leaves states for the next part.

use std::borrow::Cow;

use super::clip_plans::ClipPlans;
use super::job::Job;
use super::options::{DecodeOptions, EncodeOptions};
use super::{Images, Latents, Pixels, Ready, Rows, Vae};
use crate::error::{Error, Result};
use crate::gpu::{ClipStates, Control, Input, RunReport};
use crate::plan::Plan;
use crate::tensor::{HostTensor, Size};

/// The position in a clip, and the states that its parts have left. It is for callers who cannot
/// borrow the VAE until the clip ends. Others use [`super::Clip`].
#[derive(Debug)]
pub(crate) struct ClipState {
    plans: ClipPlans,
    /// The job of the first part, and the job of the others.
    jobs: [Job; 2],
    /// The states; `None` while a part runs, and after a part that failed.
    states: Option<ClipStates>,
    parts: u64,
}

impl ClipState {
    /// Returns the clip's plans.
    pub(crate) fn plans(&self) -> &ClipPlans {
        &self.plans
    }

    /// True if the clip's latents are the VAE's own.
    fn is_unscaled(&self) -> bool {
        matches!(self.jobs[0], Job::DecodePart { unscaled: true, .. })
    }

    /// Returns the frames of the next part; see [`super::Clip::wants`].
    pub(crate) fn wants(&self) -> u32 {
        self.next().input().frames
    }

    /// Returns the number of parts that are done.
    pub(super) fn parts(&self) -> u64 {
        self.parts
    }

    /// Drops the states. No further part can be run.
    pub(super) fn end(&mut self) {
        self.states = None;
    }

    /// Returns the multiply-adds of the next part.
    pub(super) fn macs(&self) -> u64 {
        self.next().macs()
    }

    /// Returns the plan of the next part.
    fn next(&self) -> &Plan {
        self.plans.of(self.parts > 0)
    }
}

impl Vae {
    /// Begins a clip whose parts [`Self::decode_part`] decodes. See [`Self::decode_clip`].
    ///
    /// # Errors
    /// See [`Self::decode_clip`].
    pub(crate) async fn begin_decode(
        &mut self,
        latent_size: Size,
        unscaled: bool,
        options: &DecodeOptions,
    ) -> Result<ClipState> {
        let unscaled = unscaled || self.planner.unscaled();
        let plans = self.planner.plan_clip_decode(latent_size, unscaled, options)?;
        let jobs = plans.decodes(latent_size, unscaled, *options);
        self.begin_clip(plans, jobs).await
    }

    /// Begins a clip whose parts [`Self::encode_part`] encodes. See [`Self::encode_clip`].
    ///
    /// # Errors
    /// See [`Self::encode_clip`].
    pub(crate) async fn begin_encode(&mut self, image_size: Size, options: &EncodeOptions) -> Result<ClipState> {
        let plans = self.planner.plan_clip_encode(image_size, options)?;
        let jobs = plans.encodes(image_size, *options);
        self.begin_clip(plans, jobs).await
    }

    pub(super) async fn begin_clip(&mut self, plans: ClipPlans, jobs: [Job; 2]) -> Result<ClipState> {
        self.check_loaded(&jobs[1])?;
        // The plan that is ready now is of no use to a clip, and would add to its peak.
        self.ready = None;
        let states = ClipStates::new(&self.gpu, &plans.first.states).await?;
        Ok(ClipState { plans, jobs, states: Some(states), parts: 0 })
    }

    /// Decodes the next part of `clip`. See [`super::Clip::decode`].
    ///
    /// # Errors
    /// See [`super::Clip::decode`].
    pub(crate) async fn decode_part(
        &mut self,
        clip: &mut ClipState,
        latents: &Latents,
        index: u32,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Pixels) -> Result<()>,
    ) -> Result<RunReport> {
        let planes = clip.next().input();
        let (channels, size) = (latents.channels(), latents.size());
        if (channels, size) != (planes.channels, planes.size) {
            return Err(Error::input(
                "latents of the clip",
                format!("{} channels of {}", planes.channels, planes.size),
                format!("{channels} of {size}"),
            ));
        }
        if latents.are_unscaled() && !clip.is_unscaled() {
            return Err(Error::input(
                "latents of the clip",
                "latents in the diffusion model's scale, as the clip began",
                "the VAE's own latents",
            ));
        }
        latents.check(self.config(), clip.is_unscaled(), index)?;
        let input = latents.input(index, &clip.next().inputs)?;
        let (frames, report) = self.run_part(clip, &input, control).await?;
        frames.into_iter().try_for_each(sink)?;
        Ok(report)
    }

    /// Encodes the next part of `clip`. See [`super::Clip::encode`].
    ///
    /// # Errors
    /// See [`super::Clip::encode`].
    pub(crate) async fn encode_part(
        &mut self,
        clip: &mut ClipState,
        frames: &Images,
        control: &mut Control<'_>,
    ) -> Result<(HostTensor, RunReport)> {
        let planes = clip.next().input();
        let (count, size) = (frames.count(), frames.size());
        if (count, size) != (planes.frames, planes.size) {
            return Err(Error::input(
                "frames of the clip",
                format!("{} of {}", planes.frames, planes.size),
                format!("{count} of {size}"),
            ));
        }
        let input = Input::Host(vec![Cow::Borrowed(frames.all(planes.channels)?)]);
        let result = clip.next().result;
        let (parts, report) = self.run_part(clip, &input, control).await?;
        let data = parts.into_iter().flat_map(|part| match part {
            Pixels::Raw(values) => values,
            Pixels::Rgba8(_) => unreachable!("an encode is planned for floats"),
        });
        let shape = vec![result.channels as usize, result.size.height as usize, result.size.width as usize];
        Ok((HostTensor { shape, data: data.collect() }, report))
    }

    /// Runs the next part of `clip`, and returns its frames.
    async fn run_part(
        &mut self,
        clip: &mut ClipState,
        input: &Input<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Vec<Pixels>, RunReport)> {
        let Some(mut states) = clip.states.take() else {
            return Err(Error::input(
                "clip",
                "a clip that no error has ended: begin another one",
                format!("one that ended after {} parts", clip.parts),
            ));
        };
        let wanted = &clip.next().states;
        if !states.hold(wanted) {
            // Later parts keep more states than the first part, whose plan does not count them. So
            // that plan is freed before they are allocated.
            self.ready = None;
            states.add(&self.gpu, wanted).await?;
        }
        self.prepare_job(clip.jobs[usize::from(clip.parts > 0)].clone()).await?;
        let Some(Ready { prepared, .. }) = &mut self.ready else { return Err(Error::Cancelled) };
        prepared.put_states(states);
        let (result, output) = (prepared.plan().result, prepared.plan().output);
        let mut frames: Vec<Pixels> =
            (0..result.frames).map(|_| Pixels::empty(result.size, output, result.channels)).collect();
        let mut place = |rows: (u32, u32), data: &[u8]| {
            for (frame, data) in frames.iter_mut().zip(data.chunks_exact(data.len() / result.frames as usize)) {
                let rows = Rows::new(result.size, output, rows, data);
                rows.check_finite()?;
                frame.place(&rows);
            }
            Ok(())
        };
        let run = prepared.run(input, control, &mut place).await;
        match run {
            Ok(report) => {
                clip.states = Some(prepared.take_states());
                clip.parts += 1;
                Ok((frames, report))
            }
            Err(error) => {
                // Its buffers and states may hold anything, so none of them is used again.
                self.ready = None;
                Err(error)
            }
        }
    }
}
