//! Lanes on a graphics processor: the step's own description as a shader, and a device that runs it.
//!
//! What runs there is written down from the step itself ([`crate::tape`]), so there is no second one. The state of each lane
//! is kept on the device from window to window; what was counted is read where a window ends, and the rings only where a
//! segment begins or ends, for the proof of its seam.

use std::ops::{ControlFlow, Range};

use crate::program::{Program, STRETCH_BITS};
use crate::router::Refusal;
use crate::segments::{Cut, Segment};
use crate::shader::{self, Part, Shader};
use crate::state::Lanes;
use crate::tally::{BINS, Histograms};
use crate::tape::{self, Traced};

/// Histograms of each part: latencies and waits.
const HISTOGRAMS: usize = 2;

/// The shader of a program, and how large what it works on is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Takes every lane towards its last stop, by a bounded number of events.
    pub text: String,
    /// Words of a lane's state; the last is the stop that it goes to.
    pub words: usize,
    /// Words of a lane's rings.
    pub memory: usize,
    /// Tables of the program.
    pub tables: Vec<u32>,
    /// Constants of the program that the text asks for, by fours: routers that differ in no more have one text.
    pub constants: Vec<u32>,
    /// Words of the histograms of a part.
    pub bins: usize,
    /// The words of the state that are counts.
    counts: Range<usize>,
    /// The word of the state that is the instant at which a lane stops, and that of lanes that are given up.
    end: usize,
    given_up: usize,
}

/// What lanes work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Lanes.
    pub lanes: usize,
    /// Words of state of each.
    pub words: usize,
    /// Words of rings of each.
    pub memory: usize,
    /// Words of histograms, all together.
    pub bins: usize,
    /// Words of counts, all together.
    pub counts: usize,
}

/// How far lanes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    /// Lanes that are not at their last stops yet.
    pub lanes: u32,
    /// Stops that are before them, all together.
    pub stops: u32,
}

/// What runs kernels.
///
/// Words of lanes lie side by side: word `w` of lane `l` is at `w * lanes + l`. An error is a sentence: the device is given
/// up, and what it had to do is done by the processor.
pub trait Device: Sync {
    /// Whether it has 64-bit integers.
    fn has_u64(&self) -> bool;
    /// The most lanes it takes with so many words of state and of rings each.
    ///
    /// # Errors
    ///
    /// The device is lost.
    fn most_lanes(&self, words: usize, memory: usize) -> Result<usize, String>;
    /// Gets ready, all words zero.
    ///
    /// # Errors
    ///
    /// The device is lost, or refuses.
    fn open(&self, kernel: &Kernel, sizes: Sizes) -> Result<(), String>;
    /// Writes all words of state, of rings where they are given, and the stops of the lanes.
    ///
    /// # Errors
    ///
    /// The device is lost.
    fn write(&self, words: &[u32], memory: Option<&[u32]>, stops: &[u32]) -> Result<(), String>;
    /// Takes all lanes towards their last stops, for half a second at most; returns how far they are.
    ///
    /// # Errors
    ///
    /// The device is lost.
    fn step(&self) -> Result<Going, String>;
    /// Reads all words of state and of rings.
    ///
    /// # Errors
    ///
    /// The device is lost.
    fn read(&self, words: &mut [u32], memory: &mut [u32]) -> Result<(), String>;
    /// Reads the counts of all slots.
    ///
    /// # Errors
    ///
    /// The device is lost.
    fn read_counts(&self, counts: &mut [u32]) -> Result<(), String>;
    /// Reads the histograms of all parts, as sums, and starts again from zero.
    ///
    /// # Errors
    ///
    /// The device is lost.
    fn take_bins(&self, bins: &mut [u64]) -> Result<(), String>;
}

impl Kernel {
    /// The kernel of a program.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: a device has no place for a part of the router.
    ///
    /// # Panics
    ///
    /// Never: a step says whether it went on.
    pub fn new(program: &Program, has_u64: bool) -> Result<Self, Refusal> {
        program.fits_device()?;
        let (step, mut settle) = (Written::step(program), Written::settle(program));
        let mut memory = 0;
        let lists: Vec<(u32, u32)> = step
            .lists
            .iter()
            .map(|&length| {
                memory += length;
                (memory - length, length)
            })
            .collect();
        // Tables of the second follow those of the first.
        let mut tables = step.tape.tables.clone();
        for place in &mut settle.tape.table_at {
            place.0 += tables.len() as u32;
        }
        tables.extend(&settle.tape.tables);
        let mut constants = Vec::new();
        let numbers = [&step, &settle].map(|written| shader::hand_over(&written.tape, &mut constants));
        constants.resize(constants.len().next_multiple_of(4).max(4), 0);
        let bins = BINS as u32 + 1;
        let words = step.words.len();
        let Named { end, given_up, counts } = Named::of(program);
        let shader = Shader {
            step: step.part('v', &lists, bins, &numbers[0]),
            settle: settle.part('w', &lists, bins, &numbers[1]),
            constants: constants.len() / 4,
            goes_on: step.goes_on.expect("a step says whether it went on"),
            end,
            counts: counts..words,
            histograms: HISTOGRAMS as u32,
            has_u64,
        };
        Ok(Self {
            text: shader.text(),
            words: words + 1,
            memory: memory as usize,
            tables,
            constants,
            bins: HISTOGRAMS * (BINS + 1),
            counts: counts..words,
            end,
            given_up,
        })
    }
}

