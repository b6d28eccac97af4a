//! Server that serves a folder to this machine only. `tower-http` provides media types, Range, ETag
//! and gzip, as sites have it; there is no caching, COOP or COEP.
//!
//! `cargo xtask serve` calls it as `xtask-serve PORT FOLDER [NAME=FOLDER ...]`. The first folder is
//! `/`, and the others are below it. Prints the address once it listens.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use tokio::net::TcpListener;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate as _};
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, folder, below @ ..] = arguments.as_slice() else {
        bail!("expected PORT FOLDER [NAME=FOLDER ...], found {arguments:?}")
    };
    let port: u16 = port.parse().with_context(|| format!("{port} is not a port"))?;
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?
        .block_on(serve(port, folder, below))
}

async fn serve(port: u16, folder: &str, below: &[String]) -> Result<()> {
    let mut site = Router::new().fallback_service(ServeDir::new(folder));
    for entry in below {
        let (name, folder) = entry.split_once('=').with_context(|| format!("expected NAME=FOLDER, found {entry}"))?;
        site = site.nest_service(&format!("/{name}"), ServeDir::new(folder));
    }
    // Models are fetched in ranges, and do not become smaller.
    let kinds = DefaultPredicate::new().and(NotForContentType::new("application/octet-stream"));
    let site = site.layer(CompressionLayer::new().compress_when(kinds));
    // During development, a page must not come from the browser's cache unchecked.
    let site = site.layer(SetResponseHeaderLayer::overriding(CACHE_CONTROL, HeaderValue::from_static("no-cache")));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("could not listen on port {port}"))?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, site).await.context("the server stopped")
}
