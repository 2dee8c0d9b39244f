//! Packet-level simulator of software routers: frames, task units, pools of resources and their managers.
//!
//! A router is a graph of *task units* (processing plane) over *pools* of like units (resource plane) under *resource
//! managers* (management plane), after Meyer et al., "Validated Model-Based Performance Prediction of Multi-Core
//! Software Routers", PIK 37(1), 2014. Frames come in at ports, wait in finite queues, are served and leave.
//!
//! ```text
//!   Scenario ──check──► Graph ──┬─► Source ─► prefix: Station (Lindley's recursion)
//!   (data)              (planes)├─► Engine   events: Calendar, Managers
//!                               └─► suffix: Station ──► Ledger ──► Outcome
//! ```
//!
//! What the events hold, each in a part of its own below `engine` and `manager`:
//!
//! - *lanes* ask for units, poll a queue batch by batch and are revoked; they wake by interrupt, linger or poll for good;
//! - *threads* are lanes that several task units have between them: they serve their queues in turn, block when none can
//!   go on, and are woken at a cost and after a delay;
//! - *room ahead*: a task unit that holds back takes a frame only where the next queue has a place for it, which is
//!   promised to it until the frame arrives;
//! - the *managers* grant by six policies, [`Linux`](scenario::Policy::Linux) among them: real-time priorities, a fair
//!   share of what they leave, softirqs that borrow a thread's unit, migration;
//! - *changes*: task units go down and come up, routes change, at given instants ([`scenario::Event`]);
//! - *windows*: frames take units along at a door and give them back further on ([`scenario::Need::until`]);
//! - *copies* of frames, which a hub floods with: they load task units and count as no frames.
//!
//! ```
//! use routecast_sim::{Scenario, simulate};
//!
//! // M/D/1: one core, 1 us per frame, 0.5 million frames per second.
//! let scenario: Scenario = serde_json::from_str(r#"{
//!   "model": {
//!     "ports": [{"link_bps": 1e12, "tx_ring": 512, "entry": 0}],
//!     "tasks": [{"needs": [], "per_frame_ps": 1e6, "per_byte_ps": 0, "per_batch_ps": 0,
//!                "variation": {"kind": "deterministic"}, "queue": 100000, "activation": {"kind": "dedicated"},
//!                "batch": 1, "parallel": 1, "priority": 0, "weight": 1, "pin": [],
//!                "route": {"kind": "single", "to": []}}],
//!     "pools": []
//!   },
//!   "load": {
//!     "sources": [{"port": 0, "rate_pps": 5e5, "process": {"kind": "poisson"}, "flows": [0]}],
//!     "flows": [{"hash": 0, "egress": 0, "weight": 1}],
//!     "sizes": [64], "random_sizes": false
//!   },
//!   "run": {"duration_ps": 1000000000000, "seed": 1}
//! }"#).unwrap();
//! let outcome = simulate(&scenario, &|_| std::ops::ControlFlow::Continue(())).unwrap();
//! // Pollaczek and Khinchine: W = rho x / (2 (1 - rho)) = 0.5 us.
//! assert!((outcome.waiting.mean_s / 0.5e-6 - 1.0).abs() < 0.02);
//! ```

mod activities;
mod by_flow;
mod calendar;
mod check;
mod columns;
mod engine;
mod error;
mod frame;
mod graph;
pub mod histogram;
mod interruption;
#[cfg(feature = "lanes")]
mod lanes;
mod ledger;
mod manager;
pub mod outcome;
mod planes;
pub mod random;
mod random_time;
pub mod recorded;
pub mod replicate;
mod run;
pub mod scenario;
mod service;
mod settled;
mod sleep;
mod source;
mod station;
mod steady;
mod time;
mod timeline;
mod windows;

pub use error::SimError;
pub use outcome::{Outcome, simulate};
pub use replicate::replicate;
#[cfg(feature = "lanes")]
pub use replicate::replicate_on;
#[cfg(feature = "lanes")]
pub use routecast_lanes::device;
pub use scenario::Scenario;
