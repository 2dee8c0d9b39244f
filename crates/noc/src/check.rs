//! Checks that a scenario can be simulated, and names the first wrong entry.

use crate::error::NocError;
use crate::grid::direction;
use crate::network::{MOST, channels, most_ports};
use crate::scenario::{Allocator, Injection, Load, Network, Queueing, Router, Routing, Scenario, Stretch};
use crate::source::trial;

const LONGEST: u64 = 4096;

fn index(name: impl FnOnce() -> String, value: usize, count: usize) -> Result<(), NocError> {
    if value < count { Ok(()) } else { Err(NocError::Index { name: name(), value, count }) }
}

fn length(name: &str, count: usize, expected: usize) -> Result<(), NocError> {
    if count == expected { Ok(()) } else { Err(NocError::Length { name: name.to_owned(), count, expected }) }
}

fn number(name: &str, value: impl std::fmt::Display + Copy, allowed: &str, holds: bool) -> Result<(), NocError> {
    if holds {
        return Ok(());
    }
    Err(NocError::Number { name: name.to_owned(), value: value.to_string(), allowed: allowed.to_owned() })
}

/// Checks all assumptions of the engine.
///
/// # Errors
///
/// The first entry that is wrong.
pub fn check(scenario: &Scenario) -> Result<(), NocError> {
    let network = &scenario.network;
    check_network(network)?;
    check_router(&scenario.router)?;
    check_routing(network, &scenario.routing)?;
    let number_of = scenario.routing.classes();
    let vcs = channels(network, &scenario.router, number_of);
    let ports = most_ports(network);
    let what = match scenario.router.queueing {
        Queueing::VirtualChannels { .. } => "ports times virtual channels of a router",
        Queueing::VirtualOutputQueues => "ports times virtual output queues times classes of a router",
    };
    number(what, ports * vcs, &format!("at most {MOST}"), ports * vcs <= MOST)?;
    number("virtual channels", vcs, &format!("at least the {number_of} classes of the routing"), vcs >= number_of)?;
    check_load(network, &scenario.load)?;
    check_ways(scenario)?;
    let run = scenario.run;
    number("run.measure_cycles", run.measure_cycles, "at least 1", run.measure_cycles >= 1)?;
    let total = run.warmup_cycles.checked_add(run.measure_cycles).and_then(|sum| sum.checked_add(run.drain_cycles));
    number("cycles of all phases", "more", "below 2^53", total.is_some_and(|sum| sum < 1 << 53))?;
    number("run.batches", run.batches, "1 to 1000000", (1..=1_000_000).contains(&run.batches))
}

fn check_network(network: &Network) -> Result<(), NocError> {
    let routers = network.routers;
    number("network.routers", routers, "1 to 65536", (1..=65_536).contains(&routers))?;
    number("network.nodes", network.nodes.len(), "1 to 65536 nodes", (1..=65_536).contains(&network.nodes.len()))?;
    for (position, link) in network.links.iter().enumerate() {
        index(|| format!("network.links[{position}].from"), link.from, routers)?;
        index(|| format!("network.links[{position}].to"), link.to, routers)?;
        number(
            &format!("network.links[{position}].cycles"),
            link.cycles,
            "at most 4096",
            u64::from(link.cycles) <= LONGEST,
        )?;
    }
    for (node, &router) in network.nodes.iter().enumerate() {
        index(|| format!("network.nodes[{node}]"), router, routers)?;
    }
    let wire = network.node_link_cycles;
    number("network.node_link_cycles", wire, "at most 4096", u64::from(wire) <= LONGEST)
}

fn check_router(router: &Router) -> Result<(), NocError> {
    let flits = router.buffer_flits;
    number("router.buffer_flits", flits, "1 to 32767", (1..=32_767).contains(&flits))?;
    let stages = [
        ("router.routing_cycles", router.routing_cycles, 0),
        ("router.vc_allocation_cycles", router.vc_allocation_cycles, 0),
        ("router.switch_allocation_cycles", router.switch_allocation_cycles, 1),
        ("router.traversal_cycles", router.traversal_cycles, 0),
        ("router.credit_cycles", router.credit_cycles, 0),
    ];
    for (name, cycles, least) in stages {
        let allowed = format!("{least} to {LONGEST}");
        number(name, cycles, &allowed, cycles >= least && u64::from(cycles) <= LONGEST)?;
    }
    if let Allocator::Islip { iterations } = router.allocator {
        number("router.allocator.iterations", iterations, "1 to 64", (1..=64).contains(&iterations))?;
    }
    if let Queueing::VirtualChannels { count } = router.queueing {
        number("router.queueing.count", count, "1 to 64", (1..=64).contains(&count))?;
    }
    Ok(())
}

