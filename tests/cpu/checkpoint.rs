//! Opening of checkpoints: single files, folders, shards, all-in-one files, and files that must
//! give errors.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pollster::block_on;
use serde_json::{Value, json};
use test_kit::hollow::{Hollow, key_list};
use test_kit::{formula, repository};
use wgvae::config::{AutoencoderConfig, Family, Network, OwnLatents, PaddingMode};
use wgvae::files::{ByteSource, FileSource, LatentScale, Layout, MemorySource, Parameters, Variant};
use wgvae::internals::safetensors::write_safetensors;
use wgvae::{Checkpoint, Error, HostTensor, LatentSpace};

use crate::key_lists;

/// Files of a folder: name -> content.
type Files<'a> = Vec<(&'a str, &'a [u8])>;

fn open_hollow(tensors: &BTreeMap<String, Vec<u64>>) -> Checkpoint {
    key_lists::open(tensors).expect("a VAE")
}

/// Returns a decoder of one level, with 32 channels and 4 latent channels, and its config.json.
fn tiny() -> (BTreeMap<String, HostTensor>, String) {
    let mut tensors = BTreeMap::new();
    let mut add = |name: &str, shape: &[usize]| {
        let elements = shape.iter().product::<usize>();
        let data = (0..elements).map(|index| f32::from(u8::try_from(index % 100).expect("small")) / 8.0).collect();
        tensors.insert(name.to_owned(), HostTensor { shape: shape.to_vec(), data });
    };
    add("post_quant_conv.weight", &[4, 4, 1, 1]);
    add("decoder.conv_in.weight", &[32, 4, 3, 3]);
    add("decoder.conv_in.bias", &[32]);
    for resnet in ["mid_block.resnets.0", "up_blocks.0.resnets.0", "up_blocks.0.resnets.1"] {
        add(&format!("decoder.{resnet}.conv1.weight"), &[32, 32, 3, 3]);
    }
    add("decoder.mid_block.attentions.0.to_q.weight", &[32, 32, 1, 1]);
    add("decoder.conv_out.weight", &[3, 32, 3, 3]);
    let config = r#"{"_class_name": "AutoencoderKL", "block_out_channels": [32], "up_block_types": ["UpDecoderBlock2D"],
        "layers_per_block": 1, "latent_channels": 4, "scaling_factor": 0.5}"#;
    (tensors, config.to_owned())
}

fn file_of(tensors: &BTreeMap<String, HostTensor>) -> Vec<u8> {
    let borrowed: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    write_safetensors(&borrowed).expect("writable tensors")
}

pub(crate) fn open_memory(tensors: &BTreeMap<String, HostTensor>, config: Option<&str>) -> wgvae::Result<Checkpoint> {
    block_on(Checkpoint::from_source(Box::new(MemorySource::new("tiny.safetensors", file_of(tensors))), config))
}

fn open(path: &Path) -> wgvae::Result<Checkpoint> {
    block_on(Checkpoint::open(path))
}

#[test]
fn describes_published_models() {
    let sd = Parameters { encoder: 34_163_592, decoder: 49_490_179, total: 83_653_863 };
    let flux = Parameters { encoder: 34_274_208, decoder: 49_545_475, total: 83_819_683 };
    let cogview = Parameters { encoder: 172_443_808, decoder: 233_656_835, total: 406_100_643 };
    let cases = [
        ("sd15.diffusers", Layout::Diffusers, sd),
        ("sd15.ldm", Layout::Ldm, sd),
        ("flux1.ae_safetensors", Layout::Ldm, flux),
        ("cogview4.ldm", Layout::Ldm, cogview),
    ];
    for (list, layout, parameters) in cases {
        let keys = key_list(list);
        let checkpoint = open_hollow(&keys);
        assert_eq!(checkpoint.layout(), layout, "{list}");
        assert_eq!(checkpoint.parameters(), parameters, "{list}");
        assert_eq!(checkpoint.names().count(), keys.len(), "{list}");
        assert!(checkpoint.has_encoder(), "{list}");
        let types: Vec<_> =
            checkpoint.element_types().into_iter().map(|(name, count)| (name.to_string(), count)).collect();
        assert_eq!(types, [("F16".to_owned(), keys.len())], "{list}");
    }
}

#[test]
fn reads_weights_of_an_ldm_file_under_their_diffusers_names() {
    let checkpoint = open_hollow(&key_list("sd15.ldm"));
    let name = "decoder.mid_block.attentions.0.to_q.weight";
    let stored = checkpoint.tensor(name).expect("there");
    assert_eq!(
        (stored.file_name.as_str(), stored.info.shape.as_slice()),
        ("decoder.mid.attn_1.q.weight", [512, 512, 1, 1].as_slice())
    );
    for shape in [[512, 512].as_slice(), &[512, 512, 1], &[512, 512, 1, 1]] {
        assert_eq!(block_on(checkpoint.read_f32(name, shape)).expect("zeros").len(), 512 * 512);
    }
}

#[test]
fn the_scale_is_known_only_with_evidence() {
    let known = |checkpoint: &Checkpoint| matches!(checkpoint.scale(), LatentScale::Known { .. });
    let checkpoint = open_hollow(&key_list("sd15.diffusers"));
    assert_eq!(checkpoint.scale(), &LatentScale::Unknown { candidates: vec!["sd15", "sd21", "sdxl", "playground"] });
    let text = checkpoint.scaled_config().expect_err("unknown").to_string();
    assert!(text.contains("sd15, sd21, sdxl, playground"), "{text}");
    assert_eq!(checkpoint.config().scaling_factor, 1.0);

    let checkpoint = checkpoint.with_family("sdxl").expect("fits");
    assert!(known(&checkpoint));
    assert_eq!(checkpoint.scaled_config().expect("known").scaling_factor, 0.13025);
    let text = checkpoint.with_family("flux1").expect_err("16 latent channels").to_string();
    assert!(text.contains("16 latent channels"), "{text}");
    assert!(open_hollow(&key_list("sd3.ldm")).with_family("sd5").is_err());

    let cogview = open_hollow(&key_list("cogview4.diffusers"));
    assert!(known(&cogview));
    assert_eq!(cogview.config().scaling_factor, 1.0);
}

#[test]
fn families_of_another_network_are_refused_with_those_that_fit() {
    let refuse = |list: &str, family: &str, wanted: &str| {
        let text = open_hollow(&key_list(list)).with_family(family).expect_err("another network").to_string();
        assert!(text.contains(&format!("family \"{family}\"")) && text.ends_with(wanted), "{text}");
    };
    let tiny =
        "AutoencoderTiny with 4 latent channels): one of taesd, taesdxl, found AutoencoderKL with 4 latent channels";
    refuse("taesd.diffusers", "sdxl", tiny);
    let kl = "one of sd3, flux1, z_image, cogview4, found AutoencoderKLWan with 16 latent channels";
    refuse("flux1.diffusers", "wan21", kl);
    refuse(
        "wan21.original",
        "seedvr2",
        "one of qwen_image, wan21, wan21_upscale2x, lightvaew2_1, found SeedVR with 16 latent channels",
    );
}

