//! A trial in lanes: whether a model is of their kind, the router in their terms, and their counts as a record.
//!
//! Lanes run routers whose frames find a core by their flow, wait in that core's own ring, are served one by one or poll by
//! poll, and leave by a link or at once. They draw by a rule of their own (`routecast_lanes::draw`), so one seed gives another
//! trajectory there than by recursion or events.

use std::ops::ControlFlow;

use routecast_lanes::law::Law;
use routecast_lanes::router::{Core, Interrupts, Kind, Link, Polls, Program, Router, Source};
use routecast_lanes::segments::Cut;
use routecast_lanes::state::{Histograms, State, Tally, bounds};
use routecast_lanes::vectors::Vectors;
use statrs::function::{erf::erfc, gamma::gamma_ur};

use crate::error::SimError;
use crate::graph::{EXIT, Graph, Next};
use crate::histogram::{Sparse, slot};
use crate::ledger::{Ledger, MINIS, Mini, SEGMENTS, mini_boundary};
use crate::manager::Managers;
use crate::outcome::LanesOutcome;
use crate::planes::{Plane, allowed_units, needs_events, servers};
use crate::run::Record;
use crate::scenario::{Activation, Path, Process, Scenario, Task, Variation};
use crate::source::WIRE_OVERHEAD_BYTES;
use crate::time::PS_PER_S;

const MINIS_PER_SEGMENT: usize = MINIS / SEGMENTS;

/// A model in the terms of lanes.
struct Model {
    router: Router,
    /// Task units that are cores, in the order of the router's cores.
    tasks: Vec<usize>,
    /// Ports that are links, likewise.
    ports: Vec<usize>,
    /// Services that a seam takes to be forgotten, at least.
    forgotten_services: f64,
}

/// Runs a checked scenario in lanes.
///
/// # Errors
///
/// [`SimError::NotInLanes`], [`SimError::Interrupted`], and whatever compiling the graph refuses.
pub fn run(scenario: &Scenario, report: &(dyn Fn(f64) -> ControlFlow<()> + Sync)) -> Result<Record, SimError> {
    // The ways of the frames are those of any path.
    let mut plain = scenario.clone();
    plain.run.path = Path::Auto;
    let graph = Graph::compile(&plain)?;
    let model = Model::of(scenario, &graph).map_err(|why| SimError::NotInLanes { why })?;
    let refused = |refusal: routecast_lanes::router::Refusal| SimError::NotInLanes { why: refusal.0 };
    let program = Program::new(&model.router, scenario.run.seed, scenario.run.replication).map_err(refused)?;
    let cut = model.cut(scenario);
    let outcome = routecast_lanes::segments::run(&program, &cut, report).map_err(refused)?;
    let outcome = outcome.ok_or(SimError::Interrupted)?;
    let lanes = LanesOutcome {
        seams: outcome.seams.all,
        proved_at_once: outcome.seams.at_once,
        repaired: outcome.seams.repaired,
        tick_s: program.tick_ps() / PS_PER_S,
        rounding_ratio: program.rounding_ratio,
    };
    let mut ledger = Ledger::new(scenario);
    book(&mut ledger, scenario, &model, &outcome.windows, &outcome.parts);
    Managers::new(&scenario.model.pools, &[], &[], 0).close(scenario.run.duration_ps, &mut ledger);
    let planes = graph.planes.iter().map(|&plane| if plane == Plane::Events { Plane::Prefix } else { plane });
    Ok(Record {
        ledger,
        in_flight: inside(&outcome.end),
        messages: Vec::new(),
        planes: planes.collect(),
        lanes: Some(lanes),
    })
}

