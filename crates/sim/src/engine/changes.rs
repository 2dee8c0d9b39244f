//! Changes of the router during a trial: task units go down and come up again, routes change.
//!
//! Changes precede all other events of their instant: a frame whose service ends then goes the new way, and a frame
//! that arrives then finds its task unit already down, or already up.

use std::collections::VecDeque;

use super::Engine;
use super::frames::Held;
use super::unit::State;
use crate::frame::Frame;
use crate::graph::{Graph, Router};
use crate::ledger::Ledger;
use crate::manager::{Kind, LaneId};
use crate::scenario::{Activation, Event, Scenario};
use crate::time::Span;

/// Pending changes, in order of time.
#[derive(Debug, Default)]
pub(super) struct Changes(VecDeque<Change>);

#[derive(Debug)]
struct Change {
    at: u64,
    node: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Down,
    Up,
    Reroute { router: Router, copies: Vec<u32> },
}

/// State of a task unit with outages: the number of present outages, and its queue size without one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outages {
    lasting: u32,
    capacity: usize,
}

impl Changes {
    /// The changes of a scenario.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut changes = Vec::new();
        for event in &scenario.run.events {
            let (task, from_ps, what) = match event {
                Event::Outage { task, from_ps, until_ps } => {
                    if let Some(until_ps) = until_ps {
                        changes.push(Change { at: Span::from_ps(*until_ps).0, node: *task as u32, what: What::Up });
                    }
                    (*task, *from_ps, What::Down)
                }
                Event::Reroute { task, at_ps, route, copies } => {
                    let router = Router::new(scenario, *task, route);
                    let copies = copies.iter().map(|&copy| copy as u32).collect();
                    (*task, *at_ps, What::Reroute { router, copies })
                }
            };
            changes.push(Change { at: Span::from_ps(from_ps).0, node: task as u32, what });
        }
        // Where two outages touch, the later begins before the earlier ends, so the task unit is not up between them.
        changes.sort_by_key(|change| (change.at, matches!(change.what, What::Up)));
        Self(changes.into())
    }

    pub(super) fn next_at(&self) -> Option<u64> {
        self.0.front().map(|change| change.at)
    }
}

impl Engine {
    /// Applies the next change.
    #[cold]
    pub(super) fn change(&mut self, graph: &mut Graph, ledger: &mut Ledger) {
        let Change { node, what, .. } = self.changes.0.pop_front().expect("a scheduled change is there");
        match what {
            What::Down => self.go_down(node, ledger),
            What::Up => self.come_up(node, ledger),
            What::Reroute { router, copies } => {
                graph.reroute(node, router, copies);
                self.look_ahead_anew(node, graph.next_of(node as usize), ledger);
            }
        }
        self.expect_change();
    }

    /// Schedules the next change.
    pub(super) fn expect_change(&mut self) {
        match self.changes.next_at() {
            Some(at) => self.calendar.schedule(self.change_slot, at, 0),
            None => self.calendar.cancel(self.change_slot),
        }
    }

    /// Takes a task unit down: it loses its queue and the frames in service, and has no room until it is up again.
    fn go_down(&mut self, node: u32, ledger: &mut Ledger) {
        let unit = self.units[node as usize].as_mut().expect("nodes that change have a unit");
        if unit.outages.lasting == 0 {
            unit.outages.capacity = std::mem::replace(&mut unit.capacity, 0);
        }
        unit.outages.lasting += 1;
        let (lanes, timer, thread) = (unit.lanes.clone(), unit.timer, unit.thread);
        unit.interrupts_on = true;
        let waiting = std::mem::take(&mut unit.queue);
        if unit.is_door {
            self.shut(node, ledger);
        }
        for held in waiting {
            ledger.wait(node as usize, self.frames[held].at, self.now);
            self.lose(node, held, ledger);
        }
        // Refused task units do not wait for a task unit that is down.
        self.notice_room(node);
        if let Some(timer) = timer {
            self.calendar.cancel(timer);
        }
        if let Some(thread) = thread {
            self.leave_thread(node, thread, ledger);
        } else {
            for lane in lanes {
                self.lose_what_is_served(lane, ledger);
                self.let_go(lane, ledger);
            }
        }
        self.dispatch(node, ledger);
    }