#[test]
fn families_whose_latents_mean_the_same_need_no_choice() {
    for (list, from) in [
        ("taesd.diffusers", "the shapes: family taesd or taesdxl"),
        ("taesd.upstream_decoder", "the shapes: family taesd or taesdxl"),
        ("taef1.diffusers", "the shapes: family taesd3 or taef1"),
        ("qwen_image.diffusers", "the shapes: family qwen_image or wan21"),
        ("wan21.original", "the shapes: family qwen_image or wan21"),
        ("qwen2d.original", "the shapes: family qwen_image or wan21"),
        ("wan21_upscale2x.original", "the shapes: family wan21_upscale2x"),
        ("lightvaew2_1.original", "the shapes: family lightvaew2_1"),
        ("taef2.upstream_decoder", "the shapes: family taef2"),
        ("taeqi2_1.upstream_decoder", "the shapes: family taeqi2_1"),
        ("taehv1_5.upstream", "the shapes: family taehv1_5"),
        ("taeh3.upstream", "the shapes: family taeh3"),
        ("taeltx2_3.upstream", "the shapes: family taeltx_2 or taeltx2_3"),
        ("seedvr2.original", "the shapes: family seedvr2"),
        ("flux2.bfl", "the shapes: family flux2"),
        ("flux2_small_decoder.diffusers", "the shapes: family flux2_small_decoder"),
    ] {
        let checkpoint = open_hollow(&key_list(list));
        assert_eq!(checkpoint.scale(), &LatentScale::Known { from: from.to_owned() }, "{list}");
        checkpoint.scaled_config().expect(list).validate().expect(list);
    }
    assert_eq!(open_hollow(&key_list("taef2.upstream_decoder")).config().model_channels(), 128);
    assert_eq!(open_hollow(&key_list("seedvr2.original")).config().scaling_factor, 0.9152);
}

/// Weights of Wan 2.1's network exist with filters over time and without, for the same config.json.
#[test]
fn files_tell_whether_filters_reach_over_frames() {
    for (list, has_time) in [("qwen2d.original", false), ("wan21.original", true)] {
        for family in ["qwen_image", "wan21"] {
            let file = Hollow::new(&key_list(list), json!({}), None);
            let folder = repository().join("tests/fixtures/configs");
            let json = std::fs::read_to_string(folder.join(format!("{family}.json"))).expect("a config");
            let checkpoint = block_on(Checkpoint::from_source(Box::new(file), Some(&json))).expect(list);
            assert_eq!(checkpoint.config().has_time(), has_time, "{list}");
            let checkpoint = open_hollow(&key_list(list)).with_family(family).expect(list);
            assert_eq!(checkpoint.config().has_time(), has_time, "{list}");
            checkpoint.check_decoder().expect(list);
        }
    }
}

/// Opens the decoder of a tiny autoencoder with few channels, in a file of this name with more
/// tensors.
fn tiny_decoder(name: &str, latents: usize, more: &[(&str, f32)]) -> wgvae::Result<Checkpoint> {
    let tensor =
        |shape: &[usize], value: f32| HostTensor { shape: shape.to_vec(), data: vec![value; shape.iter().product()] };
    let mut tensors = BTreeMap::from([
        ("taesd_decoder.1.weight".to_owned(), tensor(&[8, latents, 3, 3], 0.1)),
        ("taesd_decoder.3.conv.0.weight".to_owned(), tensor(&[8, 8, 3, 3], 0.1)),
        ("taesd_decoder.4.weight".to_owned(), tensor(&[3, 8, 3, 3], 0.1)),
    ]);
    tensors.extend(more.iter().map(|(name, value)| ((*name).to_owned(), tensor(&[], *value))));
    block_on(Checkpoint::from_source(Box::new(MemorySource::new(name, file_of(&tensors))), None))
}

fn stand_in(family: &str) -> OwnLatents {
    OwnLatents::stand_in_for(&Family::find(family).expect(family).config())
}

/// Tests that file names distinguish TAESD from TAESDXL, and TAESD3 from TAEF1, as in `ComfyUI`;
/// their shapes are equal.
#[test]
fn names_tell_which_vae_a_tiny_autoencoder_stands_in_for() {
    for (name, latents, vae) in [
        ("taesd_decoder.safetensors", 4, Some("sd15")),
        ("a/TAESDXL_decoder.safetensors", 4, Some("sdxl")),
        ("a/taesdxl/model.safetensors", 4, Some("sdxl")),
        ("a\\taesd\\model.safetensors", 4, Some("sd15")),
        ("a/models--madebyollin--taesdxl/snapshots/0a1b/model.safetensors", 4, Some("sdxl")),
        ("taesd3_decoder.safetensors", 16, Some("sd3")),
        ("taef1.safetensors", 16, Some("flux1")),
        ("taesd.safetensors", 16, None),
        ("taesd/a/model.safetensors", 4, None),
        ("model.safetensors", 4, None),
    ] {
        let checkpoint = tiny_decoder(name, latents, &[]).expect(name);
        assert_eq!(checkpoint.config().own_latents, vae.map_or(OwnLatents::Unknown, stand_in), "{name}");
        assert_eq!(checkpoint.check_space(LatentSpace::Vae).is_ok(), vae.is_some(), "{name}");
    }
    let text = tiny_decoder("model.safetensors", 16, &[])
        .expect("a VAE")
        .check_space(LatentSpace::Vae)
        .unwrap_err()
        .to_string();
    assert!(text.contains("taesd3, taef1") && text.contains("--family"), "{text}");
    let named = tiny_decoder("taesd.safetensors", 4, &[]).expect("a VAE").with_family("taesdxl").expect("fits");
    assert_eq!(named.config().own_latents, stand_in("sdxl"));
}

