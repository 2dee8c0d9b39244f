//! The outcome of a trial, which is returned as JSON.

use serde::Serialize;
use serde_json::Value;

use crate::histogram::Distribution;

/// The outcome of one trial.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// One entry per stream of the request.
    pub streams: Vec<StreamOutcome>,
    /// Foreign frames that arrived at the tester's ports.
    pub foreign_frames: u64,
    /// How long after the end of the sending the counters last changed, seconds.
    pub settled_s: f64,
    /// The back ends and their batches.
    pub back_end: Value,
    /// Processor use of the sending thread.
    pub cpu: Cpu,
    /// When the first counted frame was due.
    pub clock: Clock,
    /// The trial was stopped before its end.
    pub stopped: bool,
    /// Frames over time, if the request asks for them and the parts could be counted.
    pub over_time: Option<OverTime>,
}

/// Frames of all streams by equal parts of the trial.
#[derive(Debug, Clone, Serialize)]
pub struct OverTime {
    /// Length of a part, seconds.
    pub part_s: f64,
    /// Sent frames, by when they were due.
    pub sent_frames: Vec<u64>,
    /// Frames received for the first time, by when they arrived.
    pub received_frames: Vec<u64>,
    /// Lost frames, by when they were due.
    pub lost_frames: Vec<u64>,
    /// Frames that arrived after the last part.
    pub received_after_frames: u64,
}

/// Frames of one stream.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StreamOutcome {
    /// Frames of the schedule.
    pub intended_frames: u64,
    /// Frames handed to the wire.
    pub sent_frames: u64,
    /// Frames that the tester did not manage to send in time.
    pub unsent_frames: u64,
    /// Frames sent and received at least once, at the right port.
    pub received_frames: u64,
    /// Frames sent and never received.
    pub lost_frames: u64,
    /// Further copies of received frames.
    pub duplicated_frames: u64,
    /// Frames that arrived after a later one of their flow (RFC 4737 sec. 3).
    pub reordered_frames: u64,
    /// Frames with the tester's signature whose checksum or length was wrong; they count as lost.
    pub corrupted_frames: u64,
    /// `[first sequence number, count]` of each run of lost frames, in order.
    pub lost_runs: Vec<(u64, u64)>,
    /// There were more runs than asked for.
    pub lost_runs_truncated: bool,
    /// When the first lost frame was due, from the start, seconds.
    pub first_loss_s: Option<f64>,
    /// When the last lost frame was due, from the start, seconds.
    pub last_loss_s: Option<f64>,
    /// Longest time between two received frames, seconds.
    pub longest_gap_s: f64,
    /// When that gap began, from the start, seconds.
    pub longest_gap_at_s: f64,
    /// When the first counted frame left, from the start, seconds.
    pub first_sent_s: f64,
    /// When the last frame left, from the start, seconds.
    pub last_sent_s: f64,
    /// Frames per second that the schedule asks for.
    pub intended_pps: f64,
    /// Achieved rate, frames per second: the plan's rate, scaled by planned over actual time from first to last frame.
    pub achieved_pps: f64,
    /// Frames that left later than due by more than the time of a batch.
    pub late_frames: u64,
    /// Largest lateness of a frame, seconds.
    pub latest_s: f64,
    /// Bytes of the received frames, with FCS.
    pub received_bytes: u64,
    /// One-way delay from the send time stamp to the receiver.
    pub latency: Option<Distribution>,
    /// Difference between the delays of consecutive frames (RFC 3393, RFC 5481 sec. 4.1), absolute.
    pub ipdv: Option<Distribution>,
    /// Frames of each flow.
    pub flows: Vec<FlowOutcome>,
}

/// Frames of one flow.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct FlowOutcome {
    /// Frames handed to the wire.
    pub sent: u64,
    /// Frames received at least once.
    pub received: u64,
}

/// Processor use of the sending thread.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Cpu {
    /// Share of the trial for which the thread ran or waited actively, 0..1.
    pub send_busy_ratio: f64,
    /// Times that the scheduler took the core away from it.
    pub send_preemptions: u64,
}

/// The time of the trial.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Clock {
    /// `CLOCK_MONOTONIC` when the first counted frame was due, seconds.
    pub monotonic_s: f64,
    /// The same instant, `CLOCK_REALTIME`, seconds.
    pub realtime_s: f64,
}
