//! Whole published checkpoints: each is recognised and maps completely, and an error names any
//! tensor that is missing, misshapen or unknown.

use std::collections::BTreeMap;

use pollster::block_on;
use test_kit::hollow::{Hollow, Shapes, key_list};
use test_kit::sweep::is_full;
use wgvae::config::Network;
use wgvae::internals::names::translate;
use wgvae::model::networks::{decoder_tensors, encoder_tensors};
use wgvae::{Checkpoint, Error, Result};

/// Key list, the network, and true if it has an encoder, and a decoder.
const LISTS: [(&str, &str, [bool; 2]); 60] = [
    ("sd15.diffusers", "AutoencoderKL", [true, true]),
    ("sd15.diffusers_old_attn", "AutoencoderKL", [true, true]),
    ("sd15.ldm", "AutoencoderKL", [true, true]),
    ("sd_x4_upscaler.diffusers", "AutoencoderKL", [true, true]),
    ("sd3.ldm", "AutoencoderKL", [true, true]),
    ("flux1.ae_safetensors", "AutoencoderKL", [true, true]),
    ("flux1.diffusers", "AutoencoderKL", [true, true]),
    ("cogview4.diffusers", "AutoencoderKL", [true, true]),
    ("cogview4.ldm", "AutoencoderKL", [true, true]),
    ("flux2.bfl", "AutoencoderKL", [true, true]),
    ("flux2.diffusers", "AutoencoderKL", [true, true]),
    ("flux2_small_decoder.diffusers", "AutoencoderKL", [true, true]),
    ("flux2_small_decoder.bfl_decoder", "AutoencoderKL", [false, true]),
    ("asymmetric_x1_5.diffusers", "AutoencoderKL", [true, true]),
    ("taesd.diffusers", "AutoencoderTiny", [true, true]),
    ("taesd.upstream_encoder", "AutoencoderTiny", [true, false]),
    ("taesd.upstream_decoder", "AutoencoderTiny", [false, true]),
    ("taef1.diffusers", "AutoencoderTiny", [true, true]),
    ("taef2.upstream_encoder", "AutoencoderTiny", [true, false]),
    ("taef2.upstream_decoder", "AutoencoderTiny", [false, true]),
    ("taeqi2_1.upstream_encoder", "AutoencoderTiny", [true, false]),
    ("taeqi2_1.upstream_decoder", "AutoencoderTiny", [false, true]),
    ("taesana.upstream_encoder", "AutoencoderTiny", [true, false]),
    ("taesana.upstream_decoder", "AutoencoderTiny", [false, true]),
    ("taew2_1.upstream", "TAEHV", [true, true]),
    ("taew2_2.upstream", "TAEHV", [true, true]),
    ("taehv1_5.upstream", "TAEHV", [true, true]),
    ("taeh3.upstream", "TAEHV", [true, true]),
    ("taeltx2_3.upstream", "TAEHV", [true, true]),
    ("qwen_image.diffusers", "AutoencoderKLWan", [true, true]),
    ("wan21.original", "AutoencoderKLWan", [true, true]),
    ("wan21_upscale2x.diffusers", "AutoencoderKLWan", [true, true]),
    ("wan21_upscale2x.original", "AutoencoderKLWan", [true, true]),
    ("lightvaew2_1.original", "AutoencoderKLWan", [true, true]),
    ("qwen2d.original", "AutoencoderKLWan", [true, true]),
    ("qwen_image_layered.diffusers", "AutoencoderKLWan", [true, true]),
    ("qwen_image_layered.original", "AutoencoderKLWan", [true, true]),
    ("qwen_image21.diffusers", "AutoencoderKLQwenImage21", [true, true]),
    ("qwen_image21.original", "AutoencoderKLQwenImage21", [true, true]),
    ("wan22.diffusers", "AutoencoderKLWan", [true, true]),
    ("wan22.original", "AutoencoderKLWan", [true, true]),
    ("hunyuan_image.diffusers", "AutoencoderKLHunyuanImage", [true, true]),
    ("hunyuan_image.original", "AutoencoderKLHunyuanImage", [true, true]),
    ("hunyuan_video15.diffusers", "AutoencoderKLHunyuanVideo15", [true, true]),
    ("hunyuan_video15.original", "AutoencoderKLHunyuanVideo15", [true, true]),
    ("ltx2.diffusers", "AutoencoderKLLTX2Video", [true, true]),
    ("ltx2.original", "AutoencoderKLLTX2Video", [true, true]),
    ("ltx2_3.diffusers", "AutoencoderKLLTX2Video", [true, true]),
    ("ltx2_3.original", "AutoencoderKLLTX2Video", [true, true]),
    ("sana.diffusers", "AutoencoderDC", [true, true]),
    ("sana.original", "AutoencoderDC", [true, true]),
    ("dc_ae_lite.diffusers", "AutoencoderDC", [true, true]),
    ("dc_ae_lite.original", "AutoencoderDC", [true, true]),
    ("dc_ae_f32c32_in.diffusers", "AutoencoderDC", [true, true]),
    ("dc_ae_f32c32_in.original", "AutoencoderDC", [true, true]),
    ("dc_ae_f64c128_in.diffusers", "AutoencoderDC", [true, true]),
    ("dc_ae_f64c128_in.original", "AutoencoderDC", [true, true]),
    ("dc_ae_f128c512_in.diffusers", "AutoencoderDC", [true, true]),
    ("dc_ae_f128c512_in.original", "AutoencoderDC", [true, true]),
    ("seedvr2.original", "SeedVR", [true, true]),
];

