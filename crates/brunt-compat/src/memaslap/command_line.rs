//! memaslap's options and ours: a command line becomes typed values that each lie in their range.
//!
//! Not what they come to together, but for servers and threads, which memaslap looks at before anything else; the rest is
//! [`super::invocation`]. Invariant: whatever is given is in a field, in a warning or in a refusal.

use crate::front_end::Refusal;
use crate::names::Names;
use crate::options::{
    Action, FLAG, ParsedOptions, Rule, VALUE, accept, invalid_value, options, scan_to_fault, split_integer,
    split_number,
};
use std::fmt;

/// The variable that names servers where `--servers` does not.
pub const SERVERS_VARIABLE: &str = "MEMCACHED_SERVERS";
/// The largest value that memcached takes by default, and memaslap at all.
pub const VALUE_BYTES_MAX: u32 = 1 << 20;
/// No run and no interval is longer: a century.
const SECONDS_MAX: u64 = 100 * 366 * 86_400;

options! {
    /// A command line that asks for a run, with memaslap's defaults.
    set(line, long, text) -> Refusal {
        "servers": VALUE.short('s')
            .help("LIST", "Servers, with commas: HOST[:PORT], [IPV6]:PORT, a socket's path [MEMCACHED_SERVERS]") =>
            /// As the user gave them, by `--servers` or by MEMCACHED_SERVERS.
            servers: String = String::new(), text.to_owned();
        "threads": VALUE.short('T').help("N", "Threads. [1]")
            => threads: u32 = 1, above_zero(line, long, text)?;
        "concurrency": VALUE.short('c')
            .help("N", "Clients in all, each with one operation under way; a multiple of --threads. [16]")
            => concurrency: u32 = 16, above_zero(line, long, text)?;
        "conn_sock": VALUE.short('n').help("N", "TCP connections of each client, which take turns. [1]")
            => conn_sock: u32 = 1, above_zero(line, long, text)?;
        "execute_number": VALUE.short('x').help("N", "End after so many operations of all clients together.") =>
            /// None: the run ends by time.
            execute_number: Option<u64> = None, Some(above_zero(line, long, text)?);
        "time": VALUE.short('t').help("TIME", "End after so long; s, m, h or d behind the number. [600s]")
            => time_s: u64 = 600, seconds(line, long, text)?,
            line.execute_number.is_some() => "--execute_number ends the run";
        "cfg_cmd": VALUE.short('F')
            .help("FILE", "Sizes of keys and values and shares of set and get. [~/.memslap.cnf, if there is one]")
            => cfg_cmd: Option<String> = None, Some(text.to_owned());
        "win_size": VALUE.short('w')
            .help("OBJECTS", "Objects in the window of a client; k (1024), m or g behind the number. [10k]") =>
            /// Objects in the window of each concurrency.
            win_size: u64 = 10 * 1024, window(line, long, text)?;
        "fixed_size": VALUE.short('X').help("BYTES", "Every value has so many bytes.")
            => fixed_size: Option<u32> = None, Some(value_size(line, long, text)?);
        "verify": VALUE.short('v').help("SHARE", "Compare this share of the values that are read, such as 0.01.")
            => verify: f64 = 0.0, share(line, long, text)?;
        "division": VALUE.short('d').help("N", "Keys in a get. [1]")
            => division: u32 = 1, above_zero(line, long, text)?;
        "stat_freq": VALUE.short('S')
            .help("TIME", "Print statistics so often, and at the end; s, m, h or d behind the number.")
            => stat_freq_s: Option<u64> = None, Some(seconds(line, long, text)?);
        "exp_verify": VALUE.short('e').help("SHARE", "This share of the objects expires after 60 s, which is checked.")
            => exp_verify: f64 = 0.0, share(line, long, text)?;
        "overwrite": VALUE.short('o')
            .help("SHARE", "This share of the sets gives an object of the window a new value.")
            => overwrite: f64 = 0.0, share(line, long, text)?;
        "reconnect": FLAG.short('R').help("", "Connect again when a connection is lost.")
            => reconnect: bool = false, true;
        "udp": FLAG.short('U').help("", "UDP instead of TCP, to the same ports.") => udp: bool = false, true;
        "facebook": FLAG.short('a').help("", "Set over TCP and get over UDP; with --division of at least 2.")
            => facebook: bool = false, true;
        "binary": FLAG.short('B').help("", "Binary protocol.") => binary: bool = false, true;
        "tps": VALUE.short('P')
            .help("N", "Operations per second of all clients together; k (1024), m or g behind the number.") =>
            /// 0 is as fast as it goes.
            tps: u64 = 0, kibi(line, long, text)?;
        "rep_write": VALUE.short('p').help("N", "Each set goes to the first N servers, and gets take turns over them.")
            => rep_write: Option<u32> = None, Some(above_zero(line, long, text)?);
        "verbose": FLAG.short('b').help("", "Say what was wrong with each value that is not as it should be.")
            => verbose: bool = false, true,
            line.verify == 0.0 && line.exp_verify == 0.0 => "nothing is verified";
        "help": FLAG.short('h').ending().help("", "Print this.");
        "version": FLAG.short('V').ending().help("", "Print the version.");
        "seed": VALUE.ours()
            .help("N", "Seed of all random choices. [keys and values: the second of the start]")
            => seed: Option<u64> = None, Some(seed(long, text)?);
        "printable-keys": FLAG.ours().help("", "Keys of printable characters, as proxies want them.")
            => printable_keys: bool = false, true;
        "percentiles": FLAG.ours().help("", "Print percentiles of the latencies behind the run.")
            => percentiles: bool = false, true;
        "legacy-exit": FLAG.ours().help("", "Exit with 0 whatever became of the run, as memaslap does.")
            => legacy_exit: bool = false, true;
        "quiet": FLAG.ours().help("", "No lines that begin with note: or warning:.") => quiet: bool = false, true;
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
) -> Result<Action<CommandLine>, Refusal> {
    let (parsed, fault) = scan_to_fault(OPTIONS, arguments);
    let mut line = CommandLine::default();
    line.apply(&parsed)?;
    // Nothing behind it is looked at.
    if let Some(answer) = parsed.answer() {
        return Ok(answer);
    }
    if let Some(fault) = fault {
        return Err(fault.to_string().into());
    }
    if !parsed.has("servers") {
        line.servers = variable(SERVERS_VARIABLE).unwrap_or_default();
    }
    if line.servers.split(',').all(|server| server.trim().is_empty()) {
        return Err(Refusal {
            message: format!(
                "No servers provided; expected --servers HOST[:PORT],… or the variable {SERVERS_VARIABLE}; \
                 the usual port is {PORT}"
            ),
            shows_help: true,
            code: None,
        });
    }
    if !line.concurrency.is_multiple_of(line.threads) {
        let (concurrency, threads) = (line.concurrency, line.threads);
        return Err(Refusal {
            message: format!(
                "invalid value '{concurrency}' for --concurrency: expected a multiple of --threads, {threads}"
            ),
            shows_help: true,
            code: None,
        });
    }
    Ok(Action::Run(Box::new(line)))
}

/// The whole number that a text begins with, as memaslap reads it; what is behind it is for the user to know.
fn integer(line: &mut CommandLine, long: &str, text: &str) -> Option<i64> {
    let (number, rest) = split_integer(text)?;
    warn_of_rest(line, long, text, rest, number);
    Some(number)
}

fn warn_of_rest(line: &mut CommandLine, long: &str, text: &str, rest: &str, read: impl fmt::Display) {
    if !rest.trim().is_empty() {
        line.warnings.push(format!("--{long}: '{text}' is read as {read}"));
    }
}

/// Numbers below 0, which wrap around in memaslap, are refused.
fn above_zero<T: TryFrom<i64>>(line: &mut CommandLine, long: &str, text: &str) -> Result<T, String> {
    let number = integer(line, long, text).unwrap_or(0);
    // A number that has no room ends there.
    let fitting = T::try_from(number).ok().filter(|_| (1..i64::MAX).contains(&number));
    fitting.ok_or_else(|| match number {
        ..=0 => invalid_value(long, text, "a whole number greater than 0"),
        _ => invalid_value(long, text, "a smaller number"),
    })
}

fn window(line: &mut CommandLine, long: &str, text: &str) -> Result<u64, String> {
    let objects = Some(kibi(line, long, text)?).filter(|objects| *objects > 0);
    accept(long, text, objects, "a window of at least 1k objects")
}

fn value_size(line: &mut CommandLine, long: &str, text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(integer(line, long, text).unwrap_or(0)).ok();
    let bytes = bytes.filter(|bytes| (1..=VALUE_BYTES_MAX).contains(bytes));
    accept(long, text, bytes, &format!("from 1 to {VALUE_BYTES_MAX} bytes"))
}

fn seed(long: &str, text: &str) -> Result<u64, String> {
    accept(long, text, text.parse().ok(), "a whole number of at most 64 bits")
}

fn share(line: &mut CommandLine, long: &str, text: &str) -> Result<f64, String> {
    let (share, rest) = split_number(text).unwrap_or_default();
    warn_of_rest(line, long, text, rest, share);
    // Billionths are the finest parts that a plan has.
    let share = Some(share).filter(|share| (1e-9..=1.0).contains(share));
    accept(long, text, share, "a share above 0 and up to 1, such as 0.05")
}

/// A number from 0 with its unit behind it, which is the last character.
fn with_unit(
    line: &mut CommandLine,
    long: &str,
    text: &str,
    units: &[(char, u64)],
    accepted: &str,
) -> Result<u64, String> {
    let read = || {
        let unit = text.chars().last()?;
        let (_, factor) = units.iter().find(|(letter, _)| *letter == unit.to_ascii_lowercase())?;
        let (number, rest) = split_integer(&text[..text.len() - unit.len_utf8()])?;
        Some((u64::try_from(number).ok()?.saturating_mul(*factor), rest, format!("{number}{unit}")))
    };
    let (number, rest, as_read) = accept(long, text, read(), accepted)?;
    warn_of_rest(line, long, text, rest, as_read);
    Ok(number)
}

fn seconds(line: &mut CommandLine, long: &str, text: &str) -> Result<u64, String> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let accepted = "a number greater than 0 and s, m, h or d behind it, such as 24h";
    match with_unit(line, long, text, &units, accepted)? {
        0 => Err(invalid_value(long, text, accepted)),
        seconds @ ..=SECONDS_MAX => Ok(seconds),
        _ => Err(invalid_value(long, text, "up to a hundred years")),
    }
}

