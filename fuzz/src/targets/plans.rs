//! Targets for plans. Any config, size, limits and options give an error or a sound plan. If a run
//! on the CPU is quick, its picture must equal the whole plan's.

use arbitrary::{Result, Unstructured};
use test_kit::formula;
use test_kit::plan_checks::check;
use test_kit::reference::interpreter::interpret;
use wgvae::config::{AutoencoderConfig, Kl};
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use wgvae::images::{ChannelOrder, Output};
use wgvae::internals::odd_network;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions, Weights};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{Bytes, DecodeOptions, Error, LatentSpace, Parking, Plans, Size, Storage, Tiling};

/// Vendors with each kind of tile, and each size of bands.
const VENDORS: [Vendor; 4] = [Vendor::Other, Vendor::Nvidia, Vendor::Intel, Vendor::Arm];

/// Most multiply-adds of a plan that is also run.
const MOST_MACS: u64 = 400_000;

/// Most latents that are planned here. The smallest limits cut larger ones into more launches than
/// there is time for.
const MOST_LATENTS: u64 = 1 << 12;

/// A small network that can be planned, with a device that may be too small for it.
struct Sound {
    config: AutoencoderConfig,
    size: Size,
    limits: DeviceLimits,
    options: PlanOptions,
}

impl Sound {
    fn new(input: &mut Unstructured<'_>) -> Result<Self> {
        let groups = input.int_in_range(1..=6)?;
        let levels = input.int_in_range(1..=3)?;
        let mut channels = Vec::new();
        for _ in 0..levels {
            channels.push(input.int_in_range(1_u32..=4)? * groups * 2);
        }
        let latent_channels = input.int_in_range(1..=17)?;
        let (layers_per_block, use_post_quant_conv) = (input.int_in_range(1..=2)?, input.arbitrary()?);
        let mut config = AutoencoderConfig { latent_channels, ..odd_network(&channels, groups, input.arbitrary()?) };
        let kl = kl(&mut config);
        (kl.layers_per_block, kl.use_post_quant_conv) = (layers_per_block, use_post_quant_conv);
        let size = Size { width: input.int_in_range(1..=14)?, height: input.int_in_range(1..=14)? };
        let limits = small_limits(input)?;
        let mut options = small_options(input)?;
        // Chosen by bits of the limits instead of new input bytes, so that the corpus keeps its
        // meaning.
        if options.storage == Storage::F16 && limits.shader_f16 && limits.timestamp_query {
            options.storage = Storage::FastF16;
        }
        Ok(Self { config, size, limits, options })
    }

    fn plan(&self, options: &PlanOptions) -> wgvae::Result<Plan> {
        Plan::new(&decoder(&self.config, self.size, LatentSpace::Model), &self.limits, options)
    }
}

fn kl(config: &mut AutoencoderConfig) -> &mut Kl {
    config.network.kl_mut().expect("an AutoencoderKL")
}

/// Chooses limits from a few KiB, where a row hardly fits, to hundreds of MiB.
fn small_limits(input: &mut Unstructured<'_>) -> Result<DeviceLimits> {
    let mut bytes =
        || -> Result<Bytes> { Ok(Bytes((1 << input.int_in_range(15..=27)?) / 4 * input.int_in_range(4..=7)?)) };
    let (binding, buffer) = (bytes()?, bytes()?);
    let min_uniform_buffer_offset_alignment = *input.choose(&[64, 256])?;
    let (shader_f16, timestamp_query) = (input.arbitrary()?, input.arbitrary()?);
    Ok(DeviceLimits {
        max_storage_buffer_binding_size: binding,
        max_buffer_size: buffer,
        min_uniform_buffer_offset_alignment,
        shader_f16,
        timestamp_query,
        // Shares one bit with the field above, so that the corpus keeps its meaning.
        quads: timestamp_query,
        kind: if input.arbitrary()? { DeviceKind::Cpu } else { DeviceKind::Gpu },
        ..DeviceLimits::webgpu_default()
    })
}

fn small_options(input: &mut Unstructured<'_>) -> Result<PlanOptions> {
    let storage = *input.choose(&[Storage::F32, Storage::F16, Storage::PackedF16])?;
    let output = if input.arbitrary()? { Output::Raw } else { Output::Rgba8 };
    let budget = 1 << input.int_in_range(15..=23)?;
    Ok(PlanOptions {
        chunk_limit: Bytes(1 << input.int_in_range(10..=18)?),
        keys_limit: Bytes(1 << input.int_in_range(10..=18)?),
        profile: input.arbitrary()?,
        memory_budget: input.arbitrary::<bool>()?.then_some(Bytes(budget)),
        parking: input.arbitrary()?,
        weights: if input.arbitrary()? { Weights::Host } else { Weights::Device },
        ..PlanOptions::new(storage, output)
    })
}

