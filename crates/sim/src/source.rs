//! Sources: the frames of one port, in order, never faster than the link (S1).

use rand::RngExt as _;
use rand_distr::{Distribution as _, Exp1};

use crate::random::{Stream, stream};
use crate::scenario::{Load, Process, Run, Scenario, Source as Spec, Step};
use crate::time::PS_PER_S;

/// Bytes that a frame adds on the wire: preamble, start of frame delimiter, inter-frame gap.
pub const WIRE_OVERHEAD_BYTES: u32 = 20;

/// 2^52, whose last binary place is 1.
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// Frames drawn ahead.
const BUFFER: usize = 512;

/// Generator of one port's frames.
#[derive(Debug)]
pub struct Source {
    gaps: Gaps,
    pace: Pace,
    sizes: Sizes,
    flows: Flows,
    wire_ps_per_byte: f64,
    last_in: f64,
    end: f64,
    buffer: Vec<Arrival>,
    /// Where those begin that were taken last, and those that were not taken yet.
    from: usize,
    head: usize,
    exhausted: bool,
    /// Room for instants that are worked out together.
    instants: Box<[u64; BUFFER]>,
    drawn: Box<Drawn>,
}

/// Room for what is drawn of frames together.
#[derive(Debug)]
struct Drawn {
    ideal_ps: [f64; BUFFER],
    bytes: [u32; BUFFER],
    flow: [u32; BUFFER],
}

/// A frame as it comes off the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Last bit in, picoseconds.
    pub at: u64,
    /// Size in bytes, FCS included.
    pub bytes: u32,
    /// Flow.
    pub flow: u32,
}

/// Calls a closure for each of the frames that were taken from sources, in order; of equals the first source's come first.
#[inline]
pub fn in_order(sources: &[Source], block: &mut Vec<Arrival>, mut enter: impl FnMut(&Arrival)) {
    if let [first, second] = sources {
        let (mut first, mut second) = (first.taken(), second.taken());
        while let (Some((a, rest_a)), Some((b, rest_b))) = (first.split_first(), second.split_first()) {
            if a.at <= b.at {
                enter(a);
                first = rest_a;
            } else {
                enter(b);
                second = rest_b;
            }
        }
        first.iter().chain(second).for_each(enter);
    } else if let [only] = sources {
        only.taken().iter().for_each(enter);
    } else {
        block.clear();
        for source in sources {
            block.extend_from_slice(source.taken());
        }
        // Stable, so of frames at one instant the first port's comes first; fast, because it merges sorted runs.
        block.sort_by_key(|arrival| arrival.at);
        block.iter().for_each(enter);
    }
}

#[derive(Debug)]
enum Gaps {
    Cbr { period: f64, phase: f64, count: u64 },
    Poisson { mean: f64, last: f64, rng: Stream },
    OnOff { peak_gap: f64, pause: f64, stop: f64, left: u64, last: f64, rng: Stream },
    Bursts { mean: f64, size: u64, count: u64 },
    Trace { time_ps: Vec<u64>, bytes: Vec<u32>, flow: Vec<u32>, next: usize },
}

#[derive(Debug)]
enum Sizes {
    One(u32),
    Cycle { list: Vec<u32>, next: usize },
    Random { list: Vec<u32>, rng: Stream },
}

#[derive(Debug)]
enum Flows {
    Cycle { list: Vec<u32>, next: usize },
    Random { choice: Choice, rng: Stream, held: u32 },
}

/// A choice among flows by their shares.
#[derive(Debug)]
struct Choice {
    list: Vec<u32>,
    /// Sums of the shares up to each; the last is infinite, so that rounding leaves none out.
    cumulative: Vec<f64>,
    /// For each of equal parts of 0..1, halves at both ends, the first flow whose sum lies beyond its beginning (Chen and
    /// Asau 1974).
    guide: Vec<u32>,
    parts: f64,
}

impl Choice {
    fn new(list: Vec<u32>, shares: impl Iterator<Item = f64>) -> Self {
        let mut cumulative: Vec<f64> = shares
            .scan(0.0, |sum, share| {
                *sum += share;
                Some(*sum)
            })
            .collect();
        *cumulative.last_mut().expect("a source has flows") = f64::INFINITY;
        let parts = list.len().next_power_of_two();
        let beyond = |part: usize| {
            let begin = (part as f64 - 0.5) / parts as f64;
            cumulative.partition_point(|&sum| sum <= begin) as u32
        };
        let guide = (0..=parts).map(beyond).collect();
        Self { list, cumulative, guide, parts: parts as f64 }
    }

