//! Tables of tests as text: a row on each line, its fields divided by ` |`. `\r` and `\n` in a field stand for the ends of lines.

/// Rows of as many fields as the caller takes.
pub(crate) fn cases<const N: usize>(text: &'static str) -> impl Iterator<Item = [String; N]> {
    text.lines().filter(|row| !row.is_empty()).map(|row| {
        let fields = row.split(" |").map(|field| field.trim().replace("\\r", "\r").replace("\\n", "\n"));
        fields.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{row:?} has not {N} fields"))
    })
}

/// The words of a command line; blanks within quotes divide none.
pub(crate) fn words(line: &str) -> Vec<String> {
    let pieces = line.split('"').enumerate();
    let words = pieces.flat_map(|(index, piece)| match index % 2 {
        0 => piece.split_whitespace().map(str::to_owned).collect(),
        _ => vec![piece.to_owned()],
    });
    words.collect()
}
