//! One step of all lanes: each goes to its next event, a frame that comes or a service that ends.

#![expect(clippy::inline_always, reason = "parts of the step, in a function that enables the vectors")]

use crate::draw::{UNIT_BITS, exponential, scaled, threefry};
use crate::law::Law;
use crate::pace::{Bursts, Pace, Recorded, recorded_counter};
use crate::program::{
    COARSE_BITS, EVEN_CELL_BITS, FINE_BITS, InterruptionProgram, NO_NEXT, NUMBER_BITS, PollProgram, Program, Ring,
    SourceProgram, TICK_BITS, TimeProgram,
};
use crate::state::{CoreLanes, Lanes, SourceLanes, phase};
use crate::tally::{BINS, bin};
use crate::words::{Word, WordExt};

const NONE: u32 = 0x7fff_ffff;
/// Part of a tick that a draw decides.
const BY_CHANCE: u32 = 1 << FINE_BITS;

impl SourceProgram {
    /// The kind of a frame at a place of the sequence, from a random word.
    #[inline(always)]
    pub(crate) fn kind<W: Word>(&self, word: W, place: W) -> W {
        if let [only] = self.own.as_slice() {
            return W::all(*only);
        }
        if !self.draws_kinds() {
            return place.look_up(&self.own);
        }
        let kinds = W::all(self.own.len() as u32 / self.places);
        let (entry, rest) = (word.times_high(kinds), word.times(kinds));
        let entry = place.times(kinds).plus(entry);
        rest.below(entry.look_up(&self.own_share)).choose(entry.look_up(&self.own), entry.look_up(&self.other))
    }

    /// Whether there is more than one kind at a place.
    #[inline(always)]
    fn draws_kinds(&self) -> bool {
        self.own.len() as u32 > self.places
    }

    /// Ticks of a Poisson source's gap from a random word; `mean` as in its eras.
    #[inline(always)]
    pub(crate) fn gap<W: Word>(&self, word: W, mean: W) -> W {
        let Pace::Poisson { bits, .. } = self.pace else { unreachable!("gaps are equal") };
        exponential(word).times_high(mean).right(bits + UNIT_BITS - 32)
    }
}

impl TimeProgram {
    /// Ticks of a random time from a random word.
    #[inline(always)]
    fn ticks<W: Word>(&self, word: W) -> W {
        scaled(W::all(self.mean), self.law.factor(word), self.law.bits())
    }
}

/// What the lanes do next.
#[derive(Clone, Copy)]
pub(crate) struct Event<W> {
    /// Whether anything happens in a lane before it stops.
    pub active: W,
    pub comes: W,
    pub ends: W,
    pub source: W,
    pub core: W,
    /// Where several are in service, which of them ends; and how many services have begun there at this instant before.
    pub place: W,
    pub before: W,
    /// Kind of the frame that comes.
    pub kind: W,
    /// 256ths of a tick after the instant at which it comes; [`BY_CHANCE`] where nobody knows.
    pub part: W,
    /// When it came to the router, and for how many ticks it has waited at other cores.
    pub entered: W,
    pub waited: W,
}

/// Frames whose service has ended in the lanes of a mask.
pub(crate) struct Served<W> {
    pub ends: W,
    /// When they came to the router, and for how many ticks they have waited since.
    pub entered: W,
    pub waited: W,
    pub kind: W,
}

impl<W: Word> Served<W> {
    /// The one's in the lanes of a mask, the other's elsewhere.
    #[inline(always)]
    fn or(self, mask: W, other: &Self) -> Self {
        Self {
            ends: self.ends.or(other.ends),
            entered: mask.choose(self.entered, other.entered),
            waited: mask.choose(self.waited, other.waited),
            kind: mask.choose(self.kind, other.kind),
        }
    }
}

impl<W: Word> Event<W> {
    /// The same in the lanes of a mask, nothing in others.
    #[inline(always)]
    fn among(&self, mask: W) -> Self {
        let [active, comes, ends] = [self.active, self.comes, self.ends].map(|does| does.and(mask));
        Self { active, comes, ends, ..*self }
    }
}

/// What a lane's core that polls does.
struct PollState<W> {
    phase: W,
    rest: W,
    polled: W,
    interrupted: W,
    idle: W,
    done: W,
}

