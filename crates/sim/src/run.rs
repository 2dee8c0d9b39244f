//! One run: blocks of arrivals go through prefix, events and suffix, up to the instant of the next arrival.
//!
//! Within a block every stage handles all of its frames before the next stage begins, which keeps the loops short and
//! the data in cache. A stage may only handle frames that arrive there before the *bound*, the first instant at which
//! a frame of a later block can arrive anywhere; what departs later stays pending. Where several stages feed one, its
//! frames are put in order of (time, number) first, so a merge costs a sort of a few sorted runs and no event.

use std::ops::ControlFlow;

use crate::engine::{Delivery, Engine};
use crate::error::SimError;
use crate::frame::Frame;
use crate::graph::{EXIT, Graph, Next, Plane};
use crate::ledger::Ledger;
use crate::manager::Message;
use crate::scenario::Scenario;
use crate::source::{Arrival, Source};
use crate::station::{Servers, Station};

const BLOCKS_PER_REPORT: u64 = 64;

/// What one run left behind.
#[derive(Debug)]
pub struct Record {
    /// The ledger, all segments closed.
    pub ledger: Ledger,
    /// Frames that were still inside at the end.
    pub in_flight: u64,
    /// Kept messages.
    pub messages: Vec<Message>,
    /// Plane that ran each node.
    pub planes: Vec<Plane>,
}

#[derive(Debug, Default)]
struct Pending {
    frames: Vec<Frame>,
    /// Whether the frames are not in order of (time, number).
    unsorted: bool,
    last_at: u64,
    last_seq: u64,
}

impl Pending {
    // Inlined by force: a frame that passes through memory here stalls on store forwarding, a third of all time.
    #[expect(clippy::inline_always, reason = "measured, see above")]
    #[inline(always)]
    fn push(&mut self, frame: Frame) {
        self.unsorted |= frame.at < self.last_at || (frame.at == self.last_at && frame.seq < self.last_seq);
        (self.last_at, self.last_seq) = (frame.at, frame.seq);
        self.frames.push(frame);
    }

    /// Puts the frames in order and says how many arrive before `bound`.
    fn ready(&mut self, bound: u64) -> usize {
        if self.unsorted {
            self.frames.sort_by_key(|frame| (frame.at, frame.seq));
            self.unsorted = false;
            let last = self.frames[self.frames.len() - 1];
            (self.last_at, self.last_seq) = (last.at, last.seq);
        }
        if self.frames.last().is_none_or(|last| last.at < bound) {
            return self.frames.len();
        }
        self.frames.partition_point(|frame| frame.at < bound)
    }
}

/// Runs a scenario that [`Scenario::check`] has passed. `report` hears the finished share, 0..1, and may stop the run.
///
/// # Errors
///
/// [`SimError::Cycle`], [`SimError::NotRecursive`], [`SimError::Interrupted`].
pub fn run(scenario: &Scenario, report: &dyn Fn(f64) -> ControlFlow<()>) -> Result<Record, SimError> {
    let graph = Graph::compile(scenario)?;
    let nodes = graph.planes.len();
    let mut ledger = Ledger::new(scenario.run.duration_ps, nodes, scenario.run.record_frames);
    let engine = Engine::new(scenario, &graph, &mut ledger);
    let stations = (0..nodes)
        .map(|node| {
            let recursive = matches!(graph.planes[node], Plane::Prefix | Plane::Suffix);
            recursive.then(|| (Station::of_node(scenario, node), Servers::new(graph.servers(scenario, node))))
        })
        .collect();
    let stage = |plane| graph.order.iter().copied().filter(|&n| graph.planes[n as usize] == plane).collect();
    let (prefix, suffix): (Vec<u32>, Vec<u32>) = (stage(Plane::Prefix), stage(Plane::Suffix));
    let mut pipeline = Pipeline {
        sources: (0..scenario.load.sources.len()).map(|i| Source::new(scenario, i)).collect(),
        block: Vec::new(),
        pending: (0..nodes).map(|_| Pending::default()).collect(),
        inbox: Vec::new(),
        stations,
        engine,
        graph,
        ledger,
        scratch: Scratch::default(),
        next_seq: 0,
    };
    let duration = scenario.run.duration_ps as f64;
    let mut blocks = 0_u64;
    while !pipeline.ledger.is_complete() {
        let bound = pipeline.fill_block();
        for &node in &prefix {
            pipeline.advance(node, bound);
        }
        pipeline.run_events(bound);
        for &node in &suffix {
            pipeline.advance(node, bound);
        }
        pipeline.book();
        if bound == pipeline.ledger.segment_end() {
            pipeline.ledger.close_segment();
        }
        blocks += 1;
        if blocks.is_multiple_of(BLOCKS_PER_REPORT) && report(bound as f64 / duration).is_break() {
            return Err(SimError::Interrupted);
        }
    }
    Ok(pipeline.finish(scenario.run.duration_ps))
}

/// Buffers that stages lend each other.
#[derive(Default)]
struct Scratch {
    frames: Vec<Frame>,
    starts: Vec<u64>,
    refused: Vec<Frame>,
}

struct Pipeline {
    sources: Vec<Source>,
    /// The present block of arrivals.
    block: Vec<Arrival>,
    pending: Vec<Pending>,
    /// Frames on their way into the events.
    inbox: Vec<Delivery>,
    stations: Vec<Option<(Station, Servers)>>,
    engine: Option<Engine>,
    graph: Graph,
    ledger: Ledger,
    scratch: Scratch,
    next_seq: u64,
}

