//! Every integration test of this crate in one binary, because each further binary is linked anew.

#[macro_use]
mod bed;
mod counting;
mod latency;
mod objects;
mod over_time;
