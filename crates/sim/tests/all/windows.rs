//! Windows: frames that carry units from one task unit to another, against hand laws.

use crate::scenarios::{End, US, door, ends, exit, go, on, poisson, pool, port, seconds, task, to, traced};
use routecast_sim::scenario::{
    Activation, Event, Flow, Load, Model, Path, Policy, Process, Route, RouteKind, Scenario, Source, Target, Task,
    Variation,
};
use routecast_sim::{SimError, simulate};

const FIXED: Variation = Variation::Deterministic;
const EXPONENTIAL: Variation = Variation::Exponential;

fn even(rate_pps: f64) -> Load {
    let process = Process::Cbr { phase: 0.0 };
    Load { sources: vec![Source { port: 0, rate_pps, process, flows: vec![0], steps: vec![] }], ..poisson(rate_pps) }
}

/// One engine (pool 0) with threads (pool 1), a memory (pool 2): `waits + 1` phases of work, a memory access and a delay
/// after each but the last. Times in microseconds.
struct Block {
    threads: usize,
    phase_us: f64,
    waits: usize,
    occupancy_us: f64,
    latency_us: f64,
    variation: Variation,
    ring: usize,
}

impl Block {
    fn scenario(&self, load: Load, duration_s: f64) -> Scenario {
        let last = 3 * self.waits + 1;
        let next = |n: usize| to(Target::Task(n + 1));
        let shared =
            |us: f64, pool, next| Task { parallel: None, ..on(task(us * US, self.variation, 1024, next), pool) };
        let mut tasks = vec![door(1, 1, last, self.ring, next(0))];
        for wait in 0..self.waits {
            let n = 3 * wait + 1;
            tasks.push(shared(self.phase_us, 0, next(n)));
            tasks.push(shared(self.occupancy_us, 2, next(n + 1)));
            let delay = task(self.latency_us * US, self.variation, 1, next(n + 2));
            tasks.push(Task { parallel: Some(1 << 16), ..delay });
        }
        tasks.push(shared(self.phase_us, 0, exit()));
        let pools = vec![pool(1, Policy::Fifo), pool(self.threads, Policy::Fifo), pool(1, Policy::Fifo)];
        Scenario { model: Model { ports: vec![port(Some(0))], tasks, pools }, load, run: seconds(duration_s, 7) }
    }

    /// Frames per microsecond of a saturated block whose times are constant: the machine-repairman bounds.
    fn bound(&self) -> f64 {
        let waits = self.waits as f64;
        let work = self.phase_us * (waits + 1.0);
        let round = work + waits * (self.occupancy_us + self.latency_us);
        let memory = if self.occupancy_us > 0.0 { 1.0 / (waits * self.occupancy_us) } else { f64::INFINITY };
        (1.0 / work).min(self.threads as f64 / round).min(memory)
    }
}

const BLOCK: Block =
    Block { threads: 4, phase_us: 1.0, waits: 3, occupancy_us: 0.0, latency_us: 12.0, variation: FIXED, ring: 16 };

#[test]
fn a_saturated_engine_forwards_what_its_threads_or_its_work_allow() {
    for threads in 1..=20 {
        let block = Block { threads, ..BLOCK };
        let outcome = simulate(&block.scenario(even(0.5e6), 0.4), &go).unwrap();
        let rate = outcome.forwarded_pps.value / 1e6;
        let share = rate / block.bound();
        // Frames come every 2 us, and two phases of 1 us meet where one frame leaves and the next begins. Up to 7 such
        // pairs fit into the 13 us from one phase to the next, so nobody waits for the engine; from 12 threads on the
        // engine never waits for anybody. Between, both bounds are missed a little, as always where they are close.
        let least = if (8..12).contains(&threads) { 0.92 } else { 1.0 - 1e-4 };
        assert!(share > least && share < 1.0 + 1e-4, "{threads} threads: {rate} {}", block.bound());
        // Saturated: every thread has a frame, all the time after the first.
        assert!((outcome.pools[1].held_units / threads as f64 - 1.0).abs() < 1e-6, "{}", outcome.pools[1].held_units);
    }
}

