//! `wgvae view`, on a terminal by `script` of util-linux, which other systems may lack.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use icy_sixel::SixelImage;
use image::{DynamicImage, RgbImage};
use regex::Regex;
use serde_json::json;
use test_kit::formula;

use crate::tool::{Entry, Folder, Outcome, finish, safetensors, with_header};

/// Variables by which `view` knows terminals. Those of the terminal around the tests must not reach
/// it.
const VARIABLES: [&str; 6] = ["TMUX", "STY", "TERM_PROGRAM", "LC_TERMINAL", "KITTY_WINDOW_ID", "COLORTERM"];

/// Makes a folder with latents of two images for SDXL, and the linear previews of both.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[2, 4, 12, 20])));
    folder.run(&["preview", "--family", "sdxl", "--latents", "latents.safetensors", "-o", "p.png"]).ok();
    folder
}

fn picture(folder: &Folder, name: &str) -> RgbImage {
    image::load_from_memory(&folder.read(name)).unwrap().into_rgb8()
}

/// Runs `wgvae view` on a terminal of 30 rows and 60 columns. Returns `None` without `script`.
fn on_terminal(folder: &Folder, args: &str, variables: &[(&str, &str)]) -> Option<Outcome> {
    let line = format!("stty rows 30 cols 60; exec '{}' view {args}", env!("CARGO_BIN_EXE_wgvae"));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(folder.path(".")).stdin(Stdio::null());
    for name in VARIABLES {
        script.env_remove(name);
    }
    script.env("TERM", "xterm-256color").envs(variables.iter().copied());
    if let Err(error) = script.output() {
        println!("SKIPPED: script: {error}");
        return None;
    }
    Some(finish(&mut script))
}

/// Reads the picture back that half blocks with 24-bit colours show. Its height must be even.
fn read_blocks(shown: &str) -> RgbImage {
    let block = Regex::new(r"38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m▀").unwrap();
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for line in shown.lines().filter(|line| line.contains('▀')) {
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for found in block.captures_iter(line) {
            let level = |index: usize| found[index].parse::<u8>().unwrap();
            upper.extend([1, 2, 3].map(level));
            lower.extend([4, 5, 6].map(level));
        }
        rows.extend([upper, lower]);
    }
    let [width, height] = [rows[0].len() / 3, rows.len()].map(|side| u32::try_from(side).unwrap());
    RgbImage::from_raw(width, height, rows.concat()).unwrap()
}

#[test]
fn half_blocks_are_the_pixels_of_the_linear_preview() {
    let folder = folder();
    let truecolor = [("COLORTERM", "truecolor")];
    let Some(first) = on_terminal(&folder, "latents.safetensors --family sdxl", &truecolor) else { return };
    let first = first.ok().stdout;
    assert!(read_blocks(&first) == picture(&folder, "p-1.png"), "{first}");
    let said = "latents.safetensors: image 1 of 2, 20x12 latents, linear preview of sdxl, 20x12 pixels";
    assert!(first.contains(said), "{first}");

    let second = "latents.safetensors --family sdxl --index 2 --quiet";
    let second = on_terminal(&folder, second, &truecolor).unwrap().ok().stdout;
    assert!(read_blocks(&second) == picture(&folder, "p-2.png"), "{second}");
    assert!(!second.contains("latents"), "{second}");

    let narrow = on_terminal(&folder, "latents.safetensors --family sdxl --width 10", &truecolor).unwrap();
    assert_eq!(read_blocks(&narrow.ok().stdout).dimensions(), (10, 6));
    let few_colors = on_terminal(&folder, "latents.safetensors --family sdxl", &[]).unwrap().ok().stdout;
    assert!(few_colors.contains("[38;5;") && !few_colors.contains("38;2;"), "{few_colors}");
    assert_eq!(few_colors.matches('▀').count(), 20 * 6);
}

/// Latents that are larger than the terminal are drawn smaller.
#[test]
fn a_picture_fits_the_terminal() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[4, 80, 100])));
    let shown = on_terminal(&folder, "latents.safetensors", &[("COLORTERM", "24bit")]);
    let Some(shown) = shown else { return };
    // 28 of 30 rows are free.
    assert_eq!(read_blocks(&shown.ok().stdout).dimensions(), (60, 48));
    let shown = on_terminal(&folder, "latents.safetensors --preview 25", &[("COLORTERM", "24bit")]).unwrap();
    assert_eq!(read_blocks(&shown.ok().stdout).dimensions(), (25, 20));
}

