//! The pace of a source: gaps between its frames, and the cells at whose borders Poisson arrivals are drawn anew.
//!
//! ```text
//!   rate      ├───────── era 0 ─────────┤├──────── era 1 ────────┤
//!   cells     ├──────┤├──────┤├──────┤├─┤├──────┤├──────┤├──────┤
//!                                        ▲ the last cell of an era ends with it
//! ```
//!
//! Bursts have a number each, which their draws belong to. Where a burst begins follows from all those before it, so a lane
//! that begins later counts through them once; some are kept on the way.

use std::sync::{Arc, Mutex, PoisonError};

use crate::draw::{Key, UNIT_BITS, exponential, threefry};
use crate::program::{NUMBER_BITS, SourceProgram};
use crate::router::Recording;
use crate::words::Word;

/// Where a rate changes, a gap keeps so many bits at least.
const LEAST_GAP: u32 = 1 << 20;

/// When the frames of a source come.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    /// Mean gaps in ticks, `bits` fraction bits.
    Poisson { eras: Vec<Era>, bits: u32 },
    /// Ticks of a gap and of the first frame, 32 fraction bits.
    Even { gap: u64, first: u64 },
    /// Frames come in bursts.
    Bursts(Bursts),
    /// Frames come when they were recorded.
    Recorded(Arc<Recorded>),
}

/// Recorded frames in ticks, and behind the last a place for none: in all lists it has an entry, too.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Instants, rising.
    pub at: Vec<u64>,
    /// Ticks from the frame before, [`FAR`] at most; of the first from 0.
    pub gap: Vec<u32>,
    /// What instants have beyond a whole tick, 32 fraction bits.
    pub rest: Vec<u32>,
    /// The place in the list of kinds.
    pub place: Vec<u32>,
    /// Ticks of a mean gap.
    mean: u32,
}

/// An instant so many ticks ahead is not reached before a clock is set anew.
pub(crate) const FAR: u32 = 1 << 30;
/// When the frame behind the last comes, ticks: later than any trial.
pub(crate) const NEVER: u64 = 1 << 54;

/// The counter of the draws for recorded frames of a source.
#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
#[inline(always)]
pub(crate) fn recorded_counter<W: Word>(source: usize, frame: W) -> [W; 2] {
    let number = frame.and(W::all((1 << NUMBER_BITS) - 1));
    [frame.right(NUMBER_BITS), number.or(W::all((source as u32) << NUMBER_BITS))]
}

impl Recorded {
    pub(crate) fn new(recording: &Recording, tick_ps: f64) -> Self {
        let instants = || recording.at_ps.iter().map(|&at_ps| at_ps as f64 / tick_ps);
        let at: Vec<u64> = instants().map(|ticks| ticks as u64).chain([NEVER]).collect();
        let before = std::iter::once(0).chain(at.iter().copied());
        let gap = at.iter().zip(before).map(|(&at, before)| (at - before).min(u64::from(FAR)) as u32).collect();
        let last = recording.at_ps.last().map_or(0.0, |&at_ps| at_ps as f64 / tick_ps);
        Self {
            gap,
            rest: instants().map(|ticks| (ticks.fract() * 32.0_f64.exp2()) as u32).chain([0]).collect(),
            place: recording.place.iter().copied().chain([0]).collect(),
            mean: (last / at.len() as f64) as u32,
            at,
        }
    }

    /// Low word of the instant of a frame, seen from another instant: no farther ahead than a clock holds.
    pub(crate) fn seen_from(&self, now: u64, frame: u32) -> u32 {
        let at = self.at.get(frame as usize).copied().unwrap_or(NEVER);
        if at > now + u64::from(FAR) { (now as u32).wrapping_add(FAR) } else { at as u32 }
    }

    /// The mean part of a tick after whose beginning frames come.
    pub(crate) fn mean_part(&self) -> f64 {
        let frames = (self.rest.len() - 1).max(1) as f64;
        self.rest.iter().map(|&rest| f64::from(rest)).sum::<f64>() / frames / 32.0_f64.exp2()
    }
}

/// Bursts: frames at equal gaps, and a pause before the first.
#[derive(Debug, Clone)]
pub(crate) struct Bursts {
    /// Ticks of a gap in a burst, 32 fraction bits.
    pub gap: u64,
    pub rest: Rest,
    pub key: Key,
    /// The number of the source, where the counter names it.
    pub source: u32,
    /// Flows that a burst may be of, by its draw; 0: frames are in turn, whatever burst they are of.
    pub flows: u32,
    /// Ticks of a mean gap between frames.
    mean: u32,
    /// The beginnings of some bursts, in order.
    openings: Arc<Mutex<Vec<Opening>>>,
}

