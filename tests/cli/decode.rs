//! Decodes that work: every kind of input and output file, the report, and several images.

use std::collections::BTreeMap;

use pollster::block_on;
use serde_json::Value;
use test_kit::formula;
use wgvae::HostTensor;
use wgvae::files::MemorySource;
use wgvae::internals::npy::{read_npy, write_npy};
use wgvae::internals::safetensors::{read_header, read_tensor, write_with_metadata};

use crate::tool::{Entry, Folder, LATENTS, golden, safetensors};

fn npy(folder: &Folder, name: &str) -> HostTensor {
    block_on(read_npy(&MemorySource::new(name.to_owned(), folder.read(name)))).unwrap()
}

/// Returns width and height of a PNG file, from its header.
fn png_size(file: &[u8]) -> (u32, u32) {
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[track_caller]
fn assert_close(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= 1e-3, "element {index}: {found}, diffusers has {wanted}");
    }
}

/// Returns latents of two images: the golden one, and another.
fn two_latents() -> HostTensor {
    let first = formula::latents(&LATENTS);
    let second = first.data.iter().map(|value| -value);
    let data = first.data.iter().copied().chain(second).collect();
    HostTensor { shape: vec![2, LATENTS[1], LATENTS[2], LATENTS[3]], data }
}

#[test]
fn pictures_of_every_format() {
    let folder = Folder::new();
    let said = folder.decode(&["-o", "out.png"]).ok().stdout;
    assert!(said.contains("out.png (20x18)"), "{said}");
    assert_eq!(png_size(&folder.read("out.png")), (20, 18));
    for name in ["out.jpg", "out.JPEG"] {
        folder.decode(&["-o", name]).ok();
        assert_eq!(&folder.read(name)[..3], b"\xff\xd8\xff");
    }
    folder.decode(&["-o", "out.webp"]).ok();
    assert_eq!(&folder.read("out.webp")[8..12], b"WEBP");
    assert!(folder.names().iter().all(|name| !name.ends_with(".part")), "{:?}", folder.names());
}

/// Tests that PNG, written row by row, has the same pixels as WebP, written at the end; both are
/// lossless.
#[test]
fn a_png_has_the_same_pixels_as_a_whole_picture() {
    let folder = Folder::new();
    for more in [&[][..], &["--memory-budget", "1400KiB"], &["--memory-budget", "1MiB", "--device", "gpu"]] {
        folder.decode(&[&["-o", "out.png"], more].concat()).ok();
        folder.decode(&[&["-o", "out.webp"], more].concat()).ok();
        let pixels = |name: &str| image::load_from_memory(&folder.read(name)).unwrap().into_rgba8();
        assert_eq!(pixels("out.png"), pixels("out.webp"));
    }
}

/// Decodes to a 16-bit PNG and compares it with the floats `[c, h, w]` of a decode.
pub(crate) fn assert_deep(folder: &Folder, more: &[&str], name: &str, values: &[f32]) {
    folder.decode(more).ok();
    let picture = image::load_from_memory(&folder.read(name)).unwrap();
    let plane = picture.width() as usize * picture.height() as usize;
    let found = match picture {
        image::DynamicImage::ImageRgb16(picture) => picture.into_raw(),
        image::DynamicImage::ImageRgba16(picture) => picture.into_raw(),
        other => panic!("{:?}", other.color()),
    };
    assert_eq!(found.len(), values.len());
    for (index, found) in found.iter().enumerate() {
        let channels = values.len() / plane;
        let value = values[index % channels * plane + index / channels];
        let wanted = ((value / 2.0 + 0.5).clamp(0.0, 1.0) * 65_535.0).round_ties_even();
        assert_eq!(f32::from(*found), wanted, "{index} of {name}: {value}");
    }
}

