//! Trials in lanes against theory, and against events.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use routecast_sim::scenario::{
    Activation, Flow, Interruptions, Load, Model, Path, Policy, Port, Process, RandomTime, Route, RouteKind, Scenario,
    Sleep, Source, Step, Target, Task, Variation,
};
use routecast_sim::{Outcome, simulate};

use crate::scenarios::{US, exit, go, on, poisson, pool, seconds, station, task};

fn run(scenario: &Scenario, path: Path) -> Outcome {
    let mut scenario = scenario.clone();
    scenario.run.path = path;
    simulate(&scenario, &go).expect("the scenario is valid")
}

fn refusal(scenario: &Scenario) -> String {
    let mut scenario = scenario.clone();
    scenario.run.path = Path::Lanes;
    simulate(&scenario, &go).expect_err("it is not of their kind").to_string()
}

/// Four cores that slow each other down behind RSS, two ports of 10 Gbit/s, two sizes of frames.
fn router(rate_pps: f64, variation: Variation, duration_s: f64) -> Scenario {
    let rss =
        Route { kind: RouteKind::Rss, to: (1..5).map(Target::Task).collect(), weights: vec![], indirection: vec![] };
    let mut tasks = vec![task(0.0, Variation::Deterministic, 512, rss)];
    for core in 0..4 {
        let egress = Route {
            kind: RouteKind::Egress,
            to: vec![Target::Port(0), Target::Port(1)],
            weights: vec![],
            indirection: vec![],
        };
        let unit = on(task(0.8 * US, variation, 100, egress), 0);
        tasks.push(Task { pin: vec![core], per_byte_ps: 200.0, ..unit });
    }
    let mut cpu = pool(4, Policy::Fifo);
    cpu.contention = vec![1.0, 1.05, 1.1, 1.2];
    let source = |port: u32| Source {
        port: port as usize,
        rate_pps: 0.5 * rate_pps,
        process: Process::Poisson,
        flows: (4 * port..4 * port + 4).collect(),
        steps: vec![],
    };
    let port = || Port { link_bps: 10e9, tx_ring: 64, entry: Some(0) };
    Scenario {
        model: Model { ports: vec![port(), port()], tasks, pools: vec![cpu] },
        load: Load {
            sources: vec![source(0), source(1)],
            flows: (0..8)
                .map(|hash| Flow { hash, egress: usize::from(hash < 4), weight: 1.0 + f64::from(hash) / 8.0 })
                .collect(),
            sizes: vec![64, 64, 1518],
            random_sizes: true,
        },
        run: seconds(duration_s, 5),
    }
}

/// Whether two estimates with 95 % half-widths differ by no more than 2.5 times what they say together.
fn agree(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() <= 2.5 / 1.96 * (one.1.powi(2) + other.1.powi(2)).sqrt()
}

#[test]
fn a_router_in_lanes_is_the_router_of_the_events() {
    for (rate_pps, variation) in [
        (2.5e6, Variation::Exponential),
        (3.0e6, Variation::Gamma { scv: 0.5 }),
        (4.5e6, Variation::Deterministic),
        (2.0e6, Variation::Lognormal { scv: 3.0 }),
    ] {
        let scenario = router(rate_pps, variation, 0.4);
        let (lanes, events) = (run(&scenario, Path::Lanes), run(&scenario, Path::Events));
        let both = |of: fn(&Outcome) -> (f64, f64)| agree(of(&lanes), of(&events));
        assert!(both(|outcome| (outcome.forwarded_pps.value, outcome.forwarded_pps.half_width)), "{rate_pps}");
        assert!(both(|outcome| (outcome.latency.mean_s, outcome.latency_half_width_s)), "{rate_pps}");
        assert!(both(|outcome| (outcome.waiting.mean_s, outcome.waiting_half_width_s)), "{rate_pps}");
        assert!(both(|outcome| (outcome.loss_ratio.value, outcome.loss_ratio.half_width.max(1e-6))), "{rate_pps}");
        for (mine, theirs) in lanes.nodes.iter().zip(&events.nodes) {
            assert!((mine.working_units - theirs.working_units).abs() < 0.02, "{rate_pps}");
            assert!((mine.waiting_frames - theirs.waiting_frames).abs() <= 0.15 * theirs.waiting_frames + 0.2);
        }
        for (mine, theirs) in [(lanes.latency.p50_s, events.latency.p50_s), (lanes.latency.p99_s, events.latency.p99_s)]
        {
            assert!((mine / theirs - 1.0).abs() < 0.1, "{rate_pps}: {mine} for {theirs}");
        }
        let account = lanes.lanes.expect("lanes ran it");
        assert_eq!(account.seams, account.proved_at_once + account.repaired);
        // Constant services of full cores never forget how they began.
        assert!(account.seams > 0 || variation == Variation::Deterministic);
        assert!(account.rounding_ratio < 1e-4);
    }
}

