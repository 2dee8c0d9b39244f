//! A kernel instruction by instruction: what each is, which memory it touches, what caches of any size would miss.
//!
//! ```text
//!   child: packets ─► kernel        marks packets by calls that the Linux kernel does not know
//!            │ ptrace(2), one instruction a time, between the marks alone
//!   parent: decode ─► tally: mix, accesses by place, coverage, reuse distances
//! ```
//!
//! Some 4 µs an instruction, so a trace is bounded; it needs no other program and sees addresses, which counters of a
//! processor do not tell.

pub(super) mod beacon;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod decode;
mod reuse;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod stepper;
mod tally;

use serde::{Deserialize, Serialize};

use crate::error::{ProbeError, Result};

pub use reuse::{MissPoint, ReuseOutcome};
pub use tally::{CodeOutcome, PacketTrace};

/// Most instructions that a trace may be asked for.
const MOST_INSTRUCTIONS: u64 = 100_000_000;

/// What is traced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Program and arguments; it runs a workload with `traced`.
    pub command: Vec<String>,
    /// How many packets it marks, for the progress.
    pub packets: usize,
    /// Packets that only fill the caches: they count for nothing else.
    pub warm_up: usize,
    /// The trace ends with the packet after which so many instructions have been traced.
    pub most_instructions: u64,
}

/// What a trace tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceOutcome {
    /// What each packet took, those that warm the caches up left out.
    pub packets: Vec<PacketTrace>,
    /// Whether all packets were traced, not only those within the bound.
    pub complete: bool,
    /// The code that was executed.
    pub code: CodeOutcome,
    /// Different lines of 64 bytes of packets that were touched.
    pub packet_lines: usize,
    /// Different lines of 64 bytes elsewhere: tables, state, stack.
    pub other_lines: usize,
    /// Data lines: reuse and misses.
    pub data: ReuseOutcome,
    /// Data lines outside packets: reuse and misses as if packets lay in a memory of their own.
    pub other_data: ReuseOutcome,
    /// Lines of instructions: reuse and misses.
    pub instructions: ReuseOutcome,
}

/// Traces a program that runs a workload; `progress` hears the share done and says whether to go on.
///
/// # Errors
///
/// [`ProbeError::Request`] for a bound out of range, [`ProbeError::System`] where programs cannot be traced or the
/// program fails, [`ProbeError::Interrupted`].
pub fn trace(request: &TraceRequest, progress: &mut dyn FnMut(f64) -> bool) -> Result<TraceOutcome> {
    if !(1..=MOST_INSTRUCTIONS).contains(&request.most_instructions) {
        let got = format!("got {}; 1 to {MOST_INSTRUCTIONS} are allowed", request.most_instructions);
        return Err(ProbeError::request("most_instructions", got));
    }
    if request.command.is_empty() {
        return Err(ProbeError::request("command", "got no program to trace"));
    }
    traced(request, progress)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use stepper::traced;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn traced(_: &TraceRequest, _: &mut dyn FnMut(f64) -> bool) -> Result<TraceOutcome> {
    let error = std::io::Error::from(std::io::ErrorKind::Unsupported);
    Err(ProbeError::System { what: "tracing a workload on other than x86-64 Linux".to_owned(), error })
}
