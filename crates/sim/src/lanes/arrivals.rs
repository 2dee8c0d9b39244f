//! Frames in the terms of lanes: in what order they come, how they find a core, and what they are there.

use std::collections::HashMap;
use std::sync::Arc;

use routecast_lanes::router::{Arrivals, Kind, Next as OnTo, Recording, Source};

use super::cores::{least_work_ps, work_ps};
use crate::graph::{EXIT, Graph, Next};
use crate::planes::{Plane, is_passthrough};
use crate::scenario::{Load, Process, RouteKind, Scenario, Target};
use crate::source::WIRE_OVERHEAD_BYTES;
use crate::time::PS_PER_S;

const MOST_PLACES: usize = 1 << 16;

/// Frames at one place of a source's order: a flow, a size, and how often it is they.
#[derive(Clone)]
pub(super) struct Share {
    pub flow: u32,
    pub bytes: u32,
    pub weight: f64,
}

/// The flows and sizes of a recording's frames, each once, and which of them each frame is.
pub(super) fn recorded_order(bytes: &[u32], flow: &[u32]) -> (Vec<Vec<Share>>, Vec<u32>) {
    let mut places = HashMap::new();
    let mut order = Vec::new();
    let place = |(&bytes, &flow): (&u32, &u32)| {
        *places.entry((bytes, flow)).or_insert_with(|| {
            order.push(vec![Share { flow, bytes, weight: 1.0 }]);
            order.len() as u32 - 1
        })
    };
    let place = bytes.iter().zip(flow).map(place).collect();
    (order, place)
}

/// Shares of kinds, each list once, and where each was put.
pub(super) fn once_each(lists: Vec<Vec<(usize, f64)>>) -> (Vec<Vec<(usize, f64)>>, Vec<u32>) {
    let mut known: HashMap<Vec<(usize, u64)>, u32> = HashMap::new();
    let mut once = Vec::new();
    let put = |list: Vec<(usize, f64)>| {
        let name = list.iter().map(|share| (share.0, share.1.to_bits())).collect();
        *known.entry(name).or_insert_with(|| {
            once.push(list);
            once.len() as u32 - 1
        })
    };
    let put = lists.into_iter().map(put).collect();
    (once, put)
}

/// The order in which a source's frames come: at each place of a sequence that repeats, what they may be.
pub(super) fn order_of(load: &Load, source: &crate::scenario::Source) -> Result<Vec<Vec<Share>>, String> {
    let weight = |flow: u32| load.flows[flow as usize].weight;
    let are_alike = source.flows.iter().all(|&flow| weight(flow) == weight(source.flows[0]));
    let (is_even, in_bursts) = match source.process {
        Process::Poisson => (false, false),
        Process::Cbr { .. } => (true, false),
        Process::Bursts { .. } => (true, true),
        Process::OnOff { .. } => (false, true),
        Process::Trace { ref bytes, ref flow, .. } => return Ok(recorded_order(bytes, flow).0),
    };
    if in_bursts && !are_alike {
        return Err("each of its bursts is of one flow, and its flows are not equally frequent".into());
    }
    // Of on-off arrivals a place is a flow, which a burst is drawn to be of.
    let in_turn = in_bursts || (is_even && are_alike);
    let in_order = load.sizes.len() > 1 && !load.random_sizes;
    if in_order && !is_even {
        return Err("frames of several sizes repeat in order".into());
    }
    let [flows, sizes] = [(in_turn, source.flows.len()), (in_order, load.sizes.len())]
        .map(|(repeats, length)| if repeats { length } else { 1 });
    let places = flows / gcd(flows, sizes) * sizes;
    if places > MOST_PLACES {
        return Err("its frames repeat after more than 65,536".into());
    }
    let shares = |place: usize| {
        let flows = if in_turn { &source.flows[place % flows..][..1] } else { &source.flows[..] };
        let sizes = if in_order { &load.sizes[place % sizes..][..1] } else { &load.sizes[..] };
        let each = |&flow: &u32| sizes.iter().map(move |&bytes| Share { flow, bytes, weight: weight(flow) });
        flows.iter().flat_map(each).collect()
    };
    Ok((0..places).map(shares).collect())
}

