//! Schedules: when each frame of a stream is due, of which size and flow it is.
//!
//! A plan is a cycle of [`Slot`]s, walked again and again, and a list of [`Segment`]s between which the rate changes.
//! Each segment has its own table: the cycle with its gaps scaled to its rate. Times are whole [`TICKS_PER_NS`]ths of a
//! nanosecond from the start of the plan, so that a sum of gaps drifts by less than 1e-9 of the time.
//!
//! ```text
//! segment 0 (warm-up)         segment 1 (counted)              segment 2 (after a step of the rate)
//! frame 0 1 2 … w-1           w …                              …
//! slots[table 0 + position]   slots[table 1 + position]        slots[table 2 + position]
//! ```
//!
//! A sender, in a BPF program as in [`Merge`], which is the reference, does this for every frame:
//!
//! ```text
//! if next segment and frame == next.first_frame { segment = next; position = its position; due = its first_due }
//! slot  = slots[segment.table + position]
//! leave = max(due, free)                                    # the rate of the link, over all streams of the port
//! free  = leave + ((slot.bytes + 20) * wire.cost >> 16)     # only if the tester imposes it: cost is 0 otherwise
//! send at leave
//! due += slot.gap; position = (position + 1) % cycle; frame += 1
//! ```
//!
//! The sequence number is `frame - warmup_frames`, in the warm-up `frame`. With several streams at one port, the one
//! with the least `due` is next. Bursts have gaps of 0: the link's rate spaces their frames (RFC 2544 sec. 21).

use crate::error::Result;
use crate::frame::Templates;
use crate::request::{Request, Schedule};

mod cycle;
mod merge;
mod rates;

pub use merge::{Due, Merge};

use cycle::Cycle;
use rates::{Piece, pieces};

/// The unit of time in a plan, as parts of a nanosecond: 2^16.
pub const TICKS_PER_NS: u64 = 1 << 16;
/// Preamble, start of frame delimiter and inter-frame gap (S1; RFC 2544 sec. 20).
pub const WIRE_OVERHEAD_BYTES: u64 = 20;
/// Most slots of a plan, over all segments: 64 MiB.
pub const MOST_SLOTS: usize = 1 << 22;

/// One frame of the cycle, as the BPF program reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// From this frame to the next, ticks.
    pub gap: u64,
    /// Frame size with its FCS.
    pub bytes: u16,
    /// [`crate::frame::pattern_sum`] of the frame.
    pub pattern_sum: u16,
    /// Index of its flow in the stream.
    pub flow: u16,
    /// 0; the length of the structure is 16.
    pub spare: u16,
}

/// Frames between two changes of the rate, as the BPF program reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Number of its first frame, counted from the start of the plan.
    pub first_frame: u64,
    /// The instant at which that frame is due, ticks from the start of the plan.
    pub first_due: u64,
    /// Index of the first slot of its table.
    pub table: u32,
    /// Position of its first frame in the cycle.
    pub position: u32,
}

/// The rate of a link that the tester imposes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    bps: f64,
    /// Ticks of an octet, times 2^16.
    pub cost: u64,
}

impl Wire {
    fn new(bps: f64) -> Self {
        Self { bps, cost: (8e9 / bps * (TICKS_PER_NS << 16) as f64).round() as u64 }
    }

    /// How long a frame occupies the link, ticks.
    #[must_use]
    pub fn ticks(&self, frame_bytes: u16) -> u64 {
        ((u64::from(frame_bytes) + WIRE_OVERHEAD_BYTES) * self.cost) >> 16
    }

    fn seconds(&self, frame_bytes: f64) -> f64 {
        (frame_bytes + WIRE_OVERHEAD_BYTES as f64) * 8.0 / self.bps
    }
}

/// When the frames of one stream are due.
#[derive(Debug, Clone)]
pub struct Plan {
    slots: Vec<Slot>,
    /// When the frame of each slot is due, ticks from the start of its table.
    offsets: Vec<u64>,
    /// Ticks of a whole cycle, by table.
    spans: Vec<u64>,
    cycle: usize,
    segments: Vec<Segment>,
    flows: usize,
    /// Whether sizes and flows are those of a recording.
    recorded: bool,
    warmup_frames: u64,
    frames: u64,
    intended_frames: u64,
    start: u64,
    end: u64,
    wire: Option<Wire>,
}

