//! The receiver in XDP: `bpf/receive.bpf.c` judges, counts and drops test frames before the network stack sees them.

mod layout;

use aya::maps::{Array, MapData, PerCpuArray, PerCpuValues};
use serde_json::{Value, json};

use crate::error::{Result, TesterError};
use crate::frame::{FCS_BYTES, MAX_FRAME_BYTES, SIGNATURE_BYTES, pattern_sum};
use crate::parts::{self, Grid};
use crate::port::{Expected, ReceiveReport, Received, Receiver};
use crate::programs::{Loaded, Mode, map_error};
use crate::request::MOST_STREAMS;
use crate::sys::interface::Interface;
use crate::sys::mapping::Mapping;
use crate::sys::netns;

use layout::{Expectation, Flow, Others, Tally};

/// The pattern behind the signature is read in one of 16 frames: reading it in all of them took 65 ns of the core for
/// 1518 B, which would slow down a device on the same core. Headers and signature are checked in every frame.
const CHECK_BELOW: u32 = 1 << 28;

/// Most frames of a trial at one port: their bitmap takes 512 MiB.
const MOST_FRAMES: u64 = 1 << 32;

/// The receiver of one interface. The program is detached when this is dropped or its process ends.
pub struct Sink {
    interface: Interface,
    netns: Option<String>,
    mode: Mode,
    several: bool,
    expected: Vec<Expected>,
    /// The share of the frames in which the pattern is read, times 2^32.
    check_below: u32,
    maps: Maps,
    /// Holds the program at the interface.
    loaded: Loaded,
}

struct Maps {
    expectation: Array<MapData, Expectation>,
    tallies: PerCpuArray<MapData, Tally>,
    others: PerCpuArray<MapData, Others>,
    bitmap: Mapping<u64>,
    flows: Mapping<Flow>,
    parts: Mapping<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Room {
    words: usize,
    flows: usize,
}

fn refused(error: &(dyn std::error::Error + 'static)) -> TesterError {
    map_error("reading or writing a map of the receiving program", error)
}

impl Sink {
    /// Attaches the receiver to an interface.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn open(interface: Interface, netns: Option<String>) -> Result<Self> {
        Self::with_room(interface, netns, Room { words: 1 << 20, flows: 1 << 12 })
    }

    fn with_room(interface: Interface, netns: Option<String>, room: Room) -> Result<Self> {
        // One queue of a driver is served by one core at a time.
        let mut several = interface.receive_queues != 1;
        let (loaded, maps, mode) = loop {
            let (mut loaded, maps) = Self::load(room, several)?;
            let mode = netns::inside(netns.as_deref(), || loaded.attach(interface.index, &interface.name))?;
            if mode == Mode::Driver || several {
                break (loaded, maps, mode);
            }
            several = true;
        };
        Ok(Self { interface, netns, mode, several, expected: Vec::new(), check_below: CHECK_BELOW, maps, loaded })
    }

    fn load(room: Room, several: bool) -> Result<(Loaded, Maps)> {
        let constant = u8::from(several);
        let mut loaded = Loaded::new("receive", |loader| {
            loader
                .map_max_entries("bitmap", room.words as u32)
                .map_max_entries("flows", room.flows as u32)
                .override_global("several", &constant, true);
        })?;
        let maps = Maps {
            bitmap: Mapping::new(loaded.array_fd("bitmap"), room.words)?,
            flows: Mapping::new(loaded.array_fd("flows"), room.flows)?,
            parts: Mapping::new(loaded.array_fd("parts"), MOST_STREAMS * parts::ROOM)?,
            expectation: Array::try_from(loaded.take_map("expectation")).map_err(|error| refused(&error))?,
            tallies: PerCpuArray::try_from(loaded.take_map("tallies")).map_err(|error| refused(&error))?,
            others: PerCpuArray::try_from(loaded.take_map("others")).map_err(|error| refused(&error))?,
        };
        let sums = Mapping::<u64>::new(loaded.array_fd("pattern_sums"), MAX_FRAME_BYTES.into())?;
        // IPv4's overhead; the bytes after the signature depend only on their number.
        let smallest = (FCS_BYTES + 42 + SIGNATURE_BYTES) as u16;
        for bytes in smallest..MAX_FRAME_BYTES {
            sums.set(usize::from(bytes - smallest), pattern_sum(bytes, 42).to_be().into());
        }
        Ok((loaded, maps))
    }

    fn tallies(&self, stream: u8) -> Result<PerCpuValues<Tally>> {
        self.maps.tallies.get(&u32::from(stream), 0).map_err(|error| refused(&error))
    }

    fn others(&self) -> Result<Others> {
        let cores = self.maps.others.get(&0, 0).map_err(|error| refused(&error))?;
        Ok(cores.iter().fold(Others::default(), |sum, core| Others {
            foreign: sum.foreign + core.foreign,
            stale: sum.stale + core.stale,
            misrouted: sum.misrouted + core.misrouted,
        }))
    }

    fn received(&self, expected: &Expected, at: layout::Expected) -> Result<Received> {
        let cores = self.tallies(expected.stream)?;
        let sum = |of: fn(&Tally) -> u64| cores.iter().map(of).sum::<u64>();
        let busy = || cores.iter().filter(|core| core.frames > 0);
        let longest = busy().max_by_key(|core| core.longest_gap);
        let words = at.first_word as usize..at.first_word as usize + (expected.frames as usize).div_ceil(64);
        Ok(Received {
            stream: expected.stream,
            frames: sum(|core| core.frames),
            bytes: sum(|core| core.bytes),
            duplicated: sum(|core| core.duplicated),
            reordered: sum(|core| core.reordered),
            corrupted: sum(|core| core.corrupted),
            bitmap: words.map(|word| self.maps.bitmap.get(word)).collect(),
            flows: (at.first_flow..at.first_flow + at.flows)
                .map(|flow| u64::from(self.maps.flows.get(flow as usize).received))
                .collect(),
            latency: layout::merge(&cores, |core| &core.latency),
            ipdv: layout::merge(&cores, |core| &core.ipdv),
            first_ns: busy().map(|core| core.first).min().unwrap_or(0),
            last_ns: busy().map(|core| core.last).max().unwrap_or(0),
            longest_gap_ns: longest.map_or(0, |core| core.longest_gap),
            longest_gap_at_ns: longest.map_or(0, |core| core.longest_gap_at),
            parts: self.parts(expected.stream, &cores),
        })
    }

    /// Frames by part: what the program has added, and what each core has counted since.
    fn parts(&self, stream: u8, cores: &[Tally]) -> Vec<u64> {
        let first = usize::from(stream) * parts::ROOM;
        let mut counts: Vec<u64> = (first..first + parts::ROOM).map(|at| self.maps.parts.get(at)).collect();
        for core in cores {
            counts[core.part as usize] += core.frames - core.parted;
        }
        counts
    }
}

/// The ranges of each stream's bits and flows in the maps, and their totals.
fn places(expected: &[Expected]) -> (Vec<layout::Expected>, Room) {
    let mut room = Room { words: 0, flows: 0 };
    let layout_of = |stream: &Expected| {
        let place = layout::Expected {
            frames: u32::try_from(stream.frames).unwrap_or(u32::MAX),
            first_word: room.words as u32,
            first_flow: room.flows as u32,
            flows: stream.flows,
        };
        room.words += (stream.frames as usize).div_ceil(64);
        room.flows += stream.flows as usize;
        place
    };
    (expected.iter().map(layout_of).collect(), room)
}

impl Receiver for Sink {
    fn facts(&self) -> Value {
        json!({
            "back_end": "xdp",
            "mode": self.mode,
            "interface": self.interface,
            "cores": if self.several { "several" } else { "one at a time" },
            "checked": "lengths and checksums of every frame, the pattern in one of 16",
            "timestamps": "software, CLOCK_MONOTONIC at the start of the XDP program",
        })
    }

