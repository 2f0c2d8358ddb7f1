//! What the user of another tool calls what we have options for: our text in that tool's words.
//!
//! Not the text: plans, the engine and verdicts say what is wrong by our own options. Invariant: an option that stands in a translated
//! text is one of the tool's, or is said to be one of `brunt run`.

use crate::options::Rule;

/// A tool's options, and which of them are meant by ours.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The tool's options. Ours of the same names mean the same, unless the table has them.
    pub options: &'static [Rule],
    /// What we say, and what the tool's user calls it: an option, or one with what stands around it.
    pub table: &'static [(&'static str, &'static str)],
}

impl Names {
    /// Text of ours as the tool's user understands it. A name right behind a quotation mark is what somebody gave, and is left alone.
    pub fn translate(&self, text: &str) -> String {
        let mut translated = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let begins = !translated.ends_with(|before: char| is_of_name(before) || before == '\'');
            let (taken, said) = match begins.then(|| self.name_at(rest)).flatten() {
                Some((taken, said)) => (taken, said),
                None => (first.len_utf8(), rest[..first.len_utf8()].to_owned()),
            };
            translated.push_str(&said);
            rest = &rest[taken..];
        }
        translated
    }

    /// The name that a text begins with: its length, and what to say instead.
    fn name_at(&self, text: &str) -> Option<(usize, String)> {
        let ends =
            |phrase: &str| !(phrase.ends_with(is_of_name) && text[phrase.len()..].starts_with(is_of_name));
        let known = self.table.iter().filter(|(ours, _)| text.starts_with(ours) && ends(ours));
        if let Some((ours, name)) = known.max_by_key(|(ours, _)| ours.len()) {
            return Some((ours.len(), (*name).to_owned()));
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

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rule(long: &'static str) -> Rule {
        Rule { long, short: None, takes_value: true, repeats: false, ends: false, is_ours: false }
    }

    const NAMES: Names = Names {
        options: &[rule("time"), rule("clients")],
        table: &[
            ("--connections", "--clients"),
            ("--transport udp", "--udp"),
            ("--size: 'fixed:", "--bytes: '"),
        ],
    };

    #[test]
    fn option_names_are_translated() {
        let table = [
            ("", ""),
            ("--connections: '5' was given", "--clients: '5' was given"),
            ("up to 3 --connections, or --time", "up to 3 --clients, or --time"),
            ("is it TLS (--transport tls)?", "is it TLS (brunt run --transport tls)?"),
            ("with --transport udp: a datagram", "with --udp: a datagram"),
            ("--size: 'fixed:12' was given", "--bytes: '12' was given"),
            // Of the tool alone, or of nobody.
            ("--connections-total ends --time", "brunt run --connections-total ends --time"),
            // As it was given.
            ("'--connections' is no option", "'--connections' is no option"),
            ("a--connections -- é --", "a--connections -- é --"),
        ];
        for (ours, theirs) in table {
            assert_eq!(NAMES.translate(ours), theirs);
        }
    }
}