    /// The flow at a place in 0..1.
    #[inline]
    fn at(&self, place: f64) -> u32 {
        // The nearest whole number stands in the last binary places: see `even_instants`.
        let part = (place * self.parts + TWO_52).to_bits() as u32;
        let mut number = self.guide[part as usize] as usize;
        // Whether it is the next one nobody can foretell, so there is no branch; one further on is rare.
        number += usize::from(self.cumulative[number] <= place);
        while self.cumulative[number] <= place {
            number += 1;
        }
        self.list[number]
    }
}

impl Source {
    /// Opens source number `index` of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario, index: usize) -> Self {
        let (load, run) = (&scenario.load, &scenario.run);
        let spec = &load.sources[index];
        let port = &scenario.model.ports[spec.port];
        let mut source = Self {
            gaps: Gaps::new(spec, run, index),
            pace: Pace::new(spec.rate_pps, &spec.steps),
            sizes: Sizes::new(load, run, index),
            flows: Flows::new(spec, load, run, index),
            wire_ps_per_byte: 8.0 * PS_PER_S / port.link_bps,
            last_in: f64::NEG_INFINITY,
            end: run.duration_ps as f64,
            buffer: Vec::with_capacity(BUFFER),
            from: 0,
            head: 0,
            exhausted: false,
            instants: Box::new([0; BUFFER]),
            drawn: Box::new(Drawn { ideal_ps: [0.0; BUFFER], bytes: [0; BUFFER], flow: [0; BUFFER] }),
        };
        source.refill();
        source
    }

    /// The instant before which all of its frames are known; `u64::MAX` at the end of the trial.
    #[must_use]
    pub fn known_before(&self) -> u64 {
        match self.buffer.last() {
            Some(last) if !self.exhausted => last.at,
            _ => u64::MAX,
        }
    }

    /// Takes the frames that arrive before `until`, no later than [`Self::known_before`].
    pub fn take_until(&mut self, until: u64) -> &[Arrival] {
        self.from = self.head;
        self.head += self.buffer[self.from..].partition_point(|arrival| arrival.at < until);
        self.taken()
    }

    /// The frames that were taken last.
    #[must_use]
    pub fn taken(&self) -> &[Arrival] {
        &self.buffer[self.from..self.head]
    }

    /// Draws frames ahead when few are left.
    pub fn refill(&mut self) {
        if self.exhausted || self.buffer.len() - self.head > BUFFER / 2 {
            return;
        }
        self.buffer.drain(..self.head);
        (self.from, self.head) = (0, 0);
        if self.refill_evenly() || self.refill_at_random() {
            return;
        }
        let mut last_in = self.last_in;
        while self.buffer.len() < BUFFER && !self.exhausted {
            let Some((ideal, opens)) = self.gaps.next() else {
                self.exhausted = true;
                break;
            };
            let (bytes, flow) = match &self.gaps {
                Gaps::Trace { bytes, flow, next, .. } => (bytes[next - 1], flow[next - 1]),
                _ => (self.sizes.next(), self.flows.next(opens)),
            };
            let ideal = self.pace.warp(ideal);
            // A frame's last bit follows the last one's by its own time on the wire, at least.
            last_in = ideal.max(last_in + f64::from(bytes + WIRE_OVERHEAD_BYTES) * self.wire_ps_per_byte);
            if last_in >= self.end {
                self.exhausted = true;
                break;
            }
            self.buffer.push(Arrival { at: last_in as i64 as u64, bytes, flow });
        }
        self.last_in = last_in;
    }
}

