//! The words that a user writes, split and quoted as redis-cli does it, and the placeholders in them.
//!
//! Words are the same in every protocol; `template.rs` turns them into bytes. Invariant: a word has at least one part.

use brunt_plan::split_mix::output;

/// What a word consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(Vec<u8>),
    Key,
    Value,
    /// The length of a data block.
    Length,
    /// Letters and digits drawn for each operation; 0: as many bytes as a number of Thrift takes.
    Random(u32),
    /// A whole number, drawn for each operation.
    Number(Number),
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub parts: Vec<Part>,
}

impl Word {
    /// The whole word, if it has no placeholder.
    pub(super) fn text(&self) -> Option<&[u8]> {
        if let [Part::Text(text)] = &self.parts[..] { Some(text) } else { None }
    }

    /// The text before its first placeholder.
    pub(super) fn head(&self) -> &[u8] {
        if let Some(Part::Text(text)) = self.parts.first() { text } else { b"" }
    }

    /// Number of parts equal to this one.
    pub(super) fn count(&self, wanted: &Part) -> usize {
        self.parts.iter().filter(|part| *part == wanted).count()
    }
}

/// What may be in braces, beside `{random:N}` and `{rand:MIN,MAX}`.
const PLACEHOLDERS: [(&[u8], Part); 4] =
    [(b"key", Part::Key), (b"value", Part::Value), (b"bytes", Part::Length), (b"random", Part::Random(0))];

/// The placeholders that error messages name.
const ACCEPTED: &str = "expected {key}, {value}, {random:N} for N letters and digits, {rand:MIN,MAX} for a whole number, and in \
                        memcached-text {bytes}; a plain brace is written \\{ in double quotes";

/// What other tools' commands have in the place of our placeholders.
const FOREIGN_PLACEHOLDERS: [(&str, &str); 3] =
    [("__key__", "{key}"), ("__data__", "{value}"), ("__rand_", "{rand:MIN,MAX}, such as {rand:0,99999}")];

/// The most letters of one random field.
const RANDOM_BYTES_MAX: u32 = 1 << 20;

/// A byte of an argument, and whether it was escaped: such a brace opens no placeholder.
type Letter = (u8, bool);

/// Splits a command into words, and each word into parts.
pub(super) fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut rest = text.as_bytes();
    let (mut words, mut numbers) = (Vec::new(), 0);
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(words);
        }
        let (letters, used) = argument(rest)
            .map_err(|what| format!("'{text}', at '{}': {what}", String::from_utf8_lossy(rest)))?;
        reject_foreign_placeholders(text, &letters)?;
        let mut parts = parts(&letters)?;
        for part in &mut parts {
            if let Part::Number(number) = part {
                *number = number.at(numbers);
                numbers += 1;
            }
        }
        words.push(Word { parts });
        rest = &rest[used..];
    }
}

/// Refuses other tools' placeholders, which would be sent as they are. An escaped underscore is meant so.
fn reject_foreign_placeholders(text: &str, letters: &[Letter]) -> Result<(), String> {
    let is_at = |at: &[Letter], theirs: &str| at.iter().copied().eq(theirs.bytes().map(|byte| (byte, false)));
    let holds = |theirs: &str| letters.windows(theirs.len()).any(|at| is_at(at, theirs));
    match FOREIGN_PLACEHOLDERS.iter().find(|(theirs, _)| holds(theirs)) {
        Some((theirs, ours)) => {
            let named = if theirs.ends_with("__") { theirs } else { "__rand_int__" };
            Err(format!("'{text}': {named} is a placeholder of other tools; ours is {ours}"))
        }
        None => Ok(()),
    }
}

/// The argument at the front, as redis-cli reads it: quotes may begin anywhere in it, and end it. Also how much of the
/// text it is.
fn argument(text: &[u8]) -> Result<(Vec<Letter>, usize), &'static str> {
    let mut letters = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' | b'\'' => {
                at += quoted(&text[at..], &mut letters)?;
                return match text.get(at) {
                    Some(behind) if !behind.is_ascii_whitespace() => {
                        Err("a closing quote is not followed by a blank: expected quotes around whole words")
                    }
                    _ => Ok((letters, at)),
                };
            }
            _ if byte.is_ascii_whitespace() => break,
            _ => letters.push((byte, false)),
        }
        at += 1;
    }
    Ok((letters, at))
}

/// What is in the quotes at the front, and how long it is with them.
fn quoted(text: &[u8], letters: &mut Vec<Letter>) -> Result<usize, &'static str> {
    let quote = text[0];
    let mut at = 1;
    loop {
        match &text[at..] {
            [] => return Err("a quote is not closed: expected 'TEXT' or \"TEXT\""),
            [byte, ..] if *byte == quote => return Ok(at + 1),
            [b'\\', rest @ ..] if quote == b'"' && !rest.is_empty() => {
                let (byte, used) = escape(rest);
                letters.push((byte, true));
                at += 1 + used;
            }
            [b'\\', b'\'', ..] if quote == b'\'' => {
                letters.push((b'\'', true));
                at += 2;
            }
            [byte, ..] => {
                letters.push((*byte, false));
                at += 1;
            }
        }
    }
}

/// The byte that stands for what is behind a backslash in double quotes, and how much that is.
fn escape(text: &[u8]) -> (u8, usize) {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    if let (b'x', Some(high), Some(low)) = (text[0], digit(1), digit(2)) {
        return ((high * 16 + low) as u8, 3);
    }
    let byte = match text[0] {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        byte => byte,
    };
    (byte, 1)
}

