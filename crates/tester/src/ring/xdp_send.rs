//! Sends through an `AF_XDP` socket: zero-copy where the driver can, by copying else.
//!
//! ```text
//! frames (UMEM) ── written ──► tx ring ── kick ──► kernel ──► interface
//!       ▲                                            │
//!       └─────────────── completion ring ◄───────────┘
//! ```
//!
//! In zero-copy mode the driver receives into the same memory, from the chunks of the fill ring. Without chunks the
//! queue would receive nothing, not even for the XDP program that counts at a port that sends and receives.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::memory::Region;
use super::pace::{self, Outlet};
use super::socket::Socket;
use crate::error::{Result, TesterError};
use crate::port::{Control, SendReport, Sender, Sending};
use crate::sys::clock::monotonic_ns;
use crate::sys::interface::Interface;

/// Frames in memory for sending, as many for receiving, and in each ring; a power of two.
const FRAMES: u32 = 2048;
/// The largest chunk that the kernel allows without huge pages.
const CHUNK_OCTETS: usize = 4096;
/// How long frames may take to leave after the last one was handed over.
const FINISH_NS: u64 = 100_000_000;

/// A sender on an `AF_XDP` socket.
#[derive(Debug)]
pub struct XdpSender {
    interface: Interface,
    outlet: Rings,
}

impl XdpSender {
    /// Opens a socket on the first queue of an interface of the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn open(interface: &Interface) -> Result<Self> {
        let open = |flags| Rings::open(interface, flags);
        let zero_copy = open(libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP);
        // A driver without zero-copy answers EOPNOTSUPP, EINVAL or EBUSY; an attempt to copy reveals other causes.
        let outlet = zero_copy.or_else(|_| open(libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP))?;
        Ok(Self { interface: interface.clone(), outlet })
    }
}

impl Sender for XdpSender {
    fn facts(&self) -> Value {
        json!({
            "back_end": "af_xdp",
            "interface": self.interface.name,
            "driver": self.interface.driver,
            "mode": if self.outlet.zero_copy { "zero-copy" } else { "copy" },
            "queue": 0,
            "most_frames_of_a_call": Rings::BATCH,
            "time_stamp": "CLOCK_MONOTONIC just before the ring is given the frame",
        })
    }

