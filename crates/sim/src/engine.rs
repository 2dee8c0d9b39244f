//! The event part of a model: task units that share, batch, get revoked or wake by interrupt.
//!
//! ```text
//!            arrival                grant (REP)              end of frame
//!   ┌──────┐ ──────► ┌────────────┐ ─────────► ┌─────────┐ ───────────────► next frame of the batch
//!   │ idle │         │ requesting │            │ working │
//!   └──────┘ ◄────── └────────────┘ ◄───────── └─────────┘ ───────────────► release (REL)
//!                       revoke (REV), the rest of the work is kept
//! ```
//!
//! A *lane* is one thread of a task unit (`parallel` of them); it owns one slot of the calendar. An interrupt timer
//! owns one more. At one instant, ends of service come first (further down the graph first), then arrivals in order of
//! their frame number, so a frame that leaves makes room for one that comes.

use std::collections::VecDeque;

use crate::calendar::Calendar;
use crate::frame::Frame;
use crate::graph::{EXIT, Graph, Plane};
use crate::ledger::Ledger;
use crate::manager::{Claim, Kind, LaneId, Managers};
use crate::random::stream;
use crate::scenario::{Activation, Scenario, Target, Task};
use crate::service::Service;
use crate::station::{Passage, Servers, Station};
use crate::time::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Requesting,
    Working,
    /// Has its units, but nothing to do (polling).
    Holding,
}

#[derive(Debug)]
struct Lane {
    task: u32,
    state: State,
    frame: Frame,
    has_frame: bool,
    /// Frames of the same batch that come after `frame`.
    batch: VecDeque<Frame>,
    /// Frames that the present poll took.
    polled: usize,
    work_from: u64,
    work_end: u64,
    quantum_end: u64,
    slowness: f64,
    factor: f64,
    /// First bit out: when service of the present frame began.
    start: u64,
    /// Work at speed 1 that is left after a revoke, picoseconds.
    left: Option<f64>,
    interrupt_due: bool,
}

#[derive(Debug)]
struct Unit {
    queue: VecDeque<Frame>,
    capacity: usize,
    service: Service,
    claim: usize,
    activation: Activation,
    batch: usize,
    idle: Vec<LaneId>,
    requesting: usize,
    lanes: std::ops::Range<u32>,
    timer: Option<u32>,
    interrupts_on: bool,
    last_interrupt: Option<u64>,
    priority: u8,
    quantum: Option<u64>,
}

/// Servers whose departures are known on arrival (see [`crate::graph::Group`]).
#[derive(Debug)]
struct Group {
    servers: Servers,
    /// Frames inside with the node that serves them, in order of departure.
    leaving: VecDeque<Delivery>,
}

/// A frame for a node, at an instant.
pub type Delivery = (Frame, u32);

/// Runs the event nodes of a graph.
#[derive(Debug)]
pub struct Engine {
    now: u64,
    calendar: Calendar,
    lanes: Vec<Lane>,
    units: Vec<Option<Unit>>,
    claims: Vec<Claim>,
    task_of: Vec<u32>,
    timer_task: Vec<u32>,
    stations: Vec<Option<(u32, Station)>>,
    groups: Vec<Group>,
    first_group_slot: u32,
    priority: Vec<u8>,
    is_port: Vec<bool>,
    inside: Vec<bool>,
    /// Resource managers.
    pub managers: Managers,
    /// Arrivals at the present instant that wait for ends of service at the same instant.
    instant: Vec<Delivery>,
    /// Frames for nodes after the events, and for outside.
    pub outbox: Vec<Delivery>,
}

