//! Flags of plan options: rows of [`OPTIONS`] as arguments of the command line, and what is given as a specification.
//!
//! Invariant: a flag accepts what a plan file accepts for its key; the parser stores its text, which has been checked.

use crate::input::check_or_read;
use crate::usage_error::is_misspelling;
use brunt_plan::preset;
use brunt_plan::spec::{ClassSpec, OPTIONS, OptionForm, PlanOption, PlanSpec, RunSpec};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use std::ffi::OsStr;
use std::fmt::Display;
use toml::{Table, Value};

/// The plan options that commands have: those of `brunt run`; those of `brunt compare`; those of `brunt load`: servers, data, and what storing
/// depends on beside them.
pub(crate) const EVERY_OPTION: u8 = 0;
pub(crate) const WITHOUT_AGENTS: u8 = 1;
pub(crate) const OF_LOAD: u8 = 2;

/// Options of data and engine that matter only while a load is sent.
const NOT_OF_LOAD: [&str; 8] =
    ["popularity", "multiget", "on_miss", "noreply", "verify", "preload", "drift", "peak"];

fn includes(selection: u8, option: &PlanOption) -> bool {
    match selection {
        EVERY_OPTION => true,
        WITHOUT_AGENTS => option.heading != "Several hosts",
        _ => {
            matches!(option.heading, "Target" | "Data" | "Engine") && !NOT_OF_LOAD.contains(&option.field)
                || matches!(option.field, "connections" | "threads" | "cpus" | "timeout")
        }
    }
}

/// The plan options of a command, as given.
#[derive(Clone, Debug)]
pub(crate) struct PlanFlags<const SELECTION: u8> {
    /// Of the run, and of its only class.
    pub spec: PlanSpec,
}

/// Those that have flags.
fn selected(selection: u8) -> impl Iterator<Item = &'static PlanOption> {
    OPTIONS.iter().filter(move |option| option.has_flag && includes(selection, option))
}

/// The flag that sets any key of the plan.
const SET: &str = "set";
const SET_HELP: &str = "Set a key of the plan (repeatable), e.g. linger=1s; class.NAME.KEY of a class, e.g. class.reads.depth=4; \
    every key: brunt help keys";

/// The flag that stands for several keys.
const PRESET: &str = "preset";
const PRESET_HELP: &str =
    "Published workload, e.g. etc, usr, ycsb-a, twitter-12: sizes, operations, popularity; other options win";

