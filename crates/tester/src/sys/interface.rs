//! The kernel's facts on an interface of the calling thread's namespace.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::{Result, TesterError};

pub(crate) const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// An interface.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index in its namespace.
    pub index: u32,
    /// The driver, empty if it does not say.
    pub driver: String,
    /// Longest datagram, bytes.
    pub mtu: u32,
    /// Whether it is up and has its carrier.
    pub running: bool,
    /// Queues that receive, 0 if the driver does not say.
    pub receive_queues: u32,
}

#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// A socket for requests on an interface.
#[derive(Debug)]
pub(crate) struct Requests {
    socket: OwnedFd,
    name: CString,
}

impl Requests {
    /// Opens a socket in the calling thread's namespace.
    pub fn open(name: CString) -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened and owned by nobody else.
        Ok(Self { socket: unsafe { OwnedFd::from_raw_fd(socket) }, name })
    }

    fn send(&self, request: libc::c_ulong, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<libc::ifreq> {
        // SAFETY: zero is a valid ifreq.
        let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in ifreq.ifr_name.iter_mut().zip(self.name.as_bytes().iter().take(libc::IFNAMSIZ - 1)) {
            *to = *from as libc::c_char;
        }
        fill(&mut ifreq);
        // SAFETY: the structure is one that these requests read and write.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), request as _, &raw mut ifreq) };
        if result == 0 { Ok(ifreq) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends a request whose argument is a structure; returns it as the kernel leaves it.
    pub fn exchange<T>(&self, request: libc::c_ulong, mut value: T) -> io::Result<T> {
        self.send(request, |ifreq| ifreq.ifr_ifru.ifru_data = (&raw mut value).cast())?;
        Ok(value)
    }
}

impl Interface {
    /// Finds an interface of the calling thread's namespace; `netns` is only for the message.
    ///
    /// # Errors
    ///
    /// There is no interface of that name.
    pub fn find(name: &str, netns: Option<&str>) -> Result<Self> {
        let absent = || TesterError::NoInterface {
            interface: name.to_owned(),
            netns: netns.map(std::borrow::ToOwned::to_owned),
        };
        let text = CString::new(name).map_err(|_| absent())?;
        // SAFETY: the text ends with 0 and outlives the call.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(absent());
        }
        let requests =
            Requests::open(text).map_err(|error| TesterError::System { what: "opening a socket".to_owned(), error })?;
        let flags = requests.send(libc::SIOCGIFFLAGS as _, |_| {});
        let wanted = libc::IFF_UP | libc::IFF_RUNNING;
        // SAFETY: the kernel wrote this member.
        let running = flags.is_ok_and(|ifreq| i32::from(unsafe { ifreq.ifr_ifru.ifru_flags }) & wanted == wanted);
        // SAFETY: the kernel wrote this member.
        let mtu =
            requests.send(libc::SIOCGIFMTU as _, |_| {}).map_or(0, |ifreq| unsafe { ifreq.ifr_ifru.ifru_mtu } as u32);
        let info =
            requests.exchange(SIOCETHTOOL, DriverInfo { cmd: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] });
        let driver = info.map_or_else(
            |_| String::new(),
            |info| {
                String::from_utf8_lossy(info.driver.split(|&octet| octet == 0).next().unwrap_or_default()).into_owned()
            },
        );
        let channels = requests.exchange(SIOCETHTOOL, Channels { cmd: ETHTOOL_GCHANNELS, ..Channels::default() });
        let receive_queues = channels.map_or(0, |channels| channels.rx + channels.combined);
        Ok(Self { name: name.to_owned(), index, driver, mtu, running, receive_queues })
    }
}

/// Frames that an interface of the calling thread's namespace has received and sent, as the kernel counts them.
#[must_use]
pub fn frames(name: &str) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let field = |nth: usize| line.split_whitespace().nth(nth)?.parse().ok();
    Some((field(1)?, field(9)?))
}
