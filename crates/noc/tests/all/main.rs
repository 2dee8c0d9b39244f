//! Every integration test of this crate in one binary, because each further binary is linked anew.

mod conservation;
mod latency;
mod meshes;
