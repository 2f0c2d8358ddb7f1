//! The file of `--cfg_cmd`: sizes of keys and values in ranges with shares, and the shares of set and get.
//!
//! Not what a run makes of them. Sections are in any order and may be repeated; rows of commands go by their type. Invariant: what
//! is read is complete (every section's shares are thousandths that sum to 1, every range begins before it ends), or the fault names
//! file, line and reason.

use super::command_line::VALUE_BYTES_MAX;

/// The file that is read where none is named, in the home directory, if it is there.
pub const DEFAULT_NAME: &str = ".memslap.cnf";
/// Where no file is: memaslap's own.
const DEFAULT: &str = "key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.1\n1 0.9";
/// The shares of a section are thousandths.
const WHOLE: u32 = 1_000;
/// The shortest key: eight bytes tell objects apart, and memaslap wants as many behind them.
const KEY_BYTES_MIN: u32 = 16;
/// memcached's longest key. The binary protocol has longer ones, memcached takes none of them.
const KEY_BYTES_MAX: u32 = 250;

/// Sizes from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub start: u32,
    /// The largest.
    pub end: u32,
    /// How many thousandths of the objects have them.
    pub thousandths: u32,
    line: usize,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadFile {
    /// Its name, for messages.
    name: String,
    /// Sizes of keys.
    pub keys: Vec<Range>,
    /// Sizes of values.
    pub values: Vec<Range>,
    /// Thousandths of the operations that are sets.
    pub sets: u32,
    /// Thousandths that are gets.
    pub gets: u32,
}

brunt_plan::named! {
    /// The sections of a file.
    pub enum Section {
        /// Sizes of keys.
        Key = "key",
        /// Sizes of values.
        Value = "value",
        /// Kinds of operation.
        Command = "cmd",
    }
}

impl Default for WorkloadFile {
    fn default() -> Self {
        Self::parse("(built in)", DEFAULT, false).expect("the built-in file is complete")
    }
}

impl WorkloadFile {
    /// Reads the text of a file. With `has_size`, of a run whose values have one size, it need not have a section of values.
    ///
    /// # Errors
    /// The first line that cannot be meant, or a section whose shares do not sum to 1.
    pub fn parse(name: &str, text: &str, has_size: bool) -> Result<Self, String> {
        let mut read = Self { name: name.to_owned(), keys: Vec::new(), values: Vec::new(), sets: 0, gets: 0 };
        let mut section = None;
        let mut last = [0; Section::ALL.len()];
        let lines = text.lines().map(str::trim).enumerate();
        for (index, content) in lines.filter(|(_, content)| !content.is_empty() && !content.starts_with('#'))
        {
            let line = index + 1;
            let fault = |reason: String| read_fault(name, line, &reason);
            if let Some(begun) = Section::ALL.into_iter().find(|section| content.starts_with(section.name()))
            {
                section = Some(begun);
                continue;
            }
            let words: Vec<&str> = content.split_whitespace().collect();
            match section {
                None => {
                    return Err(fault(format!("'{content}' stands before the first of key, value and cmd")));
                }
                Some(Section::Command) => read.add_command(&words).map_err(fault)?,
                Some(Section::Key) => read.keys.push(range(&words, line).map_err(fault)?),
                Some(Section::Value) => read.values.push(range(&words, line).map_err(fault)?),
            }
            last[section.map_or(0, |section| section as usize)] = line;
        }
        for section in Section::ALL {
            let sum = match section {
                Section::Key => share(&read.keys),
                Section::Value if read.values.is_empty() && has_size => WHOLE,
                Section::Value => share(&read.values),
                Section::Command => read.sets.saturating_add(read.gets),
            };
            let (title, line) = (section.name(), last[section as usize]);
            if line == 0 && sum != WHOLE {
                return Err(format!(
                    "--cfg_cmd: '{name}' has no rows under {title}; expected at least one, on a line of its own"
                ));
            }
            if sum != WHOLE {
                let sum = f64::from(sum) / f64::from(WHOLE);
                let reason =
                    format!("the proportions under {title} sum to {sum}; expected 1, of three decimals each");
                return Err(read_fault(name, line, &reason));
            }
        }
        Ok(read)
    }

    fn add_command(&mut self, words: &[&str]) -> Result<(), String> {
        let [kind, proportion, ..] = words else {
            return Err(format!("invalid value '{}': expected TYPE PROPORTION", words.join(" ")));
        };
        // `1.0 0.9`, as the manual has it, is type 1.
        let sum = match kind.parse::<f64>() {
            Ok(0.0) => &mut self.sets,
            Ok(1.0) => &mut self.gets,
            _ => return Err(format!("invalid type '{kind}': expected 0 for set and 1 for get")),
        };
        *sum = sum.saturating_add(thousandths(proportion)?);
        Ok(())
    }