impl Plan {
    /// The plan of stream `index` of a request, whose frames are `templates`.
    ///
    /// Streams that exceed the link of their port are slowed down in proportion: the plan then
    /// has fewer frames than intended.
    ///
    /// # Errors
    ///
    /// A size has no room for the signature or is too long; weights or steps are not numbers; too many frames.
    ///
    /// # Panics
    ///
    /// Panics where there is no such stream.
    pub fn new(request: &Request, index: usize, templates: &Templates) -> Result<Self> {
        let wire = request.wire_bps.map(Wire::new);
        let pieces = pieces(request, index, wire.as_ref())?;
        let cycle = Cycle::new(request, index, templates, pieces.len())?;
        let stream = &request.streams[index];
        let start_s = request.warmup_s;
        let mut plan = Self {
            slots: Vec::with_capacity(cycle.len() * pieces.len()),
            offsets: Vec::with_capacity(cycle.len() * pieces.len()),
            spans: Vec::with_capacity(pieces.len()),
            cycle: cycle.len(),
            segments: Vec::with_capacity(pieces.len()),
            flows: stream.flows.len(),
            recorded: matches!(stream.schedule, Schedule::Recorded(_)),
            warmup_frames: 0,
            frames: 0,
            intended_frames: 0,
            start: ticks(start_s),
            end: ticks(start_s + request.duration_s),
            wire,
        };
        // Frames so far and "intended" frames so far: the integral of the rate, in which CBR frame n stands at n.
        let (mut before, mut area, mut intended_area) = (0_u64, 0.0, 0.0);
        let mut warming_up = !pieces[0].counted;
        for piece in &pieces {
            if piece.counted && warming_up {
                (warming_up, plan.warmup_frames, before, area) = (false, before, 0, 0.0);
            }
            let limit = if piece.counted { stream.frames.unwrap_or(u64::MAX) } else { u64::MAX };
            // A requested number of frames is sent, however long it takes.
            let until_end = piece.last && stream.frames.is_some();
            let next_area = if until_end { f64::INFINITY } else { area + piece.rate_pps * piece.seconds() };
            let after = if piece.rate_pps == 0.0 { before } else { cycle.frames_before(next_area).min(limit) };
            if after > before {
                plan.add(&cycle, piece, before, area);
            }
            if piece.counted {
                intended_area += piece.intended_pps * piece.seconds();
                plan.frames = after;
            }
            (before, area) = (after, next_area);
        }
        plan.intended_frames = stream.frames.unwrap_or_else(|| cycle.frames_before(intended_area));
        plan.check(request, index)?;
        Ok(plan)
    }

    /// Adds the frames from `before` on, counted from the start of the trial or of its warm-up.
    fn add(&mut self, cycle: &Cycle, piece: &Piece, before: u64, area: f64) {
        let table = self.slots.len();
        let ahead_s = ((cycle.place(before) - area) / piece.rate_pps).max(0.0);
        self.segments.push(Segment {
            first_frame: self.warmup_frames + before,
            first_due: ticks(piece.from_s + ahead_s),
            table: table as u32,
            position: (before % self.cycle as u64) as u32,
        });
        let ticks_per_frame = 1e9 * TICKS_PER_NS as f64 / piece.rate_pps;
        self.offsets.extend(cycle.places().map(|place| (place * ticks_per_frame).round() as u64));
        let span = (cycle.span() * ticks_per_frame).round() as u64;
        for (nth, slot) in cycle.slots().enumerate() {
            let next = self.offsets.get(table + nth + 1).map_or(span, |&offset| offset);
            self.slots.push(Slot { gap: next.saturating_sub(self.offsets[table + nth]), ..slot });
        }
        self.spans.push(span);
    }

    fn check(&mut self, request: &Request, index: usize) -> Result<()> {
        let allowed = |what: &str| format!("{what}; shorten the trial or lower the rate");
        let place = |field: &str| format!("streams[{index}].{field}");
        if self.frames.max(self.warmup_frames) > u64::from(u32::MAX) {
            let allowed = allowed("at most 4294967295 frames, for a sequence number has 32 bits");
            return Err(crate::TesterError::value(place("frames"), self.frames, allowed));
        }
        if self.frames > 0 {
            self.end = self.end.max(self.due(self.warmup_frames + self.frames - 1));
        }
        let latest = ticks(request.warmup_s + 86_400.0);
        if self.end > latest || request.streams[index].frames.is_some_and(|frames| frames > self.frames) {
            let allowed = allowed("as many as are sent within a day");
            return Err(crate::TesterError::value(place("frames"), self.frames, allowed));
        }
        Ok(())
    }

    /// The tables of all segments, one after the other; each has [`Plan::cycle`] slots.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The changes of the rate; the first one, if there are frames at all, is that of frame 0.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Slots of a table.
    #[must_use]
    pub fn cycle(&self) -> usize {
        self.cycle
    }

    /// The rate of the link, where the tester imposes it.
    #[must_use]
    pub fn wire(&self) -> Option<Wire> {
        self.wire
    }

