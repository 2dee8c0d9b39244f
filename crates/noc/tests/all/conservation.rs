//! Invariants on every network: flits are neither lost nor doubled, runs repeat, and link loads follow the routing.

use crate::meshes::{go, grid, load, mesh, o1turn, plain, ring, router, run, simulate, stretches, west_first, xy};
use proptest::prelude::*;
use routecast_noc::scenario::{Allocator, Injection, Link, Queueing, Routing, Way};
use routecast_noc::{Scenario, simulate_all};

fn json(scenario: &Scenario) -> String {
    serde_json::to_string(&simulate(scenario)).expect("numbers")
}

const WAYS: [Way; 5] = [Way::XFirst, Way::YFirst, Way::Either, Way::OverRectangle, Way::OverAny];

fn scenarios() -> impl Strategy<Value = Scenario> {
    let queueing = prop_oneof![
        (2_u32..5).prop_map(|count| Queueing::VirtualChannels { count }),
        Just(Queueing::VirtualOutputQueues)
    ];
    let allocator = prop_oneof![
        Just(Allocator::RoundRobin),
        (1_u32..4).prop_map(|iterations| Allocator::Islip { iterations }),
        Just(Allocator::GreedyWeight)
    ];
    let injection =
        prop_oneof![Just(Injection::Bernoulli), Just(Injection::OnOff { on_cycles: 30.0, off_cycles: 50.0 })];
    let shape = (1_usize..5, 1_usize..4, 0_usize..8, 1_u32..12);
    let inside = (queueing, allocator, injection, prop::collection::vec(1_u32..12, 1..4));
    let clock = (0.0..1.0_f64, 0.2..2.0_f64, any::<u64>(), 0_u32..3);
    (shape, inside, clock).prop_map(
        |((width, height, routing, buffer), (queueing, allocator, injection, sizes), clock)| {
            let network = mesh(width, height);
            let routing = match routing {
                0 => xy(&network, width),
                1 => o1turn(&network, width),
                2 => west_first(&network, width),
                way => grid(width, WAYS[way - 3]),
            };
            let mut router = router(1);
            (router.queueing, router.allocator, router.buffer_flits) = (queueing, allocator, buffer);
            (router.routing_cycles, router.vc_allocation_cycles) = (clock.3 / 2, clock.3);
            let mut load = load(&crate::meshes::uniform(width * height, clock.0), 1);
            load.weights = vec![1.0; sizes.len()];
            load.packet_flits = sizes;
            (load.injection, load.clock_ratio) = (injection, clock.1);
            let most = 0.3 * routecast_mean(&load.packet_flits);
            let fair = most / (width * height) as f64;
            load.demand.iter_mut().flatten().for_each(|stretch| stretch.demand = stretch.demand.min(fair));
            let mut run = run(300, 1_000, 20_000);
            run.seed = clock.2;
            Scenario { routing, router, load, run, network }
        },
    )
}

fn routecast_mean(sizes: &[u32]) -> f64 {
    f64::from(sizes.iter().sum::<u32>()) / sizes.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn flits_are_neither_lost_nor_doubled(scenario in scenarios()) {
        let outcome = simulate(&scenario);
        prop_assert!(!outcome.deadlocked);
        prop_assert_eq!(outcome.created_flits, outcome.ejected_flits + outcome.inside_flits);
        prop_assert!(outcome.router_flits.iter().sum::<u64>() <= outcome.flit_hops);
        let offered: u64 = outcome.offered_flits.iter().sum();
        let accepted: u64 = outcome.accepted_flits.iter().sum();
        prop_assert!(outcome.undelivered_flits <= offered);
        // What was there, and what came, has gone or is still there: with what the network itself can hold.
        let holds = 1 << 20;
        prop_assert!(accepted <= outcome.source_flits[0] + offered + holds);
        if outcome.undelivered_flits == 0 {
            prop_assert_eq!(outcome.flit_latency.count, offered);
        }
        prop_assert!(outcome.network_latency.mean <= outcome.packet_latency.mean + 1e-9);
    }

    #[test]
    fn a_run_repeats_and_another_seed_differs(scenario in scenarios()) {
        let first = json(&scenario);
        prop_assert_eq!(&first, &json(&scenario));
        let mut other = scenario;
        other.run.seed ^= 1;
        if simulate(&other).created_flits > 100 {
            prop_assert_ne!(first, json(&other));
        }
    }
}