#[test]
fn a_narrow_memory_limits_whatever_the_threads_are() {
    for (threads, occupancy_us) in [(4, 2.0), (16, 2.0), (32, 5.0), (32, 0.5)] {
        let block = Block { threads, occupancy_us, ..BLOCK };
        let outcome = simulate(&block.scenario(even(0.5e6), 0.4), &go).unwrap();
        let rate = outcome.forwarded_pps.value / 1e6;
        assert!((rate / block.bound() - 1.0).abs() < 2e-3, "{threads} {occupancy_us}: {rate} {}", block.bound());
    }
}

/// Throughput of a closed network of two single servers and a delay with `jobs` in it: mean value analysis (Reiser and
/// Lavenberg, JACM 27(2), 1980), exact for exponential service.
fn mva(jobs: usize, work_us: f64, memory_us: f64, delay_us: f64) -> f64 {
    let (mut at_work, mut at_memory, mut rate) = (0.0, 0.0, 0.0);
    for n in 1..=jobs {
        let (r_work, r_memory) = (work_us * (1.0 + at_work), memory_us * (1.0 + at_memory));
        rate = n as f64 / (r_work + r_memory + delay_us);
        (at_work, at_memory) = (rate * r_work, rate * r_memory);
    }
    rate
}

#[test]
fn a_saturated_window_is_a_closed_queueing_network() {
    for (threads, occupancy_us, latency_us) in [(1, 0.8, 3.0), (4, 0.8, 3.0), (8, 1.2, 6.0), (16, 1.3, 20.0)] {
        let block = Block { threads, occupancy_us, latency_us, variation: EXPONENTIAL, ..BLOCK };
        let outcome = simulate(&block.scenario(poisson(2e6), 1.0), &go).unwrap();
        let exact = mva(threads, 4.0, 3.0 * occupancy_us, 3.0 * latency_us);
        let (rate, half) = (outcome.forwarded_pps.value / 1e6, outcome.forwarded_pps.half_width / 1e6);
        // 1.5 half-widths of 95 % are 99.7 %.
        assert!((rate - exact).abs() < 1.5 * half, "{threads}: {rate} +- {half}, {exact}");
        assert!(half < 0.01 * exact);
    }
}

#[test]
fn littles_law_holds_within_a_window() {
    let block = Block { threads: 6, occupancy_us: 0.7, variation: EXPONENTIAL, ring: 1 << 20, ..BLOCK };
    let outcome = simulate(&block.scenario(poisson(0.1e6), 1.0), &go).unwrap();
    let rate = outcome.forwarded_pps.value;
    // In the window: all of the latency but what passes in the door's queue.
    let before = outcome.nodes[0].waiting_frames / rate;
    let inside = rate * (outcome.latency.mean_s - before);
    assert!((outcome.pools[1].held_units / inside - 1.0).abs() < 2e-3, "{} {inside}", outcome.pools[1].held_units);
    assert!(outcome.pools[1].held_units < 6.0 && outcome.dropped_frames == 0);
}

#[test]
fn frames_that_are_lost_in_a_window_give_their_units_back() {
    // The memory takes 5 us for what comes each microsecond, and has room for two: most frames die there.
    for chained in [false, true] {
        let block = Block { threads: 8, phase_us: 0.5, occupancy_us: 5.0, latency_us: 1.0, ..BLOCK };
        let mut scenario = block.scenario(even(1e6), 0.2);
        for task in &mut scenario.model.tasks {
            task.queue = task.queue.min(2);
        }
        if chained {
            // A delay that holds one frame: departures of the memory are worked out through it, losses ahead of time.
            scenario.model.tasks[3].parallel = Some(1);
            scenario.model.tasks[3].per_frame_ps = 20.0 * US;
        }
        let outcome = traced(&scenario, Path::Auto);
        assert_eq!(ends(&outcome), ends(&traced(&scenario, Path::Events)));
        let lost_inside = outcome.fates.iter().filter(|fate| fate.dropped_at.is_some_and(|node| node > 0)).count();
        assert!(lost_inside > 10_000, "{lost_inside}");
        // As much in the last part of the trial as at the beginning: no unit leaks.
        let survivors = |from_s: f64, to_s: f64| {
            let within = |ps: u64| (ps as f64 * 1e-12) > from_s && (ps as f64 * 1e-12) <= to_s;
            outcome.fates.iter().filter(|fate| fate.dropped_at.is_none() && within(fate.end_ps)).count() as f64
        };
        let (early, late) = (survivors(0.02, 0.06), survivors(0.16, 0.2));
        assert!((late / early - 1.0).abs() < 0.01, "{early} {late}");
    }
}

