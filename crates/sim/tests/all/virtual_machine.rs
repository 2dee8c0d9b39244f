//! A router on a shared machine: wake-ups cost latency and no work, interruptions cost a unit's time.

use crate::scenarios::{US, exit, go, on, poisson, pool, port, seconds, task};
use proptest::prelude::*;
use routecast_sim::replicate::{Plan, replicate};
use routecast_sim::scenario::{
    Activation, Interruptions, Model, Path, Policy, Pool, Process, RandomTime, RouteKind, Scenario, Target, Task,
    Variation,
};
use routecast_sim::{Outcome, simulate};

const HUGE: usize = 1 << 22;

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &go).expect("the scenario is valid")
}

fn mean(us: f64, variation: Variation) -> RandomTime {
    RandomTime::Mean { mean_ps: us * US, variation }
}

/// A task unit that a frame's arrival wakes, 1 us a frame.
fn sleeper(queue: usize, wakeup: RandomTime) -> Task {
    let activation = Activation::Interrupt {
        budget: 64,
        cost_ps: 0.0,
        moderation_ps: 0.0,
        wakeup: Some(wakeup),
        exhaustive: true,
        linger_ps: 0.0,
    };
    on(Task { activation, ..task(US, Variation::Deterministic, queue, exit()) }, 0)
}

fn alone(unit: Task, pool: Pool, rate_pps: f64, process: Process, duration_s: f64, seed: u64) -> Scenario {
    let mut load = poisson(rate_pps);
    load.sources[0].process = process;
    Scenario {
        model: Model { ports: vec![port(Some(0))], tasks: vec![unit], pools: vec![pool] },
        load,
        run: seconds(duration_s, seed),
    }
}

fn near(got: f64, want: f64, tolerance: f64) {
    assert!((got / want - 1.0).abs() <= tolerance, "{got} for {want}");
}

#[test]
fn frames_that_come_while_it_wakes_see_the_backlog_drain() {
    // The recursion itself: one wake-up at the first frame of a busy cycle, then the frames one after the other.
    for (gap_us, wakeup_us) in [(40.0, 20.0), (7.0, 20.0), (1.3, 20.0), (1.01, 150.0)] {
        let unit = sleeper(HUGE, mean(wakeup_us, Variation::Deterministic));
        let mut scenario = alone(unit, pool(1, Policy::Fifo), 1e6 / gap_us, Process::Cbr { phase: 0.0 }, 0.01, 1);
        scenario.run.record_frames = true;
        let outcome = run(&scenario);
        assert!(outcome.fates.len() > 200);
        let mut free_at = 0;
        for fate in &outcome.fates {
            let start = if fate.arrival_ps >= free_at { fate.arrival_ps + (wakeup_us * US) as u64 } else { free_at };
            free_at = start + US as u64;
            assert_eq!(fate.end_ps, free_at, "frame {} at gaps of {gap_us} us", fate.seq);
        }
        // What is occupied is the work alone.
        near(outcome.nodes[0].working_units, 1.0 / gap_us, 0.01);
    }
}

#[test]
fn m_g_1_with_set_up_times_waits_as_long_as_welch_says() {
    // W = λE[S²]/(2(1 − ρ)) + (2E[D] + λE[D²])/(2(1 + λE[D])) (Welch 1964; Takagi 1991, sec. 2.2): set-up D.
    for (seed, (rho, wakeup_us, variation, scv)) in (1..).zip([
        (0.2, 20.0, Variation::Deterministic, 0.0),
        (0.5, 5.0, Variation::Exponential, 1.0),
        (0.8, 40.0, Variation::Gamma { scv: 0.3 }, 0.3),
    ]) {
        let unit = sleeper(HUGE, mean(wakeup_us, variation));
        let scenario = alone(unit, pool(1, Policy::Fifo), rho * 1e6, Process::Poisson, 1.0 / rho, seed);
        let plan = Plan { replications: 8, target_relative_half_width: None, most: 8 };
        let outcome = replicate(&scenario, plan, &go).expect("valid");
        let second = (1.0 + scv) * wakeup_us * wakeup_us;
        let set_up = (2.0 * wakeup_us + rho * second) / (2.0 * (1.0 + rho * wakeup_us));
        let theory_s = 1e-6 * (rho / (2.0 * (1.0 - rho)) + set_up);
        let (got, half) = (outcome.waiting.mean_s, outcome.waiting_half_width_s);
        assert!((got - theory_s).abs() <= 1.5 * half, "{got} ± {half} for {theory_s}");
        assert!(half < 0.05 * theory_s);
    }
}

