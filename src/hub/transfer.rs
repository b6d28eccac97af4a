//! Requests to the hub over HTTP. No server is trusted: the token goes only to the hub's own
//! scheme, host and port, and redirects, bytes and time are all limited.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::{Agent, Body, Timeout};
use url::Url;

use super::cache::{create_folder_of, remove};
use super::failure::Failure;
use super::hash::Commit;
use super::name::HubName;
use super::network::Network;
use super::options::HubOptions;
use crate::error::{Error, Result};
use crate::tensor::Bytes;

/// Most redirects of one request.
const REDIRECTS: usize = 5;

/// Time limit for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Time limit until an answer begins, over all redirects, and for each pause in it. It also limits
/// a whole listing.
const WAIT: Duration = Duration::from_secs(30);

/// Fewest bytes that must come within [`PACE`]. A slower answer is abandoned.
const LEAST: u64 = 20 << 10;

/// Period over which [`LEAST`] is checked.
const PACE: Duration = Duration::from_secs(20);

/// Longest listing that is read. One file takes about 300 bytes in it.
const LISTING: Bytes = Bytes(16 << 20);

/// Most tries in a row without progress.
const TRIES: u64 = 4;

/// Most tries of a listing that the cache cannot replace.
pub(super) const TRIES_OF_LISTING: u64 = 2;

/// Number of new bytes that count as progress.
const ADVANCE: u64 = 1 << 20;

/// A connection to one hub.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    endpoint: Url,
    token: Option<Token>,
    network: Network,
}

/// A secret, which `Debug` does not print.
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The known facts about a download before it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Size, if it is known.
    pub(super) bytes: Option<Bytes>,
    /// Largest size that is accepted.
    pub(super) most: Bytes,
    /// True if a part of an earlier download may be continued, because the content will be
    /// verified.
    pub(super) resumes: bool,
}

