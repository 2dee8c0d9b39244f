//! Marks for a tracer: calls of a number that the Linux kernel does not know, so that they do nothing (`ENOSYS`).
#![allow(unsafe_code, reason = "the syscall instruction itself, for a function of libc would be counted too")]

/// The number of the call: beyond all of Linux.
pub const NUMBER: u64 = 0x5254_4341;

/// A mark.
pub const MEMORY: u64 = 1;
/// A packet begins.
pub const PACKET_BEGINS: u64 = 2;
/// A packet ends.
pub const PACKET_ENDS: u64 = 3;

/// The memory of the packets.
pub fn memory(first: u64, bytes: u64) {
    mark(MEMORY, first, bytes);
}

/// A packet of so many bytes begins; 0: an empty one, to count the marks themselves.
#[expect(clippy::inline_always, reason = "a call would be part of what is counted")]
#[inline(always)]
pub fn packet_begins(frame_bytes: usize, payload_bytes: usize) {
    mark(PACKET_BEGINS, frame_bytes as u64, payload_bytes as u64);
}

/// The packet ends.
#[expect(clippy::inline_always, reason = "a call would be part of what is counted")]
#[inline(always)]
pub fn packet_ends() {
    mark(PACKET_ENDS, 0, 0);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[expect(clippy::inline_always, reason = "a call would be part of what is counted")]
#[inline(always)]
fn mark(kind: u64, first: u64, second: u64) {
    // SAFETY: an unknown call changes nothing but the registers named here. The compiler may not move accesses to
    // memory across it, so that the packet's stand between its marks.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") NUMBER => _,
            in("rdi") kind,
            in("rsi") first,
            in("rdx") second,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn mark(_kind: u64, _first: u64, _second: u64) {}