/// Decodes to `OpenEXR` and compares it with the floats `[c, h, w]` of a decode.
pub(crate) fn assert_exr(folder: &Folder, more: &[&str], name: &str, values: &[f32]) {
    folder.decode(more).ok();
    let picture = image::load_from_memory(&folder.read(name)).unwrap();
    let plane = picture.width() as usize * picture.height() as usize;
    let found = match picture {
        image::DynamicImage::ImageRgb32F(picture) => picture.into_raw(),
        image::DynamicImage::ImageRgba32F(picture) => picture.into_raw(),
        other => panic!("{:?}", other.color()),
    };
    assert_eq!(found.len(), values.len());
    let channels = values.len() / plane;
    let wanted = (0..values.len()).map(|index| values[index % channels * plane + index / channels] / 2.0 + 0.5);
    assert!(wanted.eq(found), "{name}");
}

/// Tests deep pictures whole, in bands, in tiles, and on stdout and a device, which is no file.
#[test]
fn sixteen_bits_and_floats_are_those_of_the_network() {
    let folder = Folder::new();
    folder.decode(&["-o", "out.npy"]).ok();
    let values = npy(&folder, "out.npy").data;
    assert!(values.iter().any(|value| value.abs() > 1.0), "some are out of range");
    for more in [&[][..], &["--memory-budget", "1400KiB"]] {
        assert_deep(&folder, &[&["-o", "out.png", "--bit-depth", "16"], more].concat(), "out.png", &values);
        assert_exr(&folder, &[&["-o", "out.exr"], more].concat(), "out.exr", &values);
    }
    let tiles = ["--tiling", "blend", "--tile-size", "8", "--tile-overlap", "2"];
    folder.decode(&[&["-o", "tiles.npy"], &tiles[..]].concat()).ok();
    let tiled = npy(&folder, "tiles.npy").data;
    assert_deep(&folder, &[&["-o", "out.png", "--bit-depth", "16"], &tiles[..]].concat(), "out.png", &tiled);
    assert_exr(&folder, &[&["-o", "out.exr"], &tiles[..]].concat(), "out.exr", &tiled);

    for (format, depth, name) in [("png", &["--bit-depth", "16"][..], "out.png"), ("exr", &[], "out.exr")] {
        let args = ["decode", "--model", "model", "--latents", "latents.safetensors", "--precision", "f32"];
        folder.decode(&[&["-o", name], depth].concat()).ok();
        let file = folder.read(name);
        let on_stdout =
            folder.command(&[&args[..], &["-o", "-", "--format", format], depth].concat()).output().unwrap();
        assert_eq!(on_stdout.stdout, file, "{format}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/stdout", folder.path(&format!("pipe.{format}"))).unwrap();
            let pipe = format!("pipe.{format}");
            let piped = folder.command(&[&args[..], &["-o", &pipe, "--quiet"], depth].concat()).output().unwrap();
            assert!(piped.stdout.starts_with(&file[..40]), "{format}");
        }
    }

    let before = folder.names();
    let refused = |more: &[&str], found: &str| {
        let words = ["--bit-depth", ".png pictures of images", found];
        folder.decode(more).failed(&format!("{more:?}"), 1, &words);
    };
    refused(&["-o", "no.jpg", "--bit-depth", "16"], "found 16 with no.jpg");
    refused(&["-o", "no.webp", "--bit-depth", "8"], "found 8 with no.webp");
    refused(&["-o", "no.exr", "--bit-depth", "16"], "found 16 with no.exr");
    refused(&["-o", "no.npy", "--bit-depth", "16"], "found 16 with no.npy");
    refused(&["-o", "-", "--format", "webp", "--bit-depth", "16"], "found 16 with --format webp");
    folder.decode(&["-o", "no.png", "--bit-depth", "12"]).failed("12 bits", 2, &["--bit-depth", "8, 16"]);
    assert_eq!(folder.names(), before);
}

#[test]
fn raw_floats_equal_those_of_diffusers() {
    let folder = Folder::new();
    let (_, image) = golden();
    folder.decode(&["-o", "out.npy"]).ok();
    let found = npy(&folder, "out.npy");
    assert_eq!(found.shape, [1, 3, 18, 20]);
    assert_close(&found.data, &image.data);

    folder.decode(&["-o", "out.safetensors", "--limits", "webgpu-default"]).ok();
    let source = MemorySource::new("out.safetensors", folder.read("out.safetensors"));
    let header = block_on(read_header(&source)).unwrap();
    let found = block_on(read_tensor(&source, "image", &header.tensors["image"])).unwrap();
    assert_eq!(found.shape, [1, 3, 18, 20]);
    assert_close(&found.data, &image.data);
}

