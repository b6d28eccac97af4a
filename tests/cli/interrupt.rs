//! Ctrl-C, and readers that go away.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::formula;
use crate::tool::{Entry, Folder};

#[test]
fn ctrl_c_stops_a_decode_within_a_second_or_so_and_leaves_nothing() {
    interrupt(&[1, 8, 160, 160], &["-o", "out.png", "--repeat", "1000"], None);
}

#[test]
fn ctrl_c_removes_what_is_half_written() {
    for output in ["out.png", "out.npy"] {
        interrupt(&[1, 8, 800, 800], &["-o", output], Some(".part"));
    }
}

/// Presses Ctrl-C as soon as there is a file whose name ends so, or after a while.
fn interrupt(latents: &[usize], more: &[&str], awaited: Option<&str>) {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(latents)));
    let before = folder.names();
    let args = [&["decode", "--model", "model", "--latents", "latents.safetensors"], more].concat();
    let mut child = folder.command(&args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    let is_there = || awaited.is_none_or(|ending| folder.names().iter().any(|name| name.ends_with(ending)));
    while !is_there() && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_there(), "{:?}", folder.names());
    if awaited.is_none() {
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
    let pressed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let took = pressed.elapsed();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    // One second is promised; the machine may be doing other things.
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(folder.names(), before);
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let folder = Folder::new();
    let mut command = folder.command(&["plan", "--family", "sd15", "--size", "512x512"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("panic"), "{output:?}");
}
