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
//! What comes for a thread that is not blocked wakes nothing: it is found at the next turn (a driver suppresses its
//! notifications meanwhile). A polling thread does not block; it spins.

use super::Engine;
use super::unit::State;
use crate::ledger::Ledger;
use crate::manager::{Kind, LaneId};
use crate::scenario::Activation;
use crate::time::Span;

/// Task units that have one lane between them.
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
    /// A frame, or room for one, has come for a task unit of a thread.
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

    /// The thread of a lane turns to the next task unit that can go on and takes a batch from its queue; `extra` is
    /// work that comes first.
    pub(super) fn poll_in_turn(&mut self, lane: LaneId, thread: u32, extra: f64, ledger: &mut Ledger) {
        let Some(task) = self.turn(thread) else {
            self.lanes[lane as usize].polled = 0;
            if extra > 0.0 {
                // Woken, or switched to, in vain: that work is done all the same.
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

    /// The task unit of a thread whose turn it is: the next that can go on; none if none can.
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

    /// A batch of a thread is done: the next, unless others wait and its time is up.
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

    /// None of its task units can go on: a thread blocks, a polling one spins.
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
