//! Files and pipes, with a limit on the time of waiting.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that a pipe may be without a writer, and that its writer may send nothing.
const UNOPENED: Duration = Duration::from_secs(1);
const SILENT: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A file, or a pipe such as `<(zcat capture.gz)` of a shell, with a limit on the time of waiting.
pub struct Source<'a> {
    file: File,
    is_pipe: bool,
    begun: bool,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Source<'a> {
    /// Opens the file; `-` is the standard input. While a pipe is silent, `go_on` is asked whether to wait on.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or is a device.
    pub fn open(path: &Path, go_on: &'a (dyn Fn() -> bool + Sync)) -> io::Result<Self> {
        let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_dir() {
            return Err(io::Error::other("is a directory, not a file; name a capture in it"));
        }
        if !(kind.is_file() || kind.is_fifo()) {
            return Err(io::Error::other("is a device, no capture; name a file or a pipe"));
        }
        // Opening a pipe waits for its writer otherwise.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        Ok(Self { file, is_pipe: kind.is_fifo(), begun: false, go_on })
    }
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match self.file.read(into) {
                Ok(0) if self.is_pipe && !self.begun => {
                    if began.elapsed() > UNOPENED {
                        return Err(io::Error::other("is a pipe that nobody wrote to; name a file"));
                    }
                }
                Err(error) if self.is_pipe && error.kind() == ErrorKind::WouldBlock => {
                    if began.elapsed() > SILENT {
                        return Err(io::Error::other(format!(
                            "is a pipe that nothing came through for {} s; write a file first and name that",
                            SILENT.as_secs()
                        )));
                    }
                    self.begun = true;
                }
                read => {
                    self.begun = true;
                    return read;
                }
            }
            if !(self.go_on)() {
                return Err(io::Error::other("interrupted"));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}