/// Fuzzes plans of small networks. They must be sound, within their budget, and deterministic, and
/// their picture must equal the whole plan's.
pub(super) fn sound(bytes: &[u8]) {
    let Ok(case) = Sound::new(&mut Unstructured::new(bytes)) else { return };
    match case.plan(&case.options) {
        Ok(plan) => {
            check(&plan, &case.limits);
            assert!(case.options.memory_budget.is_none_or(|budget| plan.memory.peak() <= budget));
            assert_eq!(case.plan(&case.options).expect("planned before"), plan);
            if plan.output == Output::Raw && plan.macs() <= MOST_MACS {
                check_picture(&case, &plan);
            }
        }
        Err(error) => {
            check_refusal(&error);
            if let Error::Budget { smallest, .. } = error {
                let named = case.plan(&PlanOptions { memory_budget: Some(smallest), ..case.options.clone() });
                assert!(named.is_ok(), "{smallest}: {named:?}");
            }
        }
    }
}

/// Checks that an error is one that plans may return, with numbers that justify it.
fn check_refusal(error: &Error) {
    match error {
        Error::TooLarge { needed, limit, .. } => assert!(needed > limit, "{error}"),
        Error::Budget { budget, smallest, .. } => assert!(smallest > budget, "{error}"),
        // Too many chunks or steps.
        Error::Input { what, .. } => assert_eq!(what, "size", "{error}"),
        other => panic!("{other}"),
    }
}

/// Checks that `plan` gives the same picture as a plan with room for everything.
fn check_picture(case: &Sound, plan: &Plan) {
    let options = PlanOptions { memory_budget: None, ..PlanOptions::new(plan.storage, Output::Raw) };
    let limits = DeviceLimits { kind: case.limits.kind, shader_f16: true, ..DeviceLimits::webgpu_default() };
    let whole = Plan::new(&decoder(&case.config, case.size, LatentSpace::Model), &limits, &options);
    let latents =
        formula::latents(&[case.config.latent_channels, case.size.height, case.size.width].map(|axis| axis as usize));
    let weights = formula::decoder(&case.config);
    let found = interpret(plan, &weights, &latents.data);
    let wanted = interpret(&whole.expect("a small plan on a large device"), &weights, &latents.data);
    let largest = wanted.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    // Tolerances for another order of sums and another rounding of halves. Real errors are far
    // larger, or NaN.
    let bound = if plan.storage == Storage::F32 { 1e-3 } else { 0.1 };
    for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        assert!((found - wanted).abs() <= bound * largest, "value {index}: {found}, in the whole plan {wanted}");
    }
}

/// Every public field in the arguments of `wgvae::plan`, with any value.
struct Anything {
    /// True if a valid network replaces the next four fields.
    usual: bool,
    out_channels: u32,
    latent_channels: u32,
    block_out_channels: Vec<u32>,
    layers_per_block: u32,
    norm_num_groups: u32,
    flags: [bool; 8],
    scaling_factor: f64,
    shift_factor: Option<f64>,
    latents_mean: Option<Vec<f64>>,
    latents_std: Option<Vec<f64>>,
    sample_size: Option<u32>,
    width: u32,
    height: u32,
    bytes: [u64; 3],
    counts: [u32; 4],
    storage: u8,
    output: u8,
    budget: Option<u64>,
    parking: u8,
    tiling: u8,
    tile: u32,
    overlap: u32,
}

