//! Arbitrary values in public types: the result is an answer or an error that names the problem,
//! never a panic and never a plan above the limits.

use proptest::prelude::*;
use proptest::sample::select;
use test_kit::networks::with_kl;
use test_kit::sweep::is_full;
use wgvae::config::{
    AutoencoderConfig, DcBlock, DcLevel, FAMILIES, Family, Kl, Ltx2, Network, PaddingMode, SizeChange, Starts, Tiny,
    Wan,
};
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use wgvae::images::{ChannelOrder, Output};
use wgvae::internals::odd_network;
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{
    Bytes, DecodeOptions, EncodeOptions, Error, HostTensor, Images, LatentSpace, Latents, LoadOptions, Named, Parking,
    Planner, Plans, Precision, Request, Size, Storage, Tiling,
};

/// Most steps of a plan, and most bytes of its parameters: 2^21 steps, each with at most 256 bytes
/// of parameters.
const MOST_STEPS: usize = 1 << 21;
const MOST_PARAMETERS: usize = 256 * MOST_STEPS;

/// An axis that 32 bits cannot count would end the shape, and hide an empty one after it.
#[test]
fn axes_of_images_that_are_too_long_are_refused() {
    for shape in [vec![1, 3, 8, 8, 1 << 33, 0], vec![1 << 33, 0, 8, 8], vec![3, 8, 1 << 33, 0], vec![3, 8, 8, 0]] {
        let tensor = HostTensor { shape: shape.clone(), data: Vec::new() };
        let error = Images::new(tensor).expect_err("impossible").to_string();
        assert!(error.contains("image"), "{shape:?}: {error}");
    }
}

fn any_number() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0_u32..=64,
        2 => (0_u32..32, -1_i64..=1)
            .prop_map(|(power, beside)| u32::try_from((1_i64 << power) + beside).unwrap_or(u32::MAX)),
        1 => select(vec![0, u32::MAX, u32::MAX - 1, 1 << 31]),
        1 => any::<u32>(),
    ]
}

fn any_bytes() -> impl Strategy<Value = Bytes> {
    let number = prop_oneof![
        4 => (0_u32..64, -1_i128..=1).prop_map(|(power, beside)| u64::try_from((1_i128 << power) + beside).unwrap_or(0)),
        1 => select(vec![0, 1, u64::MAX, u64::MAX - 255]),
        1 => any::<u64>(),
    ];
    number.prop_map(Bytes)
}

fn any_float() -> impl Strategy<Value = f32> {
    let special =
        vec![0.0, -0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45];
    prop_oneof![select(special), any::<f32>()]
}

/// Generates valid networks: published ones and small ones.
fn sane_configs() -> impl Strategy<Value = AutoencoderConfig> {
    let small = (prop::collection::vec(1_u32..=4, 1..=4), 1_u32..=6, any::<bool>()).prop_map(
        |(multiples, groups, attention)| {
            let channels: Vec<u32> = multiples.iter().map(|multiple| multiple * groups).collect();
            odd_network(&channels, groups, attention)
        },
    );
    let families: Vec<_> = FAMILIES.iter().map(Family::config).collect();
    prop_oneof![select(families), small]
}

/// Change of one field of a configuration to one of these values.
type ConfigChange = fn(&mut AutoencoderConfig, u32, f32, &[u32]);

fn flags(list: &[u32]) -> Vec<bool> {
    list.iter().map(|number| number % 3 > 0).collect()
}

/// Sets what only relatives of TAESD have.
fn vary(tiny: &mut Tiny, number: u32, list: &[u32]) {
    (tiny.temporal_downsample, tiny.grow_frames, tiny.patch_size) = (flags(list), list.to_vec(), number);
    let starts = [Starts::First, Starts::FirstIfOdd, Starts::EveryFifth];
    tiny.starts = starts[number as usize % 3];
}

/// Sets what only relatives of Wan with other levels have.
fn vary_levels(wan: &mut Wan, number: u32, list: &[u32]) {
    (wan.is_residual, wan.is_video) = (list.len().is_multiple_of(2), number.is_multiple_of(2));
    (wan.decoder_base_dim, wan.patch_size) = (number, number % 4);
}

fn size_changes(list: &[u32]) -> Vec<SizeChange> {
    list.iter().map(|number| SizeChange { space: number % 2 == 0, time: number % 3 == 0 }).collect()
}

