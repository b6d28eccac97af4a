//! Cache shared by several processes, interrupted ones and Hugging Face's own tools.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::server::{COMMIT, Hub, ID, Manners, sha256};
use super::{WEIGHTS, cache, command, decode, plan, repository, run};
use crate::tool::{Folder, finish};

/// Returns the path of the partly downloaded weights.
fn part(folder: &Folder) -> std::path::PathBuf {
    let weights = folder.read("model/diffusion_pytorch_model.safetensors");
    cache(folder).join("blobs").join(format!("{}.incomplete", sha256(&weights)))
}

#[test]
fn processes_that_download_at_once_wait_for_one_of_them() {
    let folder = Folder::new();
    let throttle = Duration::from_millis(150);
    let hub = Hub::start(&repository(&folder), Manners { throttle, ..Manners::default() });
    let name = format!("hf:{ID}");
    let children: Vec<_> = (0..3)
        .map(|_| {
            command(&folder, &hub.address, &plan(&name)).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let said: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            said
        })
        .collect();
    let transferred = hub.seen().iter().filter(|asked| asked.starts_with("storage")).count();
    assert_eq!(transferred, 1, "{:?}", hub.seen());
    let waited: usize = said.iter().map(|said| said.matches("waiting for another process").count()).sum();
    assert!((2..=4).contains(&waited), "each says so once a file: {said:?}");
}

#[test]
fn the_cache_is_laid_out_as_huggingface_hub_lays_it_out() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    run(&folder, &hub.address, &plan(&format!("hf:{ID}"))).ok();
    let cache = cache(&folder);
    assert_eq!(std::fs::read_to_string(cache.join("refs/main")).unwrap(), COMMIT);
    let weights = folder.read("model/diffusion_pytorch_model.safetensors");
    // One file is named by its SHA-256, the other by its id in git.
    let blobs = [(WEIGHTS, sha256(&weights)), ("vae/config.json", git_blob(&folder.read("model/config.json")))];
    for (file, blob) in blobs {
        let link = cache.join("snapshots").join(COMMIT).join(file);
        assert!(cache.join("blobs").join(&blob).is_file(), "{file}");
        #[cfg(unix)]
        assert_eq!(std::fs::read_link(&link).unwrap().to_str().unwrap(), format!("../../../blobs/{blob}"));
        assert!(link.is_file());
    }

    // Content that is in the cache already, from another commit or tool, is linked and not
    // downloaded. Different content under that name is replaced.
    let before = hub.seen().len();
    std::fs::remove_dir_all(cache.join("snapshots")).unwrap();
    run(&folder, &hub.address, &plan(&format!("hf:{ID}"))).ok();
    assert!(hub.seen()[before..].iter().all(|asked| asked.contains("/api/")), "{:?}", hub.seen());
    std::fs::remove_dir_all(cache.join("snapshots")).unwrap();
    let mut flipped = weights.clone();
    flipped[weights.len() - 1] ^= 1;
    std::fs::write(cache.join("blobs").join(sha256(&weights)), flipped).unwrap();
    run(&folder, &hub.address, &plan(&format!("hf:{ID}"))).ok();
    assert!(std::fs::read(cache.join("snapshots").join(COMMIT).join(WEIGHTS)).unwrap() == weights);
}

/// Computes a blob's id as git defines it.
fn git_blob(content: &[u8]) -> String {
    super::server::listed("", content)["blobId"].as_str().unwrap().to_owned()
}

#[test]
fn weights_other_than_listed_are_an_error_and_not_kept() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners { flips: true, ..Manners::default() });
    let weights = folder.read("model/diffusion_pytorch_model.safetensors");
    let listed = sha256(&weights);
    run(&folder, &hub.address, &plan(&format!("hf:{ID}"))).failed(
        "a flipped bit",
        1,
        &[WEIGHTS, "expected SHA-256", &listed, "found"],
    );
    assert!(!cache(&folder).join("blobs").join(&listed).exists() && !part(&folder).exists());
    assert!(!cache(&folder).join("snapshots").join(COMMIT).join(WEIGHTS).exists());
    let hub = Hub::start(&repository(&folder), Manners::default());
    run(&folder, &hub.address, &plan(&format!("hf:{ID}"))).ok();
}

