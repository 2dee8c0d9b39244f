//! Every integration test of this crate in one program: each one more is linked anew.

mod conservation;
mod latency;
mod meshes;
