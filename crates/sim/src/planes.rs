//! Assigns each node to recursion, where its departures follow from its arrivals, or to events.
//!
//! A node that shares its units with no other node is a queueing station, and its departures follow Lindley's
//! recursion; what a node does that takes frames in polls of its own unit follows from its arrivals, too. All other nodes
//! need events. Nodes fed only by sources and recursive nodes form the *prefix*, recursive
//! nodes that feed no event node the *suffix*:
//!
//! ```text
//!   sources ──► prefix (recursion) ──► events (calendar) ──► suffix (recursion) ──► out
//! ```

use crate::error::SimError;
use crate::manager::MOST_UNITS;
use crate::scenario::{Activation, Need, Path, Policy, Pool, RouteKind, Scenario, Task};
use crate::windows::{carried, ends};

/// Which part of the engine runs a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// A passthrough: frames go on at once.
    Passthrough,
    /// Recursion before the events.
    Prefix,
    /// The event calendar.
    Events,
    /// Recursion after the events.
    Suffix,
}

/// Servers inside the events whose departures are known on arrival: those of one station between event nodes, or of a
/// FIFO pool that several task units share frame by frame (a bus that a frame crosses twice).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// How many servers.
    pub servers: usize,
}

/// The planes of all nodes.
#[derive(Debug)]
pub struct Planes {
    /// Plane of each node.
    pub of_node: Vec<Plane>,
    /// Whether only sources feed a node, through passthroughs at most.
    pub sources_only: Vec<bool>,
    /// Groups of servers inside the events.
    pub groups: Vec<Group>,
    /// The group of each event node that is nevertheless a station.
    pub grouped: Vec<Option<u32>>,
    /// The group that frames leave a node by whose units they carry on.
    pub doors: Vec<Option<u32>>,
}

impl Planes {
    /// Assigns every node of a checked scenario, given the topological order and the successors of the nodes.
    ///
    /// # Errors
    ///
    /// Recursion was asked for where it cannot be; a managed pool has more than 512 units.
    pub fn assign(scenario: &Scenario, order: &[u32], successors: &[Vec<u32>]) -> Result<Self, SimError> {
        let (nodes, tasks) = (successors.len(), scenario.model.tasks.len());
        let watched = watched(scenario, successors);
        let ends = ends(&scenario.model);
        let obstacle: Vec<Option<&str>> = (0..nodes)
            .map(|n| match scenario.run.path {
                Path::Events => Some("events were asked for"),
                _ if watched[n] => Some("frames are held back before it"),
                _ if n < tasks && ends[n] => Some("frames give units back there"),
                _ if n < tasks => needs_events(scenario, n, false).filter(|_| !polls_alone(scenario, n)),
                _ => None,
            })
            .collect();
        let mut sources_only = vec![true; nodes];
        let mut planes = vec![Plane::Prefix; nodes];
        for &n in order {
            let n = n as usize;
            if n < tasks
                && !watched[n]
                && !ends[n]
                && !is_touched(scenario, n)
                && is_passthrough(&scenario.model.tasks[n], sources_only[n])
            {
                // A passthrough stands in the plane of what feeds it; nothing ever waits there.
                let fed_by_events = planes[n] == Plane::Suffix;
                planes[n] = Plane::Passthrough;
                for &next in &successors[n] {
                    sources_only[next as usize] &= sources_only[n];
                    if fed_by_events {
                        planes[next as usize] = Plane::Suffix;
                    }
                }
                continue;
            }
            if obstacle[n].is_some() {
                planes[n] = Plane::Events;
            }
            for &next in &successors[n] {
                sources_only[next as usize] = false;
                if planes[n] != Plane::Prefix {
                    planes[next as usize] = Plane::Suffix;
                }
            }
        }
        include_between(order, successors, &mut planes);
        if scenario.run.path == Path::Recursion
            && let Some(task) = planes.iter().position(|&plane| plane == Plane::Events)
        {
            return Err(SimError::NotRecursive { task, why: obstacle[task].unwrap_or("it lies between others") });
        }
        let (mut groups, grouped) = group(scenario, &planes, &watched);
        check_pools(scenario, &planes, &grouped)?;
        let doors = doors(scenario, planes.len(), &mut groups);
        Ok(Self { of_node: planes, sources_only, groups, grouped, doors })
    }
}

/// Nodes whose queue makes others hold frames back while it is full: it must be kept frame by frame.
fn watched(scenario: &Scenario, successors: &[Vec<u32>]) -> Vec<bool> {
    let mut watched = vec![false; successors.len()];
    for (task, _) in scenario.model.tasks.iter().enumerate().filter(|(_, task)| task.holds_back) {
        for &next in &successors[task] {
            watched[next as usize] = true;
        }
    }
    watched
}

/// A recursive node between two event nodes must take part in the events.
fn include_between(order: &[u32], successors: &[Vec<u32>], planes: &mut [Plane]) {
    let mut feeds_events = vec![false; planes.len()];
    for &n in order.iter().rev() {
        let n = n as usize;
        feeds_events[n] =
            successors[n].iter().any(|&next| feeds_events[next as usize] || planes[next as usize] == Plane::Events);
        if planes[n] == Plane::Suffix && feeds_events[n] {
            planes[n] = Plane::Events;
        }
    }
}