/// Files of TAEHV do not tell whose latents they take.
#[test]
fn taehv_needs_a_family() {
    for (list, wanted, names) in [
        ("taew2_1.upstream", "one of taehv, taecvx, taew2_1, lighttaew2_1 (", ["taew2_1", "lighttaew2_1"]),
        ("taew2_2.upstream", "one of taew2_2, lighttaew2_2 (", ["taew2_2", "lighttaew2_2"]),
    ] {
        let open = || open_hollow(&key_list(list));
        for space in [LatentSpace::Model, LatentSpace::Vae] {
            let text = open().check_space(space).expect_err("several").to_string();
            let wanted = if space == LatentSpace::Model { wanted } else { names[1] };
            assert!(text.contains(wanted) && !text.contains("name of the file"), "{text}");
        }
        for name in names {
            let named = open().with_family(name).expect("fits");
            for space in [LatentSpace::Model, LatentSpace::Vae] {
                named.check_space(space).expect("known");
            }
            assert_eq!(named.config().takes_own_latents(), name.starts_with("light"), "{name}");
        }
        let text = open().with_family("taesd3").expect_err("another network").to_string();
        assert!(text.contains("a family of the weights' kind (TAEHV"), "{text}");
    }
    // No name of a file or folder is taken for one: all files are in the repository taehv.
    for name in
        ["models--madebyollin--taehv/taecvx.safetensors", "taehv/taew2_1.safetensors", "lighttaew2_1.safetensors"]
    {
        let mut hollow = Hollow::new(&key_list("taew2_1.upstream"), json!({}), None);
        hollow.name = name;
        let named = block_on(Checkpoint::from_source(Box::new(hollow), None)).expect("a VAE");
        named.check_space(LatentSpace::Vae).expect_err("several");
    }
    let mut light = Hollow::new(&key_list("taehv1_5.upstream"), json!({}), None);
    light.name = "vae_approx/lighttaehy1_5.safetensors";
    let text = block_on(Checkpoint::from_source(Box::new(light), None)).expect_err("other activations").to_string();
    assert!(text.contains("lighttaehy1_5: its activations differ"), "{text}");
    // Its VAE's own latents have a scale among that VAE's weights.
    let ltx = open_hollow(&key_list("taeltx2_3.upstream"));
    ltx.check_space(LatentSpace::Model).expect("known");
    let text = ltx.check_space(LatentSpace::Vae).expect_err("unknown").to_string();
    assert!(text.contains("latents of the diffusion model, because"), "{text}");
}

#[test]
fn files_tell_which_vae_a_tiny_autoencoder_stands_in_for() {
    let numbers = |scale: f32, shift: f32| [("vae_scale", scale), ("vae_shift", shift)];
    let checkpoint = tiny_decoder("taesd.safetensors", 4, &numbers(0.5, 0.25)).expect("a VAE");
    let found = OwnLatents::StandIn { scaling_factor: 0.5, shift_factor: 0.25 };
    assert_eq!(checkpoint.config().own_latents, found);
    let text = tiny_decoder("taesd.safetensors", 4, &numbers(0.0, 0.0)).unwrap_err().to_string();
    assert!(text.contains("vae_scale") && text.contains("a positive number"), "{text}");

    let metadata = json!({ "modelspec.architecture": "stable-diffusion-xl-v1-base/vae" });
    let hollow = Hollow::new(&key_list("taesd.upstream_decoder"), metadata, None);
    let checkpoint = block_on(Checkpoint::from_source(Box::new(hollow), None)).expect("a VAE");
    assert_eq!(checkpoint.config().own_latents, stand_in("sdxl"));
}

/// The weights of LTX-2 show neither borders nor shortcuts, but the metadata of its checkpoints do.
#[test]
fn ltx2s_metadata_say_what_its_weights_do_not_show() {
    let open = |list: &str, config: &str| {
        let hollow =
            Hollow::new(&key_list(list), json!({ "config": config }), Some(|_, _, range| vec![1.0; range.count()]));
        block_on(Checkpoint::from_source(Box::new(hollow), None))
    };
    let network = |list: &str, config: &str| match &open(list, config).expect("a VAE").config().network {
        Network::Ltx2(ltx2) => (ltx2.upsample_residual.clone(), ltx2.decoder_reflects),
        other => panic!("{}", other.name()),
    };
    let vae = |vae: Value| json!({ "vae": vae }).to_string();
    // Other entries of this name count for nothing, and borders are mirrored if nothing is said.
    assert_eq!(network("ltx2.original", "another tool's text"), (vec![true; 3], true));
    assert_eq!(network("ltx2_3.original", "{}"), (vec![false; 4], false));
    assert_eq!(network("ltx2_3.original", &vae(json!({}))), (vec![false; 4], true));
    for (mode, reflects) in [("zeros", false), ("reflect", true)] {
        let own = json!({ "encoder_spatial_padding_mode": "zeros", "decoder_spatial_padding_mode": mode });
        assert_eq!(network("ltx2_3.original", &vae(own)).1, reflects);
    }
    let both = json!({ "spatial_padding_mode": "zeros", "decoder_spatial_padding_mode": "reflect" });
    assert_eq!(network("ltx2.original", &vae(both)), (vec![true; 3], false));
    let blocks = |residual: [bool; 3]| {
        let change = |residual: bool| json!(["compress_all", { "residual": residual, "multiplier": 2 }]);
        let resnets = || json!(["res_x", { "num_layers": 5 }]);
        json!({ "decoder_blocks": residual.into_iter().flat_map(|one| [resnets(), change(one)]).collect::<Vec<Value>>() })
    };
    // They are listed from the picture down.
    assert_eq!(network("ltx2.original", &vae(blocks([false, true, true]))).0, [true, true, false]);
    // Parsed, many small parts would take a hundred times their length in memory.
    let long = vae(json!({ "decoder_blocks": vec![0; 200_000] }));
    let error = open("ltx2.original", &long).expect_err("too long").to_string();
    assert!(error.contains("expected at most 262144 bytes, found 400"), "{error}");
    for (list, stated, wanted) in [
        ("ltx2_3.original", blocks([true; 3]), ["decoder_blocks", "4 size changes"]),
        ("ltx2.original", json!({ "causal_decoder": true }), ["causal_decoder", "false"]),
        ("ltx2.original", json!({ "timestep_conditioning": true }), ["timestep_conditioning", "false"]),
        ("ltx2.original", json!({ "norm_layer": "group_norm" }), ["norm_layer", "pixel_norm"]),
        (
            "ltx2.original",
            json!({ "spatial_padding_mode": "circular" }),
            ["spatial_padding_mode", "\"zeros\" or \"reflect\""],
        ),
        (
            "ltx2.original",
            json!({ "encoder_spatial_padding_mode": "reflect" }),
            ["encoder_spatial_padding_mode", "zeros"],
        ),
        // The encoder would mirror, too.
        ("ltx2.original", json!({ "spatial_padding_mode": "reflect" }), ["spatial_padding_mode", "zeros"]),
    ] {
        let text = open(list, &vae(stated)).expect_err("another network").to_string();
        assert!(wanted.iter().all(|words| text.contains(words)), "{text}");
    }
}

