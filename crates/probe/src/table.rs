//! Tables of network functions: built before packets come, read while they do.

pub mod array;
pub mod dir24_8;
pub mod hash_table;
pub mod maglev;
pub mod ring;
pub mod tuple_space;
