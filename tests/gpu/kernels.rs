//! Every kernel alone against its plain twin on the CPU, over the catalogue of problems.
//! `WGVAE_PROBLEMS=REGEX` selects some of them.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use pollster::block_on;
use test_kit::problems::compare::{compare, twin};
use test_kit::problems::{Data, Problem, all};
use wgvae::gpu::{GpuBuffer, Input, LoadedWeight, Prepared};
use wgvae::images::Output;
use wgvae::kernels::choice::KernelChoice;
use wgvae::kernels::matmul::MATRIX_SUBGROUPS;
use wgvae::kernels::source::specialize;
use wgvae::kernels::weights::WeightLayout;
use wgvae::kernels::{Variant, interface};
use wgvae::model::graph::WeightSlice;
use wgvae::plan::device_class::DeviceClass;
use wgvae::plan::{
    Action, BufferId, BufferUse, HostSource, InputRows, PlaneExtents, Resource, SlotId, Step, UNUSED_BYTES, WeightId,
    WeightUse,
};
use wgvae::report::{Memory, Plan};
use wgvae::{Bytes, Control, Gpu, GpuOptions, Size, Storage};

use crate::matrix_units::{takes_all, with_units};

#[test]
fn kernels_match_their_twins() {
    let mut problems = all();
    if let Some(gpu) = with_units(&GpuOptions::default()).filter(|gpu| !takes_all(gpu)) {
        // A CPU driver compiles each of these kernels for a quarter of a minute: two are enough.
        let mut on_units = 0;
        problems.retain(|problem| {
            let variant = &problem.launch.variant;
            let is_for_units = variant.file == "matmul_matrix";
            on_units += u32::from(is_for_units && has_units_of(&gpu, variant));
            !is_for_units || has_units_of(&gpu, variant) && on_units <= 2
        });
    }
    let next = AtomicUsize::new(0);
    // A CPU driver compiles each kernel on one core, so every core takes problems.
    let threads = available_parallelism().map_or(1, NonZero::get);
    let checked: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(|| check(&problems, &next))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count: usize = checked.iter().map(|(_, count)| count).sum();
    let failures: Vec<String> = checked.into_iter().flat_map(|(failures, _)| failures).collect();
    println!("{count} problems");
    assert!(count > 0, "WGVAE_PROBLEMS leaves no problem");
    assert!(failures.is_empty(), "{} failures of {count} problems:\n{}", failures.len(), failures.join("\n"));
}

/// Checks problems from number `next` on, which other threads take at the same time, on a device of
/// its own. Returns failures, and the number of problems that the device could run.
fn check(problems: &[Problem], next: &AtomicUsize) -> (Vec<String>, usize) {
    let default = GpuOptions::default();
    let gpu = with_units(&default).unwrap_or_else(|| block_on(Gpu::request(&default)).unwrap());
    let (mut failures, mut count) = (Vec::new(), 0);
    while let Some(problem) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
        let variant = &problem.launch.variant;
        if variant.file == "matmul_matrix" && !has_units_of(&gpu, variant) {
            println!("SKIPPED: {}: this device has no such units", problem.name);
            continue;
        }
        let is_f16 = specialize(variant).unwrap().contains("enable f16;");
        if is_f16 && !gpu.limits().shader_f16 {
            println!("{}: this device has no shader-f16, packed halves run instead", problem.name);
            continue;
        }
        if problem.launch.variant.file == "matmul_quad" && !gpu.limits().quads {
            println!("{}: this device has no quads", problem.name);
            continue;
        }
        count += 1;
        let wanted = twin(problem);
        for (index, wanted) in wanted {
            let found = block_on(launch(&gpu, problem, index));
            let data = problem.bindings[index].as_ref().unwrap();
            let name = interface(problem.launch.variant.file).bindings[index].0;
            if let Err(text) = compare(data.elements, &found, &wanted, problem.tolerance) {
                failures.push(format!("{}: {name}: {text}", problem.name));
            }
        }
    }
    (failures, count)
}

