//! Revocation: the lanes that lose their units to a more urgent claim.

use std::cmp::Reverse;
use std::ops::BitOr;

use super::units::Units;
use super::{Claim, LaneId, Managers, NOBODY};
use crate::scenario::Policy;

impl Managers {
    /// Lanes to revoke so that the claim fits: the least urgent first, only less urgent ones; none if that is not enough.
    ///
    /// Under the policy `linux` the lane at the thread's last unit comes first among equals, which saves a migration.
    #[must_use]
    pub fn victims(&self, claim: &Claim, now: u64) -> Option<Vec<LaneId>> {
        let mut victims: Vec<LaneId> = Vec::new();
        for (need, &allowed) in claim.needs.iter().zip(&claim.allowed) {
            let pool = &self.pools[need.pool];
            let mut available = pool.free & allowed;
            for &victim in &victims {
                for &(p, unit) in &self.held[victim as usize] {
                    if p as usize == need.pool {
                        available = available | Units::one(unit as usize) & allowed;
                    }
                }
            }
            if available.count() >= need.units {
                continue;
            }
            if !matches!(pool.policy, Policy::Preemptive | Policy::Linux { .. }) {
                return None;
            }
            let mut holders = pool.holder.iter().enumerate().filter(|&(unit, _)| allowed.has(unit));
            if !holders.any(|(_, &lane)| lane != NOBODY && self.may_revoke(need.pool, claim, lane, now).is_some()) {
                return None;
            }
            let last = self.last_unit[claim.account as usize];
            let stays = matches!(pool.policy, Policy::Linux { .. }) && last != NOBODY;
            let last = if stays { Units::one(last as usize) } else { Units::NONE };
            let mut holders: Vec<LaneId> = (0..pool.holder.len())
                .filter(|&unit| allowed.has(unit))
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
                        .map(|&(_, unit)| Units::one(unit as usize))
                        .fold(Units::NONE, BitOr::bitor);
                    let theirs = self.applicants[lane as usize].priority;
                    let held_since = self.held_since[lane as usize];
                    let order = (theirs, !units.meets(&last), Reverse(lead), Reverse(held_since), lane);
                    Some((order, units & allowed))
                })
                .collect();
            candidates.sort_unstable();
            for ((.., lane), units) in candidates {
                if available.count() >= need.units {
                    break;
                }
                available = available | units;
                victims.push(lane);
            }
            if available.count() < need.units {
                return None;
            }
        }
        Some(victims)
    }
}
