//! Runs a kernel over its packets, for a number of packets or a time.

use std::hint::black_box;

use serde::Serialize;

use super::kernel::{Kernel, kernel};
use super::packets::{Packets, ROUTES};
use super::request::WorkloadRequest;
use super::trace::beacon;
use crate::error::{ProbeError, Result};
use crate::host::Clock;
use crate::host::clock::thread_ns;
use crate::host::quantile::median;

/// Longest duration, seconds.
const LONGEST_S: f64 = 60.0;
/// Calibrations of the clock before the measurement, about 25 ms each.
const CLOCK_REPEATS: usize = 5;

/// The outcome of a run of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadOutcome {
    /// The kernel.
    pub kernel: &'static str,
    /// Entries of its table; 0 if it has none.
    pub entries: u64,
    /// Number of different packets.
    pub packets: usize,
    /// Frame sizes in bytes, FCS included, with how many packets have each; in order.
    pub sizes: Vec<(usize, usize)>,
    /// Bytes behind the headers, of all packets.
    pub payload_bytes: usize,
    /// Packets of the capture that are not IPv4.
    pub skipped: u64,
    /// Packets of the capture that it does not hold to their end.
    pub cut: u64,
    /// Whether the capture has more packets than were taken.
    pub more: bool,
    /// Median time of a packet over the rounds, nanoseconds; None without a duration.
    pub ns_per_packet: Option<f64>,
    /// Cycles of the core in that time.
    pub cycles_per_packet: Option<f64>,
}

/// Runs the kernel of a request; `progress` receives the finished share and returns whether to go on.
///
/// # Errors
///
/// An invalid kernel, number or capture, or an interruption.
pub fn run(request: &WorkloadRequest, progress: &mut dyn FnMut(f64) -> bool) -> Result<WorkloadOutcome> {
    if !(0.0..=LONGEST_S).contains(&request.duration_s) {
        let got = format!("got {}; 0 to {LONGEST_S} seconds are allowed", request.duration_s);
        return Err(ProbeError::request("duration_s", got));
    }
    let info = kernel(&request.kernel)?;
    let entries = info.entries_of(request.entries)?;
    let mut packets = Packets::new(request, if info.name == "rtr" { entries } else { ROUTES })?;
    let mut kernel = info.make(request.entries, request.seed)?;
    for number in 0..request.warm_up {
        black_box(kernel.process(&mut packets.packet(number)));
    }
    if request.traced {
        traced(kernel.as_mut(), &mut packets, request);
    } else {
        for number in 0..request.measured {
            let mut packet = packets.packet(request.warm_up + number);
            // In both cases the packet is in memory before it is processed.
            let packet = black_box(&mut packet);
            black_box(if request.idle { 0 } else { kernel.process(packet) });
        }
    }
    let timed = if request.duration_s > 0.0 {
        Some(timed(kernel.as_mut(), &mut packets, request.duration_s, progress)?)
    } else {
        None
    };
    let mut sizes = std::collections::BTreeMap::new();
    for number in 0..packets.len() {
        *sizes.entry(packets.frame_bytes(number)).or_insert(0) += 1;
    }
    Ok(WorkloadOutcome {
        kernel: info.name,
        entries,
        packets: packets.len(),
        sizes: sizes.into_iter().collect(),
        payload_bytes: (0..packets.len()).map(|number| packets.payload_bytes(number)).sum(),
        skipped: packets.skipped,
        cut: packets.cut,
        more: packets.more,
        ns_per_packet: timed.map(|(ns, _)| ns),
        cycles_per_packet: timed.map(|(_, cycles)| cycles),
    })
}

/// Marks for a tracer the memory of the packets, and the begin and end of each.
fn traced(kernel: &mut dyn Kernel, packets: &mut Packets, request: &WorkloadRequest) {
    for (first, bytes) in packets.memory() {
        beacon::memory(first, bytes);
    }
    // The cost of the marks themselves.
    beacon::packet_begins(0, 0);
    beacon::packet_ends();
    for number in request.warm_up..request.warm_up + request.measured {
        let (frame, payload) = (packets.frame_bytes(number), packets.payload_bytes(number));
        let mut packet = packets.packet(number);
        beacon::packet_begins(frame, payload);
        let done = kernel.process(&mut packet);
        beacon::packet_ends();
        black_box(done);
    }
}

/// Median nanoseconds of the processor and core cycles of a packet, over rounds of all packets.
fn timed(
    kernel: &mut dyn Kernel,
    packets: &mut Packets,
    duration_s: f64,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<(f64, f64)> {
    let clock = Clock::calibrate(CLOCK_REPEATS);
    let count = packets.len();
    let mut rounds = Vec::new();
    let begin = thread_ns();
    loop {
        let start = thread_ns();
        for number in 0..count {
            black_box(kernel.process(&mut packets.packet(number)));
        }
        let end = thread_ns();
        rounds.push((end - start) as f64 / count as f64);
        let share = (end - begin) as f64 * 1e-9 / duration_s;
        if share >= 1.0 && rounds.len() >= 3 {
            break;
        }
        if !progress(share.min(1.0)) {
            return Err(ProbeError::Interrupted);
        }
    }
    let ns = median(&rounds);
    Ok((ns, ns * 1e-9 * clock.core_hz()))
}