impl Engine {
    /// Sets up the event nodes of a graph; none if there are none.
    #[must_use]
    pub fn new(scenario: &Scenario, graph: &Graph, ledger: &mut Ledger) -> Option<Self> {
        let model = &scenario.model;
        let nodes: Vec<usize> = (0..graph.planes.len()).filter(|&n| graph.planes[n] == Plane::Events).collect();
        if nodes.is_empty() {
            return None;
        }
        let mut claims: Vec<Claim> = (0..model.tasks.len()).map(|task| Claim::new(model, task)).collect();
        let ports: Vec<Task> = model.ports.iter().map(port_as_task).collect();
        claims.extend((0..ports.len()).map(|port| Claim::nothing(model.tasks.len() + port)));
        let mut lanes = Vec::new();
        let mut task_of = Vec::new();
        let mut units: Vec<Option<Unit>> = (0..graph.planes.len()).map(|_| None).collect();
        let laned: Vec<usize> = nodes.iter().copied().filter(|&n| graph.grouped[n].is_none()).collect();
        for &n in &laned {
            let is_port = n >= graph.tasks;
            let task = if is_port { &ports[n - graph.tasks] } else { &model.tasks[n] };
            let first = lanes.len() as u32;
            for _ in 0..lanes_of(scenario, task) {
                lanes.push(Lane::new(n as u32));
                task_of.push(n as u32);
            }
            let rng = stream(scenario.run.seed, scenario.run.replication, "service", n);
            let batch = match task.activation {
                Activation::Interrupt { budget, .. } => budget,
                _ => task.batch,
            };
            units[n] = Some(Unit {
                queue: VecDeque::with_capacity(task.queue.min(1 << 12)),
                capacity: task.queue,
                service: if is_port {
                    Service::link(model.ports[n - graph.tasks].link_bps, rng)
                } else {
                    Service::new(task, rng)
                },
                claim: n,
                activation: task.activation,
                batch,
                idle: (first..lanes.len() as u32).rev().collect(),
                requesting: 0,
                lanes: first..lanes.len() as u32,
                timer: None,
                interrupts_on: true,
                last_interrupt: None,
                priority: 255 - graph.depth[n],
                quantum: None,
            });
        }
        let managers = Managers::new(&model.pools, claims.len(), lanes.len(), scenario.run.message_limit);
        let mut timer_task = Vec::new();
        for unit in units.iter_mut().flatten() {
            unit.quantum = managers.quantum_ps(&claims[unit.claim]);
            if matches!(unit.activation, Activation::Interrupt { .. }) {
                unit.timer = Some((lanes.len() + timer_task.len()) as u32);
                timer_task.push(unit.claim as u32);
            }
        }
        let first_group_slot = (lanes.len() + timer_task.len()) as u32;
        let calendar = Calendar::new(first_group_slot as usize + graph.groups.len());
        let stations =
            (0..graph.planes.len()).map(|n| Some((graph.grouped[n]?, Station::of_node(scenario, n)))).collect();
        let groups = graph
            .groups
            .iter()
            .map(|group| Group { servers: Servers::new(group.servers), leaving: VecDeque::new() })
            .collect();
        let mut engine = Self {
            now: 0,
            calendar,
            lanes,
            units,
            claims,
            task_of,
            timer_task,
            stations,
            groups,
            first_group_slot,
            priority: graph.depth.iter().map(|depth| 255 - depth).collect(),
            inside: graph.planes.iter().map(|&plane| plane == Plane::Events).collect(),
            is_port: (0..graph.planes.len()).map(|n| n >= graph.tasks).collect(),
            managers,
            instant: Vec::new(),
            outbox: Vec::new(),
        };
        for n in laned {
            let unit = engine.unit(n as u32);
            if unit.activation == Activation::Polling {
                for lane in unit.lanes.clone() {
                    engine.unit(n as u32).idle.clear();
                    engine.request(lane, ledger);
                }
            }
        }
        Some(engine)
    }

