//! A wire that loses a share of its frames in one direction, an emulated fault.

use std::path::Path;

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::links::PinnedLink;
use routecast_tester::sys::interface::Interface;
use routecast_tester::sys::netns;
use routecast_tester::{Result, TesterError};

use crate::plane::{Source, refused};

const LINK: &str = "link";

/// The share of 2^32 that the programs compare a random number with.
pub(crate) fn share_of(loss_ratio: f64) -> Result<u64> {
    if (0.0..=1.0).contains(&loss_ratio) {
        Ok((loss_ratio * 4_294_967_296.0).round() as u64)
    } else {
        Err(TesterError::value("loss_ratio", loss_ratio, "0 to 1"))
    }
}

/// A program at an interface that drops a share of the frames which arrive there, silently.
pub struct Loss {
    share: Array<MapData, u64>,
    dropped: Array<MapData, u64>,
    _ebpf: Option<Box<Ebpf>>,
}

impl Loss {
    /// Attaches the program to an interface in a network namespace, without loss, or opens the one that is pinned in the
    /// folder `pins` of a BPF file system, with the loss that it has.
    ///
    /// # Errors
    ///
    /// The interface does not exist or has a program, or the kernel refuses.
    pub fn attach(interface: &str, at: Option<&str>, pins: Option<&Path>) -> Result<Self> {
        let mut source = Source::new("loss", &["loss"], pins, &[LINK.to_owned()])?;
        let (share, dropped) = (source.array("share")?, source.array("dropped")?);
        netns::inside(at, || {
            let interface = Interface::find(interface, at)?;
            source.attach("loss", &interface, pins.map(|folder| folder.join(LINK)).as_deref())
        })?;
        Ok(Self { share, dropped, _ebpf: source.kept(pins) })
    }

    /// Sets the share of the arriving frames that is dropped, 0 to 1.
    ///
    /// # Errors
    ///
    /// It is no such share, or the kernel refuses.
    pub fn set(&mut self, loss_ratio: f64) -> Result<()> {
        self.share.set(0, share_of(loss_ratio)?, 0).map_err(|error| refused(&error))
    }

    /// Frames that it dropped since it was attached.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn dropped(&self) -> Result<u64> {
        self.dropped.get(&0, 0).map_err(|error| refused(&error))
    }

    /// Takes the program that is pinned in a folder off its interface; without one there is nothing to do.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn remove(pins: &Path) -> Result<()> {
        let what = || format!("removing the eBPF program in {}", pins.display());
        if !pins.exists() {
            return Ok(());
        }
        let link = pins.join(LINK);
        if link.exists() {
            // The last descriptor is closed here, and not some time after the file is gone: then it is off.
            let link = PinnedLink::from_pin(&link).map_err(|error| refused(&error))?;
            drop(link.unpin().map_err(|error| TesterError::System { what: what(), error })?);
        }
        std::fs::remove_dir_all(pins).map_err(|error| TesterError::System { what: what(), error })
    }
}
