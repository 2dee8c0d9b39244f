//! Chains: task units that a frame passes without a wait, since it carries the only unit that leads there.
//!
//! A core that runs each frame to completion is a window over one unit: the next frame enters when the last has given the
//! unit back. Where every unit that the task units inside need is free for it at once (there are as many as chains that
//! use them), a frame is served by the sum of their services, and the chain is one server.

use crate::ledger::Ledger;
use crate::scenario::{Activation, Pool, RouteKind, Scenario, Target, Task, Variation};
use crate::windows::carried;

/// A window that is one server.
pub(super) struct Chain {
    /// Where frames take the unit, and wait for it.
    first: usize,
    /// The pool of the unit that they carry.
    pool: usize,
    /// The task units that they pass, in order, and their shares of the work.
    inside: Vec<(usize, f64)>,
    /// Share of the work that is that of the first.
    own: f64,
}

/// Puts each window into one task unit, which has the services of all inside; the others stay, and get no frames.
///
/// # Errors
///
/// Why a window is no chain.
pub(super) fn folded(scenario: &Scenario) -> Result<(Scenario, Vec<Chain>), String> {
    let tasks = &scenario.model.tasks;
    let mut ways: Vec<(usize, Vec<usize>)> = Vec::new();
    for (first, task) in tasks.iter().enumerate() {
        if carried(task).is_some() {
            ways.push((first, way(scenario, first)?));
        }
    }
    for (number, pool) in scenario.model.pools.iter().enumerate() {
        let uses = |&task: &usize| tasks[task].needs.iter().any(|need| need.pool == number);
        let chains = ways.iter().filter(|(_, inside)| inside.iter().any(uses)).count();
        if chains == 0 {
            continue;
        }
        let inside = |task: usize| ways.iter().any(|(_, inside)| inside.contains(&task));
        if !(0..tasks.len()).filter(uses).all(inside) || chains > pool.speed.len() {
            return Err("frames inside a window may wait for units that others use".into());
        }
        if !is_plain(pool) {
            return Err("units inside a window switch, sleep, slow each other or are interrupted".into());
        }
    }
    let mut plain = scenario.clone();
    let mut chains = Vec::new();
    let bytes = scenario.load.sizes.iter().map(|&size| f64::from(size)).sum::<f64>();
    let bytes = bytes / scenario.load.sizes.len().max(1) as f64;
    for (first, inside) in ways {
        let last = inside.last().map_or(first, |&last| last);
        let pool = carried(&tasks[first]).map_or(0, |need| need.pool);
        let speed = |task: &Task| task.needs.first().map_or(1.0, |need| scenario.model.pools[need.pool].speed[0]);
        let work = |task: &Task| (task.per_frame_ps + task.per_byte_ps * bytes + task.per_batch_ps) / speed(task);
        let whole = work(&tasks[first]) + inside.iter().map(|&task| work(&tasks[task])).sum::<f64>();
        let share = |task: usize| if whole > 0.0 { work(&tasks[task]) / whole } else { 0.0 };
        let one = &mut plain.model.tasks[first];
        for &task in &inside {
            let (task, speed) = (&tasks[task], speed(&tasks[task]));
            one.per_frame_ps += (task.per_frame_ps + task.per_batch_ps) / speed;
            one.per_byte_ps += task.per_byte_ps / speed;
        }
        one.route = tasks[last].route.clone();
        for need in &mut one.needs {
            need.until = None;
        }
        chains.push(Chain {
            first,
            pool,
            own: share(first),
            inside: inside.iter().map(|&task| (task, share(task))).collect(),
        });
    }
    Ok((plain, chains))
}

/// The task units that a frame passes with the unit that it took at the first.
fn way(scenario: &Scenario, first: usize) -> Result<Vec<usize>, String> {
    let model = &scenario.model;
    let Some(need) = carried(&model.tasks[first]) else { return Ok(vec![]) };
    let until = need.until.unwrap_or(first);
    let others = model.tasks.iter().enumerate();
    let mut others =
        others.filter(|&(other, task)| other != first && task.needs.iter().any(|its| its.pool == need.pool));
    if model.pools[need.pool].speed.len() / need.units != 1 || others.next().is_some() {
        return Err("several frames at once carry units on".into());
    }
    let (mut inside, mut at) = (Vec::new(), first);
    while at != until {
        let route = &model.tasks[at].route;
        let next = match route.to.as_slice() {
            [Target::Task(next)] if route.kind == RouteKind::Single => *next,
            _ => return Err("frames that carry units on take several ways".into()),
        };
        if next == first || inside.contains(&next) || !is_passed_at_once(&model.tasks[next]) {
            return Err("frames that carry units on may wait on their way".into());
        }
        let comes_by = |task: &Task| task.copies.contains(&next) || task.route.to.contains(&Target::Task(next));
        let outside = model.tasks.iter().enumerate().any(|(other, task)| other != at && comes_by(task));
        if outside || model.ports.iter().any(|port| port.entry == Some(next)) {
            return Err("frames without a unit come to where others carry one".into());
        }
        inside.push(next);
        at = next;
    }
    if model.tasks[first].variation != Variation::Deterministic {
        return Err("services of frames that carry units on vary".into());
    }
    Ok(inside)
}

/// Whether a frame is served as soon as it comes, if it is the only one that may come, and its unit is free.
fn is_passed_at_once(task: &Task) -> bool {
    task.activation == Activation::Dedicated
        && task.batch == 1
        && task.thread.is_none()
        && !task.holds_back
        && task.copies.is_empty()
        && task.variation == Variation::Deterministic
        && task.needs.len() <= 1
        && task.needs.iter().all(|need| need.units == 1 && need.until.is_none())
}

fn is_plain(pool: &Pool) -> bool {
    pool.switch_ps == 0.0
        && pool.migration_ps == 0.0
        && pool.contention.iter().all(|&factor| factor == 1.0)
        && pool.interruptions.is_none()
        && pool.sleep.is_empty()
        && pool.speed.iter().all(|&speed| speed == pool.speed[0])
}

/// Divides the work that was counted for chains among their task units, and counts the units that frames carried.
pub(super) fn book(ledger: &mut Ledger, chains: &[Chain]) {
    for chain in chains {
        let busy = ledger.accounts[chain.first].busy_ps;
        for (segment, &ps) in busy.iter().enumerate() {
            let part = |share: f64| (ps as f64 * share).round() as u64;
            ledger.rests[chain.pool].held_ps[segment] += ps;
            ledger.accounts[chain.first].busy_ps[segment] = part(chain.own);
            for &(task, share) in &chain.inside {
                ledger.accounts[task].busy_ps[segment] += part(share);
            }
        }
    }
}
