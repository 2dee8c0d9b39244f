//! The threads that send a trial: one for the kernel's generator, one for each port that sends through a ring.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::Result;
use crate::port::{Control, SendReport, Sender, Sending};
use crate::ports::Ports;
use crate::sys::thread::{self, Scheduling};
use crate::sys::{capabilities, clock};

/// How the threads run.
#[derive(Debug, Clone, Copy)]
pub struct Threads {
    /// Core of the first one; the others choose.
    pub cpu: Option<usize>,
    /// `SCHED_FIFO` priority.
    pub priority: u8,
    /// Number of the trial.
    pub trial: u8,
    /// When the plans begin, `CLOCK_MONOTONIC`, ns.
    pub start_ns: u64,
    /// Interval between two looks at the plans.
    pub look: Duration,
    /// Interval between two reports of progress.
    pub report: Duration,
}

/// The report of a thread.
#[derive(Debug)]
pub struct SentBy {
    /// The report of its sender.
    pub report: SendReport,
    /// Indices of its streams.
    pub streams: Vec<usize>,
    /// Share of the time that it used its core.
    pub busy_ratio: f64,
    /// Number of times that the scheduler took the core away.
    pub preemptions: u64,
    back_end: Value,
    scheduling: Scheduling,
    cpu: Option<usize>,
}

impl SentBy {
    /// Back end and thread, for the report.
    #[must_use]
    pub fn facts(&self) -> Value {
        json!({
            "back_end": self.back_end["back_end"],
            "streams": self.streams,
            "batch_frames": self.report.batch,
            "scheduling": self.scheduling,
            "cpu": self.cpu,
            "busy_ratio": self.busy_ratio,
            "preemptions": self.preemptions,
        })
    }
}

/// Sends all streams, those of ports in `live` with the kernel's generator; `listen` is called on this thread
/// meanwhile.
///
/// # Errors
///
/// A sender failed; the others have been stopped.
///
/// # Panics
///
/// Panics where a sender does.
pub fn run(
    ports: &mut Ports,
    sending: &[Sending<'_>],
    live: &[bool],
    threads: &Threads,
    control: &Control,
    listen: &dyn Fn(),
) -> Result<Vec<SentBy>> {
    let mut work: Vec<(&mut dyn Sender, Vec<Sending<'_>>)> = Vec::new();
    let of = |wanted: &dyn Fn(&Sending<'_>) -> bool| {
        sending.iter().filter(|stream| wanted(stream)).copied().collect::<Vec<_>>()
    };
    if let Some(generator) = &mut ports.live {
        work.push((generator, of(&|stream| live[stream.port])));
    }
    for (index, port) in ports.ports.iter_mut().enumerate() {
        if let Some(ring) = &mut port.ring {
            work.push((&mut **ring, of(&|stream| stream.port == index && !live[index])));
        }
    }
    work.retain(|(_, streams)| !streams.is_empty());
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        for (sender, streams) in work {
            // Two threads on one core would take turns at random.
            let cpu = threads.cpu.filter(|_| senders.is_empty());
            senders.push(scope.spawn(move || send_streams(sender, &streams, cpu, threads, control)));
        }
        let watch = scope.spawn(move || {
            // Where senders and device take all cores, an ordinary thread may wait a second for its turn.
            let _ = thread::prioritise(thread::above(threads.priority));
            while !senders.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                std::thread::sleep(threads.look);
                control.look();
            }
            let join = |sender: std::thread::ScopedJoinHandle<'_, Result<SentBy>>| {
                sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            senders.into_iter().map(join).collect::<Result<Vec<_>>>()
        });
        let mut reported = Instant::now();
        while !watch.is_finished() {
            std::thread::sleep(threads.look);
            if reported.elapsed() >= threads.report {
                reported = Instant::now();
                listen();
            }
        }
        watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn send_streams(
    sender: &mut dyn Sender,
    streams: &[Sending<'_>],
    cpu: Option<usize>,
    threads: &Threads,
    control: &Control,
) -> Result<SentBy> {
    let cpu = cpu.filter(|&cpu| thread::pin(cpu));
    let scheduling = thread::prioritise(threads.priority);
    capabilities::keep_those_of_a_sender();
    let (wall_ns, busy_ns, taken) = (clock::monotonic_ns(), clock::thread_cpu_ns(), thread::preemptions());
    let report = sender.send(streams, threads.trial, threads.start_ns, control);
    if report.is_err() {
        control.stop.store(true, std::sync::atomic::Ordering::Release);
    }
    let report = report?;
    let wall_ns = clock::monotonic_ns() - wall_ns;
    Ok(SentBy {
        report,
        streams: streams.iter().map(|stream| usize::from(stream.stream)).collect(),
        busy_ratio: (clock::thread_cpu_ns() - busy_ns) as f64 / wall_ns.max(1) as f64,
        preemptions: thread::preemptions() - taken,
        back_end: sender.facts(),
        scheduling,
        cpu,
    })
}