#[test]
fn latents_of_every_format() {
    let folder = Folder::new();
    let latents = formula::latents(&LATENTS);
    let planes = HostTensor { shape: LATENTS[1..].to_vec(), data: latents.data.clone() };
    folder.write("latents.npy", &write_npy(&planes));
    folder.write("z.safetensors", &safetensors(&BTreeMap::from([("z".to_owned(), Entry::f16(&latents))])));
    let (_, image) = golden();
    let decode = |more: &[&str]| {
        folder.run(&[&["decode", "--model", "model", "-o", "out.npy", "--precision", "f32"], more].concat()).ok();
        npy(&folder, "out.npy").data
    };
    assert_close(&decode(&["--latents", "latents.npy"]), &image.data);
    let halves = decode(&["--latents", "z.safetensors", "--tensor", "z"]);
    let furthest = halves.iter().zip(&image.data).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    assert!(furthest < 0.02, "{furthest}");
}

/// Tests latents as ComfyUI's `SaveLatent` writes them: the VAE's own values, without a mark that
/// says so.
#[test]
fn latents_of_comfyui() {
    let folder = Folder::new();
    let latents = formula::latents(&LATENTS);
    let nothing = HostTensor { shape: vec![0], data: Vec::new() };
    let file = |name: &str| {
        let tensors =
            [(name.to_owned(), Entry::f32(&latents)), ("latent_format_version_0".to_owned(), Entry::f32(&nothing))];
        safetensors(&BTreeMap::from(tensors))
    };
    folder.write("ComfyUI_00001_.latent", &file("latent_tensor"));
    folder.write("latents.safetensors", &file("latents"));
    let decode = |latents: &str, more: &[&str]| {
        folder
            .run(
                &[&["decode", "--model", "model", "--latents", latents, "-o", "out.npy", "--precision", "f32"], more]
                    .concat(),
            )
            .ok();
        npy(&folder, "out.npy").data
    };
    let found = decode("ComfyUI_00001_.latent", &[]);
    assert_eq!(found, decode("latents.safetensors", &["--unscaled"]));
    assert_ne!(found, decode("latents.safetensors", &[]));
}

#[test]
fn several_images_get_numbers_or_one_array() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&two_latents()));
    let said = folder.decode(&["-o", "out.png"]).ok().stdout;
    assert!(said.contains("2 files, out-1.png to out-2.png"), "{said}");
    assert!(!folder.path("out.png").exists());
    assert_ne!(folder.read("out-1.png"), folder.read("out-2.png"));
    assert_eq!(png_size(&folder.read("out-2.png")), (20, 18));

    folder.decode(&["-o", "out.npy"]).ok();
    let both = npy(&folder, "out.npy");
    assert_eq!(both.shape, [2, 3, 18, 20]);
    assert_close(&both.data[..both.data.len() / 2], &golden().1.data);
}

