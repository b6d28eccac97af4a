//! Runs a plan on the CPU, step by step, over one byte vector for each slot.
//!
//! A slot starts as NaN, and a buffer's part of it turns into NaN again when the buffer's life begins: what a plan reads before it
//! has written it, or after another tenant has, shows in the result.

use std::collections::BTreeMap;

use wgvae::kernels::weights::pack;
use wgvae::plan::{Action, BufferId, HostSource, ParkedId, Plan, Resource};
use wgvae::{HostTensor, Output};

use crate::reference::{Call, run};

/// Every byte of memory that nobody has written: NaN as f32 and as f16.
const POISON: u8 = 0xff;

struct Memory<'a> {
    plan: &'a Plan,
    slots: Vec<Vec<u8>>,
    weights: Vec<Vec<u8>>,
    parked: BTreeMap<ParkedId, Vec<u8>>,
    image: Vec<f32>,
    rows_out: usize,
}

/// The image, planar f32 `[3, h, w]`, that `plan` makes of `latents` `[c, h, w]`.
pub(crate) fn interpret(plan: &Plan, weights: &BTreeMap<String, HostTensor>, latents: &[f32]) -> Vec<f32> {
    assert_eq!(plan.output, Output::Raw);
    let packed = plan.weights.iter().map(|used| {
        let values = weights.get(&used.name).map_or(&plan.latent_transform, |tensor| &tensor.data);
        pack(values, used.layout, used.storage, used.factor)
    });
    let slots = plan.slots.iter().map(|bytes| vec![POISON; usize::try_from(bytes.0).unwrap()]).collect();
    let image = vec![f32::NAN; 3 * plan.image.width as usize * plan.image.height as usize];
    let mut memory = Memory { plan, slots, weights: packed.collect(), parked: BTreeMap::new(), image, rows_out: 0 };
    let input = plan.buffers[plan.input.0].slot.0;
    let bytes: &[u8] = bytemuck::cast_slice(latents);
    memory.slots[input][..bytes.len()].copy_from_slice(bytes);
    for index in 0..plan.steps.len() {
        let _named = Named(format!("step {index}, {}", plan.stages[plan.steps[index].stage]));
        memory.poison(index);
        memory.step(index);
    }
    assert_eq!(memory.rows_out, plan.image.height as usize, "rows are missing");
    memory.image
}

/// Names the step in which a twin panics.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in {}", self.0);
        }
    }
}

impl Memory<'_> {
    fn poison(&mut self, step: usize) {
        for (index, buffer) in self.plan.buffers.iter().enumerate() {
            if buffer.live.start == step && index != self.plan.input.0 {
                self.slots[buffer.slot.0][..usize::try_from(buffer.bytes.0).unwrap()].fill(POISON);
            }
        }
    }

    fn step(&mut self, index: usize) {
        match &self.plan.steps[index].action {
            Action::Copy { from, to, bytes } => self.copy(*from, *to, *bytes),
            Action::Fetch { from, to } => {
                let content = match from {
                    HostSource::Weight(weight) => self.weights[*weight].clone(),
                    HostSource::Parked(place) => self.parked[place].clone(),
                };
                assert!(content.len() as u64 <= self.plan.buffers[to.0].bytes.0, "a fetch beyond {to:?}");
                self.slots[self.plan.buffers[to.0].slot.0][..content.len()].copy_from_slice(&content);
            }
            Action::Park { from, to } => {
                let buffer = &self.plan.buffers[from.0];
                let length = usize::try_from(buffer.bytes.0).unwrap();
                self.parked.insert(*to, self.slots[buffer.slot.0][..length].to_vec());
            }
            Action::Output { from, rows } => self.output(*from, *rows),
            Action::Dispatch { variant, workgroups, params, bindings } => {
                let mut taken: Vec<Vec<u8>> = bindings.iter().map(|binding| self.take(binding)).collect();
                let slices = bindings.iter().zip(&mut taken).map(|(binding, bytes)| {
                    let length = self.bytes(binding).unwrap_or(bytes.len());
                    &mut bytes[..length]
                });
                let mut call = Call {
                    variant: &self.plan.variants[*variant],
                    params: &self.plan.params[params.clone()],
                    workgroups: *workgroups,
                    bindings: slices.collect(),
                };
                run(&mut call);
                for (binding, bytes) in bindings.iter().zip(taken) {
                    self.give_back(binding, bytes);
                }
            }
        }
    }

    fn copy(&mut self, from: (BufferId, u64), to: (BufferId, u64), bytes: u64) {
        let range = |(buffer, start): (BufferId, u64)| {
            assert!(start + bytes <= self.plan.buffers[buffer.0].bytes.0, "a copy beyond {buffer:?}");
            usize::try_from(start).unwrap()..usize::try_from(start + bytes).unwrap()
        };
        let slot = |buffer: BufferId| self.plan.buffers[buffer.0].slot.0;
        assert_ne!(slot(from.0), slot(to.0), "WebGPU refuses a copy within one buffer");
        let copied = self.slots[slot(from.0)][range(from)].to_vec();
        self.slots[slot(to.0)][range(to)].copy_from_slice(&copied);
    }

    /// The bytes behind a binding, taken out: a second binding of the same memory finds it empty.
    fn take(&mut self, binding: &Resource) -> Vec<u8> {
        match binding {
            Resource::Buffer(buffer) => std::mem::take(&mut self.slots[self.plan.buffers[buffer.0].slot.0]),
            Resource::Weight(weight) => std::mem::take(&mut self.weights[weight.0]),
            Resource::Unused => Vec::new(),
        }
    }

    fn give_back(&mut self, binding: &Resource, bytes: Vec<u8>) {
        match binding {
            Resource::Buffer(buffer) => self.slots[self.plan.buffers[buffer.0].slot.0] = bytes,
            Resource::Weight(weight) => self.weights[weight.0] = bytes,
            Resource::Unused => {}
        }
    }

    /// How much of its slot a buffer covers.
    fn bytes(&self, binding: &Resource) -> Option<usize> {
        match binding {
            Resource::Buffer(buffer) => Some(usize::try_from(self.plan.buffers[buffer.0].bytes.0).unwrap()),
            Resource::Weight(_) | Resource::Unused => None,
        }
    }

    /// Puts rows of the result into the image.
    fn output(&mut self, buffer: BufferId, (start, end): (u32, u32)) {
        let (width, height) = (self.plan.image.width as usize, self.plan.image.height as usize);
        let rows = start as usize..end as usize;
        assert_eq!(rows.start, self.rows_out, "rows out of order");
        self.rows_out = rows.end;
        let pixels = rows.len() * width;
        assert_eq!(self.plan.buffers[buffer.0].bytes.0, pixels as u64 * 12);
        let bytes = &self.slots[self.plan.buffers[buffer.0].slot.0];
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes[..pixels * 12]);
        for plane in 0..3 {
            let target = (plane * height + rows.start) * width;
            self.image[target..target + pixels].copy_from_slice(&values[plane * pixels..(plane + 1) * pixels]);
        }
    }
}
