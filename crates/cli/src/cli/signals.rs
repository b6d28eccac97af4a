//! Handling of signals that ask this process to end: Ctrl-C, SIGTERM, and SIGHUP on Linux. The
//! first signal is a request, the second an order.

use std::io::Result;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Time between two checks of the watcher for a signal.
const LOOK: Duration = Duration::from_millis(20);

/// Last signal that the watcher has not seen yet; 0 if there is none.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// First signal; 0 before one arrives.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// True once the process cleans up: from then on a signal ends it within its handler.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Calls `ask` after the first signal, and `end` once `patience` is over or a second signal
/// arrives.
///
/// # Errors
/// Errors of the operating system. Signals without a handler then end the process at once, as they
/// do by default.
pub(super) fn watch(
    ask: impl FnOnce() + Send + 'static,
    patience: Duration,
    end: impl FnOnce() + Send + 'static,
) -> Result<()> {
    for signal in signals() {
        flag::register_conditional_shutdown(signal, exit_code_of(signal), &ENDING)?;
        flag::register_usize(signal, &PENDING, signal.unsigned_abs() as usize)?;
    }
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        FIRST.store(next(Duration::MAX), Ordering::SeqCst);
        ask();
        next(patience);
        ENDING.store(true, Ordering::SeqCst);
        end();
    })?;
    Ok(())
}

/// Returns the exit code after a signal, as shells count it: 128 plus the signal's number.
pub(crate) fn exit_code() -> u8 {
    let signal = match FIRST.load(Ordering::SeqCst) {
        0 => SIGINT,
        first => i32::try_from(first).unwrap_or(SIGINT),
    };
    u8::try_from(exit_code_of(signal)).unwrap_or(u8::MAX)
}

fn exit_code_of(signal: i32) -> i32 {
    128 + signal
}

/// Waits for a signal, at most for `patience`. Returns 0 if none came.
fn next(patience: Duration) -> usize {
    let start = Instant::now();
    loop {
        let signal = PENDING.swap(0, Ordering::SeqCst);
        if signal != 0 || start.elapsed() >= patience {
            return signal;
        }
        std::thread::sleep(LOOK);
    }
}

fn signals() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    // On other systems there is no safe way to learn that `nohup` wants SIGHUP ignored.
    #[cfg(target_os = "linux")]
    signals.extend(Some(signal_hook::consts::SIGHUP).filter(|&signal| !is_ignored(signal)));
    signals
}

/// Returns true if the parent process made this one ignore `signal`, as `nohup` does.
#[cfg(target_os = "linux")]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
