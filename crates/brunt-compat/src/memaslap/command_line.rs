//! memaslap's options and ours: a command line becomes typed values that each lie in their range.
//!
//! Not what they come to together, but for servers and threads, which memaslap looks at before anything else; the rest is
//! [`super::invocation`]. Invariant: whatever is given is in a field, in a warning or in a refusal.

use super::PORT;
use crate::options::{Action, ParsedOption, Rule, invalid_value, scan_to_fault, split_integer, split_number};
use std::fmt;

/// Why nothing is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidOption {
    /// The message for the user.
    pub message: String,
    /// The help follows.
    pub shows_help: bool,
}

impl From<String> for InvalidOption {
    fn from(message: String) -> Self {
        Self { message, shows_help: false }
    }
}

/// Every option in the order of the help, and last those of our own.
pub const OPTIONS: [Rule; 28] = [
    Rule::value("servers", 's'),
    Rule::value("threads", 'T'),
    Rule::value("concurrency", 'c'),
    Rule::value("conn_sock", 'n'),
    Rule::value("execute_number", 'x'),
    Rule::value("time", 't'),
    Rule::value("cfg_cmd", 'F'),
    Rule::value("win_size", 'w'),
    Rule::value("fixed_size", 'X'),
    Rule::value("verify", 'v'),
    Rule::value("division", 'd'),
    Rule::value("stat_freq", 'S'),
    Rule::value("exp_verify", 'e'),
    Rule::value("overwrite", 'o'),
    Rule::flag("reconnect", 'R'),
    Rule::flag("udp", 'U'),
    Rule::flag("facebook", 'a'),
    Rule::flag("binary", 'B'),
    Rule::value("tps", 'P'),
    Rule::value("rep_write", 'p'),
    Rule::flag("verbose", 'b'),
    Rule { ends: true, ..Rule::flag("help", 'h') },
    Rule { ends: true, ..Rule::flag("version", 'V') },
    Rule::ours("seed", true),
    Rule::ours("printable-keys", false),
    Rule::ours("percentiles", false),
    Rule::ours("legacy-exit", false),
    Rule::ours("quiet", false),
];

/// The variable that names servers where `--servers` does not.
pub const SERVERS_VARIABLE: &str = "MEMCACHED_SERVERS";
/// The largest value that memcached takes by default, and memaslap at all.
pub const VALUE_BYTES_MAX: u32 = 1 << 20;
/// No run and no interval is longer: a century.
const SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// A command line that asks for a run, with memaslap's defaults.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are memaslap's options of the same names, and ours")]
pub struct CommandLine {
    /// Servers as the user gave them, by `--servers` or by MEMCACHED_SERVERS.
    pub servers: String,
    pub threads: u32,
    pub concurrency: u32,
    pub conn_sock: u32,
    /// Operations in all; none: the run ends by time.
    pub execute_number: Option<u64>,
    pub time_s: u64,
    pub cfg_cmd: Option<String>,
    /// Objects in the window of each concurrency.
    pub win_size: u64,
    pub fixed_size: Option<u32>,
    pub verify: f64,
    pub division: u32,
    pub stat_freq_s: Option<u64>,
    pub exp_verify: f64,
    pub overwrite: f64,
    pub reconnect: bool,
    pub udp: bool,
    pub facebook: bool,
    pub binary: bool,
    /// Operations per second; 0 is as fast as it goes.
    pub tps: u64,
    pub rep_write: Option<u32>,
    pub verbose: bool,
    pub seed: Option<u64>,
    pub printable_keys: bool,
    pub percentiles: bool,
    pub legacy_exit: bool,
    pub quiet: bool,
    /// Given, and without effect: for the user, each without its prefix.
    pub warnings: Vec<String>,
}

