//! The outcome of a simulation: rates, loss, delays and work, with the transient removed and with 95 % intervals.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::error::SimError;
use crate::frame::Fate;
use crate::histogram::{Distribution, Sparse, summarise};
use crate::ledger::{MINIS, Offered, Row};
use crate::manager::{Kind, Message};
use crate::run::{Record, run};
use crate::scenario::{KeptState, Scenario};
use crate::settled::{FEWEST_FRAMES, HalfWidths, Means, Window, after, total, window};
use crate::time::PS_PER_S;

/// A figure with the half-width of its 95 % interval (NaN where there is none, which JSON writes as null).
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Half-width of its 95 % confidence interval.
    pub half_width: f64,
}

/// The work of one node after the transient.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NodeOutcome {
    /// Units at work, on average.
    pub working_units: f64,
    /// Frames that wait, on average (Little's law on waiting times).
    pub waiting_frames: f64,
    /// Frames dropped per second.
    pub dropped_pps: f64,
    /// Copies of frames served per second.
    pub copied_pps: f64,
    /// Copies of frames dropped per second.
    pub copies_lost_pps: f64,
    /// Units held without work (a poll that finds nothing), on average; known only for nodes that take frames in polls or are run by
    /// events.
    pub spinning_units: f64,
    /// Interrupts taken per second.
    pub interrupts_per_s: f64,
    /// Polls and grants that found frames, per second; known only for nodes that take frames in polls or are run by events.
    pub polls_per_s: f64,
    /// Whether events ran it, and not recursion.
    pub by_events: bool,
}

/// The units of one pool outside work, after the transient.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PoolOutcome {
    /// Units asleep by state, on average.
    pub asleep_units: Vec<f64>,
    /// Units waking up, on average.
    pub waking_units: f64,
    /// Units carried by frames, on average.
    pub held_units: f64,
    /// Wake-ups per second from each state.
    pub wakes_per_s: Vec<f64>,
}

/// The load offered by one source, after the transient.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SourceOutcome {
    /// Frames per second.
    pub offered_pps: f64,
    /// Bytes per second, wire overhead not counted.
    pub offered_bytes_per_s: f64,
}

/// The rates of one flow, after the transient.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct FlowOutcome {
    /// Offered frames per second.
    pub offered_pps: f64,
    /// Forwarded frames per second.
    pub forwarded_pps: f64,
    /// Dropped frames per second.
    pub dropped_pps: f64,
}

/// Rates during one of the equal parts of a trial, from its start: none is left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Moment {
    /// When the part begins.
    pub time_s: f64,
    /// Offered frames per second.
    pub offered_pps: f64,
    /// Forwarded frames per second.
    pub forwarded_pps: f64,
    /// Dropped frames per second.
    pub dropped_pps: f64,
}

/// A kept message, for the trace.
#[derive(Debug, Clone, Serialize)]
pub struct MessageRow {
    /// Seconds.
    pub at_s: f64,
    /// REQ, REP, REL or REV.
    pub kind: &'static str,
    /// Task unit.
    pub task: u32,
    /// Pool.
    pub pool: u32,
    /// Unit; none for a request.
    pub unit: Option<u32>,
}

/// The fate of a frame, for the trace.
#[derive(Debug, Clone, Serialize)]
pub struct FateRow {
    /// Number in order of arrival.
    pub seq: u64,
    /// Last bit in, picoseconds.
    pub arrival_ps: u64,
    /// Last bit out or drop, picoseconds.
    pub end_ps: u64,
    /// Node that dropped it.
    pub dropped_at: Option<u32>,
}

/// A frame's stay at a node, for the trace.
#[derive(Debug, Clone, Serialize)]
pub struct HopRow {
    /// Number of the frame in order of arrival.
    pub seq: u64,
    /// Node.
    pub node: u32,
    /// Flow of the frame.
    pub flow: u32,
    /// When it came, picoseconds.
    pub at_ps: u64,
    /// When its service began, picoseconds.
    pub start_ps: u64,
}

/// What lanes have to say of themselves.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LanesOutcome {
    /// Seams between segments of the trial, all replications.
    pub seams: usize,
    /// Those that were proved by the warm-up alone.
    pub proved_at_once: usize,
    /// Those that were proved by running a segment again.
    pub repaired: usize,
    /// Seconds of a tick.
    pub tick_s: f64,
    /// The greatest relative error of a mean service by rounding.
    pub rounding_ratio: f64,
    /// Frames in the router at the beginning, where the trial goes on from a state.
    pub begin_frames: u64,
    /// The state at the end, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<KeptState>,
    /// Whether it ran on a graphics processor.
    pub on_device: bool,
    /// Why parts of it did not, a sentence each.
    pub given_up: Vec<String>,
}

