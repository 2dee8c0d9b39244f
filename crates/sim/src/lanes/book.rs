//! What lanes counted as the ledger of a trial.

use routecast_lanes::tally::{Histograms, Tally, bounds};

use super::{MINIS_PER_SEGMENT, Model};
use crate::histogram::{Sparse, slot};
use crate::ledger::{Ledger, Mini};
use crate::planes::allowed_units;
use crate::scenario::Scenario;

/// Writes the lanes' counts into a ledger.
///
/// `part` is the mean part of a tick after whose beginning frames come; the trial begins at a tick `from`.
pub(super) fn book(
    ledger: &mut Ledger,
    scenario: &Scenario,
    model: &Model,
    windows: &[Tally],
    histograms: &[Histograms],
    part: f64,
    from: u64,
) {
    let tick_ps = model.router.tick_ps;
    let ps = |ticks: u64| (ticks as f64 * tick_ps) as u64;
    let nodes = scenario.model.tasks.len();
    for (number, window) in windows.iter().enumerate() {
        let segment = number / MINIS_PER_SEGMENT;
        ledger.minis[number] = Mini {
            frames: window.forwarded,
            bytes: window.forwarded_bytes,
            latency_ps: ((window.latency_ticks as f64 - part * window.forwarded as f64).max(0.0) * tick_ps) as u64,
            waited_ps: ps(window.waited_ticks),
        };
        for (offered, (frames, bytes)) in
            ledger.offered.iter_mut().zip(window.offered.iter().zip(&window.offered_bytes))
        {
            offered.frames[segment] += frames;
            offered.bytes[segment] += bytes;
        }
        for (core, &task) in model.tasks.iter().enumerate() {
            let account = &mut ledger.accounts[task];
            account.busy_ps[segment] += ps(window.busy_ticks[core]);
            account.waited_ps[segment] += ps(window.waited_at_core_ticks[core]);
            account.dropped[segment] += window.lost[core];
            account.interrupts[segment] += window.interrupts[core];
            account.polls[segment] += window.polls[core];
            account.spinning_ps[segment] += ps(window.spun_ticks[core]);
        }
        for (link, &port) in model.ports.iter().enumerate() {
            let account = &mut ledger.accounts[nodes + port];
            account.busy_ps[segment] += ps(window.sent_fine[link]) >> 8;
            account.waited_ps[segment] += ps(window.waited_at_link_ticks[link]);
            account.dropped[segment] += window.lost_at_link[link];
        }
        if let Some((first, last)) = window.lost_at {
            let known = ledger.lost.unwrap_or((u64::MAX, 0));
            ledger.lost = Some((known.0.min(ps(first - from)), known.1.max(ps(last - from))));
        }
        if let Some(timeline) = &mut ledger.timeline {
            timeline.offered[number] = window.offered.iter().sum();
            timeline.dropped[number] = window.lost.iter().chain(&window.lost_at_link).sum();
        }
    }
    let sparse = |bins: &[u64]| -> Sparse {
        let filled = bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled
            .map(|(bin, &count)| {
                let (least, width) = bounds(bin);
                (slot(((least as f64 + 0.5 * (width - 1) as f64) * tick_ps) as u64) as u32, count)
            })
            .collect()
    };
    for part in histograms {
        ledger.latencies.push(sparse(&part.latencies));
        ledger.waitings.push(sparse(&part.waits));
    }
}

/// Writes the sleep of all units into a ledger: that of cores as counted, that of others from the beginning to the end.
pub(super) fn book_rest(ledger: &mut Ledger, scenario: &Scenario, model: &Model, windows: &[Tally]) {
    let ps = |ticks: u64| (ticks as f64 * model.router.tick_ps) as u64;
    let states = model.router.sleep.len();
    let mut used: Vec<(usize, usize)> = Vec::new();
    for (core, &task) in model.tasks.iter().enumerate() {
        let Some(need) = scenario.model.tasks[task].needs.first() else { continue };
        let units = scenario.model.pools[need.pool].speed.len();
        used.extend(allowed_units(&scenario.model.tasks[task], units).into_iter().map(|unit| (need.pool, unit)));
        let rest = &mut ledger.rests[need.pool];
        for (number, window) in windows.iter().enumerate() {
            let segment = number / MINIS_PER_SEGMENT;
            rest.waking_ps[segment] += ps(window.waking_ticks[core]);
            for state in 0..states {
                rest.asleep_ps[state][segment] += ps(window.asleep_ticks[core * states + state]);
                rest.wakes[state][segment] += window.wakes[core * states + state];
            }
        }
    }
    for (number, pool) in scenario.model.pools.iter().enumerate() {
        for _ in (0..pool.speed.len()).filter(|&unit| !used.contains(&(number, unit))) {
            for (state, its) in pool.sleep.iter().enumerate() {
                let until = pool.sleep.get(state + 1).map_or(scenario.run.duration_ps as f64, |next| next.after_ps);
                ledger.sleep(number, state, its.after_ps as u64, (until as u64).min(scenario.run.duration_ps));
            }
        }
    }
}
