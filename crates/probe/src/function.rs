//! Network functions made of elementary operations.
//!
//! ```text
//!   descriptors ─► io_mem ─► parse ─► lookup ─► … ─► deparse ─► mem_io ─► descriptors
//!                    each a loop over the batch; drops are marked, kept in place and counted at the end
//! ```
//!
//! A function executes the operations of its file in `data/functions`, in the same order. The checks that it needs
//! besides (is this IPv4, was every key found) are a loop without branches over values in registers or L1.

mod acl_firewall;
mod bng;
mod checks;
mod ipv4_router;
mod l2_switch;
mod l4_balancer;
mod learning_switch;
mod mpls_switch;
mod nat44;
mod routes;
mod sizes;

pub use routes::{next_hop_of, route, route_address};
pub use sizes::{Build, FUNCTIONS, Twin, build, twin};

use std::collections::BTreeMap;

use crate::batch::{BATCH_FRAMES, Batch, Buffer, FAULT_KINDS};
use crate::memory::HugeMemory;
use crate::operation::Descriptor;

/// Port number that means all ports except the one that the frame came from.
pub const FLOOD: u16 = u16::MAX;

/// The input and output of a batch.
#[derive(Debug)]
pub struct Ports<'a> {
    /// Received frames, one descriptor per frame of the batch.
    pub incoming: &'a [Descriptor],
    /// Number of the batch's first buffer.
    pub first: u16,
    /// Sent frames: as many at the front as [`NetworkFunction::process`] returns.
    pub outgoing: &'a mut [Descriptor; BATCH_FRAMES],
    /// Frames dropped so far, by [`Fault`](crate::batch::Fault).
    pub drops: &'a mut [u64; FAULT_KINDS],
}

/// The size and layout of a function's table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFacts {
    /// Its name in a request.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Share of its bytes on huge pages.
    pub huge_ratio: f64,
    /// Share of the entries of a hash table that are not in their own line.
    pub collision_ratio: Option<f64>,
}

impl TableFacts {
    pub(crate) fn new(name: &'static str, memory: &HugeMemory, collision_ratio: Option<f64>) -> Self {
        Self { name, bytes: memory.bytes() as u64, huge_ratio: memory.huge_ratio(), collision_ratio }
    }
}

/// A function that works on batches of frames.
pub trait NetworkFunction: Send {
    /// Processes a batch whose frames [`Ports::incoming`] describes; returns how many leave.
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize;

    /// Writes the headers of a flow into a frame of zeros without its FCS; returns the port.
    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16;

    /// Sets the number of flows, for functions that depend on it.
    fn expect_flows(&mut self, _flows: u64) {}

    /// The tables.
    fn tables(&self) -> Vec<TableFacts>;

    /// The hand-optimised loop for the same lookup, if there is one.
    fn by_hand(&mut self) -> Option<&mut dyn ByHand> {
        None
    }
}

/// One fused loop over a ring that does the same as the function, for a reference.
pub trait ByHand {
    /// Processes a ring once, writes the descriptors of the sent frames to `outgoing` and returns their number.
    fn pass(&mut self, buffers: &mut [Buffer], incoming: &[Descriptor], outgoing: &mut [Descriptor]) -> usize;

    /// Looks up the keys of prepared flows as fast as the table allows; returns the number of hits.
    fn lookups(&mut self, keys: &[[u64; 2]]) -> usize;

    /// The key under which the lookup finds a flow.
    fn key(&self, flow: u64) -> [u64; 2];
}

/// Drops by the name of their reason.
#[must_use]
pub fn drops_by_name(drops: &[u64; FAULT_KINDS]) -> BTreeMap<String, u64> {
    crate::batch::Fault::ALL
        .iter()
        .filter(|&&fault| drops[fault as usize] > 0)
        .map(|&fault| (fault.name().to_owned(), drops[fault as usize]))
        .collect()
}

/// An Ethernet address as the first six bytes of a word.
pub(crate) fn mac_word(address: [u8; 6]) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&address);
    u64::from_le_bytes(word)
}
