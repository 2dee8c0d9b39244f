//! Which kernels there are.

use serde::Serialize;

use super::Kernel;
use super::{drr, frag, rtr, tcp};
use crate::error::{ProbeError, Result};

/// Most entries of a kernel's table.
const MOST_ENTRIES: u64 = 1 << 22;

/// What a kernel is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct KernelInfo {
    /// Its name: `rtr`.
    pub name: &'static str,
    /// What it does, in a line.
    pub title: &'static str,
    /// The suite and the group that it stands for.
    pub group: &'static str,
    /// What it works on: `header` or `payload`.
    pub works_on: &'static str,
    /// Where the algorithm is from.
    pub source: &'static str,
    /// What its table holds; empty if it has none.
    pub table: &'static str,
    /// Entries of its table unless asked for otherwise; 0 if it has none.
    pub entries: u64,
    #[serde(skip)]
    make: fn(entries: u64, seed: u64) -> Box<dyn Kernel>,
}

const HEADER: &str = "CommBench, header processing";

/// All kernels, in the order of their groups.
pub const KERNELS: [KernelInfo; 4] = [
    KernelInfo {
        name: "rtr",
        title: "Route lookup: longest matching prefix in a radix tree",
        group: HEADER,
        works_on: "header",
        source: "Sklower 1991, A tree-based packet routing table for Berkeley Unix",
        table: "routes",
        entries: 16_384,
        make: |entries, seed| Box::new(rtr::Rtr::new(entries, seed)),
    },
    KernelInfo {
        name: "frag",
        title: "IP fragmentation for an MTU of 576 B, with header checksums",
        group: "CommBench, header processing; NpBench, packet processing",
        works_on: "header",
        source: "RFC 791, sec. 3.2; RFC 1071",
        table: "",
        entries: 0,
        make: |_, _| Box::new(frag::Frag),
    },
    KernelInfo {
        name: "drr",
        title: "Fair queueing by deficit round robin, 4 packets waiting in a queue",
        group: HEADER,
        works_on: "header",
        source: "Shreedhar & Varghese 1995",
        table: "queues",
        entries: 64,
        make: |entries, _| Box::new(drr::Drr::new(entries)),
    },
    KernelInfo {
        name: "tcp",
        title: "Monitoring: a packet filter for TCP port 80, counters by flow",
        group: HEADER,
        works_on: "header",
        source: "McCanne & Jacobson 1993, The BSD packet filter",
        table: "counters",
        entries: 1024,
        make: |entries, _| Box::new(tcp::Tcp::new(entries)),
    },
];

/// Finds a kernel by its name.
///
/// # Errors
///
/// [`ProbeError::Request`] if there is none of that name.
pub fn kernel(name: &str) -> Result<&'static KernelInfo> {
    KERNELS.iter().find(|kernel| kernel.name == name).ok_or_else(|| {
        let names: Vec<_> = KERNELS.iter().map(|kernel| kernel.name).collect();
        ProbeError::request("kernel", format!("there is no kernel `{name}`; there are {}", names.join(", ")))
    })
}

impl KernelInfo {
    /// Makes the kernel with a table of so many entries, its own number if None.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for a number out of range, or for a table that the kernel has not.
    pub fn make(&self, entries: Option<u64>, seed: u64) -> Result<Box<dyn Kernel>> {
        Ok((self.make)(self.entries_of(entries)?, seed))
    }

    /// How many entries its table has if so many are asked for.
    ///
    /// # Errors
    ///
    /// As [`Self::make`].
    pub fn entries_of(&self, asked: Option<u64>) -> Result<u64> {
        match asked {
            None => Ok(self.entries),
            Some(_) if self.entries == 0 => {
                Err(ProbeError::request("entries", format!("{} has no table; leave it out", self.name)))
            }
            Some(entries) if (1..=MOST_ENTRIES).contains(&entries) => Ok(entries),
            Some(entries) => Err(ProbeError::request(
                "entries",
                format!("got {entries}; {} takes 1 to {MOST_ENTRIES} {}", self.name, self.table),
            )),
        }
    }
}
