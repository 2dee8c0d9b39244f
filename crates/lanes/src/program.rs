//! The same router in integers: the program that lanes run, and how it is made of what is given.

use std::sync::Arc;

use crate::draw::{Key, Purpose, UNIT_BITS};
use crate::law::Law;
use crate::pace::{Pace, Recorded};
use crate::router::{
    Arrivals, Core, Interruptions, Interrupts, Kind, Next, PS_PER_S, Polls, RandomTime, Refusal, Router, Source,
};
use crate::team::TeamProgram;

/// Fraction bits of times that add up: services, links, wires.
pub(crate) const FINE_BITS: u32 = 8;
/// Ticks of 52 bits: the upper 12 of the counter's high word name the server.
pub(crate) const TICK_BITS: u32 = 52;
/// Ticks that a lane runs at once. Instants that it compares lie less than twice that apart.
pub(crate) const STRETCH_BITS: u32 = 29;
/// Arrivals of a cell; the rest of the word names the source.
pub(crate) const NUMBER_BITS: u32 = 24;
/// Arrivals of a cell where gaps are equal.
pub(crate) const EVEN_CELL_BITS: u32 = 16;
const MOST_PLACES: usize = 1 << 16;

/// The router in integers.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) tick_ps: f64,
    pub(crate) cell_bits: u32,
    pub(crate) arrival: Key,
    pub(crate) service: Key,
    pub(crate) wakeup: Key,
    pub(crate) interruption: Key,
    pub(crate) laws: Vec<Law>,
    /// The law of each core.
    pub(crate) law_of: Vec<u32>,
    /// By core, all bits where it contends, no bit where it does not; empty where all do.
    pub(crate) contends: Vec<u32>,
    /// Where there are polls, by core: all bits where it does not poll, no bit where it does; empty where all do.
    pub(crate) apart: Vec<u32>,
    /// Where there are interruptions, by core: all bits where it is interrupted, no bit where not; empty where all are.
    pub(crate) struck: Vec<u32>,
    pub(crate) turns: u32,
    /// Whether any source knows the part of a tick at which its frames come.
    pub(crate) knows_parts: bool,
    pub(crate) sources: Vec<SourceProgram>,
    pub(crate) core_of: Vec<u32>,
    /// The kind at the next core by kind, or [`NO_NEXT`], and its dealer, or [`NO_DEALER`]; empty where no frame goes from
    /// core to core.
    pub(crate) next_of: Vec<u32>,
    pub(crate) dealer_of: Vec<u32>,
    /// Kinds that each dealer deals to.
    pub(crate) dealers: Vec<u32>,
    pub(crate) bytes_of: Vec<u32>,
    pub(crate) wire_of: Vec<u32>,
    /// The link of each kind; [`NO_LINK`] where there is none.
    pub(crate) link_of: Vec<u32>,
    pub(crate) transmission_of: Vec<u32>,
    /// Work of each kind with 1, 2, … cores busy, [`FINE_BITS`] fraction bits.
    pub(crate) work_of: Vec<u32>,
    pub(crate) factors: u32,
    pub(crate) polls: Option<PollProgram>,
    pub(crate) sleep: Vec<SleepProgram>,
    pub(crate) interruptions: Option<InterruptionProgram>,
    pub(crate) cores: Vec<Ring>,
    pub(crate) links: Vec<Ring>,
    pub(crate) teams: Vec<TeamProgram>,
    /// By core, 1 and the number of its team, or 0; empty where there are none.
    pub(crate) team_of: Vec<u32>,
    /// The greatest relative error of a mean service by rounding.
    pub rounding_ratio: f64,
}

/// Polls in integers; costs with 1, 2, … cores busy, [`FINE_BITS`] fraction bits.
#[derive(Debug, Clone)]
pub(crate) struct PollProgram {
    pub batch: u32,
    pub cost_of: Vec<u32>,
    pub interrupts: bool,
    pub interrupt_of: Vec<u32>,
    /// Whether an interrupt's work comes before its poll, which so finds more.
    pub works_first: bool,
    pub moderation: u32,
    pub exhaustive: bool,
    pub wakeup: Option<TimeProgram>,
    pub linger: u32,
}

/// A random time in ticks.
#[derive(Debug, Clone)]
pub(crate) struct TimeProgram {
    pub mean: u32,
    pub law: Law,
}

