//! Copies of frames, for a hub that floods: each is served by the task unit that gets it, and ends there.

use super::Engine;
use super::frames::Held;
use crate::graph::Graph;
use crate::ledger::Ledger;

impl Engine {
    /// Sends copies of a served frame, after all frames of this instant, and returns the next node of the frame itself;
    /// none for a copy.
    #[cold]
    pub(super) fn next_with_copies(
        &mut self,
        held: Held,
        task: u32,
        graph: &mut Graph,
        ledger: &mut Ledger,
    ) -> Option<u32> {
        let frame = self.frames[held];
        if frame.is_copy() {
            self.frames.take(held);
            ledger.copied(task as usize);
            return None;
        }
        let next = graph.onward(task, frame.flow, frame.seq);
        let copy = frame.copy();
        for node in graph.copies_of(task, next) {
            let position = self.instant.partition_point(|&(other, _)| self.frames[other].seq <= copy.seq);
            self.instant.insert(position, (self.frames.put(&copy), node));
        }
        Some(next)
    }
}
