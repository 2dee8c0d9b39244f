//! The claims of task units on their managers.

use std::ops::BitOr;

use super::units::Units;
use crate::planes::allowed_units;
use crate::scenario::{Activation, Model, Need, Policy};

/// The units that a lane requests; fixed for each task unit.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Units by pool, ascending by pool.
    pub needs: Vec<Need>,
    /// Units it may use, as a bit set, per need.
    pub(super) allowed: Vec<Units>,
    /// Larger is more urgent.
    pub priority: i32,
    pub(super) weight: f64,
    /// Task unit.
    pub task: u32,
    /// The first task unit of its thread: service, switches and migrations are those of the thread.
    pub(super) account: u32,
    /// Whether one of its pools is under the policy `linux`.
    pub(super) linux: bool,
    /// Whether it interrupts the thread at its unit and runs in its context, without a switch there or back.
    pub(super) borrows: bool,
}

impl Claim {
    /// The claim of task unit `task` of a model.
    #[must_use]
    pub fn new(model: &Model, task: usize) -> Self {
        let unit = &model.tasks[task];
        let mut needs = unit.needs.clone();
        let first = needs.first().map(|need| need.pool);
        needs.sort_by_key(|need| need.pool);
        let allowed = needs
            .iter()
            .map(|need| {
                let units = model.pools[need.pool].speed.len();
                let list = if Some(need.pool) == first { allowed_units(unit, units) } else { (0..units).collect() };
                list.into_iter().map(Units::one).fold(Units::NONE, BitOr::bitor)
            })
            .collect();
        let first = unit.thread.and_then(|_| model.tasks.iter().position(|other| other.thread == unit.thread));
        let account = first.unwrap_or(task) as u32;
        let linux = needs.iter().any(|need| matches!(model.pools[need.pool].policy, Policy::Linux { .. }));
        let borrows = linux && matches!(unit.activation, Activation::Interrupt { .. });
        let task = task as u32;
        Self { needs, allowed, priority: unit.priority, weight: unit.weight, task, account, linux, borrows }
    }

    /// The claim of a node that works on a processor of its own (Meyer et al. 2014: ⊗), such as a port.
    #[must_use]
    pub fn nothing(node: usize) -> Self {
        let (task, account) = (node as u32, node as u32);
        Self { needs: vec![], allowed: vec![], priority: 0, weight: 1.0, task, account, linux: false, borrows: false }
    }
}