/// A sleep state in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SleepProgram {
    pub after: u32,
    pub exit: u32,
}

/// Bits of an exponential that the distance of two interruptions leaves out: a service has up to 64 of them.
pub(crate) const COARSE_BITS: u32 = 2;

/// Interruptions in integers: a work of w 256ths of a tick is w · `ratio` / 2^32 · 2^`shift` exponentials of a mean gap,
/// [`COARSE_BITS`] fraction bits fewer than [`UNIT_BITS`].
#[derive(Debug, Clone)]
pub(crate) struct InterruptionProgram {
    pub ratio: u32,
    pub shift: u32,
    pub duration: TimeProgram,
}

pub(crate) const NO_LINK: u32 = u32::MAX;
pub(crate) const NO_NEXT: u32 = u32::MAX;
pub(crate) const NO_DEALER: u32 = u32::MAX;

/// A ring: its room, and where its places lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    pub room: u32,
    pub base: u32,
    pub mask: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct SourceProgram {
    pub pace: Pace,
    /// Whether the wire may space its frames.
    pub is_spaced: bool,
    /// Places of the sequence that repeats.
    pub places: u32,
    /// Walker's alias method, one place after the other: the share of an entry that is its own kind, that kind, and the
    /// other.
    pub own_share: Vec<u32>,
    pub own: Vec<u32>,
    pub other: Vec<u32>,
}

impl SourceProgram {
    /// Whether it knows the part of a tick at which a frame comes.
    pub(crate) fn knows_parts(&self) -> bool {
        matches!(self.pace, Pace::Even { .. } | Pace::Recorded(_)) && !self.is_spaced
    }

    /// The mean part of a tick after whose beginning frames come.
    fn mean_part(&self) -> f64 {
        if self.is_spaced {
            return 0.5;
        }
        let (gap, first) = match &self.pace {
            &Pace::Even { gap, first } => (gap, first),
            Pace::Recorded(recorded) => return recorded.mean_part(),
            Pace::Poisson { .. } | Pace::Bursts(_) => return 0.5,
        };
        // The parts of equal gaps go through all values that leave the same rest by their greatest common divisor.
        let step = 2.0_f64.powi((gap as u32).trailing_zeros() as i32);
        (f64::from(first as u32) % step + 0.5 * (2.0_f64.powi(32) - step)) / 2.0_f64.powi(32)
    }
}

