//! Counts over a trace.

use std::collections::HashMap;

use serde::Serialize;

use super::TraceOutcome;
use super::reuse::Reuse;
use crate::memory::LINE_BYTES;

/// The class of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Jumps if a condition holds.
    Branch,
    /// Unconditional jumps, calls and returns.
    Jump,
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Reads memory and writes memory.
    Update,
    /// Works on registers only.
    Other,
}

/// A memory access of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Its first byte.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Whether it is read.
    pub reads: bool,
    /// Whether it is written.
    pub writes: bool,
}

impl Access {
    /// Whether it is the first access of its line, if accesses of this length run upwards.
    pub fn begins_line(&self) -> bool {
        self.address / LINE_BYTES as u64 != self.address.wrapping_sub(self.bytes) / LINE_BYTES as u64
    }
}

/// The counts of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PacketTrace {
    /// Bytes of the frame, FCS included.
    pub frame_bytes: u64,
    /// Bytes behind its headers.
    pub payload_bytes: u64,
    /// Instructions, those of the marks taken off; a string instruction counts once however often it repeats.
    pub instructions: u64,
    /// Conditional branches.
    pub branches: u64,
    /// Other jumps, calls and returns.
    pub jumps: u64,
    /// Other instructions that read memory.
    pub loads: u64,
    /// Other instructions that write memory.
    pub stores: u64,
    /// Other instructions that read and write memory.
    pub updates: u64,
    /// Accesses that read the packet or its output.
    pub packet_reads: u64,
    /// Accesses that write there.
    pub packet_writes: u64,
    /// Accesses that read other memory: tables, state, the stack.
    pub other_reads: u64,
    /// Accesses that write there.
    pub other_writes: u64,
}

/// The code that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeOutcome {
    /// Instructions that were executed at least once.
    pub instructions: usize,
    /// Their bytes.
    pub bytes: usize,
    /// The fewest instructions that make up 99 % of the executed ones.
    pub for_99_percent: usize,
    /// The fewest instructions that make up 90 %.
    pub for_90_percent: usize,
}

/// The counts so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Memory of the packets: first addresses and bytes.
    pub packet_memory: Vec<(u64, u64)>,
    /// Warm-up packets, which only fill the caches.
    warm_up: usize,
    warm_up_instructions: u64,
    is_warm: bool,
    packets: Vec<PacketTrace>,
    begun: usize,
    now: PacketTrace,
    marks: u64,
    traced: u64,
    executed: HashMap<u64, u64>,
    data: Reuse,
    other_data: Reuse,
    instructions: Reuse,
}

impl Tally {
    /// Counters at 0; the first packets only fill the caches, for at most so many instructions.
    pub fn new(warm_up: usize, warm_up_instructions: u64) -> Self {
        Self { warm_up, warm_up_instructions, ..Self::default() }
    }

    /// Instructions traced in all.
    pub fn traced(&self) -> u64 {
        self.traced
    }

    /// Packets that are done.
    pub fn done(&self) -> usize {
        self.begun
    }

    /// Begins a packet; an empty one counts the marks themselves.
    pub fn packet_begins(&mut self, frame_bytes: u64, payload_bytes: u64) {
        self.begun += usize::from(frame_bytes > 0);
        self.is_warm = self.begun > self.warm_up || self.traced > self.warm_up_instructions;
        self.now = PacketTrace { frame_bytes, payload_bytes, ..PacketTrace::default() };
    }

    /// Ends the packet.
    pub fn packet_ends(&mut self) {
        if self.now.frame_bytes == 0 {
            self.marks = self.now.instructions;
            return;
        }
        self.now.instructions = self.now.instructions.saturating_sub(self.marks);
        if self.is_warm {
            self.packets.push(self.now);
        }
    }

    /// Counts an executed instruction.
    pub fn instruction(&mut self, address: u64, bytes: usize, class: Class) {
        self.traced += 1;
        self.now.instructions += 1;
        match class {
            Class::Branch => self.now.branches += 1,
            Class::Jump => self.now.jumps += 1,
            Class::Load => self.now.loads += 1,
            Class::Store => self.now.stores += 1,
            Class::Update => self.now.updates += 1,
            Class::Other => {}
        }
        if self.now.frame_bytes == 0 {
            return;
        }
        let counts = self.is_warm;
        if counts {
            *self.executed.entry(address).or_default() += 1;
        }
        for line in lines(address, bytes as u64) {
            self.instructions.touch(line, counts);
        }
    }

    /// Counts its memory access.
    pub fn access(&mut self, access: Access) {
        let of_packet = self.is_packet(access.address);
        let (reads, writes) = if of_packet {
            (&mut self.now.packet_reads, &mut self.now.packet_writes)
        } else {
            (&mut self.now.other_reads, &mut self.now.other_writes)
        };
        *reads += u64::from(access.reads);
        *writes += u64::from(access.writes);
        let counts = self.is_warm;
        for line in lines(access.address, access.bytes) {
            self.data.touch(line, counts);
            if !of_packet {
                self.other_data.touch(line, counts);
            }
        }
    }

