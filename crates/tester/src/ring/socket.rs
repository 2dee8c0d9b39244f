//! Sockets of the families `AF_PACKET` and `AF_XDP`, in safe wrappers.

#![allow(unsafe_code)] // System calls; no other file of the room passes pointers to the kernel.

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

    /// Asks for an option of integers. `value` is what the kernel leaves as it is.
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

    /// Lets the kernel work on a ring, without waiting.
    pub fn kick(&self) -> io::Result<()> {
        // SAFETY: a message of no octets and no address.
        let sent =
            unsafe { libc::sendto(self.0.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        answer(if sent < 0 { -1 } else { 0 })
    }

    /// Waits until there is something to receive; `false` after `timeout_ms`.
    pub fn wait(&self, timeout_ms: i32) -> bool {
        let mut asked = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, as told.
        unsafe { libc::poll(&raw mut asked, 1, timeout_ms) > 0 }
    }

    /// The error that the socket holds, such as of an interface that went down.
    pub fn error(&self) -> Option<io::Error> {
        let [code] = self.get(libc::SOL_SOCKET, libc::SO_ERROR).ok()?;
        (code != 0).then(|| io::Error::from_raw_os_error(code as i32))
    }
}

fn answer(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Frames that are handed to an `AF_PACKET` socket together.
#[derive(Debug)]
pub(super) struct Batch {
    frames: Box<[u8]>,
    stride: usize,
    parts: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
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
        Self { frames, stride, parts, messages }
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
