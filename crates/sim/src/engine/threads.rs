//! Threads: one lane that serves the queues of several task units in turn.
//!
//! ```text
//!                    frame or room              awake                 grant
//!   ┌─────────┐ ─────────────────► ┌──────────┐ ─────► ┌────────────┐ ──────► ┌───────────────────────────────┐
//!   │ blocked │                    │ stirring │        │ requesting │         │ poll of a, poll of b, poll of c … │
//!   └─────────┘ ◄───────────────── └──────────┘        └────────────┘ ◄────── └───────────────────────────────┘
//!                none can go on                                       revoke
//! ```
//!
//! A frame for a thread that is not blocked wakes nothing: the thread finds it at its next turn (as a driver suppresses
//! notifications while it polls). A polling thread does not block; it spins.

use super::Engine;
use super::unit::State;
use crate::ledger::Ledger;
use crate::manager::{Kind, LaneId};
use crate::scenario::Activation;
use crate::time::Span;

/// Task units that share one lane.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) lane: LaneId,
    pub(super) members: Vec<u32>,
    /// The member whose turn is next.
    next: usize,
}

impl Thread {
    pub(super) fn new(lane: LaneId) -> Self {
        Self { lane, members: Vec::new(), next: 0 }
    }
}

impl Engine {
    /// Wakes a thread when a frame, or room for one, has come for one of its task units.
    pub(super) fn wake_thread(&mut self, node: u32, thread: u32, ledger: &mut Ledger) {
        let lane = self.threads[thread as usize].lane;
        let state = self.lanes[lane as usize].state;
        if !matches!(state, State::Idle | State::Holding) || !self.can_go_on(node) {
            return;
        }
        let turn = &mut self.threads[thread as usize];
        turn.next = turn.members.iter().position(|&member| member == node).expect("it is a member");
        if state == State::Holding {
            self.book_spinning(lane, self.now, ledger);
            self.poll(lane, 0.0, ledger);
            return;
        }
        let holder = &mut self.lanes[lane as usize];
        holder.task = node;
        holder.interrupt_due = true;
        ledger.interrupt(node as usize);
        match self.unit(node).wakeup.as_mut().map(|wakeup| Span::from_ps(wakeup.draw_ps()).0) {
            Some(delay) => self.hold(lane, State::Stirring, self.now + delay),
            None => self.request(lane, ledger),
        }
    }

    /// Turns the thread of a lane to the next runnable task unit and takes a batch from its queue; `extra` is work that
    /// comes first.
    pub(super) fn poll_in_turn(&mut self, lane: LaneId, thread: u32, extra: f64, ledger: &mut Ledger) {
        let Some(task) = self.turn(thread) else {
            self.lanes[lane as usize].polled = 0;
            if extra > 0.0 {
                // A vain wake-up or switch costs its work all the same.
                self.work(lane, extra);
            } else {
                self.end_of_turns(lane, ledger);
            }
            return;
        };
        let unit = self.unit(task);
        let most = if is_exhaustive(&unit.activation) { 1 } else { unit.batch };
        let takes = self.take_room(task, most);
        let unit = self.units[task as usize].as_mut().expect("event nodes have a unit");
        let holder = &mut self.lanes[lane as usize];
        let frame = unit.queue.pop_front().expect("it can go on");
        for _ in 1..takes {
            holder.batch.extend(unit.queue.pop_front());
        }
        holder.polled = takes;
        holder.task = task;
        let extra = extra + unit.service.per_batch_ps();
        self.notice_room(task);
        ledger.poll(task as usize);
        self.serve(lane, frame, extra, ledger);
    }

    /// The next runnable task unit of a thread in its order of turns, if any.
    fn turn(&mut self, thread: u32) -> Option<u32> {
        let Thread { next, ref members, .. } = self.threads[thread as usize];
        let count = members.len();
        for position in (next..count).chain(0..next) {
            let member = self.threads[thread as usize].members[position];
            if self.can_go_on(member) {
                self.threads[thread as usize].next = if position + 1 == count { 0 } else { position + 1 };
                return Some(member);
            }
        }
        None
    }

    /// After a batch: starts the next one, unless others wait and the quantum is over.
    #[inline]
    pub(super) fn end_of_batch(&mut self, lane: LaneId, thread: u32, ledger: &mut Ledger) {
        let holder = &self.lanes[lane as usize];
        if self.now >= holder.quantum_end && self.managers.is_contested(&self.claims[holder.task as usize]) {
            let polls = self.unit_of(lane).activation == Activation::Polling;
            let able = |position: usize| self.threads[thread as usize].members[position];
            let members: Vec<u32> = (0..self.threads[thread as usize].members.len()).map(able).collect();
            if polls || members.into_iter().any(|member| self.can_go_on(member)) {
                self.give_back(lane, Kind::Revoke, true, ledger);
                return;
            }
        }
        self.poll_in_turn(lane, thread, 0.0, ledger);
    }

    /// Blocks a thread without a runnable task unit; a polling thread spins.
    fn end_of_turns(&mut self, lane: LaneId, ledger: &mut Ledger) {
        if self.unit_of(lane).activation == Activation::Polling {
            self.spin(lane);
        } else {
            self.give_back(lane, Kind::Release, false, ledger);
        }
    }

    fn unit_of(&self, lane: LaneId) -> &super::unit::Unit {
        let task = self.lanes[lane as usize].task;
        self.units[task as usize].as_ref().expect("event nodes have a unit")
    }
}

/// Whether a poll takes frames one by one, as long as there are any.
pub(super) fn is_exhaustive(activation: &Activation) -> bool {
    matches!(activation, Activation::Interrupt { exhaustive: true, .. } | Activation::Thread { exhaustive: true, .. })
}
