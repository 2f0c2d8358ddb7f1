//! rpc-perf's options, as a user types them, in the shape that the configuration file has, too.
//!
//! Not what it comes to: that is [`super::invocation`], which reads the file. The rules are those of Rust's getopts: a value behind an
//! equals sign or as the next word, an option at most once, other words anywhere. Invariant: whatever is refused is named with what was
//! given and what is accepted.

use crate::names::Names;
use crate::options::{
    Action, FLAG, Fault, ParsedOptions, Rule, VALUE, accept, closest, invalid_value, options, scan,
};
use std::str::FromStr;

/// How lines of the log are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// As version 2.1.0 of 2017 has them.
    Of2017,
    /// As version 1.0 of 2016 has them, which the README shows.
    Of2016,
}

options! {
    /// Options of file and command line, with rpc-perf's defaults.
    set(line, long, text) -> String {
        "server": VALUE.short('s').repeated().help("HOST:PORT", "a server; may be given several times")
            => servers: Vec<String> = Vec::new(), [line.servers.as_slice(), &[text.to_owned()]].concat();
        "threads": VALUE.short('t').help("INTEGER", "threads that send requests [1]")
            => threads: u32 = 1, above_zero(long, text)?;
        "connections": VALUE.short('c').help("INTEGER", "connections of each thread to each server [1]")
            => connections: u32 = 1, above_zero(long, text)?;
        "duration": VALUE.short('d').help("INTEGER", "seconds of each window [60]")
            => duration_s: u32 = 60, above_zero(long, text)?;
        "windows": VALUE.short('w').help("INTEGER", "measured windows; one before them is the warm-up [5]")
            => windows: u32 = 5, above_zero(long, text)?;
        "request-timeout": VALUE.help("INTEGER", "give a request up after this many milliseconds [1 hour]")
            => request_timeout_ms: Option<u32> = None, Some(above_zero(long, text)?);
        "connect-timeout": VALUE
            .help("INTEGER", "give an attempt to connect up after this many milliseconds [10000]")
            => connect_timeout_ms: Option<u32> = None, Some(above_zero(long, text)?);
        "protocol": VALUE.short('p')
            .help("STRING", "memcache, redis, redis-inline, echo, ping or thrift [memcache]")
            => protocol: String = "memcache".to_owned(), text.to_owned();
        "config": VALUE
            .help("FILE", "TOML file with the workloads, and with any of these options under [general]");
        "listen": VALUE
            .help("HOST:PORT", "show the numbers of the last window there by HTTP: /vars, /metrics, JSON elsewhere")
            => listen: Option<String> = None, Some(text.to_owned());
        "trace": VALUE.help("FILE", "write histograms of latency, second by second, as text")
            => trace: Option<String> = None, Some(text.to_owned());
        "waterfall": VALUE.help("FILE", "draw latency over time as a PNG file")
            => waterfall: Option<String> = None, Some(text.to_owned());
        "tcp-nodelay": FLAG.help("", "disable Nagle's algorithm (TCP_NODELAY)")
            => tcp_nodelay: bool = false, is_on(long, text)?;
        "flush": FLAG.help("", "delete everything on every server before the warm-up")
            => flush: bool = false, is_on(long, text)?;
        "ipv4": FLAG.help("", "use IPv4 addresses only") => ipv4: bool = true, is_on(long, text)?;
        "ipv6": FLAG.help("", "use IPv6 addresses only") => ipv6: bool = true, is_on(long, text)?;
        "service": FLAG.help("", "run until interrupted; write the files each time all windows are over")
            => service: bool = false, is_on(long, text)?;
        "version": FLAG.ending().help("", "print the version and exit");
        "verbose": FLAG.short('v').repeated()
            .help("", "log more: -v the plan and faults, -vv a line a second, too") =>
            /// A file has the number.
            verbose: u32 = 0,
            if text.is_empty() { line.verbose + 1 } else { number(long, text, "a whole number from 0")? };
        "help": FLAG.short('h').ending().help("", "print this help and exit");
        "rx-buffer-size": VALUE.ours().help("INTEGER", "printed only: replies of any size are read [4096]")
            => rx_buffer_size: u32 = 4096, above_zero(long, text)?;
        "tx-buffer-size": VALUE.ours().help("INTEGER", "printed only: requests of any size are sent [4096]")
            => tx_buffer_size: u32 = 4096, above_zero(long, text)?;
        "database": VALUE.ours().help("INTEGER", "database of Redis servers [0]")
            => database: u32 = 0, number(long, text, "a whole number from 0")?;
        "log-format": VALUE.ours()
            .help("YEAR", "format of the log: 2017, or 2016 as in rpc-perf's README [2017]")
            => log_format: LogFormat = LogFormat::Of2017, log_format(long, text)?;
        "seed": VALUE.ours().help("INTEGER", "seed of all random choices [another one for each run]")
            => seed: Option<u64> = None, Some(number(long, text, "a whole number of at most 64 bits")?);
        "quiet": FLAG.ours().help("", "print no notes and warnings on standard error")
            => quiet: bool = false, is_on(long, text)?;
        "legacy-exit": FLAG.ours().help("", "exit with 0 after every run, as rpc-perf does")
            => legacy_exit: bool = false, is_on(long, text)?;
    }
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[String]) -> Result<Action<ParsedOptions>, String> {
    check_dashes(arguments)?;
    let parsed = scan(OPTIONS, arguments).map_err(explain)?;
    if let Some(answer) = parsed.answer() {
        return Ok(answer);
    }
    CommandLine::default().put_over(&parsed)?;
    if parsed.has("ipv4") && parsed.has("ipv6") {
        return Err("Use only --ipv4 or --ipv6".to_owned());
    }
    Ok(Action::Run(Box::new(parsed)))
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
    /// Lets the options of a command line replace those of the file.
    ///
    /// # Errors
    /// An option does not accept its value.
    pub(super) fn put_over(&mut self, parsed: &ParsedOptions) -> Result<(), String> {
        // Options that may be repeated replace those of the file as a whole.
        if parsed.has("server") {
            self.servers.clear();
        }
        if parsed.has("verbose") {
            self.verbose = 0;
        }
        self.apply(parsed)?;
        if parsed.has("ipv4") || parsed.has("ipv6") {
            (self.ipv4, self.ipv6) = (parsed.has("ipv4"), parsed.has("ipv6"));
        }
        Ok(())
    }
}