impl Program {
    /// Puts a router into integers, for a replication of a seed.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: something is beyond what the integers hold, or out of range.
    pub fn new(router: &Router, seed: u64, replication: u64) -> Result<Self, Refusal> {
        router.check()?;
        let scale = Scale { tick_ps: router.tick_ps };
        let factors = router.contention.len().clamp(1, router.cores.len());
        let factor = |busy: usize| router.contention.get(busy).or(router.contention.last()).copied().unwrap_or(1.0);
        let of_kind = |kind: &Kind, busy: usize| if router.cores[kind.core].contends { factor(busy) } else { 1.0 };
        let mut rounding_ratio = 0.0_f64;
        let mut work_of = Vec::new();
        for kind in &router.kinds {
            for busy in 0..factors {
                let ps = kind.work_ps * of_kind(kind, busy);
                let work = scale.fine("a service", ps)?;
                let rounded_ps = f64::from(work) * router.tick_ps / f64::from(1_u32 << FINE_BITS);
                rounding_ratio = rounding_ratio.max(if ps > 0.0 { (rounded_ps / ps - 1.0).abs() } else { 0.0 });
                work_of.push(work);
            }
        }
        let table = |what: &str, ps: f64| (0..factors).map(|busy| scale.fine(what, ps * factor(busy))).collect();
        let polls = router.polls.as_ref().map(|polls| PollProgram::new(polls, &scale, table)).transpose()?;
        let sleep = router.sleep.iter().map(|state| {
            let after = scale.whole("an idle time", state.after_ps)?;
            Ok(SleepProgram { after, exit: scale.whole("a wake-up", state.exit_ps)? })
        });
        let most = |of: &[u32]| f64::from(of.iter().copied().max().unwrap_or(0));
        let costs = polls.as_ref().map_or(0.0, |polls| most(&polls.cost_of) + most(&polls.interrupt_of));
        let longest = most(&work_of) * router.laws.iter().map(Law::largest).fold(0.0, f64::max) + costs;
        let interruptions = router.interruptions.as_ref().map(|its| InterruptionProgram::new(its, &scale, longest));
        let mut teams = router.teams();
        let mut rooms = rings(router.rooms(), polls.as_ref().map_or(0, |polls| polls.batch));
        for (team, ring) in teams.iter_mut().zip(rooms.split_off(router.cores.len())) {
            team.ring = ring;
        }
        let burst = Key::new(seed, replication, Purpose::Burst);
        let sources = router.sources.iter().enumerate();
        let sources = sources.map(|(number, source)| SourceProgram::new(source, router, (burst, number as u32)));
        let mut sources = sources.collect::<Result<Vec<_>, _>>()?;
        let gaps = || sources.iter().map(|source| source.pace.gap_ticks());
        let longest = gaps().map(|gaps| gaps.1).max().unwrap_or(1).max(1);
        let shortest = gaps().map(|gaps| gaps.0).min().unwrap_or(1).max(1);
        // 512 to 1,024 mean gaps to a cell, 2^16 ticks at least.
        let cell_bits = (41 - longest.leading_zeros()).clamp(16, STRETCH_BITS - 1).min(22 + shortest.ilog2());
        for source in &mut sources {
            source.pace.number_cells(cell_bits);
        }
        let each = |of: fn(&Kind) -> f64, what: &str| {
            router.kinds.iter().map(|kind| scale.fine(what, of(kind))).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            tick_ps: router.tick_ps,
            cell_bits,
            arrival: Key::new(seed, replication, Purpose::Arrival),
            service: Key::new(seed, replication, Purpose::Service),
            wakeup: Key::new(seed, replication, Purpose::WakeUp),
            interruption: Key::new(seed, replication, Purpose::Interruption),
            laws: router.laws.clone(),
            law_of: router.cores.iter().map(|core| core.law as u32).collect(),
            contends: if router.contention.is_empty() {
                vec![]
            } else {
                masks(&router.cores, |core| core.contends, true)
            },
            struck: masks(&router.cores, |core| core.is_struck, true),
            apart: if polls.is_some() { masks(&router.cores, |core| !core.polls, false) } else { vec![] },
            turns: router.turns as u32,
            // A frame that comes from another core comes at the beginning of a tick.
            knows_parts: router.has_tandems() || sources.iter().any(SourceProgram::knows_parts),
            sleep: sleep.collect::<Result<_, _>>()?,
            interruptions: interruptions.transpose()?,
            sources,
            core_of: router.kinds.iter().map(|kind| kind.core as u32).collect(),
            next_of: router.of_next(|next| next.map_or(NO_NEXT, |next| next.kind as u32)),
            dealer_of: router
                .of_next(|next| next.and_then(|next| next.dealer).map_or(NO_DEALER, |dealer| dealer as u32)),
            dealers: router.dealers.iter().map(|&kinds| kinds as u32).collect(),
            bytes_of: router.kinds.iter().map(|kind| kind.bytes).collect(),
            wire_of: each(|kind| kind.wire_ps, "a frame on the wire")?,
            link_of: router.kinds.iter().map(|kind| kind.link.map_or(NO_LINK, |link| link as u32)).collect(),
            transmission_of: each(|kind| kind.transmission_ps, "a transmission")?,
            work_of,
            factors: factors as u32,
            cores: rooms,
            team_of: {
                let place = |core: usize| teams.iter().position(|team| team.cores.contains(&core));
                let number = |core: usize| place(core).map_or(0, |place| place as u32 + 1);
                if teams.is_empty() { vec![] } else { (0..router.cores.len()).map(number).collect() }
            },
            teams,
            links: rings(router.links.iter().map(|link| link.queue), 0),
            polls,
            rounding_ratio,
        })
    }

    /// Picoseconds a tick.
    #[must_use]
    pub fn tick_ps(&self) -> f64 {
        self.tick_ps
    }

    /// How a core polls; none: it does not.
    pub(crate) fn polls_at(&self, core: usize) -> Option<&PollProgram> {
        self.polls.as_ref().filter(|_| self.apart.get(core).is_none_or(|&apart| apart == 0))
    }

    /// The team of a core, and its number.
    pub(crate) fn team_at(&self, core: usize) -> Option<(usize, &TeamProgram)> {
        self.teams.iter().enumerate().find(|(_, team)| team.cores.contains(&core))
    }

    /// The ring of each core, which the cores of a team share.
    pub(crate) fn rings(&self) -> impl Iterator<Item = &Ring> {
        let of_team = |core: usize| self.team_at(core).map(|(_, team)| &team.ring);
        self.cores.iter().enumerate().map(move |(number, ring)| of_team(number).unwrap_or(ring))
    }

    /// Ticks after which a core that is always busy, as are all that slow it down, is at the same point of its work: of a
    /// service, or a poll; none where services vary, or do not last whole ticks.
    pub(crate) fn turn_ticks(&self, core: usize) -> Option<u64> {
        let varies = self.laws[self.law_of[core] as usize] != Law::Constant
            || (self.interruptions.is_some() && self.struck.get(core).is_none_or(|&mask| mask != 0))
            || self.team_at(core).is_some();
        let contending = (0..self.cores.len()).filter(|&core| self.contends.get(core).is_none_or(|&mask| mask != 0));
        let factors = self.factors as usize;
        let busy = contending.count().clamp(1, factors) - 1;
        let here = |kind: &usize| self.core_of[*kind] as usize == core;
        let mut works = (0..self.core_of.len()).filter(here).map(|kind| self.work_of[kind * factors + busy]);
        let work = works.next().filter(|work| !varies && works.all(|other| other == *work))?;
        let fine = match self.polls_at(core) {
            Some(polls) => u64::from(polls.cost_of[busy]) + u64::from(polls.batch) * u64::from(work),
            None => u64::from(work),
        };
        (fine > 0 && fine.is_multiple_of(1 << FINE_BITS)).then_some(fine >> FINE_BITS)
    }

    /// Frames that such a core serves in that time.
    pub(crate) fn turn_frames(&self, core: usize) -> u64 {
        self.polls_at(core).map_or(1, |polls| u64::from(polls.batch))
    }

    /// Who deals all frames of a core, and those of no other.
    pub(crate) fn dealer_behind(&self, core: usize) -> Option<usize> {
        let dealers = || self.core_of.iter().zip(&self.dealer_of).map(|(&its, &dealer)| (its as usize == core, dealer));
        let (_, dealer) = dealers().find(|&(is_here, dealer)| is_here && dealer != NO_DEALER)?;
        dealers().all(|(is_here, other)| is_here == (other == dealer)).then_some(dealer as usize)
    }

    /// Whether a core that is always busy comes to the same point of its work again and again.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        (0..self.cores.len()).any(|core| self.turn_ticks(core).is_some())
    }

    /// The mean part of a tick after whose beginning the frames of a source come.
    #[must_use]
    pub fn mean_part(&self, source: usize) -> f64 {
        self.sources[source].mean_part()
    }
    /// Whether the cells of all sources have numbers of their own up to an instant.
    pub(crate) fn counts_cells(&self, until: u64) -> bool {
        let is_counted = |source: &SourceProgram| match source.pace {
            Pace::Poisson { .. } => source.cell_at(until, self.cell_bits).0 < u64::from(u32::MAX),
            Pace::Even { .. } | Pace::Recorded(_) => true,
            Pace::Bursts(ref bursts) => bursts.before(until).burst < u64::from(u32::MAX),
        };
        self.sources.iter().all(is_counted)
    }

    /// Whether a device has a place for all parts.
    pub(crate) fn fits_device(&self) -> Result<(), Refusal> {
        let refuse = |what: &str| Err(Refusal(format!("a graphics processor runs no {what}")));
        if self.sources.iter().any(|source| matches!(source.pace, Pace::Recorded(_))) {
            return refuse("recorded traces");
        }
        Ok(())
    }

    /// Ticks of a cell, at whose borders arrivals are drawn anew.
    #[must_use]
    pub fn cell_ticks(&self) -> u64 {
        1 << self.cell_bits
    }
}

