//! Receives through a ring of an `AF_PACKET` socket (`TPACKET_V3`), for interfaces where XDP is not possible.
//!
//! Frames are stamped by the kernel when they enter the ring, in `CLOCK_REALTIME`, and brought to `CLOCK_MONOTONIC` by
//! the distance of the two clocks at the time; or by the interface, in its own clock ([`super::hardware`]). They go on
//! to the network stack, which may answer them: give the interface no address of the flows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::counting::Counting;
use super::hardware::{HardwareClock, real_to_monotonic_ns};
use super::memory::Region;
use super::socket::Socket;
use crate::config::Timestamps;
use crate::error::{Result, TesterError};
use crate::parts::Grid;
use crate::port::{Expected, ReceiveReport, Receiver};
use crate::sys::interface::Interface;
use crate::sys::thread;

/// The kernel hands a block over when it is full or this old.
const RETIRE_MS: u32 = 1;
const BLOCK_OCTETS: usize = 1 << 18;
/// 64 MiB: half a second of 64 B frames at 1 Mpps.
const BLOCKS: usize = 256;
/// How long frames in the ring may wait to be counted when a trial has ended.
const MOST_WAIT: Duration = Duration::from_secs(2);
/// Longest wait, so that the thread notices its end.
const NAP_MS: i32 = 20;

/// How frames are received.
#[derive(Debug, Clone, Copy)]
pub struct Receiving {
    /// Core of the thread that counts.
    pub cpu: Option<usize>,
    /// Its `SCHED_FIFO` priority, 0 for the ordinary scheduler.
    pub priority: u8,
    /// Which clock stamps the frames.
    pub timestamps: Timestamps,
}

/// A receiver on an `AF_PACKET` ring, with a thread that counts.
#[derive(Debug)]
pub struct PacketReceiver {
    interface: Interface,
    shared: Arc<Shared>,
    counter: Option<JoinHandle<()>>,
    stamps: Stamps,
    filters: bool,
    /// Counters at the last reset.
    before: Arrived,
}

#[derive(Debug)]
struct Shared {
    counting: Mutex<Counting>,
    arrived: Mutex<Arrived>,
    /// Frames that the thread has counted since the ring was opened.
    counted: AtomicU64,
    stop: AtomicBool,
    socket: Socket,
}

/// Counters of the kernel since the ring was opened.
#[derive(Debug, Clone, Copy, Default)]
struct Arrived {
    /// Frames put into the ring, counted or not.
    frames: u64,
    /// Frames that it had no room for.
    dropped: u64,
}

impl Shared {
    fn arrived(&self) -> std::io::Result<Arrived> {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        // Frames, those dropped among them, times that the ring was frozen; reading sets them to 0.
        let [frames, dropped, _] = self.socket.get::<3>(libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        arrived.frames += u64::from(frames - dropped.min(frames));
        arrived.dropped += u64::from(dropped);
        Ok(*arrived)
    }

    fn lock(&self) -> MutexGuard<'_, Counting> {
        // A panic while counting may leave wrong numbers, but no broken invariant.
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone)]
enum Stamps {
    Kernel,
    Interface(Arc<HardwareClock>),
}