impl<const SELECTION: u8> Args for PlanFlags<SELECTION> {
    fn augment_args(command: Command) -> Command {
        let command = command.args(selected(SELECTION).map(argument));
        let of_preset = Arg::new(PRESET).long(PRESET).value_name("NAME").help_heading("Data");
        let of_preset = of_preset.help(PRESET_HELP).hide_possible_values(true);
        let command = command.arg(of_preset.value_parser(WordParser(&preset::NAMES, preset::keys_of)));
        let set = Arg::new(SET).long(SET).value_name("KEY=VALUE").action(ArgAction::Append);
        command.arg(set.help(SET_HELP).help_heading("Results").value_parser(read_setting))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SELECTION: u8> FromArgMatches for PlanFlags<SELECTION> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = selected(SELECTION).filter_map(|option| Some((option.key(), value(option, matches)?)));
        let mut plan = Table::from_iter(given);
        let settings = matches.try_get_many::<Setting>(SET).ok().flatten();
        settings.into_iter().flatten().try_for_each(|setting| setting.add_to(&mut plan)).map_err(refused)?;
        if let Some(preset) = matches.get_one::<Table>(PRESET) {
            preset.iter().for_each(|(key, value)| _ = plan.entry(key).or_insert_with(|| value.clone()));
        }
        Ok(Self { spec: plan.try_into().map_err(refused)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn refused(error: impl Display) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{error}\n"))
}

/// A key of a plan with its value, which has been checked; as `--set` takes it.
#[derive(Clone, Debug)]
struct Setting {
    /// Of a class that has a name.
    class: Option<String>,
    key: String,
    value: Value,
}

/// Reads `KEY=VALUE` or `class.NAME.KEY=VALUE`.
fn read_setting(text: &str) -> Result<Setting, String> {
    let (place, text) = text.split_once('=').ok_or("expected KEY=VALUE, such as linger=1s")?;
    let of_class = place.strip_prefix("class").filter(|rest| rest.is_empty() || rest.starts_with('.'));
    let (class, key) = match of_class.map(|rest| rest.get(1..).unwrap_or_default().rsplit_once('.')) {
        // Its name says which class it is.
        Some(Some((class, key))) if key != "name" => (Some(class.to_owned()), key),
        Some(_) => {
            return Err(
                "expected class.NAME.KEY=VALUE, such as class.reads.depth=4; KEY is not name".to_owned()
            );
        }
        None => (None, place),
    };
    let setting = Setting { class, key: key.to_owned(), value: typed(key, text)? };
    let mut plan = Table::new();
    setting.add_to(&mut plan)?;
    match plan.try_into::<PlanSpec>() {
        Ok(_) => Ok(setting),
        Err(error) if error.message().starts_with("unknown field") => Err(unknown_key(key)),
        Err(error) if OPTIONS.iter().any(|option| option.key() == key) => Err(error.message().to_owned()),
        Err(error) => Err(format!("expected a value as in a plan file: {}", error.message())),
    }
}

/// The value of a key, of the type that it has in a plan file.
fn typed(key: &str, text: &str) -> Result<Value, String> {
    let option = OPTIONS.iter().find(|option| option.key() == key);
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok();
    let parsed = parsed.and_then(|mut table| table.remove("value"));
    match (option.map(|option| option.form), parsed) {
        (Some(OptionForm::Switch(_)), parsed) => {
            parsed.filter(Value::is_bool).ok_or_else(|| "expected true or false".to_owned())
        }
        (Some(OptionForm::List) | None, Some(value @ Value::Array(_))) => Ok(value),
        (Some(OptionForm::List), _) => Ok(Value::Array(vec![Value::String(text.to_owned())])),
        (Some(OptionForm::Text), Some(Value::String(text))) => Ok(Value::String(text)),
        (None, Some(value)) => Ok(value),
        (Some(OptionForm::Text), _) if let Some(option) = option => {
            check_or_read(option, text).map(Value::String)
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// What is said of a key that no plan has.
fn unknown_key(key: &str) -> String {
    let keys = keys();
    let near = keys.iter().filter(|known| is_misspelling(key, known));
    let near = near.min_by_key(|known| strsim::osa_distance(known, key));
    if near.is_some_and(|known| known == key) {
        return format!("'{key}' is a key of classes alone: expected class.NAME.{key}=VALUE");
    }
    let meant = near.map_or("a".to_owned(), |near| format!("'{near}' or another"));
    format!("unknown key '{key}': expected {meant} key of a plan; all of them: brunt help keys")
}

/// The keys of a plan and its classes.
pub(crate) fn keys() -> Vec<String> {
    let mut keys = RunSpec::names();
    keys.extend(ClassSpec::names());
    keys.sort();
    keys.dedup();
    keys
}

impl Setting {
    /// Adds it to a plan, as a file would have it.
    fn add_to(&self, plan: &mut Table) -> Result<(), String> {
        let Self { class, key, value } = self;
        let table = match class {
            None => plan,
            Some(name) => {
                let classes = plan.entry("class").or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(classes) = classes else { unreachable!("classes are made here") };
                let is_it = |held: &Value| held.get("name").and_then(Value::as_str) == Some(name);
                let index = classes.iter().position(is_it).unwrap_or_else(|| {
                    let named = Table::from_iter([("name".to_owned(), Value::String(name.clone()))]);
                    classes.push(Value::Table(named));
                    classes.len() - 1
                });
                classes[index].as_table_mut().expect("classes are tables")
            }
        };
        match table.insert(key.clone(), value.clone()) {
            None => Ok(()),
            Some(_) => {
                let list = if value.is_array() { ", with a list as ['A', 'B']" } else { "" };
                Err(format!("'{key}' is set twice: expected an option, or --set, once{list}"))
            }
        }
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
        .value_parser(WordParser(option.words, |text: &str| check_or_read(option, text)))
        .hide_possible_values(true)
        .allow_hyphen_values(option.allows_hyphen)
        .conflicts_with_all(option.excludes);
    match option.alone {
        None => argument,
        Some(value) => argument.num_args(0..=1).require_equals(true).default_missing_value(value),
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
    use crate::cases::{cases, words};

    /// The plan file of these words, or the error's first line.
    fn plan_of(words: &[String]) -> String {
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
        let table = r#"
 |
-s a:1 --server=b -r 5k | server = ["a:1", "b"]\nrate = "5000/s"\n
--no-preload --cluster --verify | cluster = true\nverify = "100%"\npreload = false\n
--verify=10% --prefix 12 | verify = "10%"\nprefix = "12"\n
--label a=1 --label b= | label = ["a=1", "b="]\n
--label a | error: invalid value 'a' for '--label <KEY=VALUE>': expected KEY=VALUE, of which KEY has letters, digits, '_', '-' and '.', and VALUE no control characters, 200 characters at most
--ttl -1s | error: invalid value '-1s' for '--ttl <DURATION>': expected a duration with its unit, such as 10s, 500us, 1.5ms, 2m
--depth 1,2 | error: invalid value '1,2' for '--depth <N>': expected a whole number, such as 1000, 100k, 2M
--rate 5 --rate-profile 0s=1 | error: the argument '--rate <RATE>' cannot be used with '--rate-profile <POINTS>'
--set linger=1s --set nodelay=false --set label=a=1 --set meter=['outstanding'] | nodelay = false\nlinger = "1s"\nlabel = ["a=1"]\nmeter = ["outstanding"]\n
--set class.a.depth=4 --set class.a.ttl='5s' | [[class]]\nname = "a"\ndepth = 4\nttl = "5s"\n
--depth 4 --set depth=5 | error: 'depth' is set twice: expected an option, or --set, once
--set meter=first-byte --set meter=oversleep | error: 'meter' is set twice: expected an option, or --set, once, with a list as ['A', 'B']
--set lingr=5s | error: invalid value 'lingr=5s' for '--set <KEY=VALUE>': unknown key 'lingr': expected 'linger' or another key of a plan; all of them: brunt help keys
--set nodelay=no | error: invalid value 'nodelay=no' for '--set <KEY=VALUE>': expected true or false
--set linger=5 | error: invalid value 'linger=5' for '--set <KEY=VALUE>': expected a duration with its unit, such as 10s, 500us, 1.5ms, 2m
--set class=5 | error: invalid value 'class=5' for '--set <KEY=VALUE>': expected class.NAME.KEY=VALUE, such as class.reads.depth=4; KEY is not name
--set class.a.name=b | error: invalid value 'class.a.name=b' for '--set <KEY=VALUE>': expected class.NAME.KEY=VALUE, such as class.reads.depth=4; KEY is not name
--set route=5 | error: invalid value 'route=5' for '--set <KEY=VALUE>': 'route' is a key of classes alone: expected class.NAME.route=VALUE
--set class.a.route=5 | error: invalid value 'class.a.route=5' for '--set <KEY=VALUE>': expected a value as in a plan file: invalid type: integer `5`, expected a sequence
--set linger | error: invalid value 'linger' for '--set <KEY=VALUE>': expected KEY=VALUE, such as linger=1s
--preset usr --keys 10k --set ttl=5s | mix = "get=998,set=2"\nkeys = 10000\nkey-size = "discrete:16=1,21=1"\nvalue-size = "fixed:2"\nttl = "5s"\n
--preset ycsb-e | error: invalid value 'ycsb-e' for '--preset <NAME>': it scans ranges of keys, which no cache server does
--preset etcc | error: invalid value 'etcc' for '--preset <NAME>': expected etc, usr, app, var, sys, ycsb-a to ycsb-d, ycsb-f, or twitter-1 to twitter-54 except 5
--cluster=yes | error: unexpected value 'yes' for '--cluster' found; no more were expected"#;
        for [line, expected] in cases(table) {
            assert_eq!(plan_of(&words(&line)), expected, "{line}");
        }
    }

    /// `load`: those of the target, those of the data set, and two.
    #[test]
    fn a_command_has_its_selection_of_the_options() {
        let of_load = PlanFlags::<OF_LOAD>::augment_args(Command::new("brunt"));
        let has = |flag: &str| of_load.get_arguments().any(|argument| argument.get_id().as_str() == flag);
        assert!(["server", "threads", "keys", "value-size", "mix", "ttl"].into_iter().all(has));
        assert!(!["rate", "depth", "time", "until", "agent", "seed"].into_iter().any(has));
    }
}
