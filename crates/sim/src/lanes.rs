//! A trial in lanes: whether a model is of their kind, the router in their terms, and their counts as a record.
//!
//! Lanes run routers whose frames find a core by their flow, wait in that core's own ring, are served one by one or poll by
//! poll, go on to another such core, and leave by a link or at once; a core that runs frames to completion is one server
//! (`chains`). They draw by a rule of their own (`routecast_lanes::draw`), so one seed gives another trajectory there than
//! by recursion or events.

mod arrivals;
mod book;
mod chains;
mod cores;

use std::cell::OnceCell;
use std::ops::ControlFlow;

use routecast_lanes::device::Device;
use routecast_lanes::kept::State;
use routecast_lanes::law::Law;
use routecast_lanes::router::{Core, Kind, Link, Polls, Program, Router, Source};
use routecast_lanes::segments::{Cut, Memory, Turns};
use routecast_lanes::vectors::Vectors;

use self::arrivals::{Dealt, Share, Ways, arrivals_of, order_of};
use self::chains::Chain;
use self::cores::{check_core, contention, interruptions_of, laws_of, polls_of, servers_of, sleep_of, speed_of};
use crate::error::SimError;
use crate::graph::Graph;
use crate::ledger::{Ledger, MINIS, SEGMENTS, mini_boundary};
use crate::outcome::LanesOutcome;
use crate::planes::Plane;
use crate::run::Record;
use crate::scenario::{Path, Scenario};
use crate::time::PS_PER_S;

const MINIS_PER_SEGMENT: usize = MINIS / SEGMENTS;
/// Frames that a lane has place for in a ring; one with more room must not need it.
const MOST_WAITING: u32 = 1 << 14;
/// Fewer segments than these are not worth their warm-up.
const LEAST_SEGMENTS: usize = 4;
/// Trials of fewer frames, or that leave fewer segments that are long beside their warm-up, are over sooner by events.
const LEAST_FRAMES: f64 = 1e7;
const MANY_SEGMENTS: usize = 128;

/// A model in the terms of lanes.
struct Model {
    router: Router,
    /// Task units that are cores, in the order of the router's cores.
    tasks: Vec<usize>,
    /// Ports that are links, likewise.
    ports: Vec<usize>,
    /// Services that a seam takes to be forgotten, at least.
    forgotten_services: f64,
    /// Cores with more room than a lane keeps for them: they must not lose a frame.
    cut_short: Vec<usize>,
}

/// A scenario that lanes can run.
pub struct Prepared {
    chains: Vec<Chain>,
    model: Model,
    program: Program,
    planes: Vec<Plane>,
    memory: OnceCell<Memory>,
}

impl Prepared {
    /// Puts a checked scenario into the terms of lanes.
    ///
    /// # Errors
    ///
    /// [`SimError::NotInLanes`], and whatever compiling the graph refuses.
    pub fn new(scenario: &Scenario) -> Result<Self, SimError> {
        // The ways of the frames are those of any path.
        let mut plain = scenario.clone();
        plain.run.path = Path::Auto;
        let (plain, chains) = chains::folded(&plain).map_err(|why| SimError::NotInLanes { why })?;
        Self::of(&plain, &Graph::compile(&plain)?, chains).map_err(|why| SimError::NotInLanes { why })
    }

    fn of(scenario: &Scenario, graph: &Graph, chains: Vec<Chain>) -> Result<Self, String> {
        let model = Model::of(scenario, graph)?;
        let program = Program::new(&model.router, scenario.run.seed, scenario.run.replication);
        let planes = graph.planes.iter().map(|&plane| if plane == Plane::Events { Plane::Prefix } else { plane });
        Ok(Self {
            chains,
            model,
            program: program.map_err(|refusal| refusal.0)?,
            planes: planes.collect(),
            memory: OnceCell::new(),
        })
    }

