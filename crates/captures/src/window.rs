//! A stream through a window of bounded size.

use std::io::{ErrorKind, Read};

/// Why a stream of packets ends before its file does.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// What is wrong with the file and what to do.
    Wrong(String),
    /// What is wrong with the next packet and what to do.
    Packet(String),
    /// What is damaged from the next packet on.
    Damaged(String),
    /// The file ends within something.
    CutOff,
    /// The caller asked to stop.
    Interrupted,
}

/// The result of a step of parsing.
pub type Parsed<T> = std::result::Result<T, Fault>;

impl Fault {
    /// The fault of these words.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }
}

const FIRST_BYTES: usize = 256 << 10;

/// The next bytes of a stream.
pub struct Window<'a> {
    from: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at: u64,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Window<'a> {
    /// A window at the start of the stream. `go_on` is asked at each filling.
    pub fn new(from: Box<dyn Read + 'a>, go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { from, buffer: vec![0; FIRST_BYTES], start: 0, end: 0, at: 0, go_on }
    }

    /// Bytes of the stream before the window.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Brings bytes in until `count` are there; false if the stream ends before.
    fn fill(&mut self, count: usize) -> Parsed<bool> {
        if self.end - self.start >= count {
            return Ok(true);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < count {
            self.buffer.resize(count, 0);
        }
        while self.end < count {
            if !(self.go_on)() {
                return Err(Fault::Interrupted);
            }
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(got) => self.end += got,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::UnexpectedEof => return Ok(false),
                    ErrorKind::InvalidData => return Err(Fault::Packet(format!("cannot be unpacked: {error}"))),
                    _ if (self.go_on)() => return Err(Fault::Wrong(error.to_string())),
                    _ => return Err(Fault::Interrupted),
                },
            }
        }
        Ok(true)
    }

    /// Whether nothing is left.
    pub fn is_at_end(&mut self) -> Parsed<bool> {
        Ok(!self.fill(1)?)
    }

    /// The next bytes, which stay in front of the window.
    pub fn peek(&mut self, count: usize) -> Parsed<&[u8]> {
        if !self.fill(count)? {
            return Err(Fault::CutOff);
        }
        Ok(&self.buffer[self.start..self.start + count])
    }

    /// Leaves bytes behind, as many as there may be.
    pub fn skip(&mut self, mut count: u64) -> Parsed<()> {
        loop {
            let here = ((self.end - self.start) as u64).min(count);
            self.start += here as usize;
            self.at += here;
            count -= here;
            if count == 0 {
                return Ok(());
            }
            if !self.fill(1)? {
                return Err(Fault::CutOff);
            }
        }
    }

    /// The next bytes, of at most 32.
    pub fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.peek(N)?);
        self.skip(N as u64)?;
        Ok(bytes)
    }
}
