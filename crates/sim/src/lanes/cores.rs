//! Task units in the terms of lanes: their work, how they find frames, and how their units sleep and are interrupted.

use routecast_lanes::law::Law;
use routecast_lanes::router::{Interruptions, Interrupts, Polls, RandomTime, Sleep};
use statrs::function::{erf::erfc, gamma::gamma_ur};

use crate::planes::{allowed_units, needs_events, servers, sharing};
use crate::scenario::{Activation, Pool, Scenario, Task, Variation};

/// Picoseconds of the shortest work of any task unit.
pub(super) fn least_work_ps(scenario: &Scenario) -> f64 {
    let works = scenario.model.tasks.iter().map(|task| task.per_frame_ps + task.per_byte_ps + task.per_batch_ps);
    works.filter(|&ps| ps > 0.0).fold(f64::INFINITY, f64::min)
}

/// Mean picoseconds of a frame's service, without the cost of its batch.
pub(super) fn work_ps(scenario: &Scenario, task: &Task, bytes: u32) -> f64 {
    (task.per_frame_ps + task.per_byte_ps * f64::from(bytes)) / speed_of(scenario, task)
}

/// Speed of a task unit's unit.
pub(super) fn speed_of(scenario: &Scenario, task: &Task) -> f64 {
    task.needs.first().map_or(1.0, |need| {
        let pool = &scenario.model.pools[need.pool];
        pool.speed[allowed_units(task, pool.speed.len())[0]]
    })
}

/// How the cores find their frames that poll, and which they are; none where each is served as soon as the one before is
/// done, at a cost of its own.
pub(super) fn polls_of(scenario: &Scenario, tasks: &[usize]) -> Result<(Option<Polls>, Vec<bool>), String> {
    let ways = tasks.iter().map(|&number| {
        let task = &scenario.model.tasks[number];
        let speed = speed_of(scenario, task);
        let (batch, interrupts) = match task.activation {
            Activation::Interrupt { budget, cost_ps, moderation_ps, exhaustive, ref wakeup, linger_ps } => {
                let wakeup = wakeup.as_ref().map(random_time);
                let cost_ps = cost_ps / speed;
                (budget, Some(Interrupts { cost_ps, moderation_ps, exhaustive, wakeup, linger_ps }))
            }
            _ => (task.batch, None),
        };
        let is_plain = batch == 1 && interrupts.is_none();
        let is_one_cost = task.per_batch_ps == 0.0 || task.variation == Variation::Deterministic;
        let polls = Polls { batch: batch as u32, cost_ps: task.per_batch_ps / speed, interrupts };
        if is_plain && is_one_cost { None } else { Some(polls) }
    });
    let ways: Vec<Option<Polls>> = ways.collect();
    let polling = ways.iter().map(Option::is_some).collect();
    let mut polls = ways.into_iter().flatten();
    let first = polls.next();
    if polls.any(|other| Some(other) != first) {
        return Err("its cores poll in different ways".into());
    }
    Ok((first, polling))
}

/// The pool of each core.
fn pools_of<'a>(scenario: &'a Scenario, tasks: &'a [usize]) -> impl Iterator<Item = Option<&'a Pool>> {
    let need = |&task: &usize| scenario.model.tasks[task].needs.first();
    tasks.iter().map(move |task| need(task).map(|need| &scenario.model.pools[need.pool]))
}

/// The sleep states of all cores.
pub(super) fn sleep_of(scenario: &Scenario, tasks: &[usize]) -> Result<Vec<Sleep>, String> {
    let mut all = pools_of(scenario, tasks).map(|pool| pool.map_or(&[][..], |pool| &pool.sleep[..]));
    let first = all.next().unwrap_or_default();
    if all.any(|other| other != first) {
        return Err("its cores sleep in different ways".into());
    }
    Ok(first.iter().map(|state| Sleep { after_ps: state.after_ps, exit_ps: state.exit_ps }).collect())
}

/// What takes cores away while they work, and which cores they are.
pub(super) fn interruptions_of(
    scenario: &Scenario,
    tasks: &[usize],
) -> Result<(Option<Interruptions>, Vec<bool>), String> {
    let strikes =
        |pool: Option<&'_ Pool>| pool.and_then(|pool| pool.interruptions.clone()).filter(|its| its.rate_hz > 0.0);
    let all: Vec<_> = pools_of(scenario, tasks).map(strikes).collect();
    let struck = all.iter().map(Option::is_some).collect();
    let mut known = all.into_iter().flatten();
    let first = known.next();
    if known.any(|other| Some(&other) != first.as_ref()) {
        return Err("its cores are interrupted in different ways".into());
    }
    let interruptions = first.map(|its| Interruptions { rate_hz: its.rate_hz, duration: random_time(&its.duration) });
    Ok((interruptions, struck))
}

