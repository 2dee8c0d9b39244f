//! What the cores did, as one outcome.

use std::collections::BTreeMap;

use crate::function::drops_by_name;
use crate::host::Clock;
use crate::host::quantile::quantile;
use crate::memory::Pages;

use super::core::Work;
use super::latency::Histogram;
use super::outcome::{CoreOutcome, PassTimes, RunOutcome};
use super::request::{Plan, RunRequest};

/// Share of a processor's time taken by others from which a run is doubtful.
const MUCH_STEAL: f64 = 0.01;

fn pass_times(ticks: &[f64], tsc_hz: f64) -> PassTimes {
    if ticks.is_empty() {
        return PassTimes::default();
    }
    let mut seconds: Vec<f64> = ticks.iter().map(|ticks| ticks / tsc_hz).collect();
    let mut at = |probability| quantile(&mut seconds, probability);
    PassTimes { min: at(0.0), p25: at(0.25), median: at(0.5), p75: at(0.75) }
}

fn outcome_of(request: &RunRequest, work: &Work) -> CoreOutcome {
    let pass_s = pass_times(&work.times, work.clock.tsc_hz);
    let frames = request.frames_in_flight as f64;
    let known = request.packets.is_none() && pass_s.median > 0.0;
    let flat_out_pps = if known { frames / pass_s.median } else { 0.0 };
    let pps = work.paced.as_ref().map_or(flat_out_pps, |(_, elapsed_s)| work.tally.forwarded as f64 / elapsed_s);
    let core_hz = work.clock.core_hz();
    CoreOutcome {
        cpu: work.cpu,
        offered: work.tally.offered,
        forwarded: work.tally.forwarded,
        passes: work.times.len() as u64,
        pass_s: if known { pass_s } else { PassTimes::default() },
        pps,
        cycles_per_packet: if known { pass_s.median * core_hz / frames } else { 0.0 },
        core_hz: if known { core_hz } else { 0.0 },
        table_bytes: table_bytes(work),
        steal_ratio: work.steal_ratio,
    }
}

fn table_bytes(work: &Work) -> BTreeMap<String, u64> {
    work.tables.iter().map(|table| (table.name.to_owned(), table.bytes)).collect()
}

fn pages(request: &RunRequest, works: &[Work]) -> String {
    let parts = || {
        works.iter().flat_map(|work| {
            let tables = work.tables.iter().map(|table| (table.bytes as f64, table.huge_ratio));
            tables.chain([(work.frames_bytes as f64, work.frames_huge_ratio)])
        })
    };
    let bytes: f64 = parts().map(|(bytes, _)| bytes).sum();
    let huge: f64 = parts().map(|(bytes, ratio)| bytes * ratio).sum();
    let name = if request.pages == Pages::Huge { "huge" } else { "normal" };
    let share = if request.pages == Pages::Huge { huge / bytes } else { 1.0 - huge / bytes };
    format!("{name} {:.0} %", 100.0 * share)
}

fn notes(request: &RunRequest, plan: &Plan, works: &[Work]) -> Vec<String> {
    let mut notes = Vec::new();
    let steal = works.iter().map(|work| work.steal_ratio).fold(0.0, f64::max);
    if steal > MUCH_STEAL {
        notes.push(format!("the hypervisor took {:.1} % of a core's time: the figures are doubtful", 100.0 * steal));
    }
    if request.hand_loop && works.iter().all(|work| work.hand.is_none()) {
        notes.push(format!("{} has no loop by hand", plan.build.twin.function));
    }
    let entries = plan.build.entries(plan.build.twin.flows_of);
    if plan.build.flows > entries {
        notes.push(format!("{} flows share {entries} entries of table {}", plan.build.flows, plan.build.twin.flows_of));
    }
    if works.iter().any(|work| work.paced.is_some()) {
        notes.push("the clock stands still while the ring is refilled".to_owned());
    }
    notes
}

/// Adds the cores up.
pub(super) fn summarise(request: &RunRequest, plan: &Plan, works: Vec<Work>) -> RunOutcome {
    let per_core: Vec<CoreOutcome> = works.iter().map(|work| outcome_of(request, work)).collect();
    let mut outcome = RunOutcome::default();
    let mut drops = [0; crate::batch::FAULT_KINDS];
    let mut all_times = Vec::new();
    let mut latency: Option<Histogram> = None;
    let mut lost = 0;
    for work in &works {
        outcome.offered += work.tally.offered;
        outcome.forwarded += work.tally.forwarded;
        outcome.passes += work.times.len() as u64;
        lost += work.lost;
        drops.iter_mut().zip(work.tally.drops).for_each(|(sum, more)| *sum += more);
        // In ticks of the first core's clock: they are the same counter.
        all_times.extend_from_slice(&work.times);
        if let Some((histogram, _)) = &work.paced {
            latency.get_or_insert_default().add(histogram);
        }
        for table in &work.tables {
            if let Some(ratio) = table.collision_ratio {
                outcome.collision_ratio.insert(table.name.to_owned(), ratio);
            }
        }
    }
    outcome.dropped = drops_by_name(&drops);
    if lost > 0 {
        outcome.dropped.insert("queue".to_owned(), lost);
    }
    let cores = works.len() as f64;
    outcome.cycles_per_packet = per_core.iter().map(|core| core.cycles_per_packet).sum::<f64>() / cores;
    outcome.core_hz = per_core.iter().map(|core| core.core_hz).sum::<f64>() / cores;
    outcome.pps = per_core.iter().map(|core| core.pps).sum();
    outcome.steal_ratio = works.iter().map(|work| work.steal_ratio).fold(0.0, f64::max);
    if request.packets.is_none() {
        let clock: Option<&Clock> = works.first().map(|work| &work.clock);
        outcome.tsc_hz = clock.map_or(0.0, |clock| clock.tsc_hz);
        outcome.pass_s = pass_times(&all_times, outcome.tsc_hz);
    }
    outcome.latency = latency.and_then(|histogram| histogram.summary());
    outcome.table_bytes = works.first().map(table_bytes).unwrap_or_default();
    outcome.pages = pages(request, &works);
    outcome.notes = notes(request, plan, &works);
    outcome.hand_loop = works.into_iter().find_map(|work| work.hand);
    outcome.per_core = per_core;
    outcome
}