/// A flag of the command line, or a value of the file.
fn is_on(long: &str, text: &str) -> Result<bool, String> {
    match text {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid_value(long, text, "true or false")),
    }
}

fn log_format(long: &str, text: &str) -> Result<LogFormat, String> {
    let format = [("2017", LogFormat::Of2017), ("2016", LogFormat::Of2016)]
        .into_iter()
        .find(|(year, _)| *year == text);
    accept(long, text, format, "2017 or 2016").map(|(_, format)| format)
}

fn number<T: FromStr>(long: &str, text: &str, accepted: &str) -> Result<T, String> {
    accept(long, text, text.parse().ok(), accepted)
}

fn above_zero(long: &str, text: &str) -> Result<u32, String> {
    let accepted = "a whole number greater than 0";
    accept(long, text, text.parse().ok().filter(|value| *value > 0), accepted)
}

/// rpc-perf's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: OPTIONS,
    table: &[
        ("--timeout", "--request-timeout"),
        ("ip-version", "--ipv4 or --ipv6"),
        ("--command", "the method with its parameters (--config)"),
        ("--rate", "rate (--config)"),
        ("--keys", "num (--config)"),
        ("--key-size", "size of the parameter with num (--config)"),
        ("--time", "--duration × --windows"),
        ("nodelay=false", "no --tcp-nodelay"),
        ("for database", "for --database"),
        ("database requires", "--database requires"),
    ],
};

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// Text of `--version`.
pub const VERSION: &str = "rpc-perf 2.1.0-pre";

/// Text of `--help` for this name of the program.
pub fn help(program: &str) -> String {
    crate::options::help(&format!("Usage: {program} [options]\n"), OPTIONS, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::{cases, changed_fields, words};

    fn parsed(line: &str) -> Result<Action<ParsedOptions>, String> {
        parse(&words(line))
    }

    /// The options of this file with those of a command line over them.
    fn over(mut file: CommandLine, line: &str) -> CommandLine {
        file.put_over(&parsed(line).unwrap().run()).unwrap();
        file
    }

    fn options(line: &str) -> CommandLine {
        over(CommandLine::default(), line)
    }

    fn servers(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn command_lines_are_parsed() {
        // (command line, what it changes)
        let table = cases(
            r#"
            -t 1 => ''
            -s a:1 --server=b => servers: ["a:1","b"]
            -t2 -c 3 => threads: 2; connections: 3
            --duration=1 --windows 2 => duration_s: 1; windows: 2
            --request-timeout 200 --connect-timeout=500 => request_timeout_ms: Some(200); connect_timeout_ms: Some(500)
            --tcp-nodelay --flush --service => tcp_nodelay: true; flush: true; service: true
            -vv --verbose => verbose: 3
            --trace t --waterfall w --listen :1 -p redis
                => protocol: "redis"; listen: Some(":1"); trace: Some("t"); waterfall: Some("w")
            --rx-buffer-size 1 --tx-buffer-size 2 --database 3 => rx_buffer_size: 1; tx_buffer_size: 2; database: 3
            --log-format 2016 --seed 7 --quiet --legacy-exit
                => log_format: Of2016; seed: Some(7); quiet: true; legacy_exit: true
        "#,
        );
        for [line, expected] in table {
            assert_eq!(changed_fields(&CommandLine::default(), &options(line)), expected, "{line}");
        }
        // A short option takes no equals sign before its value.
        assert!(parsed("-d 1 -w=2").is_err());
        let versions = ["", "--ipv4", "--ipv6"].map(options).map(|line| (line.ipv4, line.ipv6));
        assert_eq!(versions, [(true, true), (true, false), (false, true)]);
        assert_eq!(
            options("a --quiet -- b").warnings,
            ["a", "b"].map(|word| format!("'{word}' belongs to no option and has no effect"))
        );
    }

    #[test]
    fn command_line_options_override_the_file() {
        let file = CommandLine {
            servers: servers(&["a", "b"]),
            threads: 2,
            seed: Some(1),
            verbose: 2,
            ..CommandLine::default()
        };
        let both =
            CommandLine { servers: servers(&["c"]), threads: 5, flush: true, verbose: 1, ..file.clone() };
        assert_eq!(over(file.clone(), "-t 5 --flush -v -s c"), both);
        assert_eq!(over(file.clone(), ""), file);
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