fn kibi(line: &mut CommandLine, long: &str, text: &str) -> Result<u64, String> {
    let units = [('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];
    let accepted = "a number and k, m or g behind it, such as 10k, which is 10 * 1024";
    match with_unit(line, long, text, &units, accepted)? {
        u64::MAX => Err(invalid_value(long, text, "a smaller number")),
        number => Ok(number),
    }
}

/// memaslap's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: OPTIONS,
    table: &[
        ("--server", "--servers"),
        ("--connections", "connections (--concurrency × --conn_sock × --rep_write)"),
        ("client-connections", "--conn_sock"),
        ("--multiget", "--division"),
        ("--popularity window:", "--win_size "),
        ("--popularity window", "--win_size"),
        ("invalid value 'ranges:*' for --key-size", "invalid value '*' for sizes of keys (--cfg_cmd)"),
        ("invalid value 'ranges:*' for --value-size", "invalid value '*' for sizes of values (--cfg_cmd)"),
        ("invalid value 'fixed:*' for --value-size", "invalid value '*' for --fixed_size"),
        ("--value-size ranges:", "sizes of values (--cfg_cmd) "),
        ("--value-size fixed:", "--fixed_size "),
        ("--key-size", "sizes of keys (--cfg_cmd)"),
        ("--value-size", "sizes of values (--cfg_cmd, --fixed_size)"),
        ("call-rate", "--tps"),
        ("--requests", "--execute_number"),
        ("--replicas", "--rep_write"),
        ("--mix", "shares of set and get (--cfg_cmd)"),
        ("use --no-preload and a --mix that only reads", "sets that fill the windows are such requests, too"),
        ("transport udp", "UDP"),
        ("--protocol memcached-text", "the text protocol"),
        ("--protocol memcached-binary", "--binary"),
    ],
};

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// Text of `--version`.
pub const VERSION: &str = "memaslap v1.0";
/// The port of a server that is named without one.
pub(crate) const PORT: u16 = 11211;

/// Text of `--help`.
pub fn help() -> String {
    crate::options::help(
        &format!(
            "{VERSION}\n    Loads memcached servers and prints what came of it (brunt memaslap).\n\nUsage:\n    \
             memaslap -hV | -s servers [-F config_file] [-t time | -x exe_num] [...]\n"
        ),
        OPTIONS,
        "\nExamples:\n    memaslap -s 127.0.0.1:11211 -S 5s\n    \
         memaslap -s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b\n    \
         memaslap -s 127.0.0.1:11211 -F config -t 2m -w 40k -S 20s -o 0.2\n    \
         memaslap -s 127.0.0.1:11211 -F config -t 2m -T 4 -c 128 -d 20 -P 40k\n    \
         memaslap -s 127.0.0.1:11211 -F config -t 2m -d 50 -a -n 40\n    \
         memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m\n    \
         memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m -p 2\n\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::{cases, changed_fields, words};

    fn parsed(line: &str) -> Result<Action<CommandLine>, Refusal> {
        parse(&words(line), &|_| None)
    }

    fn run(line: &str) -> CommandLine {
        parsed(line).unwrap().run()
    }

    #[test]
    fn command_lines_are_parsed() {
        // (options beside -s h, what they change)
        let table = cases(
            r#"
            -T 1 => ''
            -T2 -c 8 => threads: 2; concurrency: 8
            --thr 4abc --conc=16.9 => threads: 4
            -c 8 -c 32 => concurrency: 32
            -n 4 -d 20 => conn_sock: 4; division: 20
            --exec 4294967297 => execute_number: Some(4294967297)
            -t 2m => time_s: 120
            --time=24H => time_s: 86400
            -t 1.9d => time_s: 86400
            -w 1K -P40k => win_size: 1024; tps: 40960
            --win_size=2m -P 0k => win_size: 2097152
            -X 2m => fixed_size: Some(2)
            -v 0.5abc -o0.9 => verify: 0.5; overwrite: 0.9
            -e 1 => exp_verify: 1.0
            -S 2d => stat_freq_s: Some(172800)
            -RB -p 2 => reconnect: true; binary: true; rep_write: Some(2)
            -Ua --verb -v 1 => verify: 1.0; udp: true; facebook: true; verbose: true
            -F f --cfg g => cfg_cmd: Some("g")
            --seed 7 --quiet => seed: Some(7); quiet: true
            // Ours yield to memaslap's.
            --se x => servers: "x"
            --see 1 --leg => seed: Some(1); legacy_exit: true
            --per --pri => printable_keys: true; percentiles: true
        "#,
        );
        for [options, expected] in table {
            let line = CommandLine { warnings: Vec::new(), ..run(&format!("-s h {options}")) };
            assert_eq!(changed_fields(&run("-s h"), &line), expected, "{options}");
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
            ("-t 1s -x 10", "--time: without effect; --execute_number ends the run"),
            ("-bB", "--verbose: without effect; nothing is verified"),
        ];
        for (options, warning) in table {
            assert_eq!(run(&format!("-s h {options}")).warnings, [warning], "{options}");
        }
    }

    #[test]
    fn invalid_options_are_rejected() {
        // (command line, message), of those that the help does not follow and of those that it does
        let tables = [
            (
                r"
                -T 0 => invalid value '0' for --threads: expected a whole number greater than 0
                -c x => invalid value 'x' for --concurrency: expected a whole number greater than 0
                -c -5 => invalid value '-5' for --concurrency: expected a whole number greater than 0
                -c 5000000000 => invalid value '5000000000' for --concurrency: expected a smaller number
                -x 0 => invalid value '0' for --execute_number
                -x 9223372036854775807 => invalid value '9223372036854775807' for --execute_number: expected a smaller number
                -x 99999999999999999999 => invalid value '99999999999999999999' for --execute_number: expected
                -t 10 => invalid value '10' for --time: expected a number greater than 0 and s, m, h or d behind it
                -t 0s => invalid value '0s' for --time: expected a number greater than 0
                -t -5s => invalid value '-5s' for --time: expected a number greater than 0
                -t 9999999d => invalid value '9999999d' for --time: expected up to a hundred years
                -S 5 => invalid value '5' for --stat_freq: expected a number greater than 0 and s
                -w 10 => invalid value '10' for --win_size: expected a number and k, m or g behind it
                -w 0k => invalid value '0k' for --win_size: expected a window of at least 1k objects
                -w -1k => invalid value '-1k' for --win_size: expected a number and k
                -w junk => invalid value 'junk' for --win_size: expected a number and k
                -P junk => invalid value 'junk' for --tps: expected a number and k, m or g behind it
                -P 100 => invalid value '100' for --tps: expected a number and k
                -X 2000000 => invalid value '2000000' for --fixed_size: expected from 1 to 1048576 bytes
                -v 1.5 => invalid value '1.5' for --verify: expected a share above 0 and up to 1
                -o 0 => invalid value '0' for --overwrite: expected a share
                -e nan => invalid value 'nan' for --exp_verify: expected a share
                -p 0 -s h => invalid value '0' for --rep_write
                --seed x => invalid value 'x' for --seed: expected a whole number of at most 64 bits
                -s h --bogus => '--bogus' is no option; --help lists them
                -s h --ver => '--ver' may be any of --verify --verbose --version
                -s h -c => -c needs a value
                // Options in their order, then servers, then threads.
                -T 0 --bogus => invalid value '0' for --threads
            ",
                false,
            ),
            (
                r"
                -t 1s => No servers provided
                -T 3 => No servers provided
                -s , => No servers provided
                -s h -T 3 => invalid value '16' for --concurrency: expected a multiple of --threads, 3
            ",
                true,
            ),
        ];
        for (table, shows_help) in tables {
            for [line, message] in cases(table) {
                let refusal = parsed(line).unwrap_err();
                assert!(
                    refusal.message.starts_with(message) && refusal.shows_help == shows_help,
                    "{line}: {refusal:?}"
                );
            }
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