/// The weights of `AutoencoderKL` do not show borders either. The caller goes before config.json,
/// and that before the metadata.
#[test]
fn borders_are_as_the_metadata_the_config_or_the_caller_say() {
    let open = |mode: &str, config: Option<&str>| {
        let metadata = json!({ "padding_mode": mode });
        block_on(Checkpoint::from_source(Box::new(Hollow::new(&key_list("sd15.diffusers"), metadata, None)), config))
    };
    let mode = |checkpoint: &Checkpoint| checkpoint.config().network.kl().expect("an AutoencoderKL").padding_mode;
    let stated = open("reflect", None).expect("a VAE");
    assert_eq!(mode(&stated), PaddingMode::Reflect);
    let stated = stated.with_family("sdxl").expect("fits");
    assert_eq!(mode(&stated), PaddingMode::Reflect);
    assert_eq!(mode(&stated.with_border(PaddingMode::Zeros).expect("an AutoencoderKL")), PaddingMode::Zeros);
    let text = open("mirror", None).expect_err("unknown").to_string();
    assert!(text.contains("\"padding_mode\": expected one of zeros, reflect"), "{text}");

    let mut config: Value = serde_json::from_str(include_str!("../fixtures/configs/sd15.json")).expect("JSON");
    assert_eq!(mode(&open("reflect", Some(&config.to_string())).expect("a VAE")), PaddingMode::Zeros);
    config["padding_mode"] = json!("replicate");
    assert_eq!(mode(&open("reflect", Some(&config.to_string())).expect("a VAE")), PaddingMode::Replicate);
}

#[test]
fn weights_of_zeros_alone_are_refused_where_all_latents_pass() {
    let (mut tensors, config) = tiny();
    tensors.get_mut("post_quant_conv.weight").expect("there").data.fill(0.0);
    tensors.get_mut("decoder.conv_in.bias").expect("there").data.fill(0.0);
    let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
    let text = block_on(checkpoint.read_f32("post_quant_conv.weight", &[4, 4, 1, 1])).unwrap_err().to_string();
    assert!(text.contains("post_quant_conv.weight") && text.contains("another copy"), "{text}");
    block_on(checkpoint.read_f32("decoder.conv_in.bias", &[32])).expect("zeros are fine elsewhere");
}

#[test]
fn both_of_taesds_own_files_are_one_model() {
    let half = |list: &str| -> Box<dyn ByteSource> { Box::new(Hollow::new(&key_list(list), json!({}), None)) };
    for (model, first) in [("taesd", 0), ("taef2", 0), ("taeqi2_1", 1), ("taesana", 0)] {
        let halves = ["encoder", "decoder"].map(|name| half(&format!("{model}.upstream_{name}")));
        let checkpoint = block_on(Checkpoint::from_sources(halves.into(), None)).expect("a VAE");
        assert!(checkpoint.has_encoder() && checkpoint.has_decoder());
        // The tensor's name in the file, and in diffusers.
        assert_eq!(checkpoint.tensor("decoder.layers.0.weight").expect("there").file_name, "1.weight");
        let name = format!("{first}.weight");
        assert_eq!(checkpoint.tensor(&format!("encoder.layers.{name}")).expect("there").file_name, name);
    }
    let twice = vec![half("taesd.upstream_decoder"), half("taesd.upstream_decoder")];
    let text = block_on(Checkpoint::from_sources(twice, None)).expect_err("the same half").to_string();
    assert!(text.contains("tensor \"1.bias\" is in hollow.safetensors too"), "{text}");
}

/// Returns a decoder whose latents are normalised by a batch norm among the weights, and its
/// config.json.
fn batch_normed() -> (BTreeMap<String, HostTensor>, String) {
    let config = r#"{"_class_name": "AutoencoderKLFlux2", "block_out_channels": [32], "layers_per_block": 1, "latent_channels": 2,
        "down_block_types": ["DownEncoderBlock2D"], "up_block_types": ["UpDecoderBlock2D"]}"#;
    let mut tensors = formula::decoder(&AutoencoderConfig::from_json(config).expect("a config"));
    for name in ["bn.running_mean", "bn.running_var"] {
        tensors.insert(name.to_owned(), formula::weight(name, &[8]));
    }
    tensors.insert("bn.num_batches_tracked".to_owned(), HostTensor { shape: vec![], data: vec![7.0] });
    (tensors, config.to_owned())
}

#[test]
fn statistics_of_latents_are_read_from_the_weights() {
    let (tensors, config) = batch_normed();
    let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
    let config = checkpoint.scaled_config().expect("stated");
    let mean = tensors["bn.running_mean"].data.iter().map(|&mean| f64::from(mean)).collect();
    assert_eq!(config.latents_mean, Some(mean));
    let std = tensors["bn.running_var"].data.iter().map(|variance| f64::from((variance + 1e-4).sqrt())).collect();
    assert_eq!(config.latents_std, Some(std));
    assert_eq!(checkpoint.names().filter(|name| name.starts_with("bn.")).count(), 2);
}

#[test]
fn bad_statistics_of_latents_are_refused_by_name() {
    let refusal = |change: &dyn Fn(&mut BTreeMap<String, HostTensor>)| {
        let (mut tensors, config) = batch_normed();
        change(&mut tensors);
        open_memory(&tensors, Some(&config)).expect_err("bad statistics").to_string()
    };
    for name in ["bn.running_mean", "bn.running_var"] {
        let text = refusal(&|tensors| drop(tensors.remove(name)));
        assert!(text.contains(&format!("1 missing tensor(s), first \"{name}\"")), "{text}");
        let text = refusal(&|tensors| drop(tensors.insert(name.to_owned(), formula::weight(name, &[9]))));
        assert_eq!(text, format!("tensor \"{name}\": expected shape [8], found [9]"));
        let text = refusal(&|tensors| tensors.get_mut(name).expect("there").data[3] = f32::NAN);
        assert!(text.contains(&format!("tensor \"{name}\": expected finite values")), "{text}");
    }
    let text = refusal(&|tensors| tensors.get_mut("bn.running_var").expect("there").data[3] = -1.0);
    assert_eq!(text, "tensor \"bn.running_var\": expected variances of 0 or more, found -1 at element 3");
    let text = refusal(&|tensors| tensors.retain(|name, _| !name.starts_with("bn.")));
    assert!(text.contains("2 missing tensor(s), first \"bn.running_mean\""), "{text}");
}

#[test]
fn without_its_statistics_flux2_decodes_its_own_latents() {
    let mut keys = key_list("flux2.diffusers");
    keys.retain(|name, _| !name.starts_with("bn."));
    let checkpoint = open_hollow(&keys);
    assert_eq!(checkpoint.scale(), &LatentScale::Unknown { candidates: vec!["flux2"] });
    assert_eq!(checkpoint.config().patch, 1);
    let text = checkpoint.with_family("flux2").expect_err("no statistics").to_string();
    assert!(text.contains("2 missing tensor(s), first \"bn.running_mean\""), "{text}");
}

