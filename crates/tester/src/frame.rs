//! Frames of the tester: building and checking them.

/// The frames of one stream.
#[derive(Debug)]
pub struct Templates;
