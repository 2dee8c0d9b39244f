//! Lanes against a plain simulation, event by event, with the same draws.

mod plain;
mod tape;

use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use self::plain::Plain;
use crate::device::Kernel;
use crate::kept::State;
use crate::law::Law;
use crate::router::{
    Arrivals as Pattern, Core, Interruptions, Interrupts, Kind, Link, Next, Polls, Program, RandomTime, Recording,
    Router, Sleep, Source,
};
use crate::segments::{Cut, Memory, Outcome, memory, run};
use crate::tally::{Histograms, Tally};
use crate::vectors::Vectors;

fn plain(program: &Program, cut: &Cut) -> (Vec<Tally>, Histograms, State) {
    let mut plain = Plain::new(program);
    let empty = plain.tally.clone();
    let end = *cut.windows.last().expect("there are windows");
    let windows = cut.windows[1..].iter().map(|&border| {
        plain.run_until(border);
        std::mem::replace(&mut plain.tally, empty.clone())
    });
    let windows = windows.collect();
    (windows, plain.histograms.clone(), plain.state(end))
}

fn lanes(program: &Program, cut: &Cut) -> Outcome {
    run(program, cut, &|_| ControlFlow::Continue(())).expect("it fits").expect("nobody stops it")
}

/// Windows of some thousand services each.
fn cut(windows: u64, ticks: u64, segments: usize, vectors: Vectors) -> Cut {
    Cut {
        begin: None,
        windows: (0..=windows).map(|window| window * ticks).collect(),
        part_of: (0..windows as usize).map(|window| window / 3).collect(),
        segments,
        warm_up: 400_000,
        vectors,
        turns: None,
    }
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![
        Just(Law::Constant),
        Just(Law::Exponential),
        Just(Law::of_survival(|x| (1.0 - x).clamp(0.0, 1.0))),
        Just(Law::of_survival(|x| (1.0 + x).powf(-4.0))),
    ]
}

fn polls() -> impl Strategy<Value = Option<Polls>> {
    let wakeup = prop::option::of((0.1e6..20e6_f64, law()).prop_map(|(mean_ps, law)| RandomTime { mean_ps, law }));
    let linger = prop_oneof![Just(0.0), 0.0..10e6_f64];
    let interrupts = (0.0..3e6_f64, 0.0..20e6_f64, any::<bool>(), any::<bool>(), wakeup, linger).prop_map(
        |(cost_ps, moderation_ps, exhaustive, is_free, wakeup, linger_ps)| Interrupts {
            cost_ps: if is_free { 0.0 } else { cost_ps },
            moderation_ps,
            exhaustive,
            wakeup,
            linger_ps,
        },
    );
    let polls = (1..40_u32, 0.0..1e6_f64, prop::option::of(interrupts))
        .prop_map(|(batch, cost_ps, interrupts)| Polls { batch, cost_ps, interrupts });
    prop::option::of(polls)
}

fn sleep() -> impl Strategy<Value = Vec<Sleep>> {
    let two = (0.1e6..5e6_f64, 5e6..50e6_f64, 1e6..40e6_f64).prop_map(|(after_ps, later_ps, exit_ps)| {
        vec![Sleep { after_ps, exit_ps: exit_ps / 8.0 }, Sleep { after_ps: later_ps, exit_ps }]
    });
    prop_oneof![Just(vec![]), Just(vec![Sleep { after_ps: 0.0, exit_ps: 2e6 }]), two]
}

fn interruptions() -> impl Strategy<Value = Option<Interruptions>> {
    prop::option::of(
        (1e3..3e4_f64, 0.1e6..10e6_f64, law())
            .prop_map(|(rate_hz, mean_ps, law)| Interruptions { rate_hz, duration: RandomTime { mean_ps, law } }),
    )
}

/// Frames of two places at uneven distances, some at once, for 2 ms at most.
fn recorded(rate_pps: f64) -> Pattern {
    let (gap_ps, mut at) = (1e12 / rate_pps, 0.0);
    let each = (0..3000_u64.min((2e9 / gap_ps) as u64)).map(|frame| {
        at += gap_ps * [0.0, 0.3, 2.1, 1.6][(frame * frame / 7 % 4) as usize];
        (at as u64, u32::from(frame % 3 == 1))
    });
    let (at_ps, place) = each.unzip();
    Pattern::Recorded(Arc::new(Recording::new(at_ps, place, 2)))
}

