//! `-`: latents and pictures in pipes. Nothing else goes to stdout.

use std::fs::File;
use std::process::{Command, Stdio};

use image::ExtendedColorType;
use serde_json::Value;
use test_kit::formula;

use crate::encode::png;
use crate::tool::{Entry, Folder, Outcome, finish, weights_of_both};

/// Output of a run, as bytes.
#[derive(Debug)]
struct Piped {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Piped {
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Converts this to an [`Outcome`], for a run without output.
    fn nothing(self) -> Outcome {
        Outcome { code: self.code, stdout: String::from_utf8(self.stdout).unwrap(), stderr: self.stderr }
    }
}

/// Runs the command with file `input` of the folder as stdin.
fn piped(folder: &Folder, input: &str, args: &[&str]) -> Piped {
    let mut command = folder.command(args);
    let output = command.stdin(File::open(folder.path(input)).unwrap()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Piped { code: output.status.code(), stdout: output.stdout, stderr }
}

fn decoding<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["decode", "--model", "model", "--latents", "-", "--precision", "f32"], more].concat()
}

fn encoding<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["encode", "--model", "model", "--image", "-", "--precision", "f32"], more].concat()
}

const LATENTS: &str = "latents.safetensors";

#[test]
fn a_decode_in_a_pipe_is_that_of_files_to_the_byte() {
    let folder = Folder::new();
    for (format, ending) in [
        (None, "png"),
        (Some("png"), "png"),
        (Some("jpg"), "jpg"),
        (Some("webp"), "webp"),
        (Some("npy"), "npy"),
        (Some("safetensors"), "safetensors"),
    ] {
        let file = format!("out.{ending}");
        folder.decode(&["-o", &file]).ok();
        let format = format.map_or(Vec::new(), |format| vec!["--format", format]);
        let out = piped(&folder, LATENTS, &decoding(&[&["-o", "-"], format.as_slice()].concat())).ok();
        assert!(out.stdout == folder.read(&file), "{ending}: {} bytes", out.stdout.len());
        assert!(out.stderr.contains("wrote - ("), "{}", out.stderr);
    }
    // A pipe written to a file, and facts that are JSON on their own.
    piped(&folder, LATENTS, &decoding(&["-o", "again.png"])).ok();
    assert!(folder.read("again.png") == folder.read("out.png"));
    let out = piped(&folder, LATENTS, &decoding(&["-o", "-", "--json"])).ok();
    let json = out.stderr.find("{\n").map(|at| &out.stderr[at..]).unwrap();
    let facts: Value = serde_json::from_str(json).unwrap();
    assert_eq!(facts["files"], serde_json::json!(["-"]));
    assert!(!folder.names().iter().any(|name| name == "-"), "{:?}", folder.names());
}

#[test]
fn several_images_go_to_stdout_as_floats_only() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[2, 8, 3, 4])));
    folder.decode(&["-o", "out.npy"]).ok();
    let out = piped(&folder, LATENTS, &decoding(&["-o", "-", "--format", "npy"])).ok();
    assert!(out.stdout == folder.read("out.npy"));
    let refused = piped(&folder, LATENTS, &decoding(&["-o", "-"])).nothing();
    refused.failed("two pictures", 1, &["--output -", "one image", "2 images"]);
}

