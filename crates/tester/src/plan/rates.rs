//! The rate of a stream over time, limited by the link of its port.

use super::Wire;
use crate::error::{Result, TesterError};
use crate::request::{Request, Stream};

/// A period of constant rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    /// Its beginning, from the start of the plan.
    pub from_s: f64,
    pub to_s: f64,
    /// The rate that the link allows.
    pub rate_pps: f64,
    pub intended_pps: f64,
    /// Whether its frames count: it is not the warm-up.
    pub counted: bool,
    /// Whether it is the last period.
    pub last: bool,
}

impl Piece {
    pub fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// The warm-up, if there is one, at the first rate; then one piece per rate.
pub(super) fn pieces(request: &Request, index: usize, wire: Option<&Wire>) -> Result<Vec<Piece>> {
    check(request, index)?;
    let port = request.streams[index].port;
    let sharers: Vec<&Stream> = request.streams.iter().filter(|stream| stream.port == port).collect();
    let rate = |stream: &Stream, at_s: f64| {
        stream.steps.iter().rev().find(|step| step.at_s <= at_s).map_or(stream.rate_pps, |step| step.rate_pps)
    };
    let mut changes: Vec<f64> = match wire {
        Some(_) => sharers.iter().flat_map(|stream| &stream.steps).map(|step| step.at_s).collect(),
        None => request.streams[index].steps.iter().map(|step| step.at_s).collect(),
    };
    changes.retain(|&at_s| at_s < request.duration_s);
    changes.sort_by(f64::total_cmp);
    changes.dedup();
    let starts_s = std::iter::once(0.0).chain(changes.iter().copied());
    let ends_s = changes.iter().copied().chain([request.duration_s]);
    let mut pieces: Vec<Piece> = Vec::new();
    for (from_s, to_s) in starts_s.zip(ends_s) {
        let busy_ratio: f64 = wire.map_or(0.0, |wire| {
            sharers.iter().map(|stream| rate(stream, from_s) * wire.seconds(mean_bytes(stream))).sum()
        });
        let intended_pps = rate(&request.streams[index], from_s);
        let rate_pps = intended_pps / busy_ratio.max(1.0);
        let (from_s, to_s) = (request.warmup_s + from_s, request.warmup_s + to_s);
        match pieces.last_mut() {
            Some(last) if (last.rate_pps, last.intended_pps) == (rate_pps, intended_pps) => last.to_s = to_s,
            _ => pieces.push(Piece { from_s, to_s, rate_pps, intended_pps, counted: true, last: false }),
        }
    }
    if let Some(last) = pieces.last_mut() {
        last.last = true;
    }
    if request.warmup_s > 0.0 {
        let first = pieces[0];
        pieces.insert(0, Piece { from_s: 0.0, to_s: first.from_s, counted: false, last: false, ..first });
    }
    Ok(pieces)
}

fn check(request: &Request, index: usize) -> Result<()> {
    if let Some(bps) = request.wire_bps.filter(|bps| !(1e3..=1e13).contains(bps)) {
        return Err(TesterError::value("wire_bps", bps, "a rate of 1 kbit/s to 10 Tbit/s"));
    }
    let mut since_s = 0.0;
    for (nth, step) in request.streams[index].steps.iter().enumerate() {
        let place = |field: &str| format!("streams[{index}].steps[{nth}].{field}");
        if !(step.at_s.is_finite() && step.at_s > since_s) {
            return Err(TesterError::value(place("at_s"), step.at_s, format!("later than {since_s} s")));
        }
        if !(step.rate_pps.is_finite() && step.rate_pps >= 0.0) {
            return Err(TesterError::value(place("rate_pps"), step.rate_pps, "0 frames per second or more"));
        }
        since_s = step.at_s;
    }
    Ok(())
}

fn mean_bytes(stream: &Stream) -> f64 {
    let weight: f64 = stream.sizes.iter().map(|size| size.weight).sum();
    stream.sizes.iter().map(|size| size.weight * f64::from(size.bytes)).sum::<f64>() / weight
}
