//! Packets of pcap and pcapng files, one after the other.
//!
//! Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, and the record of the "modified" pcap of the kernel
//! patches of A. Kuznetzov (16 bytes and an interface, a protocol and a kind).

use super::link::{Direction, Link};
use super::window::{Fault, Parsed, Window};

const PS_PER_S: i128 = 1_000_000_000_000;
/// Bytes of a packet that are looked at: its headers, with tags, tunnels and IPv6.
pub const HEADERS_BYTES: usize = 512;
/// Most bytes of a packet: above `BIG TCP` of the kernel (512 KiB), so that a damaged length is seen.
const MOST_PACKET_BYTES: u32 = 1 << 20;
/// Most bytes of a block of pcapng that is read whole, which holds a packet.
const MOST_BLOCK_BYTES: u32 = 16 << 20;
/// Most interfaces of a section.
const MOST_INTERFACES: usize = 65_536;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const END_OF_OPTIONS: u16 = 0;
const PACKET_FLAGS: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const FCS_LENGTH: u16 = 13;
const TIME_OFFSET: u16 = 14;

/// A packet as a file holds it.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Its first bytes, as far as they were captured, at most [`HEADERS_BYTES`].
    pub bytes: &'a [u8],
    /// Whether bytes are missing that it had on the wire.
    pub is_cut: bool,
    /// Its length on the wire, with what the link type says is there.
    pub wire_bytes: u32,
    /// Whether that length includes a frame check sequence.
    pub has_fcs: bool,
    /// Time since 1970, picoseconds.
    pub time_ps: i128,
    /// Number of its interface in its section.
    pub interface: u32,
    /// Its link type.
    pub link: Link,
    /// Its direction, if the file says one.
    pub direction: Direction,
}

/// What takes the packets.
pub type Take<'a> = dyn FnMut(&Packet<'_>) -> Parsed<()> + 'a;

/// The order of bytes of a file or a section.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn word(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }

    fn half(self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        if self.is_big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    }

    /// Code and value of each option.
    fn options(self, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
        std::iter::from_fn(move || {
            let (code, length) = match bytes {
                [_, _, _, _, ..] => (self.half(bytes, 0), usize::from(self.half(bytes, 2))),
                _ => return None,
            };
            let value = bytes.get(4..4 + length)?;
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            (code != END_OF_OPTIONS).then_some((code, value))
        })
    }
}

/// Hands every packet of the stream to `take`.
///
/// # Errors
///
/// The stream is no capture, is damaged, or ends within a packet ([`Fault::CutOff`]); or `take` refuses a packet.
pub fn read(window: &mut Window<'_>, take: &mut Take<'_>) -> Parsed<()> {
    if window.is_at_end()? {
        return Err(Fault::wrong("is empty; name a capture with packets"));
    }
    let magic = match window.peek(4) {
        Ok(bytes) => [bytes[0], bytes[1], bytes[2], bytes[3]],
        Err(Fault::CutOff) => return Err(Fault::wrong("has less than 4 bytes; name a capture with packets")),
        Err(fault) => return Err(fault),
    };
    if u32::from_le_bytes(magic) == SECTION_HEADER {
        return sections(window, take);
    }
    for is_big in [false, true] {
        let order = Order { is_big };
        let (unit_ps, extra_bytes) = match order.word(&magic, 0) {
            0xa1b2_c3d4 => (1_000_000, 0),
            0xa1b2_3c4d => (1_000, 0),
            0xa1b2_cd34 => (1_000_000, 8),
            _ => continue,
        };
        return classic(window, order, unit_ps, extra_bytes, take);
    }
    Err(Fault::Wrong(unknown(magic)))
}

/// Whether a file that begins with these bytes is one that [`read`] reads.
#[must_use]
pub fn is_magic(magic: [u8; 4]) -> bool {
    let words = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];
    u32::from_le_bytes(magic) == SECTION_HEADER
        || words.contains(&u32::from_le_bytes(magic))
        || words.contains(&u32::from_be_bytes(magic))
}

