//! The functions of the last run, kept so that a sweep over frames and traffic builds its tables once.
//!
//! At most one set of tables is kept, those of the last run; a run of anything else frees them before it builds its own.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::function::{Build, NetworkFunction, build};

/// A function that ran, what it was made of, and the number of its core in the run.
struct Kept {
    build: Build,
    core: usize,
    function: Box<dyn NetworkFunction>,
}

static LAST: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// The function as it was left by the last run with the same tables, or a new one.
///
/// # Errors
///
/// As [`build`].
pub(super) fn take(wanted: &Build, core: usize) -> Result<Box<dyn NetworkFunction>> {
    let kept = {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|kept| same_tables(&kept.build, wanted));
        let index = last.iter().position(|kept| kept.core == core);
        index.map(|index| last.swap_remove(index).function)
    };
    let mut function = match kept {
        Some(function) => function,
        None => build(wanted)?,
    };
    function.expect_flows(wanted.flows);
    Ok(function)
}

/// Keeps a function for the next run.
pub(super) fn keep(build: &Build, core: usize, function: Box<dyn NetworkFunction>) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.retain(|kept| same_tables(&kept.build, build) && kept.core != core);
    last.push(Kept { build: build.clone(), core, function });
}

/// Flows do not matter to the tables, only to the frames.
fn same_tables(a: &Build, b: &Build) -> bool {
    Build { flows: 0, ..a.clone() } == Build { flows: 0, ..b.clone() }
}