impl Pipeline {
    /// Draws the next block of arrivals; returns the bound up to which everything can be computed.
    fn fill_block(&mut self) -> u64 {
        let mut bound = self.ledger.segment_end();
        for source in &self.sources {
            bound = bound.min(source.known_before());
        }
        self.block.clear();
        for source in &mut self.sources {
            source.take_until(bound, &mut self.block);
        }
        if self.sources.len() > 1 {
            // Stable, so of frames at one instant the first port's comes first; fast, because it merges sorted runs.
            self.block.sort_by_key(|arrival| arrival.at);
        }
        self.ledger.offer(self.block.len() as u64, self.block.iter().map(|arrival| u64::from(arrival.bytes)).sum());
        let Self { block, graph, pending, inbox, ledger, .. } = self;
        let mut seq = self.next_seq;
        for &arrival in block.iter() {
            let node = graph.enter(arrival.flow, seq);
            if let Some(true) = graph.direct.get(node as usize) {
                // Sources come in order: no need to watch it.
                pending[node as usize].frames.push(Frame::new(arrival, seq));
            } else {
                route(graph, pending, inbox, ledger, Frame::new(arrival, seq), node);
            }
            seq += 1;
        }
        self.next_seq = seq;
        bound
    }

    /// Runs one recursive stage up to the bound.
    fn advance(&mut self, node: u32, bound: u64) {
        let n = node as usize;
        let ready = self.pending[n].ready(bound);
        if ready == 0 {
            return;
        }
        let Scratch { mut frames, mut starts, mut refused } = std::mem::take(&mut self.scratch);
        frames.clear();
        if ready == self.pending[n].frames.len() {
            std::mem::swap(&mut frames, &mut self.pending[n].frames);
        } else {
            frames.extend(self.pending[n].frames.drain(..ready));
        }
        let Self { stations, graph, pending, inbox, ledger, .. } = self;
        let (station, servers) = stations[n].as_mut().expect("recursive nodes have a station");
        let limit = ledger.segment_end();
        station.pass(servers, &mut frames, &mut starts, &mut refused, limit, |start, done| ledger.work(n, start, done));
        for frame in refused.drain(..) {
            ledger.drop_frame(n, &frame);
        }
        if n >= graph.tasks {
            // A port: the first bit leaves when the transmission starts (S9).
            ledger.forward_all(frames.iter().zip(&starts).map(|(frame, &start)| (frame, start, frame.at)));
        } else if matches!(graph.next_of(n), Next::Fixed(EXIT)) {
            ledger.forward_all(frames.iter().map(|frame| (frame, frame.at, frame.at)));
        } else {
            for &frame in &frames {
                let next = graph.onward(node, frame.flow, frame.seq);
                route(graph, pending, inbox, ledger, frame, next);
            }
        }
        self.scratch = Scratch { frames, starts, refused };
    }

    /// Books what the stations did during the block.
    fn book(&mut self) {
        let segment = self.ledger.segment();
        let inside = self.engine.iter_mut().flat_map(|engine| engine.stations());
        let outside =
            self.stations.iter_mut().enumerate().filter_map(|(n, station)| Some((n, &mut station.as_mut()?.0)));
        for (n, station) in outside.chain(inside) {
            let tally = station.tally();
            let account = &mut self.ledger.accounts[n];
            account.busy_ps[segment] += tally.busy_ps;
            account.waited_ps[segment] += tally.waited_ps;
            account.longest_queue = account.longest_queue.max(tally.longest as usize);
        }
    }

    fn run_events(&mut self, bound: u64) {
        let Some(engine) = &mut self.engine else { return };
        if !self.inbox.is_sorted_by_key(|(frame, _)| (frame.at, frame.seq)) {
            self.inbox.sort_by_key(|(frame, _)| (frame.at, frame.seq));
        }
        let ready = self.inbox.partition_point(|(frame, _)| frame.at < bound);
        engine.run(&self.inbox[..ready], bound, &mut self.graph, &mut self.ledger);
        self.inbox.drain(..ready);
        for (frame, node) in engine.outbox.drain(..) {
            route(&self.graph, &mut self.pending, &mut Vec::new(), &mut self.ledger, frame, node);
        }
    }

    fn finish(mut self, end: u64) -> Record {
        let pending: usize = self.pending.iter().map(|pending| pending.frames.len()).sum();
        let mut in_flight = (pending + self.inbox.len()) as u64 + self.ledger.late;
        let mut messages = Vec::new();
        if let Some(mut engine) = self.engine {
            engine.close(end, &mut self.ledger);
            in_flight += engine.in_flight();
            messages = std::mem::take(&mut engine.managers.messages);
        }
        Record { ledger: self.ledger, in_flight, messages, planes: self.graph.planes }
    }
}

/// Hands a frame to the plane of its next node.
#[inline]
fn route(
    graph: &Graph,
    pending: &mut [Pending],
    inbox: &mut Vec<Delivery>,
    ledger: &mut Ledger,
    frame: Frame,
    node: u32,
) {
    if node == EXIT {
        ledger.forward(&frame, frame.at, frame.at);
    } else if graph.planes[node as usize] == Plane::Events {
        inbox.push((frame, node));
    } else {
        pending[node as usize].push(frame);
    }
}

