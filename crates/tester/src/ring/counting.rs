//! Counts received frames, as `bpf/receive.bpf.c` does for the receiver in XDP.

use crate::frame::{FCS_BYTES, Signature, Verdict, verify};
use crate::histogram::{self, SLOTS};
use crate::parts::{Arrivals, Grid};
use crate::port::{Expected, ReceiveReport, Received, Tally};

/// The frames received since the last reset.
#[derive(Debug)]
pub(super) struct Counting {
    trial: u8,
    streams: Vec<Stream>,
    /// Index in `streams` plus one, by the stream number of a signature; 0: not expected here.
    places: [u8; 256],
    foreign: u64,
    stale: u64,
    misrouted: u64,
}

impl Counting {
    /// Expects these streams of this trial.
    pub fn new(trial: u8, expected: &[Expected]) -> Self {
        let mut places = [0; 256];
        for (number, stream) in (1..).zip(expected) {
            places[usize::from(stream.stream)] = number;
        }
        let streams = expected.iter().map(Stream::new).collect();
        Self { trial, streams, places, foreign: 0, stale: 0, misrouted: 0 }
    }

    /// Sets the parts of the trial by which frames are counted.
    pub fn begins(&mut self, grid: Grid) {
        for stream in &mut self.streams {
            stream.arrivals = Arrivals::new(grid);
        }
    }

    /// Counts a frame, without FCS, that was received at `at_ns` (`CLOCK_MONOTONIC`).
    pub fn frame(&mut self, frame: &[u8], at_ns: u64) {
        let verdict = verify(frame);
        let (Verdict::Corrupted(signature) | Verdict::Intact(signature)) = verdict else {
            self.foreign += 1;
            return;
        };
        if signature.trial != self.trial {
            self.stale += 1;
            return;
        }
        let number = usize::from(self.places[usize::from(signature.stream)]);
        let Some(stream) = number.checked_sub(1).and_then(|number| self.streams.get_mut(number)) else {
            self.misrouted += 1;
            return;
        };
        if matches!(verdict, Verdict::Intact(_)) && stream.expects(&signature) {
            stream.count(&signature, frame.len() + FCS_BYTES, at_ns);
        } else {
            stream.received.corrupted += 1;
        }
    }

    /// The counts, without the frames for which the ring had no room.
    pub fn report(&self) -> ReceiveReport {
        ReceiveReport {
            streams: self.streams.iter().map(Stream::report).collect(),
            foreign: self.foreign,
            stale: self.stale,
            misrouted: self.misrouted,
            overrun: 0,
        }
    }
}

#[derive(Debug)]
struct Stream {
    frames: u64,
    received: Received,
    /// One more than the highest sequence number, by flow.
    next: Vec<u32>,
    /// Sequence number and delay of the last frame.
    last: Option<(u32, u64)>,
    arrivals: Arrivals,
    latency: Spans,
    ipdv: Spans,
}

impl Stream {
    fn new(expected: &Expected) -> Self {
        let received = Received {
            stream: expected.stream,
            bitmap: vec![0; (expected.frames as usize).div_ceil(64)],
            flows: vec![0; expected.flows as usize],
            ..Received::default()
        };
        let next = vec![0; expected.flows as usize];
        Self {
            frames: expected.frames,
            received,
            next,
            last: None,
            arrivals: Arrivals::default(),
            latency: Spans::new(),
            ipdv: Spans::new(),
        }
    }

    fn expects(&self, signature: &Signature) -> bool {
        u64::from(signature.sequence) < self.frames && usize::from(signature.flow) < self.next.len()
    }

    fn count(&mut self, signature: &Signature, frame_bytes: usize, at_ns: u64) {
        let received = &mut self.received;
        let sequence = signature.sequence;
        let (word, bit) = (&mut received.bitmap[sequence as usize / 64], 1 << (sequence % 64));
        if *word & bit != 0 {
            received.duplicated += 1;
            return;
        }
        *word |= bit;
        let flow = usize::from(signature.flow);
        received.flows[flow] += 1;
        if sequence < self.next[flow] {
            received.reordered += 1;
        } else {
            self.next[flow] = sequence + 1;
        }
        if received.frames == 0 {
            received.first_ns = at_ns;
        } else if at_ns.saturating_sub(received.last_ns) > received.longest_gap_ns {
            (received.longest_gap_ns, received.longest_gap_at_ns) = (at_ns - received.last_ns, received.last_ns);
        }
        received.last_ns = at_ns;
        received.frames += 1;
        received.bytes += frame_bytes as u64;
        self.arrivals.add(at_ns);
        // The clocks of two machines may disagree.
        let delay_ns = at_ns.saturating_sub(signature.sent_ns);
        self.latency.add(delay_ns);
        if let Some((last, last_delay_ns)) = self.last
            && last.checked_add(1) == Some(sequence)
        {
            self.ipdv.add(delay_ns.abs_diff(last_delay_ns));
        }
        self.last = Some((sequence, delay_ns));
    }

    fn report(&self) -> Received {
        Received {
            latency: self.latency.report(),
            ipdv: self.ipdv.report(),
            parts: self.arrivals.counts().to_vec(),
            ..self.received.clone()
        }
    }
}

#[derive(Debug)]
struct Spans {
    tally: Tally,
    buckets: Box<[u64]>,
}

impl Spans {
    fn new() -> Self {
        Self { tally: Tally::default(), buckets: vec![0; SLOTS].into_boxed_slice() }
    }

    fn add(&mut self, span_ns: u64) {
        let tally = &mut self.tally;
        tally.min_ns = if tally.count == 0 { span_ns } else { tally.min_ns.min(span_ns) };
        tally.max_ns = tally.max_ns.max(span_ns);
        tally.count += 1;
        tally.sum_ns += span_ns;
        self.buckets[histogram::slot(span_ns)] += 1;
    }

    fn report(&self) -> Tally {
        Tally { histogram: histogram::sparse(self.buckets.iter().copied()), ..self.tally.clone() }
    }
}

#[cfg(test)]
mod tests;
