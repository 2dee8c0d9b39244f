//! The errors of probes and runs.

use crate::memory::mebibytes;

/// Why a host cannot be probed or a function cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A request that cannot be read, or a value in it outside what is allowed.
    #[error("{place}: {message}")]
    Request {
        /// Path of the value: `tables.mac`, `frame_bytes`, or `request` if it is not JSON at all.
        place: String,
        /// The value, the allowed values and what to do.
        message: String,
    },
    /// A request exceeds the memory.
    #[error(
        "{what} needs {} MiB of memory, but {} MiB are available; ask for less or free some memory",
        mebibytes(*needed_bytes),
        mebibytes(*available_bytes)
    )]
    Memory {
        /// What the memory is for: "table mac", "the working set of the latency".
        what: String,
        /// Requested bytes.
        needed_bytes: u64,
        /// Bytes that this process can have.
        available_bytes: u64,
    },
    /// The kernel refused a call.
    #[error("{what}: {error}")]
    System {
        /// The attempted action.
        what: String,
        /// The error of the kernel.
        error: std::io::Error,
    },
    /// A processor that this thread may not run on.
    #[error("cpu {cpu}: this process may run on {} only; name one of them", cpus(allowed))]
    Cpu {
        /// The requested processor.
        cpu: usize,
        /// Processors that are allowed.
        allowed: Vec<usize>,
    },
    /// An unknown network function, or an unknown direction of one.
    #[error("function: there is no `{function}` that runs for real; there are {}", allowed.join(", "))]
    Function {
        /// The requested name.
        function: String,
        /// The known names.
        allowed: Vec<String>,
    },
    /// A table that a function does not have or that cannot be built.
    #[error("tables.{table}: {message}")]
    Table {
        /// Its name in the request.
        table: String,
        /// The value, the allowed values and what to do.
        message: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The result of a probe or a run.
pub type Result<T> = std::result::Result<T, ProbeError>;

impl ProbeError {
    /// The error of a wrong value in a request.
    #[must_use]
    pub fn request(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Request { place: place.into(), message: message.into() }
    }

    /// The kind of the error in one word, for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "request",
            Self::Memory { .. } => "memory",
            Self::System { .. } => "system",
            Self::Cpu { .. } => "cpu",
            Self::Function { .. } => "function",
            Self::Table { .. } => "table",
            Self::Interrupted => "interrupted",
        }
    }

    /// The error of the last system call of this thread.
    #[must_use]
    pub fn last_os(what: impl Into<String>) -> Self {
        Self::System { what: what.into(), error: std::io::Error::last_os_error() }
    }
}

impl From<serde_json::Error> for ProbeError {
    fn from(error: serde_json::Error) -> Self {
        Self::request("request", error.to_string())
    }
}

fn cpus(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