    fn range_pps(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn send(&mut self, streams: &[Sending<'_>], trial: u8, start_ns: u64, control: &Control) -> Result<SendReport> {
        let octets = pace::check_sizes(streams, &self.interface, CHUNK_OCTETS)?;
        pace::send(&mut self.outlet, octets, streams, trial, start_ns, control)
    }
}

/// One of the rings: single producer, single consumer.
#[derive(Debug)]
struct Ring {
    region: Region,
    producer: usize,
    consumer: usize,
    descriptors: usize,
    flags: usize,
}

impl Ring {
    fn map(socket: &Socket, at: [usize; 4], descriptor_octets: usize, offset: libc::off_t) -> Result<Self> {
        let [producer, consumer, descriptors, flags] = at;
        let octets = descriptors + FRAMES as usize * descriptor_octets;
        Ok(Self { region: Region::of_socket(socket.as_fd(), octets, offset)?, producer, consumer, descriptors, flags })
    }

    fn produced(&self, order: Ordering) -> u32 {
        self.region.word(self.producer).load(order)
    }

    fn consumed(&self, order: Ordering) -> u32 {
        self.region.word(self.consumer).load(order)
    }

    fn wants_kick(&self) -> bool {
        self.region.read32(self.flags) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

#[derive(Debug)]
struct Rings {
    name: String,
    zero_copy: bool,
    transmit: Ring,
    completion: Ring,
    frames: Region,
    /// Chunks that the kernel does not have, the next one last.
    free: Vec<u64>,
    /// Octets of the frames that are written but not yet handed over.
    octets: [u32; Self::BATCH],
    /// After the rings: they must be unmapped first, and the memory must outlive it.
    socket: Socket,
}

impl Rings {
    fn open(interface: &Interface, flags: u16) -> Result<Self> {
        let name = interface.name.clone();
        let system = |what: &str| {
            let what = format!("{what} of an AF_XDP socket on {}", interface.name);
            move |error: io::Error| TesterError::System { what, error }
        };
        let socket = Socket::xdp()?;
        let frames = Region::of_frames(2 * FRAMES as usize * CHUNK_OCTETS)?;
        let memory = libc::xdp_umem_reg {
            addr: frames.address(),
            len: 2 * u64::from(FRAMES) * CHUNK_OCTETS as u64,
            chunk_size: CHUNK_OCTETS as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        socket.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &memory).map_err(system("registering the memory"))?;
        for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_TX_RING] {
            socket.set(libc::SOL_XDP, ring, &FRAMES).map_err(system("allocating a ring"))?;
        }
        let [_, transmit, fill, completion] = socket.xdp_offsets().map_err(system("asking for the rings"))?;
        let transmit = Ring::map(&socket, transmit, size_of::<libc::xdp_desc>(), libc::XDP_PGOFF_TX_RING)?;
        let of_chunks = |at, page: u64| {
            let page = libc::off_t::try_from(page).map_err(io::Error::other).map_err(system("mapping a ring"))?;
            Ring::map(&socket, at, size_of::<u64>(), page)
        };
        let completion = of_chunks(completion, libc::XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let mut fill = of_chunks(fill, libc::XDP_UMEM_PGOFF_FILL_RING)?;
        for nth in 0..FRAMES {
            let chunk = u64::from(FRAMES + nth) * CHUNK_OCTETS as u64;
            fill.region.write(fill.descriptors + nth as usize * size_of::<u64>(), &chunk.to_ne_bytes());
        }
        fill.region.word(fill.producer).store(FRAMES, Ordering::Release);
        socket.bind_xdp(interface.index, flags).map_err(system("binding"))?;
        let zero_copy = flags & libc::XDP_ZEROCOPY != 0;
        let free = (0..u64::from(FRAMES)).rev().map(|chunk| chunk * CHUNK_OCTETS as u64).collect();
        Ok(Self { name, zero_copy, transmit, completion, frames, free, octets: [0; Self::BATCH], socket })
    }

    /// Takes back the chunks of frames that have left.
    fn reclaim(&mut self) {
        let ring = &self.completion;
        let produced = ring.produced(Ordering::Acquire);
        let mut consumed = ring.consumed(Ordering::Relaxed);
        while consumed != produced {
            let at = ring.descriptors + (consumed & (FRAMES - 1)) as usize * size_of::<u64>();
            // An address is below 2^32: the memory is 16 MiB.
            let low = if cfg!(target_endian = "little") { 0 } else { 4 };
            self.free.push(u64::from(ring.region.read32(at + low)));
            consumed = consumed.wrapping_add(1);
        }
        ring.region.word(ring.consumer).store(consumed, Ordering::Release);
    }

    /// Frames in the ring that the kernel has not looked at.
    fn waiting(&self) -> u32 {
        self.transmit.produced(Ordering::Relaxed).wrapping_sub(self.transmit.consumed(Ordering::Acquire))
    }

    /// Makes the kernel send the frames of the ring.
    fn kick(&mut self) -> Result<()> {
        Region::full_fence();
        if self.zero_copy && !self.transmit.wants_kick() {
            return Ok(());
        }
        match self.socket.kick() {
            Ok(()) => Ok(()),
            // More than a call's budget, or the driver or the socket's buffer is full: the rest goes with the next call.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
                    || error.raw_os_error() == Some(libc::ENOBUFS) =>
            {
                Ok(())
            }
            // In copy mode EBUSY says that the interface took a frame and dropped it: the ring at the other end of a veth
            // pair is full, so the frame is lost on the wire. Without carrier it says so too; a trial looks at the link.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
            Err(error) => Err(TesterError::System { what: format!("sending on {}", self.name), error }),
        }
    }
}

impl Outlet for Rings {
    const BATCH: usize = 8;

    fn prepare(&mut self, _octets: usize) -> Result<()> {
        // Frames of an earlier trial in the ring must not leave in this one.
        self.finish()
    }

    fn room(&mut self) -> usize {
        if self.free.len() < Self::BATCH {
            self.reclaim();
        }
        // Copying, the kernel must have looked at the last frames: those that wait in the ring have old time stamps.
        if !self.zero_copy && self.waiting() > 0 { 0 } else { self.free.len().min(Self::BATCH) }
    }

    fn frame(&mut self, nth: usize, octets: usize) -> &mut [u8] {
        self.octets[nth] = octets as u32;
        let chunk = self.free[self.free.len() - 1 - nth];
        self.frames.frame_mut(chunk as usize, octets)
    }

    fn hand_over(&mut self, count: usize) -> Result<usize> {
        let mut produced = self.transmit.produced(Ordering::Relaxed);
        for octets in &self.octets[..count] {
            let Some(chunk) = self.free.pop() else { break };
            let at = self.transmit.descriptors + (produced & (FRAMES - 1)) as usize * size_of::<libc::xdp_desc>();
            self.transmit.region.write(at, &chunk.to_ne_bytes());
            self.transmit.region.write(at + 8, &octets.to_ne_bytes());
            self.transmit.region.write(at + 12, &[0; 4]);
            produced = produced.wrapping_add(1);
        }
        self.transmit.region.word(self.transmit.producer).store(produced, Ordering::Release);
        self.kick()?;
        Ok(count)
    }

    fn finish(&mut self) -> Result<()> {
        let until_ns = monotonic_ns() + FINISH_NS;
        loop {
            self.reclaim();
            if self.free.len() == FRAMES as usize {
                return Ok(());
            }
            if monotonic_ns() >= until_ns {
                let error = io::Error::other("frames do not leave; is the interface up?");
                return Err(TesterError::System { what: format!("sending on {}", self.name), error });
            }
            self.kick()?;
            std::hint::spin_loop();
        }
    }
}