/// Frames in the cores; what a link has taken counts as forwarded.
fn inside(end: &State) -> u64 {
    end.cores.iter().map(|core| core.frames.len() as u64).sum()
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
        if load.sizes.len() > 1 && !load.random_sizes {
            return Err("frames of several sizes repeat in order".into());
        }
        let mut tasks: Vec<usize> = Vec::new();
        let mut ports: Vec<usize> = Vec::new();
        let mut kinds: Vec<Kind> = Vec::new();
        let mut sources = Vec::new();
        let factor = contention(scenario)?;
        // A link that sends within nothing of a tick is no queue.
        let negligible_ps = least_work_ps(scenario) / 1e6;
        for source in &load.sources {
            if source.process != Process::Poisson {
                return Err("its arrivals are not Poisson".into());
            }
            if !source.steps.is_empty() {
                return Err("its load changes during the trial".into());
            }
            let wire_bps = model.ports[source.port].link_bps;
            let mut shares = Vec::new();
            for &flow in &source.flows {
                let node = graph.first_of(flow).ok_or("frames find their core in turn or at random")?;
                if node as usize >= graph.tasks {
                    return Err("frames go to a port without a core".into());
                }
                let core = number_of(&mut tasks, node as usize);
                let link = match graph.next_of(node as usize) {
                    Next::Fixed(EXIT) => None,
                    Next::Fixed(next) => Some(*next as usize),
                    Next::ByFlow(table) => Some(table[flow as usize] as usize).filter(|&next| next as u32 != EXIT),
                    Next::Dynamic => return Err("frames leave in turn or at random".into()),
                };
                let link = link.map(|next| next.checked_sub(graph.tasks).ok_or("a frame needs two cores in turn"));
                let link = link.transpose()?;
                let task = &model.tasks[node as usize];
                for &bytes in &load.sizes {
                    let on_wire = f64::from(bytes + WIRE_OVERHEAD_BYTES) * 8.0 * PS_PER_S;
                    let link = link.map(|port| (port, on_wire / model.ports[port].link_bps));
                    let link = link.filter(|&(_, sends_ps)| sends_ps > negligible_ps);
                    let kind = Kind {
                        bytes,
                        wire_ps: on_wire / wire_bps,
                        core,
                        work_ps: work_ps(scenario, task, bytes),
                        link: link.map(|(port, _)| number_of(&mut ports, port)),
                        transmission_ps: link.map_or(0.0, |(_, sends_ps)| sends_ps),
                    };
                    let weight = load.flows[flow as usize].weight;
                    let place = kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len());
                    if place == kinds.len() {
                        kinds.push(kind);
                    }
                    match shares.iter_mut().find(|share: &&mut (usize, f64)| share.0 == place) {
                        Some(share) => share.1 += weight,
                        None => shares.push((place, weight)),
                    }
                }
            }
            sources.push(Source { rate_pps: source.rate_pps, kinds: shares });
        }
        for &task in &tasks {
            check_core(scenario, task)?;
        }
        let polls = polls_of(scenario, &tasks)?;
        if polls.is_none() {
            // Without polls the cost of a batch is part of each frame's.
            for kind in &mut kinds {
                let task = &model.tasks[tasks[kind.core]];
                kind.work_ps += task.per_batch_ps / speed_of(scenario, task);
            }
        }
        let router = Router {
            tick_ps: Router::usual_tick_ps(&kinds),
            cores: tasks.iter().map(|&task| Core { queue: model.tasks[task].queue as u32 }).collect(),
            links: ports.iter().map(|&port| Link { queue: model.ports[port].tx_ring as u32 }).collect(),
            law: law_of(scenario, &tasks)?,
            polls,
            contention: factor,
            sources,
            kinds,
        };
        Ok(Self { forgotten_services: forgotten_services(&router), router, tasks, ports })
    }

    /// The trial in windows of a mini-batch, cut where a segment is long beside its warm-up.
    fn cut(&self, scenario: &Scenario) -> Cut {
        let ticks = |ps: u64| (ps as f64 / self.router.tick_ps) as u64;
        let duration_ps = scenario.run.duration_ps;
        let windows: Vec<u64> = (0..=MINIS).map(|mini| ticks(mini_boundary(duration_ps, mini))).collect();
        let work_ps = self.router.kinds.iter().map(|kind| kind.work_ps).fold(0.0, f64::max);
        let warm_up = ticks((self.forgotten_services * work_ps) as u64);
        let most = (windows[MINIS] / warm_up.max(1)) as usize;
        let vectors = Vectors::widest();
        // Two groups keep two processors busy; a group of few lanes does not pay.
        let segments = most.min(2 * vectors.lanes());
        let (segments, vectors) = if segments < 4 { (1, Vectors::Plain) } else { (segments, vectors) };
        Cut { windows, part_of: (0..MINIS).map(|mini| mini / MINIS_PER_SEGMENT).collect(), segments, warm_up, vectors }
    }
}

/// The place of a node in a list, to which it is added if it is not there.
fn number_of(list: &mut Vec<usize>, node: usize) -> usize {
    list.iter().position(|&known| known == node).unwrap_or_else(|| {
        list.push(node);
        list.len() - 1
    })
}

