//! Copies of frames, which a hub floods with: each is served by the task unit that gets it, and ends there.

use super::Engine;
use super::frames::Held;
use crate::graph::Graph;
use crate::ledger::Ledger;

impl Engine {
    /// A task unit has served a frame: copies of it go to others, after all frames of this instant. The node that the
    /// frame itself goes to; none if the task unit has served a copy.
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
