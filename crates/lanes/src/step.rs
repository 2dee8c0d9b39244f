//! One step of all lanes: each goes to its next event, a frame that comes or a service that ends.

#![expect(clippy::inline_always, reason = "parts of the step, in a function that enables the vectors")]

use crate::draw::{UNIT_BITS, exponential, scaled, threefry};
use crate::router::{FINE_BITS, NUMBER_BITS, PollProgram, Program, Ring, SourceProgram, TICK_BITS};
use crate::state::{BINS, CoreLanes, Lanes, bin, phase};
use crate::words::{Word, WordExt};

const NONE: u32 = 0x7fff_ffff;

impl SourceProgram {
    /// The kind of a frame from a random word.
    #[inline(always)]
    pub(crate) fn kind<W: Word>(&self, word: W) -> W {
        if let [only] = self.own.as_slice() {
            return W::all(*only);
        }
        let kinds = W::all(self.own.len() as u32);
        let (place, rest) = (word.times_high(kinds), word.times(kinds));
        rest.below(place.look_up(&self.own_share)).choose(place.look_up(&self.own), place.look_up(&self.other))
    }

    /// Ticks of a gap from a random word.
    #[inline(always)]
    pub(crate) fn gap<W: Word>(&self, word: W) -> W {
        exponential(word).times_high(W::all(self.gap)).right(self.gap_bits + UNIT_BITS - 32)
    }
}

/// What the lanes do next.
struct Event<W> {
    /// Whether anything happens in a lane before it stops.
    active: W,
    comes: W,
    ends: W,
    source: W,
    core: W,
    /// Kind of the frame that comes.
    kind: W,
}

/// What a lane's core that polls does.
struct PollState<W> {
    phase: W,
    rest: W,
    polled: W,
    interrupted: W,
}

/// A lane's core, as far as an event concerns it.
struct Station<W> {
    frames: W,
    began: W,
    room: W,
    /// Places of the first, the second and the place after the last in the ring, of all rings' places.
    first: W,
    second: W,
    tail: W,
}

/// Mask: an instant lies before another, low words first.
#[inline(always)]
fn is_before<W: Word>(one: [W; 2], other: [W; 2]) -> W {
    one[1].below(other[1]).or(one[1].equals(other[1]).and(one[0].below(other[0])))
}

/// A time in 256ths of a tick as whole ticks, and what is left.
#[inline(always)]
fn split<W: Word>(fine: W) -> (W, W) {
    (fine.right(FINE_BITS), fine.and(W::all((1 << FINE_BITS) - 1)))
}

impl<W: Word> Lanes<W> {
    /// Takes every lane to its end.
    #[inline(always)]
    pub(crate) fn run(&mut self, program: &Program) {
        while self.step(program) {}
    }

    /// Takes every lane one event further; false if all have come to their end.
    #[inline(always)]
    fn step(&mut self, program: &Program) -> bool {
        let event = self.next_event(program);
        if !event.active.any() {
            return false;
        }
        match &program.polls {
            None => self.serve(program, &event),
            Some(polls) => self.serve_polls(program, polls, &event),
        }
        self.draw_arrivals(program, &event);
        true
    }

    /// The earliest of what is due; at one instant services end first.
    #[inline(always)]
    fn next_event(&mut self, program: &Program) -> Event<W> {
        let mut least = W::all(NONE);
        let (mut core, mut source, mut comes) = (W::all(0), W::all(0), W::all(0));
        for (number, station) in self.cores.iter().enumerate() {
            let is_idle = if program.polls.is_some() { station.phase } else { station.frames }.is_zero();
            let due = is_idle.choose(W::all(NONE), station.done.minus(self.now));
            let is_earlier = due.below(least);
            least = is_earlier.choose(due, least);
            core = is_earlier.choose(W::all(number as u32), core);
        }
        let mut kind = self.sources[0].kind;
        for (number, port) in self.sources.iter().enumerate() {
            let due = port.next.minus(self.now);
            let is_earlier = due.below(least);
            least = is_earlier.choose(due, least);
            source = is_earlier.choose(W::all(number as u32), source);
            kind = is_earlier.choose(port.kind, kind);
            comes = comes.or(is_earlier);
        }
        let active = least.below(self.end.minus(self.now));
        let then = self.now.plus(least.and(active));
        self.high = self.high.count(then.below(self.now));
        self.now = then;
        if let [_, _, ..] = program.cores.as_slice() {
            core = comes.choose(kind.look_up(&program.core_of), core);
        }
        Event { active, comes: comes.and(active), ends: active.and(comes.not()), source, core, kind }
    }

