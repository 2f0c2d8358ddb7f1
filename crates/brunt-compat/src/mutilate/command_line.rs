//! mutilate's options, those of both generations: a command line becomes typed values that each lie in their range.
//!
//! Not what they come to together: that is [`super::invocation`]. Invariant: whatever is given is in a field, in a warning or in
//! a refusal.

use super::EXIT_SYNTAX;
use super::host_options::MasterOptions;
use super::invalid_option::{InvalidOption, stray_warning};
use super::numbers::Numbers;
use crate::hosts::AgentMode;
use crate::options::{FLAG, INTEGER, ParsedOptions, Rule, VALUE, leading_number, options, scan};

/// Options that the second generation brought: with one of them the report has its columns.
const OF_SECOND_GENERATION: [&str; 12] = [
    "unix_socket",
    "redis",
    "getset",
    "getsetorset",
    "successful",
    "prefix",
    "delete90",
    "assoc",
    "read_file",
    "twitter_trace",
    "misswindow",
    "queries",
];

/// `--scan MIN:MAX:STEP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// The first rate; 0 is as fast as it goes.
    pub min: u64,
    /// No rate is above it.
    pub max: u64,
    /// Above 0.
    pub step: u64,
}

/// `--search N:X`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchBound {
    /// Which percentile, above 0 and below 100.
    pub percentile: f64,
    /// Its bound in microseconds.
    pub bound_us: f64,
}

options! {
    /// A command line that asks for a run, with mutilate's defaults.
    read(parsed: &ParsedOptions, numbers: &Numbers) {
        "help": FLAG.short('h').ending();
        "version": FLAG.ending();
        "verbose": FLAG.short('v').repeated() => verbose: usize = parsed.count("verbose");
        "quiet": FLAG => quiet: bool = parsed.has("quiet");
        "server": VALUE.short('s').repeated() => servers: Vec<String> = parsed.list("server");
        "binary": FLAG => binary: bool = parsed.has("binary");
        "qps": INTEGER.short('q') => qps: u64 = numbers.count("qps", 0);
        "time": INTEGER.short('t') => time_s: u64 = numbers.count("time", 5);
        "keysize": VALUE.short('K')
            => keysize: String = text(parsed, "keysize").unwrap_or_else(|| "30".to_owned());
        "valuesize": VALUE.short('V')
            => valuesize: String = text(parsed, "valuesize").unwrap_or_else(|| "200".to_owned());
        "records": INTEGER.short('r') => records: u64 = numbers.count("records", 10_000);
        "update": VALUE.short('u') => update: f64 = numbers.update;
        "username": VALUE.short('U') => username: Option<String> = text(parsed, "username");
        "password": VALUE.short('P') => password: Option<String> = text(parsed, "password");
        "threads": INTEGER.short('T') => threads: u32 = numbers.count("threads", 1) as u32;
        "affinity": FLAG => affinity: bool = parsed.has("affinity");
        "connections": INTEGER.short('c') => connections: u32 = numbers.count("connections", 1) as u32;
        "depth": INTEGER.short('d') => depth: u32 = numbers.count("depth", 1) as u32;
        "roundrobin": FLAG.short('R') => roundrobin: bool = parsed.has("roundrobin");
        "iadist": VALUE.short('i') => iadist: Option<String> = text(parsed, "iadist");
        "skip": FLAG.short('S') => skip: bool = parsed.has("skip");
        "moderate": FLAG => moderate: bool = parsed.has("moderate");
        "noload": FLAG => noload: bool = parsed.has("noload");
        "loadonly": FLAG => loadonly: bool = parsed.has("loadonly");
        "blocking": FLAG.short('B') => blocking: bool = parsed.has("blocking");
        "no_nodelay": FLAG => no_nodelay: bool = parsed.has("no_nodelay");
        "warmup": INTEGER.short('w') => warmup_s: u64 = numbers.count("warmup", 0);
        "wait": INTEGER.short('W') => wait_s: u64 = numbers.count("wait", 0);
        "save": VALUE => save: Option<String> = text(parsed, "save");
        "search": VALUE => search: Option<SearchBound> = parsed.value("search").map(search_bound).transpose()?;
        "scan": VALUE => scan: Option<ScanRange> = parsed.value("scan").map(scan_range).transpose()?;
        "agentmode": FLAG.short('A');
        "agent": VALUE.short('a').repeated();
        "agent_port": VALUE.short('p');
        "lambda_mul": INTEGER.short('l');
        "measure_connections": INTEGER.short('C')
            => measure_connections: Option<u32> = numbers.get("measure_connections").map(|count| count as u32);
        "measure_qps": INTEGER.short('Q');
        "measure_depth": INTEGER.short('D');
        "unix_socket": FLAG => unix_socket: bool = parsed.has("unix_socket");
        "redis": FLAG => redis: bool = parsed.has("redis");
        "getset": FLAG => getset: bool = parsed.has("getset");
        "getsetorset": FLAG => getsetorset: bool = parsed.has("getsetorset");
        "successful": FLAG => successful: bool = parsed.has("successful");
        "prefix": VALUE => prefix: String = text(parsed, "prefix").unwrap_or_default();
        "delete90": FLAG => delete90: bool = parsed.has("delete90");
        "assoc": INTEGER =>
            /// Bytes of a field, where keys are split.
            assoc: Option<u32> = numbers.get("assoc").map(|bytes| bytes as u32);
        "read_file": VALUE => read_file: Option<String> = text(parsed, "read_file");
        "twitter_trace": INTEGER
            => twitter_trace: Option<u32> = numbers.get("twitter_trace").map(|layout| layout as u32);
        "misswindow": INTEGER.short('m') =>
            /// 0 is no windows.
            misswindow: u64 = numbers.count("misswindow", 0);
        "queries": INTEGER.short('N') =>
            /// 0 is no bound.
            queries: u64 = numbers.count("queries", 0);
        "legacy-latency": FLAG => legacy_latency: bool = parsed.has("legacy-latency");
        "agent-sampling": FLAG;
        "auth": VALUE;
    }
    /// Agents, where there are any.
    master: Option<MasterOptions> = MasterOptions::of(parsed, numbers)?;
    /// An option of the second generation was given.
    is_second: bool = OF_SECOND_GENERATION.iter().any(|long| parsed.has(long));
}