    /// Processes all events before `bound`, fed by `inbox` (in order of time, then number).
    pub fn run(&mut self, inbox: &[Delivery], bound: u64, graph: &mut Graph, ledger: &mut Ledger) {
        let mut inbox = inbox.iter();
        loop {
            let next_end = self.calendar.next_at();
            let next_in = inbox.as_slice().first().map_or(u64::MAX, |(frame, _)| frame.at);
            if next_end <= next_in {
                // Arrivals of this instant come after all ends of service of this instant.
                if !self.instant.is_empty() && next_end > self.now {
                    let (frame, node) = self.instant.remove(0);
                    self.arrive(node, &frame, ledger);
                    continue;
                }
                if next_end >= bound {
                    return;
                }
                self.now = next_end;
                let slot = self.calendar.next_slot();
                if let Some((frame, node)) = self.fire(slot, graph, ledger) {
                    self.deliver(&frame, node, next_in, ledger);
                }
            } else {
                let first = self.instant.first().map_or((u64::MAX, 0), |(frame, _)| (frame.at, frame.seq));
                let (frame, node) = &inbox.as_slice()[0];
                if first < (frame.at, frame.seq) {
                    // Arrivals of one instant go by number, whether they come from inside or from before.
                    let (frame, node) = self.instant.remove(0);
                    self.arrive(node, &frame, ledger);
                    continue;
                }
                if next_in >= bound {
                    return;
                }
                self.now = next_in;
                self.arrive(*node, frame, ledger);
                inbox.next();
            }
        }
    }

