//! System calls. The only unsafe code of the crate outside `ring` is here, in small safe wrappers.

#![allow(unsafe_code, reason = "system calls take pointers")]

pub mod capabilities;
pub mod clock;
pub mod interface;
pub mod lock;
pub mod mapping;
pub mod netns;
pub mod test_run;
pub mod thread;
