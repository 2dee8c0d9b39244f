//! Sends through an `AF_PACKET` socket, past the queueing discipline.
//!
//! `sendmmsg` and not a ring (`PACKET_TX_RING`): it handed over 0.8 million frames of 64 B a second one by one, 1.02
//! million by eight and 1.08 million by 32, stamped and with the receiver on the same core, where trafgen reached 1.15
//! million with its ring and without writing into its frames. What the kernel did not take is known at once, frame by
//! frame; a ring reports it later.
//!
//! A frame carries the time just before its call. Some are probes: the driver stamps them too when it takes them, and
//! the difference, read from the socket's error queue after the trial, says how much of a delay is the tester's own.

use std::io::ErrorKind;

use serde_json::{Value, json};

use super::hardware::real_to_monotonic_ns;
use super::pace::{self, Outlet};
use super::socket::{Batch, Socket};
use crate::error::{Result, TesterError};
use crate::frame::{MAX_FRAME_BYTES, signature};
use crate::port::{Control, SendReport, Sender, Sending};
use crate::sys::clock::monotonic_ns;
use crate::sys::interface::Interface;

/// Least time between two probes.
const PROBE_NS: u64 = 10_000_000;
/// Most probes of a trial: their copies wait in the error queue.
const MOST_PROBES: u32 = 200;

/// A sender on an `AF_PACKET` socket.
#[derive(Debug)]
pub struct PacketSender {
    interface: Interface,
    outlet: Messages,
}

impl PacketSender {
    /// Opens a socket on an interface of the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn open(interface: &Interface) -> Result<Self> {
        let refused = |what: &str| format!("{what} for {}", interface.name);
        let socket = Socket::packet()?;
        let system = |what: String| move |error| TesterError::System { what, error };
        socket
            .set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)
            .map_err(system(refused("bypassing the queueing discipline")))?;
        // Frames in flight to the driver count against it; a small one would hold frames back.
        let send_buffer = 16_i32 << 20;
        if socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &send_buffer).is_err() {
            socket
                .set(libc::SOL_SOCKET, libc::SO_SNDBUF, &send_buffer)
                .map_err(system(refused("raising the send buffer")))?;
        }
        // Copies of probes come back through the receive buffer. Without them that fact is missing.
        let _ = socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(4_i32 << 20));
        let _ = socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &libc::SOF_TIMESTAMPING_SOFTWARE);
        // No protocol: the socket receives nothing.
        socket.bind_packet(interface.index, 0).map_err(system(refused("binding an AF_PACKET socket")))?;
        let outlet = Messages {
            socket,
            batch: Batch::new(1, 0),
            name: interface.name.clone(),
            next_probe_ns: 0,
            probes: 0,
            hand_over_ns: Vec::new(),
        };
        Ok(Self { interface: interface.clone(), outlet })
    }
}

impl Sender for PacketSender {
    fn facts(&self) -> Value {
        json!({
            "back_end": "af_packet",
            "interface": self.interface.name,
            "driver": self.interface.driver,
            "call": "sendmmsg",
            "queueing_discipline": "bypassed",
            "most_frames_of_a_call": Messages::BATCH,
            "time_stamp": "CLOCK_MONOTONIC just before the call that hands the frame over",
            "hand_over": self.outlet.hand_over(),
        })
    }

    fn range_pps(&self) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn send(&mut self, streams: &[Sending<'_>], trial: u8, start_ns: u64, control: &Control) -> Result<SendReport> {
        let octets = pace::check_sizes(streams, &self.interface, MAX_FRAME_BYTES as usize)?;
        pace::send(&mut self.outlet, octets, streams, trial, start_ns, control)
    }
}

#[derive(Debug)]
struct Messages {
    socket: Socket,
    batch: Batch,
    name: String,
    next_probe_ns: u64,
    probes: u32,
    /// From the frame's time stamp to the driver's, of the probes of the last trial, in order of size.
    hand_over_ns: Vec<u64>,
}

impl Messages {
    fn hand_over(&self) -> Value {
        let times = &self.hand_over_ns;
        let (Some(least), Some(most)) = (times.first(), times.last()) else { return Value::Null };
        json!({
            "until": "the driver takes the frame (its software time stamp)",
            "probes": times.len(),
            "min_ns": least,
            "median_ns": times[times.len() / 2],
            "max_ns": most,
        })
    }
}

impl Outlet for Messages {
    const BATCH: usize = 16;

    fn prepare(&mut self, octets: usize) -> Result<()> {
        self.batch = Batch::new(Self::BATCH, octets);
        (self.probes, self.next_probe_ns) = (0, 0);
        self.hand_over_ns.clear();
        Ok(())
    }

    fn room(&mut self) -> usize {
        Self::BATCH
    }

    fn frame(&mut self, nth: usize, octets: usize) -> &mut [u8] {
        self.batch.frame(nth, octets)
    }

    fn hand_over(&mut self, count: usize) -> Result<usize> {
        if count == 0 {
            return Ok(0);
        }
        let now_ns = monotonic_ns();
        let probe = self.probes < MOST_PROBES && now_ns >= self.next_probe_ns;
        if probe {
            (self.probes, self.next_probe_ns) = (self.probes + 1, now_ns + PROBE_NS);
        }
        self.batch.set_probe(probe);
        match self.batch.send(&self.socket, count) {
            Ok(sent) => Ok(sent),
            // The driver's ring or the socket's buffer is full, the carrier is away or a signal came: later.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
                    || error.raw_os_error() == Some(libc::ENOBUFS) =>
            {
                Ok(0)
            }
            Err(error) => Err(TesterError::System { what: format!("sending on {}", self.name), error }),
        }
    }

    fn finish(&mut self) -> Result<()> {
        let mut frame = [0; 128];
        let distance_ns = real_to_monotonic_ns();
        while let Some((stamp_ns, octets)) = self.socket.probe(&mut frame) {
            let sent_ns = signature(&frame[..octets.min(frame.len())]).map(|signature| signature.sent_ns);
            // The stamp is useless if the clock was set since, and absent if the driver does not stamp.
            let taken_ns = u64::try_from(stamp_ns as i64 + distance_ns).ok().filter(|_| stamp_ns > 0);
            self.hand_over_ns.extend(taken_ns.zip(sent_ns).and_then(|(taken, sent)| taken.checked_sub(sent)));
        }
        self.hand_over_ns.sort_unstable();
        Ok(())
    }
}