/// Returns true if `variant` is made for the matrix units that the device was opened with.
fn has_units_of(gpu: &Gpu, variant: &Variant) -> bool {
    let wanted = (variant.number("SIDE"), variant.number("WORKGROUP"));
    gpu.limits().matrix_units.is_some_and(|units| (units.side, units.lanes * MATRIX_SUBGROUPS) == wanted)
}

/// Launches the kernel once, as a plan of one step, and reads binding `read`. All other bindings
/// are bound as weights.
async fn launch(gpu: &Gpu, problem: &Problem, read: usize) -> Vec<u8> {
    let mut buffers = Vec::new();
    let mut bindings = Vec::new();
    for (index, data) in problem.bindings.iter().enumerate() {
        bindings.push(match data {
            Some(_) if index == read => Resource::Buffer(BufferId(0)),
            Some(Data { bytes, .. }) => {
                buffers.push(GpuBuffer::with_data(gpu, "binding", bytes).await.unwrap());
                Resource::Weight(WeightId(buffers.len() - 1))
            }
            None => Resource::Unused,
        });
    }
    let before = &problem.bindings[read].as_ref().unwrap().bytes;
    let plan = plan_of_one(gpu, problem, bindings, buffers.len(), before.len() as u64);
    let weights = buffers.iter().map(LoadedWeight::Gpu).collect();
    let mut prepared = Prepared::new(gpu, Arc::new(plan), weights).await.unwrap();
    let before: Vec<f32> = bytemuck::pod_collect_to_vec(before);
    let mut result = Vec::new();
    let mut keep = |_, bytes: &[u8]| {
        result = bytes.to_vec();
        Ok(())
    };
    prepared.run(&Input::Host(vec![before.as_slice().into()]), &mut Control::default(), &mut keep).await.unwrap();
    result
}

fn plan_of_one(gpu: &Gpu, problem: &Problem, bindings: Vec<Resource>, weights: usize, bytes: u64) -> Plan {
    let params = problem.launch.params.clone();
    // The result is read as one row of a picture.
    assert_eq!(bytes % 4, 0);
    let size = Size { width: u32::try_from(bytes / 4).unwrap(), height: 1 };
    let weight = WeightUse {
        name: String::new(),
        take: WeightSlice::All,
        layout: WeightLayout::Vector { channels: 1 },
        storage: Storage::F32,
        factor: 1.0,
        bytes: Bytes(0),
    };
    // Content of the result before the launch.
    let before = InputRows { input: 0, rows: (0, 1) };
    let action = Action::Dispatch {
        variant: 0,
        workgroups: problem.launch.workgroups,
        params: 0..params.len(),
        bindings: bindings.into_iter().collect(),
    };
    Plan {
        inputs: vec![PlaneExtents { size, channels: 1, frames: 1, first: 0 }],
        result: PlaneExtents { size, channels: 1, frames: 1, first: 0 },
        storage: Storage::F32,
        output: Output::Rgba8,
        stages: vec![problem.name.clone()],
        variants: vec![problem.launch.variant.clone()],
        steps: vec![
            Step {
                stage: 0,
                action: Action::Fetch { from: HostSource::Input(before), to: BufferId(0) },
                macs: 0,
                turns: None,
            },
            Step { stage: 0, action, macs: problem.launch.macs, turns: None },
            Step { stage: 0, action: Action::Output { from: BufferId(0), rows: (0, 1) }, macs: 0, turns: None },
        ],
        buffers: vec![BufferUse {
            name: "result".to_owned(),
            bytes: Bytes(bytes),
            live: 0..3,
            slot: SlotId(0),
            offset: Bytes(0),
        }],
        slots: vec![Bytes(bytes)],
        weights: vec![weight; weights],
        memory: Memory { params: Bytes(params.len() as u64 + UNUSED_BYTES), ..Memory::default() },
        params,
        states: Vec::new(),
        parked: Vec::new(),
        transform: Vec::new(),
        choice: KernelChoice::for_device(gpu.limits()),
        kind: gpu.limits().kind,
        class: DeviceClass::of(gpu.limits()),
    }
}
