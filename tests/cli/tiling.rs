//! `--tiling` and `compare-tiling`: their files, their texts, and their errors.

use image::ImageReader;
use serde_json::{Value, json};
use test_kit::formula;

use crate::tool::{Entry, Folder, LATENTS};

/// Tiles of 4 latents that overlap by one. A latent of the small model covers 2 pixels a side, and
/// there are 10 x 9 latents.
const SMALL: [&str; 4] = ["--tile-size", "8", "--tile-overlap", "2"];

fn compare(folder: &Folder, more: &[&str]) -> crate::tool::Outcome {
    let args = ["compare-tiling", "--model", "model", "--latents", "latents.safetensors", "--precision", "f32"];
    folder.run(&[&args[..], more].concat())
}

/// Returns the pixels of a picture, RGB.
fn picture(folder: &Folder, name: &str) -> Vec<u8> {
    let picture = ImageReader::open(folder.path(name)).unwrap().decode().unwrap();
    assert_eq!((picture.width(), picture.height()), (20, 18));
    picture.into_rgb8().into_raw()
}

#[test]
fn decodes_in_tiles_say_so() {
    let folder = Folder::new();
    folder.decode(&["-o", "exact.npy"]).ok();
    for (tiling, tiles) in [("blend", 12), ("cosine", 9)] {
        let args = [&["-o", "tiles.npy", "--tiling", tiling, "--json", "--report", "report.json"], &SMALL[..]].concat();
        let report = folder.decode(&args).json();
        let wanted = json!({ "name": tiling, "tile_pixels": 8, "overlap_pixels": 2, "tiles": tiles });
        assert_eq!(report["tiling"], wanted);
        assert_eq!(report["plan"]["input"]["size"], json!({ "width": 4, "height": 4 }), "{tiling}");
        assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"], "{tiling}");
        assert_eq!(folder.read("tiles.npy").len(), folder.read("exact.npy").len());
        assert_ne!(folder.read("tiles.npy"), folder.read("exact.npy"), "{tiling}");
        let said = folder.decode(&[&["-o", "tiles.png", "--tiling", tiling], &SMALL[..]].concat()).ok().stdout;
        assert!(said.contains(&format!("tiles.png (20x18) in {tiles} tiles ({tiling})")), "{said}");
    }
    // The model's sample_size is 64 pixels, so by default one tile holds the whole image.
    for tiling in ["exact", "blend", "cosine"] {
        let report = folder.decode(&["-o", "whole.npy", "--tiling", tiling, "--json"]).json();
        assert_eq!((&report["tiling"]["name"], &report["tiling"]["tiles"]), (&json!(tiling), &json!(1)));
        assert_eq!(folder.read("whole.npy"), folder.read("exact.npy"), "{tiling}");
    }
}

#[test]
fn a_comparison_has_a_row_and_a_picture_for_each_tiling() {
    let folder = Folder::new();
    let facts = compare(&folder, &[&["-o", "difference.png", "--json"], &SMALL[..]].concat()).json();
    assert_eq!(facts["image"], json!({ "width": 20, "height": 18 }));
    let rows = facts["tilings"].as_array().unwrap();
    let names: Vec<&Value> = rows.iter().map(|row| &row["tiling"]["name"]).collect();
    assert_eq!(names, ["exact", "blend", "cosine", "estimate"]);
    for row in rows {
        assert!(row["seconds"].as_f64() > Some(0.0), "{row}");
        assert_eq!(row["measured_peak_bytes"], row["predicted_peak_bytes"], "{row}");
    }
    assert!(rows[0]["psnr_db"].is_null() && rows[0]["difference"].is_null(), "{}", rows[0]);
    // For a picture this small, the estimate equals the exact decode.
    assert_eq!(rows[3]["max_error_levels"], 0.0);
    for (row, name) in rows[1..].iter().zip(["difference-blend.png", "difference-cosine.png"]) {
        assert_eq!(row["difference"], name);
        let (max, mean) = (row["max_error_levels"].as_f64().unwrap(), row["mean_error_levels"].as_f64().unwrap());
        assert!(0.0 < mean && mean < max && max <= 255.0, "{row}");
        assert!((0.0..60.0).contains(&row["psnr_db"].as_f64().unwrap()), "{row}");
        assert!(row["measured_peak_bytes"].as_u64() < rows[0]["measured_peak_bytes"].as_u64());
        assert!(picture(&folder, name).iter().any(|level| *level != 128));
    }
    assert!(!folder.path("difference.png").exists());
}

#[test]
fn the_difference_is_amplified() {
    let folder = Folder::new();
    let shown = |amplify: &str| {
        let name = format!("by-{amplify}.png");
        let args = ["-o", &name, "--tilings", "cosine", "--amplify", amplify];
        let text = compare(&folder, &[&args, &SMALL[..]].concat()).ok().stdout;
        assert!(text.contains(&format!("difference x{amplify}")) && text.contains(&name), "{text}");
        picture(&folder, &name)
    };
    let (once, twice) = (shown("1"), shown("2"));
    for (once, twice) in once.iter().zip(twice) {
        let wanted = (128 + 2 * (i32::from(*once) - 128)).clamp(0, 255);
        assert!((wanted - i32::from(twice)).abs() <= 1, "{once} once, {twice} twice");
    }
}