#[test]
fn parallel_runs_are_the_serial_ones() {
    let all: Vec<Scenario> = [0.05, 0.2, 0.6].into_iter().map(|rate| plain(4, 2, rate)).collect();
    let outcomes = simulate_all(&all, &|_| go(0.0)).expect("they are right");
    for (scenario, outcome) in all.iter().zip(&outcomes) {
        assert_eq!(json(scenario), serde_json::to_string(outcome).expect("numbers"));
    }
}

#[test]
fn links_carry_what_their_flows_bring() {
    let (width, rate) = (4, 0.3);
    let mut scenario = plain(width, 2, rate);
    scenario.run.measure_cycles = 200_000;
    let outcome = simulate(&scenario);
    let network = mesh(width, width);
    let mut expected = vec![0.0; network.links.len()];
    for source in 0..16 {
        for target in 0..16 {
            let mut at = source;
            while at != target {
                let next = crate::meshes::next_xy(width, at, target);
                expected[crate::meshes::link(&network, at, next) as usize] += rate / 16.0;
                at = next;
            }
        }
    }
    for (flits, expected) in outcome.link_flits.iter().zip(expected) {
        let measured = *flits as f64 / 200_000.0;
        assert!((measured / expected - 1.0).abs() < 0.04, "{measured}, by flows {expected}");
    }
    let through: u64 = outcome.router_flits.iter().sum();
    let ejected: u64 = outcome.accepted_flits.iter().sum();
    let linked: u64 = outcome.link_flits.iter().sum();
    assert!(through.abs_diff(linked + ejected) < 200, "{through} through routers");
}

#[test]
fn overload_shows_in_the_source_queues_and_the_network_still_carries() {
    let mut scenario = plain(4, 1, 0.95);
    (scenario.run.measure_cycles, scenario.run.drain_cycles) = (40_000, 0);
    let outcome = simulate(&scenario);
    assert!(!outcome.deadlocked);
    let offered: u64 = outcome.offered_flits.iter().sum();
    let accepted: u64 = outcome.accepted_flits.iter().sum();
    let grown = outcome.source_flits[1] - outcome.source_flits[0];
    assert!(accepted < offered * 8 / 10 && grown > offered / 10);
    // The network holds at most its buffers: 80 inputs of 8 flits, and what is on wires.
    assert!((offered - accepted).abs_diff(grown) < 80 * 8 * 2, "{offered} {accepted} {grown}");
}

#[test]
fn bursts_keep_the_mean_and_cost_latency() {
    let even = plain(4, 2, 0.2);
    let mut bursty = even.clone();
    bursty.load.injection = Injection::OnOff { on_cycles: 100.0, off_cycles: 300.0 };
    let offered = |scenario: &Scenario| {
        let mut long = scenario.clone();
        long.run.measure_cycles = 200_000;
        let outcome = simulate(&long);
        (outcome.offered_flits.iter().sum::<u64>() as f64 / (16.0 * 200_000.0), outcome.packet_latency.mean)
    };
    let (even, bursty) = (offered(&even), offered(&bursty));
    assert!((even.0 / 0.2 - 1.0).abs() < 0.01 && (bursty.0 / 0.2 - 1.0).abs() < 0.03, "{even:?} {bursty:?}");
    assert!(bursty.1 > 1.2 * even.1);
}

