//! Clocks of interfaces that stamp received frames, and their distance from `CLOCK_MONOTONIC`.

#![allow(unsafe_code, reason = "ioctl with structures of the kernel")]

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;

use super::socket::Socket;
use crate::sys::clock::{monotonic_ns, realtime_ns};
use crate::sys::interface::{Interface, Requests, SIOCETHTOOL};

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
    requests: Requests,
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
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let requests = CString::new(name.as_str()).map_err(Into::into).and_then(Requests::open).map_err(failed)?;
        let info = StampInfo { cmd: ETHTOOL_GET_TS_INFO, ..StampInfo::default() };
        let info = requests.exchange(SIOCETHTOOL, info).map_err(failed)?;
        let able = info.so_timestamping & (RX_HARDWARE | RAW_HARDWARE) == RX_HARDWARE | RAW_HARDWARE;
        if !able || info.rx_filters & (1 << FILTER_ALL) == 0 || info.phc_index < 0 {
            return Err(format!(
                "the driver {} of {name} does not stamp all received frames (ethtool -T {name}); use software",
                interface.driver
            ));
        }
        let path = format!("/dev/ptp{}", info.phc_index);
        let device = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        let none = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
        let before = requests.exchange(SIOCGHWTSTAMP, none).map_err(failed)?;
        let all = libc::hwtstamp_config { rx_filter: FILTER_ALL, ..before };
        requests.exchange(SIOCSHWTSTAMP, all).map_err(failed)?;
        let clock = Self { device, index: info.phc_index, requests, before };
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
        // An interface that is gone has nothing to restore.
        let _ = self.requests.exchange(SIOCSHWTSTAMP, self.before);
    }
}
