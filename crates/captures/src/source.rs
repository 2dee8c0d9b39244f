//! Files and pipes, with a limit on the time of waiting.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
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
        let (file, is_pipe) = opened(path)?;
        Ok(Self { file, is_pipe, begun: false, go_on })
    }
}

/// The file, and whether it is a pipe.
#[cfg(unix)]
fn opened(path: &Path) -> io::Result<(File, bool)> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let kind = std::fs::metadata(path)?.file_type();
    refuse(kind.is_dir(), kind.is_file() || kind.is_fifo())?;
    // Opening a pipe waits for its writer otherwise.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    Ok((file, kind.is_fifo()))
}

/// The file, and whether it is a pipe: never, for reading one waits without a limit here.
#[cfg(windows)]
fn opened(path: &Path) -> io::Result<(File, bool)> {
    use std::os::windows::io::AsHandle;
    if path == Path::new("-") {
        return Ok((io::stdin().as_handle().try_clone_to_owned()?.into(), false));
    }
    let kind = std::fs::metadata(path)?.file_type();
    refuse(kind.is_dir(), kind.is_file())?;
    Ok((File::open(path)?, false))
}

fn refuse(is_folder: bool, is_readable: bool) -> io::Result<()> {
    if is_folder {
        return Err(io::Error::other("is a directory, not a file; name a capture in it"));
    }
    if !is_readable {
        return Err(io::Error::other("is a device, no capture; name a file or a pipe"));
    }
    Ok(())
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
