//! The processor that a thread runs on.
#![allow(unsafe_code, reason = "sched_setaffinity(2)")]

use crate::error::{ProbeError, Result};

/// Holds the calling thread on one processor until it is dropped.
#[derive(Debug)]
pub struct Pinned {
    cpu: usize,
    before: libc::cpu_set_t,
}

impl Pinned {
    /// Pins the calling thread to a processor; `None`: the one that it runs on now.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Cpu`] where this process may not run on it.
    pub fn to(cpu: Option<usize>) -> Result<Self> {
        let before = affinity()?;
        let allowed = members(&before);
        let cpu = cpu.unwrap_or_else(|| current().filter(|now| allowed.contains(now)).unwrap_or(allowed[0]));
        if !allowed.contains(&cpu) {
            return Err(ProbeError::Cpu { cpu, allowed });
        }
        // SAFETY: the set is plain memory, and `cpu`, a member of another set, lies within it.
        let pinned = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
        };
        if pinned { Ok(Self { cpu, before }) } else { Err(ProbeError::Cpu { cpu, allowed }) }
    }

    /// The processor.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the set outlives the call.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.before) };
    }
}

/// Processors that the calling thread may run on.
///
/// # Errors
///
/// [`ProbeError::System`] if the kernel does not say.
pub fn allowed() -> Result<Vec<usize>> {
    affinity().map(|set| members(&set))
}

fn affinity() -> Result<libc::cpu_set_t> {
    // SAFETY: the set is plain memory, written by the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0 {
            Ok(set)
        } else {
            Err(ProbeError::last_os("asking for the processors of this thread"))
        }
    }
}

fn members(set: &libc::cpu_set_t) -> Vec<usize> {
    let bits = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: only members within the set's size are asked for.
    (0..bits).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, set) }).collect()
}

fn current() -> Option<usize> {
    // SAFETY: no pointers.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_free_again_afterwards() {
        let before = allowed().unwrap();
        let pinned = Pinned::to(Some(before[0])).unwrap();
        assert_eq!(pinned.cpu(), before[0]);
        assert_eq!(allowed().unwrap(), [before[0]]);
        assert_eq!(current(), Some(before[0]));
        drop(pinned);
        assert_eq!(allowed().unwrap(), before);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused_with_those_that_are() {
        let error = Pinned::to(Some(100_000)).unwrap_err();
        assert_eq!(error.kind(), "cpu");
        assert!(error.to_string().contains(&format!("run on {}", allowed().unwrap()[0])), "{error}");
    }
}
