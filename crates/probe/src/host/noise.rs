//! The disturbance of a measurement by others.
#![allow(unsafe_code, reason = "getrusage(2)")]

/// Time that the hypervisor gave to others, and involuntary context switches, since a start.
#[derive(Debug)]
pub struct Noise {
    cpu: usize,
    times: Option<Times>,
    preemptions: u64,
}

/// Ticks of a processor since the system's start, as `/proc/stat` counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    all: u64,
    steal: u64,
}

impl Noise {
    /// Starts to count on the processor that the calling thread is pinned to.
    #[must_use]
    pub fn start(cpu: usize) -> Self {
        Self { cpu, times: times(cpu), preemptions: preemptions() }
    }

    /// Share of the processor's time that the hypervisor took, 0 to 1; 0 where the system has no count.
    #[must_use]
    pub fn steal_ratio(&self) -> f64 {
        let Some((before, after)) = self.times.zip(times(self.cpu)) else { return 0.0 };
        let all = after.all.saturating_sub(before.all);
        if all == 0 { 0.0 } else { after.steal.saturating_sub(before.steal) as f64 / all as f64 }
    }

    /// Involuntary context switches of the calling thread.
    #[must_use]
    pub fn interruptions(&self) -> u64 {
        preemptions().saturating_sub(self.preemptions)
    }
}

fn times(cpu: usize) -> Option<Times> {
    read_times(&std::fs::read_to_string("/proc/stat").ok()?, cpu)
}

fn read_times(stat: &str, cpu: usize) -> Option<Times> {
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    // user nice system idle iowait irq softirq steal; guest times, which follow, are part of user and nice (proc(5)).
    let fields: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    Some(Times { all: fields.iter().sum(), steal: *fields.get(7)? })
}

fn preemptions() -> u64 {
    // SAFETY: plain memory, written by the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_figure_of_the_processors_line() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 90 100\ncpu11 0 0 0 0 0 0 0 1 0 0\n";
        assert_eq!(read_times(stat, 1), Some(Times { all: 36, steal: 8 }));
        assert_eq!(read_times(stat, 11), Some(Times { all: 1, steal: 1 }));
        assert_eq!(read_times(stat, 2), None);
        // Linux before 2.6.11 counts no steal time.
        assert_eq!(read_times("cpu0 1 2 3 4\n", 0), None);
    }

    #[test]
    fn a_share_of_time_lies_between_0_and_1() {
        let noise = Noise::start(super::super::cpu::allowed().unwrap()[0]);
        assert!((0.0..=1.0).contains(&noise.steal_ratio()));
    }
}
