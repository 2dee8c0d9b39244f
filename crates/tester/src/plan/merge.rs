//! The frames of all streams of a port, in the order in which they leave.

use super::{Plan, Slot, Wire};

/// The next frame to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// When it leaves, ticks from the start of the plans: when it is due or when the link is free.
    pub leave: u64,
    /// Index of its plan.
    pub plan: usize,
    /// Its number in the plan, with the warm-up.
    pub frame: u64,
    /// Its size and flow.
    pub slot: Slot,
}

/// The frames of plans that share a port, in the order of their due times.
#[derive(Debug, Clone)]
pub struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    wire: Option<Wire>,
    free: u64,
}

impl<'a> Merge<'a> {
    /// Starts at the first frames.
    #[must_use]
    pub fn new(plans: &[&'a Plan]) -> Self {
        let cursors = plans.iter().map(|plan| Cursor::new(plan)).collect();
        Self { cursors, wire: plans.iter().find_map(|plan| plan.wire), free: 0 }
    }
}

impl Iterator for Merge<'_> {
    type Item = Due;

    #[inline]
    fn next(&mut self) -> Option<Due> {
        // `min_by_key` takes the first of equals: ties go to the lower stream.
        let (plan, cursor) = self.cursors.iter_mut().enumerate().min_by_key(|(_, cursor)| cursor.due)?;
        if cursor.frame == cursor.last {
            return None;
        }
        let slot = cursor.plan.slots[cursor.table + cursor.position];
        let leave = cursor.due.max(self.free);
        if let Some(wire) = self.wire {
            self.free = leave + wire.ticks(slot.bytes);
        }
        let due = Due { leave, plan, frame: cursor.frame, slot };
        cursor.advance(slot.gap);
        Some(due)
    }
}

#[derive(Debug, Clone)]
struct Cursor<'a> {
    plan: &'a Plan,
    frame: u64,
    /// One past the last frame.
    last: u64,
    /// `u64::MAX` after the last frame.
    due: u64,
    table: usize,
    position: usize,
    next_segment: usize,
    next_change: u64,
}

impl<'a> Cursor<'a> {
    fn new(plan: &'a Plan) -> Self {
        let last = plan.warmup_frames + plan.frames;
        let mut cursor =
            Self { plan, frame: 0, last, due: u64::MAX, table: 0, position: 0, next_segment: 0, next_change: 0 };
        if last > 0 {
            cursor.change();
        }
        cursor
    }

    fn change(&mut self) {
        let segment = self.plan.segments[self.next_segment];
        self.next_segment += 1;
        self.next_change = self.plan.segments.get(self.next_segment).map_or(u64::MAX, |next| next.first_frame);
        (self.due, self.table, self.position) = (segment.first_due, segment.table as usize, segment.position as usize);
    }

    #[inline]
    fn advance(&mut self, gap: u64) {
        self.frame += 1;
        self.due += gap;
        self.position += 1;
        if self.position == self.plan.cycle {
            self.position = 0;
        }
        if self.frame == self.last {
            self.due = u64::MAX;
        } else if self.frame == self.next_change {
            self.change();
        }
    }
}
