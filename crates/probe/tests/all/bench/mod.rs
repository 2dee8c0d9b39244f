//! Frames through a function, one by one visible.
#![allow(dead_code, reason = "each test file uses a part")]

use routecast_probe::batch::{BATCH_FRAMES, BUFFER_BYTES, Buffer, FCS_BYTES, HEADROOM_BYTES};
use routecast_probe::function::{Build, FUNCTIONS, NetworkFunction, Twin, build, drops_by_name, twin};
use routecast_probe::memory::Pages;
use routecast_probe::operation::Descriptor;
use routecast_probe::run::{Tally, pass};

/// Where buffers have bytes that no frame has, so that a write shows.
const CANARY: u8 = 0xc5;

/// A function with small tables.
pub fn small(function: &str, direction: Option<&str>, entries: u64) -> Box<dyn NetworkFunction> {
    build(&plan(twin(function, direction).unwrap(), entries)).unwrap()
}

pub fn plan(twin: Twin, entries: u64) -> Build {
    let tables = twin
        .tables
        .iter()
        .map(|table| (table.name.to_owned(), if table.name == "maglev" { 251 } else { entries.min(table.most) }))
        .collect();
    Build::new(twin, &tables, None, Pages::Normal, 42).unwrap()
}

pub fn all_functions() -> Vec<(Twin, Box<dyn NetworkFunction>)> {
    FUNCTIONS.iter().map(|&twin| (twin, build(&plan(twin, 100)).unwrap())).collect()
}

/// A flow's frame of `bytes`, FCS not among them.
pub fn frame_of(function: &dyn NetworkFunction, flow: u64, bytes: usize) -> (Vec<u8>, u16) {
    let mut frame = vec![0; bytes - FCS_BYTES];
    let port = function.headers(flow, &mut frame);
    (frame, port)
}

/// A frame in a ring.
#[derive(Debug, Clone)]
pub struct Input {
    pub frame: Vec<u8>,
    pub port: u16,
    pub start: u16,
    pub length: u16,
}

impl Input {
    pub fn new(frame: Vec<u8>, port: u16) -> Self {
        let length = (frame.len() + FCS_BYTES) as u16;
        Self { frame, port, start: HEADROOM_BYTES as u16, length }
    }
}

/// What became of the frames of one pass: `Some` for those that left.
pub struct Output {
    pub frames: Vec<Option<(Vec<u8>, u16)>>,
    pub tally: Tally,
}

impl Output {
    pub fn dropped(&self, reason: &str) -> u64 {
        drops_by_name(&self.tally.drops).get(reason).copied().unwrap_or(0)
    }
}

/// Buffers with the frames, one more at each end that nobody may touch.
pub fn buffers(inputs: &[Input]) -> (Vec<Buffer>, Vec<Descriptor>) {
    let mut buffers = vec![Buffer { bytes: [CANARY; BUFFER_BYTES] }; inputs.len() + 2];
    let mut descriptors = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let start = usize::from(input.start).min(BUFFER_BYTES);
        let end = (start + input.frame.len()).min(BUFFER_BYTES);
        buffers[number + 1].bytes[start..end].copy_from_slice(&input.frame[..end - start]);
        let (start, length, port) = (input.start, input.length, input.port);
        descriptors.push(Descriptor { buffer: number as u16, start, length, port });
    }
    (buffers, descriptors)
}

/// One pass; checks on the way that frames are conserved and that nobody wrote where no frame is.
pub fn through(function: &mut dyn NetworkFunction, inputs: &[Input]) -> Output {
    let (mut memory, descriptors) = buffers(inputs);
    let before = memory.clone();
    let mut tally = Tally::default();
    let mut frames = vec![None; inputs.len()];
    for first in (0..inputs.len()).step_by(BATCH_FRAMES) {
        let to = inputs.len().min(first + BATCH_FRAMES);
        let mut outgoing = [[Descriptor::default(); BATCH_FRAMES]];
        let forwarded = tally.forwarded;
        let batch = &mut memory[1 + first..=to];
        pass(function, batch, &descriptors[first..to], first as u16, &mut outgoing, &mut tally);
        let mut next = first;
        for descriptor in &outgoing[0][..(tally.forwarded - forwarded) as usize] {
            let number = usize::from(descriptor.buffer);
            assert!((next..to).contains(&number), "frames leave once, in order");
            next = number + 1;
            let start = usize::from(descriptor.start);
            let stop = start + usize::from(descriptor.length) - FCS_BYTES;
            frames[number] = Some((memory[number + 1].bytes[start..stop].to_vec(), descriptor.port));
            // Outside the frames that came in and left, nothing has changed.
            let old = usize::from(inputs[number].start);
            let within = start.min(old)..stop.max(old + usize::from(inputs[number].length));
            for (index, (now, then)) in memory[number + 1].bytes.iter().zip(&before[number + 1].bytes).enumerate() {
                assert!(now == then || within.contains(&index), "byte {index} outside the frame was written");
            }
        }
    }
    assert_eq!(tally.offered, inputs.len() as u64);
    assert_eq!(tally.offered, tally.forwarded + tally.drops.iter().sum::<u64>(), "{:?}", tally.drops);
    assert_eq!(tally.drops[0], 0, "nobody is dropped for no reason");
    for guard in [0, inputs.len() + 1] {
        assert_eq!(memory[guard].bytes, before[guard].bytes, "a neighbour's buffer was written");
    }
    Output { frames, tally }
}

/// The Internet checksum word by word, as RFC 1071, sec. 1 defines it: 0 for data that contain their own.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Bytes that look like a payload.
pub fn payload(frame: &mut [u8], from: usize) {
    for (index, byte) in frame.iter_mut().enumerate().skip(from) {
        *byte = (index * 37 + 11) as u8;
    }
}