fn disturbed(units: usize, rate_hz: f64, duration: RandomTime) -> Pool {
    Pool { interruptions: Some(Interruptions { rate_hz, duration }), ..pool(units, Policy::Fifo) }
}

#[test]
fn m_g_1_with_breakdowns_waits_as_long_as_avi_itzhak_and_naor_say() {
    // Completion C of a service S: E[C] = E[S](1 + νE[D]), E[C²] = E[S²](1 + νE[D])² + E[S]νE[D²] (Avi-Itzhak and
    // Naor 1963, active breakdowns); then Pollaczek and Khinchine with C.
    for (seed, (rho, per_us, us, duration, scv)) in (1..).zip([
        (0.3, 0.05, 4.0, Variation::Exponential, 1.0),
        (0.7, 0.01, 20.0, Variation::Deterministic, 0.0),
        (0.5, 0.2, 2.0, Variation::Gamma { scv: 2.0 }, 2.0),
    ]) {
        let unit = on(task(US, Variation::Exponential, HUGE, exit()), 0);
        let pool = disturbed(1, per_us * 1e6, mean(us, duration));
        let scenario = alone(unit, pool, rho * 1e6, Process::Poisson, 1.0, seed);
        let plan = Plan { replications: 8, target_relative_half_width: None, most: 8 };
        let outcome = replicate(&scenario, plan, &go).expect("valid");
        let stretch = 1.0 + per_us * us;
        let second = 2.0 * stretch * stretch + per_us * (1.0 + scv) * us * us;
        let theory_s = 1e-6 * rho * second / (2.0 * (1.0 - rho * stretch));
        let (got, half) = (outcome.waiting.mean_s, outcome.waiting_half_width_s);
        assert!((got - theory_s).abs() <= 1.5 * half, "{got} ± {half} for {theory_s}");
        assert!(half < 0.1 * theory_s);
        near(outcome.latency.mean_s - got, 1e-6 * stretch, 0.01);
        // A unit that was taken away is not free for others.
        near(outcome.nodes[0].working_units, rho * stretch, 0.02);
    }
}

#[test]
fn capacity_falls_by_the_share_of_the_interruptions_and_long_ones_overflow_the_ring() {
    let unit = |queue| on(task(US, Variation::Deterministic, queue, exit()), 0);
    let flood = alone(
        unit(256),
        disturbed(1, 1e3, mean(100.0, Variation::Exponential)),
        3e6,
        Process::Cbr { phase: 0.0 },
        2.0,
        1,
    );
    near(run(&flood).forwarded_pps.value, 1e6 / 1.1, 0.005);
    // 1,000 us at 0.5 frames a microsecond into a ring of 256: the frames beyond are lost, all others are not.
    let rare = alone(
        unit(256),
        disturbed(1, 20.0, mean(1000.0, Variation::Deterministic)),
        0.5e6,
        Process::Cbr { phase: 0.0 },
        10.0,
        1,
    );
    let outcome = run(&rare);
    let interruptions = 20.0 * 0.5 * outcome.measured_s;
    let lost = outcome.loss_ratio.value * 0.5e6 * outcome.measured_s;
    // The frame in service when the unit is taken away is not in the ring; about 100 interruptions: ±10 % (1 sigma).
    near(lost, interruptions * (500.0 - 256.0), 0.3);
}

#[test]
fn interruptions_slow_down_units_that_are_revoked_as_they_slow_down_others() {
    let unit = || on(task(10.0 * US, Variation::Deterministic, 64, exit()), 0);
    let mut scenario = alone(unit(), pool(1, Policy::Fifo), 1e6, Process::Poisson, 1.0, 1);
    // Two task units in turn, for less than a frame's service.
    let mut front = task(0.0, Variation::Deterministic, 8, exit());
    front.route.kind = RouteKind::RoundRobin;
    front.route.to = vec![Target::Task(1), Target::Task(2)];
    scenario.model.tasks = vec![front, unit(), unit()];
    scenario.model.pools = vec![Pool {
        policy: Policy::RoundRobin { quantum_ps: 3.0 * US },
        ..disturbed(1, 2e4, mean(5.0, Variation::Exponential))
    }];
    let outcome = run(&scenario);
    near(outcome.forwarded_pps.value, 1e5 / 1.1, 0.01);
    near(outcome.nodes[1].working_units + outcome.nodes[2].working_units, 1.0, 1e-6);
}