fn unknown(magic: [u8; 4]) -> String {
    let convert = "convert it with editcap -F pcapng IN OUT";
    let (what, remedy) = match magic {
        [b's', b'n', b'o', b'o'] => ("a capture of snoop", convert),
        [b'T', b'R', b'S', b'N'] => ("a capture of the Sniffer", convert),
        [b'R', b'T', b'S', b'S'] | [b'G', b'M', b'B', b'U'] => ("a capture of Microsoft's Network Monitor", convert),
        [0xac | 0xab, 0x01, 0x00, 0x1c] => ("a capture of an Ixia tester", convert),
        [0xfd, b'7', b'z', b'X'] => ("packed by xz", "unpack it with xz -dk"),
        [b'B', b'Z', b'h', _] => ("packed by bzip2", "unpack it with bzip2 -dk"),
        [0x04, 0x22, 0x4d, 0x18] => ("packed by lz4", "unpack it with lz4 -d"),
        [b'P', b'K', 3, 4] => ("a ZIP archive", "unpack it with unzip"),
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => ("packed twice", "unpack it once, with gzip -d or zstd -d"),
        _ => {
            let first = u32::from_be_bytes(magic);
            return format!(
                "is neither pcap nor pcapng: it begins with {first:08x}; write a capture with tcpdump -w, or convert \
                 one that capinfos knows with editcap -F pcapng IN OUT"
            );
        }
    };
    format!("is {what}; {remedy}")
}

fn packet_bytes(count: u32) -> Parsed<u32> {
    if count <= MOST_PACKET_BYTES {
        return Ok(count);
    }
    Err(Fault::Damaged(format!("claims {count} bytes, more than any packet ({MOST_PACKET_BYTES})")))
}

fn classic(window: &mut Window<'_>, order: Order, unit_ps: i128, extra: u64, take: &mut Take<'_>) -> Parsed<()> {
    let header: [u8; 24] = window.array().map_err(|fault| match fault {
        Fault::CutOff => Fault::wrong("ends within the header of the file; capture it again"),
        fault => fault,
    })?;
    let word = order.word(&header, 20);
    // draft-ietf-opsawg-pcap, section 4: "f" says that the upper 4 bits count the FCS's 16-bit words.
    let has_fcs = word & 0x0400_0000 != 0 && word >> 28 != 0;
    let swaps_lengths = (order.half(&header, 4), order.half(&header, 6)) <= (2, 3);
    let link = Link(word & 0xffff);
    while !window.is_at_end()? {
        let record: [u8; 16] = window.array()?;
        let mut lengths = (order.word(&record, 8), order.word(&record, 12));
        // Before version 2.4 some writers had the two lengths in the other order.
        if swaps_lengths && lengths.0 > lengths.1 {
            lengths = (lengths.1, lengths.0);
        }
        let (captured, wire_bytes) = (packet_bytes(lengths.0)?, packet_bytes(lengths.1.max(lengths.0))?);
        let mut direction = Direction::Unknown;
        if extra > 0 {
            let more: [u8; 8] = window.array()?;
            direction = Direction::of_kind(more[6]);
        }
        let time_ps = i128::from(order.word(&record, 0)) * PS_PER_S + i128::from(order.word(&record, 4)) * unit_ps;
        let bytes = window.peek(captured as usize)?;
        take(&Packet {
            bytes: &bytes[..bytes.len().min(HEADERS_BYTES)],
            is_cut: captured < wire_bytes,
            wire_bytes,
            has_fcs,
            time_ps,
            interface: 0,
            link,
            direction,
        })?;
        window.skip(u64::from(captured))?;
    }
    Ok(())
}

/// How an interface tells the time.
#[derive(Clone, Copy)]
struct Clock {
    /// Picoseconds per unit, `ps / 2^shift / divisor`.
    ps: u128,
    shift: u32,
    divisor: u128,
    offset_ps: i128,
}

impl Clock {
    const MICROSECONDS: Self = Self { ps: 1_000_000, shift: 0, divisor: 1, offset_ps: 0 };

    /// The clock of a value of `if_tsresol`.
    fn of_resolution(value: u8) -> Parsed<Self> {
        let exponent = u32::from(value & 0x7f);
        let (ps, shift, divisor) = match (value & 0x80 != 0, exponent) {
            (true, 0..=64) => (PS_PER_S as u128, exponent, 1),
            (false, 0..=12) => (10_u128.pow(12 - exponent), 0, 1),
            (false, 13..=30) => (1, 0, 10_u128.pow(exponent - 12)),
            (is_binary, _) => {
                let base = if is_binary { 2 } else { 10 };
                return Err(Fault::Damaged(format!(
                    "follows an interface whose unit of time is {base}^-{exponent} s, finer than any clock's"
                )));
            }
        };
        Ok(Self { ps, shift, divisor, offset_ps: 0 })
    }

    fn time_ps(self, high: u32, low: u32) -> i128 {
        let stamp = u128::from((u64::from(high) << 32) | u64::from(low));
        let scaled = (stamp * self.ps) >> self.shift;
        (if self.divisor == 1 { scaled } else { scaled / self.divisor }) as i128 + self.offset_ps
    }
}

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    clock: Clock,
    has_fcs: bool,
}

