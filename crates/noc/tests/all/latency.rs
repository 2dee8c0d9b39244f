//! Latencies against closed forms.

use crate::meshes::{load, mesh, router, run, simulate, single, star, uniform, xy};
use routecast_noc::Scenario;
use routecast_noc::scenario::{Allocator, Queueing};

/// Latency in an empty network: one cycle at the node, its wires, the stages of each router, links between them.
fn empty(scenario: &Scenario, routers: u32, flits: u32) -> f64 {
    let router = &scenario.router;
    let stages =
        router.routing_cycles + router.vc_allocation_cycles + router.switch_allocation_cycles + router.traversal_cycles;
    let link = scenario.network.links.first().map_or(0, |link| link.cycles);
    f64::from(1 + 2 * scenario.network.node_link_cycles + routers * stages + (routers - 1) * link + flits - 1)
}

#[test]
fn a_packet_alone_takes_the_cycles_of_its_stages_and_wires() {
    for (stages, link_cycles, node_link) in
        [([0, 1, 1, 1], 1, 1), ([0, 0, 1, 1], 1, 1), ([1, 1, 1, 1], 2, 1), ([2, 3, 2, 4], 3, 2), ([0, 1, 1, 0], 0, 0)]
    {
        for (target, routers) in [(0, 1), (1, 2), (15, 7)] {
            for flits in [1, 4, 8] {
                let mut network = mesh(4, 4);
                network.node_link_cycles = node_link;
                network.links.iter_mut().for_each(|link| link.cycles = link_cycles);
                let mut router = router(2);
                router.buffer_flits = 40;
                router.routing_cycles = stages[0];
                router.vc_allocation_cycles = stages[1];
                router.switch_allocation_cycles = stages[2];
                router.traversal_cycles = stages[3];
                let scenario = Scenario {
                    routing: xy(&network, 4),
                    router,
                    load: load(&single(16, 0, target, 1e-5 * f64::from(flits)), flits),
                    run: run(0, 3_000_000, 1_000),
                    network,
                };
                let outcome = simulate(&scenario);
                let law = empty(&scenario, routers, flits);
                assert!(outcome.packet_latency.count > 10);
                assert_eq!(outcome.mean_routers, f64::from(routers));
                for latency in [&outcome.packet_latency, &outcome.network_latency] {
                    assert_eq!((latency.mean, latency.p50, latency.max), (law, law, law), "{stages:?} {flits}");
                }
                assert_eq!(outcome.flit_latency.max, law - f64::from(flits - 1));
            }
        }
    }
}

#[test]
fn the_reference_pipeline_takes_four_cycles_a_router_and_one_more_than_the_packet() {
    let network = mesh(8, 1);
    for (target, routers) in [(3, 4.0), (7, 8.0)] {
        let routing = xy(&network, 8);
        let load = load(&single(8, 0, target, 8e-5), 8);
        let network = network.clone();
        let scenario = Scenario { routing, router: router(1), load, run: run(0, 2_000_000, 100), network };
        assert_eq!(simulate(&scenario).packet_latency.mean, 4.0 * routers + 8.0 + 1.0);
    }
}

/// Many nodes, one receiver: a discrete queue with Bernoulli arrivals from each node and a constant service of one
/// cycle more than the packet, because the tail gives its virtual channel back before the next head asks for it.
#[test]
fn a_single_output_waits_like_the_discrete_queue_with_constant_service() {
    let (nodes, flits, utilisation) = (33_usize, 8_u32, 0.7);
    let service = f64::from(flits + 1);
    let senders = (nodes - 1) as f64;
    let packets = utilisation / service / senders;
    let mut demand = vec![vec![0.0; nodes]; nodes];
    demand[..nodes - 1].iter_mut().for_each(|row| row[nodes - 1] = packets * f64::from(flits));
    let mut router = router(1);
    router.buffer_flits = 64;
    let network = star(nodes);
    let scenario = Scenario {
        routing: xy(&network, 1),
        router,
        load: load(&demand, flits),
        run: run(20_000, 3_000_000, 100_000),
        network,
    };
    let outcome = simulate(&scenario);
    // Work that arrives in a cycle is `service` times a binomial number of packets.
    let pairs = senders * (senders - 1.0) * packets * packets;
    let second = service * service * (pairs + senders * packets) - service * senders * packets;
    let waiting = second / (2.0 * (1.0 - utilisation)) + service * (senders - 1.0) * packets / 2.0;
    let wait = outcome.packet_latency.mean - (4.0 + f64::from(flits) + 1.0);
    assert!((wait / waiting - 1.0).abs() < 0.03, "waits {wait}, theory {waiting}");
}

/// Karol, Hluchyj, Morgan (1987), table I: an input-queued 8 x 8 switch with FIFOs carries 0.6184 of its capacity.
#[test]
fn fifos_at_the_inputs_of_a_switch_saturate_where_theory_says_and_virtual_output_queues_do_not() {
    let nodes = 8;
    let accepted = |queueing, allocator| {
        let mut router = router(1);
        (router.queueing, router.allocator) = (queueing, allocator);
        router.vc_allocation_cycles = 0;
        router.buffer_flits = 2_000;
        let network = star(nodes);
        let scenario = Scenario {
            routing: xy(&network, 1),
            router,
            load: load(&uniform(nodes, 1.0), 1),
            run: run(20_000, 100_000, 0),
            network,
        };
        let outcome = simulate(&scenario);
        outcome.accepted_flits.iter().sum::<u64>() as f64 / (nodes as f64 * 100_000.0)
    };
    let fifo = accepted(Queueing::VirtualChannels { count: 1 }, Allocator::Islip { iterations: 1 });
    assert!((fifo / 0.6184 - 1.0).abs() < 0.02, "{fifo}");
    // One round of iSLIP carries uniform traffic whole (McKeown 1999), because its priorities fall out of step.
    let turns = [Allocator::RoundRobin, Allocator::Islip { iterations: 1 }, Allocator::Islip { iterations: 3 }];
    for allocator in turns.into_iter().chain([Allocator::GreedyWeight]) {
        let queues = accepted(Queueing::VirtualOutputQueues, allocator);
        assert!(queues > 0.97, "{allocator:?}: {queues}");
    }
}

#[test]
fn a_plane_with_a_slow_clock_has_the_same_latency_in_its_own_cycles() {
    let latency = |clock_ratio: f64| {
        let mut scenario = crate::meshes::plain(4, 2, 0.3 * clock_ratio);
        scenario.load.clock_ratio = clock_ratio;
        scenario.run.measure_cycles = 60_000;
        let outcome = simulate(&scenario);
        let offered = outcome.offered_flits.iter().sum::<u64>() as f64 / (16.0 * 60_000.0);
        assert!((offered / 0.3 - 1.0).abs() < 0.02, "{offered}");
        outcome.packet_latency.mean
    };
    let full_clock = latency(1.0);
    // Instants between two cycles wait for the next one: half a cycle on average.
    assert!((latency(0.61) / (full_clock + 0.5) - 1.0).abs() < 0.02);
    assert!((latency(0.25) / full_clock - 1.0).abs() < 0.02, "{full_clock}");
}
