//! Independent replications on all cores, until the interval is narrow enough (semantics S10).
//!
//! Without the feature `parallel` they run one after the other, with the same result.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "parallel")]
use rayon::prelude::*;

use crate::error::SimError;
use crate::outcome::{Outcome, combine, require_steady_state};
use crate::run::{Record, run};
use crate::scenario::Scenario;

/// The number of replications.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The fewest.
    pub replications: usize,
    /// Go on until the half-width of the mean latency is at most this share of the mean.
    pub target_relative_half_width: Option<f64>,
    /// The most.
    pub most: usize,
}

/// Runs replications of a scenario in parallel. Their streams differ, their results do not depend on the number of
/// threads. `report` receives the finished share of the present round, 0..1, and may stop the run.
///
/// # Errors
///
/// Whatever [`Scenario::check`] and the run refuse; [`SimError::Transient`] where a steady state is needed.
pub fn replicate(
    scenario: &Scenario,
    plan: Plan,
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<Outcome, SimError> {
    rounds(scenario, plan, &|seeds, wanted| {
        let one = Replica { scenario, wanted, finished: &AtomicUsize::new(0), report };
        #[cfg(feature = "parallel")]
        let seeds = seeds.par_iter();
        #[cfg(not(feature = "parallel"))]
        let seeds = seeds.iter();
        seeds.map(|&replication| one.run(replication, |replica, report| run(replica, report))).collect()
    })
}

/// The same in lanes on a device, one replication after the other.
///
/// # Errors
///
/// As [`replicate`], and [`SimError::NotInLanes`]: lanes, or the device, have no place for a part of the router.
#[cfg(feature = "lanes")]
pub fn replicate_on(
    device: &dyn routecast_lanes::device::Device,
    scenario: &Scenario,
    plan: Plan,
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<Outcome, SimError> {
    rounds(scenario, plan, &|seeds, wanted| {
        let one = Replica { scenario, wanted, finished: &AtomicUsize::new(0), report };
        let run = |replica: &Scenario, report: &Report| {
            crate::lanes::Prepared::new(replica)?.run(replica, Some(device), report)
        };
        seeds.iter().map(|&replication| one.run(replication, run)).collect()
    })
}

type Report<'a> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'a;

/// What the replications of a round have in common.
struct Replica<'a> {
    scenario: &'a Scenario,
    wanted: usize,
    finished: &'a AtomicUsize,
    report: &'a Report<'a>,
}

impl Replica<'_> {
    fn run(
        &self,
        replication: u64,
        run: impl Fn(&Scenario, &Report) -> Result<Record, SimError>,
    ) -> Result<Record, SimError> {
        let Self { scenario, wanted, finished, report } = self;
        let share = |part: f64| (finished.load(Ordering::Relaxed) as f64 + part) / *wanted as f64;
        let mut replica = (*scenario).clone();
        replica.run.replication = replication;
        replica.run.record_frames &= replication == scenario.run.replication;
        let record = run(&replica, &|part| report(share(part)))?;
        finished.fetch_add(1, Ordering::Relaxed);
        if report(share(0.0)).is_break() { Err(SimError::Interrupted) } else { Ok(record) }
    }
}

/// Runs the replications of a round, given their numbers, and how many are wanted.
type Round<'a> = dyn Fn(&[u64], usize) -> Result<Vec<Record>, SimError> + 'a;

fn rounds(scenario: &Scenario, plan: Plan, run_all: &Round) -> Result<Outcome, SimError> {
    scenario.check()?;
    let mut seeds: Vec<u64> = Vec::new();
    let mut wanted = plan.replications.max(1);
    loop {
        // Earlier replications run again rather than stay in memory: a record is large, a rerun is cheap and exact.
        let first = scenario.run.replication;
        seeds.extend(first + seeds.len() as u64..first + wanted as u64);
        let records = run_all(&seeds, wanted);
        let outcome = combine(scenario, records?);
        require_steady_state(scenario, &outcome)?;
        let unsure = plan.target_relative_half_width.is_some_and(|target| {
            // NaN, where there is no interval, counts as too wide.
            let share = outcome.latency_half_width_s / outcome.latency.mean_s;
            share.is_nan() || share > target
        });
        if !unsure || wanted >= plan.most {
            return Ok(outcome);
        }
        wanted = (wanted * 2).max(4).min(plan.most);
    }
}