impl Source {
    /// The commonest source, even gaps of frames of one size that the link can carry, in a short loop; false if this
    /// is not one.
    fn refill_evenly(&mut self) -> bool {
        let (Gaps::Cbr { period, phase, count }, Sizes::One(bytes), Flows::Cycle { list, next }) =
            (&mut self.gaps, &self.sizes, &mut self.flows)
        else {
            return false;
        };
        let (period, phase, bytes) = (*period, *phase, *bytes);
        if self.pace.changes() || period < f64::from(bytes + WIRE_OVERHEAD_BYTES) * self.wire_ps_per_byte {
            return false;
        }
        let left = ((self.end / period - phase).ceil() - *count as f64).max(0.0) as u64;
        let frames = left.min((BUFFER - self.buffer.len()) as u64);
        let mut place = *count;
        let last = place + frames;
        let instants = &mut self.instants[..frames as usize];
        even_instants(place, phase, period, self.end, instants);
        let mut instants = instants.iter();
        // Through the list of flows as often as it takes: then a frame costs little more than its instant.
        while place < last {
            let flows = &list[*next..list.len().min(*next + (last - place) as usize)];
            self.buffer.extend(flows.iter().zip(instants.by_ref()).map(|(&flow, &at)| Arrival { at, bytes, flow }));
            place += flows.len() as u64;
            *next = if *next + flows.len() == list.len() { 0 } else { *next + flows.len() };
        }
        *count = last;
        // Rounding can put one frame too many at the very end.
        let end = self.end as u64;
        while self.buffer.last().is_some_and(|last| last.at >= end) {
            self.buffer.pop();
        }
        self.exhausted = left == frames;
        true
    }
}

impl Source {
    /// A Poisson source, whose gaps, sizes and flows have streams of their own: in a loop for each, which keeps the
    /// processor busy. False if this is none.
    fn refill_at_random(&mut self) -> bool {
        let Gaps::Poisson { mean, last, rng } = &mut self.gaps else { return false };
        let Drawn { ideal_ps, bytes, flow } = &mut *self.drawn;
        let frames = BUFFER - self.buffer.len();
        let (ideal_ps, bytes, flow) = (&mut ideal_ps[..frames], &mut bytes[..frames], &mut flow[..frames]);
        ideal_ps.fill_with(|| Exp1.sample(rng));
        let (mean, mut sum_ps) = (*mean, *last);
        for ideal_ps in &mut *ideal_ps {
            sum_ps += *ideal_ps * mean;
            *ideal_ps = sum_ps;
        }
        *last = sum_ps;
        self.sizes.fill(bytes);
        self.flows.fill(flow);
        let Self { pace, wire_ps_per_byte, end, .. } = self;
        let (wire_ps_per_byte, end) = (*wire_ps_per_byte, *end);
        let mut last_in = self.last_in;
        for ((&ideal_ps, &bytes), &flow) in ideal_ps.iter().zip(&*bytes).zip(&*flow) {
            let ideal_ps = pace.warp(ideal_ps);
            last_in = ideal_ps.max(last_in + f64::from(bytes + WIRE_OVERHEAD_BYTES) * wire_ps_per_byte);
            if last_in >= end {
                self.exhausted = true;
                break;
            }
            self.buffer.push(Arrival { at: last_in as i64 as u64, bytes, flow });
        }
        self.last_in = last_in;
        true
    }
}

/// Instants of even gaps from frame number `first` on, whole picoseconds, none of them past `end_ps`.
///
/// A product, not a sum, keeps the long-run rate exact. Numbers are made whole by adding 2^52, whose last binary place is 1:
/// unlike a conversion, that works on several numbers at once. What is too large for it is converted.
fn even_instants(first: u64, phase: f64, period_ps: f64, end_ps: f64, instants_ps: &mut [u64]) {
    let base = first as f64;
    let small = end_ps + period_ps < TWO_52 && first < 1 << 52;
    for (n, instant_ps) in (0_u32..).zip(instants_ps.iter_mut()) {
        let exact_ps = (base + f64::from(n as i32) + phase) * period_ps;
        let raised = exact_ps + TWO_52;
        // Rounded to the nearest; what was rounded up is one too many.
        let nearest = raised.to_bits() - TWO_52.to_bits();
        *instant_ps = nearest - u64::from(raised - TWO_52 > exact_ps);
    }
    if !small {
        for (n, instant_ps) in (first..).zip(instants_ps) {
            // Through i64, which is one instruction where u64 is a dozen; a trial is far shorter than 2^63 ps.
            *instant_ps = ((n as i64 as f64 + phase) * period_ps) as i64 as u64;
        }
    }
}

