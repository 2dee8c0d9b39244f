//! Several servers behind one ring, or several kinds of work at shared servers: a team.
//!
//! ```text
//!   core 0 (room 40) ──┐                 ┌── server
//!                      ├── one ring ─────┤
//!   core 1 (room 9) ───┘  in order of    └── server
//!                         arrival
//! ```
//!
//! A core that shares the servers of another has a room of its own in their ring. Frames in service stand in the order in
//! which their services began, whatever server they are at, so that servers have no names: two trajectories that serve the
//! same frames are the same. Of services that end in one tick, the one that began first ends first.

use crate::kept::ServedState;
use crate::program::{Program, Ring};
use crate::router::{Core, Refusal, Router};
use crate::state::Lanes;
use crate::step::{Event, Served, Station};
use crate::words::{Word, WordExt};

/// A team in integers.
#[derive(Debug, Clone)]
pub(crate) struct TeamProgram {
    /// The one whose servers they are.
    pub leader: usize,
    /// The cores of the team, the leader among them.
    pub cores: Vec<usize>,
    pub servers: usize,
    /// The ring in which frames of all of them wait; those of the cores stay empty.
    pub ring: Ring,
}

/// The services of a team that are under way.
#[derive(Debug)]
pub(crate) struct TeamLanes<W> {
    /// As many places as servers; those from `busy` on hold nothing.
    pub places: Vec<Place<W>>,
    /// Frames in service, and frames in the ring.
    pub busy: W,
    pub waiting: W,
    /// Low word of the instant at which the last service began, and how many began at it before.
    pub started: W,
    pub before: W,
}

/// A frame in service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<W> {
    pub done: W,
    pub began: W,
    pub kind: W,
    /// Low words of the instants at which it came to the router and to the core, and for how long it waited before.
    pub came: W,
    pub reached: W,
    pub waited: W,
}

impl<W: Word> Place<W> {
    #[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
    #[inline(always)]
    fn or(self, mask: W, other: Self) -> Self {
        Self {
            done: mask.choose(self.done, other.done),
            began: mask.choose(self.began, other.began),
            kind: mask.choose(self.kind, other.kind),
            came: mask.choose(self.came, other.came),
            reached: mask.choose(self.reached, other.reached),
            waited: mask.choose(self.waited, other.waited),
        }
    }
}

impl Router {
    /// Cores that share servers, the first of each team before the others.
    fn team_of(&self, leader: usize) -> Vec<usize> {
        (0..self.cores.len()).filter(|&core| core == leader || self.cores[core].shares == Some(leader)).collect()
    }

    pub(crate) fn teams(&self) -> Vec<TeamProgram> {
        let leads = |core: usize| self.cores[core].shares.is_none();
        let teams = (0..self.cores.len()).filter(|&core| leads(core)).map(|leader| TeamProgram {
            leader,
            cores: self.team_of(leader),
            servers: self.cores[leader].servers as usize,
            ring: Ring { room: 0, base: 0, mask: 0 },
        });
        teams.filter(|team| team.servers > 1 || team.cores.len() > 1).collect()
    }

    pub(crate) fn check_teams(&self) -> Result<(), Refusal> {
        let refuse = |text: &str| Err(Refusal(text.into()));
        let servers: u32 = self.cores.iter().filter(|core| core.shares.is_none()).map(|core| core.servers).sum();
        if self.cores.iter().any(|core| core.servers == 0) || servers > 64 {
            return refuse("lanes run 1 to 64 servers");
        }
        let leads = |&leader: &usize| leader < self.cores.len() && self.cores[leader].shares.is_none();
        if self.cores.iter().filter_map(|core| core.shares).any(|leader| !leads(&leader)) {
            return refuse("a core shares the servers of one that has none of its own");
        }
        for team in self.teams() {
            let of = |core: &Core| (core.law, core.contends, core.servers);
            let cores = || team.cores.iter().map(|&core| &self.cores[core]);
            if cores().any(|core| of(core) != of(&self.cores[team.leader])) {
                return refuse("cores that share servers differ in more than their room and their work");
            }
            if cores().any(|core| self.polls.is_some() && core.polls) {
                return refuse("cores that poll have one server each, of their own");
            }
            if cores().any(|core| self.interruptions.is_some() && core.is_struck) {
                return refuse("servers that are shared, or several, are interrupted");
            }
        }
        Ok(())
    }
}

#[expect(clippy::inline_always, reason = "parts of the step, in a function that enables the vectors")]
impl<W: Word> Lanes<W> {
    pub(crate) fn teams(program: &Program) -> Vec<TeamLanes<W>> {
        let zero = W::all(0);
        let place = Place { done: zero, began: zero, kind: zero, came: zero, reached: zero, waited: zero };
        let of = |team: &TeamProgram| TeamLanes {
            places: vec![place; team.servers],
            busy: zero,
            waiting: zero,
            started: zero,
            before: zero,
        };
        program.teams.iter().map(of).collect()
    }