/// Outcome of one simulation, or of several replications together.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Outcome {
    /// Replications behind it.
    pub replications: usize,
    /// Simulated seconds after the transient, per replication.
    pub measured_s: f64,
    /// Whether every replication passed its transient; never where something happens during the trial.
    pub settled: bool,
    /// Frames offered, whole run, all replications.
    pub offered_frames: u64,
    /// Frames forwarded, likewise.
    pub forwarded_frames: u64,
    /// Frames dropped, likewise.
    pub dropped_frames: u64,
    /// Frames inside at the end, likewise.
    pub in_flight_frames: u64,
    /// When the first of the dropped frames came in, seconds from the start; none without a drop.
    pub first_loss_s: Option<f64>,
    /// When the last of them came in, likewise.
    pub last_loss_s: Option<f64>,
    /// Offered frames per second after the transient.
    pub offered_pps: f64,
    /// The load offered by each source, after the transient.
    pub sources: Vec<SourceOutcome>,
    /// Forwarded frames per second.
    pub forwarded_pps: Estimate,
    /// Forwarded bytes per second.
    pub forwarded_bytes_per_s: f64,
    /// Frames dropped over frames offered.
    pub loss_ratio: Estimate,
    /// Last bit in to first bit out.
    pub latency: Distribution,
    /// Half-width of the 95 % interval of the mean latency.
    pub latency_half_width_s: f64,
    /// Time in queues.
    pub waiting: Distribution,
    /// Half-width of the 95 % interval of the mean waiting time.
    pub waiting_half_width_s: f64,
    /// By node: task units, then ports.
    pub nodes: Vec<NodeOutcome>,
    /// By pool.
    pub pools: Vec<PoolOutcome>,
    /// By flow, where they were counted.
    pub flows: Vec<FlowOutcome>,
    /// Rates over time, where they were kept.
    pub over_time: Vec<Moment>,
    /// What lanes have to say of themselves, where they ran the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<LanesOutcome>,
    /// Kept messages of the first replication.
    pub messages: Vec<MessageRow>,
    /// Kept fates of the first replication, by frame number.
    pub fates: Vec<FateRow>,
    /// Kept stays at nodes of the first replication, by the instant at which service began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopRow>,
}

/// Runs a scenario once.
///
/// # Errors
///
/// Whatever [`Scenario::check`] and the run refuse, and [`SimError::Transient`] where a steady state is needed.
pub fn simulate(scenario: &Scenario, report: &(dyn Fn(f64) -> ControlFlow<()> + Sync)) -> Result<Outcome, SimError> {
    scenario.check()?;
    let record = run(scenario, report)?;
    let outcome = combine(scenario, vec![record]);
    require_steady_state(scenario, &outcome)?;
    Ok(outcome)
}

/// Refuses an outcome whose transient did not end, where the run asks for a steady state.
///
/// # Errors
///
/// [`SimError::Transient`].
pub fn require_steady_state(scenario: &Scenario, outcome: &Outcome) -> Result<(), SimError> {
    if outcome.settled || !scenario.run.need_steady_state || !scenario.run.events.is_empty() {
        return Ok(());
    }
    let duration_s = scenario.run.duration_ps as f64 / PS_PER_S;
    let frames = outcome.offered_frames as f64;
    // Rounded up to two digits, because a person types it.
    let (needed_s, why) = if frames < FEWEST_FRAMES as f64 {
        let growth = 2.0 * FEWEST_FRAMES as f64 / frames.max(1.0);
        (duration_s * growth, format!("only {frames} frames were offered"))
    } else if outcome.forwarded_frames == 0 {
        (4.0 * duration_s, "no frame left the router".into())
    } else {
        (4.0 * duration_s, "the mean latency is still moving".into())
    };
    let digit = 10_f64.powf(needed_s.log10().floor() - 1.0);
    Err(SimError::Transient { duration_s, needed_s: (needed_s / digit).ceil() * digit, why })
}

