//! Which rights the process has.

/// Rights that a tester needs, by their numbers in `linux/capability.h`.
const NEEDED: [(&str, u32); 3] = [("CAP_NET_RAW", 13), ("CAP_NET_ADMIN", 12), ("CAP_BPF", 39)];
const ADMIN: u32 = 21;
const PERFMON: u32 = 38;

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
    let has = |number: u32| have >> number & 1 == 1;
    // CAP_SYS_ADMIN includes what CAP_BPF and CAP_PERFMON were split off from.
    let mut missing: Vec<_> = NEEDED
        .iter()
        .filter(|&&(_, number)| !has(number) && !(number == 39 && has(ADMIN)))
        .map(|&(name, _)| name)
        .collect();
    if !has(PERFMON) && !has(ADMIN) {
        // The verifier lets only those with it compare packet pointers as the programs do.
        missing.push("CAP_PERFMON");
    }
    if joins_namespaces && !has(ADMIN) {
        missing.push("CAP_SYS_ADMIN (to join a network namespace)");
    }
    missing
}
