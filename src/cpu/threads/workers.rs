//! Workers of a browser or of Node that share the module's memory. JavaScript starts them and lets
//! each call [`run_thread`]; one pool serves all devices of the module.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::Panic;

/// The pool of the module, once a device was opened.
static POOL: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);

/// Threads of the pool that no worker runs yet.
static WAITING: Mutex<Vec<ThreadBuilder>> = Mutex::new(Vec::new());

/// True after a worker has ended by a panic or a failed allocation.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Interval at which a waiting thread checks for a broken worker.
const LOOK: Duration = Duration::from_millis(50);

/// The pool of threads that all devices of the module use.
#[derive(Debug)]
pub(in crate::cpu) struct Threads {
    pool: Arc<ThreadPool>,
}

impl Threads {
    /// Makes the pool of `count` threads, or one, and lets it use vectors. Later calls return the
    /// same pool and ignore `count`.
    pub(in crate::cpu) fn start(count: Option<usize>) -> Result<Self, ThreadPoolBuildError> {
        pulp::wasm::enable_relaxed_simd();
        let mut made = lock(&POOL);
        if let Some(pool) = &*made {
            return Ok(Self { pool: Arc::clone(pool) });
        }
        let spawn = |thread| {
            lock(&WAITING).push(thread);
            Ok(())
        };
        let pool = ThreadPoolBuilder::new().num_threads(count.unwrap_or(1)).spawn_handler(spawn).build()?;
        let pool = made.insert(Arc::new(pool));
        Ok(Self { pool: Arc::clone(pool) })
    }

    /// Returns the number of threads.
    pub(in crate::cpu) fn count(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` on the threads, and waits for it. A panic there ends the module.
    #[expect(clippy::unnecessary_wraps, reason = "natively it returns a panic")]
    pub(in crate::cpu) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Panic> {
        let (result, there) = (Mutex::new(None), Condvar::new());
        Ok(self.pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                *lock(&result) = Some(work());
                there.notify_one();
            });
            let mut result = lock(&result);
            loop {
                if let Some(result) = result.take() {
                    return result;
                }
                // rayon would wait for a thread that is gone.
                assert!(!BROKEN.load(Ordering::Relaxed), "a thread that computes has ended; the console says why");
                result = there.wait_timeout(result, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
        }))
    }
}

/// Runs a thread of the pool on the calling worker, and does not return.
pub(crate) fn run_thread() {
    let thread = lock(&WAITING).pop();
    if let Some(thread) = thread {
        thread.run();
    }
}

/// Ends the module at the next wait for threads, because a worker has ended.
pub(crate) fn thread_broke() {
    BROKEN.store(true, Ordering::Relaxed);
}

/// Ends a thread of the pool by a panic, while the caller waits for its work. For tests.
pub(crate) fn break_thread() {
    if let Ok(threads) = Threads::start(None) {
        let _: Result<(), Panic> = threads.run(|| panic!("a panic for tests"));
    }
}

/// A panic ends the module, so nobody sees what it left half done.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