/// Where some words of the state stand.
struct Named {
    end: usize,
    given_up: usize,
    /// The first of the counts, behind which there are only counts.
    counts: usize,
}

impl Named {
    fn of(program: &Program) -> Self {
        let mut lanes = Lanes::<u32>::blank(program);
        let all = lanes.words().len();
        let counts = all - lanes.counts.all_words().len();
        // Words are told apart by what is written into them.
        (lanes.end, lanes.given_up) = (1, 2);
        let words: Vec<u32> = lanes.words().into_iter().map(|word| *word).collect();
        let place = |mark| words.iter().position(|&word| word == mark).expect("all words are listed");
        Self { end: place(1), given_up: place(2), counts }
    }
}

/// What a closure does with lanes, written down.
pub(crate) struct Written {
    pub tape: tape::Tape,
    pub words: Vec<Traced>,
    /// The mask of lanes that had not come to their ends.
    pub goes_on: Option<Traced>,
    /// Words of each list.
    pub lists: Vec<u32>,
}

impl Written {
    fn part<'a>(&'a self, letter: char, lists: &'a [(u32, u32)], bins: u32, numbers: &'a [usize]) -> Part<'a> {
        Part { tape: &self.tape, words: &self.words, letter, lists, bins, numbers }
    }

    pub(crate) fn step(program: &Program) -> Self {
        Self::new(program, |lanes| Some(lanes.step(program)))
    }

    pub(crate) fn settle(program: &Program) -> Self {
        Self::new(program, |lanes| {
            lanes.settle(program);
            None
        })
    }

    fn new(program: &Program, what: impl FnOnce(&mut Lanes<Traced>) -> Option<Traced>) -> Self {
        let ((words, goes_on, lists), tape) = tape::written(|| {
            let mut lanes = Lanes::<Traced>::blank(program);
            for (number, word) in lanes.words().into_iter().enumerate() {
                *word = tape::state(number);
            }
            let lists = lanes.lists().map(|list| list.len() as u32).to_vec();
            let histograms = [lanes.counts.latencies.as_slice(), lanes.counts.waits.as_slice()];
            tape::know(
                &[&lanes.came, &lanes.kinds, &lanes.reached, &lanes.waited, &lanes.starts].map(Vec::as_slice),
                &histograms,
            );
            let goes_on = what(&mut lanes);
            (lanes.words().into_iter().map(|word| *word).collect(), goes_on, lists)
        });
        Self { tape, words, goes_on, lists }
    }
}

/// Why a device did not come to the end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody stopped it.
    Interrupted,
    /// A sentence: the device is lost, or a lane was given up.
    GivenUp(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::GivenUp(why)
    }
}

/// What runs on a device, and who is told of it.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub device: &'a dyn Device,
    pub kernel: &'a Kernel,
    /// Receives the finished share of these segments, and may stop them.
    pub report: &'a dyn Fn(f64) -> ControlFlow<()>,
}

/// A stop of a lane: where it settles, the slot for its counts, and the part whose histograms it counts in on the way.
type Stop3 = [u32; 3];

/// Lanes whose state is on a device.
pub(crate) struct DeviceLanes<'a> {
    job: Job<'a>,
    count: usize,
    words: Vec<u32>,
    memory: Vec<u32>,
    scratch: Lanes<u32>,
}

