//! The router that lanes run, and the same in integers.
//!
//! ```text
//!  source ──► kind of frame ──► core with a ring of its own ──► link with a ring ──► out
//!  (Poisson, spaced by the wire)   (slowed by busy neighbours)
//! ```

use crate::draw::{Key, Purpose};
use crate::law::Law;

/// A router whose cores have rings of their own, behind sources whose frames know their core.
#[derive(Debug, Clone)]
pub struct Router {
    /// Picoseconds a tick; [`Router::usual_tick_ps`] chooses them.
    pub tick_ps: f64,
    /// What arrives, Poisson.
    pub sources: Vec<Source>,
    /// Kinds of frames.
    pub kinds: Vec<Kind>,
    /// The cores.
    pub cores: Vec<Core>,
    /// The random factor of a service.
    pub law: Law,
    /// How all cores find their frames; none: one by one, each as soon as the one before is done.
    pub polls: Option<Polls>,
    /// Factor of a service that begins with 1, 2, … cores at work; its last value goes on. Empty means none.
    pub contention: Vec<f64>,
    /// The outgoing links.
    pub links: Vec<Link>,
}

/// Polls: a core takes several waiting frames at once, at a cost, and may sleep until an interrupt in between (S6).
///
/// Frames that a poll has taken wait no longer in the ring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Polls {
    /// Frames that a poll takes, at most.
    pub batch: u32,
    /// Picoseconds of a poll.
    pub cost_ps: f64,
    /// Interrupts; none: a poll follows as soon as a frame waits.
    pub interrupts: Option<Interrupts>,
}

/// Interrupts: a frame in an idle core's ring raises one; polls follow until one takes fewer frames than it may.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interrupts {
    /// Picoseconds of work of an interrupt.
    pub cost_ps: f64,
    /// Least picoseconds between two interrupts of a core.
    pub moderation_ps: f64,
    /// Whether a poll takes also what comes while it is under way, frame by frame; an interrupt's work is then that of
    /// its first frame.
    pub exhaustive: bool,
}

/// Frames of one port.
#[derive(Debug, Clone)]
pub struct Source {
    /// Frames a second.
    pub rate_pps: f64,
    /// Kinds of frames with their relative frequencies.
    pub kinds: Vec<(usize, f64)>,
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
    /// Its outgoing link; none: it leaves at once.
    pub link: Option<usize>,
    /// Picoseconds of its transmission there.
    pub transmission_ps: f64,
}

/// A core.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// Frames that can wait.
    pub queue: u32,
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

/// Fraction bits of times that add up: services, links, wires.
pub(crate) const FINE_BITS: u32 = 8;
/// Ticks of 52 bits: the upper 12 of the counter's high word name the server.
pub(crate) const TICK_BITS: u32 = 52;
/// Ticks that a lane runs at once. Instants that it compares lie less than twice that apart.
pub(crate) const STRETCH_BITS: u32 = 29;
/// Arrivals of a cell; the rest of the word names the source.
pub(crate) const NUMBER_BITS: u32 = 24;
const MOST_CORES: usize = 64;
const MOST_LINKS: usize = 64;
const MOST_KINDS: usize = 4096;
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
}

/// The router in integers.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) tick_ps: f64,
    pub(crate) cell_bits: u32,
    pub(crate) arrival: Key,
    pub(crate) service: Key,
    pub(crate) law: Law,
    pub(crate) sources: Vec<SourceProgram>,
    pub(crate) core_of: Vec<u32>,
    pub(crate) bytes_of: Vec<u32>,
    pub(crate) wire_of: Vec<u32>,
    /// The link of each kind; [`NO_LINK`] where there is none.
    pub(crate) link_of: Vec<u32>,
    pub(crate) transmission_of: Vec<u32>,
    /// Work of each kind with 1, 2, … cores busy, [`FINE_BITS`] fraction bits.
    pub(crate) work_of: Vec<u32>,
    pub(crate) factors: u32,
    pub(crate) polls: Option<PollProgram>,
    pub(crate) cores: Vec<Ring>,
    pub(crate) links: Vec<Ring>,
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
}

pub(crate) const NO_LINK: u32 = u32::MAX;

