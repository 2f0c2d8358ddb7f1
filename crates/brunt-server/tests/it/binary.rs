//! Frames of the binary protocol that the golden exchanges have not: what only other clients send, mistakes, credentials,
//! faults. The real memcached must answer alike what is in [`SHARED`].

use crate::real::Real;
use crate::{answer, assert_same, cases, check_real, connected, drain};
use brunt_server::core::{Core, CoreOptions, End};
use brunt_server::{Credentials, Every, Faults};

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

/// Frames with `; ` between them: opcode, in answers the status, extras by name, key, value and unique; `-` is nothing, `_` a blank.
fn frames(magic: u8, text: &str) -> Vec<u8> {
    let of = |text: &str| {
        let mut words = text.split(' ').map(|word| if word == "-" { "" } else { word });
        let mut next = || words.next().unwrap();
        let opcode = u8::from_str_radix(next(), 16).unwrap();
        let status = if magic == 0x81 { u16::from_str_radix(next(), 16).unwrap() } else { 0 };
        let name = next();
        let extras = EXTRAS.iter().find(|(held, _)| *held == name).unwrap().1;
        let (key, value, unique) = (next(), next().replace('_', " "), next().parse().unwrap());
        frame(magic, opcode, status, [extras, key.as_bytes(), value.as_bytes()], unique)
    };
    text.split("; ").filter(|text| *text != "-").flat_map(of).collect()
}

fn sent(text: &str) -> Vec<u8> {
    frames(0x80, text)
}

fn answered(text: &str) -> Vec<u8> {
    frames(0x81, text)
}

/// Names of extras.
const EXTRAS: [(&str, &[u8]); 7] = [
    ("", b""),
    // Flags 7, for ever.
    ("STORE", b"\0\0\0\x07\0\0\0\0"),
    ("FLAGS", b"\0\0\0\x07"),
    ("HOUR", b"\0\0\x0e\x10"),
    ("TWO", b"\0\0\0\x02"),
    // By 2, beginning with 40, for ever; and by 2, but of what is there only.
    ("BEGIN", b"\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x28\0\0\0\0"),
    ("MORE", b"\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x28\xff\xff\xff\xff"),
];

/// One connection each; the last frame of a row may end it.
const SHARED: &str = "
    // Get and touch in all its forms, and quiet gets that find nothing.
    01 STORE a xyz 0; 1d HOUR a - 0; 23 HOUR a - 0; 1e HOUR none - 0; 24 HOUR a - 0; 1d HOUR none - 0; 09 - none - 0; 09 - a - 0; 0a - - - 0
        => 01 0 - - - 1; 1d 0 FLAGS - xyz 1; 23 0 FLAGS a xyz 1; 24 0 FLAGS a xyz 1; 1d 1 - - Not_found 0; 09 0 FLAGS - xyz 1; 0a 0 - - - 0
    // Uniques decide.
    01 STORE a x 0; 01 STORE a y 9; 01 STORE a z 1; 0e - a no 1; 0e - a ! 2; 04 - a - 2; 04 - a - 3; 02 STORE a x 5
        => 01 0 - - - 1; 01 2 - - Data_exists_for_key. 0; 01 0 - - - 2; 0e 2 - - Data_exists_for_key. 0; 0e 0 - - - 3; 04 2 - - Data_exists_for_key. 0; 04 0 - - - 0; 02 1 - - Not_found 0
    // Numbers that begin.
    05 MORE n - 0; 05 BEGIN n - 0; 05 BEGIN n - 0; 06 MORE n - 7
        => 05 1 - - Not_found 0; 05 0 - - \0\0\0\0\0\0\0\x28 1; 05 0 - - \0\0\0\0\0\0\0\x2a 2; 06 2 - - Data_exists_for_key. 0
    // The whole store, and what needs no credentials here.
    01 STORE a x 0; 08 - - - 0; 00 - a - 0; 18 HOUR - - 0; 20 - - - 0; 10 - reset - 0
        => 01 0 - - - 1; 08 0 - - - 0; 00 1 - - Not_found 0; 20 81 - - Unknown_command 0; 10 0 - - - 0
    // Mistakes, and ends.
    7f - - - 0; 0a - - - 0 => 7f 81 - - Unknown_command 0; 0a 0 - - - 0
    00 - - - 0; 0a - - - 0 => 00 4 - - Invalid_arguments 0
    07 - - - 0; 0a - - - 0 => 07 0 - - - 0
    17 - - - 0; 0a - - - 0 => -