    /// Frames inside: waiting, in service, or at an instant that was not reached.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let waiting: usize = self.units.iter().flatten().map(|unit| unit.queue.len()).sum();
        let serving: usize = self.lanes.iter().map(|lane| usize::from(lane.has_frame) + lane.batch.len()).sum();
        let leaving: usize = self.groups.iter().map(|group| group.leaving.len()).sum();
        (waiting + serving + leaving + self.instant.len() + self.outbox.len()) as u64
    }

    /// Stations inside the events, by node.
    pub fn stations(&mut self) -> impl Iterator<Item = (usize, &mut Station)> {
        self.stations.iter_mut().enumerate().filter_map(|(n, station)| Some((n, &mut station.as_mut()?.1)))
    }

    /// Books the work that is under way when the trial ends.
    pub fn close(&mut self, end: u64, ledger: &mut Ledger) {
        for lane in &self.lanes {
            if lane.state == State::Working && lane.work_from < end {
                ledger.work(lane.task as usize, lane.work_from, lane.work_end.min(end));
            }
        }
    }

    fn unit(&mut self, task: u32) -> &mut Unit {
        self.units[task as usize].as_mut().expect("event nodes have a unit")
    }

    /// Hands a frame to its next node: at once where nothing else happens at this instant, else in its turn.
    #[inline]
    fn deliver(&mut self, frame: &Frame, node: u32, next_in: u64, ledger: &mut Ledger) {
        if node == EXIT || !self.inside[node as usize] {
            self.outbox.push((*frame, node));
        } else if self.instant.is_empty() && self.calendar.next_at() > self.now && next_in > self.now {
            self.arrive(node, frame, ledger);
        } else {
            let place = self.instant.partition_point(|(other, _)| other.seq < frame.seq);
            self.instant.insert(place, (*frame, node));
        }
    }

    #[inline]
    fn arrive(&mut self, node: u32, frame: &Frame, ledger: &mut Ledger) {
        if self.stations[node as usize].is_some() {
            self.pass(node, frame, ledger);
        } else {
            self.queue_up(node, frame, ledger);
        }
    }

    /// A frame goes through a station: its departure is known at once.
    #[inline]
    fn pass(&mut self, node: u32, frame: &Frame, ledger: &mut Ledger) {
        let (group, station) = self.stations[node as usize].as_mut().expect("arrive saw it");
        let slot = self.first_group_slot + *group;
        let group = &mut self.groups[*group as usize];
        let limit = ledger.segment_end();
        let Some(Passage { start, done }) = station.offer(&mut group.servers, frame.at, frame.bytes, limit) else {
            ledger.drop_frame(node as usize, frame);
            return;
        };
        if done > limit {
            ledger.work(node as usize, start, done);
        }
        if self.is_port[node as usize] {
            ledger.forward(frame, start - frame.at, start, done);
            return;
        }
        let frame = frame.passed(start, done);
        // Several servers may finish out of order, but not by much: look for the place from the back.
        let mut place = group.leaving.len();
        while place > 0 && group.leaving[place - 1].0.at > done {
            place -= 1;
        }
        if place == group.leaving.len() {
            group.leaving.push_back((frame, node));
        } else {
            group.leaving.insert(place, (frame, node));
        }
        if place == 0 {
            self.calendar.schedule(slot, done, self.priority[node as usize]);
        }
    }

    /// The first frame of a group departs.
    #[inline]
    fn depart(&mut self, slot: u32, graph: &mut Graph) -> Delivery {
        let group = &mut self.groups[(slot - self.first_group_slot) as usize];
        let (frame, node) = group.leaving.pop_front().expect("a scheduled group has a frame");
        match group.leaving.front() {
            Some((next, at)) => self.calendar.schedule(slot, next.at, self.priority[*at as usize]),
            None => self.calendar.cancel(slot),
        }
        (frame, graph.onward(node, frame.flow, frame.seq))
    }

    fn queue_up(&mut self, node: u32, frame: &Frame, ledger: &mut Ledger) {
        let unit = self.units[node as usize].as_mut().expect("event nodes have a unit");
        if unit.queue.len() >= unit.capacity {
            ledger.drop_frame(node as usize, frame);
            return;
        }
        unit.queue.push_back(*frame);
        self.wake(node, ledger);
    }

    /// Sees to it that the frames of a queue will be served.
    #[inline]
    fn wake(&mut self, node: u32, ledger: &mut Ledger) {
        let now = self.now;
        let unit = self.units[node as usize].as_mut().expect("event nodes have a unit");
        match unit.activation {
            Activation::Dedicated => {
                if unit.requesting < unit.queue.len()
                    && let Some(lane) = unit.idle.pop()
                {
                    self.request(lane, ledger);
                }
            }
            Activation::Polling => {
                let lanes = unit.lanes.clone();
                if let Some(lane) = lanes.into_iter().find(|&lane| self.lanes[lane as usize].state == State::Holding) {
                    self.poll(lane, 0.0, ledger);
                }
            }
            Activation::Interrupt { moderation_ps, .. } => {
                if unit.interrupts_on {
                    unit.interrupts_on = false;
                    let due = unit.last_interrupt.map_or(now, |last| (last + Span::from_ps(moderation_ps).0).max(now));
                    let (timer, priority) = (unit.timer.expect("interrupt units have a timer"), unit.priority);
                    self.calendar.schedule(timer, due, priority);
                }
            }
        }
    }

    /// Handles the event of a slot; returns the frame that moved on.
    #[inline]
    fn fire(&mut self, slot: u32, graph: &mut Graph, ledger: &mut Ledger) -> Option<Delivery> {
        if slot >= self.first_group_slot {
            return Some(self.depart(slot, graph));
        }
        if slot as usize >= self.lanes.len() {
            self.interrupt(slot, ledger);
            return None;
        }
        let lane = &self.lanes[slot as usize];
        if lane.work_end > self.now {
            self.expire(slot, ledger);
            return None;
        }
        self.finish(slot, graph, ledger)
    }

    fn interrupt(&mut self, slot: u32, ledger: &mut Ledger) {
        self.calendar.cancel(slot);
        let task = self.timer_task[slot as usize - self.lanes.len()];
        let now = self.now;
        let unit = self.unit(task);
        unit.last_interrupt = Some(now);
        let lane = unit.idle.pop().expect("an interrupt finds its lane idle");
        self.lanes[lane as usize].interrupt_due = true;
        self.request(lane, ledger);
    }

    /// REQ, and REP at once where units are free or can be revoked.
    #[inline]
    fn request(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        if self.claims[task as usize].needs.is_empty() {
            self.granted(lane, 0, 1.0, ledger);
            return;
        }
        self.managers.request(&self.claims[task as usize], self.now);
        if let Some(terms) = self.managers.try_grant(lane, &self.claims[task as usize], self.now) {
            self.granted(lane, terms.overhead_ps, terms.slowness, ledger);
            return;
        }
        if let Some(victims) = self.managers.victims(&self.claims[task as usize], &self.claims, &self.task_of) {
            for victim in victims {
                self.revoke(victim, ledger);
            }
            if let Some(terms) = self.managers.try_grant(lane, &self.claims[task as usize], self.now) {
                self.granted(lane, terms.overhead_ps, terms.slowness, ledger);
                return;
            }
        }
        self.line_up(lane);
    }

    fn line_up(&mut self, lane: LaneId) {
        let task = self.lanes[lane as usize].task;
        self.lanes[lane as usize].state = State::Requesting;
        self.unit(task).requesting += 1;
        self.managers.enqueue(lane, &self.claims[task as usize]);
    }

    #[inline]
    fn granted(&mut self, lane: LaneId, overhead_ps: u64, slowness: f64, ledger: &mut Ledger) {
        let now = self.now;
        let holder = &mut self.lanes[lane as usize];
        holder.slowness = slowness;
        let mut work = overhead_ps as f64 / slowness;
        let unit = self.units[holder.task as usize].as_ref().expect("event nodes have a unit");
        holder.quantum_end = unit.quantum.map_or(u64::MAX, |quantum| now.saturating_add(quantum));
        if let Some(left) = holder.left.take() {
            self.work(lane, work + left);
            return;
        }
        if holder.interrupt_due {
            holder.interrupt_due = false;
            if let Activation::Interrupt { cost_ps, .. } = unit.activation {
                work += cost_ps;
            }
        }
        self.poll(lane, work, ledger);
    }

    /// Takes a batch from the queue and starts on it; `extra` is work that comes first.
    #[inline]
    fn poll(&mut self, lane: LaneId, extra: f64, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        let unit = self.units[holder.task as usize].as_mut().expect("event nodes have a unit");
        let Some(frame) = unit.queue.pop_front() else {
            holder.polled = 0;
            self.end_of_poll(lane, ledger);
            return;
        };
        let more = unit.queue.len().min(unit.batch - 1);
        holder.batch.extend(unit.queue.drain(..more));
        holder.polled = more + 1;
        let extra = extra + unit.service.per_batch_ps();
        self.serve(lane, frame, extra, ledger);
    }

    #[inline]
    fn serve(&mut self, lane: LaneId, mut frame: Frame, extra: f64, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        let task = holder.task as usize;
        let waited = self.now - frame.at;
        frame.waited += waited;
        let segment = ledger.segment_of(frame.at);
        ledger.accounts[task].waited_ps[segment] += waited;
        let work = extra + self.units[task].as_mut().expect("event nodes have a unit").service.draw_ps(frame.bytes);
        holder.frame = frame;
        holder.has_frame = true;
        holder.start = self.now;
        self.work(lane, work);
    }

    /// Puts the lane's units to work for `work` picoseconds at speed 1.
    #[inline]
    fn work(&mut self, lane: LaneId, work: f64) {
        let holder = &mut self.lanes[lane as usize];
        holder.factor = self.managers.begin_work(&self.claims[holder.task as usize]);
        holder.state = State::Working;
        holder.work_from = self.now;
        holder.work_end = self.now + (work * holder.slowness * holder.factor + 0.5) as u64;
        let at = holder.work_end.min(holder.quantum_end.max(self.now));
        let priority = self.units[holder.task as usize].as_ref().expect("event nodes have a unit").priority;
        self.calendar.schedule(lane, at, priority);
    }

    #[inline]
    fn stop_work(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let holder = &mut self.lanes[lane as usize];
        ledger.work(holder.task as usize, holder.work_from, self.now);
        self.managers.end_work(&self.claims[holder.task as usize]);
    }

    /// A frame is done.
    #[inline]
    fn finish(&mut self, lane: LaneId, graph: &mut Graph, ledger: &mut Ledger) -> Option<Delivery> {
        self.stop_work(lane, ledger);
        let holder = &mut self.lanes[lane as usize];
        let (mut frame, task, start) = (holder.frame, holder.task, holder.start);
        holder.has_frame = false;
        if let Some(next) = holder.batch.pop_front() {
            self.serve(lane, next, 0.0, ledger);
        } else {
            self.end_of_poll(lane, ledger);
            // Most lanes go on at once and have replaced their event; one cancellation less matters here.
            if matches!(self.lanes[lane as usize].state, State::Idle | State::Requesting) {
                self.calendar.cancel(lane);
            }
        }
        if self.is_port[task as usize] {
            ledger.forward(&frame, 0, start, self.now);
            return None;
        }
        frame.at = self.now;
        Some((frame, graph.onward(task, frame.flow, frame.seq)))
    }

    /// The batch is done: go on, give the units back, or hold them.
    #[inline]
    fn end_of_poll(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let (task, polled, quantum_end) = {
            let holder = &self.lanes[lane as usize];
            (holder.task, holder.polled, holder.quantum_end)
        };
        let claim = &self.claims[task as usize];
        let contested = self.managers.is_contested(claim);
        let unit = self.units[task as usize].as_mut().expect("event nodes have a unit");
        let more = unit.queue.len() > unit.requesting;
        match unit.activation {
            Activation::Polling => {
                if contested && self.now >= quantum_end {
                    self.give_back(lane, Kind::Revoke, true, ledger);
                } else if more {
                    self.poll(lane, 0.0, ledger);
                } else {
                    self.lanes[lane as usize].state = State::Holding;
                    self.calendar.cancel(lane);
                    if self.lanes[lane as usize].quantum_end < u64::MAX {
                        // Spinning uses up the quantum like work does.
                        let at = quantum_end.max(self.now + 1);
                        let priority = self.unit(task).priority;
                        self.lanes[lane as usize].work_end = u64::MAX;
                        self.calendar.schedule(lane, at, priority);
                    }
                }
            }
            Activation::Dedicated => {
                self.give_back(lane, Kind::Release, more, ledger);
            }
            Activation::Interrupt { budget, .. } => {
                if polled >= budget {
                    self.give_back(lane, Kind::Release, true, ledger);
                } else {
                    unit.interrupts_on = true;
                    self.give_back(lane, Kind::Release, false, ledger);
                    if !self.unit(task).queue.is_empty() {
                        self.wake(task, ledger);
                    }
                }
            }
        }
    }

    /// REL or REV, then the managers serve whoever waits; `again` asks for the units anew, behind the others.
    #[inline]
    fn give_back(&mut self, lane: LaneId, kind: Kind, again: bool, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        let claim = &self.claims[task as usize];
        if claim.needs.is_empty() {
            if again {
                self.poll(lane, 0.0, ledger);
            } else {
                self.rest(lane);
            }
            return;
        }
        self.managers.take_back(lane, claim, self.now, kind);
        if again {
            self.managers.request(claim, self.now);
            if !self.managers.is_contested(claim)
                && let Some(terms) = self.managers.try_grant(lane, claim, self.now)
            {
                self.granted(lane, terms.overhead_ps, terms.slowness, ledger);
                return;
            }
            self.line_up(lane);
        } else {
            self.rest(lane);
        }
        self.dispatch(task, ledger);
    }

    #[inline]
    fn rest(&mut self, lane: LaneId) {
        let holder = &mut self.lanes[lane as usize];
        holder.state = State::Idle;
        let task = holder.task;
        self.unit(task).idle.push(lane);
    }

    /// Serves the waiting lists of all pools that a task unit uses.
    #[inline]
    fn dispatch(&mut self, task: u32, ledger: &mut Ledger) {
        for i in 0..self.claims[task as usize].needs.len() {
            let pool = self.claims[task as usize].needs[i].pool;
            while let Some(lane) = self.managers.next_waiting(pool, &self.claims, &self.task_of) {
                let owner = self.lanes[lane as usize].task;
                self.unit(owner).requesting -= 1;
                let terms = self
                    .managers
                    .try_grant(lane, &self.claims[owner as usize], self.now)
                    .expect("a lane that fits can be granted");
                self.granted(lane, terms.overhead_ps, terms.slowness, ledger);
            }
        }
    }

    /// REV: the lane keeps what is left of its work and lines up again.
    fn revoke(&mut self, lane: LaneId, ledger: &mut Ledger) {
        if self.lanes[lane as usize].state == State::Working {
            self.stop_work(lane, ledger);
            let holder = &mut self.lanes[lane as usize];
            holder.left = Some((holder.work_end - self.now) as f64 / (holder.slowness * holder.factor));
        }
        self.calendar.cancel(lane);
        let task = self.lanes[lane as usize].task;
        self.managers.take_back(lane, &self.claims[task as usize], self.now, Kind::Revoke);
        self.line_up(lane);
    }

    /// A quantum is over.
    fn expire(&mut self, lane: LaneId, ledger: &mut Ledger) {
        let task = self.lanes[lane as usize].task;
        if self.managers.is_contested(&self.claims[task as usize]) {
            self.revoke(lane, ledger);
            self.dispatch(task, ledger);
            return;
        }
        let unit = self.units[task as usize].as_ref().expect("event nodes have a unit");
        let (quantum, priority) = (unit.quantum.expect("only quanta expire"), unit.priority);
        let holder = &mut self.lanes[lane as usize];
        holder.quantum_end = self.now.saturating_add(quantum);
        self.calendar.schedule(lane, holder.work_end.min(holder.quantum_end), priority);
    }
}

