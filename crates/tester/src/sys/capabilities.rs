//! Which rights the process has.

/// Rights that a tester needs, by their numbers in `linux/capability.h`.
const NEEDED: [(&str, u32); 2] = [("CAP_NET_RAW", 13), ("CAP_NET_ADMIN", 12)];
/// Rights that its eBPF programs need too: the verifier lets only those with the second one compare packet pointers as
/// they do.
const FOR_EBPF: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
const ADMIN: u32 = 21;
const NICE: u32 = 23;

fn effective() -> u64 {
    std::fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .unwrap_or(0)
}

/// Names of the rights that the calling thread lacks; joining a namespace needs one more.
#[must_use]
pub fn missing(joins_namespaces: bool) -> Vec<&'static str> {
    let have = effective();
    let mut missing = lacking(have, &NEEDED);
    if joins_namespaces && !has(have, ADMIN) {
        missing.push("CAP_SYS_ADMIN (to join a network namespace)");
    }
    missing
}

/// Names of the rights that the calling thread lacks to load the tester's eBPF programs.
#[must_use]
pub fn missing_for_ebpf() -> Vec<&'static str> {
    let have = effective();
    // CAP_SYS_ADMIN includes what CAP_BPF and CAP_PERFMON were split off from.
    if has(have, ADMIN) { Vec::new() } else { lacking(have, &FOR_EBPF) }
}

fn has(have: u64, number: u32) -> bool {
    have >> number & 1 == 1
}

fn lacking(have: u64, wanted: &[(&'static str, u32)]) -> Vec<&'static str> {
    wanted.iter().filter(|&&(_, number)| !has(have, number)).map(|&(name, _)| name).collect()
}

/// Whether the calling thread may take a real-time priority.
#[must_use]
pub fn may_prioritise() -> bool {
    has(effective(), NICE)
}

/// Gives up every right of the calling thread that sending does not need. Rights are a thread's own, so the process
/// keeps what its other threads have; if the kernel refuses, the thread keeps them too.
pub fn keep_those_of_a_sender() {
    const VERSION_3: u32 = 0x2008_0522;
    let have = effective();
    // A trial whose tables are larger than the loaded program's loads it again: that needs CAP_PERFMON for its
    // verification, and CAP_SYS_ADMIN to join the namespace of a port.
    let keep = NEEDED.iter().chain(&FOR_EBPF).map(|&(_, number)| number).chain([ADMIN]);
    let keep = keep.fold(0_u64, |set, number| set | 1 << number) & have;
    let (low, high) = (keep as u32, (keep >> 32) as u32);
    let header = [VERSION_3, 0];
    let data = [low, low, 0, high, high, 0];
    // SAFETY: both arrays are what version 3 of the call reads: version and thread (0: the calling one), then effective,
    // permitted and inheritable sets, low words before high words.
    unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
}
