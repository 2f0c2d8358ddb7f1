//! `@FILE`: an option whose text is too long for a command line is in a file.
//!
//! Not a format of its own: the lines of the file, joined by commas, are what would have stood after the option; from `#`
//! to the end of a line is a comment. Here and not in `brunt-plan`, which reads no files. Invariant: what a run was made
//! with is in its resolved plan, not in a file that may have changed since.

use crate::input;
use brunt_plan::spec::{OPTIONS, PlanOption};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The text of a flag's value: `text`, or what the file says that `@FILE` names.
///
/// # Errors
/// The file cannot be read, or the text is no value of the option; for a user, without the name of the flag.
pub(crate) fn check_or_read(option: &PlanOption, text: &str) -> Result<String, String> {
    match text.trim().strip_prefix('@').filter(|_| option.is_or_file) {
        None => option.check(text).map(|()| text.to_owned()),
        Some(path) => {
            let text = read(Path::new(path))?;
            option.check(&text).map_err(|error| format!("in the file '{path}': {error}"))?;
            Ok(text)
        }
    }
}

/// The text of a plan file with every `@FILE` replaced by what that file says; paths are relative to `directory`. Line
/// numbers stay as they are. A plan that is no TOML is returned as it is: the parser reports where it is wrong.
///
/// # Errors
/// A file cannot be read, or holds no value of its key; for a user, with the name of the key.
pub(crate) fn fill_in(plan: &str, directory: &Path) -> Result<String, String> {
    let Ok(table) = DeTable::parse(plan) else { return Ok(plan.to_owned()) };
    let mut places = Vec::new();
    find_file_references(table.get_ref(), &mut places);
    // From the end, so that the places in front stay where they are.
    places.sort_by_key(|place| std::cmp::Reverse(place.start));
    let mut filled = plan.to_owned();
    for FileReference { start, end, option, path } in places {
        let full = directory.join(&path);
        let accepted = |error: String| format!("invalid value '@{path}' for {}: {error}", option.key());
        let text = read(&full).map_err(accepted)?;
        option
            .check(&text)
            .map_err(|error| accepted(format!("in the file '{}': {error}", full.display())))?;
        filled.replace_range(start..end, &toml::Value::String(text).to_string());
    }
    Ok(filled)
}

/// Where in a plan's text a file is named.
struct FileReference {
    start: usize,
    end: usize,
    option: &'static PlanOption,
    path: String,
}

/// The keys of the table and of the tables in its arrays (`[[class]]`).
fn find_file_references(table: &DeTable<'_>, places: &mut Vec<FileReference>) {
    for (name, value) in table {
        match value.get_ref() {
            DeValue::String(text) => {
                let mut or_file = OPTIONS.iter().filter(|option| option.is_or_file);
                let option = or_file.find(|option| option.key() == name.get_ref().as_ref());
                if let (Some(option), Some(path)) = (option, text.strip_prefix('@')) {
                    let (start, end) = (value.span().start, value.span().end);
                    places.push(FileReference { start, end, option, path: path.to_owned() });
                }
            }
            DeValue::Array(items) => {
                for item in items.iter() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        find_file_references(inner, places);
                    }
                }
            }
            _ => {}
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let text = input::read_text(path, input::BYTES_MAX).map_err(|error| {
        format!("cannot read '{}' ({error}): expected @ and the path of a text file", path.display())
    })?;
    let lines = text.lines().map(|line| line.split_once('#').map_or(line, |(value, _)| value));
    let values = lines.map(|line| line.trim().trim_end_matches(',').trim_end());
    let values: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    Ok(values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A directory with these files in the temporary one, which `cargo xtask test` removes.
    fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("brunt-option-file-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        files.iter().for_each(|(file, text)| fs::write(directory.join(file), text).unwrap());
        directory
    }

    #[test]
    fn lines_are_joined_and_comments_dropped() {
        let text = "# morning\n0s=1k,\n\n  10s = 2k  # noon\n20s=5,\n";
        let path = directory("lines", &[("profile.csv", text)]).join("profile.csv");
        let option = OPTIONS.iter().find(|option| option.field == "rate_profile").unwrap();
        let read = |text: &str| check_or_read(option, text);
        assert_eq!(read(&format!("@{}", path.display())).unwrap(), "0s=1k,10s = 2k,20s=5");
        assert_eq!(read("0s=7").unwrap(), "0s=7");
        let missing = read("@/no/such/file").unwrap_err();
        assert!(
            missing.contains("cannot read '/no/such/file'") && missing.contains(": expected @"),
            "{missing}"
        );
    }

    #[test]
    fn files_named_in_a_plan_are_inlined() {
        let files = [("sizes", "uniform:10,\n20"), ("wrong", "big"), ("profile", "0s=1k\n5s=2k")];
        let directory = directory("plan", &files);
        let table = [
            ("keys = 5\n", Ok("keys = 5\n")),
            ("prefix = '@sizes'\n", Ok("prefix = '@sizes'\n")),
            (
                "value-size = '@sizes' # here\nrate-profile = \"@profile\"\n",
                Ok("value-size = \"uniform:10,20\" # here\nrate-profile = \"0s=1k,5s=2k\"\n"),
            ),
            (
                "[[class]]\nname = 'a'\nkey-size = '@sizes'\n[[class]]\nname = 'b'\n",
                Ok("[[class]]\nname = 'a'\nkey-size = \"uniform:10,20\"\n[[class]]\nname = 'b'\n"),
            ),
            ("no toml", Ok("no toml")),
            ("value-size = '@wrong'\n", Err("invalid value '@wrong' for value-size: in the file")),
            ("arrival = '@missing'\n", Err("invalid value '@missing' for arrival: cannot read")),
        ];
        for (plan, expected) in table {
            match (fill_in(plan, &directory), expected) {
                (Ok(filled), Ok(expected)) => assert_eq!(filled, expected),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (filled, _) => panic!("{plan:?}: {filled:?}"),
            }
        }
    }
}