#[test]
fn all_in_one_files_tell_the_scale() {
    let cases = [
        ("sd15.ldm", "first_stage_model.", "conditioner.embedders.1.model.x", 0.13025, None),
        ("sd15.ldm", "first_stage_model.", "cond_stage_model.transformer.x", 0.18215, None),
        ("sd15.ldm", "first_stage_model.", "cond_stage_model.model.x", 0.18215, None),
        ("sd15.ldm", "first_stage_model.", "edm_mean", 0.5, None),
        ("sd3.ldm", "first_stage_model.", "model.diffusion_model.joint_blocks.0.x", 1.5305, Some(0.0609)),
        ("sd3.ldm", "vae.", "model.diffusion_model.double_blocks.0.x", 0.3611, Some(0.1159)),
    ];
    for (list, prefix, other, scaling_factor, shift_factor) in cases {
        let mut keys: BTreeMap<_, _> =
            key_list(list).into_iter().map(|(name, shape)| (format!("{prefix}{name}"), shape)).collect();
        keys.insert(other.to_owned(), vec![3]);
        let checkpoint = open_hollow(&keys);
        let config = checkpoint.scaled_config().expect(other);
        assert_eq!((config.scaling_factor, config.shift_factor), (scaling_factor, shift_factor), "{other}");
        assert_eq!(config.latents_mean.is_some(), other == "edm_mean");
        assert_eq!(checkpoint.names().count(), keys.len() - 1, "{other}");
    }
    // A hint that contradicts the shapes does not count.
    let mut keys = key_list("sd15.ldm");
    keys.insert("model.diffusion_model.joint_blocks.0.x".to_owned(), vec![3]);
    assert!(open_hollow(&keys).scaled_config().is_err());
}

/// A header of 100 MB has a million names. Searching all of them for each would take hours.
#[test]
fn many_levels_are_refused_at_once() {
    for (list, level) in [
        ("sd15.diffusers", "decoder.up_blocks.N.resnets.0.conv1.weight"),
        ("taesd.diffusers", "decoder.layers.N.conv.0.weight"),
        ("ltx2.diffusers", "decoder.up_blocks.N.resnets.0.conv1.conv.weight"),
        ("hunyuan_image.diffusers", "decoder.up_blocks.N.conv1.weight"),
        ("sana.diffusers", "decoder.up_blocks.N.1.conv1.weight"),
        ("sana.diffusers", "decoder.up_blocks.4.1.attn.to_qkv_multiscale.N.proj_in.weight"),
    ] {
        let mut keys = key_list(list);
        keys.extend(
            (0..30_000).map(|number| (level.replace('N', &number.to_string()), vec![32 * (number + 1), 8, 3, 3])),
        );
        let error = key_lists::open(&keys).expect_err(level).to_string();
        assert!(error.starts_with("config field"), "{level}: {error}");
    }
}

#[test]
fn metadata_tells_the_scale() {
    let cases = [
        ("sd15.ldm", "stable-diffusion-xl-v1-base/vae", Some(0.13025)),
        ("sd15.ldm", "flux-1-dev", None),
        ("sd3.ldm", "Flux-1-dev", Some(0.3611)),
    ];
    for (list, architecture, scaling_factor) in cases {
        let metadata = json!({"modelspec.architecture": architecture});
        let checkpoint =
            block_on(Checkpoint::from_source(Box::new(Hollow::new(&key_list(list), metadata, None)), None))
                .expect("a VAE");
        assert_eq!(
            checkpoint.scaled_config().ok().map(|config| config.scaling_factor),
            scaling_factor,
            "{architecture}"
        );
    }
}

#[test]
fn reads_exact_values() {
    let (tensors, config) = tiny();
    let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
    assert_eq!(checkpoint.scaled_config().expect("stated").scaling_factor, 0.5);
    assert_eq!(checkpoint.scale(), &LatentScale::Known { from: "config.json".to_owned() });
    for (name, tensor) in &tensors {
        let shape: Vec<u64> = tensor.shape.iter().map(|&extent| extent as u64).collect();
        assert_eq!(block_on(checkpoint.read_f32(name, &shape)).expect("values"), tensor.data, "{name}");
    }
    assert!(!checkpoint.has_encoder());
    assert_eq!(checkpoint.files().count(), 1);
}

#[test]
fn refuses_missing_and_misshapen_tensors() {
    let (tensors, config) = tiny();
    let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
    let conv_in = ("decoder.conv_in.weight", [32, 4, 3, 3].as_slice());
    checkpoint.check([conv_in]).expect("there");
    let error =
        checkpoint.check([("decoder.a", [1].as_slice()), conv_in, ("decoder.b", &[1])]).expect_err("two are missing");
    assert_eq!(error.to_string(), "tiny.safetensors: 2 missing tensor(s), first \"decoder.a\"");
    assert!(matches!(block_on(checkpoint.read_f32("decoder.a", &[1])), Err(Error::MissingTensors { .. })));

    for shape in [[32, 4, 3].as_slice(), &[32, 4, 3, 1], &[32, 4, 9], &[1, 32, 4, 3, 3], &[4, 32, 3, 3], &[]] {
        let text = block_on(checkpoint.read_f32(conv_in.0, shape)).expect_err("misshapen").to_string();
        assert_eq!(text, format!("tensor \"decoder.conv_in.weight\": expected shape {shape:?}, found [32, 4, 3, 3]"));
    }
}

#[test]
fn refuses_values_that_are_not_finite() {
    for (bad, printed) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let (mut tensors, config) = tiny();
        tensors.get_mut("decoder.conv_out.weight").expect("there").data[77] = bad;
        let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
        let text = block_on(checkpoint.read_f32("decoder.conv_out.weight", &[3, 32, 3, 3]))
            .expect_err("not finite")
            .to_string();
        assert_eq!(
            text,
            format!("tensor \"decoder.conv_out.weight\": expected finite values, found {printed} at element 77")
        );
    }
}

#[test]
fn refuses_integers_as_weights() {
    let (tensors, config) = tiny();
    let bytes = file_of(&tensors);
    let header_bytes = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().expect("eight"))).expect("small");
    let header = String::from_utf8(bytes[8..8 + header_bytes].to_vec()).expect("JSON").replace("F32", "I32");
    let bytes = [&bytes[..8], header.as_bytes(), &bytes[8 + header_bytes..]].concat();
    let source = Box::new(MemorySource::new("quantised", bytes));
    let checkpoint = block_on(Checkpoint::from_source(source, Some(&config))).expect("listed");
    let text = block_on(checkpoint.read_f32("decoder.conv_in.bias", &[32])).expect_err("integers").to_string();
    assert_eq!(text, "tensor \"decoder.conv_in.bias\": expected elements of type F32, F16 or BF16, found I32");
}

