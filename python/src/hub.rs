//! Models by name: downloaded on a thread of their own, so that Ctrl-C does not have to wait for
//! them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};

use wgvae::hub::{HubModel, HubName, HubOptions};
use wgvae::{Result, Variant};

use crate::SIGNALS;
use crate::errors::Stop;
use crate::watch::Watch;

/// Where the files of the model at `path` are: downloaded, if that is a name of the hub. What is
/// stopped goes on where it was when it is asked for again.
///
/// # Errors
/// See [`HubModel::find`] and [`HubModel::download`]; what handlers of signals raise.
pub(crate) fn local(path: PathBuf, variant: Variant) -> std::result::Result<PathBuf, Stop> {
    let name = match path.to_str() {
        Some(text) if HubName::is_meant(text) => text.parse::<HubName>()?,
        _ => return Ok(path),
    };
    let (done, result) = channel::<Result<PathBuf>>();
    std::thread::spawn(move || {
        let found = HubModel::find(&name, variant, &HubOptions::from_env());
        // Whoever was interrupted does not listen any more.
        drop(done.send(found.and_then(|mut model| model.download(&mut |_| {}))));
    });
    loop {
        match result.recv_timeout(SIGNALS) {
            Ok(downloaded) => return Ok(downloaded?),
            Err(RecvTimeoutError::Timeout) => Watch::signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                panic!("the download of {} has ended without a word", Path::display(&path))
            }
        }
    }
}
