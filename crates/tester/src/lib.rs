//! Frame generator, receiver and exact counters on Linux network interfaces: the trials of RFC 2544 on a wire.
//!
//! ```text
//!   Request ─► Plan, Templates ─► Sender ═► interface ═► device under test ═► interface ═► Receiver ─► Outcome
//!               when, what        live frames, AF_XDP, AF_PACKET             XDP, AF_PACKET
//! ```
//!
//! Every frame carries a sequence number, its flow, its trial and the time at which it left, so that lost, duplicated,
//! reordered and corrupted frames are counted exactly and each delay is known.

mod config;
mod device;
mod error;
mod frame;
mod histogram;
mod live;
mod outcome;
pub mod parts;
mod plan;
mod port;
mod ports;
pub mod programs;
mod request;
mod ring;
mod sending;
mod sink;
mod summary;
pub mod sys;
mod tester;
mod watch;

pub use config::Config;
pub use device::Device;
pub use error::{Result, TesterError};
pub use outcome::Outcome;
pub use ports::{BackEnd, back_ends};
pub use request::Request;
pub use tester::Tester;
pub use watch::{Counts, Polls, Watch};
