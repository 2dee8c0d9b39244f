//! Snapshots, and the outcome with its balance of flits.

use crate::engine::Engine;
use crate::outcome::Outcome;

impl Engine {
    /// Whether every packet that counts has arrived.
    pub(crate) fn all_arrived(&self) -> bool {
        self.statistics.all_arrived()
    }

    /// Flits that wait at a node, of packets created before `cycle`.
    fn waiting_at(&self, node: usize, cycle: u64) -> u64 {
        let this = &self.sources.nodes[node];
        let mut flits = u64::from(this.left);
        let Some(mut source) = this.source.clone() else { return flits };
        // While flits of a packet leave, the next packet is not drawn yet.
        let mut next = this.next.unwrap_or_else(|| source.next(&self.setup.mixture));
        while next.cycle < cycle {
            flits += u64::from(next.length);
            next = source.next(&self.setup.mixture);
        }
        flits
    }

    /// Takes the snapshot at the begin or end of the measurement, before the events of `cycle`.
    pub(crate) fn snapshot(&mut self, cycle: u64) {
        let waiting = (0..self.setup.tables.nodes).map(|node| self.waiting_at(node, cycle)).sum();
        let crossed = self.crossed();
        let statistics = &mut self.statistics;
        statistics.source_flits[statistics.snapshots] = waiting;
        statistics.snapshots += 1;
        if statistics.snapshots == 1 {
            statistics.crossed = crossed;
        } else {
            for (before, now) in statistics.crossed.iter_mut().zip(crossed) {
                *before = now - *before;
            }
        }
    }

    /// Flits over each output since the beginning, by `router * ports + port`.
    fn crossed(&self) -> Vec<u64> {
        self.routers.ports.iter().map(|port| port.crossed).collect()
    }

    /// Draws the packets that nodes create until the end, so that every packet is counted once.
    pub(crate) fn finish(&mut self) {
        let end = self.now;
        while self.statistics.snapshots < 2 {
            self.snapshot(end);
        }
        let mut in_sources = 0;
        for node in 0..self.setup.tables.nodes {
            in_sources += u64::from(self.sources.nodes[node].left);
            let Some(mut source) = self.sources.nodes[node].source.take() else { continue };
            let mut next = self.sources.nodes[node].next;
            loop {
                let packet = next.take().unwrap_or_else(|| {
                    let packet = source.next(&self.setup.mixture);
                    self.statistics.count_created(node, &packet);
                    packet
                });
                if packet.cycle >= end {
                    self.statistics.uncount_created(node, &packet);
                    break;
                }
                in_sources += u64::from(packet.length);
            }
        }
        let buffered: u64 = self.channels.input.iter().map(|input| u64::from(input.waiting)).sum();
        let inside = buffered + self.flight.arrivals.iter().count() as u64;
        assert_eq!(inside, self.flight.inside, "flits are lost or doubled between routers");
        self.flight.inside = inside + in_sources;
        assert_eq!(self.statistics.created, self.statistics.ejected + self.flight.inside, "flits are lost or doubled");
    }

    /// The outcome of the run.
    #[must_use]
    pub fn outcome(mut self) -> Outcome {
        let ports = self.setup.tables.ports;
        let flit_hops = self.routers.ports.iter().map(|port| port.crossed).sum();
        let statistics = &mut self.statistics;
        let links = self.setup.tables.link_port.iter();
        let packet_latency = statistics.packets.summary();
        let mean_routers =
            if packet_latency.count == 0 { 0.0 } else { statistics.routers as f64 / packet_latency.count as f64 };
        let batches = statistics.batches.iter().filter(|batch| batch.1 > 0);
        Outcome {
            mean_routers,
            network_latency: statistics.network.summary(),
            flit_latency: statistics.flits.summary(),
            batch_latency: batches.map(|&(sum, count)| sum / count as f64).collect(),
            offered_flits: std::mem::take(&mut statistics.offered),
            accepted_flits: std::mem::take(&mut statistics.accepted),
            link_flits: links
                .map(|&(router, port)| statistics.crossed[router as usize * ports + usize::from(port)])
                .collect(),
            router_flits: statistics.crossed.chunks(ports).map(|outputs| outputs.iter().sum()).collect(),
            source_flits: statistics.source_flits,
            undelivered_flits: statistics.measured[0] - statistics.measured[1],
            created_flits: statistics.created,
            ejected_flits: statistics.ejected,
            inside_flits: self.flight.inside,
            flit_hops,
            cycles: self.now,
            deadlocked: statistics.deadlocked,
            packet_latency,
        }
    }
}
