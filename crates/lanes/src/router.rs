//! The router that lanes run, as it is given: what arrives, its cores and links, and what lanes ask of them.
//!
//! ```text
//!                                        ┌── the next core ◄─┐
//!  source ──► kind of frame ──► core with a ring of its own ──┴─► link with a ring ──► out
//!  (Poisson or even,                (slowed by busy neighbours,
//!   spaced by the wire)              may poll, sleep, be interrupted)
//! ```

use std::sync::Arc;

use crate::law::Law;
pub use crate::program::Program;
use crate::team::TeamProgram;

/// A router whose cores have rings of their own, behind sources whose frames know their core.
#[derive(Debug, Clone)]
pub struct Router {
    /// Picoseconds a tick; [`Router::usual_tick_ps`] chooses them.
    pub tick_ps: f64,
    /// What arrives.
    pub sources: Vec<Source>,
    /// Frames are dealt in turn to so many kinds from their source's on: to cores side by side. One: none is dealt.
    pub turns: usize,
    /// Kinds of frames.
    pub kinds: Vec<Kind>,
    /// The cores.
    pub cores: Vec<Core>,
    /// Random factors of services.
    pub laws: Vec<Law>,
    /// How the cores find their frames that poll; none: one by one, each as soon as the one before is done.
    pub polls: Option<Polls>,
    /// States that an idle core falls asleep in, in rising order.
    pub sleep: Vec<Sleep>,
    /// What takes the cores away, of which it does, while they work.
    pub interruptions: Option<Interruptions>,
    /// Factor of a service that begins with 1, 2, … of the contending cores at work, at these; its last value goes on. Empty
    /// means none.
    pub contention: Vec<f64>,
    /// The outgoing links.
    pub links: Vec<Link>,
    /// To how many kinds each dealer between cores deals frames in turn ([`Next::dealer`]).
    pub dealers: Vec<usize>,
}

/// Polls: a core takes several waiting frames at once, at a cost, and may sleep until an interrupt in between (S6).
///
/// Frames that a poll has taken wait no longer in the ring.
#[derive(Debug, Clone, PartialEq)]
pub struct Polls {
    /// Frames that a poll takes, at most.
    pub batch: u32,
    /// Picoseconds of a poll.
    pub cost_ps: f64,
    /// Interrupts; none: a poll follows as soon as a frame waits.
    pub interrupts: Option<Interrupts>,
}

/// Interrupts: a frame in an idle core's ring raises one; polls follow until one takes fewer frames than it may.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupts {
    /// Picoseconds of work of an interrupt.
    pub cost_ps: f64,
    /// Least picoseconds between two interrupts of a core.
    pub moderation_ps: f64,
    /// Whether a poll takes also what comes while it is under way, frame by frame; an interrupt's work is then that of
    /// its first frame.
    pub exhaustive: bool,
    /// From an interrupt that finds its core at rest until the core may be asked for.
    pub wakeup: Option<RandomTime>,
    /// Picoseconds for which a core goes on polling after a poll that came back short, before interrupts are enabled.
    pub linger_ps: f64,
}

/// A random time: a mean and the law of its factor.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomTime {
    /// Picoseconds.
    pub mean_ps: f64,
    /// Law of the factor, of mean 1.
    pub law: Law,
}

/// A sleep state (S11).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sleep {
    /// Idle picoseconds after which a core enters it.
    pub after_ps: f64,
    /// Picoseconds from when the core is asked for until it works.
    pub exit_ps: f64,
}

/// Interruptions of a core at Poisson instants of its working time; its work resumes afterwards (S5).
#[derive(Debug, Clone, PartialEq)]
pub struct Interruptions {
    /// How often in a second of work.
    pub rate_hz: f64,
    /// How long one takes.
    pub duration: RandomTime,
}