/// A lane's core, as far as an event concerns it.
pub(crate) struct Station<W> {
    pub frames: W,
    pub began: W,
    pub room: W,
    /// Places of the first, the second and the place after the last in the ring, of all rings' places.
    pub first: W,
    pub second: W,
    pub tail: W,
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

/// The number of the sleep state that an idle time leads to, from 1 on; 0: none.
#[inline(always)]
fn sleep_state<W: Word>(program: &Program, idle: W) -> W {
    let is_new = idle.is_zero();
    program.sleep.iter().fold(W::all(0), |state, sleep| state.count(idle.below(W::all(sleep.after)).or(is_new).not()))
}

/// Ticks from when a core is asked for until it works, by the number of its sleep state.
#[inline(always)]
fn exit_ticks<W: Word>(program: &Program, sleep: W) -> W {
    let states = program.sleep.iter().enumerate();
    states.fold(W::all(0), |exit, (number, state)| {
        sleep.equals(W::all(number as u32 + 1)).choose(W::all(state.exit), exit)
    })
}

impl<W: Word> Lanes<W> {
    /// Takes every lane to its end.
    #[inline(always)]
    pub(crate) fn run(&mut self, program: &Program) {
        while self.step(program).any() {}
    }

    /// Takes every lane one event further; returns the mask of those that had not come to their end.
    #[inline(always)]
    pub(crate) fn step(&mut self, program: &Program) -> W {
        let event = self.next_event(program);
        if !event.active.any() {
            return event.active;
        }
        let (mut now, mut has_passed) = (event, false);
        // A frame that ends a service comes to its next core at once: the same step, once more.
        loop {
            let served = self.serve_any(program, &now);
            if has_passed {
                break;
            }
            let Some(passes) = self.pass(program, &served) else { break };
            (now, has_passed) = (passes, true);
        }
        self.draw_arrivals(program, &event);
        event.active
    }

    #[inline(always)]
    fn serve_any(&mut self, program: &Program, event: &Event<W>) -> Served<W> {
        if program.teams.is_empty() {
            return self.serve_alone(program, event);
        }
        let team = event.core.look_up(&program.team_of);
        let none = W::all(0);
        let mut served = Served { ends: none, entered: none, waited: none, kind: none };
        let alone = event.among(team.is_zero());
        if alone.active.any() {
            served = self.serve_alone(program, &alone);
        }
        for number in 0..program.teams.len() {
            let here = team.equals(W::all(number as u32 + 1));
            let its = event.among(here);
            if its.active.any() {
                served = self.serve_team(program, number, &its).or(here, &served);
            }
        }
        served
    }

    #[inline(always)]
    fn serve_alone(&mut self, program: &Program, event: &Event<W>) -> Served<W> {
        match &program.polls {
            None => self.serve(program, event),
            Some(polls) if program.apart.is_empty() => self.serve_polls(program, polls, event),
            Some(polls) => {
                let apart = event.core.look_up(&program.apart);
                let one = self.serve(program, &event.among(apart));
                let other = self.serve_polls(program, polls, &event.among(apart.not()));
                one.or(apart, &other)
            }
        }
    }

    /// Passes frames whose service has ended to their links, and returns how the others come to their next cores.
    #[inline(always)]
    fn pass(&mut self, program: &Program, served: &Served<W>) -> Option<Event<W>> {
        if program.next_of.is_empty() {
            self.send(program, served);
            return None;
        }
        let next = served.kind.look_up(&program.next_of);
        let passes = served.ends.and(next.equals(W::all(NO_NEXT)).not());
        let dealer = served.kind.look_up(&program.dealer_of);
        let &Served { ends, entered, waited, kind } = served;
        self.send(program, &Served { ends: ends.and(passes.not()), entered, waited, kind });
        if !passes.any() {
            return None;
        }
        let mut kind = passes.and(next);
        for (number, &kinds) in program.dealers.iter().enumerate() {
            let deals = passes.and(dealer.equals(W::all(number as u32)));
            let turn = self.dealt[number];
            kind = kind.plus(deals.and(turn));
            let next = turn.count(deals);
            self.dealt[number] = next.below(W::all(kinds)).and(next);
        }
        let core = kind.look_up(&program.core_of);
        let none = W::all(0);
        Some(Event {
            active: passes,
            comes: passes,
            ends: none,
            source: none,
            core,
            place: none,
            before: none,
            kind,
            part: none,
            entered,
            waited,
        })
    }

