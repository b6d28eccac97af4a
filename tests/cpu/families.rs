//! Every network, in both directions: plans interpreted in every storage, whole and in chunks,
//! against the f64 result of its own class.

use test_kit::golden::{Golden, first_channels};
use test_kit::reference::graph::{Weights, evaluate_and_measure};
use test_kit::reference::interpreter::interpret_and_measure;
use test_kit::{each_network, formula};
use wgvae::config::Network;
use wgvae::device::{DeviceKind, DeviceLimits};
use wgvae::images::Output;
use wgvae::model::graph::Graph;
use wgvae::model::networks::{decoder, encoder};
use wgvae::model::tensors::file_tensors;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{Bytes, HostTensor, LatentSpace, Size, Storage};

use crate::interpret::{assert_same_bits, most_error, relative_error, storages};
use crate::plan_properties::check_scratch;

/// Runs `graph` on `input` in every storage, whole and in chunks, and compares with the fixture's
/// `output`.
fn check(golden: &Golden, name: &str, output: &str, graph: &Graph, input: &HostTensor) {
    let channels = graph.shape(graph.nodes.last().unwrap().output).channels;
    let (wanted, f16_error) = (first_channels(golden.output(output).unwrap(), channels), golden.f16_error(output));
    let weights = formula::weights(&file_tensors(graph));
    for storage in storages() {
        let run = |chunk, kind| {
            let options = PlanOptions { chunk_limit: Bytes(chunk), ..PlanOptions::new(storage, Output::Raw) };
            let limits = DeviceLimits { kind, shader_f16: true, ..DeviceLimits::webgpu_default() };
            let plan = Plan::new(graph, &limits, &options).unwrap();
            test_kit::plan_checks::check(&plan, &limits);
            let (result, written) = interpret_and_measure(&plan, &weights, &[&input.data]);
            check_scratch(&plan, &written);
            (result, plan.outputs().count())
        };
        let (whole, _) = run(u64::MAX, DeviceKind::Cpu);
        let error = relative_error(&whole, &wanted.data);
        println!("{name} {output} {storage:?}: {error:.1e}, torch in f16 {f16_error:.1e}");
        let most = most_error(storage, 1e-5, f16_error);
        assert!(error <= most, "{name} {output} {storage:?}: {error:.1e}, at most {most:.1e}");
        let chunk = if storage == Storage::F32 { 1 << 10 } else { 1 << 13 };
        let (cut, count) = run(chunk, DeviceKind::Gpu);
        assert_same_bits(&cut, &whole, &format!("{name} {output} {storage:?} in {count} chunks"));
    }
}

/// Returns width and height of `[1, c, h, w]`.
fn size_of(tensor: &HostTensor) -> Size {
    let [height, width] = [2, 3].map(|axis| u32::try_from(tensor.shape[axis]).unwrap());
    Size { width, height }
}

/// Checks all outputs of fixture `name`.
fn family(name: &str) {
    let golden = Golden::open(name);
    let latents = golden.latents();
    check(&golden, name, "image", &decoder(&golden.config, size_of(&latents), LatentSpace::Model), &latents);
    if let Some(own) = golden.own_latents() {
        check(&golden, name, "image_own", &decoder(&golden.config, size_of(&own), LatentSpace::Vae), &own);
    }
    let image = golden.image().expect("every family encodes");
    let graph = encoder(&golden.config, size_of(&image));
    check(&golden, name, golden.encoded(), &graph, &image);
}

/// Makes the weights of `graph`. DC-AE has no norms before its convolutions, and its gates multiply
/// two of their results, so its branches get less of a large stream: a 128th.
fn weights_for_a_large_stream(network: &Network, graph: &Graph) -> Weights {
    let mut weights = formula::weights(&file_tensors(graph));
    if matches!(network, Network::Dc(_)) {
        let branches =
            weights.iter_mut().filter(|(name, _)| name.contains(".conv_inverted.") || name.contains(".conv1."));
        branches.for_each(|(_, tensor)| tensor.data.iter_mut().for_each(|value| *value /= 128.0));
    }
    weights
}

/// Runs `graph` on `input` with a first convolution whose result is far beyond half precision. In
/// halves, the result still agrees with f64.
fn check_beyond_halves(
    name: &str,
    first: &str,
    graph: &Graph,
    mut weights: Weights,
    input: &HostTensor,
    f16_error: f32,
) {
    let (_, before) = evaluate_and_measure(graph, &weights, &input.data);
    #[expect(clippy::cast_possible_truncation, reason = "a factor")]
    let growth = (4e5 / before) as f32;
    // A convolution with another size change has a module of its own.
    let module = if weights.contains_key(&format!("{first}.weight")) { "" } else { ".conv" };
    for part in ["weight", "bias"] {
        let tensor = weights.get_mut(&format!("{first}{module}.{part}")).unwrap();
        tensor.data.iter_mut().for_each(|value| *value *= growth);
    }
    let (wanted, largest) = evaluate_and_measure(graph, &weights, &input.data);
    assert!(largest > 65_504.0 && largest < 1e6, "{name}: {largest:e} is not what this is for");
    #[expect(clippy::cast_possible_truncation, reason = "compared in f32")]
    let wanted: Vec<f32> = wanted.iter().map(|value| *value as f32).collect();
    for storage in [Storage::F16, Storage::PackedF16, Storage::FastF16] {
        let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
        let plan = Plan::new(graph, &limits, &PlanOptions::new(storage, Output::Raw)).unwrap();
        let (found, _) = interpret_and_measure(&plan, &weights, &[&input.data]);
        let error = relative_error(&found, &wanted);
        println!("{name} {first} {storage:?}: up to {largest:.0}, {error:.1e}");
        let most = 1.5 * most_error(storage, 0.0, f16_error);
        assert!(error <= most, "{name} {first} {storage:?}: {error:.1e}, torch's own {f16_error:.1e}");
    }
}

#[test]
fn streams_beyond_half_precision() {
    for (name, first) in [
        ("toy_flux2", "conv_in"),
        ("taesd", "layers.0"),
        ("taef2", "layers.0"),
        ("toy_wan", "conv_in"),
        ("toy_qwen_image21", "conv_in"),
        ("toy_wan22", "conv_in"),
        ("toy_hunyuan_image", "conv_in"),
        ("toy_ltx2", "conv_in"),
        ("toy_hunyuan_video", "conv_in"),
        ("toy_seedvr", "conv_in"),
        ("toy_sana", "conv_in"),
        ("toy_dc_ae", "conv_in"),
        ("toy_dc_ae_batch", "conv_in"),
    ] {
        let golden = Golden::open(name);
        let (latents, image) = (golden.latents(), golden.image().unwrap());
        let graph = decoder(&golden.config, size_of(&latents), LatentSpace::Model);
        let weights = weights_for_a_large_stream(&golden.config.network, &graph);
        let f16_error = golden.f16_error("image");
        check_beyond_halves(name, &format!("decoder.{first}"), &graph, weights, &latents, f16_error);
        let graph = encoder(&golden.config, size_of(&image));
        let weights = weights_for_a_large_stream(&golden.config.network, &graph);
        let f16_error = golden.f16_error(golden.encoded());
        check_beyond_halves(name, &format!("encoder.{first}"), &graph, weights, &image, f16_error);
    }
}

#[test]
fn kl() {
    for name in ["toy_odd", "toy_no_attention", "toy_two_levels", "toy_direct"] {
        let golden = Golden::open(name);
        let image = golden.image().unwrap();
        check(&golden, name, "moments", &encoder(&golden.config, size_of(&image)), &image);
    }
}

each_network!(family);