#[test]
fn equal_pictures_differ_by_nothing() {
    let folder = Folder::new();
    let facts = compare(&folder, &["-o", "grey.png", "--tilings", "blend", "--json"]).json();
    let row = &facts["tilings"][1];
    assert_eq!((&row["max_error_levels"], &row["psnr_db"]), (&json!(0.0), &Value::Null));
    assert!(picture(&folder, "grey.png").iter().all(|level| *level == 128));
    let text = compare(&folder, &["-o", "grey.webp", "--tilings", "exact,blend,blend"]).ok().stdout;
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("equal") && text.contains("grey.webp"), "{text}");
}

#[test]
fn tiles_that_make_no_sense() {
    let folder = Folder::new();
    let before = folder.names();
    let cases: [(&[&str], i32, &[&str]); 13] = [
        (&["--tiling", "mosaic"], 2, &["mosaic", "exact, blend, cosine"]),
        (&["--tiling", "blend", "--tile-size", "big"], 2, &["--tile-size", "big"]),
        (&["--tiling", "blend", "--tile-size", "-8"], 2, &["-8"]),
        (&["--tiling", "blend", "--tile-size", "4294967296"], 2, &["--tile-size", "4294967296"]),
        (&["--tiling", "blend", "--tile-size", "4294967288"], 1, &["--tile-size", "1 to 65536 latents", "2147483644"]),
        (&["--tiling", "blend", "--tile-size", "0"], 1, &["--tile-size", "multiple of 2 pixels", "0 pixels"]),
        (&["--tiling", "cosine", "--tile-size", "7"], 1, &["--tile-size", "multiple of 2 pixels", "7 pixels"]),
        (&["--tiling", "blend", "--tile-size", "12"], 1, &["--tile-size", "multiple of 8 pixels", "12 pixels"]),
        (&["--tiling", "cosine", "--tile-overlap", "3"], 1, &["--tile-overlap", "multiple of 2 pixels", "3 pixels"]),
        (&["--tiling", "blend", "--tile-size", "8", "--tile-overlap", "8"], 1, &["--tile-overlap", "4 latents"]),
        (&["--tiling", "cosine", "--tile-size", "8", "--tile-overlap", "16"], 1, &["--tile-overlap", "8 latents"]),
        (&["--tile-size", "64"], 1, &["--tile-size", "unless tiling is blend or cosine", "64 with tiling exact"]),
        (&["--tiling", "exact", "--tile-overlap", "8"], 1, &["--tile-overlap", "8 with tiling exact"]),
    ];
    for (args, code, words) in cases {
        folder.decode(&[&["-o", "out.png"], args].concat()).failed(&args.join(" "), code, words);
    }
    // The configuration has no tile size that diffusers could use.
    let config = crate::tool::golden().0.replace("\"sample_size\": 64", "\"sample_size\": 63");
    folder.write("model/config.json", config.as_bytes());
    let words = ["\"sample_size\"", "multiple of 2 pixels", "found 63"];
    folder.decode(&["-o", "out.png", "--tiling", "blend"]).failed("sample_size", 1, &words);
    assert_eq!(folder.names(), before);
}

#[test]
fn comparisons_that_make_no_sense() {
    let folder = Folder::new();
    let before = folder.names();
    let cases: [(&[&str], i32, &[&str]); 9] = [
        (&["-o", "out.png", "--tilings", "exact"], 1, &["--tilings", "blend, cosine", "only exact"]),
        (&["-o", "out.png", "--tilings", "blend,mosaic"], 2, &["mosaic"]),
        (&["-o", "out.png", "--tilings", ""], 2, &["--tilings"]),
        (&["-o", "out.png", "--amplify", "0"], 2, &["--amplify", "1..=255"]),
        (&["-o", "out.png", "--tile-size", "7"], 1, &["--tile-size", "multiple of 2 pixels"]),
        (&["-o", "missing/out.png"], 1, &["missing/out-blend.png", "existing folder missing"]),
        (&["-o", "out.npy"], 1, &["out.npy", "png, jpg, jpeg, webp"]),
        (&["-o", "out"], 1, &["out", "none"]),
        (&["-o", "out.png", "--adapter", "voodoo"], 1, &["\"voodoo\""]),
    ];
    for (args, code, words) in cases {
        compare(&folder, args).failed(&args.join(" "), code, words);
    }
    let mut two = formula::latents(&LATENTS);
    two.shape[0] = 2;
    two.data.extend_from_within(..);
    folder.write_latents(&Entry::f32(&two));
    compare(&folder, &["-o", "out.png"]).failed("two images", 1, &["latents.safetensors", "one image", "2 images"]);
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 4, 9, 10])));
    compare(&folder, &["-o", "out.png"]).failed("channels", 1, &["8 channels", "4 channels"]);
    assert_eq!(folder.names(), before);
}
