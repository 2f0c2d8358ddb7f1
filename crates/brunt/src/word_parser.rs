//! The parser of a value that is one of some words: another parser, with the words for shells to complete.
//!
//! Invariant: what is accepted, and what is said of a mistake, is the other parser's.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// Words, and the parser that reads them; without words only the parser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordParser<P>(pub &'static [&'static str], pub P);

impl<P: TypedValueParser> TypedValueParser for WordParser<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        self.1.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.0.iter().map(|word| PossibleValue::new(*word));
        (!self.0.is_empty()).then(|| Box::new(words) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}