/// A ring: its room, and where its places lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    pub room: u32,
    pub base: u32,
    pub mask: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct SourceProgram {
    /// Ticks of a mean gap, `gap_bits` fraction bits: 2^29 to 2^30.
    pub gap: u32,
    pub gap_bits: u32,
    /// Walker's alias method: the share of a place that is its own kind, that kind, and the other.
    pub own_share: Vec<u32>,
    pub own: Vec<u32>,
    pub other: Vec<u32>,
}

impl Program {
    /// Puts a router into integers, for a replication of a seed.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: something is beyond what the integers hold, or out of range.
    pub fn new(router: &Router, seed: u64, replication: u64) -> Result<Self, Refusal> {
        router.check()?;
        let tick_ps = router.tick_ps;
        let fine = |what: &str, ps: f64| {
            let ticks = (ps / tick_ps * f64::from(1_u32 << FINE_BITS)).round();
            if ticks < f64::from(1_u32 << 27) { Ok(ticks as u32) } else { Err(too_long(what, ps)) }
        };
        let factors = router.contention.len().clamp(1, router.cores.len());
        let factor = |busy: usize| router.contention.get(busy).or(router.contention.last()).copied().unwrap_or(1.0);
        let mut rounding_ratio = 0.0_f64;
        let mut work_of = Vec::new();
        for kind in &router.kinds {
            for busy in 0..factors {
                let ps = kind.work_ps * factor(busy);
                let work = fine("a service", ps)?;
                let rounded_ps = f64::from(work) * tick_ps / f64::from(1_u32 << FINE_BITS);
                rounding_ratio = rounding_ratio.max(if ps > 0.0 { (rounded_ps / ps - 1.0).abs() } else { 0.0 });
                work_of.push(work);
            }
        }
        let table =
            |what: &str, ps: f64| (0..factors).map(|busy| fine(what, ps * factor(busy))).collect::<Result<Vec<_>, _>>();
        let polls = router.polls.map(|polls| {
            let interrupts = polls.interrupts;
            let cost_ps = interrupts.map_or(0.0, |interrupts| interrupts.cost_ps);
            let exhaustive = interrupts.is_some_and(|interrupts| interrupts.exhaustive);
            let moderation_ps = interrupts.map_or(0.0, |interrupts| interrupts.moderation_ps);
            let moderation = fine("the time between two interrupts", moderation_ps)? >> FINE_BITS;
            Ok(PollProgram {
                batch: polls.batch,
                cost_of: table("a poll", polls.cost_ps)?,
                interrupts: interrupts.is_some(),
                interrupt_of: table("an interrupt", cost_ps)?,
                works_first: cost_ps > 0.0 && !exhaustive,
                moderation,
                exhaustive,
            })
        });
        let polls = polls.transpose()?;
        let sources = router.sources.iter().map(|source| SourceProgram::new(source, tick_ps));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let longest = sources.iter().map(|source| source.gap >> source.gap_bits).max().unwrap_or(1).max(1);
        let shortest = sources.iter().map(|source| source.gap >> source.gap_bits).min().unwrap_or(1).max(1);
        let each = |of: fn(&Kind) -> f64, what: &str| {
            router.kinds.iter().map(|kind| fine(what, of(kind))).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            tick_ps,
            // 512 to 1,024 mean gaps to a cell, 2^16 ticks at least.
            cell_bits: (41 - longest.leading_zeros()).clamp(16, STRETCH_BITS - 1).min(22 + shortest.ilog2()),
            arrival: Key::new(seed, replication, Purpose::Arrival),
            service: Key::new(seed, replication, Purpose::Service),
            law: router.law.clone(),
            sources,
            core_of: router.kinds.iter().map(|kind| kind.core as u32).collect(),
            bytes_of: router.kinds.iter().map(|kind| kind.bytes).collect(),
            wire_of: each(|kind| kind.wire_ps, "a frame on the wire")?,
            link_of: router.kinds.iter().map(|kind| kind.link.map_or(NO_LINK, |link| link as u32)).collect(),
            transmission_of: each(|kind| kind.transmission_ps, "a transmission")?,
            work_of,
            factors: factors as u32,
            cores: rings(router.cores.iter().map(|core| core.queue), polls.as_ref().map_or(0, |polls| polls.batch)),
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

    /// Ticks of a cell, at whose borders arrivals are drawn anew.
    #[must_use]
    pub fn cell_ticks(&self) -> u64 {
        1 << self.cell_bits
    }
}

fn too_long(what: &str, ps: f64) -> Refusal {
    Refusal(format!("{what} of {:.2e} s is too long beside the shortest service", ps * 1e-12))
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
    fn check(&self) -> Result<(), Refusal> {
        let refuse = |text: &str| Err(Refusal(text.into()));
        if self.cores.is_empty() || self.cores.len() > MOST_CORES {
            return refuse("lanes run 1 to 64 cores");
        }
        if self.links.len() > MOST_LINKS {
            return refuse("lanes run at most 64 links");
        }
        if self.kinds.is_empty() || self.kinds.len() > MOST_KINDS {
            return refuse("lanes tell at most 4,096 kinds of frames apart (size, core, link)");
        }
        if self.sources.is_empty() || self.sources.len() > 64 {
            return refuse("lanes run 1 to 64 sources");
        }
        let queues = self.cores.iter().map(|core| core.queue).chain(self.links.iter().map(|link| link.queue));
        if queues.max().is_some_and(|queue| queue > MOST_QUEUE) {
            return refuse("lanes hold at most 65,536 frames in a ring");
        }
        if let Some(polls) = self.polls {
            let costs = polls.interrupts.map_or([0.0; 2], |interrupts| [interrupts.cost_ps, interrupts.moderation_ps]);
            let times = [polls.cost_ps, costs[0], costs[1]];
            if polls.batch == 0 || polls.batch > MOST_QUEUE || times.iter().any(|ps| !(ps.is_finite() && *ps >= 0.0)) {
                return refuse("a poll takes 1 to 65,536 frames, and lasts");
            }
            if self.cores.iter().any(|core| core.queue == 0) {
                return refuse("polls find no frame in a ring without room");
            }
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
        let known = |source: &Source| {
            let shares = source.kinds.iter().map(|kind| kind.1);
            source.rate_pps > 0.0
                && source.kinds.iter().all(|kind| kind.0 < self.kinds.len() && kind.1 >= 0.0)
                && shares.sum::<f64>() > 0.0
        };
        if !self.sources.iter().all(known) {
            return refuse("a source has no rate or no frames");
        }
        // What waits at most has to lie within what a lane compares.
        let longest = |of: fn(&Kind) -> f64, queue: u32| {
            self.kinds.iter().map(of).fold(0.0, f64::max) * (f64::from(queue) + 2.0) / self.tick_ps
        };
        let queue = |rings: &mut dyn Iterator<Item = u32>| rings.max().unwrap_or(0);
        let slowest = self.contention.iter().copied().fold(1.0, f64::max);
        let inside = longest(|kind| kind.work_ps, queue(&mut self.cores.iter().map(|core| core.queue))) * slowest;
        let outside = longest(|kind| kind.transmission_ps, queue(&mut self.links.iter().map(|link| link.queue)));
        if inside > 2.0_f64.powi(28) || outside > 2.0_f64.powi(28) {
            return refuse("a full ring lasts too long beside the shortest service");
        }
        Ok(())
    }
}

impl SourceProgram {
    fn new(source: &Source, tick_ps: f64) -> Result<Self, Refusal> {
        let mean = 1e12 / source.rate_pps / tick_ps;
        // A gap that is floored to ticks is geometric, of mean 1 / (exp(1 / m) - 1), which this m makes the mean gap.
        let parameter = 1.0 / (1.0 / mean).ln_1p();
        if !(0.5..f64::from(1_u32 << 24)).contains(&parameter) {
            return Err(Refusal(format!(
                "{:.2e} frames a second are too few or too many beside the shortest service",
                source.rate_pps
            )));
        }
        let gap_bits = 29 - parameter.log2().floor() as i32;
        let gap = (parameter * f64::from(gap_bits).exp2()).round() as u32;
        let (own_share, own, other) = alias(&source.kinds);
        Ok(Self { gap, gap_bits: gap_bits as u32, own_share, own, other })
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
