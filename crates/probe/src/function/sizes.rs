//! The functions that can run, their tables, and how to build them.

use std::collections::BTreeMap;

use crate::error::{ProbeError, Result};
use crate::memory::{Pages, available_bytes};

use super::NetworkFunction;
use super::acl_firewall::AclFirewall;
use super::bng;
use super::ipv4_router::Ipv4Router;
use super::l2_switch::L2Switch;
use super::l4_balancer::L4Balancer;
use super::learning_switch::LearningSwitch;
use super::mpls_switch::MplsSwitch;
use super::nat44::Nat44;

/// A table of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Its name in a request.
    pub name: &'static str,
    /// Default number of entries.
    pub entries: u64,
    /// Largest number of entries.
    pub most: u64,
    /// Bytes per entry, at least: what one that is half empty needs.
    pub entry_bytes: u64,
    /// Bytes that do not depend on the entries.
    pub fixed_bytes: u64,
}

/// A direction of a function that can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    /// The function.
    pub function: &'static str,
    /// The direction.
    pub direction: &'static str,
    /// Bytes of the smallest frame that holds its headers, FCS included.
    pub smallest_frame_bytes: u16,
    /// Tables that it has.
    pub tables: &'static [Table],
    /// The table whose entries are the flows by default.
    pub flows_of: &'static str,
}

const fn hashed(name: &'static str, entries: u64, most: u64, slot: u64) -> Table {
    Table { name, entries, most, entry_bytes: 2 * slot, fixed_bytes: 0 }
}

const fn array(name: &'static str, entries: u64, most: u64, entry_bytes: u64) -> Table {
    Table { name, entries, most, entry_bytes, fixed_bytes: 0 }
}

const fn prefixes(name: &'static str, entries: u64, most: u64, entry_bytes: u64) -> Table {
    Table { name, entries, most, entry_bytes, fixed_bytes: 32 << 20 }
}

const MACS: &[Table] = &[hashed("mac", 1 << 21, 1 << 31, 16)];
const QINQ: Table = hashed("qinq", 1 << 24, 1 << 24, 16);
const CPE: Table = hashed("cpe", 1 << 16, 1 << 22, 32);

/// All functions that can run; the first entry of a function is its first direction.
pub const FUNCTIONS: &[Twin] = &[
    forward("l2_switch", MACS, "mac"),
    forward("learning_switch", MACS, "mac"),
    forward("mpls_switch", &[hashed("label", 1 << 20, 1 << 20, 32)], "label"),
    Twin {
        function: "bng",
        direction: "access",
        smallest_frame_bytes: 64,
        // Routes need the second level: 512 bytes each at most; 2^15 of them can have one.
        tables: &[QINQ, prefixes("routes", 1 << 13, 1 << 15, 512), CPE],
        flows_of: "cpe",
    },
    Twin {
        function: "bng",
        direction: "core",
        smallest_frame_bytes: 74,
        // The other tables belong to the other direction.
        tables: &[CPE, QINQ, prefixes("routes", 1 << 13, 1 << 15, 512)],
        flows_of: "cpe",
    },
    forward("ipv4_router", &[prefixes("fib", 1 << 20, 1 << 23, 8), array("next_hop", 256, 32_766, 16)], "fib"),
    forward("nat44", &[hashed("sessions", 1 << 20, 1 << 31, 32), array("counters", 1 << 20, 1 << 32, 16)], "sessions"),
    forward("acl_firewall", &[hashed("rules", 1024, 1 << 24, 32)], "rules"),
    forward("l4_balancer", &[array("maglev", 65_537, 1 << 24, 2), array("backends", 256, 1 << 16, 16)], "maglev"),
];

const fn forward(function: &'static str, tables: &'static [Table], flows_of: &'static str) -> Twin {
    Twin { function, direction: "forward", smallest_frame_bytes: 64, tables, flows_of }
}