/// What lies between bursts, and how long they are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rest {
    /// Exponential pauses, the mean in ticks with `bits` fraction bits; geometric numbers of frames, by the factor of an
    /// exponential that is floored, with `shift` fraction bits above its own.
    Random { pause: u32, bits: u32, factor: u32, shift: u32 },
    /// So many frames, and so long from burst to burst, 32 fraction bits.
    Fixed { period: u64, frames: u32 },
}

/// Where a burst begins: its number, the instant of its first frame, and how many frames came before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub burst: u64,
    /// Ticks, 32 fraction bits.
    pub at: u128,
    pub frames: u64,
}

/// Bursts between two beginnings that are kept.
const KEPT: u64 = 4096;
/// The most frames of a burst: their numbers have 24 bits.
const MOST_IN_BURST: f64 = 16_777_216.0;

impl Bursts {
    /// Ticks of the pause before bursts and the numbers of their frames, by their low and high words, and their place.
    #[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
    #[inline(always)]
    pub(crate) fn draw<W: Word>(&self, burst: W) -> (W, W, W) {
        let Rest::Random { pause, bits, factor, shift } = self.rest else {
            let Rest::Fixed { frames, .. } = self.rest else { unreachable!("bursts are random or not") };
            return (W::all(0), W::all(frames), W::all(0));
        };
        let counter = W::all(self.source << NUMBER_BITS);
        let [when, many] = threefry(self.key, [burst, counter]);
        let ticks = exponential(when).times_high(W::all(pause)).right(bits + UNIT_BITS - 32);
        let frames = exponential(many).times_high(W::all(factor)).right(shift).plus(W::all(1));
        let place = if self.flows > 1 {
            let [which, _] = threefry(self.key, [burst, counter.plus(W::all(1))]);
            which.times_high(W::all(self.flows))
        } else {
            W::all(0)
        };
        (ticks, frames, place)
    }

    /// Ticks from the last frame of a burst to the first of the next beside what is drawn, 32 fraction bits.
    pub(crate) fn between(&self) -> u64 {
        match self.rest {
            Rest::Random { .. } => self.gap,
            Rest::Fixed { period, frames } => period - (u64::from(frames) - 1) * self.gap,
        }
    }

    /// The burst after another.
    fn after(&self, opening: Opening) -> Opening {
        let (_, frames, _) = self.draw(opening.burst as u32);
        let burst = opening.burst + 1;
        let (pause, _, _) = self.draw(burst as u32);
        let own = u128::from(frames - 1) * u128::from(self.gap);
        let at = opening.at + own + u128::from(self.between()) + (u128::from(pause) << 32);
        Opening { burst, at, frames: opening.frames + u64::from(frames) }
    }

    /// The burst of the first frame at or after an instant, and how many frames of it come before.
    pub(crate) fn first_from(&self, instant: u64) -> (Opening, u32) {
        let opening = self.before(instant);
        let (_, frames, _) = self.draw(opening.burst as u32);
        let late = (u128::from(instant) << 32).saturating_sub(opening.at);
        let before = if late == 0 { 0 } else { late.div_ceil(u128::from(self.gap.max(1))) };
        // Frames that are due at once come before it together.
        if before >= u128::from(frames) { (self.after(opening), 0) } else { (opening, before as u32) }
    }

    /// The last burst that begins before an instant, or the first of all.
    pub(crate) fn before(&self, instant: u64) -> Opening {
        let mut kept = self.openings.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            let at = match self.rest {
                Rest::Random { .. } => u128::from(self.gap) + (u128::from(self.draw(0_u32).0) << 32),
                Rest::Fixed { .. } => 0,
            };
            kept.push(Opening { burst: 0, at, frames: 0 });
        }
        let instant = u128::from(instant) << 32;
        let mut opening = kept[kept.partition_point(|opening| opening.at < instant).max(1) - 1];
        loop {
            let next = self.after(opening);
            if next.at >= instant {
                return opening;
            }
            opening = next;
            if opening.burst > kept[kept.len() - 1].burst && opening.burst.is_multiple_of(KEPT) {
                kept.push(opening);
            }
        }
    }
}

/// A time with one rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Era {
    /// Its first instant, ticks.
    pub from: u64,
    /// Its first cell.
    pub cell: u64,
    /// Its mean gap.
    pub gap: u32,
}