";

fn check(core: &mut Core, frames: &str, expected: &str) {
    let sent = sent(frames);
    assert_same(&answer(core, [&sent[..]]), &answered(expected), &sent);
}

#[test]
fn golden_binary_answers() {
    for [frames, expected] in &cases(SHARED) {
        check(&mut connected(CoreOptions::default()), frames, expected);
    }
}

#[test]
fn answers_match_memcached() {
    let exchanges =
        cases(SHARED).iter().map(|[frames, expected]| (sent(frames), answered(expected))).collect();
    check_real(exchanges, |sent| Some(Real::memcached(&[])?.converse(sent)));
}

#[test]
fn malformed_frames_end_the_connection() {
    let mut core = connected(CoreOptions::default());
    core.receive(0, &[sent("0a - - - 0"), b"get a\r\n".to_vec()].concat(), 0);
    let departure = core.pop_due(0).unwrap();
    assert_eq!((departure.bytes.len(), departure.end), (24, End::Closes));
}

#[test]
fn overlong_values_are_discarded() {
    let mut core = connected(CoreOptions { value_bytes_max: 4, ..CoreOptions::default() });
    check(
        &mut core,
        "01 STORE a x 0; 02 STORE a long! 0; 00 - a - 0",
        "01 0 - - - 1; 02 3 - - Too_large. 0; 00 0 FLAGS - x 1",
    );
    // A set that failed leaves nothing to be taken for it.
    check(&mut core, "11 STORE a long! 0; 00 - a - 0", "11 3 - - Too_large. 0; 00 1 - - Not_found 0");
}

/// (memcached 1.6.18 does not know it, and waits for more.)
#[test]
fn verbosity_changes_nothing() {
    let mut core = connected(CoreOptions::default());
    check(&mut core, "1b TWO - - 0", "1b 0 - - - 0");
}

#[test]
fn statistics_are_frames() {
    let mut core = connected(CoreOptions::default());
    core.receive(0, &sent("00 - a - 0; 10 - - - 0; 0b - - - 0"), 0);
    let answered = drain(&mut core, 0, 0);
    let told = frame(0x81, 0x10, 0, [b"", b"get_misses", b"1"], 0);
    assert!(answered.windows(told.len()).any(|window| window == told));
    let version = format!("{}-brunt", env!("CARGO_PKG_VERSION"));
    let end =
        [frame(0x81, 0x10, 0, [b"", b"", b""], 0), frame(0x81, 0x0b, 0, [b"", b"", version.as_bytes()], 0)];
    assert!(answered.ends_with(&end.concat()), "{}", answered.escape_ascii());
    check(&mut core, "10 - nonsense - 0", "10 1 - - Not_found 0");
}

#[test]
fn connections_without_the_password_are_rejected() {
    let locked = || {
        let credentials = Some(Credentials { user: "reader".to_owned(), password: "secret".to_owned() });
        connected(CoreOptions { credentials, ..CoreOptions::default() })
    };
    check(
        &mut locked(),
        "20 - - - 0; 21 - PLAIN \0reader\0wrong 0; 21 - MAGIC \0reader\0secret 0; 21 - PLAIN \0reader\0secret 0; 0a - - - 0",
        "20 0 - - PLAIN 0; 21 20 - - Auth_failure. 0; 21 20 - - Auth_failure. 0; 21 0 - - Authenticated 0; 0a 0 - - - 0",
    );
    let mut core = locked();
    check(&mut core, "00 - a - 0; 0a - - - 0", "00 20 - - Auth_failure. 0");
    assert_eq!(core.counters().cmd_get, 0);
}

#[test]
fn injected_errors_are_internal_errors() {
    let faults = Faults { error_every: Every::new(2), ..Faults::default() };
    check(
        &mut connected(CoreOptions { faults, ..CoreOptions::default() }),
        "01 STORE a x 0; 01 STORE a y 0; 00 - a - 0; 11 STORE a y 0; 0a - - - 0",
        "01 0 - - - 1; 01 84 - - injected_fault 0; 00 0 FLAGS - x 1; 0a 0 - - - 0",
    );
}
