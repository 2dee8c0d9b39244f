//! Instructions and core cycles by the processor's own counters, where the kernel allows it.
#![allow(unsafe_code, reason = "perf_event_open(2)")]

use std::io::Read;
use std::os::fd::FromRawFd;

use serde::Serialize;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
/// `exclude_kernel` and `exclude_hv`: an unprivileged user may count the rest.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;

/// `struct perf_event_attr` as far as its first version goes (`PERF_ATTR_SIZE_VER0`, 64 bytes).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// The counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Cycles of the core, in user mode.
    pub cycles: u64,
    /// Instructions, in user mode.
    pub instructions: u64,
}

/// Counters of the calling thread.
#[derive(Debug)]
pub struct Counters {
    cycles: std::fs::File,
    instructions: std::fs::File,
}

impl Counters {
    /// Opens the counters of the calling thread.
    ///
    /// # Errors
    ///
    /// The reason, in words: most virtual machines have no counters, and a kernel may refuse access.
    pub fn open() -> Result<Self, String> {
        Ok(Self { cycles: open(PERF_COUNT_HW_CPU_CYCLES)?, instructions: open(PERF_COUNT_HW_INSTRUCTIONS)? })
    }

    /// Counts the calling thread during `work`; `None` if the counters do not run or cannot be read.
    pub fn count(&mut self, work: impl FnOnce()) -> Option<Counts> {
        let before = self.read()?;
        work();
        let after = self.read()?;
        let counts = Counts {
            cycles: after.cycles.checked_sub(before.cycles)?,
            instructions: after.instructions.checked_sub(before.instructions)?,
        };
        (counts.cycles > 0 && counts.instructions > 0).then_some(counts)
    }

    fn read(&mut self) -> Option<Counts> {
        let value = |file: &mut std::fs::File| {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes).ok().map(|()| u64::from_ne_bytes(bytes))
        };
        Some(Counts { cycles: value(&mut self.cycles)?, instructions: value(&mut self.instructions)? })
    }
}

fn open(config: u64) -> Result<std::fs::File, String> {
    let attributes = Attributes {
        kind: PERF_TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config,
        flags: USER_ONLY,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group, close_on_exec): (i32, i32, i32, libc::c_ulong) = (0, -1, -1, 8);
    // SAFETY: the attributes outlive the call and say their own size.
    let file = unsafe {
        let attributes = &raw const attributes;
        libc::syscall(libc::SYS_perf_event_open, attributes, this_thread, any_cpu, no_group, close_on_exec)
    };
    match i32::try_from(file) {
        // SAFETY: a descriptor that the kernel has just given out belongs to nobody else.
        Ok(file) if file >= 0 => Ok(unsafe { std::fs::File::from_raw_fd(file) }),
        _ => Err(why(&std::io::Error::last_os_error())),
    }
}

fn why(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            format!(
                "the kernel allows no counters to this user (kernel.perf_event_paranoid = {}); run as root, or set it to 2",
                level.trim()
            )
        }
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "the processor shows no counters, as in most virtual machines".to_owned()
        }
        Some(libc::ENOSYS) => "the kernel has no perf_event_open".to_owned(),
        _ => format!("perf_event_open: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_the_chain_or_say_why_they_cannot() {
        match Counters::open() {
            Ok(mut counters) => {
                if let Some(counts) = counters.count(|| _ = super::super::clock::chain(100_000)) {
                    // Two instructions of one cycle per step, one after the other (and the loop beside them).
                    assert!(counts.instructions >= 200_000, "{counts:?}");
                    assert!(counts.cycles >= 190_000, "{counts:?}");
                }
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }

    #[test]
    fn attributes_have_the_size_of_their_first_version() {
        assert_eq!(size_of::<Attributes>(), 64);
    }
}
