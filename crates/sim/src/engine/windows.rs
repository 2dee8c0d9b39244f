//! Windows: frames request units at a door, carry them along, and give them back where the window ends.
//!
//! ```text
//!            arrival                  units, in order of arrival               end of service
//!   ┌──────┐ ──────► ┌──────────────┐ ─────────► ┌───────────────────────────┐ ─────────► on, without units
//!   │ door │         │ its queue    │            │ service at the door, then │
//!   └──────┘         └──────────────┘ ◄───────── │ all that is in the window │
//!                                       units    └───────────────────────────┘ ─────────► lost, without units
//! ```
//!
//! A door has a queue like every task unit and no lanes: its service delays each frame independently. The units of a
//! frame are stored by its place, which does not change while the frame carries units.

use std::collections::VecDeque;

use super::Engine;
use super::frames::Held;
use super::stations::Leaving;
use crate::frame::Frame;
use crate::ledger::Ledger;
use crate::manager::Kind;
use crate::scenario::Scenario;
use crate::windows::{carried, ends};

/// All windows of a router.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Whether there are any.
    pub(super) any: bool,
    /// By node; none where frames take no units along.
    doors: Vec<Option<Door>>,
    /// By node: whether frames give units back there.
    ends: Vec<bool>,
    pools: Vec<Pool>,
    /// Units in hand, by the place of a frame.
    carried: Vec<Vec<Carried>>,
}

#[derive(Debug, Clone, Copy)]
struct Door {
    pool: usize,
    units: usize,
    until: u32,
    /// Number of the group through which its frames leave.
    group: u32,
}

#[derive(Debug)]
struct Pool {
    free: usize,
    /// The door of each waiting frame, in order of arrival.
    waiting: VecDeque<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Carried {
    door: u32,
    since: u64,
}

impl Windows {
    /// The windows of a scenario; `groups` has the numbers of the groups that frames leave doors by.
    pub(super) fn new(scenario: &Scenario, groups: &[Option<u32>]) -> Self {
        let model = &scenario.model;
        let door = |(task, group): (_, &Option<u32>)| {
            let need = carried(task)?;
            Some(Door { pool: need.pool, units: need.units, until: need.until? as u32, group: (*group)? })
        };
        let mut doors: Vec<Option<Door>> = model.tasks.iter().zip(groups).map(door).collect();
        let mut ends = ends(model);
        doors.resize(groups.len(), None);
        ends.resize(groups.len(), false);
        let pools = model.pools.iter().map(|pool| Pool { free: pool.speed.len(), waiting: VecDeque::new() });
        Self { any: doors.iter().any(Option::is_some), doors, ends, pools: pools.collect(), carried: Vec::new() }
    }

    /// Whether a frame carries units.
    pub(super) fn is_carrying(&self, held: Held) -> bool {
        self.carried.get(held.index()).is_some_and(|carried| !carried.is_empty())
    }
}

impl Engine {
    /// A frame has come to the queue of a door.
    #[inline]
    pub(super) fn ask(&mut self, node: u32, ledger: &mut Ledger) {
        let Door { pool, .. } = self.windows.doors[node as usize].expect("it is a door");
        self.windows.pools[pool].waiting.push_back(node);
        self.managers.note(self.now, Kind::Request, node, pool as u32, None);
        self.let_in(pool, ledger);
    }

    /// Gives units to the frames that wait for them, in order of arrival: one that needs more is not overtaken.
    #[inline]
    fn let_in(&mut self, pool: usize, ledger: &mut Ledger) {
        loop {
            let Pool { free, waiting } = &mut self.windows.pools[pool];
            let Some(&node) = waiting.front() else { return };
            let door = self.windows.doors[node as usize].expect("doors wait");
            if *free < door.units {
                return;
            }
            *free -= door.units;
            waiting.pop_front();
            self.managers.note(self.now, Kind::Reply, node, pool as u32, None);
            self.admit(node, door, ledger);
        }
    }

