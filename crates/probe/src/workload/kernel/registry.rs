//! The registry of kernels.

use serde::Serialize;

use super::Kernel;
use super::{aes, cast, crc, drr, frag, jpeg, md5, red, reed, rtr, tcp, wfq, zip};
use crate::error::{ProbeError, Result};

/// Most entries of a kernel's table.
const MOST_ENTRIES: u64 = 1 << 22;

/// The description of a kernel.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct KernelInfo {
    /// Its name: `rtr`.
    pub name: &'static str,
    /// Its task, in a line.
    pub title: &'static str,
    /// The suite and the group that it represents.
    pub group: &'static str,
    /// The part of the packet that it processes: `header` or `payload`.
    pub works_on: &'static str,
    /// The source of the algorithm.
    pub source: &'static str,
    /// The content of its table; empty if it has none.
    pub table: &'static str,
    /// Default number of entries of its table; 0 if it has none.
    pub entries: u64,
    #[serde(skip)]
    make: fn(entries: u64, seed: u64) -> Box<dyn Kernel>,
}

const HEADER: &str = "CommBench, header processing";
const PAYLOAD: &str = "CommBench, payload processing";
const TRAFFIC: &str = "NpBench, traffic management and quality of service";
const SECURITY: &str = "NpBench, security and media processing";

/// A key: RFC 2144, appendix B.1; any other would do.
const KEY: [u8; 16] = *b"\x01\x23\x45\x67\x12\x34\x56\x78\x23\x45\x67\x89\x34\x56\x78\x9a";

/// All kernels, in the order of their groups.
pub const KERNELS: [KernelInfo; 13] = [
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
    KernelInfo {
        name: "cast",
        title: "CAST-128 in cipher block chaining",
        group: PAYLOAD,
        works_on: "payload",
        source: "RFC 2144",
        table: "",
        entries: 0,
        make: |_, _| Box::new(cast::Cast::new(KEY)),
    },
    KernelInfo {
        name: "zip",
        title: "DEFLATE of each packet by itself, level 6",
        group: PAYLOAD,
        works_on: "payload",
        source: "RFC 1951; RFC 2394",
        table: "",
        entries: 0,
        make: |_, _| Box::new(zip::Zip::new()),
    },
    KernelInfo {
        name: "reed",
        title: "Reed-Solomon code RS(255, 223)",
        group: PAYLOAD,
        works_on: "payload",
        source: "Reed & Solomon 1960",
        table: "",
        entries: 0,
        make: |_, _| Box::new(reed::Reed::new()),
    },
    KernelInfo {
        name: "jpeg",
        title: "JPEG of grey values, quality 75",
        group: PAYLOAD,
        works_on: "payload",
        source: "ITU-T T.81",
        table: "",
        entries: 0,
        make: |_, _| Box::new(jpeg::Jpeg::new()),
    },
    KernelInfo {
        name: "wfq",
        title: "Weighted fair queueing, self-clocked, 4 packets waiting for a flow",
        group: TRAFFIC,
        works_on: "header",
        source: "Golestani 1994",
        table: "flows",
        entries: 64,
        make: |entries, _| Box::new(wfq::Wfq::new(entries)),
    },
    KernelInfo {
        name: "red",
        title: "Random early detection in an overloaded queue",
        group: TRAFFIC,
        works_on: "header",
        source: "Floyd & Jacobson 1993",
        table: "",
        entries: 0,
        make: |_, seed| Box::new(red::Red::new(seed)),
    },
    KernelInfo {
        name: "aes",
        title: "AES-128 in cipher block chaining, from tables",
        group: SECURITY,
        works_on: "payload",
        source: "FIPS 197",
        table: "",
        entries: 0,
        make: |_, _| Box::new(aes::Aes::new(KEY)),
    },
    KernelInfo {
        name: "md5",
        title: "MD5 digest",
        group: SECURITY,
        works_on: "payload",
        source: "RFC 1321",
        table: "",
        entries: 0,
        make: |_, _| Box::new(md5::Md5::new()),
    },
    KernelInfo {
        name: "crc",
        title: "CRC-32 of the frame, a byte a time from a table",
        group: "NpBench, packet processing",
        works_on: "payload",
        source: "IEEE 802.3, sec. 3.2.9",
        table: "",
        entries: 0,
        make: |_, _| Box::new(crc::Crc::new()),
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
    /// [`ProbeError::Request`] for a number out of range, or for a table that the kernel does not have.
    pub fn make(&self, entries: Option<u64>, seed: u64) -> Result<Box<dyn Kernel>> {
        Ok((self.make)(self.entries_of(entries)?, seed))
    }

    /// Entries of its table for a requested number.
    ///
    /// # Errors
    ///
    /// As [`Self::make`].
    pub fn entries_of(&self, entries: Option<u64>) -> Result<u64> {
        match entries {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    #[test]
    fn every_kernel_leaves_the_packet_alone_and_does_the_same_to_it_each_time_unless_it_has_a_queue() {
        for info in &KERNELS {
            let mut kernel = info.make(None, 1).unwrap();
            for size in [64, 1518] {
                let mut packets = of_size(size, 4, Content::Words);
                let before = packets.packet(1).frame.to_vec();
                let first = kernel.process(&mut packets.packet(1));
                let again = kernel.process(&mut packets.packet(1));
                assert_eq!(packets.packet(1).frame, before, "{}", info.name);
                assert!(first == again || matches!(info.name, "drr" | "wfq" | "red"), "{}", info.name);
            }
        }
    }

    #[test]
    fn kernels_and_tables_that_are_not_there_are_refused() {
        assert!(kernel("rtf").unwrap_err().to_string().contains("rtr"));
        let refused = |name, entries| kernel(name).unwrap().make(Some(entries), 1).err().unwrap().to_string();
        assert!(refused("frag", 5).contains("frag has no table"));
        for entries in [0, MOST_ENTRIES + 1] {
            assert!(refused("rtr", entries).starts_with("entries: got"));
        }
    }
}
