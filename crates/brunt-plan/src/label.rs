//! A label: a name and a text that the user gives a run, such as `commit=3f2a`, and that is in its results.
//!
//! Nothing of a run depends on it. Its text form is `KEY=VALUE`.

use crate::units::text_form;
use std::fmt;

const EXPECTED: &str = "expected KEY=VALUE, of which KEY has letters, digits, '_', '-' and '.', and VALUE no control characters, 200 characters at most";
const CHARACTERS_MAX: usize = 200;

/// A label of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub key: String,
    /// Its text, which may be empty.
    pub value: String,
}

impl Label {
    fn of_text(text: &str) -> Result<Self, String> {
        let is_key = |key: &str| {
            !key.is_empty()
                && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
        };
        match text.split_once('=') {
            Some((key, value))
                if is_key(key)
                    && !value.contains(char::is_control)
                    && text.chars().count() <= CHARACTERS_MAX =>
            {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err(EXPECTED.to_owned()),
        }
    }

    fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}
text_form!(Label);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_a_key_and_a_value() {
        let long = format!("k={}", "x".repeat(CHARACTERS_MAX - 1));
        for (text, expected) in [
            ("commit=3f2a", Some(("commit", "3f2a"))),
            ("a.b-c_1=x=y z", Some(("a.b-c_1", "x=y z"))),
            ("empty=", Some(("empty", ""))),
            ("=x", None),
            ("none", None),
            ("two words=x", None),
            ("k=a\nb", None),
            (long.as_str(), None),
        ] {
            let read = text.parse::<Label>();
            let held = read.as_ref().map(|label| (label.key.as_str(), label.value.as_str())).ok();
            assert_eq!(held, expected, "{text}");
            if let Ok(label) = read {
                assert_eq!(label.to_string(), text);
            }
        }
    }
}
