//! Work inside another network namespace.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::error::{Result, TesterError};

/// Runs `work` on a thread of its own that has joined the namespace at `path`; without a path, on the calling thread.
///
/// The calling thread stays where it is. Sockets, links and resolved interfaces keep belonging to the namespace that
/// they were made in.
///
/// # Errors
///
/// The namespace does not exist or cannot be joined, or `work` failed.
///
/// # Panics
///
/// Panics where `work` does.
pub fn inside<T: Send>(path: Option<&str>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let Some(path) = path else { return work() };
    let system = |error| TesterError::System { what: format!("joining the network namespace {path}"), error };
    let file = File::open(path).map_err(system)?;
    let joined = std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            // SAFETY: no pointers are passed; only the calling thread, which is ours, changes its namespace.
            if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } == 0 {
                work()
            } else {
                Err(system(std::io::Error::last_os_error()))
            }
        });
        thread.join()
    });
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
