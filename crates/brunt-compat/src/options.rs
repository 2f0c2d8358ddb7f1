//! The option rules of GNU getopt_long with gengetopt on top, which all tools written in C share.
//!
//! Not what an option means: that is each tool's. Invariant: every argument becomes an option of the table, a stray word, or a
//! fault that names it.

use std::fmt;

/// An option that a tool knows.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name behind two dashes; any beginning of it that belongs to no other one is accepted.
    pub long: &'static str,
    /// Its letter behind one dash.
    pub short: Option<char>,
    /// A value follows it.
    pub takes_value: bool,
    /// It may be given several times.
    pub repeats: bool,
    /// Nothing behind it is looked at.
    pub ends: bool,
    /// The tool does not have it, we do: a beginning of its name that begins an option of the tool's, too, means that.
    pub is_ours: bool,
    /// What its value is, for the help.
    pub value: &'static str,
    /// What it does, for the help.
    pub about: &'static str,
}

/// An option without a letter and without a value, which may be given once.
pub(crate) const FLAG: Rule = Rule {
    long: "",
    short: None,
    takes_value: false,
    repeats: false,
    ends: false,
    is_ours: false,
    value: "",
    about: "",
};
/// An option without a letter, with a value, which may be given once.
pub(crate) const VALUE: Rule = Rule { takes_value: true, ..FLAG };

impl Rule {
    pub(crate) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    pub(crate) const fn repeated(self) -> Self {
        Self { repeats: true, ..self }
    }

    pub(crate) const fn ending(self) -> Self {
        Self { ends: true, ..self }
    }

    pub(crate) const fn ours(self) -> Self {
        Self { is_ours: true, ..self }
    }

    pub(crate) const fn help(self, value: &'static str, about: &'static str) -> Self {
        Self { value, about, ..self }
    }
}