/// Frames of one port.
#[derive(Debug, Clone)]
pub struct Source {
    /// Frames a second.
    pub rate_pps: f64,
    /// Where Poisson arrivals change their rate: picoseconds, rising, and frames a second from there on.
    pub steps: Vec<(f64, f64)>,
    /// When they come; what stands before the wire must not be of more than 2^28 ticks.
    pub arrivals: Arrivals,
    /// Kinds of frames with their relative frequencies: a list for each place of a sequence that repeats. Poisson arrivals
    /// have one place; of on-off arrivals a burst is of one place, drawn for it.
    pub kinds: Vec<Vec<(usize, f64)>>,
}

/// Frames whose instants are known.
#[derive(Debug, PartialEq)]
pub struct Recording {
    /// When each comes, picoseconds, in order.
    pub at_ps: Vec<u64>,
    /// The place in its source's list of kinds, likewise.
    pub place: Vec<u32>,
    /// By place, the share of the frames.
    pub share: Vec<f64>,
}

impl Recording {
    /// `at_ps` and `place` as in a recording, of so many places.
    #[must_use]
    pub fn new(at_ps: Vec<u64>, place: Vec<u32>, places: usize) -> Self {
        let mut share = vec![0.0; places];
        for &place in &place {
            share[place as usize] += 1.0 / at_ps.len() as f64;
        }
        Self { at_ps, place, share }
    }
}

/// An arrival process.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// Equal gaps, the first frame after `phase` of a gap.
    Even {
        /// 0 to 1.
        phase: f64,
    },
    /// Bursts at a multiple of the rate, with exponential pauses between.
    OnOff {
        /// Mean frames of a burst, 1 or more: their number is geometric.
        burst_frames: f64,
        /// Rate in a burst over the mean rate, more than 1.
        peak_ratio: f64,
    },
    /// Bursts whose frames are due at once, at equal distances.
    Bursts {
        /// Frames of a burst.
        frames: u32,
    },
    /// As recorded, and none after the last.
    Recorded(Arc<Recording>),
}

/// A kind of frame: its size and its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kind {
    /// Bytes, FCS included.
    pub bytes: u32,
    /// Picoseconds on the wire that it comes by: the least distance from the last bit of the frame before.
    pub wire_ps: f64,
    /// Its core.
    pub core: usize,
    /// Mean picoseconds of its service with one core at work.
    pub work_ps: f64,
    /// What it is at the core that it goes to after this one; none: it leaves by its link.
    pub next: Option<Next>,
    /// Its outgoing link; none: it leaves at once.
    pub link: Option<usize>,
    /// Picoseconds of its transmission there.
    pub transmission_ps: f64,
}

/// The way from one core to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// The kind that a frame is there.
    pub kind: usize,
    /// Who deals frames to the kinds from that one on, in the order in which they come; none: all are of that kind.
    pub dealer: Option<usize>,
}

/// A core.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// Frames that can wait.
    pub queue: u32,
    /// Servers at its ring; those that share them name as many.
    pub servers: u32,
    /// The core whose servers and ring it shares; none: they are its own.
    pub shares: Option<usize>,
    /// The law of its services.
    pub law: usize,
    /// Whether it slows others down that do so, and is slowed down.
    pub contends: bool,
    /// Whether it polls, where there are polls.
    pub polls: bool,
    /// Whether it is interrupted, where there are interruptions.
    pub is_struck: bool,
}

/// An outgoing link.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Frames that can wait.
    pub queue: u32,
}

/// Why lanes cannot run a router.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

const MOST_CORES: usize = 64;
const MOST_LINKS: usize = 64;
const MOST_KINDS: usize = 1 << 14;
/// Cores that a frame passes.
const MOST_CORES_IN_TURN: usize = 64;
pub(crate) const PS_PER_S: f64 = 1e12;
const MOST_QUEUE: u32 = 1 << 16;

impl Router {
    /// Ticks of 1,000 to a mean service of the fastest core, and such that a service of one length is a whole number.
    ///
    /// Two trajectories forget how they began the sooner, the fewer ticks a service lasts.
    #[must_use]
    pub fn usual_tick_ps(kinds: &[Kind]) -> f64 {
        let least = kinds.iter().map(|kind| kind.work_ps).filter(|&ps| ps > 0.0).fold(f64::INFINITY, f64::min);
        if least.is_finite() { least / 1000.0 } else { 1000.0 }
    }

