//! JSON for people and programs: indented, but for records, which are for programs alone, and rows over time, of which there are
//! hundreds: a record is a line, and so is each row.
//!
//! Not a schema. Invariant: but for white space it is the value.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// The key whose value is written on one line.
pub(crate) const COMPACT: &str = "record";
/// The key whose elements are written on one line each.
const ROWS: &str = "intervals";

/// Writes a value, and a line end.
///
/// # Errors
/// What `out` returns.
pub(crate) fn write(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(&mut *out, Indented::default());
    value.serialize(&mut serializer)?;
    writeln!(out)
}

#[derive(Default)]
struct Indented {
    pretty: PrettyFormatter<'static>,
    /// The text of the key that is being written; nothing where none is.
    key: Option<Vec<u8>>,
    /// How many objects and lists are open.
    depth: usize,
    /// How many were open where the line began that is being written; nothing outside of one.
    line: Option<usize>,
    /// How many are open in the list whose elements are lines.
    rows: Option<usize>,
    /// What the value to come is written as.
    layout: Layout,
}

/// How the value of a key is written.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Layout {
    #[default]
    Indented,
    Line,
    Rows,
}

impl Indented {
    fn leave(&mut self) {
        if self.line == Some(self.depth) {
            self.line = None;
        }
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        if std::mem::take(&mut self.layout) == Layout::Rows {
            self.rows = Some(self.depth);
        }
        if self.line.is_some() { writer.write_all(b"[") } else { self.pretty.begin_array(writer) }
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.rows == Some(self.depth) {
            self.rows = None;
        }
        self.depth -= 1;
        if self.line.is_some() { writer.write_all(b"]") } else { self.pretty.end_array(writer) }
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        match self.line {
            Some(_) if first => Ok(()),
            Some(_) => writer.write_all(b","),
            None => {
                if self.rows == Some(self.depth) {
                    self.line = self.rows;
                }
                self.pretty.begin_array_value(writer, first)
            }
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.leave();
        if self.line.is_some() { Ok(()) } else { self.pretty.end_array_value(writer) }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.layout = Layout::Indented;
        if self.line.is_some() { writer.write_all(b"{") } else { self.pretty.begin_object(writer) }
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.line.is_some() { writer.write_all(b"}") } else { self.pretty.end_object(writer) }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        match self.line {
            Some(_) if first => Ok(()),
            Some(_) => writer.write_all(b","),
            None => {
                self.key = Some(Vec::new());
                self.pretty.begin_object_key(writer, first)
            }
        }
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        if let Some(key) = self.key.take() {
            self.layout = match key {
                key if key == COMPACT.as_bytes() => Layout::Line,
                key if key == ROWS.as_bytes() => Layout::Rows,
                _ => Layout::Indented,
            };
        }
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.line.is_some() {
            return writer.write_all(b":");
        }
        if self.layout == Layout::Line {
            self.line = Some(self.depth);
        }
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout = Layout::Indented;
        self.leave();
        if self.line.is_some() { Ok(()) } else { self.pretty.end_object_value(writer) }
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if let Some(key) = &mut self.key {
            key.extend_from_slice(fragment.as_bytes());
        }
        writer.write_all(fragment.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn records_and_rows_stand_on_a_line_each() {
        let value = json!({
            "a": [1, {}],
            "record": { "b": [1, [2, "x"]], "record": { "c": null } },
            "runs": [{ "record": [], "d": { "e": 1.5 } }],
            "intervals": [{ "ops": { "get": [1, 2] } }, {}, [{ "intervals": [3] }]],
            "rows": { "intervals": null, "record": [{}], "f": [4] },
        });
        let mut text = Vec::new();
        write(&value, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = r#"{
  "a": [
    1,
    {}
  ],
  "record": {"b":[1,[2,"x"]],"record":{"c":null}},
  "runs": [
    {
      "record": [],
      "d": {
        "e": 1.5
      }
    }
  ],
  "intervals": [
    {"ops":{"get":[1,2]}},
    {},
    [{"intervals":[3]}]
  ],
  "rows": {
    "intervals": null,
    "record": [{}],
    "f": [
      4
    ]
  }
}
"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
