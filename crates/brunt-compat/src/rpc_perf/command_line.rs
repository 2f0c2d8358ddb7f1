//! rpc-perf's options, as a user types them, in the shape that the configuration file has, too.
//!
//! Not what it comes to: that is [`super::invocation`], which reads the file. The rules are those of Rust's getopts: a value behind an
//! equals sign or as the next word, an option at most once, other words anywhere. Invariant: whatever is refused is named with what was
//! given and what is accepted.

use super::config::{General, LogFormat, ServerNames};
use crate::options::{Action, Fault, ParsedOption, ParsedOptions, Rule, scan};
use crate::spelling::closest;
use brunt_plan::plan::IpVersion;
use std::num::NonZeroU32;
use std::str::FromStr;

const fn flag(long: &'static str) -> Rule {
    Rule { long, short: None, takes_value: false, repeats: false, ends: false, is_ours: false }
}

const fn value(long: &'static str) -> Rule {
    Rule { takes_value: true, ..flag(long) }
}

const fn short(letter: char, rule: Rule) -> Rule {
    Rule { short: Some(letter), ..rule }
}

const fn ours(rule: Rule) -> Rule {
    Rule { is_ours: true, ..rule }
}

/// Every option, in the order of rpc-perf's help; ours follow.
pub const OPTIONS: [Rule; 27] = [
    Rule { repeats: true, ..short('s', value("server")) },
    short('t', value("threads")),
    short('c', value("connections")),
    short('d', value("duration")),
    short('w', value("windows")),
    value("request-timeout"),
    value("connect-timeout"),
    short('p', value("protocol")),
    value("config"),
    value("listen"),
    value("trace"),
    value("waterfall"),
    flag("tcp-nodelay"),
    flag("flush"),
    flag("ipv4"),
    flag("ipv6"),
    flag("service"),
    Rule { ends: true, ..flag("version") },
    Rule { repeats: true, ..short('v', flag("verbose")) },
    Rule { ends: true, ..short('h', flag("help")) },
    ours(value("rx-buffer-size")),
    ours(value("tx-buffer-size")),
    ours(value("database")),
    ours(value("log-format")),
    ours(value("seed")),
    ours(flag("quiet")),
    ours(flag("legacy-exit")),
];

/// A command line that asks for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The file.
    pub config: Option<String>,
    /// Options that the file has, too.
    pub general: General,
    /// The one version of addresses to use, if any.
    pub ip_version: Option<IpVersion>,
    /// Warnings for the user, each without its prefix.
    pub warnings: Vec<String>,
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[String]) -> Result<Action<CommandLine>, String> {
    check_dashes(arguments)?;
    let parsed = scan(&OPTIONS, arguments).map_err(explain)?;
    if parsed.has("help") {
        return Ok(Action::Help);
    }
    if parsed.has("version") {
        return Ok(Action::Version);
    }
    let mut line = CommandLine::default();
    for ParsedOption { long, value } in &parsed.given {
        line.set(long, value.as_deref().unwrap_or_default())?;
    }
    line.settle(&parsed)?;
    let stray = |stray: &String| format!("'{stray}' belongs to no option and has no effect");
    line.warnings = parsed.strays.iter().map(stray).collect();
    Ok(Action::Run(Box::new(line)))
}

/// Refuses long options behind one dash or three, which would be read as short options or not at all.
fn check_dashes(arguments: &[String]) -> Result<(), String> {
    for argument in arguments.iter().take_while(|argument| *argument != "--") {
        let name = argument.trim_start_matches('-');
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        let dashes = argument.len() - argument.trim_start_matches('-').len();
        if matches!(dashes, 1 | 3..) && name.len() > 1 && OPTIONS.iter().any(|rule| rule.long == name) {
            return Err(format!("'{}{name}' is no option; did you mean --{name}?", "-".repeat(dashes)));
        }
    }
    Ok(())
}

