//! The form `name:a,b` that distributions and popularities share. Pure text: names and arguments are checked by their types.

/// Splits `name:a,b` into name and arguments; a bare number is its own name.
pub(crate) fn name_and_arguments(text: &str) -> (&str, Vec<&str>) {
    match text.trim().split_once(':') {
        Some((name, arguments)) => (name, arguments.split(',').map(str::trim).collect()),
        None => (text.trim(), Vec::new()),
    }
}

/// Checks that texts parse and print as expected.
#[cfg(test)]
pub(crate) fn check<T: std::str::FromStr<Err = String> + std::fmt::Display + PartialEq + std::fmt::Debug>(
    table: &[(&str, &str)],
) {
    for (text, expected) in table {
        let value: T = text.parse().unwrap();
        assert_eq!(value.to_string(), *expected, "{text:?}");
        assert_eq!(expected.parse(), Ok(value));
    }
}

/// Checks the messages of texts that do not parse.
#[cfg(test)]
pub(crate) fn check_faults<T: std::str::FromStr<Err = String> + std::fmt::Debug>(table: &[(&str, &str)]) {
    for (text, fault) in table {
        let error = text.parse::<T>().unwrap_err();
        assert_eq!(error.strip_prefix(&format!("{text}: ")), Some(*fault), "{error}");
    }
}
