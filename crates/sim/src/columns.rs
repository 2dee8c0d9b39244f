//! Networks of single servers, frames in columns: who meets only such nodes is no structure that goes from list to list.
//!
//! ```text
//!  sources ──► column of a node ──► server ──► runs, one for each node that feeds ──► server ──► out
//!                                              ═══╗
//!                                              ═══╬═► the next in order of (time, number)
//!                                              ═══╝
//! ```
//!
//! A single server lets frames go in the order in which it took them. So what a node gets from another one is in order, and
//! frames from several nodes need no sorting: the least of the runs' first frames is the next.

use crate::graph::{EXIT, Graph, Next};
use crate::ledger::Ledger;
use crate::planes::{Plane, servers};
use crate::scenario::{Process, Scenario};
use crate::source::{Arrival, Source, WIRE_OVERHEAD_BYTES, in_order};
use crate::station::{AT_ONCE, Bounds, Coming, Done, Keep, Leaving, Passage, Passing, Server, Stays};
use crate::time::PS_PER_S;

/// Frames of a scenario in columns.
#[derive(Debug)]
pub struct Columns {
    /// By flow: the node that its frames meet first.
    doors: Vec<u32>,
    /// By node: frames from sources.
    fresh: Vec<Vec<Arrival>>,
    /// Frames on their way from node to node: the runs of one node side by side, those of nodes further down behind.
    runs: Vec<Run>,
    /// By node: where its runs begin and end.
    places: Vec<(usize, usize)>,
    /// By node: where frames go.
    ways: Vec<Way>,
    /// The size of all frames, if there is one.
    only_bytes: Option<u32>,
    /// By flow: number of its source.
    sources: Vec<u32>,
    merge: Merge,
    loops: Box<Loops>,
}

/// What loops over frames leave behind.
#[derive(Debug, Default)]
struct Loops {
    stays: Stays,
    done: Done,
}

/// Where frames go from a node.
#[derive(Debug, Clone)]
enum Way {
    /// Out of the router, at an instant.
    Out,
    /// Out of the router, on a link.
    Link,
    /// To one run, counted from the end of the node's own.
    One(usize),
    /// To a run by flow, counted from the end of the node's own.
    ByFlow(Vec<u32>),
}

/// Frames from one node to another, in order.
#[derive(Debug, Default)]
struct Run {
    frames: Vec<Passing>,
    /// The first that has not been taken.
    head: usize,
    /// Behind the last that can be taken up to a bound.
    ready: usize,
    from: u32,
}

impl Columns {
    /// Columns for a scenario; none where some frame meets more than single servers that flows alone choose.
    #[must_use]
    pub fn new(scenario: &Scenario, graph: &Graph) -> Option<Self> {
        let nodes = graph.planes.len();
        let doors: Vec<u32> = graph.first_nodes().collect();
        let sources = sources_of(scenario);
        let is_in = |n: usize| graph.planes[n] == Plane::Prefix && servers(scenario, n) == 1;
        let ends = |next: &Next| match next {
            Next::Fixed(node) => *node == EXIT || is_in(*node as usize),
            Next::ByFlow(table) => table.iter().all(|&node| node != EXIT && is_in(node as usize)),
            Next::Dynamic => false,
        };
        // Nodes that frames reach.
        let mut reached = vec![false; nodes];
        for &door in &doors {
            if graph.direct.get(door as usize) != Some(&true) || !is_in(door as usize) {
                return None;
            }
            reached[door as usize] = true;
        }
        let mut feeders: Vec<Vec<u32>> = vec![vec![]; nodes];
        for &node in graph.order.iter().filter(|&&node| (node as usize) < graph.tasks) {
            let n = node as usize;
            if !reached[n] {
                continue;
            }
            let next = graph.next_of(n);
            if !ends(next) {
                return None;
            }
            let to: &[u32] = match next {
                Next::Fixed(EXIT) | Next::Dynamic => &[],
                Next::Fixed(only) => std::slice::from_ref(only),
                Next::ByFlow(table) => table,
            };
            for &to in to {
                reached[to as usize] = true;
                if feeders[to as usize].last() != Some(&node) {
                    feeders[to as usize].push(node);
                }
            }
        }
        for from in &mut feeders {
            from.sort_unstable();
            from.dedup();
        }
        if feeders.iter().any(|feeders| feeders.len() > MOST) {
            return None;
        }
        // Only who waits for several nodes must be told apart at one instant.
        let sources = if feeders.iter().all(Vec::is_empty) { vec![] } else { sources? };
        let mut places = vec![(0, 0); nodes];
        let mut runs = Vec::new();
        for &node in &graph.order {
            let begin = runs.len();
            runs.extend(feeders[node as usize].iter().map(|&from| Run { from, ..Run::default() }));
            places[node as usize] = (begin, runs.len());
        }
        let place = |from: usize, to: u32| {
            let slot = feeders[to as usize].iter().position(|&feeder| feeder as usize == from);
            slot.map_or(0, |slot| places[to as usize].0 + slot - places[from].1)
        };
        let way = |n: usize| match graph.next_of(n) {
            _ if n >= graph.tasks => Way::Link,
            _ if !reached[n] => Way::Out,
            Next::Fixed(EXIT) | Next::Dynamic => Way::Out,
            Next::Fixed(only) => Way::One(place(n, *only)),
            Next::ByFlow(table) => Way::ByFlow(table.iter().map(|&to| place(n, to) as u32).collect()),
        };
        let ways = (0..nodes).map(way).collect();
        let fresh = (0..nodes).map(|_| Vec::new()).collect();
        let recorded = scenario.load.sources.iter().any(|source| matches!(source.process, Process::Trace { .. }));
        let only_bytes = match scenario.load.sizes.as_slice() {
            [only] if !recorded => Some(*only),
            _ => None,
        };
        Some(Self {
            doors,
            fresh,
            runs,
            places,
            ways,
            only_bytes,
            sources,
            merge: Merge::default(),
            loops: Box::default(),
        })
    }