    /// Frames of the warm-up, which do not count.
    #[must_use]
    pub fn warmup_frames(&self) -> u64 {
        self.warmup_frames
    }

    /// Counted frames.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames of the intended load (RFC 2285 sec. 3.5.1): more than [`Plan::frames`] where the link is too slow.
    #[must_use]
    pub fn intended_frames(&self) -> u64 {
        self.intended_frames
    }

    /// When the trial begins, after the warm-up, ticks.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// When the trial ends and its last frame is due at the latest, ticks. The link may need longer for a burst.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The least time for which its frames, with those of the warm-up, occupy the link, ticks; 0 where the wire imposes
    /// it.
    #[must_use]
    pub fn link_ticks(&self) -> u64 {
        let Some(wire) = self.wire else { return 0 };
        let cycle: u128 = self.slots.iter().take(self.cycle).map(|slot| u128::from(wire.ticks(slot.bytes))).sum();
        let frames = u128::from(self.warmup_frames + self.frames);
        u64::try_from(cycle * frames / self.cycle as u128).unwrap_or(u64::MAX)
    }

    /// When a frame is due, ticks from the start of the plan, without the waiting for the link.
    ///
    /// # Panics
    ///
    /// Panics where the plan has no frames.
    #[must_use]
    pub fn due(&self, frame: u64) -> u64 {
        let nth = self.segment_of(frame);
        let segment = self.segments[nth];
        let since = |position: u64| {
            let (cycles, slot) = (position / self.cycle as u64, position % self.cycle as u64);
            cycles.saturating_mul(self.spans[nth]).saturating_add(self.offsets[segment.table as usize + slot as usize])
        };
        let first = u64::from(segment.position);
        segment.first_due + (since(first + frame - segment.first_frame) - since(first))
    }

    /// When a frame leaves, ticks from the start of the plan: when it is due, and after those of its burst that go before
    /// it on the link. Other streams of the port and earlier bursts are not waited for.
    ///
    /// # Panics
    ///
    /// Panics where the plan has no frames.
    #[must_use]
    pub fn leave(&self, frame: u64) -> u64 {
        let due = self.due(frame);
        let Some(wire) = self.wire else { return due };
        let segment = self.segments[self.segment_of(frame)];
        // Due times never fall, so that the first frame of the burst is found by halving.
        let (mut first, mut last) = (segment.first_frame, frame);
        while first < last {
            let middle = first + (last - first) / 2;
            if self.due(middle) < due { first = middle + 1 } else { last = middle }
        }
        let table = &self.slots[segment.table as usize..][..self.cycle];
        let ticks_of = |frames: u64| -> u64 {
            let start = (u64::from(segment.position) + first - segment.first_frame) % self.cycle as u64;
            table.iter().cycle().skip(start as usize).take(frames as usize).map(|slot| wire.ticks(slot.bytes)).sum()
        };
        let (cycles, rest) = ((frame - first) / self.cycle as u64, (frame - first) % self.cycle as u64);
        due + if cycles > 0 { cycles * ticks_of(self.cycle as u64) } else { 0 } + ticks_of(rest)
    }

    /// Size and flow of a frame.
    ///
    /// # Panics
    ///
    /// Panics where the plan has no frames.
    #[must_use]
    pub fn slot(&self, frame: u64) -> Slot {
        let segment = self.segments[self.segment_of(frame)];
        let position = u64::from(segment.position) + frame - segment.first_frame;
        self.slots[segment.table as usize + (position % self.cycle as u64) as usize]
    }

    /// How many of the first `frames` counted frames are of each flow.
    #[must_use]
    pub fn frames_of_flows(&self, frames: u64) -> Vec<u64> {
        if self.recorded {
            return self.recorded_frames_of_flows(frames);
        }
        let (share, more) = (frames / self.flows as u64, frames % self.flows as u64);
        (0..self.flows as u64).map(|flow| share + u64::from(flow < more)).collect()
    }

    /// As [`Plan::frames_of_flows`], where flows do not take turns.
    fn recorded_frames_of_flows(&self, frames: u64) -> Vec<u64> {
        let (cycles, rest) = (frames / self.cycle as u64, frames % self.cycle as u64);
        let mut counts = vec![0; self.flows];
        for (position, slot) in (0..).zip(&self.slots[..self.cycle]) {
            counts[usize::from(slot.flow)] += cycles + u64::from(position < rest);
        }
        counts
    }

    fn segment_of(&self, frame: u64) -> usize {
        self.segments.partition_point(|segment| segment.first_frame <= frame).saturating_sub(1)
    }
}

fn ticks(seconds: f64) -> u64 {
    (seconds * 1e9 * TICKS_PER_NS as f64).round() as u64
}

#[cfg(test)]
mod tests;
