//! Clips, part by part: plans interpreted in every storage, whole, in chunks and under budgets,
//! against the f64 result of the network's own class for the whole clip.

use test_kit::clip::{frames_of, parts, parts_after, size_of_frame, turns};
use test_kit::formula;
use test_kit::golden::{Golden, first_channels};
use test_kit::reference::interpreter::{States, interpret_part};
use wgvae::config::Family;
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits};
use wgvae::images::Output;
use wgvae::model::blocks::Part;
use wgvae::model::graph::Graph;
use wgvae::model::networks::{frames, part_of_decoder, part_of_encoder};
use wgvae::model::tensors::file_tensors;
use wgvae::plan::{Home, HostStates, Plan, PlanOptions};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{
    Bytes, DecodeOptions, EncodeOptions, Error, HostTensor, LatentSpace, Parking, Plans, Request, Size, Storage, Tiling,
};

use crate::interpret::{assert_same_bits, most_error, relative_error, storages};
use crate::plan_properties::check_scratch;

/// One direction of a fixture.
struct Case<'a> {
    name: String,
    graph: &'a dyn Fn(Part) -> Graph,
    input: &'a HostTensor,
    /// Frames of the input in the first part, and in a part after it.
    steps: (usize, usize),
    /// Frames of the input that run.
    count: usize,
    wanted: &'a HostTensor,
    f16_error: f32,
    /// Name of the first convolution, and the factor for its weights, if they grow.
    growth: Option<(String, f32)>,
}

impl Case<'_> {
    /// Interprets plans with these options. Returns all frames of the result `[frames, c, h, w]`.
    fn run(&self, options: &PlanOptions, kind: DeviceKind, matrix_units: Option<MatrixUnits>) -> Vec<f32> {
        let limits = DeviceLimits { kind, matrix_units, shader_f16: true, ..DeviceLimits::webgpu_default() };
        let latents = parts(self.count, self.steps.0, self.steps.1).count();
        let options = &PlanOptions { clip_latents: u32::try_from(latents).unwrap(), ..options.clone() };
        let mut states = States::new();
        let mut result = Vec::new();
        let after = parts_after(&(self.graph)(Part::Next));
        for (turn, part, range) in turns(self.count, self.steps, after) {
            let graph = (self.graph)(part);
            let plan = Plan::new(&graph, &limits, options).unwrap();
            test_kit::plan_checks::check(&plan, &limits);
            let mut weights = formula::weights(&file_tensors(&graph));
            for (part, (name, factor)) in
                ["weight", "bias"].iter().flat_map(|part| self.growth.iter().map(move |growth| (part, growth)))
            {
                let tensor = weights.get_mut(&format!("{name}.{part}")).unwrap();
                tensor.data.iter_mut().for_each(|value| *value *= factor);
            }
            let input = range.map(|range| frames_of(self.input, range)).unwrap_or_default();
            let (frames, written) = interpret_part(&plan, &weights, &[&input], turn, &mut states);
            if plan.steps.iter().all(|step| step.turns.is_none()) {
                check_scratch(&plan, &written);
            }
            let each = frames.len() / plan.result.frames as usize;
            let existing = plan.result.existing(turn);
            result.extend_from_slice(&frames[existing.start * each..existing.end * each]);
        }
        result
    }

    /// Checks values between layers that exceed half precision: in halves, the result still agrees
    /// with f64.
    fn check_beyond_halves(&self) {
        let wanted = frames_of(self.wanted, 0..self.wanted.shape[2]);
        for storage in storages().into_iter().filter(|storage| *storage != Storage::F32) {
            let found = self.run(&PlanOptions::new(storage, Output::Raw), DeviceKind::Cpu, None);
            let error = relative_error(&found, &wanted);
            println!("{} {storage:?}: {error:.1e}", self.name);
            assert!(
                error <= 1.5 * most_error(storage, 0.0, self.f16_error),
                "{} {storage:?}: {error:.1e}, torch's own {:.1e}",
                self.name,
                self.f16_error
            );
        }
    }

    fn check(&self) {
        let on_units = (Storage::FastF16, Some(MatrixUnits { side: 8, lanes: 8 }));
        for (storage, units) in storages().into_iter().map(|storage| (storage, None)).chain([on_units]) {
            self.check_in(storage, units);
        }
    }

    fn check_in(&self, storage: Storage, units: Option<MatrixUnits>) {
        let graph = (self.graph)(Part::Next);
        let channels = graph.shape(graph.nodes.last().unwrap().output).channels;
        let wanted = frames_of(&first_channels(self.wanted, channels), 0..self.wanted.shape[2]);
        let options = PlanOptions::new(storage, Output::Raw);
        let whole = self.run(&options, DeviceKind::Cpu, units);
        let error = relative_error(&whole, &wanted);
        println!("{} {storage:?} {units:?}: {error:.1e}, torch in f16 {:.1e}", self.name, self.f16_error);
        let most = most_error(storage, 1e-5, self.f16_error);
        assert!(error <= most, "{} {storage:?} {units:?}: {error:.1e}, at most {most:.1e}", self.name);
        let chunk = if storage == Storage::F32 { 1 << 10 } else { 1 << 13 };
        let cut = PlanOptions { chunk_limit: Bytes(chunk), host_states: HostStates::All, ..options.clone() };
        let what = format!("{} {storage:?} {units:?} in chunks", self.name);
        assert_same_bits(&self.run(&cut, DeviceKind::Gpu, units), &whole, &what);
    }
}