impl CommandLine {
    /// Is there a rate, in one of the runs at least?
    pub(super) fn is_paced(&self) -> bool {
        let of_master = self.master.as_ref().and_then(|master| master.measure_qps).is_some_and(|qps| qps > 0);
        self.qps > 0 || self.scan.is_some() || self.search.is_some() || of_master
    }

    /// Is a key stored when it is missed?
    pub(super) fn follows(&self) -> bool {
        self.getset || self.getsetorset
    }
}

/// The action that a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--agentmode`.
    Agent(Box<AgentMode>),
    /// Anything else.
    Run(Box<CommandLine>),
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// It cannot be read, or asks for what cannot be done.
pub fn parse(arguments: &[String]) -> Result<Action, InvalidOption> {
    let syntax = |message: String| InvalidOption { code: EXIT_SYNTAX, message };
    let parsed = scan(OPTIONS, arguments).map_err(|fault| syntax(fault.to_string()))?;
    if parsed.has("help") {
        return Ok(Action::Help);
    }
    if parsed.has("version") {
        return Ok(Action::Version);
    }
    let numbers = Numbers::read(OPTIONS, &parsed).map_err(syntax)?;
    check_ranges(&numbers, &parsed)?;
    if parsed.has("agentmode") {
        return Ok(Action::Agent(Box::new(AgentMode::of(&parsed, &numbers)?)));
    }
    check_known(&parsed)?;
    Ok(Action::Run(Box::new(command_line(&parsed, &numbers)?)))
}

/// In mutilate's order.
fn check_ranges(numbers: &Numbers, parsed: &ParsedOptions) -> Result<(), String> {
    let outside = |long: &str, range: std::ops::RangeInclusive<i32>, accepted: &str| {
        let value = numbers.get(long).filter(|value| !range.contains(value));
        value
            .map_or(Ok(()), |value| Err(format!("invalid value '{value}' for --{long}: expected {accepted}")))
    };
    let least = |least: i32| least..=i32::MAX;
    outside("depth", least(1), "1 or more")?;
    outside("qps", least(0), "0 (as fast as it goes) or more")?;
    if !(0.0..=1.0).contains(&numbers.update) {
        return Err(format!(
            "invalid value '{}' for --update: expected the part of requests that are sets, from 0 to 1",
            numbers.update
        ));
    }
    outside("time", least(1), "1 second or more")?;
    outside("connections", 1..=512, "from 1 to 512")?;
    if parsed.list("server").is_empty() && !parsed.has("agentmode") {
        return Err("--server is required: HOST[:PORT] of at least one server".to_owned());
    }
    let is_master = parsed.has("agent") && !parsed.has("agentmode");
    let threads = "1 or more, or 0 beside --agent: without threads of its own only agents send";
    outside("threads", least(if is_master { 0 } else { 1 }), threads)?;
    outside("records", least(1), "1 or more")?;
    outside("measure_connections", 1..=512, "from 1 to 512")?;
    outside("measure_qps", least(0), "0 (as fast as it goes) or more")?;
    outside("measure_depth", least(1), "1 or more")?;
    outside("lambda_mul", least(1), "1 or more")?;
    outside("warmup", least(0), "0 seconds or more")?;
    outside("wait", least(0), "0 seconds or more")?;
    outside("misswindow", least(0), "0 (no windows) or more requests")?;
    outside("twitter_trace", 0..=2, "0, 1 or 2: the layout of --read_file")?;
    outside("assoc", 1..=249, "from 1 to 249 bytes at the end of a key that are the field")?;
    outside("queries", least(0), "0 (no bound) or more")
}

