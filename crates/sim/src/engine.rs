//! The event part of a model: task units that share, batch, get revoked or wake by interrupt.
//!
//! A *lane* is one thread of a task unit (`parallel` of them); it owns one slot of the calendar. An interrupt timer
//! owns one more. At one instant, ends of service come first (further down the graph first), then arrivals in order of
//! their frame number, so a frame that leaves makes room for one that comes.

mod activation;
mod changes;
mod copies;
mod frames;
mod lanes;
mod room;
mod setup;
mod stations;
mod threads;
mod unit;
mod windows;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use changes::Changes;
use frames::{Frames, Held};
use setup::Staff;
use stations::{Group, Way, ways};
use threads::Thread;
use unit::{Lane, State, Unit, port_as_task};
use windows::Windows;

use crate::calendar::Calendar;
use crate::frame::Frame;
use crate::graph::{EXIT, Graph};
use crate::ledger::Ledger;
use crate::manager::{Claim, Managers};
use crate::planes::Plane;
use crate::scenario::{Activation, Event, Scenario, Task};
use crate::station::{Servers, Station};
use crate::windows::ends;

const EVENTS_PER_REPORT: u32 = 1 << 20;

/// A delivery of a frame to a node, at an instant.
pub type Delivery = (Frame, u32);

/// Marks the node of a delivery for which room was promised there.
const PROMISED: u32 = 1 << 30;

/// Marks the node of a delivery that finds no room there.
const REFUSED: u32 = 1 << 29;