/// Runs `check` on both directions of fixture `name`, for outputs with this ending. The first
/// convolutions grow as the fixture says.
fn check(name: &str, ending: &str, check: impl Fn(&Case<'_>)) {
    let golden = Golden::open(name);
    let (config, latents, pixels) = (&golden.config, golden.latents(), golden.pixels().unwrap());
    let growth = |half: &str| {
        let factor = golden.metadata.get(&format!("{half}_growth")).filter(|_| !ending.is_empty())?;
        Some((format!("{half}.conv_in"), factor.parse().unwrap()))
    };
    let [first, step] = [Part::First, Part::Next].map(|part| frames(config, part) as usize);
    // Shorter where values exceed halves.
    let shown = golden.output(&format!("moments{ending}")).unwrap().shape[2];
    check(&Case {
        name: format!("{name} frames{ending}"),
        graph: &|part| part_of_decoder(config, part, size_of_frame(&latents), LatentSpace::Model),
        input: &latents,
        steps: (1, 1),
        count: shown,
        wanted: golden.output(&format!("frames{ending}")).unwrap(),
        f16_error: golden.f16_error("frames"),
        growth: growth("decoder"),
    });
    check(&Case {
        name: format!("{name} moments{ending}"),
        graph: &|part| part_of_encoder(config, part, size_of_frame(&pixels)),
        input: &pixels,
        steps: (first, step),
        count: pixels.shape[2].min(first + (shown - 1) * step),
        wanted: golden.output(&format!("moments{ending}")).unwrap(),
        f16_error: golden.f16_error("moments"),
        growth: growth("encoder"),
    });
}

#[test]
fn wan() {
    check("clip_wan", "", |case| case.check());
}

#[test]
fn wan22() {
    check("clip_wan22", "", |case| case.check());
}

#[test]
fn hunyuan_video() {
    check("clip_hunyuan_video", "", |case| case.check());
}

#[test]
fn ltx2() {
    check("clip_ltx2", "", |case| case.check());
    check("clip_ltx2_3", "", |case| case.check_in(Storage::F32, None));
}

#[test]
fn seedvr() {
    check("clip_seedvr", "", |case| case.check());
}

#[test]
fn tiny() {
    for name in ["clip_taew2_1", "clip_lighttaew2_1", "clip_taew2_1_preview", "clip_taew2_2", "clip_taeltx2_3"] {
        check(name, "", |case| case.check());
    }
}

/// Tests how many parts come after that of the last latent: by hand, half the convolutions over
/// time at each rate of frames, from the latents on.
#[test]
fn ltx2_lags_behind_its_latents() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    for (family, parts) in [("ltx2", 22), ("ltx2_3", 14), ("wan22", 0)] {
        let request = Request::decode(Size { width: 8, height: 8 }, LatentSpace::Vae).of_clip();
        let config = Family::find(family).unwrap().config();
        let plans = wgvae::plan(&config, &request, &limits, Storage::F16).unwrap();
        assert_eq!(plans.later().result.parts_after(), parts, "{family}");
    }
}

