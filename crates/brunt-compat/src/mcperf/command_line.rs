//! mcperf's options and ours: a command line becomes typed values that each lie in their range.
//!
//! Not what they come to together: that is [`super::invocation`]. Invariant: whatever is given is in a field, in a warning or in
//! a refusal.

use crate::front_end::Refusal;
use crate::mutilate::command_line::OPTIONS as MUTILATE_OPTIONS;
use crate::names::Names;
use crate::options::{
    Action, FLAG, Fault, ParsedOptions, Rule, VALUE, accept, invalid_value, natural, options, real,
    scan_to_fault,
};
use brunt_plan::distribution::McperfShape;
use brunt_plan::op::OpKind;
use brunt_plan::plan::Wait;
use brunt_plan::units::DurationNs;

/// Every method.
pub const METHODS: [OpKind; 11] = [
    OpKind::Get,
    OpKind::Gets,
    OpKind::Delete,
    OpKind::Cas,
    OpKind::Set,
    OpKind::Add,
    OpKind::Replace,
    OpKind::Append,
    OpKind::Prepend,
    OpKind::Incr,
    OpKind::Decr,
];

/// The highest level of messages.
const VERBOSITY_MAX: u64 = 11;
/// mcperf keeps its numbers in 32 bits.
const COUNT_MAX: u64 = u32::MAX as u64;
/// The longest prefix of keys.
const PREFIX_BYTES_MAX: usize = 16;
/// A century, in seconds.
const SECONDS_MAX: f64 = 100.0 * 366.0 * 86_400.0;

options! {
    /// A command line that asks for a run, with mcperf's defaults.
    set(line, long, text) -> String {
        "help": FLAG.short('h').help("", "print this");
        "version": FLAG.short('V').help("", "print the version");
        "verbosity": VALUE.short('v')
            .help("N", "level of messages: 3 none, 4 warnings, 5 notes, 6 connections; 0 to 11 (default: 5)")
            => verbosity: u64 = 5, whole(long, text)?.min(VERBOSITY_MAX);
        "output": VALUE.short('o').help("S", "write messages into this file, too")
            => output: Option<String> = None, Some(text.to_owned());
        "server": VALUE.short('s').help("S", "host of the server, or the path of a Unix socket (default: localhost)")
            => server: String = "localhost".to_owned(), text.to_owned();
        "port": VALUE.short('p').help("N", "port of the server (default: 11211)")
            => port: u16 = 11211, port(long, text)?;
        "print-histogram": FLAG.short('H').help("", "print a histogram of response times")
            => print_histogram: bool = false, true;
        "timeout": VALUE.short('t')
            .help("X", "give up a connection after so many seconds without a reply (default: 10)")
            => timeout: Option<DurationNs> = None, timeout(long, text)?;
        "linger": VALUE.short('l').help("N", "SO_LINGER in seconds; 0 closes by a reset (default: off)")
            => linger_s: Option<u64> = None, Some(whole(long, text)?);
        "send-buffer": VALUE.short('b').help("N", "send buffer of sockets in bytes (default: 4096)")
            => send_buffer: u64 = 4096, whole(long, text)?;
        "recv-buffer": VALUE.short('B').help("N", "receive buffer of sockets in bytes (default: 16384)")
            => recv_buffer: u64 = 16384, whole(long, text)?;
        "disable-nodelay": FLAG.short('D').help("", "leave TCP_NODELAY off")
            => disable_nodelay: bool = false, true;
        "method": VALUE.short('m').help("M", "what every call does (default: set)")
            => method: OpKind = OpKind::Set, method(long, text)?;
        "expiry": VALUE.short('e')
            .help("N", "expiry of what is stored: seconds, or a Unix time (default: 0, never)")
            => expiry_s: u64 = 0, whole(long, text)?;
        "use-noreply": FLAG.short('q').help("", "ask for no reply; not with get and gets")
            => use_noreply: bool = false, true, line.method.is_retrieval() => "get and gets have replies";
        "prefix": VALUE.short('P').help("S", "front of all keys, up to 16 bytes (default: mcp:)")
            => prefix: String = "mcp:".to_owned(), prefix(long, text)?;
        "client": VALUE.short('c').help("I/N", "client I of N: seed of what is drawn (default: 0/1)")
            => /** The first number of `--client`. */ client: u32 = 0, client(long, text)?;
        "num-conns": VALUE.short('n').help("N", "connections in all (default: 1)")
            => num_conns: u64 = 1, whole(long, text)?;
        "num-calls": VALUE.short('N').help("N", "calls of each connection (default: 1)")
            => num_calls: u64 = 1, whole(long, text)?;
        "conn-rate": VALUE.short('r').help("R", "when connections are begun (default: 0)") =>
            /// None: a connection is begun when the one before it has ended.
            conn_rate: Option<McperfShape> = None, drawn(long, text)?;
        "call-rate": VALUE.short('R').help("R", "when the calls of a connection are made (default: 0)") =>
            /// None: a call is begun when the one before it has ended.
            call_rate: Option<McperfShape> = None, drawn(long, text)?;
        "sizes": VALUE.short('z').help("R", "bytes of values, or what incr and decr add (default: d1)")
            => sizes: McperfShape = McperfShape::Fixed(1.0), sizes(long, text)?;
        "fine": FLAG.ours().help("", "histogram in steps of 0.1 ms, times to the microsecond")
            => fine: bool = false, true;
        "wait": VALUE.ours().help("W", "between calls: sleep, hybrid or spin (default: hybrid)")
            => wait: Option<Wait> = None, Some(wait(long, text)?);
        "legacy-latency": FLAG.ours()
            .help("", "response times from when a call was sent, not from when it was due")
            => legacy_latency: bool = false, true;
        "legacy-exit": FLAG.ours().help("", "exit with 0 whatever became of the run, as mcperf does")
            => legacy_exit: bool = false, true;
    }
}

