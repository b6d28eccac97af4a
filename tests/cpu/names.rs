//! Translation of tensor names: whole key lists of published models, every error, and edge cases of
//! the tables.

use std::collections::BTreeMap;

use proptest::prelude::*;
use test_kit::hollow::{Shapes, key_list};
use test_kit::repository;
use wgvae::files::Layout;
use wgvae::internals::names::{family_hint, half_prefix, translate};

/// Returns tensors with these names and a convolution's shape.
fn named(names: &[&str]) -> Shapes {
    names.iter().map(|name| ((*name).to_owned(), vec![8, 8, 3, 3])).collect()
}

fn refusal(shapes: &Shapes) -> String {
    translate("x.safetensors", shapes).expect_err("must be refused").to_string()
}

/// Translates names. Returns the layout, and name in diffusers' spelling -> shape without trailing
/// ones.
fn translated(shapes: &Shapes) -> (Layout, Shapes) {
    // As a checkpoint does: TAESD's own files have names that begin with numbers.
    let prefix = half_prefix(shapes.keys().map(String::as_str));
    let shapes: Shapes = shapes.iter().map(|(name, shape)| (format!("{prefix}{name}"), shape.clone())).collect();
    let names = translate("x.safetensors", &shapes).expect("a VAE");
    let trim =
        |shape: &[u64]| shape.iter().rposition(|&extent| extent != 1).map_or(vec![], |last| shape[..=last].to_vec());
    (names.layout, names.written.iter().map(|(name, written)| (name.clone(), trim(&shapes[written]))).collect())
}

/// Keeps only the tensors of these halves.
fn halves(mut shapes: Shapes, halves: &[&str]) -> Shapes {
    shapes.retain(|name, _| halves.iter().any(|half| name.starts_with(half)));
    shapes
}

#[test]
fn every_layout_of_a_model_gives_the_same_names() {
    let cases = [
        ("sd15.diffusers", "sd15.diffusers", Layout::Diffusers),
        ("sd15.diffusers_old_attn", "sd15.diffusers", Layout::Diffusers),
        ("sd15.ldm", "sd15.diffusers", Layout::Ldm),
        ("sd_x4_upscaler.diffusers", "sd_x4_upscaler.diffusers", Layout::Diffusers),
        ("flux1.diffusers", "flux1.diffusers", Layout::Diffusers),
        ("flux1.ae_safetensors", "flux1.diffusers", Layout::Ldm),
        ("sd3.ldm", "flux1.diffusers", Layout::Ldm),
        ("cogview4.diffusers", "cogview4.diffusers", Layout::Diffusers),
        ("cogview4.ldm", "cogview4.diffusers", Layout::Ldm),
        ("flux2.diffusers", "flux2.diffusers", Layout::Diffusers),
        ("flux2.bfl", "flux2.diffusers", Layout::Ldm),
        ("flux2_small_decoder.diffusers", "flux2_small_decoder.diffusers", Layout::Diffusers),
        ("taesd.diffusers", "taesd.diffusers", Layout::Diffusers),
        ("taef1.diffusers", "taef1.diffusers", Layout::Diffusers),
        ("qwen_image.diffusers", "qwen_image.diffusers", Layout::Diffusers),
        ("wan21.original", "qwen_image.diffusers", Layout::Wan),
        ("qwen_image21.diffusers", "qwen_image21.diffusers", Layout::Diffusers),
        ("wan22.diffusers", "wan22.diffusers", Layout::Diffusers),
        ("wan22.original", "wan22.diffusers", Layout::Wan),
        ("ltx2.diffusers", "ltx2.original", Layout::Diffusers),
        ("ltx2.original", "ltx2.diffusers", Layout::Ltx),
        ("ltx2_3.diffusers", "ltx2_3.original", Layout::Diffusers),
        ("ltx2_3.original", "ltx2_3.diffusers", Layout::Ltx),
        ("wan21_upscale2x.original", "wan21_upscale2x.diffusers", Layout::Wan),
        ("qwen_image_layered.original", "qwen_image_layered.diffusers", Layout::Wan),
        ("seedvr2.original", "seedvr2.original", Layout::Diffusers),
    ];
    for (list, wanted, layout) in cases {
        let mut shapes = key_list(list);
        let (found_layout, found) = translated(&shapes);
        assert_eq!(found_layout, layout, "{list}");
        // A counter that is never read.
        shapes.remove("bn.num_batches_tracked");
        assert_eq!(found.len(), shapes.len(), "{list}: every tensor is kept");
        // Shapes differ between models only where reversed levels would show.
        assert_eq!(found, translated(&key_list(wanted)).1, "{list}");
        if layout == Layout::Diffusers && list == wanted {
            assert!(found.keys().eq(shapes.keys()), "{list}");
        }
    }
}

