//! Windows at random: every frame against a brute-force simulation, and no unit that is lost.

use crate::scenarios::{End, US, door, ends, exit, on, poisson, pool, port, seconds, task, to, traced};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Activation, Event, Flow, Load, Model, Path, Policy, Port, Process, Route, RouteKind, Scenario, Source, Target,
    Task, Variation,
};

const FIXED: Variation = Variation::Deterministic;
const EXPONENTIAL: Variation = Variation::Exponential;

/// A node of a chain in the brute-force simulation: its servers, shared with others, or the window that it opens.
#[derive(Debug, Clone, Copy)]
struct Stage {
    takes_ps: u64,
    queue: usize,
    servers: usize,
    window: Option<(usize, usize, usize)>,
    skips: bool,
}

/// Everything looked at at every step; times, ends and drops as the semantics have them (S3, S4, S7).
fn brute_force(stages: &[Stage], counts: &[usize], pools: &[usize], arrivals: &[u64], end: u64) -> (Vec<End>, u128) {
    struct Busy {
        at: u64,
        stage: usize,
        frame: usize,
    }
    let (mut busy, mut free, mut units): (Vec<Busy>, _, _) = (vec![], counts.to_vec(), pools.to_vec());
    // Frames that wait for servers and for units, in order of arrival: (stage, frame).
    let mut for_servers: Vec<(usize, usize)> = vec![];
    let mut for_units: Vec<(usize, usize)> = vec![];
    let mut hands: Vec<Vec<(usize, u64)>> = vec![vec![]; arrivals.len()];
    let (mut ends, mut held) = (vec![], 0_u128);
    let mut coming: Vec<(u64, usize, usize)> = arrivals.iter().enumerate().map(|(n, &at)| (at, n, 0)).collect();
    loop {
        coming.sort_unstable();
        let next_in = coming.first().map_or(u64::MAX, |first| first.0);
        let next_end = busy.iter().map(|service| service.at).min().unwrap_or(u64::MAX);
        let now = next_in.min(next_end);
        if now >= end {
            break;
        }
        let mut lost = None;
        let mut served = None;
        if next_end <= next_in {
            // The furthest first; of one stage, that which began first.
            let best = (0..busy.len()).filter(|&n| busy[n].at == now).max_by_key(|&n| (busy[n].stage, usize::MAX - n));
            let Busy { stage, frame, .. } = busy.remove(best.expect("one is due"));
            if stages[stage].window.is_none() {
                free[stages[stage].servers] += 1;
            }
            served = Some((stage, frame));
            let next = if stages[stage].skips && frame % 2 == 1 { stage + 2 } else { stage + 1 };
            if next < stages.len() {
                coming.push((now, frame, next));
            } else {
                ends.push((frame as u64, now, None));
            }
        } else {
            let (_, frame, stage) = coming.remove(0);
            let waiting = if stages[stage].window.is_some() { &mut for_units } else { &mut for_servers };
            waiting.push((stage, frame));
            // It waits unless it is taken at once; then there must have been room.
            let here = waiting.iter().filter(|other| other.0 == stage).count();
            let at_once = match stages[stage].window {
                Some((pool, count, _)) => {
                    units[pool] >= count
                        && waiting.iter().filter(|o| stages[o.0].window.map(|w| w.0) == Some(pool)).count() == 1
                }
                None => free[stages[stage].servers] > 0,
            };
            if !at_once && here > stages[stage].queue {
                waiting.pop();
                ends.push((frame as u64, now, Some(stage as u32)));
                lost = Some(frame);
            }
        }
        for (frame, until) in
            served.map(|(stage, frame)| (frame, Some(stage))).into_iter().chain(lost.map(|f| (f, None)))
        {
            let (gone, kept): (Vec<_>, Vec<_>) = hands[frame].iter().partition(|(door, _)| {
                let (.., end) = stages[*door].window.expect("from doors");
                until.is_none_or(|until| until == end)
            });
            hands[frame] = kept;
            for (door, since) in gone {
                let (pool, count, _) = stages[door].window.expect("from doors");
                units[pool] += count;
                held += u128::from(now - since) * count as u128;
            }
        }
        // Servers and units for whoever waits, oldest first.
        let mut n = 0;
        while n < for_servers.len() {
            let (stage, frame) = for_servers[n];
            if free[stages[stage].servers] > 0 {
                free[stages[stage].servers] -= 1;
                busy.push(Busy { at: now + stages[stage].takes_ps, stage, frame });
                for_servers.remove(n);
            } else {
                n += 1;
            }
        }
        let mut shut = vec![false; pools.len()];
        n = 0;
        while n < for_units.len() {
            let (stage, frame) = for_units[n];
            let (pool, count, _) = stages[stage].window.expect("doors");
            if !shut[pool] && units[pool] >= count {
                units[pool] -= count;
                hands[frame].push((stage, now));
                busy.push(Busy { at: now + stages[stage].takes_ps, stage, frame });
                for_units.remove(n);
            } else {
                shut[pool] = true;
                n += 1;
            }
        }
    }
    for (door, since) in hands.into_iter().flatten() {
        held += u128::from(end - since) * stages[door].window.expect("from doors").1 as u128;
    }
    ends.sort_unstable();
    (ends, held)
}

