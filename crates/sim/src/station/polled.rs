//! A task unit that takes frames in polls and has its unit to itself (S6): no event is needed, since what it does next
//! follows from when its frames come.
//!
//! ```text
//!          frame                    due                     short poll                    time is up
//!   ┌──────┐ ─────► ┌───────────┐ ─────► ┌─────────┐ ───────────────────► ┌───────────┐ ──────────► idle again,
//!   │ idle │        │ interrupt │        │ polling │ ◄─────────────────── │ lingering │             interrupts on
//!   └──────┘        └───────────┘        └─────────┘        frame         └───────────┘
//! ```
//!
//! What is due at an instant happens before frames that come at it (S3). A poll so finds what came before it, and the frame
//! that raised its interrupt.

use super::column::{AT_ONCE, Bounds, Coming, Keep, Passing, Served};
use super::{Passage, Sink};
use crate::frame::Frame;
use crate::ledger::Ledger;
use crate::random::stream;
use crate::random_time::Times;
use crate::scenario::{Activation, Scenario};
use crate::service::Service;
use crate::time::Span;

/// The instant of what is not due.
const NEVER: u64 = u64::MAX;

/// State of a task unit that takes frames in polls.
#[derive(Debug)]
pub struct Polled {
    /// Frames that wait, where they are in columns, and where they are not: one of the two is empty.
    passing: Ring<Passing>,
    frames: Ring<Frame>,
    taken: Box<Taken>,
    work: Work,
}

/// Frames of a poll that leave together.
#[derive(Debug)]
struct Taken {
    frames: [Passing; AT_ONCE],
    count: usize,
}

/// What does not depend on where frames are kept.
#[derive(Debug)]
struct Work {
    queue: usize,
    /// Frames of a poll, at most.
    batch: usize,
    /// Frames that a poll takes at once.
    takes: usize,
    rule: Rule,
    service: Service,
    slowness: f64,
    state: State,
    /// When the state ends.
    until_ps: u64,
    /// Frames of the present poll.
    polled: usize,
    last_interrupt_ps: Option<u64>,
    tally: PollTally,
}