    /// The same of a scenario whose path is left open, if lanes are the faster way, on whatever processor: recursion cannot
    /// run all of it, it has many frames, and a warm-up tells how each stretch goes on, or a chain of task units is one core.
    pub fn if_it_pays(scenario: &Scenario) -> Option<Self> {
        let Scenario { load, run, .. } = scenario;
        let seconds = run.duration_ps as f64 / PS_PER_S;
        let frames: f64 = load.sources.iter().map(|source| source.rate_pps * seconds).sum();
        let is_open = run.path == Path::Auto && run.begin.is_none() && !run.keep_end;
        if !is_open || frames < LEAST_FRAMES {
            return None;
        }
        let prepared = Self::new(scenario).ok()?;
        let needs_events = Graph::compile(scenario).ok()?.planes.contains(&Plane::Events);
        let model = &prepared.model;
        // Many servers at one ring are as many words of state: events go through them sooner.
        let is_alone = |core: &Core| core.servers == 1 && core.shares.is_none();
        let is_narrow = model.router.cores.iter().all(is_alone);
        let has_many =
            || prepared.most_segments(scenario) >= MANY_SEGMENTS && !matches!(prepared.memory(), Memory::Keeps);
        let pays = needs_events && is_narrow && (!prepared.chains.is_empty() || has_many());
        pays.then_some(prepared)
    }

    /// What a trial keeps of how it began, beyond a warm-up.
    fn memory(&self) -> &Memory {
        self.memory.get_or_init(|| routecast_lanes::segments::memory(&self.program, self.model.warm_up()))
    }

    /// The trial in windows of a mini-batch, cut where a segment is long beside its warm-up, for so many lanes at most: two
    /// groups keep two processors busy.
    fn cut(&self, scenario: &Scenario, most_lanes: usize) -> Cut {
        let mut cut = self.model.cut(scenario, self.most_segments(scenario).min(most_lanes));
        if cut.segments > 1 {
            match self.memory() {
                Memory::Forgets => {}
                Memory::Turns(turns) => {
                    let known = scenario.run.begin.as_ref().unwrap_or(&turns.known).clone();
                    cut.turns = Some(Turns { known, ticks: turns.ticks.clone() });
                }
                Memory::Keeps => (cut.segments, cut.vectors) = (1, Vectors::Plain),
            }
        }
        cut
    }