#[test]
fn the_report_has_what_it_promises() {
    let folder = Folder::new();
    let more = ["-o", "out.png", "--report", "report.json", "--repeat", "2", "--json", "--device", "gpu"];
    let printed = folder.decode(&more).json();
    let report: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    assert_eq!(printed, report);
    for name in ["seconds", "load_seconds", "compile_seconds"] {
        assert!(report[name].as_f64().is_some_and(|seconds| seconds > 0.0), "{name}: {}", report[name]);
    }
    assert!(report["predicted_peak_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
    for name in ["allocator_allocated_bytes", "allocator_reserved_bytes"] {
        let value = &report[name];
        assert!(report.get(name).is_some() && (value.is_null() || value.as_u64() > Some(0)), "{name}: {value}");
    }
    assert!(report["adapter"]["name"].is_string() && report["driver"].is_string());
    assert!(report["plan"]["macs"].as_u64() > Some(0));
    assert_eq!(report["plan"]["limits"]["kind"], report["adapter"]["limits"]["kind"]);

    let decodes = report["decodes"].as_array().unwrap();
    assert_eq!(decodes.len(), 2);
    assert!(decodes.iter().all(|decode| decode["seconds"].as_f64() > Some(0.0)));
    assert!(decodes[0]["kernels_compiled"].as_u64() > Some(0));
    assert_eq!(decodes[1]["kernels_compiled"], 0);
    assert_eq!(decodes[1]["buffers_created"], 0);
}

#[test]
fn unscaled_latents_and_halves_change_what_they_should() {
    let folder = Folder::new();
    folder.decode(&["-o", "scaled.npy"]).ok();
    folder.decode(&["-o", "unscaled.npy", "--unscaled"]).ok();
    assert_ne!(folder.read("scaled.npy"), folder.read("unscaled.npy"));
    let said = |stated: Option<&str>| {
        let metadata = stated.map(|stated| ("unscaled", stated.to_owned())).into_iter().collect();
        let file = write_with_metadata(&[("latents", &formula::latents(&LATENTS))], &metadata).unwrap();
        folder.write("stated.safetensors", &file);
        let args = ["decode", "--model", "model", "--latents", "stated.safetensors", "-o", "out.npy", "--unscaled"];
        folder.run(&args)
    };
    let [none, same] = [None, Some("true")].map(|stated| said(stated).ok().stderr);
    assert!(!none.contains("note") && !same.contains("note"), "{none}{same}");
    let other = said(Some("false")).ok().stderr;
    assert!(other.contains("note: stated.safetensors") && other.contains("which --unscaled overrides"), "{other}");
    let args = ["compare-tiling", "--model", "model", "--latents", "stated.safetensors", "-o", "difference.png"];
    let tiles = ["--unscaled", "--tile-size", "8", "--tile-overlap", "2"];
    let other = folder.run(&[&args[..], &tiles].concat()).ok().stderr;
    assert!(other.contains("which --unscaled overrides"), "{other}");
    let words = ["metadata \"unscaled\" of stated.safetensors", "true or false", "found \"yes\""];
    said(Some("yes")).failed("neither", 1, &words);

    let run = |precision: &str, name: &str| {
        let args =
            ["decode", "--model", "model", "--latents", "latents.safetensors", "-o", name, "--json", "--precision"];
        folder.run(&[&args[..], &[precision, "--device", "gpu"]].concat()).json()
    };
    let (halves, floats) = (run("f16", "f16.npy"), run("f32", "f32.npy"));
    assert!(halves["measured_peak_bytes"].as_u64() < floats["measured_peak_bytes"].as_u64());
    assert_eq!(halves["measured_peak_bytes"], halves["predicted_peak_bytes"]);
    assert_eq!(floats["plan"]["storage"], "f32");

    if folder.run(&["adapters", "--json"]).json()[0]["limits"]["shader_f16"] == true {
        let fast = run("fast", "fast.npy");
        assert_eq!(fast["plan"]["storage"], "fast_f16");
        assert_eq!(fast["measured_peak_bytes"], fast["predicted_peak_bytes"]);
        assert_ne!(folder.read("fast.npy"), folder.read("f16.npy"));
    }
}

/// Tests that `--matrix-units` either uses them or gives an error.
#[test]
fn matrix_units_are_used_or_refused() {
    let folder = Folder::new();
    let decode =
        ["decode", "--model", "model", "--latents", "latents.safetensors", "-o", "units.npy", "--matrix-units"];
    for precision in ["auto", "f16", "f32"] {
        let words = ["--matrix-units: expected use with --precision fast", &format!("found --precision {precision}")];
        folder.run(&[&decode[..], &["--precision", precision]].concat()).failed(precision, 1, &words);
    }
    let fast = [&decode[..], &["--precision", "fast", "--json"]].concat();
    let units = &folder.run(&["adapters", "--json"]).json()[0]["matrix_units"];
    if units.is_null() {
        folder.run(&fast).failed("no units", 1, &["no matrix units that kernels can use"]);
        assert!(folder.run(&["adapters"]).ok().stdout.contains("none that kernels use"));
        return;
    }
    let report = folder.run(&fast).json();
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
    assert!(folder.run(&["adapters"]).ok().stdout.contains("--matrix-units"));
}