fn router() -> impl Strategy<Value = Router> {
    let rest = (sleep(), interruptions(), (1..=3_usize, 0..=4_usize));
    let shape = (1..=5_usize, 0..=3_usize, 1..=3_usize, 3..=6_usize, law(), any::<bool>(), polls(), rest);
    shape.prop_flat_map(|(cores, links, sources, kinds, law, slows, polls, (sleep, interruptions, (turns, later)))| {
        let kind = (64..1518_u32, 0..cores, 0..=links, 0.5e6..2e6_f64, 0.0..1.0_f64, 0.0..0.6_f64).prop_map(
            move |(bytes, core, link, work_ps, wire, transmission)| Kind {
                bytes,
                wire_ps: wire * work_ps,
                core,
                work_ps,
                next: None,
                link: link.checked_sub(1),
                transmission_ps: transmission * work_ps,
            },
        );
        let kinds = prop::collection::vec(kind, kinds + later);
        let ways = prop::collection::vec((0..8_usize, any::<bool>()), 12);
        let least = u32::from(polls.is_some());
        let queues = (prop::collection::vec(least..40_u32, cores), prop::collection::vec(0..20_u32, links));
        let rates = prop::collection::vec((0.05e6..1.5e6_f64, 0..9_usize), sources);
        let sleep = if polls.is_some() { sleep } else { vec![] };
        (kinds, queues, rates, ways).prop_map(move |(mut kinds, (queues, rings), rates, ways)| {
            // Some go on as kinds behind them, dealt to two of these or not.
            let (from, count) = (kinds.len() - later, kinds.len());
            for (number, (way, is_dealt)) in (0..count).zip(ways) {
                let kind = from.max(number + 1) + way;
                let dealer = (is_dealt && kind + 2 <= count).then_some(0);
                kinds[number].next = (kind < count).then_some(Next { kind, dealer });
            }
            // Kinds that frames are dealt to are alike on the wire, which carries what is offered.
            let fastest_pps = rates.iter().map(|rate| rate.0).fold(0.0, f64::max);
            for kind in &mut kinds {
                kind.wire_ps = kind.wire_ps.min(0.9e12 / fastest_pps);
                if turns > 1 {
                    (kind.wire_ps, kind.bytes) = (0.1e6, 64);
                }
            }
            let entries = from + 1 - turns;
            let all: Vec<(usize, f64)> = (0..entries).map(|kind| (kind, 1.0 + kind as f64)).collect();
            // With one law for all and no polls, core 0 may have several servers, which core 1 shares.
            let is_team = polls.is_none() && turns != 2;
            let servers = |number: usize| if is_team && number < 2 { 1 + (later as u32) } else { 1 };
            let source = |&(rate_pps, way): &(f64, usize)| {
                let even = Pattern::Even { phase: rate_pps / 1.5e6 };
                let steps = if way == 1 { vec![(0.3e9, rate_pps * 0.4), (0.65e9, rate_pps)] } else { vec![] };
                let (arrivals, kinds) = match way {
                    0 | 1 => (Pattern::Poisson, vec![all.clone()]),
                    // In turn; and in turn between two places at random.
                    2 => (even, all.iter().map(|&(kind, _)| vec![(kind, 1.0)]).collect()),
                    3 => (even, vec![all.clone(), vec![(0, 1.0)]]),
                    4 => (Pattern::Bursts { frames: 1 + (rate_pps / 2e4) as u32 }, vec![all.clone(), vec![(0, 1.0)]]),
                    // Bursts of one of two flows, or of frames of any kind.
                    5 => (
                        Pattern::OnOff { burst_frames: 1.0 + rate_pps / 5e4, peak_ratio: 3.0 },
                        vec![all.clone(), vec![(0, 1.0)]],
                    ),
                    6 => (Pattern::OnOff { burst_frames: 1.0, peak_ratio: 1.5 }, vec![all.clone()]),
                    _ => (recorded(rate_pps), vec![all.clone(), vec![(0, 1.0)]]),
                };
                Source { rate_pps, steps, arrivals, kinds }
            };
            Router {
                tick_ps: Router::usual_tick_ps(&kinds),
                sources: rates.iter().map(source).collect(),
                cores: (queues.iter().enumerate())
                    .map(|(number, &queue)| Core {
                        queue,
                        servers: servers(number),
                        shares: (is_team && number == 1).then_some(0),
                        law: if is_team { 0 } else { number % 2 },
                        contends: number % 3 != 1 || turns == 1 || !sleep.is_empty() || is_team,
                        // With sleep all poll; else those that do not contend do not, and the last.
                        polls: !sleep.is_empty() || (turns < 3 && (number % 3 != 1 || turns == 1)),
                        is_struck: if is_team { number > 1 } else { number % 2 == 0 || turns == 1 },
                    })
                    .collect(),
                links: rings.iter().map(|&queue| Link { queue }).collect(),
                laws: if turns == 2 { vec![law.clone(), Law::Exponential] } else { vec![law.clone(); 2] },
                turns,
                polls: polls.clone(),
                sleep: sleep.clone(),
                interruptions: interruptions.clone(),
                contention: if slows { vec![1.0, 1.1, 1.3] } else { vec![] },
                dealers: vec![2],
                kinds,
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn lanes_count_what_a_plain_simulation_counts(router in router(), seed: u64, ticks in 100_000..1_500_000_u64) {
        let program = Program::new(&router, seed, 0).expect("it fits");
        for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
            for segments in [1, 7] {
                let cut = cut(9, ticks, segments, vectors);
                let (windows, histograms, end) = plain(&program, &cut);
                let outcome = lanes(&program, &cut);
                let mut all = Histograms::default();
                outcome.parts.iter().for_each(|part| all.add(part));
                prop_assert_eq!(&outcome.windows, &windows, "{:?}, {} segments", vectors, segments);
                prop_assert_eq!(&outcome.end, &end);
                prop_assert!(all == histograms);
                prop_assert_eq!(outcome.seams.all, segments - 1);
                prop_assert_eq!(outcome.seams.at_once + outcome.seams.repaired, segments - 1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// What a device runs is written down from the step: instruction by instruction it does the same.
    #[test]
    fn the_tape_of_a_step_does_what_the_step_does(router in router(), seed: u64) {
        let program = Program::new(&router, seed, 0).expect("it fits");
        if program.fits_device().is_ok() {
            tape::compare(&program, 60_000);
        }
    }
}

#[test]
fn a_trajectory_goes_on_from_a_state_that_was_kept() {
    let program = one_queue(0.95, 20, Law::Exponential);
    for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
        for segments in [1, 5] {
            let whole = cut(12, 6_000_000, segments, vectors);
            let (first, then) = (whole.windows[..=5].to_vec(), whole.windows[5..].to_vec());
            let parts = |windows: &Vec<u64>| vec![0; windows.len() - 1];
            let first = Cut { part_of: parts(&first), windows: first, ..whole.clone() };
            let first = lanes(&program, &first);
            let then = Cut { part_of: parts(&then), windows: then, begin: Some(first.end.clone()), ..whole.clone() };
            let then = lanes(&program, &then);
            let outcome = lanes(&program, &whole);
            assert_eq!([first.windows, then.windows].concat(), outcome.windows);
            assert_eq!(then.end, outcome.end);
        }
    }
}

/// A core with a ring, for frames of 1 us that take `wire_ps` to come in.
fn one_core(rate_pps: f64, arrivals: Pattern, wire_ps: f64, queue: u32, law: Law) -> Router {
    let kind = Kind { bytes: 64, wire_ps, core: 0, work_ps: 1e6, next: None, link: None, transmission_ps: 0.0 };
    Router {
        tick_ps: Router::usual_tick_ps(&[kind]),
        sources: vec![Source { rate_pps, steps: vec![], arrivals, kinds: vec![vec![(0, 1.0)]] }],
        turns: 1,
        kinds: vec![kind],
        cores: vec![Core { queue, servers: 1, shares: None, law: 0, contends: true, polls: true, is_struck: true }],
        laws: vec![law],
        polls: None,
        sleep: vec![],
        interruptions: None,
        contention: vec![],
        links: vec![],
        dealers: vec![],
    }
}

fn one_queue(load: f64, queue: u32, law: Law) -> Program {
    Program::new(&one_core(load * 1e6, Pattern::Poisson, 0.0, queue, law), 3, 0).expect("it fits")
}

#[test]
fn bursts_that_a_clock_does_not_hold_are_refused() {
    let refused = |arrivals| {
        let program = Program::new(&one_core(5e5, arrivals, 1e5, 9, Law::Constant), 1, 0);
        program.err().map_or(String::new(), |refusal| refusal.0)
    };
    assert_eq!(refused(Pattern::Bursts { frames: 1000 }), "");
    assert_eq!(refused(Pattern::OnOff { burst_frames: 1000.0, peak_ratio: 3.0 }), "");
    assert!(refused(Pattern::Bursts { frames: 1_000_000 }).contains("too far apart"));
    assert!(refused(Pattern::OnOff { burst_frames: 1e5, peak_ratio: 3.0 }).contains("too long for a clock"));
    // A mean of less than a frame, and a peak that is none, are no bursts.
    assert!(refused(Pattern::OnOff { burst_frames: 0.5, peak_ratio: 3.0 }).contains("no rate or no frames"));
    assert!(refused(Pattern::OnOff { burst_frames: 4.0, peak_ratio: 1.0 }).contains("no rate or no frames"));
}

#[test]
fn the_outcome_does_not_depend_on_the_cut() {
    for load in [0.9, 1.0, 1.3] {
        let program = one_queue(load, 100, Law::Exponential);
        let whole = lanes(&program, &cut(80, 2_000_000, 1, Vectors::Plain));
        for segments in [2, 5, 16, 40, 80] {
            for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
                let outcome = lanes(&program, &cut(80, 2_000_000, segments, vectors));
                assert_eq!(outcome.seams.all, segments - 1);
                assert_eq!((&outcome.windows, &outcome.parts), (&whole.windows, &whole.parts), "{load} {segments}");
                assert_eq!(outcome.end, whole.end);
            }
        }
    }
}

#[test]
fn a_seam_stays_open_where_the_warm_up_is_too_short_and_is_repaired() {
    let program = one_queue(1.0, 500, Law::Exponential);
    let short = Cut { warm_up: 1000, ..cut(40, 2_000_000, 20, Vectors::widest()) };
    let outcome = lanes(&program, &short);
    assert!(outcome.seams.repaired > 0, "{:?}", outcome.seams);
    assert_eq!(outcome.seams.at_once + outcome.seams.repaired, outcome.seams.all);
    assert_eq!(outcome.windows, lanes(&program, &cut(40, 2_000_000, 1, Vectors::Plain)).windows);
}

#[test]
fn a_clock_that_wraps_changes_nothing() {
    // 2^32 ticks are 4.3 million services; the low word turns over several times.
    let program = one_queue(0.7, 20, Law::Constant);
    let cut = cut(12, 1_500_000_000, 12, Vectors::widest());
    let (windows, _, end) = plain(&program, &cut);
    let outcome = lanes(&program, &cut);
    assert_eq!(outcome.windows, windows);
    assert_eq!(outcome.end, end);
}

#[test]
fn every_field_of_a_state_opens_a_seam() {
    // The second goes on to the first core, as the third and the fourth in turn.
    let next = Some(Next { kind: 2, dealer: Some(0) });
    let kinds = [(0, None), (1, next), (0, None), (0, None)].map(|(core, next)| Kind {
        bytes: 64,
        wire_ps: 3e5,
        core,
        work_ps: 1e6,
        next,
        link: Some(0),
        transmission_ps: 1.333e6,
    });
    let router = Router {
        tick_ps: Router::usual_tick_ps(&kinds),
        sources: vec![Source {
            rate_pps: 2.5e6,
            steps: vec![],
            arrivals: Pattern::Poisson,
            kinds: vec![vec![(0, 1.0), (1, 1.0)]],
        }],
        turns: 1,
        cores: vec![
            Core { queue: 30, servers: 1, shares: None, law: 0, contends: true, polls: true, is_struck: true };
            2
        ],
        laws: vec![Law::Exponential],
        polls: None,
        sleep: vec![],
        interruptions: None,
        contention: vec![1.0, 1.2],
        links: vec![Link { queue: 10 }],
        dealers: vec![2],
        kinds: kinds.to_vec(),
    };
    let program = Program::new(&router, 1, 0).expect("it fits");
    let state = lanes(&program, &cut(4, 1_000_000, 1, Vectors::Plain)).end;
    assert!(state.links[0].starts.len() > 1 && state.cores[0].frames.len() > 1, "{state:?}");
    let changes: [fn(&mut State); 26] = [
        |state| state.at += 1,
        |state| state.turn += 1,
        |state| state.dealt[0] ^= 1,
        |state| state.cores[0].passed[0].0 += 1,
        |state| state.cores[0].passed[0].1 += 1,
        |state| state.sources[0].rest += 1,
        |state| state.sources[0].place += 1,
        |state| state.sources[0].next += 1,
        |state| state.sources[0].fine ^= 1,
        |state| state.sources[0].kind ^= 1,
        |state| state.sources[0].ideal ^= 1,
        |state| state.sources[0].cell += 1,
        |state| state.sources[0].number += 1,
        |state| state.cores[1].done = state.cores[1].done.map(|done| done + 1),
        |state| state.cores[1].began = state.cores[1].began.map(|began| began + 1),
        |state| state.cores[1].phase += 1,
        |state| state.cores[1].rest += 1,
        |state| state.cores[1].polled += 1,
        |state| state.cores[1].interrupted += 1,
        |state| state.cores[1].idle = Some(state.cores[1].idle.unwrap_or(0) + 1),
        |state| state.cores[0].frames[1].0 += 1,
        |state| state.cores[0].frames[1].1 ^= 1,
        |state| state.cores[0].frames.truncate(1),
        |state| state.links[0].free += 1,
        |state| state.links[0].fine ^= 1,
        |state| state.links[0].starts[0] += 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut other = state.clone();
        change(&mut other);
        assert_ne!(other, state, "change {number}");
    }
}

/// Loss of M/M/1/K: the chain's stationary law.
fn erlang_loss(load: f64, places: i32) -> f64 {
    if load == 1.0 {
        1.0 / f64::from(places + 1)
    } else {
        (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1))
    }
}

#[test]
fn a_queue_loses_what_theory_says() {
    for load in [0.5, 0.9, 1.0, 1.2, 2.0] {
        let program = one_queue(load, 9, Law::Exponential);
        let outcome = lanes(&program, &cut(96, 40_000_000, 32, Vectors::widest()));
        let sum = |of: fn(&Tally) -> u64| outcome.windows.iter().map(of).sum::<u64>() as f64;
        let losses: Vec<f64> =
            outcome.windows.iter().map(|window| window.lost[0] as f64 / window.offered[0] as f64).collect();
        let loss = sum(|window| window.lost[0]) / sum(|window| window.offered[0]);
        let spread = losses.iter().map(|x| (x - loss).powi(2)).sum::<f64>() / 95.0;
        let exact = erlang_loss(load, 10);
        let error = (spread / 96.0).sqrt();
        assert!((loss - exact).abs() < 3.3 * error, "{load}: {loss} +- {error} for {exact}");
    }
}

#[test]
fn a_core_whose_frames_come_with_the_windows_sleeps_between_them() {
    // A frame each 100 us, 2 us to wake up, 1 us of service; windows of 100 us, and of 30.
    let kind = Kind { bytes: 64, wire_ps: 0.0, core: 0, work_ps: 1e6, next: None, link: None, transmission_ps: 0.0 };
    let router = Router {
        tick_ps: Router::usual_tick_ps(&[kind]),
        sources: vec![Source {
            rate_pps: 1e4,
            steps: vec![],
            arrivals: Pattern::Even { phase: 0.0 },
            kinds: vec![vec![(0, 1.0)]],
        }],
        turns: 1,
        kinds: vec![kind],
        cores: vec![Core { queue: 9, servers: 1, shares: None, law: 0, contends: true, polls: true, is_struck: true }],
        laws: vec![Law::Constant],
        polls: Some(Polls { batch: 1, cost_ps: 0.0, interrupts: None }),
        sleep: vec![Sleep { after_ps: 0.0, exit_ps: 2e6 }],
        interruptions: None,
        contention: vec![],
        links: vec![],
        dealers: vec![],
    };
    let program = Program::new(&router, 1, 0).expect("it fits");
    for ticks in [100_000, 30_000] {
        let outcome = lanes(&program, &cut(90, ticks, 1, Vectors::Plain));
        let sum = |of: fn(&Tally) -> u64| outcome.windows.iter().map(of).sum::<u64>();
        let frames = sum(|window| window.forwarded);
        assert_eq!(frames, 90 * ticks / 100_000);
        // The first comes at the beginning, when nobody has been idle.
        assert_eq!(sum(|window| window.latency_ticks), 3000 * frames - 2000);
        assert_eq!(sum(|window| window.wakes[0]), frames - 1);
        assert_eq!(sum(|window| window.asleep_ticks[0]), 90 * ticks - 3000 * frames + 2000);
    }
}

#[test]
fn recorded_frames_come_when_they_were_recorded_and_none_after_the_last() {
    // Alone at the core, far apart beside what a clock holds, and the last two at once.
    let at_ps = vec![0, 3_000_500, 4_000_000_000_000, 9_000_000_000_250, 9_000_000_000_250];
    let recording = Recording::new(at_ps, vec![0; 5], 1);
    let router = one_core(1.0, Pattern::Recorded(Arc::new(recording)), 0.0, 9, Law::Constant);
    let program = Program::new(&router, 1, 0).expect("it fits");
    for segments in [1, 4] {
        let outcome = lanes(&program, &cut(10, 1_000_000_000, segments, Vectors::widest()));
        let offered: Vec<u64> = outcome.windows.iter().map(|window| window.offered[0]).collect();
        assert_eq!(offered, [2, 0, 0, 0, 1, 0, 0, 0, 0, 2]);
        let sum = |of: fn(&Tally) -> u64| outcome.windows.iter().map(of).sum::<u64>();
        assert_eq!((sum(|window| window.forwarded), sum(|window| window.waited_ticks)), (5, 1000));
    }
}

/// Two cores that are always full, each dealing its frames in turn to two that are not, and a link behind these.
fn full_cores(polls: Option<Polls>, contention: Vec<f64>) -> Program {
    let kind = |core: usize, work_ps: f64, next: Option<usize>| Kind {
        bytes: 64,
        wire_ps: 0.0,
        core,
        work_ps,
        next: next.map(|kind| Next { kind, dealer: Some(core) }),
        link: next.is_none().then_some(0),
        transmission_ps: 2e5,
    };
    let kinds = vec![
        kind(0, 1e6, Some(2)),
        kind(1, 1e6, Some(4)),
        kind(2, 1.31e6, None),
        kind(3, 1.31e6, None),
        kind(4, 0.97e6, None),
        kind(5, 0.97e6, None),
    ];
    let core = |number: usize| Core {
        queue: 40,
        servers: 1,
        shares: None,
        law: 0,
        contends: number < 2,
        polls: number < 2,
        is_struck: false,
    };
    let source = |kind: usize| Source {
        rate_pps: 1.3e6 + 1e4 * kind as f64,
        steps: vec![],
        arrivals: Pattern::Even { phase: 0.3 },
        kinds: vec![vec![(kind, 1.0)]],
    };
    let router = Router {
        tick_ps: 1e3 * contention.get(1).copied().unwrap_or(1.0),
        sources: vec![source(0), source(1)],
        turns: 1,
        kinds,
        cores: (0..6).map(core).collect(),
        laws: vec![Law::Constant],
        polls,
        sleep: vec![],
        interruptions: None,
        contention,
        links: vec![Link { queue: 9 }],
        dealers: vec![2, 2],
    };
    Program::new(&router, 5, 0).expect("it fits")
}

#[test]
fn full_cores_with_constant_services_go_on_where_they_would_be() {
    let polls = Polls { batch: 7, cost_ps: 3e6, interrupts: None };
    for program in [full_cores(None, vec![]), full_cores(Some(polls), vec![]), full_cores(None, vec![1.0, 1.25])] {
        let Memory::Turns(turns) = memory(&program, 400_000) else { panic!("they turn") };
        for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
            let serial = lanes(&program, &cut(12, 2_000_001, 1, vectors));
            let turned = Cut { turns: Some(turns.clone()), ..cut(12, 2_000_001, 12, vectors) };
            let outcome = lanes(&program, &turned);
            assert_eq!((outcome.seams.all, outcome.seams.at_once), (11, 11));
            assert_eq!((outcome.windows, outcome.end), (serial.windows, serial.end));
            // A wrong guess costs a repair, and nothing else.
            let mut wrong = turns.clone();
            wrong.known.at += 1;
            let outcome = lanes(&program, &Cut { turns: Some(wrong), ..turned });
            assert!(outcome.seams.repaired > 0);
            assert_eq!(outcome.seams.at_once + outcome.seams.repaired, 11);
            assert_eq!(outcome.end, lanes(&program, &cut(12, 2_000_001, 1, vectors)).end);
        }
    }
    let varied = one_queue(1.3, 40, Law::Exponential);
    assert!(matches!(memory(&varied, 20_000_000), Memory::Forgets));
}

#[test]
fn one_shader_runs_all_seeds_and_many_rates() {
    let kernel = |load: f64, seed| {
        let router = one_core(load * 1e6, Pattern::Poisson, 0.0, 49, Law::Exponential);
        let program = Program::new(&router, seed, 0).expect("it is within what the integers hold");
        Kernel::new(&program, false).expect("a device has a place for it")
    };
    let first = kernel(0.9, 1);
    assert_ne!(first.constants, vec![0; first.constants.len()]);
    for other in [kernel(0.9, 2), kernel(0.85, 1)] {
        assert!(other.text == first.text, "constants alone differ");
        assert_ne!(other.constants, first.constants);
        assert_eq!(other.constants.len(), first.constants.len());
    }
}