    /// Takes a task unit of a thread down: the thread continues with the others, if any is up.
    fn leave_thread(&mut self, node: u32, thread: u32, ledger: &mut Ledger) {
        let lane = self.threads[thread as usize].lane;
        let served = self.lanes[lane as usize].task == node && self.lose_what_is_served(lane, ledger);
        let members = self.threads[thread as usize].members.clone();
        let is_up = |engine: &mut Self, member: u32| engine.unit(member).outages.lasting == 0;
        if !members.iter().any(|&member| is_up(self, member)) {
            self.let_go(lane, ledger);
            return;
        }
        let state = self.lanes[lane as usize].state;
        match state {
            State::Working if served => {
                self.stop_work(lane, ledger);
                self.calendar.cancel(lane);
                self.poll_in_turn(lane, thread, 0.0, ledger);
            }
            State::Requesting | State::Stirring
                // A revoked thread requests its units for the frame of another member.
                if self.lanes[lane as usize].left.is_none()
                    && self.unit(node).activation != Activation::Polling
                    && !members.iter().any(|&member| self.can_go_on(member)) =>
            {
                self.let_go(lane, ledger);
            }
            _ => {}
        }
    }

    /// Brings a task unit up again, with an empty queue.
    fn come_up(&mut self, node: u32, ledger: &mut Ledger) {
        let unit = self.unit(node);
        unit.outages.lasting -= 1;
        if unit.outages.lasting > 0 {
            return;
        }
        unit.capacity = unit.outages.capacity;
        if unit.activation != Activation::Polling {
            return;
        }
        // It holds its units permanently again. Other members of its thread that stayed up may still hold them.
        unit.idle.clear();
        for lane in unit.lanes.clone() {
            if self.lanes[lane as usize].state == State::Idle {
                self.lanes[lane as usize].task = node;
                self.request(lane, ledger);
            }
        }
    }

    /// Drops the frames of a lane; returns whether there were any.
    fn lose_what_is_served(&mut self, lane: LaneId, ledger: &mut Ledger) -> bool {
        let holder = &mut self.lanes[lane as usize];
        let node = holder.task;
        let served = holder.frame.take();
        let batch = std::mem::take(&mut holder.batch);
        (holder.left, holder.polled) = (None, 0);
        for &held in &batch {
            ledger.wait(node as usize, self.frames[held].at, self.now);
        }
        for held in served.into_iter().chain(batch) {
            let frame = self.frames[held];
            self.take_promise_back(node, &frame);
            self.lose(node, held, ledger);
        }
        served.is_some()
    }

    fn lose(&mut self, node: u32, held: Held, ledger: &mut Ledger) {
        self.drop_units(held, ledger);
        let frame = self.frames.take(held);
        ledger.lose(node as usize, &Frame { at: self.now, ..frame });
    }

    /// Stops a lane: it gives its units back and requests none.
    fn let_go(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let (task, state) = (self.lanes[lane as usize].task, self.lanes[lane as usize].state);
        match state {
            State::Idle => return,
            State::Requesting => {
                self.managers.withdraw(lane, &self.claims[task as usize]);
                self.unit(task).requesting -= 1;
            }
            State::Stirring => {}
            State::Working => self.stop_work(lane, ledger),
            State::Waking => self.stop_waking(lane, ledger),
            State::Holding | State::Lingering => self.book_spinning(lane, self.now, ledger),
        }
        self.calendar.cancel(lane);
        if !matches!(state, State::Requesting | State::Stirring) {
            self.managers.take_back(lane, &self.claims[task as usize], self.now, Kind::Release);
        }
        self.lanes[lane as usize].interrupt_due = false;
        self.rest(lane);
    }
}
