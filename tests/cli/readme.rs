//! Test that runs every `wgvae` command in README.md, results/README.md, the guide and the
//! reference, as written, in a folder with the files that it names.
//!
//! The test reads the documents, so it cannot miss a new page or line. Other models replace the
//! named ones: sparse files with a published network's tensors, all zero; on the hub, the embedded
//! model. Measurements of published models take minutes, so they are planned as written, but run
//! with the embedded model (a small one for clips) and small pictures.

use std::path::Path;
use std::process::Command;

use image::ExtendedColorType;
use regex::Regex;
use test_kit::{formula, repository};
use wgvae::config::Family;
use wgvae::device::DeviceLimits;
use wgvae::{HostTensor, LatentSpace, Plans, Request, Size, Storage, plan};

use crate::clips::video_model;
use crate::commands::write_hollow;
use crate::encode::png;
use crate::hub::server::{Hub, ID, Manners};
use crate::opacity;
use crate::tool::{Entry, Folder, Outcome, finish, safetensors};

/// Documents with commands, beside the pages of [`FOLDERS`].
const DOCUMENTS: [&str; 2] = ["README.md", "results/README.md"];

/// Folders whose pages may contain commands.
const FOLDERS: [&str; 2] = ["docs/guide", "docs/reference"];

/// Pages of the guide that must have commands: all of them are about the command line.
const PAGES_OF_COMMANDS: [&str; 7] = [
    "docs/guide/cli.md",
    "docs/guide/hub.md",
    "docs/guide/memory-budgets.md",
    "docs/guide/memory-report.md",
    "docs/guide/pictures.md",
    "docs/guide/tiling.md",
    "docs/guide/video.md",
];

/// Flags whose value is a file that the command writes.
const WRITTEN: [&str; 5] = ["-o", "--output", "--svg", "--html", "--report"];

/// Returns README.md, results/README.md and every page of the folders.
fn documents() -> Vec<String> {
    let mut documents = DOCUMENTS.map(str::to_owned).to_vec();
    for folder in FOLDERS {
        let pages = std::fs::read_dir(repository().join(folder)).unwrap();
        documents.extend(pages.map(|page| format!("{folder}/{}", page.unwrap().file_name().to_string_lossy())));
    }
    documents.sort();
    documents
}

/// Returns the commands of a document: lines of its code blocks, with or without a prompt, and
/// inline code. An inline command without options becomes a request for its help.
fn commands(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join(document)).unwrap();
    let (mut blocks, mut prose) = (Vec::new(), String::new());
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 0 {
            prose.push_str(part);
        } else {
            let command =
                |line: &str| line.strip_prefix("$ ").unwrap_or(line).split("  #").next().unwrap_or_default().to_owned();
            blocks.extend(part.lines().map(command));
        }
    }
    let spans = Regex::new("`(wgvae [^`]+)`").unwrap();
    let spans = spans.captures_iter(&prose).map(|found| found[1].split_whitespace().collect::<Vec<_>>().join(" "));
    let spans = spans.map(|span| if span.contains(" -") { span } else { format!("{span} --help") });
    blocks.into_iter().filter(|line| line.starts_with("wgvae ")).chain(spans).collect()
}

/// Makes a folder with parts of the repository and replacements for the files that commands name
/// and users provide.
fn folder() -> Folder {
    let folder = Folder::new();
    for shipped in ["results", "assets/demo", "assets/demo/model"] {
        std::fs::create_dir_all(folder.path(shipped)).unwrap();
        for entry in std::fs::read_dir(repository().join(shipped)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), folder.path(shipped).join(entry.file_name())).unwrap();
            }
        }
    }
    // A little larger than a tile of 256 pixels. The shipped latents take four times as long.
    folder.write("assets/demo/latents.safetensors", &latents_file(&formula::latents(&[1, 16, 36, 33])));
    std::fs::create_dir(folder.path("sd-vae-ft-mse")).unwrap();
    write_hollow(&folder, "sd15.diffusers.json", "", "sd-vae-ft-mse/diffusion_pytorch_model.safetensors");
    let config = repository().join("tests/fixtures/configs/sd15.json");
    std::fs::copy(config, folder.path("sd-vae-ft-mse/config.json")).unwrap();
    write_hollow(&folder, "sd15.diffusers.json", "", "sdxl_vae.safetensors");
    write_hollow(&folder, "sd15.diffusers.json", "", "eq_sdxl_vae.safetensors");
    write_hollow(&folder, "flux1.ae_safetensors.json", "", "ae.safetensors");
    // A small model for video, with a clip of five frames of 16 x 8 pixels.
    std::fs::create_dir(folder.path("wan_vae")).unwrap();
    let (config, weights) = video_model();
    folder.write("wan_vae/config.json", config.as_bytes());
    folder.write("wan_vae/diffusion_pytorch_model.safetensors", &safetensors(&weights));
    folder.write("clip.safetensors", &latents_file(&formula::latents(&[1, 16, 2, 1, 2])));
    std::fs::create_dir(folder.path("frames")).unwrap();
    std::fs::create_dir(folder.path("layered_vae")).unwrap();
    let (config, weights) = opacity::model();
    folder.write("layered_vae/config.json", config.as_bytes());
    folder.write("layered_vae/diffusion_pytorch_model.safetensors", &safetensors(&weights));
    folder.write("layers.safetensors", &latents_file(&formula::latents(&[1, 16, 2, 1, 2])));
    folder.write("cutout.png", &png(&[128; 32 * 24 * 4], 32, 24, ExtendedColorType::Rgba8));
    folder.write("photo.png", &png(&[128; 32 * 24 * 3], 32, 24, ExtendedColorType::Rgb8));
    let latents = formula::latents(&[1, 4, 4, 6]);
    folder.write("latents.safetensors", &latents_file(&latents));
    folder.write("latents.npy", &npy(&latents));
    for (name, content) in [("latents/a.npy", npy(&latents)), ("photos/a.png", folder.read("photo.png"))] {
        std::fs::create_dir(folder.path(name).parent().unwrap()).unwrap();
        folder.write(name, &content);
    }
    folder
}