/// Services after which two trajectories that began differently are mostly the same: measured for one queue, with a
/// margin; a seam that stays open is repaired.
fn forgotten_services(router: &Router) -> f64 {
    let room = router.cores.iter().map(|core| f64::from(core.queue) + 1.0).fold(1.0, f64::max);
    let load_of = |core: usize| -> f64 {
        let of_source = |source: &Source| {
            let total: f64 = source.kinds.iter().map(|kind| kind.1).sum();
            let here = source.kinds.iter().filter(|kind| router.kinds[kind.0].core == core);
            here.map(|kind| kind.1 / total * router.kinds[kind.0].work_ps).sum::<f64>() * source.rate_pps / PS_PER_S
        };
        router.sources.iter().map(of_source).sum()
    };
    let relaxation = (0..router.cores.len())
        .map(|core| {
            let apart = 1.0 - load_of(core).sqrt();
            (room * room).min(25.0 / (apart * apart))
        })
        .fold(0.0, f64::max);
    2.0 * relaxation + 4.0 * room + 2000.0
}

/// Picoseconds of the shortest work of any task unit.
fn least_work_ps(scenario: &Scenario) -> f64 {
    let works = scenario.model.tasks.iter().map(|task| task.per_frame_ps + task.per_byte_ps + task.per_batch_ps);
    works.filter(|&ps| ps > 0.0).fold(f64::INFINITY, f64::min)
}

/// Mean picoseconds of a frame's service, without the cost of its batch.
fn work_ps(scenario: &Scenario, task: &Task, bytes: u32) -> f64 {
    (task.per_frame_ps + task.per_byte_ps * f64::from(bytes)) / speed_of(scenario, task)
}

/// Speed of a task unit's unit.
fn speed_of(scenario: &Scenario, task: &Task) -> f64 {
    task.needs.first().map_or(1.0, |need| {
        let pool = &scenario.model.pools[need.pool];
        pool.speed[allowed_units(task, pool.speed.len())[0]]
    })
}

/// How all cores find their frames; none where each is served as soon as the one before is done, at a cost of its own.
fn polls_of(scenario: &Scenario, tasks: &[usize]) -> Result<Option<Polls>, String> {
    let mut ways = tasks.iter().map(|&number| {
        let task = &scenario.model.tasks[number];
        let speed = speed_of(scenario, task);
        let (batch, interrupts) = match task.activation {
            Activation::Interrupt { budget, cost_ps, moderation_ps, exhaustive, .. } => {
                (budget, Some(Interrupts { cost_ps: cost_ps / speed, moderation_ps, exhaustive }))
            }
            _ => (task.batch, None),
        };
        let is_plain = batch == 1 && interrupts.is_none();
        let is_one_cost = task.per_batch_ps == 0.0 || task.variation == Variation::Deterministic;
        let polls = Polls { batch: batch as u32, cost_ps: task.per_batch_ps / speed, interrupts };
        if is_plain && is_one_cost { None } else { Some(polls) }
    });
    let first = ways.next().flatten();
    if ways.any(|other| other != first) {
        return Err("its cores poll in different ways".into());
    }
    Ok(first)
}

/// The factors of the one pool whose units slow each other down; none where there is none.
fn contention(scenario: &Scenario) -> Result<Vec<f64>, String> {
    let slows = |pool: &&crate::scenario::Pool| pool.contention.iter().any(|&factor| factor != 1.0);
    let mut pools = scenario.model.pools.iter().filter(slows);
    let Some(pool) = pools.next() else { return Ok(vec![]) };
    if pools.next().is_some() {
        return Err("the units of several pools slow each other down".into());
    }
    let number = scenario.model.pools.iter().position(|other| std::ptr::eq(other, pool)).unwrap_or(0);
    let is_of_it = |task: &Task| task.needs.first().is_some_and(|need| need.pool == number);
    let works = |task: &&Task| task.per_frame_ps + task.per_byte_ps + task.per_batch_ps > 0.0;
    if !scenario.model.tasks.iter().filter(works).all(is_of_it) {
        return Err("only some of its cores slow each other down".into());
    }
    Ok(pool.contention.clone())
}

/// Why a task unit is not a core of its own.
fn check_core(scenario: &Scenario, number: usize) -> Result<(), String> {
    let task = &scenario.model.tasks[number];
    if let Some(why) = needs_events(scenario, number, true) {
        return Err(format!("task unit {number}: {why}"));
    }
    if servers(scenario, number) != 1 {
        return Err(format!("task unit {number} serves several frames at once"));
    }
    if task.needs.iter().any(|need| scenario.model.pools[need.pool].interruptions.is_some()) {
        return Err(format!("task unit {number}: its unit is interrupted"));
    }
    Ok(())
}

