//! Queues in lanes: many stretches of one trajectory at once, one lane of a vector each.
//!
//! A lane runs the whole router by integers alone ([`router`], [`words`]). Its draws belong to instants and not to a
//! stream ([`draw`]), so a stretch can be begun anywhere, and a stretch that was warmed up until it forgot how it began is
//! the very trajectory: the seam between two stretches is proved by comparing the states on both sides ([`segments`]).

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod device;
pub mod draw;
pub mod kept;
pub mod law;
mod pace;
mod program;
pub mod router;
pub mod segments;
mod shader;
pub mod state;
mod step;
pub mod tally;
mod tape;
mod team;
pub mod vectors;
pub mod words;

#[cfg(test)]
mod tests;
