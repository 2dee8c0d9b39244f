//! The simulator as a WebAssembly module: a page that is opened from a file simulates where it is read.
//!
//! A request and its answer are JSON in blocks of the module's memory:
//!
//! ```text
//!   page                                     module
//!   alloc(length) ──────────────────────────► block
//!   request as UTF-8 into the block
//!   simulate(block, length) ────────────────► reads, checks, runs ──► env.progress(share), 0: go on
//!   answer ◄───────────────────────────────── [length: u32, little endian][JSON as UTF-8]
//!   free(block, length), free(answer, 4 + length of the JSON)
//! ```
//!
//! Requests and answers are those of [`answer`]. The module keeps a list of its blocks: an address or a length that is
//! not of one is refused, and nothing else is read or written. A broken invariant traps; a module that has trapped is
//! thrown away.
//!
//! Unsafe code is what the boundary itself needs: names that the host calls, and the one function of the host. Only the
//! module has them: elsewhere a `free` of that name would take the place of the C library's.
#![cfg_attr(
    target_arch = "wasm32",
    expect(unsafe_code, reason = "exported names and the import of a WebAssembly module")
)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use routecast_sim::replicate::Plan;
use routecast_sim::{Outcome, Scenario, SimError};
use serde::{Deserialize, Serialize};

/// What to simulate: the arguments of `routecast._core.simulate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    scenario: Scenario,
    #[serde(default = "default_replications")]
    replications: usize,
    #[serde(default)]
    target_relative_half_width: Option<f64>,
    #[serde(default = "default_most")]
    most: usize,
}

fn default_replications() -> usize {
    1
}

fn default_most() -> usize {
    64
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Outcome(Box<Outcome>),
    Error { kind: &'static str, message: String, duration_s: f64, needed_s: f64 },
}

impl Answer {
    /// The error of a malformed request.
    fn malformed(message: String) -> Self {
        Self::Error { kind: "scenario", message, duration_s: 0.0, needed_s: 0.0 }
    }
}

impl From<SimError> for Answer {
    fn from(error: SimError) -> Self {
        let (duration_s, needed_s) = error.spans_s();
        Self::Error { kind: error.kind(), message: error.to_string(), duration_s, needed_s }
    }
}

/// Answers a request; `report` receives the finished share, 0..1, and may stop the run.
///
/// ```
/// use std::ops::ControlFlow;
///
/// let answer = routecast_wasm::answer(br#"{"scenario": {}}"#, &|_| ControlFlow::Continue(()));
/// assert!(answer.starts_with(r#"{"error":{"kind":"scenario","message":"missing field `model`"#));
/// ```
///
/// # Panics
///
/// Where the simulator breaks an invariant.
#[must_use]
pub fn answer(request: &[u8], report: &(dyn Fn(f64) -> ControlFlow<()> + Sync)) -> String {
    let answer = match serde_json::from_slice::<Request>(request) {
        Ok(Request { scenario, replications, target_relative_half_width, most }) => {
            let plan = Plan { replications, target_relative_half_width, most };
            routecast_sim::replicate(&scenario, plan, report)
                .map_or_else(Answer::from, |outcome| Answer::Outcome(Box::new(outcome)))
        }
        Err(error) => Answer::malformed(error.to_string()),
    };
    serde_json::to_string(&answer).expect("an answer has text keys only")
}

/// Blocks of memory that the page holds, by address.
static BLOCKS: Mutex<BTreeMap<usize, Box<[u8]>>> = Mutex::new(BTreeMap::new());

fn blocks() -> MutexGuard<'static, BTreeMap<usize, Box<[u8]>>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a block until the page frees it.
fn keep(mut block: Box<[u8]>) -> *mut u8 {
    let address = block.as_mut_ptr();
    blocks().insert(address.addr(), block);
    address
}

/// Makes a block of `len` bytes, all 0; null where there is no memory for it, or `len` is 0.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
#[must_use]
pub extern "C" fn alloc(len: usize) -> *mut u8 {
    let mut block = Vec::new();
    if len == 0 || block.try_reserve_exact(len).is_err() {
        return std::ptr::null_mut();
    }
    block.resize(len, 0);
    keep(block.into_boxed_slice())
}

/// Frees a block. An address or a length that is not of a block is ignored.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn free(block: *mut u8, len: usize) {
    let mut blocks = blocks();
    if blocks.get(&block.addr()).is_some_and(|held| held.len() == len) {
        blocks.remove(&block.addr());
    }
}

