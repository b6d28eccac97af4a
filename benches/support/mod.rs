//! Shared code of the benches: the adapter's ceiling, and plans with made-up weights.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pollster::block_on;
use wgvae::gpu::{ClipStates, GpuBuffer, Input, LoadedWeight, Prepared};
use wgvae::model::graph::Graph;
use wgvae::plan::turns::Turn;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::report::RunReport;
use wgvae::{Control, Gpu, Storage};

/// A plan that is ready to run, with its input.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) plan: Arc<Plan>,
    prepared: Prepared,
    latents: Vec<f32>,
    weights: Rc<[GpuBuffer]>,
}

impl Bench {
    /// Plans `graph` and fills its weights with small numbers.
    pub(crate) fn new(gpu: &Gpu, graph: &Graph, storage: Storage) -> Self {
        Self::with(
            gpu,
            graph,
            &PlanOptions { profile: true, ..PlanOptions::new(storage, wgvae::images::Output::Rgba8) },
        )
    }

    /// Makes a bench as [`Self::new`] does, with other options.
    pub(crate) fn with(gpu: &Gpu, graph: &Graph, options: &PlanOptions) -> Self {
        let plan = Plan::new(graph, gpu.limits(), options).expect("the plan fits");
        let weights: Vec<GpuBuffer> = plan
            .weights
            .iter()
            .map(|weight| {
                let count = usize::try_from(weight.bytes.0 / weight.storage.vec4_bytes() * 4).expect("fits");
                let values: Vec<f32> = (0..count).map(|index| ((index % 17) as f32 - 8.0) * 0.01).collect();
                let data = wgvae::kernels::weights::store(&values, weight.storage);
                block_on(GpuBuffer::with_data(gpu, &weight.name, &data)).expect("fits")
            })
            .collect();
        Self::prepare(gpu, plan, weights.into())
    }

    /// Makes a bench of the same steps with the same weights, which are timed as `stages`: names,
    /// and the one of each step by its number.
    #[allow(dead_code, reason = "only the GPU day times kernels")]
    pub(crate) fn timed_as(&self, gpu: &Gpu, names: Vec<String>, of: &[usize]) -> Self {
        let mut plan = (*self.plan).clone();
        plan.stages = names;
        plan.steps.iter_mut().zip(of).for_each(|(step, stage)| step.stage = *stage);
        // The begin and the end of each run of a stage, eight bytes each, as far as a device has
        // room for.
        let runs = plan.stage_runs().len() as u64;
        let fits = gpu.limits().timestamp_query && runs <= 2048;
        plan.memory.timestamps = wgvae::Bytes(if fits { 16 * runs } else { 0 });
        Self::prepare(gpu, plan, Rc::clone(&self.weights))
    }

    fn prepare(gpu: &Gpu, plan: Plan, weights: Rc<[GpuBuffer]>) -> Self {
        let plan = Arc::new(plan);
        let bound = weights.iter().map(LoadedWeight::Gpu).collect();
        let mut prepared = block_on(Prepared::new(gpu, Arc::clone(&plan), bound)).expect("a device");
        // States of a part of a clip, filled with zeros. In the first parts, networks that see
        // later frames skip most steps.
        let turn = Turn { part: 20, latents: None };
        prepared.put_states(block_on(ClipStates::new(gpu, &plan.states)).expect("a device"), turn);
        let input = plan.input();
        let elements = input.size.width * input.size.height * input.planes();
        let latents = (0..elements).map(|index| (index % 13) as f32 * 0.1 - 0.6).collect();
        Self { plan, prepared, latents, weights }
    }

    /// Runs the plan once.
    pub(crate) fn run(&mut self) -> RunReport {
        block_on(self.prepared.run(
            &Input::Host(vec![self.latents.as_slice().into()]),
            &mut Control::default(),
            &mut |_, _| Ok(()),
        ))
        .expect("a decode")
    }
}

#[expect(clippy::disallowed_methods, reason = "not a buffer of the library")]
/// Measures the FMA loop in `ceiling.wgsl`. Returns GFLOP/s, the best of five runs that are long
/// enough to hide the time of a submission; a multiply-add counts as two.
pub(crate) fn ceiling() -> f64 {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).expect("an adapter");
    let (device, queue) = block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("a device");
    let module = device.create_shader_module(wgpu::include_wgsl!("ceiling.wgsl"));
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    const WORKGROUPS: u32 = 4096;
    const LONG_ENOUGH: f64 = 0.02;
    let descriptor = wgpu::BufferDescriptor {
        label: None,
        size: u64::from(WORKGROUPS) * 64 * 16,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    };
    let buffer = device.create_buffer(&descriptor);
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
    });
    let run = |launches: u32| {
        let start = Instant::now();
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        (0..launches).for_each(|_| pass.dispatch_workgroups(WORKGROUPS, 1, 1));
        drop(pass);
        queue.submit([encoder.finish()]);
        device.poll(wgpu::PollType::wait_indefinitely()).expect("a device that answers");
        start.elapsed().as_secs_f64()
    };
    let launches = (0..8).map(|power| 1 << power).find(|launches| run(*launches) > LONG_ENOUGH).unwrap_or(1 << 8);
    let best = (0..6).map(|_| run(launches)).skip(1).fold(f64::INFINITY, f64::min);
    f64::from(launches) * f64::from(WORKGROUPS) * 64.0 * 1024.0 * 8.0 * 4.0 * 2.0 / best * 1e-9
}
