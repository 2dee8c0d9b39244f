//! A queue of frames whose instants are known: when each is served, or that it finds no room.

use crate::station::{Servers, Starts};

/// Start of a frame that found no room.
pub const LOST: u64 = u64::MAX;

/// Starts of service of frames in order of their arrival, first come, first served; [`LOST`] for those without room.
///
/// `at`: arrivals, picoseconds, in order; `work`: services, picoseconds; `room`: frames that may wait besides those in
/// service. A frame whose service begins as another arrives waits no more (S3).
///
/// # Panics
///
/// There is no server, or the lengths differ.
#[must_use]
pub fn starts(at: &[u64], work: &[u64], servers: usize, room: usize) -> Vec<u64> {
    assert!(servers > 0, "a queue has a server");
    assert_eq!(at.len(), work.len(), "each frame has a service");
    let mut free = Servers::new(servers);
    let mut waiting = Starts::new(room);
    at.iter()
        .zip(work)
        .map(|(&at, &work)| {
            if waiting.len() >= room {
                waiting.forget(at);
                if waiting.len() >= room && (room > 0 || !free.has_idle(at)) {
                    return LOST;
                }
            }
            waiting.reserve(1, at);
            let start = free.serve(at, work).start;
            waiting.remember(start, at);
            start
        })
        .collect()
}

/// How one server that interrupts wake polls its queue (S6); times in picoseconds.
#[derive(Debug, Clone, Default)]
pub struct Polls {
    /// Frames of a poll, at most.
    pub budget: usize,
    /// Whether a poll takes also what comes while it is under way.
    pub exhaustive: bool,
    /// Cost of an interrupt.
    pub interrupt_ps: u64,
    /// Least time between two interrupts.
    pub moderation_ps: u64,
    /// From an interrupt until the server asks for its unit, where it was asleep.
    pub wakeup_ps: u64,
    /// Cost of a batch.
    pub batch_ps: u64,
    /// How long it polls on without frames before interrupts are enabled.
    pub linger_ps: u64,
    /// Sleep states of its idle unit: the idle time before each, and the time to leave it.
    pub sleep_ps: Vec<(u64, u64)>,
}

/// What a server with polls makes of recorded frames.
#[derive(Debug, Default)]
pub struct Polled {
    /// Starts of service; [`LOST`] for those without room.
    pub starts: Vec<u64>,
    /// Ends of service.
    pub ends: Vec<u64>,
    /// Time at work, picoseconds, lingering and waking apart.
    pub busy_ps: u64,
    /// Interrupts taken.
    pub interrupts: u64,
}

/// A server, its queue and the frames that are still to come.
struct Poller<'a> {
    at: &'a [u64],
    work: &'a [u64],
    polls: &'a Polls,
    room: usize,
    next: usize,
    waiting: std::collections::VecDeque<usize>,
    until: u64,
    out: Polled,
}

impl Poller<'_> {
    /// Lets the frames that arrive before an instant wait, as far as there is room.
    fn admit(&mut self, before: u64) {
        while self.next < self.at.len() && self.at[self.next] < before {
            if self.waiting.len() < self.room {
                self.waiting.push_back(self.next);
            }
            self.next += 1;
        }
    }

    fn work(&mut self, from: u64, takes: u64) -> u64 {
        let end = from.saturating_add(takes);
        self.out.busy_ps += end.min(self.until).saturating_sub(from.min(self.until));
        end
    }

    fn serve(&mut self, frame: usize, now: u64, extra: u64) -> u64 {
        self.out.starts[frame] = now;
        let end = self.work(now, extra + self.work[frame]);
        self.out.ends[frame] = end;
        end
    }

    /// Serves a poll from now on; returns its end and its number of frames.
    fn poll(&mut self, now: u64, extra: u64) -> (u64, usize) {
        let Some(first) = self.waiting.pop_front() else { return (now, 0) };
        let mut batch: Vec<usize> = vec![];
        if !self.polls.exhaustive {
            let more = self.waiting.len().min(self.polls.budget - 1);
            batch.extend(self.waiting.drain(..more));
        }
        let mut end = self.serve(first, now, extra + self.polls.batch_ps);
        let mut polled = 1;
        for frame in batch {
            end = self.serve(frame, end, 0);
            polled += 1;
        }
        self.admit(end);
        while self.polls.exhaustive && polled < self.polls.budget {
            let Some(frame) = self.waiting.pop_front() else { break };
            end = self.serve(frame, end, 0);
            polled += 1;
            self.admit(end);
        }
        (end, polled)
    }

    /// Polls until nothing is left and lingering is over, or until one comes back short; returns when it stops.
    fn busy_time(&mut self, begun: u64) -> u64 {
        let mut now = begun;
        let mut extra = 0;
        if self.polls.exhaustive {
            extra = self.polls.interrupt_ps;
        } else {
            now = self.work(now, self.polls.interrupt_ps);
        }
        self.admit(now);
        loop {
            let (end, polled) = self.poll(now, extra);
            (now, extra) = (end, 0);
            if polled >= self.polls.budget {
                continue;
            }
            if self.polls.linger_ps == 0 {
                return now;
            }
            if !self.waiting.is_empty() {
                continue;
            }
            // A frame that comes while it lingers is polled at once.
            let over = now.saturating_add(self.polls.linger_ps);
            match self.at.get(self.next) {
                Some(&at) if at < over => {
                    now = at;
                    self.admit(at + 1);
                }
                _ => return over,
            }
        }
    }
}

