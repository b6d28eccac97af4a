//! Properties of every plan, for any network, size and device; and the largest plans of published
//! models.

use proptest::prelude::*;
use test_kit::formula;
use test_kit::networks::with_kl;
use test_kit::plan_checks::check;
use test_kit::reference::interpreter::interpret_and_measure;
use wgvae::config::{AutoencoderConfig, Family, PaddingMode};
use wgvae::device::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use wgvae::images::Output;
use wgvae::internals::odd_network;
use wgvae::model::graph::Graph;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions, Weights};
use wgvae::{Bytes, Error, LatentSpace, Named, Plans, Request, Size, Storage};

/// Config of a graph, the latents' size, a device and options.
type Case = (AutoencoderConfig, Size, DeviceLimits, PlanOptions);

fn configs() -> impl Strategy<Value = AutoencoderConfig> {
    let channels = prop::collection::vec(1_u32..=4, 1..=4);
    let mode = prop::sample::select(PaddingMode::all().collect::<Vec<_>>());
    (channels, 1_u32..=6, 1_u32..=17, 1_u32..=2, any::<(bool, bool)>(), mode).prop_map(
        |(multiples, groups, latent_channels, layers_per_block, (attention, use_post_quant_conv), mode)| {
            // Any multiple of the groups: 1 and 3 channels a group are padded, too.
            let channels: Vec<u32> = multiples.iter().map(|multiple| multiple * groups * 2).collect();
            let config = AutoencoderConfig { latent_channels, ..odd_network(&channels, groups, attention) };
            with_kl(config, |kl| {
                (kl.layers_per_block, kl.use_post_quant_conv) = (layers_per_block, use_post_quant_conv);
                kl.padding_mode = mode;
            })
        },
    )
}

