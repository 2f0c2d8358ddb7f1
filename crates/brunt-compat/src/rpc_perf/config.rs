//! rpc-perf's configuration file: TOML with a table of general options and the workloads.
//!
//! Not what it comes to: that is [`super::invocation`]. Keys are written with hyphens or with underscores. Invariant: a key that is not known,
//! is given twice or has a value of another type is refused with its line and column, and nothing is left out in silence.

use crate::spelling::closest;
use serde::{Deserialize, Deserializer};
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    /// Options that the command line has, too.
    pub general: General,
    /// What is sent.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// What version 2.1.0 sends in the warm-up; refused.
    pub warmup: Vec<Workload>,
}

/// Options of file and command line, with rpc-perf's defaults.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[allow(missing_docs, reason = "the fields are the keys and options of the same names")]
pub struct General {
    pub server: ServerNames,
    pub protocol: String,
    pub threads: NonZeroU32,
    /// Connections of each thread to each server.
    pub connections: NonZeroU32,
    /// Seconds.
    pub duration: NonZeroU32,
    pub windows: NonZeroU32,
    /// Milliseconds.
    #[serde(alias = "request_timeout")]
    pub request_timeout: Option<NonZeroU32>,
    /// Milliseconds.
    #[serde(alias = "connect_timeout")]
    pub connect_timeout: Option<NonZeroU32>,
    #[serde(alias = "tcp_nodelay")]
    pub tcp_nodelay: bool,
    pub ipv4: bool,
    pub ipv6: bool,
    #[serde(alias = "rx_buffer_size")]
    pub rx_buffer_size: NonZeroU32,
    #[serde(alias = "tx_buffer_size")]
    pub tx_buffer_size: NonZeroU32,
    pub database: u32,
    pub listen: Option<String>,
    pub flush: bool,
    pub service: bool,
    pub trace: Option<String>,
    pub waterfall: Option<String>,
    pub verbose: u32,
    #[serde(alias = "log_format")]
    pub log_format: LogFormat,
    pub seed: Option<u64>,
    pub quiet: bool,
    #[serde(alias = "legacy_exit")]
    pub legacy_exit: bool,
}

impl Default for General {
    fn default() -> Self {
        let number = |number| NonZeroU32::new(number).expect("no default is 0");
        Self {
            server: ServerNames::default(),
            protocol: "memcache".to_owned(),
            threads: number(1),
            connections: number(1),
            duration: number(60),
            windows: number(5),
            request_timeout: None,
            connect_timeout: None,
            tcp_nodelay: false,
            ipv4: true,
            ipv6: true,
            rx_buffer_size: number(4096),
            tx_buffer_size: number(4096),
            database: 0,
            listen: None,
            flush: false,
            service: false,
            trace: None,
            waterfall: None,
            verbose: 0,
            log_format: LogFormat::default(),
            seed: None,
            quiet: false,
            legacy_exit: false,
        }
    }
}

/// Servers as a user names them; a file may have one without a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames(pub Vec<String>);

impl<'de> Deserialize<'de> for ServerNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a server or a list of them, such as \"127.0.0.1:11211\"")]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        Ok(Self(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(name) => vec![name],
            OneOrMany::Many(names) => names,
        }))
    }
}

/// How lines of the log are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// As version 2.1.0 of 2017 has them.
    #[default]
    Of2017,
    /// As version 1.0 of 2016 has them, which the README shows.
    Of2016,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "2017" => Ok(Self::Of2017),
            "2016" => Ok(Self::Of2016),
            _ => Err("2017 or 2016".to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for LogFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected 2017 or 2016")]
        enum TextOrNumber {
            Text(String),
            Number(u32),
        }
        let text = match TextOrNumber::deserialize(deserializer)? {
            TextOrNumber::Text(text) => text,
            TextOrNumber::Number(number) => number.to_string(),
        };
        text.parse().map_err(|accepted: String| serde::de::Error::custom(format!("expected {accepted}")))
    }
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
        toml::from_str(text).map_err(|error| {
            let begin = error.span().map_or(0, |span| text.floor_char_boundary(span.start));
            let before = &text[..begin];
            let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
            let (line, column) = (before.matches('\n').count() + 1, before[line_begin..].chars().count() + 1);
            format!("--config: '{path}', line {line}, column {column}: {}", explain(error.message()))
        })
    }
}

/// What is wrong, in our words where a key is not known.
fn explain(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.trim_end().to_owned() };
    let mut names = rest.split('`').step_by(2);
    let given = names.next().unwrap_or_default();
    // Of the two spellings of a key the one with hyphens is shown.
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).filter(|name| !name.contains('_')).collect();
    let meant = closest(given, known.iter().copied());
    let meant = meant.map_or(";".to_owned(), |name| format!("; did you mean '{name}'?"));
    format!("'{given}' is no key{meant} expected {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::command_line::OPTIONS;
    use super::*;

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
        let general = General {
            server: ServerNames(vec!["a:1".to_owned()]),
            request_timeout: NonZeroU32::new(200),
            connect_timeout: NonZeroU32::new(500),
            log_format: LogFormat::Of2016,
            ..General::default()
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
        let many = Config::parse("f", "general.server = ['a', 'b']").unwrap().general.server;
        assert_eq!(many, ServerNames(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn errors_have_line_and_column() {
        let table = [
            (
                "[[workload]]\nratee = 5",
                "line 2, column 1: 'ratee' is no key; did you mean 'rate'? expected name, method, rate, parameter",
            ),
            ("[general]\n colour = 5", "line 2, column 2: 'colour' is no key; expected server, protocol, "),
            (
                "[generel]",
                "line 1, column 2: 'generel' is no key; did you mean 'general'? expected general, workload, warmup",
            ),
            (
                "[[workload]]\n[[workload.parameter]]\nsede = 1",
                "line 3, column 1: 'sede' is no key; did you mean 'seed'? expected style, size, seed, ",
            ),
            (
                "[general]\nthreads = 'many'",
                "line 2, column 11: invalid type: string \"many\", expected a nonzero u32",
            ),
            (
                "[general]\nthreads = 0",
                "line 2, column 11: invalid value: integer `0`, expected a nonzero u32",
            ),
            ("[[workload]]\nrate = -1", "line 2, column 8: invalid value: integer `-1`, expected u64"),
            (
                "[general]\nrx-buffer-size = 1\nrx_buffer_size = 1",
                "line 1, column 1: duplicate field `rx-buffer-size`",
            ),
            (
                "[[workload]]\n[[workload.parameter]]\nstyle = 'zipf'",
                "line 3, column 9: unknown variant `zipf`, expected `static` or `random`",
            ),
            ("workload = 1", "line 1, column 12: invalid type: integer `1`, expected a sequence"),
            ("a = ", "line 1, column 5: "),
            ("[general]\nlog-format = 2018", "line 2, column 14: expected 2017 or 2016"),
        ];
        for (text, message) in table {
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
