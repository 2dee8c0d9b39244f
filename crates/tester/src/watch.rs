//! What the polls of one interface cost, counted in the kernel by `bpf/watch.bpf.c` while the router serves.

use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};
use serde::Serialize;

use crate::error::{Result, TesterError};
use crate::programs::{self, bpf_error};

/// Packets of a full poll; mirrors `FULL` of `bpf/watch.bpf.c`.
const FULL: usize = 64;

const SIZES: usize = FULL + 1;

/// Each program, and the tracepoint that it is attached to.
const PROGRAMS: [(&str, &str); 4] = [
    ("watch_switch", "sched_switch"),
    ("watch_softirq_entry", "softirq_entry"),
    ("watch_softirq_exit", "softirq_exit"),
    ("watch_poll", "napi_poll"),
];

/// What the kernel counted since the programs were attached; the head of `struct sums` of `bpf/watch.bpf.c`. An episode
/// lasts from waking to sleeping.
#[repr(C)]
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Counts {
    /// Episodes with a poll.
    pub episodes: u64,
    /// Their packets.
    pub episode_packets: u64,
    /// Sum of the squares of the packets of each.
    pub episode_packets_squared: u64,
    /// Most packets of one.
    pub longest_run: u64,
    /// Polls of the interface.
    pub polls: u64,
    /// Packets that they took.
    pub packets: u64,
    /// Polls that took all that they may.
    pub full_polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Polls of other interfaces in between.
    pub other_polls: u64,
    /// Their packets.
    pub other_packets: u64,
    /// Nanoseconds awake, what others took apart.
    pub busy_ns: u64,
    /// Nanoseconds in which others had the processor, while there was work.
    pub paused_ns: u64,
}

/// Who polled what; mirrors `struct part` of `bpf/watch.bpf.c`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Part {
    poller: u64,
    napi_id: u32,
    unused: u32,
}

// SAFETY: it is made of integers alone, and there is no padding.
#[expect(unsafe_code, reason = "aya asks for this of what it copies out of a map")]
unsafe impl aya::Pod for Part {}

/// Mirrors `struct sums` of `bpf/watch.bpf.c`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Sums {
    counts: Counts,
    by_packets: [[u64; SIZES]; 4],
}

// SAFETY: it is made of 64-bit integers alone, so every bit pattern is a value, and there is no padding.
#[expect(unsafe_code, reason = "aya asks for this of what it copies out of a map")]
unsafe impl aya::Pod for Sums {}

/// Time of the programs, and how often they ran; mirrors `struct own` of `bpf/watch.bpf.c`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Own {
    ns: u64,
    runs: u64,
}

// SAFETY: it is made of 64-bit integers alone, and there is no padding.
#[expect(unsafe_code, reason = "aya asks for this of what it copies out of a map")]
unsafe impl aya::Pod for Own {}

/// What the kernel counted, and what the programs took.
#[derive(Debug, Clone, Serialize)]
pub struct Polls {
    /// By poller and NAPI instance, in their order.
    pub parts: Vec<PollsOfPart>,
    /// Nanoseconds that the programs themselves took.
    pub own_ns: u64,
    /// How often they ran.
    pub own_runs: u64,
}

/// What a poller did for one NAPI instance, also by the packets of a poll.
#[derive(Debug, Clone, Serialize)]
pub struct PollsOfPart {
    /// The number of a NAPI thread, or of a processor in its softirq.
    pub poller: u32,
    /// Whether it is a thread.
    pub is_thread: bool,
    /// The NAPI instance.
    pub napi_id: u32,
    /// Sums.
    #[serde(flatten)]
    pub counts: Counts,
    /// First polls of an episode, by their packets: 0 to 64.
    pub first_polls: Vec<u64>,
    /// Nanoseconds of these.
    pub first_ns: Vec<u64>,
    /// Later polls, by their packets.
    pub later_polls: Vec<u64>,
    /// Nanoseconds of these.
    pub later_ns: Vec<u64>,
}

/// What tells a processor from a thread; mirrors `ON_PROCESSOR` of `bpf/watch.bpf.c`.
const ON_PROCESSOR: u64 = 1 << 32;