/// Parts of names of tensors that are only for video or for a mask, or unused.
const UNUSED: [&str; 3] = [".time_conv.", ".num_batches_tracked", ".condition_encoder."];

/// Opens a checkpoint of these tensors, without config.json.
pub(crate) fn open(tensors: &Shapes) -> Result<Checkpoint> {
    // Deviations of latents are not zero.
    let file = Hollow::new(tensors, serde_json::json!({}), Some(|_, _, range| vec![1.0; range.count()]));
    block_on(Checkpoint::from_source(Box::new(file), None))
}

/// Returns the tensors that a model needs for all that its files can do: name in diffusers'
/// spelling -> shape.
fn needed(checkpoint: &Checkpoint) -> BTreeMap<String, Vec<u64>> {
    let mut tensors = BTreeMap::new();
    if checkpoint.has_encoder() {
        tensors.extend(encoder_tensors(checkpoint.config()));
    }
    if checkpoint.has_decoder() {
        tensors.extend(decoder_tensors(checkpoint.config()));
    }
    tensors
}

/// Opens a model and checks that it has all tensors that it needs.
fn check(shapes: &Shapes) -> Result<Checkpoint> {
    let checkpoint = open(shapes)?;
    checkpoint.check_encoder_names()?;
    checkpoint.check(needed(&checkpoint).iter().map(|(name, shape)| (name.as_str(), shape.as_slice())))?;
    Ok(checkpoint)
}

/// Returns the name in diffusers' spelling of the tensor `file_name`.
fn in_diffusers(shapes: &Shapes, file_name: &str) -> String {
    let names = translate("list", shapes).unwrap().written;
    names.into_iter().find(|(_, written)| written == file_name).unwrap().0
}

/// Returns the name in the file of each needed tensor, by its name in diffusers' spelling.
fn used(shapes: &Shapes, checkpoint: &Checkpoint) -> BTreeMap<String, String> {
    let statistics = ["bn.running_mean", "bn.running_var", "latents_mean", "latents_std"];
    let statistics = statistics.into_iter().filter(|name| checkpoint.tensor(name).is_some());
    let names = needed(checkpoint).into_keys().chain(statistics.map(str::to_owned));
    let written = |name: String| {
        let files: Vec<String> = checkpoint.tensor(&name).unwrap().file_names().map(str::to_owned).collect();
        match files.as_slice() {
            [file] => vec![(name, file.clone())],
            // Composed of several tensors, whose own names are missing.
            _ => files.into_iter().map(|file| (in_diffusers(shapes, &file), file)).collect(),
        }
    };
    names.flat_map(written).collect()
}

