//! Translation of tensor names: whole key lists of published models, every refusal, and edge cases of the tables.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wgvae::Layout;
use wgvae::internals::names::{family_hint, translate};

type Shapes = BTreeMap<String, Vec<u64>>;

fn key_list(list: &str) -> Shapes {
    let path = format!("{}/tests/fixtures/keys/{list}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("a key list")
}

/// Tensors with these names and a convolution's shape.
fn named(names: &[&str]) -> Shapes {
    names.iter().map(|name| ((*name).to_owned(), vec![8, 8, 3, 3])).collect()
}

fn refusal(shapes: &Shapes) -> String {
    translate("x.safetensors", shapes).expect_err("must be refused").to_string()
}

/// Name in diffusers' spelling -> shape without trailing ones.
fn translated(shapes: &Shapes) -> (Layout, Shapes) {
    let names = translate("x.safetensors", shapes).expect("an AutoencoderKL");
    let trim =
        |shape: &[u64]| shape.iter().rposition(|&extent| extent != 1).map_or(vec![], |last| shape[..=last].to_vec());
    (names.layout, names.written.iter().map(|(name, written)| (name.clone(), trim(&shapes[written]))).collect())
}

#[test]
fn every_layout_of_a_model_gives_the_same_names() {
    let cases = [
        ("sd15.diffusers", "sd15.diffusers", Layout::Diffusers),
        ("sd15.diffusers_old_attn", "sd15.diffusers", Layout::Diffusers),
        ("sd15.ldm", "sd15.diffusers", Layout::Ldm),
        ("flux1.diffusers", "flux1.diffusers", Layout::Diffusers),
        ("flux1.ae_safetensors", "flux1.diffusers", Layout::Ldm),
        ("sd3.ldm", "flux1.diffusers", Layout::Ldm),
        ("cogview4.diffusers", "cogview4.diffusers", Layout::Diffusers),
        ("cogview4.ldm", "cogview4.diffusers", Layout::Ldm),
    ];
    for (list, wanted, layout) in cases {
        let shapes = key_list(list);
        let (found_layout, found) = translated(&shapes);
        assert_eq!(found_layout, layout, "{list}");
        assert_eq!(found.len(), shapes.len(), "{list}: every tensor is kept");
        // Shapes differ between models only where the reversed levels would show.
        assert_eq!(found, translated(&key_list(wanted)).1, "{list}");
        assert!(found.keys().eq(key_list(wanted).keys()), "{list}");
    }
}

#[test]
fn prefixes_are_stripped_and_the_rest_is_passed_over() {
    for prefix in ["first_stage_model.", "vae."] {
        let mut shapes: Shapes =
            key_list("sd15.ldm").into_iter().map(|(name, shape)| (format!("{prefix}{name}"), shape)).collect();
        for other in [
            "model.diffusion_model.input_blocks.0.0.weight",
            "cond_stage_model.transformer.text_model.encoder.layers.0.weight",
            "alphas_cumprod",
            "model_ema.decay",
        ] {
            shapes.insert(other.to_owned(), vec![1]);
        }
        for leftover in ["loss.logvar", "loss.discriminator.main.0.weight", "model_ema.num_updates"] {
            shapes.insert(format!("{prefix}{leftover}"), vec![1]);
        }
        let (layout, found) = translated(&shapes);
        assert_eq!(layout, Layout::Ldm);
        assert_eq!(found, translated(&key_list("sd15.diffusers")).1, "{prefix}");
    }
}

#[test]
fn names_as_written_are_kept() {
    let names = translate("x", &key_list("sd15.ldm")).expect("SD 1.5").written;
    assert_eq!(names["decoder.up_blocks.0.resnets.0.conv1.weight"], "decoder.up.3.block.0.conv1.weight");
    assert_eq!(names["decoder.up_blocks.2.resnets.0.conv_shortcut.bias"], "decoder.up.1.block.0.nin_shortcut.bias");
    assert_eq!(names["decoder.mid_block.attentions.0.to_out.0.weight"], "decoder.mid.attn_1.proj_out.weight");
    assert_eq!(names["encoder.down_blocks.0.downsamplers.0.conv.weight"], "encoder.down.0.downsample.conv.weight");
    assert_eq!(names["decoder.conv_norm_out.weight"], "decoder.norm_out.weight");
}

#[test]
fn three_levels_are_reversed_as_three() {
    let mut shapes = key_list("sd15.ldm");
    shapes.retain(|name, _| !name.starts_with("decoder.up.3."));
    let names = translate("x", &shapes).expect("a decoder").written;
    assert_eq!(names["decoder.up_blocks.0.resnets.0.conv1.weight"], "decoder.up.2.block.0.conv1.weight");
    assert_eq!(names["decoder.up_blocks.2.resnets.2.conv2.bias"], "decoder.up.0.block.2.conv2.bias");
}

#[test]
fn quant_convs_inside_are_moved_out() {
    let mut shapes = key_list("flux1.ae_safetensors");
    shapes.insert("decoder.post_quant_conv.weight".to_owned(), vec![32, 32, 1, 1]);
    shapes.insert("encoder.quant_conv.bias".to_owned(), vec![64]);
    let names = translate("x", &shapes).expect("a decoder").written;
    assert_eq!(names["post_quant_conv.weight"], "decoder.post_quant_conv.weight");
    assert_eq!(names["quant_conv.bias"], "encoder.quant_conv.bias");
}

#[test]
fn other_models_are_refused_by_name() {
    let cases: [(&[&str], &str); 17] = [
        (
            &["decoder.up_blocks.2.upsamplers.0.upscale_conv.weight", "decoder.up_blocks.0.resnets.0.conv1.weight"],
            "SeedVR",
        ),
        (&["decoder.middle.0.residual.0.gamma", "decoder.upsamples.0.upsamples.0.residual.2.weight"], "Wan 2.2"),
        (&["decoder.middle.0.residual.0.gamma", "decoder.upsamples.0.residual.2.weight"], "Wan 2.1 or Qwen-Image"),
        (&["vae.decoder.middle.0.residual.0.gamma"], "Wan 2.1 or Qwen-Image"),
        (&["decoder.mid_block.attentions.0.to_qkv.weight"], "Wan or Qwen-Image"),
        (
            &["decoder.mid_block.attentions.0.to_qkv.weight", "decoder.up_blocks.0.upsampler.resample.1.weight"],
            "Wan 2.2",
        ),
        (&["decoder.layers.0.weight", "encoder.layers.0.weight"], "TAESD"),
        (&["taesd_decoder.1.weight"], "TAESD"),
        (&["1.weight", "3.conv.0.weight", "19.weight"], "TAESD"),
        (&["0.weight", "1.conv.0.weight", "14.weight"], "TAESD"),
        (&["decoder.22.bias", "decoder.1.weight"], "TAEHV"),
        (&["decoder.up_blocks.0.0.attn.to_qkv_multiscale.0.proj_in.weight"], "DC-AE"),
        (&["encoder.stages.0.op_list.0.main.conv.conv.weight", "decoder.stages.0.x"], "DC-AE"),
        (&["bn.running_mean", "decoder.up.0.block.0.conv1.weight"], "FLUX.2"),
        (&["quantize.embedding.weight", "decoder.up.0.block.0.conv1.weight"], "VQ"),
        (&["decoder.up_blocks.0.resnets.0.temporal_res_block.conv1.weight"], "Stable Video Diffusion"),
        (&["decoder.condition_encoder.layers.0.weight", "decoder.up_blocks.0.resnets.0.conv1.weight"], "Asymmetric"),
    ];
    for (names, wanted) in cases {
        let text = refusal(&named(names));
        assert!(text.contains("not supported: looks like ") && text.contains(wanted), "{names:?}: {text}");
    }
    let mut video = key_list("sd15.diffusers");
    video.insert("decoder.conv_in.weight".to_owned(), vec![512, 4, 3, 3, 3]);
    assert!(refusal(&video).contains("video VAE"));
}

#[test]
fn what_is_no_decoder_is_refused() {
    let cases: [(&[&str], &str); 5] = [
        (&[], "it holds no VAE: none of its 0 tensors"),
        (&["model.diffusion_model.double_blocks.0.img_attn.proj.weight"], "it holds no VAE"),
        (&["encoder.conv_in.weight"], "an encoder but no decoder"),
        (&["decoder.something.weight"], "its decoder is not that of an AutoencoderKL"),
        (&["text_model.encoder.layers.0.weight"], "it holds no VAE"),
    ];
    for (names, wanted) in cases {
        let text = refusal(&named(names));
        assert!(text.starts_with("x.safetensors: ") && text.contains(wanted), "{names:?}: {text}");
    }
}

#[test]
fn unknown_tensors_matter_in_the_decoder_only() {
    for list in ["sd15.diffusers", "sd15.ldm"] {
        let mut shapes = key_list(list);
        shapes.insert("encoder.something.else".to_owned(), vec![1]);
        shapes.insert("scale_factor".to_owned(), vec![1]);
        assert_eq!(translated(&shapes).1.len(), key_list(list).len());
        for name in
            ["decoder.conv_in.weight_scale", "decoder.up.0.attn.0.q.weight", "decoder.up.x.block.0.conv1.weight"]
        {
            let mut shapes = shapes.clone();
            shapes.insert(name.to_owned(), vec![1]);
            let text = refusal(&shapes);
            assert!(text.contains(&format!("tensor \"{name}\" is not part of")), "{text}");
        }
    }
}

#[test]
fn two_spellings_of_one_tensor_are_refused() {
    let mut shapes = key_list("sd15.diffusers");
    shapes.insert("decoder.mid_block.attentions.0.query.weight".to_owned(), vec![512, 512]);
    let text = refusal(&shapes);
    assert!(text.contains("are both \"decoder.mid_block.attentions.0.to_q.weight\""), "{text}");
}

#[test]
fn other_parts_of_a_pipeline_tell_the_family() {
    let cases: [(&[&str], Option<&str>); 8] = [
        (&["conditioner.embedders.0.transformer.x"], Some("sdxl")),
        (&["conditioner.embedders.0.transformer.x", "edm_mean"], Some("playground")),
        (&["cond_stage_model.transformer.text_model.x"], Some("sd15")),
        (&["cond_stage_model.model.positional_embedding"], Some("sd21")),
        (&["model.diffusion_model.joint_blocks.0.x"], Some("sd3")),
        (&["model.diffusion_model.double_blocks.0.x"], Some("flux1")),
        (&["decoder.conv_in.weight"], None),
        (&[], None),
    ];
    for (names, family) in cases {
        assert_eq!(family_hint(names.iter().copied()), family, "{names:?}");
    }
}

/// Names almost like those of a VAE, with numbers of any size.
const ALMOST: &str = "(first_stage_model\\.|vae\\.)?(encoder|decoder|bn)\\.(up|down|up_blocks|mid)\\.\
    ([0-9]{1,22}|block_1)\\.(block|resnets|conv1)\\.[0-9]{1,3}\\.(conv1|nin_shortcut)\\.(weight|bias)";

proptest! {
    #[test]
    fn never_panics(names in proptest::collection::btree_set(ALMOST, 0..6)) {
        let shapes: Shapes = names.into_iter().map(|name| (name, vec![1, 1, 1, 1])).collect();
        let _ = translate("x", &shapes);
    }
}
