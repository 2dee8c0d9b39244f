//! Linux's schedulers as a policy: real-time priorities above threads that share what is left fairly.
//!
//! Service received is counted per thread, over its weight (virtual runtime). A *clock* for each set of units that
//! threads compete for follows the least virtual runtime among those that can run, and never goes back (CFS:
//! `min_vruntime`). A thread that wakes is lifted to that clock less half a quantum (CFS: `GENTLE_FAIR_SLEEPERS`), so
//! that sleeping earns little. A lead over the clock of more than a quantum can only stem from times when a thread had
//! a unit for itself, which took nothing from anybody; it is forgiven when somebody else wakes (Linux keeps a clock for
//! each unit instead, and sets a thread that changes its unit to that one's).

use super::units::{MOST_UNITS, Units};
use super::{Claim, LaneId, Managers, NOBODY};
use crate::scenario::Policy;

/// State of a lane in the managers.
#[derive(Debug, Clone)]
pub(super) struct Applicant {
    pub(super) account: u32,
    pub(super) priority: i32,
    pub(super) weight: f64,
    /// Units that it may use, by pool.
    allowed: Vec<(usize, Units)>,
}

impl Applicant {
    pub(super) fn of(claim: &Claim) -> Self {
        let allowed = claim.needs.iter().map(|need| need.pool).zip(claim.allowed.iter().copied()).collect();
        Self { account: claim.account, priority: claim.priority, weight: claim.weight, allowed }
    }

    pub(super) fn allowed(&self, pool: usize) -> Units {
        self.allowed.iter().find(|(p, _)| *p == pool).map_or(Units::NONE, |&(_, units)| units)
    }
}

/// Units that threads compete for, and their clock.
#[derive(Debug)]
pub(super) struct Market {
    units: Units,
    clock: f64,
}

/// The smallest sets of units of a pool such that nobody may use units of two of them.
pub(super) fn markets(pool: usize, applicants: &[Applicant]) -> Vec<Market> {
    let mut markets: Vec<Market> = Vec::new();
    for allowed in applicants.iter().map(|applicant| applicant.allowed(pool)).filter(|allowed| !allowed.is_empty()) {
        let mut units = allowed;
        markets.retain(|market| {
            let apart = !market.units.meets(&allowed);
            if !apart {
                units = units | market.units;
            }
            apart
        });
        markets.push(Market { units, clock: 0.0 });
    }
    markets
}

impl Managers {
    /// Updates the virtual runtimes when a thread requests its units: limits the credit of its sleep, and forgives
    /// leads that cost no other thread anything.
    pub(super) fn admit(&mut self, claim: &Claim, now: u64) {
        for (need, &allowed) in claim.needs.iter().zip(&claim.allowed) {
            if let Policy::Linux { quantum_ps, .. } = self.pools[need.pool].policy
                && claim.priority == 0
            {
                self.set_right(need.pool, claim, allowed, quantum_ps, now);
            }
        }
    }

    fn set_right(&mut self, p: usize, claim: &Claim, allowed: Units, quantum_ps: f64, now: u64) {
        let clock = self.tick(p, allowed, now);
        let own = &mut self.virtual_runtime[claim.account as usize];
        *own = own.max(clock - 0.5 * quantum_ps).min(clock + quantum_ps / claim.weight);
        let pool = &self.pools[p];
        let holders = pool.holder.iter().copied().enumerate();
        let running = holders.filter(|&(unit, lane)| lane != NOBODY && allowed.has(unit));
        let rivals = running.map(|(_, lane)| lane).chain(pool.waiting.iter().copied());
        for lane in rivals {
            let rival = &self.applicants[lane as usize];
            if rival.priority == 0 && rival.allowed(p).meets(&allowed) {
                let excess = self.runtime(lane, now) - (clock + quantum_ps / rival.weight);
                self.virtual_runtime[rival.account as usize] -= excess.max(0.0);
            }
        }
    }

    /// Brings the clocks up to date before a thread gives its units back.
    pub(super) fn tick_all(&mut self, claim: &Claim, now: u64) {
        for (need, &allowed) in claim.needs.iter().zip(&claim.allowed) {
            if claim.priority == 0 && matches!(self.pools[need.pool].policy, Policy::Linux { .. }) {
                self.tick(need.pool, allowed, now);
            }
        }
    }

    /// Whether a lane that is not less urgent waits for a unit of the claim's pools.
    pub(super) fn is_contested_under_linux(&self, claim: &Claim) -> bool {
        claim.needs.iter().zip(&claim.allowed).any(|(need, &allowed)| {
            let pool = &self.pools[need.pool];
            if !matches!(pool.policy, Policy::Linux { .. }) {
                return !pool.waiting.is_empty();
            }
            pool.waiting
                .iter()
                .map(|&lane| &self.applicants[lane as usize])
                .any(|applicant| applicant.priority >= claim.priority && applicant.allowed(need.pool).meets(&allowed))
        })
    }

