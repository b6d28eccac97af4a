//! config.json, the table of families, and configs derived from shapes.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use wgvae::internals::config::{AutoencoderConfig, Derived, FAMILIES, Family};
use wgvae::internals::names::translate;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

fn fixture(path: &str) -> String {
    std::fs::read_to_string(Path::new(FIXTURES).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// SD 1.5's config.json with one field replaced, or removed if `value` is null.
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

#[test]
fn families_are_what_their_config_json_says() {
    for name in ["sd15", "sdxl", "sd3", "flux1", "z_image", "cogview4"] {
        let parsed = AutoencoderConfig::from_json(&fixture(&format!("configs/{name}.json"))).expect(name);
        assert_eq!(parsed, Family::find(name).expect(name).config(), "{name}");
    }
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
        let factor = if family.name == "sd_x4_upscaler" { 4 } else { 8 };
        assert_eq!(family.config().spatial_factor(), factor, "{}", family.name);
    }
    let text = Family::find("sd4").expect_err("no such family").to_string();
    assert!(text.contains("sd15") && text.contains("cogview4") && text.contains("\"sd4\""), "{text}");
}

#[test]
fn absent_fields_have_the_defaults_of_diffusers() {
    let config = AutoencoderConfig::from_json(r#"{"_class_name": "AutoencoderKL"}"#).expect("all defaults");
    let expected = AutoencoderConfig {
        out_channels: 3,
        latent_channels: 4,
        block_out_channels: vec![64],
        layers_per_block: 1,
        norm_num_groups: 32,
        mid_block_add_attention: true,
        use_post_quant_conv: true,
        scaling_factor: 0.18215,
        shift_factor: 0.0,
        latents_mean: None,
        latents_std: None,
        force_upcast: true,
        sample_size: Some(32),
    };
    assert_eq!(config, expected);
    assert_eq!(config.spatial_factor(), 1);
}

#[test]
fn a_decoder_of_its_own_width_counts() {
    let config = with_field("decoder_block_out_channels", json!([96, 192, 384, 384]));
    let config = AutoencoderConfig::from_json(&config).expect("valid");
    assert_eq!(config.block_out_channels, [96, 192, 384, 384]);
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
fn refuses_bad_fields() {
    let cases = [
        ("_class_name", json!("AutoencoderTiny")),
        ("_class_name", json!(null)),
        ("act_fn", json!("relu")),
        ("up_block_types", json!(["UpDecoderBlock2D", "AttnUpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D"])),
        ("up_block_types", json!(["UpDecoderBlock2D"])),
        ("out_channels", json!(0)),
        ("out_channels", json!(1)),
        ("out_channels", json!(4)),
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
        ("shift_factor", json!(-1e300)),
        ("latents_mean", json!([0, 0, 0, 0])),
        ("latents_mean", json!([0, 0, 0, null])),
    ];
    for (field, value) in cases {
        let text = AutoencoderConfig::from_json(&with_field(field, value.clone())).expect_err(field).to_string();
        assert!(text.starts_with(&format!("config field \"{field}\": expected ")), "{field} = {value}: {text}");
    }
    // The number of levels is complained about under the field that has it.
    for levels in [json!([]), json!([64, 64, 64, 64, 64, 64, 64, 64, 64])] {
        let config = json!({"_class_name": "AutoencoderKL", "block_out_channels": levels});
        let text = AutoencoderConfig::from_json(&config.to_string()).expect_err("levels").to_string();
        assert!(text.contains("block_out_channels") && text.contains("1 to 8 levels"), "{text}");
    }
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

/// The shapes of a key list, by name in diffusers' spelling.
fn shapes(list: &str) -> BTreeMap<String, Vec<u64>> {
    let written: BTreeMap<String, Vec<u64>> =
        serde_json::from_str(&fixture(&format!("keys/{list}.json"))).expect("a key list");
    let names = translate(list, &written).expect(list).written;
    names.into_iter().map(|(name, file_name)| (name, written[&file_name].clone())).collect()
}

#[test]
fn shapes_tell_the_network_but_not_the_scale() {
    let sd = ["sd15", "sd21", "sdxl", "playground"].as_slice();
    let flux = ["sd3", "flux1", "z_image"].as_slice();
    let cases = [
        ("sd15.diffusers", "sd15", sd, None),
        ("sd15.diffusers_old_attn", "sd15", sd, None),
        ("sd15.ldm", "sd15", sd, None),
        ("sd3.ldm", "sd3", flux, None),
        ("flux1.ae_safetensors", "flux1", flux, None),
        ("flux1.diffusers", "flux1", flux, None),
        ("cogview4.diffusers", "cogview4", ["cogview4"].as_slice(), Some("cogview4")),
        ("cogview4.ldm", "cogview4", ["cogview4"].as_slice(), Some("cogview4")),
    ];
    for (list, family, candidates, decided) in cases {
        let derived = Derived::from_shapes(list, &shapes(list)).expect(list);
        let expected = AutoencoderConfig {
            scaling_factor: 1.0,
            shift_factor: 0.0,
            sample_size: None,
            ..Family::find(family).expect("a family").config()
        };
        assert_eq!(derived.unscaled(), &expected, "{list}");
        let names: Vec<_> = derived.candidates().iter().map(|family| family.name).collect();
        assert_eq!(names, candidates, "{list}");
        assert_eq!(derived.decided().map(|family| family.name), decided, "{list}");
    }
}

#[test]
fn three_levels_are_the_upscaler() {
    let mut shapes = shapes("sd15.diffusers");
    // Levels 512 512 256 128 without the first: 512 256 128.
    shapes.retain(|name, _| !name.starts_with("decoder.up_blocks.0."));
    let shapes = shapes.into_iter().map(|(name, shape)| {
        let renamed = (1..4).fold(name, |name, level| {
            name.replace(&format!("decoder.up_blocks.{level}."), &format!("decoder.up_blocks.{}.", level - 1))
        });
        (renamed, shape)
    });
    let derived = Derived::from_shapes("x4", &shapes.collect()).expect("a decoder");
    assert_eq!(derived.unscaled().spatial_factor(), 4);
    assert_eq!(derived.decided().map(|family| family.name), Some("sd_x4_upscaler"));
}

#[test]
fn incomplete_shapes_are_errors() {
    let whole = shapes("sd15.diffusers");
    for name in ["decoder.conv_in.weight", "decoder.conv_out.weight", "decoder.up_blocks.0.resnets.0.conv1.weight"] {
        let mut shapes = whole.clone();
        shapes.remove(name);
        let text = Derived::from_shapes("part", &shapes).expect_err(name).to_string();
        assert!(text.contains(name), "{text}");
        for shape in [vec![], vec![512], vec![512, 4, 3], vec![512, 4, 3, 3, 3], vec![u64::MAX; 4]] {
            shapes.insert(name.to_owned(), shape);
            let text = Derived::from_shapes("part", &shapes).expect_err(name).to_string();
            assert!(text.contains(name), "{text}");
        }
    }
    assert!(Derived::from_shapes("none", &BTreeMap::new()).is_err());
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
