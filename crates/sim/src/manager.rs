//! Resource managers: pools, requests and policies (semantics S4; Meyer et al. 2014, sec. IV-C).
//!
//! One [`Managers`] holds the local manager of every pool and acts as the global one: a request for several pools is
//! granted only when all of them can be, at one instant, so nobody holds one resource while waiting for another and
//! there is no deadlock. A request that cannot be granted yet does not block younger ones that can (the managers are
//! work-conserving); whenever a unit comes free the oldest that fits goes first.

mod claim;
mod linux;
mod units;
mod victims;

pub use claim::Claim;
use linux::{Applicant, Market, markets};
pub use units::MOST_UNITS;
use units::Units;

use crate::ledger::Ledger;
use crate::scenario::Policy;
use crate::sleep::Sleepers;
use crate::time::Span;

/// A thread of a task unit: the holder of grants.
pub type LaneId = u32;

const NOBODY: u32 = u32::MAX;

#[derive(Debug)]
struct Pool {
    policy: Policy,
    free: Units,
    speed: Vec<f64>,
    last_task: Vec<u32>,
    /// Linux policy: units that interrupts borrowed from a thread and have not returned.
    lent: Units,
    switch: u64,
    migration: u64,
    contention: Vec<f64>,
    sleepers: Sleepers,
    /// Units at work (granted and not merely held), for contention.
    working: usize,
    /// Lanes that wait for units of this pool, in order of request.
    waiting: Vec<LaneId>,
    /// Fair policy: no waking task unit starts behind this virtual time.
    virtual_time: f64,
    /// Lane that holds each unit.
    holder: Vec<LaneId>,
    /// Linux policy: the sets of units for which threads of priority 0 compete.
    markets: Vec<Market>,
}

/// The cost of a grant, and the speed of its units.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Switching and migration, picoseconds.
    pub overhead_ps: u64,
    /// Picoseconds that a picosecond of work takes, contention apart.
    pub slowness: f64,
    /// Picoseconds until the last of the units is awake.
    pub waking_ps: u64,
}

impl Terms {
    /// A grant of an own processor, which is always awake.
    pub const OWN: Self = Self { overhead_ps: 0, slowness: 1.0, waking_ps: 0 };
}

/// A message between a task unit and its manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// REQ: a task unit applies for units.
    Request,
    /// REP: the manager allocates a unit.
    Reply,
    /// REL: the task unit gives it back.
    Release,
    /// REV: the manager withdraws it.
    Revoke,
}

/// A message that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Picoseconds.
    pub at_ps: u64,
    /// Its kind.
    pub kind: Kind,
    /// Task unit.
    pub task: u32,
    /// Pool.
    pub pool: u32,
    /// Unit; none for a request.
    pub unit: Option<u32>,
}

/// All resource managers of a router.
#[derive(Debug)]
pub struct Managers {
    pools: Vec<Pool>,
    /// Units held by each lane: `(pool, unit)`.
    held: Vec<Vec<(u32, u32)>>,
    held_since: Vec<u64>,
    /// The claim of each lane.
    applicants: Vec<Applicant>,
    /// Service received by each thread over its weight (policies fair and linux).
    virtual_runtime: Vec<f64>,
    /// Unit that each thread used last in its first pool.
    last_unit: Vec<u32>,
    /// Messages kept so far.
    pub messages: Vec<Message>,
    message_limit: usize,
    messages_from: u64,
}

impl Managers {
    /// Managers of pools for the lanes whose claims are `claims[task_of[lane]]`.
    #[must_use]
    pub fn new(pools: &[crate::scenario::Pool], claims: &[Claim], task_of: &[u32], message_limit: usize) -> Self {
        let (nodes, lanes) = (claims.len(), task_of.len());
        let applicants: Vec<Applicant> = task_of.iter().map(|&task| Applicant::of(&claims[task as usize])).collect();
        let pools = pools
            .iter()
            .enumerate()
            .map(|(number, pool)| Pool {
                policy: pool.policy,
                // Pools with more units receive no requests: stations and windows count their own units.
                free: Units::first(pool.speed.len()),
                speed: pool.speed.clone(),
                last_task: vec![NOBODY; pool.speed.len()],
                lent: Units::NONE,
                switch: Span::from_ps(pool.switch_ps).0,
                migration: Span::from_ps(pool.migration_ps).0,
                contention: pool.contention.clone(),
                sleepers: Sleepers::new(&pool.sleep, pool.speed.len()),
                working: 0,
                waiting: Vec::new(),
                virtual_time: 0.0,
                holder: vec![NOBODY; pool.speed.len()],
                markets: markets(number, &applicants),
            })
            .collect();
        Self {
            pools,
            held: vec![Vec::new(); lanes],
            held_since: vec![0; lanes],
            applicants,
            virtual_runtime: vec![0.0; nodes],
            last_unit: vec![NOBODY; nodes],
            messages: Vec::new(),
            message_limit,
            messages_from: 0,
        }
    }