/// Reads a command line without the program's name. Options are carried out in their order, so that the first that is wrong is the one
/// that is told; help and version come when all are right.
///
/// # Errors
/// The message for the user.
pub fn parse(arguments: &[String]) -> Result<Action<CommandLine>, Refusal> {
    parse_words(arguments).map_err(|message| Refusal { message, shows_help: true, ..Refusal::default() })
}

fn parse_words(arguments: &[String]) -> Result<Action<CommandLine>, String> {
    let (parsed, fault) = scan_to_fault(OPTIONS, arguments);
    let mut line = CommandLine::default();
    line.apply(&parsed)?;
    if let Some(fault) = fault {
        return Err(in_words(&fault));
    }
    if let Some(answer) = parsed.answer() {
        return Ok(answer);
    }
    for (long, count) in [("num-conns", line.num_conns), ("num-calls", line.num_calls)] {
        if count == 0 {
            return Err(invalid_value(long, "0", "a whole number from 1"));
        }
    }
    let sizes = parsed.given.iter().rfind(|given| given.long == "sizes");
    let sizes = sizes.and_then(|given| given.value.as_deref());
    let bare = sizes.filter(|text| !text.starts_with(|first: char| first.is_ascii_alphabetic()));
    if let (Some(given), McperfShape::Fixed(bytes)) = (bare, line.sizes) {
        line.warnings.push(format!(
            "--sizes: '{given}' without a letter is a rate: values of 1/{given} bytes, which is {}; d{given} means \
             {given} bytes",
            bytes.round_ties_even()
        ));
    }
    Ok(Action::Run(Box::new(line)))
}

fn in_words(fault: &Fault) -> String {
    match fault {
        Fault::Unknown(option) if is_of_memcache_perf(option) => format!(
            "{fault}; it is one of memcache-perf, a mutilate whose program is named mcperf as well: \
             `brunt mutilate` takes its command lines"
        ),
        _ => fault.to_string(),
    }
}

/// memcache-perf has mutilate's options.
fn is_of_memcache_perf(option: &str) -> bool {
    MUTILATE_OPTIONS.iter().filter(|rule| !rule.is_ours).any(|rule| match option.strip_prefix("--") {
        Some(name) => name.len() > 2 && rule.long.starts_with(name),
        None => rule
            .short
            .is_some_and(|letter| option.strip_prefix('-').is_some_and(|given| given.starts_with(letter))),
    })
}

