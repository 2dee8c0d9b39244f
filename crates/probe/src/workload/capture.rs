//! Packets of a capture file: classic pcap and pcapng, either byte order.
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Only Ethernet packets are taken.

use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use routecast_captures::source::Source;

use crate::error::{ProbeError, Result};

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u32 = 1;
/// Most bytes of a captured packet, the limit of tcpdump.
const MOST_PACKET_BYTES: usize = 262_144;
/// Most bytes of a block of pcapng, so that a wrong length does not allocate all memory.
const MOST_BLOCK_BYTES: usize = 16 << 20;
/// Most bytes of packets that are kept.
const MOST_BYTES: usize = 256 << 20;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// Option of an interface that says in which unit its times are.
const TIME_RESOLUTION: u32 = 9;

/// The content of a capture.
#[derive(Debug, Default)]
pub struct Capture {
    /// The packets, as far as they were captured.
    pub packets: Vec<Vec<u8>>,
    /// Arrival times, ns since the epoch of the file; `None` where the block has no time.
    pub at_ns: Vec<Option<u64>>,
    /// Original length of each packet, bytes.
    pub original_bytes: Vec<u32>,
    /// Packets that were truncated.
    pub cut: u64,
    /// Whether there are more packets in the file.
    pub more: bool,
}

impl Capture {
    /// Adds a packet.
    pub(super) fn take(&mut self, bytes: &[u8], original_bytes: u32, at_ns: Option<u64>) {
        self.cut += u64::from(bytes.len() < original_bytes as usize);
        self.packets.push(bytes.to_vec());
        self.at_ns.push(at_ns);
        self.original_bytes.push(original_bytes);
    }
}

/// Reads the first `most` packets of a file.
///
/// # Errors
///
/// [`ProbeError::Request`]: the file cannot be read, is a device or a silent pipe, is no capture, ends within a packet,
/// is empty, or was not captured on an Ethernet.
pub fn read(path: &Path, most: usize) -> Result<Capture> {
    let wrong = |message: String| ProbeError::request("pcap", format!("{}: {message}", path.display()));
    let source = Source::open(path, &|| true).map_err(|error| wrong(error.to_string()))?;
    let mut reader = Reader { from: BufReader::new(source), at: 0, swapped: false };
    parse(&mut reader, most).map_err(wrong)
}

/// The rest of a file, and its position.
struct Reader<R> {
    from: R,
    at: u64,
    swapped: bool,
}

type Parsed<T> = std::result::Result<T, String>;

