//! Namespaces joined by veth pairs, made for one test and removed with it; the conditions under which tests can run.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ops::ControlFlow;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use routecast_tester::Tester;
use serde_json::{Value, json};

/// MAC addresses of the ports, in the order of the chain.
pub const MACS: [&str; 4] = ["02:00:00:00:01:02", "02:00:00:00:01:01", "02:00:00:00:02:01", "02:00:00:00:02:02"];

/// Tests share two cores and the kernel's memory, so only one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub fn run(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().expect("sh runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Why tests on interfaces cannot run here; `None` if they can.
pub fn obstacle() -> Option<String> {
    if run("id -u").trim() != "0" {
        return Some("needs root".to_owned());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("needs ip (Debian: iproute2)".to_owned());
    }
    let missing = routecast_tester::sys::capabilities::missing(true);
    if !missing.is_empty() {
        return Some(format!("needs {}", missing.join(", ")));
    }
    routecast_tester::programs::obstacle().map(|why| format!("needs eBPF: {why}"))
}

/// Ends a test with a message where it cannot run.
#[macro_export]
macro_rules! bed {
    ($make:expr) => {
        match $crate::bed::obstacle() {
            Some(why) => {
                eprintln!("SKIPPED {}: {why}", module_path!());
                return;
            }
            None => $make,
        }
    };
}

/// Network namespaces `rc-a-NAME-*`.
pub struct Bed {
    name: String,
    namespaces: Vec<String>,
    _alone: MutexGuard<'static, ()>,
}

impl Bed {
    fn new(name: &str, parts: &[&str]) -> Self {
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let namespaces: Vec<_> = parts.iter().map(|part| format!("rc-a-{name}-{part}")).collect();
        for namespace in &namespaces {
            run(&format!("ip netns del {namespace} 2>/dev/null; ip netns add {namespace}"));
            run(&format!(
                "ip netns exec {namespace} sysctl -qw net.ipv6.conf.default.accept_dad=0 \
                 net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.default.autoconf=0"
            ));
        }
        Self { name: name.to_owned(), namespaces, _alone: alone }
    }

    pub fn netns(&self, part: usize) -> String {
        format!("/run/netns/{}", self.namespaces[part])
    }

    pub fn exec(&self, part: usize, command: &str) -> String {
        run(&format!("ip netns exec {} {command}", self.namespaces[part]))
    }

    fn join(&self, a: (usize, &str, &str), b: (usize, &str, &str)) {
        let (from, to) = (&self.namespaces[a.0], &self.namespaces[b.0]);
        run(&format!(
            "ip link add {} netns {from} address {} type veth peer name {} netns {to} address {}",
            a.1, a.2, b.1, b.2
        ));
        run(&format!("ip -n {from} link set {} up && ip -n {to} link set {} up", a.1, b.1));
    }

    /// gen g0 ── s0 sink
    pub fn pair(name: &str) -> Self {
        let bed = Self::new(name, &["gen", "sink"]);
        bed.join((0, "g0", MACS[0]), (1, "s0", MACS[3]));
        bed
    }

