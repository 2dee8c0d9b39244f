//! Revocation: the lanes that lose their units to a more urgent claim.

use std::cmp::Reverse;

use super::{Claim, LaneId, Managers, NOBODY};
use crate::scenario::Policy;

impl Managers {
    /// Lanes to revoke so that the claim fits: the least urgent first, only less urgent ones; none if that is not enough.
    ///
    /// Under the policy `linux` the lane at the thread's last unit comes first among equals, which saves a migration.
    #[must_use]
    pub fn victims(&self, claim: &Claim, now: u64) -> Option<Vec<LaneId>> {
        let mut victims: Vec<LaneId> = Vec::new();
        for (need, allowed) in claim.needs.iter().zip(&claim.allowed) {
            let pool = &self.pools[need.pool];
            let mut available = pool.free & allowed;
            for &victim in &victims {
                for &(p, unit) in &self.held[victim as usize] {
                    if p as usize == need.pool {
                        available |= (1 << unit) & allowed;
                    }
                }
            }
            if available.count_ones() as usize >= need.units {
                continue;
            }
            if !matches!(pool.policy, Policy::Preemptive | Policy::Linux { .. }) {
                return None;
            }
            let mut holders = pool.holder.iter().enumerate().filter(|&(unit, _)| allowed & (1 << unit) != 0);
            if !holders.any(|(_, &lane)| lane != NOBODY && self.may_revoke(need.pool, claim, lane, now).is_some()) {
                return None;
            }
            let last = self.last_unit[claim.account as usize];
            let stays = matches!(pool.policy, Policy::Linux { .. }) && last < 128;
            let last = if stays { 1_u128 << last } else { 0 };
            let mut holders: Vec<LaneId> = (0..pool.holder.len())
                .filter(|&unit| allowed & (1 << unit) != 0)
                .map(|unit| pool.holder[unit])
                .filter(|lane| *lane != NOBODY && !victims.contains(lane))
                .collect();
            holders.sort_unstable();
            holders.dedup();
            let mut candidates: Vec<_> = holders
                .into_iter()
                .filter_map(|lane| {
                    let lead = self.may_revoke(need.pool, claim, lane, now)?;
                    let units = self.held[lane as usize]
                        .iter()
                        .filter(|&&(p, _)| p as usize == need.pool)
                        .fold(0_u128, |set, &(_, unit)| set | (1 << unit));
                    let theirs = self.applicants[lane as usize].priority;
                    let held_since = self.held_since[lane as usize];
                    let order = (theirs, units & last == 0, Reverse(lead), Reverse(held_since), lane);
                    Some((order, units & allowed))
                })
                .collect();
            candidates.sort_unstable();
            for ((.., lane), units) in candidates {
                if available.count_ones() as usize >= need.units {
                    break;
                }
                available |= units;
                victims.push(lane);
            }
            if (available.count_ones() as usize) < need.units {
                return None;
            }
        }
        Some(victims)
    }
}
