//! The errors of testers and trials.

/// Why a tester cannot be opened or a trial cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum TesterError {
    /// The text of a configuration or a request is malformed.
    #[error("{place}: {message}")]
    Text {
        /// "config" or "request".
        place: &'static str,
        /// The message of the parser.
        message: String,
    },
    /// A value is outside what is allowed.
    #[error("{place}: got {got}; {allowed}")]
    Value {
        /// Path of the value in the request.
        place: String,
        /// The value.
        got: String,
        /// What is allowed.
        allowed: String,
    },
    /// Rights are missing.
    #[error("the tester lacks {}; run it as root or give the program these capabilities (setcap)", missing.join(", "))]
    Rights {
        /// Names of capabilities.
        missing: Vec<&'static str>,
    },
    /// The crate was built for a big-endian machine, without clang.
    #[error(
        "this build has no eBPF programs, because those that routecast ships are little-endian: build it with \
         ROUTECAST_CLANG=clang (Debian: apt install clang libbpf-dev linux-libc-dev)"
    )]
    NoPrograms,
    /// There is no such interface in that namespace.
    #[error("there is no interface `{interface}` in {}", place(netns.as_deref()))]
    NoInterface {
        /// Its name.
        interface: String,
        /// Path of the namespace, `None` for the current one.
        netns: Option<String>,
    },
    /// A back end was asked for that this interface or this version cannot offer.
    #[error("port {port}: {back_end} is not available: {why}")]
    BackEnd {
        /// Name of the port.
        port: String,
        /// Name of the back end.
        back_end: String,
        /// What is missing and what to do.
        why: String,
    },
    /// Another XDP program is attached to the interface.
    #[error(
        "`{interface}` has an XDP program already (`ip link show {interface}` names it); end the process that attached it, or \
         detach it with `ip link set {interface} xdp off`"
    )]
    Occupied {
        /// The interface.
        interface: String,
    },
    /// The kernel refused a call.
    #[error("{what}: {error}")]
    System {
        /// The attempted action.
        what: String,
        /// The error of the kernel.
        error: std::io::Error,
    },
    /// The kernel refused an eBPF program or a map.
    #[error("{what}: {message}")]
    Bpf {
        /// The attempted action.
        what: String,
        /// The error of the loader or the verifier.
        message: String,
    },
    /// The tester was closed before.
    #[error("the tester is closed")]
    Closed,
}

fn place(netns: Option<&str>) -> String {
    netns.map_or_else(|| "the current network namespace".to_owned(), |path| format!("namespace {path}"))
}

impl TesterError {
    /// The kind of the error in one word, for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } | Self::Value { .. } => "usage",
            Self::Rights { .. } => "rights",
            Self::NoPrograms => "no_programs",
            Self::NoInterface { .. } => "no_interface",
            Self::BackEnd { .. } => "back_end",
            Self::Occupied { .. } => "occupied",
            Self::System { .. } => "system",
            Self::Bpf { .. } => "bpf",
            Self::Closed => "closed",
        }
    }

    /// The last error of the operating system, with what was attempted.
    #[must_use]
    pub fn last_os(what: impl Into<String>) -> Self {
        Self::System { what: what.into(), error: std::io::Error::last_os_error() }
    }

    /// A value outside what is allowed.
    #[must_use]
    pub fn value(place: impl Into<String>, got: impl std::fmt::Display, allowed: impl Into<String>) -> Self {
        Self::Value { place: place.into(), got: format!("{got}"), allowed: allowed.into() }
    }
}

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, TesterError>;