/// The parts of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Build {
    /// The function and its direction.
    pub twin: Twin,
    /// Entries by table; as [`Twin::tables`] says for those that are not there.
    pub tables: BTreeMap<String, u64>,
    /// Number of flows of the traffic.
    pub flows: u64,
    /// Pages of the tables.
    pub pages: Pages,
    /// Seed of the keys.
    pub seed: u64,
}

impl Build {
    /// The parts of a function with these sizes; by default with as many flows as its main table has entries.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Table`] for a table that it does not have or that has no or too many entries.
    pub fn new(
        twin: Twin,
        tables: &BTreeMap<String, u64>,
        flows: Option<u64>,
        pages: Pages,
        seed: u64,
    ) -> Result<Self> {
        for (name, &entries) in tables {
            let Some(table) = twin.tables.iter().find(|table| table.name == name) else {
                let names: Vec<_> = twin.tables.iter().map(|table| table.name).collect();
                let message = format!("{} has no such table; it has {}", twin.function, names.join(", "));
                return Err(ProbeError::Table { table: name.clone(), message });
            };
            if !(1..=table.most).contains(&entries) {
                let message = format!("got {entries} entries; 1 to {} are allowed", table.most);
                return Err(ProbeError::Table { table: name.clone(), message });
            }
        }
        let mut build = Self { twin, tables: tables.clone(), flows: 0, pages, seed };
        build.flows = flows.unwrap_or_else(|| build.entries(twin.flows_of));
        Ok(build)
    }

    /// Entries of a table.
    #[must_use]
    pub fn entries(&self, table: &str) -> u64 {
        let own = || self.twin.tables.iter().find(|own| own.name == table).map_or(1, |own| own.entries);
        self.tables.get(table).copied().unwrap_or_else(own)
    }

    /// Bytes that the tables need, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tables = self.twin.tables.iter().filter(|table| self.twin.direction != "core" || table.name == "cpe");
        tables.map(|table| self.entries(table.name).saturating_mul(table.entry_bytes) + table.fixed_bytes).sum()
    }
}

/// The twin of a function's direction; its first if none is named.
///
/// # Errors
///
/// [`ProbeError::Function`] if there is none.
pub fn twin(function: &str, direction: Option<&str>) -> Result<Twin> {
    let of_name = || FUNCTIONS.iter().filter(|twin| twin.function == function);
    let twin = of_name().find(|twin| direction.is_none_or(|direction| twin.direction == direction));
    twin.copied().ok_or_else(|| {
        if of_name().next().is_some() {
            let names: Vec<_> = of_name().map(|twin| twin.direction).collect();
            let got = format!("{function} has no direction `{}`; it has {}", direction.unwrap_or(""), names.join(", "));
            return ProbeError::request("direction", got);
        }
        let mut allowed: Vec<String> = FUNCTIONS.iter().map(|twin| twin.function.to_owned()).collect();
        allowed.dedup();
        ProbeError::Function { function: function.to_owned(), allowed }
    })
}

/// Makes a function with its tables.
///
/// # Errors
///
/// Tables that do not fit into memory, and invalid entries of tables.
pub fn build(build: &Build) -> Result<Box<dyn NetworkFunction>> {
    let (needed_bytes, available_bytes) = (build.bytes(), available_bytes());
    if needed_bytes > available_bytes {
        let what = format!("the tables of {}", build.twin.function);
        return Err(ProbeError::Memory { what, needed_bytes, available_bytes });
    }
    Ok(match (build.twin.function, build.twin.direction) {
        ("l2_switch", _) => Box::new(L2Switch::new(build)?),
        ("learning_switch", _) => Box::new(LearningSwitch::new(build)?),
        ("mpls_switch", _) => Box::new(MplsSwitch::new(build)?),
        ("bng", "access") => Box::new(bng::Access::new(build)?),
        ("bng", _) => Box::new(bng::Core::new(build)?),
        ("ipv4_router", _) => Box::new(Ipv4Router::new(build)?),
        ("nat44", _) => Box::new(Nat44::new(build)?),
        ("acl_firewall", _) => Box::new(AclFirewall::new(build)?),
        _ => Box::new(L4Balancer::new(build)?),
    })
}
