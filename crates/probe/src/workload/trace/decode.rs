//! Decodes x86-64 instructions: their class and their memory accesses.

use std::collections::HashMap;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register, UsedMemory,
};
use libc::user_regs_struct;

use super::tally::{Access, Class};

/// The longest instruction (Intel SDM vol. 2, sec. 2.3.11).
pub const LONGEST_BYTES: usize = 15;

/// An instruction, decoded once.
#[derive(Debug)]
pub struct Decoded {
    /// Its class.
    pub class: Class,
    /// Its length, bytes.
    pub bytes: usize,
    /// Whether it repeats itself: a string instruction.
    pub repeats: bool,
    /// Whether rcx alone decides the number of repetitions: it moves or fills memory.
    pub moves: bool,
    memory: Vec<(UsedMemory, u64, bool, bool)>,
}

/// The instructions decoded so far.
pub struct Decodes {
    factory: InstructionInfoFactory,
    met: HashMap<u64, Decoded>,
}

impl Decodes {
    /// An empty cache of instructions.
    pub fn new() -> Self {
        Self { factory: InstructionInfoFactory::new(), met: HashMap::new() }
    }

    /// The instruction at an address; `bytes` reads memory if it is new.
    pub fn at(&mut self, address: u64, bytes: impl FnOnce() -> [u8; LONGEST_BYTES]) -> &Decoded {
        let factory = &mut self.factory;
        self.met.entry(address).or_insert_with(|| {
            let code = bytes();
            decoded(&Decoder::with_ip(64, &code, address, DecoderOptions::NONE).decode(), factory)
        })
    }

    /// Length of a decoded instruction.
    pub fn bytes(&self, address: u64) -> usize {
        self.met.get(&address).map_or(0, |decoded| decoded.bytes)
    }
}

fn decoded(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Decoded {
    let memory: Vec<_> = factory
        .info(instruction)
        .used_memory()
        .iter()
        .filter_map(|used| {
            let (reads, writes) = match used.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => return None,
            };
            Some((*used, used.memory_size().size().max(1) as u64, reads, writes))
        })
        .collect();
    let reads = memory.iter().any(|&(_, _, reads, _)| reads);
    let writes = memory.iter().any(|&(_, _, _, writes)| writes);
    let class = match (instruction.flow_control(), reads, writes) {
        (FlowControl::ConditionalBranch, ..) => Class::Branch,
        (FlowControl::Next, true, false) => Class::Load,
        (FlowControl::Next, false, true) => Class::Store,
        (FlowControl::Next, true, true) => Class::Update,
        (FlowControl::Next, false, false) => Class::Other,
        _ => Class::Jump,
    };
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let repeats = repeats && instruction.is_string_instruction();
    let moves = repeats && matches!(class, Class::Store | Class::Update);
    Decoded { class, bytes: instruction.len(), repeats, moves, memory }
}

impl Decoded {
    /// Its accesses with these registers. Gathers and scatters, whose addresses are in vectors, are omitted, as is a
    /// finished repetition.
    pub fn accesses<'a>(&'a self, registers: &'a user_regs_struct) -> impl Iterator<Item = Access> + 'a {
        let is_finished = self.repeats && registers.rcx == 0;
        self.memory.iter().filter(move |_| !is_finished).filter_map(|&(used, bytes, reads, writes)| {
            let address = used.virtual_address(0, |register, _, _| value(register, registers))?;
            Some(Access { address, bytes, reads, writes })
        })
    }
}

fn value(register: Register, registers: &user_regs_struct) -> Option<u64> {
    let full_value = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        // 64-bit mode takes their base for 0 (Intel SDM vol. 1, sec. 3.3.4).
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => return None,
    };
    Some(match register.size() {
        4 if register.is_gpr() => full_value & 0xffff_ffff,
        _ => full_value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the bytes of an instruction, with distinct register values.
    fn of(code: &[u8]) -> (Class, Vec<(u64, u64, bool, bool)>) {
        let mut bytes = [0x90; LONGEST_BYTES];
        bytes[..code.len()].copy_from_slice(code);
        let mut registers = zeros();
        (registers.rax, registers.rcx, registers.rsi, registers.rdi) = (0x1000, 2, 0x3000, 0x4000);
        (registers.rsp, registers.fs_base) = (0x7000, 0x9000);
        let mut met = Decodes::new();
        let decoded = met.at(0x5000, || bytes);
        assert_eq!(decoded.bytes, code.len());
        let accesses = decoded.accesses(&registers);
        (decoded.class, accesses.map(|access| (access.address, access.bytes, access.reads, access.writes)).collect())
    }

    #[allow(unsafe_code, reason = "a structure of numbers that C fills; zeros are a valid value")]
    fn zeros() -> user_regs_struct {
        // SAFETY: it consists of integers, for which zeros are a value.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn instructions_are_what_the_manual_says() {
        assert_eq!(of(&[0x48, 0x01, 0xc8]), (Class::Other, vec![])); // add rax, rcx
        assert_eq!(of(&[0x8b, 0x44, 0x88, 0x10]), (Class::Load, vec![(0x1018, 4, true, false)])); // mov eax, [rax+rcx*4+16]
        assert_eq!(of(&[0x48, 0x89, 0x06]), (Class::Store, vec![(0x3000, 8, false, true)])); // mov [rsi], rax
        assert_eq!(of(&[0xff, 0x00]), (Class::Update, vec![(0x1000, 4, true, true)])); // inc dword [rax]
        assert_eq!(of(&[0x48, 0x8d, 0x04, 0x08]), (Class::Other, vec![])); // lea rax, [rax+rcx]
        assert_eq!(of(&[0x74, 0x10]), (Class::Branch, vec![])); // je
        assert_eq!(of(&[0xc3]), (Class::Jump, vec![(0x7000, 8, true, false)])); // ret
        assert_eq!(of(&[0xe8, 0, 0, 0, 0]), (Class::Jump, vec![(0x6ff8, 8, false, true)])); // call
        assert_eq!(of(&[0x50]), (Class::Store, vec![(0x6ff8, 8, false, true)])); // push rax
        assert_eq!(of(&[0xf3, 0xa6]).0, Class::Load); // repe cmpsb
        assert_eq!(
            of(&[0xf3, 0xa4]), // rep movsb
            (Class::Update, vec![(0x4000, 1, false, true), (0x3000, 1, true, false)])
        );
        // mov rax, fs:[0x28]
        let guard = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0];
        assert_eq!(of(&guard), (Class::Load, vec![(0x9028, 8, true, false)]));
        // lea of an address relative to the instruction, and a load from it: 0x5007 + 0x100
        assert_eq!(of(&[0x48, 0x8b, 0x05, 0, 1, 0, 0]), (Class::Load, vec![(0x5107, 8, true, false)]));
    }
}