    /// Picoseconds of the services that a full ring holds, of mean length, one after the other.
    #[must_use]
    pub fn longest_wait_ps(&self, core: usize) -> f64 {
        let leader = |core: usize| self.cores[core].shares.unwrap_or(core);
        let here = |other: usize| leader(other) == leader(core);
        let room: u32 = (0..self.cores.len()).filter(|&other| here(other)).map(|other| self.cores[other].queue).sum();
        let works = self.kinds.iter().filter(|kind| here(kind.core)).map(|kind| kind.work_ps);
        let slowest = self.contention.iter().copied().fold(1.0, f64::max);
        works.fold(0.0, f64::max) * slowest * (f64::from(room) + 2.0) / f64::from(self.cores[core].servers)
    }

    /// The room of each core, and of each team together.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = u32> {
        let room = |core: usize| self.cores[core].queue;
        let of_team = move |team: &TeamProgram| team.cores.iter().map(|&core| room(core)).sum();
        let teams: Vec<u32> = self.teams().iter().map(of_team).collect();
        self.cores.iter().map(|core| core.queue).chain(teams)
    }

    /// Whether frames go from core to core.
    #[must_use]
    pub fn has_tandems(&self) -> bool {
        self.kinds.iter().any(|kind| kind.next.is_some())
    }

    /// The kinds that frames of a kind may be at their next core.
    #[must_use]
    pub fn after(&self, kind: usize) -> std::ops::Range<usize> {
        self.kinds[kind]
            .next
            .map_or(0..0, |next| next.kind..next.kind + next.dealer.map_or(1, |dealer| self.dealers[dealer]))
    }

    /// The most cores that a frame passes; none where there is no end, or a way that there is not.
    #[must_use]
    pub fn cores_in_turn(&self) -> Option<usize> {
        let mut last: Vec<usize> = (0..self.kinds.len()).collect();
        for count in 1..=MOST_CORES_IN_TURN {
            let is_known = |next: Next| {
                let kinds = next.dealer.map_or(Some(1), |dealer| self.dealers.get(dealer).copied())?;
                (kinds > 0 && next.kind + kinds <= self.kinds.len()).then_some(())
            };
            if last.iter().filter_map(|&kind| self.kinds[kind].next).any(|next| is_known(next).is_none()) {
                return None;
            }
            let mut following: Vec<usize> = last.iter().flat_map(|&kind| self.after(kind)).collect();
            following.sort_unstable();
            following.dedup();
            if following.is_empty() {
                return Some(count);
            }
            last = following;
        }
        None
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let refuse = |text: &str| Err(Refusal(text.into()));
        if self.cores.is_empty() || self.cores.len() > MOST_CORES {
            return refuse("lanes run 1 to 64 cores");
        }
        if self.cores.iter().any(|core| core.law >= self.laws.len()) {
            return refuse("a core has a law that there is not");
        }
        let polls = |core: &Core| self.polls.is_some() && core.polls;
        if !self.contention.is_empty() && self.cores.iter().any(|core| polls(core) && !core.contends) {
            return refuse("only some of the cores that poll slow each other down");
        }
        if !self.sleep.is_empty() && !self.cores.iter().all(polls) {
            return refuse("cores that sleep have to poll");
        }
        self.check_teams()?;
        if self.links.len() > MOST_LINKS {
            return refuse("lanes run at most 64 links");
        }
        if self.kinds.is_empty() || self.kinds.len() > MOST_KINDS {
            return refuse("lanes tell at most 16,384 kinds of frames apart (size, core, link)");
        }
        if self.sources.is_empty() || self.sources.len() > 64 {
            return refuse("lanes run 1 to 64 sources");
        }
        let queues = self.rooms().chain(self.links.iter().map(|link| link.queue));
        if queues.max().is_some_and(|queue| queue > MOST_QUEUE) {
            return refuse("lanes hold at most 65,536 frames in a ring");
        }
        if let Some(polls) = &self.polls {
            let costs = polls
                .interrupts
                .as_ref()
                .map_or([0.0; 3], |interrupts| [interrupts.cost_ps, interrupts.moderation_ps, interrupts.linger_ps]);
            let times = [polls.cost_ps, costs[0], costs[1], costs[2]];
            if polls.batch == 0 || polls.batch > MOST_QUEUE || times.iter().any(|ps| !(ps.is_finite() && *ps >= 0.0)) {
                return refuse("a poll takes 1 to 65,536 frames, and lasts");
            }
            if self.cores.iter().any(|core| core.polls && core.queue == 0) {
                return refuse("polls find no frame in a ring without room");
            }
        }
        if !self.sleep.is_sorted_by(|one, other| one.after_ps < other.after_ps) {
            return refuse("sleep states come in rising order");
        }
        if self.interruptions.as_ref().is_some_and(|its| its.rate_hz.is_nan() || its.rate_hz <= 0.0) {
            return refuse("a rate of interruptions has to be above 0");
        }
        if !(self.tick_ps.is_finite() && self.tick_ps > 0.0) {
            return refuse("a tick has to last");
        }
        let fits = |kind: &Kind| {
            kind.core < self.cores.len()
                && kind.link.is_none_or(|link| link < self.links.len())
                && [kind.wire_ps, kind.work_ps, kind.transmission_ps].iter().all(|ps| ps.is_finite() && *ps >= 0.0)
        };
        if !self.kinds.iter().all(fits) {
            return refuse("a kind of frame has a time or a way that there is not");
        }
        let Some(cores_in_turn) = self.cores_in_turn() else {
            return refuse("a frame passes at most 64 cores one after the other");
        };
        if self.turns == 0 {
            return refuse("frames are dealt to one kind at least");
        }
        if !self.sources.iter().all(|source| source.is_known(self)) {
            return refuse("a source has no rate or no frames");
        }
        // What waits at most has to lie within what a lane compares.
        let longest_interruption_ps = self
            .interruptions
            .as_ref()
            .map_or(0.0, |interruptions| interruptions.duration.mean_ps * interruptions.duration.law.largest());
        let inside_ps = (0..self.cores.len()).map(|core| self.longest_wait_ps(core)).fold(0.0, f64::max);
        let inside = (inside_ps + longest_interruption_ps) / self.tick_ps;
        let longest_ps = self.kinds.iter().map(|kind| kind.transmission_ps).fold(0.0, f64::max);
        let most = self.links.iter().map(|link| link.queue).max().unwrap_or(0);
        let outside = longest_ps * (f64::from(most) + 2.0) / self.tick_ps;
        if inside * cores_in_turn as f64 > 2.0_f64.powi(28) || outside > 2.0_f64.powi(28) {
            return refuse("a full ring lasts too long beside the shortest service");
        }
        Ok(())
    }
}

