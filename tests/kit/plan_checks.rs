//! Checks that hold for every plan, for the tests of plans and for fuzzing.

use std::collections::BTreeSet;

use wgvae::Bytes;
use wgvae::device::DeviceLimits;
use wgvae::kernels::{Access, interface};
use wgvae::plan::memory::Staging;
use wgvae::plan::{Action, BufferUse, Home, HostSource, InputRows, Plan, Resource, UNUSED_BYTES};

/// Returns the buffers that a step reads, and those that it writes (and may read).
fn reads_and_writes(plan: &Plan, action: &Action) -> (Vec<usize>, Vec<usize>) {
    match action {
        Action::Copy { from, to, .. } => (vec![from.0.0], vec![to.0.0]),
        Action::Fetch { to, .. } | Action::Recall { to, .. } => (vec![], vec![to.0]),
        Action::Park { from, .. } | Action::Keep { from, .. } | Action::Output { from, .. } => (vec![from.0], vec![]),
        Action::Dispatch { variant, bindings, .. } => {
            let (mut reads, mut writes) = (Vec::new(), Vec::new());
            let uses = interface(plan.variants[*variant].file).bindings;
            assert_eq!(uses.len(), bindings.len());
            for ((_, access), binding) in uses.iter().zip(bindings) {
                match (binding, access) {
                    (Resource::Buffer(buffer), Access::Read) => reads.push(buffer.0),
                    (Resource::Buffer(buffer), Access::ReadWrite) => writes.push(buffer.0),
                    (Resource::Weight(_), Access::ReadWrite) => panic!("a weight is written"),
                    (Resource::Weight(_), Access::Read) | (Resource::Unused, _) => {}
                }
            }
            (reads, writes)
        }
    }
}

/// Checks that live buffers never overlap in a slot, and lie within it.
fn check_slots(plan: &Plan) {
    for (index, buffer) in plan.buffers.iter().enumerate() {
        let end = |buffer: &BufferUse| buffer.offset.0 + buffer.bytes.0;
        assert!(end(buffer) <= plan.slots[buffer.slot.0].0, "{} is larger than its slot", buffer.name);
        assert_eq!(buffer.offset.0 % 256, 0, "{}", buffer.name);
        for other in plan.buffers[index + 1..].iter().filter(|other| other.slot == buffer.slot) {
            let apart = buffer.live.end <= other.live.start || other.live.end <= buffer.live.start;
            let beside = end(buffer) <= other.offset.0 || end(other) <= buffer.offset.0;
            assert!(apart || beside, "{} {:?} and {} {:?} overlap", buffer.name, buffer.live, other.name, other.live);
        }
    }
}

/// Checks that reads follow writes within the life of a buffer, and that no launch binds one slot
/// in two ways, which WebGPU forbids.
fn check_steps(plan: &Plan) {
    let mut written = BTreeSet::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let (reads, writes) = reads_and_writes(plan, &step.action);
        let name = &plan.stages[step.stage];
        for buffer in reads.iter().chain(&writes) {
            let live = &plan.buffers[*buffer].live;
            assert!(live.contains(&index), "step {index}, {name}: buffer {buffer} lives {live:?}");
        }
        let slots = |buffers: &[usize]| buffers.iter().map(|buffer| plan.buffers[*buffer].slot).collect::<Vec<_>>();
        let (read_slots, mut write_slots) = (slots(&reads), slots(&writes));
        write_slots.sort();
        assert!(write_slots.windows(2).all(|pair| pair[0] != pair[1]), "step {index}, {name}: one slot written twice");
        assert!(
            write_slots.iter().all(|slot| !read_slots.contains(slot)),
            "step {index}, {name}: a slot read and written"
        );
        let unwritten = reads.iter().find(|buffer| !written.contains(*buffer));
        assert!(unwritten.is_none(), "step {index}, {name}: reads buffer {unwritten:?} before any write");
        written.extend(writes);
    }
}

