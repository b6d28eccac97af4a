//! Models by name, from a server in this process that speaks the hub's HTTP interface. The real hub
//! is never contacted.

#[path = "hub/hostile.rs"]
mod hostile;
#[path = "hub/network.rs"]
mod network;
#[path = "hub/server.rs"]
pub(crate) mod server;
#[path = "hub/shared.rs"]
mod shared;

use std::process::Command;

use serde_json::json;

use self::server::{At, COMMIT, Files, Hub, ID, Manners, TOKEN};
use crate::tool::{Folder, Outcome, finish};

const WEIGHTS: &str = "vae/diffusion_pytorch_model.safetensors";

/// Returns a pipeline's repository with the small model of `folder` and unused files.
fn repository(folder: &Folder) -> Files {
    vec![
        ("model_index.json", b"{}".to_vec()),
        ("README.md", b"# A model".to_vec()),
        ("unet/diffusion_pytorch_model.safetensors", vec![0; 100_000]),
        ("vae/config.json", folder.read("model/config.json")),
        (WEIGHTS, folder.read("model/diffusion_pytorch_model.safetensors")),
        ("vae/diffusion_pytorch_model.fp16.safetensors", vec![0; 50_000]),
    ]
}

/// Returns the repository's folder in the cache.
fn cache(folder: &Folder) -> std::path::PathBuf {
    folder.path(&format!("huggingface/hub/models--{}", ID.replace('/', "--")))
}

/// Returns the command with a cache in the folder.
fn command(folder: &Folder, endpoint: &str, args: &[&str]) -> Command {
    let mut command = folder.command(args);
    command.env("HF_HOME", folder.path("huggingface")).env("HF_ENDPOINT", endpoint);
    command
}

fn run(folder: &Folder, endpoint: &str, args: &[&str]) -> Outcome {
    finish(&mut command(folder, endpoint, args))
}

fn decode(model: &str) -> Vec<&str> {
    vec!["decode", "--model", model, "--latents", "latents.safetensors", "--precision", "f32", "-o", "hub.png"]
}

/// Returns a command that needs the files but no GPU.
fn plan(model: &str) -> Vec<&str> {
    vec!["plan", "--model", model, "--size", "64x64"]
}

#[test]
fn a_model_is_downloaded_once_and_decodes_as_its_files_do() {
    let folder = Folder::new();
    folder.decode(&["-o", "local.png"]).ok();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}");

    let listed = run(&folder, &hub.address, &["inspect", "--model", &name, "--json"]).json();
    let bytes = |name: &str| folder.read(name).len();
    let [config, weights] = ["model/config.json", "model/diffusion_pytorch_model.safetensors"].map(bytes);
    assert_eq!(listed["commit"], COMMIT);
    assert_eq!(listed["download_bytes"], config + weights);
    assert_eq!(
        listed["files"],
        json!([
            { "name": "vae/config.json", "bytes": config, "kept": false },
            { "name": WEIGHTS, "bytes": weights, "kept": false },
        ])
    );
    let said = run(&folder, &hub.address, &["inspect", "--model", &name]).ok().stdout;
    assert!(said.contains("would be downloaded") && said.contains(WEIGHTS), "{said}");
    assert!(hub.seen().iter().all(|url| url.contains("/api/")), "{:?}", hub.seen());

    let said = run(&folder, &hub.address, &decode(&name)).ok().stderr;
    assert!(said.contains("downloading") && said.contains("2 files"), "{said}");
    assert_eq!(folder.read("hub.png"), folder.read("local.png"));
    let fetched: Vec<String> = hub.seen().into_iter().filter(|url| url.starts_with("storage")).collect();
    assert_eq!(fetched, [format!("storage /{WEIGHTS}")]);
    assert!(!hub.seen().iter().any(|url| url.contains("unet") || url.contains("fp16")), "{:?}", hub.seen());

    // All files are in the cache now: inspect prints facts instead of a list, and fetches no file.
    let before = hub.seen().len();
    let facts = run(&folder, &hub.address, &["inspect", "--model", &name, "--json"]).json();
    assert_eq!(facts["can_decode"], true, "{facts}");
    assert_eq!(hub.seen().len(), before + 1, "{:?}", hub.seen());
    let said = run(&folder, &hub.address, &decode(&name)).ok().stderr;
    assert!(!said.contains("downloading"), "{said}");
    assert!(hub.seen()[before..].iter().all(|url| url.contains("/api/")), "{:?}", hub.seen());
}