impl Source {
    /// Whether it has a rate, and frames of kinds that there are.
    fn is_known(&self, router: &Router) -> bool {
        self.rate_pps > 0.0
            && (self.steps.is_empty() || self.arrivals == Arrivals::Poisson)
            && self.steps.iter().all(|step| step.0 >= 0.0 && step.0.is_finite() && step.1 > 0.0)
            && self.steps.is_sorted_by(|one, other| one.0 < other.0)
            && (self.kinds.len() == 1 || !self.kinds.is_empty() && self.arrivals != Arrivals::Poisson)
            && match self.arrivals {
                Arrivals::OnOff { burst_frames, peak_ratio } => {
                    burst_frames >= 1.0 && burst_frames.is_finite() && peak_ratio > 1.0 && peak_ratio.is_finite()
                }
                Arrivals::Bursts { frames } => frames > 0,
                Arrivals::Recorded(ref recording) => {
                    let Recording { at_ps, place, share } = &**recording;
                    at_ps.len() == place.len()
                        && at_ps.len() < 1 << 31
                        && at_ps.is_sorted()
                        && share.len() == self.kinds.len()
                        && place.iter().all(|&place| (place as usize) < share.len())
                }
                Arrivals::Poisson | Arrivals::Even { .. } => true,
            }
            && self.kinds.iter().all(|place| {
                place.iter().all(|kind| kind.0 + router.turns <= router.kinds.len() && kind.1 >= 0.0)
                    && place.iter().map(|kind| kind.1).sum::<f64>() > 0.0
            })
    }