    /// Counts the repetitions of an access upwards after the first: one access for each new line.
    pub fn access_run(&mut self, first: Access, times: u64) {
        let line = LINE_BYTES as u64;
        let end = first.address.saturating_add(first.bytes.saturating_mul(times));
        let mut address = (first.address / line + 1) * line;
        while address < end {
            // The first element that begins in the line.
            let skipped = (address - first.address).div_ceil(first.bytes) * first.bytes;
            if first.address + skipped < end {
                self.access(Access { address: first.address + skipped, ..first });
            }
            address += line;
        }
    }

    fn is_packet(&self, address: u64) -> bool {
        self.packet_memory.iter().any(|&(first, bytes)| address.wrapping_sub(first) < bytes)
    }

    /// The outcome; `bytes` returns the length of an instruction.
    pub fn outcome(self, complete: bool, bytes: impl Fn(u64) -> usize) -> TraceOutcome {
        let mut counts: Vec<u64> = self.executed.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = counts.iter().sum();
        let fewest = |percent: u64| {
            let mut sum = 0;
            counts
                .iter()
                .take_while(|&&count| {
                    let more = sum * 100 < total * percent;
                    sum += count;
                    more
                })
                .count()
        };
        let packet_lines = self.data.lines().filter(|&line| self.is_packet(line * LINE_BYTES as u64)).count();
        TraceOutcome {
            complete,
            code: CodeOutcome {
                instructions: counts.len(),
                bytes: self.executed.keys().map(|&address| bytes(address)).sum(),
                for_99_percent: fewest(99),
                for_90_percent: fewest(90),
            },
            packet_lines,
            other_lines: self.data.lines().count() - packet_lines,
            data: self.data.outcome(),
            other_data: self.other_data.outcome(),
            instructions: self.instructions.outcome(),
            packets: self.packets,
        }
    }
}

/// The lines of a range of bytes.
fn lines(address: u64, bytes: u64) -> std::ops::RangeInclusive<u64> {
    let line = LINE_BYTES as u64;
    address / line..=address.saturating_add(bytes.max(1) - 1) / line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_takes_the_most_executed_instructions_first() {
        let mut tally = Tally::default();
        tally.packet_begins(64, 0);
        for (address, times) in [(0, 90), (100, 5), (200, 4), (300, 1)] {
            (0..times).for_each(|_| tally.instruction(address, 4, Class::Other));
        }
        tally.packet_ends();
        let outcome = tally.outcome(true, |_| 4);
        let code = &outcome.code;
        assert_eq!((code.instructions, code.for_99_percent, code.for_90_percent, code.bytes), (4, 3, 1, 16));
        assert_eq!(outcome.packets[0].instructions, 100);
    }

    #[test]
    fn accesses_to_packets_are_told_from_others_and_marks_are_taken_off() {
        let mut tally = Tally { packet_memory: vec![(0x1000, 0x100)], ..Tally::default() };
        tally.packet_begins(0, 0);
        (0..3).for_each(|_| tally.instruction(0, 4, Class::Other));
        tally.packet_ends();
        tally.packet_begins(64, 6);
        (0..5).for_each(|_| tally.instruction(8, 4, Class::Load));
        for (address, bytes, reads, writes) in
            [(0x1000, 8, true, false), (0x10ff, 1, true, true), (0x1100, 8, true, false), (0xfff, 1, false, true)]
        {
            tally.access(Access { address, bytes, reads, writes });
        }
        tally.packet_ends();
        let outcome = tally.outcome(true, |_| 4);
        let packet = outcome.packets[0];
        assert_eq!((packet.instructions, packet.loads), (2, 5));
        assert_eq!((packet.packet_reads, packet.packet_writes), (2, 1));
        assert_eq!((packet.other_reads, packet.other_writes), (1, 1));
        assert_eq!((outcome.packet_lines, outcome.other_lines), (2, 2));
        assert_eq!((outcome.data.cold, outcome.other_data.cold), (4, 2));
    }

    #[test]
    fn a_run_of_accesses_is_what_its_accesses_one_by_one_are() {
        for (address, bytes, times) in
            [(0x1000, 1, 1000), (0x103f, 1, 65), (0x1008, 8, 100), (0x1000, 8, 8), (0x1004, 8, 15)]
        {
            let first = Access { address, bytes, reads: false, writes: true };
            let (mut run, mut single) = (Tally::new(0, 0), Tally::new(0, 0));
            run.packet_begins(64, 0);
            single.packet_begins(64, 0);
            run.access(first);
            run.access_run(first, times);
            for time in 0..times {
                let access = Access { address: address + time * bytes, ..first };
                if time == 0 || access.begins_line() {
                    single.access(access);
                }
            }
            run.packet_ends();
            single.packet_ends();
            assert_eq!(run.outcome(true, |_| 1), single.outcome(true, |_| 1));
        }
    }

    #[test]
    fn an_access_across_the_end_of_a_line_touches_both() {
        assert_eq!(lines(63, 1).count(), 1);
        assert_eq!(lines(63, 2).count(), 2);
        assert_eq!(lines(64, 64).count(), 1);
    }
}
