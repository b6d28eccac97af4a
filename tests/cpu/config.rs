//! Parsing of config.json, the table of families, and configs derived from shapes.

use std::collections::BTreeMap;
use wgvae::{LatentSpace, Named};

use proptest::prelude::*;
use serde_json::{Value, json};
use test_kit::repository;
use wgvae::Size;
use wgvae::internals::names::{half_prefix, translate};
use wgvae::model::config::{
    AutoencoderConfig, Derived, FAMILIES, Family, Kl, Network, OwnLatents, PaddingMode, Starts, Tiny, Wan,
};

fn fixture(path: &str) -> String {
    std::fs::read_to_string(repository().join("tests/fixtures").join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns SD 1.5's config.json with one field replaced, or removed if `value` is null.
fn with_field(field: &str, value: Value) -> String {
    let mut config: serde_json::Map<String, Value> =
        serde_json::from_str(&fixture("configs/sd15.json")).expect("valid JSON");
    if value.is_null() {
        config.remove(field);
    } else {
        config.insert(field.to_owned(), value);
    }
    Value::Object(config).to_string()
}

/// Returns a family's config without the facts that config.json lacks: the VAE that a tiny
/// autoencoder replaces.
fn as_parsed(name: &str) -> AutoencoderConfig {
    let family = family_of(name);
    let tiny = matches!(family.network, Network::Tiny(_));
    let own_latents = if tiny { OwnLatents::Unknown } else { family.own_latents };
    AutoencoderConfig { own_latents, ..family }
}

/// Families whose network has a class in diffusers, and their config.json.
const FILES: [(&str, &str); 29] = [
    ("sd15", "sd15"),
    ("sd21", "sd21"),
    ("sdxl", "sdxl"),
    ("playground", "playground_v2_5"),
    ("sd_x4_upscaler", "sd_x4_upscaler"),
    ("sd3", "sd3"),
    ("flux1", "flux1"),
    ("z_image", "z_image"),
    ("cogview4", "cogview4"),
    ("flux2", "flux2"),
    ("flux2_small_decoder", "flux2_small_decoder"),
    ("taesd", "taesd"),
    ("taesdxl", "taesdxl"),
    ("taesd3", "taesd3"),
    ("taef1", "taef1"),
    ("qwen_image", "qwen_image"),
    ("wan21", "wan21"),
    ("qwen_image_layered", "qwen_image_layered"),
    ("qwen_image21", "qwen_image21"),
    ("wan22", "wan22_ti2v_5b"),
    ("hunyuan_image", "hunyuan_image"),
    ("hunyuan_video15", "hunyuan_video15"),
    ("ltx2", "ltx2"),
    ("ltx2_3", "ltx2_3"),
    ("sana", "sana"),
    ("dc_ae_lite", "dc_ae_lite"),
    ("dc_ae_f32c32_in", "dc_ae_f32c32_in"),
    ("dc_ae_f64c128_in", "dc_ae_f64c128_in"),
    ("dc_ae_f128c512_in", "dc_ae_f128c512_in"),
];

#[test]
fn families_are_what_their_config_json_says() {
    for (name, file) in FILES {
        let parsed = AutoencoderConfig::from_json(&fixture(&format!("configs/{file}.json"))).expect(name);
        assert_eq!(parsed, as_parsed(name), "{name}");
    }
    // These families have no class in diffusers, or FLUX.2's, and equal no other family.
    let others = FAMILIES.iter().filter(|family| FILES.iter().all(|(name, _)| *name != family.name));
    assert_eq!(
        others.map(|family| family.name).collect::<Vec<_>>(),
        [
            "ideogram4",
            "fibo2",
            "taef2",
            "taeqi2_1",
            "taesana",
            "taehv",
            "taecvx",
            "taew2_1",
            "lighttaew2_1",
            "taew2_2",
            "lighttaew2_2",
            "taehv1_5",
            "taeh3",
            "taeltx_2",
            "taeltx2_3",
            "wan21_upscale2x",
            "lightvaew2_1",
            "ming_image",
            "dc_ae_f32c32_mix",
            "dc_ae_f64c128_mix",
            "dc_ae_f128c512_mix",
            "seedvr2"
        ]
    );
}

/// A factor in config.json must not be ignored for the statistics that other models have.
#[test]
fn one_factor_may_replace_the_statistics_of_qwen_image() {
    let mut config: Value = serde_json::from_str(&fixture("configs/qwen_image_layered.json")).expect("valid JSON");
    let fields = config.as_object_mut().expect("an object");
    fields.retain(|name, _| !name.starts_with("latents_"));
    fields.insert("scaling_factor".to_owned(), json!(8.0064));
    let config = AutoencoderConfig::from_json(&config.to_string()).expect("a config");
    assert_eq!(config, family_of("ming_image"));
}

#[test]
fn texts_that_are_too_long_for_a_config_are_refused() {
    let config = fixture("configs/sd15.json");
    let padded = |bytes: usize| format!("{config}{}", " ".repeat(bytes - config.len()));
    AutoencoderConfig::from_json(&padded(256 << 10)).expect("the longest");
    let text = AutoencoderConfig::from_json(&padded((256 << 10) + 1)).expect_err("too long").to_string();
    assert_eq!(text, "config field \"config.json\": expected at most 262144 bytes, found 262145 bytes");
}

#[test]
fn families_are_valid_and_named_once() {
    for family in FAMILIES {
        family.config().validate().expect(family.name);
        assert_eq!(FAMILIES.iter().filter(|other| other.name == family.name).count(), 1, "{}", family.name);
        let factor = match family.name {
            "sd_x4_upscaler" => 4,
            "qwen_image21" | "wan22" | "taeqi2_1" | "taew2_2" | "lighttaew2_2" | "taehv1_5" | "taeh3"
            | "hunyuan_video15" => 16,
            "hunyuan_image" | "ltx2" | "ltx2_3" | "taesana" | "taeltx_2" | "taeltx2_3" | "sana" | "dc_ae_lite"
            | "dc_ae_f32c32_in" | "dc_ae_f32c32_mix" => 32,
            "dc_ae_f64c128_in" | "dc_ae_f64c128_mix" => 64,
            "dc_ae_f128c512_in" | "dc_ae_f128c512_mix" => 128,
            _ => 8,
        };
        assert_eq!(family.config().spatial_factor(), factor, "{}", family.name);
    }
    let text = Family::find("sd4").expect_err("no such family").to_string();
    assert!(text.contains("sd15") && text.contains("cogview4") && text.contains("\"sd4\""), "{text}");
}

#[test]
fn latents_in_patches_have_two_sizes() {
    let size = |width, height| Size { width, height };
    for name in ["flux2", "flux2_small_decoder", "taef2"] {
        let config = Family::find(name).expect(name).config();
        assert_eq!(
            (config.channels(LatentSpace::Vae), config.channels(LatentSpace::Model), config.model_channels()),
            (32, 128, 128),
            "{name}"
        );
        assert_eq!(
            (config.latent_factor(LatentSpace::Vae), config.latent_factor(LatentSpace::Model)),
            (8, 16),
            "{name}"
        );
        assert_eq!(config.image_size(size(3, 5), LatentSpace::Vae), size(24, 40), "{name}");
        assert_eq!(config.image_size(size(3, 5), LatentSpace::Model), size(48, 80), "{name}");
        assert_eq!(config.latent_size(size(48, 80), LatentSpace::Vae), size(6, 10), "{name}");
        assert_eq!(config.latent_size(size(48, 80), LatentSpace::Model), size(3, 5), "{name}");
    }
    let config = Family::find("sd15").expect("a family").config();
    assert_eq!((config.channels(LatentSpace::Vae), config.channels(LatentSpace::Model)), (4, 4));
    assert_eq!(config.image_size(size(3, 5), LatentSpace::Model), config.image_size(size(3, 5), LatentSpace::Vae));
}

#[test]
fn what_fills_no_latent_counts_in_tiny_autoencoders_only() {
    let image = Size { width: 135, height: 129 };
    let latents = |family| Family::find(family).expect("a family").config().latent_size(image, LatentSpace::Vae);
    for family in ["sd15", "flux2", "wan21", "seedvr2"] {
        assert_eq!(latents(family), Size { width: 16, height: 16 }, "{family}");
    }
    for family in ["taesd", "taef2", "taew2_1"] {
        assert_eq!(latents(family), Size { width: 17, height: 17 }, "{family}");
    }
    // A last row or column that fills no square of pixels is dropped, and then the rest counts.
    for (family, width, height) in [("taeqi2_1", 9, 8), ("taew2_2", 9, 8), ("taeltx2_3", 5, 4)] {
        assert_eq!(latents(family), Size { width, height }, "{family}");
    }
}

#[test]
fn absent_fields_have_the_defaults_of_diffusers() {
    let parse = |class: &str| AutoencoderConfig::from_json(&format!(r#"{{"_class_name": "{class}"}}"#)).expect(class);
    let config = parse("AutoencoderKL");
    let network = Kl {
        block_out_channels: vec![64],
        decoder_block_out_channels: None,
        layers_per_block: 1,
        decoder_layers_per_block: None,
        norm_num_groups: 32,
        mid_block_add_attention: true,
        use_quant_conv: true,
        use_post_quant_conv: true,
        has_shortcuts: false,
        padding_mode: PaddingMode::Zeros,
    };
    let expected = AutoencoderConfig {
        scaling_factor: 0.18215,
        force_upcast: true,
        sample_size: Some(32),
        ..AutoencoderConfig::new(Network::Kl(network), 4)
    };
    assert_eq!(config, expected);
    assert_eq!(config.spatial_factor(), 1);
    let asymmetric = parse("AsymmetricAutoencoderKL");
    assert_eq!(asymmetric, AutoencoderConfig { force_upcast: false, ..expected });
    // The published models are the defaults of the other classes.
    let classes = [
        ("AutoencoderKLFlux2", "flux2"),
        ("AutoencoderTiny", "taesd"),
        ("AutoencoderKLQwenImage", "qwen_image"),
        ("AutoencoderKLQwenImage21", "qwen_image21"),
        ("AutoencoderKLWan", "wan21"),
    ];
    for (class, family) in classes {
        assert_eq!(parse(class), as_parsed(family), "{class}");
    }
}

#[test]
fn a_decoder_of_its_own_width_counts() {
    let config = with_field("decoder_block_out_channels", json!([96, 192, 384, 384]));
    let config = AutoencoderConfig::from_json(&config).expect("valid");
    let kl = config.network.kl().expect("an AutoencoderKL");
    assert_eq!(kl.decoder_channels(), [96, 192, 384, 384]);
    assert_eq!(kl.block_out_channels, [128, 256, 512, 512]);
}

#[test]
fn padding_mode_is_what_convolutions_see_beyond_the_borders() {
    for mode in PaddingMode::all() {
        let mut expected = AutoencoderConfig::from_json(&fixture("configs/sd15.json")).expect("valid");
        expected.set_border(mode).expect("an AutoencoderKL");
        let stated = with_field("padding_mode", json!(mode.name()));
        assert_eq!(AutoencoderConfig::from_json(&stated).expect("valid"), expected);
        assert_eq!(PaddingMode::named(mode.name()).expect("a name"), mode);
        assert_eq!(json!(expected)["padding_mode"], mode.name());
    }
    for value in [json!("mirror"), json!(1)] {
        let text = AutoencoderConfig::from_json(&with_field("padding_mode", value)).expect_err("unknown").to_string();
        assert!(text.contains("\"padding_mode\": expected one of zeros, reflect"), "{text}");
    }
    let text = PaddingMode::named("Reflect").expect_err("unknown").to_string();
    assert!(text.contains("border: expected one of zeros, reflect") && text.contains("\"Reflect\""), "{text}");
}

/// Other networks have borders of their own, or none but zeros are known.
#[test]
fn only_an_autoencoder_kl_has_a_padding_mode() {
    for name in ["taesd", "wan21", "ltx2", "hunyuan_video15", "seedvr2"] {
        let text = family_of(name).set_border(PaddingMode::Reflect).expect_err(name).to_string();
        assert!(text.contains("border: expected a model of AutoencoderKL's kind"), "{text}");
    }
    family_of("hunyuan_image").set_border(PaddingMode::Reflect).expect("it has its convolutions");
    let tiny = |mode: &str| {
        AutoencoderConfig::from_json(&json!({ "_class_name": "AutoencoderTiny", "padding_mode": mode }).to_string())
    };
    tiny("zeros").expect("what it has");
    let text = tiny("reflect").expect_err("other borders").to_string();
    assert!(text.contains("\"padding_mode\": expected \"zeros\""), "{text}");
}

#[test]
fn of_two_sample_sizes_the_first_counts() {
    for (value, size) in [(json!(768), 768), (json!([640, 512]), 640), (json!(null), 32)] {
        let config = AutoencoderConfig::from_json(&with_field("sample_size", value)).expect("valid");
        assert_eq!(config.sample_size, Some(size));
    }
}

#[test]
fn latent_statistics_are_read() {
    let mut config: Value = serde_json::from_str(&fixture("configs/sdxl.json")).expect("valid JSON");
    config["latents_mean"] = json!([-1.6574, 1.886, -1.383, 2.5155]);
    config["latents_std"] = json!([8.4927, 5.9022, 6.5498, 5.2299]);
    config["scaling_factor"] = json!(0.5);
    let config = AutoencoderConfig::from_json(&config.to_string()).expect("valid");
    assert_eq!(config, Family::find("playground").expect("a family").config());
}

#[test]
fn numbers_are_those_of_the_file() {
    let read = |field: &str, value: &Value| {
        let config = AutoencoderConfig::from_json(&with_field(field, value.clone())).expect("valid");
        serde_json::to_value(config).expect("JSON")[field].clone()
    };
    // The first two are not exact in f32; the third has more digits than f32 holds.
    for value in [json!(0.18215), json!(0.3611), json!(1.152_584_261_234), json!(1.0)] {
        assert_eq!(read("scaling_factor", &value), value);
        assert_eq!(read("shift_factor", &value), value);
    }
    let mean = json!([-1.6574, 1.886, -1.383, 2.5155]);
    let mut config: Value = serde_json::from_str(&with_field("latents_mean", mean.clone())).expect("valid JSON");
    config["latents_std"] = json!([8.4927, 5.9022, 6.5498, 5.2299]);
    let config = AutoencoderConfig::from_json(&config.to_string()).expect("valid");
    assert_eq!(serde_json::to_value(config).expect("JSON")["latents_mean"], mean);
}

#[test]
fn no_shift_is_not_a_shift_of_zero_but_means_the_same() {
    let read = |value| AutoencoderConfig::from_json(&with_field("shift_factor", value)).expect("valid");
    let (absent, zero) = (read(Value::Null), read(json!(0)));
    assert_eq!((absent.shift_factor, zero.shift_factor), (None, Some(0.0)));
    let null = fixture("configs/sd15.json");
    assert!(null.contains(r#""shift_factor": null"#));
    assert_eq!(AutoencoderConfig::from_json(&null).expect("valid").shift_factor, None);
    assert_eq!(absent.latent_scale(), zero.latent_scale());
}

#[test]
fn refuses_bad_fields() {
    let cases = [
        ("_class_name", json!("AutoencoderKLMochi")),
        ("_class_name", json!(null)),
        ("act_fn", json!("relu")),
        ("up_block_types", json!(["UpDecoderBlock2D", "AttnUpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D"])),
        ("up_block_types", json!(["UpDecoderBlock2D"])),
        (
            "down_block_types",
            json!(["DownEncoderBlock2D", "AttnDownEncoderBlock2D", "DownEncoderBlock2D", "DownEncoderBlock2D"]),
        ),
        ("decoder_block_out_channels", json!([128, 256, 512])),
        ("decoder_block_out_channels", json!([128, 256, 512, 500])),
        ("in_channels", json!(2)),
        ("in_channels", json!(5)),
        ("out_channels", json!(0)),
        ("out_channels", json!(1)),
        ("out_channels", json!(5)),
        ("out_channels", json!(1000)),
        ("latent_channels", json!(0)),
        ("latent_channels", json!(-4)),
        ("latent_channels", json!(4.5)),
        ("latent_channels", json!("four")),
        ("latent_channels", json!(4_294_967_300_u64)),
        ("sample_size", json!("512")),
        ("sample_size", json!([])),
        ("sample_size", json!(-1)),
        ("layers_per_block", json!(0)),
        ("layers_per_block", json!(1000)),
        ("norm_num_groups", json!(0)),
        ("norm_num_groups", json!([32])),
        ("block_out_channels", json!(128)),
        ("block_out_channels", json!([128, 256, "512", 512])),
        ("block_out_channels", json!([128, 256, 0, 512])),
        ("block_out_channels", json!([128, 256, 500, 512])),
        ("block_out_channels", json!([128, 256, 1_000_000_000, 512])),
        ("mid_block_add_attention", json!(1)),
        ("use_post_quant_conv", json!("yes")),
        ("scaling_factor", json!("0.5")),
        ("scaling_factor", json!(0)),
        ("scaling_factor", json!(-1)),
        ("scaling_factor", json!(1e300)),
        ("scaling_factor", json!(1e-300)),
        ("shift_factor", json!(-1e300)),
        ("latents_mean", json!([0, 0, 0, 0])),
        ("latents_mean", json!([0, 0, 0, null])),
    ];
    for (field, value) in cases {
        let text = AutoencoderConfig::from_json(&with_field(field, value.clone())).expect_err(field).to_string();
        assert!(text.starts_with(&format!("config field \"{field}\": expected ")), "{field} = {value}: {text}");
    }
    // The error about the number of levels names the field that has it.
    for levels in [json!([]), json!([64, 64, 64, 64, 64, 64, 64, 64, 64])] {
        let config = json!({"_class_name": "AutoencoderKL", "block_out_channels": levels});
        let text = AutoencoderConfig::from_json(&config.to_string()).expect_err("levels").to_string();
        assert!(text.contains("block_out_channels") && text.contains("1 to 8 levels"), "{text}");
    }
}

#[test]
fn statistics_of_the_vae_that_is_replaced_fit_its_channels() {
    for (mean, std) in [(&[0.0; 15][..], &[1.0; 16][..]), (&[0.0; 16], &[1.0; 15]), (&[0.0; 16], &[0.0; 16])] {
        let own_latents = OwnLatents::Normalised { mean, std };
        let text = AutoencoderConfig { own_latents, ..family_of("taew2_1") }.validate().expect_err("wrong").to_string();
        assert!(text.contains("16 finite means and positive deviations"), "{text}");
    }
}

#[test]
fn shortcuts_of_hunyuan_image_fit_its_channels() {
    let check = |change: &dyn Fn(&mut Kl), latents: u32, wanted: &str| {
        let mut config = AutoencoderConfig { latent_channels: latents, ..family_of("hunyuan_image") };
        change(config.network.kl_mut().expect("an AutoencoderKL's"));
        let text = config.validate().expect_err(wanted).to_string();
        assert!(text.contains(wanted), "{text}");
    };
    check(&|kl| kl.use_quant_conv = true, 64, "has_shortcuts");
    check(&|kl| (kl.norm_num_groups, kl.block_out_channels) = (2, vec![2, 8]), 4, "8 after 2");
    check(&|kl| kl.use_post_quant_conv = true, 64, "has_shortcuts");
    check(&|_| {}, 96, "multiples of 192 in the last level");
    check(&|_| {}, 1024, "multiples of 2048 in the last level");
    let decoder = |last: u32| Some(vec![128, 256, 512, 512, 1024, last]);
    check(&|kl| kl.decoder_block_out_channels = decoder(96), 64, "decoder_block_out_channels");
    check(&|kl| (kl.norm_num_groups, kl.block_out_channels[0]) = (2, 130), 64, "256 after 130");
    check(&|kl| (kl.norm_num_groups, kl.block_out_channels[5]) = (2, 1026), 64, "1026 after 1024");
}

#[test]
fn refuses_bad_latent_statistics() {
    let cases = [
        (json!([0, 0, 0]), json!([1, 1, 1, 1]), "latents_mean"),
        (json!([0, 0, 0, 0]), json!([1, 1, 1, 1, 1]), "latents_std"),
        (json!([0, 0, 0, 1e300]), json!([1, 1, 1, 1]), "latents_mean"),
        (json!([0, 0, 0, 0]), json!([1, 1, 0, 1]), "latents_std"),
    ];
    for (mean, std, field) in cases {
        let mut config: Value = serde_json::from_str(&fixture("configs/sd15.json")).expect("valid JSON");
        config["latents_mean"] = mean;
        config["latents_std"] = std;
        let text = AutoencoderConfig::from_json(&config.to_string()).expect_err(field).to_string();
        assert!(text.starts_with(&format!("config field \"{field}\"")), "{text}");
    }
}

#[test]
fn refuses_what_is_no_config() {
    for text in ["", "{", "[]", "7", "null", "{} {}", "{\"_class_name\": \"CLIPTextModel\"}", "{}"] {
        assert!(AutoencoderConfig::from_json(text).is_err(), "{text:?}");
    }
}

/// The error says what the class is, and names a tiny autoencoder if there is one.
#[test]
fn other_classes_of_diffusers_are_refused_by_name() {
    let cases = [
        ("AutoencoderKLHunyuanVideo", "the VAE of HunyuanVideo: ", "with family taehv"),
        ("AutoencoderKLCogVideoX", "the VAE of CogVideoX: ", "with family taecvx"),
        ("AutoencoderKLMiniMaxH3", "the VAE of MiniMax-H3: ", "with family taeh3"),
        ("AutoencoderKLTemporalDecoder", "Stable Video Diffusion: ", "with family taesd"),
        ("ConsistencyDecoderVAE", "a ConsistencyDecoderVAE: ", "with family taesd"),
        ("AutoencoderKLHunyuanImageRefiner", "HunyuanImage 2.1's refiner: ", "with family hunyuan_video15"),
        ("AutoencoderKLMochi", "the VAE of Mochi: ", "use diffusers' AutoencoderKLMochi"),
        ("PaellaVQModel", "stage A of Stable Cascade: ", "use diffusers' PaellaVQModel"),
        ("AutoencoderOobleck", "a model for sound: ", "use diffusers' class"),
    ];
    for (class, name, instead) in cases {
        let text = class_refusal(class);
        assert!(text.contains(name) && text.contains(instead), "{class}: {text}");
        if let Some((_, family)) = text.split_once("with family ") {
            assert!(Family::find(family).is_ok(), "{class}: {text}");
        }
    }
}

/// diffusers' classes get `None` for null, which counts as false, whatever the default is.
#[test]
fn flags_that_are_null_are_false() {
    let network = |file: &str, field: &str| {
        let mut config: Value = serde_json::from_str(&fixture(&format!("configs/{file}.json"))).expect("valid JSON");
        config[field] = Value::Null;
        AutoencoderConfig::from_json(&config.to_string()).expect(field).network
    };
    assert!(matches!(network("sana", "decoder_in_shortcut"), Network::Dc(dc) if !dc.decoder_in_shortcut));
    assert!(matches!(network("sana", "encoder_out_shortcut"), Network::Dc(dc) if !dc.encoder_out_shortcut));
    assert!(matches!(network("sd15", "use_quant_conv"), Network::Kl(kl) if !kl.use_quant_conv));
}

/// Tests every class whose tensors are refused by name.
#[test]
fn classes_that_tensors_show_are_refused_by_their_names_too() {
    let classes: BTreeMap<String, Value> = serde_json::from_str(&fixture("keys/others.json")).expect("valid JSON");
    for class in classes.keys() {
        let known = class_refusal(class);
        assert!(known.contains(&format!("found \"{class}\", ")), "{class}: {known}");
    }
    assert!(class_refusal("CLIPTextModel").ends_with("found \"CLIPTextModel\""));
}

/// Returns the error for a config.json of this class.
fn class_refusal(class: &str) -> String {
    AutoencoderConfig::from_json(&json!({ "_class_name": class }).to_string()).expect_err(class).to_string()
}

/// Tests a published config.json with each field made invalid.
/// Changes one field of a published config, and checks that the error names it.
fn refuses((file, field, value): &(&str, &str, Value)) {
    let mut config: Value = serde_json::from_str(&fixture(&format!("configs/{file}.json"))).expect("valid JSON");
    config[*field] = value.clone();
    let text = AutoencoderConfig::from_json(&config.to_string()).expect_err(field).to_string();
    assert!(text.starts_with(&format!("config field \"{field}\": expected ")), "{file}, {field} = {value}: {text}");
}

#[test]
fn refuses_other_networks_of_ltx2s_class() {
    let cases = [
        ("ltx2", "decoder_causal", json!(true)),
        ("ltx2", "scaling_factor", json!(2)),
        ("ltx2", "timestep_conditioning", json!(true)),
        ("ltx2", "patch_size", json!(3)),
        ("ltx2", "patch_size_t", json!(2)),
        ("ltx2", "encoder_spatial_padding_mode", json!("reflect")),
        ("ltx2", "decoder_spatial_padding_mode", json!("replicate")),
        ("ltx2", "decoder_inject_noise", json!([true, false, false, false])),
        ("ltx2", "spatio_temporal_scaling", json!([true, true, true, false])),
        ("ltx2", "downsample_type", json!(["conv", "temporal", "spatiotemporal", "spatiotemporal"])),
        ("ltx2", "upsample_type", json!(["spatial", "spatial", "spatial"])),
        ("ltx2", "upsample_factor", json!([2, 2])),
        ("ltx2", "upsample_residual", json!([true])),
        ("ltx2", "layers_per_block", json!([4, 6, 6, 2])),
        ("ltx2", "block_out_channels", json!([256, 512, 1024, 2050])),
        ("ltx2", "decoder_block_out_channels", json!([256, 512, 1000])),
    ];
    cases.iter().for_each(refuses);
    // A shortcut cannot make channels fewer by 16, with 8 pixels of each.
    let mut config: Value = serde_json::from_str(&fixture("configs/ltx2.json")).expect("valid JSON");
    config["upsample_factor"] = json!([16, 2, 2]);
    let text = AutoencoderConfig::from_json(&config.to_string()).expect_err("a factor").to_string();
    assert!(text.contains("a factor of 16"), "{text}");
    config["upsample_factor"] = json!([2, 2, 2]);
    config["scaling_factor"] = json!(1);
    config["upsample_residual"] = json!(true);
    assert_eq!(AutoencoderConfig::from_json(&config.to_string()).expect("LTX-2's"), family_of("ltx2"));
}

#[test]
fn refuses_other_networks_of_known_classes() {
    let cases = [
        ("taesd", "act_fn", json!("silu")),
        ("taesd", "upsample_fn", json!("bilinear")),
        ("taesd", "upsampling_scaling_factor", json!(3)),
        ("taesd", "encoder_block_out_channels", json!([64, 64, 64, 32])),
        ("taesd", "decoder_block_out_channels", json!([64, 64, 64])),
        ("taesd", "num_encoder_blocks", json!([1, 3, 3])),
        ("taesd", "num_decoder_blocks", json!([3, 3, 0, 1])),
        ("wan21", "patch_size", json!(2)),
        ("wan21", "in_channels", json!(12)),
        ("wan21", "decoder_base_dim", json!(256)),
        ("wan21", "attn_scales", json!([1.0])),
        ("wan21", "dim_mult", json!([])),
        ("wan21", "num_res_blocks", json!(0)),
        ("wan21", "base_dim", json!(0)),
        ("qwen_image_layered", "input_channels", json!("4")),
        ("qwen_image21", "is_residual", json!(false)),
        ("qwen_image21", "patch_size", json!(2)),
        ("qwen_image21", "attn_scales", json!([1.0])),
        ("qwen_image21", "decoder_base_dim", json!(0)),
        ("qwen_image21", "dim_mult", json!([1, 2, 3, 8, 8])),
        ("qwen_image21", "dim_mult", json!([1, 2, 4, 8, 16])),
        ("wan22_ti2v_5b", "patch_size", json!(0)),
        ("wan22_ti2v_5b", "patch_size", json!(3)),
        ("wan22_ti2v_5b", "patch_size", json!(4)),
        ("wan22_ti2v_5b", "in_channels", json!(8)),
        ("wan22_ti2v_5b", "out_channels", json!(24)),
        ("wan22_ti2v_5b", "dim_mult", json!([1, 2, 4, 8])),
        ("wan22_ti2v_5b", "temperal_downsample", json!([false, true])),
        ("wan22_ti2v_5b", "decoder_base_dim", json!(0)),
        ("hunyuan_image", "downsample_match_channel", json!(false)),
        ("hunyuan_image", "upsample_match_channel", json!(false)),
        ("hunyuan_image", "spatial_compression_ratio", json!(16)),
        ("hunyuan_image", "spatial_compression_ratio", json!(64)),
        ("hunyuan_image", "scaling_factor", json!(null)),
        ("hunyuan_image", "sample_size", json!(null)),
        ("hunyuan_image", "layers_per_block", json!(null)),
        ("hunyuan_image", "latent_channels", json!(null)),
        ("hunyuan_image", "block_out_channels", json!([])),
        ("hunyuan_image", "block_out_channels", json!([128, 256, 512, 512, 1024, 1000])),
        ("hunyuan_image", "block_out_channels", json!([128, 1024, 512, 512, 1024, 1024])),
        ("hunyuan_image", "block_out_channels", json!([128, 256, 512, 512, 1024, 64])),
        ("hunyuan_video15", "downsample_match_channel", json!(false)),
        ("hunyuan_video15", "upsample_match_channel", json!(false)),
        ("hunyuan_video15", "spatial_compression_ratio", json!(8)),
        ("hunyuan_video15", "temporal_compression_ratio", json!(3)),
        ("hunyuan_video15", "temporal_compression_ratio", json!(16)),
        ("hunyuan_video15", "block_out_channels", json!([128, 256, 512, 1028, 1024])),
        ("hunyuan_video15", "block_out_channels", json!([128, 1024, 512, 1024, 1024])),
        ("hunyuan_video15", "block_out_channels", json!([128, 256, 512, 1024, 96])),
        ("hunyuan_video15", "scaling_factor", json!(0)),
        ("flux2", "patch_size", json!([2, 1])),
        ("flux2", "patch_size", json!([3, 3])),
        ("flux2", "patch_size", json!([2])),
        ("flux2", "batch_norm_eps", json!(0)),
    ];
    cases.iter().for_each(refuses);
}

#[test]
fn refuses_other_networks_of_dc_aes_class() {
    let cases = [
        // Attention has no batch norm.
        ("sana", "decoder_norm_types", json!("batch_norm")),
        (
            "sana",
            "decoder_norm_types",
            json!(["group_norm", "rms_norm", "rms_norm", "rms_norm", "rms_norm", "rms_norm"]),
        ),
        ("sana", "decoder_norm_types", json!(["rms_norm", "rms_norm"])),
        ("sana", "decoder_act_fns", json!("relu6")),
        ("sana", "decoder_conv_act_fn", json!("gelu")),
        ("sana", "decoder_block_types", json!("MBConv")),
        ("sana", "encoder_block_types", json!(["ResBlock"])),
        ("sana", "encoder_layers_per_block", json!([2, 2, 2, 3, 3])),
        ("sana", "encoder_layers_per_block", json!([2, 0, 2, 3, 3, 3])),
        ("sana", "decoder_qkv_multiscales", json!([[], [], [], [5], [5], [7]])),
        ("sana", "decoder_qkv_multiscales", json!([5])),
        ("sana", "encoder_block_out_channels", json!([128, 256, 512, 512, 1024, 1000])),
        ("sana", "encoder_block_out_channels", json!([128, 1024, 512, 512, 1024, 1024])),
        ("sana", "attention_head_dim", json!(30)),
        ("sana", "attention_head_dim", json!(64)),
        ("sana", "downsample_block_type", json!("pool")),
        ("sana", "upsample_block_type", json!(2)),
    ];
    cases.iter().for_each(refuses);
}

/// Weights that double the frames keep groups of four channels together.
#[test]
fn frames_of_a_change_of_time_fill_groups_of_four_channels() {
    for family in ["wan22", "wan21"] {
        let mut config = family_of(family);
        let Network::Wan(wan) = &mut config.network else { panic!("a network like Wan's") };
        (wan.base_dim, wan.decoder_base_dim) = (5, 5);
        config.validate().expect("Wan's frames are filled up to groups of four");
    }
    let mut config = family_of("wan21");
    let Network::Wan(wan) = &mut config.network else { panic!("a network like Wan's") };
    (wan.base_dim, wan.decoder_base_dim, wan.dim_mult) = (3, 3, vec![1; 4]);
    config.validate().expect("the network of diffusers' own tests");
    let Network::Wan(wan) = &mut config.network else { panic!("a network like Wan's") };
    (wan.base_dim, wan.decoder_base_dim, wan.dim_mult) = (1, 1, vec![1, 1, 2]);
    let text = config.validate().expect_err("half a channel").to_string();
    assert!(text.contains("dim_mult") && text.contains("at least 2 channels") && text.ends_with("found 1"), "{text}");

    let mut config = family_of("taew2_1");
    let Network::Tiny(tiny) = &mut config.network else { panic!("a network like TAESD's") };
    tiny.decoder_block_out_channels[1] = 6;
    let text = config.validate().expect_err("6 channels").to_string();
    assert!(text.contains("decoder_block_out_channels") && text.contains("multiples of 4"), "{text}");
}

/// Returns the shapes of a key list, by name in diffusers' spelling.
fn shapes(list: &str) -> BTreeMap<String, Vec<u64>> {
    let written: BTreeMap<String, Vec<u64>> =
        serde_json::from_str(&fixture(&format!("keys/{list}.json"))).expect("a key list");
    // As a checkpoint does: TAESD's own files have names that begin with numbers.
    let prefix = half_prefix(written.keys().map(String::as_str));
    let written = written.into_iter().map(|(name, shape)| (format!("{prefix}{name}"), shape)).collect();
    let names = translate(list, &written).expect(list).written;
    names.into_iter().map(|(name, file_name)| (name, written[&file_name].clone())).collect()
}

fn names(families: &[&Family]) -> Vec<&'static str> {
    families.iter().map(|family| family.name).collect()
}

/// Key list, the families with these shapes, and true if their latents have one scale.
const LISTS: [(&str, &[&str], bool); 57] = [
    ("sd15.diffusers", &["sd15", "sd21", "sdxl", "playground"], false),
    ("sd15.diffusers_old_attn", &["sd15", "sd21", "sdxl", "playground"], false),
    ("sd15.ldm", &["sd15", "sd21", "sdxl", "playground"], false),
    ("sd_x4_upscaler.diffusers", &["sd_x4_upscaler"], true),
    ("sd3.ldm", &["sd3", "flux1", "z_image"], false),
    ("flux1.ae_safetensors", &["sd3", "flux1", "z_image"], false),
    ("flux1.diffusers", &["sd3", "flux1", "z_image"], false),
    ("cogview4.diffusers", &["cogview4"], true),
    ("cogview4.ldm", &["cogview4"], true),
    ("flux2.bfl", &["flux2"], true),
    ("flux2.diffusers", &["flux2"], true),
    ("flux2_small_decoder.diffusers", &["flux2_small_decoder"], true),
    ("taesd.diffusers", &["taesd", "taesdxl"], true),
    ("taesd.upstream_encoder", &["taesd", "taesdxl"], true),
    ("taesd.upstream_decoder", &["taesd", "taesdxl"], true),
    ("taef1.diffusers", &["taesd3", "taef1"], true),
    ("taef2.upstream_encoder", &["taef2"], true),
    ("taef2.upstream_decoder", &["taef2"], true),
    ("taeqi2_1.upstream_encoder", &["taeqi2_1"], true),
    ("taeqi2_1.upstream_decoder", &["taeqi2_1"], true),
    ("taesana.upstream_encoder", &["taesana"], true),
    ("taesana.upstream_decoder", &["taesana"], true),
    ("taew2_1.upstream", &["taehv", "taecvx", "taew2_1", "lighttaew2_1"], false),
    ("taew2_2.upstream", &["taew2_2", "lighttaew2_2"], false),
    ("taehv1_5.upstream", &["taehv1_5"], true),
    ("taeh3.upstream", &["taeh3"], true),
    ("taeltx2_3.upstream", &["taeltx_2", "taeltx2_3"], true),
    ("qwen_image.diffusers", &["qwen_image", "wan21"], true),
    ("wan21.original", &["qwen_image", "wan21"], true),
    ("wan21_upscale2x.diffusers", &["wan21_upscale2x"], true),
    ("wan21_upscale2x.original", &["wan21_upscale2x"], true),
    ("lightvaew2_1.original", &["lightvaew2_1"], true),
    ("qwen2d.original", &["qwen_image", "wan21"], true),
    ("qwen_image_layered.diffusers", &["qwen_image_layered", "ming_image"], false),
    ("qwen_image_layered.original", &["qwen_image_layered", "ming_image"], false),
    ("qwen_image21.diffusers", &["qwen_image21"], true),
    ("qwen_image21.original", &["qwen_image21"], true),
    ("wan22.diffusers", &["wan22"], true),
    ("wan22.original", &["wan22"], true),
    ("hunyuan_image.diffusers", &["hunyuan_image"], true),
    ("hunyuan_image.original", &["hunyuan_image"], true),
    ("hunyuan_video15.diffusers", &["hunyuan_video15"], true),
    ("hunyuan_video15.original", &["hunyuan_video15"], true),
    ("ltx2.diffusers", &["ltx2"], true),
    ("ltx2.original", &["ltx2"], true),
    ("ltx2_3.diffusers", &["ltx2_3"], true),
    ("ltx2_3.original", &["ltx2_3"], true),
    ("sana.diffusers", &["sana"], true),
    ("sana.original", &["sana"], true),
    ("dc_ae_lite.diffusers", &["dc_ae_lite"], true),
    ("dc_ae_lite.original", &["dc_ae_lite"], true),
    ("dc_ae_f32c32_in.diffusers", &["dc_ae_f32c32_in", "dc_ae_f32c32_mix"], false),
    ("dc_ae_f32c32_in.original", &["dc_ae_f32c32_in", "dc_ae_f32c32_mix"], false),
    ("dc_ae_f64c128_in.diffusers", &["dc_ae_f64c128_in", "dc_ae_f64c128_mix"], false),
    ("dc_ae_f64c128_in.original", &["dc_ae_f64c128_in", "dc_ae_f64c128_mix"], false),
    ("dc_ae_f128c512_in.diffusers", &["dc_ae_f128c512_in", "dc_ae_f128c512_mix"], false),
    ("dc_ae_f128c512_in.original", &["dc_ae_f128c512_in", "dc_ae_f128c512_mix"], false),
];

#[test]
fn shapes_tell_the_network_but_not_the_scale() {
    for (list, candidates, decided) in LISTS.into_iter().chain([("seedvr2.original", ["seedvr2"].as_slice(), true)]) {
        let derived = Derived::from_shapes(list, &shapes(list)).expect(list);
        let mut family = Family::find(candidates[0]).expect("a family").config();
        if let Network::Tiny(tiny) = &mut family.network {
            tiny.starts = Starts::First;
        }
        let expected = AutoencoderConfig {
            force_upcast: derived.unscaled().force_upcast,
            own_latents: derived.unscaled().own_latents,
            in_channels: family.in_channels,
            out_channels: family.out_channels,
            ..AutoencoderConfig::new(family.network, family.latent_channels)
        };
        let stands_in = !family_of(candidates[0]).takes_own_latents();
        assert_eq!(derived.unscaled().own_latents == OwnLatents::Unknown, stands_in, "{list}");
        // The halves of TAESANA do not mirror each other, and Qwen2D-VAE has no filters over time.
        if !list.starts_with("taesana") && !list.starts_with("qwen2d") {
            assert_eq!(derived.unscaled(), &expected, "{list}");
        }
        assert_eq!(names(derived.candidates()), candidates, "{list}");
        assert_eq!(names(derived.decided()), if decided { candidates } else { &[] }, "{list}");
    }
}

fn family_of(name: &str) -> AutoencoderConfig {
    Family::find(name).expect(name).config()
}

#[test]
fn tiny_autoencoders_have_the_scale_of_the_vae_that_they_stand_in_for() {
    for (tiny, vae) in
        [("taesd", "sd15"), ("taesd", "sd21"), ("taesdxl", "sdxl"), ("taesd3", "sd3"), ("taef1", "flux1")]
    {
        assert_eq!(family_of(tiny).own_latents, OwnLatents::stand_in_for(&family_of(vae)), "{tiny}");
        assert_eq!(family_of(tiny).latent_channels, family_of(vae).latent_channels, "{tiny}");
    }
    assert_eq!(family_of("taef2").own_latents, OwnLatents::OfNetwork);
    for (tiny, vae) in
        [("taeqi2_1", "qwen_image21"), ("taew2_1", "qwen_image"), ("taew2_1", "wan21"), ("taew2_2", "wan22")]
    {
        let vae = family_of(vae);
        let OwnLatents::Normalised { mean, std } = family_of(tiny).own_latents else { panic!("{tiny}") };
        assert_eq!((Some(mean), Some(std)), (vae.latents_mean.as_deref(), vae.latents_std.as_deref()), "{tiny}");
        assert_eq!(family_of(tiny).latent_channels, vae.latent_channels, "{tiny}");
    }
}

/// `LightX2V` trained TAEHV on the VAE's own latents, and upstream on the diffusion model's.
#[test]
fn two_trainings_of_a_tiny_autoencoder_take_different_latents() {
    for (upstream, light) in [("taew2_1", "lighttaew2_1"), ("taew2_2", "lighttaew2_2")] {
        let (upstream, light) = (family_of(upstream), family_of(light));
        let OwnLatents::Normalised { mean, std } = upstream.own_latents else { panic!("statistics") };
        assert_eq!(upstream.latents_mean, None);
        assert_eq!((light.latents_mean.as_deref(), light.latents_std.as_deref()), (Some(mean), Some(std)));
        assert!(light.takes_own_latents());
        assert_eq!(upstream.network, light.network);
    }
}

#[test]
fn relatives_of_flux2_have_its_network_and_other_latents() {
    let sizes = |name: &str| {
        let config = family_of(name);
        let latents = config.latent_size(Size { width: 83, height: 50 }, LatentSpace::Model);
        (
            config.model_channels(),
            latents.width,
            latents.height,
            config.latent_factor(LatentSpace::Model),
            config.image_step(LatentSpace::Model),
        )
    };
    assert_eq!(sizes("flux2"), (128, 5, 3, 16, 16));
    assert_eq!(sizes("ideogram4"), (128, 5, 3, 16, 16));
    assert_eq!(sizes("fibo2"), (32, 10, 6, 8, 16));
}

#[test]
fn layers_of_any_number_are_answers() {
    let last = u32::MAX;
    for change_of_time in [false, true] {
        for number in [0, 1, 2, 3, 4, last - 1, last] {
            for part in ["conv.0.weight", "conv.9.weight"] {
                for half in ["encoder", "decoder"] {
                    let mut names = vec![format!("{half}.layers.{number}.{part}"), format!("{half}.layers.0.weight")];
                    names.extend(change_of_time.then(|| format!("{half}.layers.7.conv.weight")));
                    let shapes = names.into_iter().map(|name| (name, vec![8, 8, 3, 3])).collect();
                    if let Ok(derived) = Derived::from_shapes("x", &shapes) {
                        let _ = derived.unscaled().validate();
                    }
                }
            }
        }
    }
}

/// Tests that a file with one half of a model is enough to tell the network.
#[test]
fn half_a_model_is_enough_to_tell_the_network() {
    for (list, candidates, _) in LISTS.into_iter().chain([("seedvr2.original", ["seedvr2"].as_slice(), true)]) {
        for (half, other) in [("encoder.", "decoder."), ("decoder.", "encoder.")] {
            let mut shapes = shapes(list);
            shapes.retain(|name, _| !name.starts_with(other));
            if !shapes.keys().any(|name| name.starts_with(half)) {
                continue;
            }
            let derived = Derived::from_shapes(list, &shapes).expect(list);
            let found = names(derived.candidates());
            assert!(candidates.iter().all(|family| found.contains(family)), "{list}, {half}: {found:?}");
            derived.unscaled().validate().expect(list);
            if let (Network::Wan(found), Network::Wan(whole)) =
                (&derived.unscaled().network, family_of(candidates[0]).network)
            {
                let base = if half == "encoder." { whole.base_dim } else { whole.decoder_base_dim };
                // An encoder does not tell what the decoder makes of its pixels.
                let upscale = if half == "encoder." { 1 } else { whole.upscale };
                let whole = Wan { base_dim: base, decoder_base_dim: base, upscale, ..whole };
                let whole = match list {
                    "qwen2d.original" => Wan { is_video: false, temperal_downsample: vec![false; 3], ..whole },
                    _ => whole,
                };
                assert_eq!(*found, whole, "{list}, {half}");
            }
        }
    }
}

#[test]
fn widths_of_one_half_that_the_other_lacks_are_told() {
    let mut shapes = shapes("flux2_small_decoder.diffusers");
    let derived = Derived::from_shapes("both", &shapes).expect("a VAE");
    let kl = derived.unscaled().network.kl().expect("an AutoencoderKL");
    assert_eq!(kl.decoder_block_out_channels.as_deref(), Some([96, 192, 384, 384].as_slice()));
    shapes.retain(|name, _| !name.starts_with("encoder.") && !name.starts_with("quant_conv."));
    let derived = Derived::from_shapes("decoder", &shapes).expect("a decoder");
    assert_eq!(derived.unscaled().network.kl().expect("an AutoencoderKL").decoder_channels(), [96, 192, 384, 384]);
    assert_eq!(names(derived.candidates()), ["flux2_small_decoder"]);
}

/// Numbers of the published model x-1-5: its halves have widths and layers of their own.
#[test]
fn halves_of_an_asymmetric_model_are_told_apart() {
    let whole = shapes("asymmetric_x1_5.diffusers");
    let config = AutoencoderConfig::from_json(
        &json!({
            "_class_name": "AsymmetricAutoencoderKL",
            "down_block_out_channels": [128, 256, 512, 512], "layers_per_down_block": 2,
            "up_block_out_channels": [192, 384, 768, 768], "layers_per_up_block": 3,
            "scaling_factor": 0.18215, "sample_size": 256,
        })
        .to_string(),
    )
    .expect("a config");
    config.validate().expect("a network");
    let derived = Derived::from_shapes("both", &whole).expect("a VAE");
    assert_eq!(derived.unscaled().network, config.network);
    for (half, channels, layers) in
        [("encoder.", vec![128, 256, 512, 512], 2), ("decoder.", vec![192, 384, 768, 768], 3)]
    {
        let mut shapes = whole.clone();
        shapes.retain(|name, _| name.starts_with(half));
        let derived = Derived::from_shapes(half, &shapes).expect(half);
        let kl = derived.unscaled().network.kl().expect("an AutoencoderKL").clone();
        assert_eq!((kl.block_out_channels, kl.layers_per_block), (channels, layers), "{half}");
        assert_eq!((kl.decoder_block_out_channels, kl.decoder_layers_per_block), (None, None), "{half}");
    }
    // One level that lacks a resnet does not make another network.
    let mut shapes = whole;
    shapes.retain(|name, _| !name.contains("down_blocks.0.resnets.1."));
    let derived = Derived::from_shapes("broken", &shapes).expect("a VAE");
    assert_eq!(derived.unscaled().network, config.network);
}

#[test]
fn norms_in_the_middle_tell_taef2() {
    let derived = Derived::from_shapes("x", &shapes("taef2.upstream_encoder")).expect("a VAE");
    assert!(matches!(derived.unscaled().network, Network::Tiny(Tiny { use_midblock_gn: true, .. })));
    // Latents are in patches, although the weights do not tell.
    assert_eq!(derived.decided()[0].config().patch, 2);
}

#[test]
fn nothing_can_be_told_of_nothing() {
    let of = |names: &[&str]| {
        let shapes = names.iter().map(|name| ((*name).to_owned(), vec![64, 64, 3, 3])).collect();
        Derived::from_shapes("part", &shapes).expect_err("nothing to tell it by").to_string()
    };
    assert!(of(&[]).contains("1 missing tensor(s), first \"encoder.conv_out.weight\""));
    assert!(of(&["decoder.mid_block.resnets.0.conv1.weight"]).contains("decoder.conv_in.weight"));
    assert!(of(&["decoder.conv_in.weight"]).contains("decoder.up_blocks.0.resnets.0.conv1.weight"));
    assert!(of(&["encoder.conv_out.weight"]).contains("encoder.down_blocks.0.resnets.0.conv1.weight"));
    assert!(of(&["decoder.layers.0.weight"]).contains("decoder.layers.2.conv.0.weight"));
    assert!(of(&["decoder.norm_out.gamma"]).contains("decoder.up_blocks.0.resnets.0.conv1.weight"));
    assert!(of(&["decoder.norm_out.weight", "decoder.conv_in.weight"]).contains("decoder.up_blocks.0.conv1.weight"));
    assert!(of(&["encoder.norm_out.gamma"]).contains("encoder.down_blocks.0.conv1.weight"));
}

proptest! {
    #[test]
    fn never_panics_on_odd_values(field in 0_usize..20, value in "[-0-9e.\\[\\]\", truefalsn]{0,12}") {
        let json = fixture("configs/sd15.json");
        let config: serde_json::Map<String, Value> = serde_json::from_str(&json).expect("valid JSON");
        let name = config.keys().nth(field % config.len()).expect("a field");
        let text = json.replacen(&format!("\"{name}\":"), &format!("\"{name}\": {value}, \"other\":"), 1);
        let _ = AutoencoderConfig::from_json(&text);
    }
}