/// Combines replications of one scenario.
///
/// # Panics
///
/// If frames were lost from sight: offered = forwarded + dropped + in flight (S12), an invariant of the simulator.
#[must_use]
pub fn combine(scenario: &Scenario, records: Vec<Record>) -> Outcome {
    let duration_s = scenario.run.duration_ps as f64 / PS_PER_S;
    let window = window(scenario, &records);
    let means: Vec<Means> = records.iter().map(|record| Means::of(record, duration_s, window.first)).collect();
    let is_changed = scenario.run.whole || !scenario.run.events.is_empty();
    let half_widths = match records.len() {
        1 if is_changed => HalfWidths::none(),
        1 => HalfWidths::of_batches(&records, duration_s, window.first),
        // Parts of a trial with changes, or of a trace, are not samples of one distribution; whole trials are.
        _ if is_changed => HalfWidths::of_means(&means),
        _ => HalfWidths::of_replications(&means, &records, duration_s, window.first),
    };
    let sum = |pick: fn(&Means) -> f64| means.iter().map(pick).sum::<f64>();
    let seconds = sum(|m| m.seconds);
    let frames = sum(|m| m.forwarded);
    let latency_s = sum(|m| m.latency_s) / means.len() as f64;
    let waited_s = sum(|m| m.waited_s) / means.len() as f64;
    let total_of = |pick: fn(&Record) -> u64| records.iter().map(pick).sum::<u64>();

    let mut outcome = Outcome {
        replications: records.len(),
        measured_s: seconds / records.len() as f64,
        settled: window.settled,
        offered_frames: total_of(|record| record.ledger.offered_in_all()),
        forwarded_frames: total_of(|record| total(&record.ledger.minis).frames),
        dropped_frames: total_of(|record| record.ledger.accounts.iter().flat_map(|a| a.dropped).sum()),
        in_flight_frames: total_of(|record| record.in_flight),
        first_loss_s: records.iter().filter_map(|record| record.ledger.lost).map(|lost| lost.0).min().map(in_seconds),
        last_loss_s: records.iter().filter_map(|record| record.ledger.lost).map(|lost| lost.1).max().map(in_seconds),
        offered_pps: sum(|m| m.offered) / seconds,
        sources: sources(&records, window, seconds),
        forwarded_pps: Estimate { value: frames / seconds, half_width: half_widths.forwarded_pps },
        forwarded_bytes_per_s: sum(|m| m.bytes) / seconds,
        loss_ratio: Estimate { value: sum(|m| m.dropped) / sum(|m| m.offered).max(1.0), half_width: half_widths.loss },
        latency: summarise(parts(&records, window, |record| &record.ledger.latencies), latency_s),
        latency_half_width_s: half_widths.latency_s,
        waiting: summarise(parts(&records, window, |record| &record.ledger.waitings), waited_s),
        waiting_half_width_s: half_widths.waited_s,
        nodes: nodes(&records, window, seconds),
        pools: pools(&records, window, seconds),
        flows: flows(&records, window, seconds),
        over_time: over_time(&records, duration_s),
        lanes: lanes(&records),
        messages: Vec::new(),
        fates: Vec::new(),
        hops: Vec::new(),
    };
    // S12: every frame is accounted for, always.
    assert_eq!(
        outcome.offered_frames + outcome.lanes.as_ref().map_or(0, |lanes| lanes.begin_frames),
        outcome.forwarded_frames + outcome.dropped_frames + outcome.in_flight_frames,
        "offered = forwarded + dropped + in flight"
    );
    for by_flow in records.iter().filter_map(|record| record.ledger.by_flow.as_ref()) {
        assert_eq!(by_flow.unbalanced(), None, "offered = forwarded + dropped + in flight, flow by flow");
    }
    if let Some(first) = records.into_iter().next() {
        outcome.messages = first.messages.iter().map(message_row).collect();
        let from_ps = scenario.run.record_from_ps.unwrap_or(0);
        let mut fates: Vec<Fate> = first.ledger.fates.unwrap_or_default();
        fates.retain(|fate| fate.end_ps >= from_ps);
        fates.sort_unstable();
        let mut hops = first.ledger.hops.unwrap_or_default().kept;
        hops.sort_unstable();
        outcome.hops = hops
            .iter()
            .map(|h| HopRow { seq: h.seq, node: h.node, flow: h.flow, at_ps: h.at_ps, start_ps: h.start_ps })
            .collect();
        outcome.fates = fates
            .iter()
            .map(|f| FateRow { seq: f.seq, arrival_ps: f.arrival_ps, end_ps: f.end_ps, dropped_at: f.dropped_at })
            .collect();
    }
    outcome
}

fn lanes(records: &[Record]) -> Option<LanesOutcome> {
    let all = records.iter().filter_map(|record| record.lanes.clone());
    all.reduce(|sum, more| LanesOutcome {
        seams: sum.seams + more.seams,
        proved_at_once: sum.proved_at_once + more.proved_at_once,
        repaired: sum.repaired + more.repaired,
        begin_frames: sum.begin_frames + more.begin_frames,
        given_up: [sum.given_up, more.given_up].concat(),
        ..sum
    })
}

fn in_seconds(at_ps: u64) -> f64 {
    at_ps as f64 / PS_PER_S
}

fn parts(records: &[Record], window: Window, pick: fn(&Record) -> &Vec<Sparse>) -> impl Iterator<Item = &Sparse> {
    records.iter().flat_map(move |record| pick(record)[window.first..].iter())
}