    /// Looks whether a server takes such sizes.
    ///
    /// # Errors
    /// The first range that is too small or too large.
    pub fn check_sizes(&self, has_size: bool) -> Result<(), String> {
        let values =
            self.values.iter().filter(|_| !has_size).map(|range| (range, "value", 1..=VALUE_BYTES_MAX));
        let keys = self.keys.iter().map(|range| (range, "key", KEY_BYTES_MIN..=KEY_BYTES_MAX));
        for (range, title, accepted) in keys.chain(values) {
            if !accepted.contains(&range.start) || !accepted.contains(&range.end) {
                let Range { start, end, line, .. } = range;
                let (least, most) = accepted.into_inner();
                let reason =
                    format!("{title}s of {start} to {end} bytes; expected from {least} to {most} bytes");
                return Err(read_fault(&self.name, *line, &reason));
            }
        }
        Ok(())
    }

    /// The mean size of a section as memaslap takes it, in bytes.
    pub fn mean(ranges: &[Range]) -> u64 {
        let sum = |range: &Range| u64::from(range.thousandths) * u64::from((range.start + range.end) / 2);
        ranges.iter().map(sum).sum::<u64>() / u64::from(WHOLE)
    }
}

fn read_fault(name: &str, line: usize, reason: &str) -> String {
    format!("--cfg_cmd: '{name}' line {line}: {reason}")
}

/// What is behind the three numbers of a row is not looked at.
fn range(words: &[&str], line: usize) -> Result<Range, String> {
    let [start, end, proportion, ..] = words else {
        return Err(format!("invalid value '{}': expected START END PROPORTION", words.join(" ")));
    };
    let bytes = |word: &str| {
        let bytes = word.parse::<f64>().ok().filter(|bytes| bytes.fract() == 0.0);
        let bytes =
            bytes.filter(|bytes| (0.0..=f64::from(u32::MAX / 2)).contains(bytes)).map(|bytes| bytes as u32);
        bytes.ok_or_else(|| format!("invalid value '{word}': expected a whole number of bytes"))
    };
    let (start, end) = (bytes(start)?, bytes(end)?);
    if start > end {
        return Err(format!(
            "a range from {start} to {end}; expected one that ends where it begins, or later"
        ));
    }
    Ok(Range { start, end, thousandths: thousandths(proportion)?, line })
}

fn thousandths(word: &str) -> Result<u32, String> {
    let share = word.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    let thousandths = share.map(|share| (share * f64::from(WHOLE)).round() as u32);
    thousandths.ok_or_else(|| format!("invalid proportion '{word}': expected from 0 to 1, such as 0.125"))
}

