//! Text of a document that a command writes: what is between its marks.
//!
//! Invariant: everything outside the marks stays as it is.

use crate::top;
use anyhow::Context;

const END: &str = "<!-- to here -->";

fn begin(command: &str) -> String {
    format!("<!-- cargo xtask {command} --record writes from here -->")
}

/// Writes `text` between the marks of `cargo xtask COMMAND` in a document below the top of the source tree.
///
/// # Errors
/// The document cannot be read or written, or lacks a mark.
pub(crate) fn record(document: &str, command: &str, text: &str) -> anyhow::Result<()> {
    let path = top().join(document);
    let before = std::fs::read_to_string(&path).with_context(|| document.to_owned())?;
    std::fs::write(&path, replaced(&before, command, text)?).with_context(|| document.to_owned())?;
    println!("recorded in {}", path.display());
    Ok(())
}

/// The document with `text` between the marks.
fn replaced(document: &str, command: &str, text: &str) -> anyhow::Result<String> {
    let begin = begin(command);
    let (before, rest) = document.split_once(&begin).with_context(|| format!("'{begin}' is missing"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("'{END}' is missing"))?;
    Ok(format!("{before}{begin}\n\n{text}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_marks_is_replaced() {
        let begin = begin("bench");
        let document = format!("a\n{begin}\nold\n{END}\nb\n");
        let expected = format!("a\n{begin}\n\nnew\n\n{END}\nb\n");
        assert_eq!(replaced(&document, "bench", "new\n").unwrap(), expected);
        assert!(replaced(&document, "accuracy wire", "new").is_err());
        assert!(replaced("a", "bench", "new").is_err());
        let document = std::fs::read_to_string(top().join("docs/method.md")).unwrap();
        for command in ["bench", "accuracy wire"] {
            assert!(replaced(&document, command, "new").is_ok(), "{command}");
        }
    }
}
