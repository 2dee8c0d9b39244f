//! The configuration of a network namespace by netlink: what its kernel asks for, its neighbours, and all that is set.
//!
//! A process of `ip` takes milliseconds; these calls take microseconds, because a namespace is joined once, for the two
//! sockets: one hears reports, the other one asks.

use std::collections::{HashMap, HashSet};
use std::io::{Error, ErrorKind};
use std::net::IpAddr;
use std::num::NonZeroI32;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::{
    ErrorBuffer, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload, NlaBuffer, Parseable,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressProtocol};
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkFlags, LinkHeader, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourHeader, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteType,
    RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use routecast_tester::sys::netns;
use routecast_tester::{Result, TesterError};

use crate::plane::Mac;

/// Groups of reports (`linux/rtnetlink.h`).
const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_NEIGH: u32 = 3;
/// Types of messages.
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const IFLA_IFNAME: u16 = 3;
/// Octets of the header of a message of a link, before its attributes.
const LINK_HEADER: usize = 16;
const NEIGHBOUR_HEADER: usize = 12;
const RTAX_MTU: u32 = 2;
/// Most octets of a message: the kernel fills at most 32 KiB of a dump at once.
const BUFFER: usize = 1 << 16;
/// The kernel answers all messages of one call before it returns; so many answers fit the socket's buffer.
const MOST_AT_ONCE: usize = 64;
/// Times that a dump is repeated, because what it lists changed meanwhile.
const DUMPS: usize = 10;
/// Metric of an IPv6 route for which none was stated (`IP6_RT_PRIO_USER`); that of IPv4 is 0.
const IPV6_METRIC: u32 = 1024;

/// Two netlink sockets in a network namespace.
pub struct Namespace {
    reports: Socket,
    requests: Socket,
    sequence: u32,
    /// Names of interfaces by index, kept current by the reports.
    names: HashMap<u32, String>,
    buffer: Vec<u8>,
}

fn failed(what: impl Into<String>) -> impl FnOnce(Error) -> TesterError {
    let what = what.into();
    move |error| TesterError::System { what, error }
}

fn malformed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidData, error.to_string())
}

/// A raw code of the kernel, negative.
fn error_of(code: NonZeroI32) -> Error {
    Error::from_raw_os_error(-code.get())
}

fn receive(socket: &Socket, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        buffer.clear();
        match socket.recv(buffer, 0) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result.map(|_| ()),
        }
    }
}

