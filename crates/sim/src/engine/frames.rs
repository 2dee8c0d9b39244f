//! Storage of the frames inside the events: each has a place, and queues, lanes and batches pass on the index of the
//! place.
//!
//! A frame visits many task units and is in a queue, a batch and a lane at each. Copying it right after its time has
//! changed stalls on store forwarding, which was half of the cost of a visit.

use std::ops::{Index, IndexMut};

use crate::frame::Frame;

/// The place of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held(u32);

impl Held {
    /// Its index.
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All frames inside the events.
#[derive(Debug, Default)]
pub(super) struct Frames {
    places: Vec<Frame>,
    free: Vec<Held>,
}

impl Frames {
    /// Stores a frame; returns its place.
    #[inline]
    pub(super) fn put(&mut self, frame: &Frame) -> Held {
        if let Some(place) = self.free.pop() {
            self.places[place.0 as usize] = *frame;
            place
        } else {
            self.places.push(*frame);
            Held(self.places.len() as u32 - 1)
        }
    }

    /// Writes a frame with a new time back into its place, or into a new one.
    #[inline]
    pub(super) fn put_back(&mut self, place: Option<Held>, frame: &Frame, at: u64, waited: u64) -> Held {
        let Some(held) = place else { return self.put(&Frame { at, waited, ..*frame }) };
        let kept = &mut self.places[held.0 as usize];
        (kept.at, kept.waited) = (at, waited);
        held
    }

    /// Frees the place of a frame that was copied out.
    #[inline]
    pub(super) fn forget(&mut self, place: Option<Held>) {
        self.free.extend(place);
    }

    /// Takes a frame out of its place.
    #[inline]
    pub(super) fn take(&mut self, held: Held) -> Frame {
        self.free.push(held);
        self.places[held.0 as usize]
    }
}

impl Index<Held> for Frames {
    type Output = Frame;

    #[inline]
    fn index(&self, held: Held) -> &Frame {
        &self.places[held.0 as usize]
    }
}

impl IndexMut<Held> for Frames {
    #[inline]
    fn index_mut(&mut self, held: Held) -> &mut Frame {
        &mut self.places[held.0 as usize]
    }
}