    /// REQ: records the application; call [`Self::try_grant`] or [`Self::enqueue`] next.
    #[inline]
    pub fn request(&mut self, claim: &Claim, now: u64) {
        if claim.linux {
            self.admit(claim, now);
        }
        for need in &claim.needs {
            let pool = &mut self.pools[need.pool];
            if let Policy::Fair { .. } = pool.policy {
                let runtime = &mut self.virtual_runtime[claim.account as usize];
                *runtime = runtime.max(pool.virtual_time);
            }
            if self.message_limit > 0 {
                self.note(now, Kind::Request, claim.task, need.pool as u32, None);
            }
        }
    }

    /// REP: grants the claim to the lane if every pool has units for it now.
    #[inline]
    pub fn try_grant(&mut self, lane: LaneId, claim: &Claim, now: u64, ledger: &mut Ledger) -> Option<Terms> {
        if !self.fits(claim) {
            return None;
        }
        let mut terms = Terms::OWN;
        for (i, need) in claim.needs.iter().enumerate() {
            for _ in 0..need.units {
                let unit = self.choose(need.pool, claim, i);
                let pool = &mut self.pools[need.pool];
                pool.free.remove(unit);
                pool.holder[unit] = lane;
                terms.waking_ps = terms.waking_ps.max(pool.sleepers.rouse(need.pool, unit, now, ledger));
                if claim.borrows {
                    pool.lent.insert(unit);
                } else {
                    pool.lent.remove(unit);
                }
                if pool.last_task[unit] != claim.account && !claim.borrows {
                    if pool.last_task[unit] != NOBODY {
                        terms.overhead_ps += pool.switch;
                    }
                    pool.last_task[unit] = claim.account;
                }
                if i == 0 && need.units == 1 {
                    let last = &mut self.last_unit[claim.account as usize];
                    if *last != NOBODY && *last != unit as u32 && !claim.borrows {
                        terms.overhead_ps += pool.migration;
                    }
                    *last = unit as u32;
                }
                terms.slowness = terms.slowness.max(1.0 / pool.speed[unit]);
                if i == 0 && need.units == 1 {
                    terms.slowness = 1.0 / pool.speed[unit];
                }
                self.held[lane as usize].push((need.pool as u32, unit as u32));
                if self.message_limit > 0 {
                    self.note(now, Kind::Reply, claim.task, need.pool as u32, Some(unit as u32));
                }
            }
        }
        self.held_since[lane as usize] = now;
        Some(terms)
    }

    #[inline]
    fn fits(&self, claim: &Claim) -> bool {
        claim
            .needs
            .iter()
            .zip(&claim.allowed)
            .all(|(need, allowed)| self.pools[need.pool].free.shares(allowed, need.units))
    }

    /// The unit to take: the one that served this thread last, else the first free. One that served others since is as
    /// good as any, but under the policy `linux`, whose threads wake up where they slept.
    #[inline]
    fn choose(&self, pool: usize, claim: &Claim, need: usize) -> usize {
        let state = &self.pools[pool];
        let allowed = &claim.allowed[need];
        let last = self.last_unit[claim.account as usize];
        if last != NOBODY
            && state.free.has(last as usize)
            && allowed.has(last as usize)
            && (state.last_task[last as usize] == claim.account || matches!(state.policy, Policy::Linux { .. }))
        {
            return last as usize;
        }
        state.free.lowest_shared(allowed)
    }

    /// Puts a lane that was not granted on the waiting lists of its pools. Real-time work that was revoked comes before
    /// its equals (POSIX: a preempted thread is at the head of the list for its priority).
    pub fn enqueue(&mut self, lane: LaneId, claim: &Claim, revoked: bool) {
        for need in &claim.needs {
            let pool = &mut self.pools[need.pool];
            if revoked && claim.priority > 0 && matches!(pool.policy, Policy::Linux { .. }) {
                pool.waiting.insert(0, lane);
            } else {
                pool.waiting.push(lane);
            }
        }
    }

    /// Removes a lane from the waiting lists of its pools.
    pub fn withdraw(&mut self, lane: LaneId, claim: &Claim) {
        for need in &claim.needs {
            self.pools[need.pool].waiting.retain(|&other| other != lane);
        }
    }

    /// Whether a lane waits for a unit of the claim's pools that the claim's holder must yield.
    #[inline]
    #[must_use]
    pub fn is_contested(&self, claim: &Claim) -> bool {
        if !claim.linux {
            return claim.needs.iter().any(|need| !self.pools[need.pool].waiting.is_empty());
        }
        self.is_contested_under_linux(claim)
    }

