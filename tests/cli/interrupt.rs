//! Signals that end wgvae, and readers that disconnect.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_kit::formula;

use crate::tool::{Entry, Folder};

/// Signals with the exit code after each.
const SIGNALS: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

#[test]
fn a_signal_stops_a_decode_within_a_second_or_so_and_leaves_nothing() {
    for (signal, code) in SIGNALS {
        let ended = interrupt(signal, &[1, 8, 160, 160], &["-o", "out.png", "--repeat", "1000"], false);
        assert_eq!(ended, Some(code), "{signal}");
    }
}

#[test]
fn a_signal_removes_what_is_half_written() {
    for (output, (signal, code)) in ["out.png", "out.npy", "out.png"].into_iter().zip(SIGNALS) {
        assert_eq!(interrupt(signal, &[1, 8, 800, 800], &["-o", output], true), Some(code), "{signal}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn nohup_goes_on_after_a_closed_terminal() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 8, 160, 160])));
    let args = ["decode", "--model", "model", "--latents", "latents.safetensors", "-o", "out.png"];
    let plain = folder.command(&args);
    let mut command = Command::new("nohup");
    command.arg(plain.get_program()).args(args).current_dir(plain.get_current_dir().unwrap());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(folder.names().contains(&"out.png".to_owned()));
}

#[test]
#[cfg(target_os = "linux")]
fn even_a_kill_leaves_no_half_written_file() {
    assert_eq!(interrupt("KILL", &[1, 8, 800, 800], &["-o", "out.png"], true), None);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // The first alone is waited for 600 ms. A busy machine may be slow once, but not every time.
    let was_at_once = (0..5).any(|_| second_signal() < Duration::from_millis(400));
    assert!(was_at_once);
}

/// Sends two signals to a decode that waits for a pipe, where it cannot stop by itself. Returns how
/// long it goes on after the second.
fn second_signal() -> Duration {
    let folder = Folder::new();
    let mut command = folder.command(&["decode", "--model", "model", "--latents", "-", "-o", "out.png"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    std::thread::sleep(Duration::from_millis(700));
    let send = |signal: &str| Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success();
    assert!(send("-TERM"));
    std::thread::sleep(Duration::from_millis(100));
    assert!(send("-INT"));
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    let took = sent.elapsed();
    drop(stdin);
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    assert!(!folder.names().contains(&"out.png".to_owned()));
    took
}

/// Sends the signal once the output is begun, or after a while, and checks that the folder is
/// unchanged. Returns the exit code.
fn interrupt(signal: &str, latents: &[usize], more: &[&str], when_begun: bool) -> Option<i32> {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(latents)));
    let before = folder.names();
    let args = [&["decode", "--model", "model", "--latents", "latents.safetensors"], more].concat();
    let mut child = folder.command(&args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while when_begun && !folder.is_written_by(child.id()) && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    if when_begun {
        assert!(folder.is_written_by(child.id()), "{:?}", folder.names());
    } else {
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
    let sent = Instant::now();
    assert!(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    // wgvae promises one second; the machine may be busy. The time of a kill depends on the system.
    assert!(signal == "KILL" || sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
    assert_eq!(folder.names(), before, "{output:?}");
    output.status.code()
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