/// What follows when there is nothing to do.
#[derive(Debug)]
enum Rule {
    /// The unit is given back.
    Rests,
    /// It is held.
    Spins,
    /// It is given back, and an interrupt opens the next poll.
    Interrupts { cost_ps: f64, moderation_ps: u64, wakeup: Option<Times>, exhaustive: bool, linger_ps: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// An interrupt is due.
    Raised,
    /// A poll is due.
    Due,
    /// A batch is served.
    Serving,
    /// It holds its unit since an instant: until a frame comes, or time is up.
    Holding {
        since_ps: u64,
    },
}

/// What a task unit did since the last report.
#[derive(Debug, Default)]
pub struct PollTally {
    /// Sum of the waiting times of the frames that came and were done within the segment, picoseconds.
    pub waited_ps: u64,
    /// Work within the segment, picoseconds.
    pub busy_ps: u64,
    /// Polls that found frames.
    pub polls: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Spans for which it held its unit without work, picoseconds.
    pub held: Vec<(u64, u64)>,
}

/// A frame that waits for a poll.
trait Waiting: Copy + Default {
    fn at_ps(&self) -> u64;
    fn bytes(&self) -> u32;
}

impl Waiting for Passing {
    #[inline]
    fn at_ps(&self) -> u64 {
        self.at
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

impl Waiting for Frame {
    #[inline]
    fn at_ps(&self) -> u64 {
        self.at
    }

    #[inline]
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// Frames that wait, in order; the length of the list is a power of two.
#[derive(Debug, Default)]
struct Ring<F> {
    list: Vec<F>,
    head: usize,
    tail: usize,
}

impl<F: Waiting> Ring<F> {
    #[inline]
    fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline]
    fn push(&mut self, frame: F) {
        if self.len() == self.list.len() {
            self.grow();
        }
        let mask = self.list.len() - 1;
        self.list[self.tail & mask] = frame;
        self.tail += 1;
    }

    #[inline]
    fn pop(&mut self) -> F {
        let mask = self.list.len() - 1;
        let first = self.list[self.head & mask];
        self.head += 1;
        first
    }

    #[cold]
    fn grow(&mut self) {
        let mut list: Vec<F> = self.iter().copied().collect();
        list.resize((2 * list.len()).max(64), F::default());
        (self.head, self.tail) = (0, self.len());
        self.list = list;
    }

    fn iter(&self) -> impl Iterator<Item = &F> {
        (self.head..self.tail).map(|place| &self.list[place & (self.list.len() - 1)])
    }
}

/// The instant nearest to one that lies so far behind another.
#[inline]
fn after(instant_ps: u64, takes_ps: f64) -> u64 {
    // Through i64, which is one instruction; what it does not hold takes for ever just so.
    instant_ps.saturating_add((takes_ps + 0.5) as i64 as u64)
}

/// Receives a frame that is served: with start and end of its service.
trait Out<F> {
    fn take(&mut self, frame: &F, start_ps: u64, end_ps: u64);
}

impl Polled {
    /// The task unit of a node.
    #[must_use]
    pub fn of_node(scenario: &Scenario, node: usize) -> Self {
        let (task, run) = (&scenario.model.tasks[node], &scenario.run);
        let rng = stream(run.seed, run.replication, "service", node as u64);
        let slowness = task.needs.first().map_or(1.0, |need| {
            let unit = task.pin.first().copied().unwrap_or(0);
            1.0 / scenario.model.pools[need.pool].speed[unit]
        });
        let (rule, batch, state) = match &task.activation {
            &Activation::Interrupt { budget, cost_ps, moderation_ps, ref wakeup, exhaustive, linger_ps } => {
                let [moderation_ps, linger_ps] = [moderation_ps, linger_ps].map(|ps| Span::from_ps(ps).0);
                let wakeup = wakeup.as_ref().map(|law| {
                    let rng = stream(run.seed, run.replication, "wake-up", node as u64);
                    Times::new(law, rng)
                });
                (Rule::Interrupts { cost_ps, moderation_ps, wakeup, exhaustive, linger_ps }, budget, State::Idle)
            }
            Activation::Polling => (Rule::Spins, task.batch, State::Holding { since_ps: 0 }),
            Activation::Dedicated | Activation::Thread { .. } => (Rule::Rests, task.batch, State::Idle),
        };
        let work = Work {
            queue: task.queue,
            batch,
            takes: if matches!(rule, Rule::Interrupts { exhaustive: true, .. }) { 1 } else { batch },
            rule,
            service: Service::new(task, rng).interrupted(scenario, node),
            slowness,
            state,
            until_ps: NEVER,
            polled: 0,
            last_interrupt_ps: None,
            tally: PollTally::default(),
        };
        let taken = Box::new(Taken { frames: [Passing::default(); AT_ONCE], count: 0 });
        Self { passing: Ring::default(), frames: Ring::default(), taken, work }
    }

    /// Offers frames in order of coming, none earlier than the last one, and does what is due before the bound.
    ///
    /// Those that are served go to the sink; those that find no room go to `refused`. What does not lie within the
    /// segment goes to `beyond`: coming, start and end.
    pub fn pass(
        &mut self,
        coming: &[Frame],
        bounds: Bounds,
        refused: &mut Vec<Frame>,
        beyond: &mut Vec<(u64, Passage)>,
        sink: &mut impl Sink,
    ) {
        struct Through<'a, S>(&'a mut S);
        impl<S: Sink> Out<Frame> for Through<'_, S> {
            #[inline]
            fn take(&mut self, frame: &Frame, start_ps: u64, end_ps: u64) {
                self.0.take(frame, start_ps, end_ps);
            }
        }
        let Self { frames, work, .. } = self;
        let waiting = coming.iter().copied();
        let mut out = Through(sink);
        work.pass(frames, waiting, bounds, beyond, &mut out, |frame| refused.push(frame));
        work.go_on(frames, bounds.bound_ps, bounds, beyond, &mut out);
    }

    /// [`Self::pass`] for frames in a column; what is due after the last of them follows only if the column is the last
    /// one before the bound.
    pub fn pass_column<C: Coming>(
        &mut self,
        column: &[C],
        is_last: bool,
        keep: &mut impl Keep,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
    ) -> Served {
        let mut served = Served::default();
        let Self { passing, taken, work, .. } = self;
        let waiting = column.iter().map(Coming::passing);
        let mut together = Together { taken, keep, tied: false };
        work.pass(passing, waiting, bounds, beyond, &mut together, |frame| served.refused.add(frame.arrival));
        if is_last {
            work.go_on(passing, bounds.bound_ps, bounds, beyond, &mut together);
        }
        together.close();
        served.at_once = together.tied;
        served
    }

    /// What it did since the last report.
    pub fn tally(&mut self) -> PollTally {
        std::mem::take(&mut self.work.tally)
    }

