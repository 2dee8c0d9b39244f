//! Sleep of idle units: the states that they enter after an idle time, and the exit times (S11).
//!
//! ```text
//!   released ── after 1 ──► state 1 ── after 2 ──► state 2 ── granted ──► waking (exit 2) ──► at work
//! ```
//!
//! A unit that is granted anew at the instant of its release has not been idle, so it does not sleep even where a
//! state is entered at once. Nobody is idle before the trial begins: units count their idle time from its start.

use crate::ledger::Ledger;
use crate::scenario::Sleep;
use crate::time::Span;

/// Sleep of the units of one pool.
#[derive(Debug)]
pub struct Sleepers {
    /// Idle time before each state, and its exit time.
    states: Vec<(u64, u64)>,
    idle_since: Vec<u64>,
    /// When a unit that is waking up will be awake.
    awake_at: Vec<u64>,
}

impl Sleepers {
    /// The sleep of so many units, all idle and awake.
    #[must_use]
    pub fn new(states: &[Sleep], units: usize) -> Self {
        let units = if states.is_empty() { 0 } else { units };
        Self {
            states: states.iter().map(|s| (Span::from_ps(s.after_ps).0, Span::from_ps(s.exit_ps).0)).collect(),
            idle_since: vec![0; units],
            awake_at: vec![0; units],
        }
    }

    /// A unit of the pool is granted: books its sleep and returns how long it takes to wake.
    #[inline]
    pub fn rouse(&mut self, pool: usize, unit: usize, now: u64, ledger: &mut Ledger) -> u64 {
        if self.states.is_empty() { 0 } else { self.awaken(pool, unit, now, ledger) }
    }

    fn awaken(&mut self, pool: usize, unit: usize, now: u64, ledger: &mut Ledger) -> u64 {
        if self.awake_at[unit] > now {
            // It was taken back while it woke: the rest of the wake-up remains.
            return self.awake_at[unit] - now;
        }
        let Some(state) = self.book(pool, self.idle_since[unit], now, ledger) else { return 0 };
        ledger.wake(pool, state, now);
        let exit = self.states[state].1;
        self.awake_at[unit] = now + exit;
        exit
    }

    /// Marks a unit as idle from now on.
    #[inline]
    pub fn release(&mut self, unit: usize, now: u64) {
        if let Some(since) = self.idle_since.get_mut(unit) {
            *since = now;
        }
    }

    /// Books the sleep of a unit that is still idle when the trial ends.
    pub fn close(&self, pool: usize, unit: usize, end: u64, ledger: &mut Ledger) {
        if let Some(&since) = self.idle_since.get(unit) {
            self.book(pool, since, end, ledger);
        }
    }

    /// Books the sleep of an idle unit in each state; returns the deepest.
    fn book(&self, pool: usize, since: u64, until: u64, ledger: &mut Ledger) -> Option<usize> {
        let mut deepest = None;
        for (state, &(after, _)) in self.states.iter().enumerate() {
            let from = since.saturating_add(after);
            if from > until || since == until {
                break;
            }
            let next = self.states.get(state + 1).map_or(u64::MAX, |&(after, _)| since.saturating_add(after));
            ledger.sleep(pool, state, from, next.min(until));
            deepest = Some(state);
        }
        deepest
    }
}