#[test]
fn nobody_overtakes_a_frame_that_waits_for_more_units() {
    // Flow 0 carries one unit for 10 us, flow 1 three of four, flow 2 one; they come 1 us apart, in that order.
    let by_flow = |targets: &[usize]| Route {
        kind: RouteKind::PerFlow,
        to: targets.iter().map(|&task| Target::Task(task)).collect(),
        weights: vec![],
        indirection: vec![],
    };
    let delay = Task { parallel: Some(64), ..task(10.0 * US, FIXED, 1, exit()) };
    let tasks = vec![
        task(0.0, FIXED, 8, by_flow(&[1, 2, 1])),
        door(0, 2, 3, 8, to(Target::Task(3))),
        door(0, 3, 3, 8, to(Target::Task(3))),
        delay,
    ];
    let process = Process::Trace { time_ps: vec![0, 1_000_000, 2_000_000], bytes: vec![64; 3], flow: vec![0, 1, 2] };
    let source = Source { port: 0, rate_pps: 1e6, process, flows: vec![0, 1, 2], steps: vec![] };
    let flows = (0..3).map(|hash| Flow { hash, egress: 0, weight: 1.0 }).collect();
    let scenario = Scenario {
        model: Model { ports: vec![port(Some(0))], tasks, pools: vec![pool(4, Policy::Fifo)] },
        load: Load { sources: vec![source], flows, sizes: vec![64], random_sizes: false },
        run: seconds(1e-3, 1),
    };
    // The second waits for the first, the third, for which there would be room, for the second.
    let us = |n: u64| n * 1_000_000;
    assert_eq!(ends(&traced(&scenario, Path::Auto)), [(0, us(10), None), (1, us(20), None), (2, us(30), None)]);
}

#[test]
fn an_outage_inside_a_window_gives_units_back_and_so_does_one_of_its_door() {
    for down in [0, 1, 3, 10] {
        let mut scenario = BLOCK.scenario(even(0.08e6), 0.1);
        // Work at the door itself, so that there is somebody to lose.
        scenario.model.tasks[0].per_frame_ps = 2.0 * US;
        let without = ends(&traced(&scenario, Path::Auto));
        scenario.run.events = vec![Event::Outage { task: down, from_ps: 20_005.0 * US, until_ps: Some(40_005.0 * US) }];
        let outcome = traced(&scenario, Path::Auto);
        assert_eq!(ends(&outcome), ends(&traced(&scenario, Path::Events)), "{down}");
        assert!(outcome.dropped_frames >= 1600, "{down}: {}", outcome.dropped_frames);
        // Those that come well after it fare as if nothing had happened.
        let later = |all: &[End]| all.iter().copied().filter(|end| end.0 > 3300).collect::<Vec<_>>();
        assert_eq!(later(&ends(&outcome)), later(&without), "{down}");
    }
}