/// Finds the placeholders: a word in braces. Anything else in braces is text.
fn parts(letters: &[Letter]) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = letters;
    while let Some(((byte, _), behind)) = rest.split_first() {
        let Some(word) = placeholder(rest) else {
            text.push(*byte);
            rest = behind;
            continue;
        };
        let part = part(&word).ok_or_else(|| {
            format!("'{{{}}}' is no placeholder: {ACCEPTED}", String::from_utf8_lossy(&word))
        })?;
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
        rest = &rest[word.len() + 2..];
    }
    if !text.is_empty() || parts.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// What a word in braces stands for.
fn part(word: &[u8]) -> Option<Part> {
    if let Some(len) = word.strip_prefix(RANDOM) {
        let len = std::str::from_utf8(len).ok()?.parse().ok()?;
        return (1..=RANDOM_BYTES_MAX).contains(&len).then_some(Part::Random(len));
    }
    if let Some(range) = word.strip_prefix(NUMBER) {
        return Number::parse(std::str::from_utf8(range).ok()?).map(Part::Number);
    }
    PLACEHOLDERS.iter().find(|(name, _)| *name == word).map(|(_, part)| part.clone())
}

/// How `{random:N}` and `{rand:MIN,MAX}` begin: the only placeholders with a colon, which is in braces of other texts, too.
const RANDOM: &[u8] = b"random:";
const NUMBER: &[u8] = b"rand:";

/// The word in the braces at the front, if that is what is there.
fn placeholder(letters: &[Letter]) -> Option<Vec<u8>> {
    let ((b'{', false), rest) = letters.split_first()? else { return None };
    let end = rest.iter().position(|letter| {
        !matches!(letter, (b'a'..=b'z' | b'0'..=b'9' | b'_' | b':' | b',' | b'-', false))
    })?;
    let word: Vec<u8> = rest[..end].iter().map(|(byte, _)| *byte).collect();
    let is_plain = !word.iter().any(|byte| b":,-".contains(byte));
    let is_named = is_plain || word.starts_with(RANDOM) || word.starts_with(NUMBER);
    (end > 0 && is_named && rest[end] == (b'}', false)).then_some(word)
}

// --- Numbers: functions of the operation's own number and of the place of the draw ---

/// Its draws lie behind those of all letters of a command.
const FIRST_DRAW: u64 = 1 << 63;

/// A number from `min` to `max`, each as often as the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    min: i64,
    max: i64,
    /// The place of its draw.
    from: u64,
}

impl Number {
    /// The longest decimal: `-9223372036854775808`.
    pub(super) const BYTES_MAX: usize = 20;

    /// What `MIN,MAX` says; `None` if that is no range.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (min, max) = text.split_once(',')?;
        let (min, max) = (min.parse().ok()?, max.parse().ok()?);
        (min <= max).then_some(Self { min, max, from: FIRST_DRAW })
    }

    /// The number at this place of its command: no two have the same draw.
    pub(super) fn at(self, place: usize) -> Self {
        Self { from: FIRST_DRAW + place as u64, ..self }
    }

    fn value(self, operand: u64) -> i128 {
        let span = (i128::from(self.max) - i128::from(self.min) + 1) as u128;
        // The high half of the product: off by less than a part in 2^64 / span.
        let above = (u128::from(output(operand, self.from)) * span) >> 64;
        i128::from(self.min) + above as i128
    }

    /// The decimal of an operation, in the end of `room`.
    pub(super) fn decimal(self, operand: u64, room: &mut [u8; Self::BYTES_MAX]) -> &[u8] {
        let value = self.value(operand);
        let mut rest = value.unsigned_abs() as u64;
        let mut at = Self::BYTES_MAX;
        loop {
            at -= 1;
            room[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            at -= 1;
            room[at] = b'-';
        }
        &room[at..]
    }

    /// How long that is.
    pub(super) fn len(self, operand: u64) -> usize {
        self.decimal(operand, &mut [0; Self::BYTES_MAX]).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(i64, i64)>) {
        let number = Number::parse(text);
        assert_eq!(number.map(|number| (number.min, number.max)), expected, "{text}");
    }

    #[test]
    fn ranges() {
        check("1,100", Some((1, 100)));
        check("-3,-3", Some((-3, -3)));
        check("-9223372036854775808,9223372036854775807", Some((i64::MIN, i64::MAX)));
        for text in ["", "1", "2,1", "1,", "a,b", "1,2,3", "1,9223372036854775808"] {
            check(text, None);
        }
    }

    #[test]
    fn numbers_of_a_range_are_uniform() {
        let number = Number::parse("-2,7").unwrap();
        let mut counts = [0_i64; 10];
        for operand in 0..100_000_u64 {
            let mut room = [0; Number::BYTES_MAX];
            let text = std::str::from_utf8(number.decimal(output(7, operand), &mut room)).unwrap().to_owned();
            assert_eq!(number.len(output(7, operand)), text.len());
            counts[(text.parse::<i64>().unwrap() + 2) as usize] += 1;
        }
        // Four standard deviations of 100000 draws with a share of 0.1.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 380), "{counts:?}");
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        for text in ["-9223372036854775808,-9223372036854775808", "9223372036854775807,9223372036854775807"] {
            let mut room = [0; Number::BYTES_MAX];
            let decimal = Number::parse(text).unwrap().decimal(3, &mut room);
            assert_eq!(std::str::from_utf8(decimal).unwrap(), text.split(',').next().unwrap());
        }
    }
}