/// Sets the numbers of resnets of LTX-2's network.
fn vary_ltx2(ltx2: &mut Ltx2, number: u32, list: &[u32]) {
    (ltx2.layers_per_block, ltx2.decoder_layers_per_block) = (list.to_vec(), list.to_vec());
    ltx2.layers_per_block.push(number);
}

/// Sets levels of DC-AE of these channels.
fn vary_levels_of_dc(levels: &mut Vec<DcLevel>, list: &[u32]) {
    let level = |&number: &u32| {
        let block = DcBlock::EfficientVit { qkv_multiscales: vec![number % 8] };
        DcLevel { channels: number, layers: number % 3, block }
    };
    *levels = list.iter().map(level).collect();
}

/// Returns changes of the levels of networks.
fn level_changes() -> Vec<ConfigChange> {
    vec![
        |config, number, _, list| match &mut config.network {
            Network::Kl(kl) => kl.block_out_channels = list.to_vec(),
            Network::Tiny(tiny) => tiny.encoder_block_out_channels = list.to_vec(),
            Network::Wan(wan) => wan.dim_mult = list.to_vec(),
            Network::SeedVr(seedvr) => (seedvr.block_out_channels, seedvr.temporal_scale_num) = (list.to_vec(), number),
            Network::Ltx2(ltx2) => ltx2.block_out_channels = list.to_vec(),
            Network::HunyuanVideo(hunyuan) => hunyuan.block_out_channels = list.to_vec(),
            Network::Dc(dc) => vary_levels_of_dc(&mut dc.decoder, list),
        },
        |config, number, _, _| match &mut config.network {
            Network::Kl(kl) => kl.block_out_channels = vec![number; 20_000],
            Network::Tiny(tiny) => tiny.num_decoder_blocks = vec![number; 20_000],
            Network::Wan(wan) => wan.dim_mult = vec![number; 20_000],
            Network::SeedVr(seedvr) => seedvr.block_out_channels = vec![number; 20_000],
            Network::Ltx2(ltx2) => ltx2.decoder_block_out_channels = vec![number; 20_000],
            Network::HunyuanVideo(hunyuan) => hunyuan.block_out_channels = vec![number; 20_000],
            Network::Dc(dc) => vary_levels_of_dc(&mut dc.encoder, &vec![number; 20_000]),
        },
        |config, number, _, list| match &mut config.network {
            Network::Kl(kl) => kl.decoder_block_out_channels = Some(list.to_vec()),
            Network::Tiny(tiny) => tiny.decoder_block_out_channels = list.to_vec(),
            Network::Wan(wan) => wan.base_dim = number,
            Network::SeedVr(seedvr) => seedvr.temporal_scale_num = number,
            Network::Ltx2(ltx2) => ltx2.decoder_block_out_channels = list.to_vec(),
            Network::HunyuanVideo(hunyuan) => hunyuan.time_changes = number,
            Network::Dc(dc) => dc.attention_head_dim = number,
        },
    ]
}