fn nodes(records: &[Record], window: Window, seconds: f64) -> Vec<NodeOutcome> {
    let count = records.first().map_or(0, |record| record.ledger.accounts.len());
    (0..count)
        .map(|node| {
            let mut outcome = NodeOutcome::default();
            for record in records {
                let account = &record.ledger.accounts[node];
                outcome.working_units += after(&account.busy_ps, window.first) / PS_PER_S / seconds;
                outcome.waiting_frames += after(&account.waited_ps, window.first) / PS_PER_S / seconds;
                outcome.dropped_pps += after(&account.dropped, window.first) / seconds;
                outcome.copied_pps += after(&account.copied, window.first) / seconds;
                outcome.copies_lost_pps += after(&account.copies_lost, window.first) / seconds;
                outcome.spinning_units += after(&account.spinning_ps, window.first) / PS_PER_S / seconds;
                outcome.interrupts_per_s += after(&account.interrupts, window.first) / seconds;
                outcome.polls_per_s += after(&account.polls, window.first) / seconds;
                outcome.by_events = record.planes[node] == crate::planes::Plane::Events;
            }
            outcome
        })
        .collect()
}

fn pools(records: &[Record], window: Window, seconds: f64) -> Vec<PoolOutcome> {
    let sum = |rows: &mut dyn Iterator<Item = &Row>| rows.map(|row| after(row, window.first)).sum::<f64>() / seconds;
    let rests = records.first().map_or(&[][..], |record| &record.ledger.rests);
    let of = |pool: usize| records.iter().map(move |record| &record.ledger.rests[pool]);
    (0..rests.len())
        .map(|pool| {
            let states = 0..rests[pool].asleep_ps.len();
            PoolOutcome {
                asleep_units: states
                    .clone()
                    .map(|state| sum(&mut of(pool).map(|rest| &rest.asleep_ps[state])) / PS_PER_S)
                    .collect(),
                waking_units: sum(&mut of(pool).map(|rest| &rest.waking_ps)) / PS_PER_S,
                held_units: sum(&mut of(pool).map(|rest| &rest.held_ps)) / PS_PER_S,
                wakes_per_s: states.map(|state| sum(&mut of(pool).map(|rest| &rest.wakes[state]))).collect(),
            }
        })
        .collect()
}

fn sources(records: &[Record], window: Window, seconds: f64) -> Vec<SourceOutcome> {
    let count = records.first().map_or(0, |record| record.ledger.offered.len());
    let rate = |source: usize, pick: fn(&Offered) -> &Row| {
        records.iter().map(|record| after(pick(&record.ledger.offered[source]), window.first)).sum::<f64>() / seconds
    };
    (0..count)
        .map(|source| SourceOutcome {
            offered_pps: rate(source, |offered| &offered.frames),
            offered_bytes_per_s: rate(source, |offered| &offered.bytes),
        })
        .collect()
}

fn flows(records: &[Record], window: Window, seconds: f64) -> Vec<FlowOutcome> {
    let mut outcomes = Vec::new();
    for by_flow in records.iter().filter_map(|record| record.ledger.by_flow.as_ref()) {
        for (flow, counts) in by_flow.after(window.first).enumerate() {
            if flow == outcomes.len() {
                outcomes.push(FlowOutcome::default());
            }
            outcomes[flow].offered_pps += counts.offered as f64 / seconds;
            outcomes[flow].forwarded_pps += counts.forwarded as f64 / seconds;
            outcomes[flow].dropped_pps += counts.dropped as f64 / seconds;
        }
    }
    outcomes
}

fn over_time(records: &[Record], duration_s: f64) -> Vec<Moment> {
    let timelines: Vec<_> =
        records.iter().filter_map(|record| Some((record.ledger.timeline.as_ref()?, &record.ledger.minis))).collect();
    if timelines.is_empty() {
        return vec![];
    }
    let part_s = duration_s / MINIS as f64;
    let per_s = 1.0 / (part_s * timelines.len() as f64);
    (0..MINIS)
        .map(|part| Moment {
            time_s: part as f64 * part_s,
            offered_pps: timelines.iter().map(|(timeline, _)| timeline.offered[part]).sum::<u64>() as f64 * per_s,
            forwarded_pps: timelines.iter().map(|(_, minis)| minis[part].frames).sum::<u64>() as f64 * per_s,
            dropped_pps: timelines.iter().map(|(timeline, _)| timeline.dropped[part]).sum::<u64>() as f64 * per_s,
        })
        .collect()
}

fn message_row(message: &Message) -> MessageRow {
    MessageRow {
        at_s: message.at_ps as f64 / PS_PER_S,
        kind: match message.kind {
            Kind::Request => "REQ",
            Kind::Reply => "REP",
            Kind::Release => "REL",
            Kind::Revoke => "REV",
        },
        task: message.task,
        pool: message.pool,
        unit: message.unit,
    }
}
