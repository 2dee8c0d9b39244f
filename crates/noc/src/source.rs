//! Nodes that create packets, without a stored queue: packets are drawn from the process only when they are sent.
//!
//! The gap to a node's next packet, its length and its target come from one stream in this order. A waiting packet
//! needs no memory, because the stream reproduces it: a node stores only its oldest packet, however long its queue is.
//! A copy of the stream runs ahead to compute the length of a queue.

use rand::RngExt;
use routecast_sim::random::{Stream, stream};

use crate::scenario::{Injection, Load, Stretch};

/// The next packet of a node.
#[derive(Debug, Clone, Copy)]
pub struct NewPacket {
    /// Instant in cycles of the plane.
    pub at: f64,
    /// First cycle in which the plane can take it.
    pub cycle: u64,
    /// Flits.
    pub length: u16,
    /// Node that receives it.
    pub target: u32,
}

/// The parameters that all nodes share.
#[derive(Debug)]
pub struct Mixture {
    lengths: Vec<(f64, u16)>,
    injection: Injection,
    clock_ratio: f64,
}

impl Mixture {
    /// The mixture of a checked load.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        let mut sum = 0.0;
        let mut lengths = Vec::new();
        for (&flits, &weight) in load.packet_flits.iter().zip(&load.weights) {
            sum += weight;
            lengths.push((sum, flits as u16));
        }
        Self { lengths, injection: load.injection, clock_ratio: load.clock_ratio }
    }
}

/// Mean flits of a packet.
#[must_use]
pub fn mean_flits(load: &Load) -> f64 {
    let total: f64 = load.weights.iter().sum();
    load.packet_flits.iter().zip(&load.weights).map(|(&flits, &weight)| f64::from(flits) * weight / total).sum()
}

/// Probability of a packet in a node cycle (in which the node is on), for a demand in flits per node cycle.
#[must_use]
pub fn trial(load: &Load, demand: f64) -> f64 {
    let packets = demand / mean_flits(load);
    match load.injection {
        Injection::Bernoulli => packets,
        Injection::OnOff { on_cycles, off_cycles } => packets * (on_cycles + off_cycles) / on_cycles,
    }
}

/// One node.
#[derive(Debug, Clone)]
pub struct Source {
    stream: Stream,
    /// Cumulated demand, and the nodes that get some.
    targets: std::rc::Rc<[(f64, Stretch)]>,
    trial: f64,
    /// Node cycle of the next trial.
    cycle: u64,
    /// Node cycle in which the on period ends.
    on_until: u64,
}

/// Trials until the first success, at least 1.
fn geometric(stream: &mut Stream, probability: f64) -> u64 {
    if probability >= 1.0 {
        return 1;
    }
    // 1 - u is in (0, 1], so that the logarithm is finite.
    let tail = 1.0 - stream.random::<f64>();
    let trials = (tail.ln() / (-probability).ln_1p()).floor();
    // No run reaches 2^53 cycles.
    1 + if trials < 9e15 { trials as u64 } else { 9_000_000_000_000_000 }
}

impl Source {
    /// The source of a node; `None` if it sends nothing.
    #[must_use]
    pub fn new(load: &Load, node: usize, seed: u64, replication: u64) -> Option<Self> {
        let mut sum = 0.0;
        let mut targets = Vec::new();
        for &stretch in load.demand[node].iter().filter(|stretch| stretch.demand > 0.0) {
            sum += stretch.total();
            targets.push((sum, stretch));
        }
        if targets.is_empty() {
            return None;
        }
        let trial = trial(load, sum);
        let mut stream = stream(seed, replication, "noc packets", node as u64);
        let (mut cycle, mut on_until) = (0, u64::MAX);
        if let Injection::OnOff { on_cycles, off_cycles } = load.injection {
            // In the steady state a node is on with the share of its on periods; geometric periods have no memory.
            if stream.random::<f64>() * (on_cycles + off_cycles) >= on_cycles {
                cycle = geometric(&mut stream, 1.0 / off_cycles);
            }
            on_until = cycle + geometric(&mut stream, 1.0 / on_cycles);
        }
        Some(Self { stream, targets: targets.into(), trial, cycle, on_until })
    }

    /// Draws the next packet.
    pub fn next(&mut self, mixture: &Mixture) -> NewPacket {
        let mut at = self.cycle + geometric(&mut self.stream, self.trial) - 1;
        if let Injection::OnOff { on_cycles, off_cycles } = mixture.injection {
            while at >= self.on_until {
                let on_from = self.on_until + geometric(&mut self.stream, 1.0 / off_cycles);
                self.on_until = on_from + geometric(&mut self.stream, 1.0 / on_cycles);
                at = on_from + geometric(&mut self.stream, self.trial) - 1;
            }
        }
        self.cycle = at + 1;
        let instant = at as f64 * mixture.clock_ratio;
        let length = match mixture.lengths.as_slice() {
            [(_, only)] => *only,
            lengths => lengths[hit(lengths, self.stream.random()).0].1,
        };
        let target = match &*self.targets {
            [(_, Stretch { first, count: 1, .. })] => *first,
            targets => {
                let (entry, beyond) = hit(targets, self.stream.random());
                let stretch = targets[entry].1;
                stretch.first + ((beyond / stretch.demand) as usize).min(stretch.count - 1)
            }
        };
        NewPacket { at: instant, cycle: instant.ceil() as u64, length, target: target as u32 }
    }
}

/// The entry that a number in [0, 1) hits, and how far behind the end of the one before.
fn hit<T>(cumulated: &[(f64, T)], unit: f64) -> (usize, f64) {
    let at = unit * cumulated[cumulated.len() - 1].0;
    let entry = cumulated.partition_point(|entry| entry.0 <= at).min(cumulated.len() - 1);
    (entry, if entry == 0 { at } else { at - cumulated[entry - 1].0 })
}