impl<'a> DeviceLanes<'a> {
    /// Runs segments, given by their windows, side by side; returns them, and the histograms of all parts.
    ///
    /// # Errors
    ///
    /// See [`Stop`].
    pub(crate) fn run(
        job: Job<'a>,
        program: &Program,
        cut: &Cut,
        spans: &[(usize, usize)],
    ) -> Result<(Vec<Segment>, Vec<Histograms>), Stop> {
        let Job { device, kernel, .. } = job;
        let parts = cut.part_of.last().map_or(0, |last| last + 1);
        let first = spans.first().map_or(0, |span| span.0);
        let slots = spans.last().map_or(0, |span| span.1) - first;
        let counts = kernel.counts.len();
        let sizes = Sizes {
            lanes: spans.len(),
            words: kernel.words,
            memory: kernel.memory,
            // What a warm-up counts goes to one part more.
            bins: kernel.bins * (parts + 1),
            counts: counts * slots,
        };
        device.open(kernel, sizes)?;
        let mut lanes = Self {
            job,
            count: spans.len(),
            words: vec![0; kernel.words * spans.len()],
            memory: vec![0; kernel.memory * spans.len()],
            scratch: Lanes::blank(program),
        };
        let starts = cut.starts(program, spans);
        for (lane, (&start, span)) in starts.iter().zip(spans).enumerate() {
            lanes.scratch = cut.lane(program, start, *span);
            lanes.store(lane, true);
        }
        let warm_up = |(&start, span): (&u64, &(usize, usize))| stops(start, cut.windows[span.0], NO_SLOT, parts);
        let ticks = |from: u64, to: u64| to.saturating_sub(from) as f64;
        let warm: f64 = starts.iter().zip(spans).map(|(&start, span)| ticks(start, cut.windows[span.0])).sum();
        let counted: f64 = spans.iter().map(|span| ticks(cut.windows[span.0], cut.windows[span.1])).sum();
        let warmed_up = warm / (warm + counted);
        lanes.go(starts.iter().zip(spans).map(warm_up).collect(), true, 0.0..warmed_up)?;
        let mut segments = Vec::with_capacity(spans.len());
        for lane in 0..spans.len() {
            lanes.load(lane);
            lanes.scratch.counts.take(0);
            segments.push(Segment::from(lanes.scratch.state(program, 0)));
            lanes.store(lane, false);
        }
        let windows = |span: &(usize, usize)| {
            let stop = |window: usize| {
                stops(cut.windows[window], cut.windows[window + 1], (window - first) as u32, cut.part_of[window])
            };
            (span.0..span.1).flat_map(stop).collect()
        };
        lanes.go(spans.iter().map(windows).collect(), false, warmed_up..1.0)?;
        let mut counted = vec![0; sizes.counts];
        device.read_counts(&mut counted)?;
        for (lane, (span, segment)) in spans.iter().zip(&mut segments).enumerate() {
            lanes.load(lane);
            segment.end = lanes.scratch.state(program, 0);
            for window in span.0..span.1 {
                let slot = &counted[(window - first) * counts..][..counts];
                lanes.scratch.counts.all_words().into_iter().zip(slot).for_each(|(word, counted)| *word = *counted);
                segment.windows.push(lanes.scratch.counts.take(0));
            }
        }
        let mut bins = vec![0; sizes.bins];
        device.take_bins(&mut bins)?;
        let parts = bins
            .chunks(kernel.bins)
            .take(parts)
            .map(|bins| Histograms { latencies: bins[..BINS].to_vec(), waits: bins[BINS + 1..][..BINS].to_vec() });
        Ok((segments, parts.collect()))
    }

    /// Takes lanes through their stops; `done` is the finished share before and after.
    fn go(&mut self, mut of_lanes: Vec<Vec<Stop3>>, is_new: bool, done: Range<f64>) -> Result<(), Stop> {
        let Job { device, kernel, report } = self.job;
        let longest = of_lanes.iter().map(Vec::len).max().unwrap_or(0);
        // A lane with fewer stops than others begins later in the list.
        let mut list = vec![0; 3 * longest * self.count];
        for (lane, stops) in of_lanes.iter_mut().enumerate() {
            let late = longest - stops.len();
            self.words[(kernel.words - 1) * self.count + lane] = late as u32;
            for (number, stop) in stops.iter().enumerate() {
                for (word, value) in stop.iter().enumerate() {
                    list[(3 * (late + number) + word) * self.count + lane] = *value;
                }
            }
        }
        device.write(&self.words, is_new.then_some(self.memory.as_slice()), &list)?;
        let stops = (longest * self.count) as f64;
        let mut going = Going { lanes: if longest == 0 { 0 } else { self.count as u32 }, stops: stops as u32 };
        while going.lanes > 0 {
            let share = 1.0 - f64::from(going.stops) / stops;
            if report(done.start + (done.end - done.start) * share.max(0.0)).is_break() {
                return Err(Stop::Interrupted);
            }
            going = device.step()?;
        }
        device.read(&mut self.words, &mut self.memory)?;
        if self.words[kernel.given_up * self.count..][..self.count].iter().any(|&word| word != 0) {
            return Err(Stop::GivenUp("a draw took more rounds than a shader goes".into()));
        }
        Ok(())
    }

    /// Copies a lane to the scratch.
    fn load(&mut self, lane: usize) {
        let count = self.count;
        for (number, word) in self.scratch.words().into_iter().enumerate() {
            *word = self.words[number * count + lane];
        }
        let places = self.scratch.lists().into_iter().flatten();
        places.enumerate().for_each(|(number, place)| *place = self.memory[number * count + lane]);
    }

    /// Copies the scratch to a lane.
    fn store(&mut self, lane: usize, with_rings: bool) {
        let count = self.count;
        for (number, word) in self.scratch.words().into_iter().enumerate() {
            self.words[number * count + lane] = *word;
        }
        if with_rings {
            let places = self.scratch.lists().into_iter().flatten();
            places.enumerate().for_each(|(number, place)| self.memory[number * count + lane] = *place);
        }
    }
}

const NO_SLOT: u32 = u32::MAX;

/// The stops from an instant to another, in stretches that a clock can hold; the counts go to the slot at the last.
fn stops(from: u64, to: u64, slot: u32, part: usize) -> Vec<Stop3> {
    let mut at = from;
    let mut stops = Vec::new();
    while at < to {
        at = to.min(at + (1 << STRETCH_BITS));
        stops.push([at as u32, if at == to { slot } else { NO_SLOT }, part as u32]);
    }
    stops
}
