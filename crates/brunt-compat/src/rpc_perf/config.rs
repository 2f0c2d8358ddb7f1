//! rpc-perf's configuration file: TOML with a table of general options and the workloads.
//!
//! Not what it comes to: that is [`super::invocation`]. Keys are written with hyphens or with underscores. Invariant: a key that is not known,
//! is given twice or has a value that its option does not accept is refused with its line and column, and nothing is left out in silence.

use super::command_line::{CommandLine, OPTIONS};
use crate::options::{closest, invalid_value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use toml::{Spanned, Value};

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    #[serde(rename = "general")]
    given: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// What is sent.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// Options that the command line has, too.
    #[serde(skip)]
    pub general: CommandLine,
}

/// A kind of request, at a rate of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Workload {
    /// Not used: for the reader of the file.
    pub name: Option<String>,
    /// The command.
    pub method: Option<String>,
    /// Requests per second; 0: as many as there can be.
    pub rate: u64,
    /// The parameters of the request, in order.
    #[serde(rename = "parameter")]
    pub parameters: Vec<Parameter>,
}

/// A parameter of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Parameter {
    /// How its value is made.
    pub style: Style,
    /// Bytes; 1 where it is not given.
    pub size: Option<u32>,
    /// The number that a static one shows; without, its place among the parameters, from 0.
    pub seed: Option<u64>,
    /// It is drawn for each request.
    pub regenerate: bool,
    /// It is a random number below this one.
    pub num: Option<NonZeroU64>,
    /// With Thrift: the number of the field.
    pub id: Option<i16>,
    /// With Thrift: the type of the field.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// With Thrift: the type of the elements.
    pub contains: Option<String>,
}

/// How the value of a parameter is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// The digits of `seed`.
    #[default]
    Static,
    /// Random characters, or with `num` a random number.
    Random,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let fault = |begin: usize, what: &str| {
            let before = &text[..text.floor_char_boundary(begin)];
            let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
            let (line, column) = (before.matches('\n').count() + 1, before[line_begin..].chars().count() + 1);
            format!("--config: '{path}', line {line}, column {column}: {what}")
        };
        let mut config: Self = toml::from_str(text)
            .map_err(|error| fault(error.span().map_or(0, |span| span.start), &explain(error.message())))?;
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in &config.given {
            let long = key.get_ref().replace('_', "-");
            let known = || OPTIONS.iter().filter(|rule| !["config", "version", "help"].contains(&rule.long));
            let at_key = |what: &str| fault(key.span().start, what);
            let rule = known().find(|rule| rule.long == long).ok_or_else(|| {
                at_key(&unknown_key(key.get_ref(), &known().map(|rule| rule.long).collect::<Vec<_>>()))
            })?;
            if seen.contains(&rule.long) {
                return Err(at_key(&format!("'{long}' was given twice")));
            }
            seen.push(rule.long);
            let values = match value.get_ref() {
                Value::Array(values) if rule.repeats && rule.takes_value => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            for value_in in values {
                let text = value_in.as_str().map_or_else(|| value_in.to_string(), str::to_owned);
                if text.is_empty() {
                    return Err(fault(
                        value.span().start,
                        &invalid_value(&long, "", "a value that is not empty"),
                    ));
                }
                config.general.set(&long, &text).map_err(|what| fault(value.span().start, &what))?;
            }
        }
        Ok(config)
    }
}

/// What is wrong, in our words where a key is not known.
fn explain(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.trim_end().to_owned() };
    let names: Vec<&str> = rest.split('`').step_by(2).collect();
    unknown_key(names[0], &names[1..])
}

