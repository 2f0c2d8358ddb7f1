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

    /// Sets every count to the next of these, to 0 where there is none.
    fn set(&mut self, values: &mut impl Iterator<Item = u64>);
}

impl Counts for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        std::iter::once(*self)
    }

    fn set(&mut self, values: &mut impl Iterator<Item = u64>) {
        *self = values.next().unwrap_or(0);
    }
}

impl<T: Counts, const N: usize> Counts for [T; N] {
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(ours, theirs)| ours.add(theirs));
    }

    fn values(&self) -> impl Iterator<Item = u64> {
        self.iter().flat_map(T::values)
    }

    fn set(&mut self, values: &mut impl Iterator<Item = u64>) {
        self.iter_mut().for_each(|count| count.set(values));
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

    fn set(&mut self, values: &mut impl Iterator<Item = u64>) {
        self.0.set(values);
    }
}

/// Declares a struct of counts. By name in a file every count must be there; of a list the last ones may be missing, which are 0.
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

            fn set(&mut self, values: &mut impl Iterator<Item = u64>) {
                $($crate::counts::Counts::set(&mut self.$field, values);)+
            }
        }
    };
}
pub(crate) use counts;

/// A part of a whole; 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Counts without their names: the list ends with the last one that is not 0.
fn listed(of: &impl Counts) -> Vec<u64> {
    let mut values: Vec<u64> = of.values().collect();
    values.truncate(values.iter().rposition(|value| *value > 0).map_or(0, |last| last + 1));
    values
}

fn counted<T: Counts + Default>(values: Vec<u64>) -> Result<T, &'static str> {
    let (mut values, mut counts) = (values.into_iter(), T::default());
    counts.set(&mut values);
    values.next().is_none().then_some(counts).ok_or("more counts than there are")
}

/// Several structs of the same counts: of each count a list of its values, up to the last count that is not 0 everywhere. The first is always there.
fn columns(of: &[impl Counts]) -> Vec<Vec<u64>> {
    let rows: Vec<Vec<u64>> = of.iter().map(|counts| counts.values().collect()).collect();
    let width = rows.first().map_or(0, Vec::len);
    let used = (1..width).rfind(|column| rows.iter().any(|row| row[*column] > 0)).unwrap_or(0) + 1;
    (0..used.min(width)).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

/// The characters that [`lists`] takes in a file.
pub(crate) fn lists_len(of: &[impl Counts]) -> usize {
    let digits = |count: u64| count.checked_ilog10().unwrap_or(0) as usize + 2;
    columns(of).into_iter().map(|column| 2 + column.into_iter().map(digits).sum::<usize>()).sum()
}

/// Counts of which a file has thousands, as a list.
pub(crate) mod list {
    use super::{Counts, counted, listed};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(of: &impl Counts, serializer: S) -> Result<S::Ok, S::Error> {
        listed(of).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: Counts + Default,
        D: Deserializer<'de>,
    {
        counted(Vec::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Several structs of counts, as one list for each count.
pub(crate) mod lists {
    use super::{Counts, columns, counted};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(of: &[impl Counts], serializer: S) -> Result<S::Ok, S::Error> {
        columns(of).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: Counts + Default,
        D: Deserializer<'de>,
    {
        let columns: Vec<Vec<u64>> = Vec::deserialize(deserializer)?;
        let len = columns.first().map_or(0, Vec::len);
        if columns.iter().any(|column| column.len() != len) {
            return Err(D::Error::custom("lists of counts of different lengths"));
        }
        let row = |index: usize| columns.iter().map(|column| column[index]).collect();
        (0..len).map(row).map(counted).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// Is it left out of a file?
pub(crate) fn is_default<T: Default + PartialEq>(of: &T) -> bool {
    *of == T::default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    /// The last lists may be missing, whose counts are 0; all lists that are there have the same length.
    #[test]
    fn damaged_lists_are_rejected() {
        let read = |columns: &[&[u64]]| -> Result<Vec<[u64; 3]>, String> {
            let columns: Vec<Vec<u64>> = columns.iter().map(|column| column.to_vec()).collect();
            lists::deserialize(columns.into_deserializer()).map_err(|error: Error| error.to_string())
        };
        assert_eq!(read(&[]), Ok(vec![]));
        assert_eq!(read(&[&[1, 2], &[3, 4]]), Ok(vec![[1, 3, 0], [2, 4, 0]]));
        let table: [(&[&[u64]], &str); 4] = [
            (&[&[1, 2], &[3]], "lists of counts of different lengths"),
            (&[&[1], &[2, 3]], "lists of counts of different lengths"),
            (&[&[], &[1]], "lists of counts of different lengths"),
            (&[&[1], &[2], &[3], &[4]], "more counts than there are"),
        ];
        for (columns, expected) in table {
            assert_eq!(read(columns).err().as_deref(), Some(expected), "{columns:?}");
        }
    }
}