    /// The state of each lane's core.
    #[inline(always)]
    fn station(&self, program: &Program, event: &Event<W>) -> Station<W> {
        let of = |ring: &Ring| [ring.room, ring.base, ring.mask].map(W::all);
        let first = &self.cores[0];
        let (mut frames, mut head, mut began) = (first.frames, first.head, first.began);
        let [mut room, mut base, mut mask] = of(&program.cores[0]);
        for (number, (station, ring)) in self.cores.iter().zip(&program.cores).enumerate().skip(1) {
            let is_here = event.core.equals(W::all(number as u32));
            frames = is_here.choose(station.frames, frames);
            head = is_here.choose(station.head, head);
            began = is_here.choose(station.began, began);
            let [its_room, its_base, its_mask] = of(ring);
            room = is_here.choose(its_room, room);
            base = is_here.choose(its_base, base);
            mask = is_here.choose(its_mask, mask);
        }
        let place = |offset: W| self.place(base, mask, head.plus(offset));
        Station { frames, began, room, first: place(W::all(0)), second: place(W::all(1)), tail: place(frames) }
    }

    /// The place of each lane's word in a ring.
    #[inline(always)]
    fn place(&self, base: W, mask: W, number: W) -> W {
        base.plus(number.and(mask)).times(W::all(W::LANES as u32)).plus(self.number)
    }

    /// Ends a service or takes in a frame, and begins a service where there is something to do.
    #[inline(always)]
    fn serve(&mut self, program: &Program, event: &Event<W>) {
        let station = self.station(program, event);
        let taken = event.comes.and(station.room.below(station.frames).not());
        let left = station.frames.count(taken).uncount(event.ends);
        let wakes = taken.and(station.frames.is_zero());
        let rests = event.ends.and(left.is_zero());
        let starts = wakes.or(event.ends.and(rests.not()));
        self.busy = self.busy.count(wakes).uncount(rests);
        let came = station.first.look_up(&self.came);
        // The place after the last is free, so it may be written whatever happens.
        self.now.put(&mut self.came, station.tail);
        let (mut leaving, mut begins) = (W::all(0), W::all(0));
        if let [_, _, ..] = program.core_of.as_slice() {
            leaving = station.first.look_up(&self.kinds);
            begins = event.comes.choose(event.kind, station.second.look_up(&self.kinds));
            event.kind.put(&mut self.kinds, station.tail);
        }
        let service = self.service(program, event, begins, W::all(0));
        let done = self.now.plus(service);
        let lost = event.comes.and(taken.not());
        for (number, core) in self.cores.iter_mut().enumerate() {
            let is_here = event.active.and(event.core.equals(W::all(number as u32)));
            let starts_here = is_here.and(starts);
            core.frames = is_here.choose(left, core.frames);
            core.head = core.head.count(is_here.and(event.ends));
            core.began = starts_here.choose(self.now, core.began);
            core.done = starts_here.choose(done, core.done);
            self.counts.busy[number].add(service, starts_here);
            self.counts.lost[number].count(is_here.and(lost));
            self.counts.waited_at_core[number].add(station.began.minus(came), is_here.and(event.ends));
        }
        self.note_loss(lost, self.now, self.high);
        self.send(program, event.ends, came, station.began, leaving);
    }

