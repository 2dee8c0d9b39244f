//! Tables of network functions: built before packets come, read while they do.
#![allow(clippy::inline_always, reason = "parts of inner loops: a call would cost more than they do")]
#![allow(clippy::needless_bitwise_bool, reason = "a branch per test would be mispredicted where frames differ")]

pub mod array;
pub mod dir24_8;
pub mod hash_table;
pub mod maglev;
pub mod ring;
pub mod tuple_space;