impl Pace {
    /// Poisson arrivals of mean gaps in ticks, each from an instant on; the first from 0.
    ///
    /// A gap that is floored to ticks is geometric, of mean 1 / (exp(1 / m) - 1): m makes that the mean gap.
    pub(crate) fn poisson(gaps: &[(u64, f64)]) -> Option<Self> {
        let most = f64::from(1_u32 << 24);
        let parameters: Vec<f64> = gaps.iter().map(|gap| 1.0 / (1.0 / gap.1).ln_1p()).collect();
        if !parameters.iter().all(|parameter| (0.5..most).contains(parameter)) {
            return None;
        }
        let bits = 29 - parameters.iter().copied().fold(0.5, f64::max).log2().floor() as i32;
        let gap = |parameter: f64| (parameter * f64::from(bits).exp2()).round() as u32;
        let era = |(&(from, _), parameter)| Era { from, cell: 0, gap: gap(parameter) };
        let eras: Vec<Era> = gaps.iter().zip(parameters).map(era).collect();
        eras.iter().all(|era| era.gap >= LEAST_GAP).then_some(Self::Poisson { eras, bits: bits as u32 })
    }

    /// Bursts of frames that come `mean` ticks apart on average: of geometric numbers with a mean, `peak_ratio` times as
    /// fast, with exponential pauses between.
    pub(crate) fn on_off(
        mean: f64,
        frames: f64,
        peak_ratio: f64,
        (key, source, flows): (Key, u32, u32),
    ) -> Option<Self> {
        let pause = frames * (mean - mean / peak_ratio);
        let parameter = 1.0 / (1.0 / pause).ln_1p();
        // The number of frames is one more than the floor of an exponential of this mean.
        let exponentials = if frames > 1.0 { -1.0 / (-1.0 / frames).ln_1p() } else { 0.0 };
        let fits = (0.5..f64::from(1_u32 << 24)).contains(&parameter) && exponentials * 23.0 < MOST_IN_BURST;
        let bits = 29 - parameter.max(0.5).log2().floor() as i32;
        // An exponential has 27 fraction bits, and the upper half of the product is taken.
        let shift = (26 - exponentials.max(1.0).log2().floor() as i32).min(26);
        let rest = Rest::Random {
            pause: (parameter * f64::from(bits).exp2()).round() as u32,
            bits: bits as u32,
            factor: (exponentials * f64::from(shift + 5).exp2()).round() as u32,
            shift: shift as u32,
        };
        let gap = (mean / peak_ratio * 32.0_f64.exp2()) as u64;
        fits.then(|| {
            Self::Bursts(Bursts { gap, rest, key, source, flows, mean: mean as u32, openings: Arc::default() })
        })
    }

    /// Bursts of a number of frames that are due at once, at equal distances, of which frames come `mean` ticks apart on
    /// average.
    pub(crate) fn bursts(mean: f64, frames: u32, (key, source): (Key, u32)) -> Option<Self> {
        let period = mean * f64::from(frames);
        let fits = period < f64::from(1_u32 << 28) && (1.0..MOST_IN_BURST).contains(&f64::from(frames));
        let rest = Rest::Fixed { period: (period * 32.0_f64.exp2()) as u64, frames };
        let openings = Arc::default();
        fits.then_some(Self::Bursts(Bursts { gap: 0, rest, key, source, flows: 0, mean: mean as u32, openings }))
    }

    /// Ticks of the least and of the greatest mean gap.
    pub(crate) fn gap_ticks(&self) -> (u32, u32) {
        match self {
            Self::Poisson { eras, bits } => {
                let gaps = || eras.iter().map(|era| era.gap >> bits);
                (gaps().min().unwrap_or(0), gaps().max().unwrap_or(0))
            }
            Self::Even { gap, .. } => ((gap >> 32) as u32, (gap >> 32) as u32),
            Self::Bursts(bursts) => (bursts.mean, bursts.mean),
            Self::Recorded(recorded) => (recorded.mean, recorded.mean),
        }
    }

    /// Numbers the cells of 2^`cell_bits` ticks; the last one of an era is shorter.
    pub(crate) fn number_cells(&mut self, cell_bits: u32) {
        let Self::Poisson { eras, .. } = self else { return };
        let mut last = (0, 0);
        for era in eras.iter_mut() {
            era.cell = last.1 + (era.from - last.0).div_ceil(1 << cell_bits);
            last = (era.from, era.cell);
        }
    }
}

impl SourceProgram {
    fn eras(&self) -> &[Era] {
        match &self.pace {
            Pace::Poisson { eras, .. } => eras,
            Pace::Even { .. } | Pace::Bursts(_) | Pace::Recorded(_) => &[],
        }
    }

    /// The cell of Poisson arrivals that an instant lies in, and its beginning, ticks.
    pub(crate) fn cell_at(&self, at: u64, cell_bits: u32) -> (u64, u64) {
        let eras = self.eras();
        let era = eras[eras.partition_point(|era| era.from <= at) - 1];
        let cells = (at - era.from) >> cell_bits;
        (era.cell + cells, era.from + (cells << cell_bits))
    }

