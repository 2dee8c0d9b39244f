//! Sockets of the families `AF_PACKET` and `AF_XDP`, in safe wrappers.

#![allow(unsafe_code, reason = "system calls; no other file of the crate passes pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{Result, TesterError};

/// A socket.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Socket {
    /// An `AF_PACKET` socket that receives nothing until it is bound to a protocol.
    pub fn packet() -> Result<Self> {
        Self::open(libc::AF_PACKET, "opening an AF_PACKET socket")
    }

    /// An `AF_XDP` socket.
    pub fn xdp() -> Result<Self> {
        Self::open(libc::AF_XDP, "opening an AF_XDP socket")
    }

    fn open(family: libc::c_int, what: &str) -> Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(TesterError::last_os(what));
        }
        // SAFETY: just opened and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets an option, whose structure is the kernel's `T`.
    pub fn set<T: Copy>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value is valid for its length; the kernel only reads it.
        let result =
            unsafe { libc::setsockopt(self.0.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) };
        answer(result)
    }

    /// Reads an option of integers; the kernel leaves the rest of `value` unchanged.
    pub fn get<const WORDS: usize>(&self, level: libc::c_int, name: libc::c_int) -> io::Result<[u32; WORDS]> {
        let mut value = [0_u32; WORDS];
        let mut length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` octets of integers.
        let result =
            unsafe { libc::getsockopt(self.0.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length) };
        answer(result).map(|()| value)
    }

    /// Where the rings of an `AF_XDP` socket have their words: (producer, consumer, descriptors, flags) of the rings
    /// rx, tx, fill, completion.
    pub fn xdp_offsets(&self) -> io::Result<[[usize; 4]; 4]> {
        let words: [u32; 32] = self.get(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let (low, high) = if cfg!(target_endian = "little") { (0, 1) } else { (1, 0) };
        let long = |nth: usize| ((u64::from(words[2 * nth + high]) << 32) | u64::from(words[2 * nth + low])) as usize;
        Ok(std::array::from_fn(|ring| std::array::from_fn(|field| long(4 * ring + field))))
    }

    /// Binds an `AF_PACKET` socket to an interface; with a protocol it receives frames of it (`ETH_P_ALL`: all).
    pub fn bind_packet(&self, interface: u32, protocol: libc::c_int) -> io::Result<()> {
        // SAFETY: zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = interface as i32;
        self.bind(&address)
    }

    /// Binds an `AF_XDP` socket to the first queue of an interface.
    pub fn bind_xdp(&self, interface: u32, flags: u16) -> io::Result<()> {
        self.bind(&libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        })
    }

    fn bind<T>(&self, address: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the address is valid for its length.
        answer(unsafe { libc::bind(self.0.as_raw_fd(), std::ptr::from_ref(address).cast(), length) })
    }

    /// Makes the kernel process a ring, without waiting.
    pub fn kick(&self) -> io::Result<()> {
        // SAFETY: a message of no octets and no address.
        let sent =
            unsafe { libc::sendto(self.0.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        answer(if sent < 0 { -1 } else { 0 })
    }

    /// Waits until there is something to receive; `false` after `timeout_ms`.
    pub fn wait(&self, timeout_ms: i32) -> bool {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, as the count says.
        unsafe { libc::poll(&raw mut poll, 1, timeout_ms) > 0 }
    }

    /// A time stamp that the driver took of a frame sent as a probe, and what is left of the frame.
    ///
    /// The stamp is in `CLOCK_REALTIME`, ns. `None` when there is none at the moment.
    pub fn probe(&self, frame: &mut [u8]) -> Option<(u64, usize)> {
        let mut part = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        let mut control = Control([0; 256]);
        // SAFETY: zero is a valid message header.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the part and the control data outlive the call and have the given lengths.
        let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
        let octets = usize::try_from(received).ok()?;
        // SAFETY: the kernel wrote well-formed control messages of the length in the header.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        while !header.is_null() {
            // SAFETY: not null, so it points to a header inside the control data.
            let control_header = unsafe { *header };
            if control_header.cmsg_level == libc::SOL_SOCKET && control_header.cmsg_type == libc::SCM_TIMESTAMPING {
                // SAFETY: the kernel writes three times, of which the first is the software's; they may be unaligned.
                let time = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
                return Some((time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, octets));
            }
            // SAFETY: both belong to the message.
            header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
        }
        Some((0, octets))
    }
}

fn answer(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for control messages, aligned as their headers are.
#[repr(C, align(8))]
#[derive(Debug)]
struct Control([u8; 256]);

/// A control message that asks the driver for a time stamp of a frame.
#[repr(C, align(8))]
#[derive(Debug)]
struct Probe {
    header: libc::cmsghdr,
    flags: u32,
    spare: u32,
}

/// Frames that are handed to an `AF_PACKET` socket together.
#[derive(Debug)]
pub(super) struct Batch {
    frames: Box<[u8]>,
    stride: usize,
    parts: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    probe: Box<Probe>,
}

// SAFETY: the pointers are into boxes that move with the batch.
unsafe impl Send for Batch {}

impl Batch {
    /// Room for `count` frames of at most `octets`.
    pub fn new(count: usize, octets: usize) -> Self {
        // An odd number of cache lines, so that neighbours do not share the sets of the cache.
        let stride = (octets.div_ceil(64) | 1) * 64;
        let mut frames = vec![0; stride * count].into_boxed_slice();
        let mut parts: Box<[_]> = frames
            .chunks_exact_mut(stride)
            .map(|frame| libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: 0 })
            .collect();
        let messages = parts
            .iter_mut()
            .map(|part| {
                // SAFETY: zero is a valid message header: no address, no control data.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        let header = libc::cmsghdr {
            // SAFETY: only computes a length.
            cmsg_len: unsafe { libc::CMSG_LEN(size_of::<u32>() as u32) } as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SO_TIMESTAMPING,
        };
        let probe = Box::new(Probe { header, flags: libc::SOF_TIMESTAMPING_TX_SOFTWARE, spare: 0 });
        Self { frames, stride, parts, messages, probe }
    }

    /// Whether the driver shall stamp the first frame of the next call.
    pub fn set_probe(&mut self, probe: bool) {
        let message = &mut self.messages[0].msg_hdr;
        message.msg_control = if probe { std::ptr::from_mut(&mut *self.probe).cast() } else { std::ptr::null_mut() };
        message.msg_controllen = if probe { size_of::<Probe>() as _ } else { 0 };
    }

    /// The room of the `nth` frame, which will have so many octets.
    pub fn frame(&mut self, nth: usize, octets: usize) -> &mut [u8] {
        assert!(octets <= self.stride);
        self.parts[nth].iov_len = octets;
        &mut self.frames[nth * self.stride..][..octets]
    }

    /// Hands over the first `count` frames; how many the kernel took.
    pub fn send(&mut self, socket: &Socket, count: usize) -> io::Result<usize> {
        let messages = &mut self.messages[..count];
        // SAFETY: each message names one part, each part a frame of this batch; all outlive the call.
        let sent =
            unsafe { libc::sendmmsg(socket.0.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

/// Sleeps until `CLOCK_MONOTONIC` is `at_ns`, or less if a signal comes.
pub(super) fn sleep_until(at_ns: u64) {
    let time = libc::timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut()) };
}
