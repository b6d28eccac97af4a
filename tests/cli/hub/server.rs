//! Server that implements the part of the Hugging Face Hub's HTTP interface that downloads use,
//! written after its documentation and `huggingface_hub`.
//!
//! `/api/models/ID/revision/REV` lists the files of a commit, and `/ID/resolve/REV/PATH` serves
//! them. Large files are redirected to another origin, which needs no token and serves ranges. The
//! server uses plain sockets, because it also answers in every wrong way.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

pub(crate) const ID: &str = "someone/a-vae";
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const TOKEN: &str = "hf_secret";

/// Files of a repository with their paths.
pub(crate) type Files = Vec<(&'static str, Vec<u8>)>;

/// Unusual behaviour of the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    /// True to answer requests without the token with 401.
    pub(crate) private: bool,
    /// Status with which all requests are answered.
    pub(crate) refuses: Option<u16>,
    /// Kind of request of which the first is answered with this status and these header lines.
    pub(crate) busy_once: Option<(At, u16, &'static str)>,
    /// Number of bytes after which the first answer with a large file ends.
    pub(crate) breaks_after: Option<usize>,
    /// True to list wrong file sizes.
    pub(crate) lies: bool,
    /// Status with which requests for a range are answered.
    pub(crate) no_ranges: Option<u16>,
    /// True to change one bit of large files.
    pub(crate) flips: bool,
    /// Delay before each of twenty pieces of a large file.
    pub(crate) throttle: Duration,
    /// Header lines for each file, which replace lines of the same name.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Answers that replace the usual ones for these kinds of request.
    pub(crate) instead: Vec<(At, Reply)>,
}

/// Kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Listing,
    /// Request to the hub for a file.
    File,
    /// Request to the other origin for a large file.
    Storage,
}

/// Answer. In header lines, `{hub}`, `{storage}` and `{storage-by-number}` become the addresses of
/// the two servers, `{self}` the requested path, and `{name}` the file's name.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Status, header lines, and a body with its length.
    Whole(u16, &'static str, Vec<u8>),
    /// No answer while the client is connected.
    Hang,
    /// One byte per second of a body of a million.
    Drip,
    /// Body without an end.
    Endless,
    /// Body of this many bytes without a stated length.
    Unstated(usize),
    /// Half of the header, then one more byte of it per second.
    DripHead,
}

/// Hub with one repository.
pub(crate) struct Hub {
    pub(crate) address: String,
    storage: String,
    shared: Arc<Shared>,
}

struct Shared {
    hub: String,
    storage: String,
    files: BTreeMap<String, Vec<u8>>,
    manners: Manners,
    breaks_after: Mutex<Option<usize>>,
    busy_once: Mutex<Option<(At, u16, &'static str)>>,
    seen: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl Hub {
    pub(crate) fn start(files: &[(&str, Vec<u8>)], manners: Manners) -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [hub, storage] = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
        let shared = Arc::new(Shared {
            hub: format!("http://127.0.0.1:{hub}"),
            // A different host name makes this a different origin.
            storage: format!("http://localhost:{storage}"),
            files: files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect(),
            breaks_after: Mutex::new(manners.breaks_after),
            busy_once: Mutex::new(manners.busy_once),
            manners,
            seen: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        for (listener, is_hub) in listeners.into_iter().zip([true, false]) {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if shared.is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let shared = Arc::clone(&shared);
                    // A client that disconnects early has all that it wants.
                    std::thread::spawn(move || drop(shared.serve(stream, is_hub)));
                }
            });
        }
        Self { address: shared.hub.clone(), storage: format!("127.0.0.1:{storage}"), shared }
    }

    /// Returns the requests so far: server, path, range, and other headers.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for address in [self.address.trim_start_matches("http://"), &self.storage] {
            drop(TcpStream::connect(address));
        }
    }
}

/// Request.
struct Request {
    path: String,
    range: Option<String>,
    token: Option<String>,
}

