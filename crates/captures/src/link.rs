//! Link types of captures, and the way through tags and tunnels to the addresses.
//!
//! Numbers of link types: <https://www.tcpdump.org/linktypes.html>.

/// A link type of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link(pub u32);

/// The direction of a packet, as the machine that captured it saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The file does not say.
    Unknown,
    /// Received.
    In,
    /// Sent.
    Out,
}

impl Direction {
    /// Of the flags of a packet of pcapng (`epb_flags`, bits 0 and 1).
    pub fn of_flags(flags: u32) -> Self {
        match flags & 3 {
            1 => Self::In,
            2 => Self::Out,
            _ => Self::Unknown,
        }
    }

    /// Of the kernel's kind of a packet (`PACKET_OUTGOING` is 4).
    pub fn of_kind(kind: u8) -> Self {
        match kind {
            0..=3 => Self::In,
            4 => Self::Out,
            _ => Self::Unknown,
        }
    }
}

/// What begins at some place of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// An Ethernet header.
    Ethernet,
    /// What this type of Ethernet says.
    Type(u16),
    /// An IP header of either version.
    Ip,
    /// The protocol field of PPP.
    Ppp,
    /// A header of `PPPoE`.
    Pppoe,
    /// Something without addresses of IP.
    Other,
}

impl Link {
    /// Whether packets begin with an Ethernet header.
    #[must_use]
    pub fn is_ethernet(self) -> bool {
        self.0 == 1
    }

    /// The bytes of the link's own header, and what follows; nothing where the packet is shorter.
    pub fn start(self, bytes: &[u8]) -> Option<(usize, Next)> {
        Some(match self.0 {
            1 => (0, Next::Ethernet),
            12 | 14 | 101 | 228 | 229 => (0, Next::Ip),
            113 => (16, Next::Type(half(bytes, 14)?)),
            276 => (20, Next::Type(half(bytes, 0)?)),
            104 => (4, Next::Type(half(bytes, 2)?)),
            51 => (0, Next::Pppoe),
            // Octets of "HDLC-like framing" (RFC 1662) stand before the protocol, or not.
            9 | 50 if bytes.get(..2)? == [0xff, 0x03] => (2, Next::Ppp),
            9 | 50 => (0, Next::Ppp),
            // The family of addresses, in the order of bytes of some machine.
            0 | 108 => match bytes.get(..4)? {
                &[0, 0, 0, family] | &[family, 0, 0, 0] if matches!(family, 2 | 10 | 24 | 28 | 30) => (4, Next::Ip),
                _ => (4, Next::Other),
            },
            _ => return None,
        })
    }

    /// The direction that the link's header says.
    pub fn direction(self, bytes: &[u8]) -> Direction {
        match self.0 {
            113 => bytes.get(1).map_or(Direction::Unknown, |&kind| Direction::of_kind(kind)),
            276 => bytes.get(10).map_or(Direction::Unknown, |&kind| Direction::of_kind(kind)),
            _ => Direction::Unknown,
        }
    }

