//! What the user of another tool calls what we have options for: our text in that tool's words.
//!
//! Not the text: plans, the engine and checks say what is wrong by our own options. Invariant: an option that is in a translated
//! text is one of the tool's, or is said to be one of `brunt run`.

use crate::options::Rule;

/// A tool's options, and which of them are meant by ours.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The tool's options. Ours of the same names mean the same, unless the table has them.
    pub options: &'static [Rule],
    /// What we say, and what the tool's user calls it: an option, or one with what is around it.
    pub table: &'static [(&'static str, &'static str)],
}

impl Names {
    /// Text of ours as the tool's user understands it. What is between quotation marks was given by the user, and stays.
    pub fn translate(&self, text: &str) -> String {
        let mut translated = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let begins = !translated.ends_with(is_of_name);
            let (taken, said) = begins.then(|| self.name_at(rest)).flatten().unwrap_or_else(|| {
                let taken = begins.then(|| quoted_len(rest)).flatten().unwrap_or(first.len_utf8());
                (taken, rest[..taken].to_owned())
            });
            translated.push_str(&said);
            rest = &rest[taken..];
        }
        translated
    }

    /// The name that a text begins with: its length, and its translation.
    fn name_at(&self, text: &str) -> Option<(usize, String)> {
        let known = self.table.iter().filter_map(|(ours, theirs)| phrase_at(text, ours, theirs));
        if let Some(translation) = known.max_by_key(|(length, _)| *length) {
            return Some(translation);
        }
        let long = text
            .strip_prefix("--")
            .filter(|long| long.starts_with(|first: char| first.is_ascii_lowercase()))?;
        let long = &long[..long.find(|after| !is_of_name(after)).unwrap_or(long.len())];
        let is_own = self.options.iter().any(|option| option.long == long);
        let said = if is_own { format!("--{long}") } else { format!("brunt run --{long}") };
        Some((2 + long.len(), said))
    }
}

/// The length of the quotation that a text begins with, both marks included. An apostrophe before a letter does not end it.
fn quoted_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let mut marks = inner.match_indices('\'').map(|(at, _)| at);
    marks.find(|at| !inner[at + 1..].starts_with(is_of_name)).map(|at| at + 2)
}

/// The phrase of ours that a text begins with: its length, and its translation. `*` in both stands for the same value, up
/// to a quotation mark.
fn phrase_at(text: &str, ours: &str, theirs: &str) -> Option<(usize, String)> {
    let (before, after) = ours.split_once('*').unwrap_or((ours, ""));
    let rest = text.strip_prefix(before)?;
    let value = if ours.contains('*') { &rest[..rest.find('\'')?] } else { "" };
    let rest = rest[value.len()..].strip_prefix(after)?;
    if ours.ends_with(is_of_name) && rest.starts_with(is_of_name) {
        return None;
    }
    Some((text.len() - rest.len(), theirs.replace('*', value)))
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::VALUE;

    const fn rule(long: &'static str) -> Rule {
        Rule { long, ..VALUE }
    }

    const NAMES: Names = Names {
        options: &[rule("time"), rule("clients")],
        table: &[
            ("--connections", "--clients"),
            ("transport udp", "--udp"),
            ("invalid value 'fixed:*' for --size", "invalid value '*' for --bytes"),
        ],
    };

    #[test]
    fn option_names_are_translated() {
        let table = [
            ("", ""),
            ("invalid value '5' for --connections", "invalid value '5' for --clients"),
            ("up to 3 --connections, or --time", "up to 3 --clients, or --time"),
            ("is it TLS (transport tls)?", "is it TLS (transport tls)?"),
            ("with transport udp: a datagram", "with --udp: a datagram"),
            ("invalid value 'fixed:12' for --size: expected", "invalid value '12' for --bytes: expected"),
            ("invalid value 'fixed:12' for --sizes", "invalid value 'fixed:12' for brunt run --sizes"),
            // Of the tool alone, or unknown.
            ("--connections-total ends --time", "brunt run --connections-total ends --time"),
            // As it was given.
            ("cannot read '/no/such/--connections it's'", "cannot read '/no/such/--connections it's'"),
            (
                "invalid value 'a --connections 5' for --connections",
                "invalid value 'a --connections 5' for --clients",
            ),
            ("an unclosed ' --connections", "an unclosed ' --clients"),
            ("'--connections' is no option", "'--connections' is no option"),
            ("a--connections -- é --", "a--connections -- é --"),
        ];
        for (ours, theirs) in table {
            assert_eq!(NAMES.translate(ours), theirs);
        }
    }
}