fn whole(long: &str, text: &str) -> Result<u64, String> {
    let number = natural(text).filter(|number| *number <= COUNT_MAX);
    accept(long, text, number, &format!("a whole number from 0 to {COUNT_MAX}"))
}

fn port(long: &str, text: &str) -> Result<u16, String> {
    let port = natural(text).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    accept(long, text, port, "a port from 1 to 65535")
}

fn prefix(long: &str, text: &str) -> Result<String, String> {
    let prefix = (text.len() <= PREFIX_BYTES_MAX).then(|| text.to_owned());
    accept(long, text, prefix, &format!("up to {PREFIX_BYTES_MAX} bytes"))
}

fn sizes(long: &str, text: &str) -> Result<McperfShape, String> {
    accept(long, text, drawn(long, text)?, "a distribution of sizes above 0, such as d100, u1,16 or e50")
}

fn wait(long: &str, text: &str) -> Result<Wait, String> {
    accept(long, text, text.parse().ok(), "sleep, hybrid or spin")
}

/// Seconds; 0 is none.
fn timeout(long: &str, text: &str) -> Result<Option<DurationNs>, String> {
    let seconds = real(text).filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    let seconds = accept(long, text, seconds, "seconds from 0, such as 0.5; 0 is none")?;
    Ok((seconds > 0.0).then(|| DurationNs((seconds * 1e9).ceil() as u64)))
}

fn method(long: &str, text: &str) -> Result<OpKind, String> {
    let method = METHODS.into_iter().find(|method| method.name() == text);
    accept(long, text, method, &METHODS.map(OpKind::name).join(", "))
}

fn client(long: &str, text: &str) -> Result<u32, String> {
    let number = |text: &str| natural(text).and_then(|number| u32::try_from(number).ok());
    let both = text.split_once('/').and_then(|(client, of)| number(client).zip(number(of)));
    accept(long, text, both, "I/N, client I of N, such as 3/16").map(|(client, _)| client)
}

fn drawn(long: &str, text: &str) -> Result<Option<McperfShape>, String> {
    let accepted = "a rate R, or dR, uMIN,MAX, eMEAN or sFIRST with numbers above 0, MIN up to MAX";
    accept(long, text, distribution(text), accepted)
}

/// Reads `[d|u|e|s]R1[,R2]`, or a rate without a letter; nothing is drawn where that is `0`. A number N without a letter is a rate, and
/// 1/N is drawn.
fn distribution(text: &str) -> Option<Option<McperfShape>> {
    let above_zero = |text: &str| real(text).filter(|number| *number > 0.0);
    let mut letters = text.chars();
    let (letter, numbers) = (letters.next()?, letters.as_str());
    match letter {
        'd' => above_zero(numbers).map(McperfShape::Fixed).map(Some),
        'e' => above_zero(numbers).map(McperfShape::Exponential).map(Some),
        's' => above_zero(numbers).map(McperfShape::Sequential).map(Some),
        'u' => {
            let (min, max) = numbers.split_once(',')?;
            let (min, max) = (above_zero(min)?, above_zero(max)?);
            (min <= max).then_some(Some(McperfShape::Uniform(min, max)))
        }
        _ => match real(text)? {
            0.0 => Some(None),
            rate => (rate > 0.0 && (1.0 / rate).is_finite()).then_some(Some(McperfShape::Fixed(1.0 / rate))),
        },
    }
}

/// mcperf's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: OPTIONS,
    table: &[
        ("--connections", "--num-conns"),
        ("connections-total", "--num-conns"),
        ("--calls-per-connection", "--num-calls"),
        ("--connect-rate", "--conn-rate"),
        ("connect-arrival", "--conn-rate"),
        ("call-arrival", "--call-rate"),
        ("call-rate", "--call-rate"),
        ("--value-size", "--sizes"),
        ("for delta", "for --sizes"),
        ("--key-size", "--prefix"),
        ("--ttl", "--expiry"),
        ("--mix", "--method"),
        ("--noreply", "--use-noreply"),
        ("send-buffer", "--send-buffer"),
        ("receive-buffer", "--recv-buffer"),
        ("nodelay=false", "--disable-nodelay"),
        ("for linger", "for --linger"),
        ("linger requires", "--linger requires"),
        ("--wait sleep", "--wait=sleep"),
    ],
};

