//! One run: blocks of arrivals go through prefix, events and suffix, up to the instant of the next arrival.
//!
//! Within a block every stage handles all of its frames before the next stage begins, which keeps the loops short and
//! the data in cache. A stage may only handle frames that arrive there before the *bound*, the first instant at which
//! a frame of a later block can arrive anywhere; what departs later stays pending. Where several stages feed one, its
//! frames are put in order of (time, number) first, so a merge costs a sort of a few sorted runs and no event.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use crate::columns::Columns;
use crate::engine::{Delivery, Engine};
use crate::error::SimError;
use crate::frame::{Frame, Hops};
use crate::graph::{EXIT, Graph, Next};
use crate::ledger::Ledger;
use crate::manager::{Managers, Message};
use crate::outcome::LanesOutcome;
use crate::planes::Plane;
use crate::scenario::{Path, Scenario};
use crate::source::{Arrival, Source, in_order};
use crate::station::{Bounds, Passage, Polled, Server, Sink};

const BLOCKS_PER_REPORT: u64 = 64;

/// The record of one run.
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
    /// What lanes have to say of themselves, where they ran it.
    pub lanes: Option<LanesOutcome>,
}

/// Frames on their way to a recursive node.
///
/// They come from several stages, each nearly in order. They are kept in runs in order of (time, number), as in
/// patience sorting: there are no more runs than stages that feed the node, and frames that are not due yet stay in
/// place.
#[derive(Debug, Default)]
struct Pending {
    /// Frames straight from the sources, where only they feed the node: in order, and all of them due.
    fresh: Vec<Frame>,
    runs: Vec<VecDeque<Frame>>,
    /// The run that took the last frame, and that frame's key.
    current: usize,
    last: (u64, u64),
}

impl Pending {
    #[inline]
    fn push(&mut self, frame: Frame) {
        let key = (frame.at, frame.seq);
        if key < self.last || self.runs.is_empty() {
            self.change_run(key);
        }
        self.last = key;
        self.runs[self.current].push_back(frame);
    }

    /// Selects the run with the greatest end before `key`.
    #[cold]
    fn change_run(&mut self, key: (u64, u64)) {
        let end = |run: &VecDeque<Frame>| run.back().map_or((0, 0), |last| (last.at, last.seq));
        let fitting = self.runs.iter().enumerate().filter(|(_, run)| end(run) <= key);
        let best = fitting.max_by_key(|(_, run)| end(run)).map(|(number, _)| number);
        self.current = best.unwrap_or(self.runs.len());
        if best.is_none() {
            self.runs.push(VecDeque::new());
        }
    }

    /// Moves the frames that arrive before `bound` to `due`, in order.
    fn take_due(&mut self, bound: u64, due: &mut Vec<Frame>) {
        due.append(&mut self.fresh);
        let mut parts = usize::from(!due.is_empty());
        for run in &mut self.runs {
            let ready = run.partition_point(|frame| frame.at < bound);
            due.extend(run.drain(..ready));
            parts += usize::from(ready > 0);
        }
        if parts > 1 {
            due.sort_by_key(|frame| (frame.at, frame.seq));
        }
    }

    fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.fresh.iter().chain(self.runs.iter().flatten())
    }
}

