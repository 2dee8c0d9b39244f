//! TCP: a monitor that picks packets by fields of their headers, as tcpdump does.
//!
//! The filter is a program of the BSD packet filter (`McCanne` & Jacobson 1993), run by an interpreter; what passes is
//! counted by flow.

use super::{Kernel, Packet};

/// An instruction: its operation, the offsets of the next instruction if a comparison holds and if not, and a number.
#[derive(Debug, Clone, Copy)]
pub struct Instruction {
    code: Code,
    then: u8,
    or: u8,
    k: u32,
}

#[derive(Debug, Clone, Copy)]
enum Code {
    /// A half word of the packet into the accumulator.
    LoadHalf,
    /// A byte of the packet into the accumulator.
    LoadByte,
    /// A half word at the index register plus `k`.
    LoadHalfIndexed,
    /// Four times the low half of a byte into the index register: the length of an IP header.
    HeaderLength,
    /// Whether the accumulator is `k`.
    Equal,
    /// Whether the accumulator has any bit of `k`.
    AnyBit,
    /// The end: `k` bytes of the packet are taken.
    Return,
}

const fn op(code: Code, then: u8, or: u8, k: u32) -> Instruction {
    Instruction { code, then, or, k }
}

/// `ip and tcp and (dst port 80 or src port 80)`, from the second and later fragments on no ports.
pub const WEB: [Instruction; 13] = [
    op(Code::LoadHalf, 0, 0, 12),
    op(Code::Equal, 0, 10, 0x0800),
    op(Code::LoadByte, 0, 0, 23),
    op(Code::Equal, 0, 8, 6),
    op(Code::LoadHalf, 0, 0, 20),
    op(Code::AnyBit, 6, 0, 0x1fff),
    op(Code::HeaderLength, 0, 0, 14),
    op(Code::LoadHalfIndexed, 0, 0, 14),
    op(Code::Equal, 2, 0, 80),
    op(Code::LoadHalfIndexed, 0, 0, 16),
    op(Code::Equal, 0, 1, 80),
    op(Code::Return, 0, 0, 262_144),
    op(Code::Return, 0, 0, 0),
];

/// Runs a filter. A load beyond the packet or an end without `Return` takes nothing of the packet.
fn run(program: &[Instruction], packet: &[u8]) -> u32 {
    let (mut accumulator, mut index) = (0u32, 0usize);
    let half = |at: usize| packet.get(at..at + 2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let mut at = 0;
    while let Some(step) = program.get(at) {
        at += 1;
        let k = step.k as usize;
        let holds = match step.code {
            Code::LoadHalf => match half(k) {
                Some(value) => {
                    accumulator = value;
                    continue;
                }
                None => return 0,
            },
            Code::LoadHalfIndexed => match half(index + k) {
                Some(value) => {
                    accumulator = value;
                    continue;
                }
                None => return 0,
            },
            Code::LoadByte => match packet.get(k) {
                Some(&value) => {
                    accumulator = u32::from(value);
                    continue;
                }
                None => return 0,
            },
            Code::HeaderLength => match packet.get(k) {
                Some(&value) => {
                    index = usize::from(value & 15) * 4;
                    continue;
                }
                None => return 0,
            },
            Code::Equal => accumulator == step.k,
            Code::AnyBit => accumulator & step.k != 0,
            Code::Return => return step.k,
        };
        at += usize::from(if holds { step.then } else { step.or });
    }
    0
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

/// Filters packets and counts those that pass by flow.
pub struct Tcp {
    program: Vec<Instruction>,
    counts: Vec<Count>,
}

impl Tcp {
    /// A monitor with some number of counters.
    pub fn new(counters: u64) -> Self {
        Self { program: WEB.to_vec(), counts: vec![Count::default(); counters as usize] }
    }
}

impl Kernel for Tcp {
    /// Returns how many bytes of the packet the monitor takes.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        // The filter counts from a plain Ethernet header; that a VLAN tag ends with the type makes it look like one.
        let taken = run(&self.program, &packet.frame[packet.ip - 14..]);
        if taken > 0 {
            let index = (u128::from(packet.flow_hash()) * self.counts.len() as u128) >> 64;
            let count = &mut self.counts[index as usize];
            count.packets += 1;
            count.bytes += packet.frame.len() as u64;
        }
        u64::from(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    /// The same filter by an independent parser.
    fn is_web(frame: &[u8]) -> bool {
        let Ok(read) = etherparse::SlicedPacket::from_ethernet(frame) else { return false };
        match read.transport {
            Some(etherparse::TransportSlice::Tcp(tcp)) => tcp.source_port() == 80 || tcp.destination_port() == 80,
            _ => false,
        }
    }

    #[test]
    fn the_filter_takes_what_a_parser_of_others_finds() {
        let mut packets = of_size(128, 2000, Content::Random);
        let mut tcp = Tcp::new(64);
        let mut taken = 0;
        for number in 0..2000 {
            let mut packet = packets.packet(number);
            let web = is_web(packet.frame);
            assert_eq!(tcp.process(&mut packet) > 0, web);
            taken += u64::from(web);
        }
        assert!(taken > 100 && taken < 1000, "{taken}");
        assert_eq!(tcp.counts.iter().map(|count| count.packets).sum::<u64>(), taken);
        assert_eq!(tcp.counts.iter().map(|count| count.bytes).sum::<u64>(), 124 * taken);
    }

    #[test]
    fn ports_of_later_fragments_are_not_looked_for_and_short_packets_are_not_taken() {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = 6;
        frame[36..38].copy_from_slice(&80u16.to_be_bytes());
        assert!(run(&WEB, &frame) > 0);
        for end in 0..38 {
            assert_eq!(run(&WEB, &frame[..end]), 0, "{end}");
        }
        frame[21] = 1;
        assert_eq!(run(&WEB, &frame), 0);
    }
}
