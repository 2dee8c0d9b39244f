//! Activation (S6): when a lane requests its units, what follows a poll, and how units wake up.
//!
//! ```text
//!              frame                 awake                  short poll                time is up
//!   ┌────────┐ ─────► ┌────────┐ ──────────► ┌─────────┐ ─────────────► ┌───────────┐ ──────────► asleep again,
//!   │ asleep │        │ waking │             │ polling │ ◄───────────── │ lingering │             interrupts on
//!   └────────┘        └────────┘             └─────────┘     frame      └───────────┘
//! ```
//!
//! A lingering lane holds its units and polls: a frame that arrives meanwhile is served at once, without an interrupt.
//! The lane gives its units up as soon as another lane requests one of them.

use super::Engine;
use super::unit::State;
use crate::ledger::Ledger;
use crate::manager::{Kind, LaneId, Terms};
use crate::scenario::Activation;
use crate::time::Span;

impl Engine {
    /// Ensures that the frames of a queue are served; `asleep` unless its task unit worked until now.
    #[inline]
    pub(super) fn wake(&mut self, node: u32, asleep: bool, ledger: &mut Ledger) {
        let now = self.now;
        let unit = self.units[node as usize].as_mut().expect("event nodes have a unit");
        if let Some(thread) = unit.thread {
            self.wake_thread(node, thread, ledger);
            return;
        }
        match &unit.activation {
            Activation::Thread { .. } => {}
            Activation::Dedicated => {
                if unit.is_door {
                    self.ask(node, ledger);
                } else if unit.requesting < unit.queue.len()
                    && let Some(lane) = unit.idle.pop()
                {
                    self.request(lane, ledger);
                }
            }
            Activation::Polling => self.find(node, State::Holding, ledger),
            Activation::Interrupt { moderation_ps, .. } => {
                if unit.interrupts_on {
                    unit.interrupts_on = false;
                    let raised = unit
                        .last_interrupt
                        .map_or(now, |last| last.saturating_add(Span::from_ps(*moderation_ps).0).max(now));
                    unit.last_interrupt = Some(raised);
                    let due = match &mut unit.wakeup {
                        Some(wakeup) if asleep || raised > now => {
                            raised.saturating_add(Span::from_ps(wakeup.draw_ps()).0)
                        }
                        _ => raised,
                    };
                    let (timer, priority) = (unit.timer.expect("interrupt units have a timer"), unit.priority);
                    self.calendar.schedule(timer, due, priority);
                } else if !self.lingering.is_empty() {
                    self.find(node, State::Lingering, ledger);
                }
            }
        }
    }

    /// Lets a lane of the node that spins in this state, if any, find the frame that arrived.
    #[inline]
    fn find(&mut self, node: u32, state: State, ledger: &mut Ledger) {
        let mut lanes = self.unit(node).lanes.clone();
        if let Some(lane) = lanes.find(|&lane| self.lanes[lane as usize].state == state) {
            self.book_spinning(lane, self.now, ledger);
            self.poll(lane, 0.0, ledger);
        }
    }

    pub(super) fn interrupt(&mut self, slot: u32, ledger: &mut Ledger) {
        self.calendar.cancel(slot);
        let task = self.timer_task[slot as usize - self.lanes.len()];
        let unit = self.unit(task);
        let lane = unit.idle.pop().expect("an interrupt finds its lane idle");
        self.lanes[lane as usize].interrupt_due = true;
        ledger.interrupt(task as usize);
        self.request(lane, ledger);
    }

    /// After a batch: continues, gives the units back, or holds them.
    #[inline]
    pub(super) fn end_of_poll(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let (task, polled, quantum_end) = {
            let holder = &self.lanes[lane as usize];
            if let Some(thread) = holder.thread {
                self.end_of_batch(lane, thread, ledger);
                return;
            }
            (holder.task, holder.polled, holder.quantum_end)
        };
        let claim = &self.claims[task as usize];
        let contested = self.managers.is_contested(claim);
        let unit = self.units[task as usize].as_mut().expect("event nodes have a unit");
        let more = unit.queue.len() > unit.requesting;
        match unit.activation {
            Activation::Polling => {
                if contested && self.now >= quantum_end {
                    self.give_back(lane, Kind::Revoke, true, ledger);
                } else if more {
                    self.poll(lane, 0.0, ledger);
                } else {
                    self.spin(lane);
                }
            }
            Activation::Dedicated | Activation::Thread { .. } => {
                self.give_back(lane, Kind::Release, more, ledger);
            }
            Activation::Interrupt { budget, .. } if polled >= budget => {
                self.give_back(lane, Kind::Release, true, ledger);
            }
            Activation::Interrupt { linger_ps, .. } if linger_ps > 0.0 && !contested => {
                if more {
                    self.poll(lane, 0.0, ledger);
                } else {
                    self.linger(lane, Span::from_ps(linger_ps).0);
                }
            }
            Activation::Interrupt { .. } => {
                unit.interrupts_on = true;
                self.give_back(lane, Kind::Release, false, ledger);
                if !self.unit(task).queue.is_empty() {
                    self.wake(task, false, ledger);
                }
            }
        }
    }