fn check_pools(scenario: &Scenario, planes: &[Plane], grouped: &[Option<u32>]) -> Result<(), SimError> {
    let model = &scenario.model;
    for (t, task) in model.tasks.iter().enumerate() {
        let is_managed = planes[t] == Plane::Events && grouped[t].is_none() && carried(task).is_none();
        for need in task.needs.iter().filter(|_| is_managed) {
            let units = model.pools[need.pool].speed.len();
            if units > MOST_UNITS {
                return Err(SimError::Number {
                    place: format!("pools[{}] (number of units)", need.pool),
                    got: units as f64,
                    allowed: "at most 512 units in a pool whose units are shared, batched, fall asleep or slow each other down",
                });
            }
        }
    }
    Ok(())
}

/// Whether a task unit has no work and no needs (the distributor of Meyer et al. 2014, Fig. 7).
pub(crate) fn is_passthrough(task: &Task, sources_only: bool) -> bool {
    task.needs.is_empty()
        && task.per_frame_ps == 0.0
        && task.per_byte_ps == 0.0
        && task.per_batch_ps == 0.0
        && task.activation == Activation::Dedicated
        // Turns are taken in order of arrival, which only the sources guarantee before anything has waited.
        && (task.route.kind != RouteKind::RoundRobin || sources_only)
}

/// Whether a task unit changes during the trial, or sends or gets copies: it is kept frame by frame.
fn is_touched(scenario: &Scenario, task: usize) -> bool {
    let Scenario { model, run, .. } = scenario;
    run.events.iter().any(|event| event.task() == task || event.copies().contains(&task))
        || !model.tasks[task].copies.is_empty()
        || model.tasks.iter().any(|other| other.copies.contains(&task))
}

/// Whether a task unit takes frames in polls of its one unit, which is its own: see [`Polled`](crate::station::Polled).
/// Messages about units are kept where events run it.
pub(crate) fn polls_alone(scenario: &Scenario, task: usize) -> bool {
    let this = &scenario.model.tasks[task];
    let is_alone = |need: &Need| {
        let pool = &scenario.model.pools[need.pool];
        pool.sleep.is_empty() && pool.contention.iter().all(|&factor| factor == 1.0)
    };
    scenario.run.message_limit == 0
        && (this.batch > 1 || matches!(this.activation, Activation::Interrupt { .. }))
        && servers(scenario, task) == 1
        && this.queue > 0
        && !this.holds_back
        && this.needs.first().is_none_or(is_alone)
        && needs_events(scenario, task, true).is_none()
}

/// Why a task unit cannot be a station by itself; none if it can. In lanes its units may slow each other down and sleep,
/// and it may take frames in batches and by interrupts.
pub(crate) fn needs_events(scenario: &Scenario, task: usize, in_lanes: bool) -> Option<&'static str> {
    let this = &scenario.model.tasks[task];
    if is_touched(scenario, task) {
        return Some("something happens to it during the trial, or it makes or gets copies");
    }
    match this.activation {
        Activation::Interrupt { .. } if in_lanes && this.thread.is_none() => {}
        Activation::Interrupt { .. } => return Some("it is activated by interrupts"),
        Activation::Thread { .. } => return Some("it is a thread that sleeps and wakes"),
        _ if this.thread.is_some() => return Some("it shares a thread with others"),
        _ if this.holds_back => return Some("it holds frames back"),
        Activation::Dedicated | Activation::Polling => {}
    }
    if this.batch > 1 && !in_lanes {
        return Some("it takes frames in batches");
    }
    let need = this.needs.first()?;
    if need.until.is_some() {
        return Some("its frames carry units on");
    }
    if this.needs.len() > 1 || need.units > 1 {
        return Some("it needs several units at once");
    }
    let pool = &scenario.model.pools[need.pool];
    let allowed = allowed_units(this, pool.speed.len());
    if !in_lanes && !pool.sleep.is_empty() {
        return Some("the units of its pool fall asleep");
    }
    if !in_lanes && !pool.contention.iter().all(|&factor| factor == 1.0) {
        return Some("the units of its pool slow each other down");
    }
    if allowed.len() > 1 && pool.migration_ps > 0.0 {
        return Some("it migrates at a cost");
    }
    if this.parallel.is_some_and(|parallel| parallel > allowed.len()) {
        return Some("it may ask for more units than it may use");
    }
    if allowed.iter().any(|&unit| pool.speed[unit] != pool.speed[allowed[0]]) {
        return Some("its units differ in speed");
    }
    let shared = scenario.model.tasks.iter().enumerate().any(|(other, that)| {
        other != task
            && that.needs.iter().enumerate().any(|(i, theirs)| {
                theirs.pool == need.pool
                    && (i > 0 || allowed_units(that, pool.speed.len()).iter().any(|unit| allowed.contains(unit)))
            })
    });
    shared.then_some("it shares a unit with another task unit")
}