/// Returns changes of the rest of networks.
fn network_changes() -> Vec<ConfigChange> {
    vec![
        |config, number, _, list| match &mut config.network {
            Network::Kl(kl) => kl.layers_per_block = number,
            Network::Tiny(tiny) => (tiny.num_encoder_blocks, tiny.num_decoder_blocks) = (list.to_vec(), list.to_vec()),
            Network::Wan(wan) => wan.num_res_blocks = number,
            Network::SeedVr(seedvr) => seedvr.layers_per_block = number,
            Network::Ltx2(ltx2) => vary_ltx2(ltx2, number, list),
            Network::HunyuanVideo(hunyuan) => hunyuan.layers_per_block = number,
            Network::Dc(dc) => dc.decoder.iter_mut().take(2).for_each(|level| level.layers = number),
        },
        |config, number, _, list| match &mut config.network {
            Network::Kl(kl) => kl.norm_num_groups = number,
            Network::Tiny(tiny) => tiny.num_decoder_blocks = list.to_vec(),
            Network::Wan(wan) => wan.dim_mult.extend_from_slice(list),
            Network::SeedVr(seedvr) => seedvr.norm_num_groups = number,
            Network::Ltx2(ltx2) => (ltx2.patch_size, ltx2.upsample_factor) = (number, list.to_vec()),
            Network::HunyuanVideo(_) => config.scaling_factor = f64::from(number),
            Network::Dc(dc) => dc.decoder.iter_mut().take(2).for_each(|level| level.channels = number),
        },
        |config, number, _, list| match &mut config.network {
            Network::Wan(wan) => vary_levels(wan, number, list),
            Network::Kl(kl) => {
                kl.has_shortcuts = list.len() % 2 == 0;
                kl.decoder_layers_per_block = list.first().copied();
                kl.padding_mode = PaddingMode::NAMES[list.len() % PaddingMode::NAMES.len()].1;
            }
            Network::Tiny(_) | Network::SeedVr(_) | Network::HunyuanVideo(_) | Network::Dc(_) => {
                config.out_channels = number;
            }
            Network::Ltx2(ltx2) => ltx2.upsample_residual = flags(list),
        },
        |config, number, _, list| match &mut config.network {
            Network::Wan(wan) => wan.temperal_downsample = flags(list),
            Network::Tiny(tiny) => vary(tiny, number, list),
            Network::Kl(_) | Network::SeedVr(_) | Network::HunyuanVideo(_) | Network::Dc(_) => {
                config.in_channels = number;
            }
            Network::Ltx2(ltx2) => (ltx2.downsample, ltx2.upsample) = (size_changes(list), size_changes(list)),
        },
    ]
}

fn config_changes() -> impl Strategy<Value = ConfigChange> {
    let mut changes: Vec<ConfigChange> = vec![
        |_, _, _, _| {},
        |config, number, _, _| config.out_channels = number,
        |config, number, _, _| config.latent_channels = number,
        |config, number, _, _| config.patch = number,
        |config, number, _, _| config.in_channels = number,
        |config, _, number, _| config.scaling_factor = f64::from(number),
        |config, _, number, _| config.shift_factor = Some(f64::from(number)),
        |config, count, number, _| config.latents_mean = Some(vec![f64::from(number); (count % 70_000) as usize]),
        |config, count, number, _| config.latents_std = Some(vec![f64::from(number); (count % 70_000) as usize]),
        |config, _, number, _| {
            config.latents_mean = Some(vec![f64::from(number); config.latent_channels.min(1 << 16) as usize]);
            config.latents_std = Some(vec![f64::from(number.abs()); config.latent_channels.min(1 << 16) as usize]);
        },
        |config, number, _, _| config.sample_size = Some(number),
        // As large as a configuration may be.
        |config, _, _, _| {
            *config = largest_network();
        },
    ];
    changes.extend(level_changes());
    changes.extend(network_changes());
    select(changes)
}

/// Returns the largest network that a configuration may describe.
fn largest_network() -> AutoencoderConfig {
    let config = AutoencoderConfig { latent_channels: 1024, ..odd_network(&[16_384; 8], 32, true) };
    with_kl(config, |kl| kl.layers_per_block = 16)
}

fn any_config() -> impl Strategy<Value = AutoencoderConfig> {
    changed(sane_configs())
}

/// Generates networks for video, with changes.
fn any_clip_config() -> impl Strategy<Value = AutoencoderConfig> {
    let families: Vec<_> = FAMILIES.iter().map(Family::config).filter(AutoencoderConfig::has_time).collect();
    changed(select(families))
}

fn changed(configs: impl Strategy<Value = AutoencoderConfig>) -> impl Strategy<Value = AutoencoderConfig> {
    let list = prop::collection::vec(any_number(), 0..=9);
    let change = (config_changes(), any_number(), any_float(), list);
    (configs, prop::collection::vec(change, 0..=2)).prop_map(|(mut config, changes)| {
        for (change, number, float, list) in changes {
            change(&mut config, number, float, &list);
        }
        config
    })
}

