//! Every integration test of this crate in one program: each one more is linked anew.

mod bench;
mod forwarding;
mod hostile;
mod rewriting;
mod runs;