impl Interface {
    fn of(order: Order, body: &[u8]) -> Parsed<Self> {
        let mut interface =
            Self { link: Link(u32::from(order.half(body, 0))), clock: Clock::MICROSECONDS, has_fcs: false };
        let mut offset_ps = 0;
        for (code, value) in order.options(&body[8..]) {
            match (code, value) {
                (TIME_RESOLUTION, &[resolution]) => interface.clock = Clock::of_resolution(resolution)?,
                (FCS_LENGTH, &[length]) => interface.has_fcs = length > 0,
                (TIME_OFFSET, value) if value.len() == 8 => {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(value);
                    let seconds = if order.is_big { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
                    offset_ps = i128::from(seconds) * PS_PER_S;
                }
                _ => {}
            }
        }
        interface.clock.offset_ps = offset_ps;
        Ok(interface)
    }
}

fn damaged(what: &str, at: u64) -> Fault {
    Fault::Damaged(format!("{what} at byte {at} of the file"))
}

fn sections(window: &mut Window<'_>, take: &mut Take<'_>) -> Parsed<()> {
    let mut order = Order { is_big: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    while !window.is_at_end()? {
        let start = window.at();
        let head = window.peek(8)?;
        if u32::from_le_bytes([head[0], head[1], head[2], head[3]]) == SECTION_HEADER {
            interfaces.clear();
            let magic = &window.peek(12)?[8..12];
            order.is_big = match magic {
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                _ => return Err(damaged("follows a section without an order of its bytes", start)),
            };
        }
        let head = window.peek(8)?;
        let (kind, total) = (order.word(head, 0), order.word(head, 4));
        if total < 12 || !total.is_multiple_of(4) {
            return Err(damaged(&format!("follows a block of {total} bytes"), start));
        }
        if !matches!(kind, INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
            window.skip(u64::from(total))?;
            continue;
        }
        if total > MOST_BLOCK_BYTES {
            return Err(damaged(&format!("is in a block of {total} bytes"), start));
        }
        let block = window.peek(total as usize)?;
        if order.word(block, total as usize - 4) != total {
            return Err(damaged("is in a block that does not end with its length", start));
        }
        let body = &block[8..total as usize - 4];
        if kind == INTERFACE {
            if body.len() < 8 || interfaces.len() == MOST_INTERFACES {
                return Err(damaged("follows an interface that cannot be read", start));
            }
            interfaces.push(Interface::of(order, body)?);
        } else {
            take(&packet(order, kind, body, &interfaces, start)?)?;
        }
        window.skip(u64::from(total))?;
    }
    Ok(())
}

fn packet<'a>(order: Order, kind: u32, body: &'a [u8], interfaces: &[Interface], start: u64) -> Parsed<Packet<'a>> {
    if kind == SIMPLE_PACKET {
        let remedy = "capture it again with tcpdump -w or dumpcap, which write times";
        return Err(Fault::Packet(format!("is a simple packet block, which has no time; {remedy}")));
    }
    if body.len() < 20 {
        return Err(damaged("is in a block that is too short", start));
    }
    let number = if kind == ENHANCED_PACKET { order.word(body, 0) } else { u32::from(order.half(body, 0)) };
    let Some(interface) = interfaces.get(number as usize) else {
        return Err(damaged(&format!("is of interface {number}, which the file does not describe,"), start));
    };
    let captured = packet_bytes(order.word(body, 12))?;
    let wire_bytes = packet_bytes(order.word(body, 16).max(captured))?;
    let bytes = body.get(20..20 + captured as usize);
    let Some(bytes) = bytes else { return Err(damaged("is longer than its block", start)) };
    let options = body.get(20 + bytes.len().next_multiple_of(4)..).unwrap_or_default();
    let flags = order.options(options).find(|(code, value)| *code == PACKET_FLAGS && value.len() == 4);
    let flags = flags.map_or(0, |(_, value)| order.word(value, 0));
    Ok(Packet {
        bytes: &bytes[..bytes.len().min(HEADERS_BYTES)],
        is_cut: captured < wire_bytes,
        wire_bytes,
        // Bits 5 to 8: the length of this packet's FCS, where it may differ from its interface's.
        has_fcs: interface.has_fcs || (flags >> 5) & 0xf != 0,
        time_ps: interface.clock.time_ps(order.word(body, 4), order.word(body, 8)),
        interface: number,
        link: interface.link,
        direction: Direction::of_flags(flags),
    })
}
