//! The way to the hub: proxies, and settings of the network that cannot be used.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::server::{Hub, ID, Manners};
use super::{command, plan, repository, run};
use crate::tool::{Folder, finish};

/// Proxy that opens a tunnel with the method CONNECT, and lists the hosts it was asked for.
struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                // A client that disconnects early has all that it wants.
                std::thread::spawn(move || drop(tunnel(stream, &log)));
            }
        });
        Self { address, asked }
    }

    /// Returns the number of tunnels to `host` so far, and forgets all of them.
    fn take(&self, host: &str) -> usize {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.iter().filter(|line| line.starts_with(&format!("CONNECT {host} "))).count()
    }
}

fn tunnel(mut client: TcpStream, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let lines = BufReader::new(client.try_clone()?).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let first = head.first().cloned().unwrap_or_default();
    asked.lock().unwrap().push(first.clone());
    let target = first.strip_prefix("CONNECT ").and_then(|line| line.split(' ').next());
    let Some(target) = target else { return client.write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n") };
    let mut server = TcpStream::connect(target)?;
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
    std::io::copy(&mut server, &mut client)?;
    client.shutdown(std::net::Shutdown::Both)
}

#[test]
fn a_proxy_carries_the_requests_of_its_scheme() {
    let folder = Folder::new();
    let (hub, proxy) = (Hub::start(&repository(&folder), Manners::default()), Proxy::start());
    let (name, host) = (format!("hf:{ID}"), hub.address.trim_start_matches("http://"));
    let args = plan(&name);
    for (cache, variable, no_proxy, is_used) in [
        ("a", "HTTP_PROXY", "", true),
        ("b", "all_proxy", "hub.example", true),
        ("c", "HTTPS_PROXY", "", false),
        ("d", "HTTP_PROXY", "127.0.0.1,localhost", false),
    ] {
        let mut downloads = command(&folder, &hub.address, &args);
        downloads.env("HF_HOME", cache).env(variable, &proxy.address).env("NO_PROXY", no_proxy);
        let before = hub.seen().len();
        finish(&mut downloads).ok();
        assert!(hub.seen().len() > before, "{variable}");
        assert_eq!(proxy.take(host) > 0, is_used, "{variable} {no_proxy}");
    }
    // The hub for https is reached through its own proxy; nobody listens there.
    let mut encrypted = command(&folder, "https://127.0.0.1:9", &args);
    finish(encrypted.env("HTTPS_PROXY", &proxy.address)).failed("nobody there", 1, &["no answer"]);
    assert!(proxy.take("127.0.0.1:9") > 0);
}

#[test]
fn a_file_without_certificates_is_an_error() {
    let folder = Folder::new();
    let name = format!("hf:{ID}");
    let with = |file: &str| finish(command(&folder, "https://127.0.0.1:9", &plan(&name)).env("SSL_CERT_FILE", file));
    with("nowhere.pem").failed("no file", 1, &["nowhere.pem"]);
    folder.write("empty.pem", b"# nothing");
    with("empty.pem").failed("no certificate", 1, &["empty.pem", "SSL_CERT_FILE", "expected certificates", "none"]);
    folder.write("some.pem", b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
    // A file of certificates is accepted. Nobody listens, so this does not show that they are used.
    with("some.pem").failed("nobody there", 1, &["no answer from https://127.0.0.1:9"]);
}

/// A wrong proxy or a lost file of certificates is as good as no connection.
#[test]
fn a_warm_cache_replaces_settings_that_cannot_be_used() {
    let folder = Folder::new();
    let hub = Hub::start(&repository(&folder), Manners::default());
    let name = format!("hf:{ID}");
    run(&folder, &hub.address, &plan(&name)).ok();
    folder.write("empty.pem", b"# nothing");
    for (variable, value, reason) in [
        ("SSL_CERT_FILE", "lost.pem", "lost.pem"),
        ("SSL_CERT_FILE", "empty.pem", "expected certificates"),
        ("REQUESTS_CA_BUNDLE", "model", "a directory"),
        ("ALL_PROXY", "ftp://proxy", "ALL_PROXY"),
        ("HF_TOKEN", "hf\u{1b}[2J", "HF_TOKEN"),
    ] {
        let args = plan(&name);
        let mut warm = command(&folder, "https://127.0.0.1:9", &args);
        let said = finish(warm.env(variable, value)).ok().stderr;
        assert!(said.contains("using the cache") && said.contains(reason), "{variable}: {said}");
        let mut cold = command(&folder, "https://127.0.0.1:9", &args);
        finish(cold.env(variable, value).env("HF_HOME", "cold")).failed(variable, 1, &[reason]);
    }
}