    /// Takes in what the sources' blocks hold.
    pub fn fill(&mut self, sources: &[Source], block: &mut Vec<Arrival>) {
        fill(sources, block, &self.doors, &mut self.fresh);
    }

    /// Runs one node up to an instant; what it does after the present segment goes to `beyond`.
    pub fn advance(
        &mut self,
        node: u32,
        server: &mut Server,
        bound_ps: u64,
        ledger: &mut Ledger,
        beyond: &mut Vec<(u64, Passage)>,
    ) {
        let n = node as usize;
        let Self { fresh, runs, places, ways, sources, merge, loops, only_bytes, .. } = self;
        let (begin, end) = places[n];
        let (before, later) = runs.split_at_mut(end);
        let own = &mut before[begin..];
        let bounds = Bounds { only_bytes: *only_bytes, ..ledger.bounds(bound_ps) };
        let mut pass = Pass { server, way: &ways[n], later, loops, ledger, bounds, beyond };
        if own.is_empty() {
            // Frames from sources come in the order of all, and so they go on.
            pass.run(node, &fresh[n], true);
            fresh[n].clear();
            return;
        }
        let mut at_once = false;
        merge.run(own, sources, bound_ps, |merged| at_once |= pass.run(node, merged, false));
        at_once |= pass.run::<Passing>(node, &[], true);
        if at_once {
            later.iter_mut().filter(|run| run.from == node).for_each(|run| run.put_in_order(sources));
        }
    }

    /// Frames that are on their way.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.runs.iter().map(|run| (run.frames.len() - run.head) as u64).sum()
    }
}

/// By flow, the number of its source; none if a flow comes from several, or if frames of one source may come at one instant.
fn sources_of(scenario: &Scenario) -> Option<Vec<u32>> {
    let mut source_of = vec![u32::MAX; scenario.load.flows.len()];
    for (number, source) in scenario.load.sources.iter().enumerate() {
        let wire_ps = f64::from(WIRE_OVERHEAD_BYTES) * 8.0 * PS_PER_S / scenario.model.ports[source.port].link_bps;
        let even_ps = match source.process {
            Process::Cbr { .. } => {
                PS_PER_S / source.steps.iter().fold(source.rate_pps, |most, step| most.max(step.rate_pps))
            }
            _ => 0.0,
        };
        if wire_ps.max(even_ps) < 2.0 {
            return None;
        }
        for &flow in &source.flows {
            let known = &mut source_of[flow as usize];
            if *known != u32::MAX && *known != number as u32 {
                return None;
            }
            *known = number as u32;
        }
    }
    Some(source_of)
}

/// Puts the frames that were taken from sources into columns. A function of its own, because then all it needs has a register.
#[inline(never)]
fn fill(sources: &[Source], block: &mut Vec<Arrival>, doors: &[u32], fresh: &mut [Vec<Arrival>]) {
    in_order(sources, block, |frame| fresh[doors[frame.flow as usize] as usize].push(*frame));
}