/// Declares the options of a tool once, each in a row: name and rule; behind `=>` the field of the command line with its type, its default
/// and the expression for a given value; behind that when the option has no effect, and why.
macro_rules! options {
    ($($long:literal: $rule:expr;)+) => {
        /// Every option: the tool's, and last ours.
        pub(crate) const OPTIONS: &[Rule] = &[$(Rule { long: $long, ..$rule }),+];
    };
    (
        $(#[$attribute:meta])*
        set($line:ident, $long:ident, $text:ident) -> $error:ty {
            $($name:literal: $rule:expr
                $(=> $(#[$of_field:meta])* $field:ident: $type:ty = $default:expr, $read:expr
                    $(, $idle:expr => $why:expr)*)?;)+
        }
    ) => {
        $crate::options::options! { $($name: $rule;)+ }

        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the fields are the options of the same names")]
        pub struct CommandLine {
            $($($(#[$of_field])* pub $field: $type,)?)+
            /// Given, and without effect or not what it looks like: for the user, each without its prefix.
            pub warnings: Vec<String>,
        }

        impl Default for CommandLine {
            fn default() -> Self {
                Self { $($($field: $default,)?)+ warnings: Vec::new() }
            }
        }

        impl CommandLine {
            /// Takes one option.
            pub(crate) fn set(&mut self, $long: &str, $text: &str) -> Result<(), $error> {
                let $line = self;
                match $long {
                    $($($name => $line.$field = $read,)?)+
                    _ => {}
                }
                Ok(())
            }

            /// Takes all options in their order, and notes what has no effect.
            pub(crate) fn apply(&mut self, parsed: &ParsedOptions) -> Result<(), $error> {
                for option in &parsed.given {
                    self.set(option.long, option.value.as_deref().unwrap_or_default())?;
                }
                #[allow(unused_variables, reason = "a tool may have no option that is without effect")]
                let $line = &*self;
                let idle = [$($($(($name, $idle, $why),)*)?)+];
                let warnings = parsed.warnings(&idle);
                self.warnings.extend(warnings);
                Ok(())
            }
        }
    };
}
pub(crate) use options;

/// Help: between head and tail every option with what its value is and what it does.
pub(crate) fn help(head: &str, rules: &[Rule], tail: &str) -> String {
    const COLUMN: usize = 30;
    let line = |rule: &Rule| {
        let letter = rule.short.map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let option = format!("  {letter}--{} {}", rule.long, rule.value);
        let option = option.trim_end();
        match option.len() < COLUMN - 1 {
            true => format!("{option:COLUMN$}{}\n", rule.about),
            false => format!("{option}\n{:COLUMN$}{}\n", "", rule.about),
        }
    };
    let lines: String = rules.iter().map(line).collect();
    format!("{head}\nOptions:\n{lines}{tail}")
}

/// The action that a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<L> {
    /// The help, and what the tool prints with it.
    Help,
    /// The version.
    Version,
    /// A run.
    Run(Box<L>),
}

/// An option that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedOption {
    /// Its long name.
    pub long: &'static str,
    /// Its value, of options that take one.
    pub value: Option<String>,
}

/// A command line taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedOptions {
    /// The options in their order.
    pub given: Vec<ParsedOption>,
    /// Words that are neither options nor their values; they may be anywhere.
    pub strays: Vec<String>,
}

impl ParsedOptions {
    /// What is printed instead of a run, if that is asked for.
    pub fn answer<L>(&self) -> Option<Action<L>> {
        match () {
            () if self.has("help") => Some(Action::Help),
            () if self.has("version") => Some(Action::Version),
            () => None,
        }
    }

    /// Was it given?
    pub fn has(&self, long: &str) -> bool {
        self.given.iter().any(|given| given.long == long)
    }

    /// Its value, where it was given.
    pub fn value(&self, long: &str) -> Option<&str> {
        self.given.iter().find(|given| given.long == long).and_then(|given| given.value.as_deref())
    }

    /// Warnings of stray words, and of the given ones of these options that are without effect: name, whether it is, and why.
    pub(crate) fn warnings(&self, idle: &[(&str, bool, &str)]) -> Vec<String> {
        let idle = idle.iter().filter(|(long, is_idle, _)| *is_idle && self.has(long));
        let idle = idle.map(|(long, _, why)| format!("--{long}: without effect; {why}"));
        self.stray_warnings().into_iter().chain(idle).collect()
    }

    /// Warnings of words that are neither options nor their values.
    pub fn stray_warnings(&self) -> Vec<String> {
        self.strays.iter().map(|stray| format!("'{stray}' belongs to no option and has no effect")).collect()
    }
}

/// What is wrong with the syntax of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No option has this name, which is given with its dashes.
    Unknown(String),
    /// Several options begin so; their long names.
    Ambiguous(String, Vec<&'static str>),
    /// An option, as it was given, ends the line and wants a value.
    LacksValue(String),
    /// An option has this value and takes none.
    TakesNone(&'static str, String),
    /// An option may be given once.
    Twice(&'static str),
}

/// For a user.
impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(option) => write!(formatter, "'{option}' is no option; --help lists them"),
            Self::Ambiguous(option, names) => {
                write!(formatter, "'{option}' may be any of --{}", names.join(" --"))
            }
            Self::LacksValue(option) => write!(formatter, "{option} needs a value"),
            Self::TakesNone(long, value) => {
                write!(formatter, "invalid value '{value}' for --{long}: it takes no value")
            }
            Self::Twice(long) => write!(formatter, "--{long} was given twice"),
        }
    }
}

impl std::error::Error for Fault {}

/// The name that is nearest to a misspelled one, if one is near: hyphens and underscores count as the same, and at most a third of the
/// letters differ.
pub fn closest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.trim_matches('-').replace('_', "-").to_lowercase();
    let given = plain(given);
    let distances = names.into_iter().map(|name| (strsim::osa_distance(&given, &plain(name)), name));
    let (least, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= name.len().div_ceil(3).min(given.len() / 2 + 1)).then_some(name)
}

