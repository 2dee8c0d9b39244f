//! The event calendar: a heap of the pending events, in which each activity's place is known.
//!
//! Every activity of the model has at most one next event, so the calendar holds at most one entry for each, and moves
//! or removes it where it stands: revoking a unit leaves no dead entry behind. Models have many more activities than
//! events that are pending at a time, and a heap is as deep as these. Keys order by (time, priority, sequence number),
//! semantics S3.

/// An activity of the calendar.
pub type Slot = u32;

/// Pending events.
#[derive(Debug)]
pub struct Calendar {
    /// A heap with [`WAYS`] children to a parent: each entry comes after its parent.
    heap: Vec<u128>,
    /// Where in the heap each slot's event is; [`NOWHERE`] if it has none.
    place: Vec<u32>,
    sequence: u64,
}

const NOWHERE: u32 = u32::MAX;
const WAYS: usize = 4;
const SLOT_BITS: u32 = 16;
const SEQUENCE_BITS: u32 = 40;

impl Calendar {
    /// A calendar with room for `slots` activities.
    ///
    /// # Panics
    ///
    /// If there are more than 65,536; [`crate::Scenario::check`] refuses such models.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        assert!(slots <= 1 << SLOT_BITS, "at most 65,536 activities");
        Self { heap: Vec::new(), place: vec![NOWHERE; slots], sequence: 0 }
    }

    /// Sets the slot's next event, which replaces a pending one.
    #[inline]
    pub fn schedule(&mut self, slot: Slot, at_ps: u64, priority: u8) {
        self.sequence = (self.sequence + 1) & ((1 << SEQUENCE_BITS) - 1);
        let order =
            (u64::from(priority) << (SEQUENCE_BITS + SLOT_BITS)) | (self.sequence << SLOT_BITS) | u64::from(slot);
        let key = (u128::from(at_ps) << 64) | u128::from(order);
        let at = self.place[slot as usize];
        if at == NOWHERE {
            self.heap.push(key);
            self.rise(self.heap.len() - 1, key);
        } else {
            self.settle(at as usize, key);
        }
    }

    /// Removes the slot's next event, if any.
    #[inline]
    pub fn cancel(&mut self, slot: Slot) {
        let at = std::mem::replace(&mut self.place[slot as usize], NOWHERE);
        if at == NOWHERE {
            return;
        }
        if let Some(last) = self.heap.pop()
            && (at as usize) < self.heap.len()
        {
            self.settle(at as usize, last);
        }
    }

    /// Instant of the first event; `u64::MAX` if none is pending.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> u64 {
        self.heap.first().map_or(u64::MAX, |key| (key >> 64) as u64)
    }

    /// Slot of the first event. Meaningless if none is pending.
    #[inline]
    #[must_use]
    pub fn next_slot(&self) -> Slot {
        self.heap.first().map_or(0, |&key| slot_of(key))
    }

    /// Puts a key where another one was.
    #[inline]
    fn settle(&mut self, at: usize, key: u128) {
        if at > 0 && key < self.heap[(at - 1) / WAYS] {
            self.rise(at, key);
        } else {
            self.sink(at, key);
        }
    }

    /// Puts a key at a place or above it.
    #[inline]
    fn rise(&mut self, mut at: usize, key: u128) {
        while at > 0 {
            let parent = (at - 1) / WAYS;
            let above = self.heap[parent];
            if above < key {
                break;
            }
            self.put(at, above);
            at = parent;
        }
        self.put(at, key);
    }

    /// Puts a key at a place or below it.
    #[inline]
    fn sink(&mut self, mut at: usize, key: u128) {
        loop {
            let first = WAYS * at + 1;
            let (child, least) = match self.heap.get(first..) {
                Some(&[a, b, c, d, ..]) => sooner(sooner((0, a), (1, b)), sooner((2, c), (3, d))),
                Some(&[a, ref others @ ..]) => {
                    others.iter().enumerate().fold((0, a), |best, (n, &other)| sooner(best, (n + 1, other)))
                }
                _ => break,
            };
            if least > key {
                break;
            }
            self.put(at, least);
            at = first + child;
        }
        self.put(at, key);
    }

    #[inline]
    fn put(&mut self, at: usize, key: u128) {
        self.heap[at] = key;
        self.place[slot_of(key) as usize] = at as u32;
    }
}

/// The sooner of two children. Written for conditional moves, because the choice is unpredictable.
#[inline]
fn sooner(a: (usize, u128), b: (usize, u128)) -> (usize, u128) {
    let second = b.1 < a.1;
    (if second { b.0 } else { a.0 }, if second { b.1 } else { a.1 })
}

#[inline]
fn slot_of(key: u128) -> Slot {
    (key as u32) & ((1 << SLOT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_by_priority_and_then_by_order_of_scheduling() {
        let mut calendar = Calendar::new(5);
        calendar.schedule(3, 10, 1);
        calendar.schedule(1, 10, 0);
        calendar.schedule(4, 10, 1);
        calendar.schedule(0, 11, 0);
        let mut order = vec![];
        while calendar.next_at() != u64::MAX {
            order.push(calendar.next_slot());
            calendar.cancel(calendar.next_slot());
        }
        assert_eq!(order, [1, 3, 4, 0]);
    }

    /// What a calendar must do, in the plainest way.
    #[derive(Default)]
    struct Plain(std::collections::BTreeMap<Slot, (u64, u8, usize)>);

    impl Plain {
        fn first(&self) -> Option<(u64, Slot)> {
            self.0.iter().min_by_key(|(_, key)| **key).map(|(&slot, &(at, ..))| (at, slot))
        }
    }

    proptest! {
        #[test]
        fn events_are_moved_and_removed_where_they_stand(
            steps in prop::collection::vec((0_u32..40, prop::option::of((0_u64..50, 0_u8..3))), 1..400)
        ) {
            let (mut calendar, mut plain) = (Calendar::new(40), Plain::default());
            for (number, &(slot, step)) in steps.iter().enumerate() {
                if let Some((at, priority)) = step {
                    calendar.schedule(slot, at, priority);
                    plain.0.insert(slot, (at, priority, number));
                } else {
                    calendar.cancel(slot);
                    plain.0.remove(&slot);
                }
                let first = (calendar.next_at() != u64::MAX).then(|| (calendar.next_at(), calendar.next_slot()));
                prop_assert_eq!(first, plain.first());
            }
        }

        #[test]
        fn events_come_out_in_order_of_time(times in prop::collection::vec(0_u64..1000, 1..200)) {
            let mut calendar = Calendar::new(times.len());
            for (slot, &at) in times.iter().enumerate() {
                calendar.schedule(slot as Slot, at, 0);
            }
            let mut sorted = times.clone();
            sorted.sort_unstable();
            for at in sorted {
                prop_assert_eq!(calendar.next_at(), at);
                calendar.cancel(calendar.next_slot());
            }
            prop_assert_eq!(calendar.next_at(), u64::MAX);
        }
    }
}
