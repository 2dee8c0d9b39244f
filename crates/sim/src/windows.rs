//! Windows in the graph: where frames take units, where they give them back, and how many frames fit in between.

use std::collections::BTreeMap;

use crate::error::SimError;
use crate::scenario::{Activation, Model, Need, Policy, Scenario, Task};

/// The need of a task unit whose frames carry its units along, if any.
#[must_use]
pub fn carried(task: &Task) -> Option<&Need> {
    task.needs.iter().find(|need| need.until.is_some())
}

/// Where frames give units back: by task unit, whether it is the end of a window.
#[must_use]
pub fn ends(model: &Model) -> Vec<bool> {
    let mut ends = vec![false; model.tasks.len()];
    for until in model.tasks.iter().filter_map(|task| carried(task)?.until) {
        ends[until] = true;
    }
    ends
}

/// Checks the window of a task unit, where there is one; indices are checked.
pub(crate) fn check(model: &Model, i: usize, task: &Task) -> Result<(), SimError> {
    let refuse = |field: &str, got: f64, allowed: &'static str| {
        Err(SimError::Number { place: format!("tasks[{i}].{field}"), got, allowed })
    };
    let Some(need) = carried(task) else { return Ok(()) };
    if task.needs.len() > 1 {
        return refuse("needs", task.needs.len() as f64, "one need, if frames carry its units on");
    }
    if task.parallel.is_some() || task.activation != Activation::Dedicated || task.batch != 1 {
        return refuse("parallel", task.parallel.unwrap_or(0) as f64, "none, if frames carry units on: each asks");
    }
    if !task.pin.is_empty() || task.thread.is_some() || task.holds_back {
        return refuse("pin", task.pin.len() as f64, "no pin, thread or holding back, if frames carry units on");
    }
    let pool = &model.pools[need.pool];
    let plain = pool.policy == Policy::Fifo
        && pool.switch_ps == 0.0
        && pool.migration_ps == 0.0
        && pool.contention.is_empty()
        && pool.interruptions.is_none()
        && pool.sleep.is_empty()
        && pool.speed.iter().all(|&speed| speed == 1.0);
    if !plain {
        return refuse("needs.pool", need.pool as f64, "a plain FIFO pool, if frames carry its units on");
    }
    let all_carry = |other: &Task| other.needs.iter().all(|theirs| theirs.pool != need.pool || theirs.until.is_some());
    if !model.tasks.iter().all(all_carry) {
        return refuse("needs.pool", need.pool as f64, "a pool of which frames carry all units on, or none");
    }
    if model.tasks.iter().any(|other| other.copies.contains(&i)) {
        return refuse("needs.until", need.until.unwrap_or(0) as f64, "none, where copies come: they go nowhere");
    }
    Ok(())
}

/// Checks that every way from a task unit whose frames carry units on leads to where they give them back.
pub(crate) fn check_ways(scenario: &Scenario, successors: &[Vec<u32>]) -> Result<(), SimError> {
    for (i, task) in scenario.model.tasks.iter().enumerate() {
        let Some(until) = carried(task).and_then(|need| need.until) else { continue };
        let mut seen = vec![false; successors.len()];
        let mut pending = vec![i];
        let mut leaks = false;
        while let Some(node) = pending.pop() {
            leaks |= successors[node].is_empty();
            for &next in successors[node].iter().filter(|&&next| next as usize != until) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    pending.push(next as usize);
                }
            }
        }
        if leaks || until == i {
            let place = format!("tasks[{i}].needs.until");
            return Err(SimError::Number { place, got: until as f64, allowed: "a task unit that every way leads to" });
        }
    }
    Ok(())
}

/// Units of a pool that frames at a node have at least in hand, and where they may give them back.
type Hands = BTreeMap<usize, (usize, Vec<usize>)>;

/// The most frames that can be at each node at once, because all of them carry units there; `usize::MAX` where some may
/// not. `order` is topological.
#[must_use]
pub fn most_frames(scenario: &Scenario, order: &[u32], successors: &[Vec<u32>]) -> Vec<usize> {
    let model = &scenario.model;
    // None: no frames are known to arrive.
    let mut before: Vec<Option<Hands>> = vec![None; successors.len()];
    for entry in model.ports.iter().filter_map(|port| port.entry) {
        before[entry] = Some(Hands::new());
    }
    let mut most = vec![usize::MAX; successors.len()];
    for &node in order {
        let node = node as usize;
        let Some(mut hands) = before[node].clone() else { continue };
        let frames = |(pool, (units, _)): (&usize, &(usize, Vec<usize>))| model.pools[*pool].speed.len() / units;
        most[node] = hands.iter().map(frames).min().unwrap_or(usize::MAX);
        hands.retain(|_, (_, until)| !until.contains(&node));
        if let Some(Need { pool, units, until: Some(until) }) = model.tasks.get(node).and_then(carried) {
            hands.insert(*pool, (*units, vec![*until]));
        }
        for &next in &successors[node] {
            let next = &mut before[next as usize];
            *next = Some(next.take().map_or_else(|| hands.clone(), |others| common(others, &hands)));
        }
    }
    most
}

/// The units that two kinds of frames both carry.
fn common(mut some: Hands, others: &Hands) -> Hands {
    some.retain(|pool, _| others.contains_key(pool));
    for (pool, (units, until)) in &mut some {
        let (theirs, also) = &others[pool];
        *units = (*units).min(*theirs);
        until.extend(also.iter().filter(|end| !until.contains(end)).copied().collect::<Vec<_>>());
    }
    some
}
