//! `--verbose`: what was wrong with an object, with its bytes, in memaslap's lines.
//!
//! Not how many: those are counters. Invariant: the key's first eight bytes are shown as the number that they are, for most of them
//! cannot be printed.

use brunt_stats::verification::{ObjectFault, ObjectFaultKind, ObjectFaults, SHOWN_MAX};

/// The bytes of a key that number the object.
const NUMBER_BYTES: usize = 8;

/// The lines of all faults of an interval.
pub fn text(faults: &ObjectFaults) -> String {
    let mut text: String = faults.rows().map(|(fault, bytes)| lines(fault, bytes)).collect();
    if faults.overflow > 0 {
        text.push_str(&format!("warning: {} more objects were not as they should be\n", faults.overflow));
    }
    text
}

fn lines(fault: &ObjectFault, [key, expected, received]: [&[u8]; 3]) -> String {
    let (head, age_ms) = match fault.kind {
        ObjectFaultKind::Value | ObjectFaultKind::Missing => ("data verification failed", None),
        ObjectFaultKind::Expired { age_ms } => {
            ("expire time verification failed, object expired but get it now", Some(age_ms))
        }
        ObjectFaultKind::Gone { age_ms } => {
            ("expire time verification failed, object doesn't expire but can't get it now", Some(age_ms))
        }
    };
    let shown = String::from_utf8_lossy;
    let (number, suffix) = key.split_at(key.len().min(NUMBER_BYTES));
    let number = number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let age = age_ms.map_or(String::new(), |age_ms| {
        format!("\tdiff time: {} expire time: {}\n", age_ms / 1_000, fault.ttl_s)
    });
    let is_cut = fault.expected_len.max(fault.received_len) as usize > SHOWN_MAX;
    let from = if is_cut { format!("\tdata from byte: {}\n", fault.from) } else { String::new() };
    format!(
        "\n<{} {head}\n\tkey len: {}\n\tkey: {number:x} {}\n{age}{from}\texpected data len: {}\n\texpected data: {}\n\
         \treceived data len: {}\n\treceived data: {}\n",
        fault.connection,
        key.len(),
        shown(suffix),
        fault.expected_len,
        shown(expected),
        fault.received_len,
        shown(received),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made from its JSON, for only workers note faults.
    fn faults(kind: &str, bytes: &[u8], lens: [u32; 2], ends: [u32; 3], overflow: u64) -> ObjectFaults {
        let [expected_len, received_len] = lens;
        let text = format!(
            "{{\"faults\":[{{\"kind\":{kind},\"at_ns\":5,\"connection\":3,\"ttl_s\":60,\"expected_len\":{expected_len},\
             \"received_len\":{received_len},\"from\":6000,\"ends\":{ends:?}}}],\
             \"bytes\":{bytes:?},\"overflow\":{overflow}}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn faults_are_shown_with_their_bytes() {
        let bytes = b"\x10\x11\x10\x10\x10\x10\x10\x10abcwantother";
        assert_eq!(
            text(&faults("\"Value\"", bytes, [4, 5], [11, 15, 20], 0)),
            "\n<3 data verification failed\n\tkey len: 11\n\tkey: 1010101010101110 abc\n\texpected data len: 4\n\
             \texpected data: want\n\treceived data len: 5\n\treceived data: other\n"
        );
        let long = text(&faults("\"Value\"", bytes, [6_004, 6_005], [11, 15, 20], 0));
        assert!(
            long.ends_with(
                " abc\n\tdata from byte: 6000\n\texpected data len: 6004\n\texpected data: want\n\
                 \treceived data len: 6005\n\treceived data: other\n"
            ),
            "{long}"
        );
        let gone = text(&faults("{\"Gone\":{\"age_ms\":12345}}", bytes, [4, 0], [11, 15, 15], 2));
        assert!(gone.starts_with(
            "\n<3 expire time verification failed, object doesn't expire but can't get it now\n"
        ));
        assert!(gone.contains(" abc\n\tdiff time: 12 expire time: 60\n\texpected data len: 4\n"), "{gone}");
        assert!(
            gone.ends_with("\treceived data: \nwarning: 2 more objects were not as they should be\n"),
            "{gone}"
        );
    }
}
