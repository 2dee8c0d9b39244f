//! The eBPF programs: embedded objects, loading, attaching.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use aya::maps::{Map, MapData};
use aya::programs::links::FdLink;
use aya::programs::xdp::XdpLinkId;
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};

use crate::error::{Result, TesterError};
use crate::sys::capabilities;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// How an XDP program runs on its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In the driver, before a socket buffer is made.
    Driver,
    /// In the network stack, because the driver cannot.
    Generic,
}

/// An object in the kernel: one program and its maps.
#[derive(Debug)]
pub struct Loaded {
    name: &'static str,
    ebpf: Ebpf,
}

/// The reason why this process can use no eBPF program at all; `None` if it can.
#[must_use]
pub fn obstacle() -> Option<String> {
    Loaded::new("pass", |_| {}).err().map(|error| match error {
        TesterError::Rights { missing } => format!("this process lacks {}", missing.join(", ")),
        TesterError::Bpf { message, .. } => message,
        error => error.to_string(),
    })
}

/// The reason why the kernel refuses bpf(2) to a process that has the rights to call it.
fn forbidden() -> String {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = lockdown.split(['[', ']']).nth(1).filter(|&mode| mode != "none");
    let mode = mode.map_or_else(String::new, |mode| format!(" (`{mode}` here)"));
    format!(
        "the kernel does not permit bpf(2): kernel lockdown{mode}, a security module, or a seccomp filter as those of \
         containers forbids it"
    )
}

pub(crate) fn bpf_error(what: String, error: &(dyn std::error::Error + 'static)) -> TesterError {
    if code(error) == Some(libc::EPERM) {
        let missing = capabilities::missing(false);
        if !missing.is_empty() {
            return TesterError::Rights { missing };
        }
        return TesterError::Bpf { what, message: forbidden() };
    }
    // The verifier's log is among the sources of the error; its last lines hold the reason.
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        message = format!("{message}: {inner}");
        source = inner.source();
    }
    let lines: Vec<_> = message.lines().collect();
    TesterError::Bpf { what, message: lines[lines.len().saturating_sub(12)..].join("\n") }
}

/// Loads an object and some XDP programs of it, after `prepare` has set the sizes of its maps and its constants.
///
/// # Errors
///
/// A right is missing, this build has no programs, or the kernel refuses.
pub fn load<'a>(name: &str, programs: &[&str], prepare: impl FnOnce(&mut EbpfLoader<'a>)) -> Result<Ebpf> {
    let missing = capabilities::missing_for_ebpf();
    if !missing.is_empty() {
        return Err(TesterError::Rights { missing });
    }
    let object = OBJECTS.iter().find(|(known, _)| *known == name).ok_or(TesterError::NoPrograms)?.1;
    let what = |program: &str| format!("loading the eBPF program `{program}`");
    let mut loader = EbpfLoader::new();
    prepare(&mut loader);
    let mut ebpf = loader.load(object).map_err(|error| bpf_error(what(name), &error))?;
    for name in programs {
        let program: &mut Xdp = xdp(&mut ebpf, name)?;
        program.load().map_err(|error| bpf_error(what(name), &error))?;
    }
    Ok(ebpf)
}

/// An XDP program of a loaded object.
///
/// # Errors
///
/// There is none of that name.
pub fn xdp<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp> {
    let program = ebpf.program_mut(name).ok_or(TesterError::NoPrograms)?;
    program.try_into().map_err(|error| bpf_error(format!("using the eBPF program `{name}`"), &error))
}

/// Attaches a program to an interface of the calling thread's namespace, until it is dropped.
///
/// # Errors
///
/// The interface has a program already, or the kernel refuses.
pub fn attach(program: &mut Xdp, name: &str, index: u32, interface: &str) -> Result<Mode> {
    linked(program, name, index, interface).map(|(mode, _)| mode)
}

/// Attaches a program to an interface of the calling thread's namespace, until a file of a BPF file system is removed.
///
/// # Errors
///
/// The interface has a program already, the kernel refuses, or the file is there.
pub fn attach_pinned(program: &mut Xdp, name: &str, index: u32, interface: &str, pin: &Path) -> Result<Mode> {
    let what = format!("keeping the eBPF program `{name}` on `{interface}` as {}", pin.display());
    let (mode, link) = linked(program, name, index, interface)?;
    let link = program.take_link(link).map_err(|error| bpf_error(what.clone(), &error))?;
    let link = FdLink::try_from(link).map_err(|error| bpf_error(what.clone(), &error))?;
    link.pin(pin).map(|_| mode).map_err(|error| bpf_error(what, &error))
}

