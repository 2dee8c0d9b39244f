//! Lanes: what the threads of a task unit do between a frame's arrival and its departure.
//!
//! ```text
//!            arrival                grant (REP)              end of frame
//!   ┌──────┐ ──────► ┌────────────┐ ─────────► ┌─────────┐ ───────────────► next frame of the batch
//!   │ idle │         │ requesting │            │ working │
//!   └──────┘ ◄────── └────────────┘ ◄───────── └─────────┘ ───────────────► release (REL)
//!                       revoke (REV), the rest of the work is kept
//! ```

use super::Engine;
use super::frames::Held;
use super::threads::is_exhaustive;
use super::unit::State;
use crate::graph::Graph;
use crate::ledger::Ledger;
use crate::manager::{Kind, LaneId, Terms};
use crate::scenario::Activation;

impl Engine {
    #[expect(
        clippy::inline_always,
        reason = "once per arrival; the second caller is for frames that were promised room"
    )]
    #[inline(always)]
    pub(super) fn queue_up(&mut self, node: u32, held: Held, ledger: &mut Ledger) {
        let unit = self.units[node as usize].as_mut().expect("event nodes have a unit");
        if unit.queue.len() >= unit.capacity {
            self.turn_away(node, held, ledger);
            return;
        }
        unit.queue.push_back(held);
        self.wake(node, true, ledger);
        let unit = self.units[node as usize].as_mut().expect("event nodes have a unit");
        if unit.places == 0
            && let Some(waits) = unit.queue.pop_back()
        {
            self.turn_away(node, waits, ledger);
        }
    }

    /// Drops a frame that finds no room.
    pub(super) fn turn_away(&mut self, node: u32, held: Held, ledger: &mut Ledger) {
        self.drop_units(held, ledger);
        let frame = self.frames.take(held);
        ledger.lose(node as usize, &frame);
    }

    /// Sends REQ, answered by REP at once where units are free or can be revoked.
    #[inline]
    pub(super) fn request(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        if self.claims[task as usize].needs.is_empty() {
            self.granted(lane, Terms::OWN, ledger);
            return;
        }
        self.managers.request(&self.claims[task as usize], self.now);
        if let Some(terms) = self.managers.try_grant(lane, &self.claims[task as usize], self.now, ledger) {
            self.granted(lane, terms, ledger);
            return;
        }
        if !self.lingering.is_empty() {
            let relieved = self.relieve(task, ledger);
            if !relieved.is_empty() {
                self.request_again(lane, &relieved, ledger);
                return;
            }
        }
        self.request_from_others(lane, ledger);
    }

    /// Grants the units that lingering lanes gave up: first to the lane, the rest to others.
    #[cold]
    fn request_again(&mut self, lane: LaneId, relieved: &[u32], ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        match self.managers.try_grant(lane, &self.claims[task as usize], self.now, ledger) {
            Some(terms) => self.granted(lane, terms, ledger),
            None => self.request_from_others(lane, ledger),
        }
        for &other in relieved {
            self.dispatch(other, ledger);
        }
    }

    /// Revokes units for a lane where that is allowed; otherwise the lane waits.
    fn request_from_others(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        if let Some(victims) = self.managers.victims(&self.claims[task as usize], self.now) {
            // The revoked lanes may resume at once where another unit is free.
            let others: Vec<u32> = victims.iter().map(|&victim| self.lanes[victim as usize].task).collect();
            for victim in victims {
                self.revoke(victim, ledger);
            }
            if let Some(terms) = self.managers.try_grant(lane, &self.claims[task as usize], self.now, ledger) {
                self.granted(lane, terms, ledger);
                for other in others {
                    self.dispatch(other, ledger);
                }
                return;
            }
        }
        self.line_up(lane, false);
    }

    /// Enqueues a lane for its units; a revoked lane may come before its equals.
    pub(super) fn line_up(&mut self, lane: LaneId, revoked: bool) {
        let task = self.lanes[lane as usize].task;
        self.lanes[lane as usize].state = State::Requesting;
        self.unit(task).requesting += 1;
        self.managers.enqueue(lane, &self.claims[task as usize], revoked);
    }

    #[inline]
    pub(super) fn granted(&mut self, lane: LaneId, terms: Terms, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        holder.slowness = terms.slowness;
        if terms.waking_ps > 0 {
            self.rouse(lane, terms);
        } else {
            self.begin(lane, terms.overhead_ps, ledger);
        }
    }

    /// Starts a lane whose units are awake: it resumes revoked work, or polls.
    #[inline]
    pub(super) fn begin(&mut self, lane: LaneId, overhead_ps: u64, ledger: &mut Ledger) {
        let now = self.now;
        let holder = &mut self.lanes[lane as usize];
        let mut work = overhead_ps as f64 / holder.slowness;
        let unit = self.units[holder.task as usize].as_ref().expect("event nodes have a unit");
        holder.quantum_end = unit.quantum.map_or(u64::MAX, |quantum| now.saturating_add(quantum));
        if let Some(left) = holder.left.take() {
            self.resume(lane, work + left);
            return;
        }
        if holder.interrupt_due {
            holder.interrupt_due = false;
            match unit.activation {
                // S6: the interrupt costs, then the poll finds its frames; those of its cost are among them.
                Activation::Interrupt { cost_ps, exhaustive: false, .. } if cost_ps > 0.0 => {
                    holder.polled = 0;
                    self.work(lane, work + cost_ps);
                    return;
                }
                Activation::Interrupt { cost_ps, .. } | Activation::Thread { cost_ps, .. } => work += cost_ps,
                Activation::Dedicated | Activation::Polling => {}
            }
        }
        self.poll(lane, work, ledger);
    }

    /// Takes a batch from the queue and starts on it; `extra` is work that comes first.
    #[inline]
    pub(super) fn poll(&mut self, lane: LaneId, extra: f64, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        if let Some(thread) = holder.thread {
            self.poll_in_turn(lane, thread, extra, ledger);
            return;
        }
        let unit = self.units[holder.task as usize].as_mut().expect("event nodes have a unit");
        let Some(frame) = unit.queue.pop_front() else {
            holder.polled = 0;
            self.end_of_poll(lane, ledger);
            return;
        };
        let exhaustive = matches!(unit.activation, Activation::Interrupt { exhaustive: true, .. });
        let more = if exhaustive { 0 } else { unit.queue.len().min(unit.batch - 1) };
        for _ in 0..more {
            holder.batch.extend(unit.queue.pop_front());
        }
        holder.polled = more + 1;
        let extra = extra + unit.service.per_batch_ps();
        if !unit.refused.is_empty() {
            self.roomier.push(holder.task);
        }
        ledger.poll(holder.task as usize);
        self.serve(lane, frame, extra, ledger);
    }

    #[inline]
    pub(super) fn serve(&mut self, lane: LaneId, held: Held, extra: f64, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        let task = holder.task as usize;
        let frame = &mut self.frames[held];
        frame.waited += self.now - frame.at;
        ledger.wait(task, frame.at, self.now);
        ledger.hop(task as u32, frame, frame.at, self.now);
        let work = extra + self.units[task].as_mut().expect("event nodes have a unit").service.draw_ps(frame.bytes);
        holder.frame = Some(held);
        holder.start = self.now;
        self.work(lane, work);
    }

    /// Puts the lane's units to work for `work` picoseconds at speed 1, interruptions apart.
    #[expect(clippy::inline_always, reason = "once per frame; the second caller is for threads woken in vain")]
    #[inline(always)]
    pub(super) fn work(&mut self, lane: LaneId, work: f64) {
        let holder = &mut self.lanes[lane as usize];
        holder.factor = self.managers.begin_work(&self.claims[holder.task as usize]);
        let unit = self.units[holder.task as usize].as_mut().expect("event nodes have a unit");
        let takes = work * holder.slowness * holder.factor;
        let with_interruptions = takes + unit.service.interruptions_ps(takes);
        self.work_for(lane, with_interruptions);
    }

    /// Resumes revoked work, whose remainder includes its interruptions.
    fn resume(&mut self, lane: LaneId, work: f64) {
        let holder = &mut self.lanes[lane as usize];
        holder.factor = self.managers.begin_work(&self.claims[holder.task as usize]);
        let takes = work * holder.slowness * holder.factor;
        self.work_for(lane, takes);
    }

    #[inline]
    fn work_for(&mut self, lane: LaneId, takes_ps: f64) {
        let holder = &mut self.lanes[lane as usize];
        holder.state = State::Working;
        holder.work_from = self.now;
        holder.work_end = self.now.saturating_add((takes_ps + 0.5) as u64);
        let at = holder.work_end.min(holder.quantum_end.max(self.now));
        let priority = self.units[holder.task as usize].as_ref().expect("event nodes have a unit").priority;
        self.calendar.schedule(lane, at, priority);
    }

    #[inline]
    pub(super) fn stop_work(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        ledger.work(holder.task as usize, holder.work_from, self.now);
        self.managers.end_work(&self.claims[holder.task as usize]);
    }

    /// Handles the end of a frame's service.
    #[inline]
    pub(super) fn finish(&mut self, lane: LaneId, graph: &mut Graph, ledger: &mut Ledger) -> Option<(Held, u32)> {
        self.stop_work(lane, ledger);
        let holder = &mut self.lanes[lane as usize];
        let Some(served) = holder.frame.take() else {
            self.after_no_frame(lane, ledger);
            return None;
        };
        let moved = self.move_on(lane, served, graph, ledger);
        let holder = &mut self.lanes[lane as usize];
        if let Some(next) = holder.batch.pop_front() {
            self.serve(lane, next, 0.0, ledger);
        } else if let Some(next) = self.drained(lane) {
            self.serve(lane, next, 0.0, ledger);
        } else {
            self.end_of_poll(lane, ledger);
            self.cancel_if_given_up(lane);
        }
        moved
    }

    /// Handles the end of work without a frame: that of an interrupt, or of a thread woken in vain.
    fn after_no_frame(&mut self, lane: LaneId, ledger: &mut Ledger) {
        if self.lanes[lane as usize].thread.is_some() {
            self.end_of_poll(lane, ledger);
        } else {
            self.poll(lane, 0.0, ledger);
        }
        self.cancel_if_given_up(lane);
    }

    /// Cancels the event of a lane that works no more. Most lanes continue at once and have replaced theirs, so a
    /// cancellation would be wasted.
    #[inline]
    fn cancel_if_given_up(&mut self, lane: LaneId) {
        if matches!(self.lanes[lane as usize].state, State::Idle | State::Requesting) {
            self.calendar.cancel(lane);
        }
    }

    /// Passes on the frame of a lane. A frame for another task unit of the same thread arrives at once, without waking
    /// the thread.
    #[inline]
    fn move_on(&mut self, lane: LaneId, held: Held, graph: &mut Graph, ledger: &mut Ledger) -> Option<(Held, u32)> {
        let holder = &self.lanes[lane as usize];
        let task = holder.task;
        if self.is_port[task as usize] {
            let start = holder.start;
            let frame = self.frames.take(held);
            ledger.forward(&frame, 0, start, self.now);
            return None;
        }
        let thread = holder.thread;
        if self.windows.any {
            self.pass_window(held, task, ledger);
        }
        let frame = &mut self.frames[held];
        frame.at = self.now;
        let next = if graph.makes_copies {
            self.next_with_copies(held, task, graph, ledger)?
        } else {
            graph.onward(task, frame.flow, frame.seq)
        };
        let Some(thread) = thread else { return Some((held, next)) };
        let node = self.with_promise(task, next);
        if self.threads[thread as usize].members.contains(&next) {
            self.hand_over(node, held, ledger);
            return None;
        }
        Some((held, node))
    }

    /// The next frame of a poll that also takes the frames that arrived during it.
    #[inline]
    fn drained(&mut self, lane: LaneId) -> Option<Held> {
        let holder = &mut self.lanes[lane as usize];
        let unit = self.units[holder.task as usize].as_mut().expect("event nodes have a unit");
        if !is_exhaustive(&unit.activation) || holder.polled == 0 || holder.polled >= unit.batch {
            return None;
        }
        let task = holder.task;
        if holder.thread.is_some() && (!self.can_go_on(task) || self.take_room(task, 1) == 0) {
            return None;
        }
        let frame = self.unit(task).queue.pop_front()?;
        self.lanes[lane as usize].polled += 1;
        self.notice_room(task);
        Some(frame)
    }

    /// Sends REL or REV, then serves the waiting lanes; with `again` the lane requests its units anew, behind the
    /// others.
    #[inline]
    pub(super) fn give_back(&mut self, lane: LaneId, kind: Kind, again: bool, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        let claim = &self.claims[task as usize];
        if claim.needs.is_empty() {
            if again {
                self.poll(lane, 0.0, ledger);
            } else {
                self.rest(lane);
            }
            return;
        }
        self.managers.take_back(lane, claim, self.now, kind);
        if again {
            self.managers.request(claim, self.now);
            if !self.managers.is_contested(claim)
                && let Some(terms) = self.managers.try_grant(lane, claim, self.now, ledger)
            {
                self.granted(lane, terms, ledger);
                return;
            }
            self.line_up(lane, false);
        } else {
            self.rest(lane);
        }
        self.dispatch(task, ledger);
    }

    #[inline]
    pub(super) fn rest(&mut self, lane: LaneId) {
        let holder = &mut self.lanes[lane as usize];
        holder.state = State::Idle;
        let task = holder.task;
        if holder.thread.is_none() {
            self.unit(task).idle.push(lane);
        }
    }

    /// Serves the waiting lists of all pools that a task unit uses.
    #[inline]
    pub(super) fn dispatch(&mut self, task: u32, ledger: &mut Ledger) {
        for i in 0..self.claims[task as usize].needs.len() {
            let pool = self.claims[task as usize].needs[i].pool;
            while let Some(lane) = self.managers.next_waiting(pool, &self.claims, &self.task_of) {
                let owner = self.lanes[lane as usize].task;
                self.unit(owner).requesting -= 1;
                let terms = self
                    .managers
                    .try_grant(lane, &self.claims[owner as usize], self.now, ledger)
                    .expect("a lane that fits can be granted");
                self.granted(lane, terms, ledger);
            }
        }
    }

    /// REV: the lane keeps the rest of its work and waits again.
    pub(super) fn revoke(&mut self, lane: LaneId, ledger: &mut Ledger) {
        match self.lanes[lane as usize].state {
            State::Working => {
                self.stop_work(lane, ledger);
                let holder = &mut self.lanes[lane as usize];
                holder.left = Some((holder.work_end - self.now) as f64 / (holder.slowness * holder.factor));
            }
            State::Waking => self.stop_waking(lane, ledger),
            State::Holding | State::Lingering => self.book_spinning(lane, self.now, ledger),
            State::Idle | State::Requesting | State::Stirring => {}
        }
        self.calendar.cancel(lane);
        let task = self.lanes[lane as usize].task;
        self.managers.take_back(lane, &self.claims[task as usize], self.now, Kind::Revoke);
        self.line_up(lane, true);
    }

    /// Handles the end of a quantum.
    pub(super) fn expire(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        if self.managers.is_contested(&self.claims[task as usize]) {
            self.revoke(lane, ledger);
            self.dispatch(task, ledger);
            return;
        }
        let unit = self.units[task as usize].as_ref().expect("event nodes have a unit");
        let (quantum, priority) = (unit.quantum.expect("only quanta expire"), unit.priority);
        let holder = &mut self.lanes[lane as usize];
        holder.quantum_end = self.now.saturating_add(quantum);
        self.calendar.schedule(lane, holder.work_end.min(holder.quantum_end), priority);
    }
}
