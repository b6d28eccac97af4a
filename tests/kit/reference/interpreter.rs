//! Interpreter: runs a plan on the CPU, step by step, with one byte vector for each slot.
//!
//! Every launch writes to copies of its bindings, which are copied back after it. A slot starts
//! as NaN, and a buffer's range becomes NaN again when the buffer's life begins. So a plan that
//! reads before it writes, or after another buffer has used the range, gives NaN in the result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wgvae::images::Output;
use wgvae::kernels::weights::pack;
use wgvae::kernels::{Access, interface};
use wgvae::model::graph::WeightSlice;
use wgvae::plan::turns::Turn;
use wgvae::plan::{Action, BufferId, HostSource, InputRows, ParkedId, Plan, Resource, StatePart};
use wgvae::{Bytes, HostTensor};

use crate::reference::{Call, run};

/// Every byte of memory that was never written: NaN as f32 and as f16.
const POISON: u8 = 0xff;

struct Memory<'a> {
    plan: &'a Plan,
    slots: Vec<Vec<u8>>,
    /// Bytes written of each buffer whose life is over, up to the last one.
    written: Vec<usize>,
    weights: Vec<Vec<u8>>,
    inputs: &'a [&'a [f32]],
    parked: BTreeMap<ParkedId, Vec<u8>>,
    states: &'a mut States,
    image: Vec<f32>,
    rows_out: usize,
}

/// States of a clip between parts, by the convolution that reads them: frames, and the tables of
/// their norms. Zeros at first.
pub type States = BTreeMap<String, (Vec<u8>, Vec<u8>)>;

/// Returns the result of `plan`, planar f32 `[frames, c, h, w]`, for its one input `[frames, c, h,
/// w]`.
pub fn interpret(plan: &Plan, weights: &BTreeMap<String, HostTensor>, input: &[f32]) -> Vec<f32> {
    interpret_and_measure(plan, weights, &[input]).0
}

/// Returns the result, and the bytes written of each buffer, up to the last one.
pub fn interpret_and_measure(
    plan: &Plan,
    weights: &BTreeMap<String, HostTensor>,
    inputs: &[&[f32]],
) -> (Vec<f32>, Vec<usize>) {
    interpret_part(plan, weights, inputs, Turn::default(), &mut States::new())
}

/// Interprets a part of a clip, with the states of earlier parts. Steps whose turn it is not are
/// left out, and no input is read after the last latents.
pub fn interpret_part(
    plan: &Plan,
    weights: &BTreeMap<String, HostTensor>,
    inputs: &[&[f32]],
    turn: Turn,
    states: &mut States,
) -> (Vec<f32>, Vec<usize>) {
    assert_eq!(plan.output, Output::Raw);
    assert_eq!(plan.inputs.len(), inputs.len(), "inputs of the plan");
    let packed = plan.weights.iter().map(|used| {
        let values = match used.take {
            WeightSlice::Transform => &plan.transform,
            WeightSlice::Zeros | WeightSlice::Ones => &Vec::new(),
            WeightSlice::All
            | WeightSlice::Frames { .. }
            | WeightSlice::Filled { .. }
            | WeightSlice::Inputs { .. }
            | WeightSlice::InputTaps { .. }
            | WeightSlice::Tap { .. }
            | WeightSlice::SumOfTaps { .. }
            | WeightSlice::Rows { .. } => &weights[&used.name].data,
        };
        pack(values, used.layout, used.take, used.storage, used.factor)
    });
    let slots = plan.slots.iter().map(|bytes| vec![POISON; usize::try_from(bytes.0).unwrap()]).collect();
    for state in &plan.states {
        let zeros = |bytes: Bytes| vec![0; usize::try_from(bytes.0).unwrap()];
        let kept = states.entry(state.name.clone()).or_insert_with(|| (zeros(state.bytes()), zeros(state.table)));
        assert_eq!(
            [kept.0.len(), kept.1.len()].map(|len| len as u64),
            [state.bytes().0, state.table.0],
            "{}",
            state.name
        );
    }
    let size = plan.result.size;
    let image = vec![f32::NAN; plan.result.planes() as usize * size.width as usize * size.height as usize];
    let written = vec![0; plan.buffers.len()];
    let mut memory = Memory {
        plan,
        slots,
        written,
        weights: packed.collect(),
        inputs,
        parked: BTreeMap::new(),
        states,
        image,
        rows_out: 0,
    };
    for index in 0..plan.steps.len() {
        let _named = Named(format!("step {index}, {}", plan.stages[plan.steps[index].stage]));
        memory.poison(index);
        if plan.steps[index].runs(turn) {
            memory.step(index);
        }
        memory.measure(index);
    }
    let rows = if plan.result.existing(turn).is_empty() { 0 } else { plan.result.size.height as usize };
    assert_eq!(memory.rows_out, rows, "rows are missing");
    (memory.image, memory.written)
}