#[test]
fn cores_that_poll_in_lanes_are_those_of_the_events() {
    let napi = |exhaustive, moderation_ps| Activation::Interrupt {
        budget: 64,
        cost_ps: 2.0 * US,
        moderation_ps,
        wakeup: None,
        exhaustive,
        linger_ps: 0.0,
    };
    for (number, activation) in
        [Activation::Dedicated, Activation::Polling, napi(false, 20.0 * US), napi(true, 0.0)].into_iter().enumerate()
    {
        for rate_pps in [0.6e6, 2.6e6] {
            let mut scenario = router(rate_pps, Variation::Exponential, 0.15);
            for task in &mut scenario.model.tasks[1..] {
                (task.activation, task.per_batch_ps) = (activation.clone(), 0.5 * US);
                task.batch = if number < 2 { 32 } else { 1 };
            }
            let (lanes, events) = (run(&scenario, Path::Lanes), run(&scenario, Path::Events));
            let both = |of: fn(&Outcome) -> (f64, f64)| agree(of(&lanes), of(&events));
            assert!(
                both(|outcome| (outcome.forwarded_pps.value, outcome.forwarded_pps.half_width)),
                "{number} {rate_pps}"
            );
            assert!(both(|outcome| (outcome.latency.mean_s, outcome.latency_half_width_s)), "{number} {rate_pps}");
            assert!(both(|outcome| (outcome.loss_ratio.value, outcome.loss_ratio.half_width.max(1e-6))), "{number}");
            // Events count the frames of a link as polls, too.
            for (mine, theirs) in lanes.nodes.iter().zip(&events.nodes).skip(1).take(4) {
                assert!((mine.working_units - theirs.working_units).abs() < 0.02, "{number} {rate_pps}");
                let rates = [(mine.interrupts_per_s, theirs.interrupts_per_s), (mine.polls_per_s, theirs.polls_per_s)];
                for (mine, theirs) in rates {
                    assert!((mine - theirs).abs() <= 0.03 * theirs + 200.0, "{number} {rate_pps}: {mine} for {theirs}");
                }
            }
        }
    }
}

/// Rates, times and counts of a scenario by lanes are those by events.
fn check_both(scenario: &Scenario, name: &str) {
    let (lanes, events) = (run(scenario, Path::Lanes), run(scenario, Path::Events));
    let both = |of: fn(&Outcome) -> (f64, f64)| agree(of(&lanes), of(&events));
    let rates = [lanes.forwarded_pps, events.forwarded_pps];
    assert!(
        both(|outcome| (outcome.forwarded_pps.value, outcome.forwarded_pps.half_width.max(1.0))),
        "{name}: {rates:?}"
    );
    let means = [lanes.latency.mean_s, events.latency.mean_s];
    assert!(
        both(|outcome| (outcome.latency.mean_s, outcome.latency_half_width_s.max(1e-3 * outcome.latency.mean_s))),
        "{name}: {means:?}"
    );
    assert!(both(|outcome| (outcome.loss_ratio.value, outcome.loss_ratio.half_width.max(1e-5))), "{name}: loss");
    for (mine, theirs) in lanes.nodes.iter().zip(&events.nodes).skip(1) {
        let (at_work, spins) = (mine.working_units - theirs.working_units, mine.spinning_units - theirs.spinning_units);
        assert!(at_work.abs() < 0.02 && spins.abs() < 0.02, "{name}: {mine:?} for {theirs:?}");
        let rates = [(mine.interrupts_per_s, theirs.interrupts_per_s)];
        for (mine, theirs) in rates {
            assert!((mine - theirs).abs() <= 0.05 * theirs + 200.0, "{name}: {mine} for {theirs}");
        }
    }
    for (mine, theirs) in lanes.pools.iter().zip(&events.pools) {
        assert!((mine.waking_units - theirs.waking_units).abs() < 0.02, "{name}: {mine:?} for {theirs:?}");
        for (mine, theirs) in mine.asleep_units.iter().zip(&theirs.asleep_units) {
            assert!((mine - theirs).abs() < 0.02, "{name}: {mine:?} for {theirs:?}");
        }
        for (mine, theirs) in mine.wakes_per_s.iter().zip(&theirs.wakes_per_s) {
            assert!((mine - theirs).abs() <= 0.05 * theirs + 200.0, "{name}: {mine} for {theirs}");
        }
    }
}

