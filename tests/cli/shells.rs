//! Completions, tested with a real shell, and manual pages, tested with groff if it is installed.

use std::process::{Command, Stdio};

use crate::tool::{Folder, finish};

/// Returns the commands that `wgvae --help` lists.
fn commands(folder: &Folder) -> Vec<String> {
    let help = folder.run(&["--help"]).ok().stdout;
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

/// Returns the completions that bash offers for the last of `words`.
#[cfg(unix)]
fn offered(folder: &Folder, words: &[&str]) -> Vec<String> {
    let (last, before) = (words.last().unwrap(), words[words.len() - 2]);
    let script = format!(
        "source ./completions.bash; COMP_WORDS=({}); COMP_CWORD={}; _wgvae wgvae '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", &script]).current_dir(folder.path(".")).stdin(Stdio::null());
    finish(&mut bash).ok().stdout.lines().map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn bash_completes_commands_flags_and_values() {
    let folder = Folder::new();
    folder.write("completions.bash", folder.run(&["completions", "bash"]).ok().stdout.as_bytes());
    let all = offered(&folder, &["wgvae", ""]);
    for command in commands(&folder) {
        assert!(all.contains(&command), "{command} is not in {all:?}");
    }
    assert!(!all.contains(&"memory-job".to_owned()), "{all:?}");
    assert_eq!(offered(&folder, &["wgvae", "deco"]), ["decode"]);
    assert_eq!(offered(&folder, &["wgvae", "decode", "--memory-b"]), ["--memory-budget"]);
    let tilings = offered(&folder, &["wgvae", "decode", "--tiling", ""]);
    assert_eq!(tilings, ["exact", "blend", "cosine", "estimate"]);
}

#[test]
fn every_shell_gets_a_script() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.run(&["completions", shell]).ok().stdout;
        for command in commands(&folder) {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
    folder.run(&["completions", "tcsh"]).failed("an unknown shell", 2, &["tcsh"]);
}

#[test]
fn every_command_has_a_manual_page_with_all_its_flags() {
    let folder = Folder::new();
    folder.run(&["man", "--out", "share/man1"]).ok();
    let commands = commands(&folder);
    let mut pages: Vec<String> = commands.iter().map(|name| format!("wgvae-{name}.1")).collect();
    pages.push("wgvae.1".to_owned());
    pages.sort();
    let mut found: Vec<String> = std::fs::read_dir(folder.path("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, pages);
    for command in &commands {
        let page = String::from_utf8(folder.read(&format!("share/man1/wgvae-{command}.1"))).unwrap();
        // roff writes a dash that does not belong to a word as \-.
        let page = page.replace("\\-", "-");
        assert!(page.contains(&format!(".TH wgvae-{command}")) && page.contains(".SH NAME"), "{page}");
        let help = folder.run(&[command, "--help"]).ok().stdout;
        let flags = help.split(|letter: char| letter.is_whitespace() || ",[]<>=".contains(letter));
        // Words of the text may be flags of other commands.
        let own = |word: &&str| {
            help.lines().any(|line| line.trim_start().starts_with(word) || line.contains(&format!(", {word}")))
        };
        for flag in flags.filter(|word| word.starts_with("--") && word.len() > 2).filter(own) {
            assert!(page.contains(flag), "{command}: {flag} is not on its page");
        }
    }
    assert_eq!(
        folder.run(&["man"]).ok().stdout.trim_end().as_bytes(),
        folder.read("share/man1/wgvae.1").trim_ascii_end()
    );
    well_formed(&folder, &pages);
}

/// Checks that groff has no complaints about `pages`.
fn well_formed(folder: &Folder, pages: &[String]) {
    for page in pages {
        let mut groff = Command::new("groff");
        let groff = groff.args(["-man", "-Tutf8", "-ww", "-P-cbou"]).arg(folder.path("share/man1").join(page));
        match groff.stdin(Stdio::null()).output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && said.trim().is_empty(), "{page}: {said}");
                assert!(String::from_utf8_lossy(&output.stdout).contains("SYNOPSIS"), "{page}");
            }
            Err(error) => println!("SKIPPED: groff: {error}"),
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let folder = Folder::new();
    folder.write("file", b"");
    folder.run(&["man", "--out", "file/man1"]).failed("a file in the way", 1, &["file/man1"]);
}