fn explain(fault: Fault) -> String {
    let near = match &fault {
        Fault::Unknown(option) => closest(option, OPTIONS.iter().map(|rule| rule.long)),
        _ => None,
    };
    near.map_or_else(|| fault.to_string(), |near| format!("{fault}; did you mean --{near}?"))
}

impl CommandLine {
    fn set(&mut self, long: &'static str, text: &str) -> Result<(), String> {
        let general = &mut self.general;
        match long {
            "server" => general.server.get_or_insert_with(ServerNames::default).0.push(text.to_owned()),
            "threads" => general.threads = Some(above_zero(long, text)?),
            "connections" => general.connections = Some(above_zero(long, text)?),
            "duration" => general.duration = Some(above_zero(long, text)?),
            "windows" => general.windows = Some(above_zero(long, text)?),
            "request-timeout" => general.request_timeout = Some(above_zero(long, text)?),
            "connect-timeout" => general.connect_timeout = Some(above_zero(long, text)?),
            "protocol" => general.protocol = Some(text.to_owned()),
            "config" => self.config = Some(text.to_owned()),
            "listen" => general.listen = Some(text.to_owned()),
            "trace" => general.trace = Some(text.to_owned()),
            "waterfall" => general.waterfall = Some(text.to_owned()),
            "tcp-nodelay" => general.tcp_nodelay = Some(true),
            "flush" => general.flush = Some(true),
            "service" => general.service = Some(true),
            "rx-buffer-size" => general.rx_buffer_size = Some(above_zero(long, text)?),
            "tx-buffer-size" => general.tx_buffer_size = Some(above_zero(long, text)?),
            "database" => general.database = Some(number(long, text, "a whole number from 0")?),
            "log-format" => {
                let format = LogFormat::from_str(text).map_err(|accepted| unfit(long, text, &accepted))?;
                general.log_format = Some(format);
            }
            "seed" => general.seed = Some(number(long, text, "a whole number of at most 64 bits")?),
            "quiet" => general.quiet = Some(true),
            "legacy-exit" => general.legacy_exit = Some(true),
            // These are read in `settle`.
            "verbose" | "ipv4" | "ipv6" => {}
            long => unreachable!("--{long} stands in the table and is not read"),
        }
        Ok(())
    }

    /// Reads options that may be repeated or exclude each other.
    fn settle(&mut self, parsed: &ParsedOptions) -> Result<(), String> {
        let verbose = u32::try_from(parsed.count("verbose")).unwrap_or(u32::MAX);
        self.general.verbose = (verbose > 0).then_some(verbose);
        self.ip_version = match (parsed.has("ipv4"), parsed.has("ipv6")) {
            (true, true) => return Err("Use only --ipv4 or --ipv6".to_owned()),
            (true, false) => Some(IpVersion::V4),
            (false, true) => Some(IpVersion::V6),
            (false, false) => None,
        };
        Ok(())
    }
}

/// The message for a value that an option does not accept.
pub(super) fn unfit(long: &str, text: &str, accepted: &str) -> String {
    format!("invalid value '{text}' for --{long}: expected {accepted}")
}

fn number<T: FromStr>(long: &str, text: &str, accepted: &str) -> Result<T, String> {
    text.parse().map_err(|_| unfit(long, text, accepted))
}

