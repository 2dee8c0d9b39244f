//! Runs a program under ptrace(2): freely outside packets, instruction by instruction within them.
#![allow(unsafe_code, reason = "ptrace(2), waitpid(2) and the calls between fork and exec")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;

use libc::{c_int, c_uint, c_void, pid_t, user_regs_struct};

use super::beacon::{MEMORY, NUMBER, PACKET_BEGINS, PACKET_ENDS};
use super::decode::{Decodes, LONGEST_BYTES};
use super::tally::Tally;
use super::{TraceOutcome, TraceRequest};
use crate::error::{ProbeError, Result};
use crate::host::cpu::Pinned;

/// Instructions between two checks whether to go on.
const LISTEN: u64 = 4096;

/// The warm-up takes at most this part of the instructions: a quarter.
const WARM_UP_SHARE: u64 = 4;

/// Instructions that repeat themselves more often are not followed from one repetition to the next.
const LONG_REPEAT: u64 = 64;
/// The direction flag: string instructions go to lower addresses.
const DOWNWARDS: u64 = 1 << 10;

/// A stop for a call of the kernel, as told apart from other stops by `PTRACE_O_TRACESYSGOOD`.
const CALL: c_int = libc::SIGTRAP | 0x80;

/// A traced program, which is killed when this is dropped.
struct Tracee {
    child: Child,
    pid: pid_t,
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // It may have ended before: then there is nothing to end and nothing to wait for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reason of a stop.
enum Stop {
    /// At the beginning or the end of a call of the kernel.
    Call,
    /// After an instruction.
    Step,
    /// By a signal, which must be delivered.
    Signal(c_int),
    /// It has ended.
    Over(bool),
}

impl Tracee {
    fn start(command: &[String]) -> Result<Self> {
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: between fork and exec only this one call of the kernel, which needs no memory.
        unsafe {
            program.pre_exec(|| {
                if libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<c_void>(), null_mut::<c_void>()) == -1 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = program.spawn().map_err(|error| ProbeError::System {
            what: "starting the program to trace (ptrace may be forbidden here: allow it, such as with \
                   --cap-add=SYS_PTRACE)"
                .to_owned(),
            error,
        })?;
        let tracee = Self { pid: child.id() as pid_t, child };
        // The first stop: exec has happened.
        tracee.wait()?;
        tracee.request(libc::PTRACE_SETOPTIONS, (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL) as usize)?;
        Ok(tracee)
    }

    fn request(&self, what: c_uint, data: usize) -> Result<()> {
        // SAFETY: `pid` is a stopped child of this thread; the data of these requests are numbers.
        let done = unsafe { libc::ptrace(what, self.pid, null_mut::<c_void>(), data as *mut c_void) };
        if done == -1 { Err(ProbeError::last_os("tracing the workload with ptrace")) } else { Ok(()) }
    }

    fn registers(&self) -> Result<user_regs_struct> {
        // SAFETY: the struct consists of numbers, for which zeros are a value, and is valid for the call.
        unsafe {
            let mut registers: user_regs_struct = std::mem::zeroed();
            if libc::ptrace(libc::PTRACE_GETREGS, self.pid, null_mut::<c_void>(), &raw mut registers) == -1 {
                return Err(ProbeError::last_os("reading the registers of the workload"));
            }
            Ok(registers)
        }
    }

    /// Bytes of its code; bytes beyond a mapping are 0.
    fn code(&self, address: u64) -> [u8; LONGEST_BYTES] {
        let mut bytes = [0; 16];
        for (word, octets) in bytes.chunks_exact_mut(8).enumerate() {
            let from = (address + 8 * word as u64) as *mut c_void;
            // SAFETY: the kernel reads the memory of the child and answers with a word of it.
            let value = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.pid, from, null_mut::<c_void>()) };
            octets.copy_from_slice(&value.to_ne_bytes());
        }
        std::array::from_fn(|byte| bytes[byte])
    }

    fn write_code(&self, address: u64, word: u64) -> Result<()> {
        // SAFETY: the kernel writes a word of the child's memory; it gets its own copy of the page.
        let done =
            unsafe { libc::ptrace(libc::PTRACE_POKETEXT, self.pid, address as *mut c_void, word as *mut c_void) };
        if done == -1 { Err(ProbeError::last_os("setting a breakpoint in the workload")) } else { Ok(()) }
    }