fn any_limits() -> impl Strategy<Value = DeviceLimits> {
    let changes: Vec<fn(&mut DeviceLimits, Bytes, u32)> = vec![
        |_, _, _| {},
        |limits, bytes, _| limits.max_storage_buffer_binding_size = bytes,
        |limits, bytes, _| limits.max_buffer_size = bytes,
        |limits, bytes, _| (limits.max_buffer_size, limits.max_storage_buffer_binding_size) = (bytes, bytes),
        |limits, _, number| limits.max_storage_buffers_per_shader_stage = number,
        |limits, _, number| limits.max_compute_workgroups_per_dimension = number,
        |limits, _, number| limits.max_compute_invocations_per_workgroup = number,
        |limits, bytes, _| limits.max_compute_workgroup_storage_size = bytes,
        |limits, _, number| limits.min_uniform_buffer_offset_alignment = number,
        |limits, _, number| limits.matrix_units = Some(MatrixUnits { side: 16, lanes: number }),
        |limits, _, number| limits.matrix_units = Some(MatrixUnits { side: number, lanes: 64 }),
    ];
    let change = (select(changes), any_bytes(), any_number());
    (prop::collection::vec(change, 0..=2), any::<[bool; 6]>(), any_vendor()).prop_map(
        |(changes, [shader_f16, timestamps, cpu, unified, quads, units], vendor)| {
            let mut limits = DeviceLimits {
                shader_f16,
                timestamp_query: timestamps,
                quads,
                kind: if cpu { DeviceKind::Cpu } else { DeviceKind::Gpu },
                unified_memory: unified,
                vendor,
                matrix_units: (units && shader_f16).then_some(MatrixUnits { side: 8, lanes: 32 }),
                ..DeviceLimits::webgpu_default()
            };
            for (change, bytes, number) in changes {
                change(&mut limits, bytes, number);
            }
            limits
        },
    )
}

fn any_vendor() -> impl Strategy<Value = Vendor> {
    // These vendors cover each kind of tile and each size of bands.
    select(vec![Vendor::Other, Vendor::Nvidia, Vendor::Intel, Vendor::Arm])
}

fn any_tiling() -> impl Strategy<Value = Tiling> {
    let blend = (select(vec![BlendRule::Linear, BlendRule::Cosine]), any_number(), any_number())
        .prop_map(|(rule, tile, overlap)| Blend::new(rule, tile, overlap).map_or(Tiling::Exact, Tiling::Blend));
    prop_oneof![2 => Just(Tiling::Exact), 1 => Just(Tiling::Estimate), 1 => blend]
}

fn any_output() -> impl Strategy<Value = Output> {
    select(vec![Output::Rgba8, Output::Raw, Output::Picture(ChannelOrder::Rgba), Output::Picture(ChannelOrder::Bgra)])
}

fn any_options() -> impl Strategy<Value = DecodeOptions> {
    let parking = select(vec![Parking::Auto, Parking::On, Parking::Off]);
    (any::<[bool; 2]>(), prop::option::of(any_bytes()), parking, any_tiling()).prop_map(
        |([profile, least_memory], memory_budget, parking, tiling)| DecodeOptions {
            profile,
            memory_budget,
            least_memory,
            parking,
            tiling,
            clip_latents: None,
        },
    )
}

fn any_size() -> impl Strategy<Value = Size> {
    (any_number(), any_number()).prop_map(|(width, height)| Size { width, height })
}

/// Checks a planner's answer: a plan within the limits, or an expected error.
fn check_answer(answer: Result<wgvae::report::Plan, Error>) -> Result<(), TestCaseError> {
    match answer {
        Ok(plan) => {
            prop_assert!(plan.steps.len() <= MOST_STEPS, "{} steps", plan.steps.len());
            prop_assert!(plan.params.len() <= MOST_PARAMETERS, "{} bytes of parameters", plan.params.len());
            prop_assert!(plan.transform.iter().all(|value| !value.is_nan()));
        }
        Err(Error::Config { .. } | Error::Input { .. } | Error::TooLarge { .. } | Error::Budget { .. }) => {}
        Err(other) => prop_assert!(false, "{other}"),
    }
    Ok(())
}

