//! Back ends on sockets whose frames or rings are shared with the kernel: `AF_PACKET` and `AF_XDP`.
//!
//! ```text
//! Plans ─► Merge ─► pace: sleep, spin, stamp ─► Outlet: sendmmsg past the queueing discipline, or a ring of AF_XDP
//! interface ─► ring of AF_PACKET ─► Counting: the same counts as the receiving XDP program's
//! ```
//!
//! Sockets are opened in the namespace of their interface ([`crate::sys::netns::inside`]) and used from any thread.

mod counting;
mod hardware;
mod memory;
mod pace;
mod packet_receive;
mod packet_send;
mod socket;
mod xdp_send;

pub use packet_receive::{PacketReceiver, Receiving};
pub use packet_send::PacketSender;
pub use xdp_send::XdpSender;

use crate::error::Result;

/// Whether this process may open an `AF_PACKET` socket.
///
/// # Errors
///
/// Why not.
pub fn try_packet() -> Result<()> {
    socket::Socket::packet().map(drop)
}

/// Whether this process may open an `AF_XDP` socket and the kernel has them.
///
/// # Errors
///
/// Why not.
pub fn try_xdp() -> Result<()> {
    socket::Socket::xdp().map(drop)
}

#[cfg(test)]
mod tests;
