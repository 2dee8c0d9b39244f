//! Invariants of the engine in every cycle.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::buffers::NOBODY;
use crate::engine::Engine;
use crate::meshes::{grid, load, mesh, o1turn, router, run, uniform, west_first, xy};
use crate::network::NODE;
use crate::packet::NONE;
use crate::scenario::{Allocator, Queueing, Scenario, Way};

/// Every place of every buffer is a credit of its sender, or holds a flit, or its flit or credit is in flight.
fn places_are_accounted_for(engine: &Engine, flits: u32) {
    let tables = &engine.setup.tables;
    let (mut flying, mut returning) = (HashMap::new(), HashMap::new());
    engine.flight.arrivals.iter().for_each(|&(end, _)| *flying.entry(end).or_insert(0_u32) += 1);
    engine.flight.credits.iter().for_each(|&end| *returning.entry(end).or_insert(0_u32) += 1);
    for router in 0..tables.routers {
        for bit in 0..tables.ports * tables.vcs {
            let port = router * tables.ports + bit / tables.vcs;
            if tables.down[port] & NODE != 0 || tables.flit_cycles[port] == 0 {
                continue;
            }
            let at = (router << tables.shift) + bit;
            let output = &engine.channels.output[at];
            let waiting = engine.channels.input[output.down as usize].waiting;
            let on_the_way = flying.get(&output.down).unwrap_or(&0) + returning.get(&(at as u32)).unwrap_or(&0);
            assert_eq!(u32::from(output.credits) + u32::from(waiting) + on_the_way, flits);
        }
    }
    for (number, node) in engine.sources.nodes.iter().enumerate() {
        for (channel, &credits) in node.credits.iter().enumerate() {
            let into = tables.node_input[number] + channel as u32;
            let end = NODE | ((number << tables.node_shift) + channel) as u32;
            let on_the_way = flying.get(&into).unwrap_or(&0) + returning.get(&end).unwrap_or(&0);
            let waiting = engine.channels.input[into as usize].waiting;
            assert_eq!(u32::from(credits) + u32::from(waiting) + on_the_way, flits);
        }
    }
}

/// A packet alone owns its output virtual channel, and the bit masks agree with the records.
fn owners_agree(engine: &Engine, flits: u32) {
    let tables = &engine.setup.tables;
    for router in 0..tables.routers {
        let work = &engine.routers.work[router];
        for bit in 0..tables.ports * tables.vcs {
            let at = (router << tables.shift) + bit;
            let (input, output) = (&engine.channels.input[at], &engine.channels.output[at]);
            assert!(u32::from(input.waiting) <= flits, "a queue holds more than its buffer");
            assert_eq!(work.waiting >> bit & 1 == 1, input.waiting > 0);
            assert_eq!(work.free >> bit & 1 == 1, output.owner == NOBODY);
            if input.out == NOBODY {
                assert_eq!(work.able >> bit & 1, 0);
            } else {
                let out = &engine.channels.output[(router << tables.shift) + usize::from(input.out)];
                assert_eq!(usize::from(out.owner), bit);
                assert_ne!(input.packet, NONE);
                assert_eq!(work.able >> bit & 1 == 1, out.credits > 0);
                assert_eq!(usize::from(engine.channels.port[at]), usize::from(input.out) / tables.vcs);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn places_and_owners_agree_in_every_cycle(
        (width, height) in (1_usize..4, 1_usize..4),
        (routing, kind, allocation) in (0..5, 0_u32..4, 0_usize..3),
        (flits, length, cycles) in (1_u32..9, 1_u32..9, 0_u32..3),
        (rate, seed) in (0.1..1.0_f64, any::<u64>()),
    ) {
        let mut network = mesh(width, height);
        network.links.iter_mut().for_each(|link| link.cycles = cycles);
        let routing = match routing {
            0 => xy(&network, width),
            1 => o1turn(&network, width),
            2 => grid(width, Way::OverAny),
            3 => grid(width, Way::OverRectangle),
            _ => west_first(&network, width),
        };
        let mut router = router(2 + kind);
        if kind == 0 {
            router.queueing = Queueing::VirtualOutputQueues;
        }
        router.allocator = [Allocator::RoundRobin, Allocator::Islip { iterations: 2 }, Allocator::GreedyWeight][allocation];
        router.buffer_flits = flits;
        (router.vc_allocation_cycles, router.credit_cycles) = (cycles, cycles);
        let load = load(&uniform(width * height, rate), length);
        let mut run = run(100, 200, 0);
        run.seed = seed;
        let mut engine = Engine::new(&Scenario { network, router, routing, load, run });
        for _ in 0..400 {
            engine.step();
            places_are_accounted_for(&engine, flits);
            owners_agree(&engine, flits);
            engine.now += 1;
        }
        prop_assert!(engine.statistics.ejected > 0);
    }
}