#[test]
fn a_warm_cache_needs_no_hub() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}/vae@main");
    run(&folder, &hub.address, &decode(&name)).ok();
    let by_commit = format!("hf:{ID}/vae@{COMMIT}");
    let before = hub.seen().len();
    for name in [&name, &by_commit] {
        let mut offline = command(&folder, &hub.address, &decode(name));
        finish(offline.env("HF_HUB_OFFLINE", "1")).ok();
    }
    assert_eq!(hub.seen().len(), before);

    // No server listens at this address: wgvae uses the cache and prints a note.
    let dead = "http://127.0.0.1:9";
    let said = run(&folder, dead, &decode(&name)).ok().stderr;
    assert!(said.contains("using the cache"), "{said}");
    let cold = Folder::new();
    let reached = ["no answer from http://127.0.0.1:9", "not in the cache", "local folder or file"];
    run(&cold, dead, &decode(&name)).failed("nobody there", 1, &[&[ID], &reached[..]].concat());
    let mut offline = command(&cold, dead, &decode(&name));
    finish(offline.env("HF_HUB_OFFLINE", "1")).failed(
        "a cold cache",
        1,
        &[ID, "not in the cache", "HF_HUB_OFFLINE", "local folder or file"],
    );
}

#[test]
fn a_warm_cache_replaces_a_hub_that_answers_with_an_error() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}/vae@main");
    run(&folder, &hub.address, &decode(&name)).ok();
    for status in [401, 403, 404, 429, 500, 503] {
        let refuses = Hub::start(&[], Manners { refuses: Some(status), ..Manners::default() });
        let said = run(&folder, &refuses.address, &plan(&name)).ok().stderr;
        assert!(said.contains("using the cache") && said.contains(&format!("{status}")), "{said}");
    }
    // The listing of a commit cannot change, so the hub is not even asked.
    let refuses = Hub::start(&[], Manners { refuses: Some(500), ..Manners::default() });
    let said = run(&folder, &refuses.address, &plan(&format!("hf:{ID}/vae@{COMMIT}"))).ok().stderr;
    assert!(!said.contains("using the cache") && refuses.seen().is_empty(), "{said} {:?}", refuses.seen());
    // The cache has other files of the repository: the error is that of the hub.
    let other = format!("hf:{ID}/unet");
    run(&folder, &refuses.address, &plan(&other)).failed("other files", 1, &[ID, "status 500"]);
}

/// With a model in the cache, nobody waits for a busy hub.
#[test]
fn a_warm_cache_is_used_without_a_second_request() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}/vae");
    run(&folder, &hub.address, &plan(&name)).ok();
    let busy = Some((At::Listing, 503, "Retry-After: 29\r\n"));
    let hub = Hub::start(&repository(&folder), Manners { busy_once: busy, ..Manners::default() });
    let start = std::time::Instant::now();
    let said = run(&folder, &hub.address, &plan(&name)).ok().stderr;
    assert!(said.contains("using the cache") && said.contains("503"), "{said}");
    assert!(start.elapsed().as_secs() < 25 && hub.seen().len() == 1, "{:?} {:?}", start.elapsed(), hub.seen());
}

/// Only fp16 weights are in the cache: the hub may have others, so the note names the file.
#[test]
fn the_note_names_the_weights_of_the_cache() {
    let folder = Folder::new();
    let mut files = repository(&folder);
    let fp16 = "vae/diffusion_pytorch_model.fp16.safetensors";
    files.retain(|(name, _)| *name != fp16);
    files.push((fp16, folder.read("model/diffusion_pytorch_model.safetensors")));
    let hub = Hub::start(&files, Manners::default());
    let name = format!("hf:{ID}");
    let args = plan(&name);
    run(&folder, &hub.address, &[&args[..], &["--variant", "fp16"]].concat()).ok();
    let refuses = Hub::start(&[], Manners { refuses: Some(503), ..Manners::default() });
    let said = run(&folder, &refuses.address, &args).ok().stderr;
    assert!(said.contains("using the cache") && said.contains(fp16) && said.contains("503"), "{said}");
}