fn above_zero(long: &str, text: &str) -> Result<NonZeroU32, String> {
    number(long, text, "a whole number greater than 0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::words;

    fn parsed(line: &str) -> Result<Action<CommandLine>, String> {
        parse(&words(line))
    }

    fn run(line: &str) -> CommandLine {
        parsed(line).unwrap().run()
    }

    fn general(line: &str) -> General {
        run(line).general
    }

    #[test]
    fn command_lines_are_parsed() {
        let some = NonZeroU32::new;
        let servers =
            |names: &[&str]| Some(ServerNames(names.iter().map(|name| (*name).to_owned()).collect()));
        let table = [
            ("", General::default()),
            ("-s a:1 --server=b", General { server: servers(&["a:1", "b"]), ..General::default() }),
            ("-t2 -c 3", General { threads: some(2), connections: some(3), ..General::default() }),
            ("-d 1 -w=2", General::default()),
            (
                "--duration=1 --windows 2",
                General { duration: some(1), windows: some(2), ..General::default() },
            ),
            (
                "--request-timeout 200 --connect-timeout=500",
                General { request_timeout: some(200), connect_timeout: some(500), ..General::default() },
            ),
            (
                "--tcp-nodelay --flush --service",
                General {
                    tcp_nodelay: Some(true),
                    flush: Some(true),
                    service: Some(true),
                    ..General::default()
                },
            ),
            ("-vv --verbose", General { verbose: Some(3), ..General::default() }),
            (
                "--trace t --waterfall w --listen :1 -p redis",
                General {
                    trace: Some("t".to_owned()),
                    waterfall: Some("w".to_owned()),
                    listen: Some(":1".to_owned()),
                    protocol: Some("redis".to_owned()),
                    ..General::default()
                },
            ),
            (
                "--rx-buffer-size 1 --tx-buffer-size 2 --database 3",
                General {
                    rx_buffer_size: some(1),
                    tx_buffer_size: some(2),
                    database: Some(3),
                    ..General::default()
                },
            ),
            (
                "--log-format 2016 --seed 7 --quiet --legacy-exit",
                General {
                    log_format: Some(LogFormat::Of2016),
                    seed: Some(7),
                    quiet: Some(true),
                    legacy_exit: Some(true),
                    ..General::default()
                },
            ),
        ];
        for (line, expected) in table {
            // A short option takes no equals sign before its value.
            match line.contains("-w=2") {
                true => assert!(parsed(line).is_err()),
                false => assert_eq!(general(line), expected, "{line}"),
            }
        }
        assert_eq!(run("--ipv4").ip_version, Some(IpVersion::V4));
        assert_eq!(run("--ipv6 --config f").config.as_deref(), Some("f"));
        assert_eq!(
            run("a --quiet -- b").warnings,
            ["a", "b"].map(|word| format!("'{word}' belongs to no option and has no effect"))
        );
    }

    #[test]
    fn invalid_options_are_rejected() {
        let table = [
            ("--bogus", "'--bogus' is no option; --help lists them"),
            ("--treads 1", "'--treads' is no option; --help lists them; did you mean --threads?"),
            ("---config f", "'---config' is no option; did you mean --config?"),
            ("-server h", "'-server' is no option; did you mean --server?"),
            ("-threads=2", "'-threads' is no option; did you mean --threads?"),
            ("-t 1 -t 2", "--threads was given twice"),
            ("--flush --flush", "--flush was given twice"),
            ("--config", "--config needs a value"),
            ("--flush=yes", "invalid value 'yes' for --flush: it takes no value"),
            ("--threads many", "invalid value 'many' for --threads: expected a whole number greater than 0"),
            ("-c 0", "invalid value '0' for --connections: expected a whole number greater than 0"),
            ("-d 1.5", "invalid value '1.5' for --duration: expected a whole number greater than 0"),
            ("--database x", "invalid value 'x' for --database: expected a whole number from 0"),
            ("--seed -1", "invalid value '-1' for --seed: expected a whole number of at most 64 bits"),
            ("--log-format 2018", "invalid value '2018' for --log-format: expected 2017 or 2016"),
            ("--ipv4 --ipv6", "Use only --ipv4 or --ipv6"),
        ];
        for (line, message) in table {
            assert_eq!(parsed(line), Err(message.to_owned()), "{line}");
        }
    }

    #[test]
    fn help_and_version_are_recognized() {
        assert_eq!([parsed("-h --bogus"), parsed("--version x")], [Ok(Action::Help), Ok(Action::Version)]);
    }
}