/// The decoder's levels are in the order in which they run, unlike those of LDM's files, which have
/// the same names.
#[test]
fn levels_of_hunyuan_image_are_not_reversed() {
    let names = translate("x", &key_list("hunyuan_image.original")).expect("a VAE");
    assert_eq!(names.layout, Layout::Ldm);
    let diffusers = translate("x", &key_list("hunyuan_image.diffusers")).expect("a VAE");
    assert_eq!(diffusers.layout, Layout::Diffusers);
    assert!(diffusers.written.iter().all(|(name, written)| name == written));
    assert!(names.written.keys().eq(diffusers.written.keys()));
    for (name, written) in [
        ("decoder.up_blocks.0.conv1.weight", "decoder.up.0.block.0.conv1.weight"),
        ("decoder.up_blocks.3.conv.bias", "decoder.up.0.upsample.conv.bias"),
        ("decoder.up_blocks.22.norm2.weight", "decoder.up.5.block.2.norm2.weight"),
        ("encoder.down_blocks.14.conv.weight", "encoder.down.4.downsample.conv.weight"),
        ("encoder.down_blocks.16.conv2.bias", "encoder.down.5.block.1.conv2.bias"),
        ("decoder.mid_block.attentions.0.proj.weight", "decoder.mid.attn_1.proj_out.weight"),
    ] {
        assert_eq!(names.written[name], written);
    }
    // Each half by itself.
    for half in ["encoder.", "decoder."] {
        let found = translate("x", &halves(key_list("hunyuan_image.original"), &[half])).expect("a VAE");
        assert!(found.written.iter().all(|(name, written)| names.written[name] == *written), "{half}");
        let found = translate("x", &halves(key_list("sd15.ldm"), &[half])).expect("a VAE").written;
        assert!(found.keys().any(|name| name.contains(".resnets.")), "{half}");
    }
}

#[test]
fn taesds_own_files_have_half_a_model_each() {
    let both = translated(&key_list("taesd.diffusers")).1;
    for (list, half) in [("taesd.upstream_encoder", "encoder."), ("taesd.upstream_decoder", "decoder.")] {
        let (layout, found) = translated(&key_list(list));
        assert_eq!(layout, Layout::Taesd, "{list}");
        assert_eq!(found, halves(both.clone(), &[half]), "{list}");
    }
    for (list, half) in [
        ("taef2.upstream_encoder", "encoder."),
        ("taef2.upstream_decoder", "decoder."),
        ("taeqi2_1.upstream_encoder", "encoder."),
        ("taeqi2_1.upstream_decoder", "decoder."),
        ("taesana.upstream_encoder", "encoder."),
        ("taesana.upstream_decoder", "decoder."),
    ] {
        let found = translated(&key_list(list)).1;
        assert_eq!(found.len(), key_list(list).len(), "{list}");
        assert!(found.keys().all(|name| name.starts_with(half)), "{list}");
    }
}

/// Tests a file of one half in BFL's names, which begin with no half.
#[test]
fn a_half_of_bfls_by_itself_is_named() {
    for half in ["encoder.", "decoder."] {
        let whole: Shapes = key_list("flux2.bfl").into_iter().filter(|(name, _)| name.starts_with(half)).collect();
        let bare = whole.iter().map(|(name, shape)| (name.replacen(half, "", 1), shape.clone())).collect();
        assert_eq!(translated(&bare), translated(&whole), "{half}");
    }
    // A network with both has other halves than a VAE.
    let unet = ["up.0.block.0.conv1.weight", "down.0.block.0.conv1.weight"];
    assert_eq!(half_prefix(unet.into_iter()), "");
}