fn check_known(parsed: &ParsedOptions) -> Result<(), String> {
    if parsed.has("assoc") && !parsed.has("redis") {
        return Err("--assoc requires --redis: hashes are Redis's".to_owned());
    }
    if parsed.has("assoc") && parsed.has("binary") {
        return Err(
            "--assoc cannot be used with --binary, which replaces --redis: hashes are Redis's".to_owned()
        );
    }
    if parsed.has("delete90") {
        let is_getset = parsed.has("getset") || parsed.has("getsetorset");
        if !is_getset || !parsed.has("queries") || parsed.has("read_file") {
            return Err("--delete90 requires --getset and --queries, after half of which it deletes; it cannot be used with --read_file".to_owned());
        }
    }
    if parsed.has("unix_socket") && parsed.has("agent") {
        return Err(
            "--unix_socket cannot be used with --agent: no agent opens a file that a master names".to_owned()
        );
    }
    if parsed.has("read_file") && parsed.has("agent") {
        return Err("--read_file cannot be used with --agent: the file is read on this host".to_owned());
    }
    Ok(())
}

fn text(parsed: &ParsedOptions, long: &str) -> Option<String> {
    parsed.value(long).map(str::to_owned)
}

fn command_line(parsed: &ParsedOptions, numbers: &Numbers) -> Result<CommandLine, String> {
    let line = CommandLine::read(parsed, numbers)?;
    if let Some(master) = &line.master {
        master.check(&line)?;
    }
    let mut warnings = warnings(&line, parsed);
    warnings.extend(line.master.iter().flat_map(|master| master.warnings(&line)));
    Ok(CommandLine { warnings, ..line })
}

fn search_bound(text: &str) -> Result<SearchBound, String> {
    let accepted = || {
        format!(
            "invalid value '{text}' for --search: expected N:X, a percentile above 0 and below 100 and its bound in \
             microseconds, such as 95:1000"
        )
    };
    let (percentile, bound) = text.split_once(':').ok_or_else(accepted)?;
    let (percentile, bound_us) = (leading_number(percentile), leading_number(bound));
    let is_read = percentile > 0.0 && percentile < 100.0 && bound_us > 0.0;
    is_read.then_some(SearchBound { percentile, bound_us }).ok_or_else(accepted)
}

fn scan_range(text: &str) -> Result<ScanRange, String> {
    let accepted = || {
        format!(
            "invalid value '{text}' for --scan: expected MIN:MAX:STEP, rates from 0 and a step above 0, such as 1000:5000:1000"
        )
    };
    let fields: Option<Vec<u64>> = text
        .split(':')
        .filter(|field| !field.is_empty())
        .map(|field| u64::try_from(crate::options::leading_integer(field)).ok())
        .collect();
    match fields.ok_or_else(accepted)?.as_slice() {
        [min, max, step, ..] if *step > 0 && min > max => Err(format!(
            "invalid value '{text}' for --scan: expected MIN:MAX:STEP with a MAX of at least MIN, or there is no rate to measure"
        )),
        [min, max, step, ..] if *step > 0 => Ok(ScanRange { min: *min, max: *max, step: *step }),
        _ => Err(accepted()),
    }
}

/// What was given and has no effect, each in a sentence.
fn warnings(line: &CommandLine, parsed: &ParsedOptions) -> Vec<String> {
    let mut warnings: Vec<String> = parsed.strays.iter().map(|stray| stray_warning(stray)).collect();
    warnings.extend(load_warnings(line));
    if line.master.is_none() {
        let options = ["measure_qps", "measure_depth", "lambda_mul", "agent_port", "agent-sampling", "auth"];
        for long in options.into_iter().filter(|long| parsed.has(long)) {
            warnings.push(format!("--{long}: without effect; it is of use with agents only"));
        }
    }
    warnings.extend(replaced_warnings(line, parsed));
    warnings
}