impl Lane {
    fn new(task: u32) -> Self {
        Self {
            task,
            state: State::Idle,
            frame: Frame::default(),
            has_frame: false,
            batch: VecDeque::new(),
            polled: 0,
            work_from: 0,
            work_end: 0,
            quantum_end: u64::MAX,
            slowness: 1.0,
            factor: 1.0,
            start: 0,
            left: None,
            interrupt_due: false,
        }
    }
}

/// Lanes of a task unit: as many as it may have grants; where every frame asks for itself, as many as can be inside.
fn lanes_of(scenario: &Scenario, task: &Task) -> usize {
    task.parallel.unwrap_or_else(|| {
        let units: usize = task.needs.iter().map(|need| scenario.model.pools[need.pool].speed.len()).sum();
        (task.queue + units).min(MOST_LANES)
    })
}

/// Most lanes of a task unit. Beyond so many frames of one task unit, the FIFO order among task units is that of their
/// oldest 4,096 frames each.
const MOST_LANES: usize = 4096;

/// A port on its way out is a task unit with a processor of its own.
fn port_as_task(port: &crate::scenario::Port) -> Task {
    Task {
        needs: vec![],
        per_frame_ps: 0.0,
        per_byte_ps: 0.0,
        per_batch_ps: 0.0,
        variation: crate::scenario::Variation::Deterministic,
        queue: port.tx_ring,
        activation: Activation::Dedicated,
        batch: 1,
        parallel: Some(1),
        priority: 0,
        weight: 1.0,
        pin: vec![],
        route: crate::scenario::Route {
            kind: crate::scenario::RouteKind::Single,
            to: Vec::<Target>::new(),
            weights: vec![],
            indirection: vec![],
        },
    }
}