    /// The same for cores that poll.
    #[inline(always)]
    fn serve_polls(&mut self, program: &Program, polls: &PollProgram, event: &Event<W>) {
        let station = self.station(program, event);
        let poll = self.poll_state(event);
        let is = |what: u32| event.ends.and(poll.phase.equals(W::all(what)));
        let (served, worked, rung) = (is(phase::SERVES), is(phase::INTERRUPTED), is(phase::WAITS));
        let was_idle = event.comes.and(poll.phase.is_zero());
        let taken = event.comes.and(station.frames.minus(poll.rest).below(station.room));
        let frames = station.frames.count(taken).uncount(served);
        let rest = poll.rest.uncount(served);
        let goes_on = served.and(rest.is_zero().not());
        let over = served.and(rest.is_zero());
        let waits = frames.is_zero().not();
        let is_short = poll.polled.below(W::all(polls.batch));
        let drains = if polls.exhaustive { over.and(is_short).and(waits) } else { W::all(0) };
        let over = over.and(drains.not());
        let sleeps = if polls.interrupts { is_short } else { W::all(0) };
        let raises = over.and(waits).and(sleeps).or(if polls.interrupts { was_idle } else { W::all(0) });
        let works = if polls.works_first { rung } else { W::all(0) };
        let finds = over.and(waits).and(sleeps.not());
        let finds = finds.or(worked).or(rung.and(works.not())).or(was_idle.and(raises.not()));
        let starts = goes_on.or(drains).or(finds);
        let rests = over.and(waits.not());
        let (worked_before, works_now) = (served.or(worked), starts.or(works));
        self.busy = self.busy.count(works_now.and(worked_before.not())).uncount(worked_before.and(works_now.not()));
        let came = station.first.look_up(&self.came);
        self.now.put(&mut self.came, station.tail);
        let (mut leaving, mut begins) = (W::all(0), W::all(0));
        if let [_, _, ..] = program.core_of.as_slice() {
            leaving = station.first.look_up(&self.kinds);
            let next = served.choose(station.second, station.first).look_up(&self.kinds);
            begins = was_idle.choose(event.kind, next);
            event.kind.put(&mut self.kinds, station.tail);
        }
        let least = |one: W, other: W| one.below(other).choose(one, other);
        let share = if polls.exhaustive { W::all(1) } else { least(frames, W::all(polls.batch)) };
        let busy = least(self.busy.minus(W::all(1)), W::all(program.factors - 1));
        let extra = finds.and(busy.look_up(&polls.cost_of));
        let interrupt = busy.look_up(&polls.interrupt_of);
        let extra = extra.plus(rung.and(finds).and(interrupt));
        let service =
            works.choose(self.whole_ticks(program, event, interrupt), self.service(program, event, begins, extra));
        let next_interrupt = poll.interrupted.plus(W::all(polls.moderation));
        let due = next_interrupt.after(self.now).choose(next_interrupt, self.now);
        let lost = event.comes.and(taken.not());
        for (number, core) in self.cores.iter_mut().enumerate() {
            let is_here = event.active.and(event.core.equals(W::all(number as u32)));
            let here = |mask: W| is_here.and(mask);
            core.frames = is_here.choose(frames, core.frames);
            core.head = core.head.count(here(served));
            core.began = here(starts).choose(self.now, core.began);
            core.done = here(works_now).choose(self.now.plus(service), here(raises).choose(due, core.done));
            core.interrupted = here(raises).choose(due, core.interrupted);
            let what = starts.and(W::all(phase::SERVES)).or(works.and(W::all(phase::INTERRUPTED)));
            let what = what.or(raises.and(W::all(phase::WAITS)));
            core.phase = here(works_now.or(raises).or(rests)).choose(what, core.phase);
            core.rest = is_here.choose(finds.choose(share, drains.choose(W::all(1), rest)), core.rest);
            core.polled = here(finds).choose(share, core.polled.count(here(drains)));
            self.counts.busy[number].add(service, here(works_now));
            self.counts.lost[number].count(here(lost));
            self.counts.interrupts[number].count(here(rung));
            self.counts.polls[number].count(here(finds));
            self.counts.waited_at_core[number].add(station.began.minus(came), here(served));
        }
        self.note_loss(lost, self.now, self.high);
        self.send(program, served, came, station.began, leaving);
    }