    /// Frames that wait, where they are not in columns.
    pub fn waiting(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Number of the frames that wait in a column.
    #[must_use]
    pub fn waiting_in_column(&self) -> u64 {
        self.passing.len() as u64
    }

    /// Books what is under way when the trial ends.
    pub fn close(&self, node: usize, end_ps: u64, ledger: &mut Ledger) {
        let instants = self.passing.iter().map(|frame| frame.at).chain(self.frames.iter().map(|frame| frame.at));
        instants.for_each(|at| ledger.wait(node, at, end_ps));
        if let State::Holding { since_ps } = self.work.state {
            ledger.spin(node, since_ps, end_ps);
        }
    }
}

/// Frames in a column that are served, some at a time.
struct Together<'a, K> {
    taken: &'a mut Taken,
    keep: &'a mut K,
    /// Whether some left at one instant.
    tied: bool,
}

impl<K: Keep> Together<'_, K> {
    fn close(&mut self) {
        let Taken { frames, count } = &mut *self.taken;
        if *count > 0 {
            self.keep.close(*count, &frames[..*count]);
            *count = 0;
        }
    }
}

impl<K: Keep> Out<Passing> for Together<'_, K> {
    #[inline]
    fn take(&mut self, frame: &Passing, start_ps: u64, end_ps: u64) {
        let place = self.taken.count & (AT_ONCE - 1);
        self.taken.frames[place] = *frame;
        self.keep.keep(place, frame, place, start_ps, end_ps);
        self.taken.count = place + 1;
        self.tied |= end_ps == start_ps;
        if place + 1 == AT_ONCE {
            self.close();
        }
    }
}

impl Work {
    /// See [`Polled::pass`]. A function of its own, because then most of what it needs has a register.
    #[inline(never)]
    fn pass<F: Waiting>(
        &mut self,
        ring: &mut Ring<F>,
        coming: impl Iterator<Item = F>,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
        out: &mut impl Out<F>,
        mut refuse: impl FnMut(F),
    ) {
        for frame in coming {
            let at_ps = frame.at_ps();
            if self.until_ps <= at_ps {
                self.go_on(ring, at_ps + 1, bounds, beyond, out);
            }
            if ring.len() >= self.queue {
                refuse(frame);
                continue;
            }
            ring.push(frame);
            if matches!(self.state, State::Idle | State::Holding { .. }) {
                self.wake(at_ps);
            }
        }
    }

    /// A frame comes to a task unit that has nothing to do.
    fn wake(&mut self, at_ps: u64) {
        if let State::Holding { since_ps } = self.state {
            self.tally.held.push((since_ps, at_ps));
        }
        (self.state, self.until_ps) = match (&mut self.rule, self.state) {
            (Rule::Interrupts { .. }, State::Idle) => (State::Raised, self.raise(at_ps, true)),
            _ => (State::Due, at_ps),
        };
    }

    /// Raises an interrupt; returns when it is due. `asleep` unless frames were served until now.
    fn raise(&mut self, at_ps: u64, asleep: bool) -> u64 {
        let Rule::Interrupts { moderation_ps, wakeup, .. } = &mut self.rule else { return at_ps };
        let raised_ps = self.last_interrupt_ps.map_or(at_ps, |last| last.saturating_add(*moderation_ps).max(at_ps));
        self.last_interrupt_ps = Some(raised_ps);
        match wakeup {
            Some(wakeup) if asleep || raised_ps > at_ps => raised_ps.saturating_add(Span::from_ps(wakeup.draw_ps()).0),
            _ => raised_ps,
        }
    }

    /// Does what is due before an instant.
    #[inline(never)]
    fn go_on<F: Waiting>(
        &mut self,
        ring: &mut Ring<F>,
        before_ps: u64,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
        out: &mut impl Out<F>,
    ) {
        // In the order in which they mostly follow each other, which processors foretell.
        while self.until_ps < before_ps {
            let mut extra_ps = 0.0;
            if self.state == State::Raised {
                extra_ps = self.interrupt(bounds, beyond);
                if self.until_ps >= before_ps {
                    return;
                }
            }
            if self.state == State::Due {
                self.poll(ring, extra_ps, bounds, beyond, out);
                if self.until_ps >= before_ps {
                    return;
                }
            }
            if self.state == State::Serving {
                while self.comes_back(ring, self.until_ps) {
                    // Exhaustive: the poll goes on with what came meanwhile.
                    self.polled += 1;
                    self.serve(ring, 1, 0.0, bounds, beyond, out);
                    if self.until_ps >= before_ps {
                        return;
                    }
                }
            } else if let State::Holding { since_ps } = self.state {
                // It has held its unit for long enough.
                self.tally.held.push((since_ps, self.until_ps));
                (self.state, self.until_ps) = (State::Idle, NEVER);
            }
        }
    }