/// Tests that images with a rest are refused, as by diffusers, whose `pixel_unshuffle` fails.
#[test]
fn dc_ae_encodes_whole_latents() {
    for (family, side) in [("sana", 32), ("dc_ae_f32c32_in", 32), ("dc_ae_f64c128_mix", 64), ("dc_ae_f128c512_in", 128)]
    {
        let config = Family::find(family).unwrap().config();
        let plan = |width: u32, height: u32| {
            let request = EncodeOptions::default().request(Size { width, height });
            wgvae::plan(&config, &request, &DeviceLimits::webgpu_default(), Storage::F32)
        };
        assert!(plan(side, 2 * side).is_ok(), "{family}");
        for (width, height) in [(side + 1, side), (side, 2 * side - 1)] {
            let error = plan(width, height).unwrap_err().to_string();
            let wanted =
                format!("sides that are multiples of {side} pixels, for AutoencoderDC, found {width}x{height}");
            assert!(error.contains(&wanted), "{family}: {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_full() { 300 } else { 150 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_of_anything_are_answers(
        config in any_config(), size in any_size(), limits in any_limits(), options in any_options(), output in any_output(),
        storage in select(vec![Storage::F32, Storage::F16, Storage::PackedF16, Storage::FastF16]), unscaled in any::<bool>(),
    ) {
        // A budget tries many plans, which takes seconds if there are many chunks.
        let side = |side: u32| if options.memory_budget.is_some() { side % 16 } else { side };
        let size = Size { width: side(size.width), height: side(size.height) };
        check_answer(wgvae::plan(&config, &options.request(size, LatentSpace::from_unscaled(unscaled), output), &limits, storage).map(Plans::into_first))?;
        let DecodeOptions { profile, memory_budget, least_memory, parking, .. } = options;
        let options = EncodeOptions { profile, memory_budget, least_memory, parking, clip_latents: None };
        check_answer(wgvae::plan(&config, &options.request(size), &limits, storage).map(Plans::into_first))?;
    }

    #[test]
    fn plans_of_any_clip_are_answers(
        config in any_clip_config(), size in any_size(), limits in any_limits(), options in any_options(), output in any_output(),
        storage in select(vec![Storage::F32, Storage::F16, Storage::PackedF16, Storage::FastF16]), unscaled in any::<bool>(),
    ) {
        let side = |side: u32| if options.memory_budget.is_some() { side % 16 } else { side };
        let size = Size { width: side(size.width), height: side(size.height) };
        let DecodeOptions { profile, memory_budget, least_memory, parking, .. } = options;
        let encode = EncodeOptions { profile, memory_budget, least_memory, parking, clip_latents: None };
        for plans in [
            wgvae::plan(&config, &options.request(size, LatentSpace::from_unscaled(unscaled), output).of_clip(), &limits, storage),
            wgvae::plan(&config, &encode.request(size).of_clip(), &limits, storage),
        ] {
            match plans {
                Ok(plans) => {
                    check_answer(Ok(plans.first().clone()))?;
                    check_answer(Ok(plans.later().clone()))?;
                }
                Err(error) => check_answer(Err(error))?,
            }
        }
    }

    #[test]
    fn latents_of_anything_are_answers(shape in prop::collection::vec(any_number(), 0..=5), data in prop::collection::vec(any_float(), 0..=16)) {
        let shape: Vec<usize> = shape.into_iter().map(|extent| extent as usize).collect();
        let elements = shape.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
        let right = elements == Some(data.len()) && data.iter().all(|value| value.is_finite());
        match Latents::new(HostTensor { shape: shape.clone(), data }) {
            Ok(_) => prop_assert!(right && matches!(shape.len(), 3 | 4), "{shape:?}"),
            Err(error) => prop_assert!(matches!(error, Error::Input { .. }), "{error}"),
        }
    }

    #[test]
    fn configurations_of_anything_are_answers(config in any_config(), size in any_size(), pixels in any_number(), overlap in any_number()) {
        let _ = (config.validate(), config.spatial_factor(), config.image_size(size, LatentSpace::Model), config.latent_size(size, LatentSpace::Model));
        for rule in [BlendRule::Linear, BlendRule::Cosine] {
            for (tile, overlap) in [(None, None), (Some(pixels), None), (None, Some(overlap)), (Some(pixels), Some(overlap))] {
                if let Err(error) = Blend::for_model(rule, &config, tile, overlap) {
                    prop_assert!(matches!(error, Error::Input { .. } | Error::Config { .. }), "{error}");
                }
            }
        }
        let _ = Tiling::Estimate.measured_size(size);
    }

    #[test]
    fn limits_of_anything_are_answers(limits in any_limits(), bytes in any_bytes(), power in 0_u32..64) {
        let _ = (limits.validate(), limits.largest_bound_buffer());
        let _ = (bytes.align_up(1 << power), bytes.align_up(0), bytes + bytes, [bytes, bytes].into_iter().sum::<Bytes>());
        for precision in [Precision::Auto, Precision::F16, Precision::F32, Precision::Fast] {
            let _ = precision.storage(&limits);
        }
    }
}

fn kl(config: &mut AutoencoderConfig) -> &mut Kl {
    config.network.kl_mut().unwrap()
}

/// Name of a field, and a change that makes it invalid.
type Wrong = (&'static str, fn(&mut AutoencoderConfig));

/// Tests invalid values in each field of a configuration.
#[test]
fn plans_of_impossible_networks_are_refused_by_name() {
    let plan = |change: fn(&mut AutoencoderConfig)| {
        let mut config = odd_network(&[16, 32], 4, true);
        change(&mut config);
        let size = Size { width: 8, height: 8 };
        wgvae::plan(&config, &Request::decode(size, LatentSpace::Model), &DeviceLimits::webgpu_default(), Storage::F32)
            .map(Plans::into_first)
    };
    let cases: [Wrong; 10] = [
        ("block_out_channels", |config| kl(config).block_out_channels.clear()),
        ("block_out_channels", |config| kl(config).block_out_channels[1] = 0),
        ("norm_num_groups", |config| kl(config).norm_num_groups = 0),
        ("layers_per_block", |config| kl(config).layers_per_block = u32::MAX),
        ("decoder_layers_per_block", |config| kl(config).decoder_layers_per_block = Some(u32::MAX)),
        ("latent_channels", |config| config.latent_channels = 0),
        ("out_channels", |config| config.out_channels = 5),
        ("scaling_factor", |config| config.scaling_factor = f64::NAN),
        ("shift_factor", |config| config.shift_factor = Some(f64::INFINITY)),
        ("latents_mean", |config| config.latents_std = Some(vec![1.0; 4])),
    ];
    assert!(plan(|_| {}).is_ok());
    for (field, change) in cases {
        match plan(change) {
            Err(Error::Config { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {:?}", other.map(|plan| plan.steps.len())),
        }
    }
}

#[test]
fn devices_that_cannot_be_are_refused_by_name() {
    let plan = |limits: &DeviceLimits, storage| {
        let (config, size) = (odd_network(&[16, 32], 4, true), Size { width: 8, height: 8 });
        wgvae::plan(&config, &Request::decode(size, LatentSpace::Model), limits, storage)
            .map(Plans::into_first)
            .map(|plan| plan.steps.len())
    };
    for alignment in [0, 3, 512, u32::MAX] {
        let limits = DeviceLimits { min_uniform_buffer_offset_alignment: alignment, ..DeviceLimits::webgpu_default() };
        let error = plan(&limits, Storage::F32).unwrap_err().to_string();
        assert!(
            error.contains("min_uniform_buffer_offset_alignment") && error.contains(&alignment.to_string()),
            "{error}"
        );
    }
    let units = |side, lanes| Some(MatrixUnits { side, lanes });
    for (matrix_units, shader_f16, words) in [
        (units(4, 32), true, ["side", "8 or 16", "found 4"]),
        (units(32, 32), true, ["side", "8 or 16", "found 32"]),
        (units(16, 0), true, ["lanes", "power of two", "found 0"]),
        (units(16, 48), true, ["lanes", "power of two", "found 48"]),
        (units(16, 2), true, ["lanes", "from 4", "found 2"]),
        (units(16, 256), true, ["lanes", "to 128", "found 256"]),
        (units(8, 32), false, ["matrix_units", "shader-f16", "found 8x8"]),
    ] {
        let limits = DeviceLimits { matrix_units, shader_f16, ..DeviceLimits::webgpu_default() };
        let error = plan(&limits, Storage::F32).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let small = DeviceLimits { max_compute_invocations_per_workgroup: 32, ..DeviceLimits::webgpu_default() };
    let limits = DeviceLimits { matrix_units: units(16, 64), shader_f16: true, ..small };
    let error = plan(&limits, Storage::F32).unwrap_err().to_string();
    assert!(error.contains("lanes") && error.contains("32 invocations"), "{error}");
    for (storage, words) in [(Storage::F16, "found f16"), (Storage::FastF16, "found fast")] {
        let error = plan(&DeviceLimits::webgpu_default(), storage).unwrap_err().to_string();
        assert!(error.contains("shader-f16") && error.contains(words), "{error}");
    }
    // A model gives the error before its weights are read.
    let options = LoadOptions { precision: Precision::Fast, ..LoadOptions::default() };
    let planner = |shader_f16| {
        let limits = DeviceLimits { shader_f16, ..DeviceLimits::webgpu_default() };
        Planner::without_device(odd_network(&[16, 32], 4, true), limits, options).map(|planner| planner.storage())
    };
    let error = planner(false).unwrap_err().to_string();
    assert!(error.contains("shader-f16") && error.contains("found fast"), "{error}");
    assert_eq!(planner(true).unwrap(), Storage::FastF16);
    for bytes in [0, 1, 1 << 10] {
        let limits = DeviceLimits { max_storage_buffer_binding_size: Bytes(bytes), ..DeviceLimits::webgpu_default() };
        let error = plan(&limits, Storage::F32).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "bindings of {bytes} bytes: {error}");
        let stages = ["a chunk of 4 rows of input needs", "a chunk of 4 rows of decoder.conv_in needs"];
        assert!(stages.iter().any(|stage| error.to_string().contains(stage)), "{error}");
    }
}

/// Tests the largest network at the largest size, and a small one with tensors in millions of
/// chunks: both give an error before anything is planned.
#[test]
fn work_without_end_is_refused() {
    let largest = largest_network();
    let limits = DeviceLimits {
        max_storage_buffer_binding_size: Bytes(u64::MAX),
        max_buffer_size: Bytes(u64::MAX),
        max_compute_workgroups_per_dimension: u32::MAX,
        ..DeviceLimits::webgpu_default()
    };
    let plan = |config: &AutoencoderConfig, side, limits: &DeviceLimits| {
        let size = Size { width: side, height: side };
        wgvae::plan(config, &Request::decode(size, LatentSpace::Model), limits, Storage::F32)
            .map(Plans::into_first)
            .map(|plan| plan.steps.len())
    };
    let error = plan(&largest, 256, &limits).unwrap_err();
    assert!(matches!(&error, Error::Input { what, .. } if what == "size"), "{error}");
    let small = with_kl(odd_network(&[16, 16, 16, 16], 4, true), |kl| kl.layers_per_block = 16);
    let tiny = DeviceLimits { max_storage_buffer_binding_size: Bytes(3 << 20), ..limits };
    let error = plan(&small, 1448, &tiny).unwrap_err();
    assert!(matches!(&error, Error::Input { what, .. } if what == "size"), "{error}");
}

/// Tests a budget of all bytes that there are. The search looks for a plan because the largest
/// weight is larger than a binding, not because memory is short.
#[test]
fn a_budget_of_all_bytes_is_searched_without_overflow() {
    let config = Family::find("sd15").unwrap().config();
    let limits = DeviceLimits { max_storage_buffer_binding_size: Bytes(4 << 20), ..DeviceLimits::webgpu_default() };
    for parking in [Parking::On, Parking::Off] {
        let options = DecodeOptions { memory_budget: Some(Bytes(u64::MAX)), parking, ..DecodeOptions::default() };
        let request = options.request(Size { width: 32, height: 32 }, LatentSpace::Model, Output::Rgba8);
        let error = wgvae::plan(&config, &request, &limits, Storage::F32).map(Plans::into_first).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
}

/// Tests tiles that overlap in all but one latent: each tile at the border has its own size, and
/// would need its own plan.
#[test]
fn tiles_of_thousands_of_sizes_are_refused() {
    let config = odd_network(&[4], 2, false);
    let plan = |tile, overlap| {
        let tiling = Tiling::Blend(Blend::new(BlendRule::Linear, tile, overlap).unwrap());
        let options = DecodeOptions { tiling, ..DecodeOptions::default() };
        let size = Size { width: 1024, height: 1024 };
        wgvae::plan(
            &config,
            &options.request(size, LatentSpace::Model, Output::Rgba8),
            &DeviceLimits::webgpu_default(),
            Storage::F32,
        )
        .map(Plans::into_first)
    };
    let error = plan(512, 511).unwrap_err().to_string();
    assert!(error.contains("tile overlap") && error.contains("sizes"), "{error}");
    for overlap in [0, 13, 32, 48, 56] {
        assert!(plan(64, overlap).is_ok(), "{overlap} of 64");
    }
}