#[test]
fn a_thread_waits_for_room_at_a_door() {
    // A thread before a ring of two holds back: what is too much is dropped at its own queue, nothing behind.
    let mut scenario = Block { ring: 2, ..BLOCK }.scenario(even(1e6), 0.05);
    for task in &mut scenario.model.tasks {
        for target in &mut task.route.to {
            if let Target::Task(number) = target {
                *number += 1;
            }
        }
        for need in &mut task.needs {
            need.until = need.until.map(|until| until + 1);
        }
    }
    let activation = Activation::Thread { budget: 4, cost_ps: 0.0, wakeup: None, exhaustive: false };
    let receive = Task { activation, holds_back: true, ..on(task(0.2 * US, FIXED, 32, to(Target::Task(1))), 3) };
    scenario.model.tasks.insert(0, receive);
    scenario.model.pools.push(pool(1, Policy::Fifo));
    let outcome = traced(&scenario, Path::Auto);
    assert_eq!(ends(&outcome), ends(&traced(&scenario, Path::Events)));
    assert!(outcome.dropped_frames > 10_000);
    assert!(outcome.fates.iter().all(|fate| fate.dropped_at.is_none_or(|node| node == 0)));
    // The threads are never without a frame; that they meet at the engine costs them 1 us in 40.
    assert!((outcome.pools[1].held_units / 4.0 - 1.0).abs() < 1e-2, "{}", outcome.pools[1].held_units);
    assert!((outcome.forwarded_pps.value / 1e6 / BLOCK.bound() - 1.0).abs() < 0.03, "{}", outcome.forwarded_pps.value);
}

#[test]
fn windows_that_frames_could_leave_or_that_make_no_sense_are_refused() {
    let scenario = BLOCK.scenario(even(0.1e6), 0.01);
    let refused = |change: fn(&mut Scenario)| {
        let mut wrong = scenario.clone();
        change(&mut wrong);
        match simulate(&wrong, &go) {
            Err(SimError::Number { place, .. } | SimError::Index { place, .. }) => place,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|s| s.model.tasks[4].route = exit()), "tasks[0].needs.until");
    assert_eq!(refused(|s| s.model.tasks[0].needs[0].until = Some(99)), "tasks[0].needs.until");
    assert_eq!(refused(|s| s.model.tasks[0].parallel = Some(1)), "tasks[0].parallel");
    assert_eq!(refused(|s| s.model.pools[1].policy = Policy::Priority), "tasks[0].needs.pool");
    assert_eq!(refused(|s| s.model.tasks[1].needs[0].pool = 1), "tasks[0].needs.pool");
    assert_eq!(refused(|s| s.model.tasks[1].copies = vec![0]), "tasks[0].needs.until");
    let mut recursive = scenario.clone();
    recursive.run.path = Path::Recursion;
    assert!(simulate(&recursive, &go).is_err_and(|error| error.to_string().contains("carry units on")));
}

#[test]
fn a_window_of_one_frame_in_lanes_is_the_window_of_the_events() {
    let block =
        Block { threads: 1, phase_us: 0.2, waits: 2, occupancy_us: 0.1, latency_us: 0.3, variation: FIXED, ring: 32 };
    for rate_pps in [0.5e6, 0.68e6, 1.2e6] {
        let mut scenario = block.scenario(poisson(rate_pps), 1.0);
        let mut by = |path: Path| {
            scenario.run.path = path;
            simulate(&scenario, &go).unwrap()
        };
        let (lanes, events) = (by(Path::Lanes), by(Path::Events));
        // A frame holds the unit for 1.4 us, which its own work and waits add up to.
        let held = (rate_pps * 1.4e-6).min(1.0);
        assert!((lanes.pools[1].held_units - held).abs() < 0.01, "{rate_pps}: {}", lanes.pools[1].held_units);
        assert!((lanes.loss_ratio.value - events.loss_ratio.value).abs() < 0.005, "{rate_pps}");
        let half = lanes.latency_half_width_s.max(events.latency_half_width_s).max(0.01 * events.latency.mean_s);
        assert!((lanes.latency.mean_s - events.latency.mean_s).abs() < 2.0 * half, "{rate_pps}");
        for (mine, theirs) in lanes.nodes.iter().zip(&events.nodes) {
            assert!((mine.working_units - theirs.working_units).abs() < 0.005, "{rate_pps}: {mine:?} for {theirs:?}");
        }
    }
    let refused = |block: &Block| {
        let mut scenario = block.scenario(poisson(0.5e6), 0.01);
        scenario.run.path = Path::Lanes;
        simulate(&scenario, &go).expect_err("it is no chain").to_string()
    };
    assert!(refused(&Block { threads: 2, ..block }).contains("several frames at once"));
    assert!(refused(&Block { variation: EXPONENTIAL, ..block }).contains("may wait on their way"));
}