fn latents_file(latents: &HostTensor) -> Vec<u8> {
    safetensors(&[("latents".to_owned(), Entry::f32(latents))].into())
}

fn npy(tensor: &HostTensor) -> Vec<u8> {
    let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape.join(", "));
    // The header ends with a newline at a multiple of 64 bytes.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
    file.extend_from_slice(format!("{header:<width$}\n", width = length - 1).as_bytes());
    file.extend(tensor.data.iter().flat_map(|value| value.to_le_bytes()));
    file
}

/// Splits a command into words as a shell does, and expands `*` to files.
fn words(folder: &Folder, command: &str) -> Vec<String> {
    assert!(!command.contains(['"', '\'', '\\', '$', '|', '>', '?']), "a shell does more with {command}");
    command.split_whitespace().skip(1).flat_map(|word| expanded(folder, word)).collect()
}

fn expanded(folder: &Folder, word: &str) -> Vec<String> {
    let Some((before, after)) = word.split_once('*') else { return vec![word.to_owned()] };
    let (directory, before) = before.rsplit_once('/').unwrap_or((".", before));
    let names = std::fs::read_dir(folder.path(directory)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> = names
        .filter(|name| name.starts_with(before) && name.ends_with(after))
        .map(|name| format!("{directory}/{name}"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{word} is no file");
    found
}

/// Returns the value of a flag.
fn value<'a>(words: &'a mut [String], flag: &str) -> Option<&'a mut String> {
    let at = words.iter().position(|word| word == flag)?;
    words.get_mut(at + 1)
}

/// Makes a measurement smaller. It is planned for the models and sizes that it names, but runs with
/// the embedded model and a small picture, or for clips with a small model for video and a short
/// clip.
fn smaller(words: &mut [String]) {
    let (Some(models), Some(sizes)) = (value(words, "--models").cloned(), value(words, "--sizes").cloned()) else {
        return;
    };
    let frames = value(words, "--frames").cloned();
    for model in models.split(',').filter(|model| *model != "demo") {
        let config = Family::find(model).unwrap().config();
        for size in sizes.split(',') {
            let (width, height) = size.split_once('x').unwrap();
            let [width, height] = [width, height].map(|side| side.parse::<u32>().unwrap());
            let factor = config.spatial_factor();
            assert_eq!((width % factor, height % factor), (0, 0), "{model} {size}");
            let limits = DeviceLimits::webgpu_default();
            if let Some(frames) = &frames {
                let mut later = frames.split(',').map(|frames| frames.parse::<u32>().unwrap() - 1);
                let time = config.temporal_factor();
                assert!(config.has_time() && later.all(|later| later.is_multiple_of(time)), "{model} {frames}");
                let size = Size { width: width / factor, height: height / factor };
                plan(&config, &Request::decode(size, LatentSpace::Vae).of_clip(), &limits, Storage::F32).unwrap();
            } else if words.iter().any(|word| word == "--encode") {
                let size = Size { width, height };
                plan(&config, &Request::encode(size), &limits, Storage::F32).map(Plans::into_first).unwrap();
            } else {
                let size = Size { width: width / factor, height: height / factor };
                plan(&config, &Request::decode(size, LatentSpace::Vae), &limits, Storage::F32)
                    .map(Plans::into_first)
                    .unwrap();
            }
        }
    }
    let (model, size) = if frames.is_some() { ("wan_vae", "16x8") } else { ("demo", "32x32") };
    model.clone_into(value(words, "--models").unwrap());
    size.clone_into(value(words, "--sizes").unwrap());
    if let Some(frames) = value(words, "--frames") {
        "1,5".clone_into(frames);
    }
    // Any program that runs its arguments will do.
    if let Some(program) = value(words, "--through") {
        assert_eq!(program, "PROGRAM");
        "env".clone_into(program);
    }
}

/// Returns the files that a command must write. The pictures of a comparison are named after its
/// tilings.
fn written(words: &[String]) -> Vec<String> {
    let files = words.windows(2).filter(|pair| WRITTEN.contains(&pair[0].as_str())).map(|pair| pair[1].clone());
    if words[0] != "compare-tiling" {
        return files.collect();
    }
    files.flat_map(|file| ["blend", "cosine"].map(|tiling| file.replace(".png", &format!("-{tiling}.png")))).collect()
}

/// Starts a hub with the embedded model.
fn hub() -> Hub {
    let file = |name: &str| std::fs::read(repository().join("assets/demo/model").join(name)).unwrap();
    let files = ["config.json", "diffusion_pytorch_model.safetensors"].map(|name| (name, file(name)));
    Hub::start(&files, Manners::default())
}

/// Runs a command with `hub` in place of the Hugging Face Hub. The hub's model takes the demo's
/// latents.
fn run(folder: &Folder, hub: &Hub, words: &[String]) -> Outcome {
    let on_hub = words.iter().any(|word| word.starts_with("hf:"));
    let place = |word: &String| match word.as_str() {
        "latents.safetensors" if on_hub => "assets/demo/latents.safetensors".to_owned(),
        word => word.replace("hf:owner/name", &format!("hf:{ID}")),
    };
    let words: Vec<String> = words.iter().map(place).collect();
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command: Command = folder.command(&args);
    for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"] {
        command.env_remove(name);
    }
    finish(command.env("HF_HOME", folder.path("huggingface")).env("HF_ENDPOINT", &hub.address))
}

