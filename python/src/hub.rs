//! Models by name. They are downloaded on a separate thread, so that Ctrl-C works at once.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};

use wgvae::Result;
use wgvae::files::Variant;
use wgvae::hub::{HubModel, HubName, HubOptions};

use crate::SIGNALS;
use crate::errors::Stop;
use crate::notes::{self, collected};
use crate::watch::Watch;

/// Returns the local path of the model at `path`, and downloads it first if that is a name of the
/// hub. An interrupted download continues at the next call.
///
/// # Errors
/// See [`HubModel::find`] and [`HubModel::download`]; also exceptions of signal handlers.
pub(crate) fn local(path: PathBuf, variant: Variant) -> std::result::Result<PathBuf, Stop> {
    let name = match path.to_str() {
        Some(text) if HubName::is_meant(text) => text.parse::<HubName>()?,
        _ => return Ok(path),
    };
    let (done, result) = channel::<(Result<PathBuf>, Vec<String>)>();
    std::thread::spawn(move || {
        let find = || {
            let model = HubModel::find(&name, variant, &HubOptions::from_env())?;
            if let Some(why) = model.unreachable() {
                log::warn!("{name}: using the cache, because the hub did not list the files: {why}");
            }
            Ok::<_, wgvae::Error>(model)
        };
        // After an interrupt, nobody receives this.
        drop(done.send(collected(|| find().and_then(|mut model| model.download(&mut |_| {})))));
    });
    loop {
        match result.recv_timeout(SIGNALS) {
            Ok((downloaded, notes)) => {
                notes::add(notes);
                return Ok(downloaded?);
            }
            Err(RecvTimeoutError::Timeout) => Watch::signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the download of {} ended without a result", Path::display(&path))
            }
        }
    }
}
