//! The event calendar: a winner tree over slots, one slot for each activity that can have one pending event.
//!
//! Every activity of the model has at most one next event, so the calendar holds one key per activity and replays a
//! tournament of `log2(slots)` comparisons when a key changes. Revoking a unit reschedules its lane in place; a heap
//! would have to leave a dead entry behind. Keys order by (time, priority, sequence number), semantics S3.

/// A slot of the calendar.
pub type Slot = u32;

/// Pending events by slot.
#[derive(Debug)]
pub struct Calendar {
    /// `tree[1]` is the winner, `tree[leaves + slot]` the slots' keys.
    tree: Vec<u128>,
    leaves: usize,
    sequence: u64,
}

const IDLE: u128 = u128::MAX;
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
        let leaves = slots.next_power_of_two().max(2);
        Self { tree: vec![IDLE; 2 * leaves], leaves, sequence: 0 }
    }

    /// Sets the slot's next event, which replaces a pending one.
    #[inline]
    pub fn schedule(&mut self, slot: Slot, at_ps: u64, priority: u8) {
        self.sequence = (self.sequence + 1) & ((1 << SEQUENCE_BITS) - 1);
        let order =
            (u64::from(priority) << (SEQUENCE_BITS + SLOT_BITS)) | (self.sequence << SLOT_BITS) | u64::from(slot);
        self.play(slot, (u128::from(at_ps) << 64) | u128::from(order));
    }

    /// Removes the slot's next event, if any.
    #[inline]
    pub fn cancel(&mut self, slot: Slot) {
        self.play(slot, IDLE);
    }

    /// Instant of the first event; `u64::MAX` if none is pending.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> u64 {
        (self.tree[1] >> 64) as u64
    }

    /// Slot of the first event. Meaningless if none is pending.
    #[inline]
    #[must_use]
    pub fn next_slot(&self) -> Slot {
        (self.tree[1] as u32) & ((1 << SLOT_BITS) - 1)
    }

    #[inline]
    fn play(&mut self, slot: Slot, key: u128) {
        // The winner so far stays in registers: of each pair only the other one is read.
        let tree = self.tree.as_mut_slice();
        let mut node = self.leaves + slot as usize;
        let mut winner = key;
        tree[node] = key;
        while node > 1 {
            winner = winner.min(tree[node ^ 1]);
            node >>= 1;
            // If the winner here is unchanged, so is everything above.
            if tree[node] == winner {
                break;
            }
            tree[node] = winner;
        }
    }
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

    proptest! {
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