    fn most_segments(&self, scenario: &Scenario) -> usize {
        self.model.most_segments(scenario.run.duration_ps, self.program.has_turns())
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// [`SimError::Interrupted`].
    pub fn run(
        &self,
        scenario: &Scenario,
        device: Option<&dyn Device>,
        report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
    ) -> Result<Record, SimError> {
        let Self { chains, model, program, planes, .. } = self;
        let is_few = device.is_some() && self.cut(scenario, MINIS).segments < LEAST_SEGMENTS;
        let (outcome, cut, given_up) = match device {
            Some(_) if is_few => {
                let cut = self.cut(scenario, 2 * Vectors::widest().lanes());
                let why = "the trial has too few stretches that can be told apart";
                (routecast_lanes::segments::run(program, &cut, report), cut, vec![why.to_owned()])
            }
            None => {
                let cut = self.cut(scenario, 2 * Vectors::widest().lanes());
                (routecast_lanes::segments::run(program, &cut, report), cut, Vec::new())
            }
            Some(device) => {
                // A device has thousands of lanes: one for each window.
                let cut = self.cut(scenario, MINIS);
                match routecast_lanes::segments::run_on(device, program, &cut, report) {
                    Ok((outcome, given_up)) => (Ok(outcome), cut, given_up),
                    Err(refusal) => (Err(refusal), cut, Vec::new()),
                }
            }
        };
        let outcome = outcome.map_err(|refusal| SimError::NotInLanes { why: refusal.0 })?;
        let outcome = outcome.ok_or(SimError::Interrupted)?;
        let lost = |&core: &usize| outcome.windows.iter().any(|window| window.lost[core] > 0);
        if model.cut_short.iter().any(lost) {
            return Err(SimError::NotInLanes { why: "more frames wait in a ring than lanes have place for".into() });
        }
        let lanes = LanesOutcome {
            seams: outcome.seams.all,
            proved_at_once: outcome.seams.at_once,
            repaired: outcome.seams.repaired,
            tick_s: program.tick_ps() / PS_PER_S,
            rounding_ratio: program.rounding_ratio,
            begin_frames: scenario.run.begin.as_ref().map_or(0, inside),
            end: scenario.run.keep_end.then(|| outcome.end.clone()),
            on_device: device.is_some() && !is_few,
            given_up,
        };
        let mut ledger = Ledger::new(scenario);
        let rates = || model.router.sources.iter().map(|source| source.rate_pps);
        let parts = rates().enumerate().map(|(source, rate_pps)| rate_pps * program.mean_part(source));
        let part = parts.sum::<f64>() / rates().sum::<f64>();
        book::book(&mut ledger, scenario, model, &outcome.windows, &outcome.parts, part, cut.windows[0]);
        book::book_rest(&mut ledger, scenario, model, &outcome.windows);
        chains::book(&mut ledger, chains);
        Ok(Record {
            ledger,
            in_flight: inside(&outcome.end),
            messages: Vec::new(),
            planes: planes.clone(),
            lanes: Some(lanes),
        })
    }
}

/// Frames in the cores; what a link has taken counts as forwarded.
fn inside(end: &State) -> u64 {
    end.cores.iter().map(|core| (core.frames.len() + core.served.len()) as u64).sum()
}

impl Model {
    /// A scenario in the terms of lanes, or why it is not of their kind.
    fn of(scenario: &Scenario, graph: &Graph) -> Result<Self, String> {
        let Scenario { model, load, run } = scenario;
        if !run.events.is_empty() || run.record_frames || run.record_from_ps.is_some() || run.message_limit > 0 {
            return Err("what happens to single frames, or during the trial, is kept by recursion and events".into());
        }
        if run.per_flow {
            return Err("frames are counted by flow".into());
        }
        let empty = || Vec::<usize>::new();
        let mut ways = Ways { scenario, graph, tasks: empty(), ports: empty(), dealers: empty(), later: Vec::new() };
        // Frames alike, and what they are at each core that they may be dealt to.
        let mut alike: Vec<Vec<Kind>> = Vec::new();
        let mut ordered = Vec::new();
        let dealt = Dealt::of(scenario, graph)?;
        for source in &load.sources {
            if !source.steps.is_empty() && source.process != crate::scenario::Process::Poisson {
                return Err("its load changes during the trial, and its arrivals are not Poisson".into());
            }
            let mut kinds = Vec::new();
            for place in order_of(load, source)? {
                let mut shares: Vec<(usize, f64)> = Vec::new();
                for Share { flow, bytes, weight } in place {
                    for (cores, part) in dealt.cores(graph, flow)? {
                        let kind = |&core: &u32| ways.kind_of(source.port, (flow, bytes), core);
                        let kinds = cores.iter().map(kind).collect::<Result<Vec<_>, _>>()?;
                        let number = alike.iter().position(|known| *known == kinds).unwrap_or(alike.len());
                        if number == alike.len() {
                            alike.push(kinds);
                        }
                        match shares.iter_mut().find(|share| share.0 == number * dealt.turns()) {
                            Some(share) => share.1 += weight * part,
                            None => shares.push((number * dealt.turns(), weight * part)),
                        }
                    }
                }
                kinds.push(shares);
            }
            ordered.push((source, kinds));
        }
        let Ways { tasks, ports, dealers, later, .. } = ways;
        let first = alike.concat();
        let behind = first.len();
        let mut kinds = [first, later].concat();
        for next in kinds.iter_mut().filter_map(|kind| kind.next.as_mut()) {
            next.kind += behind;
        }
        let trial_ticks = run.duration_ps as f64 / Router::usual_tick_ps(&kinds);
        let sources = ordered.into_iter().map(|(source, order)| arrivals_of(source, &kinds, order, trial_ticks));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        for &task in &tasks {
            check_core(scenario, task)?;
        }
        let (mut polls, mut polling) = polls_of(scenario, &tasks)?;
        let sleep = sleep_of(scenario, &tasks)?;
        // Without polls the cost of a batch is part of each frame's.
        for kind in kinds.iter_mut().filter(|kind| !polling[kind.core]) {
            let task = &model.tasks[tasks[kind.core]];
            kind.work_ps += task.per_batch_ps / speed_of(scenario, task);
        }
        if polls.is_none() && !sleep.is_empty() {
            // A core that sleeps takes frame by frame, too.
            polls = Some(Polls { batch: 1, cost_ps: 0.0, interrupts: None });
            polling.fill(true);
        }
        let (contention, contends) = contention(scenario, &tasks)?;
        let (laws, law_of) = laws_of(scenario, &tasks)?;
        let queue = |task: usize| model.tasks[task].queue as u32;
        let (interruptions, struck) = interruptions_of(scenario, &tasks)?;
        let shared: Vec<_> = (0..tasks.len()).map(|number| servers_of(scenario, &tasks, number)).collect();
        let core = |number: usize| Core {
            queue: queue(tasks[number]),
            servers: shared[number].0,
            shares: shared[number].1,
            law: law_of[number],
            contends: contends[number],
            polls: polling[number],
            is_struck: struck[number],
        };
        let cores = (0..tasks.len()).map(core);
        let router = Router {
            tick_ps: Router::usual_tick_ps(&kinds),
            cores: cores.collect(),
            links: ports.iter().map(|&port| Link { queue: model.ports[port].tx_ring as u32 }).collect(),
            laws,
            turns: dealt.turns(),
            polls,
            sleep,
            interruptions,
            contention,
            dealers: dealers.iter().map(|&dealer| model.tasks[dealer].route.to.len()).collect(),
            sources,
            kinds,
        };
        let mut router = router;
        router.tick_ps = tick_ps(&router);
        let cut_short = cut_short(&mut router);
        Ok(Self { forgotten_services: forgotten_services(&router), router, tasks, ports, cut_short })
    }