    /// What each lane's core does.
    #[inline(always)]
    fn poll_state(&self, event: &Event<W>) -> PollState<W> {
        let of = |core: &CoreLanes<W>| [core.phase, core.rest, core.polled, core.interrupted];
        let mut words = of(&self.cores[0]);
        for (number, core) in self.cores.iter().enumerate().skip(1) {
            let is_here = event.core.equals(W::all(number as u32));
            for (word, its) in words.iter_mut().zip(of(core)) {
                *word = is_here.choose(its, *word);
            }
        }
        let [phase, rest, polled, interrupted] = words;
        PollState { phase, rest, polled, interrupted }
    }

    /// Ticks of work of a known length, one at least, its fraction kept in the mean by a draw.
    #[inline(always)]
    fn whole_ticks(&self, program: &Program, event: &Event<W>, fine: W) -> W {
        let [_, rounding] = threefry(program.service, self.counter(event));
        let (ticks, _) = split(fine.plus(split(rounding).1));
        ticks.count(ticks.is_zero())
    }

    /// The counter of a draw for what begins now at a core.
    #[inline(always)]
    fn counter(&self, event: &Event<W>) -> [W; 2] {
        [self.now, self.high.xor(event.core.left(TICK_BITS - 32))]
    }

    /// Notes the first and the last of the lost frames by when they came.
    #[inline(always)]
    fn note_loss(&mut self, lost: W, low: W, high: W) {
        let counts = &mut self.counts;
        let is_new = counts.has_lost.not();
        let came = [low, high];
        let is_first = lost.and(is_new.or(is_before(came, counts.first_lost)));
        let is_last = lost.and(is_new.or(is_before(counts.last_lost, came)));
        counts.first_lost = [0, 1].map(|word| is_first.choose(came[word], counts.first_lost[word]));
        counts.last_lost = [0, 1].map(|word| is_last.choose(came[word], counts.last_lost[word]));
        counts.has_lost = counts.has_lost.or(lost);
    }

    /// Ticks of a service that begins now: at least one. What is less than a tick is kept in the mean by a draw, and so
    /// is the part of a tick after which a frame came that begins a service.
    #[inline(always)]
    fn service(&self, program: &Program, event: &Event<W>, kind: W, extra: W) -> W {
        let work = match program.work_of.as_slice() {
            [only] => W::all(*only),
            works => {
                let factors = W::all(program.factors);
                let last = W::all(program.factors - 1);
                let slowed = self.busy.uncount(W::all(u32::MAX));
                let slowed = slowed.below(last).choose(slowed, last);
                kind.times(factors).plus(slowed).look_up(works)
            }
        };
        let [random, rounding] = threefry(program.service, self.counter(event));
        let fine = scaled(work, program.law.factor(random), program.law.bits()).plus(extra);
        let came = event.comes.and(split(rounding.right(FINE_BITS)).1);
        let (ticks, _) = split(fine.plus(split(rounding).1).plus(came));
        ticks.count(ticks.is_zero())
    }

