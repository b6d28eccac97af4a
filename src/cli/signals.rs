//! The signals that ask wgvae to end, and the exit code that tells which one did.

use std::sync::atomic::{AtomicI32, Ordering};

/// SIGINT, as Ctrl-C sends it.
const INTERRUPT: i32 = 2;

/// The signal that came first; 0 before any.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Calls `handler` in a thread of its own when SIGINT, SIGTERM or SIGHUP comes.
#[cfg(unix)]
pub(super) fn handle(handler: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            RECEIVED.store(signal, Ordering::Relaxed);
            handler();
        }
    })?;
    Ok(())
}

/// Calls `handler` in a thread of its own when the console sends Ctrl-C or is closed.
#[cfg(not(unix))]
pub(super) fn handle(handler: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(handler)
}

/// Returns the exit code after a signal, as shells count it: 128 and the signal's number.
pub(crate) fn exit_code() -> u8 {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => 128 + INTERRUPT,
        signal => 128 + signal,
    }
    .try_into()
    .unwrap_or(u8::MAX)
}
