//! Frames built and paced in the kernel: `BPF_PROG_TEST_RUN` with live frames runs `bpf/generate.bpf.c` once per frame.
//!
//! One call sends a whole trial, because each call costs more than 10 ms of its own. The program waits until a frame is
//! due, writes it and redirects it to its port; the ports may be in different network namespaces. The kernel hands
//! frames over a *batch* at a time: one frame up to [`BATCHED_FROM_PPS`], above that as few as keep up.

mod layout;

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aya::maps::DevMap;
use serde_json::{Value, json};

use crate::error::{Result, TesterError};
use crate::frame::{FCS_BYTES, pattern};
use crate::plan::{Plan, Segment, Slot, TICKS_PER_NS};
use crate::port::{Control, SendReport, Sender, Sending, Sent};
use crate::programs::{Loaded, map_error};
use crate::request::MOST_STREAMS;
use crate::sys::mapping::Mapping;
use crate::sys::thread::Thread;
use crate::sys::{netns, test_run};

use layout::{Flow, Generator, Stream};

/// The lowest rate, frames/s: the program holds its core between frames, so another back end sends rarer ones.
const LEAST_PPS: f64 = 1_000.0;
/// Frames are handed over one by one below this rate.
pub const BATCHED_FROM_PPS: f64 = 1.5e6;
/// Batch sizes, by the rate from which they apply.
const BATCHES: [(f64, u32); 2] = [(3e6, 16), (BATCHED_FROM_PPS, 8)];
/// Octets of a frame, without FCS, that fit in the kernel's page beside its own headers.
pub const LONGEST_OCTETS: u16 = 3_400;
/// A frame is late beyond this, and beyond the time of a batch.
const LATE_NS: f64 = 10_000.0;
/// How long a trial may go on after its end to send frames that are due, ns.
const OVERTIME_NS: u64 = 2_000_000;
/// Lateness that is caught up at once; a longer one would be a burst at the device.
const HARDLY_LATE_NS: u64 = 16_000;
/// Streams of this length or more, 10 ms, catch up after a stall gradually.
const LEAST_PACED_TICKS: u64 = 10_000_000 << 16;

/// The interface of a port.
#[derive(Debug, Clone)]
pub struct Place {
    /// Index in the configuration.
    pub port: usize,
    /// Index of the interface in its namespace.
    pub index: u32,
    /// Longest datagram, bytes.
    pub mtu: u32,
    /// Path of its namespace.
    pub netns: Option<String>,
}

/// The back end.
#[derive(Debug)]
pub struct Live {
    loaded: Loaded,
    generator: Arc<Mapping<Generator>>,
    slots: Mapping<Slot>,
    segments: Mapping<Segment>,
    flows: Mapping<Flow>,
    places: Vec<Place>,
}

/// Room of the tables; they grow when a trial needs more.
#[derive(Debug, Clone, Copy)]
struct Room {
    slots: usize,
    segments: usize,
    flows: usize,
}

impl Live {
    /// Loads the generator and gives it its ports.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program or a port.
    pub fn new(places: Vec<Place>) -> Result<Self> {
        Self::with_room(places, Room { slots: 4096, segments: 64, flows: 1024 })
    }