/// Tests both spellings with prefixes, in one file and alone.
#[test]
fn halves_of_tiny_autoencoders_have_prefixes_in_one_file() {
    for model in ["taesd", "taef2", "taeqi2_1", "taesana"] {
        let half = |half: &str, prefix: &str| -> Shapes {
            let list = key_list(&format!("{model}.upstream_{half}"));
            list.into_iter().map(|(name, shape)| (format!("{prefix}{half}.{name}"), shape)).collect()
        };
        for prefix in ["", "taesd_"] {
            let [encoder, decoder] = ["encoder", "decoder"].map(|name| translated(&half(name, prefix)).1);
            let both = half("encoder", prefix).into_iter().chain(half("decoder", prefix)).collect();
            let (layout, found) = translated(&both);
            assert_eq!(layout, Layout::Taesd, "{model} {prefix}");
            assert_eq!(found, encoder.into_iter().chain(decoder).collect(), "{model} {prefix}");
        }
    }
}

#[test]
fn comfyui_puts_both_halves_of_taesd_into_one_file() {
    let mut shapes: Shapes = [("encoder", "taesd.upstream_encoder"), ("decoder", "taesd.upstream_decoder")]
        .into_iter()
        .flat_map(|(half, list)| {
            key_list(list).into_iter().map(move |(name, shape)| (format!("taesd_{half}.{name}"), shape))
        })
        .collect();
    shapes.extend(["vae_scale", "vae_shift"].map(|name| (name.to_owned(), vec![])));
    let (layout, found) = translated(&shapes);
    assert_eq!(layout, Layout::Taesd);
    assert_eq!(found, translated(&key_list("taesd.diffusers")).1);
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
    let names = translate("x", &key_list("flux2.bfl")).expect("a VAE").written;
    assert_eq!(names["post_quant_conv.weight"], "decoder.post_quant_conv.weight");
    assert_eq!(names["quant_conv.bias"], "encoder.quant_conv.bias");
}

#[test]
fn blocks_that_are_numbered_through_are_counted_by_what_changes_the_size() {
    let names = translate("x", &key_list("wan21.original")).expect("a VAE").written;
    assert_eq!(names["decoder.up_blocks.1.resnets.0.conv_shortcut.weight"], "decoder.upsamples.4.shortcut.weight");
    assert_eq!(names["decoder.up_blocks.3.resnets.2.conv2.bias"], "decoder.upsamples.14.residual.6.bias");
    assert_eq!(names["decoder.up_blocks.2.upsamplers.0.resample.1.weight"], "decoder.upsamples.11.resample.1.weight");
    // One resnet less in each level.
    let names = translate(
        "x",
        &named(&[
            "decoder.middle.0.residual.0.gamma",
            "decoder.upsamples.1.residual.2.weight",
            "decoder.upsamples.2.resample.1.bias",
            "decoder.upsamples.4.residual.2.weight",
        ]),
    );
    let names = names.expect("a VAE").written;
    assert!(names.contains_key("decoder.up_blocks.0.resnets.1.conv1.weight"), "{names:?}");
    assert!(names.contains_key("decoder.up_blocks.1.resnets.1.conv1.weight"), "{names:?}");
}

#[test]
fn other_models_are_refused_by_name() {
    let cases: [(&[&str], &str); 5] = [
        (&["quantize.embedding.weight", "decoder.up.0.block.0.conv1.weight"], "VQ"),
        (&["decoder.up_blocks.0.resnets.0.temporal_res_block.conv1.weight"], "Stable Video Diffusion"),
        (&["decoder.up_blocks.0.resnets.0.time_stack.conv1.weight"], "Stable Video Diffusion"),
        (&["decoder.time_conv_out.weight"], "Stable Video Diffusion"),
        (&["decoder.up_blocks.0.resnets.0.conv1.conv.conv.weight"], "video VAE"),
    ];
    for (names, wanted) in cases {
        let text = refusal(&named(names));
        assert!(text.contains("not supported: looks like ") && text.contains(wanted), "{names:?}: {text}");
    }
    let mut video = key_list("sd15.diffusers");
    for shape in video.values_mut().filter(|shape| shape.len() == 4) {
        shape.insert(2, 3);
    }
    video.retain(|name, _| !name.contains("downsamplers"));
    assert!(refusal(&video).contains("video VAE"));
}

