//! Whole plans, interpreted: they agree with diffusers, and chunks of any size give the same bits.

use pollster::block_on;
use test_kit::golden::Golden;
use test_kit::networks::with_kl;
use test_kit::reference::interpreter::{interpret, interpret_and_measure};
use test_kit::sweep::is_full;
use test_kit::{formula, repository};
use wgvae::config::AutoencoderConfig;
use wgvae::device::{DeviceKind, DeviceLimits};
use wgvae::files::FileSource;
use wgvae::images::Output;
use wgvae::internals::odd_network;
use wgvae::internals::safetensors::{read_header, read_tensor};
use wgvae::kernels::choice::KernelChoice;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{Bytes, HostTensor, LatentSpace, Size, Storage};

/// Most bytes of chunks: of all tensors, and of the keys and values of attention.
#[derive(Debug, Clone, Copy)]
struct Chunks {
    all: u64,
    keys: u64,
}

const WHOLE: Chunks = Chunks { all: u64::MAX, keys: u64::MAX };

/// Plans `config` on a device of `kind`, cut into `chunks`.
fn plan(config: &AutoencoderConfig, latents: &HostTensor, storage: Storage, chunks: Chunks, kind: DeviceKind) -> Plan {
    let [height, width] = [1, 2].map(|axis| u32::try_from(latents.shape[latents.shape.len() - 3 + axis]).unwrap());
    let graph = decoder(config, Size { width, height }, LatentSpace::Model);
    let options = PlanOptions {
        chunk_limit: Bytes(chunks.all),
        keys_limit: Bytes(chunks.keys),
        ..PlanOptions::new(storage, Output::Raw)
    };
    let limits = DeviceLimits { kind, shader_f16: true, ..DeviceLimits::webgpu_default() };
    Plan::new(&graph, &limits, &options).unwrap()
}

/// Returns max |a - b| / max |b|; NaN if any value is NaN.
pub(crate) fn relative_error(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let differences = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    differences.fold(0.0_f32, |most, value| if value <= most { most } else { value }) / largest
}

/// Returns the storages to interpret: all in a full run, otherwise not plain halves, which the
/// twins round as they round packed ones.
pub(crate) fn storages() -> Vec<Storage> {
    let all = [Storage::F32, Storage::F16, Storage::PackedF16, Storage::FastF16];
    all.into_iter().filter(|storage| is_full() || *storage != Storage::F16).collect()
}

/// Returns the largest allowed [`relative_error`] of `storage`: `most` in f32, otherwise a multiple
/// of torch's error in f16. Transformed tiles in halves are rounded once more before and after each
/// product.
pub(crate) fn most_error(storage: Storage, most: f32, f16_error: f32) -> f32 {
    match storage {
        Storage::F32 => most,
        Storage::F16 | Storage::PackedF16 => 2.0 * f16_error,
        Storage::FastF16 => 5.0 * f16_error,
    }
}

#[track_caller]
pub(crate) fn assert_same_bits(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len());
    let different = found.iter().zip(wanted).filter(|(found, wanted)| found.to_bits() != wanted.to_bits()).count();
    assert_eq!(different, 0, "{what}: values of {} that differ from the whole plan's", wanted.len());
}

/// Returns the bytes of `rows` rows of the widest tensor of full size: a chunk limit that cuts the
/// larger resolutions.
fn rows_of_image(config: &AutoencoderConfig, latents: &HostTensor, rows: u64, storage: Storage) -> u64 {
    let width = latents.shape[latents.shape.len() - 1] as u64 * u64::from(config.spatial_factor());
    let channels = config.network.kl().unwrap().decoder_channels().iter().take(2).max().unwrap();
    rows * width * u64::from(channels.div_ceil(4)) * storage.vec4_bytes()
}

/// Decodes fixture `name` whole, and in chunks of `rows` rows of the image.
fn check(name: &str, rows: &[u64]) {
    let path = repository().join("tests/fixtures").join(format!("{name}.safetensors"));
    let source = FileSource::open(path).unwrap();
    let header = block_on(read_header(&source)).unwrap();
    let config = AutoencoderConfig::from_json(&header.metadata["config"]).unwrap();
    let shape: Vec<usize> = serde_json::from_str(&header.metadata["latent_shape"]).unwrap();
    let golden = block_on(read_tensor(&source, "image", &header.tensors["image"])).unwrap();
    let f16_error: f32 = header.metadata["f16_error"].parse().unwrap();
    let (latents, weights) = (formula::latents(&shape), formula::decoder(&config));
    let decode = |storage, chunks, kind| {
        let plan = plan(&config, &latents, storage, chunks, kind);
        (interpret(&plan, &weights, &latents.data), plan.outputs().count())
    };
    for storage in [Storage::F32, Storage::F16, Storage::PackedF16, Storage::FastF16] {
        let (whole, _) = decode(storage, WHOLE, DeviceKind::Cpu);
        let error = relative_error(&whole, &golden.data);
        println!("{name} {storage:?}: {error:.1e}, torch in f16 {f16_error:.1e}");
        let most = most_error(storage, 1e-4, f16_error);
        assert!(error <= most, "{name} {storage:?}: {error:.1e} from diffusers, at most {most:.1e}");
        for &rows in rows {
            let chunk = rows_of_image(&config, &latents, rows, storage);
            let (cut, count) = decode(storage, Chunks { all: chunk, ..WHOLE }, DeviceKind::Gpu);
            assert!(count > 1, "{name}: chunks of {chunk} bytes leave the image in {count}");
            assert_same_bits(&cut, &whole, &format!("{name} {storage:?} in {count} chunks"));
        }
    }
}