#[test]
fn an_encode_in_a_pipe_is_that_of_files_to_the_byte() {
    let folder = Folder::new();
    folder.write_weights(&weights_of_both());
    folder.write("photo.png", &png(&[200; 20 * 18 * 3], 20, 18, ExtendedColorType::Rgb8));
    folder.decode(&["-o", "floats.npy"]).ok();
    for input in ["photo.png", "floats.npy"] {
        for (format, ending) in [(None, "safetensors"), (Some("npy"), "npy")] {
            let file = format!("out.{ending}");
            let args = ["encode", "--model", "model", "--image", input, "--precision", "f32", "-o", &file];
            folder.run(&args).ok();
            let format = format.map_or(Vec::new(), |format| vec!["--format", format]);
            let out = piped(&folder, input, &encoding(&[&["-o", "-"], format.as_slice()].concat())).ok();
            assert!(out.stdout == folder.read(&file), "{input} {ending}: {} bytes", out.stdout.len());
        }
    }
    // Encode, then decode again.
    folder.write("encoded", &piped(&folder, "photo.png", &encoding(&["-o", "-"])).ok().stdout);
    let picture = piped(&folder, "encoded", &decoding(&["-o", "-"])).ok().stdout;
    assert_eq!(picture[..8], *b"\x89PNG\r\n\x1a\n");
}

#[test]
fn what_makes_no_sense_in_a_pipe_is_refused() {
    let folder = Folder::new();
    folder.write_weights(&weights_of_both());
    folder.write("nothing", b"");
    folder.write("text", b"These are no latents at all, and no picture either.");
    for (input, why) in [("nothing", "it is empty"), ("text", "safetensors")] {
        piped(&folder, input, &decoding(&["-o", "-"])).nothing().failed(input, 1, &["stdin", why]);
        piped(&folder, input, &encoding(&["-o", "-"])).nothing().failed(input, 1, &["stdin", why]);
    }
    let cases: [(Vec<&str>, &[&str]); 6] = [
        (decoding(&["-o", "out.png", "--format", "png"]), &["--format", "--output -", "out.png"]),
        (encoding(&["-o", "out.npy", "--format", "npy"]), &["--format", "--output -", "out.npy"]),
        (decoding(&["-o", "-", "--format", "y4m"]), &["--format", "not for video", "y4m"]),
        (decoding(&["-o", "-", "--report", "-"]), &["--report", "a file"]),
        (encoding(&["-o", "-", "--each", "--image", "-"]), &["--image", "stdin can be read only once"]),
        (encoding(&["-o", "-", "--each", "--image", "model/config.json"]), &["--output -", "--each"]),
    ];
    for (args, words) in cases {
        piped(&folder, LATENTS, &args).nothing().failed(&args.join(" "), 1, words);
    }
    assert!(!folder.names().iter().any(|name| name == "-" || name.starts_with("out")), "{:?}", folder.names());
}

#[test]
fn clips_go_to_stdout_as_y4m_only() {
    let folder = Folder::for_video();
    let clip = |format: &str| piped(&folder, "clip.npy", &decoding(&["-o", "-", "--format", format]));
    clip("png").nothing().failed("pictures of a clip", 1, &["--format", "y4m", "png"]);
    let whole = piped(&folder, "clip.npy", &decoding(&["-o", "-"])).ok().stdout;
    assert!(whole.starts_with(b"YUV4MPEG2 "));
    assert!(clip("y4m").ok().stdout == whole);
    // Encode to latents, where the position of each value is known only at the end.
    folder.write("clip.y4m", &whole);
    piped(&folder, "clip.y4m", &encoding(&["-o", "-"])).nothing().failed(
        "latents of a clip",
        1,
        &["--output", "a .safetensors or .npy file"],
    );
    piped(&folder, "clip.y4m", &encoding(&["-o", "encoded.npy"])).ok();
}

/// Tests a name of stdout where stdout is a file with other lines in it.
#[cfg(target_os = "linux")]
#[test]
fn a_report_to_dev_stdout_replaces_no_file() {
    let folder = Folder::new();
    folder.write("log", b"earlier\n");
    std::os::unix::fs::symlink("/dev/stdout", folder.path("link.json")).unwrap();
    for report in ["/dev/stdout", "/proc/self/fd/1", "link.json"] {
        let log = File::options().append(true).open(folder.path("log")).unwrap();
        let args = ["decode", "--model", "model", "--latents", LATENTS, "-o", "out.png", "--report", report];
        assert!(folder.command(&args).stdout(log).stderr(Stdio::null()).status().unwrap().success());
    }
    let errors = File::options().append(true).open(folder.path("log")).unwrap();
    let args =
        ["decode", "--model", "model", "--latents", LATENTS, "-o", "out.png", "--quiet", "--report", "/dev/stderr"];
    assert!(folder.command(&args).stdout(Stdio::null()).stderr(errors).status().unwrap().success());
    let text = String::from_utf8(folder.read("log")).unwrap();
    assert!(text.starts_with("earlier\n{"), "{text}");
    let count = |words| text.matches(words).count();
    assert_eq!((count("\"measured_peak_bytes\""), count("wrote out.png")), (4, 3), "{text}");
}