#[test]
fn cores_that_sleep_linger_wake_up_and_are_interrupted_in_lanes_are_those_of_the_events() {
    let wakeup = RandomTime::Quantiles { quantiles_ps: vec![1.0 * US, 5.0 * US, 8.0 * US, 30.0 * US] };
    let interrupt = |wakeup: Option<&RandomTime>, linger_ps, exhaustive| Activation::Interrupt {
        budget: 16,
        cost_ps: 1.0 * US,
        moderation_ps: 10.0 * US,
        wakeup: wakeup.cloned(),
        exhaustive,
        linger_ps,
    };
    let activations = [
        ("plain", Activation::Dedicated),
        ("lingers", interrupt(None, 8.0 * US, false)),
        ("wakes up", interrupt(Some(&wakeup), 0.0, false)),
        ("exhaustive", interrupt(Some(&wakeup), 4.0 * US, true)),
    ];
    let sleep = vec![Sleep { after_ps: 0.0, exit_ps: 2.0 * US }, Sleep { after_ps: 20.0 * US, exit_ps: 15.0 * US }];
    let duration = RandomTime::Mean { mean_ps: 40.0 * US, variation: Variation::Lognormal { scv: 2.0 } };
    for (name, activation) in activations {
        for (rate_pps, sleeps, interrupted) in [(0.4e6, true, false), (1.5e6, true, true), (2.8e6, false, true)] {
            let mut scenario = router(rate_pps, Variation::Gamma { scv: 0.5 }, 0.6);
            for task in &mut scenario.model.tasks[1..] {
                task.activation = activation.clone();
            }
            let pool = &mut scenario.model.pools[0];
            pool.sleep = if sleeps { sleep.clone() } else { vec![] };
            pool.interruptions = interrupted.then(|| Interruptions { rate_hz: 2000.0, duration: duration.clone() });
            check_both(&scenario, &format!("{name} at {rate_pps}"));
        }
    }
}

#[test]
fn even_arrivals_in_lanes_are_those_of_the_events() {
    for (rate_pps, variation, weight) in [
        (2.4e6, Variation::Gamma { scv: 0.5 }, 1.0),
        (2.0e6, Variation::Deterministic, 1.0),
        (3.6e6, Variation::Exponential, 2.0),
    ] {
        for (sizes, random_sizes) in [(vec![64], false), (vec![64, 64, 1518], false), (vec![64, 64, 594], true)] {
            let mut scenario = router(rate_pps, variation, 0.2);
            (scenario.load.sizes, scenario.load.random_sizes) = (sizes, random_sizes);
            for (number, source) in scenario.load.sources.iter_mut().enumerate() {
                source.process = Process::Cbr { phase: 0.5 * number as f64 };
            }
            for (number, flow) in scenario.load.flows.iter_mut().enumerate() {
                flow.weight = if number == 0 { weight } else { 1.0 };
            }
            check_both(&scenario, &format!("{rate_pps} {weight} {:?} {random_sizes}", scenario.load.sizes));
        }
    }
}

#[test]
fn frames_that_are_dealt_to_cores_in_lanes_are_those_of_the_events() {
    for kind in [RouteKind::RoundRobin, RouteKind::Random] {
        for is_even in [true, false] {
            let mut scenario = router(2.6e6, Variation::Exponential, 0.2);
            scenario.model.tasks[0].route.kind = kind;
            if kind == RouteKind::Random {
                scenario.model.tasks[0].route.weights = vec![1.0, 2.0, 1.0, 1.0];
            }
            if is_even {
                for (number, source) in scenario.load.sources.iter_mut().enumerate() {
                    source.process = Process::Cbr { phase: 0.5 * number as f64 };
                }
            }
            check_both(&scenario, &format!("{kind:?} {is_even}"));
        }
    }
}

