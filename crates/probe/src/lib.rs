//! Measures what a host does with packets in memory: its clock and memory, elementary operations, network functions.
//!
//! ```text
//!   host        clock, latency, bandwidth, noise            ─┐
//!   operation   elementary operations over a batch of frames ├─► probe: samples as JSON, fitted in Python
//!   table       hash table, DIR-24-8, classifier, Maglev    ─┘
//!   frame       buffers, traffic            ─┐
//!   function    network functions made of operations ├─► run: frames per second, latency, loss
//! ```
//!
//! Operations are inline functions over a [`batch::Batch`]; the probe times exactly the functions that the network
//! functions call, in the same loops.

pub mod batch;
pub mod error;
pub mod frame;
pub mod function;
pub mod host;
pub mod memory;
pub mod operation;
pub mod run;
pub mod table;
pub mod traffic;
pub mod workload;