impl<R: Read> Reader<R> {
    /// Some bytes; None at the end of the file.
    fn bytes(&mut self, count: usize) -> Parsed<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(count as u64).read_to_end(&mut bytes);
        match read {
            Ok(0) if count > 0 => Ok(None),
            Ok(got) if got < count => {
                let (at, missing) = (self.at, count - got);
                Err(format!(
                    "is cut off: {missing} bytes are missing of what begins at byte {at}; capture it again, or cut \
                     it there with editcap"
                ))
            }
            Ok(_) => {
                self.at += count as u64;
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == ErrorKind::IsADirectory => Err("is a directory, not a file".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn needed(&mut self, count: usize) -> Parsed<Vec<u8>> {
        let at = self.at;
        self.bytes(count)?.ok_or_else(|| format!("is cut off at byte {at}: {count} bytes are missing"))
    }

    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let mut four = [0; 4];
        four.copy_from_slice(&bytes[at..at + 4]);
        if self.swapped { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }

    fn half(&self, bytes: &[u8], at: usize) -> u32 {
        let two = [bytes[at], bytes[at + 1]];
        u32::from(if self.swapped { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
    }
}

fn parse<R: Read>(reader: &mut Reader<R>, most: usize) -> Parsed<Capture> {
    let Some(magic) = reader.bytes(4)? else { return Err("is empty; name a capture with packets".to_owned()) };
    let little = u32::from_le_bytes([magic[0], magic[1], magic[2], magic[3]]);
    let capture = match little {
        // Microseconds and nanoseconds, in the byte order of the host that wrote the file.
        0xa1b2_c3d4 => classic(reader, most, 1_000),
        0xa1b2_3c4d => classic(reader, most, 1),
        0xd4c3_b2a1 | 0x4d3c_b2a1 => {
            reader.swapped = true;
            classic(reader, most, if little == 0xd4c3_b2a1 { 1_000 } else { 1 })
        }
        SECTION_HEADER => sections(reader, most),
        _ => Err(format!("is neither pcap nor pcapng: it begins with {little:#010x}; write one with tcpdump -w")),
    }?;
    if capture.packets.is_empty() {
        return Err("holds no packet; name a capture with packets".to_owned());
    }
    Ok(capture)
}

fn ethernet(link_type: u32) -> Parsed<()> {
    if link_type == ETHERNET {
        return Ok(());
    }
    Err(format!(
        "has packets of link type {link_type}; only Ethernet (1) is read: capture on an Ethernet interface, not on \
         `any`, a tunnel or Wi-Fi in monitor mode"
    ))
}

fn packet_bytes(bytes: u32, at: u64) -> Parsed<usize> {
    let count = bytes as usize;
    if count <= MOST_PACKET_BYTES {
        return Ok(count);
    }
    Err(format!("has a packet of {count} bytes at byte {at}, more than any ({MOST_PACKET_BYTES}): the file is damaged"))
}

fn full(capture: &Capture, bytes: usize, most: usize) -> bool {
    capture.packets.len() >= most || bytes >= MOST_BYTES
}

fn classic<R: Read>(reader: &mut Reader<R>, most: usize, unit_ns: u64) -> Parsed<Capture> {
    let header = reader.needed(20)?;
    // The upper bits tell whether frames hold their FCS, which network cards strip before.
    ethernet(reader.word(&header, 16) & 0x0fff_ffff)?;
    let mut capture = Capture::default();
    let mut held = 0;
    while let Some(record) = reader.bytes(16)? {
        if full(&capture, held, most) {
            capture.more = true;
            break;
        }
        let count = packet_bytes(reader.word(&record, 8), reader.at)?;
        let bytes = reader.needed(count)?;
        held += count;
        let at_ns = u64::from(reader.word(&record, 0)) * 1_000_000_000 + u64::from(reader.word(&record, 4)) * unit_ns;
        capture.take(&bytes, reader.word(&record, 12), Some(at_ns));
    }
    Ok(capture)
}

/// Time stamps of a second of an interface whose description has these options; a million if none says otherwise
/// (`if_tsresol`).
fn stamps_of_a_second<R: Read>(reader: &Reader<R>, mut options: &[u8]) -> u128 {
    while options.len() >= 4 {
        let (code, length) = (reader.half(options, 0), reader.half(options, 2) as usize);
        match (code, options.get(4)) {
            (TIME_RESOLUTION, Some(&value)) if length == 1 => {
                let base: u128 = if value & 0x80 == 0 { 10 } else { 2 };
                return base.saturating_pow(u32::from(value & 0x7f));
            }
            _ => options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default(),
        }
    }
    1_000_000
}

fn sections<R: Read>(reader: &mut Reader<R>, most: usize) -> Parsed<Capture> {
    let mut capture = Capture::default();
    let mut links: Vec<(u32, u128)> = Vec::new();
    let mut held = 0;
    let mut kind = SECTION_HEADER;
    loop {
        let start = reader.at - 4;
        let mut length = reader.needed(4)?;
        let mut body = Vec::new();
        if kind == SECTION_HEADER {
            links.clear();
            let order = reader.needed(4)?;
            reader.swapped = match u32::from_le_bytes([order[0], order[1], order[2], order[3]]) {
                0x1a2b_3c4d => false,
                0x4d3c_2b1a => true,
                other => return Err(format!("has {other:#010x} for its byte order at byte {start}: it is damaged")),
            };
            body = order;
        }
        let total = reader.word(&length, 0) as usize;
        if !(12 + body.len()..=MOST_BLOCK_BYTES).contains(&total) || !total.is_multiple_of(4) {
            return Err(format!("has a block of {total} bytes at byte {start}: it is damaged"));
        }
        body.extend(reader.needed(total - 12 - body.len())?);
        length.clone_from(&reader.needed(4)?);
        if reader.word(&length, 0) as usize != total {
            return Err(format!("has a block at byte {start} that does not end with its length: it is damaged"));
        }
        let short = || format!("has a block of kind {kind} at byte {start} that is too short: it is damaged");
        let link = |interface: usize| {
            links.get(interface).copied().ok_or_else(|| {
                format!("has a packet of interface {interface} at byte {start}, which it does not describe")
            })
        };
        let packet = match kind {
            INTERFACE if body.len() >= 8 => {
                links.push((reader.half(&body, 0), stamps_of_a_second(reader, &body[8..])));
                None
            }
            ENHANCED_PACKET if body.len() >= 20 => {
                let (kind, per_second) = link(reader.word(&body, 0) as usize)?;
                ethernet(kind)?;
                let count = packet_bytes(reader.word(&body, 12), start)?;
                let stamp = (u64::from(reader.word(&body, 4)) << 32) | u64::from(reader.word(&body, 8));
                let at_ns = u64::try_from(u128::from(stamp) * 1_000_000_000 / per_second).unwrap_or(u64::MAX);
                Some((20, count, reader.word(&body, 16), Some(at_ns)))
            }
            SIMPLE_PACKET if body.len() >= 4 => {
                ethernet(link(0)?.0)?;
                let original = reader.word(&body, 0);
                Some((4, (original as usize).min(body.len() - 4), original, None))
            }
            INTERFACE | ENHANCED_PACKET | SIMPLE_PACKET => return Err(short()),
            _ => None,
        };
        if let Some((at, count, original, at_ns)) = packet {
            if full(&capture, held, most) {
                capture.more = true;
                break;
            }
            capture.take(body.get(at..at + count).ok_or_else(short)?, original, at_ns);
            held += count;
        }
        match reader.bytes(4)? {
            Some(next) => kind = reader.word(&next, 0),
            None => break,
        }
    }
    Ok(capture)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8], most: usize) -> Parsed<Capture> {
        parse(&mut Reader { from: bytes, at: 0, swapped: false }, most)
    }

    fn four(value: u32, big: bool) -> [u8; 4] {
        if big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn pcap(packets: &[&[u8]], link: u32, big: bool) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4, 0, 0, 0, 65_535, link] {
            file.extend(four(word, big));
        }
        for packet in packets {
            for word in [1, 2, packet.len() as u32, packet.len() as u32 + 1] {
                file.extend(four(word, big));
            }
            file.extend(*packet);
        }
        file
    }

    fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
        let total = 12 + body.len().next_multiple_of(4) as u32;
        let mut bytes = [four(kind, big), four(total, big)].concat();
        bytes.extend(body);
        bytes.resize(total as usize - 4, 0);
        bytes.extend(four(total, big));
        bytes
    }

    fn pcapng(packets: &[&[u8]], link: u16, big: bool) -> Vec<u8> {
        let two = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = block(SECTION_HEADER, &[four(0x1a2b_3c4d, big), four(1, big), [255; 4], [255; 4]].concat(), big);
        file.extend(block(INTERFACE, &[two(link), two(0), [0; 2], [0; 2]].concat(), big));
        file.extend(block(5, &[0; 8], big));
        for packet in packets {
            let length = four(packet.len() as u32, big);
            let mut body = [four(0, big), [0; 4], [0; 4], length, length].concat();
            body.extend(*packet);
            file.extend(block(ENHANCED_PACKET, &body, big));
        }
        file
    }

    #[test]
    fn both_formats_and_both_byte_orders_give_the_packets_that_were_written() {
        let packets: [&[u8]; 3] = [&[1; 60], &[2; 61], &[3; 1514]];
        for big in [false, true] {
            for file in [pcap(&packets, 1, big), pcapng(&packets, 1, big)] {
                let read = parsed(&file, 100).unwrap();
                assert_eq!(read.packets, packets);
                assert!(!read.more);
                let read = parsed(&file, 2).unwrap();
                assert_eq!(read.packets, packets[..2]);
                assert!(read.more);
            }
            let read = parsed(&pcap(&packets, 1, big), 9).unwrap();
            assert_eq!(read.cut, 3);
            // Second 1 and microsecond 2; one byte more than was captured.
            assert_eq!((read.at_ns, read.original_bytes), (vec![Some(1_000_002_000); 3], vec![61, 62, 1515]));
        }
    }

    #[test]
    fn times_of_pcapng_are_in_the_unit_that_its_interface_says() {
        for (resolution, expected_ns) in [(None, 3_000), (Some(9), 3), (Some(3), 3_000_000), (Some(0x8a), 2_929_687)] {
            let mut file = pcapng(&[], 1, false);
            let mut body = [1, 0, 0, 0, 0, 0, 0, 0].to_vec();
            if let Some(value) = resolution {
                // Another option first, of five bytes; 2^-10 s are 976,562.5 ns.
                body.extend([2, 0, 5, 0, b'e', b't', b'h', b'0', 0, 0, 0, 0, 9, 0, 1, 0, value, 0, 0, 0]);
            }
            file.extend(block(INTERFACE, &body, false));
            let words = [1_u32, 0, 3, 4, 60];
            let mut body: Vec<u8> = words.iter().flat_map(|&word| four(word, false)).collect();
            body.extend([7; 4]);
            file.extend(block(ENHANCED_PACKET, &body, false));
            let read = parsed(&file, 9).unwrap();
            assert_eq!((read.at_ns, read.original_bytes), (vec![Some(expected_ns)], vec![60]), "{resolution:?}");
        }
    }

    #[test]
    fn a_simple_packet_is_as_long_as_its_block_holds() {
        let mut file = pcapng(&[], 1, false);
        file.extend(block(SIMPLE_PACKET, &[100, 0, 0, 0, 7, 7, 7, 7], false));
        let read = parsed(&file, 9).unwrap();
        assert_eq!(read.packets, [[7; 4]]);
        assert_eq!(read.cut, 1);
    }

    #[test]
    fn a_capture_that_ends_in_the_middle_is_refused_wherever_it_ends() {
        for file in [pcap(&[&[1; 60]], 1, false), pcapng(&[&[1; 60]], 1, true)] {
            for end in 1..file.len() {
                let Err(message) = parsed(&file[..end], 9) else { panic!("{end} bytes were taken") };
                // It may end between two blocks: then it is whole, and empty.
                assert!(message.contains("cut off") || message.contains("no packet"), "{end}: {message}");
            }
        }
        assert!(parsed(&[], 9).unwrap_err().contains("is empty"));
    }

    #[test]
    fn a_pipe_is_read_like_a_file_and_a_device_or_a_pipe_without_writer_is_refused() {
        let folder = std::env::temp_dir().join(format!("routecast-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        let status = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(status.success());
        let message = read(&pipe, 9).unwrap_err().to_string();
        assert!(message.contains("nobody wrote to"), "{message}");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || while std::fs::write(&pipe, pcap(&[&[1; 60], &[2; 61]], 1, false)).is_err() {}
        });
        // On a busy machine the reader may give up just as the writer comes; then both come again.
        let capture = (0..100).find_map(|_| read(&pipe, 9).ok()).unwrap();
        writer.join().unwrap();
        assert_eq!(capture.packets, [vec![1; 60], vec![2; 61]]);
        std::fs::remove_dir_all(&folder).unwrap();
        let message = read(Path::new("/dev/zero"), 9).unwrap_err().to_string();
        assert!(message.contains("is a device"), "{message}");
    }

    #[test]
    fn what_is_no_ethernet_capture_is_refused() {
        let wifi = "link type 105";
        assert!(parsed(&pcap(&[&[1; 60]], 105, false), 9).unwrap_err().contains(wifi));
        assert!(parsed(&pcapng(&[&[1; 60]], 105, false), 9).unwrap_err().contains(wifi));
        assert!(parsed(b"GET / HTTP/1.1\r\n", 9).unwrap_err().contains("neither pcap nor pcapng"));
        let mut huge = pcap(&[&[1; 60]], 1, false);
        huge[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(parsed(&huge, 9).unwrap_err().contains("damaged"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_refused_or_read_without_harm(mut bytes: Vec<u8>, ng: bool) {
            let mut file = if ng { pcapng(&[&[1; 60]], 1, false) } else { pcap(&[&[1; 60]], 1, false) };
            file.append(&mut bytes);
            let _ = parsed(&file, 9);
            let _ = parsed(&file[4..], 9);
        }
    }
}
