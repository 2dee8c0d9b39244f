//! Truncated, random and hostile frames through every function: dropped and counted, never a panic, nothing written
//! outside; what goes on was right.

use std::cell::RefCell;

use crate::bench::{Input, all_functions, checksum, frame_of, through};
use etherparse::Ipv4Header;
use proptest::prelude::*;
use routecast_probe::batch::{BUFFER_BYTES, HEADROOM_BYTES};
use routecast_probe::function::{NetworkFunction, Twin};

/// What happens to a good frame on its way.
#[derive(Debug, Clone)]
enum Harm {
    Nothing,
    Truncate(u16),
    Change(Vec<(u8, u8)>),
    Random(Vec<u8>),
    /// A descriptor that says what cannot be.
    Lie {
        start: u16,
        length: u16,
    },
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        1 => Just(Harm::Nothing),
        2 => (0_u16..200).prop_map(Harm::Truncate),
        // The first bytes are headers.
        4 => prop::collection::vec((0_u8..90, any::<u8>()), 1..5).prop_map(Harm::Change),
        2 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Harm::Random),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(start, length)| Harm::Lie { start, length }),
        1 => (2000_u16..2200, 0_u16..200).prop_map(|(start, length)| Harm::Lie { start, length }),
        1 => (0_u16..64, 60_u16..2112).prop_map(|(start, length)| Harm::Lie { start, length }),
    ]
}

fn harmed(function: &dyn NetworkFunction, flow: u64, harm: Harm) -> Input {
    let (mut frame, port) = frame_of(function, flow, 100);
    match harm {
        Harm::Nothing => {}
        Harm::Truncate(length) => frame.truncate(usize::from(length)),
        Harm::Change(changes) => changes.into_iter().for_each(|(at, byte)| frame[usize::from(at)] = byte),
        Harm::Random(bytes) => frame = bytes,
        Harm::Lie { start, length } => return Input { frame, port, start, length },
    }
    Input::new(frame, port)
}

thread_local! {
    static FUNCTIONS: RefCell<Vec<(Twin, Box<dyn NetworkFunction>)>> = RefCell::new(all_functions());
}

/// Where the IPv4 header begins that a function must have checked, ahead of it and behind it.
fn checked(twin: &Twin) -> Option<(usize, usize)> {
    match (twin.function, twin.direction) {
        ("ipv4_router" | "nat44" | "acl_firewall" | "l4_balancer", _) => Some((14, 14)),
        ("bng", "access") => Some((22, 50)),
        ("bng", _) => Some((50, 22)),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_is_forwarded_or_dropped_and_what_goes_on_was_right(
        harms in prop::collection::vec((0_u64..200, harm()), 0..70)
    ) {
        FUNCTIONS.with_borrow_mut(|functions| {
            for (twin, function) in functions {
                let inputs: Vec<_> = harms
                    .iter()
                    .map(|(flow, harm)| harmed(function.as_ref(), *flow, harm.clone()))
                    .collect();
                // Conservation and bytes outside the frames are checked on the way.
                let output = through(function.as_mut(), &inputs);
                for (input, out) in inputs.iter().zip(&output.frames) {
                    let Some((frame, _)) = out else { continue };
                    let Some((before, after)) = checked(twin) else { continue };
                    let end = usize::from(input.start) + usize::from(input.length);
                    prop_assert!(end <= BUFFER_BYTES, "{}: a frame beyond its buffer went on", twin.function);
                    if usize::from(input.start) != HEADROOM_BYTES {
                        continue;
                    }
                    let old = Ipv4Header::from_slice(&input.frame[before..]);
                    prop_assert!(old.is_ok(), "{}: {:?} went on", twin.function, &input.frame);
                    let old = old.unwrap().0;
                    let new = Ipv4Header::from_slice(&frame[after..]).unwrap().0;
                    prop_assert!(usize::from(new.total_len) + after <= frame.len());
                    let routes = ["ipv4_router", "nat44", "bng"].contains(&twin.function);
                    prop_assert_eq!(old.time_to_live - u8::from(routes), new.time_to_live);
                    prop_assert!(!routes || old.time_to_live > 1);
                    // A wrong checksum stays wrong by as much, except in the router, which drops it (RFC 1624).
                    let sum = |bytes: &[u8]| checksum(&bytes[..4 * usize::from(bytes[0] & 15)]) % 0xffff;
                    let error = sum(&input.frame[before..]);
                    prop_assert_eq!(error, sum(&frame[after..]), "{}", twin.function);
                    prop_assert!(error == 0 || twin.function != "ipv4_router");
                }
            }
            Ok(())
        })?;
    }
}

#[test]
fn no_frame_is_a_function_for_an_empty_batch() {
    for (_, mut function) in all_functions() {
        assert_eq!(through(function.as_mut(), &[]).tally.offered, 0);
        let alone = frame_of(function.as_ref(), 0, 100);
        assert_eq!(through(function.as_mut(), &[Input::new(alone.0, alone.1)]).tally.forwarded, 1);
    }
}

#[test]
fn frames_of_every_length_up_to_the_headers_are_too_short() {
    for (twin, mut function) in all_functions() {
        let (frame, port) = frame_of(function.as_ref(), 0, 100);
        let inputs: Vec<_> = (0..14).map(|length| Input::new(frame[..length].to_vec(), port)).collect();
        let output = through(function.as_mut(), &inputs);
        assert_eq!(output.dropped("too_short"), 14, "{}", twin.function);
    }
}