    /// Why packets of this type are not read, and what to do; nothing for those that are.
    #[must_use]
    pub fn refusal(self) -> Option<String> {
        const WIRED: &str = "capture the same traffic on an Ethernet interface, with tcpdump -i DEVICE -w FILE";
        const RELABEL: &str = "if its packets are Ethernet frames all the same, say so with editcap -T ether IN OUT";
        let (name, remedy) = match self.0 {
            0 | 1 | 9 | 12 | 14 | 50 | 51 | 101 | 104 | 108 | 113 | 228 | 229 | 276 => return None,
            3 => ("AX.25", WIRED),
            6 => ("token ring", WIRED),
            7 => ("ARCNET", WIRED),
            8 => ("SLIP", WIRED),
            10 => ("FDDI", WIRED),
            100 => ("ATM of RFC 1483", WIRED),
            105 => ("802.11 (Wi-Fi)", WIRED),
            107 => ("frame relay", WIRED),
            117 => ("the log of OpenBSD's pf", WIRED),
            119 => ("802.11 (Wi-Fi) with a Prism header", WIRED),
            122 => ("IP over Fibre Channel", WIRED),
            123 => ("SunATM", WIRED),
            127 => ("802.11 (Wi-Fi) with a radiotap header", WIRED),
            138 => ("IP over FireWire", WIRED),
            163 => ("802.11 (Wi-Fi) with an AVS header", WIRED),
            192 => ("PPI (802.11 with a header of its own)", WIRED),
            143 => ("DOCSIS", WIRED),
            147..=162 => ("a private use (DLT_USER)", RELABEL),
            187 | 201 | 251 | 254 | 255 | 256 => ("Bluetooth", WIRED),
            186 | 189 | 220 | 249 | 266 | 288 | 293..=295 => ("USB", WIRED),
            190 | 227 => ("a CAN bus", WIRED),
            195 | 215 | 230 | 283 => ("802.15.4", WIRED),
            197 => (
                "ERF of an Endace card",
                "strip its headers with editcap -C 18 -L -T ether IN OUT if Ethernet is in it",
            ),
            226 => ("IP over Solaris' ipnet", WIRED),
            239 => ("the log of netfilter (NFLOG)", "capture on the interface itself, with tcpdump -i DEVICE -w FILE"),
            247 => ("InfiniBand", WIRED),
            252 => ("packets exported by Wireshark", "export the packets as they were captured, with Save As"),
            253 => ("netlink messages", WIRED),
            271 => ("a vsock", WIRED),
            274 => ("Ethernet with mPackets of 802.3br", WIRED),
            _ => ("which routecast has no name for", RELABEL),
        };
        let number = self.0;
        Some(if name.starts_with("which") {
            format!("is of link type {number}, {name}; {remedy}")
        } else {
            format!("is of link type {number}: {name}, and not Ethernet or IP; {remedy}")
        })
    }
}

/// Source and destination addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Of IPv4.
    V4([u8; 8]),
    /// Of IPv6.
    V6([u8; 32]),
}

impl Addresses {
    /// The two addresses, source first.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }

    /// Those of the way back.
    pub fn reversed(self) -> Self {
        match self {
            Self::V4(mut bytes) => {
                bytes.rotate_left(4);
                Self::V4(bytes)
            }
            Self::V6(mut bytes) => {
                bytes.rotate_left(16);
                Self::V6(bytes)
            }
        }
    }
}

/// Addresses, protocol and ports of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Addresses of IP.
    pub addresses: Addresses,
    /// Protocol of IP.
    pub protocol: u8,
    /// Source and destination port of TCP, UDP or SCTP, unless the packet is a fragment.
    pub ports: Option<[u8; 4]>,
}

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const SCTP: u8 = 132;

/// Why a card does not hash a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Obstacle {
    /// Labels of MPLS stand before the addresses.
    Mpls,
    /// A header of PPP over Ethernet stands before the addresses.
    Pppoe,
    /// An outer tag of a type before 802.1ad (0x9100).
    OldTag,
    /// The capture ends before the addresses or ports.
    Cut,
    /// No packet of IP.
    NotIp,
}

/// What was found in a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The addresses that a card hashes.
    pub flow: Result<Tuple, Obstacle>,
    /// Whether the packet is a fragment.
    pub is_fragment: bool,
    /// Where the first header of IP begins.
    pub network_at: Option<usize>,
    /// Where the data of TCP or UDP begins.
    pub data_at: Option<usize>,
}

