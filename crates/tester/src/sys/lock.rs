//! One trial at a time on a core: two generators of the same priority on one would take turns by accident.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often to retry a core that is taken.
const LOOK: Duration = Duration::from_millis(20);

/// The right to send on a core, until it is dropped or its process ends.
#[derive(Debug)]
pub struct Alone {
    _file: Option<File>,
    /// How long it took to acquire.
    pub waited: Duration,
}

/// Waits until no other process of this machine sends on the core, at most `patience`; then, or if the kernel has no
/// place for locks, goes on without the right. `give_up` is asked from time to time.
pub fn alone(cpu: usize, patience: Duration, give_up: &dyn Fn() -> bool) -> Alone {
    let folder = ["/run/lock", "/run", "/tmp"].into_iter().find(|folder| Path::new(folder).is_dir()).unwrap_or(".");
    let path = format!("{folder}/routecast-send-cpu{cpu}.lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).ok();
    let began = Instant::now();
    if let Some(file) = &file {
        // SAFETY: no pointers; the descriptor is open.
        while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            if began.elapsed() >= patience || give_up() {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
    Alone { _file: file, waited: began.elapsed() }
}
