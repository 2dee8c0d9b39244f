//! Elementary operations of network functions (Baldi & Sapio 2018, table 1, and further ones of modern functions).
//!
//! ```text
//!   io_mem ─► parse ─► ht_lookup ─► … ─► deparse ─► mem_io        each a separate loop over the batch
//! ```
//!
//! An operation is an inline function that goes once over a batch (lookups twice: prefetch, then use). Values between
//! operations lie in [`Words`](crate::batch::Words), arrays of 32. Because no two operations share a loop, the costs
//! of a function's operations add up, and [`probe`] times these very functions. Operations do not branch on faults
//! and leave frames with one in their place.
#![allow(clippy::inline_always, reason = "parts of inner loops: a call would cost more than they do")]
#![allow(clippy::needless_bitwise_bool, reason = "a branch per test would be mispredicted where frames differ")]

mod acl;
mod arithmetic;
mod array;
mod check;
mod checksum;
mod crypto;
mod encapsulation;
mod field;
mod hash;
mod io;
mod lookup;
mod lpm;
mod prefetch;
pub mod probe;
mod queue;
mod toeplitz;

pub use acl::acl_lookup;
pub use arithmetic::{decrease, increase, sum};
pub use array::{array_access, counter_update};
pub use check::{assemble, check};
pub use checksum::{checksum, checksum_bytes, checksum_words, inc_checksum, internet_checksum};
pub use crypto::{AesGcm, aes_gcm_open, aes_gcm_seal};
pub use encapsulation::{prepend, strip};
pub use field::{deparse, mask, parse};
pub use hash::{crc_hash, crc32c};
pub use io::{Descriptor, io_mem, mem_io};
pub use lookup::{ct_insertion, ht_lookup};
pub use lpm::lpm_lookup;
pub use prefetch::prefetch;
pub use queue::{dequeue, enqueue};
pub use toeplitz::{MICROSOFT_KEY, Toeplitz, toeplitz_hash};