/// Most headers that are gone through.
const MOST_HEADERS: usize = 24;
/// Ports of UDP: VXLAN (RFC 7348, and that of Linux before), Geneve (RFC 8926), GTP-U (3GPP TS 29.281).
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Finds the addresses of a packet: the outer ones, or those of the innermost packet of IP.
#[must_use]
pub fn found(link: Link, bytes: &[u8], is_cut: bool, inner: bool) -> Found {
    let mut walk = Walk { bytes, at: 0, inner, obstacle: None, ip: None, network_at: None };
    let whole = link.start(bytes).and_then(|(at, next)| {
        walk.at = at;
        walk.all(next)
    });
    let missing = if whole.is_none() && is_cut { Obstacle::Cut } else { Obstacle::NotIp };
    let obstacle = if inner { None } else { walk.obstacle };
    // A tunnel whose inner packet was not captured has no inner addresses.
    let is_lost = whole.is_none() && is_cut;
    let ip = walk.ip.filter(|ip| !(is_cut && ip.lacks_ports || is_lost));
    let flow = match (obstacle, ip) {
        (Some(obstacle), _) => Err(obstacle),
        (None, Some(ip)) => Ok(ip.tuple),
        (None, None) if walk.ip.is_some() => Err(Obstacle::Cut),
        (None, None) => Err(missing),
    };
    let is_fragment = flow.is_ok() && ip.is_some_and(|ip| ip.is_fragment);
    Found { flow, is_fragment, network_at: walk.network_at, data_at: ip.and_then(|ip| ip.data_at) }
}

#[derive(Clone, Copy)]
struct Ip {
    tuple: Tuple,
    is_fragment: bool,
    lacks_ports: bool,
    data_at: Option<usize>,
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    inner: bool,
    obstacle: Option<Obstacle>,
    ip: Option<Ip>,
    network_at: Option<usize>,
}

