//! The cycle of a plan: sizes, flows and normalised places of the frames that it repeats.
//!
//! A *place* is a time in units of the mean gap: with CBR, frame n stands at place n.

use rand::RngExt;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{MOST_SLOTS, Slot};
use crate::error::{Result, TesterError};
use crate::frame::{MAX_FRAME_BYTES, Template, Templates, pattern_sum};
use crate::request::{Recording, Request, Schedule, Size};

/// Fewest gaps of a cycle, so that the rate is exact to 1e-8.
const LEAST_SLOTS: usize = 64;
/// Gaps of a cycle of exponential gaps.
const POISSON_SLOTS: usize = 1 << 16;
/// Most slots of a cycle of sizes and flows.
const MOST_MIXED: usize = 1 << 20;
/// Weights that have no common measure are rounded to shares of this.
const SHARES: f64 = 4096.0;

pub(super) struct Cycle {
    slots: Vec<Slot>,
    places: Vec<f64>,
    /// Places from one cycle to the next; 0 for a single burst.
    span: f64,
    /// Frames of a single burst.
    most: u64,
}

impl Cycle {
    pub fn new(request: &Request, index: usize, templates: &Templates, tables: usize) -> Result<Self> {
        let stream = &request.streams[index];
        let mix = match &stream.schedule {
            Schedule::Recorded(recording) => recorded(recording, index, templates)?,
            _ => mix(&stream.sizes, index, templates)?,
        };
        let frames = stream.frames.map_or(stream.rate_pps * request.duration_s, |frames| frames as f64);
        let frames = frames.ceil().min(1e9) as usize;
        let length = match stream.schedule {
            Schedule::Recorded(_) => mix.len(),
            Schedule::Cbr => LEAST_SLOTS.next_multiple_of(mix.len()),
            // A cycle longer than the trial would not have the mean gap of the whole.
            Schedule::Poisson => (POISSON_SLOTS / tables).min(frames).max(mix.len()).next_multiple_of(mix.len()),
            Schedule::Bursts { burst_frames: 0 } => {
                let place = format!("streams[{index}].schedule.burst_frames");
                return Err(TesterError::value(place, 0, "at least one frame"));
            }
            Schedule::Bursts { burst_frames } if burst_frames as usize >= frames => mix.len(),
            Schedule::Bursts { burst_frames } => bursts(mix.len(), stream.flows.len(), burst_frames as usize),
        };
        if length.saturating_mul(tables) > MOST_SLOTS {
            let allowed =
                format!("frames after which sizes, flows and bursts repeat, times rates: at most {MOST_SLOTS}");
            return Err(TesterError::value(format!("streams[{index}]"), length.saturating_mul(tables), allowed));
        }
        let span = length as f64;
        let (places, span, most) = match &stream.schedule {
            Schedule::Recorded(recording) => (recording.places.clone(), span, u64::MAX),
            Schedule::Cbr => ((0..length).map(|nth| nth as f64).collect(), span, u64::MAX),
            Schedule::Poisson => (exponential(length, request.seed, index), span, u64::MAX),
            Schedule::Bursts { burst_frames } if *burst_frames as usize >= frames => {
                (vec![0.0; length], 0.0, u64::from(*burst_frames))
            }
            Schedule::Bursts { burst_frames } => {
                let burst = *burst_frames as usize;
                ((0..length).map(|nth| (nth / burst * burst) as f64).collect(), span, u64::MAX)
            }
        };
        let slots = mix.iter().copied().cycle().take(length).collect();
        Ok(Self { slots, places, span, most })
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn span(&self) -> f64 {
        self.span
    }

    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().copied()
    }

    pub fn places(&self) -> impl Iterator<Item = f64> {
        self.places.iter().copied()
    }

    /// The place of a frame.
    pub fn place(&self, frame: u64) -> f64 {
        let length = self.len() as u64;
        (frame / length) as f64 * self.span + self.places[(frame % length) as usize]
    }

    /// Number of frames before a place. Rate times duration is not exact, so frames within a relative 1e-12 do not
    /// count.
    pub fn frames_before(&self, place: f64) -> u64 {
        let place = place * (1.0 - 1e-12);
        if place <= 0.0 {
            return 0;
        }
        if self.span == 0.0 || place.is_infinite() {
            return self.most;
        }
        let cycles = (place / self.span).floor();
        let rest = place - cycles * self.span;
        cycles as u64 * self.len() as u64 + self.places.partition_point(|&at| at < rest) as u64
    }
}

/// The sizes and flows of a recording.
fn recorded(recording: &Recording, index: usize, templates: &Templates) -> Result<Vec<Slot>> {
    let place = |field: &str| format!("streams[{index}].schedule.{field}");
    let Recording { places, bytes, flows } = recording;
    let frames = places.len();
    if frames == 0 || bytes.len() != frames || flows.len() != frames {
        let got = format!("{frames} places, {} sizes, {} flows", bytes.len(), flows.len());
        return Err(TesterError::value(place("places"), got, "as many of each, and at least one"));
    }
    let mut before = 0.0;
    for (nth, &at) in places.iter().enumerate() {
        if !(at >= before && at < frames as f64) {
            let allowed = format!("{before} or more, and less than {frames}, the number of frames");
            return Err(TesterError::value(place(&format!("places[{nth}]")), at, allowed));
        }
        before = at;
    }
    let slot = |nth: usize| {
        let flow = templates.flows.get(usize::from(flows[nth])).ok_or_else(|| {
            let allowed = format!("the stream has {} flows", templates.flows.len());
            TesterError::value(place(&format!("flows[{nth}]")), flows[nth], allowed)
        })?;
        let least = u32::from(flow.smallest_frame_bytes());
        if !(least..=u32::from(MAX_FRAME_BYTES)).contains(&bytes[nth]) {
            let allowed = format!("{least} to {MAX_FRAME_BYTES} bytes with FCS: headers and signature need {least}");
            return Err(TesterError::value(place(&format!("bytes[{nth}]")), bytes[nth], allowed));
        }
        let size = bytes[nth] as u16;
        Ok(Slot { gap: 0, bytes: size, pattern_sum: pattern_sum(size, flow.head_bytes()), flow: flows[nth], spare: 0 })
    };
    (0..frames).map(slot).collect()
}