    /// Passes frames whose service has ended to their links, and counts them.
    #[inline(always)]
    fn send(&mut self, program: &Program, ends: W, came: W, began: W, kind: W) {
        let (mut start, mut leaves, mut lost_here) = (self.now, ends, W::all(0));
        if !self.links.is_empty() {
            let link = kind.look_up(&program.link_of);
            let transmission = kind.look_up(&program.transmission_of);
            for (number, ring) in program.links.iter().enumerate() {
                let is_here = ends.and(link.equals(W::all(number as u32)));
                let port = &self.links[number];
                let waits = port.free.after(self.now);
                let begins = waits.choose(port.free, self.now);
                let place = |number: W| self.place(W::all(ring.base), W::all(ring.mask), number);
                let (tail, before) = (place(port.tail), place(port.tail.minus(W::all(ring.room))));
                // As many wait as there is room for while the frame that came so many before has not begun to leave.
                let is_full =
                    if ring.room == 0 { waits } else { waits.and(before.look_up(&self.starts).after(self.now)) };
                begins.put(&mut self.starts, tail);
                let taken = is_here.and(is_full.not());
                let (ticks, fine) = split(waits.and(port.fine).plus(transmission));
                let port = &mut self.links[number];
                port.free = taken.choose(begins.plus(ticks), port.free);
                port.fine = taken.choose(fine, port.fine);
                port.tail = port.tail.count(taken);
                start = taken.choose(begins, start);
                let lost = is_here.and(is_full);
                self.counts.lost_at_link[number].count(lost);
                self.counts.sent[number].add(transmission, taken);
                self.counts.waited_at_link[number].add(begins.minus(self.now), taken);
                lost_here = lost_here.or(lost);
                leaves = leaves.and(lost.not());
            }
            self.note_loss(lost_here, came, self.high.uncount(self.now.below(came)));
        }
        let latency = start.minus(came);
        let waited = began.minus(came).plus(start.minus(self.now));
        let counts = &mut self.counts;
        counts.forwarded.count(leaves);
        let bytes = match program.bytes_of.as_slice() {
            [only] => W::all(*only),
            bytes => kind.look_up(bytes),
        };
        counts.forwarded_bytes.add(bytes, leaves);
        counts.latency.add(latency, leaves);
        counts.waited.add(waited, leaves);
        let own = self.number.times(W::all(BINS as u32 + 1));
        for (time, bins) in [(latency, &mut counts.latencies), (waited, &mut counts.waits)] {
            let place = own.plus(leaves.choose(bin(time), W::all(BINS as u32)));
            place.look_up(bins).plus(W::all(1)).put(bins, place);
        }
    }

    /// Draws the frame after the one that came.
    #[inline(always)]
    fn draw_arrivals(&mut self, program: &Program, event: &Event<W>) {
        for (number, source) in program.sources.iter().enumerate() {
            let port = &mut self.sources[number];
            let came = event.comes.and(event.source.equals(W::all(number as u32)));
            let kept = port.clone();
            self.counts.offered[number].count(came);
            let bytes = |kind: W| match program.bytes_of.as_slice() {
                [only] => W::all(*only),
                bytes => kind.look_up(bytes),
            };
            self.counts.offered_bytes[number].add(bytes(port.kind), came);
            port.number = kept.number.count(came);
            let counter = [kept.cell, port.number.or(W::all((number as u32) << NUMBER_BITS))];
            let [when, what] = threefry(program.arrival, counter);
            port.ideal = came.choose(kept.ideal.plus(source.gap(when)), kept.ideal);
            port.kind = came.choose(source.kind(what), kept.kind);
            let crosses = came.and(kept.border.after(port.ideal).not());
            if crosses.any() {
                for lane in (0..W::LANES).filter(|&lane| crosses.get(lane) != 0) {
                    let border = port.border.get(lane);
                    port.ideal.set(lane, border);
                    port.cell.set(lane, port.cell.get(lane) + 1);
                    port.border.set(lane, border.wrapping_add(1 << program.cell_bits));
                    port.draw_first(program, number, lane);
                }
            }
            // A frame's last bit follows the last one's by its own time on the wire, at least (S1).
            let wire = match program.wire_of.as_slice() {
                [only] => W::all(*only),
                wires => port.kind.look_up(wires),
            };
            let (ticks, fine) = split(kept.fine.plus(wire));
            let spaced = self.now.plus(ticks);
            let is_spaced = port.ideal.after(spaced).not();
            port.next = came.choose(is_spaced.choose(spaced, port.ideal), kept.next);
            port.fine = came.choose(is_spaced.and(fine), kept.fine);
        }
    }
}