impl PollsOfPart {
    fn of(part: Part, sums: &Sums) -> Self {
        let [first_polls, first_ns, later_polls, later_ns] = sums.by_packets.map(|row| row.to_vec());
        Self {
            poller: (part.poller & u64::from(u32::MAX)) as u32,
            is_thread: part.poller & ON_PROCESSOR == 0,
            napi_id: part.napi_id,
            counts: sums.counts,
            first_polls,
            first_ns,
            later_polls,
            later_ns,
        }
    }
}

/// The programs, attached until this is dropped.
pub struct Watch {
    /// Holds the programs.
    _ebpf: Ebpf,
    own: PerCpuArray<MapData, Own>,
    totals: HashMap<MapData, Part, Sums>,
    records: RingBuf<MapData>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches an interface of a network namespace, by its number and the namespace's inode; 0 for the backlog.
    ///
    /// Where threads poll all of it (`threads_alone`), what runs at each softirq of the machine is left out.
    ///
    /// # Errors
    ///
    /// A right is missing, the kernel has no type information (BTF), or it refuses.
    pub fn new(interface_index: u32, namespace_inode: u32, threads_alone: bool) -> Result<Self> {
        let failed = |what: &str, error: &(dyn std::error::Error + 'static)| bpf_error(what.to_owned(), error);
        let types = Btf::from_sys_fs().map_err(|error| {
            failed("reading the kernel's types (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)", &error)
        })?;
        let threads_alone_word = u32::from(threads_alone);
        let mut ebpf = programs::load("watch", &[], |loader| {
            loader.override_global("interface_index", &interface_index, true).override_global(
                "namespace_inode",
                &namespace_inode,
                true,
            );
            loader.override_global("threads_alone", &threads_alone_word, true);
        })?;
        for (name, tracepoint) in PROGRAMS {
            if threads_alone && tracepoint.starts_with("softirq") {
                continue;
            }
            let what = format!("attaching the eBPF program `{name}` to `{tracepoint}`");
            let program = ebpf.program_mut(name).ok_or(TesterError::NoPrograms)?;
            let program: &mut BtfTracePoint = program.try_into().map_err(|error| failed(&what, &error))?;
            program.load(tracepoint, &types).map_err(|error| failed(&what, &error))?;
            program.attach().map_err(|error| failed(&what, &error))?;
        }
        let mut map = |name: &str| ebpf.take_map(name).ok_or(TesterError::NoPrograms);
        let own =
            PerCpuArray::try_from(map("own_time")?).map_err(|error| failed("using the map `own_time`", &error))?;
        let totals = HashMap::try_from(map("totals")?).map_err(|error| failed("using the map `totals`", &error))?;
        let records = RingBuf::try_from(map("records")?).map_err(|error| failed("using the map `records`", &error))?;
        Ok(Self { _ebpf: ebpf, own, totals, records })
    }

    /// What was counted so far.
    ///
    /// # Errors
    ///
    /// The kernel does not let the counters be read.
    pub fn polls(&self) -> Result<Polls> {
        let mut parts = Vec::new();
        for entry in &self.totals {
            let (part, sums) = entry.map_err(|error| bpf_error("reading what was counted".to_owned(), &error))?;
            parts.push(PollsOfPart::of(part, &sums));
        }
        parts.sort_by_key(|part| (part.poller, part.napi_id));
        let (mut own_ns, mut own_runs) = (0, 0);
        let spent = self.own.get(&0, 0).map_err(|error| bpf_error("timing the eBPF programs".to_owned(), &error))?;
        for of_processor in spent.iter() {
            own_ns += of_processor.ns;
            own_runs += of_processor.runs;
        }
        Ok(Polls { parts, own_ns, own_runs })
    }

    /// Takes the records of full polls, and of those after a full one, that came since the last call; mirrors of
    /// `struct poll_record`, one behind the other.
    pub fn take_records(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(record) = self.records.next() {
            all.extend_from_slice(&record);
        }
        all
    }
}
