//! `acl_lookup(rules, tuples, HE)`: the rule of highest priority that matches.

use crate::batch::{BATCH_FRAMES, Words};
use crate::table::tuple_space::TupleSpace;

/// `acl_lookup(rules, tuples, HE)`: the action of the best rule for each key of two words; the default where none does.
///
/// Tuple space search: one masked hash lookup per combination of masks, each of two loops as
/// [`ht_lookup`](crate::operation::ht_lookup). Source: Srinivasan, Suri & Varghese 1999.
#[inline]
pub fn acl_lookup(rules: &TupleSpace, keys: &Words<2>, count: usize, actions: &mut [u32; BATCH_FRAMES]) {
    rules.lookup(keys, count, actions);
}