/// The greatest common divisor.
fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// A source in the terms of lanes. One whose equal frames are offered faster than their link carries sends at its rate.
///
/// `trial_ticks` is the length of the trial.
pub(super) fn arrivals_of(
    source: &crate::scenario::Source,
    alike: &[Kind],
    mut kinds: Vec<Vec<(usize, f64)>>,
    trial_ticks: f64,
) -> Result<Source, String> {
    let arrivals = match source.process {
        Process::Cbr { phase } => Arrivals::Even { phase },
        Process::OnOff { burst_frames, peak_ratio } => Arrivals::OnOff { burst_frames, peak_ratio },
        Process::Bursts { burst_frames } => {
            let frames = u32::try_from(burst_frames).map_err(|_| "its bursts are too long")?;
            Arrivals::Bursts { frames }
        }
        Process::Trace { ref time_ps, ref bytes, ref flow } => {
            let (kept, put) = once_each(kinds);
            kinds = kept;
            let place = recorded_order(bytes, flow).1.into_iter().map(|place| put[place as usize]).collect();
            Arrivals::Recorded(Arc::new(Recording::new(time_ps.clone(), place, kinds.len())))
        }
        Process::Poisson => Arrivals::Poisson,
    };
    let steps: Vec<(f64, f64)> = source.steps.iter().map(|step| (step.at_ps, step.rate_pps)).collect();
    let source = Source { rate_pps: source.rate_pps, steps, arrivals, kinds };
    let greatest_pps = source.steps.iter().map(|step| step.1).fold(source.rate_pps, f64::max);
    let load = source.wire_load(alike) * greatest_pps / source.rate_pps;
    if load > 1.0 && !source.steps.is_empty() {
        return Err("more is offered to a port than its link carries, for a part of the trial".into());
    }
    let is_recorded = matches!(source.arrivals, Arrivals::Recorded(_));
    let wires = || source.kinds.iter().flatten().map(|share| alike[share.0].wire_ps);
    let (shortest, longest) = (wires().fold(f64::INFINITY, f64::min), wires().fold(0.0, f64::max));
    let phase = match source.arrivals {
        Arrivals::Even { phase } if load > 1.0 => Some(phase),
        Arrivals::Poisson if load > CROWDED => Some(0.0),
        _ => None,
    };
    match phase.filter(|_| shortest == longest) {
        Some(phase) => {
            let arrivals = Arrivals::Even { phase: phase / load };
            Ok(Source { rate_pps: source.rate_pps / load, arrivals, ..source })
        }
        None if (load - 1.0) * trial_ticks > f64::from(1 << 28) && !is_recorded => {
            Err("more is offered to a port than its link carries, for long".into())
        }
        None => Ok(source),
    }
}

/// Load of a wire from which on frames that come at random leave no gap on it but at the very beginning.
const CROWDED: f64 = 1.05;

/// How frames find their cores where no flow decides.
pub(super) enum Dealt {
    /// By flow.
    ByFlow,
    /// In turn.
    InTurn(Vec<u32>),
    /// At random.
    AtRandom(Vec<(u32, f64)>),
}

impl Dealt {
    pub(super) fn of(scenario: &Scenario, graph: &Graph) -> Result<Self, String> {
        let model = &scenario.model;
        let flows = || scenario.load.sources.iter().flat_map(|source| &source.flows);
        if flows().all(|&flow| graph.first_of(flow).is_some()) {
            return Ok(Self::ByFlow);
        }
        let mut entries = scenario.load.sources.iter().map(|source| model.ports[source.port].entry);
        let first = entries.next().flatten();
        let Some(entry) = first.filter(|_| entries.all(|entry| entry == first)) else {
            return Err("several of its task units deal frames".into());
        };
        let route = &model.tasks[entry].route;
        let core = |target: &Target| match target {
            Target::Task(task) if graph.planes[*task] != Plane::Passthrough => Ok(*task as u32),
            _ => Err("frames are dealt to something else than cores".to_owned()),
        };
        let cores = route.to.iter().map(core).collect::<Result<Vec<_>, _>>()?;
        let is_first = graph.planes[entry] == Plane::Passthrough;
        match route.kind {
            RouteKind::RoundRobin if is_first => Ok(Self::InTurn(cores)),
            RouteKind::Random if is_first => {
                let weight = |place: usize| route.weights.get(place).copied().unwrap_or(1.0);
                Ok(Self::AtRandom(cores.into_iter().enumerate().map(|(place, core)| (core, weight(place))).collect()))
            }
            _ => Err("frames find their core in turn or at random behind another".into()),
        }
    }

    /// Cores that frames are dealt to in turn.
    pub(super) fn turns(&self) -> usize {
        if let Self::InTurn(cores) = self { cores.len() } else { 1 }
    }