fn check_routing(network: &Network, routing: &Routing) -> Result<(), NocError> {
    let (routers, number_of) = (network.routers, routing.classes());
    number("routing.classes", number_of, "1 to 64", (1..=64).contains(&number_of))?;
    match routing {
        Routing::Table { links, class, .. } => {
            length("routing.links", links.len(), routers)?;
            for (router, row) in links.iter().enumerate() {
                length(&format!("routing.links[{router}]"), row.len(), routers)?;
            }
            if !class.is_empty() {
                length("routing.class", class.len(), routers)?;
            }
            for (router, row) in class.iter().enumerate() {
                length(&format!("routing.class[{router}]"), row.len(), routers)?;
                for (target, &class) in row.iter().enumerate() {
                    index(|| format!("routing.class[{router}][{target}]"), class.into(), number_of)?;
                }
            }
        }
        Routing::Grid { columns, .. } => check_grid(network, *columns)?,
        Routing::Paths { paths, .. } => {
            for (position, path) in paths.iter().enumerate() {
                let name = || format!("routing.paths[{position}]");
                index(|| format!("{}.source", name()), path.source, routers)?;
                index(|| format!("{}.target", name()), path.target, routers)?;
                let share = path.share;
                number(&format!("{}.share", name()), share, "0 to 1", (0.0..=1.0 + 1e-9).contains(&share))?;
                length(&format!("{}.layers", name()), path.layers.len(), path.links.len())?;
                let mut at = path.source;
                for (hop, (&link, &layer)) in path.links.iter().zip(&path.layers).enumerate() {
                    index(|| format!("{}.links[{hop}]", name()), link as usize, network.links.len())?;
                    index(|| format!("{}.layers[{hop}]", name()), layer.into(), number_of)?;
                    if network.links[link as usize].from != at {
                        let reason = format!("link {link} does not begin at router {at}");
                        return Err(NocError::Route { name: format!("{}.links[{hop}]", name()), reason });
                    }
                    at = network.links[link as usize].to;
                }
                if at != path.target {
                    let reason = format!("ends at router {at} instead of {}", path.target);
                    return Err(NocError::Route { name: name(), reason });
                }
            }
        }
        Routing::Adaptive { choices, .. } => {
            length("routing.choices", choices.len(), network.links.len() + routers)?;
            for (arrival, row) in choices.iter().enumerate() {
                length(&format!("routing.choices[{arrival}]"), row.len(), routers)?;
                let router = network.links.get(arrival).map_or_else(|| arrival - network.links.len(), |link| link.to);
                for (target, links) in row.iter().enumerate() {
                    for &link in links {
                        let name = || format!("routing.choices[{arrival}][{target}]");
                        index(name, link as usize, network.links.len())?;
                        if network.links[link as usize].from != router {
                            let reason = format!("link {link} does not begin at router {router}");
                            return Err(NocError::Route { name: name(), reason });
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether routers stand in rows of `columns` and all neighbours are joined both ways.
fn check_grid(network: &Network, columns: usize) -> Result<(), NocError> {
    let routers = network.routers;
    let divides = columns >= 1 && routers.is_multiple_of(columns);
    number("routing.columns", columns, &format!("a divisor of the {routers} routers"), divides)?;
    let mut joined = vec![[false; 4]; routers];
    for link in &network.links {
        if let Some(direction) = direction(columns, link.from, link.to) {
            joined[link.from][direction] = true;
        }
    }
    for (router, joined) in joined.iter().enumerate() {
        let (x, y) = (router % columns, router / columns);
        let inside = [x + 1 < columns, x > 0, y + 1 < routers / columns, y > 0];
        if *joined != inside {
            let reason = format!("router {router} is not joined with its neighbours in rows of {columns}");
            return Err(NocError::Route { name: "routing.columns".to_owned(), reason });
        }
    }
    Ok(())
}

fn check_load(network: &Network, load: &Load) -> Result<(), NocError> {
    let nodes = network.nodes.len();
    let ratio = load.clock_ratio;
    number("load.clock_ratio", ratio, "above 0, at most 1000", ratio > 0.0 && ratio <= 1000.0)?;
    number("load.packet_flits", "empty", "at least one length", !load.packet_flits.is_empty())?;
    length("load.weights", load.weights.len(), load.packet_flits.len())?;
    for (position, (&flits, &weight)) in load.packet_flits.iter().zip(&load.weights).enumerate() {
        let name = format!("load.packet_flits[{position}]");
        number(&name, flits, "1 to 65535", (1..=65_535).contains(&flits))?;
        let name = format!("load.weights[{position}]");
        number(&name, weight, "above 0 and finite", weight > 0.0 && weight.is_finite())?;
    }
    if let Injection::OnOff { on_cycles, off_cycles } = load.injection {
        for (name, cycles) in [("on_cycles", on_cycles), ("off_cycles", off_cycles)] {
            let name = format!("load.injection.{name}");
            number(&name, cycles, "at least 1 and finite", cycles >= 1.0 && cycles.is_finite())?;
        }
    }
    length("load.demand", load.demand.len(), nodes)?;
    for (source, row) in load.demand.iter().enumerate() {
        let mut from = 0;
        for (position, stretch) in row.iter().enumerate() {
            let name = |part: &str| format!("load.demand[{source}][{position}]{part}");
            number(&name(", its count,"), stretch.count, "1 to 65536", (1..=65_536).contains(&stretch.count))?;
            index(|| name(", its first node,"), stretch.first, nodes)?;
            index(|| name(", its last node,"), stretch.first + stretch.count - 1, nodes)?;
            number(&name(", its first node,"), stretch.first, &format!("at least {from}"), stretch.first >= from)?;
            let demand = stretch.demand;
            number(&name(", its demand,"), demand, "at least 0 and finite", demand >= 0.0 && demand.is_finite())?;
            from = stretch.first + stretch.count;
        }
        let packets = trial(load, row.iter().map(Stretch::total).sum());
        let name = format!("packets of node {source} in a node cycle (while it is on)");
        number(&name, packets, "at most 1: one trial in a cycle", packets <= 1.0)?;
    }
    Ok(())
}

/// Every flow with traffic must have a path that reaches its target.
fn check_ways(scenario: &Scenario) -> Result<(), NocError> {
    let network = &scenario.network;
    let routers = network.routers;
    if matches!(scenario.routing, Routing::Grid { .. }) {
        // All neighbours are joined, so every path arrives.
        return Ok(());
    }
    let mut flows = vec![false; routers * routers];
    for (row, &from) in scenario.load.demand.iter().zip(&network.nodes) {
        for stretch in row.iter().filter(|stretch| stretch.demand > 0.0) {
            for &to in &network.nodes[stretch.nodes()] {
                flows[from * routers + to] |= from != to;
            }
        }
    }
    let used = (0..routers * routers).filter(|&flow| flows[flow]).map(|flow| (flow / routers, flow % routers));
    match &scenario.routing {
        Routing::Table { links, .. } => {
            let reached = arriving(network, links);
            for (from, to) in used {
                if !reached[from * routers + to] {
                    let name = format!("routing.links[{from}][{to}]");
                    return Err(NocError::Route { name, reason: "the way does not arrive".to_owned() });
                }
            }
        }
        Routing::Grid { .. } => {}
        Routing::Paths { paths, .. } => {
            let mut served = vec![false; routers * routers];
            for path in paths.iter().filter(|path| path.share > 0.0) {
                served[path.source * routers + path.target] = true;
            }
            if let Some((from, to)) = used.into_iter().find(|(from, to)| !served[from * routers + to]) {
                let reason = format!("no path from router {from} to router {to}, which has traffic");
                return Err(NocError::Route { name: "routing.paths".to_owned(), reason });
            }
        }
        Routing::Adaptive { choices, .. } => {
            for (from, to) in used {
                check_choices(network, choices, from, to)?;
            }
        }
    }
    Ok(())
}

/// Whether each router's table entries lead to each target.
fn arriving(network: &Network, links: &[Vec<u32>]) -> Vec<bool> {
    let routers = network.routers;
    let mut state = vec![false; routers * routers];
    let mut walk = Vec::new();
    for target in 0..routers {
        state[target * routers + target] = true;
        let mut seen = vec![false; routers];
        for first in 0..routers {
            let mut at = first;
            walk.clear();
            while !seen[at] && !state[at * routers + target] {
                seen[at] = true;
                walk.push(at);
                let link = links[at][target] as usize;
                // An unused entry may hold any value; following the flows checks the used ones.
                let Some(link) = network.links.get(link).filter(|link| link.from == at) else { break };
                at = link.to;
            }
            if state[at * routers + target] {
                for &router in &walk {
                    state[router * routers + target] = true;
                }
            }
        }
    }
    state
}

/// Every router that a flow may reach must have a way on for it.
fn check_choices(network: &Network, choices: &[Vec<Vec<u32>>], from: usize, to: usize) -> Result<(), NocError> {
    let mut seen = std::collections::BTreeSet::new();
    let mut open = vec![network.links.len() + from];
    while let Some(arrival) = open.pop() {
        let allowed = &choices[arrival][to];
        if allowed.is_empty() {
            let name = format!("routing.choices[{arrival}][{to}]");
            return Err(NocError::Route { name, reason: "a packet can come here but has no link to go on".to_owned() });
        }
        for &link in allowed {
            if network.links[link as usize].to != to && seen.insert(link) {
                open.push(link as usize);
            }
        }
    }
    Ok(())
}