/// Each of four nodes sends a packet of 8 flits two routers on at once. Each takes its first link, whose buffer holds 4
/// flits, and waits for the second, which the next packet has: 4 flits of each have crossed a router, none arrives.
#[test]
fn four_packets_round_a_ring_block_each_other_and_two_classes_of_channels_free_them() {
    let network = ring(4);
    let class_of = |at: usize, to: usize| u8::from(to < at);
    let table = |classes: u32| Routing::Table {
        classes,
        links: (0..4).map(|at| vec![at; 4]).collect(),
        class: (0..4)
            .map(|at| (0..4).map(|to| if classes == 1 { 0 } else { class_of(at as usize, to) }).collect())
            .collect(),
    };
    let mut demand = vec![vec![0.0; 4]; 4];
    (0..4).for_each(|node| demand[node][(node + 2) % 4] = 8.0);
    let scenario = |classes: u32| {
        let mut router = router(classes);
        router.buffer_flits = 4;
        Scenario {
            network: network.clone(),
            router,
            routing: table(classes),
            load: load(&demand, 8),
            run: run(0, 2_000, 1_000),
        }
    };
    let outcome = simulate(&scenario(1));
    assert!(outcome.deadlocked);
    assert_eq!((outcome.ejected_flits, outcome.flit_hops), (0, 16));
    assert!(outcome.cycles < 50, "{}", outcome.cycles);
    let outcome = simulate(&scenario(2));
    assert!(!outcome.deadlocked);
    assert!(outcome.accepted_flits.iter().all(|&flits| flits > 40), "{:?}", outcome.accepted_flits);
}

#[test]
fn a_wrong_entry_is_named() {
    let fault = |change: fn(&mut Scenario)| {
        let mut scenario = plain(3, 2, 0.1);
        change(&mut scenario);
        routecast_noc::simulate(&scenario, &go).expect_err("it is wrong").to_string()
    };
    assert_eq!(fault(|s| s.network.links[5].to = 9), "network.links[5].to is 9, but there are only 9");
    assert_eq!(
        fault(|s| s.load.demand[2][0].demand = -1.0),
        "load.demand[2][0], its demand, is -1, must be at least 0 and finite"
    );
    assert_eq!(
        fault(|s| s.load.demand[2][0].count = 10),
        "load.demand[2][0], its last node, is 9, but there are only 9"
    );
    let twice = fault(|s| {
        let first = s.load.demand[2][0];
        s.load.demand[2].push(first);
    });
    assert_eq!(twice, "load.demand[2][1], its first node, is 0, must be at least 9");
    assert_eq!(
        fault(|s| s.routing = grid(1, Way::XFirst)),
        "routing.columns: router 2 is not joined with its neighbours in rows of 1"
    );
    assert_eq!(fault(|s| s.routing = grid(2, Way::XFirst)), "routing.columns is 2, must be a divisor of the 9 routers");
    assert_eq!(
        fault(|s| s.router.queueing = Queueing::VirtualChannels { count: 20 }),
        "ports times virtual channels of a router is 100, must be at most 64"
    );
    let turned = fault(|s| {
        let Routing::Table { links, .. } = &mut s.routing else { return };
        links[1][2] = links[1][0];
    });
    assert!(turned.contains("does not arrive"), "{turned}");
    let (position, _) = simulate_all(&[plain(3, 2, 0.1), plain(3, 2, 20.0)], &|_| go(0.0)).expect_err("the second is");
    assert_eq!(position, 1);
}

#[test]
fn a_grid_leads_packets_as_a_table_or_paths_do() {
    let mut scenario = plain(4, 4, 0.3);
    let table = json(&scenario);
    scenario.routing = grid(4, Way::XFirst);
    assert_eq!(json(&scenario), table);
    scenario.routing = o1turn(&scenario.network, 4);
    // What stays at its router draws no path; it has two of no links here.
    scenario.load.demand.iter_mut().enumerate().for_each(|(node, row)| {
        let mut dense = vec![0.3 / 15.0; 16];
        dense[node] = 0.0;
        *row = stretches(&dense);
    });
    let paths = json(&scenario);
    scenario.routing = grid(4, Way::Either);
    assert_eq!(json(&scenario), paths);
}

