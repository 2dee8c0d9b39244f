//! The interfaces of a back end: sending streams on time, and receiving and counting them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde_json::Value;

use crate::error::Result;
use crate::frame::Templates;
use crate::histogram::Sparse;
use crate::parts::Grid;
use crate::plan::Plan;

/// A stream to send.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// Index of the stream in the trial, the `stream` of its signature.
    pub stream: u8,
    /// Index of the sending port.
    pub port: usize,
    /// When each frame is due and of which size and flow it is; the warm-up is a part of it.
    pub plan: &'a Plan,
    /// The frames.
    pub templates: &'a Templates,
    /// Frames of the warm-up, at the start of the plan; they carry `trial | 0x80` and are not counted.
    pub warmup_frames: u64,
}

/// Shared state of a sender and the threads beside it.
#[derive(Default)]
pub struct Control {
    /// Set to end the sending within 100 ms.
    pub stop: AtomicBool,
    /// Frames sent so far, of all streams and with the warm-up.
    pub sent: AtomicU64,
    watcher: Mutex<Option<Watcher>>,
}

type Watcher = Box<dyn Fn(&Control) + Send>;

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Control").field("stop", &self.stop).field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl Control {
    /// Registers a watcher, which the waiting thread runs every few milliseconds: a sender that is inside one long
    /// system call cannot look at `stop` itself.
    ///
    /// # Panics
    ///
    /// Panics where an earlier watcher has.
    pub fn watch(&self, watcher: impl Fn(&Control) + Send + 'static) {
        *self.watcher.lock().expect("no watcher panics") = Some(Box::new(watcher));
    }

    /// Removes the watcher; it does not run any more when this returns.
    ///
    /// # Panics
    ///
    /// Panics where the watcher has.
    pub fn unwatch(&self) {
        *self.watcher.lock().expect("no watcher panics") = None;
    }

    /// Runs the watcher. Called by the waiting thread.
    ///
    /// # Panics
    ///
    /// Panics where the watcher does.
    pub fn look(&self) {
        if let Some(watcher) = &*self.watcher.lock().expect("no watcher panics") {
            watcher(self);
        }
    }
}

/// Report of a sender on one stream.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    /// Counted frames handed to the wire; always the first ones of the plan.
    pub frames: u64,
    /// `CLOCK_MONOTONIC` of the first one, ns.
    pub first_ns: u64,
    /// `CLOCK_MONOTONIC` of the last one, ns.
    pub last_ns: u64,
    /// Frames later than due by more than `max(10 us, one gap times the batch)`.
    pub late_frames: u64,
    /// Largest lateness, ns.
    pub latest_ns: u64,
}

/// Report of a sender.
#[derive(Debug, Clone, Default)]
pub struct SendReport {
    /// `CLOCK_MONOTONIC` at which the plans began, ns (with the warm-up: at its first frame).
    pub start_ns: u64,
    /// One per stream, in the order given.
    pub streams: Vec<Sent>,
    /// Largest number of frames that left back to back because of batching.
    pub batch: u32,
    /// Frames that the interface refused.
    pub refused: u64,
}

/// Sends streams. Called on a thread of its own that has its priority and core already.
pub trait Sender: Send {
    /// Its kind, driver and modes.
    fn facts(&self) -> Value;

    /// Fewest and most frames per second that it sends well.
    fn range_pps(&self) -> (f64, f64);

    /// Sends everything; plans begin at `start_ns` (`CLOCK_MONOTONIC`), or when the back end is ready if that is later.
    ///
    /// # Errors
    ///
    /// The kernel refused.
    fn send(&mut self, streams: &[Sending<'_>], trial: u8, start_ns: u64, control: &Control) -> Result<SendReport>;
}

/// A stream as a receiver sees it.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// The `stream` of its signature.
    pub stream: u8,
    /// Largest number of counted frames.
    pub frames: u64,
    /// Number of flows.
    pub flows: u32,
}

/// Counts of a receiver for one stream.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// The `stream` of its signature.
    pub stream: u8,
    /// Frames received for the first time.
    pub frames: u64,
    /// Their bytes with FCS.
    pub bytes: u64,
    /// Further copies.
    pub duplicated: u64,
    /// Frames with a sequence number below the highest of their flow.
    pub reordered: u64,
    /// Frames with a signature whose checksum or length was wrong.
    pub corrupted: u64,
    /// Bit `n % 64` of word `n / 64` is set if frame `n` was received.
    pub bitmap: Vec<u64>,
    /// Frames of each flow, received for the first time.
    pub flows: Vec<u64>,
    /// Delays, ns.
    pub latency: Tally,
    /// Absolute differences of the delays of frames `n` and `n + 1` that arrived one after the other, ns.
    pub ipdv: Tally,
    /// When the first one arrived, ns.
    pub first_ns: u64,
    /// When the last one arrived, ns.
    pub last_ns: u64,
    /// Longest time between two of them, ns.
    pub longest_gap_ns: u64,
    /// When that began, ns.
    pub longest_gap_at_ns: u64,
    /// Frames by part of the trial, [`crate::parts::ROOM`] of them; empty if the parts were not set.
    pub parts: Vec<u64>,
}

/// Exact moments and a histogram of spans.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Their number.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u64,
    /// The smallest, ns.
    pub min_ns: u64,
    /// The largest, ns.
    pub max_ns: u64,
    /// Buckets of [`crate::histogram`].
    pub histogram: Sparse,
}

/// Counts of a receiver.
#[derive(Debug, Clone, Default)]
pub struct ReceiveReport {
    /// One per expected stream that arrived here, in the order given.
    pub streams: Vec<Received>,
    /// Frames without the tester's signature.
    pub foreign: u64,
    /// Frames of another trial or of a warm-up.
    pub stale: u64,
    /// Frames of the tester that were expected at another port.
    pub misrouted: u64,
    /// Frames that the receiver itself had no room for: the tester's own loss, which makes a trial invalid.
    pub overrun: u64,
}

/// Receives and counts.
pub trait Receiver: Send {
    /// What it is, with the driver, the mode and the clock of its time stamps.
    fn facts(&self) -> Value;

    /// Forgets what was counted and expects these streams of this trial.
    ///
    /// # Errors
    ///
    /// The kernel refused, or the trial is too long for the memory.
    fn reset(&mut self, trial: u8, expected: &[Expected]) -> Result<()>;

    /// Says, after the reset and before the first frame, into which parts the trial is cut.
    ///
    /// # Errors
    ///
    /// The kernel refused.
    fn begins(&mut self, grid: Grid) -> Result<()>;

    /// Frames seen so far, of any kind; the trial has settled when it stands still.
    ///
    /// # Errors
    ///
    /// The kernel refused.
    fn seen(&self) -> Result<u64>;

    /// What was counted since the reset.
    ///
    /// # Errors
    ///
    /// The kernel refused.
    fn collect(&mut self) -> Result<ReceiveReport>;
}