fn share(ranges: &[Range]) -> u32 {
    ranges.iter().fold(0, |sum, range| sum.saturating_add(range.thousandths))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::cases;

    fn parsed(text: &str) -> Result<WorkloadFile, String> {
        WorkloadFile::parse("f.cnf", text, false)
    }

    /// `key 16-64@500,… value … set get`.
    fn shown(file: &WorkloadFile) -> String {
        let ranges = |ranges: &[Range]| {
            let shown =
                ranges.iter().map(|range| format!("{}-{}@{}", range.start, range.end, range.thousandths));
            shown.collect::<Vec<_>>().join(",")
        };
        format!("{} {} {} {}", ranges(&file.keys), ranges(&file.values), file.sets, file.gets)
    }

    #[test]
    fn workload_files_are_parsed() {
        let usual = "key\n20 20 1\nvalue\n9 9 1\n";
        let table = cases(
            r"
            key\n16 64 0.5\n65 100 0.5\nvalue\n10 100 0.3\n101 1000 0.7\ncmd\n0 0.3\n1 0.7
                => 16-64@500,65-100@500 10-100@300,101-1000@700 300 700
            // The manual's own: comments, blanks, and a type with a decimal.
            #comments\n\nkey\n  16 16 1  \n#more\nvalue\n2 2 1\ncmd\n0    0.1\n1.0 0.9 => 16-16@1000 2-2@1000 100 900
            // Sections in any order, several times, with a blank before them, with more behind their names.
            cmd\n1 0.9\n0 0.1\nvalues\n2 2 1\n key\n16 16 0.25\ncmd\nkeyfoo\n17 17 0.75 => 16-16@250,17-17@750 2-2@1000 100 900
            // Shares of one type add up; what is behind the numbers is not looked at.
            key\n20 20 1 # all\nvalue\n9 9 1 of them\ncmd\n1 0.4\n1 0.6 => 20-20@1000 9-9@1000 0 1000
            // Rounded to three decimals.
            key\n20 20 0.3334\n20 20 0.3332\n20 20 0.334\nvalue\n9 9 1\ncmd\n0 1 => 20-20@333,20-20@333,20-20@334 9-9@1000 1000 0
        ",
        );
        for [text, expected] in table {
            assert_eq!(shown(&parsed(text).unwrap()), expected, "{text}");
        }
        assert_eq!(shown(&WorkloadFile::default()), "64-64@1000 1024-1024@1000 100 900");
        let sized = WorkloadFile::parse("f", "key\n20 20 1\ncmd\n1 1", true).unwrap();
        assert_eq!(shown(&sized), "20-20@1000  0 1000");
        assert!(parsed(&format!("{usual}cmd\n1 1")).is_ok());
    }

    #[test]
    fn faults_name_line_and_reason() {
        let usual = "key\n20 20 1\nvalue\n9 9 1\ncmd\n0 0.1\n1 0.9\n";
        let table = [
            ("", "'f.cnf' has no rows under key; expected at least one"),
            ("# nothing\n\n", "'f.cnf' has no rows under key"),
            ("key\n20 20 1\ncmd\n1 1", "'f.cnf' has no rows under value"),
            ("key\n20 20 1\nvalue\n9 9 1", "'f.cnf' has no rows under cmd"),
            ("foo\nkey", "'f.cnf' line 1: 'foo' stands before the first of key, value and cmd"),
            (
                &format!("{usual}nonsense"),
                "'f.cnf' line 8: invalid value 'nonsense': expected TYPE PROPORTION",
            ),
            (&format!("{usual}2 0.1"), "'f.cnf' line 8: invalid type '2': expected 0 for set and 1 for get"),
            (&format!("{usual}1 0.1"), "'f.cnf' line 8: the proportions under cmd sum to 1.1; expected 1"),
            (
                &format!("{usual}key\n20 20"),
                "'f.cnf' line 9: invalid value '20 20': expected START END PROPORTION",
            ),
            (
                &format!("{usual}key\n20 x 1"),
                "'f.cnf' line 9: invalid value 'x': expected a whole number of bytes",
            ),
            (&format!("{usual}key\n20.5 30 1"), "'f.cnf' line 9: invalid value '20.5'"),
            (&format!("{usual}key\n-20 30 1"), "'f.cnf' line 9: invalid value '-20'"),
            (
                &format!("{usual}key\n30 20 1"),
                "'f.cnf' line 9: a range from 30 to 20; expected one that ends",
            ),
            (
                &format!("{usual}value\n1 2 1.5"),
                "'f.cnf' line 9: invalid proportion '1.5': expected from 0 to 1",
            ),
            (&format!("{usual}value\n1 2 0.5"), "'f.cnf' line 9: the proportions under value sum to 1.5"),
            (
                "key\n20 20 0.999\nvalue\n9 9 1\ncmd\n1 1",
                "'f.cnf' line 2: the proportions under key sum to 0.999",
            ),
        ];
        for (text, message) in table {
            let refusal = parsed(text).unwrap_err();
            assert!(refusal.starts_with(&format!("--cfg_cmd: {message}")), "{text}: {refusal}");
        }
    }

    #[test]
    fn sizes_stay_within_server_limits() {
        let check = |key: &str, value: &str, has_size| {
            let file = parsed(&format!("key\n{key} 1\nvalue\n{value} 1\ncmd\n1 1")).unwrap();
            file.check_sizes(has_size).err()
        };
        for (key, value, has_size) in [("16 250", "1 1048576", false), ("20 20", "0 2000000", true)] {
            assert_eq!(check(key, value, has_size), None, "{key} {value}");
        }
        let table = [
            ("8 20", "1 1", "line 2: keys of 8 to 20 bytes; expected from 16 to 250 bytes"),
            ("20 251", "1 1", "line 2: keys of 20 to 251 bytes"),
            ("20 20", "0 1", "line 4: values of 0 to 1 bytes; expected from 1 to 1048576 bytes"),
            ("20 20", "1 1048577", "line 4: values of 1 to 1048577 bytes"),
        ];
        for (key, value, message) in table {
            let said = check(key, value, false).unwrap();
            assert!(said.starts_with(&format!("--cfg_cmd: 'f.cnf' {message}")), "{said}");
        }
    }

    #[test]
    fn mean_sizes_are_those_of_the_ranges() {
        let file = parsed("key\n16 100 0.2\n101 250 0.8\nvalue\n9 9 1\ncmd\n1 1").unwrap();
        // 0.2 * 58 + 0.8 * 175
        assert_eq!(WorkloadFile::mean(&file.keys), 151);
    }
}
