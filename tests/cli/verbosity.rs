//! Amount of output on stderr, and the exit codes.

use image::ExtendedColorType;
use test_kit::repository;

use crate::encode::png;
use crate::tool::{Folder, Outcome, weights_of_both};

/// Makes a folder with a model that encodes, and a picture whose encode prints a note.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write_weights(&weights_of_both());
    folder.write("grey.png", &png(&[128; 20 * 18], 20, 18, ExtendedColorType::L8));
    folder
}

fn encode(folder: &Folder, more: &[&str]) -> Outcome {
    let args =
        ["encode", "--model", "model", "--image", "grey.png", "-o", "out.npy", "--unscaled", "--precision", "f32"];
    folder.run(&[&args, more].concat()).ok()
}

/// Returns the lines on stderr, without lines that drivers print.
fn said(folder: &Folder, outcome: &Outcome) -> Vec<String> {
    let drivers = folder.run(&["--quiet", "adapters"]).ok().stderr;
    let lines = outcome.stderr.lines().filter(|line| !drivers.lines().any(|of_drivers| of_drivers == *line));
    lines.map(str::to_owned).collect()
}

#[test]
fn quiet_says_nothing_but_errors() {
    let folder = folder();
    let usual = encode(&folder, &[]);
    assert!(said(&folder, &usual).iter().any(|line| line.starts_with("note: ") && line.contains("grey")), "{usual:?}");
    for flag in ["--quiet", "-q"] {
        let quiet = encode(&folder, &[flag]);
        assert!(said(&folder, &quiet).is_empty(), "{quiet:?}");
        assert!(quiet.stdout.starts_with("wrote out.npy"), "{quiet:?}");
    }
    // Facts would go to stderr here, because stdout has the result.
    let piped =
        folder.command(&["-q", "encode", "--model", "model", "--image", "grey.png", "-o", "-"]).output().unwrap();
    assert!(piped.status.success() && !String::from_utf8_lossy(&piped.stderr).contains("wrote"), "{piped:?}");
    folder.run(&["--quiet", "inspect", "--model", "nowhere"]).failed("an error", 1, &["nowhere"]);
}

#[test]
fn verbose_says_what_each_phase_took() {
    let folder = folder();
    let timed = |outcome: &Outcome| -> Vec<String> {
        let lines = said(&folder, outcome).into_iter().filter_map(|line| {
            let (time, phase) = line.split_once(" s  ")?;
            time.trim().parse::<f64>().is_ok_and(|seconds| seconds >= 0.0).then(|| phase.to_owned())
        });
        lines.collect()
    };
    let phases = timed(&encode(&folder, &["--verbose", "--device", "gpu"]));
    let compiled =
        phases.iter().position(|phase| phase.starts_with("compile ")).unwrap_or_else(|| panic!("{phases:?}"));
    assert_eq!(phases[..compiled], ["open model", "open device", "load"]);
    assert_eq!(phases[compiled + 1..], ["encode", "write"]);
    let phases = timed(&folder.decode(&["-o", "out.png", "-v"]).ok());
    assert!(phases.contains(&"read latents".to_owned()) && phases.contains(&"decode".to_owned()), "{phases:?}");
    assert!(timed(&encode(&folder, &[])).is_empty());
}

#[test]
fn no_bar_is_drawn_where_nobody_sees_it() {
    let folder = folder();
    for more in [[].as_slice(), &["-v"]] {
        let outcome = encode(&folder, more);
        assert!(!outcome.stderr.contains(['\r', '\u{1b}', '█', '░']), "{outcome:?}");
    }
}

/// Tests with `script` of util-linux, which gives a program a terminal.
#[cfg(target_os = "linux")]
#[test]
fn each_phase_has_a_bar_on_a_terminal() {
    let folder = folder();
    let on_terminal = |flags: &str| {
        let wgvae = env!("CARGO_BIN_EXE_wgvae");
        let line =
            format!("'{wgvae}' decode --model model --latents latents.safetensors -o out.png --device gpu {flags}");
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(folder.path(".")).stdin(std::process::Stdio::null());
        script.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    match on_terminal("") {
        Ok(shown) => {
            for word in ["load ", "compiling", "decode ", "█"] {
                assert!(shown.contains(word), "{word} is not in {shown:?}");
            }
            assert!(shown.contains("wrote out.png"), "{shown:?}");
            let quiet = on_terminal("--quiet").unwrap();
            assert!(!quiet.contains(['█', '░']) && quiet.contains("wrote out.png"), "{quiet:?}");
        }
        Err(error) => println!("SKIPPED: script: {error}"),
    }
}

#[test]
fn exit_codes_are_those_that_are_documented() {
    let folder = folder();
    let code = |args: &[&str]| folder.run(args).code;
    assert_eq!(code(&["inspect", "--model", "model"]), Some(0));
    assert_eq!(code(&["inspect", "--model", "nowhere"]), Some(1));
    for wrong in
        [&["inspect"][..], &["nothing"], &["inspect", "--model", "model", "--sideways"], &["-q", "-v", "adapters"]]
    {
        assert_eq!(code(wrong), Some(2), "{wrong:?}");
    }
    // Exit code 130 is tested with Ctrl-C, and doctor's codes with doctor.
    let help = folder.run(&["--help"]).ok().stdout;
    let guide = std::fs::read_to_string(repository().join("docs/guide/cli.md")).unwrap();
    for document in [help, guide] {
        let (_, codes) = document.split_once("xit codes").unwrap_or_else(|| panic!("no exit codes in {document}"));
        let numbers = codes.split(|letter: char| !letter.is_ascii_digit()).filter(|number| !number.is_empty());
        assert_eq!(numbers.take(4).collect::<Vec<_>>(), ["0", "1", "2", "130"], "{codes}");
    }
}