/// Runs a scenario that [`Scenario::check`] has passed. `report` receives the finished share, 0..1, and may stop the
/// run.
///
/// # Errors
///
/// [`SimError::Cycle`], [`SimError::NotRecursive`], [`SimError::Interrupted`].
pub fn run(scenario: &Scenario, report: &(dyn Fn(f64) -> ControlFlow<()> + Sync)) -> Result<Record, SimError> {
    if scenario.run.path == Path::Lanes {
        #[cfg(feature = "lanes")]
        return crate::lanes::Prepared::new(scenario)?.run(scenario, None, report);
        #[cfg(not(feature = "lanes"))]
        return Err(SimError::NotInLanes { why: "this build has none".into() });
    }
    #[cfg(feature = "lanes")]
    if let Some(prepared) = crate::lanes::Prepared::if_it_pays(scenario) {
        // What lanes have no place for is found while they run.
        match prepared.run(scenario, None, report) {
            Err(SimError::NotInLanes { .. }) => {}
            done => return done,
        }
    }
    if scenario.run.keep_end || scenario.run.begin.is_some() {
        return Err(SimError::NotInLanes { why: "a state is kept, and gone on from, in lanes alone".into() });
    }
    let graph = Graph::compile(scenario)?;
    let nodes = graph.planes.len();
    let mut ledger = Ledger::new(scenario);
    let engine = Engine::new(scenario, &graph, &mut ledger);
    let servers = (0..nodes)
        .map(|node| {
            let recursive = matches!(graph.planes[node], Plane::Prefix | Plane::Suffix);
            recursive.then(|| Server::of_node(scenario, node))
        })
        .collect();
    let columns = if ledger.keeps_details() { None } else { Columns::new(scenario, &graph) };
    let stage = |plane| graph.order.iter().copied().filter(|&n| graph.planes[n as usize] == plane).collect();
    let (prefix, suffix): (Vec<u32>, Vec<u32>) = (stage(Plane::Prefix), stage(Plane::Suffix));
    let mut pipeline = Pipeline {
        sources: (0..scenario.load.sources.len()).map(|i| Source::new(scenario, i)).collect(),
        block: Vec::new(),
        columns,
        pending: (0..nodes).map(|_| Pending::default()).collect(),
        inbox: Vec::new(),
        servers,
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
        if pipeline.run_events(bound, report).is_break() {
            return Err(SimError::Interrupted);
        }
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
    if pipeline.engine.is_none() {
        // Pools that nobody needs sleep through the trial.
        Managers::new(&scenario.model.pools, &[], &[], 0).close(scenario.run.duration_ps, &mut pipeline.ledger);
    }
    Ok(pipeline.finish(scenario.run.duration_ps))
}

/// Buffers that stages share.
#[derive(Default)]
struct Scratch {
    frames: Vec<Frame>,
    refused: Vec<Frame>,
    /// Arrival and passage of frames that are not done within the segment.
    beyond: Vec<(u64, Passage)>,
}

struct Pipeline {
    sources: Vec<Source>,
    /// The present block of arrivals.
    block: Vec<Arrival>,
    /// Where all frames meet single servers.
    columns: Option<Columns>,
    pending: Vec<Pending>,
    /// Frames on their way into the events.
    inbox: Vec<Delivery>,
    servers: Vec<Option<Server>>,
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
        for source in &mut self.sources {
            source.refill();
            bound = bound.min(source.known_before());
        }
        for (number, source) in self.sources.iter_mut().enumerate() {
            self.ledger.offer(number, source.take_until(bound));
        }
        if let Some(columns) = &mut self.columns {
            columns.fill(&self.sources, &mut self.block);
            return bound;
        }
        let Self { graph, pending, inbox, ledger, next_seq: seq, .. } = self;
        let mut entrance = Entrance { graph, pending, inbox, ledger, seq: *seq };
        in_order(&self.sources, &mut self.block, |frame| entrance.enter(*frame));
        *seq = entrance.seq;
        bound
    }

    /// Runs one recursive stage up to the bound.
    fn advance(&mut self, node: u32, bound: u64) {
        let n = node as usize;
        if let Some(columns) = &mut self.columns {
            let server = self.servers[n].as_mut().expect("recursive nodes have a server");
            columns.advance(node, server, bound, &mut self.ledger, &mut self.scratch.beyond);
            self.book_beyond(n);
            return;
        }
        let Scratch { mut frames, mut refused, mut beyond } = std::mem::take(&mut self.scratch);
        frames.clear();
        if self.graph.direct[n] {
            std::mem::swap(&mut frames, &mut self.pending[n].fresh);
        } else {
            self.pending[n].take_due(bound, &mut frames);
        }
        let Self { servers, graph, pending, inbox, ledger, .. } = self;
        let server = servers[n].as_mut().expect("recursive nodes have a server");
        let bounds = ledger.bounds(bound);
        let mut hops = ledger.hops.take();
        let mut through = Through { node, hops: hops.as_mut(), server, frames: &frames, bounds };
        if n >= graph.tasks {
            through.pass(&mut refused, &mut beyond, FromPort(ledger));
        } else if matches!(graph.next_of(n), Next::Fixed(EXIT)) {
            through.pass(&mut refused, &mut beyond, FromTask(ledger));
        } else {
            through.pass(&mut refused, &mut beyond, Onward { node, graph, pending, inbox, ledger });
        }
        self.ledger.hops = hops;
        let ledger = &mut self.ledger;
        for frame in refused.drain(..) {
            ledger.drop_frame(n, &frame);
        }
        self.scratch = Scratch { frames, refused, beyond };
        self.book_beyond(n);
    }

    /// Books what a station does after the segment.
    fn book_beyond(&mut self, node: usize) {
        for (at, Passage { start, done }) in self.scratch.beyond.drain(..) {
            self.ledger.wait(node, at, start);
            self.ledger.work(node, start, done);
        }
    }

    /// Books what the stations did during the block.
    fn book(&mut self) {
        let segment = self.ledger.segment();
        for (n, server) in self.servers.iter_mut().enumerate() {
            if let Some(Server::Polled(polled)) = server {
                self.ledger.book_polls(n, &polled.tally());
            }
        }
        let inside = self.engine.iter_mut().flat_map(Engine::stations);
        let outside = self.servers.iter_mut().enumerate().filter_map(|(n, server)| match server {
            Some(Server::Station(station, _)) => Some((n, &mut **station)),
            _ => None,
        });
        for (n, station) in outside.chain(inside) {
            let tally = station.tally();
            let account = &mut self.ledger.accounts[n];
            account.busy_ps[segment] += tally.busy_ps;
            account.waited_ps[segment] += tally.waited_ps;
        }
    }

    fn run_events(&mut self, bound: u64, report: &dyn Fn(f64) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(engine) = &mut self.engine else { return ControlFlow::Continue(()) };
        if !self.inbox.is_sorted_by_key(|(frame, _)| (frame.at, frame.seq)) {
            self.inbox.sort_by_key(|(frame, _)| (frame.at, frame.seq));
        }
        let ready = self.inbox.partition_point(|(frame, _)| frame.at < bound);
        engine.run(&self.inbox[..ready], bound, &mut self.graph, &mut self.ledger, report)?;
        self.inbox.drain(..ready);
        for (frame, node) in engine.outbox.drain(..) {
            route(&self.graph, &mut self.pending, &mut Vec::new(), &mut self.ledger, frame, node);
        }
        ControlFlow::Continue(())
    }

    fn finish(mut self, end: u64) -> Record {
        let mut messages = Vec::new();
        if let Some(engine) = &mut self.engine {
            engine.close(end, &mut self.ledger);
            messages = std::mem::take(&mut engine.managers.messages);
        }
        for (node, polled) in polled(&self.servers) {
            polled.close(node, end, &mut self.ledger);
        }
        let in_columns = polled(&self.servers).map(|(_, polled)| polled.waiting_in_column()).sum::<u64>()
            + self.columns.as_ref().map_or(0, Columns::in_flight);
        let waiting = polled(&self.servers).flat_map(|(_, polled)| polled.waiting());
        let inside = self.engine.iter().flat_map(Engine::in_flight).chain(waiting);
        let before = self.inbox.iter().map(|(frame, _)| frame);
        let mut in_flight = self.ledger.late + in_columns;
        for frame in self.pending.iter().flat_map(Pending::frames).chain(before).chain(inside) {
            in_flight += 1;
            self.ledger.by_flow.iter_mut().for_each(|by_flow| by_flow.keep(frame));
        }
        Record { ledger: self.ledger, in_flight, messages, planes: self.graph.planes, lanes: None }
    }
}