fn stage(nodes: usize) -> impl Strategy<Value = (Stage, u8)> {
    let window = (0_usize..3, 1_usize..3, 1..nodes);
    (0_u64..5, 1_usize..4, 0_usize..3, prop::option::of(window), any::<bool>(), any::<u8>()).prop_map(
        |(us, queue, servers, window, skips, kind)| {
            (Stage { takes_ps: us * 1_000_000, queue, servers, window, skips }, kind)
        },
    )
}

/// The stages as task units in a row: the first three pools are those of windows, then come the servers.
fn chain(stages: &[Stage], counts: &[usize], units: &[usize], arrivals: &[u64], end: u64) -> Scenario {
    let nodes = stages.len();
    let tasks = stages.iter().enumerate().map(|(n, stage)| {
        let next = |n: usize| if n < nodes { Target::Task(n) } else { Target::Port(0) };
        let route = match (stage.skips, n + 1 == nodes) {
            (_, true) => exit(),
            (true, _) => Route {
                kind: RouteKind::PerFlow,
                to: vec![next(n + 1), next(n + 2)],
                weights: vec![],
                indirection: vec![],
            },
            _ => to(next(n + 1)),
        };
        let work = task(stage.takes_ps as f64, FIXED, stage.queue, route);
        match stage.window {
            Some((pool, count, until)) => {
                Task { per_frame_ps: work.per_frame_ps, ..door(pool, count, until, stage.queue, work.route) }
            }
            None => Task { parallel: None, ..on(work, 3 + stage.servers) },
        }
    });
    let process = Process::Trace {
        time_ps: arrivals.to_vec(),
        bytes: vec![64; arrivals.len()],
        flow: (0..arrivals.len() as u32).map(|n| n % 2).collect(),
    };
    let flow = |hash| Flow { hash, egress: 0, weight: 1.0 };
    Scenario {
        model: Model {
            // A link so fast that frames can come at one instant.
            ports: vec![Port { link_bps: 1e18, ..port(Some(0)) }],
            tasks: tasks.collect(),
            pools: units.iter().chain(counts).map(|&count| pool(count, Policy::Fifo)).collect(),
        },
        load: Load {
            sources: vec![Source { port: 0, rate_pps: 1e6, process, flows: vec![0, 1], steps: vec![] }],
            flows: vec![flow(0), flow(1)],
            sizes: vec![64],
            random_sizes: false,
        },
        run: seconds(end as f64 * 1e-12, 1),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_frame_fares_as_in_a_brute_force_simulation(
        mut stages in (3_usize..12).prop_flat_map(|nodes| prop::collection::vec(stage(nodes), nodes)),
        counts in prop::collection::vec(1_usize..3, 3),
        units in prop::collection::vec(2_usize..7, 3),
        gaps in prop::collection::vec(0_u64..6, 1..200),
    ) {
        let nodes = stages.len();
        // Windows end further on; a way that skips a task unit must not skip the end of a window.
        let end_of = |n: usize, ahead: usize| (n + ahead).min(nodes - 1);
        for (n, (stage, kind)) in stages.iter_mut().enumerate() {
            stage.window = stage.window.filter(|_| n + 1 < nodes && *kind < 140);
            // Servers take their time. Where frames pass several in no time at all, which of them comes first to the
            // next one at that instant is anybody's guess: (time, number) decides in a recursion, events as they go.
            stage.takes_ps += if stage.window.is_none() { 1_000_000 } else { 0 };
            if let Some(window) = &mut stage.window {
                window.2 = end_of(n, window.2);
            }
        }
        let ends_at: Vec<bool> =
            (0..nodes).map(|n| stages.iter().any(|(stage, _)| stage.window.is_some_and(|w| w.2 == n))).collect();
        let mut stages: Vec<Stage> = stages.into_iter().map(|(stage, _)| stage).collect();
        for (n, stage) in stages.iter_mut().enumerate() {
            stage.skips &= n + 2 < nodes && !ends_at[n + 1];
        }
        let mut at = 0;
        let arrivals: Vec<u64> = gaps.iter().map(|gap| { at += gap * 500_000; at }).collect();
        let end = at + 40_000_000;
        let scenario = chain(&stages, &counts, &units, &arrivals, end);
        let end = scenario.run.duration_ps;
        let (expected, held) = brute_force(&stages, &counts, &units, &arrivals, end);
        for path in [Path::Auto, Path::Events] {
            let outcome = traced(&scenario, path);
            prop_assert_eq!(&ends(&outcome), &expected, "{:?}", path);
            let in_hand: f64 = outcome.pools[..3].iter().map(|pool| pool.held_units * outcome.measured_s * 1e12).sum();
            prop_assert!((in_hand - held as f64).abs() < 1e-6 * held as f64 + 1.0, "{} {}", in_hand, held);
        }
    }
}

/// What stands in a chain beside doors: whatever the events know.
fn worker(kind: u8, us: u64, queue: usize, next: Route) -> Task {
    let work = task(us as f64 * US, if us.is_multiple_of(2) { FIXED } else { EXPONENTIAL }, queue, next);
    let (budget, cost_ps, exhaustive) = (queue, 0.2 * US, us > 2);
    match kind % 6 {
        0 => Task { parallel: None, ..on(work, 0) },
        1 => Task { parallel: Some(2000), ..work },
        2 => {
            let activation = Activation::Thread { budget, cost_ps, wakeup: None, exhaustive };
            Task { activation, holds_back: !work.route.to.is_empty(), ..on(work, 1) }
        }
        3 => {
            let (moderation_ps, wakeup, linger_ps) = (0.0, None, 0.0);
            let activation = Activation::Interrupt { budget, cost_ps, moderation_ps, wakeup, exhaustive, linger_ps };
            Task { activation, priority: 9, ..on(work, 1) }
        }
        4 => Task { batch: queue, ..on(work, 1) },
        _ => work,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_unit_is_lost_whatever_works_in_a_window_and_fails_there(
        draws in prop::collection::vec((any::<u8>(), 0_u64..5, 1_usize..6, 1_usize..8, 1_usize..4, any::<bool>()), 2..9),
        frames in 1_usize..300,
        gap_ns in 200_u64..4000,
        outages in prop::collection::vec((0_usize..9, 0.0_f64..300.0, 0.5_f64..100.0), 0..4),
    ) {
        let nodes = draws.len();
        let mut pools = vec![pool(2, Policy::Fifo), pool(2, Policy::Linux { quantum_ps: 10.0 * US, wakeup_granularity_ps: 2.0 * US })];
        let mut tasks = Vec::new();
        for (n, &(kind, us, queue, ahead, units, is_door)) in draws.iter().enumerate() {
            let next = if n + 1 < nodes { to(Target::Task(n + 1)) } else { exit() };
            tasks.push(if is_door && n + 1 < nodes {
                // Each its own pool: frames ask for pools in one order.
                pools.push(pool(units + usize::from(kind % 3), Policy::Fifo));
                Task { per_frame_ps: us as f64 * US, ..door(pools.len() - 1, units, (n + ahead).min(nodes - 1), queue, next) }
            } else {
                worker(kind, us, queue, next)
            });
        }
        let process = Process::Trace {
            time_ps: (0..frames as u64).map(|n| n * gap_ns * 1000).collect(),
            bytes: vec![64; frames],
            flow: vec![0; frames],
        };
        let source = Source { port: 0, rate_pps: 1e6, process, flows: vec![0], steps: vec![] };
        let mut scenario = Scenario {
            model: Model { ports: vec![port(Some(0))], tasks, pools },
            load: Load { sources: vec![source], ..poisson(1e6) },
            // Long enough for all of them, one by one.
            run: seconds(0.05, 3),
        };
        for (task, from_us, lasts_us) in outages {
            let until_ps = Some((from_us + lasts_us) * US);
            scenario.run.events.push(Event::Outage { task: task % nodes, from_ps: from_us * US, until_ps });
        }
        let outcome = traced(&scenario, Path::Auto);
        // A unit that nobody gave back would keep frames waiting for ever.
        prop_assert_eq!(outcome.in_flight_frames, 0);
        prop_assert_eq!(outcome.fates.len(), frames);
        for (pool, held) in scenario.model.pools.iter().zip(&outcome.pools) {
            prop_assert!(held.held_units <= pool.speed.len() as f64 * (1.0 + 1e-9));
        }
        prop_assert_eq!(ends(&outcome), ends(&traced(&scenario, Path::Events)));
    }
}
