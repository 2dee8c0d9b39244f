//! Long work on a thread of its own, while the calling thread listens for signals and reports progress.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

/// How often the calling thread looks for signals and reports progress.
const LISTEN: Duration = Duration::from_millis(50);

/// Runs `work` without the interpreter lock. It reports its share, 0..1, and must end soon when that answers `Break`:
/// after a signal or an exception in `progress`, which is then raised. `None` if it panicked.
pub fn listen<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&(dyn Fn(f64) -> ControlFlow<()> + Sync)) -> T + Send,
) -> PyResult<Option<T>> {
    let stop = AtomicBool::new(false);
    let share = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let (send, receive) = channel();
        // Only this thread receives; the lock is there because `detach` may run its closure anywhere.
        let receive = Mutex::new(receive);
        let wait = || receive.lock().expect("only one thread listens").recv_timeout(LISTEN);
        let (stop, share) = (&stop, &share);
        threads.spawn(move || {
            let report = |part: f64| {
                share.store(part.to_bits(), Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            // The receiver is gone only if the caller has given up.
            let _ = send.send(work(&report));
        });
        loop {
            match py.detach(wait) {
                Ok(result) => return Ok(Some(result)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            let heard = py.check_signals().and_then(|()| match progress {
                Some(callback) => callback.call1(py, (f64::from_bits(share.load(Ordering::Relaxed)),)).map(drop),
                None => Ok(()),
            });
            if let Err(error) = heard {
                stop.store(true, Ordering::Relaxed);
                // Wait without the lock: a worker must not outlive this call.
                while let Err(RecvTimeoutError::Timeout) = py.detach(wait) {}
                return Err(error);
            }
        }
    })
}