#[test]
fn one_seed_gives_one_trace_and_an_interruption_leaves_the_arrivals_alone() {
    let scenario = |interruptions: bool, seed| {
        let mut unit = sleeper(64, RandomTime::Quantiles { quantiles_ps: vec![1e6, 2e6, 40e6] });
        unit.variation = Variation::Exponential;
        let calm = pool(1, Policy::Fifo);
        let rough = disturbed(1, 1e4, RandomTime::Quantiles { quantiles_ps: vec![1e6, 5e6, 100e6] });
        let mut scenario = alone(unit, if interruptions { rough } else { calm }, 0.7e6, Process::Poisson, 0.01, seed);
        scenario.run.record_frames = true;
        run(&scenario).fates.iter().map(|fate| (fate.arrival_ps, fate.end_ps)).collect::<Vec<_>>()
    };
    assert_eq!(scenario(true, 1), scenario(true, 1));
    assert_ne!(scenario(true, 1), scenario(true, 2));
    let arrivals = |fates: Vec<(u64, u64)>| fates.into_iter().map(|fate| fate.0).take(4000).collect::<Vec<_>>();
    assert_eq!(arrivals(scenario(true, 1)), arrivals(scenario(false, 1)));
}

#[test]
fn a_wrong_table_is_refused_with_its_place() {
    let table = RandomTime::Quantiles { quantiles_ps: vec![2.0, 1.0] };
    let scenario = alone(sleeper(8, table.clone()), pool(1, Policy::Fifo), 1e5, Process::Poisson, 0.01, 1);
    let message = simulate(&scenario, &go).unwrap_err().to_string();
    assert!(message.contains("tasks[0].activation.wakeup.quantiles_ps"), "{message}");
    let unit = on(task(US, Variation::Deterministic, 8, exit()), 0);
    let scenario = alone(unit, disturbed(1, 1.0, table), 1e5, Process::Poisson, 0.01, 1);
    assert!(simulate(&scenario, &go).unwrap_err().to_string().contains("pools[0].interruptions.duration"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn stations_with_interruptions_are_the_same_by_recursion_and_by_events(
        servers in 1_usize..4,
        queue in 1_usize..300,
        load in 0.05_f64..1.5,
        rate_hz in 10.0_f64..1e5,
        us in 0.1_f64..300.0,
        speed in 0.5_f64..2.0,
        random: bool,
        seed in 0_u64..1000,
    ) {
        let variation = if random { Variation::Exponential } else { Variation::Deterministic };
        let unit = Task { parallel: Some(servers), ..on(task(US, variation, queue, exit()), 0) };
        let mut units = disturbed(servers, rate_hz, mean(us, Variation::Lognormal { scv: 2.0 }));
        units.speed = vec![speed; servers];
        let mut scenario =
            alone(unit, units, load * 1e6 * servers as f64, Process::Poisson, 5e-3, seed);
        scenario.run.record_frames = true;
        let ends = |path| {
            let mut scenario = scenario.clone();
            scenario.run.path = path;
            run(&scenario).fates.iter().map(|fate| (fate.seq, fate.end_ps, fate.dropped_at)).collect::<Vec<_>>()
        };
        prop_assert_eq!(ends(Path::Recursion), ends(Path::Events));
    }

    #[test]
    fn a_task_unit_that_wakes_at_once_is_a_dedicated_one(
        load in 0.05_f64..1.2, queue in 1_usize..100, seed in 0_u64..1000,
    ) {
        let run_of = |unit: Task| {
            let mut scenario = alone(unit, pool(1, Policy::Fifo), load * 1e6, Process::Poisson, 2e-3, seed);
            scenario.run.record_frames = true;
            run(&scenario).fates.iter().map(|fate| (fate.seq, fate.end_ps)).collect::<Vec<_>>()
        };
        let awake = sleeper(queue, mean(0.0, Variation::Deterministic));
        let dedicated = Task { activation: Activation::Dedicated, ..awake.clone() };
        prop_assert_eq!(run_of(awake), run_of(dedicated));
    }
}