#[test]
fn a_busy_hub_is_asked_again() {
    let folder = Folder::new();
    for (at, status, headers) in [
        (At::Listing, 429, "Retry-After: 0\r\n"),
        (At::Listing, 503, ""),
        (At::File, 429, "Retry-After: 1\r\n"),
        (At::Storage, 408, ""),
    ] {
        let busy = Some((at, status, headers));
        let hub = Hub::start(&repository(&folder), Manners { busy_once: busy, ..Manners::default() });
        let mut downloads = command(&folder, &hub.address, &plan(&format!("hf:{ID}/vae")));
        let said = finish(downloads.env("HF_HOME", format!("{at:?}-{status}"))).ok().stderr;
        assert!(said.contains("downloading"), "{said}");
    }
    // Nobody waits for an hour.
    let busy = Some((At::Listing, 429, "Retry-After: 3600\r\n"));
    let hub = Hub::start(&repository(&folder), Manners { busy_once: busy, ..Manners::default() });
    run(&folder, &hub.address, &plan(&format!("hf:{ID}/vae"))).failed("an hour", 1, &[ID, "429"]);
}

#[test]
fn the_settings_of_other_tools_count() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}");
    let (args, dead) = (plan(&name), "http://127.0.0.1:9");
    let with = |settings: &[(&str, &str)]| {
        finish(command(&folder, &hub.address, &args).env("HOME", folder.path("home")).envs(settings.iter().copied()))
    };
    with(&[("TRANSFORMERS_OFFLINE", "1")]).failed("offline", 1, &[ID, "not in the cache"]);
    // The proxy for https is not that of this hub, and some hosts need none.
    with(&[("HTTP_PROXY", dead)]).failed("a dead proxy", 1, &["no answer"]);
    with(&[("ALL_PROXY", "socks5://127.0.0.1:9")]).failed("a dead proxy", 1, &["no answer"]);
    with(&[("ALL_PROXY", "ftp://secret@proxy")]).failed("no proxy", 1, &["ALL_PROXY", "expected", "socks5"]);
    with(&[("HTTPS_PROXY", dead), ("HF_HUB_CACHE", "~/one")]).ok();
    let direct = [("http_proxy", dead), ("NO_PROXY", "localhost, 127.0.0.1"), ("HF_HOME", "~")];
    with(&direct).ok();
    let there = |cache: &str| folder.path(cache).join(format!("models--{}", ID.replace('/', "--"))).is_dir();
    assert!(there("home/one") && there("home/hub") && !folder.path("~").exists(), "{:?}", folder.names());

    // No token is sent: neither a stored one nor that of a variable.
    folder.write("stored", TOKEN.as_bytes());
    for token in [("HF_TOKEN_PATH", "stored"), ("HF_TOKEN", TOKEN), ("HUGGING_FACE_HUB_TOKEN", TOKEN)] {
        for (off, is_sent) in [("0", true), ("1", false)] {
            let before = hub.seen().len();
            with(&[token, ("HF_HUB_DISABLE_IMPLICIT_TOKEN", off)]).ok();
            assert_eq!(hub.seen()[before].contains("with a token"), is_sent, "{token:?} {:?}", hub.seen());
        }
    }
}

#[test]
fn a_download_that_breaks_off_goes_on() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners { breaks_after: Some(1000), ..Manners::default() });
    let name = format!("hf:{ID}/vae");
    run(&folder, &hub.address, &decode(&name)).ok();
    let rest = format!("storage /{WEIGHTS} bytes=1000-");
    assert!(hub.seen().contains(&rest), "{:?}", hub.seen());
}

