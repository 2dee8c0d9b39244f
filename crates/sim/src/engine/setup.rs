//! The lanes, threads and queues of the event nodes, before anything happens.

use std::collections::VecDeque;
use std::ops::Range;

use super::changes::Outages;
use super::threads::Thread;
use super::unit::{Lane, Unit, wakeup_of};
use crate::activities::lanes_of;
use crate::graph::Graph;
use crate::random::stream;
use crate::scenario::{Activation, Scenario, Task};
use crate::service::Service;

/// The lanes of the events, and the queues that they serve.
pub(super) struct Staff {
    pub(super) lanes: Vec<Lane>,
    /// The task unit, or the first one of the thread, of each lane.
    pub(super) task_of: Vec<u32>,
    pub(super) threads: Vec<Thread>,
    /// By node; none where a node has no lanes.
    pub(super) units: Vec<Option<Unit>>,
}

impl Staff {
    /// The lanes of some nodes; `ports` are the outgoing ports as task units.
    pub(super) fn new(scenario: &Scenario, graph: &Graph, ports: &[Task], nodes: &[usize]) -> Self {
        let tasks = &scenario.model.tasks;
        let units = (0..graph.planes.len()).map(|_| None).collect();
        let mut staff = Self { lanes: Vec::new(), task_of: Vec::new(), threads: Vec::new(), units };
        let mut thread_of: Vec<Option<u32>> = vec![None; graph.planes.len()];
        for &n in nodes {
            let task = tasks.get(n).unwrap_or_else(|| &ports[n - tasks.len()]);
            let mate = (0..n.min(tasks.len())).find(|&other| n < tasks.len() && are_mates(task, &tasks[other]));
            let first = staff.lanes.len() as u32;
            let lanes = if let Some(thread) = mate.and_then(|mate| thread_of[mate]) {
                let shared = &mut staff.threads[thread as usize];
                shared.members.push(n as u32);
                thread_of[n] = Some(thread);
                shared.lane..shared.lane + 1
            } else {
                if works_in_turn(task) {
                    thread_of[n] = Some(staff.threads.len() as u32);
                    let mut thread = Thread::new(first);
                    thread.members.push(n as u32);
                    staff.threads.push(thread);
                }
                let lanes = match tasks.get(n) {
                    Some(_) if graph.doors[n].is_some() => 0,
                    Some(_) => lanes_of(scenario, n, graph.most_frames[n]),
                    None => 1,
                };
                for _ in 0..lanes {
                    staff.lanes.push(Lane::new(n as u32, thread_of[n]));
                    staff.task_of.push(n as u32);
                }
                first..staff.lanes.len() as u32
            };
            staff.units[n] = Some(unit(scenario, graph, n, task, thread_of[n], lanes));
        }
        staff
    }
}

fn unit(scenario: &Scenario, graph: &Graph, n: usize, task: &Task, thread: Option<u32>, lanes: Range<u32>) -> Unit {
    let rng = stream(scenario.run.seed, scenario.run.replication, "service", n as u64);
    Unit {
        queue: VecDeque::with_capacity(task.queue.min(1 << 12)),
        capacity: task.queue.max(1),
        places: task.queue,
        service: if n >= graph.tasks {
            Service::link(scenario.model.ports[n - graph.tasks].link_bps, rng)
        } else {
            Service::new(task, rng).interrupted(scenario, n)
        },
        claim: n,
        activation: task.activation.clone(),
        wakeup: wakeup_of(scenario, n, task),
        batch: match task.activation {
            Activation::Interrupt { budget, .. } | Activation::Thread { budget, .. } => budget,
            _ => task.batch,
        },
        idle: if thread.is_some() { vec![] } else { lanes.clone().rev().collect() },
        requesting: 0,
        lanes,
        timer: None,
        interrupts_on: true,
        last_interrupt: None,
        priority: 255 - graph.depth[n],
        quantum: None,
        thread,
        is_door: graph.doors[n].is_some(),
        ahead: task.holds_back.then(|| graph.next_of(n).clone()),
        promised: 0,
        refused: Vec::new(),
        is_refused: false,
        outages: Outages::default(),
    }
}

/// Whether task units share a thread.
fn are_mates(task: &Task, other: &Task) -> bool {
    task.thread.is_some() && other.thread == task.thread
}

/// Whether a task unit checks before each poll which members of its thread can run.
fn works_in_turn(task: &Task) -> bool {
    matches!(task.activation, Activation::Thread { .. }) || task.thread.is_some() || task.holds_back
}