    /// The earliest of what is due; at one instant services end first.
    #[inline(always)]
    fn next_event(&mut self, program: &Program) -> Event<W> {
        let mut least = W::all(NONE);
        let (mut core, mut source, mut comes, mut place) = (W::all(0), W::all(0), W::all(0), W::all(0));
        for (number, station) in self.cores.iter().enumerate() {
            if let Some((team, _)) = program.team_at(number) {
                if program.teams[team].leader == number {
                    let team = &self.teams[team];
                    for (number_there, served) in team.places.iter().enumerate() {
                        let there = W::all(number_there as u32);
                        let due = there.below(team.busy).choose(served.done.minus(self.now), W::all(NONE));
                        let is_earlier = due.below(least);
                        least = is_earlier.choose(due, least);
                        core = is_earlier.choose(W::all(number as u32), core);
                        place = is_earlier.choose(there, place);
                    }
                }
                continue;
            }
            let is_idle = if program.polls_at(number).is_some() { station.phase } else { station.frames }.is_zero();
            let due = is_idle.choose(W::all(NONE), station.done.minus(self.now));
            let is_earlier = due.below(least);
            least = is_earlier.choose(due, least);
            core = is_earlier.choose(W::all(number as u32), core);
        }
        let (mut kind, mut part) = (self.sources[0].kind, W::all(BY_CHANCE));
        for (number, port) in self.sources.iter().enumerate() {
            let due = port.next.minus(self.now);
            let is_earlier = due.below(least);
            least = is_earlier.choose(due, least);
            source = is_earlier.choose(W::all(number as u32), source);
            kind = is_earlier.choose(port.kind, kind);
            if program.knows_parts {
                let its = W::all(BY_CHANCE);
                let its = if program.sources[number].knows_parts() { port.rest.right(32 - FINE_BITS) } else { its };
                part = is_earlier.choose(its, part);
            }
            comes = comes.or(is_earlier);
        }
        let active = least.below(self.end.minus(self.now));
        let then = self.now.plus(least.and(active));
        self.high = self.high.count(then.below(self.now));
        self.now = then;
        if program.turns > 1 {
            kind = kind.plus(self.turn);
            let next = self.turn.count(comes.and(active));
            self.turn = next.below(W::all(program.turns)).and(next);
        }
        if let [_, _, ..] = program.cores.as_slice() {
            core = comes.choose(kind.look_up(&program.core_of), core);
        }
        let (comes, ends) = (comes.and(active), active.and(comes.not()));
        let (entered, none) = (self.now, W::all(0));
        Event { active, comes, ends, source, core, place, before: none, kind, part, entered, waited: none }
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
            if !is_here.any() {
                continue;
            }
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
    pub(crate) fn place(&self, base: W, mask: W, number: W) -> W {
        base.plus(number.and(mask)).times(W::all(W::LANES as u32)).plus(self.number)
    }

    /// Puts the frame that comes into the place after the last, which is free, so whatever happens; returns when the first
    /// came to the router and to its core, and for how many ticks it had waited before.
    #[inline(always)]
    pub(crate) fn put_in_ring(&mut self, program: &Program, event: &Event<W>, station: &Station<W>) -> [W; 3] {
        let came = station.first.look_up(&self.came);
        event.entered.put(&mut self.came, station.tail);
        if program.next_of.is_empty() {
            return [came, came, W::all(0)];
        }
        let (reached, waited) = (station.first.look_up(&self.reached), station.first.look_up(&self.waited));
        self.now.put(&mut self.reached, station.tail);
        event.waited.put(&mut self.waited, station.tail);
        [came, reached, waited]
    }

    /// Ends a service or takes in a frame, and begins a service where there is something to do.
    #[inline(always)]
    fn serve(&mut self, program: &Program, event: &Event<W>) -> Served<W> {
        let station = self.station(program, event);
        let taken = event.comes.and(station.room.below(station.frames).not());
        let left = station.frames.count(taken).uncount(event.ends);
        let wakes = taken.and(station.frames.is_zero());
        let rests = event.ends.and(left.is_zero());
        let starts = wakes.or(event.ends.and(rests.not()));
        let counts = if program.contends.is_empty() { event.active } else { event.core.look_up(&program.contends) };
        self.busy = self.busy.count(wakes.and(counts)).uncount(rests.and(counts));
        let [came, reached, waited] = self.put_in_ring(program, event, &station);
        let (mut leaving, mut begins) = (W::all(0), W::all(0));
        if let [_, _, ..] = program.core_of.as_slice() {
            leaving = station.first.look_up(&self.kinds);
            begins = event.comes.choose(event.kind, station.second.look_up(&self.kinds));
            event.kind.put(&mut self.kinds, station.tail);
        }
        let service = self.service(program, event, begins, W::all(0), starts);
        let done = self.now.plus(service);
        let lost = event.comes.and(taken.not());
        for (number, core) in self.cores.iter_mut().enumerate() {
            let is_here = event.active.and(event.core.equals(W::all(number as u32)));
            if !is_here.any() {
                continue;
            }
            let starts_here = is_here.and(starts);
            core.frames = is_here.choose(left, core.frames);
            // An empty ring begins anew, so that what is in use stays close together.
            core.head = core.head.count(is_here.and(event.ends)).and(is_here.and(rests).not());
            core.began = starts_here.choose(self.now, core.began);
            core.done = starts_here.choose(done, core.done);
            self.counts.busy[number].add(service, starts_here);
            self.counts.lost[number].count(is_here.and(lost));
            self.counts.waited_at_core[number].add(station.began.minus(reached), is_here.and(event.ends));
        }
        self.note_loss(lost, event.entered, self.high.uncount(self.now.below(event.entered)));
        let waited = waited.plus(station.began.minus(reached));
        Served { ends: event.ends, entered: came, waited, kind: leaving }
    }

    /// The same for cores that poll.
    #[inline(always)]
    fn serve_polls(&mut self, program: &Program, polls: &PollProgram, event: &Event<W>) -> Served<W> {
        let station = self.station(program, event);
        let poll = self.poll_state(event);
        let none = W::all(0);
        let if_so = |is: bool, mask: W| if is { mask } else { none };
        let does = |what: u32| poll.phase.equals(W::all(what));
        let is = |what: u32| event.ends.and(does(what));
        let (served, worked, rung) = (is(phase::SERVES), is(phase::INTERRUPTED), is(phase::WAITS));
        let woke = if_so(!program.sleep.is_empty(), is(phase::WAKES));
        let (lingers, gave_up) = (polls.linger > 0, if_so(polls.linger > 0, is(phase::LINGERS)));
        let was_idle = event.comes.and(poll.phase.is_zero());
        let found = if_so(lingers, event.comes.and(does(phase::LINGERS)));
        let taken = event.comes.and(station.frames.minus(poll.rest).below(station.room));
        let frames = station.frames.count(taken).uncount(served);
        let rest = poll.rest.uncount(served);
        let goes_on = served.and(rest.is_zero().not());
        let over = served.and(rest.is_zero());
        let waits = frames.is_zero().not();
        let is_short = poll.polled.below(W::all(polls.batch));
        let drains = if_so(polls.exhaustive, over.and(is_short).and(waits));
        let over = over.and(drains.not());
        // Interrupts are enabled after a poll that came back short, at once or after lingering.
        let enables = if_so(polls.interrupts && !lingers, is_short);
        let raises = over.and(waits).and(enables).or(if_so(polls.interrupts, was_idle));
        let stays = if_so(lingers, over.and(waits.not()));
        let asks = if polls.interrupts { rung } else { was_idle };
        let sleep = sleep_state(program, asks.choose(self.now.minus(poll.idle), none));
        let asleep = asks.and(sleep.is_zero().not());
        let ready = asks.and(asleep.not()).or(woke);
        let works = if_so(polls.works_first, ready);
        let finds = over.and(waits).and(enables.not()).or(worked).or(ready.and(works.not())).or(found);
        let starts = goes_on.or(drains).or(finds);
        let rests = over.and(waits.not()).and(stays.not()).or(gave_up);
        let (worked_before, works_now) = (served.or(worked), starts.or(works));
        self.busy = self.busy.count(works_now.and(worked_before.not())).uncount(worked_before.and(works_now.not()));
        let [came, reached, waited] = self.put_in_ring(program, event, &station);
        let (mut leaving, mut begins) = (none, none);
        if let [_, _, ..] = program.core_of.as_slice() {
            leaving = station.first.look_up(&self.kinds);
            let next = served.choose(station.second, station.first).look_up(&self.kinds);
            begins = event.comes.choose(event.kind, next);
            event.kind.put(&mut self.kinds, station.tail);
        }
        let least = |one: W, other: W| one.below(other).choose(one, other);
        let share = if polls.exhaustive { W::all(1) } else { least(frames, W::all(polls.batch)) };
        let busy = least(self.busy.minus(W::all(1)), W::all(program.factors - 1));
        let extra = finds.and(busy.look_up(&polls.cost_of));
        let interrupt = busy.look_up(&polls.interrupt_of);
        let extra = extra.plus(ready.and(finds).and(interrupt));
        let service = works.choose(
            self.whole_ticks(program, event, works, interrupt),
            self.service(program, event, begins, extra, starts),
        );
        let allowed = poll.interrupted.plus(W::all(polls.moderation));
        let interrupts = allowed.after(self.now).choose(allowed, self.now);
        let due = interrupts.plus(self.wakes_up(program, polls, event, was_idle.or(interrupts.after(self.now))));
        let exit = exit_ticks(program, sleep);
        let lost = event.comes.and(taken.not());
        let mut ends = self.now.plus(service);
        ends = asleep.choose(self.now.plus(exit), ends);
        ends = stays.choose(self.now.plus(W::all(polls.linger)), ends);
        ends = raises.choose(due, ends);
        let changes = works_now.or(raises).or(asleep).or(stays);
        let mut what = starts.and(W::all(phase::SERVES)).or(works.and(W::all(phase::INTERRUPTED)));
        what = what.or(raises.and(W::all(phase::WAITS))).or(asleep.and(W::all(phase::WAKES)));
        what = what.or(stays.and(W::all(phase::LINGERS)));
        let spun = W::all(polls.linger).minus(poll.done.minus(self.now));
        for number in 0..self.cores.len() {
            let is_here = event.active.and(event.core.equals(W::all(number as u32)));
            if !is_here.any() {
                continue;
            }
            let here = |mask: W| is_here.and(mask);
            if !program.sleep.is_empty() {
                self.count_sleep(program, number, here(asks));
                self.count_wakes(program, number, here(asleep), sleep, exit);
            }
            let core = &mut self.cores[number];
            core.frames = is_here.choose(frames, core.frames);
            core.head = core.head.count(here(served)).and(here(waits.not()).not());
            core.began = here(starts).choose(self.now, core.began);
            core.done = here(changes).choose(ends, core.done);
            core.interrupted = here(raises).choose(interrupts, core.interrupted);
            core.phase = here(changes.or(rests)).choose(what, core.phase);
            core.rest = is_here.choose(finds.choose(share, drains.choose(W::all(1), rest)), core.rest);
            core.polled = here(finds).choose(share, core.polled.count(here(drains)));
            let released = here(rests.or(over.and(raises)));
            core.idle = released.choose(self.now, core.idle);
            core.counted = released.choose(self.now, core.counted);
            self.counts.busy[number].add(service, here(works_now));
            self.counts.lost[number].count(here(lost));
            self.counts.interrupts[number].count(here(rung));
            self.counts.polls[number].count(here(finds));
            if lingers {
                self.counts.spun[number].add(spun, here(found.or(gave_up)));
            }
            self.counts.waited_at_core[number].add(station.began.minus(reached), here(served));
        }
        self.note_loss(lost, event.entered, self.high.uncount(self.now.below(event.entered)));
        let waited = waited.plus(station.began.minus(reached));
        Served { ends: served, entered: came, waited, kind: leaving }
    }

    /// What each lane's core does.
    #[inline(always)]
    fn poll_state(&self, event: &Event<W>) -> PollState<W> {
        let of = |core: &CoreLanes<W>| [core.phase, core.rest, core.polled, core.interrupted, core.idle, core.done];
        let mut words = of(&self.cores[0]);
        for (number, core) in self.cores.iter().enumerate().skip(1) {
            let is_here = event.core.equals(W::all(number as u32));
            if !is_here.any() {
                continue;
            }
            for (word, its) in words.iter_mut().zip(of(core)) {
                *word = is_here.choose(its, *word);
            }
        }
        let [phase, rest, polled, interrupted, idle, done] = words;
        PollState { phase, rest, polled, interrupted, idle, done }
    }

    /// Counts the sleep of a core of the lanes of a mask until now.
    #[inline(always)]
    pub(crate) fn count_sleep(&mut self, program: &Program, number: usize, mask: W) {
        let core = &self.cores[number];
        let states = program.sleep.len();
        for (state, sleep) in program.sleep.iter().enumerate() {
            let enters = core.idle.plus(W::all(sleep.after));
            let from = enters.after(core.counted).choose(enters, core.counted);
            let leaves = program.sleep.get(state + 1).map(|next| core.idle.plus(W::all(next.after)));
            let until = leaves.map_or(self.now, |leaves| leaves.after(self.now).choose(self.now, leaves));
            self.counts.asleep[number * states + state].add(until.minus(from), mask.and(until.after(from)));
        }
        let core = &mut self.cores[number];
        core.counted = mask.choose(self.now, core.counted);
    }

    /// Counts that a core of the lanes of a mask begins to wake from a state.
    #[inline(always)]
    fn count_wakes(&mut self, program: &Program, number: usize, mask: W, sleep: W, exit: W) {
        let states = program.sleep.len();
        for state in 0..states {
            let is_it = mask.and(sleep.equals(W::all(state as u32 + 1)));
            self.counts.wakes[number * states + state].count(is_it);
        }
        self.counts.waking[number].add(exit, mask);
    }

    /// Ticks from an interrupt until its core is asked for, where it was at rest.
    #[inline(always)]
    fn wakes_up(&self, program: &Program, polls: &PollProgram, event: &Event<W>, at_rest: W) -> W {
        let Some(wakeup) = polls.wakeup.as_ref().filter(|_| at_rest.any()) else { return W::all(0) };
        let [word, _] = threefry(program.wakeup, self.counter(program, event));
        at_rest.and(wakeup.ticks(word))
    }

    /// Ticks that interruptions add to the works, in 256ths of a tick, that begin now in the lanes of a mask.
    #[inline(always)]
    fn interruptions(&mut self, program: &Program, event: &Event<W>, fine: W, begins: W) -> W {
        let Some(InterruptionProgram { ratio, shift, duration }) = &program.interruptions else { return W::all(0) };
        let begins = if program.struck.is_empty() { begins } else { begins.and(event.core.look_up(&program.struck)) };
        let mut left = begins.and(fine.times_high(W::all(*ratio)).left(*shift));
        let (mut added, mut round) = (W::all(0), 0);
        if !begins.any() {
            return added;
        }
        let [low, high] = self.counter(program, event);
        loop {
            // The number of the strike stands above that of the core.
            let [when, how] = threefry(program.interruption, [low, high.xor(W::all(round << (TICK_BITS - 32 + 6)))]);
            let gap = exponential(when).right(COARSE_BITS);
            let strikes = gap.below(left);
            if round == W::ROUNDS {
                self.given_up = self.given_up.or(strikes);
                return added;
            }
            if !strikes.any() {
                return added;
            }
            added = added.plus(strikes.and(duration.ticks(how)));
            left = strikes.and(left.minus(gap));
            round += 1;
        }
    }

    /// Ticks of work of a known length, one at least, its fraction kept in the mean by a draw.
    #[inline(always)]
    fn whole_ticks(&mut self, program: &Program, event: &Event<W>, begins: W, fine: W) -> W {
        if !begins.any() {
            return W::all(0);
        }
        let [_, rounding] = threefry(program.service, self.counter(program, event));
        let (ticks, _) = split(fine.plus(split(rounding).1));
        ticks.count(ticks.is_zero()).plus(self.interruptions(program, event, fine, begins))
    }

    /// The counter of a draw for what begins now at a core.
    #[inline(always)]
    fn counter(&self, program: &Program, event: &Event<W>) -> [W; 2] {
        // Where several begin at one instant, their number stands above that of the core.
        let name = if program.teams.is_empty() { event.core } else { event.core.or(event.before.left(6)) };
        [self.now, self.high.xor(name.left(TICK_BITS - 32))]
    }

    /// Notes the first and the last of the lost frames by when they came.
    #[inline(always)]
    pub(crate) fn note_loss(&mut self, lost: W, low: W, high: W) {
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
    pub(crate) fn service(&mut self, program: &Program, event: &Event<W>, kind: W, extra: W, begins: W) -> W {
        if !begins.any() {
            return W::all(0);
        }
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
        let [random, rounding] = threefry(program.service, self.counter(program, event));
        let varied = |law: &Law| scaled(work, law.factor(random), law.bits());
        let fine = match program.laws.as_slice() {
            [only] => varied(only),
            laws => {
                let law = event.core.look_up(&program.law_of);
                let its = |fine, (number, its)| law.equals(W::all(number as u32)).choose(varied(its), fine);
                laws.iter().enumerate().fold(W::all(0), its)
            }
        };
        let fine = fine.plus(extra);
        let mut came = split(rounding.right(FINE_BITS)).1;
        if program.knows_parts {
            came = event.part.equals(W::all(BY_CHANCE)).choose(came, event.part);
        }
        let came = event.comes.and(came);
        let (ticks, _) = split(fine.plus(split(rounding).1).plus(came));
        ticks.count(ticks.is_zero()).plus(self.interruptions(program, event, fine, begins))
    }

    /// Passes frames whose service has ended to their links, and counts them.
    #[inline(always)]
    fn send(&mut self, program: &Program, served: &Served<W>) {
        let &Served { ends, entered: came, waited, kind } = served;
        if !ends.any() {
            return;
        }
        let (mut start, mut leaves, mut lost_here) = (self.now, ends, W::all(0));
        if !self.links.is_empty() {
            let link = kind.look_up(&program.link_of);
            let transmission = kind.look_up(&program.transmission_of);
            for (number, ring) in program.links.iter().enumerate() {
                let is_here = ends.and(link.equals(W::all(number as u32)));
                if !is_here.any() {
                    continue;
                }
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
        let waited = waited.plus(start.minus(self.now));
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
            place.count_at(bins);
        }
    }

    /// Draws the frame after the one that came.
    #[inline(always)]
    fn draw_arrivals(&mut self, program: &Program, event: &Event<W>) {
        for (number, source) in program.sources.iter().enumerate() {
            let port = &mut self.sources[number];
            let came = event.comes.and(event.source.equals(W::all(number as u32)));
            if !came.any() {
                continue;
            }
            let kept = port.clone();
            self.counts.offered[number].count(came);
            let bytes = |kind: W| match program.bytes_of.as_slice() {
                [only] => W::all(*only),
                bytes => kind.look_up(bytes),
            };
            self.counts.offered_bytes[number].add(bytes(port.kind), came);
            match source.pace {
                Pace::Poisson { .. } => self.given_up = self.given_up.or(port.draw_gap(program, number, came)),
                Pace::Even { gap, .. } => port.go_on(program, number, gap, came),
                Pace::Bursts(ref bursts) => port.go_on_in_bursts(program, number, bursts, came),
                Pace::Recorded(ref recorded) => port.go_on_as_recorded(program, number, recorded, came),
            }
            if !source.is_spaced {
                port.next = came.choose(port.ideal, kept.next);
                continue;
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

impl<W: Word> SourceLanes<W> {
    /// Draws the frame after the one that came in the lanes of a mask; returns the mask of lanes that are given up.
    #[inline(always)]
    pub(crate) fn draw_gap(&mut self, program: &Program, number: usize, came: W) -> W {
        let source = &program.sources[number];
        self.number = self.number.count(came);
        let [when, what] = threefry(program.arrival, self.counter(number));
        self.ideal = came.choose(self.ideal.plus(source.gap(when, self.gap)), self.ideal);
        self.kind = came.choose(source.kind(what, self.place), self.kind);
        let crosses = came.and(self.border.after(self.ideal).not());
        if crosses.any() { self.cross(program, number, crosses) } else { W::all(0) }
    }

    /// Draws the next frame from the first of the next cell on, in as many cells as it takes, in the lanes of a mask; returns
    /// the mask of lanes that are given up.
    pub(crate) fn cross(&mut self, program: &Program, number: usize, mut crosses: W) -> W {
        let source = &program.sources[number];
        // Cells without a frame are rarer than interruptions.
        for _ in 0..W::ROUNDS / 4 {
            if !crosses.any() {
                break;
            }
            self.cell = self.cell.count(crosses);
            self.number = crosses.not().and(self.number);
            let (gap, border) = source.cell(self.cell, program.cell_bits);
            let [when, what] = threefry(program.arrival, self.counter(number));
            self.ideal = crosses.choose(self.border.plus(source.gap(when, gap)), self.ideal);
            self.kind = crosses.choose(source.kind(what, W::all(0)), self.kind);
            (self.gap, self.border) = (crosses.choose(gap, self.gap), crosses.choose(border, self.border));
            crosses = crosses.and(self.border.after(self.ideal).not());
        }
        crosses
    }

    /// Goes to the frame an equal gap after the one that came in the lanes of a mask.
    #[inline(always)]
    fn go_on(&mut self, program: &Program, number: usize, gap: u64, came: W) {
        let source = &program.sources[number];
        self.wait(gap, came);
        self.go_to_next_place(source, came);
        let next = self.number.count(came);
        self.number = next.and(W::all((1 << EVEN_CELL_BITS) - 1));
        self.cell = self.cell.count(next.equals(self.number).not());
        let what = if source.draws_kinds() { threefry(program.arrival, self.counter(number))[1] } else { W::all(0) };
        self.kind = source.kind(what, self.place);
    }

    /// Goes to the frame after the one that came in the lanes of a mask, in its burst or in the next one.
    #[inline(always)]
    fn go_on_in_bursts(&mut self, program: &Program, number: usize, bursts: &Bursts, came: W) {
        let source = &program.sources[number];
        let opens = came.and(self.left.is_zero());
        let stays = came.and(opens.not());
        self.left = self.left.uncount(stays);
        self.number = opens.not().and(self.number.count(came));
        self.cell = self.cell.count(opens);
        self.wait(bursts.gap, stays);
        if bursts.flows == 0 {
            self.go_to_next_place(source, came);
        }
        if opens.any() {
            let (pause, frames, place) = bursts.draw(self.cell);
            self.wait(bursts.between(), opens);
            self.ideal = opens.choose(self.ideal.plus(pause), self.ideal);
            self.left = opens.choose(frames.minus(W::all(1)), self.left);
            if bursts.flows > 0 {
                self.place = opens.choose(place, self.place);
            }
        }
        let what = if source.draws_kinds() { threefry(program.arrival, self.counter(number))[1] } else { W::all(0) };
        self.kind = source.kind(what, self.place);
    }

    /// Goes to the recorded frame after the one that came in the lanes of a mask.
    #[inline(always)]
    fn go_on_as_recorded(&mut self, program: &Program, number: usize, recorded: &Recorded, came: W) {
        let source = &program.sources[number];
        self.number = self.number.count(came);
        self.ideal = came.choose(self.ideal.plus(self.number.look_up(&recorded.gap)), self.ideal);
        self.rest = self.number.look_up(&recorded.rest);
        self.place = self.number.look_up(&recorded.place);
        let counter = recorded_counter(number, self.number);
        let what = if source.draws_kinds() { threefry(program.arrival, counter)[1] } else { W::all(0) };
        self.kind = source.kind(what, self.place);
    }

    /// Adds ticks, 32 fraction bits, to the instant of the next frame in the lanes of a mask.
    #[inline(always)]
    fn wait(&mut self, gap: u64, mask: W) {
        let (ticks, part) = (W::all((gap >> 32) as u32), W::all(gap as u32));
        let rest = self.rest.plus(part);
        self.ideal = mask.choose(self.ideal.plus(ticks).count(rest.below(part)), self.ideal);
        self.rest = mask.choose(rest, self.rest);
    }

    /// Goes on in the sequence that repeats, in the lanes of a mask.
    #[inline(always)]
    fn go_to_next_place(&mut self, source: &SourceProgram, mask: W) {
        let place = self.place.count(mask);
        self.place = place.below(W::all(source.places)).and(place);
    }

    /// The counter of the next frame's draw.
    #[inline(always)]
    fn counter(&self, number: usize) -> [W; 2] {
        [self.cell, self.number.or(W::all((number as u32) << NUMBER_BITS))]
    }
}
