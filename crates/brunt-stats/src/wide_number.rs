//! Numbers that readers of JSON may not have: those of more than 64 bits as text, and `u64::MAX`, an instant that never comes, as null.
//!
//! Not of what goes from host to host, which is bytes.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a sum may come to: adding up a file full of them stays within 128 bits.
const SUM_BITS: u32 = 112;

/// A number of up to 128 bits, in decimal digits.
pub(crate) fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => number.to_string().serialize(serializer),
        false => number.serialize(serializer),
    }
}

/// Reads the number.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    if !deserializer.is_human_readable() {
        return u128::deserialize(deserializer);
    }
    let text = String::deserialize(deserializer)?;
    let number = text.parse().ok().filter(|number: &u128| number >> SUM_BITS == 0);
    number.ok_or_else(|| D::Error::custom("a sum that is none"))
}

/// An instant that may never come, which is the largest number.
pub(crate) mod instant {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(at_ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => (*at_ns < u64::MAX).then_some(at_ns).serialize(serializer),
            false => at_ns.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        match deserializer.is_human_readable() {
            true => Ok(Option::deserialize(deserializer)?.unwrap_or(u64::MAX)),
            false => u64::deserialize(deserializer),
        }
    }
}
