//! What is said of a value that an option does not take: in the words of all other mistakes of a command line.
//!
//! The parser knows option and value; what is accepted is the value type's to say.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;

/// `invalid value 'VALUE' for OPTION: expected ...`; `None` of another mistake.
pub(crate) fn message(error: &Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    // The name of its value is behind that of an option; an argument has none but that.
    let option = if argument.starts_with('-') { argument.split([' ', '=', '[']).next()? } else { argument };
    let reason = error.source()?.to_string();
    // Types that also are in lists begin with the part that is wrong: here it is the whole, which is named already.
    let reason = reason.strip_prefix(&format!("{value}: ")).unwrap_or(&reason);
    let says = match (reason.strip_prefix("expected "), reason.rsplit_once(" is not in ")) {
        (None, Some((_, range))) => format!("expected a whole number from {}", range.replace("..=", " to ")),
        _ => reason.to_owned(),
    };
    let meant = without_unit(option, value).unwrap_or_default();
    Some(format!("invalid value '{value}' for {option}: {says}{meant}"))
}

/// A bare number for `--time`: other tools count seconds there, or threads.
fn without_unit(option: &str, value: &str) -> Option<String> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    (option == "--time" && is_number)
        .then(|| format!("; for {value} seconds -t {value}s, for {value} threads (memtier_benchmark's -t) --threads {value}"))
}