/// What a tick is.
struct Scale {
    tick_ps: f64,
}

impl Scale {
    /// 256ths of a tick.
    fn fine(&self, what: &str, ps: f64) -> Result<u32, Refusal> {
        let ticks = (ps / self.tick_ps * f64::from(1_u32 << FINE_BITS)).round();
        if ticks < f64::from(1_u32 << 27) { Ok(ticks as u32) } else { Err(too_long(what, ps)) }
    }

    /// Ticks.
    fn whole(&self, what: &str, ps: f64) -> Result<u32, Refusal> {
        let ticks = (ps / self.tick_ps).round();
        if ticks < f64::from(1_u32 << (STRETCH_BITS - 1)) { Ok(ticks as u32) } else { Err(too_long(what, ps)) }
    }

    /// A random time, whose longest fits a clock.
    fn time(&self, what: &str, time: &RandomTime) -> Result<TimeProgram, Refusal> {
        let mean = self.whole(what, time.mean_ps)?;
        self.whole(what, time.mean_ps * time.law.largest())?;
        Ok(TimeProgram { mean, law: time.law.clone() })
    }
}

impl PollProgram {
    /// `table` has a cost with 1, 2, … cores busy.
    fn new(
        polls: &Polls,
        scale: &Scale,
        table: impl Fn(&str, f64) -> Result<Vec<u32>, Refusal>,
    ) -> Result<Self, Refusal> {
        let plain = Interrupts { cost_ps: 0.0, moderation_ps: 0.0, exhaustive: false, wakeup: None, linger_ps: 0.0 };
        let interrupts = polls.interrupts.as_ref().unwrap_or(&plain);
        let wakeup = interrupts.wakeup.as_ref().map(|wakeup| scale.time("a wake-up", wakeup));
        let linger = scale.whole("the time for which a core goes on polling", interrupts.linger_ps)?;
        Ok(Self {
            batch: polls.batch,
            cost_of: table("a poll", polls.cost_ps)?,
            interrupts: polls.interrupts.is_some(),
            interrupt_of: table("an interrupt", interrupts.cost_ps)?,
            works_first: interrupts.cost_ps > 0.0 && !interrupts.exhaustive,
            moderation: scale.fine("the time between two interrupts", interrupts.moderation_ps)? >> FINE_BITS,
            exhaustive: interrupts.exhaustive,
            wakeup: wakeup.transpose()?,
            linger: if interrupts.linger_ps > 0.0 { linger.max(1) } else { 0 },
        })
    }
}