impl Request {
    /// Reads a request and adds it to `seen`.
    fn read(stream: &TcpStream, server: &str, seen: &Mutex<Vec<String>>) -> std::io::Result<Self> {
        let lines = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let path =
            head.first().and_then(|line| line.split(' ').nth(1)).ok_or(std::io::ErrorKind::InvalidData)?.to_owned();
        let field = |name: &str| {
            let is_it = |line: &&String| line.to_lowercase().starts_with(&format!("{name}: "));
            head.iter().find(is_it).map(|line| line[name.len() + 2..].to_owned())
        };
        let (range, token) = (field("range"), field("authorization"));
        let range_seen = range.as_ref().map_or(String::new(), |range| format!(" {range}"));
        let token_seen = if token.is_some() { " with a token" } else { "" };
        let encoding_seen = field("accept-encoding").map_or(String::new(), |it| format!(" accepts {it}"));
        seen.lock().unwrap().push(format!("{server} {path}{range_seen}{token_seen}{encoding_seen}"));
        Ok(Self { path, range, token })
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream, is_hub: bool) -> std::io::Result<()> {
        let request = Request::read(&stream, if is_hub { "hub" } else { "storage" }, &self.seen)?;
        let path = request.path.split('?').next().unwrap_or_default();
        let is_listing = path.starts_with(&format!("/api/models/{ID}/revision/"));
        let resolved = path.strip_prefix(&format!("/{ID}/resolve/{COMMIT}/"));
        let place = match (is_hub, is_listing) {
            (true, true) => At::Listing,
            (true, false) => At::File,
            (false, _) => At::Storage,
        };
        if let Some((_, reply)) = self.manners.instead.iter().find(|(at, _)| *at == place) {
            return self.reply(stream, &request, reply);
        }
        let busy = self.busy_once.lock().unwrap().take_if(|(at, ..)| *at == place);
        if let Some((_, status, headers)) = busy {
            return respond(&mut stream, status, headers, b"");
        }
        let is_allowed = !self.manners.private || request.token.as_deref() == Some(&format!("Bearer {TOKEN}"));
        let refused = self.manners.refuses.or((!is_allowed).then_some(401));
        if let Some(status) = refused.filter(|_| is_hub) {
            return respond(&mut stream, status, "", b"");
        }
        match (place, resolved) {
            (At::Listing, _) => respond(&mut stream, 200, "", self.listing().as_bytes()),
            (At::File, Some(name)) if name.ends_with(".safetensors") && self.files.contains_key(name) => {
                let location = format!("Location: {}/{name}\r\n{}", self.storage, self.facts(name));
                respond(&mut stream, 302, &location, b"")
            }
            (At::File, Some(name)) => self.send(stream, name, &request),
            (At::Storage, _) => self.send(stream, path.trim_start_matches('/'), &request),
            (At::File, None) => respond(&mut stream, 404, "", b""),
        }
    }

    fn listing(&self) -> String {
        let more = u64::from(self.manners.lies);
        let siblings: Vec<Value> = self
            .files
            .iter()
            .map(|(name, bytes)| {
                let mut listed = listed(name, bytes);
                listed["size"] = json!(bytes.len() as u64 + more);
                listed
            })
            .collect();
        listing(&siblings)
    }

    /// Returns the header lines of a file.
    fn facts(&self, name: &str) -> String {
        let mut facts = BTreeMap::from([
            ("ETag", format!("\"etag-{}\"", name.replace('/', "-"))),
            ("X-Repo-Commit", COMMIT.to_owned()),
        ]);
        facts.extend(self.manners.headers.iter().cloned());
        facts.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
    }