    fn reset(&mut self, trial: u8, expected: &[Expected]) -> Result<()> {
        let frames: u64 = expected.iter().map(|stream| stream.frames).sum();
        if frames > MOST_FRAMES {
            let allowed = format!("at most {MOST_FRAMES} frames to one port; shorten the trial or lower the rate");
            return Err(TesterError::value("frames", frames, allowed));
        }
        let (at, needed) = places(expected);
        if needed.words > self.maps.bitmap.len() || needed.flows > self.maps.flows.len() {
            let room = Room {
                words: needed.words.next_power_of_two().max(self.maps.bitmap.len()),
                flows: needed.flows.next_power_of_two().max(self.maps.flows.len()),
            };
            let (interface, netns) = (self.interface.clone(), self.netns.clone());
            self.loaded.detach()?;
            *self = Self::with_room(interface, netns, room)?;
        }
        // While the memory is cleared, no frame is expected, so late frames of the previous trial are not counted.
        let mut expectation =
            Expectation { trial: u32::from(trial), check_below: self.check_below, ..Expectation::default() };
        self.maps.expectation.set(0, expectation, 0).map_err(|error| refused(&error))?;
        let cores = aya::util::nr_cpus().map_err(|(_, error)| refused(&error))?;
        let zeroed = |values: Vec<Tally>| PerCpuValues::try_from(values);
        for stream in expected {
            let zero = zeroed(vec![Tally::ZERO; cores]).map_err(|error| refused(&error))?;
            self.maps.tallies.set(u32::from(stream.stream), zero, 0).map_err(|error| refused(&error))?;
        }
        let zero = PerCpuValues::try_from(vec![Others::default(); cores]).map_err(|error| refused(&error))?;
        self.maps.others.set(0, zero, 0).map_err(|error| refused(&error))?;
        self.maps.bitmap.clear(needed.words);
        self.maps.flows.clear(needed.flows);
        self.maps.parts.clear(self.maps.parts.len());
        for (stream, at) in expected.iter().zip(at) {
            expectation.streams[usize::from(stream.stream)] = at;
        }
        self.maps.expectation.set(0, expectation, 0).map_err(|error| refused(&error))?;
        self.expected = expected.to_vec();
        Ok(())
    }

    fn begins(&mut self, grid: Grid) -> Result<()> {
        let mut expectation = self.maps.expectation.get(&0, 0).map_err(|error| refused(&error))?;
        (expectation.begin, expectation.part_ticks) = (grid.begin_ns, grid.part_ticks);
        self.maps.expectation.set(0, expectation, 0).map_err(|error| refused(&error))
    }

    fn seen(&self) -> Result<u64> {
        let others = self.others()?;
        let mut seen = others.foreign + others.stale + others.misrouted;
        for stream in &self.expected {
            seen += self.tallies(stream.stream)?.iter().map(Tally::seen).sum::<u64>();
        }
        Ok(seen)
    }

    fn collect(&mut self) -> Result<ReceiveReport> {
        let others = self.others()?;
        let (at, _) = places(&self.expected);
        let streams = self.expected.iter().zip(at).map(|(expected, at)| self.received(expected, at));
        Ok(ReceiveReport {
            streams: streams.collect::<Result<_>>()?,
            foreign: others.foreign,
            stale: others.stale,
            misrouted: others.misrouted,
            overrun: 0,
        })
    }
}

#[cfg(test)]
mod tests;
