//! Clips that end early: Ctrl-C, a reader that goes away, a disk that fills, an ffmpeg that is
//! missing or fails.

use std::cell::RefCell;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{LATENTS, long};
use crate::tool::{Folder, Outcome, finish, fixture_path};

/// Sends Ctrl-C as soon as `is_there` returns true; it gets the id of the process. Returns the
/// outcome.
fn interrupt(folder: &Folder, output: &str, is_there: impl Fn(u32) -> bool) -> Outcome {
    signal("INT", folder.command(&Folder::decoding(&["-o", output])), folder, is_there)
}

/// Sends a signal to `command` as soon as `is_there`, which gets the id of the process, is true.
/// Returns how the command ended.
fn signal(signal: &str, mut command: Command, folder: &Folder, is_there: impl Fn(u32) -> bool) -> Outcome {
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !is_there(child.id()) && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(is_there(child.id()), "{:?}", folder.names());
    assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
    let pressed = Instant::now();
    assert!(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Outcome { code: output.status.code(), stdout, stderr }
}

#[test]
fn ctrl_c_leaves_whole_frames_and_nothing_else() {
    let folder = Folder::for_video();
    folder.write_clip(&long(2000));
    let ended = interrupt(&folder, "frames/%05d.png", |_| folder.frames().iter().any(|name| name == "00009.png"));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let frames = folder.frames();
    for (number, name) in (1..).zip(&frames) {
        assert_eq!(*name, format!("{number:05}.png"));
        let picture = image::load_from_memory(&folder.read(&format!("frames/{name}"))).unwrap();
        assert_eq!((picture.width(), picture.height()), (8, 8));
    }
    assert!(ended.stderr.contains(&format!("{:05}.png are written", frames.len())), "{}", ended.stderr);
}

#[test]
fn ctrl_c_leaves_no_part_of_a_file() {
    let folder = Folder::for_video();
    folder.write_clip(&long(2000));
    let before = folder.names();
    for output in ["out.y4m", "out.npy"] {
        let ended = interrupt(&folder, output, |process| folder.is_written_by(process));
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_eq!(folder.names(), before, "{output}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_decode_in_peace() {
    let folder = Folder::for_video();
    folder.write_clip(&long(2000));
    let mut command = folder.command(&Folder::decoding(&["-o", "-"]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut start = [0; 2000];
    stdout.read_exact(&mut start).unwrap();
    assert!(start.starts_with(b"YUV4MPEG2 W8 H8 F24:1 "));
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Drivers may print `error` about unrelated matters. An error of wgvae has an exit code.
    let is_quiet = ["wrote", "panic", "pipe"].iter().all(|word| !stderr.contains(word));
    assert!(output.status.success() && is_quiet, "{output:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_is_an_error() {
    let folder = Folder::for_video();
    std::os::unix::fs::symlink("/dev/full", folder.path("full.y4m")).unwrap();
    folder.decode_clip(&["-o", "full.y4m"]).failed("no space", 1, &["full.y4m", "No space left on device"]);
}

/// Runs a decode to a video, where `ffmpeg` is one of the scripts, or is missing.
fn with_ffmpeg(folder: &Folder, script: Option<&str>, args: &[&str]) -> Outcome {
    finish(&mut ffmpeg_command(folder, script, args))
}

/// Returns the command with `ffmpeg` being one of the scripts, or none.
fn ffmpeg_command(folder: &Folder, script: Option<&str>, args: &[&str]) -> Command {
    let path = folder.path("bin");
    std::fs::create_dir_all(&path).unwrap();
    if let Some(script) = script {
        drop(std::fs::remove_file(path.join("ffmpeg")));
        std::os::unix::fs::symlink(fixture_path("ffmpeg").join(script), path.join("ffmpeg")).unwrap();
    }
    let mut command = folder.command(args);
    let path = if script.is_some() { format!("{}:/usr/bin:/bin", path.display()) } else { path.display().to_string() };
    command.env("PATH", path).env("AV_LOG_FORCE_COLOR", "1");
    command
}

#[test]
#[cfg(target_os = "linux")]
fn signals_end_ffmpeg_and_remove_its_file() {
    let folder = Folder::for_video();
    folder.write_clip(&long(2000));
    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let command = ffmpeg_command(&folder, Some("records"), &Folder::decoding(&["-o", "out.mp4"]));
        let (before, children) = (folder.names(), RefCell::new(Vec::new()));
        let ended = signal(name, command, &folder, |process| {
            *children.borrow_mut() = children_of(process);
            !children.borrow().is_empty() && folder.is_written_by(process)
        });
        assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
        let left: Vec<String> = folder.names().into_iter().filter(|name| name != "arguments").collect();
        assert_eq!(left, before, "{name}");
        std::fs::remove_file(folder.path("arguments")).unwrap();
        for child in children.take() {
            assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "{name}: process {child} goes on");
        }
    }
}

/// Processes that `process` has started and that run.
#[cfg(target_os = "linux")]
fn children_of(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children.flat_map(|ids| ids.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

#[test]
fn videos_go_through_ffmpeg() {
    let folder = Folder::for_video();
    let said = with_ffmpeg(&folder, Some("records"), &Folder::decoding(&["-o", "out.mp4"])).ok().stdout;
    assert!(said.contains("wrote out.mp4 (17 frames, 40x24)"), "{said}");
    // The script writes its input to the file.
    assert!(folder.read("out.mp4").starts_with(b"YUV4MPEG2 W40 H24 F24:1 "));
    std::fs::remove_file(folder.path("out.mp4")).unwrap();
    std::fs::remove_file(folder.path("arguments")).unwrap();

    let before = folder.names();
    let failed = |script: Option<&str>, words: &[&str]| {
        let outcome = with_ffmpeg(&folder, script, &Folder::decoding(&["-o", "out.webm"]));
        outcome.failed(script.unwrap_or("none"), 1, words);
        assert_eq!(folder.names(), before, "{script:?}");
    };
    failed(Some("fails"), &["out.webm", "Unknown encoder 'libx264'"]);
    failed(Some("late"), &["out.webm", "No space left on device"]);
    std::fs::remove_file(folder.path("bin/ffmpeg")).unwrap();
    failed(None, &["out.webm", "ffmpeg on the path", "install it, or use .y4m"]);
}

#[test]
fn videos_are_read_by_ffmpeg() {
    let folder = Folder::for_video();
    folder.decode_clip(&["-o", "clip.y4m"]).ok();
    std::fs::rename(folder.path("clip.y4m"), folder.path("clip.mp4")).unwrap();
    let encode = |script: Option<&str>| with_ffmpeg(&folder, script, &Folder::encoding("clip.mp4", &["-o", "out.npy"]));
    // The script outputs its input.
    let said = encode(Some("delivers")).ok().stdout;
    assert!(said.contains("wrote out.npy (of 17 frames, 40x24)"), "{said}");
    assert_eq!(folder.npy("out.npy").shape, LATENTS);
    std::fs::remove_file(folder.path("out.npy")).unwrap();
    encode(Some("breaks")).failed("breaks", 1, &["clip.mp4", "moov atom not found"]);
    std::fs::remove_file(folder.path("bin/ffmpeg")).unwrap();
    encode(None).failed("none", 1, &["clip.mp4", "ffmpeg on the path"]);
    assert!(!folder.path("out.npy").exists());
}
