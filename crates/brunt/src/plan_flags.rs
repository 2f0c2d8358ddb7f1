//! Flags of plan options: rows of [`OPTIONS`] as arguments of the command line, and what is given as a specification.
//!
//! Invariant: a flag accepts what a plan file accepts for its key; the parser stores its text, which has been checked.

use crate::input::check_or_read;
use brunt_plan::spec::{OPTIONS, PlanSpec};
use brunt_plan::spec::{OptionForm, PlanOption};
use brunt_plan::sweep::Sweep;
use brunt_plan::units::Count;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use std::ffi::OsStr;
use toml::{Table, Value};

/// The plan options that commands have: those of `brunt run`; those of `brunt compare`; those of `brunt load`: servers, data, and what storing
/// depends on beside them; those of `brunt calibrate`.
pub(crate) const EVERY_OPTION: u8 = 0;
pub(crate) const WITHOUT_AGENTS: u8 = 1;
pub(crate) const OF_LOAD: u8 = 2;
pub(crate) const OF_CALIBRATION: u8 = 3;

fn includes(selection: u8, option: &PlanOption) -> bool {
    match selection {
        EVERY_OPTION => true,
        WITHOUT_AGENTS => option.heading != "Agents",
        OF_LOAD => matches!(option.heading, "Target" | "Data set") || matches!(option.field, "mix" | "ttl"),
        _ => ["threads", "cpus", "connections", "depth", "wait", "io", "value_size"].contains(&option.field),
    }
}

/// The plan options of a command, as given.
#[derive(Clone, Debug)]
pub(crate) struct PlanFlags<const SELECTION: u8> {
    /// Of the run, and of its only class.
    pub spec: PlanSpec,
}

fn selected(selection: u8) -> impl Iterator<Item = &'static PlanOption> {
    OPTIONS.iter().filter(move |option| includes(selection, option))
}