    fn with_room(places: Vec<Place>, room: Room) -> Result<Self> {
        let mut loaded = Loaded::new("generate", |loader| {
            loader
                .map_max_entries("slots", room.slots as u32)
                .map_max_entries("segments", room.segments as u32)
                .map_max_entries("flows", room.flows as u32);
        })?;
        for port in &places {
            let map = loaded.map_mut("ports");
            // A device map takes the device that has this index where the caller is.
            netns::inside(port.netns.as_deref(), || {
                let failed =
                    |error: &(dyn std::error::Error + 'static)| map_error("giving the generator its port", error);
                let mut ports = DevMap::try_from(map).map_err(|error| failed(&error))?;
                ports.set(port.port as u32, port.index, None, 0).map_err(|error| failed(&error))
            })?;
        }
        Ok(Self {
            generator: Arc::new(Mapping::new(loaded.array_fd("generator"), 1)?),
            slots: Mapping::new(loaded.array_fd("slots"), room.slots)?,
            segments: Mapping::new(loaded.array_fd("segments"), room.segments)?,
            flows: Mapping::new(loaded.array_fd("flows"), room.flows)?,
            loaded,
            places,
        })
    }

    fn check_mtu(&self, streams: &[Sending<'_>]) -> Result<()> {
        for stream in streams {
            // The MTU counts neither the Ethernet header nor the FCS.
            let port = self.places.iter().find(|port| port.port == stream.port);
            let most = port.map_or(u32::MAX, |port| port.mtu + 18);
            let longest = stream.plan.slots().iter().map(|slot| u32::from(slot.bytes)).max().unwrap_or(0);
            if longest > most {
                let allowed = format!("at most {most} B with FCS: the MTU of the interface is {} B", most - 18);
                return Err(TesterError::value(format!("streams[{}].sizes", stream.stream), longest, allowed));
            }
        }
        Ok(())
    }

    fn make_room(&mut self, streams: &[Sending<'_>]) -> Result<()> {
        let sum = |of: &dyn Fn(&Sending<'_>) -> usize| streams.iter().map(of).sum::<usize>().next_power_of_two();
        let room = Room {
            slots: sum(&|stream| stream.plan.slots().len()).max(self.slots.len()),
            segments: sum(&|stream| stream.plan.segments().len()).max(self.segments.len()),
            flows: sum(&|stream| stream.templates.flows.len()).max(self.flows.len()),
        };
        if room.slots > self.slots.len() || room.segments > self.segments.len() || room.flows > self.flows.len() {
            *self = Self::with_room(std::mem::take(&mut self.places), room)?;
        }
        Ok(())
    }

    /// Writes the tables of all streams and the first frame of each.
    fn fill(&self, streams: &[Sending<'_>], work: &mut Generator) {
        let (mut slots, mut segments, mut flows) = (0, 0, 0);
        for (stream, to) in streams.iter().zip(&mut work.stream) {
            let plan = stream.plan;
            *to = Stream {
                frames: plan.warmup_frames() + plan.frames(),
                warmup: plan.warmup_frames(),
                late_after: late_after_ns(stream, work.batch),
                hardly_late: if is_burst(stream) { u64::MAX } else { HARDLY_LATE_NS },
                port: stream.port as u32,
                number: u32::from(stream.stream),
                first_segment: segments as u32,
                segments: plan.segments().len() as u32,
                first_slot: slots as u32,
                cycle: plan.cycle() as u32,
                first_flow: flows as u32,
                due: u64::MAX,
                next_segment: plan.segments().get(1).map_or(u64::MAX, |next| next.first_frame),
                ..Stream::default()
            };
            if let (Some(first), true) = (plan.segments().first(), to.frames > 0) {
                (to.due, to.table, to.position) = (first.first_due, first.table, first.position);
                work.unfinished += 1;
            }
            for &slot in plan.slots() {
                self.slots.set(slots, layout::slot(slot));
                slots += 1;
            }
            for &segment in plan.segments() {
                self.segments.set(segments, segment);
                segments += 1;
            }
            for template in &stream.templates.flows {
                self.flows.set(flows, Flow::from(template));
                flows += 1;
            }
        }
    }

    fn report(&self, streams: usize) -> SendReport {
        let work = self.generator.get(0);
        let sent = |stream: &Stream| Sent {
            frames: stream.sent,
            first_ns: stream.first,
            last_ns: stream.last,
            late_frames: stream.late,
            latest_ns: stream.latest,
        };
        SendReport {
            start_ns: work.start,
            streams: work.stream[..streams].iter().map(sent).collect(),
            batch: work.batch,
            refused: 0,
        }
    }
}

/// The longest frame of a plan, without FCS.
#[must_use]
pub fn longest_octets(plan: &Plan) -> u16 {
    plan.slots().iter().map(|slot| slot.bytes - FCS_BYTES as u16).max().unwrap_or(60)
}

/// Whether the stream is too short to catch up gradually after a stall: it keeps its mean rate instead.
fn is_burst(stream: &Sending<'_>) -> bool {
    stream.plan.end().saturating_sub(stream.plan.start()) < LEAST_PACED_TICKS
}

fn late_after_ns(stream: &Sending<'_>, batch: u32) -> u64 {
    let plan = stream.plan;
    let span_ns = (plan.end() - plan.start()) as f64 / TICKS_PER_NS as f64;
    let gap_ns = span_ns / plan.frames().max(1) as f64;
    LATE_NS.max(gap_ns * f64::from(batch)) as u64
}

/// Frames handed over together at such a rate.
fn batch(streams: &[Sending<'_>]) -> u32 {
    let rate = |stream: &Sending<'_>| {
        let plan = stream.plan;
        plan.frames() as f64 / ((plan.end() - plan.start()).max(1) as f64 / TICKS_PER_NS as f64 / 1e9)
    };
    let pps: f64 = streams.iter().map(rate).sum();
    BATCHES.iter().find(|&&(from_pps, _)| pps >= from_pps).map_or(1, |&(_, batch)| batch)
}

impl Sender for Live {
    fn facts(&self) -> Value {
        json!({"back_end": "live", "how": "BPF_PROG_TEST_RUN with live frames, paced in the program"})
    }

    fn range_pps(&self) -> (f64, f64) {
        (LEAST_PPS, f64::INFINITY)
    }

    fn send(&mut self, streams: &[Sending<'_>], trial: u8, start_ns: u64, control: &Control) -> Result<SendReport> {
        self.make_room(streams)?;
        let longest = streams.iter().map(|stream| longest_octets(stream.plan)).max().unwrap_or(60);
        self.check_mtu(streams)?;
        if longest > LONGEST_OCTETS {
            let allowed =
                format!("live frames of at most {} B; send with `af_packet`", LONGEST_OCTETS + FCS_BYTES as u16);
            return Err(TesterError::value("sizes", longest + FCS_BYTES as u16, allowed));
        }
        // A full link needs longer than the plan.
        let link: u64 = streams.iter().map(|stream| stream.plan.link_ticks()).sum();
        let ends = |stream: &Sending<'_>| stream.plan.end().max(stream.plan.start() + link) / TICKS_PER_NS;
        let mut work = Generator {
            start: start_ns,
            end: start_ns + streams.iter().map(ends).max().unwrap_or(0) + OVERTIME_NS,
            wire: streams.iter().find_map(|stream| stream.plan.wire()).map_or(0, |wire| wire.cost),
            streams: streams.len() as u32,
            batch: batch(streams),
            trial: u32::from(trial),
            longest: u32::from(longest),
            stop: 0,
            unfinished: 0,
            calls: 0,
            sent: 0,
            ended: 0,
            gone: 0,
            free: [0; MOST_STREAMS],
            stream: [Stream::default(); MOST_STREAMS],
        };
        self.fill(streams, &mut work);
        let repeat: u64 = work.stream[..streams.len()].iter().map(|stream| stream.frames).sum();
        let Ok(repeat) = u32::try_from(repeat) else {
            let allowed = "at most 4294967295 frames in one trial; shorten it or lower the rate";
            return Err(TesterError::value("frames", repeat, allowed));
        };
        self.generator.set(0, work);
        if repeat > 0 && !control.stop.load(Ordering::Acquire) {
            let thread = Thread::shielded();
            let generator = Arc::clone(&self.generator);
            let counted = AtomicU64::new(0);
            control.watch(move |control| {
                let stop = generator.word32(offset_of!(Generator, stop));
                let sent = generator.word64(offset_of!(Generator, sent)).load(Ordering::Relaxed);
                control.sent.fetch_add(sent - counted.swap(sent, Ordering::Relaxed), Ordering::Relaxed);
                if control.stop.load(Ordering::Acquire) {
                    stop.store(1, Ordering::Release);
                }
                if stop.load(Ordering::Acquire) != 0 {
                    // The rest of the call would only be dropped.
                    thread.wake();
                }
            });
            let mut frame = vec![0; usize::from(longest)];
            let head = streams[0].templates.flows[0].head_bytes().min(frame.len());
            let pattern = &pattern()[..frame.len() - head];
            frame[head..].copy_from_slice(pattern);
            let result = self.loaded.with_fd(|fd| test_run::live_frames(fd, &frame, repeat, work.batch));
            control.unwatch();
            match result? {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => {
                    return Err(TesterError::System {
                        what: "sending live frames (BPF_PROG_TEST_RUN)".to_owned(),
                        error,
                    });
                }
            }
        }
        if self.generator.get(0).gone > 0 {
            let error = std::io::Error::from_raw_os_error(libc::ENODEV);
            return Err(TesterError::System { what: "sending live frames: the interface has gone".to_owned(), error });
        }
        let report = self.report(streams.len());
        Ok(report)
    }
}
