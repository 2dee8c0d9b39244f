//! Networks and loads that the tests use.
#![allow(dead_code, reason = "not every test uses every network")]

use std::ops::ControlFlow;

use routecast_noc::outcome::Outcome;
use routecast_noc::scenario::{
    Allocator, Injection, Link, Load, Network, Path, Queueing, Router, Routing, Run, Scenario, Stretch, Way,
};

/// Links of a mesh with a node at every router.
pub fn mesh(width: usize, height: usize) -> Network {
    let mut links = Vec::new();
    for router in 0..width * height {
        let (x, y) = (router % width, router / width);
        let mut join = |to: usize| links.push(Link { from: router, to, cycles: 1 });
        if x + 1 < width {
            join(router + 1);
        }
        if x > 0 {
            join(router - 1);
        }
        if y + 1 < height {
            join(router + width);
        }
        if y > 0 {
            join(router - width);
        }
    }
    Network { routers: width * height, links, nodes: (0..width * height).collect(), node_link_cycles: 1 }
}

/// A ring with links in one direction.
pub fn ring(routers: usize) -> Network {
    let links = (0..routers).map(|from| Link { from, to: (from + 1) % routers, cycles: 1 }).collect();
    Network { routers, links, nodes: (0..routers).collect(), node_link_cycles: 1 }
}

/// One router with so many nodes.
pub fn star(nodes: usize) -> Network {
    Network { routers: 1, links: Vec::new(), nodes: vec![0; nodes], node_link_cycles: 1 }
}

pub fn link(network: &Network, from: usize, to: usize) -> u32 {
    network.links.iter().position(|link| link.from == from && link.to == to).expect("they are neighbours") as u32
}

/// The router after `at` on the way to `to`: along the row first.
pub fn next_xy(width: usize, at: usize, to: usize) -> usize {
    let (x, y, to_x, to_y) = (at % width, at / width, to % width, to / width);
    match (x.cmp(&to_x), y.cmp(&to_y)) {
        (std::cmp::Ordering::Less, _) => at + 1,
        (std::cmp::Ordering::Greater, _) => at - 1,
        (_, std::cmp::Ordering::Less) => at + width,
        _ => at - width,
    }
}

pub fn xy(network: &Network, width: usize) -> Routing {
    let all = 0..network.routers;
    let hop = |at: usize, to: usize| if at == to { 0 } else { link(network, at, next_xy(width, at, to)) };
    let links = all.clone().map(|at| all.clone().map(|to| hop(at, to)).collect()).collect();
    Routing::Table { classes: 1, links, class: Vec::new() }
}

/// Half of every flow along the row first, in class 0, half along the column first, in class 1.
pub fn o1turn(network: &Network, width: usize) -> Routing {
    let mut paths = Vec::new();
    for source in 0..network.routers {
        for target in 0..network.routers {
            let corner = source - source % width + target % width;
            let other = target - target % width + source % width;
            for (layer, corner) in [(0, corner), (1, other)] {
                let (mut at, mut links) = (source, Vec::new());
                for stop in [corner, target] {
                    while at != stop {
                        let next = next_xy(width, at, stop);
                        links.push(link(network, at, next));
                        at = next;
                    }
                }
                let layers = vec![layer; links.len()];
                paths.push(Path { source, target, links, layers, share: 0.5 });
            }
        }
    }
    Routing::Paths { classes: 2, paths }
}

/// Along rows and columns, without tables.
pub fn grid(columns: usize, way: Way) -> Routing {
    Routing::Grid { columns, way }
}

/// West first: a packet that must go west does so first, then it may choose.
pub fn west_first(network: &Network, width: usize) -> Routing {
    let choose = |at: usize, to: usize| {
        let (x, y, to_x, to_y) = (at % width, at / width, to % width, to / width);
        let mut links = Vec::new();
        if to_x < x {
            links.push(link(network, at, at - 1));
            return links;
        }
        if to_x > x {
            links.push(link(network, at, at + 1));
        }
        if to_y > y {
            links.push(link(network, at, at + width));
        }
        if to_y < y {
            links.push(link(network, at, at - width));
        }
        links
    };
    let routers = network.links.iter().map(|link| link.to).chain(0..network.routers);
    let choices = routers.map(|at| (0..network.routers).map(|to| choose(at, to)).collect()).collect();
    Routing::Adaptive { classes: 1, choices }
}

/// One cycle for each stage, iSLIP with one round, virtual channels of 8 flits.
pub fn router(vcs: u32) -> Router {
    Router {
        queueing: Queueing::VirtualChannels { count: vcs },
        buffer_flits: 8,
        allocator: Allocator::Islip { iterations: 1 },
        routing_cycles: 0,
        vc_allocation_cycles: 1,
        switch_allocation_cycles: 1,
        traversal_cycles: 1,
        credit_cycles: 1,
    }
}

pub fn load(demand: &[Vec<f64>], flits: u32) -> Load {
    let demand = demand.iter().map(|row| stretches(row)).collect();
    Load { demand, packet_flits: vec![flits], weights: vec![1.0], injection: Injection::Bernoulli, clock_ratio: 1.0 }
}

/// What a node sends to each node, as a scenario says it.
pub fn stretches(row: &[f64]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (node, &demand) in row.iter().enumerate() {
        match stretches.last_mut() {
            Some(last) if last.demand == demand => last.count += 1,
            _ => stretches.push(Stretch { first: node, count: 1, demand }),
        }
    }
    stretches
}

/// Every node sends `rate` to all nodes alike, itself included.
pub fn uniform(nodes: usize, rate: f64) -> Vec<Vec<f64>> {
    vec![vec![rate / nodes as f64; nodes]; nodes]
}

/// One flow.
pub fn single(nodes: usize, source: usize, target: usize, rate: f64) -> Vec<Vec<f64>> {
    let mut demand = vec![vec![0.0; nodes]; nodes];
    demand[source][target] = rate;
    demand
}

pub fn run(warmup_cycles: u64, measure_cycles: u64, drain_cycles: u64) -> Run {
    Run { seed: 1, replication: 0, warmup_cycles, measure_cycles, drain_cycles, batches: 10 }
}

pub fn go(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub fn simulate(scenario: &Scenario) -> Outcome {
    routecast_noc::simulate(scenario, &go).expect("the scenario is right")
}

/// A mesh with XY routing, uniform traffic of 8-flit packets.
pub fn plain(width: usize, vcs: u32, rate: f64) -> Scenario {
    let network = mesh(width, width);
    Scenario {
        routing: xy(&network, width),
        router: router(vcs),
        load: load(&uniform(width * width, rate), 8),
        run: run(5_000, 20_000, 20_000),
        network,
    }
}
