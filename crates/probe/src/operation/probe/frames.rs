//! Cases of the operations that read or write frames.

use std::hint::black_box;

use super::{Case, SLICE_BATCHES, timed};
use crate::batch::{BATCH_FRAMES, Batch, Buffer, FAULT_KINDS, HEADROOM_BYTES, Words};
use crate::operation::{
    AesGcm, Descriptor, aes_gcm_seal, checksum, deparse, inc_checksum, io_mem, mask, mem_io, parse, prepend, strip,
};

/// Frames of a batch whose payloads are worked on: 8 of 1500 bytes fit into the first-level cache.
const PAYLOAD_FRAMES: usize = 8;

pub(super) fn cases(cases: &mut Vec<Case>) {
    macro_rules! push_each {
        ($make:ident: $($b:literal)*) => { $(cases.push($make::<$b>());)* };
    }
    macro_rules! push_each_with_words {
        ($make:ident: $($b:literal)*) => { $(cases.push($make::<$b, { usize::div_ceil($b, 8) }>());)* };
    }
    cases.push(io_mem_case::<16>(48));
    cases.push(io_mem_case::<34>(30));
    cases.push(io_mem_case::<64>(0));
    cases.push(io_mem_case::<64>(1454));
    cases.push(io_mem_case::<96>(32));
    cases.push(io_mem_case::<128>(0));
    cases.push(io_mem_case::<192>(0));
    for (hdr, data) in [(16, 48), (64, 0), (64, 1454), (128, 0)] {
        cases.push(mem_io_case(hdr, data));
    }
    push_each_with_words!(parse_case: 1 2 4 6 8 13 16 20 32 40 64);
    push_each_with_words!(deparse_case: 1 2 4 6 8 12 14 16 20 32 40 64);
    push_each!(checksum_case: 8 16 20 32 40 64);
    push_each!(payload_checksum_case: 128 256 512 1024 1500);
    push_each_with_words!(inc_checksum_case: 2 4 8 16 32 64);
    push_each_with_words!(prepend_case: 4 8 14 20 28 36 50 64);
    for b in [4, 14, 18, 34] {
        cases.push(strip_case(b));
    }
    for b in [16, 32, 64, 128, 256, 512, 1024, 1446] {
        cases.push(aes_gcm_case(b));
    }
}

/// Buffers with bytes that are not all the same.
fn buffers(count: usize) -> Vec<Buffer> {
    let mut buffers = vec![Buffer::default(); count];
    for (index, byte) in buffers.iter_mut().flat_map(|buffer| &mut buffer.bytes).enumerate() {
        *byte = ((index * 151) >> 3) as u8;
    }
    buffers
}

fn batch(buffers: &mut [Buffer], length: u16) -> Batch<'_> {
    let mut batch = Batch::new(buffers);
    batch.length.fill(length);
    batch
}

fn io_mem_case<const HDR: usize>(data: u16) -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    let length = (HDR as u16 + data).max(64) + 4;
    let descriptors = [Descriptor { buffer: 0, start: HEADROOM_BYTES as u16, length, port: 0 }; BATCH_FRAMES];
    Case::new("io_mem", &[("hdr", HDR as f64), ("data", f64::from(data))], move || {
        let mut batch = batch(&mut buffers, 0);
        timed(|_| {
            io_mem::<HDR>(&mut batch, black_box(&descriptors));
            black_box(&mut batch);
        })
    })
}

fn mem_io_case(hdr: u16, data: u16) -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    let mut out = [Descriptor::default(); BATCH_FRAMES];
    let mut drops = [0; FAULT_KINDS];
    Case::new("mem_io", &[("hdr", f64::from(hdr)), ("data", f64::from(data))], move || {
        let batch = batch(&mut buffers, (hdr + data).max(64));
        timed(|_| {
            black_box(mem_io(black_box(&batch), 0, &mut out, &mut drops));
            black_box(&mut out);
        })
    })
}