    /// The cores of a flow's frames, in turn, with the share of the frames that go there.
    pub(super) fn cores(&self, graph: &Graph, flow: u32) -> Result<Vec<(Vec<u32>, f64)>, String> {
        match self {
            Self::ByFlow => graph.first_of(flow).map(|core| vec![(vec![core], 1.0)]),
            Self::InTurn(cores) => Some(vec![(cores.clone(), 1.0)]),
            Self::AtRandom(cores) => {
                let total: f64 = cores.iter().map(|core| core.1).sum();
                Some(cores.iter().map(|&(core, weight)| (vec![core], weight / total)).collect())
            }
        }
        .ok_or_else(|| "only some of its frames are dealt".into())
    }
}

/// What kinds of frames rest on, and the lists that they fill.
pub(super) struct Ways<'a> {
    pub scenario: &'a Scenario,
    pub graph: &'a Graph,
    /// Task units that are cores, ports that are links, and task units that deal frames between cores.
    pub tasks: Vec<usize>,
    pub ports: Vec<usize>,
    pub dealers: Vec<usize>,
    /// What frames are behind their first core; ways lead to places of this list.
    pub later: Vec<Kind>,
}

impl Ways<'_> {
    /// The kind of a flow's frames of a size that come by a port and go to a node.
    pub(super) fn kind_of(&mut self, port: usize, (flow, bytes): (u32, u32), node: u32) -> Result<Kind, String> {
        let model = &self.scenario.model;
        let node = node as usize;
        if node >= self.graph.tasks {
            return Err("frames go to a port without a core".into());
        }
        let core = number_of(&mut self.tasks, node);
        let next = match self.graph.next_of(node) {
            Next::Fixed(next) => *next,
            Next::ByFlow(table) => table[flow as usize],
            Next::Dynamic => {
                return Err("frames find their next core in turn or at random from a core itself".into());
            }
        };
        let on_wire = f64::from(bytes + WIRE_OVERHEAD_BYTES) * 8.0 * PS_PER_S;
        let link = (next != EXIT).then(|| (next as usize).checked_sub(self.graph.tasks)).flatten();
        let link = link.map(|port| (port, on_wire / model.ports[port].link_bps));
        // A link that sends within nothing of a tick is no queue.
        let negligible_ps = least_work_ps(self.scenario) / 1e6;
        let link = link.filter(|&(_, sends_ps)| sends_ps > negligible_ps);
        let goes_on = next != EXIT && (next as usize) < self.graph.tasks;
        let next = if goes_on { Some(self.next_of(port, (flow, bytes), next)?) } else { None };
        Ok(Kind {
            bytes,
            wire_ps: on_wire / model.ports[port].link_bps,
            core,
            work_ps: work_ps(self.scenario, &model.tasks[node], bytes),
            next,
            link: link.map(|(port, _)| number_of(&mut self.ports, port)),
            transmission_ps: link.map_or(0.0, |(_, sends_ps)| sends_ps),
        })
    }

    /// What a flow's frames of a size are behind a core, at a task unit or those that it deals to in turn.
    fn next_of(&mut self, port: usize, frames: (u32, u32), task: u32) -> Result<OnTo, String> {
        let unit = &self.scenario.model.tasks[task as usize];
        let (cores, dealer) = if is_passthrough(unit, true) && unit.copies.is_empty() {
            let core = |target: &Target| match target {
                Target::Task(next) if !is_passthrough(&self.scenario.model.tasks[*next], true) => Ok(*next as u32),
                _ => Err("frames are dealt to something else than cores".to_owned()),
            };
            let cores = unit.route.to.iter().map(core).collect::<Result<Vec<_>, _>>()?;
            (cores, Some(number_of(&mut self.dealers, task as usize)))
        } else {
            (vec![task], None)
        };
        let kinds = cores.iter().map(|&core| self.kind_of(port, frames, core)).collect::<Result<Vec<_>, _>>()?;
        let known = self.later.windows(kinds.len()).position(|known| *known == kinds[..]);
        let kind = known.unwrap_or_else(|| {
            self.later.extend(&kinds);
            self.later.len() - kinds.len()
        });
        Ok(OnTo { kind, dealer })
    }
}

/// The place of a node in a list, to which it is added if it is not there.
fn number_of(list: &mut Vec<usize>, node: usize) -> usize {
    list.iter().position(|&known| known == node).unwrap_or_else(|| {
        list.push(node);
        list.len() - 1
    })
}