    /// Lets an idle lane hold its units and poll, permanently or until its quantum is over.
    pub(super) fn spin(&mut self, lane: LaneId) {
        let holder = &mut self.lanes[lane as usize];
        holder.state = State::Holding;
        holder.work_from = self.now;
        self.calendar.cancel(lane);
        if holder.quantum_end < u64::MAX {
            // Spinning uses up the quantum like work does.
            let at = holder.quantum_end.max(self.now + 1);
            holder.work_end = u64::MAX;
            let task = holder.task;
            let priority = self.unit(task).priority;
            self.calendar.schedule(lane, at, priority);
        }
    }

    /// Lets an idle lane hold its units and poll for its linger time.
    fn linger(&mut self, lane: LaneId, for_ps: u64) {
        let until = self.now.saturating_add(for_ps);
        self.lingering.push(lane);
        self.hold(lane, State::Lingering, until);
    }

    /// Wakes the sleeping units of a grant, all together, while the frame waits.
    pub(super) fn rouse(&mut self, lane: LaneId, terms: Terms) {
        let task = self.lanes[lane as usize].task;
        self.lanes[lane as usize].overhead_ps = terms.overhead_ps;
        // Its frame is reserved, as if it still waited for its grant.
        self.unit(task).requesting += 1;
        self.hold(lane, State::Waking, self.now + terms.waking_ps);
    }

    pub(super) fn hold(&mut self, lane: LaneId, state: State, until: u64) {
        let holder = &mut self.lanes[lane as usize];
        (holder.state, holder.work_from, holder.work_end) = (state, self.now, until);
        let priority = self.units[holder.task as usize].as_ref().expect("event nodes have a unit").priority;
        self.calendar.schedule(lane, until, priority);
    }

    /// Ends a wake-up of a lane's units or thread, or its lingering.
    pub(super) fn end_rest(&mut self, lane: LaneId, ledger: &mut Ledger) {
        self.calendar.cancel(lane);
        match self.lanes[lane as usize].state {
            State::Waking => {
                self.stop_waking(lane, ledger);
                let overhead_ps = self.lanes[lane as usize].overhead_ps;
                self.begin(lane, overhead_ps, ledger);
            }
            State::Stirring => self.request(lane, ledger),
            _ => {
                self.book_spinning(lane, self.now, ledger);
                let task = self.lanes[lane as usize].task;
                self.unit(task).interrupts_on = true;
                self.give_back(lane, Kind::Release, false, ledger);
            }
        }
    }

    /// Lets lanes give up the units on which they linger and which a task unit requests; returns their task units.
    pub(super) fn relieve(&mut self, task: u32, ledger: &mut Ledger) -> Vec<u32> {
        let mut relieved = Vec::new();
        for index in (0..self.lingering.len()).rev() {
            let lane = self.lingering[index];
            if !self.managers.holds_what_would_do(lane, &self.claims[task as usize]) {
                continue;
            }
            self.book_spinning(lane, self.now, ledger);
            self.calendar.cancel(lane);
            let owner = self.lanes[lane as usize].task;
            self.unit(owner).interrupts_on = true;
            self.managers.take_back(lane, &self.claims[owner as usize], self.now, Kind::Release);
            self.rest(lane);
            relieved.push(owner);
        }
        relieved
    }

    /// A lane's units stop waking up, awake or revoked.
    pub(super) fn stop_waking(&mut self, lane: LaneId, ledger: &mut Ledger) {
        self.book_waking(lane, self.now, ledger);
        let task = self.lanes[lane as usize].task;
        self.unit(task).requesting -= 1;
    }

    /// Books that a lane's units woke up until now.
    pub(super) fn book_waking(&self, lane: LaneId, until: u64, ledger: &mut Ledger) {
        let holder = &self.lanes[lane as usize];
        for need in &self.claims[holder.task as usize].needs {
            ledger.waking(need.pool, need.units as u64, holder.work_from, until);
        }
    }

    /// Books that a lane spun until now, and ends its lingering.
    #[inline]
    pub(super) fn book_spinning(&mut self, lane: LaneId, until: u64, ledger: &mut Ledger) {
        let holder = &self.lanes[lane as usize];
        ledger.spin(holder.task as usize, holder.work_from, until);
        if holder.state == State::Lingering {
            self.lingering.retain(|&other| other != lane);
        }
    }
}