#[test]
fn a_part_of_something_else_is_no_obstacle() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let weights = folder.read("model/diffusion_pytorch_model.safetensors");
    let name = format!("hf:{ID}");
    run(&folder, &hub.address, &plan(&name)).ok();
    let blob = cache(&folder).join("blobs").join(sha256(&weights));
    // Lengths: shorter, equal, longer.
    for length in [1000, weights.len(), weights.len() + 1000] {
        std::fs::remove_file(&blob).unwrap();
        std::fs::write(part(&folder), vec![7; length]).unwrap();
        let before = hub.seen().len();
        run(&folder, &hub.address, &plan(&name)).ok();
        assert!(std::fs::read(&blob).unwrap() == weights && !part(&folder).exists(), "{length}");
        let asked: Vec<String> = hub.seen()[before..].iter().filter(|it| it.starts_with("storage")).cloned().collect();
        let whole = format!("storage /{WEIGHTS}");
        let expected = if length == 1000 { vec![format!("{whole} bytes=1000-"), whole] } else { vec![whole] };
        assert_eq!(asked, expected, "{length}");
    }
    // The file is also right if the server refuses the requested rest (416), or answers it with an
    // empty body (206).
    for status in [416, 206] {
        let hub = Hub::start(&repository(&folder), Manners { no_ranges: Some(status), ..Manners::default() });
        std::fs::remove_file(&blob).unwrap();
        std::fs::write(part(&folder), &weights[..1000]).unwrap();
        run(&folder, &hub.address, &plan(&name)).ok();
        assert!(std::fs::read(&blob).unwrap() == weights, "{status}");
    }
}

#[test]
fn a_reference_that_is_no_commit_is_an_error() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}");
    run(&folder, &hub.address, &plan(&name)).ok();
    // hf-hub 0.5 wrote the text of an answer here, which could name any folder.
    let elsewhere = folder.path("model");
    std::fs::write(cache(&folder).join("refs/main"), elsewhere.to_str().unwrap()).unwrap();
    let mut offline = command(&folder, &hub.address, &plan(&name));
    finish(offline.env("HF_HUB_OFFLINE", "1")).failed(
        "a poisoned reference",
        1,
        &["refs/main", "expected a commit", "found"],
    );
    // The hub has the right value, and the reference is corrected.
    run(&folder, &hub.address, &plan(&name)).ok();
    let mut offline = command(&folder, &hub.address, &plan(&name));
    finish(offline.env("HF_HUB_OFFLINE", "1")).ok();
}

#[cfg(unix)]
#[test]
fn a_download_that_is_interrupted_or_killed_goes_on() {
    let folder = Folder::new();
    let throttle = Duration::from_millis(300);
    let hub = Hub::start(&repository(&folder), Manners { throttle, ..Manners::default() });
    let name = format!("hf:{ID}");
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let before = std::fs::metadata(part(&folder)).map_or(0, |part| part.len());
        let mut downloads = command(&folder, &hub.address, &decode(&name));
        let child = downloads.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while std::fs::metadata(part(&folder)).map_or(0, |part| part.len()) <= before {
            assert!(started.elapsed() < Duration::from_secs(30), "nothing comes");
            std::thread::sleep(Duration::from_millis(10));
        }
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{output:?}");
        assert!(part(&folder).exists());
    }
    let there = std::fs::metadata(part(&folder)).unwrap().len();
    // The lock ended with its process.
    let said = run(&folder, &hub.address, &plan(&name)).ok().stderr;
    assert!(!said.contains("waiting"), "{said}");
    assert!(hub.seen().contains(&format!("storage /{WEIGHTS} bytes={there}-")), "{there}: {:?}", hub.seen());
}