fn limits() -> impl Strategy<Value = DeviceLimits> {
    // From a few KiB, which hardly hold a row, to hundreds of MiB.
    let bytes = (15_u32..28, 4_u64..8).prop_map(|(power, eighths)| Bytes((1 << power) / 4 * eighths));
    (bytes.clone(), bytes, prop_oneof![Just(64_u32), Just(256)], any::<[bool; 4]>()).prop_map(
        |(binding, buffer, alignment, [shader_f16, timestamp_query, is_cpu, is_arm])| DeviceLimits {
            matrix_units: (shader_f16 && timestamp_query).then_some(MatrixUnits { side: 8, lanes: 32 }),
            max_storage_buffer_binding_size: binding,
            max_buffer_size: buffer,
            min_uniform_buffer_offset_alignment: alignment,
            shader_f16,
            timestamp_query,
            kind: if is_cpu { DeviceKind::Cpu } else { DeviceKind::Gpu },
            vendor: if is_arm { Vendor::Arm } else { Vendor::Nvidia },
            ..DeviceLimits::webgpu_default()
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let size = (1_u32..=40, 1_u32..=40).prop_map(|(width, height)| Size { width, height });
    let storage = prop_oneof![Just(Storage::F32), Just(Storage::F16), Just(Storage::PackedF16), Just(Storage::FastF16)];
    let budget = prop::option::of((15_u32..24, any::<(bool, bool)>()));
    let options = (storage, any::<(bool, bool)>(), 13_u32..21, budget);
    let options = options.prop_map(|(storage, (raw, profile), power, budget)| {
        let output = if raw { Output::Raw } else { Output::Rgba8 };
        let options = PlanOptions { chunk_limit: Bytes(1 << power), profile, ..PlanOptions::new(storage, output) };
        let Some((power, (parking, on_host))) = budget else { return options };
        let weights = if on_host { Weights::Host } else { Weights::Device };
        PlanOptions { memory_budget: Some(Bytes(1 << power)), parking, weights, ..options }
    });
    (configs(), size, limits(), options)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_are_sound((config, size, limits, options) in cases()) {
        let graph = decoder(&config, size, LatentSpace::Model);
        match Plan::new(&graph, &limits, &options) {
            Ok(plan) => {
                check(&plan, &limits);
                prop_assert!(options.memory_budget.is_none_or(|budget| plan.memory.peak() <= budget));
                prop_assert_eq!(Plan::new(&graph, &limits, &options).unwrap(), plan);
            }
            Err(Error::TooLarge { needed, limit, .. }) => prop_assert!(needed > limit),
            Err(Error::Budget { budget, smallest, .. }) => prop_assert!(smallest > budget),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

/// Checks that scratch memory is exactly as large as the bytes written there. `written` are the
/// bytes that the interpreter saw for each buffer.
pub(crate) fn check_scratch(plan: &Plan, written: &[usize]) {
    for (buffer, used) in plan.buffers.iter().zip(written).filter(|(buffer, _)| !buffer.name.ends_with(']')) {
        assert_eq!(*used as u64, buffer.bytes.0, "{} of {}", buffer.name, plan.input());
    }
}

/// Generates networks and latents that the interpreter finishes quickly; the bindings' size as a
/// multiple of the smallest possible; and sizes of chunks.
fn small_cases() -> impl Strategy<Value = (AutoencoderConfig, Size, u64, (DeviceKind, PlanOptions))> {
    let size = (1_u32..=14, 1_u32..=14).prop_map(|(width, height)| Size { width, height });
    let storage = prop_oneof![Just(Storage::F32), Just(Storage::F16), Just(Storage::PackedF16), Just(Storage::FastF16)];
    let kind = prop_oneof![Just(DeviceKind::Cpu), Just(DeviceKind::Gpu)];
    let options = (storage, kind, 10_u32..18).prop_map(|(storage, kind, power)| {
        (kind, PlanOptions { chunk_limit: Bytes(1 << power), ..PlanOptions::new(storage, Output::Raw) })
    });
    let channels = prop::collection::vec(1_u32..=3, 1..=3);
    let config = (channels, 1_u32..=6, any::<bool>()).prop_map(|(multiples, groups, attention)| {
        let channels: Vec<u32> = multiples.iter().map(|multiple| multiple * groups * 3).collect();
        odd_network(&channels, groups, attention)
    });
    (config, size, 1_u64..=64, options)
}

/// Returns limits with `times` the smallest bindings, a power of two, within which `graph` can be
/// planned.
pub(crate) fn tight_limits(graph: &Graph, options: &PlanOptions, times: u64) -> DeviceLimits {
    let with = |bytes| DeviceLimits {
        max_storage_buffer_binding_size: Bytes(bytes),
        max_buffer_size: Bytes(bytes),
        shader_f16: true,
        ..DeviceLimits::webgpu_default()
    };
    let least = (10..28).map(|power| 1 << power).find(|bytes| Plan::new(graph, &with(*bytes), options).is_ok());
    with(least.expect("a small network") * times)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn predicted_scratch_is_what_is_used((config, size, times, (kind, options)) in small_cases()) {
        let graph = decoder(&config, size, LatentSpace::Model);
        let limits = DeviceLimits { kind, ..tight_limits(&graph, &options, times) };
        let Ok(plan) = Plan::new(&graph, &limits, &options) else { return Ok(()) };
        check(&plan, &limits);
        let latents = formula::latents(&[config.latent_channels as usize, size.height as usize, size.width as usize]);
        let (_, written) = interpret_and_measure(&plan, &formula::decoder(&config), &[&latents.data]);
        check_scratch(&plan, &written);
    }
}

#[test]
fn most_random_cases_fit_and_many_are_cut() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut fit, mut cut) = (0, 0);
    for _ in 0..200 {
        let (config, size, limits, options) = cases().new_tree(&mut runner).unwrap().current();
        if let Ok(plan) = Plan::new(&decoder(&config, size, LatentSpace::Model), &limits, &options) {
            fit += 1;
            cut += u32::from(plan.outputs().count() > 1);
        }
    }
    println!("of 200: {fit} fit, {cut} in several chunks");
    assert!(fit >= 80 && cut >= 30, "of 200 cases only {fit} fit, {cut} of them in several chunks");
}

#[test]
fn sd15_at_1024_takes_at_most_1200_mib() {
    let config = Family::find("sd15").unwrap().config();
    let size = Size { width: 128, height: 128 };
    for (shader_f16, storage) in [(true, Storage::F16), (false, Storage::PackedF16)] {
        let limits = DeviceLimits { shader_f16, ..DeviceLimits::webgpu_default() };
        let plan = wgvae::plan(&config, &Request::decode(size, LatentSpace::Model), &limits, storage)
            .map(Plans::into_first)
            .unwrap();
        println!("{storage:?}: {} in {} slots", plan.memory.peak(), plan.slots.len());
        // 1.2 GiB, weights included: the promise of the README.
        assert!(plan.memory.peak() <= Bytes((1 << 30) / 5 * 6), "{storage:?}: {}", plan.memory.peak());
        assert!(plan.largest_binding() <= Bytes(128 << 20));
    }
}

/// Tests large images whose attention is most of the work, in one pass: an `AutoencoderKL` must not
/// be cut into the small chunks of streaming networks.
#[test]
fn large_images_of_networks_with_norms_are_in_large_chunks() {
    let config = Family::find("sd15").unwrap().config();
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    let size = Size { width: 512, height: 512 };
    let plan = wgvae::plan(&config, &Request::decode(size, LatentSpace::Model), &limits, Storage::F16)
        .map(Plans::into_first)
        .unwrap();
    assert!(plan.buffers.len() < 20_000, "{} buffers", plan.buffers.len());
    let smallest = plan.slots.iter().filter(|slot| **slot >= Bytes(1 << 20)).count();
    assert!(smallest < 500, "{smallest} slots");
}

/// Tests networks with few channels, whose rows are small: chunks must be limited by the reach of
/// one launch as well as by bytes.
#[test]
fn narrow_networks_plan_at_large_sizes() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    for channels in [vec![8, 8, 8], vec![4, 4, 4, 4], vec![4, 8]] {
        let config = odd_network(&channels, 2, false);
        for storage in [Storage::F32, Storage::F16] {
            let side = 4096 / config.spatial_factor();
            let side = side.min(1448);
            let size = Size { width: side, height: side };
            let plan = wgvae::plan(&config, &Request::decode(size, LatentSpace::Model), &limits, storage)
                .map(Plans::into_first)
                .unwrap();
            assert!(plan.memory.params <= limits.max_buffer_size);
        }
    }
}

/// Tests the largest supported sizes, within every browser's limits. Larger ones give an error at
/// once.
#[test]
fn large_sizes_plan_or_are_refused() {
    let config = Family::find("sd15").unwrap().config();
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    let plan = |width, height| {
        let size = Size { width, height };
        wgvae::plan(&config, &Request::decode(size, LatentSpace::Model), &limits, Storage::F16).map(Plans::into_first)
    };
    for (width, height) in [(512, 512), (1024, 1024), (64, 2048), (2048, 64)] {
        let plan = plan(width, height).unwrap();
        assert!(plan.memory.params <= limits.max_buffer_size, "{width}x{height}: {}", plan.memory.params);
        assert!(plan.largest_binding() <= limits.max_storage_buffer_binding_size);
    }
    for (width, height) in [(0, 8), (2048, 2048), (16_384, 16_384), (16_385, 1), (u32::MAX, u32::MAX)] {
        assert!(matches!(plan(width, height), Err(Error::Input { .. })), "{width}x{height}");
    }
}