#[test]
fn every_list_is_recognised_and_maps_completely() {
    for (list, network, [encoder, decoder]) in LISTS {
        let shapes = key_list(list);
        let checkpoint = check(&shapes).unwrap_or_else(|error| panic!("{list}: {error}"));
        assert_eq!(checkpoint.config().network.name(), network, "{list}");
        assert_eq!([checkpoint.has_encoder(), checkpoint.has_decoder()], [encoder, decoder], "{list}");
        let used = used(&shapes, &checkpoint);
        let written: Vec<&String> =
            shapes.keys().filter(|name| !UNUSED.iter().any(|unused| name.contains(unused))).collect();
        let mut found: Vec<&String> = used.values().collect();
        found.sort();
        assert_eq!(found, written, "{list}: all tensors are used");
    }
}

/// Returns shapes that differ from `shape`. A fourth channel of pictures would be opacity.
fn wrong_shapes(shape: &[u64]) -> [Vec<u64>; 4] {
    let (mut first, mut last) = (shape.to_vec(), shape.to_vec());
    first[0] += if first[0] == 3 { 2 } else { 1 };
    *last.last_mut().unwrap() *= 2;
    [first, last, [shape, &[2]].concat(), vec![shape.iter().product::<u64>(), 2]]
}

/// Each tensor is missing or has one wrong shape, in turn. A full run tests it in all ways.
#[test]
fn a_tensor_that_is_missing_or_of_a_wrong_shape_is_reported_by_its_name() {
    for (first, (list, ..)) in LISTS.into_iter().enumerate() {
        let whole = key_list(list);
        for (index, (name, file_name)) in (first..).zip(used(&whole, &open(&whole).unwrap())) {
            if is_full() || index % 8 < 4 {
                let mut shapes = whole.clone();
                shapes.remove(&file_name);
                match check(&shapes).map(|_| ()) {
                    Err(Error::MissingTensors { tensors, .. }) => assert_eq!(tensors, [name], "{list}"),
                    other => panic!("{list} without {file_name}: {other:?}"),
                }
            }
            for (way, shape) in wrong_shapes(&whole[&file_name]).into_iter().enumerate() {
                if !is_full() && index % 8 != 4 + way {
                    continue;
                }
                let mut shapes = whole.clone();
                shapes.insert(file_name.clone(), shape.clone());
                match check(&shapes).map(|_| ()) {
                    Err(Error::Tensor { tensor, .. }) => assert_eq!(tensor, file_name, "{list}, {shape:?}"),
                    other => panic!("{list} with {file_name} of {shape:?}: {other:?}"),
                }
            }
        }
    }
}

/// Images never use `time_conv`, but the shortcuts around levels depend on where it is.
#[test]
fn shortcuts_are_never_guessed() {
    for (list, count) in
        [("qwen_image21.diffusers", 12), ("qwen_image21.original", 12), ("wan22.diffusers", 8), ("wan22.original", 8)]
    {
        let whole = key_list(list);
        let of_time: Vec<&String> = whole.keys().filter(|name| name.contains(".time_conv.")).collect();
        assert_eq!(of_time.len(), count, "{list}");
        let without = |gone: &dyn Fn(&str) -> bool| {
            let mut shapes = whole.clone();
            shapes.retain(|name, _| !gone(name));
            open(&shapes).map(|_| ()).expect_err("no network").to_string()
        };
        for name in &of_time {
            let module = name.rsplit_once('.').unwrap().0;
            let text = without(&|name| name.starts_with(module));
            assert!(text.contains("temperal_downsample"), "{list} without {module}: {text}");
        }
        assert!(without(&|name| name.contains(".time_conv.")).contains("temperal_downsample"), "{list}");
    }
}