impl Default for CommandLine {
    fn default() -> Self {
        Self {
            servers: String::new(),
            threads: 1,
            concurrency: 16,
            conn_sock: 1,
            execute_number: None,
            time_s: 600,
            cfg_cmd: None,
            win_size: 10 * 1024,
            fixed_size: None,
            verify: 0.0,
            division: 1,
            stat_freq_s: None,
            exp_verify: 0.0,
            overwrite: 0.0,
            reconnect: false,
            udp: false,
            facebook: false,
            binary: false,
            tps: 0,
            rep_write: None,
            verbose: false,
            seed: None,
            printable_keys: false,
            percentiles: false,
            legacy_exit: false,
            quiet: false,
            warnings: Vec::new(),
        }
    }
}

/// Reads a command line without the program's name. Options are carried out in their order, so that the first that ends
/// everything does.
///
/// # Errors
/// An option or its value is not accepted, there is no server, or concurrencies cannot be divided among threads.
pub fn parse(
    arguments: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Action<CommandLine>, InvalidOption> {
    let (parsed, fault) = scan_to_fault(&OPTIONS, arguments);
    let mut line = CommandLine::default();
    let mut servers = None;
    for ParsedOption { long, value } in &parsed.given {
        let value = value.as_deref().unwrap_or_default();
        match *long {
            "help" => return Ok(Action::Help),
            "version" => return Ok(Action::Version),
            "servers" => servers = Some(value.to_owned()),
            long => line.set(long, value)?,
        }
    }
    if let Some(fault) = fault {
        return Err(fault.to_string().into());
    }
    line.servers = servers.or_else(|| variable(SERVERS_VARIABLE)).unwrap_or_default();
    if line.servers.split(',').all(|server| server.trim().is_empty()) {
        return Err(InvalidOption {
            message: format!(
                "No servers provided; expected --servers HOST[:PORT],… or the variable {SERVERS_VARIABLE}; \
                 the usual port is {PORT}"
            ),
            shows_help: true,
        });
    }
    if !line.concurrency.is_multiple_of(line.threads) {
        let (concurrency, threads) = (line.concurrency, line.threads);
        return Err(InvalidOption {
            message: format!(
                "invalid value '{concurrency}' for --concurrency: expected a multiple of --threads, {threads}"
            ),
            shows_help: true,
        });
    }
    line.warnings.extend(parsed.stray_warnings());
    line.warn(parsed.has("time"));
    Ok(Action::Run(Box::new(line)))
}

impl CommandLine {
    /// Takes one option.
    fn set(&mut self, long: &'static str, text: &str) -> Result<(), String> {
        let unread = &mut self.warnings;
        match long {
            "threads" => self.threads = above_zero(long, text, unread)?,
            "concurrency" => self.concurrency = above_zero(long, text, unread)?,
            "conn_sock" => self.conn_sock = above_zero(long, text, unread)?,
            "execute_number" => self.execute_number = Some(above_zero(long, text, unread)?),
            "time" => self.time_s = seconds(long, text, unread)?,
            "cfg_cmd" => self.cfg_cmd = Some(text.to_owned()),
            "win_size" => {
                self.win_size = kibi(long, text, unread)?;
                if self.win_size == 0 {
                    return Err(invalid_value(long, text, "a window of at least 1k objects"));
                }
            }
            "fixed_size" => {
                let bytes = u32::try_from(integer(long, text, unread).unwrap_or(0)).ok();
                let bytes = bytes.filter(|bytes| (1..=VALUE_BYTES_MAX).contains(bytes));
                let accepted = || invalid_value(long, text, &format!("from 1 to {VALUE_BYTES_MAX} bytes"));
                self.fixed_size = Some(bytes.ok_or_else(accepted)?);
            }
            "verify" => self.verify = share(long, text, unread)?,
            "division" => self.division = above_zero(long, text, unread)?,
            "stat_freq" => self.stat_freq_s = Some(seconds(long, text, unread)?),
            "exp_verify" => self.exp_verify = share(long, text, unread)?,
            "overwrite" => self.overwrite = share(long, text, unread)?,
            "reconnect" => self.reconnect = true,
            "udp" => self.udp = true,
            "facebook" => self.facebook = true,
            "binary" => self.binary = true,
            "tps" => self.tps = kibi(long, text, unread)?,
            "rep_write" => self.rep_write = Some(above_zero(long, text, unread)?),
            "verbose" => self.verbose = true,
            "seed" => {
                let accepted = || invalid_value(long, text, "a whole number of at most 64 bits");
                self.seed = Some(text.parse().map_err(|_| accepted())?);
            }
            "printable-keys" => self.printable_keys = true,
            "percentiles" => self.percentiles = true,
            "legacy-exit" => self.legacy_exit = true,
            "quiet" => self.quiet = true,
            long => unreachable!("--{long} stands in the table and is not read"),
        }
        Ok(())
    }

    /// Notes what has no effect.
    fn warn(&mut self, has_time: bool) {
        if has_time && self.execute_number.is_some() {
            self.warnings.push("--time: without effect beside --execute_number".to_owned());
        }
        if self.verbose && self.verify == 0.0 && self.exp_verify == 0.0 {
            self.warnings.push("--verbose: without effect, for nothing is verified".to_owned());
        }
    }
}

/// The whole number that a text begins with, as memaslap reads it; what is behind it is for the user to know.
fn integer(long: &str, text: &str, unread: &mut Vec<String>) -> Option<i64> {
    let (number, rest) = split_integer(text)?;
    warn_of_rest(long, text, rest, number, unread);
    Some(number)
}

fn warn_of_rest(long: &str, text: &str, rest: &str, read: impl fmt::Display, unread: &mut Vec<String>) {
    if !rest.trim().is_empty() {
        unread.push(format!("--{long}: '{text}' is read as {read}"));
    }
}

/// Numbers below 0, which wrap around in memaslap, are refused.
fn above_zero<T: TryFrom<i64>>(long: &str, text: &str, unread: &mut Vec<String>) -> Result<T, String> {
    let number = integer(long, text, unread).unwrap_or(0);
    // A number that has no room ends there.
    let fitting = T::try_from(number).ok().filter(|_| (1..i64::MAX).contains(&number));
    fitting.ok_or_else(|| match number {
        ..=0 => invalid_value(long, text, "a whole number greater than 0"),
        _ => invalid_value(long, text, "a smaller number"),
    })
}

fn share(long: &str, text: &str, unread: &mut Vec<String>) -> Result<f64, String> {
    let (share, rest) = split_number(text).unwrap_or_default();
    warn_of_rest(long, text, rest, share, unread);
    // Billionths are the finest parts that a plan has.
    let fits = (1e-9..=1.0).contains(&share);
    if fits { Ok(share) } else { Err(invalid_value(long, text, "a share above 0 and up to 1, such as 0.05")) }
}

/// A number from 0 with its unit behind it, which is the last character.
fn with_unit(
    long: &str,
    text: &str,
    unread: &mut Vec<String>,
    units: &[(char, u64)],
    accepted: &str,
) -> Result<u64, String> {
    let read = || {
        let unit = text.chars().last()?;
        let (_, factor) = units.iter().find(|(letter, _)| *letter == unit.to_ascii_lowercase())?;
        let (number, rest) = split_integer(&text[..text.len() - unit.len_utf8()])?;
        Some((u64::try_from(number).ok()?.saturating_mul(*factor), rest, format!("{number}{unit}")))
    };
    let (number, rest, as_read) = read().ok_or_else(|| invalid_value(long, text, accepted))?;
    warn_of_rest(long, text, rest, as_read, unread);
    Ok(number)
}

fn seconds(long: &str, text: &str, unread: &mut Vec<String>) -> Result<u64, String> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let accepted = "a number greater than 0 and s, m, h or d behind it, such as 24h";
    match with_unit(long, text, unread, &units, accepted)? {
        0 => Err(invalid_value(long, text, accepted)),
        seconds @ ..=SECONDS_MAX => Ok(seconds),
        _ => Err(invalid_value(long, text, "up to a hundred years")),
    }
}