    /// Whether a lane holds a unit that the claim could use.
    #[must_use]
    pub fn holds_what_would_do(&self, lane: LaneId, claim: &Claim) -> bool {
        let held = &self.held[lane as usize];
        let mut wanted = claim.needs.iter().zip(&claim.allowed);
        wanted
            .any(|(need, allowed)| held.iter().any(|&(p, unit)| p as usize == need.pool && allowed.has(unit as usize)))
    }

    /// REL or REV: takes a lane's units back.
    #[inline]
    pub fn take_back(&mut self, lane: LaneId, claim: &Claim, now: u64, kind: Kind) {
        let held = now - self.held_since[lane as usize];
        if claim.linux {
            self.tick_all(claim, now);
        }
        self.virtual_runtime[claim.account as usize] += held as f64 / claim.weight;
        for i in 0..self.held[lane as usize].len() {
            let (pool, unit) = self.held[lane as usize][i];
            self.pools[pool as usize].free.insert(unit as usize);
            self.pools[pool as usize].holder[unit as usize] = NOBODY;
            self.pools[pool as usize].sleepers.release(unit as usize, now);
            if self.message_limit > 0 {
                self.note(now, kind, claim.task, pool, Some(unit));
            }
        }
        self.held[lane as usize].clear();
    }

    /// The lane that a pool's policy serves next among those that wait and fit; takes it off all waiting lists.
    pub fn next_waiting(&mut self, pool: usize, claims: &[Claim], task_of: &[u32]) -> Option<LaneId> {
        if self.pools[pool].waiting.is_empty() || self.pools[pool].free.is_empty() {
            return None;
        }
        let claim = |lane: LaneId| &claims[task_of[lane as usize] as usize];
        let waiting = &self.pools[pool].waiting;
        let mut fitting = waiting.iter().copied().filter(|&lane| self.fits(claim(lane)));
        let chosen = match self.pools[pool].policy {
            Policy::Fifo | Policy::RoundRobin { .. } => fitting.next()?,
            Policy::Priority | Policy::Preemptive => {
                // `max_by_key` would keep the youngest of equals; the oldest must be served first.
                fitting.reduce(|a, b| if claim(b).priority > claim(a).priority { b } else { a })?
            }
            Policy::Fair { .. } => {
                let runtime = |lane: LaneId| self.virtual_runtime[claim(lane).account as usize];
                fitting.reduce(|a, b| if runtime(b) < runtime(a) { b } else { a })?
            }
            Policy::Linux { wakeup_granularity_ps, .. } => {
                self.next_under_linux(pool, wakeup_granularity_ps, claims, task_of)?
            }
        };
        let task = task_of[chosen as usize];
        let runtime = self.virtual_runtime[claims[task as usize].account as usize];
        self.pools[pool].virtual_time = self.pools[pool].virtual_time.max(runtime);
        for need in &claims[task as usize].needs {
            self.pools[need.pool].waiting.retain(|&lane| lane != chosen);
        }
        Some(chosen)
    }

    /// The longest time a claim may hold its units while others wait.
    #[must_use]
    pub fn quantum_ps(&self, claim: &Claim) -> Option<u64> {
        claim
            .needs
            .iter()
            .filter(|need| claim.priority == 0 || !matches!(self.pools[need.pool].policy, Policy::Linux { .. }))
            .filter_map(|need| self.pools[need.pool].policy.quantum_ps())
            .reduce(f64::min)
            .map(|quantum| Span::from_ps(quantum).0.max(1))
    }

    /// The claim's units begin to work; returns the contention factor for the units that now work (S5).
    #[inline]
    pub fn begin_work(&mut self, claim: &Claim) -> f64 {
        let mut factor = 1.0;
        for need in &claim.needs {
            let pool = &mut self.pools[need.pool];
            pool.working += need.units;
            if let Some(&last) = pool.contention.last() {
                factor *= pool.contention.get(pool.working - 1).copied().unwrap_or(last);
            }
        }
        factor
    }

    /// The claim's units stop working.
    #[inline]
    pub fn end_work(&mut self, claim: &Claim) {
        for need in &claim.needs {
            self.pools[need.pool].working -= need.units;
        }
    }

    /// Books the sleep of the units that are idle when the trial ends.
    pub fn close(&self, end: u64, ledger: &mut Ledger) {
        for (number, pool) in self.pools.iter().enumerate() {
            for unit in (0..pool.speed.len()).filter(|&unit| pool.free.has(unit)) {
                pool.sleepers.close(number, unit, end, ledger);
            }
        }
    }

    /// Keeps messages only from an instant on.
    #[must_use]
    pub fn with_messages_from(self, messages_from: u64) -> Self {
        Self { messages_from, ..self }
    }

    /// Keeps a message, as long as there is room for more.
    #[inline]
    pub fn note(&mut self, at_ps: u64, kind: Kind, task: u32, pool: u32, unit: Option<u32>) {
        if self.messages.len() < self.message_limit && at_ps >= self.messages_from {
            self.messages.push(Message { at_ps, kind, task, pool, unit });
        }
    }
}
