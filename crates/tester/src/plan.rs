//! Schedules: when each frame is due, of which size and flow it is.

/// When the frames of one stream are due.
#[derive(Debug)]
pub struct Plan;