/// The clock of a source whose rate changes: an arrival process at the first rate, stretched from each step on.
///
/// ```text
///  frames ▲            ╱ rate 2        A frame that a constant first rate would put at x (picoseconds)
///         │        ╱ ╱                 comes when as many frames are due at the changing rate.
///         │    ╱╱ step
///         │ ╱ rate 1
///         └──────────────▶ time
/// ```
///
/// A Poisson process so stretched is the Poisson process of the changing rate, even gaps stay even between steps.
#[derive(Debug)]
struct Pace {
    /// Of each step: the instant on the clock of the first rate, the instant, and first rate over its rate.
    steps: Vec<(f64, f64, f64)>,
    next: usize,
    now: (f64, f64, f64),
}

impl Pace {
    fn new(first_pps: f64, steps: &[Step]) -> Self {
        let mut now = (0.0, 0.0, 1.0);
        let steps = steps
            .iter()
            .map(|step| {
                let (unwarped, at, stretch) = now;
                now = (unwarped + (step.at_ps - at) / stretch, step.at_ps, first_pps / step.rate_pps);
                now
            })
            .collect();
        Self { steps, next: 0, now: (0.0, 0.0, 1.0) }
    }

    fn changes(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Instant of a frame; instants are asked for in their order.
    #[inline]
    fn warp(&mut self, ideal_ps: f64) -> f64 {
        while let Some(step) = self.steps.get(self.next).filter(|step| step.0 <= ideal_ps) {
            self.now = *step;
            self.next += 1;
        }
        let (unwarped, at, stretch) = self.now;
        if self.next == 0 { ideal_ps } else { at + (ideal_ps - unwarped) * stretch }
    }
}

impl Gaps {
    fn new(spec: &Spec, run: &Run, index: usize) -> Self {
        let mean = PS_PER_S / spec.rate_pps;
        let rng = || stream(run.seed, run.replication, "gap", index as u64);
        match &spec.process {
            Process::Cbr { phase } => Self::Cbr { period: mean, phase: *phase, count: 0 },
            Process::Poisson => Self::Poisson { mean, last: 0.0, rng: rng() },
            Process::OnOff { burst_frames, peak_ratio } => {
                // A burst of B frames takes B gaps at the peak rate; the pause makes up the rest of B mean gaps.
                let peak_gap = mean / peak_ratio;
                let pause = burst_frames * (mean - peak_gap);
                Self::OnOff { peak_gap, pause, stop: 1.0 / burst_frames, left: 0, last: 0.0, rng: rng() }
            }
            Process::Bursts { burst_frames } => Self::Bursts { mean, size: *burst_frames, count: 0 },
            Process::Trace { time_ps, bytes, flow } => {
                Self::Trace { time_ps: time_ps.clone(), bytes: bytes.clone(), flow: flow.clone(), next: 0 }
            }
        }
    }

    /// Instant of the next frame, and whether it opens a burst.
    #[inline]
    fn next(&mut self) -> Option<(f64, bool)> {
        match self {
            Self::Cbr { period, phase, count } => {
                // A product, not a sum, keeps the long-run rate exact.
                let at = (*count as f64 + *phase) * *period;
                *count += 1;
                Some((at, true))
            }
            Self::Poisson { mean, last, rng } => {
                let gap: f64 = Exp1.sample(rng);
                *last += gap * *mean;
                Some((*last, true))
            }
            Self::OnOff { peak_gap, pause, stop, left, last, rng } => {
                *last += *peak_gap;
                let opens = *left == 0;
                if opens {
                    let gap: f64 = Exp1.sample(rng);
                    *last += gap * *pause;
                    // Geometric number of frames with mean 1/stop, by inversion.
                    let u: f64 = rng.random();
                    *left = if *stop >= 1.0 { 1 } else { ((1.0 - u).ln() / (1.0 - *stop).ln()).floor() as u64 + 1 };
                }
                *left -= 1;
                Some((*last, opens))
            }
            Self::Bursts { mean, size, count } => {
                // The whole burst is due at once; the link spaces its frames (RFC 2544 sec. 21: the least gap).
                let within = *count % *size;
                let at = (*count - within) as f64 * *mean;
                *count += 1;
                Some((at, within == 0))
            }
            Self::Trace { time_ps, next, .. } => {
                let at = *time_ps.get(*next)?;
                *next += 1;
                Some((at as f64, true))
            }
        }
    }
}

impl Sizes {
    fn new(load: &Load, run: &Run, index: usize) -> Self {
        match load.sizes.as_slice() {
            [only] => Self::One(*only),
            list if load.random_sizes => {
                Self::Random { list: list.to_vec(), rng: stream(run.seed, run.replication, "size", index as u64) }
            }
            list => Self::Cycle { list: list.to_vec(), next: 0 },
        }
    }