#[test]
fn terminals_that_draw_pixels_get_the_picture() {
    let folder = folder();
    let preview = picture(&folder, "p-1.png");
    let base = "latents.safetensors --family sdxl";
    let Some(kitty) = on_terminal(&folder, base, &[("TERM", "xterm-kitty")]) else { return };
    let png = |data: &str| -> DynamicImage { image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap() };
    let kitty = kitty.ok().stdout;
    let found = Regex::new("\x1b_Ga=T,f=100,q=2,c=20,m=0;([^\x1b]+)\x1b\\\\").unwrap();
    assert!(png(&found.captures(&kitty).unwrap()[1]).into_rgb8() == preview, "{kitty}");

    let iterm = on_terminal(&folder, base, &[("TERM_PROGRAM", "iTerm.app")]).unwrap().ok().stdout;
    let found = Regex::new("\x1b]1337;File=inline=1;width=20;[^:]*:([^\x07]+)\x07").unwrap();
    assert!(png(&found.captures(&iterm).unwrap()[1]).into_rgb8() == preview, "{iterm}");

    let sixel = on_terminal(&folder, base, &[("TERM", "foot")]).unwrap().ok().stdout;
    let begin = sixel.find("\x1bP").unwrap();
    let drawn = SixelImage::decode(&sixel.as_bytes()[begin..]).unwrap();
    assert_eq!(drawn.dimensions(), (160, 96));
    for channel in 0..3 {
        let mean = |levels: &[u8], step: usize| {
            let of_channel = levels.iter().skip(channel).step_by(step).map(|level| f64::from(*level));
            of_channel.sum::<f64>() / (levels.len() / step) as f64
        };
        let [shown, wanted] = [mean(&drawn.pixels, 4), mean(preview.as_raw(), 3)];
        assert!((shown - wanted).abs() < 8.0, "channel {channel}: {shown}, not {wanted}");
    }

    // Variables of the terminal around tmux reach the commands within it.
    let within = [("TMUX", "/tmp/tmux-0/default,1,0"), ("KITTY_WINDOW_ID", "1")];
    let blocks = on_terminal(&folder, base, &within).unwrap().ok().stdout;
    assert!(blocks.contains('▀') && !blocks.contains("\x1b_G"), "{blocks}");
    let chosen = on_terminal(&folder, &format!("{base} --protocol kitty"), &within).unwrap().ok().stdout;
    assert!(chosen.contains("\x1b_G") && !chosen.contains('▀'), "{chosen}");
}

/// A long picture in kitty's protocol is cut into sequences of 4096 bytes.
#[test]
fn large_pictures_are_sent_in_chunks() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[4, 90, 80])));
    let Some(shown) = on_terminal(&folder, "latents.safetensors --protocol kitty", &[]) else { return };
    let shown = shown.ok().stdout;
    let chunk = Regex::new("\x1b_G(?:a=T,f=100,q=2,c=[0-9]+,)?m=([01]);([^\x1b]+)\x1b\\\\").unwrap();
    let chunks: Vec<(String, String)> =
        chunk.captures_iter(&shown).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    assert!(chunks.len() > 1, "{shown}");
    let (last, before) = chunks.split_last().unwrap();
    assert!(before.iter().all(|(more, data)| more == "1" && data.len() == 4096) && last.0 == "0", "{shown}");
    let data: String = chunks.iter().map(|(_, data)| data.as_str()).collect();
    let picture = image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap();
    assert_eq!((picture.width(), picture.height()), (80, 90));
}

#[test]
fn a_model_decodes_the_picture() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 8, 9, 10])));
    folder.decode(&["--preview", "16", "-o", "p.png", "--device", "cpu"]).ok();
    let args = "latents.safetensors --model model --preview 16 --device cpu";
    let Some(shown) = on_terminal(&folder, args, &[("COLORTERM", "truecolor")]) else { return };
    let shown = shown.ok().stdout;
    assert!(read_blocks(&shown) == picture(&folder, "p.png"), "{shown}");
    assert!(shown.contains("decoded by model, 10x10 pixels"), "{shown}");
}