    /// Brings the clock of a set of units up to the least virtual runtime among those that can run there.
    fn tick(&mut self, p: usize, allowed: Units, now: u64) -> f64 {
        let pool = &self.pools[p];
        let Some(index) = pool.markets.iter().position(|market| market.units.meets(&allowed)) else { return 0.0 };
        let units = pool.markets[index].units;
        let running = pool.holder.iter().copied().filter(|&lane| lane != NOBODY);
        let least = running
            .chain(pool.waiting.iter().copied())
            .filter(|&lane| {
                let applicant = &self.applicants[lane as usize];
                applicant.priority == 0 && applicant.allowed(p).meets(&units)
            })
            .map(|lane| self.runtime(lane, now))
            .fold(f64::INFINITY, f64::min);
        let market = &mut self.pools[p].markets[index];
        if least < f64::INFINITY {
            market.clock = market.clock.max(least);
        }
        market.clock
    }

    /// The lane that is served next: the first of the most urgent ones; at priority 0 the one of highest affinity, and
    /// of equals the least served. One that is ahead of the least served by more than the granularity does not have
    /// back the unit that an interrupt borrowed.
    pub(super) fn next_under_linux(
        &self,
        p: usize,
        granularity_ps: f64,
        claims: &[Claim],
        task_of: &[u32],
    ) -> Option<LaneId> {
        let claim = |lane: LaneId| &claims[task_of[lane as usize] as usize];
        let runtime = |lane: LaneId| self.virtual_runtime[claim(lane).account as usize];
        let fitting = || self.pools[p].waiting.iter().copied().filter(|&lane| self.fits(claim(lane)));
        let (mut first, mut least) = (None, f64::INFINITY);
        for lane in fitting() {
            let priority = claim(lane).priority;
            if first.is_none_or(|(_, most)| priority > most) {
                first = Some((lane, priority));
            }
            if priority == 0 {
                least = least.min(runtime(lane));
            }
        }
        let (first, most) = first?;
        if most != 0 {
            return Some(first);
        }
        let rank = |lane: LaneId| {
            let own = runtime(lane);
            let at_most = if own > least + granularity_ps { 1 } else { 2 };
            (self.is_at_home(p, claim(lane)).min(at_most), own)
        };
        let mut best = (first, rank(first));
        for lane in fitting().filter(|&lane| lane != first && claim(lane).priority == 0) {
            let (home, own) = rank(lane);
            let (home_of_best, own_of_best) = best.1;
            if home > home_of_best || home == home_of_best && own < own_of_best {
                best = (lane, (home, own));
            }
        }
        Some(best.0)
    }

    /// Affinity of a thread for the free units of a pool: 2 where an interrupt borrowed one from it, which it
    /// has back before anybody else; 1 where it would not have to move (it ran there last, or nowhere, or may run
    /// nowhere else); 0 elsewhere. A core serves its own threads first and takes others only when it has none.
    fn is_at_home(&self, p: usize, claim: &Claim) -> u8 {
        let pool = &self.pools[p];
        let allowed = claim.needs.iter().position(|need| need.pool == p).map_or(Units::NONE, |at| claim.allowed[at]);
        let last = self.last_unit[claim.account as usize];
        if last as usize >= MOST_UNITS || allowed.is_single() && !pool.lent.meets(&allowed) {
            return 1;
        }
        let last_free = (pool.free & allowed).has(last as usize);
        if last_free && pool.lent.has(last as usize) && pool.last_task[last as usize] == claim.account {
            return 2;
        }
        u8::from(last_free || allowed.is_single())
    }

    /// Service that a lane's thread received over its weight, that of its present grant included.
    #[inline]
    fn runtime(&self, lane: LaneId, now: u64) -> f64 {
        let applicant = &self.applicants[lane as usize];
        let before = self.virtual_runtime[applicant.account as usize];
        if self.held[lane as usize].is_empty() {
            return before;
        }
        before + (now - self.held_since[lane as usize]) as f64 / applicant.weight
    }

    /// Whether a claim may revoke the grant of a lane in a pool of this policy; how far ahead that one is, if it
    /// is for being ahead.
    pub(super) fn may_revoke(&self, p: usize, claim: &Claim, victim: LaneId, now: u64) -> Option<u64> {
        let theirs = self.applicants[victim as usize].priority;
        match self.pools[p].policy {
            Policy::Linux { wakeup_granularity_ps, .. } if theirs == 0 && claim.priority == 0 => {
                let lead = self.runtime(victim, now) - self.virtual_runtime[claim.account as usize];
                (lead > wakeup_granularity_ps).then_some(lead as u64)
            }
            Policy::Linux { .. } | Policy::Preemptive if theirs < claim.priority => Some(0),
            _ => None,
        }
    }
}