/// Options that the load, the connections or the campaign leave without effect.
fn load_warnings(line: &CommandLine) -> impl Iterator<Item = String> {
    let is_paced = line.is_paced();
    let rules = [
        (
            line.username.is_some() && !line.binary,
            "--username: without effect; credentials are asked for with --binary only",
        ),
        (
            line.password.is_some() && line.username.is_none(),
            "--password: without effect; nobody logs in without --username",
        ),
        (line.affinity && line.threads == 1, "--affinity: without effect; one thread is not pinned"),
        (
            line.roundrobin && line.threads == 1 && line.master.is_none(),
            "--roundrobin: without effect; one thread has connections to every server",
        ),
        (
            line.iadist.is_some() && !is_paced,
            "--iadist: without effect; without --qps a request follows a reply, and nothing is drawn",
        ),
        (
            line.skip,
            "--skip: without effect; a request that is late is sent all the same, for leaving it out would hide how long it waited",
        ),
        (
            line.moderate && is_paced,
            "--moderate: without effect on requests that a rate makes due; it moves none of them",
        ),
        (
            line.no_nodelay && line.unix_socket,
            "--no_nodelay: without effect; a path is reached without TCP, and nothing is kept back",
        ),
        (line.save.is_some() && line.scan.is_some(), "--save: without effect; a scan saves no samples"),
        (line.scan.is_some() && line.search.is_some(), "--scan: without effect; --search was given as well"),
        (
            line.loadonly && (line.scan.is_some() || line.search.is_some()),
            "--scan and --search: without effect; --loadonly measures nothing",
        ),
    ];
    applying(rules)
}

/// Options that another one replaces.
fn replaced_warnings(line: &CommandLine, parsed: &ParsedOptions) -> impl Iterator<Item = String> {
    let has = |long: &str| parsed.has(long);
    let rules = [
        (line.binary && line.redis, "--redis: without effect; --binary was given as well"),
        (
            line.follows() && line.read_file.is_none() && has("update"),
            "--update: without effect; with --getset every request is a get, and a set follows a miss",
        ),
        (
            line.read_file.is_some() && has("update"),
            "--update: without effect; the lines of --read_file say what is asked for",
        ),
        (line.getset && line.getsetorset, "--getsetorset: without effect; --getset was given as well"),
        (
            line.twitter_trace.is_some() && line.read_file.is_none(),
            "--twitter_trace: without effect; it is the layout of --read_file",
        ),
        (
            line.twitter_trace.is_some() && line.read_file.is_some() && line.getset,
            "--twitter_trace: without effect; with --getset the columns of --read_file are T,App,Req,Key,ValueLen",
        ),
        (
            line.read_file.is_some() && has("time"),
            "--time: without effect; the run ends with the last line of --read_file",
        ),
        (
            line.queries > 0 && line.read_file.is_none() && has("time"),
            "--time: without effect; the run ends after --queries",
        ),
        (line.successful && line.search.is_some(), "--successful: --search judges all reads"),
        (
            line.master.is_none() && line.measure_connections.is_some() && has("connections"),
            "--connections: without effect; --measure_connections was given as well",
        ),
    ];
    applying(rules)
}