    /// Runs to an address that will be reached.
    fn run_to(&mut self, address: u64) -> Result<()> {
        let code = self.code(address);
        let word = u64::from_ne_bytes(std::array::from_fn(|byte| code[byte]));
        // int3 replaces the first byte.
        self.write_code(address, word & !0xff | 0xcc)?;
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_CONT, signal as usize)?;
            signal = match self.wait()? {
                Stop::Signal(signal) => signal,
                Stop::Step | Stop::Call => break,
                Stop::Over(_) => return Err(self.failure()),
            };
        }
        self.write_code(address, word)?;
        let mut registers = self.registers()?;
        registers.rip = address;
        // SAFETY: the struct is valid for the call.
        let done = unsafe { libc::ptrace(libc::PTRACE_SETREGS, self.pid, null_mut::<c_void>(), &raw mut registers) };
        if done == -1 { Err(ProbeError::last_os("going on behind a breakpoint in the workload")) } else { Ok(()) }
    }

    fn wait(&self) -> Result<Stop> {
        let mut status = 0;
        loop {
            // SAFETY: the place for the status is valid for the call.
            if unsafe { libc::waitpid(self.pid, &raw mut status, 0) } == self.pid {
                break;
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(ProbeError::System { what: "waiting for the traced workload".to_owned(), error });
            }
        }
        Ok(if libc::WIFSTOPPED(status) {
            match libc::WSTOPSIG(status) {
                CALL => Stop::Call,
                libc::SIGTRAP => Stop::Step,
                signal => Stop::Signal(signal),
            }
        } else {
            Stop::Over(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0)
        })
    }

    /// Runs until the next mark; `None` if the program ended.
    fn next_mark(&mut self) -> Result<Option<user_regs_struct>> {
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_SYSCALL, signal as usize)?;
            signal = match self.wait()? {
                Stop::Signal(signal) => signal,
                Stop::Step => 0,
                Stop::Over(true) => return Ok(None),
                Stop::Over(false) => return Err(self.failure()),
                Stop::Call => {
                    let registers = self.registers()?;
                    // At the end of a call the answer stands in rax; at its beginning always ENOSYS.
                    if registers.orig_rax == NUMBER {
                        self.request(libc::PTRACE_SYSCALL, 0)?;
                        if let Stop::Over(_) = self.wait()? {
                            return Err(self.failure());
                        }
                        return Ok(Some(registers));
                    }
                    0
                }
            };
        }
    }

    /// The error of a failed program, with the last line of its output.
    fn failure(&mut self) -> ProbeError {
        let mut message = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            // Unreadable output is omitted.
            let _ = pipe.read_to_string(&mut message);
        }
        let last = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        ProbeError::System {
            what: "the traced workload failed".to_owned(),
            error: std::io::Error::other(last.trim().to_owned()),
        }
    }
}

/// Traces the packets of a program.
pub fn traced(request: &TraceRequest, progress: &mut dyn FnMut(f64) -> bool) -> Result<TraceOutcome> {
    // Both on one processor: they take turns, and a change between processors takes longer than an instruction.
    let _pinned = Pinned::to(None).ok();
    let mut tracee = Tracee::start(&request.command)?;
    let mut tally = Tally::new(request.warm_up, request.most_instructions / WARM_UP_SHARE);
    let mut decodes = Decodes::new();
    let mut complete = true;
    while let Some(mark) = tracee.next_mark()? {
        match mark.rdi {
            MEMORY => tally.packet_memory.push((mark.rsi, mark.rdx)),
            PACKET_BEGINS => {
                tally.packet_begins(mark.rsi, mark.rdx);
                step_through(&mut tracee, &mut tally, &mut decodes, request, progress)?;
                tally.packet_ends();
                if tally.traced() >= request.most_instructions {
                    complete = tally.done() >= request.packets;
                    break;
                }
            }
            _ => {}
        }
    }
    Ok(tally.outcome(complete, |address| decodes.bytes(address)))
}

/// Steps until the packet ends.
fn step_through(
    tracee: &mut Tracee,
    tally: &mut Tally,
    decodes: &mut Decodes,
    request: &TraceRequest,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<()> {
    let mut signal = 0;
    let mut last = 0;
    loop {
        let registers = tracee.registers()?;
        if registers.rax == NUMBER && registers.rdi == PACKET_ENDS && tracee.code(registers.rip)[..2] == [0x0f, 0x05] {
            return Ok(());
        }
        let instruction = decodes.at(registers.rip, || tracee.code(registers.rip));
        if !(instruction.repeats && registers.rip == last) {
            tally.instruction(registers.rip, instruction.bytes, instruction.class);
        }
        let again = instruction.repeats && registers.rip == last;
        for access in instruction.accesses(&registers) {
            // Processors move whole lines for a repeated instruction (Intel SDM vol. 1, sec. 7.3.9.3): so does this.
            if !again || access.begins_line() {
                tally.access(access);
            }
        }
        if instruction.moves && !again && registers.rcx > LONG_REPEAT && registers.eflags & DOWNWARDS == 0 {
            for access in instruction.accesses(&registers) {
                tally.access_run(access, registers.rcx);
            }
            let behind = registers.rip + instruction.bytes as u64;
            tracee.run_to(behind)?;
            continue;
        }
        last = registers.rip;
        if tally.traced().is_multiple_of(LISTEN) {
            let by_packets = tally.done() as f64 / request.packets.max(1) as f64;
            let by_instructions = tally.traced() as f64 / request.most_instructions as f64;
            if !progress(by_packets.max(by_instructions).min(1.0)) {
                return Err(ProbeError::Interrupted);
            }
        }
        tracee.request(libc::PTRACE_SINGLESTEP, signal as usize)?;
        signal = match tracee.wait()? {
            Stop::Signal(signal) => signal,
            Stop::Step | Stop::Call => 0,
            Stop::Over(_) => return Err(tracee.failure()),
        };
    }
}