fn unknown_key(given: &str, known: &[&str]) -> String {
    let meant = closest(given, known.iter().copied());
    let meant = meant.map_or(";".to_owned(), |name| format!("; did you mean '{name}'?"));
    format!("'{given}' is no key{meant} expected {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::command_line::LogFormat;
    use super::*;
    use crate::options::tests::cases;

    #[test]
    fn config_files_are_parsed() {
        let text = "
[general]
server = 'a:1'
request-timeout = 200
connect_timeout = 500
log_format = 2016
[[workload]]
method = 'get'
rate = 5
  [[workload.parameter]]
  style = 'random'
  size = 3
  regenerate = true
[[workload]]
parameter = []
";
        let config = Config::parse("f", text).unwrap();
        let general = CommandLine {
            servers: vec!["a:1".to_owned()],
            request_timeout_ms: Some(200),
            connect_timeout_ms: Some(500),
            log_format: LogFormat::Of2016,
            ..CommandLine::default()
        };
        assert_eq!(config.general, general);
        let parameter =
            Parameter { style: Style::Random, size: Some(3), regenerate: true, ..Parameter::default() };
        let workload = Workload {
            method: Some("get".to_owned()),
            rate: 5,
            parameters: vec![parameter],
            ..Workload::default()
        };
        assert_eq!(config.workloads, [workload, Workload::default()]);
        let many = Config::parse("f", "general.server = ['a', 'b']").unwrap().general.servers;
        assert_eq!(many, ["a", "b"]);
    }

    #[test]
    fn errors_have_line_and_column() {
        let table = cases(
            r"
            [[workload]]\nratee = 5
                => line 2, column 1: 'ratee' is no key; did you mean 'rate'? expected name, method, rate, parameter
            [general]\n colour = 5 => line 2, column 2: 'colour' is no key; expected server, threads,\x20
            [generel] => line 1, column 2: 'generel' is no key; did you mean 'general'? expected general, workload
            [[workload]]\n[[workload.parameter]]\nsede = 1
                => line 3, column 1: 'sede' is no key; did you mean 'seed'? expected style, size, seed,\x20
            [general]\nthreads = 'many'
                => line 2, column 11: invalid value 'many' for --threads: expected a whole number greater than 0
            [general]\nthreads = 0 => line 2, column 11: invalid value '0' for --threads: expected a whole number greater than 0
            [[workload]]\nrate = -1 => line 2, column 8: invalid value: integer `-1`, expected u64
            [general]\nrx-buffer-size = 1\nrx_buffer_size = 1 => line 3, column 1: 'rx-buffer-size' was given twice
            [[workload]]\n[[workload.parameter]]\nstyle = 'zipf'
                => line 3, column 9: unknown variant `zipf`, expected `static` or `random`
            workload = 1 => line 1, column 12: invalid type: integer `1`, expected a sequence
            a =\x20 => line 1, column 5:\x20
            [general]\nflush = 'yes' => line 2, column 9: invalid value 'yes' for --flush: expected true or false
            [general]\nflush = '' => line 2, column 9: invalid value '' for --flush: expected a value that is not empty
            [general]\nthreads = [1, 2]
                => line 2, column 11: invalid value '[1, 2]' for --threads: expected a whole number greater than 0
            [general]\nlog-format = 2018 => line 2, column 14: invalid value '2018' for --log-format: expected 2017 or 2016
        ",
        );
        for [text, message] in table {
            let error = Config::parse("f.toml", text).unwrap_err();
            assert!(error.starts_with(&format!("--config: 'f.toml', {message}")), "{text}: {error}");
        }
    }

    /// In both spellings, whether it is rpc-perf's option or ours.
    #[test]
    fn every_option_is_a_key() {
        for rule in OPTIONS {
            if ["config", "version", "help"].contains(&rule.long) {
                continue;
            }
            let values = if rule.takes_value { ["1", "'2016'"] } else { ["true", "1"] };
            for key in [rule.long.to_owned(), rule.long.replace('-', "_")] {
                let is_key = |value: &str| Config::parse("f", &format!("general.{key} = {value}")).is_ok();
                assert!(values.iter().any(|value| is_key(value)), "{key}");
            }
        }
    }
}