/// Calls `each` with each message of a datagram, until it says that it has enough.
fn each_message<'a>(
    mut data: &'a [u8],
    mut each: impl FnMut(&NetlinkBuffer<&'a [u8]>) -> std::io::Result<bool>,
) -> std::io::Result<()> {
    while !data.is_empty() {
        let message = NetlinkBuffer::new_checked(data).map_err(malformed)?;
        if each(&message)? {
            return Ok(());
        }
        data = data.get((message.length() as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(())
}

fn serialized(message: RouteNetlinkMessage, flags: u16, sequence: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut octets = vec![0; message.buffer_len().next_multiple_of(4)];
    message.serialize(&mut octets);
    octets
}

/// Index, name and flags of a link. Its other attributes, which are many, are not parsed.
fn link_of(payload: &[u8]) -> std::io::Result<(u32, String, LinkFlags)> {
    let header = LinkHeader::parse(payload).map_err(malformed)?;
    let mut at = payload.get(LINK_HEADER..).unwrap_or_default();
    while !at.is_empty() {
        let attribute = NlaBuffer::new_checked(at).map_err(malformed)?;
        if attribute.kind() == IFLA_IFNAME {
            let name = attribute.value().split(|&octet| octet == 0).next().unwrap_or_default();
            return Ok((header.index, String::from_utf8_lossy(name).into_owned(), header.flags));
        }
        at = at.get(usize::from(attribute.length()).next_multiple_of(4)..).unwrap_or_default();
    }
    Err(malformed("a link without a name"))
}

fn route_address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn neighbour_address(attributes: &[NeighbourAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some((*address).into()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some((*address).into()),
        _ => None,
    })
}

fn family_of(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// A MAC address as text.
fn text_of(mac: &[u8]) -> String {
    mac.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":")
}

/// The type of a route as `ip` names it; `None` for the usual one.
fn kind_of(kind: RouteType) -> Option<String> {
    let name = match kind {
        RouteType::Unicast => return None,
        RouteType::Local => "local",
        RouteType::Broadcast => "broadcast",
        RouteType::Anycast => "anycast",
        RouteType::Multicast => "multicast",
        RouteType::BlackHole => "blackhole",
        RouteType::Unreachable => "unreachable",
        RouteType::Prohibit => "prohibit",
        RouteType::Throw => "throw",
        other => return Some(format!("type {}", u8::from(other))),
    };
    Some(name.to_owned())
}

impl Namespace {
    /// Opens the sockets in the namespace at `path`; without a path, in that of the calling thread.
    ///
    /// # Errors
    ///
    /// The namespace cannot be joined, or the kernel refuses.
    pub fn open(path: Option<&str>) -> Result<Self> {
        let (reports, requests) = netns::inside(path, || {
            let open = || {
                let mut requests = Socket::new(NETLINK_ROUTE)?;
                requests.bind_auto()?;
                requests.connect(&SocketAddr::new(0, 0))?;
                // The kernel then filters routes by their table, and repeats no request in its answer.
                requests.set_netlink_get_strict_chk(true)?;
                requests.set_cap_ack(true)?;
                let mut reports = Socket::new(NETLINK_ROUTE)?;
                reports.bind_auto()?;
                reports.set_non_blocking(true)?;
                reports.add_membership(RTNLGRP_NEIGH)?;
                reports.add_membership(RTNLGRP_LINK)?;
                Ok((reports, requests))
            };
            open().map_err(failed("opening a netlink socket"))
        })?;
        let buffer = Vec::with_capacity(BUFFER);
        Ok(Self { reports, requests, sequence: 0, names: HashMap::new(), buffer })
    }

    /// The descriptor of the socket that hears reports, to wait for one.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.reports.as_raw_fd()
    }

    /// Interfaces and addresses of neighbours that the kernel looked for and did not find, or asks user space for
    /// (`app_solicit`), since the last call: each once, at most `limit` of them. It never waits.
    ///
    /// # Errors
    ///
    /// The socket fails. That it was full is no error: what was lost comes again while somebody needs the neighbour.
    pub fn lookups(&mut self, limit: usize) -> Result<Vec<(String, IpAddr)>> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut result = Ok(());
        while found.len() < limit {
            match receive(&self.reports, &mut buffer) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    // A report of a link may have been among the lost ones.
                    self.names.clear();
                    continue;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            let names = &mut self.names;
            result = each_message(&buffer, |message| {
                match message.message_type() {
                    RTM_NEWLINK | RTM_DELLINK => {
                        let (index, name, _) = link_of(message.payload())?;
                        names.remove(&index);
                        if message.message_type() == RTM_NEWLINK {
                            names.insert(index, name);
                        }
                    }
                    // Reports with the number of a port come from what a process did, such as the removal of a neighbour.
                    RTM_NEWNEIGH | RTM_GETNEIGH if message.port_number() == 0 => {
                        let header = NeighbourHeader::parse(message.payload()).map_err(malformed)?;
                        let is_sought = message.message_type() == RTM_GETNEIGH
                            || matches!(header.state, NeighbourState::Incomplete | NeighbourState::Failed);
                        let is_ip = matches!(header.family, AddressFamily::Inet | AddressFamily::Inet6);
                        if is_sought && is_ip {
                            let neighbour = NeighbourMessage::parse(message.payload()).map_err(malformed)?;
                            if let Some(address) = neighbour_address(&neighbour.attributes)
                                && seen.insert((header.ifindex, address))
                            {
                                found.push((header.ifindex, address));
                            }
                        }
                    }
                    _ => {}
                }
                Ok(false)
            });
            if result.is_err() {
                break;
            }
        }
        self.buffer = buffer;
        result.map_err(failed("hearing the kernel's reports of neighbours"))?;
        if found.iter().any(|(index, _)| !self.names.contains_key(index)) {
            self.names = self.links()?.into_iter().map(|(index, name, _)| (index, name)).collect();
        }
        // An interface that is gone needs no neighbours.
        Ok(found.into_iter().filter_map(|(index, address)| Some((self.names.get(&index)?.clone(), address))).collect())
    }

    /// Makes each of these addresses a permanent neighbour with its MAC address, or changes the one that is there.
    ///
    /// # Errors
    ///
    /// There is no such interface, or the kernel refuses one; all others are set nevertheless.
    pub fn set_neighbours(&mut self, interface: &str, entries: &[(IpAddr, Mac)]) -> Result<()> {
        let index = self.index_of(interface)?;
        self.acknowledged(entries.len(), None, |number| {
            let (address, mac) = entries[number];
            let mut message = NeighbourMessage::default();
            message.header.family = family_of(address);
            message.header.ifindex = index;
            message.header.state = NeighbourState::Permanent;
            message.header.kind = RouteType::Unicast;
            message.attributes = vec![
                NeighbourAttribute::Destination(address.into()),
                NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
            ];
            (RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
        })
        .map_err(|(number, error)| failed(format!("setting the neighbour {} of {interface}", entries[number].0))(error))
    }

    /// Removes these neighbours; those that are not there need no removal.
    ///
    /// # Errors
    ///
    /// There is no such interface, or the kernel refuses one; all others are removed nevertheless.
    pub fn remove_neighbours(&mut self, interface: &str, addresses: &[IpAddr]) -> Result<()> {
        let index = self.index_of(interface)?;
        self.acknowledged(addresses.len(), Some(libc::ENOENT), |number| {
            let mut message = NeighbourMessage::default();
            message.header.family = family_of(addresses[number]);
            message.header.ifindex = index;
            message.attributes = vec![NeighbourAttribute::Destination(addresses[number].into())];
            (RouteNetlinkMessage::DelNeighbour(message), 0)
        })
        .map_err(|(number, error)| {
            failed(format!("removing the neighbour {} of {interface}", addresses[number]))(error)
        })
    }

    /// What is configured, a line for each address, link, permanent neighbour and route of the main table, sorted.
    ///
    /// What the kernel made by itself is left out: routes of its protocol, link-local addresses, the interface `lo`.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn contents(&mut self) -> Result<Vec<String>> {
        let links = self.links()?;
        let names: HashMap<u32, String> = links.iter().map(|(index, name, _)| (*index, name.clone())).collect();
        let name = |index: u32| names.get(&index).map_or("?", String::as_str);
        let mut contents: Vec<String> = links
            .iter()
            .filter(|(_, name, _)| name != "lo")
            .map(|(_, name, flags)| {
                format!("link {name} {}", if flags.contains(LinkFlags::Up) { "up" } else { "down" })
            })
            .collect();
        let addresses = self.dump(RTM_NEWADDR, || RouteNetlinkMessage::GetAddress(AddressMessage::default()));
        for payload in addresses.map_err(failed("listing the addresses"))? {
            let address = AddressMessage::parse(payload.as_slice()).map_err(|error| unreadable("address", &error))?;
            if name(address.header.index) != "lo" {
                contents.extend(address_line(&address, name(address.header.index)));
            }
        }
        let neighbours = self.dump(RTM_NEWNEIGH, || RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()));
        for payload in neighbours.map_err(failed("listing the neighbours"))? {
            let header = NeighbourHeader::parse(&payload[..NEIGHBOUR_HEADER])
                .map_err(|error| unreadable("neighbour", &error))?;
            if header.state == NeighbourState::Permanent {
                let neighbour =
                    NeighbourMessage::parse(payload.as_slice()).map_err(|error| unreadable("neighbour", &error))?;
                contents.extend(neighbour_line(&neighbour, name(header.ifindex)));
            }
        }
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let request = || {
                let mut message = RouteMessage::default();
                message.header.address_family = family;
                message.header.table = RouteHeader::RT_TABLE_MAIN;
                RouteNetlinkMessage::GetRoute(message)
            };
            for payload in self.dump(RTM_NEWROUTE, request).map_err(failed("listing the routes"))? {
                let route = RouteMessage::parse(payload.as_slice()).map_err(|error| unreadable("route", &error))?;
                if route.header.address_family == family {
                    contents.extend(route_line(&route, &name));
                }
            }
        }
        contents.sort_unstable();
        Ok(contents)
    }

    fn links(&mut self) -> Result<Vec<(u32, String, LinkFlags)>> {
        let request = || {
            let mut message = LinkMessage::default();
            message.attributes = vec![LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats])];
            RouteNetlinkMessage::GetLink(message)
        };
        let links = self.dump(RTM_NEWLINK, request).and_then(|links| links.iter().map(|link| link_of(link)).collect());
        links.map_err(failed("listing the interfaces"))
    }

    fn index_of(&mut self, interface: &str) -> Result<u32> {
        let links = self.links()?;
        let found = links.into_iter().find(|(_, name, _)| name == interface);
        found
            .map(|(index, ..)| index)
            .ok_or_else(|| TesterError::value("interface", interface, "an interface of this network namespace"))
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.sequence
    }

    /// Sends `count` requests, and waits for the answer of each; the first error with the number of its request.
    fn acknowledged(
        &mut self,
        count: usize,
        harmless: Option<i32>,
        request: impl Fn(usize) -> (RouteNetlinkMessage, u16),
    ) -> std::result::Result<(), (usize, Error)> {
        let mut result = Ok(());
        for first in (0..count).step_by(MOST_AT_ONCE) {
            let numbers = first..count.min(first + MOST_AT_ONCE);
            let mut sequences = HashMap::new();
            let mut octets = Vec::new();
            for number in numbers.clone() {
                let sequence = self.next_sequence();
                sequences.insert(sequence, number);
                let (message, flags) = request(number);
                octets.extend(serialized(message, NLM_F_ACK | flags, sequence));
            }
            self.requests.send(&octets, 0).map_err(|error| (first, error))?;
            while !sequences.is_empty() {
                receive(&self.requests, &mut self.buffer).map_err(|error| (first, error))?;
                let answered = each_message(&self.buffer, |message| {
                    if message.message_type() == NLMSG_ERROR
                        && let Some(number) = sequences.remove(&message.sequence_number())
                    {
                        let code = ErrorBuffer::new_checked(message.payload()).map_err(malformed)?.code();
                        if let Some(error) = code.map(error_of)
                            && (harmless.is_none() || error.raw_os_error() != harmless)
                            && result.is_ok()
                        {
                            result = Err((number, error));
                        }
                    }
                    Ok(false)
                });
                answered.map_err(|error| (first, error))?;
            }
        }
        result
    }

    /// The messages of a type that answer a request for all; again, if they changed while the kernel listed them.
    fn dump(&mut self, kind: u16, request: impl Fn() -> RouteNetlinkMessage) -> std::io::Result<Vec<Vec<u8>>> {
        for _ in 0..DUMPS {
            let sequence = self.next_sequence();
            self.requests.send(&serialized(request(), NLM_F_DUMP, sequence), 0)?;
            let (mut is_done, mut is_torn) = (false, false);
            let mut found = Vec::new();
            while !is_done {
                receive(&self.requests, &mut self.buffer)?;
                each_message(&self.buffer, |message| {
                    if message.sequence_number() != sequence {
                        return Ok(false);
                    }
                    is_torn |= message.flags() & NLM_F_DUMP_INTR != 0;
                    match message.message_type() {
                        NLMSG_DONE => is_done = true,
                        NLMSG_ERROR => {
                            let code = ErrorBuffer::new_checked(message.payload()).map_err(malformed)?.code();
                            let error = code.map_or_else(|| malformed("an answer without a list"), error_of);
                            // A table that has never had a route, a kernel without IPv6.
                            let nothing = [libc::ENOENT, libc::EOPNOTSUPP, libc::EAFNOSUPPORT];
                            if !error.raw_os_error().is_some_and(|code| nothing.contains(&code)) {
                                return Err(error);
                            }
                            is_done = true;
                        }
                        other if other == kind => found.push(message.payload().to_vec()),
                        _ => {}
                    }
                    Ok(is_done)
                })?;
            }
            if !is_torn {
                return Ok(found);
            }
        }
        Err(Error::new(ErrorKind::Interrupted, format!("what it lists changed during each of {DUMPS} attempts")))
    }
}