/// Every link of the rectangle between two corners carries the part of the flow whose legs come over it.
#[test]
fn over_a_rectangle_every_router_of_it_is_between_alike_often() {
    let (source, target, rate, cycles) = (13, 3, 0.3, 200_000);
    let mut scenario = plain(4, 2, 0.0);
    scenario.routing = grid(4, Way::OverRectangle);
    scenario.run.measure_cycles = cycles;
    scenario.load = load(&crate::meshes::single(16, source, target, rate), 8);
    let mut expected = vec![0.0; scenario.network.links.len()];
    // (1, 3) to (3, 0): 3 columns and 4 rows.
    for between in (0..16).filter(|router| router % 4 >= 1) {
        for (mut at, to) in [(source, between), (between, target)] {
            while at != to {
                let next = crate::meshes::next_xy(4, at, to);
                expected[crate::meshes::link(&scenario.network, at, next) as usize] += rate / 12.0;
                at = next;
            }
        }
    }
    let outcome = simulate(&scenario);
    for (&flits, expected) in outcome.link_flits.iter().zip(expected) {
        let measured = flits as f64 / cycles as f64;
        assert!((measured - expected).abs() < 0.03 * rate, "{measured}, by the legs {expected}");
    }
}

/// Over any router of a mesh of 4 x 4, uniform traffic (itself included) makes two legs of uniform traffic: the two middle
/// links of a row carry 2 * rate * (2 * 2 / 4), and a packet passes 2 * 2 * 1.25 links and one router more. A packet to
/// its own router stays there.
#[test]
fn valiant_routing_spreads_a_permutation_like_two_legs_of_uniform_traffic() {
    let (width, rate, cycles) = (4, 0.2, 200_000);
    let mut scenario = plain(width, 2, 0.0);
    scenario.routing = grid(width, Way::OverAny);
    scenario.run.measure_cycles = cycles;
    for source in 0..16 {
        scenario.load.demand[source] = stretches(&crate::meshes::single(16, source, 15 - source, rate)[source]);
    }
    let outcome = simulate(&scenario);
    assert!(!outcome.deadlocked && outcome.undelivered_flits == 0);
    assert!((outcome.mean_routers / 6.0 - 1.0).abs() < 0.01, "{}", outcome.mean_routers);
    let middle = crate::meshes::link(&scenario.network, 1, 2) as usize;
    let load = outcome.link_flits[middle] as f64 / cycles as f64;
    // Two of four nodes of the row on either leg send half of their packets over it.
    assert!((load / (2.0 * rate) - 1.0).abs() < 0.04, "{load}");
}

/// The ring again, beside two routers whose traffic goes on: the run ends long before its last cycle.
#[test]
fn packets_that_block_each_other_are_seen_while_others_move() {
    let mut network = ring(4);
    network.links.extend([(4, 5), (5, 4)].map(|(from, to)| Link { from, to, cycles: 1 }));
    (network.routers, network.nodes) = (6, (0..6).collect());
    let mut demand = vec![vec![0.0; 6]; 6];
    (0..4).for_each(|node| demand[node][(node + 2) % 4] = 4.0);
    (demand[4][5], demand[5][4]) = (0.3, 0.3);
    let mut router = router(1);
    router.buffer_flits = 4;
    let links = (0..6).map(|at| vec![at; 6]).collect();
    let routing = Routing::Table { classes: 1, links, class: Vec::new() };
    let scenario = Scenario { network, router, routing, load: load(&demand, 8), run: run(0, 10_000_000, 0) };
    let outcome = simulate(&scenario);
    assert!(outcome.deadlocked);
    assert!(outcome.cycles < 100_000, "{}", outcome.cycles);
}