fn linked(program: &mut Xdp, name: &str, index: u32, interface: &str) -> Result<(Mode, XdpLinkId)> {
    let what = format!("attaching the eBPF program `{name}` to `{interface}`");
    match program.attach_to_if_index(index, XdpMode::Driver) {
        Ok(link) => return Ok((Mode::Driver, link)),
        Err(error) if matches!(code(&error), Some(libc::EBUSY | libc::EEXIST)) => {
            return Err(TesterError::Occupied { interface: interface.to_owned() });
        }
        Err(_) => {}
    }
    let generic = program.attach_to_if_index(index, XdpMode::Skb);
    generic.map(|link| (Mode::Generic, link)).map_err(|error| bpf_error(what, &error))
}

impl Loaded {
    /// Loads the object `name` after `prepare` has set the sizes of its maps and its constants.
    ///
    /// # Errors
    ///
    /// A right is missing, this build has no programs, or the kernel refuses.
    pub fn new<'a>(name: &'static str, prepare: impl FnOnce(&mut EbpfLoader<'a>)) -> Result<Self> {
        Ok(Self { name, ebpf: load(name, &[name], prepare)? })
    }

    fn program(&mut self) -> Result<&mut Xdp> {
        xdp(&mut self.ebpf, self.name)
    }

    /// Attaches the program to an interface of the calling thread's namespace, until it is dropped.
    ///
    /// # Errors
    ///
    /// The interface has a program already, or the kernel refuses.
    pub fn attach(&mut self, index: u32, interface: &str) -> Result<Mode> {
        let name = self.name;
        attach(self.program()?, name, index, interface)
    }

    /// Takes the program off its interface.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn detach(&mut self) -> Result<()> {
        let what = format!("detaching the eBPF program `{}`", self.name);
        self.program()?.unload().map_err(|error| bpf_error(what, &error))
    }

    /// Runs the program on frames that the kernel makes, see [`crate::sys::test_run`].
    ///
    /// # Errors
    ///
    /// The program is not loaded.
    pub fn with_fd<T>(&mut self, work: impl FnOnce(BorrowedFd<'_>) -> T) -> Result<T> {
        let what = format!("using the eBPF program `{}`", self.name);
        let fd = self.program()?.fd().map_err(|error| bpf_error(what, &error))?;
        Ok(work(fd.as_fd()))
    }

    /// A map for aya's typed access.
    ///
    /// # Panics
    ///
    /// Panics where the object has no such map.
    pub fn map_mut(&mut self, name: &str) -> &mut Map {
        self.ebpf.map_mut(name).expect("the object and this crate are built together")
    }

    /// A map that can be used while the program runs.
    ///
    /// # Panics
    ///
    /// Panics where the object has no such map or it was taken before.
    pub fn take_map(&mut self, name: &str) -> Map {
        self.ebpf.take_map(name).expect("the object and this crate are built together")
    }

    /// File descriptor of an array map.
    ///
    /// # Panics
    ///
    /// Panics where the object has no such array.
    #[must_use]
    pub fn array_fd(&self, name: &str) -> BorrowedFd<'_> {
        match self.ebpf.map(name) {
            Some(Map::Array(data) | Map::PerCpuArray(data)) => fd(data),
            _ => panic!("the object and this crate are built together"),
        }
    }
}

fn fd(data: &MapData) -> BorrowedFd<'_> {
    data.fd().as_fd()
}

/// The error of the operating system that caused an error, if there is one.
fn code(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut sources = std::iter::successors(Some(error), |inner| inner.source());
    sources.find_map(|inner| inner.downcast_ref::<std::io::Error>()?.raw_os_error())
}

/// Turns an error of a map into ours.
#[must_use]
pub fn map_error(what: &str, error: &(dyn std::error::Error + 'static)) -> TesterError {
    bpf_error(what.to_owned(), error)
}