/// Tests that keys and values of earlier frames grow with the length of a clip, and nothing else:
/// by hand, two tensors of 1024 channels for each frame of latents but the last.
#[test]
fn hunyuan_video_keeps_keys_and_values_of_every_frame() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    let config = Family::find("hunyuan_video15").unwrap().config();
    let plans = |direction: Request, clip_latents| {
        wgvae::plan(&config, &Request { clip_latents, ..direction.of_clip() }, &limits, Storage::F16).unwrap()
    };
    let size = Size { width: 20, height: 12 };
    let image = Size { width: 320, height: 192 };
    for direction in [Request::decode(size, LatentSpace::Vae), Request::encode(image)] {
        let states = |latents| plans(direction, latents).state_bytes().0;
        let frame = 2 * 20 * 12 * 1024 * 2;
        assert_eq!(states(Some(31)) - states(Some(1)), 30 * frame);
        assert_eq!(states(None), states(Some(33)));
        let grown = plans(direction, Some(31)).peak().0 - plans(direction, Some(2)).peak().0;
        assert!((29 * frame..30 * frame).contains(&grown), "{grown} for 29 frames of {frame}");
    }
    let refused = |size, latents| {
        let request = Request { clip_latents: Some(latents), ..Request::decode(size, LatentSpace::Vae).of_clip() };
        let text = wgvae::plan(&config, &request, &limits, Storage::F16).unwrap_err().to_string();
        assert!(text.contains("clip_latents") && text.ends_with(&format!("found {latents}")), "{text}");
    };
    refused(size, 0);
    refused(size, 16_385);
    // Too many steps for an allowed number of latents.
    refused(Size { width: 200, height: 128 }, 16_384);
}

/// Tests values beyond half precision, in states too.
#[test]
fn values_beyond_half_precision() {
    check("clip_wan", "_beyond_halves", |case| case.check_beyond_halves());
    check("clip_wan22", "_beyond_halves", |case| case.check_beyond_halves());
    check("clip_hunyuan_video", "_beyond_halves", |case| case.check_beyond_halves());
    check("clip_seedvr", "_beyond_halves", |case| case.check_beyond_halves());
}

/// Tests that the weights of both parts count: each part needs its own, and without a budget the
/// other part's stay on the device.
#[test]
fn the_weights_of_both_parts_count() {
    let limits = DeviceLimits::webgpu_default();
    let size = Size { width: 64, height: 64 };
    for family in ["wan21", "wan22", "seedvr2"] {
        let config = Family::find(family).unwrap().config();
        let decode =
            wgvae::plan(&config, &Request::decode(size, LatentSpace::Vae).of_clip(), &limits, Storage::F32).unwrap();
        let encode = wgvae::plan(&config, &Request::encode(size).of_clip(), &limits, Storage::F32).unwrap();
        for plans in [decode, encode] {
            let all = plans.first().memory.weights;
            assert_eq!(plans.later().memory.weights, all, "{family}");
            let own: Bytes = plans.later().weights.iter().map(|weight| weight.bytes).sum();
            assert!(all >= own, "{family}: {all} and {own}");
        }
    }
}

/// Tests that states fill the room that a budget leaves: the smaller the budget, the more states
/// wait in host memory.
#[test]
fn states_fill_what_a_budget_leaves() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    let size = Size { width: 160, height: 90 };
    for family in ["wan21", "seedvr2"] {
        let config = Family::find(family).unwrap().config();
        let plan = |memory_budget| {
            let options = DecodeOptions { memory_budget, parking: Parking::On, ..DecodeOptions::default() };
            wgvae::plan(
                &config,
                &options.request(size, LatentSpace::Model, Output::Rgba8).of_clip(),
                &limits,
                Storage::F16,
            )
            .unwrap()
        };
        let whole = plan(None);
        assert_eq!(whole.host_bytes(), Bytes(0), "{family}: without a budget");
        let states = whole.state_bytes().0;
        let mut before = 0;
        for eighths in [0, 1, 3, 5, 7] {
            let budget = Bytes(whole.peak().0 - states * eighths / 8);
            let plans = plan(Some(budget));
            let waiting = plans.later().states.iter().filter(|state| state.home == Home::Host);
            let waiting: u64 = waiting.map(|state| state.bytes().0).sum();
            assert!(plans.peak() <= budget, "{family}: {} within {budget}", plans.peak());
            assert!(waiting >= before, "{family}: {} in host memory within {budget}", Bytes(waiting));
            assert!(eighths != 0 || waiting == 0, "{family}: all fits");
            assert!(eighths != 5 || (waiting > 0 && waiting < states), "{family}: {} within {budget}", Bytes(waiting));
            before = waiting;
        }
    }
}

