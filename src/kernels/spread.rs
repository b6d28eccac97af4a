//! Work on many items by several threads, without a pool.

use std::sync::Mutex;

/// Makes state by `start` on up to `threads` threads, and gives it to `work` with one item after
/// the other. Where the system starts fewer threads, the work only takes longer.
pub(super) fn spread<T: Send, S>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) {
    let items = Mutex::new(items);
    let run = || {
        let mut state = start();
        let next = || items.lock().ok()?.next();
        while let Some(item) = next() {
            work(&mut state, item);
        }
    };
    // In a browser, Rust cannot start threads.
    if threads < 2 || cfg!(target_arch = "wasm32") {
        return run();
    }
    std::thread::scope(|scope| {
        let others = (1..threads).map(|_| std::thread::Builder::new().spawn_scoped(scope, run));
        others.take_while(Result::is_ok).for_each(drop);
        run();
    });
}
