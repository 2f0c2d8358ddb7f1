//! JSON for people and programs: indented, but for records, which are for programs alone, and rows over time, of which there are
//! hundreds: a record is a line, and so is each row.
//!
//! Not a schema. Invariant: but for white space, and for what steers a terminal and is written out, it is the value.

use crate::paragraph::make_printable;
use serde_json::Value;
use std::io::{self, Write};

/// The key whose value is written on one line.
pub(crate) const COMPACT: &str = "record";
/// The key whose elements are written on one line each.
const ROWS: &str = "intervals";

/// How the value of a key is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Each of its values on lines of its own.
    Indented,
    /// Each element of a list on one line.
    Rows,
    /// All of it on one line.
    Line,
}

/// Writes a value, and a line end.
///
/// # Errors
/// What `out` returns.
pub(crate) fn write(mut value: Value, out: &mut dyn Write) -> io::Result<()> {
    make_printable(&mut value);
    write_value(&value, Layout::Indented, 0, out)?;
    writeln!(out)
}

fn write_value(value: &Value, layout: Layout, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Object(entries) if layout != Layout::Line && !entries.is_empty() => {
            for (index, (key, value)) in entries.iter().enumerate() {
                begin_line(if index == 0 { "{" } else { "," }, depth + 1, out)?;
                serde_json::to_writer(&mut *out, key)?;
                write!(out, ": ")?;
                let layout = match key.as_str() {
                    COMPACT => Layout::Line,
                    ROWS => Layout::Rows,
                    _ => Layout::Indented,
                };
                write_value(value, layout, depth + 1, out)?;
            }
            begin_line("", depth, out)?;
            write!(out, "}}")
        }
        Value::Array(elements) if layout != Layout::Line && !elements.is_empty() => {
            let of_element = if layout == Layout::Rows { Layout::Line } else { Layout::Indented };
            for (index, element) in elements.iter().enumerate() {
                begin_line(if index == 0 { "[" } else { "," }, depth + 1, out)?;
                write_value(element, of_element, depth + 1, out)?;
            }
            begin_line("", depth, out)?;
            write!(out, "]")
        }
        _ => Ok(serde_json::to_writer(out, value)?),
    }
}

/// Ends a line with this, and indents the next one.
fn begin_line(end: &str, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{end}\n{:1$}", "", 2 * depth)
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
        write(value.clone(), &mut text).unwrap();
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