/// Sizes and flows: flows in turn, and each flow gets every size in proportion.
///
/// Visit v of flow i takes the size at v + i of the sizes' own cycle, so neighbours differ and no flow sees only some
/// of the sizes, whatever the numbers of sizes and flows have in common.
fn mix(sizes: &[Size], index: usize, templates: &Templates) -> Result<Vec<Slot>> {
    let place = |nth: usize, field: &str| format!("streams[{index}].sizes[{nth}].{field}");
    let least = templates.flows.iter().map(Template::smallest_frame_bytes).max().unwrap_or(0);
    for (nth, size) in sizes.iter().enumerate() {
        if !(u32::from(least)..=u32::from(MAX_FRAME_BYTES)).contains(&size.bytes) {
            let allowed = format!("{least} to {MAX_FRAME_BYTES} bytes with FCS: headers and signature need {least}");
            return Err(TesterError::value(place(nth, "bytes"), size.bytes, allowed));
        }
        if !(size.weight.is_finite() && size.weight >= 0.0) {
            return Err(TesterError::value(place(nth, "weight"), size.weight, "0 or more"));
        }
    }
    let weights = integer_ratio(&sizes.iter().map(|size| size.weight).collect::<Vec<_>>());
    let order = interleaved(&weights);
    if order.is_empty() {
        return Err(TesterError::value(place(0, "weight"), 0, "one of the weights is more than 0"));
    }
    let slot = |nth: usize, flow: usize| {
        let bytes = sizes[nth].bytes as u16;
        let pattern_sum = pattern_sum(bytes, templates.flows[flow].head_bytes());
        Slot { gap: 0, bytes, pattern_sum, flow: flow as u16, spare: 0 }
    };
    let flows = templates.flows.len();
    let visits = order.len().min(MOST_MIXED / flows).max(1);
    let size_of = |visit: usize, flow: usize| order[(visit + flow) % order.len()];
    Ok((0..visits)
        .flat_map(|visit| (0..flows).map(move |flow| (visit, flow)))
        .map(|(v, f)| slot(size_of(v, f), f))
        .collect())
}

/// Weights as integers without a common divisor.
pub(super) fn integer_ratio(weights: &[f64]) -> Vec<u64> {
    let least = weights.iter().copied().filter(|&weight| weight > 0.0).fold(f64::INFINITY, f64::min);
    let total: f64 = weights.iter().sum();
    let near = |times: f64| {
        weights
            .iter()
            .all(|weight| (weight / least * times).fract().min(1.0 - (weight / least * times).fract()) < 1e-9 * times)
    };
    let times =
        (1..=1000).map(f64::from).take_while(|times| total / least * times <= SHARES).find(|&times| near(times));
    let scale = times.map_or(SHARES / total, |times| times / least);
    // Every size of positive weight occurs.
    weights.iter().map(|&weight| ((weight * scale).round() as u64).max(u64::from(weight > 0.0))).collect()
}

/// Smooth weighted round robin: each index as often as its weight, spread evenly.
fn interleaved(weights: &[u64]) -> Vec<usize> {
    let total: u64 = weights.iter().sum();
    let mut credits = vec![0_i64; weights.len()];
    (0..total)
        .map(|_| {
            credits.iter_mut().zip(weights).for_each(|(credit, &weight)| *credit += weight as i64);
            let mut best = 0;
            for nth in 1..credits.len() {
                if credits[nth] > credits[best] {
                    best = nth;
                }
            }
            credits[best] -= total as i64;
            best
        })
        .collect()
}

/// Places whose gaps are exponential with mean 1: one gap of each of `length` equally likely strata, shuffled, so that
/// their sum is exact after scaling and their distribution is that of the law.
fn exponential(length: usize, seed: u64, index: usize) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let strata = length as f64;
    let mut gaps: Vec<f64> =
        (0..length).map(|nth| -(-(nth as f64 + random.random::<f64>()) / strata).ln_1p()).collect();
    gaps.shuffle(&mut random);
    let scale = strata / gaps.iter().sum::<f64>();
    gaps.iter()
        .scan(0.0, |at, gap| {
            let place = *at;
            *at += gap * scale;
            Some(place)
        })
        .collect()
}

/// Whole bursts and whole turns of the flows, and the whole mix of sizes where that is not too long.
fn bursts(mix: usize, flows: usize, burst: usize) -> usize {
    let period = common_multiple(mix, burst);
    if period <= MOST_MIXED {
        return period;
    }
    let turn = common_multiple(flows, burst);
    turn * (mix / turn).max(1)
}

fn common_multiple(a: usize, b: usize) -> usize {
    let (mut greater, mut less) = (a, b);
    while less > 0 {
        (greater, less) = (less, greater % less);
    }
    (a / greater).saturating_mul(b)
}