/// The message for a value that an option does not accept.
pub fn invalid_value(long: &str, text: &str, accepted: &str) -> String {
    format!("invalid value '{text}' for --{long}: expected {accepted}")
}

/// The value of an option where it was read, else the message.
pub(crate) fn accept<T>(long: &str, text: &str, value: Option<T>, accepted: &str) -> Result<T, String> {
    value.ok_or_else(|| invalid_value(long, text, accepted))
}

/// Refuses the first of these rules, each with its message, that applies.
pub(crate) fn refuse(rules: &[(bool, &str)]) -> Result<(), String> {
    rules.iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, message)| Err((*message).to_owned()))
}

/// Takes a command line apart, without the program's name.
///
/// # Errors
/// An option is not known, may be several ones, lacks its value, has one that it does not take, or is given twice.
pub fn scan(rules: &[Rule], arguments: &[String]) -> Result<ParsedOptions, Fault> {
    let mut parsed = ParsedOptions::default();
    scan_into(&mut parsed, rules, arguments).map(|()| parsed)
}

/// Parses as tools do that carry out each option as they meet it, however often it is given: the options before a fault are returned
/// with it.
pub fn scan_to_fault(rules: &[Rule], arguments: &[String]) -> (ParsedOptions, Option<Fault>) {
    let mut parsed = ParsedOptions::default();
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.repeated()).collect();
    let fault = scan_into(&mut parsed, &rules, arguments).err();
    (parsed, fault)
}

fn scan_into(parsed: &mut ParsedOptions, rules: &[Rule], arguments: &[String]) -> Result<(), Fault> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            parsed.strays.extend(rest.cloned());
            break;
        }
        let found = if let Some(long) = argument.strip_prefix("--") {
            vec![scan_long(rules, long, &mut rest)?]
        } else if argument.len() > 1 && argument.starts_with('-') {
            scan_cluster(rules, &argument[1..], &mut rest)?
        } else {
            parsed.strays.push(argument.clone());
            continue;
        };
        for (rule, value) in found {
            if !rule.repeats && parsed.has(rule.long) {
                return Err(Fault::Twice(rule.long));
            }
            parsed.given.push(ParsedOption { long: rule.long, value });
            if rule.ends {
                return Ok(());
            }
        }
    }
    Ok(())
}

type Found<'a> = (&'a Rule, Option<String>);

/// An option behind two dashes, perhaps with its value behind an equals sign.
fn scan_long<'a>(
    rules: &'a [Rule],
    text: &str,
    rest: &mut std::slice::Iter<'_, String>,
) -> Result<Found<'a>, Fault> {
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let exact = rules.iter().find(|rule| rule.long == name);
    let mut begun: Vec<&Rule> = rules.iter().filter(|rule| rule.long.starts_with(name)).collect();
    if begun.iter().any(|rule| !rule.is_ours) {
        begun.retain(|rule| !rule.is_ours);
    }
    let rule = match (exact, begun.as_slice()) {
        (Some(rule), _) => rule,
        (None, [rule]) => *rule,
        (None, []) => return Err(Fault::Unknown(format!("--{name}"))),
        (None, several) => {
            let names = several.iter().map(|rule| rule.long).collect();
            return Err(Fault::Ambiguous(format!("--{name}"), names));
        }
    };
    match (rule.takes_value, attached) {
        (false, Some(value)) => Err(Fault::TakesNone(rule.long, value)),
        (false, None) => Ok((rule, None)),
        (true, Some(value)) => Ok((rule, Some(value))),
        (true, None) => match rest.next() {
            Some(value) => Ok((rule, Some(value.clone()))),
            None => Err(Fault::LacksValue(format!("--{}", rule.long))),
        },
    }
}