/// Tests that the budget named by an error works for both parts, and that the error tells the size
/// of frames, not of latents.
#[test]
fn a_refused_budget_names_one_that_will_do() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    let [latents, frame] = [(40, 24), (320, 192)].map(|(width, height)| Size { width, height });
    for family in ["wan21", "seedvr2"] {
        let config = Family::find(family).unwrap().config();
        for parking in [Parking::On, Parking::Off] {
            let decode = |budget| {
                let options = DecodeOptions { memory_budget: Some(budget), parking, ..DecodeOptions::default() };
                wgvae::plan(
                    &config,
                    &options.request(latents, LatentSpace::Model, Output::Rgba8).of_clip(),
                    &limits,
                    Storage::F16,
                )
            };
            let encode = |budget| {
                let options = EncodeOptions { memory_budget: Some(budget), parking, ..EncodeOptions::default() };
                wgvae::plan(&config, &options.request(frame).of_clip(), &limits, Storage::F16)
            };
            let plans: [&dyn Fn(Bytes) -> wgvae::Result<Plans>; 2] = [&decode, &encode];
            for plan in plans {
                let Err(Error::Budget { smallest, image, .. }) = plan(Bytes(1)) else {
                    panic!("one byte is no budget")
                };
                assert_eq!(image, frame, "{family} {parking:?}");
                let peak = plan(smallest).unwrap().peak();
                assert!(peak <= smallest, "{family} {parking:?}: {peak} within {smallest}");
            }
        }
    }
}

/// Tests that the error of a clip in tiles names the budget that was given, also one that the other
/// tiles fill by themselves.
#[test]
fn a_refused_budget_of_tiles_is_the_one_that_was_given() {
    // The cores have no other memory for states.
    let limits = DeviceLimits { kind: DeviceKind::Host, ..DeviceLimits::webgpu_default() };
    let config = Family::find("wan21").unwrap().config();
    let tiling = Tiling::Blend(Blend::new(BlendRule::Linear, 16, 4).unwrap());
    let decode = |memory_budget| {
        let options = DecodeOptions { memory_budget, tiling, ..DecodeOptions::default() };
        let request = options.request(Size { width: 36, height: 24 }, LatentSpace::Model, Output::Rgba8).of_clip();
        wgvae::plan(&config, &request, &limits, Storage::F32)
    };
    let kept = decode(None).unwrap();
    for given in [Bytes(1), Bytes(kept.peak().0 / 8)] {
        let Err(Error::Budget { budget, smallest, .. }) = decode(Some(given)) else { panic!("{given} is no budget") };
        assert_eq!(budget, given);
        assert!(decode(Some(smallest)).unwrap().peak() <= smallest, "{smallest}");
    }
}

/// The peak of the plans without a budget is a budget that fits, whether or not activations may
/// wait in host memory.
#[test]
fn the_own_peak_is_a_budget() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    for family in ["wan21", "qwen_image", "wan22", "seedvr2", "taew2_1", "taeltx_2"] {
        let config = Family::find(family).unwrap().config();
        let latents = Size { width: 32, height: 24 };
        let image = config.image_size(latents, LatentSpace::Model);
        for request in [Request::decode(latents, LatentSpace::Model).of_clip(), Request::encode(image).of_clip()] {
            for parking in [Parking::On, Parking::Off] {
                let request = Request { parking, ..request };
                let peak = wgvae::plan(&config, &request, &limits, Storage::F16).unwrap().peak();
                let within = Request { memory_budget: Some(peak), ..request };
                let plans = wgvae::plan(&config, &within, &limits, Storage::F16);
                let found = plans.map(|plans| plans.peak()).map_err(|error| error.to_string());
                assert!(found.as_ref().is_ok_and(|found| *found <= peak), "{family} {request:?}: {peak}, {found:?}");
            }
        }
    }
}
