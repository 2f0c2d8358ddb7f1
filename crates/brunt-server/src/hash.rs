//! Redis's hashes as values of the store: fields and their values in one run of bytes.
//!
//! Not a table: a hash of a load test has few fields, and looking through them is quick enough. Each field is two lengths
//! of four bytes, little endian, then its name and its value. Invariant: no name is there twice.

use indexmap::IndexMap;

/// The fields of a stored hash, in the order in which they were first set.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn of(stored: &'a [u8]) -> Self {
        Self(stored)
    }

    /// The value of this field.
    pub(crate) fn value(self, name: &[u8]) -> Option<&'a [u8]> {
        let mut fields = self;
        fields.find(|(held, _)| *held == name).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name_len, rest) = self.0.split_first_chunk::<4>()?;
        let (value_len, rest) = rest.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name_len) as usize)?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_len) as usize)?;
        self.0 = rest;
        Some((name, value))
    }
}

/// The hash with these fields set one after the other, and how many of them are new. Takes time in proportion to what
/// there is and what comes.
pub(crate) fn with<'a>(
    stored: &'a [u8],
    pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> (Vec<u8>, usize) {
    let mut fields: IndexMap<&[u8], &[u8]> = Fields::of(stored).collect();
    let held = fields.len();
    fields.extend(pairs);
    let mut changed = Vec::with_capacity(stored.len());
    for (name, value) in &fields {
        // Neither is longer than a command may be, which is far below 4 GiB.
        let lengths = [name, value].map(|text| (text.len() as u32).to_le_bytes());
        changed.extend_from_slice(&[lengths.as_flattened(), name, value].concat());
    }
    (changed, fields.len() - held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_fields_are_set_and_read() {
        let steps: [(&[u8], &[u8], bool); 4] =
            [(b"a", b"1", true), (b"", b"", true), (b"a", b"long", false), (b"b", b"\0\r\n", true)];
        let mut stored = Vec::new();
        for (name, value, is_new) in steps {
            let (changed, added) = with(&stored, [(name, value)]);
            assert_eq!((added, Fields::of(&changed).value(name)), (usize::from(is_new), Some(value)));
            stored = changed;
        }
        let expected: [(&[u8], &[u8]); 3] = [(b"a", b"long"), (b"", b""), (b"b", b"\0\r\n")];
        assert_eq!(Fields::of(&stored).collect::<Vec<_>>(), expected);
        assert_eq!(Fields::of(&stored).value(b"none"), None);
        // All at once, one of them twice.
        assert_eq!(with(&[], steps.map(|(name, value, _)| (name, value))), (stored.clone(), 3));
        let more: [(&[u8], &[u8]); 3] = [(b"b", b"2"), (b"c", b"3"), (b"c", b"4")];
        let (changed, added) = with(&stored, more);
        assert_eq!((added, Fields::of(&changed).value(b"c")), (1, Some(&b"4"[..])));
    }
}