#[test]
fn a_file_of_another_size_than_listed_is_not_kept() {
    let folder = Folder::new();
    let name = format!("hf:{ID}/vae");
    let liar = Hub::start(&repository(&folder), Manners { lies: true, ..Manners::default() });
    for _ in 0..2 {
        run(&folder, &liar.address, &decode(&name)).failed("another size", 1, &["config.json", "expected", "found"]);
    }
    // A blob that was cut off after its download is downloaded again, and so is a link without its
    // file.
    let hub = Hub::start(&repository(&folder), Manners::default());
    run(&folder, &hub.address, &decode(&name)).ok();
    let kept = format!("huggingface/hub/models--{}/snapshots/{COMMIT}/{WEIGHTS}", ID.replace('/', "--"));
    let blob = std::fs::canonicalize(folder.path(&kept)).unwrap();
    let whole = std::fs::read(&blob).unwrap();
    std::fs::write(&blob, &whole[..whole.len() / 2]).unwrap();
    let listed = run(&folder, &hub.address, &["inspect", "--model", &name, "--json"]).json();
    assert_eq!(listed["download_bytes"], whole.len());
    run(&folder, &hub.address, &decode(&name)).ok();
    assert!(folder.read(&kept) == whole);
    std::fs::remove_file(&blob).unwrap();
    run(&folder, &hub.address, &decode(&name)).ok();
    assert!(folder.read(&kept) == whole);
}

#[test]
fn shards_are_found_by_their_index() {
    let folder = Folder::new();
    let weights = folder.read("model/diffusion_pytorch_model.safetensors");
    let index = json!({ "metadata": {}, "weight_map": { "whatever": "part-1.safetensors" } });
    let files = [
        ("config.json", folder.read("model/config.json")),
        ("diffusion_pytorch_model.safetensors.index.json", index.to_string().into_bytes()),
        ("part-1.safetensors", weights),
    ];
    let hub = Hub::start(&files, Manners::default());
    let name = format!("hf:{ID}");
    let listed = run(&folder, &hub.address, &["inspect", "--model", &name, "--json"]).json();
    let names: Vec<&str> =
        listed["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["config.json", "diffusion_pytorch_model.safetensors.index.json", "part-1.safetensors"]);
    // The cache has the index only: the error is that of the hub.
    let kept = |name: &str| cache(&folder).join("snapshots").join(COMMIT).join(name);
    std::fs::create_dir_all(cache(&folder).join("refs")).unwrap();
    std::fs::write(cache(&folder).join("refs/main"), COMMIT).unwrap();
    assert!(kept(names[1]).exists() && !kept(names[2]).exists());
    for status in [401, 503] {
        let refuses = Hub::start(&[], Manners { refuses: Some(status), ..Manners::default() });
        run(&folder, &refuses.address, &plan(&name)).failed("no shards", 1, &[ID, &status.to_string()]);
    }
    run(&folder, &hub.address, &decode(&name)).ok();
    let refuses = Hub::start(&[], Manners { refuses: Some(503), ..Manners::default() });
    let said = run(&folder, &refuses.address, &plan(&name)).ok().stderr;
    assert!(said.contains("using the cache") && said.contains("503"), "{said}");
}

#[test]
fn tokens_open_private_repositories() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners { private: true, ..Manners::default() });
    let name = format!("hf:{ID}");
    run(&folder, &hub.address, &decode(&name)).failed("no token", 1, &[ID, "401", "HF_TOKEN"]);
    let mut with_token = command(&folder, &hub.address, &decode(&name));
    finish(with_token.env("HF_TOKEN", TOKEN)).ok();
    let elsewhere: Vec<String> = hub.seen().into_iter().filter(|asked| asked.starts_with("storage")).collect();
    assert_eq!(elsewhere, [format!("storage /{WEIGHTS}")], "without the token");

    // `hf auth login` stores the token here.
    let other = Folder::new();
    std::fs::create_dir(other.path("huggingface")).unwrap();
    other.write("huggingface/token", TOKEN.as_bytes());
    run(&other, &hub.address, &decode(&name)).ok();
    // The variable names the token's file; the cache does not matter.
    let third = Folder::new();
    third.write("my-token", format!("{TOKEN}\n").as_bytes());
    let mut elsewhere = command(&third, &hub.address, &plan(&name));
    finish(elsewhere.env("HF_TOKEN_PATH", "my-token").env("HF_HUB_CACHE", "my-cache")).ok();
    assert!(third.path("my-cache").is_dir() && !third.path("huggingface").exists());
    let mut wrong = command(&third, &hub.address, &plan(&name));
    finish(wrong.env("HF_TOKEN", "hf\u{1b}[2J")).failed("a wrong token", 1, &["HF_TOKEN", "expected", "found"]);
}