impl Run {
    /// Forgets the frames that were ready. Makes room, where half of it or more holds frames that were taken, and many.
    fn forget(&mut self) {
        self.head = self.ready;
        if self.head >= AT_ONCE && self.head * 2 >= self.frames.len() {
            self.frames.drain(..self.head);
            self.head = 0;
        }
    }

    #[cold]
    fn put_in_order(&mut self, sources: &[u32]) {
        put_in_order(&mut self.frames[self.head..], sources);
    }

    /// Finds the frames that come before the bound; returns their number.
    fn make_ready(&mut self, bound_ps: u64) -> usize {
        let ready = self.frames[self.head..].partition_point(|frame| frame.at < bound_ps);
        self.ready = self.head + ready;
        ready
    }
}

/// Puts frames in the order of all: by instant, of equals as they came to the router, the first source's first.
fn put_in_order(frames: &mut [Passing], sources: &[u32]) {
    frames.sort_by_key(|frame| (frame.at, frame.arrival, sources[frame.flow as usize]));
}

/// Frames that go to a run by flow.
struct Onward<'a> {
    stays: &'a mut Stays,
    later: &'a mut [Run],
    by_flow: &'a [u32],
}

impl Keep for Onward<'_> {
    #[inline]
    fn keep(&mut self, slot: usize, frame: &Passing, place: usize, start_ps: u64, end_ps: u64) {
        self.stays.note(slot, place, start_ps - frame.at, end_ps);
    }

    #[inline(never)]
    fn close<C: Coming>(&mut self, count: usize, column: &[C]) {
        for frame in self.stays.passed(count, column) {
            let run = self.by_flow[frame.flow as usize] as usize;
            self.later[run].frames.push(frame);
        }
    }
}

/// Frames that all go to one run.
struct Along<'a> {
    stays: &'a mut Stays,
    run: &'a mut Run,
}

impl Keep for Along<'_> {
    #[inline]
    fn keep(&mut self, slot: usize, frame: &Passing, place: usize, start_ps: u64, end_ps: u64) {
        self.stays.note(slot, place, start_ps - frame.at, end_ps);
    }

    #[inline(never)]
    fn close<C: Coming>(&mut self, count: usize, column: &[C]) {
        self.run.frames.extend(self.stays.passed(count, column));
    }
}

/// Frames on their way through a node.
struct Pass<'a> {
    server: &'a mut Server,
    way: &'a Way,
    later: &'a mut [Run],
    loops: &'a mut Loops,
    ledger: &'a mut Ledger,
    bounds: Bounds,
    beyond: &'a mut Vec<(u64, Passage)>,
}

impl Pass<'_> {
    /// Runs a column through, the last one up to the bound or not; whether some may have left at one instant.
    fn run<C: Coming>(&mut self, node: u32, column: &[C], is_last: bool) -> bool {
        let Self { server, way, later, loops, ledger, bounds, beyond } = self;
        let Loops { stays, done } = &mut **loops;
        let served = match way {
            Way::Out => {
                let mut out = Leaving::<false> { done, ledger };
                server.pass_column(column, is_last, &mut out, *bounds, beyond)
            }
            Way::Link => {
                let mut out = Leaving::<true> { done, ledger };
                server.pass_column(column, is_last, &mut out, *bounds, beyond)
            }
            Way::One(run) => {
                let mut along = Along { stays, run: &mut later[*run] };
                server.pass_column(column, is_last, &mut along, *bounds, beyond)
            }
            Way::ByFlow(by_flow) => {
                let mut onward = Onward { stays, later, by_flow };
                server.pass_column(column, is_last, &mut onward, *bounds, beyond)
            }
        };
        self.ledger.drop_all(node as usize, &served.refused);
        served.at_once
    }
}

/// Stands for the instant of no frame.
const NEVER: u64 = u64::MAX;

/// The most runs that are merged.
const MOST: usize = 64;

/// Frames of runs in order.
#[derive(Debug, Default)]
struct Merge {
    merged: Vec<Passing>,
}

