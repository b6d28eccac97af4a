//! Servers that answer in every wrong way. In each case the command ends by itself, with a model or
//! with an error, and writes nothing outside its cache. The token goes only to the hub's own
//! scheme, host and port.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{At, COMMIT, Files, Hub, ID, Manners, Reply, TOKEN, listed, listing};
use super::{WEIGHTS, command, plan};
use crate::tool::{Folder, Outcome, finish};

/// Expected result: the model, or an error with these words.
type Expected = Result<(), &'static [&'static str]>;

/// Most time that a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Folder that hostile answers try to write to.
struct Victim {
    folder: Folder,
    files: Files,
}

impl Victim {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("away")).unwrap();
        let files = vec![
            ("vae/config.json", folder.read("model/config.json")),
            (WEIGHTS, folder.read("model/diffusion_pytorch_model.safetensors")),
        ];
        Self { folder, files }
    }

    /// Returns an absolute path in the folder at which no file may appear.
    fn away(&self) -> String {
        self.folder.path("away").join("pwned").to_str().unwrap().to_owned()
    }

    /// Returns the listing of the files, each modified by `change`.
    fn listed(&self, change: impl Fn(&mut Value)) -> Vec<Value> {
        let mut all: Vec<Value> = self.files.iter().map(|(name, bytes)| listed(name, bytes)).collect();
        all.iter_mut().for_each(change);
        all
    }

    /// Runs the command against a hub with these manners, and checks the files that it leaves
    /// behind.
    fn meets(&self, what: &str, manners: Manners, expected: Expected) {
        let before = tree(self.folder.path("."));
        let hub = Hub::start(&self.files, manners);
        let started = Instant::now();
        let outcome = finish(command(&self.folder, &hub.address, &plan(&format!("hf:{ID}"))).env("HF_TOKEN", TOKEN));
        let took = started.elapsed();
        assert!(took < PATIENCE, "{what}: {took:?}");
        check(what, &outcome, expected);
        assert_eq!(tree(self.folder.path(".")).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{what}");
        assert!(tree(self.folder.path(".")) == before, "{what}: a file has another content");
        check_cache(what, &self.folder.path("huggingface"));
        for asked in hub.seen() {
            assert_eq!(asked.contains(" with a token"), asked.starts_with("hub"), "{what}: {asked}");
            assert!(!asked.contains("accepts"), "{what}: nothing compressed is asked for: {asked}");
        }
        if expected.is_ok() {
            let snapshot =
                self.folder.path(&format!("huggingface/hub/models--{}/snapshots/{COMMIT}", ID.replace('/', "--")));
            for (name, bytes) in &self.files {
                assert!(std::fs::read(snapshot.join(name)).is_ok_and(|found| found == *bytes), "{what}: {name}");
            }
        }
    }
}

#[track_caller]
fn check(what: &str, outcome: &Outcome, expected: Expected) {
    assert!(!outcome.stderr.contains("panic"), "{what}: {outcome:?}");
    let is_printable = |text: &str| text.chars().all(|letter| letter == '\n' || !letter.is_control());
    assert!(is_printable(&outcome.stderr), "{what}: {outcome:?}");
    match expected {
        Ok(()) => assert_eq!(outcome.code, Some(0), "{what}: {outcome:?}"),
        Err(words) => outcome.failed(what, 1, words),
    }
}

