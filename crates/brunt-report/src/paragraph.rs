//! Text in lines: facts in a row, and prose, broken where a line gets too long.
//!
//! What comes from a server or a user passes through [`printable`], so that nothing it holds can steer a terminal.

use serde_json::Value;

/// Facts in lines, with dots between those on one line.
pub(crate) fn wrapped(facts: &[String], width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for fact in facts {
        let fact = printable(fact);
        let words = if fact.chars().count() <= width { vec![fact] } else { words(&fact, width) };
        for (index, word) in words.iter().enumerate() {
            let between = match (line.is_empty(), index) {
                (true, _) => "",
                (false, 0) => " · ",
                (false, _) => " ",
            };
            if line.chars().count() + between.chars().count() + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push_str(between);
            }
            line.push_str(word);
        }
    }
    lines.push(line);
    lines
}

/// Text in lines, broken between words.
pub(crate) fn wrapped_prose(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in words(&printable(text), width) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The words of a text; those that are longer than a line in pieces.
fn words(text: &str, width: usize) -> Vec<String> {
    text.split(' ').flat_map(|word| cut(word, width)).map(str::to_owned).collect()
}

/// Splits a piece into lines of at most `width` characters.
fn cut(piece: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = piece;
    while let Some((at, _)) = rest.char_indices().nth(width) {
        let (line, behind) = rest.split_at(at);
        lines.push(line);
        rest = behind;
    }
    lines.push(rest);
    lines
}

/// As many characters of a text as there is room for, and `...` for the rest.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Does a terminal or a browser do something else with it than to show it: is it a control character, the end of a line or paragraph,
/// or does it change the direction of what follows (Unicode Standard Annex 9)?
pub(crate) fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every character written out that [`steers`].
pub(crate) fn printable(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Writes out what steers a terminal, in all texts and keys.
pub(crate) fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(steers) => *text = printable(text),
        Value::Array(list) => list.iter_mut().for_each(make_printable),
        Value::Object(map) => {
            if map.keys().any(|key| key.contains(steers)) {
                let held = std::mem::take(map).into_iter();
                *map = held.map(|(key, inner)| (printable(&key), inner)).collect();
            }
            map.values_mut().for_each(make_printable);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_broken_between_them_where_that_can_be() {
        let facts = ["closed loop", "16 connections", "a fact that is longer than a line has room", "end"];
        let lines = wrapped(&facts.map(str::to_owned), 28);
        assert_eq!(
            lines,
            ["closed loop · 16 connections", "a fact that is longer than a", "line has room · end"]
        );
        assert_eq!(wrapped_prose("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped_prose(&"x".repeat(9), 4), ["xxxx", "xxxx", "x"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("SERVER_ERROR \u{1b}[2J\r\n größer"), "SERVER_ERROR \\u{1b}[2J\\r\\n größer");
        assert_eq!(printable("\u{202e}a\u{2069}\u{9b}"), "\\u{202e}a\\u{2069}\\u{9b}");
    }
}