#[test]
fn a_link_that_is_offered_more_than_it_carries_brings_frames_at_its_rate_in_lanes() {
    let mut scenario = station(task(0.05 * US, Variation::Exponential, 64, exit()), poisson(5e5), seconds(0.01, 1));
    scenario.load.sources[0].process = Process::Cbr { phase: 0.0 };
    scenario.load.sources[0].rate_pps = 2e7;
    scenario.model.ports[0].link_bps = 10e9;
    let (lanes, events) = (run(&scenario, Path::Lanes), run(&scenario, Path::Events));
    assert!(lanes.offered_frames.abs_diff(events.offered_frames) <= 1);
    assert!((lanes.offered_pps / 14_880_952.0 - 1.0).abs() < 1e-4, "{}", lanes.offered_pps);
}

#[test]
fn trajectories_that_keep_a_phase_are_run_in_one_stretch() {
    let mut scenario = router(2.5e6, Variation::Exponential, 0.4);
    let seams = |scenario: &Scenario| run(scenario, Path::Lanes).lanes.expect("lanes ran it").seams;
    assert!(seams(&scenario) > 0);
    // Interrupts follow each other as soon as moderation allows: their phase is that of the first, while services last equally long.
    let activation = |moderation_ps| Activation::Interrupt {
        budget: 64,
        cost_ps: US,
        moderation_ps,
        wakeup: None,
        exhaustive: false,
        linger_ps: 0.0,
    };
    for (moderation_ps, forgets) in [(0.0, true), (50.0 * US, false)] {
        scenario = router(1.5e6, Variation::Deterministic, 0.4);
        scenario.load.sizes = vec![64];
        scenario.model.pools[0].contention = vec![];
        for task in &mut scenario.model.tasks[1..] {
            task.activation = activation(moderation_ps);
        }
        assert_eq!(seams(&scenario) > 0, forgets, "{moderation_ps}");
    }
}

#[test]
fn one_server_in_lanes_waits_as_long_as_pollaczek_and_khinchine_say() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(61);
    let mut inside = 0;
    for seed in 0..30 {
        let rho: f64 = rng.random_range(0.1..0.85);
        let (variation, scv) = match seed % 5 {
            0 => (Variation::Gamma { scv: 0.5 }, 0.5),
            1 => (Variation::Uniform { scv: 0.25 }, 0.25),
            2 => (Variation::Hyperexponential { scv: 3.0 }, 3.0),
            3 => (Variation::Lognormal { scv: 1.5 }, 1.5),
            _ => (Variation::Exponential, 1.0),
        };
        let scenario = station(task(US, variation, 4096, exit()), poisson(rho * 1e6), seconds(0.4 / rho, seed));
        let outcome = run(&scenario, Path::Lanes);
        let theory_s = rho * (1.0 + scv) / (2.0 * (1.0 - rho)) * 1e-6;
        inside += usize::from((outcome.waiting.mean_s - theory_s).abs() <= outcome.waiting_half_width_s);
    }
    // 95 % of 30, less 2.33 standard deviations.
    assert!(inside >= 25, "{inside} of 30");
}

type Change = fn(&mut Scenario);

/// A load that rises to overload and falls again within the trial.
fn day(duration_s: f64) -> Scenario {
    let mut scenario = router(2.0e6, Variation::Exponential, duration_s);
    for source in &mut scenario.load.sources {
        let rates = [1.4e6, 2.05e6, 0.9e6].into_iter().zip(1..);
        source.steps =
            rates.map(|(rate_pps, part)| Step { at_ps: f64::from(part) * 0.25e12 * duration_s, rate_pps }).collect();
    }
    scenario.run.whole = true;
    scenario
}

#[test]
fn a_load_that_changes_within_the_trial_is_that_of_the_events() {
    let mut scenario = day(0.8);
    scenario.run.over_time = true;
    let (lanes, events) = (run(&scenario, Path::Lanes), run(&scenario, Path::Events));
    assert!((lanes.loss_ratio.value - events.loss_ratio.value).abs() < 0.003, "{:?}", lanes.loss_ratio);
    assert!((lanes.latency.mean_s / events.latency.mean_s - 1.0).abs() < 0.03);
    assert!((lanes.latency.p99_s / events.latency.p99_s - 1.0).abs() < 0.03);
    let parts = |outcome: &Outcome| -> Vec<(f64, f64)> {
        let quarter = outcome.over_time.len() / 4;
        let sum = |part: usize, of: fn(&routecast_sim::outcome::Moment) -> f64| {
            outcome.over_time[part * quarter..(part + 1) * quarter].iter().map(of).sum::<f64>() / quarter as f64
        };
        (0..4).map(|part| (sum(part, |moment| moment.offered_pps), sum(part, |moment| moment.dropped_pps))).collect()
    };
    for (mine, theirs) in parts(&lanes).into_iter().zip(parts(&events)) {
        assert!((mine.0 / theirs.0 - 1.0).abs() < 0.01, "{mine:?} {theirs:?}");
        assert!((mine.1 - theirs.1).abs() < 0.01 * theirs.0, "{mine:?} {theirs:?}");
    }
}