/// Checks that parameters overlap only if they are equal, and start where the device requires; and
/// that the result covers the image once, in order.
fn check_layout(plan: &Plan, limits: &DeviceLimits) {
    let mut ends = std::collections::BTreeMap::new();
    for step in &plan.steps {
        let Action::Dispatch { params, variant, workgroups, .. } = &step.action else { continue };
        assert_eq!(params.start % limits.min_uniform_buffer_offset_alignment as usize, 0);
        assert!(params.end <= plan.params.len());
        assert_eq!(params.len(), interface(plan.variants[*variant].file).params.len() * 4);
        assert!(workgroups.iter().all(|count| (1..=limits.max_compute_workgroups_per_dimension).contains(count)));
        assert_eq!(*ends.entry(params.start).or_insert(params.end), params.end);
    }
    let mut end_before = 0;
    for (start, end) in ends {
        assert!(start >= end_before);
        end_before = end;
    }
    let mut row = 0;
    for (_, rows) in plan.outputs() {
        assert_eq!(rows.0, row);
        row = rows.1;
    }
    assert_eq!(row, plan.result.size.height);
}

fn bound_weights(action: &Action) -> Vec<usize> {
    let Action::Dispatch { bindings, .. } = action else { return Vec::new() };
    let weight = |binding: &Resource| if let Resource::Weight(weight) = binding { Some(weight.0) } else { None };
    bindings.iter().filter_map(weight).collect()
}

/// Checks that every row of every input is fetched, into buffers that hold it.
fn check_inputs(plan: &Plan) {
    let mut fetched: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); plan.inputs.len()];
    for step in &plan.steps {
        let Action::Fetch { from: HostSource::Input(InputRows { input, rows }), to } = &step.action else { continue };
        let planes = plan.inputs[*input];
        let bytes = u64::from(rows.1 - rows.0) * u64::from(planes.size.width) * u64::from(planes.planes()) * 4;
        assert!(bytes <= plan.buffers[to.0].bytes.0, "rows {rows:?} of input {input} do not fit");
        fetched[*input].extend(rows.0..rows.1);
    }
    // An encode drops last rows that fill no patch of a tiny autoencoder, of 2x2 or 4x4 pixels.
    let has_patches = plan.stages.iter().any(|stage| stage == "patches");
    for (rows, planes) in fetched.iter().zip(&plan.inputs) {
        let read = u32::try_from(rows.len()).unwrap();
        let dropped = if has_patches && planes.channels <= 4 { planes.size.height % 4 } else { 0 };
        assert!(rows.iter().copied().eq(0..read), "rows of an input are left out");
        assert!(read + dropped >= planes.size.height, "rows of an input that nobody reads");
    }
}

/// Runs all checks that hold for every plan.
pub fn check(plan: &Plan, limits: &DeviceLimits) {
    check_inputs(plan);
    check_slots(plan);
    check_steps(plan);
    check_layout(plan, limits);
    check_memory(plan, limits);
}

/// Checks that no buffer exceeds the device's limits, and that the predicted peak is the sum of
/// what the executor creates.
fn check_memory(plan: &Plan, limits: &DeviceLimits) {
    assert!(plan.largest_binding() <= limits.largest_bound_buffer());
    for bytes in &plan.slots {
        assert!(*bytes <= limits.max_buffer_size, "a slot of {bytes}, buffers of {}", limits.max_buffer_size);
    }
    let slots: u64 = plan.slots.iter().map(|bytes| bytes.0).sum();
    let bound: BTreeSet<usize> = plan.steps.iter().flat_map(|step| bound_weights(&step.action)).collect();
    let weights: u64 = bound.iter().map(|weight| plan.weights[*weight].bytes.0).sum();
    let staging = Staging::of(plan);
    // A picture that stays on the device is not read, only its checks are.
    assert!(plan.output.stays() || staging.readback >= plan.row_bytes(), "a row of the result goes in one piece");
    for bytes in [staging.upload, staging.readback] {
        assert!(bytes.0 > 0 && bytes <= limits.max_buffer_size, "a staging buffer of {bytes}");
        assert!(
            bytes <= Staging::PIECE.max(plan.row_bytes().align_up(Staging::ALIGNMENT)),
            "a staging buffer of {bytes}"
        );
    }
    assert_eq!(plan.memory.staging, staging.bytes());
    let picture = if plan.output.stays() { plan.row_bytes().0 * u64::from(plan.result.size.height) } else { 0 };
    let small = plan.params.len() as u64 + UNUSED_BYTES + plan.memory.timestamps.0;
    let states = plan.states.iter().map(|state| match state.home {
        Home::Device => state.bytes().0 + state.table.0,
        Home::Host => state.table.0,
    });
    let states: u64 = states.sum();
    assert_eq!(plan.memory.peak(), Bytes(slots + weights + states + staging.bytes().0 + small + picture));
}
