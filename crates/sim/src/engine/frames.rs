//! Frames inside the events: each has a place of its own, and queues, lanes and batches pass on the number of the place.
//!
//! A frame visits many task units and is in a queue, a batch and a lane at each. To change its time and to copy all of
//! it right afterwards makes the processor wait for its own store; that was half of what a visit cost.

use std::ops::{Index, IndexMut};

use crate::frame::Frame;

/// The place of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held(u32);

impl Held {
    /// Its number.
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
    /// Gives a frame a place.
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

    /// Puts a frame whose time has changed back into its place, or gives it one.
    #[inline]
    pub(super) fn put_back(&mut self, place: Option<Held>, frame: &Frame, at: u64, waited: u64) -> Held {
        let Some(held) = place else { return self.put(&Frame { at, waited, ..*frame }) };
        let kept = &mut self.places[held.0 as usize];
        (kept.at, kept.waited) = (at, waited);
        held
    }

    /// A frame that was copied out of its place does not come back.
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
