//! Frame generator, receiver and exact counters on Linux network interfaces: the trials of RFC 2544 on a wire.
//!
//! ```text
//!   Request ─► Plan, Templates ─► Sender ═► interface ═► device under test ═► interface ═► Receiver ─► Outcome
//!               when, what        live frames, AF_XDP, AF_PACKET             XDP, AF_PACKET
//! ```
//!
//! Every frame carries a sequence number, its flow, its trial and the time at which it left, so that lost, duplicated,
//! reordered and corrupted frames are counted exactly and each delay is known.

pub mod config;
pub mod device;
pub mod error;
pub mod frame;
pub mod histogram;
pub mod live;
pub mod outcome;
pub mod parts;
pub mod plan;
pub mod port;
mod ports;
pub mod programs;
pub mod request;
pub mod ring;
mod sending;
pub mod sink;
mod summary;
pub mod sys;
mod tester;

pub use config::Config;
pub use device::Device;
pub use error::{Result, TesterError};
pub use outcome::Outcome;
pub use ports::{BackEnd, back_ends};
pub use request::Request;
pub use tester::Tester;