/// The law of all cores' services.
fn law_of(scenario: &Scenario, tasks: &[usize]) -> Result<Law, String> {
    let mut variations = tasks.iter().map(|&task| scenario.model.tasks[task].variation);
    let Some(first) = variations.next() else { return Err("no frame is served".into()) };
    if variations.any(|other| other != first) {
        return Err("services of its cores vary by different laws".into());
    }
    Ok(match first {
        Variation::Deterministic => Law::Constant,
        Variation::Exponential => Law::Exponential,
        Variation::Gamma { scv } => Law::of_survival(|x| gamma_ur(1.0 / scv, x / scv)),
        Variation::Hyperexponential { scv } => {
            // Balanced means: each phase carries half of the mean.
            let p = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt());
            Law::of_survival(move |x| p * (-2.0 * p * x).exp() + (1.0 - p) * (-2.0 * (1.0 - p) * x).exp())
        }
        Variation::Lognormal { scv } => {
            let variance = (1.0 + scv).ln();
            Law::of_survival(move |x| 0.5 * erfc((x.ln() + 0.5 * variance) / (2.0 * variance).sqrt()))
        }
        Variation::Uniform { scv } => {
            let half = (3.0 * scv).sqrt();
            Law::of_survival(move |x| ((1.0 + half - x) / (2.0 * half)).clamp(0.0, 1.0))
        }
    })
}

/// Writes the lanes' counts into a ledger.
fn book(ledger: &mut Ledger, scenario: &Scenario, model: &Model, windows: &[Tally], parts: &[Histograms]) {
    let tick_ps = model.router.tick_ps;
    let ps = |ticks: u64| (ticks as f64 * tick_ps) as u64;
    let nodes = scenario.model.tasks.len();
    for (number, window) in windows.iter().enumerate() {
        let segment = number / MINIS_PER_SEGMENT;
        ledger.minis[number] = Mini {
            frames: window.forwarded,
            bytes: window.forwarded_bytes,
            // A frame comes half a tick after the beginning of its tick, on average.
            latency_ps: ((window.latency_ticks as f64 - 0.5 * window.forwarded as f64).max(0.0) * tick_ps) as u64,
            waited_ps: ps(window.waited_ticks),
        };
        for (offered, (frames, bytes)) in
            ledger.offered.iter_mut().zip(window.offered.iter().zip(&window.offered_bytes))
        {
            offered.frames[segment] += frames;
            offered.bytes[segment] += bytes;
        }
        for (core, &task) in model.tasks.iter().enumerate() {
            let account = &mut ledger.accounts[task];
            account.busy_ps[segment] += ps(window.busy_ticks[core]);
            account.waited_ps[segment] += ps(window.waited_at_core_ticks[core]);
            account.dropped[segment] += window.lost[core];
            account.interrupts[segment] += window.interrupts[core];
            account.polls[segment] += window.polls[core];
        }
        for (link, &port) in model.ports.iter().enumerate() {
            let account = &mut ledger.accounts[nodes + port];
            account.busy_ps[segment] += ps(window.sent_fine[link]) >> 8;
            account.waited_ps[segment] += ps(window.waited_at_link_ticks[link]);
            account.dropped[segment] += window.lost_at_link[link];
        }
        if let Some((first, last)) = window.lost_at {
            let known = ledger.lost.unwrap_or((u64::MAX, 0));
            ledger.lost = Some((known.0.min(ps(first)), known.1.max(ps(last))));
        }
        if let Some(timeline) = &mut ledger.timeline {
            timeline.offered[number] = window.offered.iter().sum();
            timeline.dropped[number] = window.lost.iter().chain(&window.lost_at_link).sum();
        }
    }
    let sparse = |bins: &[u64]| -> Sparse {
        let filled = bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled
            .map(|(bin, &count)| {
                let (least, width) = bounds(bin);
                (slot(((least as f64 + 0.5 * (width - 1) as f64) * tick_ps) as u64) as u32, count)
            })
            .collect()
    };
    for part in parts {
        ledger.latencies.push(sparse(&part.latencies));
        ledger.waitings.push(sparse(&part.waits));
    }
}
