//! Traces a kernel instruction by instruction: the class of each, its memory accesses, and the misses of caches of any
//! size.
//!
//! ```text
//!   child: packets ─► kernel        marks packets by calls that the Linux kernel does not know
//!            │ ptrace(2), one instruction at a time, only between the marks
//!   parent: decode ─► tally: mix, accesses by place, coverage, reuse distances
//! ```
//!
//! An instruction takes about 4 µs, so a trace is bounded. It needs no other program, and it sees addresses, which the
//! counters of a processor do not.

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

/// Largest allowed bound on the instructions of a trace.
const MOST_INSTRUCTIONS: u64 = 100_000_000;

/// The request for a trace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Program and arguments; it runs a workload with `traced`.
    pub command: Vec<String>,
    /// Number of packets that it marks, for the progress.
    pub packets: usize,
    /// Warm-up packets, which only fill the caches.
    pub warm_up: usize,
    /// The trace ends with the packet after which so many instructions have been traced.
    pub most_instructions: u64,
}

/// The outcome of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceOutcome {
    /// The counts of each packet, without the warm-up.
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

/// Traces a program that runs a workload; `progress` receives the finished share and returns whether to go on.
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
