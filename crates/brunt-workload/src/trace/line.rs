//! The lines of a trace: words between commas become a record, or what is wrong with them.
//!
//! Nothing is quoted, and no line is a comment: a head, if there is one, is a line that is no record, and counted as such.

use super::Record;
use brunt_plan::op::OpKind;
use brunt_plan::plan::{Trace, TraceLayout};

brunt_plan::named! {
    /// Why a line is no record.
    pub enum LineError {
        /// It has fewer columns than its layout.
        Columns = "fewer columns than the layout has",
        /// A length that is no whole number.
        Length = "a length that is no whole number",
        /// A key of no bytes, or of too many with its prefix, or of others than printable ASCII without spaces.
        Key = "a key that is empty, too long or not printable",
        /// An operation that the layout does not know.
        Operation = "an unknown operation",
    }
}

/// A line that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// What it says.
    pub record: Record<'a>,
    /// Its value is longer than any that is sent: the record has the longest.
    pub is_cut: bool,
}

/// Reads a line without its end.
///
/// # Errors
/// It is no record of this layout.
pub fn read(line: &[u8], layout: TraceLayout, key_len_max: usize) -> Result<Line<'_>, LineError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut columns = [&line[..0]; 6];
    let mut count = 0;
    // What is behind the last column of the layout (a time to live, say) is ignored.
    for (place, word) in columns.iter_mut().zip(line.split(|byte| *byte == b',')) {
        *place = word.trim_ascii();
        count += 1;
    }
    // The time in the first column is not kept: a schedule says when requests are sent.
    let [_, second, third, fourth, fifth, sixth] = columns;
    let (key, length, needed) = match layout {
        TraceLayout::Twitter => (second, fourth, 6),
        TraceLayout::Reads | TraceLayout::Words | TraceLayout::Numbers => (fourth, fifth, 5),
    };
    if count < needed {
        return Err(LineError::Columns);
    }
    let length = whole(length).ok_or(LineError::Length)?;
    if key.is_empty() || key.len() > key_len_max || !key.iter().all(u8::is_ascii_graphic) {
        return Err(LineError::Key);
    }
    let kind = match (layout, third) {
        (TraceLayout::Reads, _) => OpKind::Get,
        (TraceLayout::Words, b"read") | (TraceLayout::Numbers, b"1") => OpKind::Get,
        (TraceLayout::Words, b"write") | (TraceLayout::Numbers, b"2") => OpKind::Set,
        (TraceLayout::Words | TraceLayout::Numbers, _) => return Err(LineError::Operation),
        (TraceLayout::Twitter, _) => {
            *layout.kinds().iter().find(|kind| kind.name().as_bytes() == sixth).ok_or(LineError::Operation)?
        }
    };
    let longest = u64::from(Trace::VALUE_BYTES_MAX);
    let value_len = length.min(longest) as u32;
    Ok(Line { record: Record { kind, key, value_len }, is_cut: length > longest })
}

fn whole(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_layout() {
        use OpKind::{Cas, Delete, Get, Gets, Set};
        use TraceLayout::{Numbers, Reads, Twitter, Words};
        // (layout, line, kind, key, length, cut)
        let table = [
            (Reads, "0,1,1,key0,10", Get, "key0", 10, false),
            (Reads, "5,app,whatever,k,0\r", Get, "k", 0, false),
            (Reads, "today,1,1,k,3", Get, "k", 3, false),
            (Words, "1,1,read,a,20", Get, "a", 20, false),
            (Words, "1,1,write,a,20", Set, "a", 20, false),
            (Numbers, "1,1,1,a,20", Get, "a", 20, false),
            (Numbers, "1,1,2,a,20,beyond", Set, "a", 20, false),
            (Twitter, "300,q-r:7,5,212,33,get,0", Get, "q-r:7", 212, false),
            (Twitter, "300,q,1,212,33,gets,0", Gets, "q", 212, false),
            (Twitter, "300,q,1,7,33,set,86400", Set, "q", 7, false),
            (Twitter, "300,q,1,7,33,cas", Cas, "q", 7, false),
            (Twitter, "300, q ,1,0,33, delete ,0", Delete, "q", 0, false),
            (Twitter, "300,q,1,1000001,33,set,0", Set, "q", 1_000_000, true),
        ];
        for (layout, text, kind, key, value_len, is_cut) in table {
            let record = Record { kind, key: key.as_bytes(), value_len };
            assert_eq!(read(text.as_bytes(), layout, 250), Ok(Line { record, is_cut }), "{text}");
        }
        for kind in Twitter.kinds() {
            let text = format!("1,k,1,5,1,{kind},0");
            assert_eq!(read(text.as_bytes(), Twitter, 250).unwrap().record.kind, *kind);
        }
    }

    #[test]
    fn lines_that_are_no_records() {
        use TraceLayout::{Numbers, Reads, Twitter, Words};
        let table = [
            (Reads, "T,App,Req,Key,ValueLen", LineError::Length),
            (Reads, "", LineError::Columns),
            (Reads, "0,1,1,key0", LineError::Columns),
            (Reads, "0,1,1,key0,-5", LineError::Length),
            (Reads, "0,1,1,,5", LineError::Key),
            (Reads, "0,1,1,a b,5", LineError::Key),
            (Reads, "0,1,1,12345678901,5", LineError::Key),
            (Words, "0,1,delete,k,5", LineError::Operation),
            (Words, "0,1,1,k,5", LineError::Operation),
            (Numbers, "0,1,read,k,5", LineError::Operation),
            (Twitter, "1,k,1,5,1", LineError::Columns),
            (Twitter, "1,k,1,5,1,touch", LineError::Operation),
        ];
        for (layout, text, expected) in table {
            assert_eq!(read(text.as_bytes(), layout, 10), Err(expected), "{text}");
        }
        assert_eq!(read(b"1,k\xff,1,5,1,get", Twitter, 10), Err(LineError::Key));
    }
}