impl Walk<'_> {
    /// Nothing where the packet ends before.
    fn all(&mut self, mut next: Next) -> Option<()> {
        for _ in 0..MOST_HEADERS {
            next = match next {
                Next::Ethernet => {
                    self.at += 14;
                    Next::Type(half(self.bytes, self.at - 2)?)
                }
                Next::Type(0x8100 | 0x88a8) => self.tag()?,
                Next::Type(0x9100 | 0x9200 | 0x9300) => {
                    self.obstacle.get_or_insert(Obstacle::OldTag);
                    self.tag()?
                }
                Next::Type(0x8847 | 0x8848) => self.labels()?,
                Next::Type(0x8864) | Next::Pppoe => {
                    self.obstacle.get_or_insert(Obstacle::Pppoe);
                    self.at += 6;
                    Next::Ppp
                }
                Next::Type(0x6558) => Next::Ethernet,
                Next::Type(0x0800 | 0x86dd) | Next::Ip => self.ip()?,
                Next::Ppp => self.ppp()?,
                Next::Type(_) | Next::Other => return Some(()),
            };
        }
        Some(())
    }

    fn tag(&mut self) -> Option<Next> {
        self.at += 4;
        Some(Next::Type(half(self.bytes, self.at - 2)?))
    }

    fn labels(&mut self) -> Option<Next> {
        self.obstacle.get_or_insert(Obstacle::Mpls);
        loop {
            let is_last = self.bytes.get(self.at + 2)? & 1 == 1;
            self.at += 4;
            if is_last {
                break;
            }
        }
        Some(match self.bytes.get(self.at)? >> 4 {
            4 | 6 => Next::Ip,
            // The control word of a pseudowire (RFC 4385).
            0 => {
                self.at += 4;
                Next::Ethernet
            }
            _ => Next::Other,
        })
    }

    fn ppp(&mut self) -> Option<Next> {
        let first = *self.bytes.get(self.at)?;
        // An odd first octet is a protocol of one octet (RFC 1661, section 6.5).
        let (protocol, length) = if first & 1 == 1 { (u16::from(first), 1) } else { (half(self.bytes, self.at)?, 2) };
        self.at += length;
        Some(match protocol {
            0x0021 | 0x0057 => Next::Ip,
            0x0281 | 0x0283 => Next::Type(0x8847),
            _ => Next::Other,
        })
    }

    fn ip(&mut self) -> Option<Next> {
        let version = self.bytes.get(self.at)? >> 4;
        self.network_at.get_or_insert(self.at);
        let (addresses, protocol, is_fragment) = match version {
            4 => self.ip4()?,
            6 => self.ip6()?,
            _ => return Some(Next::Other),
        };
        let has_ports = matches!(protocol, TCP | UDP | SCTP) && !is_fragment;
        let ports = self.bytes.get(self.at..self.at + 4).filter(|_| has_ports);
        let ports = ports.map(|ports| [ports[0], ports[1], ports[2], ports[3]]);
        let data_at = match protocol {
            UDP if has_ports => Some(self.at + 8),
            TCP if has_ports => self.bytes.get(self.at + 12).map(|byte| self.at + usize::from(byte >> 4) * 4),
            _ => None,
        };
        let tuple = Tuple { addresses, protocol, ports };
        self.ip = Some(Ip { tuple, is_fragment, lacks_ports: has_ports && ports.is_none(), data_at });
        if !self.inner || is_fragment {
            return Some(Next::Other);
        }
        // What cannot be followed further is a flow of its outer addresses.
        Some(self.tunnel(protocol, ports).unwrap_or(Next::Other))
    }

    fn ip4(&mut self) -> Option<(Addresses, u8, bool)> {
        let header = self.bytes.get(self.at..self.at + 20)?;
        let mut addresses = [0; 8];
        addresses.copy_from_slice(&header[12..20]);
        // "More fragments" and the offset are 0 in a whole datagram.
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        self.at += (usize::from(header[0] & 0x0f) * 4).max(20);
        Some((Addresses::V4(addresses), header[9], is_fragment))
    }

    fn ip6(&mut self) -> Option<(Addresses, u8, bool)> {
        let header = self.bytes.get(self.at..self.at + 40)?;
        let mut addresses = [0; 32];
        addresses.copy_from_slice(&header[8..40]);
        let mut protocol = header[6];
        self.at += 40;
        let mut is_fragment = false;
        for _ in 0..MOST_HEADERS {
            let Some(&[next, length]) = self.bytes.get(self.at..self.at + 2) else { break };
            self.at += match protocol {
                0 | 43 | 60 => 8 + usize::from(length) * 8,
                51 => 8 + usize::from(length) * 4,
                44 => {
                    let offset = half(self.bytes, self.at + 2)?;
                    is_fragment |= offset & 0xfff9 != 0;
                    8
                }
                _ => break,
            };
            protocol = next;
        }
        Some((Addresses::V6(addresses), protocol, is_fragment))
    }

    fn tunnel(&mut self, protocol: u8, ports: Option<[u8; 4]>) -> Option<Next> {
        match (protocol, ports) {
            (4 | 41, _) => Some(Next::Ip),
            (47, _) => self.gre(),
            (UDP, Some([_, _, high, low])) => {
                let port = u16::from_be_bytes([high, low]);
                self.at += 8;
                if VXLAN.contains(&port) {
                    self.at += 8;
                    return Some(Next::Ethernet);
                }
                match port {
                    GENEVE => {
                        let words = self.bytes.get(self.at)? & 0x3f;
                        let kind = half(self.bytes, self.at + 2)?;
                        self.at += 8 + usize::from(words) * 4;
                        Some(Next::Type(kind))
                    }
                    GTP_U => self.gtp(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// RFC 2784 and 2890.
    fn gre(&mut self) -> Option<Next> {
        let flags = half(self.bytes, self.at)?;
        let kind = half(self.bytes, self.at + 2)?;
        if flags & 7 != 0 {
            return None;
        }
        self.at += 4 + (flags & 0xb000).count_ones() as usize * 4;
        Some(Next::Type(kind))
    }

    fn gtp(&mut self) -> Option<Next> {
        let (flags, kind) = (*self.bytes.get(self.at)?, *self.bytes.get(self.at + 1)?);
        // Version 1, and a packet of a user.
        if flags >> 4 != 3 || kind != 0xff {
            return None;
        }
        self.at += 8;
        if flags & 7 != 0 {
            self.at += 4;
            while flags & 4 != 0 && *self.bytes.get(self.at - 1)? != 0 {
                self.at += usize::from(*self.bytes.get(self.at)?).max(1) * 4;
            }
        }
        Some(Next::Ip)
    }
}