impl InterruptionProgram {
    /// `longest` is the longest work that is interrupted, 256ths of a tick.
    fn new(interruptions: &Interruptions, scale: &Scale, longest: f64) -> Result<Self, Refusal> {
        let gap = PS_PER_S / interruptions.rate_hz / scale.tick_ps * f64::from(1_u32 << FINE_BITS);
        if longest > 60.0 * gap {
            return Err(Refusal("a service is interrupted more often than lanes tell apart".into()));
        }
        let ratio = f64::from(UNIT_BITS - COARSE_BITS + 32).exp2() / gap;
        let shift = (ratio.log2() - 31.9).ceil().max(0.0);
        Ok(Self {
            ratio: (ratio / shift.exp2()) as u32,
            shift: shift as u32,
            duration: scale.time("an interruption", &interruptions.duration)?,
        })
    }
}

fn too_long(what: &str, ps: f64) -> Refusal {
    Refusal(format!("{what} of {:.2e} s is too long beside the shortest service", ps * 1e-12))
}

/// Words of all bits for cores that are something, of no bit for others; nothing where all are as is usual.
fn masks(cores: &[Core], is: fn(&Core) -> bool, usual: bool) -> Vec<u32> {
    if cores.iter().all(|core| is(core) == usual) {
        return vec![];
    }
    cores.iter().map(|core| if is(core) { u32::MAX } else { 0 }).collect()
}

/// Rings one after the other; each has three places more than it has room, besides those of frames that were taken out of
/// it together, and a power of two of them.
fn rings(rooms: impl Iterator<Item = u32>, taken: u32) -> Vec<Ring> {
    let mut base = 0;
    rooms
        .map(|room| {
            let places = (room + taken + 3).next_power_of_two();
            let ring = Ring { room, base, mask: places - 1 };
            base += places;
            ring
        })
        .collect()
}

impl Router {
    /// A word for each kind of where it goes next; nothing where no frame goes from core to core.
    fn of_next(&self, word: impl Fn(Option<Next>) -> u32) -> Vec<u32> {
        if self.has_tandems() { self.kinds.iter().map(|kind| word(kind.next)).collect() } else { vec![] }
    }
}