/// At the preview rate a decoder makes one frame of each latent, and the encoder does not fit.
#[test]
fn a_model_at_preview_rate_only_decodes() {
    let checkpoint = check(&key_list("taew2_1.upstream")).unwrap().at_preview_rate().unwrap();
    assert_eq!(checkpoint.config().temporal_factor(), 1);
    checkpoint.check_decoder().unwrap();
    checkpoint.check_encoder().unwrap_err();
    let text = check(&key_list("wan22.diffusers")).unwrap().at_preview_rate().unwrap_err().to_string();
    assert!(text.contains("expected a model of TAEHV's family"), "{text}");
}

/// Pruned decoders keep the names of Wan 2.2's.
#[test]
fn a_decoder_of_wan22_may_be_narrower() {
    for list in ["wan22.diffusers", "wan22.original"] {
        let mut shapes = key_list(list);
        shapes.retain(|name, _| ["decoder.", "post_quant_conv.", "conv2."].iter().any(|start| name.starts_with(start)));
        for extent in shapes.values_mut().flatten().filter(|extent| **extent >= 128) {
            *extent /= 4;
        }
        let checkpoint = check(&shapes).expect(list);
        let config = checkpoint.config();
        let Network::Wan(wan) = &config.network else { panic!("{list}: {}", config.network.name()) };
        assert_eq!((wan.decoder_channels(), config.latent_channels), (vec![64, 128, 256, 256], 48), "{list}");
        assert!(wan.is_video && wan.patch_size == 2 && config.has_time(), "{list}");
        assert_eq!(wan.temperal_downsample, [false, true, true], "{list}");
    }
}

/// Files of the original layout have filters with an axis for time, or, as `ComfyUI`'s, without.
#[test]
fn hunyuan_image_needs_no_axis_for_time() {
    let mut shapes = key_list("hunyuan_image.original");
    for shape in shapes.values_mut().filter(|shape| shape.len() == 5) {
        shape.remove(2);
    }
    let checkpoint = check(&shapes).expect("HunyuanImage 2.1");
    assert_eq!(checkpoint.config(), check(&key_list("hunyuan_image.diffusers")).unwrap().config());
    assert_eq!(checkpoint.config().scaling_factor, 0.75289);
}

#[test]
fn an_unknown_tensor_is_reported_by_its_name() {
    for (list, _, halves) in LISTS {
        let whole = key_list(list);
        let bare = list.contains("upstream_");
        for (half, _) in ["encoder", "decoder"].into_iter().zip(halves).filter(|(_, there)| *there) {
            let name = if bare { "3.conv.9.scale".to_owned() } else { format!("{half}.mid.conv_mystery.weight") };
            let mut shapes = whole.clone();
            shapes.insert(name.clone(), vec![7]);
            let text = check(&shapes).expect_err(list).to_string();
            assert!(text.contains(&name) && text.contains("not part of"), "{list}: {text}");
            // A decode needs no encoder.
            assert_eq!(open(&shapes).is_ok(), half == "encoder", "{list}, {half}");
        }
    }
}

#[test]
fn half_a_model_does_half_the_work() {
    for (list, ..) in LISTS {
        for half in ["encoder", "decoder"] {
            let whole = open(&key_list(list)).unwrap();
            let other = if half == "encoder" { "decoder." } else { "encoder." };
            let theirs = whole.names().filter(|name| name.starts_with(other));
            let files = theirs.flat_map(|name| whole.tensor(name).unwrap().file_names().map(str::to_owned));
            let theirs: Vec<String> = files.collect();
            let mut shapes = key_list(list);
            shapes.retain(|name, _| !theirs.contains(name));
            let there = if half == "encoder" { whole.has_encoder() } else { whole.has_decoder() };
            if !there {
                continue;
            }
            let checkpoint = check(&shapes).unwrap_or_else(|error| panic!("{list}, {half}: {error}"));
            assert_eq!([checkpoint.has_encoder(), checkpoint.has_decoder()], [half == "encoder", half == "decoder"]);
        }
    }
}
