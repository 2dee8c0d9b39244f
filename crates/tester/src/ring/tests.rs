//! Back ends against each other over a veth pair between two namespaces of our own.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::config::Timestamps;
use crate::error::{Result, TesterError};
use crate::frame::Templates;
use crate::plan::Plan;
use crate::port::{Control, Expected, ReceiveReport, Receiver, SendReport, Sender, Sending};
use crate::request::Request;
use crate::sys::clock::monotonic_ns;
use crate::sys::interface::Interface;
use crate::sys::{netns, thread};

/// Two namespaces joined by veth, removed when dropped.
struct Bed {
    name: String,
}

impl Bed {
    /// `None`, said aloud, where namespaces cannot be made.
    fn new(name: &str) -> Option<Self> {
        let bed = Self { name: format!("rc-b-{name}") };
        // What a killed test left.
        bed.remove();
        let outcome = bed.make();
        if outcome.is_none() {
            eprintln!("SKIPPED: needs root and iproute2 to make network namespaces");
        }
        outcome.map(|()| bed)
    }

    fn make(&self) -> Option<()> {
        let (gen_, sink) = (self.netns_name("gen"), self.netns_name("sink"));
        for netns in [&gen_, &sink] {
            ip(&["netns", "add", netns])?;
            // Neighbour discovery would be foreign traffic.
            ip(&["netns", "exec", netns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"])?;
            ip(&["netns", "exec", netns, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"])?;
        }
        ip(&[
            "-n",
            &gen_,
            "link",
            "add",
            "g0",
            "address",
            "02:00:00:00:01:02",
            "mtu",
            "9200",
            "type",
            "veth",
            "peer",
            "s0",
            "netns",
            &sink,
        ])?;
        ip(&["-n", &sink, "link", "set", "s0", "mtu", "9200", "address", "02:00:00:00:02:02", "up"])?;
        ip(&["-n", &gen_, "link", "set", "g0", "up"])
    }

    fn netns_name(&self, role: &str) -> String {
        format!("{}-{role}", self.name)
    }

    fn inside<T: Send>(
        &self,
        role: &str,
        interface: &str,
        work: impl FnOnce(&Interface) -> Result<T> + Send,
    ) -> Result<T> {
        let path = format!("/run/netns/{}", self.netns_name(role));
        netns::inside(Some(&path), || work(&Interface::find(interface, Some(&path))?))
    }

    fn remove(&self) {
        for role in ["gen", "sink"] {
            let _ = ip(&["netns", "del", &self.netns_name(role)]);
        }
    }

    fn sender(&self, back_end: &str) -> Box<dyn Sender> {
        let opened: Result<Box<dyn Sender>> = self.inside("gen", "g0", |interface| match back_end {
            "af_packet" => PacketSender::open(interface).map(|sender| Box::new(sender) as Box<dyn Sender>),
            _ => XdpSender::open(interface).map(|sender| Box::new(sender) as Box<dyn Sender>),
        });
        opened.unwrap()
    }

    fn receiver(&self) -> PacketReceiver {
        let how = Receiving { cpu: None, priority: 0, timestamps: Timestamps::Auto };
        self.inside("sink", "s0", |interface| PacketReceiver::open(interface, how)).unwrap()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(arguments: &[&str]) -> Option<()> {
    let output = Command::new("ip").args(arguments).output().ok()?;
    output.status.success().then_some(())
}

const BACK_ENDS: [&str; 2] = ["af_packet", "af_xdp"];

fn flow(nth: usize, ipv6: bool) -> Value {
    let [source, destination] = if ipv6 { ["2001:2:0:1::2", "2001:2:0:8001::2"] } else { ["198.18.1.2", "198.19.1.2"] };
    json!({"source_mac": "02:00:00:00:01:02", "destination_mac": "02:00:00:00:02:02", "source_address": source,
           "destination_address": destination, "source_port": 1024 + nth, "destination_port": 7})
}

fn request(duration_s: f64, rate_pps: f64, more: &Value) -> Request {
    let mut stream =
        json!({"port": 0, "to_port": 1, "rate_pps": rate_pps, "sizes": [{"bytes": 64}], "flows": [flow(0, false)]});
    for (key, value) in more.as_object().unwrap() {
        stream[key] = value.clone();
    }
    Request::parse(&json!({"duration_s": duration_s, "trial_id": 9, "streams": [stream]}).to_string(), 2).unwrap()
}

struct Seen {
    plan: Plan,
    sent: SendReport,
    received: ReceiveReport,
}

impl Seen {
    /// Nothing is lost on a veth without a queue, and everything is counted.
    fn is_complete(&self) {
        let (sent, received) = (&self.sent.streams[0], &self.received.streams[0]);
        assert_eq!((sent.frames, received.frames), (self.plan.frames(), self.plan.frames()), "sent and received");
        assert_eq!((received.duplicated, received.reordered, received.corrupted), (0, 0, 0));
        assert_eq!((self.received.foreign, self.received.misrouted, self.received.overrun), (0, 0, 0));
        assert_eq!(received.latency.count, received.frames);
    }
}

/// A trial in which everything that was planned was sent, and received in time. Other work on the machine can keep a
/// sender from its core beyond the end of a trial, which leaves frames unsent, or a receiver until its ring or the kernel's
/// backlog is full, which they say; every other frame that was sent is received and counted all the same.
fn trial(sender: &mut dyn Sender, receiver: &mut PacketReceiver, request: &Request) -> Seen {
    undisturbed(sender, receiver, request).expect("other work on this machine leaves no attempt undisturbed")
}

/// [`trial`], or `None` where every attempt was disturbed: the rate may be more than this machine carries.
fn undisturbed(sender: &mut dyn Sender, receiver: &mut PacketReceiver, request: &Request) -> Option<Seen> {
    for _ in 0..20 {
        let before = backlog_drops();
        let seen = attempt(sender, receiver, request);
        let (sent, arrived) = (seen.sent.streams[0].frames, seen.received.streams[0].frames);
        let full = seen.received.overrun + backlog_drops() - before;
        assert!(arrived <= sent && sent - arrived <= full, "sent {sent}, received {arrived}, no room for {full}");
        if arrived == seen.plan.frames() {
            return Some(seen);
        }
        eprintln!("{arrived} of {sent} of {} frames, no room for {full}: trying again", seen.plan.frames());
    }
    None
}

/// How many frames the kernel had no room for on the way to a receiver, on all cores.
fn backlog_drops() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let of_core = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
    text.lines().map(of_core).sum()
}

fn attempt(sender: &mut dyn Sender, receiver: &mut PacketReceiver, request: &Request) -> Seen {
    let templates = Templates::new(&request.streams[0].flows, &request.streams[0].encapsulation).unwrap();
    let plan = Plan::new(request, 0, &templates).unwrap();
    receiver
        .reset(request.trial_id, &[Expected { stream: 0, frames: plan.frames(), flows: templates.flows.len() as u32 }])
        .unwrap();
    let sending =
        Sending { stream: 0, port: 0, plan: &plan, templates: &templates, warmup_frames: plan.warmup_frames() };
    let control = Control::default();
    let sent = std::thread::scope(|threads| {
        let sending = threads.spawn(|| {
            let _ = thread::prioritise(40);
            sender.send(&[sending], request.trial_id, monotonic_ns() + 1_000_000, &control)
        });
        sending.join().unwrap().unwrap()
    });
    assert_eq!(control.sent.load(Ordering::Relaxed), plan.warmup_frames() + sent.streams[0].frames);
    settle(receiver, plan.warmup_frames() + sent.streams[0].frames);
    let mut report = receiver.collect().unwrap();
    // The thread that counts may be kept from its core for long, and says what it has not counted in time.
    for _ in 0..10 {
        if report.overrun == 0 {
            break;
        }
        report = receiver.collect().unwrap();
    }
    Seen { plan, sent, received: report }
}

/// Waits until so many frames have arrived, or long enough for any that are held up on a core that is busy.
fn settle(receiver: &PacketReceiver, frames: u64) {
    let began = Instant::now();
    while receiver.seen().unwrap() < frames && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn each_back_end_sends_what_is_planned_and_the_ring_counts_it() {
    let Some(bed) = Bed::new("counts") else { return };
    let mut receiver = bed.receiver();
    for back_end in BACK_ENDS {
        let mut sender = bed.sender(back_end);
        let mix = json!({
            "sizes": [{"bytes": 64, "weight": 7}, {"bytes": 594, "weight": 4}, {"bytes": 1518, "weight": 1}],
            "flows": (0..5).map(|nth| flow(nth, false)).collect::<Vec<_>>(),
        });
        let mixed = trial(&mut *sender, &mut receiver, &request(0.12, 1e5, &mix));
        mixed.is_complete();
        assert_eq!(mixed.received.streams[0].flows, [2400; 5]);
        assert_eq!(mixed.received.streams[0].bytes, 1000 * (7 * 64 + 4 * 594 + 1518));
        let ipv6 = json!({"sizes": [{"bytes": 84}, {"bytes": 1280}], "flows": [flow(0, true), flow(1, true)]});
        trial(&mut *sender, &mut receiver, &request(0.1, 2e4, &ipv6)).is_complete();
        let jumbo = if back_end == "af_packet" { 9216 } else { 4100 };
        trial(&mut *sender, &mut receiver, &request(0.1, 2e3, &json!({"sizes": [{"bytes": jumbo}]}))).is_complete();
    }
}

/// The rate is the planned one up to the lateness that the sender reports: the first and the last frame leave 0 to
/// `latest_ns` after they are due, so a schedule that drifts shows whatever else the machine does.
#[test]
fn the_rate_is_the_intended_one_up_to_the_reported_lateness() {
    let Some(bed) = Bed::new("rate") else { return };
    let mut receiver = bed.receiver();
    for back_end in BACK_ENDS {
        let mut sender = bed.sender(back_end);
        for (mut rate_pps, duration_s) in [(1.0, 1.1), (10.0, 0.4), (1e3, 0.2), (1e5, 0.2), (3e5, 0.2)] {
            // Benches measure how fast a sender is: a machine that is too slow for the highest rate is asked for less.
            let seen = loop {
                let request = request(duration_s, rate_pps, &json!({}));
                match undisturbed(&mut *sender, &mut receiver, &request) {
                    Some(seen) => break seen,
                    None if rate_pps > 1e5 => rate_pps /= 2.0,
                    None => panic!("other work on this machine leaves no attempt undisturbed"),
                }
            };
            seen.is_complete();
            let sent = &seen.sent.streams[0];
            let planned_ns = (sent.frames - 1) as f64 * 1e9 / rate_pps;
            let error_ns = ((sent.last_ns - sent.first_ns) as f64 - planned_ns).abs();
            // Instants are whole nanoseconds.
            let bound_ns = sent.latest_ns as f64 + 2.0;
            assert!(error_ns <= bound_ns, "{back_end} at {rate_pps} pps: {error_ns} ns, of {bound_ns} ns");
        }
    }
}

#[test]
fn no_frame_leaves_before_it_is_due_and_bursts_stay_together() {
    let Some(bed) = Bed::new("bursts") else { return };
    let mut receiver = bed.receiver();
    for back_end in BACK_ENDS {
        let mut sender = bed.sender(back_end);
        let bursts = json!({"schedule": {"kind": "bursts", "burst_frames": 64}});
        let seen = trial(&mut *sender, &mut receiver, &request(0.5, 6.4e3, &bursts));
        seen.is_complete();
        assert_eq!(seen.plan.frames(), 3200);
        // 50 bursts in 0.5 s: the longest pause is the 10 ms between two of them, less a burst, or a stall more.
        assert!(seen.received.streams[0].longest_gap_ns > 9_000_000, "{}", seen.received.streams[0].longest_gap_ns);
        let sent = &seen.sent.streams[0];
        assert!(sent.first_ns >= seen.sent.start_ns && sent.last_ns >= seen.sent.start_ns + 490_000_000);
        assert!(seen.sent.batch > 1, "frames that are due together are handed over together");
    }
}

#[test]
fn a_warm_up_and_frames_of_another_trial_are_not_counted() {
    let Some(bed) = Bed::new("warmup") else { return };
    let mut receiver = bed.receiver();
    let mut sender = bed.sender("af_packet");
    let mut request = request(0.05, 1e4, &json!({}));
    request.warmup_s = 0.02;
    let seen = trial(&mut *sender, &mut receiver, &request);
    seen.is_complete();
    assert_eq!((seen.plan.warmup_frames(), seen.received.stale), (200, 200));
    assert!(seen.sent.streams[0].first_ns >= seen.sent.start_ns + 20_000_000);
}

/// The delay of a veth is some microseconds; clocks that are not brought together would be off by years.
#[test]
fn delays_are_those_of_a_veth() {
    let Some(bed) = Bed::new("delay") else { return };
    let mut receiver = bed.receiver();
    for back_end in BACK_ENDS {
        let mut sender = bed.sender(back_end);
        let seen = trial(&mut *sender, &mut receiver, &request(0.2, 1e4, &json!({})));
        seen.is_complete();
        let latency = &seen.received.streams[0].latency;
        assert!((1..100_000).contains(&latency.min_ns), "{back_end}: {} ns", latency.min_ns);
    }
}

/// 12 000 frames of 9216 B are 110 MB, more than the ring holds: the rest is the tester's loss, not the device's.
#[test]
fn frames_that_the_ring_has_no_room_for_are_counted() {
    let Some(bed) = Bed::new("overrun") else { return };
    let mut receiver = bed.receiver();
    let mut sender = bed.sender("af_packet");
    let request = request(0.3, 4e4, &json!({"sizes": [{"bytes": 9216}]}));
    let templates = Templates::new(&request.streams[0].flows, &request.streams[0].encapsulation).unwrap();
    let plan = Plan::new(&request, 0, &templates).unwrap();
    receiver.reset(request.trial_id, &[Expected { stream: 0, frames: plan.frames(), flows: 1 }]).unwrap();
    let sending = Sending { stream: 0, port: 0, plan: &plan, templates: &templates, warmup_frames: 0 };
    let held = receiver.hold();
    let mut sent = 0;
    // An attempt that other work on the machine disturbs sends less; frames of another one are duplicates.
    while sent < 12_000 {
        sent += sender.send(std::slice::from_ref(&sending), request.trial_id, 0, &Control::default()).unwrap().streams
            [0]
        .frames;
    }
    drop(held);
    settle(&receiver, sent);
    let report = receiver.collect().unwrap();
    assert!(report.overrun > 0, "the ring held everything");
    assert_eq!(report.streams[0].frames + report.streams[0].duplicated + report.overrun, sent);
}

/// The driver of a veth stamps frames in software when it takes them.
#[test]
fn probes_say_how_long_the_hand_over_takes() {
    let Some(bed) = Bed::new("probes") else { return };
    let mut receiver = bed.receiver();
    let mut sender = bed.sender("af_packet");
    assert_eq!(sender.facts()["hand_over"], Value::Null);
    let seen = trial(&mut *sender, &mut receiver, &request(0.2, 1e4, &json!({})));
    seen.is_complete();
    let hand_over = sender.facts()["hand_over"].clone();
    assert!(hand_over["probes"].as_u64().unwrap() >= 5, "{hand_over}");
    let least_ns = hand_over["min_ns"].as_u64().unwrap();
    assert!(least_ns > 0 && least_ns < 1_000_000, "{hand_over}");
    // What the driver takes has not yet arrived.
    assert!(least_ns < seen.received.streams[0].latency.max_ns, "{hand_over}");
}

#[test]
fn a_frame_longer_than_the_interface_carries_is_refused_before_anything_is_sent() {
    let Some(bed) = Bed::new("mtu") else { return };
    for (back_end, most) in [("af_packet", 9218), ("af_xdp", 4100)] {
        let mut sender = bed.sender(back_end);
        let request = request(0.1, 1e3, &json!({"sizes": [{"bytes": 64}, {"bytes": most + 1}]}));
        let templates = Templates::new(&request.streams[0].flows, &request.streams[0].encapsulation).unwrap();
        let plan = Plan::new(&request, 0, &templates).unwrap();
        let sending = Sending { stream: 0, port: 0, plan: &plan, templates: &templates, warmup_frames: 0 };
        let error = sender.send(&[sending], 1, 0, &Control::default()).unwrap_err();
        assert!(matches!(error, TesterError::Value { .. }), "{error}");
        assert!(error.to_string().contains(&format!("at most {most} bytes with FCS on g0 (MTU 9200)")), "{error}");
    }
}

#[test]
fn sending_ends_when_it_is_told_to() {
    let Some(bed) = Bed::new("stop") else { return };
    for back_end in BACK_ENDS {
        let mut sender = bed.sender(back_end);
        let request = request(3600.0, 1e3, &json!({}));
        let templates = Templates::new(&request.streams[0].flows, &request.streams[0].encapsulation).unwrap();
        let plan = Plan::new(&request, 0, &templates).unwrap();
        let sending = Sending { stream: 0, port: 0, plan: &plan, templates: &templates, warmup_frames: 0 };
        let control = Control::default();
        let report = std::thread::scope(|threads| {
            let sending = threads.spawn(|| sender.send(&[sending], 1, 0, &control));
            while control.sent.load(Ordering::Relaxed) < 10 {
                std::thread::yield_now();
            }
            control.stop.store(true, Ordering::Relaxed);
            sending.join().unwrap().unwrap()
        });
        assert!((10..10_000).contains(&report.streams[0].frames));
    }
}

/// An interface without its peer's carrier refuses or drops; either way it is not counted as sent for ever.
#[test]
fn an_interface_that_goes_down_is_an_error_or_leaves_frames_unsent() {
    let Some(bed) = Bed::new("down") else { return };
    for back_end in BACK_ENDS {
        let mut sender = bed.sender(back_end);
        ip(&["-n", &bed.netns_name("gen"), "link", "set", "g0", "down"]).unwrap();
        let request = request(0.05, 1e4, &json!({}));
        let templates = Templates::new(&request.streams[0].flows, &request.streams[0].encapsulation).unwrap();
        let plan = Plan::new(&request, 0, &templates).unwrap();
        let sending = Sending { stream: 0, port: 0, plan: &plan, templates: &templates, warmup_frames: 0 };
        if let Ok(report) = sender.send(&[sending], 1, 0, &Control::default()) {
            assert_eq!(report.streams[0].frames, 0, "{back_end}");
        }
        ip(&["-n", &bed.netns_name("gen"), "link", "set", "g0", "up"]).unwrap();
    }
}

#[test]
fn hardware_time_stamps_are_refused_where_there_are_none() {
    let Some(bed) = Bed::new("stamps") else { return };
    let how = Receiving { cpu: None, priority: 0, timestamps: Timestamps::Hardware };
    let error = bed.inside("sink", "s0", |interface| PacketReceiver::open(interface, how)).unwrap_err();
    assert!(error.to_string().contains("does not stamp all received frames"), "{error}");
}