#[test]
fn toy_two_levels() {
    check("toy_two_levels", &[4]);
}

#[test]
fn toy_odd() {
    check("toy_odd", &[4, 8]);
}

#[test]
fn toy_no_attention() {
    check("toy_no_attention", &[4, 8]);
}

#[test]
fn attention_over_many_chunks_of_an_odd_number_of_keys() {
    let config = with_kl(odd_network(&[24], 6, true), |kl| kl.use_post_quant_conv = false);
    let config = AutoencoderConfig { scaling_factor: 0.5, shift_factor: Some(0.25), ..config };
    // 23 x 101 = 2323 queries and keys: more than one block of each, and no multiple of four.
    let latents = formula::latents(&[4, 101, 23]);
    let weights = formula::decoder(&config);
    let decode = |chunks| {
        let plan = plan(&config, &latents, Storage::F32, chunks, DeviceKind::Cpu);
        (interpret(&plan, &weights, &latents.data), plan.outputs().count())
    };
    let (whole, _) = decode(WHOLE);
    for rows in [8, 40] {
        let chunk = rows_of_image(&config, &latents, rows, Storage::F32);
        let (cut, count) = decode(Chunks { all: chunk, ..WHOLE });
        assert!(count > 2, "chunks of {rows} rows leave the image in {count}");
        assert_same_bits(&cut, &whole, &format!("{count} chunks"));
        // Cuts of the keys change the order of sums in attention: equal up to rounding, not to the
        // bit.
        let (keys_cut, _) = decode(Chunks { all: chunk, keys: chunk });
        let error = relative_error(&keys_cut, &whole);
        println!("keys in chunks of {rows} rows: {error:.1e}");
        assert!(error <= 2e-5, "keys in chunks of {rows} rows: {error:.1e} from the whole plan");
    }
}

/// Tests an estimate with norms measured on the image itself: it is exact, although all stages
/// after attention stream.
#[test]
fn an_estimate_with_the_images_own_norms_is_exact() {
    for (channels, attention) in [(vec![16, 16, 24], true), (vec![16, 32], false)] {
        let config = odd_network(&channels, 8, attention);
        let latents = formula::latents(&[config.latent_channels as usize, 11, 9]);
        let weights = formula::decoder(&config);
        let graph = decoder(&config, Size { width: 9, height: 11 }, LatentSpace::Model);
        let limits = DeviceLimits::webgpu_default();
        let options = PlanOptions { chunk_limit: Bytes(1 << 13), ..PlanOptions::new(Storage::F32, Output::Raw) };
        let exact = interpret(&Plan::new(&graph, &limits, &options).unwrap(), &weights, &latents.data);
        let plan = Plan::estimated(&graph, &graph, &limits, &options).unwrap();
        test_kit::plan_checks::check(&plan, &limits);
        let (estimate, _) = interpret_and_measure(&plan, &weights, &[&latents.data, &latents.data]);
        assert_same_bits(&estimate, &exact, "an estimate");
    }
}

/// Tests a network without group norms: nothing is measured, and no bit changes.
#[test]
fn an_estimate_without_group_norms_is_exact() {
    let golden = Golden::open("toy_sana");
    let (config, latents) = (&golden.config, golden.latents());
    let weights = formula::decoder(config);
    let of = |width, height| decoder(config, Size { width, height }, LatentSpace::Model);
    let (graph, small) = (of(5, 3), of(2, 2));
    let limits = DeviceLimits::webgpu_default();
    for storage in [Storage::F32, Storage::F16] {
        let options = PlanOptions { chunk_limit: Bytes(1 << 13), ..PlanOptions::new(storage, Output::Raw) };
        let limits = DeviceLimits { shader_f16: true, ..limits };
        let exact = interpret(&Plan::new(&graph, &limits, &options).unwrap(), &weights, &latents.data);
        let plan = Plan::estimated(&graph, &small, &limits, &options).unwrap();
        test_kit::plan_checks::check(&plan, &limits);
        assert_same_bits(&interpret(&plan, &weights, &latents.data), &exact, "an estimate");
    }
}

/// Tests filters that fill several buffers, in an output of one band: they use one memory in turn,
/// which changes no bit.
#[test]
fn filters_in_turn_take_less_and_change_no_bit() {
    let config = odd_network(&[64, 128], 8, false);
    let latents = formula::latents(&[config.latent_channels as usize, 11, 9]);
    let weights = formula::decoder(&config);
    let graph = decoder(&config, Size { width: 9, height: 11 }, LatentSpace::Model);
    let limits = DeviceLimits { kind: DeviceKind::Gpu, shader_f16: true, ..DeviceLimits::webgpu_default() };
    let choice = KernelChoice::for_device(&limits);
    let with = |winograd_scratch_bytes| {
        let choice = Some(KernelChoice { winograd_scratch_bytes, ..choice });
        let options = PlanOptions { choice, ..PlanOptions::new(Storage::F32, Output::Raw) };
        let plan = Plan::new(&graph, &limits, &options).unwrap();
        test_kit::plan_checks::check(&plan, &limits);
        (interpret(&plan, &weights, &latents.data), plan.memory.peak())
    };
    let ((whole, all), (found, fewer)) = (with(choice.winograd_scratch_bytes), with(1 << 16));
    // All 36 x 128 x 128 floats are 2.4 MB, a part of them half.
    assert!(fewer.0 + (1 << 19) < all.0, "{fewer}, {all} with all filters at once");
    assert_same_bits(&found, &whole, "filters in turn");
}
