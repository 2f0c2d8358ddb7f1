//! Frames of the binary protocol that the golden exchanges have not: what only other clients send, mistakes, credentials,
//! faults. The real memcached must answer alike what is in [`SHARED`].

use crate::drain;
use crate::real::{Real, converse};
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::{Credentials, Every, Faults};

/// A frame: (opcode, extras, key, value, unique).
type Sent = (u8, &'static [u8], &'static str, &'static str, u64);
/// What comes back: (opcode, status, extras, key, value, unique).
type Answered = (u8, u16, &'static [u8], &'static str, &'static str, u64);

fn frame(magic: u8, opcode: u8, status: u16, [extras, key, value]: [&[u8]; 3], unique: u64) -> Vec<u8> {
    let body = (extras.len() + key.len() + value.len()) as u32;
    let mut frame = vec![magic, opcode];
    frame.extend((key.len() as u16).to_be_bytes());
    frame.extend([extras.len() as u8, 0]);
    frame.extend(status.to_be_bytes());
    frame.extend(body.to_be_bytes());
    frame.extend(*b"TOKN");
    frame.extend(unique.to_be_bytes());
    [&frame, extras, key, value].concat()
}

fn sent(frames: &[Sent]) -> Vec<u8> {
    let of = |(opcode, extras, key, value, unique): &Sent| {
        frame(0x80, *opcode, 0, [extras, key.as_bytes(), value.as_bytes()], *unique)
    };
    frames.iter().flat_map(of).collect()
}

fn answered(frames: &[Answered]) -> Vec<u8> {
    let of = |(opcode, status, extras, key, value, unique): &Answered| {
        frame(0x81, *opcode, *status, [extras, key.as_bytes(), value.as_bytes()], *unique)
    };
    frames.iter().flat_map(of).collect()
}

const NO_EXTRAS: &[u8] = &[];
/// Flags 7, for ever.
const STORE: &[u8] = b"\0\0\0\x07\0\0\0\0";
const FLAGS: &[u8] = b"\0\0\0\x07";
const HOUR: &[u8] = b"\0\0\x0e\x10";
/// By 2, beginning with 40, for ever; and by 2, but of what is there only.
const BEGIN: &[u8] = b"\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x28\0\0\0\0";
const GO_ON: &[u8] = b"\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x28\xff\xff\xff\xff";

/// One connection each; the last frame of a row may end it.
const SHARED: &[(&[Sent], &[Answered])] = &[
    // Get and touch in all its forms, and quiet gets that find nothing.
    (
        &[
            (0x01, STORE, "a", "xyz", 0),
            (0x1d, HOUR, "a", "", 0),
            (0x23, HOUR, "a", "", 0),
            (0x1e, HOUR, "none", "", 0),
            (0x24, HOUR, "a", "", 0),
            (0x1d, HOUR, "none", "", 0),
            (0x09, NO_EXTRAS, "none", "", 0),
            (0x09, NO_EXTRAS, "a", "", 0),
            (0x0a, NO_EXTRAS, "", "", 0),
        ],
        &[
            (0x01, 0, NO_EXTRAS, "", "", 1),
            (0x1d, 0, FLAGS, "", "xyz", 1),
            (0x23, 0, FLAGS, "a", "xyz", 1),
            (0x24, 0, FLAGS, "a", "xyz", 1),
            (0x1d, 1, NO_EXTRAS, "", "Not found", 0),
            (0x09, 0, FLAGS, "", "xyz", 1),
            (0x0a, 0, NO_EXTRAS, "", "", 0),
        ],
    ),
    // Uniques decide.
    (
        &[
            (0x01, STORE, "a", "x", 0),
            (0x01, STORE, "a", "y", 9),
            (0x01, STORE, "a", "z", 1),
            (0x0e, NO_EXTRAS, "a", "no", 1),
            (0x0e, NO_EXTRAS, "a", "!", 2),
            (0x04, NO_EXTRAS, "a", "", 2),
            (0x04, NO_EXTRAS, "a", "", 3),
            (0x02, STORE, "a", "x", 5),
        ],
        &[
            (0x01, 0, NO_EXTRAS, "", "", 1),
            (0x01, 2, NO_EXTRAS, "", "Data exists for key.", 0),
            (0x01, 0, NO_EXTRAS, "", "", 2),
            (0x0e, 2, NO_EXTRAS, "", "Data exists for key.", 0),
            (0x0e, 0, NO_EXTRAS, "", "", 3),
            (0x04, 2, NO_EXTRAS, "", "Data exists for key.", 0),
            (0x04, 0, NO_EXTRAS, "", "", 0),
            (0x02, 1, NO_EXTRAS, "", "Not found", 0),
        ],
    ),
    // Numbers that begin.
    (
        &[
            (0x05, GO_ON, "n", "", 0),
            (0x05, BEGIN, "n", "", 0),
            (0x05, BEGIN, "n", "", 0),
            (0x06, GO_ON, "n", "", 7),
        ],
        &[
            (0x05, 1, NO_EXTRAS, "", "Not found", 0),
            (0x05, 0, NO_EXTRAS, "", "\0\0\0\0\0\0\0\x28", 1),
            (0x05, 0, NO_EXTRAS, "", "\0\0\0\0\0\0\0\x2a", 2),
            (0x06, 2, NO_EXTRAS, "", "Data exists for key.", 0),
        ],
    ),
    // The whole store, and what needs no credentials here.
    (
        &[
            (0x01, STORE, "a", "x", 0),
            (0x08, NO_EXTRAS, "", "", 0),
            (0x00, NO_EXTRAS, "a", "", 0),
            (0x18, HOUR, "", "", 0),
            (0x20, NO_EXTRAS, "", "", 0),
            (0x10, NO_EXTRAS, "reset", "", 0),
        ],
        &[
            (0x01, 0, NO_EXTRAS, "", "", 1),
            (0x08, 0, NO_EXTRAS, "", "", 0),
            (0x00, 1, NO_EXTRAS, "", "Not found", 0),
            (0x20, 0x81, NO_EXTRAS, "", "Unknown command", 0),
            (0x10, 0, NO_EXTRAS, "", "", 0),
        ],
    ),
    // Mistakes, and ends.
    (
        &[(0x7f, NO_EXTRAS, "", "", 0), (0x0a, NO_EXTRAS, "", "", 0)],
        &[(0x7f, 0x81, NO_EXTRAS, "", "Unknown command", 0), (0x0a, 0, NO_EXTRAS, "", "", 0)],
    ),
    (
        &[(0x00, NO_EXTRAS, "", "", 0), (0x0a, NO_EXTRAS, "", "", 0)],
        &[(0x00, 4, NO_EXTRAS, "", "Invalid arguments", 0)],
    ),
    (&[(0x07, NO_EXTRAS, "", "", 0), (0x0a, NO_EXTRAS, "", "", 0)], &[(0x07, 0, NO_EXTRAS, "", "", 0)]),
    (&[(0x17, NO_EXTRAS, "", "", 0), (0x0a, NO_EXTRAS, "", "", 0)], &[]),
];

fn fresh(options: CoreOptions) -> Core {
    let mut core = Core::new(options);
    core.connect(0);
    core
}

fn check(core: &mut Core, frames: &[Sent], expected: &[Answered]) {
    core.receive(0, &sent(frames), 0);
    let ours = drain(core, 0, 0);
    assert_eq!(ours.escape_ascii().to_string(), answered(expected).escape_ascii().to_string());
}

#[test]
fn golden_binary_answers() {
    for (frames, expected) in SHARED {
        check(&mut fresh(CoreOptions::default()), frames, expected);
    }
}

#[test]
fn answers_match_memcached() {
    let mut differences = Vec::new();
    for (frames, expected) in SHARED {
        let Some(memcached) = Real::memcached(&[]) else { return };
        let theirs = converse(&mut memcached.connect(), &sent(frames)).escape_ascii().to_string();
        let ours = answered(expected).escape_ascii().to_string();
        if ours != theirs {
            differences.push(format!("sent {}\nours {ours}\ntheirs {theirs}\n", sent(frames).escape_ascii()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.concat());
}

#[test]
fn malformed_frames_end_the_connection() {
    let mut core = fresh(CoreOptions::default());
    core.receive(0, &[sent(&[(0x0a, NO_EXTRAS, "", "", 0)]), b"get a\r\n".to_vec()].concat(), 0);
    let departure = core.pop_due(0).unwrap();
    assert_eq!((departure.bytes.len(), departure.end), (24, End::Closes));
}

#[test]
fn overlong_values_are_discarded() {
    let mut core = fresh(CoreOptions { value_bytes_max: 4, ..CoreOptions::default() });
    check(
        &mut core,
        &[(0x01, STORE, "a", "x", 0), (0x02, STORE, "a", "long!", 0), (0x00, NO_EXTRAS, "a", "", 0)],
        &[
            (0x01, 0, NO_EXTRAS, "", "", 1),
            (0x02, 3, NO_EXTRAS, "", "Too large.", 0),
            (0x00, 0, FLAGS, "", "x", 1),
        ],
    );
    // A set that failed leaves nothing to be taken for it.
    check(
        &mut core,
        &[(0x11, STORE, "a", "long!", 0), (0x00, NO_EXTRAS, "a", "", 0)],
        &[(0x11, 3, NO_EXTRAS, "", "Too large.", 0), (0x00, 1, NO_EXTRAS, "", "Not found", 0)],
    );
}

/// (memcached 1.6.18 does not know it, and waits for more.)
#[test]
fn verbosity_changes_nothing() {
    let mut core = fresh(CoreOptions::default());
    check(&mut core, &[(0x1b, b"\0\0\0\x02", "", "", 0)], &[(0x1b, 0, NO_EXTRAS, "", "", 0)]);
}

#[test]
fn statistics_are_frames() {
    let mut core = fresh(CoreOptions::default());
    core.receive(
        0,
        &sent(&[(0x00, NO_EXTRAS, "a", "", 0), (0x10, NO_EXTRAS, "", "", 0), (0x0b, NO_EXTRAS, "", "", 0)]),
        0,
    );
    let answered = drain(&mut core, 0, 0);
    let told = frame(0x81, 0x10, 0, [b"", b"get_misses", b"1"], 0);
    assert!(answered.windows(told.len()).any(|window| window == told));
    let version = format!("{}-brunt", env!("CARGO_PKG_VERSION"));
    let end =
        [frame(0x81, 0x10, 0, [b"", b"", b""], 0), frame(0x81, 0x0b, 0, [b"", b"", version.as_bytes()], 0)];
    assert!(answered.ends_with(&end.concat()), "{}", answered.escape_ascii());
    check(&mut core, &[(0x10, NO_EXTRAS, "nonsense", "", 0)], &[(0x10, 1, NO_EXTRAS, "", "Not found", 0)]);
}

#[test]
fn connections_without_the_password_are_rejected() {
    let locked = || {
        let credentials = Some(Credentials { user: "reader".to_owned(), password: "secret".to_owned() });
        fresh(CoreOptions { credentials, ..CoreOptions::default() })
    };
    let failure = "Auth failure.";
    check(
        &mut locked(),
        &[
            (0x20, NO_EXTRAS, "", "", 0),
            (0x21, NO_EXTRAS, "PLAIN", "\0reader\0wrong", 0),
            (0x21, NO_EXTRAS, "MAGIC", "\0reader\0secret", 0),
            (0x21, NO_EXTRAS, "PLAIN", "\0reader\0secret", 0),
            (0x0a, NO_EXTRAS, "", "", 0),
        ],
        &[
            (0x20, 0, NO_EXTRAS, "", "PLAIN", 0),
            (0x21, 0x20, NO_EXTRAS, "", failure, 0),
            (0x21, 0x20, NO_EXTRAS, "", failure, 0),
            (0x21, 0, NO_EXTRAS, "", "Authenticated", 0),
            (0x0a, 0, NO_EXTRAS, "", "", 0),
        ],
    );
    let mut core = locked();
    check(
        &mut core,
        &[(0x00, NO_EXTRAS, "a", "", 0), (0x0a, NO_EXTRAS, "", "", 0)],
        &[(0x00, 0x20, NO_EXTRAS, "", failure, 0)],
    );
    assert_eq!(core.counters().cmd_get, 0);
}

#[test]
fn injected_errors_are_internal_errors() {
    let faults = Faults { error_every: Every::new(2), ..Faults::default() };
    check(
        &mut fresh(CoreOptions { faults, ..CoreOptions::default() }),
        &[
            (0x01, STORE, "a", "x", 0),
            (0x01, STORE, "a", "y", 0),
            (0x00, NO_EXTRAS, "a", "", 0),
            (0x11, STORE, "a", "y", 0),
            (0x0a, NO_EXTRAS, "", "", 0),
        ],
        &[
            (0x01, 0, NO_EXTRAS, "", "", 1),
            (0x01, 0x84, NO_EXTRAS, "", "injected fault", 0),
            (0x00, 0, FLAGS, "", "x", 1),
            (0x0a, 0, NO_EXTRAS, "", "", 0),
        ],
    );
}