/// Without `--family`, the file or its shape tells which linear map fits.
#[test]
fn the_family_is_stored_or_guessed() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 16, 3, 4, 6])));
    let Some(clip) = on_terminal(&folder, "latents.safetensors --index 2", &[]) else { return };
    let clip = clip.ok().stdout;
    let words =
        ["frame 2 of 3", "linear preview of wan21 (guessed from 16 channels, --family or --model names another)"];
    assert!(words.iter().all(|word| clip.contains(word)), "{clip}");
    let all = on_terminal(&folder, "latents.safetensors --index 4", &[]).unwrap();
    assert_eq!(all.code, Some(1));
    assert!(all.stdout.contains("--index: expected 1 to 3, found 4"), "{all:?}");

    let latents = formula::latents(&[4, 2, 2]);
    let data: Vec<u8> = latents.data.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = json!({ "dtype": "F32", "shape": [4, 2, 2], "data_offsets": [0, data.len()] });
    let header = json!({ "__metadata__": { "family": "playground" }, "latents": tensor });
    folder.write("latents.safetensors", &with_header(&header.to_string(), &data));
    let stored = on_terminal(&folder, "latents.safetensors", &[]).unwrap().ok().stdout;
    assert!(stored.contains("linear preview of playground (as the file says)"), "{stored}");

    // Neither a family without a map nor a clip's channels become another family.
    let header = header.to_string().replace("playground", "seedvr2");
    folder.write("latents.safetensors", &with_header(&header, &data));
    let unmapped = on_terminal(&folder, "latents.safetensors", &[]).unwrap();
    assert_eq!(unmapped.code, Some(1));
    assert!(unmapped.stdout.contains("found seedvr2, by the metadata of latents.safetensors"), "{unmapped:?}");
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 64, 3, 2, 2])));
    let clip = on_terminal(&folder, "latents.safetensors", &[]).unwrap();
    assert_eq!(clip.code, Some(1));
    assert!(clip.stdout.contains("64 channels"), "{clip:?}");

    folder.write_latents(&Entry::f32(&formula::latents(&[5, 2, 2])));
    let unknown = on_terminal(&folder, "latents.safetensors", &[]).unwrap();
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stdout.contains("--family: expected") && unknown.stdout.contains("5 channels"), "{unknown:?}");
}

/// A frame of a clip is what the same latents are as an image.
#[test]
fn a_frame_of_a_clip_is_an_image() {
    let folder = Folder::new();
    let clip = formula::latents(&[1, 16, 3, 4, 6]);
    folder.write("clip.safetensors", &safetensors(&BTreeMap::from([("latents".to_owned(), Entry::f32(&clip))])));
    let data = clip.data.chunks_exact(3 * 24).flat_map(|channel| channel[24..48].to_vec()).collect();
    folder.write_latents(&Entry::f32(&wgvae::HostTensor { shape: vec![1, 16, 4, 6], data }));
    folder.run(&["preview", "--family", "wan21", "--latents", "latents.safetensors", "-o", "p.png"]).ok();
    let truecolor = [("COLORTERM", "truecolor")];
    let Some(shown) = on_terminal(&folder, "clip.safetensors --index 2", &truecolor) else { return };
    assert!(read_blocks(&shown.ok().stdout) == picture(&folder, "p.png"));
}

#[test]
fn nothing_is_drawn_where_nobody_sees_it() {
    let folder = folder();
    let before = folder.names();
    let view = ["view", "latents.safetensors", "--family", "sdxl"];
    let words =
        ["standard output: expected a terminal", "`wgvae decode --preview N -o FILE`", "found a file or a pipe"];
    folder.run(&view).failed("no terminal", 1, &words);
    assert_eq!(folder.names(), before);
    let Some(dumb) = on_terminal(&folder, "latents.safetensors", &[("TERM", "dumb")]) else { return };
    assert_eq!(dumb.code, Some(1));
    assert!(dumb.stdout.contains("TERM=dumb") && !dumb.stdout.contains('▀'), "{dumb:?}");
}

#[test]
fn wrong_arguments_are_named() {
    let folder = folder();
    let fails = |args: &str, words: &[&str]| {
        let Some(outcome) = on_terminal(&folder, args, &[]) else { return };
        assert!(outcome.code == Some(1) && !outcome.stdout.contains('▀'), "{args}: {outcome:?}");
        assert!(words.iter().all(|word| outcome.stdout.contains(word)), "{args}: {outcome:?}");
    };
    fails("latents.safetensors --family nothing", &["--family: expected one of", "\"nothing\""]);
    fails("latents.safetensors --family seedvr2", &["--family: expected one whose linear map"]);
    fails("latents.safetensors --family flux1", &["latents in latents.safetensors: expected 16 channels"]);
    fails("latents.safetensors --model model", &["latents in latents.safetensors: expected 8 channels"]);
    fails("nowhere.safetensors", &["nowhere.safetensors"]);
    fails("latents.txt", &["ending of latents file latents.txt"]);
    for wrong in [&["view"][..], &["view", "a.npy", "--width", "0"], &["view", "a.npy", "--variant", "fp16"]] {
        assert_eq!(folder.run(wrong).code, Some(2), "{wrong:?}");
    }
}