/// Runs the event nodes of a graph.
#[derive(Debug)]
pub struct Engine {
    now: u64,
    frames: Frames,
    calendar: Calendar,
    lanes: Vec<Lane>,
    /// Lanes that hold their units and poll until their time is up.
    lingering: Vec<u32>,
    threads: Vec<Thread>,
    /// Nodes whose queue shrank during the present event, and that had refused frames.
    roomier: Vec<u32>,
    units: Vec<Option<Unit>>,
    claims: Vec<Claim>,
    task_of: Vec<u32>,
    timer_task: Vec<u32>,
    changes: Changes,
    change_slot: u32,
    /// Whether there are copies of frames, which end where they are served and need no room ahead.
    makes_copies: bool,
    stations: Vec<Option<(u32, Station)>>,
    groups: Vec<Group>,
    windows: Windows,
    ways: Vec<Way>,
    end: u64,
    first_group_slot: u32,
    priority: Vec<u8>,
    is_port: Vec<bool>,
    inside: Vec<bool>,
    /// Resource managers.
    pub managers: Managers,
    /// Arrivals at the present instant that wait for ends of service at the same instant, in order of their numbers.
    instant: Vec<(Held, u32)>,
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
        let claim =
            |task: usize| if graph.doors[task].is_some() { Claim::nothing(task) } else { Claim::new(model, task) };
        let mut claims: Vec<Claim> = (0..model.tasks.len()).map(claim).collect();
        let ports: Vec<Task> = model.ports.iter().map(port_as_task).collect();
        claims.extend((0..ports.len()).map(|port| Claim::nothing(model.tasks.len() + port)));
        let with_lanes: Vec<usize> = nodes.iter().copied().filter(|&n| graph.grouped[n].is_none()).collect();
        let Staff { lanes, task_of, threads, mut units } = Staff::new(scenario, graph, &ports, &with_lanes);
        let managers = Managers::new(&model.pools, &claims, &task_of, scenario.run.message_limit)
            .with_messages_from(scenario.run.record_from_ps.unwrap_or(0));
        let mut timer_task = Vec::new();
        for unit in units.iter_mut().flatten() {
            unit.quantum = managers.quantum_ps(&claims[unit.claim]);
            if matches!(unit.activation, Activation::Interrupt { .. }) {
                unit.timer = Some((lanes.len() + timer_task.len()) as u32);
                timer_task.push(unit.claim as u32);
            }
        }
        let change_slot = (lanes.len() + timer_task.len()) as u32;
        let first_group_slot = change_slot + 1;
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
            frames: Frames::default(),
            calendar,
            lanes,
            lingering: Vec::new(),
            threads,
            roomier: Vec::new(),
            units,
            claims,
            task_of,
            timer_task,
            changes: Changes::new(scenario),
            change_slot,
            makes_copies: graph.makes_copies,
            stations,
            groups,
            windows: Windows::new(scenario, &graph.doors),
            ways: ways(graph, &ends(model), scenario.run.events.iter().any(Event::is_reroute)),
            end: scenario.run.duration_ps,
            first_group_slot,
            priority: graph.depth.iter().map(|depth| 255 - depth).collect(),
            inside: graph.planes.iter().map(|&plane| plane == Plane::Events).collect(),
            is_port: (0..graph.planes.len()).map(|n| n >= graph.tasks).collect(),
            managers,
            instant: Vec::new(),
            outbox: Vec::new(),
        };
        for n in with_lanes {
            let unit = engine.unit(n as u32);
            let leads = unit.thread.is_none_or(|thread| engine.threads[thread as usize].members[0] == n as u32);
            let unit = engine.unit(n as u32);
            if unit.activation == Activation::Polling && leads {
                for lane in unit.lanes.clone() {
                    engine.unit(n as u32).idle.clear();
                    engine.request(lane, ledger);
                }
            }
        }
        engine.expect_change();
        Some(engine)
    }

    /// Processes all events before `bound`, fed by `inbox` (in order of time, then number).
    ///
    /// `report` receives the finished share of the trial from time to time, and may stop the run.
    pub fn run(
        &mut self,
        inbox: &[Delivery],
        bound: u64,
        graph: &mut Graph,
        ledger: &mut Ledger,
        report: &dyn Fn(f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut inbox = inbox.iter();
        let mut events = 0_u32;
        loop {
            // Threads with tiny slices can have millions of events between two arrivals.
            events += 1;
            if events == EVENTS_PER_REPORT {
                events = 0;
                report(self.now as f64 / self.end as f64)?;
            }
            if !self.roomier.is_empty() {
                self.tell_of_room(ledger);
            }
            let next_end = self.calendar.next_at();
            let next_in = inbox.as_slice().first().map_or(u64::MAX, |(frame, _)| frame.at);
            if next_end <= next_in {
                // Arrivals of this instant come after all ends of service of this instant.
                if !self.instant.is_empty() && next_end > self.now {
                    let (held, node) = self.instant.remove(0);
                    self.arrive(node, held, graph, ledger);
                    continue;
                }
                if next_end >= bound {
                    return ControlFlow::Continue(());
                }
                self.now = next_end;
                let slot = self.calendar.next_slot();
                if let Some((held, node)) = self.fire(slot, graph, ledger) {
                    self.deliver(held, node, next_in, graph, ledger);
                }
            } else {
                let key = |held: Held| (self.frames[held].at, self.frames[held].seq);
                let first = self.instant.first().map_or((u64::MAX, 0), |&(held, _)| key(held));
                let (frame, node) = &inbox.as_slice()[0];
                if first < (frame.at, frame.seq) {
                    // Arrivals of one instant are in order of number, from inside and from the prefix alike.
                    let (held, node) = self.instant.remove(0);
                    self.arrive(node, held, graph, ledger);
                    continue;
                }
                if next_in >= bound {
                    return ControlFlow::Continue(());
                }
                self.now = next_in;
                self.come_in(*node, frame, graph, ledger);
                inbox.next();
            }
        }
    }

    /// Frames inside: waiting, in service, or at an instant that was not reached.
    pub fn in_flight(&self) -> impl Iterator<Item = &Frame> {
        let waiting = self.units.iter().flatten().flat_map(|unit| &unit.queue);
        let serving = self.lanes.iter().flat_map(|lane| lane.frame.iter().chain(&lane.batch));
        let leaving = self.groups.iter().flat_map(|group| &group.leaving).map(|leaving| &leaving.held);
        let due = self.instant.iter().map(|(held, _)| held);
        let inside = waiting.chain(serving).chain(leaving).chain(due).map(|&held| &self.frames[held]);
        inside.chain(self.outbox.iter().map(|(frame, _)| frame)).filter(|frame| !frame.is_copy())
    }

    /// Stations inside the events, by node.
    pub fn stations(&mut self) -> impl Iterator<Item = (usize, &mut Station)> {
        self.stations.iter_mut().enumerate().filter_map(|(n, station)| Some((n, &mut station.as_mut()?.1)))
    }

    /// Books the work and the waits that are under way when the trial ends.
    pub fn close(&mut self, end: u64, ledger: &mut Ledger) {
        for (node, unit) in self.units.iter().enumerate() {
            for &held in unit.iter().flat_map(|unit| &unit.queue) {
                ledger.wait(node, self.frames[held].at, end);
            }
        }
        for lane in 0..self.lanes.len() as u32 {
            let (state, from, until) = {
                let lane = &self.lanes[lane as usize];
                (lane.state, lane.work_from, lane.work_end.min(end))
            };
            match state {
                State::Working if from < end => ledger.work(self.lanes[lane as usize].task as usize, from, until),
                State::Waking => self.book_waking(lane, until, ledger),
                State::Holding | State::Lingering => self.book_spinning(lane, end, ledger),
                State::Working | State::Idle | State::Requesting | State::Stirring => {}
            }
        }
        self.close_windows(end, ledger);
        self.managers.close(end, ledger);
    }

    fn unit(&mut self, task: u32) -> &mut Unit {
        self.units[task as usize].as_mut().expect("event nodes have a unit")
    }

    /// Delivers a frame to its next node: at once if it is the only event of this instant, else in order.
    #[inline]
    fn deliver(&mut self, held: Held, node: u32, next_in: u64, graph: &mut Graph, ledger: &mut Ledger) {
        if node == EXIT || !self.inside[(node & !(PROMISED | REFUSED)) as usize] {
            let frame = self.frames.take(held);
            self.outbox.push((frame, node));
        } else if self.instant.is_empty() && self.calendar.next_at() > self.now && next_in > self.now {
            self.arrive(node, held, graph, ledger);
        } else {
            let seq = self.frames[held].seq;
            let position = self.instant.partition_point(|&(other, _)| self.frames[other].seq < seq);
            self.instant.insert(position, (held, node));
        }
    }

    /// Receives a frame from inside the events.
    #[inline]
    fn arrive(&mut self, node: u32, held: Held, graph: &mut Graph, ledger: &mut Ledger) {
        if node & (PROMISED | REFUSED) != 0 {
            if node & REFUSED != 0 {
                self.turn_away(node & !REFUSED, held, ledger);
            } else {
                self.hand_over(node, held, ledger);
            }
        } else if self.stations[node as usize].is_some() {
            let frame = self.frames[held];
            self.pass(node, &frame, Some(held), graph, ledger);
        } else {
            self.queue_up(node, held, ledger);
        }
    }

    /// Receives a frame from the prefix.
    #[inline]
    fn come_in(&mut self, node: u32, frame: &Frame, graph: &mut Graph, ledger: &mut Ledger) {
        if self.stations[node as usize].is_some() {
            self.pass(node, frame, None, graph, ledger);
        } else {
            let held = self.frames.put(frame);
            self.queue_up(node, held, ledger);
        }
    }

    /// Handles the event of a slot; returns the frame that moved on.
    #[inline]
    fn fire(&mut self, slot: u32, graph: &mut Graph, ledger: &mut Ledger) -> Option<(Held, u32)> {
        if slot >= self.first_group_slot {
            return Some(self.depart(slot, graph, ledger));
        }
        if slot as usize >= self.lanes.len() {
            if slot == self.change_slot {
                self.change(graph, ledger);
            } else {
                self.interrupt(slot, ledger);
            }
            return None;
        }
        let lane = &self.lanes[slot as usize];
        if matches!(lane.state, State::Waking | State::Lingering | State::Stirring) {
            self.end_rest(slot, ledger);
            return None;
        }
        if lane.work_end > self.now {
            self.expire(slot, ledger);
            return None;
        }
        self.finish(slot, graph, ledger)
    }
}