    /// Whether the wire may space its frames.
    pub(crate) fn is_spaced(&self, router: &Router) -> bool {
        if let Arrivals::Recorded(recording) = &self.arrivals {
            return self.behind_ps(recording, &router.kinds) > 0.0;
        }
        let longest_ps = self.kinds.iter().flatten().map(|kind| router.kinds[kind.0].wire_ps).fold(0.0, f64::max);
        // Gaps that the wire needs no longer than are left alone, at its own rate too.
        let least_gap_ps = match self.arrivals {
            Arrivals::Poisson | Arrivals::Bursts { .. } | Arrivals::Recorded(_) => 0.0,
            Arrivals::Even { .. } => PS_PER_S / self.rate_pps,
            Arrivals::OnOff { peak_ratio, .. } => PS_PER_S / self.rate_pps / peak_ratio,
        };
        longest_ps > least_gap_ps * (1.0 + 1e-9)
    }

    /// Picoseconds by which the wire makes a recorded frame later than it was recorded, at most.
    #[must_use]
    pub fn behind_ps(&self, recording: &Recording, kinds: &[Kind]) -> f64 {
        let longest = |place: &Vec<(usize, f64)>| place.iter().map(|kind| kinds[kind.0].wire_ps).fold(0.0, f64::max);
        let wires: Vec<f64> = self.kinds.iter().map(longest).collect();
        let (mut last, mut most) = (f64::NEG_INFINITY, 0.0_f64);
        for (&at_ps, &place) in recording.at_ps.iter().zip(&recording.place) {
            let due = at_ps as f64;
            last = due.max(last + wires[place as usize]);
            most = most.max(last - due);
        }
        most
    }

    /// By place, the share of the frames.
    fn shares(&self) -> Vec<f64> {
        match &self.arrivals {
            Arrivals::Recorded(recording) => recording.share.clone(),
            _ => vec![1.0 / self.kinds.len() as f64; self.kinds.len()],
        }
    }

    /// The mean over the frames of something that kinds of frames have.
    pub fn mean(&self, of: impl Fn(usize) -> f64) -> f64 {
        let of_place = |place: &Vec<(usize, f64)>| {
            let total: f64 = place.iter().map(|kind| kind.1).sum();
            place.iter().map(|&(kind, weight)| of(kind) * weight / total).sum::<f64>()
        };
        self.kinds.iter().zip(self.shares()).map(|(place, share)| share * of_place(place)).sum()
    }

    /// Mean frames of a burst.
    #[must_use]
    pub fn burst_frames(&self) -> f64 {
        match self.arrivals {
            Arrivals::OnOff { burst_frames, .. } => burst_frames,
            Arrivals::Bursts { frames } => f64::from(frames),
            Arrivals::Poisson | Arrivals::Even { .. } | Arrivals::Recorded(_) => 1.0,
        }
    }

    /// Whether chance decides when its frames come, or how long.
    #[must_use]
    pub fn is_random(&self) -> bool {
        matches!(self.arrivals, Arrivals::Poisson | Arrivals::OnOff { .. } | Arrivals::Recorded(_))
            || self.kinds.iter().any(|place| place.len() > 1)
    }

    /// Share of the time for which its frames keep the wire that they come by busy; above 1, they stand before it.
    #[must_use]
    pub fn wire_load(&self, kinds: &[Kind]) -> f64 {
        self.rate_pps / PS_PER_S * self.mean(|kind| kinds[kind].wire_ps)
    }
}