    #[inline]
    fn next(&mut self) -> u32 {
        match self {
            Self::One(bytes) => *bytes,
            Self::Cycle { list, next } => {
                let bytes = list[*next];
                *next = if *next + 1 == list.len() { 0 } else { *next + 1 };
                bytes
            }
            Self::Random { list, rng } => list[rng.random_range(0..list.len())],
        }
    }

    /// The sizes of the next frames.
    fn fill(&mut self, bytes: &mut [u32]) {
        match self {
            Self::One(only) => bytes.fill(*only),
            Self::Cycle { .. } => bytes.fill_with(|| self.next()),
            Self::Random { list, rng } => bytes.fill_with(|| list[rng.random_range(0..list.len())]),
        }
    }
}

impl Flows {
    fn new(spec: &Spec, load: &Load, run: &Run, index: usize) -> Self {
        let weights: Vec<f64> = spec.flows.iter().map(|&flow| load.flows[flow as usize].weight).collect();
        let equal = weights.iter().all(|&weight| weight == weights[0]);
        if weights.len() == 1 || (equal && matches!(spec.process, Process::Cbr { .. } | Process::Bursts { .. })) {
            return Self::Cycle { list: spec.flows.clone(), next: 0 };
        }
        let total: f64 = weights.iter().sum();
        Self::Random {
            choice: Choice::new(spec.flows.clone(), weights.iter().map(|weight| weight / total)),
            rng: stream(run.seed, run.replication, "flow", index as u64),
            held: spec.flows[0],
        }
    }

    #[inline]
    fn next(&mut self, new_burst: bool) -> u32 {
        match self {
            Self::Cycle { list, next } => {
                let flow = list[*next];
                *next = if *next + 1 == list.len() { 0 } else { *next + 1 };
                flow
            }
            Self::Random { choice, rng, held } => {
                // All frames of a burst belong to one flow.
                if new_burst {
                    *held = choice.at(rng.random());
                }
                *held
            }
        }
    }

    /// The flows of the next frames, each of which is a burst by itself.
    fn fill(&mut self, flows: &mut [u32]) {
        match self {
            Self::Cycle { .. } => flows.fill_with(|| self.next(true)),
            Self::Random { choice, rng, .. } => flows.fill_with(|| choice.at(rng.random())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_a_rate_has_sent_until_a_step_are_its_integral() {
        // 1 Mpps for 1 ms, then 4 Mpps for 1 ms, then 0.5 Mpps: 1000, 4000, 500 frames in these milliseconds.
        let steps = [Step { at_ps: 1e9, rate_pps: 4e6 }, Step { at_ps: 2e9, rate_pps: 0.5e6 }];
        let mut pace = Pace::new(1e6, &steps);
        let instants: Vec<f64> = (0..5500).map(|n| pace.warp(f64::from(n) * 1e6)).collect();
        let within = |from: f64, to: f64| instants.iter().filter(|&&at| at >= from && at < to).count();
        assert_eq!([within(0.0, 1e9), within(1e9, 2e9), within(2e9, 3e9)], [1000, 4000, 500]);
        assert!(instants.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn bursts_come_at_equal_distances_and_keep_the_mean_rate() {
        let mut bursts = Gaps::Bursts { mean: 1e6, size: 4, count: 0 };
        let due: Vec<(f64, bool)> = (0..9).filter_map(|_| bursts.next()).collect();
        assert_eq!(due.iter().map(|frame| frame.0).collect::<Vec<_>>(), [0.0, 0.0, 0.0, 0.0, 4e6, 4e6, 4e6, 4e6, 8e6]);
        assert_eq!(due.iter().filter(|frame| frame.1).count(), 3);
    }

    #[test]
    fn a_rate_that_does_not_change_bends_no_clock() {
        let mut pace = Pace::new(1e6, &[]);
        assert_eq!(pace.warp(12_345.678).to_bits(), 12_345.678_f64.to_bits());
        assert!(!pace.changes());
    }
}