    /// Segments that are long beside their warm-up; one where trajectories never forget how they began.
    fn most_segments(&self, duration_ps: u64, has_turns: bool) -> usize {
        let work_ps = self.router.kinds.iter().map(|kind| kind.work_ps).fold(0.0, f64::max);
        let slowest = self.router.contention.iter().copied().fold(1.0, f64::max);
        let is_full = |source: &Source| source.wire_load(&self.router.kinds) > 0.98 && source.is_random();
        if stages(&self.router).any(|router| router.sources.iter().any(is_full)) {
            return 1;
        }
        let is_random = self.router.laws.iter().any(|law| *law != Law::Constant);
        let is_overloaded =
            |router: &Router| (0..router.cores.len()).any(|core| slowest * load_of(router, core) > 0.98);
        if !is_random && !has_turns && stages(&self.router).any(|router| is_overloaded(&router)) {
            return 1;
        }
        (duration_ps as f64 / (self.forgotten_services * work_ps).max(1.0)) as usize
    }

    /// Ticks after which trajectories have mostly forgotten how they began.
    fn warm_up(&self) -> u64 {
        let work_ps = self.router.kinds.iter().map(|kind| kind.work_ps).fold(0.0, f64::max);
        (self.forgotten_services * work_ps / self.router.tick_ps) as u64
    }

