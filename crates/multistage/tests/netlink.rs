//! A network namespace by netlink, against what `ip` says of it. Without the rights to make one nothing is tested.

use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use routecast_multistage::Namespace;
use routecast_tester::sys::netns::inside;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

fn run(command: &str) -> String {
    let done = Command::new("sh").args(["-c", command]).output().expect("a shell");
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// A network namespace with the interface `b0`, whose peer `p0` is in it too.
struct Bed {
    name: String,
}

impl Bed {
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rc-nl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: this process may not make network namespaces");
            return None;
        }
        let bed = Self { name };
        bed.ip("link add b0 address 02:00:00:00:00:01 type veth peer name p0");
        bed.ip("link set b0 up");
        bed.ip("link set p0 up");
        Some(bed)
    }

    fn ip(&self, arguments: &str) -> String {
        run(&format!("ip -n {} {arguments}", self.name))
    }

    fn exec(&self, command: &str) -> String {
        run(&format!("ip netns exec {} {command}", self.name))
    }

    fn write(&self, key: &str, value: &str) {
        self.exec(&format!("sh -c 'echo {value} > /proc/sys/net/{key}'"));
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.name)
    }

    fn open(&self) -> Namespace {
        Namespace::open(Some(&self.path())).expect("sockets")
    }

    /// Sends a datagram, which makes the kernel look for a neighbour.
    fn send(&self, to: &str) {
        let to = std::net::SocketAddr::new(address(to), 9);
        let sent = inside(Some(&self.path()), || {
            let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).expect("a socket");
            Ok(socket.send_to(b"", to))
        });
        sent.expect("the namespace").expect("a route");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn what_is_configured_is_what_ip_was_told() {
    let Some(bed) = Bed::new() else { return };
    for arguments in [
        "link set lo up",
        "address add 198.18.1.1/24 dev b0 noprefixroute",
        "address add 2001:db8:1::1/64 dev b0 nodad noprefixroute",
        "address add fe80::1/64 dev b0 nodad",
        "address add 10.1.0.1 peer 10.1.0.2/32 dev p0",
        "link set p0 down",
        "route add 198.18.1.0/24 dev b0 src 198.18.1.1 mtu lock 1500",
        "route add 198.18.2.0/24 via 198.18.1.2 dev b0 src 198.18.1.1 mtu lock 1400",
        "route add 198.18.3.0/24 via 198.18.1.3 dev b0 mtu 1300 metric 7",
        "route add default via 198.18.1.9",
        "route add blackhole 10.0.0.0/8",
        "route add unreachable 10.2.0.0/16",
        "route add prohibit 10.3.0.0/16",
        "route add throw 10.4.0.0/16",
        "route add 10.5.0.0/16 nexthop via 198.18.1.2 weight 2 nexthop via 198.18.1.3",
        "route add 10.6.0.0/16 dev b0 table 77",
        "route add 2001:db8:1::/64 dev b0 mtu lock 1500",
        "route add 2001:db8:2::/48 via 2001:db8:1::2 dev b0 metric 5",
        "route add blackhole 2001:db8:3::/48",
        "route add default via 2001:db8:1::9",
        "neighbour add 198.18.1.2 lladdr 02:00:00:00:00:02 dev b0",
        "neighbour add 2001:db8:1::2 lladdr 02:00:00:00:00:03 dev b0",
        "neighbour add 198.18.1.5 lladdr 02:00:00:00:00:05 dev b0 nud stale",
    ] {
        bed.ip(arguments);
    }
    let mut expected = [
        "link b0 up",
        "link p0 down",
        "address 198.18.1.1/24 dev b0",
        "address 2001:db8:1::1/64 dev b0",
        "address fe80::1/64 dev b0",
        "address 10.1.0.1/32 dev p0",
        "route 198.18.1.0/24 dev b0 src 198.18.1.1 mtu lock 1500",
        "route 198.18.2.0/24 dev b0 via 198.18.1.2 src 198.18.1.1 mtu lock 1400",
        "route 198.18.3.0/24 dev b0 via 198.18.1.3 mtu 1300 metric 7",
        "route default dev b0 via 198.18.1.9",
        "route blackhole 10.0.0.0/8",
        "route unreachable 10.2.0.0/16",
        "route prohibit 10.3.0.0/16",
        "route throw 10.4.0.0/16",
        "route 10.5.0.0/16 nexthop dev b0 via 198.18.1.2 weight 2 nexthop dev b0 via 198.18.1.3 weight 1",
        "route 2001:db8:1::/64 dev b0 mtu lock 1500",
        "route 2001:db8:2::/48 dev b0 via 2001:db8:1::2 metric 5",
        "route blackhole 2001:db8:3::/48",
        "route default dev b0 via 2001:db8:1::9",
        "neighbour 198.18.1.2 lladdr 02:00:00:00:00:02 dev b0",
        "neighbour 2001:db8:1::2 lladdr 02:00:00:00:00:03 dev b0",
    ];
    expected.sort_unstable();
    let mut namespace = bed.open();
    assert_eq!(namespace.contents().expect("contents"), expected);

    bed.ip("route del 198.18.2.0/24");
    bed.ip("link set b0 mtu 1600");
    let less = namespace.contents().expect("contents");
    assert_eq!(less.len(), expected.len() - 1);
    assert!(!less.iter().any(|line| line.starts_with("route 198.18.2.0/24")));
}

