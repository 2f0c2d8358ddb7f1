//! Structs of counts: how they are declared, added up, looked through and written to files.
//!
//! Invariants: merging adds count by count, so that the order of merging leaves no trace; a file has no number that readers of JSON may not
//! have. What goes from host to host is bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A count, or several under one name.
pub(crate) trait Counts {
    /// Adds each count of `other` to the same count here.
    fn add(&mut self, other: &Self);

    /// Every count.
    fn values(&self) -> impl Iterator<Item = u64>;
}

impl Counts for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        std::iter::once(*self)
    }
}

impl<T: Counts, const N: usize> Counts for [T; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(ours, theirs)| ours.add(theirs));
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        self.iter().flat_map(T::values)
    }
}

/// A number of which merging keeps the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Most(pub u64);

impl Counts for Most {
    fn add(&mut self, other: &Self) {
        self.0 = self.0.max(other.0);
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        self.0.values()
    }
}

/// Declares a struct of counts.
macro_rules! counts {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$of_field:meta])* $of_field_vis:vis $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name { $($(#[$of_field])* $of_field_vis $field: $type),+ }

        impl $name {
            /// Adds other counts.
            pub fn merge(&mut self, other: &Self) {
                $crate::counts::Counts::add(self, other);
            }
        }

        impl $crate::counts::Counts for $name {
            fn add(&mut self, other: &Self) {
                $($crate::counts::Counts::add(&mut self.$field, &other.$field);)+
            }

            fn values(&self) -> impl Iterator<Item = u64> {
                std::iter::empty()$(.chain($crate::counts::Counts::values(&self.$field)))+
            }
        }
    };
}
pub(crate) use counts;

/// A part of a whole; 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// What a sum may come to: adding up a file full of them stays within 128 bits.
const SUM_BITS: u32 = 112;

/// A number of up to 128 bits: in files decimal digits, as readers of JSON may not have as many bits.
pub(crate) mod wide {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => number.to_string().serialize(serializer),
            false => number.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        if !deserializer.is_human_readable() {
            return u128::deserialize(deserializer);
        }
        let text = String::deserialize(deserializer)?;
        let number = text.parse().ok().filter(|number: &u128| number >> super::SUM_BITS == 0);
        number.ok_or_else(|| D::Error::custom("a sum that is none"))
    }
}

/// An instant that may never come, which is the largest number: in files `null`.
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
