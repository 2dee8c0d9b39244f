//! Runs network functions on frames in memory: frames per second, cycles per packet, loss and latency.
//!
//! ```text
//!   per core:   ring of frames ──batches of 32──► function ──► forwarded, dropped by reason
//!                 ▲                                 │
//!                 └── refill (untimed) ◄── pass ────┘     one pass = the whole ring once, timed as a whole
//! ```
//!
//! Flat out, the result is the distribution of the passes' times; at an offered rate, frames arrive in real time at a
//! queue that can overflow, and each has a latency; for an exact number of packets, only what is needed is executed,
//! so that a tool that counts instructions can divide.

mod by_hand;
mod core;
mod kept;
mod latency;
mod outcome;
mod paced;
mod passes;
mod request;
mod summary;

pub use outcome::{CoreOutcome, HandLoop, Latency, PassTimes, RunOutcome};
pub use passes::{Tally, pass};
pub use request::{Popularity, RunRequest};

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::error::{ProbeError, Result};

/// Interval between two calls of `progress`.
const LISTEN: Duration = Duration::from_millis(50);

/// What the cores of a run share.
#[derive(Debug, Default)]
struct Shared {
    /// Set when somebody asked to stop or a core failed.
    stop: AtomicBool,
    /// Cores that are ready to start.
    ready: AtomicUsize,
    /// Thousandths done, of the core that has done the least in all.
    done: Vec<AtomicU32>,
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn set_done(&self, core: usize, share: f64) {
        self.done[core].store((share.clamp(0.0, 1.0) * 1000.0) as u32, Ordering::Relaxed);
    }

    fn done(&self) -> f64 {
        f64::from(self.done.iter().map(|done| done.load(Ordering::Relaxed)).min().unwrap_or(0)) / 1000.0
    }
}

/// Runs a function as asked; `progress` hears the share done, 0 to 1, about every 50 ms, and says whether to go on.
///
/// ```
/// use routecast_probe::run::{RunRequest, run};
///
/// let request = serde_json::json!({"function": "l2_switch", "tables": {"mac": 1000}, "packets": 10_000});
/// let request: RunRequest = serde_json::from_value(request)?;
/// let outcome = run(&request, &mut |_| true)?;
/// assert_eq!(outcome.forwarded, 10_000);
/// # Ok::<(), routecast_probe::error::ProbeError>(())
/// ```
///
/// # Errors
///
/// A request that is out of range, a table that does not fit, a processor that is not ours, an interruption.
pub fn run(request: &RunRequest, progress: &mut dyn FnMut(f64) -> bool) -> Result<RunOutcome> {
    let plan = request.check()?;
    let shared = Shared { done: request.cores.iter().map(|_| AtomicU32::new(0)).collect(), ..Shared::default() };
    let results = std::thread::scope(|scope| {
        let (sender, finished) = channel();
        for core in 0..request.cores.len() {
            let (sender, plan, shared) = (sender.clone(), &plan, &shared);
            scope.spawn(move || {
                let result = core::work(request, plan, core, shared);
                if result.is_err() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
                // The receiver outlives this thread.
                let _ = sender.send((core, result));
            });
        }
        drop(sender);
        let mut results = Vec::new();
        let mut interrupted = false;
        loop {
            match finished.recv_timeout(LISTEN) {
                Ok(result) => results.push(result),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if !interrupted && !progress(shared.done()) {
                        interrupted = true;
                        shared.stop.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
        results
    });
    let mut cores = Vec::new();
    let mut interrupted = results.len() < request.cores.len();
    for (core, result) in results {
        match result {
            Ok(work) => cores.push((core, work)),
            // The core that failed stopped the others; its error has the reason.
            Err(ProbeError::Interrupted) => interrupted = true,
            Err(error) => return Err(error),
        }
    }
    if interrupted {
        return Err(ProbeError::Interrupted);
    }
    cores.sort_by_key(|&(core, _)| core);
    progress(1.0);
    Ok(summary::summarise(request, &plan, cores.into_iter().map(|(_, work)| work).collect()))
}