/// Starts and ends of service of frames in order of their arrival at one server with interrupts.
///
/// `at`, `work`, `room`: those of [`starts`]; `until`: work after this instant is not counted.
///
/// # Panics
///
/// The budget is 0, there is no room, or the lengths differ.
#[must_use]
pub fn polled(at: &[u64], work: &[u64], polls: &Polls, room: usize, until: u64) -> Polled {
    assert!(polls.budget > 0 && room > 0, "polls take a frame, which waits");
    assert_eq!(at.len(), work.len(), "each frame has a service");
    let out = Polled { starts: vec![LOST; at.len()], ends: vec![LOST; at.len()], ..Polled::default() };
    let waiting = std::collections::VecDeque::new();
    let mut poller = Poller { at, work, polls, room, next: 0, waiting, until, out };
    let (mut last, mut released) = (None::<u64>, 0);
    while poller.next < at.len() || !poller.waiting.is_empty() {
        let asleep = poller.waiting.is_empty();
        let found = if asleep { at[poller.next] } else { released };
        let raised = last.map_or(found, |last| last.saturating_add(polls.moderation_ps).max(found));
        last = Some(raised);
        let due = if asleep || raised > found { raised.saturating_add(polls.wakeup_ps) } else { raised };
        let idle = due - released;
        let exit =
            polls.sleep_ps.iter().rev().find(|&&(after, _)| after <= idle && idle > 0).map_or(0, |state| state.1);
        let begun = due.saturating_add(exit);
        if asleep {
            // The frame that raised the interrupt waits already.
            poller.waiting.push_back(poller.next);
            poller.next += 1;
        }
        poller.admit(begun);
        poller.out.interrupts += u64::from(raised < until);
        released = poller.busy_time(begun);
    }
    poller.out
}

#[cfg(test)]
mod tests {
    use super::{LOST, Polls, polled, starts};

    #[test]
    fn a_burst_fills_the_room_and_the_rest_is_lost() {
        assert_eq!(starts(&[0, 0, 0, 0, 25], &[10; 5], 1, 2), [0, 10, 20, LOST, 30]);
        assert_eq!(starts(&[0, 0, 0, 0, 0], &[10; 5], 2, 1), [0, 0, 10, LOST, LOST]);
    }

    #[test]
    fn a_frame_that_arrives_as_another_begins_finds_its_place() {
        assert_eq!(starts(&[0, 0, 10], &[10; 3], 1, 1), [0, 10, 20]);
    }

    #[test]
    fn without_room_only_an_idle_server_takes_a_frame() {
        assert_eq!(starts(&[0, 5, 10], &[10; 3], 1, 0), [0, LOST, 10]);
    }

    #[test]
    fn a_gated_poll_takes_what_came_during_its_interrupt() {
        let polls = Polls { budget: 64, interrupt_ps: 4, ..Polls::default() };
        let got = polled(&[0, 3, 6, 9], &[1; 4], &polls, 8, 100);
        assert_eq!(got.ends, [5, 6, 11, 12]);
        assert_eq!((got.busy_ps, got.interrupts), (12, 2));
    }

    #[test]
    fn an_exhaustive_poll_goes_on_and_a_full_one_is_followed_by_the_next() {
        let polls = Polls { budget: 2, exhaustive: true, interrupt_ps: 4, ..Polls::default() };
        assert_eq!(polled(&[0, 3, 5], &[2; 3], &polls, 8, 100).ends, [6, 8, 10]);
    }

    #[test]
    fn moderation_holds_interrupts_back_and_lingering_needs_none() {
        let moderated = Polls { budget: 64, moderation_ps: 10, ..Polls::default() };
        assert_eq!(polled(&[0, 3, 20], &[1; 3], &moderated, 8, 100).ends, [1, 11, 21]);
        let lingering = Polls { budget: 64, interrupt_ps: 4, linger_ps: 5, ..Polls::default() };
        assert_eq!(polled(&[0, 7, 30], &[1; 3], &lingering, 8, 100).ends, [5, 8, 35]);
    }

    #[test]
    fn what_finds_no_room_while_a_server_wakes_is_lost() {
        let polls = Polls { budget: 64, wakeup_ps: 9, sleep_ps: vec![(20, 5)], ..Polls::default() };
        assert_eq!(polled(&[0, 1, 2, 40], &[1; 4], &polls, 2, 100).ends, [10, 11, LOST, 55]);
    }
}
