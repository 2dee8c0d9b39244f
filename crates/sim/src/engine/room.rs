//! Room ahead: a task unit that holds back takes no frame for which there is none at its next node.
//!
//! Room is the free part of the next node's queue, less the frames *promised* to it: those that other task units which
//! hold back have taken for it and still work on. A refused task unit is remembered there and woken when that queue
//! shrinks, in order of refusal.

use super::frames::Held;
use super::{Engine, PROMISED};
use crate::frame::Frame;
use crate::graph::{EXIT, Next};
use crate::ledger::Ledger;

impl Engine {
    /// Whether a task unit has a frame and may take it; otherwise it is woken when it may.
    pub(super) fn can_go_on(&mut self, task: u32) -> bool {
        let unit = self.units[task as usize].as_ref().expect("event nodes have a unit");
        let Some(head) = unit.queue.front() else { return false };
        let Some(next) = unit.ahead.as_ref().and_then(|ahead| node_ahead(ahead, &self.frames[*head])) else {
            return true;
        };
        if self.room(next) > 0 {
            return true;
        }
        let unit = self.unit(task);
        if !unit.is_refused {
            unit.is_refused = true;
            self.unit(next).refused.push(task);
        }
        false
    }

    /// How many frames, at most `most`, a task unit may take from the head of its queue; they are promised.
    pub(super) fn take_room(&mut self, task: u32, most: usize) -> usize {
        let unit = self.units[task as usize].as_mut().expect("event nodes have a unit");
        let waiting = unit.queue.len().min(most);
        let Some(ahead) = unit.ahead.take() else { return waiting };
        let takes = match &ahead {
            Next::Fixed(EXIT) => waiting,
            &Next::Fixed(next) if !self.makes_copies => {
                let takes = waiting.min(self.room(next));
                self.unit(next).promised += takes;
                takes
            }
            _ => (0..waiting)
                .take_while(|&position| {
                    let held = self.unit(task).queue[position];
                    node_ahead(&ahead, &self.frames[held]).is_none_or(|next| {
                        let fits = self.room(next) > 0;
                        self.unit(next).promised += usize::from(fits);
                        fits
                    })
                })
                .count(),
        };
        self.unit(task).ahead = Some(ahead);
        takes
    }

    /// Room of a queue beyond the promised frames. Nobody waits for a queue of size 0.
    fn room(&self, node: u32) -> usize {
        let unit = self.units[node as usize].as_ref().expect("a node that is watched has a unit");
        if unit.capacity == 0 {
            return usize::MAX;
        }
        unit.capacity.saturating_sub(unit.queue.len() + unit.promised)
    }

    /// Notes that a queue has shrunk: the task units that it refused are woken after the present event.
    #[inline]
    pub(super) fn notice_room(&mut self, node: u32) {
        if !self.unit(node).refused.is_empty() {
            self.roomier.push(node);
        }
    }

    /// Receives a frame to which room may have been promised.
    pub(super) fn hand_over(&mut self, marked: u32, held: Held, ledger: &mut Ledger) {
        let node = marked & !PROMISED;
        self.unit(node).promised -= usize::from(marked != node);
        self.queue_up(node, held, ledger);
    }

    /// Wakes the refused task units for which there is room now.
    pub(super) fn tell_of_room(&mut self, ledger: &mut Ledger) {
        let mut position = 0;
        while let Some(&node) = self.roomier.get(position) {
            position += 1;
            if self.room(node) == 0 {
                continue;
            }
            for task in std::mem::take(&mut self.unit(node).refused) {
                self.unit(task).is_refused = false;
                self.wake(task, true, ledger);
            }
        }
        self.roomier.clear();
    }

    /// Releases the room promised to a frame that was lost in service.
    pub(super) fn take_promise_back(&mut self, task: u32, frame: &Frame) {
        let ahead = self.unit(task).ahead.as_ref();
        if let Some(next) = ahead.and_then(|ahead| node_ahead(ahead, frame)) {
            self.unit(next).promised -= 1;
            self.notice_room(next);
        }
    }

    /// Moves promises after a change of a route: frames in service go the new way, with room promised there
    /// unconditionally; a refused task unit may be granted room now.
    pub(super) fn look_ahead_anew(&mut self, task: u32, next: &Next, ledger: &mut Ledger) {
        if self.unit(task).ahead.is_none() {
            return;
        }
        let lanes = self.unit(task).lanes.clone();
        let taken: Vec<Frame> = lanes
            .map(|lane| &self.lanes[lane as usize])
            .filter(|lane| lane.task == task)
            .flat_map(|lane| lane.frame.iter().chain(&lane.batch))
            .map(|&held| self.frames[held])
            .collect();
        for frame in &taken {
            self.take_promise_back(task, frame);
        }
        for next in taken.iter().filter_map(|frame| node_ahead(next, frame)) {
            self.unit(next).promised += 1;
        }
        self.unit(task).ahead = Some(next.clone());
        if std::mem::take(&mut self.unit(task).is_refused) {
            for unit in self.units.iter_mut().flatten() {
                unit.refused.retain(|&other| other != task);
            }
        }
        self.wake(task, true, ledger);
    }

    /// Marks a frame on its way to promised room.
    #[inline]
    pub(super) fn with_promise(&self, task: u32, next: u32) -> u32 {
        let holds_back = self.units[task as usize].as_ref().is_some_and(|unit| unit.ahead.is_some());
        if holds_back && next != EXIT { next | PROMISED } else { next }
    }
}

/// The node that a frame goes to; none for outside, and for a copy, which ends where it is served.
fn node_ahead(ahead: &Next, frame: &Frame) -> Option<u32> {
    let next = match ahead {
        Next::Fixed(next) => *next,
        Next::ByFlow(table) => table[frame.flow as usize],
        Next::Dynamic => EXIT,
    };
    (next != EXIT && !frame.is_copy()).then_some(next)
}