/// Finds the stations inside the events.
fn group(scenario: &Scenario, planes: &[Plane], watched: &[bool]) -> (Vec<Group>, Vec<Option<u32>>) {
    let model = &scenario.model;
    let mut groups = Vec::new();
    let mut grouped = vec![None; planes.len()];
    let by_events = scenario.run.path == Path::Events;
    for node in (0..planes.len()).filter(|&node| planes[node] == Plane::Events && !watched[node]) {
        if by_events && !is_wide(scenario, node) {
            continue;
        }
        if node >= model.tasks.len() || needs_events(scenario, node, false).is_none() {
            grouped[node] = Some(groups.len() as u32);
            groups.push(Group { servers: servers(scenario, node) });
        }
    }
    for (p, pool) in model.pools.iter().enumerate().filter(|_| !by_events) {
        let users: Vec<usize> =
            (0..model.tasks.len()).filter(|&t| model.tasks[t].needs.iter().any(|need| need.pool == p)).collect();
        let frame_by_frame = |&t: &usize| planes[t] == Plane::Events && !watched[t] && is_frame_by_frame(scenario, t);
        if users.len() > 1 && takes_in_order(pool) && users.iter().all(frame_by_frame) {
            for &user in &users {
                grouped[user] = Some(groups.len() as u32);
            }
            groups.push(Group { servers: pool.speed.len() });
        }
    }
    (groups, grouped)
}

/// Whether every frame of a task unit asks for one unit, and gives it back when it is served.
fn is_frame_by_frame(scenario: &Scenario, task: usize) -> bool {
    let this = &scenario.model.tasks[task];
    !is_touched(scenario, task)
        && this.parallel.is_none()
        && this.needs.len() == 1
        && this.needs[0].units == 1
        && this.needs[0].until.is_none()
        && this.pin.is_empty()
        && this.batch == 1
        && this.activation == Activation::Dedicated
}

/// Whether a pool's units are alike, and go to whoever asked first at no cost.
fn takes_in_order(pool: &Pool) -> bool {
    pool.policy == Policy::Fifo
        && pool.switch_ps == 0.0
        && pool.migration_ps == 0.0
        && pool.sleep.is_empty()
        && pool.speed.iter().all(|&speed| speed == pool.speed[0])
        && pool.contention.iter().all(|&factor| factor == 1.0)
}

/// The task units that share the units of a task unit's pool frame by frame, in order of arrival; none if they do not.
#[cfg(feature = "lanes")]
pub(crate) fn sharing(scenario: &Scenario, task: usize) -> Option<Vec<usize>> {
    let need = scenario.model.tasks[task].needs.first()?;
    let asks = |task: &Task| task.needs.iter().any(|its| its.pool == need.pool);
    let tasks = scenario.model.tasks.iter().enumerate();
    let users: Vec<usize> = tasks.filter(|(_, task)| asks(task)).map(|(user, _)| user).collect();
    let shares = |&user: &usize| {
        let task = &scenario.model.tasks[user];
        is_frame_by_frame(scenario, user) && task.thread.is_none() && !task.holds_back
    };
    (users.len() > 1 && takes_in_order(&scenario.model.pools[need.pool]) && users.iter().all(shares)).then_some(users)
}

/// The number of servers above which a task unit is a station even if events are asked for, because lanes cost too
/// much.
const WIDE: usize = 1024;

/// Whether a task unit is a delay rather than a server: frames do not wait for each other, and rarely exceed its room.
fn is_wide(scenario: &Scenario, node: usize) -> bool {
    scenario.model.tasks.get(node).is_some_and(|task| {
        task.needs.is_empty()
            && task.parallel.is_some_and(|parallel| parallel > WIDE)
            && needs_events(scenario, node, false).is_none()
    })
}

/// Assigns a group to each task unit whose frames carry units, for the frames that leave it.
fn doors(scenario: &Scenario, nodes: usize, groups: &mut Vec<Group>) -> Vec<Option<u32>> {
    let mut doors = vec![None; nodes];
    for (task, door) in scenario.model.tasks.iter().zip(&mut doors).filter(|(task, _)| carried(task).is_some()) {
        debug_assert!(task.parallel.is_none(), "every frame asks for itself");
        *door = Some(groups.len() as u32);
        groups.push(Group { servers: 1 });
    }
    doors
}

/// Servers of a node that is a station.
#[must_use]
pub fn servers(scenario: &Scenario, node: usize) -> usize {
    let Some(task) = scenario.model.tasks.get(node) else { return 1 };
    task.parallel.unwrap_or_else(|| {
        task.needs.first().map_or(1, |need| allowed_units(task, scenario.model.pools[need.pool].speed.len()).len())
    })
}

/// Units of its first pool that a task unit may use.
#[must_use]
pub fn allowed_units(task: &Task, units: usize) -> Vec<usize> {
    if task.pin.is_empty() { (0..units).collect() } else { task.pin.clone() }
}