/// Returns the files below `folder`, except for the cache, with their contents.
fn tree(folder: PathBuf) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                if !path.ends_with("huggingface") {
                    folders.push(path);
                }
            } else {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Checks that the cache contains only blobs named by their hashes, a reference, and links to
/// blobs.
fn check_cache(what: &str, home: &Path) {
    let repository = format!("models--{}", ID.replace('/', "--"));
    let hub = home.join("hub");
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let only = |folder: &Path, allowed: &[&str]| {
        let found = names(folder);
        assert!(
            found.iter().all(|name| allowed.contains(&name.as_str())),
            "{what}: {} has {found:?}",
            folder.display()
        );
    };
    let all = |folder: PathBuf, is_right: fn(&str) -> bool| {
        let found = names(&folder);
        assert!(found.iter().all(|name| is_right(name)), "{what}: {} has {found:?}", folder.display());
    };
    only(home, &["hub"]);
    only(&hub, &[".locks", &repository]);
    only(&hub.join(".locks"), &[&repository]);
    only(&hub.join(&repository), &["blobs", "refs", "snapshots"]);
    only(&hub.join(&repository).join("refs"), &["main"]);
    only(&hub.join(&repository).join("snapshots"), &[COMMIT]);
    only(&hub.join(&repository).join("snapshots").join(COMMIT), &["vae"]);
    all(hub.join(&repository).join("blobs"), |name| {
        let name = name.strip_suffix(".incomplete").unwrap_or(name);
        [40, 64].contains(&name.len()) && name.bytes().all(|letter| letter.is_ascii_hexdigit())
    });
    all(hub.join(".locks").join(&repository), |name| name.ends_with(".lock"));
    let vae = hub.join(&repository).join("snapshots").join(COMMIT).join("vae");
    for name in names(&vae) {
        let blob = std::fs::canonicalize(vae.join(&name)).unwrap();
        assert!(
            !vae.join(&name).is_symlink() || blob.parent().is_some_and(|it| it.ends_with("blobs")),
            "{what}: {blob:?}"
        );
    }
}

fn instead(at: At, reply: Reply) -> Manners {
    Manners { instead: vec![(at, reply)], ..Manners::default() }
}

/// Returns a server that answers with this text in place of the listing.
fn lists(text: impl Into<String>) -> Manners {
    instead(At::Listing, Reply::Whole(200, "", text.into().into_bytes()))
}

fn redirects(at: At, status: u16, headers: &'static str) -> Manners {
    instead(at, Reply::Whole(status, headers, Vec::new()))
}

fn says(headers: &[(&'static str, String)]) -> Manners {
    Manners { headers: headers.to_vec(), ..Manners::default() }
}

#[test]
fn what_is_slow_or_never_comes_ends_within_a_minute() {
    let slow: Vec<(&str, At, Reply, Expected)> = vec![
        ("no listing", At::Listing, Reply::Hang, Err(&[ID, "no answer within 30 s"])),
        ("a slow listing", At::Listing, Reply::Drip, Err(&[ID, "expected at least 20.0 KiB within 20 s"])),
        ("a slow header", At::Listing, Reply::DripHead, Err(&[ID, "no answer within 30 s"])),
        ("no file", At::File, Reply::Hang, Err(&["vae/config.json", "no answer within 30 s"])),
        ("a slow file", At::File, Reply::Drip, Err(&["vae/config.json", "expected at least 20.0 KiB within 20 s"])),
        ("no weights", At::Storage, Reply::Hang, Err(&[WEIGHTS, "no answer within 30 s"])),
        ("slow weights", At::Storage, Reply::Drip, Err(&[WEIGHTS, "expected at least 20.0 KiB within 20 s"])),
    ];
    // All run at once, because each of them waits.
    std::thread::scope(|scope| {
        for (what, at, reply, expected) in slow {
            scope.spawn(move || Victim::new().meets(what, instead(at, reply), expected));
        }
    });
}

#[test]
fn paths_in_headers_lead_nowhere() {
    let away = Victim::new();
    let there = away.away();
    for (what, name, value) in [
        ("an absolute ETag", "ETag", format!("\"{there}/config.json\"")),
        ("an ETag that leads out", "ETag", "\"../../../../away/config.json\"".to_owned()),
        ("an empty ETag", "ETag", "\"\"".to_owned()),
        ("a dot", "ETag", "\".\"".to_owned()),
        ("a long ETag", "ETag", format!("\"{}\"", "x".repeat(4000))),
        ("an absolute commit", "X-Repo-Commit", there),
        ("another commit", "X-Repo-Commit", "b".repeat(40)),
        ("no commit", "X-Repo-Commit", String::new()),
        ("a linked ETag", "X-Linked-Etag", "\"/etc/passwd\"".to_owned()),
    ] {
        Victim::new().meets(what, says(&[(name, value.clone())]), Ok(()));
        // The same holds if the listing has no hashes.
        let victim = Victim::new();
        let listing = listing(&victim.listed(|file| *file = json!({ "rfilename": file["rfilename"] })));
        let manners = Manners { headers: vec![(name, value)], ..lists(listing) };
        victim.meets(&format!("{what}, and no hashes"), manners, Ok(()));
    }
    // This ETag names a path in the victim's own folder.
    away.meets("an absolute ETag", says(&[("ETag", format!("\"{}\"", away.away()))]), Ok(()));
}

/// Returns the usual listing, with each file modified by `change`.
fn changed(change: fn(&mut Value)) -> String {
    listing(&Victim::new().listed(change))
}

/// Tests a server with each of these listings.
fn meet_listings(cases: Vec<(&str, String, Expected)>) {
    for (what, text, expected) in cases {
        Victim::new().meets(what, lists(text), expected);
    }
}

#[test]
fn files_that_lead_elsewhere_are_not_there() {
    let only = |name: &str| listing(&[json!({ "rfilename": name, "size": 3 })]);
    let beside = |name: &str| {
        let mut all = Victim::new().listed(|_| {});
        all.push(json!({ "rfilename": name, "size": 3 }));
        listing(&all)
    };
    let nothing: Expected = Err(&[ID, "the folder is empty"]);
    meet_listings(vec![
        ("a name that leads out", beside("../../../../../away/x.safetensors"), Ok(())),
        ("an absolute name", only("/etc/x.safetensors"), nothing),
        ("control characters", only("\u{1b}[2J\u{7}evil.safetensors"), nothing),
        ("a zero byte", beside("vae/a\0b.safetensors"), Ok(())),
        ("a drive", only("C:evil.safetensors"), nothing),
        ("backslashes", only("..\\evil.safetensors"), nothing),
        ("shards that are not there", only("diffusion_pytorch_model.safetensors.index.json"), Err(&["404"])),
    ]);
}

#[test]
fn a_listing_without_a_commit_is_an_error() {
    let sha = |sha: Value| {
        let mut answer: Value = serde_json::from_str(&changed(|_| {})).unwrap();
        answer["sha"] = sha;
        answer.to_string()
    };
    let none: Expected = Err(&[ID, "expected a commit (40 or 64 hexadecimal digits)", "found"]);
    meet_listings(vec![
        ("a commit that leads out", sha(json!("../../../../x")), none),
        ("a branch", sha(json!("main")), none),
        ("no commit", sha(Value::Null), none),
        ("escapes", sha(json!("\u{1b}[2J")), Err(&["expected a commit", "\\u{1b}[2J"])),
        ("a commit that is no text", sha(json!(7)), Err(&[ID, "invalid type"])),
    ]);
}

#[test]
fn sizes_and_hashes_are_believed_only_if_they_can_be_true() {
    let too_large: Expected = Err(&["vae/config.json", "expected at most 16.0 MiB, found", "as the hub lists it"]);
    let no_digits: Expected = Err(&["vae/config.json", "in hexadecimal digits, found"]);
    let other: Expected = Err(&["vae/config.json", "expected git blob bbbb", "found"]);
    meet_listings(vec![
        ("a negative size", changed(|file| file["size"] = json!(-1)), Err(&[ID, "invalid value"])),
        ("a huge size", changed(|file| file["size"] = json!(1_u64 << 63)), too_large),
        ("huge sizes", changed(|file| file["size"] = json!(u64::MAX)), too_large),
        ("no sizes", changed(|file| drop(file.as_object_mut().unwrap().remove("size"))), Ok(())),
        ("no hashes", changed(|file| *file = json!({ "rfilename": file["rfilename"], "size": file["size"] })), Ok(())),
        ("no size, no hash", changed(|file| *file = json!({ "rfilename": file["rfilename"] })), Ok(())),
        ("a path as a hash", changed(|file| file["lfs"] = json!({ "sha256": "../../../away/x" })), no_digits),
        ("a short hash", changed(|file| file["blobId"] = json!("abc")), no_digits),
        ("another hash", changed(|file| file["blobId"] = json!("b".repeat(40))), other),
    ]);
}

#[test]
fn what_is_no_listing_is_an_error() {
    let error: Expected = Err(&[ID, "the hub's listing: "]);
    meet_listings(vec![
        ("no list", json!({ "sha": COMMIT }).to_string(), Err(&[ID, "missing field `siblings`"])),
        ("no JSON", "<html>".to_owned(), error),
        ("nothing", String::new(), error),
        ("a deep listing", "[".repeat(100_000), error),
        ("depths that nobody reads", format!("{{\"x\":{}", "[".repeat(100_000)), error),
    ]);
    let endless = instead(At::Listing, Reply::Endless);
    Victim::new().meets("no end", endless, Err(&[ID, "expected a listing of at most 16.0 MiB"]));
    // The client did not ask for compression, and does not unpack it.
    let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    let packed = instead(At::Listing, Reply::Whole(200, "Content-Encoding: gzip\r\n", packed));
    Victim::new().meets("a compressed listing", packed, error);
}

#[test]
fn shards_are_files_beside_their_index() {
    for shard in
        ["../../../../../../away/evil.safetensors", "/etc/passwd", "a\u{1b}[2J.safetensors", "..", "C:x.safetensors"]
    {
        let index = json!({ "weight_map": { "a": shard } }).to_string().into_bytes();
        let mut victim = Victim::new();
        victim.files[1] = ("vae/diffusion_pytorch_model.safetensors.index.json", index);
        victim.meets(shard, Manners::default(), Err(&["index.json", "is not a plain file name"]));
    }
}

#[test]
fn redirects_are_followed_as_far_as_they_can_be_trusted() {
    let nowhere: Expected = Err(&["expected an address to be redirected to", "found none"]);
    let wrong: Expected = Err(&["expected a redirect to an http or https address, found one to"]);
    let many: Expected = Err(&["expected at most 5 redirects, found more"]);
    let refused: Expected = Err(&["refused"]);
    let cases = [
        ("no address", 302, "", nowhere),
        ("a relative address", 302, "Location: foo\r\n", many),
        ("mail", 302, "Location: mailto:a@b\r\n", wrong),
        ("a file", 302, "Location: file:///etc/passwd\r\n", wrong),
        ("no host", 302, "Location: http://\r\n", wrong),
        ("a redirect to itself", 302, "Location: {self}\r\n", many),
        ("nobody", 307, "Location: //127.0.0.1:9/x\r\n", refused),
        ("a status that redirects nowhere", 300, "", Err(&["status 300"])),
        ("no content", 204, "", Err(&["status 204"])),
    ];
    std::thread::scope(|scope| {
        for at in [At::Listing, At::File, At::Storage] {
            scope.spawn(move || {
                for (what, status, headers, expected) in cases {
                    Victim::new().meets(&format!("{what}, {at:?}"), redirects(at, status, headers), expected);
                }
            });
        }
    });
}

#[test]
fn the_token_goes_to_no_other_port_or_host() {
    // `meets` checks the requests to both servers.
    for location in ["Location: {storage}/{name}\r\n", "Location: {storage-by-number}/{name}\r\n"] {
        Victim::new().meets(location, redirects(At::File, 302, location), Ok(()));
    }
    let listing_elsewhere = redirects(At::Listing, 302, "Location: {storage}/api/x\r\n");
    Victim::new().meets("a listing elsewhere", listing_elsewhere, Err(&[ID, "(404)"]));

    // The token is not sent to the hub either if another server redirects there.
    let victim = Victim::new();
    let mut back = redirects(At::Storage, 302, "Location: {hub}/settings\r\n");
    back.instead.push((At::File, Reply::Whole(302, "Location: {storage}/x\r\n", Vec::new())));
    let hub = Hub::start(&victim.files, back);
    let asked = finish(command(&victim.folder, &hub.address, &plan(&format!("hf:{ID}"))).env("HF_TOKEN", TOKEN));
    check("there and back", &asked, Err(&["expected at most 5 redirects"]));
    let seen = hub.seen();
    assert_eq!(seen.iter().filter(|asked| asked.contains(" with a token")).count(), 2, "{seen:?}");
    assert!(seen.contains(&"hub /settings".to_owned()), "{seen:?}");
}

#[test]
fn bodies_have_an_end() {
    let new = Victim::new;
    let long: Expected = Err(&["vae/config.json", "as the hub lists it, found more"]);
    new().meets("a file without an end", instead(At::File, Reply::Endless), long);
    let unlisted = || listing(&new().listed(|file| *file = json!({ "rfilename": file["rfilename"] })));
    // Two faults at once: the listing has no sizes, and the file has no end.
    let mut both = lists(unlisted());
    both.instead.push((At::File, Reply::Endless));
    new().meets(
        "no size and no end",
        both,
        Err(&["vae/config.json", "expected at most 16777216 bytes, as the hub lists no size, found more"]),
    );
    new().meets("weights without an end", instead(At::Storage, Reply::Endless), Err(&[WEIGHTS, "found more"]));
    new().meets(
        "a file that ends early",
        instead(At::File, Reply::Unstated(10)),
        Err(&["vae/config.json", "found 10"]),
    );
    new().meets(
        "a short file",
        instead(At::File, Reply::Whole(200, "", vec![b' '; 10])),
        Err(&["vae/config.json", "bytes as the hub lists it, found 10"]),
    );
    let range = |range: &'static str| instead(At::File, Reply::Whole(206, range, vec![b' '; 10]));
    new().meets("a range without its place", range(""), Err(&["expected the file's bytes from 0 on", "no range"]));
    new().meets(
        "another range",
        range("Content-Range: bytes 5-14/15\r\n"),
        Err(&["expected the file's bytes from 0 on", "5-14"]),
    );
    new().meets("an odd range", range("Content-Range: bytes 0-0/*\r\n"), Err(&["vae/config.json", "found 10"]));
    new().meets("a huge length", instead(At::File, Reply::Whole(200, "X: y\r\n", vec![b' '; 1 << 20])), long);
    new().meets("flipped bits", Manners { flips: true, ..Manners::default() }, Err(&[WEIGHTS, "expected SHA-256"]));
}
