//! Properties of this host: its clock, its caches and memory, the disturbance by others.
//!
//! ```text
//!   clock ──► latency, bandwidth, operations ──► outcome       ticks of the TSC, as cycles of the core
//!   noise ── steal time and preemptions around all of it
//! ```
//!
//! Every figure is taken several times (repeats), and each repeat is a low quantile of many short slices: on a shared
//! machine a slice is either undisturbed or much too long, so the lower quartile is close to what the host can do,
//! and the spread of the repeats says how far to trust it.
//!
//! The core's clock is no constant either: with the load of its neighbours it moves between steps of 100 MHz many times
//! a second. Work of the core alone is therefore given in cycles of the clock at that moment.

pub mod bandwidth;
pub mod caches;
pub mod call;
pub mod clock;
pub mod counters;
pub mod cpu;
pub mod latency;
pub mod noise;
pub mod probe;
pub mod progress;
pub mod quantile;
pub mod slices;

pub use clock::{Clock, ticks};
pub use probe::{ProbeOutcome, ProbeRequest, probe};