/// Exit code of everything that goes wrong.
pub const EXIT_FAILED: u8 = 1;
/// Exit code behind the report of a run that a signal has ended.
pub const EXIT_INTERRUPTED: u8 = 130;
/// Text of `--version`.
pub const VERSION: &str = "This is mcperf-0.1.1";

/// Text of `--help` behind the version, and what follows a mistake.
pub fn help() -> String {
    let methods = METHODS.map(OpKind::name).join(", ");
    let text = crate::options::help(
        "Usage: mcperf [options]\n",
        OPTIONS,
        &format!(
            "\nWhere:\n  N is a whole number, X a real one, S a text\n  M is one of {methods}\n  R says what is drawn:\n    \
             dR1      always R1\n    uR1,R2   evenly from R1 to R2\n    eR1      exponentially, with mean R1\n    \
             sR1      R1, R1+1, R1+2 and so on\n    \
             R1       a rate: always 1/R1 (of sizes, too); 0: each when the one before has ended\n  \
             seconds between connections or calls, and bytes of sizes\n"
        ),
    );
    // Lines end so on a terminal of mcperf's, and scripts that cut them know it.
    text.replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::{cases, changed_fields, words};
    use McperfShape::{Exponential, Fixed, Sequential, Uniform};

    fn parsed(line: &str) -> Result<Action<CommandLine>, String> {
        parse_words(&words(line))
    }

    fn run(line: &str) -> CommandLine {
        parsed(line).unwrap().run()
    }

    #[test]
    fn options_become_values() {
        // (command line, what it changes)
        let table = cases(
            r#"
            -N 1 => ''
            -p22 -n1000 => port: 22; num_conns: 1000
            --num-co=3 --num-ca 4 --meth gets => method: Gets; num_conns: 3; num_calls: 4
            -N 2 -N 3 --num-calls=4 => num_calls: 4
            -N 0 -N 3 => num_calls: 3
            -HDq => print_histogram: true; disable_nodelay: true; use_noreply: true
            -v 99 -o f => verbosity: 11; output: Some("f")
            -t 0.5 => timeout: Some(DurationNs(500000000))
            -t 5 -t 0 => ''
            -l 0 -b 0 -B 65536 => linger_s: Some(0); send_buffer: 0; recv_buffer: 65536
            -s /tmp/mc.sock -D => server: "/tmp/mc.sock"; disable_nodelay: true
            -e 1700000000 -P abcdefghijklmnop => expiry_s: 1700000000; prefix: "abcdefghijklmnop"
            -c 5/2 => client: 5
            -r 1000 -R e0.001 -z u1,16
                => conn_rate: Some(Fixed(0.001)); call_rate: Some(Exponential(0.001)); sizes: Uniform(1.0,16.0)
            -r 5 --conn-rate=0 => ''
            --fine --wait sleep --legacy-exit --legacy-latency
                => fine: true; wait: Some(Sleep); legacy_latency: true; legacy_exit: true
        "#,
        );
        for [text, expected] in table {
            assert_eq!(changed_fields(&CommandLine::default(), &run(text)), expected, "{text}");
        }
        for method in METHODS {
            assert_eq!(run(&format!("-m {}", method.name())).method, method);
        }
    }

    #[test]
    fn help_and_version_come_when_everything_is_right() {
        assert_eq!(parsed("-V"), Ok(Action::Version));
        assert_eq!(parsed("-V -h -n 0"), Ok(Action::Help));
        assert!(parsed("-h -n x").is_err());
        assert!(parsed("-V --bogus").is_err());
    }

    #[test]
    fn invalid_options_are_named() {
        let table = cases(
            r"
            -m foo
                => invalid value 'foo' for --method: expected get, gets, delete, cas, set, add, replace, append, prepend, incr, decr
            -m xxx => invalid value 'xxx' for --method
            -p 70000 => invalid value '70000' for --port: expected a port from 1 to 65535
            -p x => invalid value 'x' for --port: expected a port from 1 to 65535
            -n x => invalid value 'x' for --num-conns: expected a whole number from 0 to 4294967295
            -n -1 => invalid value '-1' for --num-conns
            -n 0 => invalid value '0' for --num-conns: expected a whole number from 1
            -N 0 => invalid value '0' for --num-calls: expected a whole number from 1
            -N 4294967297 => invalid value '4294967297' for --num-calls
            -t abc => invalid value 'abc' for --timeout: expected seconds from 0
            -t inf => invalid value 'inf' for --timeout
            -z 0 => invalid value '0' for --sizes: expected a distribution of sizes above 0
            -r -5 => invalid value '-5' for --conn-rate: expected a rate R, or dR
            -z u5,1 => invalid value 'u5,1' for --sizes: expected a rate R, or dR, uMIN,MAX
            -c 3 => invalid value '3' for --client: expected I/N, client I of N, such as 3/16
            -c x/3 => invalid value 'x/3' for --client
            -P abcdefghijklmnopq => invalid value 'abcdefghijklmnopq' for --prefix: expected up to 16 bytes
            -j => '-j' is no option; --help lists them
            -? => '-?' is no option
            --bogus => '--bogus' is no option; --help lists them
            --num=3 => '--num' may be any of --num-conns --num-calls
            -n => -n needs a value
            --output => --output needs a value
            -H --fine=2 => invalid value '2' for --fine: it takes no value
            --wait soon => invalid value 'soon' for --wait: expected sleep, hybrid or spin
            // The first that is wrong, in the order of the line.
            -m foo -n x -j => invalid value 'foo' for --method
            -j -m foo => '-j' is no option
        ",
        );
        for [text, message] in table {
            let told = parsed(text).unwrap_err();
            assert!(told.starts_with(message), "{text}: {told}");
        }
    }

    #[test]
    fn options_of_memcache_perf_are_recognized() {
        for text in [
            "-s h --noload",
            "-T 16 -s h",
            "--scan 1000:2000:500",
            "-s h -K fb_key",
            "--blocking",
            "-w 2",
            "--load",
        ] {
            let told = parsed(text).unwrap_err();
            assert!(told.contains("`brunt mutilate` takes its command lines"), "{text}: {told}");
        }
    }

    #[test]
    fn surprising_values_get_a_remark() {
        assert_eq!(
            run("x -N 2 y").warnings,
            ["'x' belongs to no option and has no effect", "'y' belongs to no option and has no effect",]
        );
        let warned = |text: &str| run(text).warnings.join("; ");
        assert_eq!(
            warned("-z d7 --sizes=100"),
            "--sizes: '100' without a letter is a rate: values of 1/100 bytes, which is 0; d100 means 100 bytes"
        );
        assert!(warned("-z 0.01").contains("values of 1/0.01 bytes, which is 100;"));
        assert_eq!(warned("-z 100 -z d100"), "");
    }

    #[test]
    fn distributions_are_parsed() {
        let table = [
            ("0", None),
            ("0.0", None),
            ("-0", None),
            ("1000", Some(Fixed(0.001))),
            ("0.01", Some(Fixed(100.0))),
            ("0x10", Some(Fixed(0.0625))),
            ("d1", Some(Fixed(1.0))),
            ("d0.001", Some(Fixed(0.001))),
            ("u1,16", Some(Uniform(1.0, 16.0))),
            ("u1000,1000", Some(Uniform(1000.0, 1000.0))),
            ("u 1, 16", Some(Uniform(1.0, 16.0))),
            ("e50", Some(Exponential(50.0))),
            ("s5", Some(Sequential(5.0))),
        ];
        for (text, expected) in table {
            assert_eq!(distribution(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_distributions_are_rejected() {
        for text in ["-5", "x", "", "inf", "1e-320", "d0", "e", "s-1", "u5", "u0,5", "u1,x", "u1,2,3", "u5,1"]
        {
            assert_eq!(distribution(text), None, "{text}");
        }
    }
}
