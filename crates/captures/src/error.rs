//! The errors of captures.

use std::path::{Path, PathBuf};

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be read, is no capture, or holds what is not read.
    #[error("{}: {message}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// What is wrong, where, and what to do.
        message: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The result of reading a capture.
pub type Result<T> = std::result::Result<T, CaptureError>;

impl CaptureError {
    /// The error of a file.
    #[must_use]
    pub fn file(path: &Path, message: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), message: message.into() }
    }

    /// The kind of the error in one word, for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Interrupted => "interrupted",
        }
    }
}
