//! Interruptions: a unit is taken away while it works, and the work resumes afterwards.
//!
//! In queueing theory these are breakdowns of a busy server with preemptive resumption (Avi-Itzhak and Naor, "Some
//! queuing problems with the service station subject to breakdown", Operations Research 11(3), 1963). They strike at
//! the instants of a Poisson process that runs only while the unit works, so a service of length `T` has
//! Poisson(rate·T) of them, and its completion takes `T` and their times:
//!
//! ```text
//!   working time  ───────┬──────────┬─────────────┬──►    completion  ─────▓▓▓▓▓──────▓▓───────────►
//!                     strikes     strikes      done
//! ```

use rand_distr::{Distribution as _, Exp1};

use crate::random::{Stream, stream};
use crate::random_time::Times;
use crate::scenario::Scenario;

/// The interruptions of the units of one task unit; most have none.
#[derive(Debug, Default)]
pub struct Interruptions {
    strikes: Vec<Strikes>,
}

/// The interruptions of the units of one pool.
#[derive(Debug)]
struct Strikes {
    /// Mean working time between two.
    gap_ps: f64,
    /// Working time until the next one.
    next_ps: f64,
    duration: Times,
    rng: Stream,
}

impl Interruptions {
    /// The interruptions of a node of a scenario; a port has none.
    #[must_use]
    pub fn of_node(scenario: &Scenario, node: usize) -> Self {
        let Some(task) = scenario.model.tasks.get(node) else { return Self::default() };
        let open = |purpose, number: usize| {
            stream(scenario.run.seed, scenario.run.replication, purpose, node as u64 + ((number as u64) << 32))
        };
        let strikes = task
            .needs
            .iter()
            .enumerate()
            .filter_map(|(number, need)| {
                let interruptions = scenario.model.pools[need.pool].interruptions.as_ref()?;
                let rate_hz = interruptions.rate_hz * need.units as f64;
                let mut strikes = Strikes {
                    gap_ps: crate::time::PS_PER_S / rate_hz,
                    next_ps: 0.0,
                    duration: Times::new(&interruptions.duration, open("interruption duration", number)),
                    rng: open("interruption", number),
                };
                strikes.wind_up();
                (rate_hz > 0.0).then_some(strikes)
            })
            .collect();
        Self { strikes }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.strikes.is_empty()
    }

    /// Draws the picoseconds that interruptions add to `work_ps` of work.
    #[inline(never)]
    pub fn added_ps(&mut self, work_ps: f64) -> f64 {
        self.strikes.iter_mut().map(|strikes| strikes.added_ps(work_ps)).sum()
    }
}

impl Strikes {
    fn wind_up(&mut self) {
        let gaps: f64 = Exp1.sample(&mut self.rng);
        self.next_ps = gaps * self.gap_ps;
    }

    /// Most services end before the next interruption: one comparison, one subtraction.
    #[inline]
    fn added_ps(&mut self, mut work_ps: f64) -> f64 {
        let mut added = 0.0;
        while work_ps > self.next_ps {
            work_ps -= self.next_ps;
            added += self.duration.draw_ps();
            self.wind_up();
        }
        self.next_ps -= work_ps;
        added
    }
}