/// The nodes that take frames in polls.
fn polled(servers: &[Option<Server>]) -> impl Iterator<Item = (usize, &Polled)> {
    servers.iter().enumerate().filter_map(|(node, server)| match server {
        Some(Server::Polled(polled)) => Some((node, &**polled)),
        _ => None,
    })
}

/// Frames on their way through a station.
struct Through<'a> {
    node: u32,
    hops: Option<&'a mut Hops>,
    server: &'a mut Server,
    frames: &'a [Frame],
    bounds: Bounds,
}

impl Through<'_> {
    /// Passes them into a sink, and notes their stays if the run keeps them.
    #[inline]
    fn pass(&mut self, refused: &mut Vec<Frame>, beyond: &mut Vec<(u64, Passage)>, mut sink: impl Sink) {
        let Self { node, hops, server, frames, bounds } = self;
        match hops {
            None => server.pass(frames, refused, beyond, *bounds, &mut sink),
            Some(hops) => server.pass(frames, refused, beyond, *bounds, &mut Noting { node: *node, hops, sink }),
        }
    }
}

/// Frames whose stay is noted before they go on.
struct Noting<'a, S> {
    node: u32,
    hops: &'a mut Hops,
    sink: S,
}

impl<S: Sink> Sink for Noting<'_, S> {
    fn take(&mut self, frame: &Frame, start: u64, done: u64) {
        self.hops.note(self.node, frame, frame.at, start);
        self.sink.take(frame, start, done);
    }
}

