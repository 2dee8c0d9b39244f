//! Clocks of interfaces that stamp received frames, and their distance from `CLOCK_MONOTONIC`.

#![allow(unsafe_code)] // ioctl with structures of the kernel.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::socket::Socket;
use crate::sys::clock::{monotonic_ns, realtime_ns};
use crate::sys::interface::Interface;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const SIOCSHWTSTAMP: libc::c_ulong = 0x89b0;
const SIOCGHWTSTAMP: libc::c_ulong = 0x89b1;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const RX_HARDWARE: u32 = 1 << 2;
const RAW_HARDWARE: u32 = 1 << 6;
/// `HWTSTAMP_FILTER_ALL`: every received frame is stamped.
const FILTER_ALL: i32 = 1;
/// `PTP_SYS_OFFSET_EXTENDED`: readings of the system's clock before and after each of the interface's.
const SYS_OFFSET_EXTENDED: libc::c_ulong = 0xc4c0_3d09;
const READINGS: u32 = 5;

/// `CLOCK_MONOTONIC` minus `CLOCK_REALTIME`, ns. It changes when the clock is set.
pub(super) fn real_to_monotonic_ns() -> i64 {
    let reading = || {
        let (before, real, after) = (monotonic_ns(), realtime_ns(), monotonic_ns());
        (after - before, (before + (after - before) / 2) as i64 - real as i64)
    };
    // The closest of three pairs of readings, because an interruption between two readings adds to their distance.
    [reading(), reading(), reading()].into_iter().min().map_or(0, |(_, distance_ns)| distance_ns)
}

/// The clock of an interface that stamps all frames that it receives.
#[derive(Debug)]
pub(super) struct HardwareClock {
    device: File,
    index: i32,
    socket: OwnedFd,
    name: String,
    /// The previous setting.
    before: libc::hwtstamp_config,
}

#[repr(C)]
#[derive(Default)]
struct StampInfo {
    cmd: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ClockTime {
    seconds: i64,
    nanoseconds: u32,
    reserved: u32,
}

impl ClockTime {
    fn ns(self) -> i64 {
        self.seconds * 1_000_000_000 + i64::from(self.nanoseconds)
    }
}

#[repr(C)]
struct Readings {
    count: u32,
    reserved: [u32; 3],
    /// System, interface, system.
    times: [[ClockTime; 3]; 25],
}

impl HardwareClock {
    /// Lets the interface stamp all frames that it receives, and the ring of `ring` show it.
    ///
    /// # Errors
    ///
    /// Why that is not possible.
    pub fn open(ring: &Socket, interface: &Interface) -> Result<Self, String> {
        let name = &interface.name;
        // SAFETY: no pointers are passed.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(std::io::Error::last_os_error().to_string());
        }
        // SAFETY: just opened and owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut info = StampInfo { cmd: ETHTOOL_GET_TS_INFO, ..StampInfo::default() };
        ask(&socket, name, SIOCETHTOOL, &mut info)?;
        let able = info.so_timestamping & (RX_HARDWARE | RAW_HARDWARE) == RX_HARDWARE | RAW_HARDWARE;
        if !able || info.rx_filters & (1 << FILTER_ALL) == 0 || info.phc_index < 0 {
            return Err(format!(
                "the driver {} of {name} does not stamp all received frames (ethtool -T {name}); use software",
                interface.driver
            ));
        }
        let path = format!("/dev/ptp{}", info.phc_index);
        let device = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        let mut before = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
        ask(&socket, name, SIOCGHWTSTAMP, &mut before)?;
        let mut wanted = libc::hwtstamp_config { rx_filter: FILTER_ALL, ..before };
        ask(&socket, name, SIOCSHWTSTAMP, &mut wanted)?;
        let clock = Self { device, index: info.phc_index, socket, name: name.clone(), before };
        ring.set(libc::SOL_PACKET, libc::PACKET_TIMESTAMP, &RAW_HARDWARE).map_err(|error| error.to_string())?;
        match clock.to_monotonic_ns() {
            Some(_) => Ok(clock),
            None => Err(format!("{path} does not say its distance from the system's clock; use software")),
        }
    }

    /// `CLOCK_MONOTONIC` minus the clock of the interface, ns.
    pub fn to_monotonic_ns(&self) -> Option<i64> {
        let zero = ClockTime { seconds: 0, nanoseconds: 0, reserved: 0 };
        let mut readings = Readings { count: READINGS, reserved: [0; 3], times: [[zero; 3]; 25] };
        // SAFETY: the structure is the one that the request reads and writes.
        let result = unsafe { libc::ioctl(self.device.as_raw_fd(), SYS_OFFSET_EXTENDED as _, &raw mut readings) };
        if result != 0 {
            return None;
        }
        let distance = |[before, own, after]: &[ClockTime; 3]| {
            let took_ns = after.ns() - before.ns();
            (took_ns, before.ns() + took_ns / 2 - own.ns())
        };
        let (_, to_real_ns) = readings.times[..READINGS as usize].iter().map(distance).min()?;
        Some(to_real_ns + real_to_monotonic_ns())
    }

    /// Its name.
    pub fn facts(&self) -> String {
        format!("/dev/ptp{}, brought to CLOCK_MONOTONIC", self.index)
    }
}

impl Drop for HardwareClock {
    fn drop(&mut self) {
        let mut before = self.before;
        // An interface that is gone has nothing to restore.
        let _ = ask(&self.socket, &self.name, SIOCSHWTSTAMP, &mut before);
    }
}

fn ask<T>(socket: &OwnedFd, interface: &str, request: libc::c_ulong, value: &mut T) -> Result<(), String> {
    // SAFETY: zero is a valid ifreq.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in ifreq.ifr_name.iter_mut().zip(interface.as_bytes().iter().take(libc::IFNAMSIZ - 1)) {
        *to = *from as libc::c_char;
    }
    ifreq.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
    // SAFETY: the structure is the one that the request reads and writes, and outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut ifreq) } == 0 {
        Ok(())
    } else {
        Err(format!("{interface}: {}", std::io::Error::last_os_error()))
    }
}