/// Letters behind one dash: flags, the last of which may take what follows as its value.
fn scan_cluster<'a>(
    rules: &'a [Rule],
    letters: &str,
    rest: &mut std::slice::Iter<'_, String>,
) -> Result<Vec<Found<'a>>, Fault> {
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        let Some(rule) = rules.iter().find(|rule| rule.short == Some(letter)) else {
            return Err(Fault::Unknown(format!("-{letter}")));
        };
        if !rule.takes_value {
            found.push((rule, None));
            continue;
        }
        let attached = &letters[at + letter.len_utf8()..];
        let value = if attached.is_empty() { rest.next().cloned() } else { Some(attached.to_owned()) };
        match value {
            Some(value) => found.push((rule, Some(value))),
            None => return Err(Fault::LacksValue(format!("-{letter}"))),
        }
        break;
    }
    Ok(found)
}

/// The parts of a text between commas; `\,` is a comma in a part.
pub fn split_commas(text: &str) -> Vec<String> {
    // No argument of a program has a NUL.
    text.replace("\\,", "\0").split(',').map(|part| part.replace('\0', ",")).collect()
}

/// A whole number as `strtol` reads it with base 0: `0x40` is 64 and `010` is 8. `None` where anything else follows, or where it
/// does not fit an `int`.
pub fn integer(text: &str) -> Option<i32> {
    let (is_negative, digits) = sign(text);
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => (16, hexadecimal),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    if !digits.starts_with(|digit: char| digit.is_digit(radix)) {
        // Nothing at all is 0.
        return text.is_empty().then_some(0);
    }
    let number = i64::from_str_radix(digits, radix).ok()?;
    i32::try_from(if is_negative { -number } else { number }).ok()
}

/// A number as `strtod` reads it, to the end of the text.
pub fn number(text: &str) -> Option<f64> {
    let (_, unsigned) = sign(text);
    let is_decimal = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    text.trim_start().parse::<f64>().ok().filter(|_| is_decimal)
}

/// A whole number that is not below 0, as `strtoul` reads it with base 10, to the end of the text.
pub fn natural(text: &str) -> Option<u64> {
    let (is_negative, digits) = sign(text);
    let number: u64 =
        digits.parse().ok().filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()))?;
    (!is_negative || number == 0).then_some(number)
}

/// A number as `strtod` reads it, to the end of the text: decimal, or hexadecimal as `0x1.8p3`. Infinity is none.
pub fn real(text: &str) -> Option<f64> {
    let (is_negative, unsigned) = sign(text);
    let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => hexadecimal_number(digits).map(|number| if is_negative { -number } else { number }),
        None => number(text),
    };
    number.filter(|number| number.is_finite())
}

/// Digits with a point among them, and perhaps a power of two behind.
fn hexadecimal_number(text: &str) -> Option<f64> {
    let (digits, power) = match text.split_once(['p', 'P']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    (!digits.is_empty() && digits != ".").then(|| number * 16f64.powi(-places) * 2f64.powi(power))
}

/// The number that a text begins with, as `atof` reads it, and what is left of the text; `None` where it begins with none.
pub fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let ends = (1..=text.len()).rev().filter(|end| text.is_char_boundary(*end));
    ends.map(|end| text.split_at(end)).find_map(|(read, rest)| Some((number(read)?, rest)))
}

/// The number that a text begins with; 0 where it begins with none.
pub fn leading_number(text: &str) -> f64 {
    split_number(text).map_or(0.0, |(number, _)| number)
}

/// The whole number that a text begins with, as `atoi` reads it, and what is left of the text; `None` where it begins with none.
pub fn split_integer(text: &str) -> Option<(i64, &str)> {
    let (is_negative, unsigned) = sign(text);
    let end = unsigned.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(unsigned.len());
    let (digits, rest) = unsigned.split_at(end);
    // One that has no room ends there.
    let number = digits.parse::<i64>().unwrap_or(i64::MAX);
    (!digits.is_empty()).then_some((if is_negative { -number } else { number }, rest))
}

/// The whole number that a text begins with; 0 where it begins with none.
pub fn leading_integer(text: &str) -> i64 {
    split_integer(text).map_or(0, |(number, _)| number)
}

