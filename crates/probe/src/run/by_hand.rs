//! The function and its loop by hand in turn on the same frames: how much the framework costs.

use crate::error::{ProbeError, Result};
use crate::host::quantile::median;
use crate::host::{Clock, ticks};
use crate::operation::Descriptor;

use super::Shared;
use super::outcome::HandLoop;
use super::passes::{Bench, Tally};

/// Rounds of function, loop by hand and lookup alone.
const ROUNDS: usize = 200;
/// Rounds come to an end after so many seconds.
const LONGEST_S: f64 = 3.0;

impl Bench {
    /// Times both in turn; nothing for a function without a loop by hand.
    pub fn by_hand(&mut self, clock: &Clock, shared: &Shared) -> Result<Option<HandLoop>> {
        if self.function.by_hand().is_none() {
            return Ok(None);
        }
        let frames = self.ring.len();
        let mut outgoing = vec![Descriptor::default(); frames + 1];
        let (mut staged, mut fused, mut lookups) = (Vec::new(), Vec::new(), Vec::new());
        let (mut forwarded, mut differences) = (0, 0);
        let begin = ticks();
        for _ in 0..ROUNDS {
            if shared.stopped() {
                return Err(ProbeError::Interrupted);
            }
            if clock.seconds((ticks() - begin) as f64) > LONGEST_S && staged.len() > 4 {
                break;
            }
            // The same flows for both, so that they do the same; each finds the table as the rest left it.
            let traffic = self.traffic.clone();
            self.refill();
            let mut tally = Tally::default();
            staged.push(self.pass(frames, &mut tally) as f64);
            for _ in 0..4 {
                // Other flows in between: the loop by hand must not find the entries in the cache.
                self.refill();
                self.pass(frames, &mut Tally::default());
            }
            let next = std::mem::replace(&mut self.traffic, traffic);
            self.refill();
            self.traffic = next;
            let Some(hand) = self.function.by_hand() else { break };
            let (buffers, incoming) = self.ring.parts();
            let start = ticks();
            let sent = hand.pass(buffers, incoming, &mut outgoing);
            fused.push((ticks() - start) as f64);
            forwarded = sent as u64;
            differences += u64::from(tally.forwarded != forwarded);
            let keys: Vec<_> = (0..frames).map(|_| hand.key(self.traffic.draw())).collect();
            let start = ticks();
            std::hint::black_box(hand.lookups(&keys));
            lookups.push((ticks() - start) as f64);
        }
        let ns = |sample: &[f64]| clock.seconds(median(sample)) * 1e9 / frames as f64;
        debug_assert_eq!(differences, 0, "both forward the same frames");
        Ok(Some(HandLoop {
            ns_per_packet: ns(&fused),
            lookup_ns: ns(&lookups),
            ratio: median(&staged) / median(&fused),
            forwarded,
        }))
    }
}