fn applying<const N: usize>(rules: [(bool, &str); N]) -> impl Iterator<Item = String> {
    rules.into_iter().filter(|(applies, _)| *applies).map(|(_, warning)| warning.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::words;

    fn parsed(line: &str) -> Result<CommandLine, InvalidOption> {
        match parse(&words(line))? {
            Action::Run(line) => Ok(*line),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_mutilates() {
        let line = parsed("-s h").unwrap();
        assert_eq!((line.qps, line.time_s, line.records, line.update), (0, 5, 10_000, 0.0));
        assert_eq!((line.threads, line.connections, line.depth), (1, 1, 1));
        assert_eq!((line.keysize.as_str(), line.valuesize.as_str()), ("30", "200"));
        assert!(line.warnings.is_empty() && !line.is_second);
    }

    #[test]
    fn errors_have_mutilates_exit_codes() {
        let table = [
            ("-s h --bogus", 1, "'--bogus' is no option"),
            ("-s h --meas 1", 1, "'--meas' may be any of"),
            ("-s h -q 1 -q 2", 1, "--qps was given twice"),
            ("-s", 1, "-s needs a value"),
            ("-s h -q 10k", 1, "invalid value '10k' for --qps: expected a whole number"),
            ("-s h -loadonly", 1, "invalid value 'oadonly' for --lambda_mul"),
            ("-s h -d 0 -q -1", 255, "invalid value '0' for --depth"),
            ("-s h -q -1", 255, "invalid value '-1' for --qps"),
            ("-s h -u 1.5", 255, "invalid value '1.5' for --update"),
            ("-s h -t 0", 255, "invalid value '0' for --time"),
            ("-s h -c 513", 255, "invalid value '513' for --connections: expected from 1 to 512"),
            ("-t 1", 255, "--server is required"),
            ("-s h --search 95", 255, "invalid value '95' for --search"),
            ("-s h --scan 1:2", 255, "invalid value '1:2' for --scan"),
            (
                "-s h --scan 5:1:1",
                255,
                "invalid value '5:1:1' for --scan: expected MIN:MAX:STEP with a MAX of at least MIN",
            ),
            ("-s h --scan 1:2:0", 255, "invalid value '1:2:0' for --scan"),
            ("-s h --assoc=4", 255, "--assoc requires --redis"),
            ("-s h --assoc=4 --redis --binary", 255, "--assoc cannot be used with --binary"),
            ("-s h -r 0", 255, "invalid value '0' for --records: expected 1 or more"),
            ("-s h -r -1", 255, "invalid value '-1' for --records: expected 1 or more"),
            (
                "-s h -q 4294967296",
                1,
                "invalid value '4294967296' for --qps: expected a whole number up to 2147483647",
            ),
            ("-s h --delete90 -N 5", 255, "--delete90 requires --getset"),
            ("-s h --delete90 --getset", 255, "--delete90 requires --getset"),
            ("-s h --delete90 --getset -N 5 --read_file x", 255, "--delete90 requires --getset"),
            ("-s h --assoc=0 --redis", 255, "invalid value '0' for --assoc: expected from 1 to 249"),
            ("-s h -a x --read_file t", 255, "--read_file cannot be used with --agent"),
            ("-s h -a x --unix_socket", 255, "--unix_socket cannot be used with --agent"),
            ("-s h -T 0", 255, "invalid value '0' for --threads"),
            (
                "-s h --read_file x --twitter_trace=3",
                255,
                "invalid value '3' for --twitter_trace: expected 0, 1 or 2",
            ),
        ];
        for (line, code, message) in table {
            let refusal = parsed(line).unwrap_err();
            assert_eq!(refusal.code, code, "{line}: {refusal:?}");
            assert!(refusal.message.starts_with(message), "{line}: {refusal:?}");
        }
    }

    #[test]
    fn options_without_effect_are_warned_of() {
        let table = [
            ("-s h stray", "'stray'"),
            ("-s h -U me", "--username"),
            ("-s h -Q 5", "--measure_qps"),
            ("-s h -S", "--skip"),
            ("-s p --unix_socket --no_nodelay", "--no_nodelay"),
            ("-s h -q 5 --moderate", "--moderate"),
            ("-s h -i fb_ia", "--iadist"),
            ("-s h -N 5 -t 1", "--time"),
            ("-s h --read_file x -t 1 -N 5", "--time"),
            ("-s h --read_file x -u 0.5", "--update"),
            ("-s h --getsetorset -u 0.5", "--update"),
            ("-s h --twitter_trace=1", "--twitter_trace"),
            ("-s h --getset --read_file x --twitter_trace=1", "--twitter_trace"),
            ("-s h --getset --getsetorset", "--getsetorset"),
        ];
        for (line, option) in table {
            let warnings = parsed(line).unwrap().warnings;
            assert!(
                matches!(warnings.as_slice(), [warning] if warning.starts_with(option)),
                "{line}: {warnings:?}"
            );
        }
        assert!(parsed("-s h -q 5 -i fb_ia --binary -U me -P x").unwrap().warnings.is_empty());
    }

    #[test]
    fn options_of_the_second_generation_are_recognized() {
        for line in ["--redis", "--getset", "-N 5", "-m 5", "--prefix x", "--successful", "--unix_socket"] {
            assert!(parsed(&format!("-s h {line}")).unwrap().is_second, "{line}");
        }
        assert!(!parsed("-s h -q 5 -v -v -R").unwrap().is_second);
    }

    #[test]
    fn option_names_are_unique() {
        for (index, rule) in OPTIONS.iter().enumerate() {
            let same =
                |other: &Rule| other.long == rule.long || (rule.short.is_some() && other.short == rule.short);
            assert!(!OPTIONS[..index].iter().any(same), "{}", rule.long);
        }
    }
}