    /// gen g0 ── d0 dut d1 ── s0 sink, the kernel forwards IPv4 and IPv6
    pub fn chain(name: &str) -> Self {
        let bed = Self::new(name, &["gen", "dut", "sink"]);
        bed.join((0, "g0", MACS[0]), (1, "d0", MACS[1]));
        bed.join((1, "d1", MACS[2]), (2, "s0", MACS[3]));
        let dut = &bed.namespaces[1];
        // Frames from a program need NAPI at the other end of a veth.
        bed.exec(1, "ethtool -K d0 gro on");
        bed.exec(1, "ethtool -K d1 gro on");
        bed.exec(1, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        run(&format!("ip -n {dut} addr add 198.18.1.1/24 dev d0 && ip -n {dut} addr add 198.19.1.1/24 dev d1"));
        run(&format!(
            "ip -n {dut} addr add 2001:2:0:1::1/64 dev d0 nodad && ip -n {dut} addr add 2001:2:0:8001::1/64 dev d1 nodad"
        ));
        for (interface, mac, ipv4, ipv6) in
            [("d0", MACS[0], "198.18.1.2", "2001:2:0:1::2"), ("d1", MACS[3], "198.19.1.2", "2001:2:0:8001::2")]
        {
            run(&format!("ip -n {dut} neigh add {ipv4} lladdr {mac} dev {interface} nud permanent"));
            run(&format!("ip -n {dut} neigh add {ipv6} lladdr {mac} dev {interface} nud permanent"));
        }
        bed
    }

    /// A counter of the kernel, from `ip -s link`.
    pub fn counter(&self, part: usize, interface: &str, name: &str) -> u64 {
        let text = self.exec(part, &format!("cat /sys/class/net/{interface}/statistics/{name}"));
        text.trim().parse().expect("a number")
    }

    /// Gives what an interface receives a thread on a core; must be done again after every change of its XDP program.
    pub fn own_core(&self, part: usize, interface: &str, cpu: usize) {
        self.exec(part, &format!("ethtool -K {interface} gro on"));
        self.exec(part, &format!("sh -c 'echo 0 > /sys/class/net/{interface}/threaded'"));
        let before = napi_threads(interface);
        self.exec(part, &format!("sh -c 'echo 1 > /sys/class/net/{interface}/threaded'"));
        for thread in napi_threads(interface).iter().filter(|thread| !before.contains(thread)) {
            run(&format!("taskset -pc {cpu} {thread} && chrt -f -p 40 {thread}"));
        }
    }

    /// A tester on both ends.
    pub fn tester(&self) -> Tester {
        let last = self.namespaces.len() - 1;
        let config = json!({
            "ports": [
                {"name": "gen", "interface": "g0", "netns": self.netns(0)},
                {"name": "sink", "interface": "s0", "netns": self.netns(last)},
            ],
            "send_cpu": 0,
        });
        Tester::open(&config.to_string()).expect("the tester opens")
    }
}

fn napi_threads(interface: &str) -> Vec<String> {
    let threads = run(&format!("ps -eo pid,comm | awk '$2 ~ \"^napi/{interface}-\" {{print $1}}'"));
    threads.lines().map(str::to_owned).collect()
}

impl Drop for Bed {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            // A failing test must still remove the rest.
            let _ = Command::new("ip").args(["netns", "del", namespace]).status();
        }
    }
}

/// From gen to sink through a router, or straight.
pub fn flow(routed: bool, number: u16) -> Value {
    json!({
        "source_mac": MACS[0], "destination_mac": if routed { MACS[1] } else { MACS[3] },
        "source_address": "198.18.1.2", "destination_address": "198.19.1.2",
        "source_port": 1024 + number, "destination_port": 7,
    })
}

/// The same with IPv6.
pub fn flow_ipv6(routed: bool, number: u16) -> Value {
    json!({
        "source_mac": MACS[0], "destination_mac": if routed { MACS[1] } else { MACS[3] },
        "source_address": "2001:2:0:1::2", "destination_address": "2001:2:0:8001::2",
        "source_port": 1024 + number, "destination_port": 7,
    })
}

/// One stream of 64 B frames from gen to sink, as a trial of `duration_s`.
pub fn request(flow: &Value, rate_pps: f64, duration_s: f64) -> Value {
    json!({
        "duration_s": duration_s, "trial_id": 7, "wait_s": 0.05,
        "streams": [{"port": 0, "to_port": 1, "rate_pps": rate_pps, "sizes": [{"bytes": 64}], "flows": [flow]}],
    })
}

/// Runs a trial and returns its outcome as JSON. Other work on the machine can keep a sender from its core beyond the
/// end of a trial, which leaves frames unsent: a trial is therefore repeated a few times until all frames are sent.
pub fn trial(tester: &mut Tester, request: &Value) -> Value {
    all_sent(|| one_trial(tester, request))
}

/// Runs a trial once, whether or not it sends all frames.
pub fn one_trial(tester: &mut Tester, request: &Value) -> Value {
    let outcome = tester.trial(&request.to_string(), &|_| ControlFlow::Continue(())).expect("the trial runs");
    serde_json::to_value(outcome).expect("an outcome is JSON")
}

/// The first of a few trials that sent all frames; the last one if none did.
pub fn all_sent(mut attempt: impl FnMut() -> Value) -> Value {
    let mut outcome = attempt();
    for _ in 0..8 {
        if outcome["streams"].as_array().expect("streams").iter().all(|stream| stream["unsent_frames"] == json!(0)) {
            break;
        }
        outcome = attempt();
    }
    outcome
}