/// Guard that prints the name of the step in which a twin panics.
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
        for buffer in &self.plan.buffers {
            if buffer.live.start == step {
                let start = usize::try_from(buffer.offset.0).unwrap();
                self.slots[buffer.slot.0][start..][..usize::try_from(buffer.bytes.0).unwrap()].fill(POISON);
            }
        }
    }

    /// Finds the last written byte of each buffer whose life ends with `step`: the last byte that
    /// differs from [`Self::poison`]'s.
    fn measure(&mut self, step: usize) {
        for (index, buffer) in self.plan.buffers.iter().enumerate() {
            if buffer.live.end == step + 1 {
                let (slot, range) = self.range(BufferId(index));
                let last = self.slots[slot][range].iter().rposition(|byte| *byte != POISON);
                self.written[index] = last.map_or(0, |last| last + 1);
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
                    HostSource::Input(rows) => self.input(*rows),
                };
                let (slot, range) = self.range(*to);
                let length = content.len().min(range.len());
                assert!(content.len() <= range.len().next_multiple_of(256), "a fetch beyond {to:?}");
                self.slots[slot][range.start..][..length].copy_from_slice(&content[..length]);
            }
            Action::Park { from, to } => {
                let (slot, range) = self.range(*from);
                assert!(range.len() as u64 <= self.plan.parked[to.0].0, "more is parked than there is room for");
                self.parked.insert(*to, self.slots[slot][range].to_vec());
            }
            Action::Recall { state, part, to } => {
                let (slot, range) = self.range(*to);
                let name = &self.plan.states[state.0].name;
                let content = match part {
                    StatePart::Frames(at) => &self.states[name].0[usize::try_from(*at).unwrap()..][..range.len()],
                    StatePart::Table => &self.states[name].1[..range.len()],
                };
                self.slots[slot][range].copy_from_slice(content);
            }
            Action::Keep { from, state, part, bytes } => {
                let (slot, range) = self.range(*from);
                let content = &self.slots[slot][range][..usize::try_from(*bytes).unwrap()];
                let (frames, table) = self.states.get_mut(&self.plan.states[state.0].name).unwrap();
                match part {
                    StatePart::Frames(at) => {
                        frames[usize::try_from(*at).unwrap()..][..content.len()].copy_from_slice(content);
                    }
                    StatePart::Table => table[..content.len()].copy_from_slice(content),
                }
            }
            Action::Output { from, rows } => self.output(*from, *rows),
            Action::Dispatch { variant, workgroups, params, bindings } => {
                let mut call = Call {
                    variant: &self.plan.variants[*variant],
                    params: &self.plan.params[params.clone()],
                    workgroups: *workgroups,
                    bindings: bindings.iter().map(|binding| Cow::Borrowed(self.bytes(binding))).collect(),
                };
                run(&mut call);
                let bytes: Vec<Option<Vec<u8>>> = call.bindings.into_iter().map(written).collect();
                let declared = interface(self.plan.variants[*variant].file).bindings;
                for ((binding, (name, access)), bytes) in bindings.iter().zip(declared).zip(bytes) {
                    let Some(bytes) = bytes else { continue };
                    let Resource::Buffer(buffer) = binding else { panic!("{name}: expected a buffer to write to") };
                    assert_eq!(*access, Access::ReadWrite, "{name} is written");
                    let (slot, range) = self.range(*buffer);
                    self.slots[slot][range].copy_from_slice(&bytes);
                }
            }
        }
    }

    fn copy(&mut self, from: (BufferId, u64), to: (BufferId, u64), bytes: u64) {
        let part = |(buffer, start): (BufferId, u64)| {
            assert!(start + bytes <= self.plan.buffers[buffer.0].bytes.0, "a copy beyond {buffer:?}");
            let (slot, range) = self.range(buffer);
            let start = range.start + usize::try_from(start).unwrap();
            (slot, start..start + usize::try_from(bytes).unwrap())
        };
        let ((source, from), (target, to)) = (part(from), part(to));
        assert_ne!(source, target, "WebGPU refuses a copy within one buffer");
        let copied = self.slots[source][from].to_vec();
        self.slots[target][to].copy_from_slice(&copied);
    }

    /// Returns rows of an input, one channel after the other.
    fn input(&self, InputRows { input, rows }: InputRows) -> Vec<u8> {
        let planes = self.plan.inputs[input];
        let (width, height) = (planes.size.width as usize, planes.size.height as usize);
        assert_eq!(self.inputs[input].len(), width * height * planes.planes() as usize, "an input of another size");
        let rows = rows.0 as usize * width..rows.1 as usize * width;
        let part = self.inputs[input].chunks_exact(width * height).flat_map(|plane| &plane[rows.clone()]);
        part.flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Returns the slot of a buffer, and its range of bytes there.
    fn range(&self, buffer: BufferId) -> (usize, std::ops::Range<usize>) {
        let buffer = &self.plan.buffers[buffer.0];
        let start = usize::try_from(buffer.offset.0).unwrap();
        (buffer.slot.0, start..start + usize::try_from(buffer.bytes.0).unwrap())
    }

    fn bytes(&self, binding: &Resource) -> &[u8] {
        match binding {
            Resource::Buffer(buffer) => {
                let (slot, range) = self.range(*buffer);
                &self.slots[slot][range]
            }
            Resource::Weight(weight) => &self.weights[weight.0],
            Resource::Unused => &[],
        }
    }

    /// Copies rows of the result into the image.
    fn output(&mut self, buffer: BufferId, (start, end): (u32, u32)) {
        let size = self.plan.result.size;
        let (width, height, channels) = (size.width as usize, size.height as usize, self.plan.result.planes() as usize);
        let rows = start as usize..end as usize;
        assert_eq!(rows.start, self.rows_out, "rows out of order");
        self.rows_out = rows.end;
        let pixels = rows.len() * width;
        assert_eq!(self.plan.buffers[buffer.0].bytes.0, (pixels * channels * 4) as u64);
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(self.bytes(&Resource::Buffer(buffer)));
        for plane in 0..channels {
            let target = (plane * height + rows.start) * width;
            self.image[target..target + pixels].copy_from_slice(&values[plane * pixels..(plane + 1) * pixels]);
        }
    }
}

/// Returns the bytes of a binding that a launch has written.
fn written(binding: Cow<'_, [u8]>) -> Option<Vec<u8>> {
    match binding {
        Cow::Borrowed(_) => None,
        Cow::Owned(bytes) => Some(bytes),
    }
}