impl SourceProgram {
    /// `of_bursts` is the key of the draws for bursts, and the number of the source.
    fn new(source: &Source, router: &Router, of_bursts: (Key, u32)) -> Result<Self, Refusal> {
        let places = source.kinds.iter().map(Vec::len).max().unwrap_or(0);
        if let Arrivals::Recorded(recording) = &source.arrivals
            && source.behind_ps(recording, &router.kinds) / router.tick_ps > 2.0_f64.powi(28)
        {
            return Err(Refusal("its recorded frames stand before the wire for too long".into()));
        }
        let mut program = Self {
            pace: source.pace(router.tick_ps, of_bursts)?,
            is_spaced: source.is_spaced(router),
            places: source.kinds.len() as u32,
            own_share: Vec::new(),
            own: Vec::new(),
            other: Vec::new(),
        };
        for kinds in &source.kinds {
            // All places have as many entries.
            let mut kinds = kinds.clone();
            kinds.resize(places, (kinds[0].0, 0.0));
            let (own_share, own, other) = alias(&kinds);
            program.own_share.extend(own_share);
            program.own.extend(own);
            program.other.extend(other);
        }
        if program.own.len() > MOST_PLACES {
            return Err(Refusal("a sequence of frames is longer than lanes tell apart".into()));
        }
        Ok(program)
    }
}

impl Source {
    fn pace(&self, tick_ps: f64, of_bursts: (Key, u32)) -> Result<Pace, Refusal> {
        let out_of_range = |rate_pps: f64| {
            Refusal(format!("{rate_pps:.2e} frames a second are too few or too many beside the shortest service"))
        };
        let mean = |rate_pps: f64| PS_PER_S / rate_pps / tick_ps;
        match self.arrivals {
            Arrivals::Recorded(ref recording) => Ok(Pace::Recorded(Arc::new(Recorded::new(recording, tick_ps)))),
            Arrivals::Poisson => {
                let later = self.steps.iter().map(|step| ((step.0 / tick_ps).round() as u64, mean(step.1)));
                let gaps: Vec<(u64, f64)> = std::iter::once((0, mean(self.rate_pps))).chain(later).collect();
                let rates = || self.steps.iter().map(|step| step.1).chain([self.rate_pps]);
                let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
                Pace::poisson(&gaps)
                    .ok_or_else(|| out_of_range(if mean(least) < f64::from(1 << 20) { most } else { least }))
            }
            _ if !(2.0..f64::from(1_u32 << 24)).contains(&mean(self.rate_pps)) => Err(out_of_range(self.rate_pps)),
            Arrivals::Even { phase } => {
                let gap = mean(self.rate_pps) * 32.0_f64.exp2();
                Ok(Pace::Even { gap: gap as u64, first: (gap * phase.clamp(0.0, 1.0)) as u64 })
            }
            Arrivals::OnOff { burst_frames, peak_ratio } => {
                let (key, number) = of_bursts;
                let of_burst = (key, number, self.kinds.len() as u32);
                Pace::on_off(mean(self.rate_pps), burst_frames, peak_ratio, of_burst)
                    .ok_or_else(|| Refusal("pauses between bursts are too short or too long for a clock".into()))
            }
            Arrivals::Bursts { frames } => Pace::bursts(mean(self.rate_pps), frames, of_bursts)
                .ok_or_else(|| Refusal("bursts are too far apart, or too long".into())),
        }
    }
}

/// Walker's tables (Vose, IEEE Transactions on Software Engineering 17(9), 1991).
fn alias(kinds: &[(usize, f64)]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let total: f64 = kinds.iter().map(|kind| kind.1).sum();
    let mut shares: Vec<f64> = kinds.iter().map(|kind| kind.1 / total * kinds.len() as f64).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..kinds.len()).partition(|&place| shares[place] < 1.0);
    let mut other: Vec<usize> = (0..kinds.len()).collect();
    let mut own_share = vec![1.0; kinds.len()];
    while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
        small.pop();
        own_share[less] = shares[less];
        other[less] = more;
        shares[more] -= 1.0 - shares[less];
        if shares[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    let name = |place: usize| kinds[place].0 as u32;
    (
        own_share.iter().map(|share| (share * 4_294_967_296.0).min(f64::from(u32::MAX)) as u32).collect(),
        (0..kinds.len()).map(name).collect(),
        other.into_iter().map(name).collect(),
    )
}