/// Tests the tensors of diffusers' classes, see `make_keys.py`.
#[test]
fn every_other_autoencoder_of_diffusers_is_refused_by_name() {
    let kinds = [
        ("AutoencoderKLAllegro", "the VAE of Allegro"),
        ("AutoencoderKLCogVideoX", "the VAE of CogVideoX"),
        ("AutoencoderKLCosmos", "the VAE of Cosmos 1"),
        ("AutoencoderKLHunyuanVideo", "the VAE of HunyuanVideo"),
        ("AutoencoderKLKVAE", "a KVAE of Kandinsky"),
        ("AutoencoderKLKVAEVideo", "a KVAE of Kandinsky"),
        ("AutoencoderKLLTXVideo", "the VAE of LTX-Video 0.9"),
        ("AutoencoderKLMagvit", "the VAE of EasyAnimate"),
        ("AutoencoderKLMiniMaxH3", "the VAE of MiniMax-H3"),
        ("AutoencoderKLMochi", "the VAE of Mochi"),
        ("AutoencoderKLTemporalDecoder", "the temporal decoder of Stable Video Diffusion"),
        ("AutoencoderRAE", "an AutoencoderRAE"),
        ("AutoencoderVidTok", "VidTok"),
        ("ConsistencyDecoderVAE", "a ConsistencyDecoderVAE"),
        ("Kandinsky6SRVAE", "a KVAE of Kandinsky"),
        ("LTX2VideoDiffusionDecoderModel", "the diffusion decoder of LTX-2.5"),
        ("VQModel", "a VQ model"),
    ];
    let path = repository().join("tests/fixtures/keys/others.json");
    let classes: BTreeMap<String, Shapes> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(classes.keys().map(String::as_str).collect::<Vec<_>>(), kinds.map(|(class, _)| class));
    for (class, kind) in kinds {
        let text = refusal(&classes[class]);
        assert!(text.contains(&format!("not supported: looks like {kind}: ")), "{class}: {text}");
    }
}

/// Tests names in the original code's layout and of models without a class in diffusers.
#[test]
fn other_models_are_refused_by_their_own_names() {
    let cases: [(&str, &[u64], &str); 17] = [
        ("decoder.conv_in.weight", &[1024, 32, 3, 3, 3], "HunyuanImage 3"),
        ("student.dconv_encoder.proj_out.weight", &[8, 8], "Mage-VAE"),
        ("decoder.conv_in_x_t.weight", &[8, 8, 3, 3], "the diffusion decoder of LTX-2.5"),
        ("decoder.last_scale_shift_table", &[2, 8], "LTX-Video 0.9"),
        ("vquantizer.codebook.weight", &[8, 8], "stage A of Stable Cascade"),
        ("backbone.1.0.block.0.1.running_mean", &[24], "Stable Cascade's stage C"),
        ("encoder.backbone.1.0.block.0.1.weight", &[24], "Stable Cascade's stage C"),
        ("blocks.11.running_mean", &[128], "Stable Cascade's stage C"),
        ("lq_proj.latent_proj.0.weight", &[512, 16, 3, 3], "PiD"),
        ("net.lq_proj.latent_proj.0.weight", &[1024, 128, 3, 3], "PiD"),
        ("layers.4.layers.1.attn_block.attn.qkv.weight", &[8, 8], "Mochi"),
        ("encoder.layers.4.layers.1.attn_block.attn.qkv.weight", &[8, 8], "Mochi"),
        ("decoder.mid.block_1.mix_factor", &[1], "Stable Video Diffusion"),
        ("decoder.blocks.2.blocks.3.stack.5.weight", &[8], "Mochi"),
        ("decoder.unpatcher3d.wavelets", &[2], "Cosmos"),
        ("decoder.1.conv.0.weight", &[1024, 1, 7, 7], "_super"),
        ("decoder.1.weight", &[1024, 128, 3, 3], "taeltx2_3_wide"),
    ];
    for (name, shape, wanted) in cases {
        let text = refusal(&[(name.to_owned(), shape.to_vec())].into());
        assert!(text.contains("not supported: looks like ") && text.contains(wanted), "{name}: {text}");
    }
}