impl PacketReceiver {
    /// Opens a ring on an interface of the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or hardware time stamps are asked for that the interface does not have.
    pub fn open(interface: &Interface, how: Receiving) -> Result<Self> {
        let system = |what: &str| {
            let what = format!("{what} of {}", interface.name);
            move |error| TesterError::System { what, error }
        };
        let socket = Socket::packet()?;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version).map_err(system("choosing the ring"))?;
        let ring = libc::tpacket_req3 {
            tp_block_size: BLOCK_OCTETS as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 1 << 11,
            tp_frame_nr: (BLOCKS * (BLOCK_OCTETS >> 11)) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &ring).map_err(system("allocating the ring"))?;
        // What this tester sends on the interface is not received. Kernels before 4.20 do not know the option.
        let filters = socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32).is_ok();
        let stamps = match how.timestamps {
            Timestamps::Software => Stamps::Kernel,
            wanted => match HardwareClock::open(&socket, interface) {
                Ok(clock) => Stamps::Interface(Arc::new(clock)),
                Err(_) if wanted == Timestamps::Auto => Stamps::Kernel,
                Err(why) => {
                    let back_end = "hardware time stamps".to_owned();
                    return Err(TesterError::BackEnd { port: interface.name.clone(), back_end, why });
                }
            },
        };
        // The frames of a bridge are addressed to the far port.
        let everything =
            Membership { interface: interface.index as i32, kind: libc::PACKET_MR_PROMISC as u16, rest: [0; 5] };
        socket
            .set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &everything)
            .map_err(system("receiving the frames for all addresses"))?;
        let region = Region::of_socket(std::os::fd::AsFd::as_fd(&socket), BLOCKS * BLOCK_OCTETS, 0)?;
        socket.bind_packet(interface.index, libc::ETH_P_ALL).map_err(system("binding the ring"))?;
        let shared = Arc::new(Shared {
            counting: Mutex::new(Counting::new(0, &[])),
            arrived: Mutex::new(Arrived::default()),
            counted: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            socket,
        });
        let for_counter = (Arc::clone(&shared), stamps.clone());
        let counter = std::thread::Builder::new()
            .name("rc-receive".to_owned())
            .spawn(move || {
                if let Some(cpu) = how.cpu {
                    let _ = thread::pin(cpu);
                }
                let _ = thread::prioritise(how.priority);
                let (shared, stamps) = for_counter;
                Ring { region, next: 0 }.count(&shared, &stamps);
            })
            .map_err(system("starting the receiving thread"))?;
        let before = Arrived::default();
        Ok(Self { interface: interface.clone(), shared, counter: Some(counter), stamps, filters, before })
    }

    /// Keeps the thread from counting, as other work on its core would.
    #[cfg(test)]
    pub(super) fn hold(&self) -> MutexGuard<'_, Counting> {
        self.shared.lock()
    }

    fn arrived(&self) -> Result<Arrived> {
        self.shared.arrived().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> TesterError {
        TesterError::System { what: format!("receiving on {}", self.interface.name), error }
    }

    /// Waits until every frame that has arrived is counted; how many are not after [`MOST_WAIT`].
    fn wait_for_the_count(&self) -> Result<u64> {
        let (began, arrived) = (Instant::now(), self.arrived()?.frames);
        loop {
            let missing = arrived.saturating_sub(self.shared.counted.load(Ordering::Acquire));
            if missing == 0 || began.elapsed() > MOST_WAIT {
                return Ok(missing);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// `struct packet_mreq`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Membership {
    interface: i32,
    kind: u16,
    rest: [u16; 5],
}

impl Receiver for PacketReceiver {
    fn facts(&self) -> Value {
        let (clock, point) = match &self.stamps {
            Stamps::Kernel => ("CLOCK_REALTIME, brought to CLOCK_MONOTONIC".to_owned(), "the frame enters the ring"),
            Stamps::Interface(clock) => (clock.facts(), "the interface receives the frame"),
        };
        json!({
            "back_end": "af_packet",
            "interface": self.interface.name,
            "driver": self.interface.driver,
            "ring": {"version": "TPACKET_V3", "octets": BLOCKS * BLOCK_OCTETS, "block_retire_ms": RETIRE_MS},
            "ignores_outgoing": self.filters,
            "time_stamp": {"clock": clock, "when": point},
        })
    }

    fn reset(&mut self, trial: u8, expected: &[Expected]) -> Result<()> {
        self.wait_for_the_count()?;
        *self.shared.lock() = Counting::new(trial, expected);
        self.before = self.arrived()?;
        Ok(())
    }

    fn begins(&mut self, grid: Grid) -> Result<()> {
        self.shared.lock().begins(grid);
        Ok(())
    }

    fn seen(&self) -> Result<u64> {
        if self.counter.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(self.failed(std::io::Error::other("the receiving thread ended")));
        }
        let arrived = self.arrived()?;
        Ok(arrived.frames + arrived.dropped - self.before.frames - self.before.dropped)
    }

    fn collect(&mut self) -> Result<ReceiveReport> {
        let uncounted = self.wait_for_the_count()?;
        let dropped = self.arrived()?.dropped - self.before.dropped;
        Ok(ReceiveReport { overrun: dropped + uncounted, ..self.shared.lock().report() })
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(counter) = self.counter.take() {
            let _ = counter.join();
        }
    }
}

/// The ring, as the thread that counts walks it.
struct Ring {
    region: Region,
    next: usize,
}

/// Offsets in `struct tpacket_block_desc` (`linux/if_packet.h`).
mod block {
    pub const STATUS: usize = 8;
    pub const FRAMES: usize = 12;
    pub const FIRST_FRAME: usize = 16;
}

/// Offsets in `struct tpacket3_hdr`.
mod header {
    pub const NEXT: usize = 0;
    pub const SECONDS: usize = 4;
    pub const NANOSECONDS: usize = 8;
    pub const LENGTH: usize = 12;
    pub const STATUS: usize = 20;
    pub const FRAME: usize = 24;
}

impl Ring {
    fn count(mut self, shared: &Shared, stamps: &Stamps) {
        while !shared.stop.load(Ordering::Relaxed) {
            let at = self.next * BLOCK_OCTETS;
            let status = self.region.word(at + block::STATUS);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                shared.socket.wait(NAP_MS);
                continue;
            }
            self.count_block(at, &mut shared.lock(), stamps);
            shared.counted.fetch_add(u64::from(self.region.read32(at + block::FRAMES)), Ordering::Release);
            self.region.word(at + block::STATUS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % BLOCKS;
        }
    }

    fn count_block(&self, at: usize, counting: &mut Counting, stamps: &Stamps) {
        let region = &self.region;
        let real_to_monotonic = real_to_monotonic_ns();
        let hardware_to_monotonic = match stamps {
            Stamps::Interface(clock) => clock.to_monotonic_ns(),
            Stamps::Kernel => None,
        };
        let mut frame = at + region.read32(at + block::FIRST_FRAME) as usize;
        for _ in 0..region.read32(at + block::FRAMES) {
            let read = |offset| region.read32(frame + offset);
            let stamp_ns = i64::from(read(header::SECONDS)) * 1_000_000_000 + i64::from(read(header::NANOSECONDS));
            let by_hardware = read(header::STATUS) & libc::TP_STATUS_TS_RAW_HARDWARE != 0;
            let distance_ns = hardware_to_monotonic.filter(|_| by_hardware).unwrap_or(real_to_monotonic);
            let octets =
                region.frame(frame + usize::from(region.read16(frame + header::FRAME)), read(header::LENGTH) as usize);
            counting.frame(octets, stamp_ns.saturating_add(distance_ns).max(0) as u64);
            frame += read(header::NEXT) as usize;
        }
    }
}
