//! rpc-perf's options, as a user types them, in the shape that the configuration file has, too.
//!
//! Not what it comes to: that is [`super::invocation`], which reads the file. The rules are those of Rust's getopts: a value behind an
//! equals sign or as the next word, an option at most once, other words anywhere. Invariant: whatever is refused is named with what was
//! given and what is accepted.

use super::config::General;
use crate::options::{
    Action, FLAG, Fault, ParsedOption, ParsedOptions, Rule, VALUE, invalid_value, options, scan,
};
use crate::spelling::closest;
use std::num::NonZeroU32;
use std::str::FromStr;

options! {
    "server": VALUE.short('s').repeated().help("HOST:PORT", "a server; may be given several times");
    "threads": VALUE.short('t').help("INTEGER", "threads that send requests [1]");
    "connections": VALUE.short('c').help("INTEGER", "connections of each thread to each server [1]");
    "duration": VALUE.short('d').help("INTEGER", "seconds of each window [60]");
    "windows": VALUE.short('w').help("INTEGER", "measured windows; one before them is the warm-up [5]");
    "request-timeout": VALUE.help("INTEGER", "give a request up after this many milliseconds [1 hour]");
    "connect-timeout": VALUE
        .help("INTEGER", "give an attempt to connect up after this many milliseconds [10000]");
    "protocol": VALUE.short('p')
        .help("STRING", "memcache, redis, redis-inline, echo, ping or thrift [memcache]");
    "config": VALUE
        .help("FILE", "TOML file with the workloads, and with any of these options under [general]");
    "listen": VALUE
        .help("HOST:PORT", "show the numbers of the last window there by HTTP: /vars, /metrics, JSON elsewhere");
    "trace": VALUE.help("FILE", "write histograms of latency, second by second, as text");
    "waterfall": VALUE.help("FILE", "draw latency over time as a PNG file");
    "tcp-nodelay": FLAG.help("", "disable Nagle's algorithm (TCP_NODELAY)");
    "flush": FLAG.help("", "delete everything on every server before the warm-up");
    "ipv4": FLAG.help("", "use IPv4 addresses only");
    "ipv6": FLAG.help("", "use IPv6 addresses only");
    "service": FLAG.help("", "run until interrupted; write the files each time all windows are over");
    "version": FLAG.ending().help("", "print the version and exit");
    "verbose": FLAG.short('v').repeated()
        .help("", "log more: -v the plan and faults, -vv a line a second, too");
    "help": FLAG.short('h').ending().help("", "print this help and exit");
    "rx-buffer-size": VALUE.ours().help("INTEGER", "printed only: replies of any size are read [4096]");
    "tx-buffer-size": VALUE.ours().help("INTEGER", "printed only: requests of any size are sent [4096]");
    "database": VALUE.ours().help("INTEGER", "database of Redis servers [0]");
    "log-format": VALUE.ours()
        .help("YEAR", "format of the log: 2017, or 2016 as in rpc-perf's README [2017]");
    "seed": VALUE.ours().help("INTEGER", "seed of all random choices [another one for each run]");
    "quiet": FLAG.ours().help("", "print no notes and warnings on standard error");
    "legacy-exit": FLAG.ours().help("", "exit with 0 after every run, as rpc-perf does");
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// What is wrong with it.
pub fn parse(arguments: &[String]) -> Result<Action<ParsedOptions>, String> {
    check_dashes(arguments)?;
    let parsed = scan(OPTIONS, arguments).map_err(explain)?;
    if parsed.has("help") {
        return Ok(Action::Help);
    }
    if parsed.has("version") {
        return Ok(Action::Version);
    }
    General::default().apply(&parsed)?;
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

impl General {
    /// Lets the options of a command line replace those of the file.
    ///
    /// # Errors
    /// An option does not accept its value.
    pub(super) fn apply(&mut self, parsed: &ParsedOptions) -> Result<(), String> {
        // Options that may be repeated replace those of the file as a whole.
        if parsed.has("server") {
            self.server.0.clear();
        }
        if parsed.has("verbose") {
            self.verbose = 0;
        }
        for ParsedOption { long, value } in &parsed.given {
            self.set(long, value.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }

    fn set(&mut self, long: &'static str, text: &str) -> Result<(), String> {
        match long {
            "server" => self.server.0.push(text.to_owned()),
            "threads" => self.threads = above_zero(long, text)?,
            "connections" => self.connections = above_zero(long, text)?,
            "duration" => self.duration = above_zero(long, text)?,
            "windows" => self.windows = above_zero(long, text)?,
            "request-timeout" => self.request_timeout = Some(above_zero(long, text)?),
            "connect-timeout" => self.connect_timeout = Some(above_zero(long, text)?),
            "protocol" => self.protocol = text.to_owned(),
            "listen" => self.listen = Some(text.to_owned()),
            "trace" => self.trace = Some(text.to_owned()),
            "waterfall" => self.waterfall = Some(text.to_owned()),
            "tcp-nodelay" => self.tcp_nodelay = true,
            "flush" => self.flush = true,
            "ipv4" => (self.ipv4, self.ipv6) = (true, false),
            "ipv6" => (self.ipv4, self.ipv6) = (false, true),
            "service" => self.service = true,
            "verbose" => self.verbose += 1,
            "rx-buffer-size" => self.rx_buffer_size = above_zero(long, text)?,
            "tx-buffer-size" => self.tx_buffer_size = above_zero(long, text)?,
            "database" => self.database = number(long, text, "a whole number from 0")?,
            "log-format" => {
                self.log_format =
                    text.parse().map_err(|accepted: String| invalid_value(long, text, &accepted))?;
            }
            "seed" => self.seed = Some(number(long, text, "a whole number of at most 64 bits")?),
            "quiet" => self.quiet = true,
            "legacy-exit" => self.legacy_exit = true,
            // The file itself.
            "config" => {}
            long => unreachable!("--{long} stands in the table and is not read"),
        }
        Ok(())
    }
}

fn number<T: FromStr>(long: &str, text: &str, accepted: &str) -> Result<T, String> {
    text.parse().map_err(|_| invalid_value(long, text, accepted))
}

fn above_zero(long: &str, text: &str) -> Result<NonZeroU32, String> {
    number(long, text, "a whole number greater than 0")
}

#[cfg(test)]
mod tests {
    use super::super::config::{LogFormat, ServerNames};
    use super::*;
    use crate::options::tests::words;

    fn parsed(line: &str) -> Result<Action<ParsedOptions>, String> {
        parse(&words(line))
    }

    /// The options of this file with those of a command line over them.
    fn over(mut file: General, line: &str) -> General {
        file.apply(&parsed(line).unwrap().run()).unwrap();
        file
    }

    fn general(line: &str) -> General {
        over(General::default(), line)
    }

    fn servers(names: &[&str]) -> ServerNames {
        ServerNames(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn command_lines_are_parsed() {
        let some = NonZeroU32::new;
        let number = |number| NonZeroU32::new(number).unwrap();
        let table = [
            ("", General::default()),
            ("-s a:1 --server=b", General { server: servers(&["a:1", "b"]), ..General::default() }),
            ("-t2 -c 3", General { threads: number(2), connections: number(3), ..General::default() }),
            ("-d 1 -w=2", General::default()),
            (
                "--duration=1 --windows 2",
                General { duration: number(1), windows: number(2), ..General::default() },
            ),
            (
                "--request-timeout 200 --connect-timeout=500",
                General { request_timeout: some(200), connect_timeout: some(500), ..General::default() },
            ),
            (
                "--tcp-nodelay --flush --service",
                General { tcp_nodelay: true, flush: true, service: true, ..General::default() },
            ),
            ("-vv --verbose", General { verbose: 3, ..General::default() }),
            (
                "--trace t --waterfall w --listen :1 -p redis",
                General {
                    trace: Some("t".to_owned()),
                    waterfall: Some("w".to_owned()),
                    listen: Some(":1".to_owned()),
                    protocol: "redis".to_owned(),
                    ..General::default()
                },
            ),
            (
                "--rx-buffer-size 1 --tx-buffer-size 2 --database 3",
                General {
                    rx_buffer_size: number(1),
                    tx_buffer_size: number(2),
                    database: 3,
                    ..General::default()
                },
            ),
            (
                "--log-format 2016 --seed 7 --quiet --legacy-exit",
                General {
                    log_format: LogFormat::Of2016,
                    seed: Some(7),
                    quiet: true,
                    legacy_exit: true,
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
        let versions = ["", "--ipv4", "--ipv6"].map(general).map(|general| (general.ipv4, general.ipv6));
        assert_eq!(versions, [(true, true), (true, false), (false, true)]);
        let strays = parsed("a --quiet -- b").unwrap().run().stray_warnings();
        assert_eq!(strays, ["a", "b"].map(|word| format!("'{word}' belongs to no option and has no effect")));
    }

    #[test]
    fn command_line_options_override_the_file() {
        let number = |number| NonZeroU32::new(number).unwrap();
        let file = General {
            server: servers(&["a", "b"]),
            threads: number(2),
            seed: Some(1),
            verbose: 2,
            ..General::default()
        };
        let both =
            General { server: servers(&["c"]), threads: number(5), flush: true, verbose: 1, ..file.clone() };
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
