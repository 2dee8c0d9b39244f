//! Sends frames when they are due: sleeps until shortly before, then watches the clock.
//!
//! Frames that are due at the same time, or became due while the last ones were handed over, go together, so that a
//! fast stream needs fewer system calls while a slow one leaves frame by frame.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::socket::sleep_until;
use crate::error::{Result, TesterError};
use crate::frame::{FCS_BYTES, Signature, WARM_UP};
use crate::plan::{Due, Merge, Plan, TICKS_PER_NS};
use crate::port::{Control, SendReport, Sending, Sent};
use crate::sys::clock::monotonic_ns;
use crate::sys::interface::Interface;

/// How long before a frame is due the sleep ends: more than a real-time thread on a virtual machine takes to wake.
const WATCH_NS: u64 = 200_000;
/// Longest sleep, so that a request to stop takes effect.
const NAP_NS: u64 = 50_000_000;
/// How long after the end of the plan late frames may still leave.
const GRACE_NS: u64 = 10_000_000;
/// Lateness that does not count: reading the clock and writing a frame takes less.
const LATE_NS: u64 = 10_000;

/// The interface to the kernel of a back end.
pub(super) trait Outlet {
    /// Most frames that are handed over together.
    const BATCH: usize;

    /// Makes room for frames of at most so many octets (without FCS).
    fn prepare(&mut self, octets: usize) -> Result<()>;

    /// How many frames there is room for now, at most [`Outlet::BATCH`].
    fn room(&mut self) -> usize;

    /// The room of the `nth` frame to be handed over next, which will have so many octets.
    fn frame(&mut self, nth: usize, octets: usize) -> &mut [u8];

    /// Hands over the first `count` frames, of which the kernel takes some; the others come again.
    fn hand_over(&mut self, count: usize) -> Result<usize>;

    /// Waits until everything has left.
    fn finish(&mut self) -> Result<()>;
}

/// Refuses frames that are too long for the interface.
pub(super) fn check_sizes(streams: &[Sending<'_>], interface: &Interface, most_octets: usize) -> Result<usize> {
    // The MTU counts neither the Ethernet header nor the FCS.
    let most = most_octets.min(interface.mtu as usize + 14);
    let longest = streams.iter().flat_map(|sending| sending.plan.slots()).map(|slot| slot.bytes).max().unwrap_or(64);
    if longest as usize > most + FCS_BYTES {
        let allowed =
            format!("at most {} bytes with FCS on {} (MTU {})", most + FCS_BYTES, interface.name, interface.mtu);
        return Err(TesterError::value("sizes", longest, allowed));
    }
    Ok(longest as usize - FCS_BYTES)
}

/// Sends the plans of one port.
pub(super) fn send<O: Outlet>(
    outlet: &mut O,
    octets: usize,
    streams: &[Sending<'_>],
    trial: u8,
    start_ns: u64,
    control: &Control,
) -> Result<SendReport> {
    outlet.prepare(octets)?;
    let plans: Vec<&Plan> = streams.iter().map(|sending| sending.plan).collect();
    let mut merge = Merge::new(&plans);
    let mut next = merge.next();
    let start_ns = start_ns.max(monotonic_ns());
    let end = plans.iter().map(|plan| plan.end()).max().unwrap_or(0);
    let link = plans.iter().map(|plan| plan.link_ticks()).sum::<u64>();
    let stop_ns = start_ns + end.max(link) / TICKS_PER_NS + GRACE_NS;
    let mut report = SendReport { start_ns, streams: vec![Sent::default(); streams.len()], ..SendReport::default() };
    let mut batch: Vec<Due> = Vec::with_capacity(O::BATCH);
    let mut refused_since_ns = None;
    loop {
        let now_ns = monotonic_ns();
        if control.stop.load(Ordering::Relaxed) || now_ns >= stop_ns {
            break;
        }
        let room = outlet.room();
        if room == 0 && batch.is_empty() {
            if next.is_none() {
                break;
            }
            // The kernel still has all frames, or some that it has not looked at.
            outlet.hand_over(0)?;
            continue;
        }
        while let Some(due) = next.filter(|due| batch.len() < room && at_ns(start_ns, due) <= now_ns) {
            batch.push(due);
            next = merge.next();
        }
        if batch.is_empty() {
            let Some(due) = next else { break };
            wait(at_ns(start_ns, &due), now_ns);
            continue;
        }
        for (nth, due) in batch.iter().enumerate() {
            write(outlet, nth, &streams[due.plan], due, trial, now_ns);
        }
        let taken = outlet.hand_over(batch.len())?;
        for due in batch.drain(..taken) {
            record(&mut report.streams[due.plan], &streams[due.plan], &due, at_ns(start_ns, &due), now_ns);
        }
        if taken > 0 {
            // Ports may send at the same time, each from its thread.
            control.sent.fetch_add(taken as u64, Ordering::Relaxed);
            report.batch = report.batch.max(taken as u32);
            refused_since_ns = None;
        } else {
            report.refused += 1;
            // A ring that is full for a while is late; one that stays full is a dead interface: leave the core to others.
            if now_ns - *refused_since_ns.get_or_insert(now_ns) > 1_000_000 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
    outlet.finish()?;
    Ok(report)
}

fn at_ns(start_ns: u64, due: &Due) -> u64 {
    start_ns + due.leave / TICKS_PER_NS
}

fn wait(due_ns: u64, now_ns: u64) {
    if due_ns - now_ns > WATCH_NS {
        sleep_until((due_ns - WATCH_NS).min(now_ns + NAP_NS));
        return;
    }
    while monotonic_ns() < due_ns {
        std::hint::spin_loop();
    }
}

#[inline]
fn write<O: Outlet>(outlet: &mut O, nth: usize, sending: &Sending<'_>, due: &Due, trial: u8, now_ns: u64) {
    let warmup = sending.warmup_frames;
    let (sequence, trial) = match due.frame.checked_sub(warmup) {
        Some(sequence) => (sequence, trial),
        None => (due.frame, trial | WARM_UP),
    };
    let slot = due.slot;
    let signature =
        Signature { sequence: sequence as u32, sent_ns: now_ns, flow: slot.flow, trial, stream: sending.stream };
    let frame = outlet.frame(nth, slot.bytes as usize - FCS_BYTES);
    sending.templates.flows[slot.flow as usize].write(frame, slot.pattern_sum, signature);
}

#[inline]
fn record(sent: &mut Sent, sending: &Sending<'_>, due: &Due, due_ns: u64, now_ns: u64) {
    let late_ns = now_ns - due_ns;
    sent.latest_ns = sent.latest_ns.max(late_ns);
    sent.late_frames += u64::from(late_ns > LATE_NS);
    if due.frame >= sending.warmup_frames {
        if sent.frames == 0 {
            sent.first_ns = now_ns;
        }
        sent.last_ns = now_ns;
        sent.frames += 1;
    }
}
