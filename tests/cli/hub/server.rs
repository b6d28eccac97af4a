//! A server that speaks as much of the Hugging Face Hub's HTTP interface as downloads use, written after its documentation and `huggingface_hub`: `/api/models/ID/revision/REV`
//! lists the files of a commit, `/ID/resolve/REV/PATH` has them. Large ones are redirected to another origin, which wants no token and serves ranges.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tiny_http::{Header, Request, Response, Server};

pub(crate) const ID: &str = "someone/a-vae";
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const TOKEN: &str = "hf_secret";

/// What the server does that is not usual.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    /// Answers those without the token with 401.
    pub(crate) private: bool,
    /// Answers everybody so.
    pub(crate) refuses: Option<u16>,
    /// Ends its first answer with a large file after so many bytes.
    pub(crate) breaks_after: Option<usize>,
    /// Lists a size that files do not have.
    pub(crate) lies: bool,
}

/// A hub with one repository.
pub(crate) struct Hub {
    pub(crate) address: String,
    hub: Arc<Server>,
    storage_port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    pub(crate) fn start(files: &[(&str, Vec<u8>)], manners: Manners) -> Self {
        let files: Arc<BTreeMap<String, Vec<u8>>> =
            Arc::new(files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let hub = Arc::new(Server::http("127.0.0.1:0").unwrap());
        let storage = TcpListener::bind("127.0.0.1:0").unwrap();
        let hub_address = format!("http://127.0.0.1:{}", hub.server_addr().to_ip().unwrap().port());
        // Another name is another origin.
        let storage_port = storage.local_addr().unwrap().port();
        let storage_address = format!("http://localhost:{storage_port}");
        let mut breaks_after = manners.breaks_after;
        {
            let (hub, files, seen) = (Arc::clone(&hub), Arc::clone(&files), Arc::clone(&seen));
            std::thread::spawn(move || {
                for request in hub.incoming_requests() {
                    seen.lock().unwrap().push(format!("hub {}", request.url()));
                    answer(request, &files, &manners, &storage_address);
                }
            });
        }
        {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                // Ends with the first connection that says nothing: the hub's own, when it is dropped.
                for stream in storage.incoming() {
                    if serve_range(stream.unwrap(), &files, &mut breaks_after, &seen).is_none() {
                        return;
                    }
                }
            });
        }
        Self { address: hub_address, hub, storage_port, seen }
    }

    /// What has been asked for so far: server, path, range.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.hub.unblock();
        drop(TcpStream::connect(("127.0.0.1", self.storage_port)));
    }
}

fn answer(request: Request, files: &BTreeMap<String, Vec<u8>>, manners: &Manners, storage: &str) {
    let token = header(&request, "Authorization");
    let status = match manners.refuses {
        Some(status) => Some(status),
        None if manners.private && token.as_deref() != Some(&format!("Bearer {TOKEN}")) => Some(401),
        None => None,
    };
    let url = request.url().to_owned();
    let path = url.split('?').next().unwrap_or_default().to_owned();
    let wanted = path.strip_prefix(&format!("/{ID}/resolve/")).and_then(|rest| rest.split_once('/'));
    match (status, wanted) {
        (Some(status), _) => drop(request.respond(Response::empty(status))),
        (None, None) if path.starts_with(&format!("/api/models/{ID}/revision/")) => {
            let more = u64::from(manners.lies);
            let siblings: Vec<_> = files
                .iter()
                .map(|(name, bytes)| json!({ "rfilename": name, "size": bytes.len() as u64 + more }))
                .collect();
            let listed = json!({ "id": ID, "sha": COMMIT, "siblings": siblings, "tags": [] });
            drop(request.respond(Response::from_string(listed.to_string())));
        }
        (None, Some((_, name))) => match files.get(name) {
            None => drop(request.respond(Response::empty(404))),
            Some(bytes) => {
                let etag = format!("\"etag-{}-{}\"", name.replace('/', "-"), bytes.len());
                let facts = vec![("X-Repo-Commit", COMMIT.to_owned()), ("ETag", etag.clone()), ("X-Linked-Etag", etag)];
                if name.ends_with(".safetensors") {
                    let redirect = Response::empty(302).with_header(field("Location", &format!("{storage}/{name}")));
                    let redirect =
                        facts.iter().fold(redirect, |response, (name, value)| response.with_header(field(name, value)));
                    drop(request.respond(redirect));
                } else {
                    send(request, bytes, &facts);
                }
            }
        },
        (None, None) => drop(request.respond(Response::empty(404))),
    }
}

/// A whole small file, of which a range was asked for.
fn send(request: Request, bytes: &[u8], facts: &[(&str, String)]) {
    let range = header(&request, "Range").and_then(|range| range_of(&range, bytes.len()));
    let status = if range.is_some() { 206 } else { 200 };
    let range = range.unwrap_or(0..bytes.len());
    let of = content_range(&range, bytes.len());
    let response = Response::from_data(&bytes[range]).with_status_code(status).with_header(field("Content-Range", &of));
    let response = facts.iter().fold(response, |response, (name, value)| response.with_header(field(name, value)));
    drop(request.respond(response));
}

/// Serves a range of a large file on a connection of its own: by hand, since servers do not break off. None if nothing is asked for.
fn serve_range(
    mut stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    breaks_after: &mut Option<usize>,
    seen: &Mutex<Vec<String>>,
) -> Option<()> {
    let lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    let named = |name: &str| head.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned));
    let asked = named("range: ").unwrap_or_default();
    let token = if named("authorization: ").is_some() { " with a token" } else { "" };
    seen.lock().unwrap().push(format!("storage {path} {asked}{token}"));
    let file = &files[path.trim_start_matches('/')];
    let range = range_of(&asked, file.len()).unwrap_or(0..file.len());
    let (part, of) = (&file[range.clone()], content_range(&range, file.len()));
    let most = if asked == "bytes=0-0" { None } else { breaks_after.take() };
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nConnection: close\r\nContent-Length: {}\r\nContent-Range: {of}\r\n\r\n",
        part.len()
    );
    // Whoever goes away in the middle has what they want.
    drop(
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&part[..most.unwrap_or(part.len()).min(part.len())])),
    );
    Some(())
}

fn range_of(asked: &str, length: usize) -> Option<Range<usize>> {
    let (start, end) = asked.strip_prefix("bytes=")?.split_once('-')?;
    let end = end.parse().map_or(length, |end: usize| end + 1);
    Some(start.parse().ok()?..end.min(length))
}

fn content_range(range: &Range<usize>, length: usize) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
}

fn header(request: &Request, name: &'static str) -> Option<String> {
    let found = request.headers().iter().find(|header| header.field.equiv(name));
    found.map(|header| header.value.as_str().to_owned())
}

fn field(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).unwrap()
}
