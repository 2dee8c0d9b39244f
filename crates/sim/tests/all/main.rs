//! Every integration test of this crate in one program: each one more is linked anew.

mod changes;
mod flows;
mod lanes;
mod paths;
mod resources;
mod resting;
mod scenarios;
mod theory;
mod threads;
mod together;
mod virtual_machine;
mod windows;
mod windows_at_random;
