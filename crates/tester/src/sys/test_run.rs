//! `BPF_PROG_TEST_RUN` with live frames: the kernel makes frames, a program writes them, the kernel sends them.

use std::os::fd::{AsRawFd, BorrowedFd};

const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// The arguments of the command, as `union bpf_attr` lays them out.
#[repr(C)]
#[derive(Default)]
struct Arguments {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    spare: u32,
}

fn call(arguments: &mut Arguments) -> std::io::Result<()> {
    // SAFETY: the structure and the frame it points to outlive the call; the kernel writes only into the structure.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut *arguments, size_of::<Arguments>()) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs a program on one frame; returns its verdict.
///
/// # Errors
///
/// The error of the kernel.
pub fn once(program: BorrowedFd<'_>, frame: &[u8]) -> std::io::Result<u32> {
    let mut arguments = Arguments {
        prog_fd: program.as_raw_fd() as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat: 1,
        ..Arguments::default()
    };
    call(&mut arguments)?;
    Ok(arguments.retval)
}

/// Runs a program on `repeat` copies of `frame` and sends what it redirects, `batch` frames at a time.
///
/// # Errors
///
/// The error of the kernel; `EINTR` if a signal ended it before all frames were made.
pub fn live_frames(program: BorrowedFd<'_>, frame: &[u8], repeat: u32, batch: u32) -> std::io::Result<()> {
    let mut arguments = Arguments {
        prog_fd: program.as_raw_fd() as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..Arguments::default()
    };
    call(&mut arguments)
}