#[test]
fn refuses_a_config_of_another_network() {
    let (tensors, config) = tiny();
    for (from, to, field) in [
        ("\"latent_channels\": 4", "\"latent_channels\": 16", "latent_channels"),
        ("[32]", "[64]", "block_out_channels"),
    ] {
        let text = open_memory(&tensors, Some(&config.replace(from, to))).expect_err("does not fit").to_string();
        assert!(text.starts_with(&format!("config field \"{field}\"")), "{text}");
    }
    assert!(open_memory(&tensors, Some("{}")).is_err());
    // No published model has these shapes, so only a config.json can tell the scale.
    let text = open_memory(&tensors, None).expect("a VAE").scaled_config().expect_err("unknown").to_string();
    assert!(text.contains("no published model has these shapes"), "{text}");
}

/// Writes files into a new folder.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    folder
}

fn folder_refusal(files: &[(&str, &[u8])], variant: Variant) -> String {
    block_on(Checkpoint::open_variant(folder(files).path(), variant)).expect_err("must be refused").to_string()
}

#[test]
fn a_config_beside_a_file_with_diffusers_name_must_be_a_vaes() {
    let weights = file_of(&tiny().0);
    let name = "diffusion_pytorch_model.safetensors";
    for config in [br#"{"_class_name": "UNet2DConditionModel"}"#.as_slice(), b"{"] {
        let folder = folder(&[(name, &weights), ("config.json", config)]);
        let opened = block_on(Checkpoint::open_variant(&folder.path().join(name), Variant::default()));
        let error = opened.expect_err("must be refused").to_string();
        assert!(error.contains("config"), "{error}");
    }
}