fn kibi(long: &str, text: &str, unread: &mut Vec<String>) -> Result<u64, String> {
    let units = [('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];
    let accepted = "a number and k, m or g behind it, such as 10k, which is 10 * 1024";
    match with_unit(long, text, unread, &units, accepted)? {
        u64::MAX => Err(invalid_value(long, text, "a smaller number")),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::words;

    fn parsed(line: &str) -> Result<Action<CommandLine>, InvalidOption> {
        parse(&words(line), &|_| None)
    }

    fn run(line: &str) -> CommandLine {
        parsed(line).unwrap().run()
    }

    #[test]
    fn command_lines_are_parsed() {
        let usual = || CommandLine { servers: "h".to_owned(), ..CommandLine::default() };
        // (options beside -s h, what they change)
        let table = [
            ("", usual()),
            ("-T2 -c 8", CommandLine { threads: 2, concurrency: 8, ..usual() }),
            ("--thr 4abc --conc=16.9", CommandLine { threads: 4, ..usual() }),
            ("-c 8 -c 32", CommandLine { concurrency: 32, ..usual() }),
            ("-n 4 -d 20", CommandLine { conn_sock: 4, division: 20, ..usual() }),
            ("--exec 4294967297", CommandLine { execute_number: Some(1 << 32 | 1), ..usual() }),
            ("-t 2m", CommandLine { time_s: 120, ..usual() }),
            ("--time=24H", CommandLine { time_s: 86_400, ..usual() }),
            ("-t 1.9d", CommandLine { time_s: 86_400, ..usual() }),
            ("-w 1K -P40k", CommandLine { win_size: 1024, tps: 40_960, ..usual() }),
            ("--win_size=2m -P 0k", CommandLine { win_size: 2 << 20, ..usual() }),
            ("-X 2m", CommandLine { fixed_size: Some(2), ..usual() }),
            ("-v 0.5abc -o0.9", CommandLine { verify: 0.5, overwrite: 0.9, ..usual() }),
            ("-e 1", CommandLine { exp_verify: 1.0, ..usual() }),
            ("-S 2d", CommandLine { stat_freq_s: Some(172_800), ..usual() }),
            ("-RB -p 2", CommandLine { reconnect: true, binary: true, rep_write: Some(2), ..usual() }),
            (
                "-Ua --verb -v 1",
                CommandLine { udp: true, facebook: true, verbose: true, verify: 1.0, ..usual() },
            ),
            ("-F f --cfg g", CommandLine { cfg_cmd: Some("g".to_owned()), ..usual() }),
            ("--seed 7 --quiet", CommandLine { seed: Some(7), quiet: true, ..usual() }),
            // Ours yield to memaslap's.
            ("--se x", CommandLine { servers: "x".to_owned(), ..usual() }),
            ("--see 1 --leg", CommandLine { seed: Some(1), legacy_exit: true, ..usual() }),
            ("--per --pri", CommandLine { percentiles: true, printable_keys: true, ..usual() }),
        ];
        for (options, expected) in table {
            let warnings = Vec::new();
            assert_eq!(CommandLine { warnings, ..run(&format!("-s h {options}")) }, expected, "{options}");
        }
    }

    #[test]
    fn options_without_effect_are_warned_of() {
        let table = [
            ("-w 1K 1", "'1' belongs to no option and has no effect"),
            ("-X 2m", "--fixed_size: '2m' is read as 2"),
            ("-v 0.50abc", "--verify: '0.50abc' is read as 0.5"),
            ("-t 1.9m", "--time: '1.9m' is read as 1m"),
            ("-c 8,5 -T 4", "--concurrency: '8,5' is read as 8"),
            ("-t 1s -x 10", "--time: without effect beside --execute_number"),
            ("-bB", "--verbose: without effect, for nothing is verified"),
        ];
        for (options, warning) in table {
            assert_eq!(run(&format!("-s h {options}")).warnings, [warning], "{options}");
        }
    }

    #[test]
    fn invalid_options_are_rejected() {
        // (command line, message, the help follows)
        let table = [
            ("-T 0", "invalid value '0' for --threads: expected a whole number greater than 0", false),
            ("-c x", "invalid value 'x' for --concurrency: expected a whole number greater than 0", false),
            ("-c -5", "invalid value '-5' for --concurrency: expected a whole number greater than 0", false),
            (
                "-c 5000000000",
                "invalid value '5000000000' for --concurrency: expected a smaller number",
                false,
            ),
            ("-x 0", "invalid value '0' for --execute_number", false),
            (
                "-x 9223372036854775807",
                "invalid value '9223372036854775807' for --execute_number: expected a smaller number",
                false,
            ),
            (
                "-x 99999999999999999999",
                "invalid value '99999999999999999999' for --execute_number: expected",
                false,
            ),
            (
                "-t 10",
                "invalid value '10' for --time: expected a number greater than 0 and s, m, h or d behind it",
                false,
            ),
            ("-t 0s", "invalid value '0s' for --time: expected a number greater than 0", false),
            ("-t -5s", "invalid value '-5s' for --time: expected a number greater than 0", false),
            ("-t 9999999d", "invalid value '9999999d' for --time: expected up to a hundred years", false),
            ("-S 5", "invalid value '5' for --stat_freq: expected a number greater than 0 and s", false),
            ("-w 10", "invalid value '10' for --win_size: expected a number and k, m or g behind it", false),
            ("-w 0k", "invalid value '0k' for --win_size: expected a window of at least 1k objects", false),
            ("-w -1k", "invalid value '-1k' for --win_size: expected a number and k", false),
            ("-w junk", "invalid value 'junk' for --win_size: expected a number and k", false),
            ("-P junk", "invalid value 'junk' for --tps: expected a number and k, m or g behind it", false),
            ("-P 100", "invalid value '100' for --tps: expected a number and k", false),
            (
                "-X 2000000",
                "invalid value '2000000' for --fixed_size: expected from 1 to 1048576 bytes",
                false,
            ),
            ("-v 1.5", "invalid value '1.5' for --verify: expected a share above 0 and up to 1", false),
            ("-o 0", "invalid value '0' for --overwrite: expected a share", false),
            ("-e nan", "invalid value 'nan' for --exp_verify: expected a share", false),
            ("-p 0 -s h", "invalid value '0' for --rep_write", false),
            ("--seed x", "invalid value 'x' for --seed: expected a whole number of at most 64 bits", false),
            ("-s h --bogus", "'--bogus' is no option; --help lists them", false),
            ("-s h --ver", "'--ver' may be any of --verify --verbose --version", false),
            ("-s h -c", "-c needs a value", false),
            // Options in their order, then servers, then threads.
            ("-T 0 --bogus", "invalid value '0' for --threads", false),
            ("-t 1s", "No servers provided", true),
            ("-T 3", "No servers provided", true),
            ("-s ,", "No servers provided", true),
            ("-s h -T 3", "invalid value '16' for --concurrency: expected a multiple of --threads, 3", true),
        ];
        for (line, message, shows_help) in table {
            let refusal = parsed(line).unwrap_err();
            assert!(
                refusal.message.starts_with(message) && refusal.shows_help == shows_help,
                "{line}: {refusal:?}"
            );
        }
    }

    #[test]
    fn help_version_and_the_server_variable_are_read() {
        assert_eq!(parsed("-V --bogus"), Ok(Action::Version));
        assert_eq!(parsed("-c 5 -h -T 0"), Ok(Action::Help));
        assert!(parsed("-T 0 -h").is_err());
        let with = |line: &[&str]| {
            let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            match parse(&words, &|name| (name == SERVERS_VARIABLE).then(|| "v:1".to_owned())) {
                Ok(Action::Run(line)) => line.servers,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([with(&[]), with(&["-s", "h"])], ["v:1", "h"]);
    }
}