    /// Begins an interrupt, after which a poll is due; returns the work with which that begins.
    #[inline]
    fn interrupt(&mut self, bounds: Bounds, beyond: &mut Vec<(u64, Passage)>) -> f64 {
        self.tally.interrupts += 1;
        self.state = State::Due;
        let Rule::Interrupts { cost_ps, exhaustive, .. } = self.rule else { return 0.0 };
        if exhaustive || cost_ps == 0.0 {
            return cost_ps;
        }
        // The interrupt costs, then the poll finds its frames; those of its cost are among them.
        let now_ps = self.until_ps;
        self.until_ps = self.end_of(now_ps, cost_ps);
        self.book_work(now_ps, self.until_ps, bounds, beyond);
        0.0
    }

    /// Takes a batch, and serves it.
    #[inline]
    fn poll<F: Waiting>(
        &mut self,
        ring: &mut Ring<F>,
        extra_ps: f64,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
        out: &mut impl Out<F>,
    ) {
        let takes = ring.len().min(self.takes);
        (self.polled, self.state) = (takes, State::Serving);
        if takes > 0 {
            self.tally.polls += 1;
            let extra_ps = extra_ps + self.service.per_batch_ps();
            self.serve(ring, takes, extra_ps, bounds, beyond, out);
        }
    }

    /// Serves frames one after the other from now on.
    #[inline]
    fn serve<F: Waiting>(
        &mut self,
        ring: &mut Ring<F>,
        takes: usize,
        mut extra_ps: f64,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
        out: &mut impl Out<F>,
    ) {
        let (mut start_ps, mut waited_ps, mut busy_ps) = (self.until_ps, 0, 0);
        let (even, slowness) = (self.service.even_ps(), self.slowness);
        for _ in 0..takes {
            let frame = ring.pop();
            let at_ps = frame.at_ps();
            let end_ps = if let Some(even) = even {
                after(start_ps, (extra_ps + even.of(frame.bytes())) * slowness)
            } else {
                let work_ps = extra_ps + self.service.draw_ps(frame.bytes());
                self.end_of(start_ps, work_ps)
            };
            if at_ps >= bounds.segment_begin_ps && end_ps <= bounds.segment_end_ps {
                waited_ps += start_ps - at_ps;
                busy_ps += end_ps - start_ps;
            } else {
                beyond.push((at_ps, Passage { start: start_ps, done: end_ps }));
            }
            out.take(&frame, start_ps, end_ps);
            start_ps = end_ps;
            extra_ps = 0.0;
        }
        self.until_ps = start_ps;
        self.tally.waited_ps += waited_ps;
        self.tally.busy_ps += busy_ps;
    }

    /// When work ends that begins at an instant.
    #[inline]
    fn end_of(&mut self, start_ps: u64, work_ps: f64) -> u64 {
        let takes_ps = work_ps * self.slowness;
        after(start_ps, takes_ps + self.service.interruptions_ps(takes_ps))
    }

    fn book_work(&mut self, from_ps: u64, to_ps: u64, bounds: Bounds, beyond: &mut Vec<(u64, Passage)>) {
        if from_ps >= bounds.segment_begin_ps && to_ps <= bounds.segment_end_ps {
            self.tally.busy_ps += to_ps - from_ps;
        } else {
            beyond.push((from_ps, Passage { start: from_ps, done: to_ps }));
        }
    }

    /// A poll, or a frame of an exhaustive one, is done: whether the same poll goes on. Else the state says what is next.
    #[inline]
    fn comes_back<F: Waiting>(&mut self, ring: &Ring<F>, now_ps: u64) -> bool {
        let more = ring.len() > 0;
        (self.state, self.until_ps) = match self.rule {
            Rule::Rests | Rule::Spins if more => (State::Due, now_ps),
            Rule::Spins => (State::Holding { since_ps: now_ps }, NEVER),
            Rule::Interrupts { exhaustive: true, .. } if more && self.polled > 0 && self.polled < self.batch => {
                return true;
            }
            Rule::Interrupts { .. } if self.polled >= self.batch => (State::Due, now_ps),
            Rule::Interrupts { linger_ps, .. } if linger_ps > 0 && more => (State::Due, now_ps),
            Rule::Interrupts { linger_ps, .. } if linger_ps > 0 => {
                (State::Holding { since_ps: now_ps }, now_ps.saturating_add(linger_ps))
            }
            Rule::Interrupts { .. } if more => (State::Raised, self.raise(now_ps, false)),
            Rule::Rests | Rule::Interrupts { .. } => (State::Idle, NEVER),
        };
        false
    }
}