fn sign(text: &str) -> (bool, &str) {
    let text = text.trim_start();
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The words of a line without quotes.
    pub(crate) fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Rows of text, whose fields ` => ` separates; a field may stand on a line of its own. A new line of a field
    /// is `\n`, a blank at an end of it `\x20`, a field of nothing `''`.
    pub(crate) fn cases<const N: usize>(text: &str) -> Vec<[&'static str; N]> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let text = lines
            .collect::<Vec<_>>()
            .join("\r")
            .replace("\r=>", " =>")
            .replace(r"\n", "\n")
            .replace(r"\x20", " ");
        let field = |field| if field == "''" { "" } else { field };
        let fields = |row: &'static str| Vec::from_iter(row.split(" => ").map(field));
        text.leak().split('\r').map(|row| fields(row).try_into().expect(row)).collect()
    }

    /// The fields of a command line that differ from the usual one's.
    pub(crate) fn changed_fields(usual: &impl fmt::Debug, line: &impl fmt::Debug) -> String {
        let fields = |line: &dyn fmt::Debug| {
            let mut fields: Vec<String> = Vec::new();
            for text in format!("{line:#?}").lines() {
                let text = text.strip_prefix("    ").unwrap_or_default();
                match fields.last_mut() {
                    Some(field) if !text.starts_with(|first: char| first.is_ascii_lowercase()) => {
                        field.push_str(text.trim());
                    }
                    _ => fields.push(text.to_owned()),
                }
            }
            fields
        };
        let changed = fields(line).into_iter().zip(fields(usual)).filter(|(field, usual)| field != usual);
        let shown = changed
            .map(|(field, _)| field.replace(",)", ")").replace(",]", "]").trim_end_matches(',').to_owned());
        shown.collect::<Vec<_>>().join("; ")
    }

    impl<L: fmt::Debug> Action<L> {
        /// The command line of a run.
        pub(crate) fn run(self) -> L {
            match self {
                Self::Run(line) => *line,
                other => panic!("no run: {other:?}"),
            }
        }
    }

    options! {
        "measure_quietly": FLAG.short('q').repeated().ours();
        "verbose": FLAG.short('v').repeated();
        "server": VALUE.short('s').repeated();
        "save": VALUE.short('f');
        "measure_qps": VALUE.short('Q');
        "measure_depth": VALUE.short('D');
        "help": FLAG.short('h').ending();
    }

    fn parsed(line: &str) -> Result<ParsedOptions, Fault> {
        scan(OPTIONS, &words(line))
    }

    #[test]
    fn options_are_read_as_getopt_long_reads_them() {
        // (line, options in order, stray words)
        let table = [
            ("-s a -sb --server=c --server d", "server=a server=b server=c server=d", ""),
            ("--serv a --measure_q=3 --measure_qu", "server=a measure_qps=3 measure_quietly", ""),
            ("x -vv y -vsz", "verbose verbose verbose server=z", "x y"),
            ("-v -- -s --bogus", "verbose", "-s --bogus"),
            ("-Q -5 - --save=", "measure_qps=-5 save=", "-"),
            ("-v -h --bogus", "verbose help", ""),
        ];
        for (line, options, strays) in table {
            let parsed = parsed(line).unwrap();
            let shown: Vec<String> = parsed
                .given
                .iter()
                .map(|given| match &given.value {
                    Some(value) => format!("{}={value}", given.long),
                    None => given.long.to_owned(),
                })
                .collect();
            assert_eq!(
                (shown.join(" "), parsed.strays.join(" ")),
                (options.to_owned(), strays.to_owned()),
                "{line}"
            );
        }
    }

    #[test]
    fn faults_name_the_option() {
        let table = [
            ("--bogus", "'--bogus' is no option; --help lists them"),
            ("-vx", "'-x' is no option; --help lists them"),
            ("--meas 1", "'--meas' may be any of --measure_qps --measure_depth"),
            ("-Q 1 -Q 2", "--measure_qps was given twice"),
            ("-s", "-s needs a value"),
            ("--sa", "--save needs a value"),
            ("--verbose=1", "invalid value '1' for --verbose: it takes no value"),
        ];
        for (line, fault) in table {
            assert_eq!(parsed(line).unwrap_err().to_string(), fault, "{line}");
        }
    }

    #[test]
    fn options_before_an_error_are_kept() {
        let words = ["-Q", "1", "-vx", "-D", "2"].map(str::to_owned);
        let (parsed, fault) = scan_to_fault(OPTIONS, &words);
        assert_eq!(parsed.given, [ParsedOption { long: "measure_qps", value: Some("1".to_owned()) }]);
        assert_eq!(fault, Some(Fault::Unknown("-x".to_owned())));
    }

    #[test]
    fn the_help_of_every_tool_has_all_its_options() {
        for (name, text) in [
            ("mutilate", crate::mutilate::command_line::help()),
            ("memaslap", crate::memaslap::command_line::help()),
            ("mcperf", crate::mcperf::command_line::help()),
            ("rpc-perf", crate::rpc_perf::command_line::help("rpc-perf")),
        ] {
            let tool = crate::tools::find(name).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for Rule { long, value, about, takes_value, .. } in tool.names.options {
                let option = format!("--{long} {value}");
                let at = lines.iter().position(|line| line.contains(option.trim_end()));
                let at = at.unwrap_or_else(|| panic!("{name}: {long}: {text}"));
                assert!(lines[at].ends_with(about) || lines[at + 1].trim_start() == *about, "{name} {long}");
                assert!(!about.is_empty() && *takes_value != value.is_empty(), "{name} {long}");
            }
            assert!(lines.iter().all(|line| line.len() <= 120), "{text}");
        }
    }

    #[test]
    fn near_names_are_suggested() {
        let names = ["server", "service", "rate", "request-timeout", "style", "seed", "size"];
        for (given, expected) in [
            ("-server", Some("server")),
            ("sever", Some("server")),
            ("ratee", Some("rate")),
            ("request_timeot", Some("request-timeout")),
            ("Styel", Some("style")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(given, names), expected, "{given}");
        }
    }

    #[test]
    fn lists_are_split_at_commas() {
        assert_eq!(split_commas(r"a,b,c\,d,"), ["a", "b", "c,d", ""]);
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        let table = [
            ("0x40", Some(64)),
            ("010", Some(8)),
            ("08", None),
            ("-3", Some(-3)),
            (" +7", Some(7)),
            ("0", Some(0)),
            ("10k", None),
            ("1.5", None),
            ("2147483648", None),
            ("--1", None),
            ("0x", None),
            ("", Some(0)),
        ];
        for (text, expected) in table {
            assert_eq!(integer(text), expected, "{text:?}");
        }
        assert_eq!([number("0.25"), number(".5"), number("1e3")], [Some(0.25), Some(0.5), Some(1e3)]);
        assert_eq!([number("half"), number("1x"), number("inf"), number("")], [None; 4]);
        let naturals = ["12", " +7", "-0", "-1", "1x", "", "+", "0x10", "99999999999999999999"];
        let expected = [Some(12), Some(7), Some(0), None, None, None, None, None, None];
        assert_eq!(naturals.map(natural), expected);
        let reals =
            ["0.25", " 1e3", "0x10", "-0x1.8p1", "0X.8", "0x", "0x.", "0xg", "inf", "nan", "1e999", "1x"];
        let expected = [Some(0.25), Some(1e3), Some(16.0), Some(-3.0), Some(0.5)];
        assert_eq!(reals.map(real)[..5], expected);
        assert_eq!(reals.map(real)[5..], [None; 7]);
        assert_eq!(
            ["200", "1e3", "100abc", "-5", "abc"].map(split_number),
            [Some((200.0, "")), Some((1e3, "")), Some((100.0, "abc")), Some((-5.0, "")), None]
        );
        assert_eq!(
            ["12", "-7x", "x", "99.9", "-"].map(split_integer),
            [Some((12, "")), Some((-7, "x")), None, Some((99, ".9")), None]
        );
    }
}