    /// Starts the service of the frame that has waited longest at a door, after its grant.
    fn admit(&mut self, node: u32, door: Door, ledger: &mut Ledger) {
        let now = self.now;
        let unit = self.units[node as usize].as_mut().expect("doors have a queue");
        let held = unit.queue.pop_front().expect("a frame waits at the door");
        if !unit.refused.is_empty() {
            self.roomier.push(node);
        }
        let frame = &mut self.frames[held];
        let takes_ps = unit.service.draw_ps(frame.bytes) + unit.service.per_batch_ps();
        let at = now.saturating_add((takes_ps + 0.5) as u64);
        ledger.wait(node as usize, frame.at, now);
        ledger.hop(node, frame, frame.at, now);
        frame.waited += now - frame.at;
        frame.at = at;
        let index = held.index();
        if index >= self.windows.carried.len() {
            self.windows.carried.resize_with(index + 1, Vec::new);
        }
        self.windows.carried[index].push(Carried { door: node, since: now });
        if self.groups[door.group as usize].insert(at, held, node) {
            self.calendar.schedule(self.first_group_slot + door.group, at, self.priority[node as usize]);
        }
    }

    /// A frame leaves a node: it has been served there if that is a door, and gives back what it carried up to there.
    #[inline]
    pub(super) fn pass_window(&mut self, held: Held, node: u32, ledger: &mut Ledger) {
        if self.windows.doors[node as usize].is_some() {
            self.book_door(held, node, self.now, ledger);
        }
        if self.windows.ends[node as usize] {
            self.give_units_back(held, Some(node), ledger);
        }
    }

    /// A frame is lost: it gives back all that it carries.
    pub(super) fn drop_units(&mut self, held: Held, ledger: &mut Ledger) {
        if self.windows.is_carrying(held) {
            self.give_units_back(held, None, ledger);
        }
    }

    /// Gives back what a frame carried up to a node, or all that it has.
    fn give_units_back(&mut self, held: Held, until: Option<u32>, ledger: &mut Ledger) {
        let mut index = 0;
        while let Some(&Carried { door: node, since }) = self.in_hand(held).get(index) {
            let door = self.windows.doors[node as usize].expect("units come from doors");
            if until.is_some_and(|until| until != door.until) {
                index += 1;
                continue;
            }
            self.windows.carried[held.index()].remove(index);
            self.windows.pools[door.pool].free += door.units;
            ledger.hold(door.pool, door.units as u64, since, self.now);
            self.managers.note(self.now, Kind::Release, node, door.pool as u32, None);
            self.let_in(door.pool, ledger);
        }
    }

    fn in_hand(&self, held: Held) -> &[Carried] {
        self.windows.carried.get(held.index()).map_or(&[], Vec::as_slice)
    }

    fn book_door(&self, held: Held, node: u32, until: u64, ledger: &mut Ledger) {
        if let Some(carried) = self.in_hand(held).iter().rev().find(|carried| carried.door == node) {
            ledger.work(node as usize, carried.since, until);
        }
    }

    /// Takes a door down: its queue and the frames in service are lost.
    #[cold]
    pub(super) fn shut(&mut self, node: u32, ledger: &mut Ledger) {
        let Some(Door { pool, group, .. }) = self.windows.doors[node as usize] else { return };
        self.windows.pools[pool].waiting.retain(|&other| other != node);
        let served = std::mem::take(&mut self.groups[group as usize].leaving);
        self.calendar.cancel(self.first_group_slot + group);
        for Leaving { held, .. } in served {
            self.book_door(held, node, self.now, ledger);
            self.drop_units(held, ledger);
            let frame = self.frames.take(held);
            ledger.lose(node as usize, &Frame { at: self.now, ..frame });
        }
    }

    /// Books the units in hand, and the service at doors, when the trial ends.
    pub(super) fn close_windows(&self, end: u64, ledger: &mut Ledger) {
        for &Carried { door, since } in self.windows.carried.iter().flatten() {
            let Door { pool, units, .. } = self.windows.doors[door as usize].expect("units come from doors");
            ledger.hold(pool, units as u64, since, end);
        }
        for door in self.windows.doors.iter().flatten() {
            for leaving in &self.groups[door.group as usize].leaving {
                self.book_door(leaving.held, leaving.node, end, ledger);
            }
        }
    }
}
