//! Calls of Thrift's binary protocol in frames: a method and its fields, as words.
//!
//! `add 1:i32=5 2:i32={random}` calls `add` with two fields. A word is `ID:TYPE=VALUE`; without an id only the value is written,
//! as in a list. `struct` opens a struct, whose fields follow up to the word `stop`. The source is Thrift's
//! `doc/specs/thrift-binary-protocol.md` (strict encoding) and `thrift-rpc.md` (framed transport). The sequence number is 0.

use super::piece::Piece;
use super::piece::RandomField;
use super::word::{Part, Word};
use crate::template::piece::PieceBuilder;

/// Version 1 and the type of a call.
const CALL: [u8; 4] = [0x80, 0x01, 0x00, 0x01];
const SEQUENCE: [u8; 4] = [0; 4];
const STOP: u8 = 0;

/// Types with their numbers, in the order of the specification.
const TYPES: [(&str, u8); 13] = [
    ("stop", STOP),
    ("void", 1),
    ("bool", 2),
    ("byte", 3),
    ("double", 4),
    ("i16", 6),
    ("i32", 8),
    ("i64", 10),
    ("string", 11),
    ("struct", 12),
    ("map", 13),
    ("set", 14),
    ("list", 15),
];

/// The syntax that error messages name.
const ACCEPTED: &str = "expected METHOD and fields such as 1:i32=5, 2:string={value}, 3:bool=true, 4:double={random}, 5:struct … \
                        stop, 6:list<i32>=2, 7:map<string,i64>=1";

/// The pieces of a call.
///
/// # Errors
/// A word is no field.
pub(super) fn call(text: &str, words: &[Word]) -> Result<Vec<Piece>, String> {
    let (method, fields) = words.split_first().ok_or(ACCEPTED)?;
    let mut body = PieceBuilder::default();
    body.text(&CALL);
    put_string(method, &mut body);
    body.text(&SEQUENCE);
    for word in fields {
        field(word, &mut body).ok_or_else(|| {
            format!("'{text}': '{}' is no field of a call: {ACCEPTED}", word.head().escape_ascii())
        })?;
    }
    body.text(&[STOP]);
    let body = body.end();
    let mut frame = PieceBuilder::default();
    frame.length(body.clone(), true);
    for piece in body {
        match piece {
            Piece::Text(text) => frame.text(&text),
            piece => frame.push(piece),
        }
    }
    Ok(frame.end())
}

/// A field, or a value without one. `None`: it is neither.
fn field(word: &Word, to: &mut PieceBuilder) -> Option<()> {
    let head = std::str::from_utf8(word.head()).ok()?;
    let (kind, value) = head.split_once('=').map_or((head, None), |(kind, value)| (kind, Some(value)));
    let (id, kind) = kind.split_once(':').map_or((None, kind), |(id, kind)| (Some(id), kind));
    let (kind, of) = match kind.split_once('<') {
        Some((kind, of)) => (kind, Some(of.strip_suffix('>')?)),
        None => (kind, None),
    };
    let number = number_of(kind)?;
    if let Some(id) = id {
        let id = id.parse::<i16>().ok().filter(|_| number != STOP)?;
        to.text(&[number]);
        to.text(&id.to_be_bytes());
    }
    let rest = &word.parts[1..];
    match (kind, of, value) {
        ("stop", None, None) if rest.is_empty() => to.text(&[STOP]),
        ("void" | "struct", None, None) if rest.is_empty() => {}
        ("list" | "set", Some(of), Some(len)) if rest.is_empty() => {
            to.text(&[number_of(of)?]);
            to.text(&size(len)?);
        }
        ("map", Some(of), Some(len)) if rest.is_empty() => {
            let (key, value) = of.split_once(',')?;
            to.text(&[number_of(key)?, number_of(value)?]);
            to.text(&size(len)?);
        }
        ("string", None, Some(value)) => {
            let text = (!value.is_empty()).then(|| Part::Text(value.as_bytes().to_vec()));
            let parts: Vec<Part> = text.into_iter().chain(rest.iter().cloned()).collect();
            if parts.iter().any(|part| matches!(part, Part::Random(0) | Part::Length)) {
                return None;
            }
            put_string(&Word { parts }, to);
        }
        (_, None, Some("")) if *rest == [Part::Random(0)] => {
            let (len, draw) = random(kind)?;
            to.random(len, draw);
        }
        (_, None, Some(value)) if rest.is_empty() => match kind {
            "bool" => to.text(&[u8::from(value.parse::<bool>().ok()?)]),
            "byte" => to.text(&value.parse::<i8>().ok()?.to_be_bytes()),
            "i16" => to.text(&value.parse::<i16>().ok()?.to_be_bytes()),
            "i32" => to.text(&value.parse::<i32>().ok()?.to_be_bytes()),
            "i64" => to.text(&value.parse::<i64>().ok()?.to_be_bytes()),
            "double" => to.text(&value.parse::<f64>().ok()?.to_be_bytes()),
            _ => return None,
        },
        _ => return None,
    }
    Some(())
}

fn number_of(kind: &str) -> Option<u8> {
    TYPES.iter().find(|(name, _)| *name == kind).map(|(_, number)| *number)
}

/// How many elements follow.
fn size(text: &str) -> Option<[u8; 4]> {
    text.parse::<i32>().ok().filter(|len| *len >= 0).map(i32::to_be_bytes)
}

/// A random value of a type of fixed length.
fn random(kind: &str) -> Option<(u32, RandomField)> {
    Some(match kind {
        "bool" => (1, RandomField::Bool),
        "byte" => (1, RandomField::Bytes),
        "i16" => (2, RandomField::Bytes),
        "i32" => (4, RandomField::Bytes),
        "i64" => (8, RandomField::Bytes),
        "double" => (8, RandomField::UnitDouble),
        _ => return None,
    })
}

fn put_string(word: &Word, to: &mut PieceBuilder) {
    to.length(super::pieces_of(word), true);
    to.word(word, &[]);
}
