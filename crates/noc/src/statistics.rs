//! The counters of a run.

use routecast_sim::histogram::{Histogram, percentile};

use crate::outcome::Latency;
use crate::packet::Packet;
use crate::scenario::Scenario;
use crate::source::NewPacket;

/// Latencies of one kind.
#[derive(Debug, Default)]
pub struct Spans {
    histogram: Histogram,
    count: u64,
    /// Whole cycles and parts of cycles apart, so that whole numbers stay exact and quick.
    sum: u64,
    parts: f64,
    most: u64,
    most_part: f64,
}

impl Spans {
    /// Counts a latency of whole cycles.
    #[inline]
    pub fn record(&mut self, cycles: u64) {
        self.histogram.record(cycles);
        self.count += 1;
        self.sum += cycles;
        if cycles > self.most {
            (self.most, self.most_part) = (cycles, 0.0);
        }
    }

    /// Counts a latency that began a part of a cycle before its first whole cycle.
    pub fn record_with(&mut self, cycles: u64, part: f64) {
        self.record(cycles);
        self.parts += part;
        if cycles == self.most {
            self.most_part = self.most_part.max(part);
        }
    }

    /// Mean and percentiles; 0 where nothing was counted.
    pub fn summary(&mut self) -> Latency {
        let counted = self.histogram.take();
        let max = self.most as f64 + self.most_part;
        let at = |p: f64| percentile(&counted, p).min(max);
        let mean = if self.count == 0 { 0.0 } else { (self.sum as f64 + self.parts) / self.count as f64 };
        Latency { count: self.count, mean, p50: at(0.5), p95: at(0.95), p99: at(0.99), max }
    }
}

/// Counters of a run.
#[derive(Debug)]
pub struct Statistics {
    from: u64,
    until: u64,
    /// Snapshots taken: at the begin and at the end of the measurement.
    pub snapshots: usize,
    pub(crate) packets: Spans,
    pub(crate) network: Spans,
    pub(crate) flits: Spans,
    pub(crate) routers: u64,
    /// Sum and number of packet latencies of each batch.
    pub(crate) batches: Vec<(f64, u64)>,
    pub(crate) offered: Vec<u64>,
    pub(crate) accepted: Vec<u64>,
    /// Flits over each output when the measurement began, then during it.
    pub(crate) crossed: Vec<u64>,
    pub(crate) source_flits: [u64; 2],
    /// Flits of all created packets, and of the one drawn for after the end.
    pub(crate) created: u64,
    pub(crate) ejected: u64,
    /// Measured packets that are inside.
    pub(crate) measured_inside: u64,
    /// Nodes that may still send a measured packet; the others are past the measurement.
    pub(crate) behind: usize,
    past: Vec<bool>,
    /// Flits of measured packets that were made and ejected.
    pub(crate) measured: [u64; 2],
    pub(crate) deadlocked: bool,
}

impl Statistics {
    /// Counters at 0.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let nodes = scenario.network.nodes.len();
        let run = scenario.run;
        Self {
            from: run.warmup_cycles,
            until: run.warmup_cycles + run.measure_cycles,
            snapshots: 0,
            packets: Spans::default(),
            network: Spans::default(),
            flits: Spans::default(),
            routers: 0,
            batches: vec![(0.0, 0); run.batches.max(1) as usize],
            offered: vec![0; nodes],
            accepted: vec![0; nodes],
            crossed: Vec::new(),
            source_flits: [0; 2],
            created: 0,
            ejected: 0,
            measured_inside: 0,
            behind: scenario.load.demand.iter().filter(|row| row.iter().any(|stretch| stretch.demand > 0.0)).count(),
            past: vec![false; nodes],
            measured: [0; 2],
            deadlocked: false,
        }
    }

    /// Whether packets created in a cycle are measured.
    #[inline]
    #[must_use]
    pub fn counts(&self, cycle: u64) -> bool {
        (self.from..self.until).contains(&cycle)
    }

    /// Counts a packet that a node creates.
    pub fn count_created(&mut self, node: usize, packet: &NewPacket) {
        let flits = u64::from(packet.length);
        self.created += flits;
        if self.counts(packet.cycle) {
            self.offered[node] += flits;
            self.measured[0] += flits;
        }
        if packet.cycle >= self.until && !self.past[node] {
            self.past[node] = true;
            self.behind -= 1;
        }
    }

    /// Uncounts a packet that was drawn, and counted, but is due after the end.
    pub fn uncount_created(&mut self, node: usize, packet: &NewPacket) {
        let flits = u64::from(packet.length);
        self.created -= flits;
        if self.counts(packet.cycle) {
            self.offered[node] -= flits;
            self.measured[0] -= flits;
        }
    }

    /// Counts a packet whose head leaves its source queue.
    pub fn sent(&mut self, cycle: u64) {
        if self.counts(cycle) {
            self.measured_inside += 1;
        }
    }

    /// Counts an ejected flit.
    #[inline]
    pub fn flit(&mut self, node: usize, measured: bool, age: u64) {
        self.ejected += 1;
        if self.snapshots == 1 {
            self.accepted[node] += 1;
        }
        if measured {
            self.measured[1] += 1;
            self.flits.record(age);
        }
    }

    /// Counts a packet whose tail is ejected.
    pub fn packet(&mut self, packet: &Packet, now: u64) {
        if !packet.measured {
            return;
        }
        let ready = packet.created.ceil();
        let (cycles, fraction) = (now - ready as u64, ready - packet.created);
        self.packets.record_with(cycles, fraction);
        self.network.record(now - packet.entered);
        self.routers += u64::from(packet.routers);
        self.measured_inside -= 1;
        let share = (packet.created - self.from as f64) / (self.until - self.from) as f64;
        let batches = self.batches.len();
        let batch = &mut self.batches[((share * batches as f64).max(0.0) as usize).min(batches - 1)];
        batch.0 += cycles as f64 + fraction;
        batch.1 += 1;
    }

    /// Whether every measured packet has arrived.
    #[must_use]
    pub fn all_arrived(&self) -> bool {
        self.behind == 0 && self.measured_inside == 0
    }
}
