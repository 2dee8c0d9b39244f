//! Workloads of network processors: the kernels of `CommBench` and of `NpBench`'s groups, and what a packet takes in them.
//!
//! ```text
//!   packets   generated, or of a capture ─┐
//!   kernel    one small program a time    ├─► run     as fast as it goes, or so many packets for a counting tool
//!                                         └─► trace   instruction by instruction: mix, accesses, reuse distances
//! ```
//!
//! Sources: Wolf & Franklin, "`CommBench`: a telecommunications benchmark for network processors", ISPASS 2000; Lee &
//! John, "`NpBench`: a benchmark suite for control plane and data plane applications for network processors", ICCD
//! 2003; Ramaswamy & Wolf, "`PacketBench`: a tool for workload characterization of network processing", WWC-6, 2003.

pub mod capture;
pub mod kernel;
pub mod packets;
mod request;
mod run;
pub mod trace;

pub use kernel::{KERNELS, Kernel, KernelInfo, Packet};
pub use request::{Content, PacketSource, WorkloadRequest};
pub use run::{WorkloadOutcome, run};
pub use trace::{TraceOutcome, TraceRequest, trace};