/// Its names are those of HunyuanImage 2.1, and its filters have time.
#[test]
fn hunyuan_image_3_is_refused_by_its_filters() {
    for half in ["encoder.", "decoder."] {
        let mut shapes = halves(key_list("hunyuan_image.original"), &[half]);
        for shape in shapes.values_mut().filter(|shape| shape.len() == 5) {
            shape[2] = 3;
        }
        if let Some(shape) = shapes.get_mut("decoder.conv_in.weight") {
            shape[1] = 32;
        }
        assert!(refusal(&shapes).contains("the VAE of HunyuanImage 3"), "{half}");
    }
}

#[test]
fn what_is_no_vae_is_refused() {
    let cases: [(&[&str], &str); 5] = [
        (&[], "it holds no VAE: none of its 0 tensors"),
        (&["model.diffusion_model.double_blocks.0.img_attn.proj.weight"], "it holds no VAE"),
        (&["encoder.conv_in.weight"], "its encoder is of an unknown kind"),
        (&["decoder.something.weight"], "its decoder is of an unknown kind"),
        (&["text_model.encoder.layers.0.weight"], "it holds no VAE"),
    ];
    for (names, wanted) in cases {
        let text = refusal(&named(names));
        assert!(text.starts_with("x.safetensors: ") && text.contains(wanted), "{names:?}: {text}");
    }
}

#[test]
fn unknown_tensors_in_the_decoder_are_refused_and_in_the_encoder_noted() {
    let lists = ["sd15.diffusers", "sd15.ldm", "qwen_image.diffusers", "wan21.original", "taesd.diffusers"];
    for list in lists.into_iter().chain([
        "hunyuan_image.diffusers",
        "hunyuan_image.original",
        "sana.diffusers",
        "sana.original",
    ]) {
        let mut shapes = key_list(list);
        shapes.insert("encoder.something.else".to_owned(), vec![1]);
        shapes.insert("scale_factor".to_owned(), vec![1]);
        let names = translate("x.safetensors", &shapes).expect(list);
        assert_eq!(names.written.len(), key_list(list).len());
        assert_eq!(names.strange_in_encoder, ["encoder.something.else"]);
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
    let cases: [(&[&str], Option<&str>); 12] = [
        (&["conditioner.embedders.0.transformer.x"], None),
        (&["conditioner.embedders.1.model.x"], Some("sdxl")),
        (&["conditioner.embedders.0.model.ln_final.weight/1280"], Some("sdxl")),
        (&["conditioner.embedders.0.model.ln_final.weight/1024"], Some("sd21")),
        (&["conditioner.embedders.0.model.ln_final.weight/768"], None),
        (&["conditioner.embedders.1.model.x", "edm_mean"], Some("playground")),
        (&["cond_stage_model.transformer.text_model.x"], Some("sd15")),
        (&["cond_stage_model.model.positional_embedding"], Some("sd21")),
        (&["model.diffusion_model.joint_blocks.0.x"], Some("sd3")),
        (&["model.diffusion_model.double_blocks.0.x"], Some("flux1")),
        (&["decoder.conv_in.weight"], None),
        (&[], None),
    ];
    for (names, family) in cases {
        let shape_of = |name: &&str| match name.split_once('/') {
            Some((name, width)) => (name.to_owned(), vec![width.parse().expect("a number")]),
            None => ((*name).to_owned(), vec![3]),
        };
        assert_eq!(family_hint(&names.iter().map(shape_of).collect()), family, "{names:?}");
    }
}

/// Names similar to a VAE's, with numbers of any size.
const ALMOST: &str = "(first_stage_model\\.|vae\\.|taesd_)?(encoder|decoder|bn)\\.(up|down|up_blocks|mid|upsamples|middle|layers)\\.\
    ([0-9]{1,22}|block_1)\\.(block|resnets|conv1|residual|conv|resample)\\.[0-9]{1,3}\\.?(conv1|nin_shortcut)?\\.(weight|bias|gamma)";

proptest! {
    #[test]
    fn never_panics(names in proptest::collection::btree_set(ALMOST, 0..6)) {
        let shapes: Shapes = names.into_iter().map(|name| (name, vec![1, 1, 1, 1])).collect();
        let _ = translate("x", &shapes);
    }
}