#[test]
fn neighbours_are_set_changed_and_removed_many_at_once() {
    let Some(bed) = Bed::new() else { return };
    let mut namespace = bed.open();
    let entries: Vec<_> = (0..500_u16)
        .map(|number| {
            let octets = number.to_be_bytes();
            let address = if number % 2 == 0 {
                address(&format!("198.18.{}.{}", octets[0], octets[1]))
            } else {
                address(&format!("2001:db8::{number:x}"))
            };
            (address, [2, 0, 0, 9, octets[0], octets[1]])
        })
        .collect();
    namespace.set_neighbours("b0", &entries).expect("set");
    let count = |bed: &Bed, what: &str| bed.ip(&format!("neighbour show dev b0 nud permanent {what}")).lines().count();
    assert_eq!(count(&bed, "") - count(&bed, "to ff00::/8"), 500);
    namespace.set_neighbours("b0", &[(address("198.18.0.4"), MAC)]).expect("changed");
    assert!(bed.ip("neighbour show 198.18.0.4 dev b0").contains("02:00:00:00:00:07 PERMANENT"));
    let all: Vec<_> = entries.iter().map(|(address, _)| *address).collect();
    namespace.remove_neighbours("b0", &all[..499]).expect("removed");
    let left: Vec<_> = namespace.contents().expect("contents");
    let left: Vec<_> = left.iter().filter(|line| line.starts_with("neighbour")).collect();
    assert_eq!(left, ["neighbour 2001:db8::1f3 lladdr 02:00:00:09:01:f3 dev b0"]);
    namespace.remove_neighbours("b0", &all).expect("what is absent is no error");
}

#[test]
fn an_error_names_the_address_and_the_others_are_set() {
    let Some(bed) = Bed::new() else { return };
    let mut namespace = bed.open();
    let entries = [(address("198.18.1.2"), MAC), (address("2001:db8::2"), MAC), (address("198.18.1.3"), MAC)];
    // IPv6 does not run on links of less than 1280 octets (RFC 8200, sec. 5).
    bed.ip("link set b0 mtu 1000");
    let error = namespace.set_neighbours("b0", &entries).expect_err("no IPv6 on this link");
    assert!(error.to_string().contains("neighbour 2001:db8::2 of b0"), "{error}");
    assert!(bed.ip("neighbour show dev b0 nud permanent").contains("198.18.1.3"));
    let absent = namespace.set_neighbours("b7", &entries).expect_err("no such interface");
    assert!(absent.to_string().contains("b7"), "{absent}");
    // The sockets still answer.
    namespace.contents().expect("contents");
}

#[test]
fn what_the_kernel_looks_for_is_reported_once_a_call_and_no_more_than_asked_for() {
    let Some(bed) = Bed::new() else { return };
    bed.ip("address add 198.18.1.1/24 dev b0");
    bed.ip("address add 2001:db8:1::1/64 dev b0 nodad");
    for version in ["ipv4", "ipv6"] {
        bed.write(&format!("{version}/neigh/b0/app_solicit"), "1");
    }
    let mut namespace = bed.open();
    assert_eq!(namespace.lookups(10).expect("lookups"), []);
    for to in ["198.18.1.7", "198.18.1.7", "198.18.1.8", "2001:db8:1::7"] {
        bed.send(to);
    }
    let first = namespace.lookups(1).expect("lookups");
    assert_eq!(first, [("b0".to_owned(), address("198.18.1.7"))]);
    let mut rest = namespace.lookups(100).expect("lookups");
    rest.sort();
    for to in ["198.18.1.8", "2001:db8:1::7"] {
        assert_eq!(rest.iter().filter(|(_, other)| *other == address(to)).count(), 1, "{rest:?}");
    }
    // Its own settings are no lookups, and neither is a removal.
    std::thread::sleep(std::time::Duration::from_millis(100));
    namespace.lookups(1000).expect("lookups");
    namespace.set_neighbours("b0", &[(address("198.18.1.20"), MAC)]).expect("set");
    namespace.remove_neighbours("b0", &[address("198.18.1.20")]).expect("removed");
    bed.ip("neighbour add 198.18.1.21 lladdr 02:00:00:00:00:07 dev b0");
    bed.ip("neighbour del 198.18.1.21 dev b0");
    let after = namespace.lookups(1000).expect("lookups");
    assert!(!after.iter().any(|(_, other)| [address("198.18.1.20"), address("198.18.1.21")].contains(other)));
    // A new name of the interface is the one that is reported.
    bed.ip("link set b0 name c0");
    bed.send("198.18.1.9");
    let renamed = namespace.lookups(1000).expect("lookups");
    assert!(renamed.contains(&("c0".to_owned(), address("198.18.1.9"))), "{renamed:?}");
}

#[test]
fn a_socket_whose_buffer_was_full_goes_on() {
    let Some(bed) = Bed::new() else { return };
    let mut namespace = bed.open();
    let mut other = bed.open();
    let entries: Vec<_> =
        (0..4000_u16).map(|number| (address(&format!("198.19.{}.{}", number >> 8, number & 255)), MAC)).collect();
    other.set_neighbours("b0", &entries).expect("set");
    let drops = |line: &str| line.split_whitespace().nth(8)?.parse::<u64>().ok();
    let sockets = bed.exec("cat /proc/net/netlink");
    assert!(sockets.lines().filter_map(drops).sum::<u64>() > 0, "the buffer was never full: {sockets}");
    assert_eq!(namespace.lookups(10).expect("a full buffer is no error"), []);
    other.lookups(10).expect("lookups");
}