impl<const SELECTION: u8> Args for PlanFlags<SELECTION> {
    fn augment_args(command: Command) -> Command {
        command.args(selected(SELECTION).map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SELECTION: u8> FromArgMatches for PlanFlags<SELECTION> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = selected(SELECTION).filter_map(|option| Some((option.key(), value(option, matches)?)));
        let spec = Table::from_iter(given).try_into::<PlanSpec>();
        let spec = spec.map_err(|error| Error::raw(ErrorKind::ValueValidation, error))?;
        Ok(Self { spec })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of an option.
fn argument(option: &'static PlanOption) -> Arg {
    let argument = Arg::new(option.key())
        .long(option.flag())
        .short(option.short)
        .help(option.help)
        .help_heading(option.heading);
    let action = match option.form {
        OptionForm::Switch(_) => return argument.action(ArgAction::SetTrue),
        OptionForm::Text => ArgAction::Set,
        OptionForm::List => ArgAction::Append,
    };
    let argument = argument
        .action(action)
        .value_name(option.value_name)
        .value_parser(WordParser(option.words, |text: &str| checked(option, text)))
        .hide_possible_values(true)
        .allow_hyphen_values(option.allows_hyphen)
        .conflicts_with_all(option.excludes);
    match option.alone {
        None => argument,
        Some(value) => argument.num_args(0..=1).require_equals(true).default_missing_value(value),
    }
}

/// The text of a value. Several values of what a run has one of are for a scan.
fn checked(option: &PlanOption, text: &str) -> Result<String, String> {
    let is_several = text.contains(',') || text.contains("..");
    check_or_read(option, text).map_err(|error| match option.field {
        "rate" | "connections" | "depth" if is_several => {
            format!("{error}; for several: brunt scan --over {}", sweep(text, option.field))
        }
        _ => error,
    })
}

/// What a scan takes for several values of an option: a range needs a step, and here has that of five settings.
fn sweep(text: &str, option: &str) -> String {
    let typed = format!("{option}={text}");
    let with_step = || {
        let (first, last) = text.split_once("..")?;
        let [first, last] = [first, last].map(|end| end.parse::<Count>().ok().map(|count| count.0));
        let step = last?.checked_sub(first?)? / 4;
        Some(format!("{typed}:{step}")).filter(|sweep| sweep.parse::<Sweep>().is_ok())
    };
    match typed.parse::<Sweep>() {
        Ok(_) => typed,
        Err(_) => with_step().unwrap_or_else(|| format!("{option}=10,20,40")),
    }
}

/// What the command line gives an option.
fn value(option: &PlanOption, matches: &ArgMatches) -> Option<Value> {
    let key = option.key();
    match option.form {
        OptionForm::Switch(value) => matches.get_flag(&key).then_some(Value::Boolean(value)),
        OptionForm::Text => matches.get_one(&key).cloned().map(Value::String),
        OptionForm::List => {
            let texts = matches.get_many(&key)?;
            Some(Value::Array(texts.cloned().map(Value::String).collect()))
        }
    }
}

/// Words, and the parser that reads them; without words only the parser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordParser<P>(pub &'static [&'static str], pub P);

impl<P: TypedValueParser> TypedValueParser for WordParser<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        self.1.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.0.iter().map(|word| PossibleValue::new(*word));
        (!self.0.is_empty()).then(|| Box::new(words) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan file of these words, or the error's first line.
    fn plan_of(words: &[&str]) -> String {
        let command = PlanFlags::<EVERY_OPTION>::augment_args(Command::new("brunt").no_binary_name(true));
        let flags = command
            .try_get_matches_from(words)
            .and_then(|matches| PlanFlags::<EVERY_OPTION>::from_arg_matches(&matches));
        match flags {
            Ok(flags) => flags.spec.to_toml(),
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn flags_are_plan_keys() {
        let table: [(&[&str], &str); 10] = [
            (&[], ""),
            (&["-s", "a:1", "--server=b", "-r", "5k"], "server = [\"a:1\", \"b\"]\nrate = \"5000/s\"\n"),
            (
                &["--no-preload", "--cluster", "--verify"],
                "cluster = true\npreload = false\nverify = \"100%\"\n",
            ),
            (&["--verify=10%", "--prefix", "12"], "verify = \"10%\"\nprefix = \"12\"\n"),
            (&["--label", "a=1", "--label", "b="], "label = [\"a=1\", \"b=\"]\n"),
            (
                &["--label", "a"],
                "error: invalid value 'a' for '--label <KEY=VALUE>': expected KEY=VALUE, of which KEY has letters, digits, '_', '-' and '.', and VALUE no control characters, 200 characters at most",
            ),
            (
                &["--ttl", "-1s"],
                "error: invalid value '-1s' for '--ttl <DURATION>': expected a duration with its unit, such as 10s, 500us, 1.5ms, 2m",
            ),
            (
                &["-d", "1,2"],
                "error: invalid value '1,2' for '--depth <N>': expected a whole number, such as 1000, 100k, 2M; for several: brunt scan --over depth=1,2",
            ),
            (
                &["--rate", "5", "--rate-profile", "0s=1"],
                "error: the argument '--rate <RATE>' cannot be used with '--rate-profile <POINTS>'",
            ),
            (
                &["--cluster=yes"],
                "error: unexpected value 'yes' for '--cluster' found; no more were expected",
            ),
        ];
        for (words, expected) in table {
            assert_eq!(plan_of(words), expected, "{words:?}");
        }
    }

    /// `load`: those of the target, those of the data set, and two.
    #[test]
    fn a_command_has_its_selection_of_the_options() {
        let of_load = PlanFlags::<OF_LOAD>::augment_args(Command::new("brunt"));
        let has = |flag: &str| of_load.get_arguments().any(|argument| argument.get_id().as_str() == flag);
        assert!(["server", "threads", "keys", "value-size", "mix", "ttl"].into_iter().all(has));
        assert!(!["rate", "depth", "time", "until", "agent", "seed"].into_iter().any(has));
        let of_calibration = PlanFlags::<OF_CALIBRATION>::augment_args(Command::new("brunt"));
        assert_eq!(of_calibration.get_arguments().count(), 7);
    }
}
