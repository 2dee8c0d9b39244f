//! The phases of a run: warm-up, measurement and drain; a deadlock ends them early.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use crate::engine::Engine;

impl Engine {
    /// Runs all phases. `report` receives the finished share from time to time and may stop the run.
    pub fn run(&mut self, report: &dyn Fn(f64) -> ControlFlow<()>) -> ControlFlow<()> {
        let measured_until = self.setup.run.warmup_cycles + self.setup.run.measure_cycles;
        let last = measured_until + self.setup.run.drain_cycles;
        let mut steps = 0_u32;
        // Some packets may block each other while others move. The check is rare, because it visits all channels.
        let mut look = 4096;
        loop {
            self.statistics_at(self.now);
            if self.now >= last || self.now >= measured_until && self.all_arrived() {
                break;
            }
            self.step();
            if !self.flight.moved && self.is_stuck() || self.now >= look && self.is_deadlocked() {
                self.statistics.deadlocked = true;
                break;
            }
            if self.now >= look {
                look = 2 * self.now;
            }
            let stop = if self.now < measured_until { measured_until } else { last };
            self.now = self.next_cycle().min(stop);
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(2048) {
                report(self.now as f64 / last.max(1) as f64)?;
            }
        }
        self.statistics.deadlocked |= self.flight.inside > 0 && self.is_deadlocked();
        self.finish();
        ControlFlow::Continue(())
    }

    /// Takes the snapshots that are due.
    fn statistics_at(&mut self, now: u64) {
        let boundaries = [self.setup.run.warmup_cycles, self.setup.run.warmup_cycles + self.setup.run.measure_cycles];
        while let Some(&boundary) = boundaries.get(self.statistics.snapshots).filter(|&&boundary| boundary <= now) {
            self.snapshot(boundary);
        }
    }

    /// The next cycle in which something can happen.
    fn next_cycle(&self) -> u64 {
        let next = self.now + 1;
        let quiet = self.routers.busy.is_empty()
            && self.sources.sending.is_empty()
            && self.flight.arrivals.is_empty()
            && self.flight.credits.is_empty()
            && self.flight.heads.is_empty();
        if !quiet {
            return next;
        }
        self.sources.waking.peek().map_or(u64::MAX, |Reverse((cycle, _))| *cycle).max(next)
    }

    /// Whether flits are inside while none moves or is on a wire: then only packets outside can still move.
    fn is_stuck(&self) -> bool {
        self.flight.inside > 0
            && self.flight.arrivals.is_empty()
            && self.flight.credits.is_empty()
            && self.flight.heads.is_empty()
            && self.sources.sending.is_empty()
    }
}