fn parse_case<const B: usize, const W: usize>() -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    let mut fields: Words<W> = [[0; W]; BATCH_FRAMES];
    Case::new("parse", &[("b", B as f64)], move || {
        let batch = batch(&mut buffers, 128);
        timed(|_| {
            parse::<W>(black_box(&batch), 14, mask::<W>(B), &mut fields);
            black_box(&mut fields);
        })
    })
}

fn deparse_case<const B: usize, const W: usize>() -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    let fields: Words<W> = [[0x5a5a; W]; BATCH_FRAMES];
    Case::new("deparse", &[("b", B as f64)], move || {
        let mut batch = batch(&mut buffers, 128);
        timed(|_| {
            deparse::<B, W>(&mut batch, 14, black_box(&fields));
            black_box(&mut batch);
        })
    })
}

fn checksum_case<const B: usize>() -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    let mut checksums: Words<1> = [[0]; BATCH_FRAMES];
    Case::new("checksum", &[("b", B as f64)], move || {
        let batch = batch(&mut buffers, 128);
        timed(|_| {
            checksum::<B>(black_box(&batch), 14, &mut checksums);
            black_box(&mut checksums);
        })
    })
}

fn payload_checksum_case<const B: usize>() -> Case {
    let mut buffers = buffers(PAYLOAD_FRAMES);
    let mut checksums: Words<1> = [[0]; BATCH_FRAMES];
    let case = Case::new("checksum", &[("b", B as f64)], move || {
        let batch = batch(&mut buffers, 1518);
        timed(|_| {
            checksum::<B>(black_box(&batch), 14, &mut checksums);
            black_box(&mut checksums);
        })
    });
    Case { batch_frames: PAYLOAD_FRAMES, ..case }
}

fn inc_checksum_case<const B: usize, const W: usize>() -> Case {
    let mut checksums: Words<1> = [[0x1234]; BATCH_FRAMES];
    let old: Words<W> = [[0x1122_3344; W]; BATCH_FRAMES];
    let new: Words<W> = [[0x5566_7788; W]; BATCH_FRAMES];
    Case::new("inc_checksum", &[("b", B as f64)], move || {
        timed(|_| {
            inc_checksum(&mut checksums, black_box(&old), black_box(&new), BATCH_FRAMES);
            black_box(&mut checksums);
        })
    })
}

fn prepend_case<const B: usize, const W: usize>() -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    let headers: Words<W> = [[0x0102_0304; W]; BATCH_FRAMES];
    Case::new("prepend", &[("b", B as f64)], move || {
        let mut batch = batch(&mut buffers, 64);
        let (start, length) = (batch.start, batch.length);
        timed(|_| {
            prepend::<B, W>(black_box(&mut batch), black_box(&headers));
            black_box(&mut batch);
            (batch.start, batch.length) = (start, length);
        })
    })
}

fn strip_case(b: u16) -> Case {
    let mut buffers = buffers(BATCH_FRAMES);
    Case::new("strip", &[("b", f64::from(b))], move || {
        let mut batch = batch(&mut buffers, 128);
        let (start, length) = (batch.start, batch.length);
        timed(|_| {
            strip(black_box(&mut batch), b);
            black_box(&mut batch);
            (batch.start, batch.length) = (start, length);
        })
    })
}

fn aes_gcm_case(b: u16) -> Case {
    let mut buffers = buffers(PAYLOAD_FRAMES);
    let key = AesGcm::new(&[7; 16], 1);
    let bytes = [b; BATCH_FRAMES];
    let mut next = 0;
    let case = Case::new("aes_gcm", &[("b", f64::from(b))], move || {
        let mut batch = batch(&mut buffers, 1518);
        let mut vectors = [[0; BATCH_FRAMES]; SLICE_BATCHES];
        for vector in vectors.as_flattened_mut() {
            *vector = next;
            next += 1;
        }
        timed(|number| {
            aes_gcm_seal(&key, &mut batch, 50, 8, &bytes, &vectors[number]);
            black_box(&mut batch);
        })
    });
    Case { batch_frames: PAYLOAD_FRAMES, ..case }
}