#[test]
fn a_trial_in_parts_is_the_whole_trial() {
    let whole = run(&day(0.4), Path::Lanes);
    let mut parts: Vec<Outcome> = Vec::new();
    for _ in 0..4 {
        let mut part = day(0.4);
        part.run.duration_ps /= 4;
        part.run.keep_end = true;
        part.run.begin = parts.last().and_then(|last| last.lanes.as_ref()?.end.clone());
        parts.push(run(&part, Path::Lanes));
    }
    let sum = |of: fn(&Outcome) -> u64| parts.iter().map(of).sum::<u64>();
    assert_eq!(sum(|part| part.offered_frames), whole.offered_frames);
    assert_eq!(sum(|part| part.dropped_frames), whole.dropped_frames);
    assert_eq!(sum(|part| part.forwarded_frames), whole.forwarded_frames);
    assert_eq!(parts[3].in_flight_frames, whole.in_flight_frames);
    let most_s = |outcome: &Outcome| outcome.latency.max_s;
    assert!((parts.iter().map(most_s).fold(0.0, f64::max) / whole.latency.max_s - 1.0).abs() < 1e-9);
    let mut other = day(0.4);
    other.run.begin = parts[0].lanes.as_ref().and_then(|lanes| lanes.end.clone());
    other.model.tasks.pop();
    other.model.tasks[0].route.to.pop();
    assert!(refusal(&other).contains("of another router"));
    other.run.path = Path::Events;
    assert!(simulate(&other, &go).is_err());
}

#[test]
fn what_lanes_cannot_run_is_refused_with_the_reason() {
    let plain = station(task(US, Variation::Exponential, 64, exit()), poisson(5e5), seconds(0.01, 1));
    let changed = |change: fn(&mut Scenario)| {
        let mut scenario = plain.clone();
        change(&mut scenario);
        refusal(&scenario)
    };
    let cases: [(Change, &str); 4] = [
        (|s| s.model.tasks[0].parallel = Some(65), "1 to 64 servers"),
        (|s| s.run.per_flow = true, "counted by flow"),
        (
            |s| {
                s.model.tasks[0].queue = 1 << 20;
                s.load.sources[0].rate_pps = 5e6;
            },
            "more frames wait in a ring than lanes have place for",
        ),
        (
            |s| {
                s.model.tasks[0].activation =
                    Activation::Thread { budget: 64, cost_ps: 0.0, wakeup: None, exhaustive: false };
            },
            "a thread that sleeps and wakes",
        ),
    ];
    for (change, why) in cases {
        let message = changed(change);
        assert!(message.contains(why) && message.contains("use the path"), "{message}");
    }
}

#[test]
fn a_short_trial_in_lanes_is_one_stretch_and_conserves_frames() {
    let scenario = station(task(US, Variation::Exponential, 64, exit()), poisson(1.3e6), seconds(0.002, 1));
    let outcome = run(&scenario, Path::Lanes);
    assert_eq!(outcome.lanes.map(|account| account.seams), Some(0));
    assert_eq!(outcome.offered_frames, outcome.forwarded_frames + outcome.dropped_frames + outcome.in_flight_frames);
    assert!(outcome.first_loss_s < outcome.last_loss_s);
}

#[test]
fn a_ring_with_more_room_than_lanes_keep_loses_nothing() {
    let scenario = station(task(US, Variation::Exponential, 1 << 20, exit()), poisson(9e5), seconds(0.4, 1));
    let (lanes, events) = (run(&scenario, Path::Lanes), run(&scenario, Path::Events));
    assert_eq!(lanes.dropped_frames, 0);
    let both = |of: fn(&Outcome) -> (f64, f64)| agree(of(&lanes), of(&events));
    assert!(both(|outcome| (outcome.latency.mean_s, outcome.latency_half_width_s)));
}
