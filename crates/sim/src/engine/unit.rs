//! An event node: a queue, and lanes that serve it.

use std::collections::VecDeque;

use super::changes::Outages;
use super::frames::Held;
use crate::graph::Next;
use crate::manager::LaneId;
use crate::random::stream;
use crate::random_time::Times;
use crate::scenario::{Activation, Port, Route, RouteKind, Scenario, Task, Variation};
use crate::service::Service;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Requesting,
    Working,
    /// Has its units, which are still waking up.
    Waking,
    /// Has its units, but nothing to do (polling).
    Holding,
    /// Like `Holding`, until its time is up (interrupts that linger).
    Lingering,
    /// Is woken, and does not request its units yet (threads).
    Stirring,
}

#[derive(Debug)]
pub(super) struct Lane {
    /// The task unit that it works for; that of a thread changes with its turns.
    pub(super) task: u32,
    pub(super) thread: Option<u32>,
    pub(super) state: State,
    /// The frame that it serves.
    pub(super) frame: Option<Held>,
    /// Frames of the same batch that come after `frame`.
    pub(super) batch: VecDeque<Held>,
    /// Frames that the present poll took.
    pub(super) polled: usize,
    pub(super) work_from: u64,
    pub(super) work_end: u64,
    pub(super) quantum_end: u64,
    pub(super) slowness: f64,
    pub(super) factor: f64,
    /// First bit out: when service of the present frame began.
    pub(super) start: u64,
    /// Work at speed 1 that is left after a revoke, picoseconds.
    pub(super) left: Option<f64>,
    /// Switching and migration that come after waking up.
    pub(super) overhead_ps: u64,
    pub(super) interrupt_due: bool,
}

#[derive(Debug)]
pub(super) struct Unit {
    pub(super) queue: VecDeque<Held>,
    /// 0 while the task unit is down.
    pub(super) capacity: usize,
    /// Frames that may wait; 0: one that is not served at once is lost (Erlang's loss system).
    pub(super) places: usize,
    pub(super) service: Service,
    pub(super) claim: usize,
    pub(super) activation: Activation,
    pub(super) wakeup: Option<Times>,
    pub(super) batch: usize,
    pub(super) idle: Vec<LaneId>,
    pub(super) requesting: usize,
    pub(super) lanes: std::ops::Range<u32>,
    pub(super) timer: Option<u32>,
    pub(super) interrupts_on: bool,
    pub(super) last_interrupt: Option<u64>,
    pub(super) priority: u8,
    pub(super) quantum: Option<u64>,
    pub(super) thread: Option<u32>,
    /// Whether its frames carry their units on: it has no lanes.
    pub(super) is_door: bool,
    /// The next node of its frames, if it holds them back.
    pub(super) ahead: Option<Next>,
    /// Frames on their way to this queue that room was promised to.
    pub(super) promised: usize,
    /// Task units that were refused room here.
    pub(super) refused: Vec<u32>,
    /// Whether some other node refused it room.
    pub(super) is_refused: bool,
    pub(super) outages: Outages,
}
impl Lane {
    pub(super) fn new(task: u32, thread: Option<u32>) -> Self {
        Self {
            task,
            thread,
            state: State::Idle,
            frame: None,
            batch: VecDeque::new(),
            polled: 0,
            work_from: 0,
            work_end: 0,
            quantum_end: u64::MAX,
            slowness: 1.0,
            factor: 1.0,
            start: 0,
            left: None,
            overhead_ps: 0,
            interrupt_due: false,
        }
    }
}

/// Wake-up time of a task unit, drawn from its own stream; none if it does not sleep or wakes at once.
pub(super) fn wakeup_of(scenario: &Scenario, node: usize, task: &Task) -> Option<Times> {
    let (Activation::Interrupt { wakeup: Some(wakeup), .. } | Activation::Thread { wakeup: Some(wakeup), .. }) =
        &task.activation
    else {
        return None;
    };
    Some(Times::new(wakeup, stream(scenario.run.seed, scenario.run.replication, "wake-up", node as u64)))
}

/// An outgoing port as a task unit with its own processor.
pub(super) fn port_as_task(port: &Port) -> Task {
    Task {
        needs: vec![],
        per_frame_ps: 0.0,
        per_byte_ps: 0.0,
        per_batch_ps: 0.0,
        variation: Variation::Deterministic,
        queue: port.tx_ring,
        activation: Activation::Dedicated,
        batch: 1,
        parallel: Some(1),
        priority: 0,
        weight: 1.0,
        pin: vec![],
        thread: None,
        holds_back: false,
        copies: vec![],
        route: Route { kind: RouteKind::Single, to: vec![], weights: vec![], indirection: vec![] },
    }
}