fn unreadable(what: &str, error: &netlink_packet_core::DecodeError) -> TesterError {
    failed(format!("reading a {what} in the kernel's answer"))(malformed(error))
}

fn address_line(address: &AddressMessage, interface: &str) -> Option<String> {
    let mut local = None;
    let mut peer = None;
    for attribute in &address.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => peer = Some(*address),
            AddressAttribute::Protocol(AddressProtocol::LinkLocal) => return None,
            _ => {}
        }
    }
    Some(format!("address {}/{} dev {interface}", local.or(peer)?, address.header.prefix_len))
}

fn neighbour_line(neighbour: &NeighbourMessage, interface: &str) -> Option<String> {
    let address = neighbour_address(&neighbour.attributes)?;
    let link = neighbour.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(mac) => Some(text_of(mac)),
        _ => None,
    });
    Some(format!("neighbour {address} lladdr {} dev {interface}", link.unwrap_or_default()))
}

/// Device and next hop of a route or of one of its next hops, each with its keyword.
fn hop_of<'a>(attributes: &[RouteAttribute], index: Option<u32>, name: &impl Fn(u32) -> &'a str) -> Vec<String> {
    let mut via = None;
    let mut interface = index;
    for attribute in attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::Gateway(address) => via = route_address(address).map(|address| format!("via {address}")),
            RouteAttribute::Via(RouteVia::Inet6(address)) => via = Some(format!("via inet6 {address}")),
            _ => {}
        }
    }
    interface.map(|index| format!("dev {}", name(index))).into_iter().chain(via).collect()
}

