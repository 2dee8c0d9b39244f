//! Long work on a thread of its own, while the calling thread listens for signals and reports progress.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

/// How often the calling thread looks for signals and reports progress.
const LISTEN: Duration = Duration::from_millis(50);

/// The callback that receives the finished share, 0..1.
type Report<'a> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'a;

/// Runs `work` without the interpreter lock. It reports its share, 0..1, and must end soon when that answers `Break`:
/// after a signal or an exception in `progress`, which is then raised. `None` if it panicked.
///
/// # Errors
///
/// The exception of a signal's handler, or of `progress`.
pub fn listen<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Report<'_>) -> T + Send,
) -> PyResult<Option<T>> {
    let mut result = None;
    attend(py, progress, Box::new(|report| result = Some(work(report))))?;
    Ok(result)
}

/// The part that does not depend on the type of the result, and so is compiled once.
fn attend(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: Box<dyn FnOnce(&Report<'_>) + Send + '_>,
) -> PyResult<()> {
    let stop = AtomicBool::new(false);
    let share = AtomicU64::new(0);
    std::thread::scope(|threads| {
        // Nothing is sent: the receiver wakes when the work ends and drops its sender.
        let (working, done) = channel::<Infallible>();
        // Only this thread receives; the lock is there because `detach` may run its closure anywhere.
        let done = Mutex::new(done);
        let wait = || match done.lock().expect("only one thread listens").recv_timeout(LISTEN) {
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
            Ok(never) => match never {},
        };
        let (stop, share) = (&stop, &share);
        threads.spawn(move || {
            let _working = working;
            work(&|part| {
                share.store(part.to_bits(), Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        });
        while !py.detach(wait) {
            let heard = py.check_signals().and_then(|()| match progress {
                Some(callback) => callback.call1(py, (f64::from_bits(share.load(Ordering::Relaxed)),)).map(drop),
                None => Ok(()),
            });
            if let Err(error) = heard {
                stop.store(true, Ordering::Relaxed);
                // Wait without the lock: a worker must not outlive this call.
                while !py.detach(wait) {}
                return Err(error);
            }
        }
        Ok(())
    })
}