    /// The trial in windows of a mini-batch, in so many segments at most.
    fn cut(&self, scenario: &Scenario, most_segments: usize) -> Cut {
        let ticks = |ps: u64| (ps as f64 / self.router.tick_ps) as u64;
        let duration_ps = scenario.run.duration_ps;
        let begin = scenario.run.begin.clone();
        let from = begin.as_ref().map_or(0, |begin| begin.at);
        let windows: Vec<u64> = (0..=MINIS).map(|mini| from + ticks(mini_boundary(duration_ps, mini))).collect();
        let warm_up = self.warm_up();
        let vectors = Vectors::widest();
        // A group of few lanes does not pay.
        let few = most_segments < LEAST_SEGMENTS;
        let (segments, vectors) = if few { (1, Vectors::Plain) } else { (most_segments, vectors) };
        let part_of = (0..MINIS).map(|mini| mini / MINIS_PER_SEGMENT).collect();
        Cut { begin, windows, part_of, segments, warm_up, vectors, turns: None }
    }
}

/// Picoseconds of a tick: where services are constant, those of the busiest core last whole ticks also while others slow it
/// down.
fn tick_ps(router: &Router) -> f64 {
    let usual_ps = Router::usual_tick_ps(&router.kinds);
    if router.laws.iter().any(|law| *law != Law::Constant) {
        return usual_ps;
    }
    let contending = router.cores.iter().filter(|core| core.contends).count();
    let slowest = router.contention.get(contending.max(1) - 1).or(router.contention.last()).copied().unwrap_or(1.0);
    let service_ps = |core: usize| {
        let works = || router.kinds.iter().filter(|kind| kind.core == core).map(|kind| kind.work_ps);
        let first = works().next().filter(|&ps| ps > 0.0 && works().all(|other| other == ps));
        first.map(|ps| if router.cores[core].contends { ps * slowest } else { ps })
    };
    let busiest =
        (0..router.cores.len()).max_by(|&one, &other| load_of(router, one).total_cmp(&load_of(router, other)));
    let service_ps = busiest.and_then(service_ps).filter(|ps| ps.is_finite());
    service_ps.map_or(usual_ps, |ps| ps / (ps / usual_ps).round().max(1.0))
}

/// Cuts the rings of cores to what a lane has place for, and its clock; returns those cores.
fn cut_short(router: &mut Router) -> Vec<usize> {
    let in_turn = router.cores_in_turn().unwrap_or(1) as f64;
    let most_ps = router.tick_ps * f64::from(1 << 27) / in_turn;
    let is_long = |&core: &usize| router.cores[core].queue > MOST_WAITING || router.longest_wait_ps(core) > most_ps;
    let long: Vec<usize> = (0..router.cores.len()).filter(is_long).collect();
    for &core in &long {
        let share = most_ps / router.longest_wait_ps(core);
        let queue = &mut router.cores[core].queue;
        *queue = (*queue).min(MOST_WAITING).min((share * f64::from(*queue)) as u32).max(1);
    }
    long
}

/// Services after which two trajectories that began differently are mostly the same: measured for one queue, with a
/// margin; a seam that stays open is repaired.
fn forgotten_services(router: &Router) -> f64 {
    let room = router.cores.iter().map(|core| f64::from(core.queue) + 1.0).fold(1.0, f64::max);
    let of_core = |router: &Router, core: usize| {
        let apart = 1.0 - load_of(router, core).sqrt();
        let uneven = router.sources.iter().map(Source::burst_frames).fold(1.0, f64::max);
        (room * room).min(25.0 * uneven / (apart * apart))
    };
    // A ring that is seldom full is not filled for long.
    let room = if stages(router).all(|router| (0..router.cores.len()).all(|core| load_of(&router, core) < 0.9)) {
        room.min(2000.0)
    } else {
        room
    };
    let relaxation = stages(router)
        .flat_map(|router| (0..router.cores.len()).map(move |core| of_core(&router, core)).collect::<Vec<_>>())
        .fold(0.0, f64::max);
    let work_ps = router.kinds.iter().map(|kind| kind.work_ps).fold(0.0, f64::max).max(1.0);
    let bursts = router.sources.iter().map(|source| source.burst_frames() * PS_PER_S / source.rate_pps / work_ps);
    // A few bursts; and one core after the other forgets how it began.
    (2.0 * relaxation + 4.0 * room + 2000.0) * router.cores_in_turn().unwrap_or(1) as f64
        + 20.0 * bursts.fold(0.0, f64::max)
}

/// The router at the loads that its sources have one after the other.
fn stages(router: &Router) -> impl Iterator<Item = Router> {
    let count = router.sources.iter().map(|source| source.steps.len()).max().unwrap_or(0);
    (0..=count).map(|stage| {
        let mut router = router.clone();
        for source in &mut router.sources {
            let steps = std::mem::take(&mut source.steps);
            let last = stage.min(steps.len()).checked_sub(1);
            source.rate_pps = last.map_or(source.rate_pps, |last| steps[last].1);
        }
        router
    })
}

/// Picoseconds of a core's work for a frame of a kind and for what it is at the cores after its own.
fn work_at(router: &Router, core: usize, kind: usize) -> f64 {
    let own = if router.kinds[kind].core == core { router.kinds[kind].work_ps } else { 0.0 };
    let after = router.after(kind);
    let dealt = after.len().max(1) as f64;
    own + after.map(|next| work_at(router, core, next)).sum::<f64>() / dealt
}

/// Work that is offered to a core and those that it shares servers with, over their time, with one core at work.
fn load_of(router: &Router, core: usize) -> f64 {
    let leader = |core: usize| router.cores[core].shares.unwrap_or(core);
    let team: Vec<usize> = (0..router.cores.len()).filter(|&other| leader(other) == leader(core)).collect();
    let at_team = |kind: usize| team.iter().map(|&core| work_at(router, core, kind)).sum::<f64>();
    let dealt = |kind: usize| {
        let kinds = kind..kind + router.turns;
        kinds.map(at_team).sum::<f64>() / router.turns as f64 / f64::from(router.cores[core].servers)
    };
    router.sources.iter().map(|source| source.mean(dealt) * source.rate_pps / PS_PER_S).sum()
}