/// Tests that checking the output does not end it for the reader of a pipe.
#[cfg(unix)]
#[test]
fn a_named_pipe_gets_all_of_the_output() {
    let folder = Folder::new();
    folder.decode(&["-o", "out.png"]).ok();
    let pipe = folder.path("pipe.png");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    folder.decode(&["-o", "pipe.png"]).ok();
    let pixels = |bytes: &[u8]| image::load_from_memory(bytes).unwrap().to_rgb8();
    assert!(pixels(&reader.wait_with_output().unwrap().stdout) == pixels(&folder.read("out.png")));
}

/// Tests pictures and floats that can be read only once, as from `<(command)` in a shell.
#[cfg(target_os = "linux")]
#[test]
fn an_image_may_come_from_a_pipe_by_its_name() {
    let folder = Folder::new();
    folder.write_weights(&weights_of_both());
    folder.write("photo.png", &png(&[200; 20 * 18 * 3], 20, 18, ExtendedColorType::Rgb8));
    folder.decode(&["-o", "floats.npy"]).ok();
    for input in ["photo.png", "floats.npy"] {
        let args = |image, out| ["encode", "--model", "model", "--image", image, "--precision", "f32", "-o", out];
        folder.run(&args(input, "wanted.npy")).ok();
        let mut cat = Command::new("cat").arg(folder.path(input)).stdout(Stdio::piped()).spawn().unwrap();
        let mut encode = folder.command(&args("/dev/stdin", "found.npy"));
        finish(encode.stdin(cat.stdout.take().unwrap())).ok();
        cat.wait().unwrap();
        assert!(folder.read("found.npy") == folder.read("wanted.npy"), "{input}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_enough_is_no_panic() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 8, 48, 48])));
    let args = ["decode", "--model", "model", "--latents", LATENTS, "--precision", "f32", "-o", "-", "--format", "npy"];
    let mut child = folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("panic") && !stderr.contains("error: std"), "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout_is_an_error() {
    let folder = Folder::new();
    let mut command = folder.command(&["decode", "--model", "model", "--latents", LATENTS, "-o", "-"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    finish_into(&mut command, full).failed("a full disk", 1, &["stdout"]);
}

#[cfg(target_os = "linux")]
fn finish_into(command: &mut Command, stdout: File) -> Outcome {
    let output = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Outcome { code: output.status.code(), stdout: String::new(), stderr }
}

/// Tests with `script` of util-linux, which gives a program a terminal.
#[cfg(target_os = "linux")]
#[test]
fn pictures_are_not_written_to_a_terminal() {
    let folder = Folder::new();
    folder.write_weights(&weights_of_both());
    folder.write("photo.png", &png(&[200; 20 * 18 * 3], 20, 18, ExtendedColorType::Rgb8));
    for args in ["decode --model model --latents latents.safetensors", "encode --model model --image photo.png", "demo"]
    {
        let line = format!("'{}' {args} -o -", env!("CARGO_BIN_EXE_wgvae"));
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(folder.path(".")).stdin(Stdio::null());
        if let Err(error) = script.output() {
            println!("SKIPPED: script: {error}");
            return;
        }
        let outcome = finish(&mut script);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stdout.contains("--output -") && outcome.stdout.contains("a terminal"), "{outcome:?}");
    }
}