#[test]
fn the_older_name_of_the_cache_s_variable_is_read_too() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}");
    let settings = [("HUGGINGFACE_HUB_CACHE", "older"), ("HF_HUB_CACHE", "newer")];
    for (set, used) in [(&settings[..1], "older"), (&settings[..], "newer")] {
        let mut downloads = command(&folder, &hub.address, &plan(&name));
        finish(downloads.envs(set.iter().copied())).ok();
        assert!(folder.path(used).join(format!("models--{}", ID.replace('/', "--"))).is_dir(), "{:?}", folder.names());
    }
    assert!(!folder.path("huggingface").exists());
}

#[test]
fn an_address_that_is_none_is_an_error() {
    let folder = Folder::new();
    for wrong in ["hf-mirror.example", "ftp://hub", "http://", "file:///etc"] {
        run(&folder, wrong, &plan(&format!("hf:{ID}"))).failed(wrong, 1, &["HF_ENDPOINT", "expected", wrong]);
    }
}

/// A name that is no path is not looked up: only `hf:` before it says that the hub is meant.
#[test]
fn a_name_without_hf_is_answered_with_a_hint() {
    let folder = Folder::new();
    let nowhere = "http://127.0.0.1:9";
    let words = ["model stabilityai/sdxl-vae: expected", "no such path (did you mean hf:stabilityai/sdxl-vae?)"];
    let name = "stabilityai/sdxl-vae";
    for args in [&decode(name)[..], &plan(name), &["inspect", "--model", name]] {
        run(&folder, nowhere, args).failed("a name without hf:", 1, &words);
    }
    // A folder of a repository, unless its first word is a folder here.
    let (name, hint) = ("some/other/vae", "did you mean hf:some/other/vae?");
    run(&folder, nowhere, &plan(name)).failed("a folder of a repository", 1, &[hint]);
    std::fs::create_dir(folder.path("some")).unwrap();
    let path = run(&folder, nowhere, &plan(name));
    assert!(path.code == Some(1) && !path.stderr.contains("did you mean"), "{path:?}");
}

#[test]
fn refusals_say_what_can_be_done() {
    let folder = Folder::new();
    let name = format!("hf:{ID}");
    for (status, words) in
        [(403, "accept the terms"), (404, "no such repository"), (429, "try again later"), (500, "500")]
    {
        let hub = Hub::start(&[], Manners { refuses: Some(status), ..Manners::default() });
        run(&folder, &hub.address, &decode(&name)).failed(words, 1, &[ID, words]);
    }
    let hub = Hub::start(&repository(&folder), Manners::default());
    for place in ["nowhere", "vae/other.safetensors"] {
        let name = format!("hf:{ID}/{place}");
        run(&folder, &hub.address, &decode(&name)).failed(place, 1, &[place, "no such file or folder"]);
    }
    run(&folder, &hub.address, &decode(&format!("hf:{ID}/unet@main"))).failed("no VAE", 1, &["unet"]);
    for wrong in ["hf:", "hf:someone", "hf:someone/../x", "hf:a/b/../../c", "hf:a/b@../../c", "hf:a/b/"] {
        let outcome = run(&folder, &hub.address, &decode(wrong));
        assert_eq!(outcome.code, Some(1), "{wrong}: {outcome:?}");
        assert!(outcome.stderr.contains("hf:"), "{wrong}: {outcome:?}");
    }
    assert!(!folder.names().contains(&"hub.png".to_owned()));
}