impl Merge {
    /// Merges the frames of runs that come before the bound, and hands them on, some at a time.
    fn run(&mut self, runs: &mut [Run], sources: &[u32], bound_ps: u64, mut each: impl FnMut(&[Passing])) {
        let ready: usize = runs.iter_mut().map(|run| run.make_ready(bound_ps)).sum();
        match runs {
            _ if ready == 0 => {}
            [only] => each(&only.frames[only.head..only.ready]),
            _ if runs.len() <= 4 => Tree::<4>::new(runs).merge(&mut self.merged, sources, each),
            _ if runs.len() <= 16 => Tree::<16>::new(runs).merge(&mut self.merged, sources, each),
            _ => Tree::<MOST>::new(runs).merge(&mut self.merged, sources, each),
        }
        runs.iter_mut().for_each(Run::forget);
    }
}

/// A tree of losers over the first frames of up to N runs, a power of two (Knuth, The Art of Computer Programming, vol. 3,
/// sec. 5.4.1).
struct Tree<'a, const N: usize> {
    /// What is left of each run.
    left: [&'a [Passing]; N],
    /// By run: when the frame comes after its first, which so is known before it is asked for.
    ahead: [u64; N],
    /// By match: when the first frame comes of the run that lost it, and that run. Match 1 is the final, 2 and 3 the semifinals.
    losers: [(u64, u32); N],
    winner: (u64, u32),
}

impl<'a, const N: usize> Tree<'a, N> {
    fn new(runs: &'a [Run]) -> Self {
        let mut left: [&[Passing]; N] = [&[]; N];
        left.iter_mut().zip(runs).for_each(|(left, run)| *left = &run.frames[run.head..run.ready]);
        let mut tree = Self { left, ahead: [NEVER; N], losers: [(NEVER, 0); N], winner: (NEVER, 0) };
        tree.begin();
        tree
    }

    /// Plays the first frames of what is left.
    fn begin(&mut self) {
        for (ahead, left) in self.ahead.iter_mut().zip(&self.left) {
            *ahead = left.get(1).map_or(NEVER, |frame| frame.at);
        }
        self.winner = self.play(1);
    }

    /// Plays a match and those before it; returns the winner.
    fn play(&mut self, game: usize) -> (u64, u32) {
        if let Some(run) = game.checked_sub(N) {
            return (self.left[run].first().map_or(NEVER, |frame| frame.at), run as u32);
        }
        let (one, other) = (self.play(2 * game), self.play(2 * game + 1));
        let (winner, loser) = if other.0 < one.0 { (other, one) } else { (one, other) };
        self.losers[game] = loser;
        winner
    }

    /// Hands on all frames in order, some at a time, all frames of an instant together.
    fn merge(&mut self, merged: &mut Vec<Passing>, sources: &[u32], mut each: impl FnMut(&[Passing])) {
        merged.resize(AT_ONCE.max(merged.len()), Passing::default());
        while self.winner.0 != NEVER {
            let (count, last_ps, tied) = self.fill(&mut merged[..AT_ONCE]);
            let more = self.winner.0 == last_ps;
            if !tied && !more {
                each(&merged[..count]);
                continue;
            }
            merged.truncate(count);
            if more {
                for left in &mut self.left {
                    let same = left.iter().take_while(|frame| frame.at == last_ps).count();
                    merged.extend_from_slice(&left[..same]);
                    *left = &left[same..];
                }
                self.begin();
            }
            put_in_order(merged, sources);
            each(merged);
            merged.resize(AT_ONCE.max(merged.len()), Passing::default());
        }
    }

    /// Fills slots with the next frames; returns their number, the last one's instant, and whether any two come at one instant.
    #[inline(never)]
    fn fill(&mut self, slots: &mut [Passing]) -> (usize, u64, bool) {
        let Self { left, ahead, losers, winner: (mut at, mut run) } = *self;
        let (mut left, mut ahead, mut losers) = (left, ahead, losers);
        let (mut count, mut last, mut tied) = (0, NEVER, false);
        for slot in slots {
            let place = run as usize & (N - 1);
            let Some((first, rest)) = left[place].split_first().filter(|_| at != NEVER) else { break };
            *slot = *first;
            tied |= at == last;
            last = at;
            at = ahead[place];
            left[place] = rest;
            ahead[place] = rest.get(1).map_or(NEVER, |frame| frame.at);
            for level in 1..=N.ilog2() {
                let game = ((N + place) >> level) & (N - 1);
                let (other_at, other) = losers[game];
                if other_at < at {
                    losers[game] = (at, run);
                    (at, run) = (other_at, other);
                }
            }
            count += 1;
        }
        *self = Self { left, ahead, losers, winner: (at, run) };
        (count, last, tied)
    }
}