fn route_line<'a>(route: &RouteMessage, name: &impl Fn(u32) -> &'a str) -> Option<String> {
    let header = &route.header;
    if header.protocol == RouteProtocol::Kernel || header.flags.contains(RouteFlags::Cloned) {
        return None;
    }
    let usual_metric = if header.address_family == AddressFamily::Inet6 { IPV6_METRIC } else { 0 };
    let (mut destination, mut source) = (None, None);
    let (mut table, mut metric) = (u32::from(header.table), usual_metric);
    let (mut mtu, mut locks) = (None, 0);
    let mut hops = Vec::new();
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(address) => destination = route_address(address),
            RouteAttribute::PrefSource(address) => source = route_address(address),
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Priority(number) => metric = *number,
            RouteAttribute::Metrics(metrics) => {
                for metric in metrics {
                    match metric {
                        RouteMetric::Mtu(octets) => mtu = Some(*octets),
                        RouteMetric::Lock(bits) => locks = *bits,
                        _ => {}
                    }
                }
            }
            RouteAttribute::MultiPath(next_hops) => {
                for hop in next_hops {
                    hops.push("nexthop".to_owned());
                    hops.extend(hop_of(&hop.attributes, Some(hop.interface_index), name));
                    hops.push(format!("weight {}", u32::from(hop.hops) + 1));
                }
            }
            _ => {}
        }
    }
    if table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        return None;
    }
    let mut parts = vec!["route".to_owned()];
    parts.extend(kind_of(header.kind));
    parts.push(match destination {
        Some(address) => format!("{address}/{}", header.destination_prefix_length),
        None => "default".to_owned(),
    });
    // Linux puts IPv6 routes that lead nowhere on `lo`.
    if header.kind == RouteType::Unicast {
        parts.extend(hop_of(&route.attributes, None, name));
    }
    parts.extend(source.map(|address| format!("src {address}")));
    let lock = if locks >> RTAX_MTU & 1 == 1 { "lock " } else { "" };
    parts.extend(mtu.map(|octets| format!("mtu {lock}{octets}")));
    if metric != usual_metric {
        parts.push(format!("metric {metric}"));
    }
    if header.tos != 0 {
        parts.push(format!("tos {:#04x}", header.tos));
    }
    parts.extend(hops);
    Some(parts.join(" "))
}
