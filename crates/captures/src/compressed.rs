//! Captures packed by gzip or zstd, recognised by their first bytes.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Most bytes that a packed capture may unpack to.
pub const MOST_UNPACKED_BYTES: u64 = 64 << 30;
const READ_BYTES: usize = 128 << 10;
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The bytes of a source as they were before packing.
///
/// # Errors
///
/// Its first bytes cannot be read.
pub fn unpacked<'a>(mut source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = [0; 4];
    let got = read_fully(&mut source, &mut head)?;
    let whole = Cursor::new(head).take(got as u64).chain(source);
    if head.starts_with(&GZIP) {
        return Ok(Box::new(Bounded { from: Gzip(MultiGzDecoder::new(whole)), left: MOST_UNPACKED_BYTES }));
    }
    // Frames that are to be skipped (pzstd writes one first) have sixteen magic numbers.
    if head == ZSTD || (head[0] & 0xf0 == 0x50 && head[1..] == [0x2a, 0x4d, 0x18]) {
        let frames =
            Zstd { from: BufReader::with_capacity(READ_BYTES, whole), decoder: FrameDecoder::new(), in_frame: false };
        return Ok(Box::new(Bounded { from: frames, left: MOST_UNPACKED_BYTES }));
    }
    Ok(Box::new(whole))
}

fn read_fully(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match from.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

fn damaged(tool: &str, error: &dyn std::error::Error) -> io::Error {
    let remedy = format!("unpack what is whole with {tool} -dc < FILE > PART and name PART");
    io::Error::new(ErrorKind::InvalidData, format!("the {tool} packing of the file is damaged ({error}); {remedy}"))
}

/// The members of a gzip file, one after the other.
struct Gzip<R>(MultiGzDecoder<R>);

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::InvalidData => damaged("gzip", &error),
            _ => error,
        })
    }
}

/// Refuses what a small file of a hostile writer could unpack to.
struct Bounded<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::other(format!(
                "unpacks to more than {} GiB; unpack it, take a part with editcap -r and name that",
                MOST_UNPACKED_BYTES >> 30
            ))
        })?;
        Ok(count)
    }
}

/// The frames of a zstd file, one after the other.
struct Zstd<R> {
    from: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> Zstd<R> {
    /// Begins the next frame; false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.from) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.from).take(length), &mut io::sink())? < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.fault(&error)),
            }
        }
        Ok(false)
    }

    /// An error of the decoder: the file ended, or it is damaged.
    fn fault(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.from.fill_buf() {
            Ok([]) => ErrorKind::UnexpectedEof.into(),
            Ok(_) => damaged("zstd", error),
            Err(error) => error,
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.in_frame {
                let count = self.decoder.read(into)?;
                if count > 0 {
                    return Ok(count);
                }
                if self.decoder.is_finished() {
                    self.in_frame = false;
                    continue;
                }
                let strategy = BlockDecodingStrategy::UptoBytes(READ_BYTES);
                if let Err(error) = self.decoder.decode_blocks(&mut self.from, strategy) {
                    return Err(self.fault(&error));
                }
            } else if !self.begin()? {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpacked(bytes)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn members_of_gzip_and_frames_of_zstd_are_read_one_after_the_other() {
        // printf abc | gzip -n, and printf abc | zstd.
        let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x4a, 6, 0, 0xc2, 0x41, 0x24, 0x35, 3, 0, 0, 0];
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, b'a', b'b', b'c'];
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        assert_eq!(read(&[gzip, gzip].concat()).unwrap(), b"abcabc");
        assert_eq!(read(&[&zstd[..], &skipped, &zstd].concat()).unwrap(), b"abcabc");
        assert_eq!(read(b"ab").unwrap(), b"ab");
    }

    #[test]
    fn a_packed_file_that_ends_early_says_so() {
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, b'a', b'b', b'c'];
        for end in 4..zstd.len() {
            assert_eq!(read(&zstd[..end]).unwrap_err().kind(), ErrorKind::UnexpectedEof, "{end}");
        }
    }

    #[test]
    fn more_than_the_bound_is_refused() {
        let mut bounded = Bounded { from: &[0_u8; 9][..], left: 8 };
        assert!(bounded.read(&mut [0; 9]).unwrap_err().to_string().contains("unpacks to more"));
    }
}