    /// Sends the requested range of a file.
    fn send(&self, mut stream: TcpStream, name: &str, request: &Request) -> std::io::Result<()> {
        let Some(file) = self.files.get(name) else { return respond(&mut stream, 404, "", b"") };
        if let Some(status) = self.manners.no_ranges.filter(|_| request.range.is_some()) {
            return respond(&mut stream, status, "", b"");
        }
        let is_large = name.ends_with(".safetensors");
        let mut file = file.clone();
        if self.manners.flips && is_large {
            let end = file.len();
            file[end - 1000] ^= 0x40;
        }
        let range = request.range.as_ref().and_then(|range| range_of(range, file.len()));
        let (status, facts) = match &range {
            Some(Range { start, end }) => {
                let last = end.saturating_sub(1);
                (206, format!("Content-Range: bytes {start}-{last}/{}\r\n{}", file.len(), self.facts(name)))
            }
            None => (200, self.facts(name)),
        };
        let part = &file[range.unwrap_or(0..file.len())];
        let most = if is_large { self.breaks_after.lock().unwrap().take() } else { None };
        stream.write_all(head(status, &facts, part.len()).as_bytes())?;
        for piece in part[..most.unwrap_or(part.len()).min(part.len())].chunks(part.len().div_ceil(20).max(1)) {
            if is_large {
                std::thread::sleep(self.manners.throttle);
            }
            stream.write_all(piece)?;
        }
        Ok(())
    }

    fn reply(&self, mut stream: TcpStream, request: &Request, reply: &Reply) -> std::io::Result<()> {
        match reply {
            Reply::Whole(status, headers, body) => {
                let name = request.path.split(COMMIT).nth(1).unwrap_or_default().trim_start_matches('/');
                let headers = headers
                    .replace("{hub}", &self.hub)
                    .replace("{storage}", &self.storage)
                    .replace("{storage-by-number}", &self.storage.replace("localhost", "127.0.0.1"))
                    .replace("{self}", &request.path)
                    .replace("{name}", name);
                respond(&mut stream, *status, &headers, body)
            }
            Reply::Hang => stream.read(&mut [0]).map(drop),
            Reply::Drip => {
                stream.write_all(head(200, "", 1_000_000).as_bytes())?;
                drip(&mut stream)
            }
            Reply::DripHead => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nX-Header: ")?;
                drip(&mut stream)
            }
            Reply::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                loop {
                    stream.write_all(b"10000\r\n")?;
                    stream.write_all(&[b' '; 0x10000])?;
                    stream.write_all(b"\r\n")?;
                }
            }
            Reply::Unstated(length) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
                stream.write_all(&vec![b' '; *length])
            }
        }
    }
}

/// Sends a byte per second while the client is connected.
fn drip(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        stream.write_all(b" ")?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Returns the hub's listing of a file.
pub(crate) fn listed(name: &str, bytes: &[u8]) -> Value {
    let blob = hex(&Sha1::new_with_prefix(format!("blob {}\0", bytes.len())).chain_update(bytes).finalize());
    let mut listed = json!({ "rfilename": name, "size": bytes.len(), "blobId": blob });
    if name.ends_with(".safetensors") {
        listed["lfs"] = json!({ "sha256": sha256(bytes), "size": bytes.len(), "pointerSize": 134 });
    }
    listed
}

/// Returns the hub's listing of a commit with the files `siblings`.
pub(crate) fn listing(siblings: &[Value]) -> String {
    json!({ "id": ID, "sha": COMMIT, "siblings": siblings, "tags": [] }).to_string()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn respond(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> std::io::Result<()> {
    stream.write_all(head(status, headers, body.len()).as_bytes())?;
    stream.write_all(body)
}

fn head(status: u16, headers: &str, length: usize) -> String {
    format!("HTTP/1.1 {status} So\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n")
}

fn range_of(asked: &str, length: usize) -> Option<Range<usize>> {
    let (start, end) = asked.strip_prefix("bytes=")?.split_once('-')?;
    let end = end.parse().map_or(length, |end: usize| end + 1).min(length);
    Some(start.parse::<usize>().ok()?.min(end)..end)
}