/// A random time in the terms of lanes.
fn random_time(time: &crate::scenario::RandomTime) -> RandomTime {
    match time {
        crate::scenario::RandomTime::Mean { mean_ps, variation } => {
            RandomTime { mean_ps: *mean_ps, law: law(*variation) }
        }
        crate::scenario::RandomTime::Quantiles { quantiles_ps: table } => {
            let steps = (table.len() - 1).max(1) as f64;
            let mean_ps = if let [only] = table.as_slice() {
                *only
            } else {
                table.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).sum::<f64>() / steps
            };
            if mean_ps == 0.0 || table.iter().all(|&value| value == mean_ps) {
                return RandomTime { mean_ps, law: Law::Constant };
            }
            // Linear between equally likely quantiles.
            let exceeds = |x: f64| {
                let place = table.partition_point(|&value| value <= x * mean_ps);
                match (place, table.get(place)) {
                    (0, _) => 1.0,
                    (_, None) => 0.0,
                    (_, Some(&next)) => {
                        let before = table[place - 1];
                        1.0 - ((place - 1) as f64 + (x * mean_ps - before) / (next - before)) / steps
                    }
                }
            };
            RandomTime { mean_ps, law: Law::of_survival(exceeds) }
        }
    }
}

/// The factors of the one pool whose units slow each other down, and which cores they are; none where there is none.
pub(super) fn contention(scenario: &Scenario, tasks: &[usize]) -> Result<(Vec<f64>, Vec<bool>), String> {
    let slows = |pool: &&crate::scenario::Pool| pool.contention.iter().any(|&factor| factor != 1.0);
    let mut pools = scenario.model.pools.iter().filter(slows);
    let Some(pool) = pools.next() else { return Ok((vec![], vec![true; tasks.len()])) };
    if pools.next().is_some() {
        return Err("the units of several pools slow each other down".into());
    }
    let is_of_it = |of: Option<&Pool>| of.is_some_and(|of| std::ptr::eq(of, pool));
    Ok((pool.contention.clone(), pools_of(scenario, tasks).map(is_of_it).collect()))
}

/// Why a task unit is not a core of its own.
pub(super) fn check_core(scenario: &Scenario, number: usize) -> Result<(), String> {
    let task = &scenario.model.tasks[number];
    if sharing(scenario, number).is_none()
        && let Some(why) = needs_events(scenario, number, true)
    {
        return Err(format!("task unit {number}: {why}"));
    }
    if let Some(pool) = task.needs.first().map(|need| &scenario.model.pools[need.pool])
        && !pool.sleep.is_empty()
    {
        if task.activation == Activation::Polling {
            return Err(format!("task unit {number} polls for ever, and wakes its unit once"));
        }
        if allowed_units(task, pool.speed.len()).len() > 1 {
            return Err(format!("task unit {number} takes whichever of its units is free, awake or asleep"));
        }
    }
    Ok(())
}

/// Servers of a core, and the core before it that it shares them with.
pub(super) fn servers_of(scenario: &Scenario, tasks: &[usize], core: usize) -> (u32, Option<usize>) {
    let users = sharing(scenario, tasks[core]).unwrap_or_default();
    (servers(scenario, tasks[core]) as u32, tasks[..core].iter().position(|before| users.contains(before)))
}

/// The laws of the cores' services, and which each has.
pub(super) fn laws_of(scenario: &Scenario, tasks: &[usize]) -> Result<(Vec<Law>, Vec<usize>), String> {
    let mut known: Vec<Variation> = Vec::new();
    let of_core = tasks.iter().map(|&task| {
        let variation = scenario.model.tasks[task].variation;
        known.iter().position(|&other| other == variation).unwrap_or_else(|| {
            known.push(variation);
            known.len() - 1
        })
    });
    let of_core: Vec<usize> = of_core.collect();
    if known.is_empty() {
        return Err("no frame is served".into());
    }
    Ok((known.into_iter().map(law).collect(), of_core))
}

/// The law of a random factor.
fn law(variation: Variation) -> Law {
    match variation {
        Variation::Deterministic => Law::Constant,
        Variation::Exponential => Law::Exponential,
        Variation::Gamma { scv } => Law::of_survival(|x| gamma_ur(1.0 / scv, x / scv)),
        Variation::Hyperexponential { scv } => {
            // Balanced means: each phase carries half of the mean.
            let p = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt());
            Law::of_survival(move |x| p * (-2.0 * p * x).exp() + (1.0 - p) * (-2.0 * (1.0 - p) * x).exp())
        }
        Variation::Lognormal { scv } => {
            let variance = (1.0 + scv).ln();
            Law::of_survival(move |x| 0.5 * erfc((x.ln() + 0.5 * variance) / (2.0 * variance).sqrt()))
        }
        Variation::Uniform { scv } => {
            let half = (3.0 * scv).sqrt();
            Law::of_survival(move |x| ((1.0 + half - x) / (2.0 * half)).clamp(0.0, 1.0))
        }
    }
}