    /// Ends a service of a team or takes in a frame, and begins a service where there is something to do. The event is
    /// masked to lanes whose core is of the team.
    #[inline(always)]
    pub(crate) fn serve_team(&mut self, program: &Program, number: usize, event: &Event<W>) -> Served<W> {
        let team_program = &program.teams[number];
        let (leader, servers) = (team_program.leader, team_program.servers);
        let (comes, ends) = (event.comes, event.ends);
        let team = &self.teams[number];
        let (busy, waiting) = (team.busy, team.waiting);
        let mut leaving = team.places[0];
        for (place, its) in team.places.iter().enumerate().skip(1) {
            leaving = its.or(event.place.equals(W::all(place as u32)), leaving);
        }
        let (mut room, mut here_waiting) = (W::all(0), W::all(0));
        for &member in &team_program.cores {
            let is_it = event.core.equals(W::all(member as u32));
            room = is_it.choose(W::all(program.cores[member].room), room);
            here_waiting = is_it.choose(self.cores[member].frames, here_waiting);
        }
        let has_server = busy.below(W::all(servers as u32));
        let direct = comes.and(has_server);
        let stays = comes.and(has_server.not()).and(here_waiting.below(room));
        let lost = comes.and(direct.or(stays).not());
        let calls = ends.and(waiting.is_zero().not());
        let starts = direct.or(calls);
        // The ring: its first leaves it where a service ends, and whoever comes stands behind its last.
        let ring = &team_program.ring;
        let head = self.cores[leader].head;
        let first = self.place(W::all(ring.base), W::all(ring.mask), head);
        let tail = self.place(W::all(ring.base), W::all(ring.mask), head.plus(waiting));
        let station = Station { frames: waiting, began: leaving.began, room, first, second: first, tail };
        let [came, reached, waited] = self.put_in_ring(program, event, &station);
        let mut kind = W::all(0);
        if let [_, _, ..] = program.core_of.as_slice() {
            kind = first.look_up(&self.kinds);
            event.kind.put(&mut self.kinds, tail);
        }
        let kind = direct.choose(event.kind, kind);
        let next_core = if program.core_of.len() > 1 { kind.look_up(&program.core_of) } else { W::all(leader as u32) };
        // The draws of a service are those of its tick and of how many began at it before.
        let team = &mut self.teams[number];
        let again = starts.and(team.started.equals(self.now));
        let before = again.and(team.before.count(again));
        team.before = starts.choose(before, team.before);
        team.started = starts.choose(self.now, team.started);
        let counts = if program.contends.is_empty() { event.active } else { event.core.look_up(&program.contends) };
        self.busy = self.busy.count(direct.and(counts)).uncount(ends.and(calls.not()).and(counts));
        let own = Event { core: W::all(leader as u32), comes: direct, before, ..*event };
        let service = self.service(program, &own, kind, W::all(0), starts);
        let begins = Place {
            done: self.now.plus(service),
            began: self.now,
            kind,
            came: direct.choose(event.entered, came),
            reached: direct.choose(self.now, reached),
            waited: direct.choose(event.waited, waited),
        };
        let free = busy.uncount(ends);
        let team = &mut self.teams[number];
        for place in 0..servers {
            let moves_up = ends.and(W::all(place as u32).below(event.place).not());
            let behind = team.places[(place + 1).min(servers - 1)];
            let kept = behind.or(moves_up, team.places[place]);
            team.places[place] = begins.or(starts.and(free.equals(W::all(place as u32))), kept);
        }
        team.busy = free.count(starts);
        team.waiting = waiting.count(stays).uncount(calls);
        self.cores[leader].head = team.waiting.is_zero().not().and(head.count(calls));
        let left = if program.core_of.len() > 1 { leaving.kind.look_up(&program.core_of) } else { next_core };
        for &member in &team_program.cores {
            let member_word = W::all(member as u32);
            let (is_here, is_next) = (event.core.equals(member_word), next_core.equals(member_word));
            let core = &mut self.cores[member];
            core.frames = core.frames.count(stays.and(is_here)).uncount(calls.and(is_next));
            self.counts.busy[member].add(service, starts.and(is_next));
            self.counts.lost[member].count(lost.and(is_here));
            let its = ends.and(left.equals(member_word));
            self.counts.waited_at_core[member].add(leaving.began.minus(leaving.reached), its);
        }
        self.note_loss(lost, event.entered, self.high.uncount(self.now.below(event.entered)));
        let waited = leaving.waited.plus(leaving.began.minus(leaving.reached));
        Served { ends, entered: leaving.came, waited, kind: leaving.kind }
    }
}

impl<W: Word> TeamLanes<W> {
    /// The services of a lane that are under way at an instant, the first begun first.
    pub(crate) fn state(&self, lane: usize, now: u32) -> Vec<ServedState> {
        let of = |place: &Place<W>| ServedState {
            done: place.done.get(lane).wrapping_sub(now),
            began: now.wrapping_sub(place.began.get(lane)),
            kind: place.kind.get(lane),
            came: now.wrapping_sub(place.came.get(lane)),
            reached: now.wrapping_sub(place.reached.get(lane)),
            waited: place.waited.get(lane),
        };
        self.places[..self.busy.get(lane) as usize].iter().map(of).collect()
    }

    /// Puts services back into a lane, and how many frames wait.
    pub(crate) fn restore(&mut self, lane: usize, now: u32, (served, waiting): (&[ServedState], usize)) {
        for (place, from) in self.places.iter_mut().zip(served) {
            place.done.set(lane, now.wrapping_add(from.done));
            place.began.set(lane, now.wrapping_sub(from.began));
            place.kind.set(lane, from.kind);
            place.came.set(lane, now.wrapping_sub(from.came));
            place.reached.set(lane, now.wrapping_sub(from.reached));
            place.waited.set(lane, from.waited);
        }
        self.busy.set(lane, served.len() as u32);
        self.waiting.set(lane, waiting as u32);
        // No service has begun at this instant.
        self.started.set(lane, now.wrapping_sub(1));
    }
}