#[test]
fn opens_files_and_folders() {
    let (tensors, config) = tiny();
    let (weights, config) = (file_of(&tensors), config.as_bytes());
    let plain = "diffusion_pytorch_model.safetensors";
    let fp16 = "diffusion_pytorch_model.fp16.safetensors";
    let in_vae = format!("vae/{plain}");
    let other = br#"{"_class_name": "UNet2DConditionModel"}"#.as_slice();
    let cases: [(&str, Files<'_>, &str, bool); 8] = [
        ("a VAE's folder", vec![(plain, &weights), ("config.json", config)], "", true),
        ("only fp16", vec![(fp16, &weights), ("config.json", config)], "", true),
        ("a pipeline", vec![(&in_vae, &weights), ("vae/config.json", config), ("model_index.json", b"{}")], "", true),
        ("part of a pipeline", vec![(&in_vae, &weights), ("vae/config.json", config)], "", true),
        ("another name", vec![("my.safetensors", &weights), ("config.json", config)], "", true),
        ("a file", vec![("my.safetensors", &weights)], "my.safetensors", false),
        (
            "a file beside its config",
            vec![("my.safetensors", &weights), ("config.json", config)],
            "my.safetensors",
            true,
        ),
        (
            "a file beside another config",
            vec![("my.safetensors", &weights), ("config.json", other)],
            "my.safetensors",
            false,
        ),
    ];
    for (case, files, path, scaled) in cases {
        let folder = folder(&files);
        let checkpoint = open(&folder.path().join(path)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(checkpoint.scaled_config().is_ok(), scaled, "{case}");
        let bias = block_on(checkpoint.read_f32("decoder.conv_in.bias", &[32])).expect(case);
        assert_eq!(bias, tensors["decoder.conv_in.bias"].data, "{case}");
    }
}

#[test]
fn a_folder_may_hold_the_two_halves_of_a_model() {
    let file = |shapes: &[(&str, &[usize])]| {
        let zeros = |shape: &[usize]| HostTensor { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] };
        file_of(&shapes.iter().map(|(name, shape)| ((*name).to_owned(), zeros(shape))).collect())
    };
    let encoder: [(&str, &[usize]); 3] =
        [("0.weight", &[8, 3, 3, 3]), ("1.conv.0.weight", &[8, 8, 3, 3]), ("2.weight", &[4, 8, 3, 3])];
    let decoder: [(&str, &[usize]); 3] =
        [("1.weight", &[8, 4, 3, 3]), ("3.conv.0.weight", &[8, 8, 3, 3]), ("4.weight", &[3, 8, 3, 3])];
    let files = [("my_encoder.safetensors", file(&encoder)), ("my_decoder.safetensors", file(&decoder))];
    let halves = folder(&files.each_ref().map(|(name, bytes)| (*name, bytes.as_slice())));
    let checkpoint = open(halves.path()).expect("a VAE in two files");
    assert!(checkpoint.has_encoder() && checkpoint.has_decoder());
    let checkpoint = open(&halves.path().join("my_decoder.safetensors")).expect("a decoder");
    assert!(!checkpoint.has_encoder() && checkpoint.has_decoder());
}

/// Writes weights and `config` into a folder of their own, and opens the weights under `name`.
fn open_beside(weights: &[u8], name: &str, config: &str) -> wgvae::Result<Checkpoint> {
    let folder = folder(&[(name, weights), ("config.json", config.as_bytes())]);
    open(&folder.path().join(name))
}

/// Names of one file of a model in diffusers' folders.
const STANDARD: [&str; 2] = ["diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.fp16.safetensors"];

#[test]
fn no_sources_are_an_error() {
    let error = block_on(Checkpoint::from_sources(Vec::new(), None)).unwrap_err().to_string();
    assert_eq!(error, "sources: expected a .safetensors file, or all shards of one, found none");
}

#[test]
fn a_config_of_another_model_beside_a_file_is_passed_over() {
    let (tensors, config) = tiny();
    let weights = file_of(&tensors);
    let wider = config.replace("[32]", "[64]");
    let unreadable = config.replace("0.5", "\"half\"");
    for config in [&wider, &unreadable] {
        for name in ["my.safetensors", "diffusion_pytorch_model (1).safetensors"] {
            assert!(open_beside(&weights, name, config).expect("a VAE").scaled_config().is_err(), "{name}");
        }
    }
    // The files of a folder of diffusers belong together, whether the folder or a file is named.
    for name in STANDARD {
        let text = open_beside(&weights, name, &wider).expect_err("another network").to_string();
        let wanted =
            "config field \"block_out_channels\": expected [32], as the weights have, found [64] from config.json";
        assert_eq!(text, wanted);
        let text = open_beside(&weights, name, &unreadable).expect_err("no number").to_string();
        assert!(text.starts_with("config field \"scaling_factor\""), "{text}");
    }
    let folder = folder(&[("my.safetensors", &weights), ("config.json", wider.as_bytes())]);
    assert!(open(folder.path()).is_err());
}

#[test]
fn a_file_that_does_not_open_alone_opens_with_the_config_beside_it() {
    let (mut tensors, config) = tiny();
    // The usual 32 groups do not divide 48 channels.
    for tensor in tensors.values_mut() {
        tensor.shape.iter_mut().filter(|extent| **extent == 32).for_each(|extent| *extent = 48);
        tensor.data = vec![0.0; tensor.shape.iter().product()];
    }
    let config = config.replace("[32]", "[48], \"norm_num_groups\": 16");
    let weights = file_of(&tensors);
    let alone = folder(&[("my.safetensors", &weights)]);
    let text = open(&alone.path().join("my.safetensors")).expect_err("unknown groups").to_string();
    assert!(text.contains("norm_num_groups"), "{text}");
    for name in ["my.safetensors", STANDARD[0]] {
        let checkpoint = open_beside(&weights, name, &config).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Network::Kl(kl) = &checkpoint.config().network else { panic!("{name}: another network") };
        assert_eq!((kl.norm_num_groups, checkpoint.config().scaling_factor), (16, 0.5), "{name}");
    }
    // Without a config that fits, the error is that of the file alone.
    let text = open_beside(&weights, "my.safetensors", &config.replace("[48]", "[64]")).expect_err("alone").to_string();
    assert!(text.contains("norm_num_groups"), "{text}");
}

/// Opens the weights of a published model under `name` beside `config`. Their values are missing.
/// The folder is an Ideogram 4 pipeline's, which only matters to FLUX.2's VAE.
fn open_published_beside(list: &str, metadata: Value, name: &str, config: &Value) -> Checkpoint {
    let hollow = Hollow::new(&key_list(list), metadata, None);
    let length = u64::from_le_bytes(block_on(hollow.read_at(0, 8)).expect("a length").try_into().expect("eight"));
    let header = block_on(hollow.read_at(0, 8 + length)).expect("a header");
    let config = config.to_string();
    let pipeline = br#"{"_class_name": "Ideogram4Pipeline"}"#;
    let name = format!("vae/{name}");
    let config = [("vae/config.json", config.as_bytes()), ("model_index.json", pipeline.as_slice())];
    let folder = folder(&[&[(name.as_str(), header.as_slice())], &config[..]].concat());
    let path = folder.path().join(&name);
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.set_len(hollow.len()).expect("a sparse file");
    open(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_config_beside_a_file_adds_what_the_weights_do_not_tell() {
    let config = |text| serde_json::from_str::<Value>(text).expect("JSON");
    let (mut cogview, sdxl) = (
        config(include_str!("../fixtures/configs/cogview4.json")),
        config(include_str!("../fixtures/configs/sdxl.json")),
    );
    let mode = |checkpoint: &Checkpoint| checkpoint.config().network.kl().expect("an AutoencoderKL").padding_mode;
    let factor = |checkpoint: &Checkpoint| checkpoint.scaled_config().expect("a scale").scaling_factor;

    // The shapes tell CogView4's scale, but not the borders.
    cogview["padding_mode"] = json!("reflect");
    let open = |name, config: &Value| open_published_beside("cogview4.diffusers", json!({}), name, config);
    let checkpoint = open("my.safetensors", &cogview);
    assert_eq!((factor(&checkpoint), mode(&checkpoint)), (1.0, PaddingMode::Reflect));
    cogview["scaling_factor"] = json!(0.5);
    let checkpoint = open("my.safetensors", &cogview);
    assert_eq!((factor(&checkpoint), mode(&checkpoint)), (1.0, PaddingMode::Zeros));
    let checkpoint = open(STANDARD[0], &cogview);
    assert_eq!((factor(&checkpoint), mode(&checkpoint)), (0.5, PaddingMode::Reflect));

    // Here the metadata tell the borders, but nothing the scale.
    let metadata = json!({ "padding_mode": "reflect" });
    let open = |name| open_published_beside("sd15.diffusers", metadata.clone(), name, &sdxl);
    let checkpoint = open("eq.safetensors");
    assert_eq!((factor(&checkpoint), mode(&checkpoint)), (0.13025, PaddingMode::Reflect));
    assert_eq!(factor(&checkpoint.with_family("sd15").expect("fits")), 0.18215);
    assert_eq!(mode(&open(STANDARD[1])), PaddingMode::Zeros);

    // The shapes tell FLUX.2's scale, but not how Ideogram 4 packs its latents.
    let flux2 = config(include_str!("../fixtures/configs/flux2.json"));
    let packing = Family::find("ideogram4").expect("a family").config().packing;
    for name in ["ae.safetensors", STANDARD[0]] {
        let checkpoint = open_published_beside("flux2.diffusers", json!({}), name, &flux2);
        assert_eq!(checkpoint.config().packing, packing, "{name}");
    }
}

#[test]
fn chooses_the_variant() {
    let (mut tensors, config) = tiny();
    let plain = file_of(&tensors);
    tensors.get_mut("decoder.conv_in.bias").expect("there").data[0] = 99.0;
    let folder = folder(&[
        ("diffusion_pytorch_model.safetensors", &plain),
        ("diffusion_pytorch_model.fp16.safetensors", &file_of(&tensors)),
        ("config.json", config.as_bytes()),
    ]);
    for (variant, wanted) in [(Variant::Default, 0.0), (Variant::Fp16, 99.0)] {
        let checkpoint = block_on(Checkpoint::open_variant(folder.path(), variant)).expect("a VAE");
        assert_eq!(block_on(checkpoint.read_f32("decoder.conv_in.bias", &[32])).expect("values")[0], wanted);
    }
}

/// Returns the tiny model in two shards, and their index.
fn shards() -> ([(String, Vec<u8>); 2], String) {
    let (first, _) = tiny();
    let mut second = BTreeMap::new();
    let mut first = first;
    let tensor = first.remove_entry("decoder.conv_out.weight").expect("there");
    second.insert(tensor.0, tensor.1);
    let name = |index| format!("diffusion_pytorch_model-0000{index}-of-00002.safetensors");
    let in_first = first.keys().map(|tensor| (tensor.clone(), name(1).into()));
    let in_second = second.keys().map(|tensor| (tensor.clone(), name(2).into()));
    let map: serde_json::Map<String, serde_json::Value> = in_first.chain(in_second).collect();
    let index = json!({"metadata": {}, "weight_map": map}).to_string();
    ([(name(1), file_of(&first)), (name(2), file_of(&second))], index)
}

#[test]
fn opens_shards() {
    let (files, index) = shards();
    let (tensors, config) = tiny();
    let index_name = "diffusion_pytorch_model.safetensors.index.json";
    let folder = folder(&[
        (&files[0].0, &files[0].1),
        (&files[1].0, &files[1].1),
        (index_name, index.as_bytes()),
        ("config.json", config.as_bytes()),
        // As in diffusers, shards take precedence.
        ("diffusion_pytorch_model.safetensors", b"something else"),
    ]);
    let marked = "diffusion_pytorch_model.fp16.safetensors";
    std::fs::write(folder.path().join(format!("{marked}.index.json")), &index).expect("written");
    std::fs::write(folder.path().join(marked), b"something else").expect("written");
    assert!(block_on(Checkpoint::open_variant(folder.path(), Variant::Fp16)).is_ok());
    for path in [folder.path().to_owned(), folder.path().join(index_name)] {
        let checkpoint = open(&path).expect("a VAE in shards");
        assert_eq!(checkpoint.files().count(), 2);
        assert!(checkpoint.scaled_config().is_ok());
        let weights = block_on(checkpoint.read_f32("decoder.conv_out.weight", &[3, 32, 3, 3])).expect("values");
        assert_eq!(weights, tensors["decoder.conv_out.weight"].data);
    }
}

#[test]
fn refuses_bad_shards() {
    let (files, index) = shards();
    let index_name = "diffusion_pytorch_model.safetensors.index.json";
    let [first, second] = &files;
    let refusal = |files: &[(&str, &[u8])]| folder_refusal(files, Variant::Default);

    let text = refusal(&[(&first.0, &first.1), (index_name, index.as_bytes())]);
    assert!(text.contains(&format!("shard \"{}\" is missing", second.0)), "{text}");
    let text = refusal(&[(&first.0, &first.1), (&second.0, &first.1), (index_name, index.as_bytes())]);
    assert!(text.contains(" is in ") && text.contains(" too"), "{text}");
    for (index, wanted) in [
        ("[", "not a shard index"),
        ("{}", "it has no \"weight_map\""),
        (r#"{"weight_map": {}}"#, "is empty"),
        ("[{}]", "expected an object with a \"weight_map\""),
        (r#"{"weight_map": ["a.safetensors"]}"#, "expected an object of file names"),
        (r#"{"weight_map": {"a": 1}}"#, "invalid type: integer `1`, expected a string"),
        (r#"{"weight_map": {"a": "../a.safetensors"}}"#, "is not a plain file name"),
        (r#"{"weight_map": {"a": "/etc/hosts"}}"#, "is not a plain file name"),
        (r#"{"weight_map": {"a": ".."}}"#, "is not a plain file name"),
        (r#"{"weight_map": {"a": ""}}"#, "is not a plain file name"),
    ] {
        let text = refusal(&[(index_name, index.as_bytes())]);
        assert!(text.contains(wanted), "{index}: {text}");
    }
}

#[test]
fn refuses_folders_without_weights() {
    let (tensors, config) = tiny();
    let (weights, config) = (file_of(&tensors), config.as_bytes());
    let plain = "diffusion_pytorch_model.safetensors";
    let cases: [(&str, Files<'_>, Variant, &str); 8] = [
        ("empty", vec![], Variant::Default, "the folder is empty"),
        ("config only", vec![("config.json", config)], Variant::Default, "no .safetensors file in this folder"),
        (
            "pickle",
            vec![("diffusion_pytorch_model.bin", b"x"), ("config.json", config)],
            Variant::Default,
            "convert it to .safetensors",
        ),
        ("ckpt", vec![("model.ckpt", b"x")], Variant::Default, "weights_only=True"),
        ("several", vec![("a.safetensors", b"x"), ("b.safetensors", b"x")], Variant::Default, "2 .safetensors files"),
        (
            "no fp16",
            vec![(plain, &weights), ("config.json", config)],
            Variant::Fp16,
            "no diffusion_pytorch_model.fp16.safetensors",
        ),
        (
            "pipeline without VAE",
            vec![("model_index.json", b"{}"), ("unet/config.json", b"{}")],
            Variant::Default,
            "without a vae folder",
        ),
        (
            "another class",
            vec![(plain, &weights), ("config.json", b"{\"_class_name\": \"AutoencoderKLMochi\"}")],
            Variant::Default,
            "_class_name",
        ),
    ];
    for (case, files, variant, wanted) in cases {
        let text = folder_refusal(&files, variant);
        assert!(text.contains(wanted), "{case}: {text}");
    }
}

#[test]
fn refuses_bad_paths() {
    let folder =
        folder(&[("model.ckpt", b"x"), ("model.safetensors", b"PK\x03\x04 and so on"), ("empty.safetensors", b"")]);
    let cases = [
        ("nothing.safetensors", "nothing.safetensors: "),
        ("model.ckpt", "pickle"),
        ("model.safetensors", "zip archive"),
        ("empty.safetensors", "too few"),
    ];
    for (name, wanted) in cases {
        let text = open(&folder.path().join(name)).expect_err(name).to_string();
        assert!(text.contains(wanted) && text.contains(name), "{text}");
    }
    assert!(matches!(FileSource::open(folder.path()), Err(Error::Io { .. })));
}

#[test]
fn a_file_that_shrinks_is_noticed() {
    let (tensors, _) = tiny();
    let bytes = file_of(&tensors);
    let folder = folder(&[("a.safetensors", &bytes)]);
    let path = folder.path().join("a.safetensors");
    let checkpoint = open(&path).expect("a VAE");
    std::fs::write(&path, &bytes[..2000]).expect("a file");
    let text = block_on(checkpoint.read_f32("decoder.up_blocks.0.resnets.1.conv1.weight", &[32, 32, 3, 3]))
        .expect_err("cut off")
        .to_string();
    assert!(text.contains("the file shrank while it was read"), "{text}");
}

#[test]
fn a_file_that_changes_is_noticed() {
    let (tensors, _) = tiny();
    let bytes = file_of(&tensors);
    let folder = folder(&[("a.safetensors", &bytes)]);
    let path = folder.path().join("a.safetensors");
    let checkpoint = open(&path).expect("a VAE");
    let read = || block_on(checkpoint.read_f32("decoder.up_blocks.0.resnets.1.conv1.weight", &[32, 32, 3, 3]));
    read().expect("a filter");
    let later = SystemTime::now() + Duration::from_secs(1);
    File::options().write(true).open(&path).expect("a file").set_modified(later).expect("a time");
    let text = read().expect_err("changed").to_string();
    assert!(text.contains("a.safetensors") && text.contains("changed since it was opened"), "{text}");
    // A file that takes its place is another one.
    let checkpoint = open(&path).expect("a VAE");
    std::fs::write(folder.path().join("b"), b"other").expect("a file");
    std::fs::rename(folder.path().join("b"), &path).expect("a name");
    block_on(checkpoint.read_f32("decoder.up_blocks.0.resnets.1.conv1.weight", &[32, 32, 3, 3])).expect("a filter");
}

#[test]
fn sources_refuse_ranges_beyond_their_end() {
    let folder = folder(&[("a", b"0123456789")]);
    let file = FileSource::open(folder.path().join("a")).expect("a file");
    let memory = MemorySource::new("a", b"0123456789".as_slice());
    for source in [&file as &dyn ByteSource, &memory] {
        assert_eq!((source.len(), source.is_empty()), (10, false));
        assert_eq!(block_on(source.read_at(3, 4)).expect("inside"), b"3456");
        assert_eq!(block_on(source.read_at(10, 0)).expect("inside"), b"");
        for (offset, len) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let text = block_on(source.read_at(offset, len)).expect_err("outside").to_string();
            assert!(text.contains("found 10 bytes in all"), "{text}");
        }
    }
}
