//! Sends through an `AF_PACKET` socket, past the queueing discipline.
//!
//! `sendmmsg` and not a ring (`PACKET_TX_RING`): it hands over 1.2 to 1.7 million frames of 64 B a second on the core
//! where the ring reaches 1.1 to 1.2, and what the kernel did not take is known at once, frame by frame.

use std::io::ErrorKind;

use serde_json::{Value, json};

use super::pace::{self, Outlet};
use super::socket::{Batch, Socket};
use crate::error::{Result, TesterError};
use crate::frame::MAX_FRAME_BYTES;
use crate::port::{Control, SendReport, Sender, Sending};
use crate::sys::interface::Interface;

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
        // No protocol: the socket receives nothing.
        socket.bind_packet(interface.index, 0).map_err(system(refused("binding an AF_PACKET socket")))?;
        let outlet = Messages { socket, batch: Batch::new(0, 0), name: interface.name.clone() };
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
}

impl Outlet for Messages {
    const BATCH: usize = 32;

    fn prepare(&mut self, octets: usize) -> Result<()> {
        self.batch = Batch::new(Self::BATCH, octets);
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
        Ok(())
    }
}