/// Returns the minimum number of commands of a document, so that a change of its form cannot hide
/// them.
fn fewest(document: &str) -> usize {
    if DOCUMENTS.contains(&document) {
        5
    } else if PAGES_OF_COMMANDS.contains(&document) {
        2
    } else {
        0
    }
}

/// True for a file, and for a folder with something in it.
fn is_filled(path: &Path) -> bool {
    path.is_file() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

#[test]
fn every_command_of_the_documents_does_what_it_says() {
    let folder = folder();
    let hub = hub();
    let documents = documents();
    for page in PAGES_OF_COMMANDS {
        assert!(documents.iter().any(|document| document == page), "{page} is not in {documents:?}");
    }
    for document in &documents {
        let commands = commands(document);
        assert!(commands.len() >= fewest(document), "{document}: {commands:?}");
        for command in commands {
            let mut words = words(&folder, &command.replace("COMMAND", "decode"));
            smaller(&mut words);
            let written: Vec<String> = written(&words).iter().map(|file| file.replace("%05d", "00001")).collect();
            for file in written.iter().map(|file| folder.path(file)).filter(|file| file.exists()) {
                let remove = if file.is_dir() { std::fs::remove_dir_all(file) } else { std::fs::remove_file(file) };
                remove.unwrap();
            }
            let outcome = run(&folder, &hub, &words);
            println!("{document}: {command}");
            assert_eq!(outcome.code, Some(0), "{document}: {command}\n{}", outcome.stderr);
            assert!(!outcome.stdout.is_empty(), "{document}: {command} says nothing");
            // Pictures of several layers have numbers.
            let is_written = |file: &String| {
                [file, &file.replace(".png", "-1.png")].iter().any(|file| is_filled(&folder.path(file)))
            };
            let missing: Vec<_> = written.iter().filter(|file| !is_written(file)).collect();
            assert!(missing.is_empty(), "{document}: {command} wrote no {missing:?}");
        }
    }
}

/// Example program of the guide for the library.
#[allow(dead_code, reason = "its main has paths of its own")]
mod picture {
    include!("readme_example.rs");

    pub(super) fn run(model: &str, latents: &str, picture: &str) -> Result<()> {
        pollster::block_on(decode(model, latents, picture))
    }
}

#[test]
fn the_librarys_example_writes_the_commands_picture() {
    let page = std::fs::read_to_string(repository().join("docs/guide/rust.md")).unwrap();
    let (_, example) = include_str!("readme_example.rs").split_once("\n\n").unwrap();
    assert!(page.contains(&format!("```rust,no_run\n{example}```\n")), "the guide has another example");

    let folder = folder();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let latents = "assets/demo/latents.safetensors";
    picture::run(&path("assets/demo/model"), &path(latents), &path("picture.png")).unwrap();
    folder.run(&["decode", "--model", "assets/demo/model", "--latents", latents, "-o", "command.png"]).ok();
    let pixels = |name: &str| image::open(folder.path(name)).unwrap().into_rgb8();
    assert!(pixels("picture.png") == pixels("command.png"));
}