impl Anything {
    fn new(input: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self {
            usual: input.arbitrary()?,
            width: number(input)?,
            height: number(input)?,
            bytes: [large_number(input)?, large_number(input)?, large_number(input)?],
            counts: [number(input)?, number(input)?, number(input)?, number(input)?],
            flags: input.arbitrary()?,
            storage: input.arbitrary()?,
            output: input.arbitrary()?,
            budget: if input.arbitrary()? { Some(large_number(input)?) } else { None },
            parking: input.arbitrary()?,
            tiling: input.arbitrary()?,
            tile: number(input)?,
            overlap: number(input)?,
            out_channels: number(input)?,
            latent_channels: number(input)?,
            layers_per_block: number(input)?,
            norm_num_groups: number(input)?,
            scaling_factor: input.arbitrary()?,
            shift_factor: input.arbitrary()?,
            sample_size: input.arbitrary()?,
            block_out_channels: (0..input.int_in_range(0..=9)?).map(|_| number(input)).collect::<Result<_>>()?,
            latents_mean: input.arbitrary()?,
            latents_std: input.arbitrary()?,
        })
    }

    fn config(&self) -> AutoencoderConfig {
        let mut network = odd_network(&[8, 16], 4, self.flags[0]);
        if !self.usual {
            (network.out_channels, network.latent_channels) = (self.out_channels, self.latent_channels);
            let kl = kl(&mut network);
            kl.block_out_channels = self.block_out_channels.clone();
            (kl.layers_per_block, kl.norm_num_groups) = (self.layers_per_block, self.norm_num_groups);
        }
        kl(&mut network).use_post_quant_conv = self.flags[1];
        AutoencoderConfig {
            scaling_factor: self.scaling_factor,
            shift_factor: self.shift_factor,
            latents_mean: self.latents_mean.clone(),
            latents_std: self.latents_std.clone(),
            force_upcast: self.flags[2],
            sample_size: self.sample_size,
            ..network
        }
    }

    fn limits(&self) -> DeviceLimits {
        let [binding, buffer, shared] = self.bytes.map(Bytes);
        let [buffers, workgroups, invocations, alignment] = self.counts;
        DeviceLimits {
            max_storage_buffer_binding_size: binding,
            max_buffer_size: buffer,
            max_storage_buffers_per_shader_stage: buffers,
            max_compute_workgroups_per_dimension: workgroups,
            max_compute_invocations_per_workgroup: invocations,
            max_compute_workgroup_storage_size: shared,
            min_uniform_buffer_offset_alignment: alignment,
            shader_f16: self.flags[3],
            timestamp_query: self.flags[4],
            kind: if self.flags[5] { DeviceKind::Cpu } else { DeviceKind::Gpu },
            unified_memory: self.flags[6],
            quads: self.flags[6],
            vendor: VENDORS.get(usize::from(self.parking / 3)).copied().unwrap_or_default(),
            // Shares bits with other fields, so that the corpus keeps its meaning.
            matrix_units: (self.flags[3] && self.flags[6]).then_some(MatrixUnits { side: 8, lanes: 32 }),
        }
    }

    fn output(&self) -> Output {
        [Output::Rgba8, Output::Raw, Output::Picture(ChannelOrder::Rgba), Output::Picture(ChannelOrder::Bgra)]
            [usize::from(self.output % 4)]
    }

    fn options(&self) -> DecodeOptions {
        let rule = if self.tiling.is_multiple_of(2) { BlendRule::Linear } else { BlendRule::Cosine };
        let blend = Blend::new(rule, self.tile, self.overlap).map_or(Tiling::Exact, Tiling::Blend);
        DecodeOptions {
            profile: self.flags[7],
            memory_budget: self.budget.map(Bytes),
            // Shares a bit, as above.
            least_memory: self.flags[6],
            parking: [Parking::Auto, Parking::On, Parking::Off][usize::from(self.parking % 3)],
            tiling: [Tiling::Exact, Tiling::Estimate, blend, blend][usize::from(self.tiling / 2 % 4)],
            clip_latents: (self.parking > 127).then_some(self.tile),
        }
    }
}

/// Returns a number of any magnitude. Most are small, because most useful values are small.
fn large_number(input: &mut Unstructured<'_>) -> Result<u64> {
    let bits = input.int_in_range(0..=63)?;
    Ok(input.arbitrary::<u64>()? >> bits)
}

fn number(input: &mut Unstructured<'_>) -> Result<u32> {
    let bits = input.int_in_range(0..=31)?;
    Ok(input.arbitrary::<u32>()? >> bits)
}

/// Fuzzes [`wgvae::plan`] with any arguments. It must return an error or a sound plan.
pub(super) fn any(bytes: &[u8]) {
    let Ok(case) = Anything::new(&mut Unstructured::new(bytes)) else { return };
    let size = Size { width: case.width, height: case.height };
    let area = u64::from(size.width) * u64::from(size.height);
    // Sizes that are an error matter, too, so only the range in between is skipped.
    if (MOST_LATENTS + 1..=1 << 21).contains(&area) {
        return;
    }
    // Values from 128 on were added later, so that the corpus keeps its meaning.
    let storage = match (case.storage % 3, case.storage >= 128) {
        (0, _) => Storage::F32,
        (1, false) => Storage::F16,
        (1, true) => Storage::FastF16,
        _ => Storage::PackedF16,
    };
    let (config, limits) = (case.config(), case.limits());
    let plan = |options: &DecodeOptions| {
        let request = options.request(size, LatentSpace::from_unscaled(case.flags[0]), case.output());
        wgvae::plan(&config, &request, &limits, storage).map(Plans::into_first)
    };
    match plan(&case.options()) {
        Ok(plan) => {
            check(&plan, &limits);
            assert!(case.budget.is_none_or(|budget| plan.memory.peak() <= Bytes(budget)));
        }
        // With tiles, another tile size may need more memory.
        Err(Error::Budget { smallest, .. }) if !matches!(case.options().tiling, Tiling::Blend(_)) => {
            let named = plan(&DecodeOptions { memory_budget: Some(smallest), ..case.options() });
            assert!(named.is_ok(), "{smallest}: {named:?}");
        }
        Err(_) => {}
    }
}