/// Answers the request in the first `len` bytes of a block; returns a block with the answer.
///
/// # Panics
///
/// Where the simulator breaks an invariant.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn simulate(block: *mut u8, len: usize) -> *mut u8 {
    let request = blocks().get(&block.addr()).and_then(|held| held.get(..len)).map(<[u8]>::to_vec);
    let text = match request {
        Some(request) => answer(&request, &report),
        None => serde_json::to_string(&Answer::malformed(format!("no block of {len} bytes at {block:?}")))
            .expect("an answer has text keys only"),
    };
    let length = u32::try_from(text.len()).expect("memory ends at 4 GiB");
    let mut framed = Vec::with_capacity(size_of::<u32>() + text.len());
    framed.extend_from_slice(&length.to_le_bytes());
    framed.extend_from_slice(text.as_bytes());
    keep(framed.into_boxed_slice())
}

#[cfg(target_arch = "wasm32")]
fn report(share: f64) -> ControlFlow<()> {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        /// Receives the finished share of the run, 0..1; an answer other than 0 stops the run.
        safe fn progress(share: f64) -> i32;
    }
    if progress(share) == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

#[cfg(not(target_arch = "wasm32"))]
fn report(_share: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = r#"{"scenario": {
      "model": {
        "ports": [{"link_bps": 1e12, "tx_ring": 512, "entry": 0}],
        "tasks": [{"needs": [], "per_frame_ps": 1e6, "per_byte_ps": 0, "per_batch_ps": 0,
                   "variation": {"kind": "deterministic"}, "queue": 100000, "activation": {"kind": "dedicated"},
                   "batch": 1, "parallel": 1, "priority": 0, "weight": 1, "pin": [],
                   "route": {"kind": "single", "to": []}}],
        "pools": []
      },
      "load": {
        "sources": [{"port": 0, "rate_pps": 5e5, "process": {"kind": "poisson"}, "flows": [0]}],
        "flows": [{"hash": 0, "egress": 0, "weight": 1}],
        "sizes": [64], "random_sizes": false
      },
      "run": {"duration_ps": 100000000000, "seed": 1}
    }, "replications": 2}"#;

    fn go_on(_share: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn error_of(answer: &str) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(answer).expect("JSON")["error"].take()
    }

    /// The length and the text of an answer, which is freed.
    fn taken(answer: *mut u8) -> String {
        let held = blocks().get(&answer.addr()).expect("an answer is a block").clone();
        let (length, text) = held.split_first_chunk().expect("a length");
        assert_eq!(u32::from_le_bytes(*length) as usize, text.len());
        free(answer, held.len());
        String::from_utf8(text.to_vec()).expect("text")
    }

    #[test]
    fn a_request_is_answered_with_the_outcome_of_the_simulator() {
        let request: Request = serde_json::from_str(REQUEST).expect("a request");
        let plan = Plan { replications: 2, target_relative_half_width: None, most: 64 };
        let outcome = routecast_sim::replicate(&request.scenario, plan, &go_on).expect("it can be simulated");
        let want = format!(r#"{{"outcome":{}}}"#, serde_json::to_string(&outcome).expect("JSON"));
        assert_eq!(answer(REQUEST.as_bytes(), &go_on), want);
        let block = alloc(REQUEST.len());
        blocks().get_mut(&block.addr()).expect("a block").copy_from_slice(REQUEST.as_bytes());
        assert_eq!(taken(simulate(block, REQUEST.len())), want);
        free(block, REQUEST.len());
    }

    #[test]
    fn what_cannot_be_simulated_has_a_kind_and_a_message() {
        let error_for = |request: &str| error_of(&answer(request.as_bytes(), &go_on));
        assert_eq!(error_for("{")["kind"], "scenario");
        let cycle = REQUEST.replace(r#""to": []"#, r#""to": [{"task": 0}]"#);
        assert_eq!(error_for(&cycle)["kind"], "cycle");
        let short =
            REQUEST.replace(r#""duration_ps": 100000000000"#, r#""duration_ps": 100000000, "need_steady_state": true"#);
        let transient = error_for(&short);
        assert_eq!(transient["kind"], "transient");
        assert_eq!(transient["duration_s"], 1e-4);
        assert!(transient["needed_s"].as_f64().is_some_and(|needed_s| needed_s > 1e-4));
        let stopped = answer(REQUEST.as_bytes(), &|_| ControlFlow::Break(()));
        assert_eq!(error_of(&stopped)["kind"], "interrupted");
    }

    #[test]
    fn an_address_or_a_length_that_is_of_no_block_is_refused() {
        assert!(alloc(0).is_null());
        assert!(alloc(usize::MAX).is_null());
        let block = alloc(8);
        for (address, len) in [(block, 9), (std::ptr::null_mut(), 0), (block.wrapping_add(1), 1)] {
            let error = error_of(&taken(simulate(address, len)));
            assert!(error["message"].as_str().is_some_and(|message| message.starts_with("no block of ")), "{error}");
        }
        free(block, 7);
        assert!(blocks().contains_key(&block.addr()));
        free(block, 8);
        assert!(!blocks().contains_key(&block.addr()));
        free(block, 8);
    }
}