impl Client {
    /// Prepares requests to the hub, without sending anything.
    ///
    /// # Errors
    /// [`Error::Input`] for an unusable address, token, proxy or certificate; [`Error::Io`] for a
    /// file of certificates that cannot be read.
    pub(super) fn new(options: &HubOptions) -> Result<Self> {
        let address = options.endpoint.as_deref().unwrap_or("https://huggingface.co");
        let endpoint = Url::parse(address).ok().filter(|url| is_web(url) && url.has_host());
        let endpoint = endpoint.ok_or_else(|| {
            Error::input(
                "address of the hub (HF_ENDPOINT)",
                "an address such as https://huggingface.co",
                format!("{address:?}"),
            )
        })?;
        let token = options.found_token();
        if token.as_ref().is_some_and(|token| !token.bytes().all(|letter| letter.is_ascii_graphic())) {
            return Err(Error::input(
                "token of the hub (HF_TOKEN)",
                "letters, digits and signs of ASCII",
                "other characters",
            ));
        }
        let network = Network::new(options)?;
        let config = Agent::config_builder()
            .tls_config(network.tls(&endpoint)?)
            .proxy(None)
            .user_agent(concat!("wgvae/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_send_request(Some(CONNECT))
            .timeout_per_read(Some(WAIT));
        Ok(Self { agent: config.build().new_agent(), endpoint, token: token.map(Token), network })
    }

    /// Returns the hub's listing, in JSON, for the revision in `name`. Asks a busy hub again, up to
    /// `most` times in all.
    pub(super) fn listing(&self, name: &HubName, most: u64) -> std::result::Result<Vec<u8>, Failure> {
        let mut tries = 1;
        loop {
            match self.try_listing(name) {
                Err(failure) if failure.may_pass_soon() && tries < most => {
                    std::thread::sleep(Duration::from_secs(failure.wait(tries)));
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    fn try_listing(&self, name: &HubName) -> std::result::Result<Vec<u8>, Failure> {
        let (owner, model) = name.owner_and_model();
        let mut url = self.address(&["api", "models", owner, model, "revision", &name.revision]);
        url.set_query(Some("blobs=true"));
        let mut text = Vec::new();
        let response = self.get(&url, 0, Some(WAIT))?;
        read_body(response, LISTING.0, |bytes| {
            text.extend_from_slice(bytes);
            Ok(())
        })?;
        if text.len() as u64 > LISTING.0 {
            return Err(Failure::Wrong(format!("expected a listing of at most {LISTING}, found more")));
        }
        Ok(text)
    }

    /// Downloads `file` of `commit` to `part`, and reports the bytes so far to `progress`. Retries
    /// a download that breaks off. After a failure, the partial download stays at `part` if
    /// `expected` says that it can be continued.
    pub(super) fn download(
        &self,
        name: &HubName,
        commit: &Commit,
        file: &str,
        part: &Path,
        expected: Expected,
        progress: &mut dyn FnMut(Bytes),
    ) -> std::result::Result<(), Failure> {
        let (owner, model) = name.owner_and_model();
        let place = [owner, model, "resolve", commit.as_str()];
        let url = self.address(&place.into_iter().chain(file.split('/')).collect::<Vec<_>>());
        let (mut tries, mut farthest) = (0, length(part));
        loop {
            let Err(failure) = self.try_download(&url, part, expected, progress) else { return Ok(()) };
            let has_advanced = length(part) >= farthest + ADVANCE;
            tries = if has_advanced { 1 } else { tries + 1 };
            farthest = farthest.max(length(part));
            if matches!(failure, Failure::Wrong(_)) || !expected.resumes {
                remove(part).map_err(Failure::Cache)?;
            }
            let may_pass = failure.may_pass() || (has_advanced && failure.is_no_answer());
            if !may_pass || tries == TRIES {
                return Err(failure);
            }
            std::thread::sleep(Duration::from_secs(failure.wait(tries)));
        }
    }

    fn try_download(
        &self,
        url: &Url,
        part: &Path,
        expected: Expected,
        progress: &mut dyn FnMut(Bytes),
    ) -> std::result::Result<(), Failure> {
        let cache = |source| Failure::Cache(Error::io(part.display(), source));
        create_folder_of(part).map_err(Failure::Cache)?;
        let opened = File::options().write(true).create(true).truncate(!expected.resumes).open(part);
        let mut file = opened.map_err(cache)?;
        let there = length(part);
        if expected.bytes == Some(Bytes(there)) {
            return Ok(());
        }
        let most = expected.bytes.unwrap_or(expected.most).0;
        let begin = if there < most { there } else { 0 };
        let answer = self.get(url, begin, None).and_then(|response| Ok((first_byte(&response, begin)?, response)));
        let (mut done, response) = match answer {
            // The server has no such range, so the next try downloads the whole file.
            Err(Failure::Status(416, _) | Failure::Wrong(_)) if begin > 0 => {
                file.set_len(0).map_err(cache)?;
                return Err(Failure::BrokeOff(format!("expected the file's bytes from {begin} on, found none")));
            }
            answer => answer?,
        };
        let is_stated = response.body().content_length().is_some();
        file.set_len(done).and_then(|()| file.seek(SeekFrom::End(0))).map_err(cache)?;
        progress(Bytes(done));
        read_body(response, most - done, |bytes| {
            done += bytes.len() as u64;
            progress(Bytes(done.min(most)));
            file.write_all(bytes).map_err(cache)
        })?;
        let wrong_size = |found: &str| match expected.bytes {
            Some(Bytes(listed)) => format!("expected {listed} bytes as the hub lists it, found {found}"),
            None => format!("expected at most {most} bytes, as the hub lists no size, found {found}"),
        };
        if done > most {
            return Err(Failure::Wrong(wrong_size("more")));
        }
        match expected.bytes {
            Some(Bytes(listed)) if done < listed => {
                let why = wrong_size(&done.to_string());
                Err(if is_stated { Failure::Wrong(why) } else { Failure::BrokeOff(why) })
            }
            _ => Ok(()),
        }
    }

    /// Returns the hub's address of `path`, with each part escaped.
    fn address(&self, path: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        url
    }

    /// Requests `first` from byte `begin` on, and follows redirects. `body` limits the time for the
    /// whole body.
    fn get(&self, first: &Url, begin: u64, body: Option<Duration>) -> std::result::Result<Response<Body>, Failure> {
        let end = Instant::now() + WAIT;
        let (mut url, mut is_hubs) = (first.clone(), true);
        for _ in 0..=REDIRECTS {
            // The token is never sent again after a redirect to another server, even if that
            // redirects back: another server must not choose requests that carry the token.
            is_hubs &= url.origin() == self.endpoint.origin();
            let mut request = self.agent.get(url.as_str());
            if begin > 0 {
                request = request.header("Range", format!("bytes={begin}-"));
            }
            if let Some(Token(token)) = self.token.as_ref().filter(|_| is_hubs) {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let config = request
                .config()
                .proxy(self.network.proxy_to(&url))
                .timeout_recv_response(Some(left))
                .timeout_recv_body(body);
            let response = config.build().call().map_err(|error| no_answer(&url, error))?;
            match response.status().as_u16() {
                200 | 206 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => {
                    let location = response.headers().get("Location");
                    url = redirected(&url, location.and_then(|location| location.to_str().ok()))?;
                }
                status => return Err(Failure::Status(status, seconds_to_wait(&response))),
            }
        }
        Err(Failure::Wrong(format!("expected at most {REDIRECTS} redirects, found more")))
    }
}

/// Returns the address that the `location` header of an answer from `url` redirects to.
fn redirected(url: &Url, location: Option<&str>) -> std::result::Result<Url, Failure> {
    let Some(location) = location else {
        return Err(Failure::Wrong("expected an address to be redirected to, found none".to_owned()));
    };
    let next = url.join(location).ok().filter(|next| is_web(next) && next.has_host());
    // A chain that began with https must stay with https.
    let next = next.filter(|next| url.scheme() == "http" || next.scheme() == "https");
    next.ok_or_else(|| {
        let expected = if url.scheme() == "http" { "an http or https address" } else { "an https address" };
        Failure::Wrong(format!("expected a redirect to {expected}, found one to {location:?}"))
    })
}

/// Returns the seconds of the header `Retry-After`, if it has a number of them.
fn seconds_to_wait(response: &Response<Body>) -> Option<u64> {
    response.headers().get("Retry-After")?.to_str().ok()?.trim().parse().ok()
}

fn is_web(url: &Url) -> bool {
    ["http", "https"].contains(&url.scheme())
}

/// Returns the position in the file of the body's first byte: `asked`, or 0 for the whole file.
fn first_byte(response: &Response<Body>, asked: u64) -> std::result::Result<u64, Failure> {
    if response.status() == 200 {
        return Ok(0);
    }
    let range = response.headers().get("Content-Range").and_then(|range| range.to_str().ok());
    match range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-')) {
        Some((first, _)) if first == asked.to_string() => Ok(asked),
        _ => {
            let found = range.map_or("no range".to_owned(), |range| format!("{range:?}"));
            Err(Failure::Wrong(format!("expected the file's bytes from {asked} on, found {found}")))
        }
    }
}

/// Passes the body of `response` to `write`, piece by piece. Stops after `most` + 1 bytes, so that
/// the caller notices a longer body.
fn read_body(
    response: Response<Body>,
    most: u64,
    mut write: impl FnMut(&[u8]) -> std::result::Result<(), Failure>,
) -> std::result::Result<(), Failure> {
    let mut body = response.into_body().into_reader().take(most.saturating_add(1));
    let mut buffer = vec![0; 1 << 16];
    let (mut since, mut bytes) = (Instant::now(), 0);
    loop {
        let read = match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken_off(error.into())),
        };
        write(&buffer[..read])?;
        bytes += read as u64;
        if since.elapsed() >= PACE {
            if bytes < LEAST {
                let (least, pace) = (Bytes(LEAST), PACE.as_secs());
                return Err(Failure::TooSlow(format!(
                    "expected at least {least} within {pace} s, found {bytes} bytes"
                )));
            }
            (since, bytes) = (Instant::now(), 0);
        }
    }
}

fn no_answer(url: &Url, error: ureq::Error) -> Failure {
    let asked = url.origin().ascii_serialization();
    match error {
        ureq::Error::Timeout(timeout) => Failure::TooSlow(format!("{asked}: {}", too_slow(timeout))),
        other => Failure::NoAnswer(format!("no answer from {asked}: {other}")),
    }
}

fn broken_off(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(timeout) => Failure::TooSlow(too_slow(timeout)),
        other => Failure::BrokeOff(format!("the answer broke off: {other}")),
    }
}

/// Describes a time limit that has passed.
fn too_slow(timeout: Timeout) -> String {
    let (connect, wait) = (CONNECT.as_secs(), WAIT.as_secs());
    match timeout {
        Timeout::Resolve | Timeout::Connect | Timeout::SendRequest => format!("no connection within {connect} s"),
        Timeout::RecvBody => format!("the answer was not whole within {wait} s"),
        _ => format!("no answer within {wait} s"),
    }
}

/// Returns the size of the file at `path`, or 0 if there is none.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_the_web_and_keep_its_encryption() {
        let from = |url: &str, location: &str| {
            redirected(&Url::parse(url).expect("an address"), Some(location))
                .map(String::from)
                .map_err(|it| it.to_string())
        };
        let hub = "https://hub.example/a/b";
        for (location, expected) in [
            ("/c?d", "https://hub.example/c?d"),
            ("c", "https://hub.example/a/c"),
            ("//cdn.example/x", "https://cdn.example/x"),
            ("https://cdn.example:8443/x", "https://cdn.example:8443/x"),
        ] {
            assert_eq!(from(hub, location).as_deref(), Ok(expected));
        }
        for wrong in
            ["http://hub.example/c", "http://cdn.example", "file:///etc/passwd", "mailto:a@b", "https://", "data:,x"]
        {
            let error = from(hub, wrong).expect_err(wrong);
            assert!(error.contains("an https address") && error.contains(wrong), "{error}");
        }
        assert_eq!(from("http://mirror.example", "https://cdn.example/").as_deref(), Ok("https://cdn.example/"));
    }

    #[test]
    fn addresses_escape_what_is_in_names() {
        let endpoint = Some("https://mirror.example/hub/".to_owned());
        let client = Client::new(&HubOptions { endpoint, token: Some("t".to_owned()), ..HubOptions::default() });
        let client = client.expect("a client");
        let url = client.address(&["api", "refs/pr/7", "a b+(c)", "\u{e9}?#%"]);
        assert_eq!(url.as_str(), "https://mirror.example/hub/api/refs%2Fpr%2F7/a%20b+(c)/%C3%A9%3F%23%25");
        assert!(!format!("{client:?}").contains("\"t\""));
    }
}