/// A sink at a port: the first bit leaves when the transmission starts (S9).
struct FromPort<'a>(&'a mut Ledger);

impl Sink for FromPort<'_> {
    #[inline]
    fn take(&mut self, frame: &Frame, start: u64, done: u64) {
        self.0.forward(frame, start - frame.at, start, done);
    }
}

/// A sink at a task unit: a frame leaves at one instant.
struct FromTask<'a>(&'a mut Ledger);

impl Sink for FromTask<'_> {
    #[expect(clippy::inline_always, reason = "the innermost loop of the fastest path")]
    #[inline(always)]
    fn take(&mut self, frame: &Frame, start: u64, done: u64) {
        self.0.forward(frame, start - frame.at, done, done);
    }
}

/// A sink that passes frames to another node.
struct Onward<'a> {
    node: u32,
    graph: &'a mut Graph,
    pending: &'a mut [Pending],
    inbox: &'a mut Vec<Delivery>,
    ledger: &'a mut Ledger,
}

impl Sink for Onward<'_> {
    #[inline]
    fn take(&mut self, frame: &Frame, start: u64, done: u64) {
        let next = self.graph.onward(self.node, frame.flow, frame.seq);
        route(self.graph, self.pending, self.inbox, self.ledger, frame.passed(start, done), next);
    }
}

/// The arrivals of the frames.
struct Entrance<'a> {
    graph: &'a mut Graph,
    pending: &'a mut [Pending],
    inbox: &'a mut Vec<Delivery>,
    ledger: &'a mut Ledger,
    seq: u64,
}

impl Entrance<'_> {
    #[expect(clippy::inline_always, reason = "the innermost loop of the fastest path")]
    #[inline(always)]
    fn enter(&mut self, arrival: Arrival) {
        let node = self.graph.enter(arrival.flow, self.seq);
        if let Some(true) = self.graph.direct.get(node as usize) {
            // Sources are in order, which needs no check.
            self.pending[node as usize].fresh.push(Frame::new(arrival, self.seq));
        } else {
            route(self.graph, self.pending, self.inbox, self.ledger, Frame::new(arrival, self.seq), node);
        }
        self.seq += 1;
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
        ledger.forward(&frame, 0, frame.at, frame.at);
    } else if graph.planes[node as usize] == Plane::Events {
        inbox.push((frame, node));
    } else {
        pending[node as usize].push(frame);
    }
}