    /// The mean gap in each lane's cell of Poisson arrivals, and the low word of its end.
    pub(crate) fn cell<W: Word>(&self, cell: W, cell_bits: u32) -> (W, W) {
        let eras = self.eras();
        let (mut gap, mut end) = (W::all(0), W::all(0));
        for (number, era) in eras.iter().enumerate() {
            let (from, first) = (W::all(era.from as u32), W::all(era.cell as u32));
            let mut its_end = from.plus(cell.plus(W::all(1)).minus(first).left(cell_bits));
            if let Some(next) = eras.get(number + 1) {
                // The last cell of an era ends with it.
                let is_last = cell.equals(W::all(next.cell as u32 - 1));
                its_end = is_last.choose(W::all(next.from as u32), its_end);
            }
            let is_later = cell.below(first);
            gap = is_later.choose(gap, W::all(era.gap));
            end = is_later.choose(end, its_end);
        }
        (gap, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Purpose;

    fn bursts(frames: f64, peak_ratio: f64) -> Bursts {
        let key = Key::new(1, 0, Purpose::Burst);
        let pace = Pace::on_off(1500.0, frames, peak_ratio, (key, 3, 5));
        let Some(Pace::Bursts(bursts)) = pace else { panic!("they fit") };
        bursts
    }

    /// Mean, variance, and correlation with the draws after so many.
    fn moments(values: &[f64], lag: usize) -> (f64, f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let together = values.iter().zip(&values[lag..]).map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>();
        (mean, variance, together / count / variance)
    }

    #[test]
    fn pauses_are_exponential_and_numbers_of_frames_geometric() {
        const DRAWS: u32 = 400_000;
        for frames in [1.5, 8.0, 300.0] {
            let bursts = bursts(frames, 3.0);
            let drawn: Vec<_> = (0..DRAWS).map(|burst| bursts.draw(burst)).collect();
            let pauses: Vec<f64> = drawn.iter().map(|draw| f64::from(draw.0)).collect();
            let counts: Vec<f64> = drawn.iter().map(|draw| f64::from(draw.1)).collect();
            let (pause, stop) = (frames * 1000.0, 1.0 / frames);
            let error = 4.0 / f64::from(DRAWS).sqrt();
            for lag in [1, 2, 64] {
                let (mean, variance, correlation) = moments(&pauses, lag);
                assert!((mean / pause - 1.0).abs() < error, "{frames}: pauses of {mean}");
                assert!((variance / pause.powi(2) - 1.0).abs() < 3.0 * error, "{frames}: {variance}");
                assert!(correlation.abs() < error, "{frames}, {lag}: {correlation}");
                let (mean, variance, correlation) = moments(&counts, lag);
                assert!((mean / frames - 1.0).abs() < error, "{frames}: {mean} frames");
                let exact = (1.0 - stop) / stop.powi(2);
                assert!((variance / exact - 1.0).abs() < 5.0 * error, "{frames}: {variance} for {exact}");
                assert!(correlation.abs() < error, "{frames}, {lag}: {correlation}");
            }
            let longer = counts.iter().filter(|&&count| count > (5.0 * frames).floor()).count();
            let exact = (1.0 - stop).powi((5.0 * frames).floor() as i32) * f64::from(DRAWS);
            assert!((longer as f64 - exact).abs() < 4.0 * exact.sqrt() + 1.0, "{frames}: {longer} for {exact}");
            for flow in 0..5 {
                let share = drawn.iter().filter(|draw| draw.2 == flow).count() as f64 / f64::from(DRAWS);
                assert!((share - 0.2).abs() < error, "{flow}: {share}");
            }
        }
    }

    #[test]
    fn a_burst_is_found_from_any_instant_and_in_any_order() {
        let (one, other) = (bursts(6.0, 2.0), bursts(6.0, 2.0));
        let instants = [0, 1, 90_000_000, 500, 700_000_000, 20_000];
        let found: Vec<_> = instants.iter().map(|&instant| one.first_from(instant)).collect();
        for (&instant, (opening, before)) in instants.iter().zip(found).rev() {
            let (same, as_many) = other.first_from(instant);
            assert_eq!(
                (opening.burst, opening.at, opening.frames, before),
                (same.burst, same.at, same.frames, as_many)
            );
            let at = opening.at + u128::from(before) * u128::from(one.gap);
            assert!(at >= u128::from(instant) << 32, "{instant}");
            // The rate is that of the mean: a frame each 1,500 ticks, within 3.3 standard errors.
            let (frames, exact) = (opening.frames as f64, instant as f64 / 1500.0);
            assert!((frames - exact).abs() < 3.3 * (exact * 11.0 * 0.25).sqrt() + 20.0, "{instant}: {frames}");
        }
    }
}
