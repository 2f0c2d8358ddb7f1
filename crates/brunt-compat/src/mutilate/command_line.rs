//! mutilate's options, those of both generations: a command line becomes typed values that each lie in their range.
//!
//! Not what they come to together: that is [`super::invocation`]. Invariant: whatever is given is in a field, in a warning or in
//! a refusal.

use crate::front_end::Refusal;
use crate::names::Names;
use crate::options::{
    Action, FLAG, ParsedOptions, Rule, VALUE, accept, integer, invalid_value, leading_integer,
    leading_number, number, options, refuse, scan, split_commas,
};
use brunt_plan::resolve::fleet::{is_this_host, split};
use std::net::Ipv6Addr;
use std::ops::RangeBounds;

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

/// Why options of masters are without effect: there are no agents; `--threads 0`.
const NO_AGENTS: &str = "it is of use with agents only";
const NO_THREADS: &str = "with --threads 0 the master measures nothing";

options! {
    /// A command line, with mutilate's defaults.
    set(line, long, text) -> Refusal {
        "help": FLAG.short('h').ending().help("", "print this");
        "version": FLAG.ending().help("", "print the version");
        "verbose": FLAG.short('v').repeated().help("", "more on standard error; twice: still more")
            => verbose: usize = 0, line.verbose + 1;
        "quiet": FLAG.help("", "nothing on standard error") => quiet: bool = false, true;
        "server": VALUE.short('s').repeated()
            .help("HOST[:PORT]", "a server; several times, or a list with commas [port 11211]")
            => servers: Vec<String> = Vec::new(), [line.servers.clone(), split_commas(text)].concat();
        "binary": FLAG.help("", "memcached's binary protocol") => binary: bool = false, true;
        "qps": VALUE.short('q').help("N", "requests per second in all; 0 is as fast as it goes [0]")
            => qps: u64 = 0, count(long, text, 0.., "0 (as fast as it goes) or more")?;
        "time": VALUE.short('t').help("SECONDS", "length of the measurement [5]")
            => time_s: u64 = 5, count(long, text, 1.., "1 second or more")?,
            line.read_file.is_some() => "the run ends with the last line of --read_file",
            line.queries > 0 && line.read_file.is_none() => "the run ends after --queries";
        "keysize": VALUE.short('K').help("DISTRIBUTION", "bytes of keys [30]")
            => keysize: String = "30".to_owned(), text.to_owned();
        "valuesize": VALUE.short('V').help("DISTRIBUTION", "bytes of values [200]")
            => valuesize: String = "200".to_owned(), text.to_owned();
        "records": VALUE.short('r').help("N", "keys, divided by the number of servers [10000]")
            => records: u64 = 10_000, count(long, text, 1.., "1 or more")?;
        "update": VALUE.short('u').help("FRACTION", "of requests that are sets [0.0]")
            => update: f64 = 0.0, fraction(long, text)?,
            line.read_file.is_some() => "the lines of --read_file say what is asked for",
            line.follows() && line.read_file.is_none()
                => "with --getset every request is a get, and a set follows a miss";
        "username": VALUE.short('U').help("NAME", "log in with this name (--binary)")
            => username: Option<String> = None, Some(text.to_owned()),
            !line.binary => "credentials are asked for with --binary only";
        "password": VALUE.short('P').help("WORD", "and this password")
            => password: Option<String> = None, Some(text.to_owned()),
            line.username.is_none() => "it requires --username";
        "threads": VALUE.short('T').help("N", "[1]") => threads: u32 = 1, count(long, text, 0.., THREADS)?;
        "affinity": FLAG.help("", "pin threads to processors")
            => affinity: bool = false, true, line.threads == 1 => "one thread is not pinned";
        "connections": VALUE.short('c').help("N", "per server and thread, 1 to 512 [1]")
            => connections: u32 = 1, count(long, text, 1..=512, "from 1 to 512")?,
            !line.has_agents() && line.measure_connections.is_some() => "--measure_connections was given as well";
        "depth": VALUE.short('d').help("N", "requests in flight on a connection [1]")
            => depth: u32 = 1, count(long, text, 1.., "1 or more")?;
        "roundrobin": FLAG.short('R').help("", "deal the servers out to the threads")
            => roundrobin: bool = false, true,
            line.threads == 1 && !line.has_agents() => "one thread has connections to every server";
        "iadist": VALUE.short('i')
            .help("DISTRIBUTION", "of the gaps between requests, scaled to -q [exponential]")
            => iadist: Option<String> = None, Some(text.to_owned()),
            !line.is_paced() => "without --qps a request follows a reply, and nothing is drawn";
        "skip": FLAG.short('S').help("", "accepted; requests that are late are sent all the same")
            => skip: bool = false, true,
            true => "a request that is late is sent all the same, for leaving it out would hide how long it waited";
        "moderate": FLAG.help("", "without -q: pause 250 us behind each reply") => moderate: bool = false, true,
            line.is_paced() => "a rate makes requests due, and it moves none of them";
        "noload": FLAG.help("", "do not store the keys first") => noload: bool = false, true;
        "loadonly": FLAG.help("", "store the keys and end") => loadonly: bool = false, true;
        "blocking": FLAG.short('B').help("", "sleep between requests, never spin")
            => blocking: bool = false, true;
        "no_nodelay": FLAG.help("", "leave TCP_NODELAY off") => no_nodelay: bool = false, true,
            line.unix_socket => "a path is reached without TCP, and nothing is kept back";
        "warmup": VALUE.short('w').help("SECONDS", "run so long before")
            => warmup_s: u64 = 0, count(long, text, 0.., "0 seconds or more")?;
        "wait": VALUE.short('W').help("SECONDS", "do not measure before so long after the start")
            => wait_s: u64 = 0, count(long, text, 0.., "0 seconds or more")?;
        "save": VALUE.help("FILE", "the time and latency of every read")
            => save: Option<String> = None, Some(text.to_owned()),
            line.scan.is_some() && line.search.is_none() => "a scan saves no samples",
            line.threads == 0 => "single requests are the master's, and with --threads 0 it sends none";
        "search": VALUE.help("N:X", "the highest rate with an N-th percentile of reads below X us")
            => search: Option<SearchBound> = None, Some(search_bound(text)?),
            line.loadonly => "--loadonly measures nothing";
        "scan": VALUE.help("MIN:MAX:STEP", "a row for each rate")
            => scan: Option<ScanRange> = None, Some(scan_range(text)?),
            line.loadonly => "--loadonly measures nothing",
            line.search.is_some() && !line.loadonly => "--search was given as well";
        "agentmode": FLAG.short('A').help("", "wait for masters, for ever, and do as they say")
            => agentmode: bool = false, true;
        "agent": VALUE.short('a').repeated()
            .help("HOST", "have this agent send, too; several times, or a list with commas") =>
            /// Each with its port, if that is not `--agent_port`.
            agents: Vec<(String, Option<u16>)> = Vec::new(), with_agents(&line.agents, text)?,
            line.loadonly => "with --loadonly the master stores everything";
        "agent_port": VALUE.short('p').help("PORT", "of agents [5556]")
            => agent_port: u16 = 5556, agent_port(text)?,
            !line.has_agents() => NO_AGENTS;
        "lambda_mul": VALUE.short('l').help("N", "a thread here sends N times as much as one of weight 1") =>
            /// How much a thread of this process weighs.
            lambda_mul: u32 = 1, count(long, text, 1.., "1 or more")?,
            !line.has_agents() => NO_AGENTS;
        "measure_connections": VALUE.short('C').help("N", "takes the place of -c here, not on agents")
            => measure_connections: Option<u32> = None, Some(count(long, text, 1..=512, "from 1 to 512")?),
            line.threads == 0 => NO_THREADS;
        "measure_qps": VALUE.short('Q')
            .help("N", "of -q, what this process sends itself; the agents send the rest") =>
            /// 0 is as fast as it goes.
            measure_qps: Option<u64> = None, Some(count(long, text, 0.., "0 (as fast as it goes) or more")?),
            !line.has_agents() => NO_AGENTS,
            line.threads == 0 => NO_THREADS;
        "measure_depth": VALUE.short('D').help("N", "takes the place of -d here, not on agents")
            => measure_depth: Option<u32> = None, Some(count(long, text, 1.., "1 or more")?),
            !line.has_agents() => NO_AGENTS,
            line.threads == 0 => NO_THREADS;
        "unix_socket": FLAG.help("", "-s is the path of a socket") => unix_socket: bool = false, true;
        "redis": FLAG.help("", "Redis's protocol")
            => redis: bool = false, true, line.binary => "--binary was given as well";
        "getset": FLAG.help("", "gets, and a set behind every miss") => getset: bool = false, true;
        "getsetorset": FLAG.help("", "the same; with --read_file its sets, too")
            => getsetorset: bool = false, true, line.getset => "--getset was given as well";
        "successful": FLAG.help("", "rows and rate of what succeeded only") => successful: bool = false, true;
        "prefix": VALUE.help("TEXT", "before every key") => prefix: String = String::new(), text.to_owned();
        "delete90": FLAG.help("", "with --getset and -N: delete 90 % of the keys after half of them")
            => delete90: bool = false, true;
        "assoc": VALUE.help("BYTES", "with --redis: so many at the end of a key are the field of a hash") =>
            /// Bytes of a field, where keys are split.
            assoc: Option<u32> = None,
            Some(count(long, text, 1..=249, "from 1 to 249 bytes at the end of a key that are the field")?);
        "read_file": VALUE
            .help("FILE", "what the lines of a file say, in their order; unpacked where its name ends in .zst")
            => read_file: Option<String> = None, Some(text.to_owned());
        "twitter_trace": VALUE
            .help("0|1|2", "its columns: with read and write [0], Twitter's, or with 1 for get and 2 for set")
            => twitter_trace: Option<u32> = None,
            Some(count(long, text, 0..=2, "0, 1 or 2: the layout of --read_file")?),
            line.read_file.is_none() => "it is the layout of --read_file",
            line.read_file.is_some() && line.getset
                => "with --getset the columns of --read_file are T,App,Req,Key,ValueLen";
        "misswindow": VALUE.short('m')
            .help("N", "the part of reads that missed, on standard error, of every N requests") =>
            /// 0 is no windows.
            misswindow: u64 = 0, count(long, text, 0.., "0 (no windows) or more requests")?,
            line.threads == 0 => "single requests are the master's, and with --threads 0 it sends none";
        "queries": VALUE.short('N').help("N", "end after so many requests instead") =>
            /// 0 is no bound.
            queries: u64 = 0, count(long, text, 0.., "0 (no bound) or more")?;
        "legacy-latency": FLAG.help("", "latency from when a request was sent, not from when it was due")
            => legacy_latency: bool = false, true;
        "agent-sampling": FLAG.help("", "rows of all processes, not only of this one") =>
            /// Latencies of agents are in the rows, too.
            agent_sampling: bool = false, true,
            !line.has_agents() => NO_AGENTS,
            line.has_agents() && line.successful
                => "--successful shows single requests, and those of agents stay with them";
        "auth": VALUE
            .help("DIR", "masters and agents have the same folder of brunt agent --new-auth: TLS and a token") =>
            /// The folder that masters and agents have in common.
            auth: Option<String> = None, Some(text.to_owned()),
            !line.has_agents() => NO_AGENTS;
    }
}

impl CommandLine {
    /// Is there a rate, in one of the runs at least?
    pub(super) fn is_paced(&self) -> bool {
        let own_qps = self.measure_qps.filter(|qps| *qps > 0 && self.has_agents());
        self.qps > 0 || self.scan.is_some() || self.search.is_some() || own_qps.is_some()
    }

    /// Is a key stored when it is missed?
    pub(super) fn follows(&self) -> bool {
        self.getset || self.getsetorset
    }

    /// Is this the command line of a master?
    pub(super) fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }
}

/// Reads a command line, without the program's name; and which generation has its options.
///
/// # Errors
/// It cannot be read, or asks for what cannot be done.
pub fn parse(arguments: &[String]) -> Result<Action<(CommandLine, Generation)>, Refusal> {
    let parsed = scan(OPTIONS, arguments).map_err(|fault| syntax(fault.to_string()))?;
    if let Some(answer) = parsed.answer() {
        return Ok(answer);
    }
    let mut line = CommandLine::default();
    line.apply(&parsed)?;
    if line.threads == 0 && (line.agentmode || !line.has_agents()) {
        return Err(invalid_value("threads", "0", THREADS).into());
    }
    if line.agentmode {
        line.warnings = agent_warnings(&parsed);
    } else {
        line.check()?;
        line.check_master()?;
        line.warnings.extend(line.master_warnings());
        if line.successful && line.search.is_some() {
            line.warnings.push("--successful: --search judges all reads".to_owned());
        }
    }
    let is_second = OF_SECOND_GENERATION.iter().any(|long| parsed.has(long));
    let generation = if is_second { Generation::Second } else { Generation::First };
    Ok(Action::Run(Box::new((line, generation))))
}

/// An agent takes a few options from its own command line. The master sends all others.
fn agent_warnings(parsed: &ParsedOptions) -> Vec<String> {
    const OF_AGENTS: [&str; 8] =
        ["agentmode", "agent_port", "lambda_mul", "threads", "affinity", "blocking", "quiet", "auth"];
    let mut warnings = Vec::new();
    for given in parsed.given.iter().filter(|given| !OF_AGENTS.contains(&given.long)) {
        let why = if given.long == "verbose" { "it says all it has to say" } else { "the master decides" };
        let warning = format!("--{}: without effect on an agent; {why}", given.long);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    [warnings, parsed.stray_warnings()].concat()
}

impl CommandLine {
    /// Refuses what does not go together.
    fn check(&self) -> Result<(), String> {
        let is_getset = self.follows() && self.queries > 0 && self.read_file.is_none();
        let rules = [
            (self.servers.is_empty(), "--server is required: HOST[:PORT] of at least one server"),
            (self.assoc.is_some() && !self.redis, "--assoc requires --redis: hashes are Redis's"),
            (
                self.assoc.is_some() && self.binary,
                "--assoc cannot be used with --binary, which replaces --redis: hashes are Redis's",
            ),
            (
                self.delete90 && !is_getset,
                "--delete90 requires --getset and --queries, after half of which it deletes; it cannot be used with --read_file",
            ),
        ];
        refuse(&rules)
    }
}

const THREADS: &str = "1 or more, or 0 beside --agent: without threads of its own only agents send";

fn syntax(message: String) -> Refusal {
    Refusal { code: Some(EXIT_SYNTAX), ..message.into() }
}

/// A whole number in a range.
fn count<T: TryFrom<i32>>(
    long: &str,
    text: &str,
    range: impl RangeBounds<i32>,
    accepted: &str,
) -> Result<T, Refusal> {
    let any = || syntax(invalid_value(long, text, &format!("a whole number up to {}", i32::MAX)));
    let value = integer(text).ok_or_else(any)?;
    let fitting = T::try_from(value).ok().filter(|_| range.contains(&value));
    Ok(accept(long, &value.to_string(), fitting, accepted)?)
}

fn fraction(long: &str, text: &str) -> Result<f64, Refusal> {
    let value = number(text).ok_or_else(|| syntax(invalid_value(long, text, "a number")))?;
    let accepted = "the part of requests that are sets, from 0 to 1";
    let fitting = Some(value).filter(|value| (0.0..=1.0).contains(value));
    Ok(accept(long, &value.to_string(), fitting, accepted)?)
}

/// Port 0 is any free port, at which an agent can listen.
fn agent_port(text: &str) -> Result<u16, String> {
    accept("agent_port", text, text.parse().ok(), "a port of TCP, from 0 to 65535")
}

/// These agents and those of a list: hosts, or as brunt alone takes it hosts with their ports.
fn with_agents(agents: &[(String, Option<u16>)], text: &str) -> Result<Vec<(String, Option<u16>)>, String> {
    let agent = |name: String| {
        if name.parse::<Ipv6Addr>().is_ok() {
            return Ok((format!("[{name}]"), None));
        }
        let accepted = || invalid_value("agent", &name, "HOST or HOST:PORT, or several behind commas");
        let (_, port) = split(&name).ok_or_else(accepted)?;
        let host = if port.is_some() { name.rsplit_once(':').map_or("", |(host, _)| host) } else { &name };
        Ok((host.to_owned(), port))
    };
    agents.iter().cloned().map(Ok).chain(split_commas(text).into_iter().map(agent)).collect()
}

fn search_bound(text: &str) -> Result<SearchBound, String> {
    let read = || {
        let (percentile, bound) = text.split_once(':')?;
        let (percentile, bound_us) = (leading_number(percentile), leading_number(bound));
        let is_read = percentile > 0.0 && percentile < 100.0 && bound_us > 0.0;
        is_read.then_some(SearchBound { percentile, bound_us })
    };
    let accepted = "N:X, a percentile above 0 and below 100 and its bound in microseconds, such as 95:1000";
    accept("search", text, read(), accepted)
}

fn scan_range(text: &str) -> Result<ScanRange, String> {
    let fields = text.split(':').filter(|field| !field.is_empty());
    let fields: Option<Vec<u64>> = fields.map(|field| u64::try_from(leading_integer(field)).ok()).collect();
    let accepted = match fields.as_deref() {
        Some([min, max, step, ..]) if *step > 0 && min <= max => {
            return Ok(ScanRange { min: *min, max: *max, step: *step });
        }
        Some([_, _, step, ..]) if *step > 0 => {
            "MIN:MAX:STEP with a MAX of at least MIN, or there is no rate to measure"
        }
        _ => "MIN:MAX:STEP, rates from 0 and a step above 0, such as 1000:5000:1000",
    };
    Err(invalid_value("scan", text, accepted))
}

impl CommandLine {
    /// Refuses what agents cannot do.
    pub(super) fn check_master(&self) -> Result<(), String> {
        if !self.has_agents() {
            return Ok(());
        }
        let is_single = self.scan.is_none() && self.search.is_none();
        let too_fast = self.measure_qps.filter(|own| *own > 0 && self.qps > 0 && *own >= self.qps);
        if let Some(own) = too_fast.filter(|_| is_single) {
            return Err(format!(
                "invalid value '{own}' for --measure_qps: expected less than --qps {}, for the rest is the agents'",
                self.qps
            ));
        }
        refuse(&[
            (
                self.agent_port == 0,
                "invalid value '0' for --agent_port: expected a port of TCP, from 1 to 65535",
            ),
            (
                self.unix_socket,
                "--unix_socket cannot be used with --agent: no agent opens a file that a master names",
            ),
            (
                self.read_file.is_some(),
                "--read_file cannot be used with --agent: the file is read on this host",
            ),
            (self.queries > 0, "--queries cannot be used with --agent: --time ends all agents at once"),
            (
                self.search.is_some() && self.threads == 0 && !self.agent_sampling,
                "--search judges reads of the master, and --threads 0 has none: add --agent-sampling or threads",
            ),
        ])
    }

    /// What of a master's options is otherwise than it seems.
    pub(super) fn master_warnings(&self) -> Vec<String> {
        let far = self.agents.iter().find(|(host, _)| !is_this_host(host));
        // An IPv6 address without brackets is a host by itself.
        let host_of = |server: &String| split(server).map_or(server.clone(), |(host, _)| host.to_owned());
        let near = self.servers.iter().find(|server| is_this_host(&host_of(server)));
        let mut warnings = Vec::new();
        if let (Some((agent, _)), Some(server), false) = (far, near, self.loadonly) {
            warnings
                .push(format!("--server: agent {agent} looks '{server}' up itself, and finds its own host"));
        }
        if self.threads == 0 && !self.agent_sampling && !self.loadonly {
            warnings.push(
                "--threads: with 0 no row has a latency; --agent-sampling shows those of agents".to_owned(),
            );
        }
        warnings
    }
}

/// mutilate's names for what brunt has options for.
pub static NAMES: Names = Names {
    options: OPTIONS,
    table: &[
        ("--rate", "--qps"),
        ("--requests", "--queries"),
        ("--keys", "--records"),
        ("--key-size", "--keysize"),
        ("--value-size", "--valuesize"),
        ("--mix", "--update"),
        ("--arrival", "--iadist"),
        ("--think", "--moderate"),
        ("trace", "--read_file"),
        ("purge", "--delete90"),
        ("hash-field", "--assoc"),
        ("user requires", "--username requires"),
        ("requires user", "requires --username"),
        ("--no-preload", "--noload"),
        ("nodelay=false", "--no_nodelay"),
        ("--wait sleep", "--blocking"),
        ("--protocol memcached-binary", "--binary"),
        ("--protocol resp2", "--redis"),
        ("transport unix", "--unix_socket"),
        ("--measure-rate", "--measure_qps"),
        ("measure-connections", "--measure_connections"),
        ("measure-depth", "--measure_depth"),
    ],
};

/// Exit code where the command line cannot be read.
pub const EXIT_SYNTAX: u8 = 1;
/// Exit code of everything else that is wrong, the servers included.
pub const EXIT_REFUSED: u8 = 255;
/// Text of `--version`.
pub const VERSION: &str = "mutilate 0.1";

/// Which of the two tools: they differ in the columns of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Eight columns.
    First,
    /// Ten: with the 50th and the 99.9th percentile.
    Second,
}

/// Text of `--help`.
pub fn help() -> String {
    crate::options::help(
        "brunt mutilate: takes the command line of mutilate, both generations, and prints its report\n\n\
         Usage: mutilate -s HOST[:PORT] [options]\n",
        OPTIONS,
        "\nA DISTRIBUTION is a number, fixed:N, uniform:MAX, normal:MEAN,SD, exponential:LAMBDA, pareto:LOC,SCALE,SHAPE,\n\
         gev:LOC,SCALE,SHAPE, or one of Facebook's: fb_key, fb_value, fb_ia.\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::words;

    fn parsed(line: &str) -> Result<CommandLine, Refusal> {
        parse(&words(line)).map(|action| action.run().0)
    }

    #[test]
    fn defaults_are_mutilates() {
        let line = parsed("-s h").unwrap();
        assert_eq!((line.qps, line.time_s, line.records, line.update), (0, 5, 10_000, 0.0));
        assert_eq!((line.threads, line.connections, line.depth), (1, 1, 1));
        assert_eq!((line.keysize.as_str(), line.valuesize.as_str()), ("30", "200"));
        assert!(line.warnings.is_empty());
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
            assert_eq!(refusal.code.unwrap_or(EXIT_REFUSED), code, "{line}: {refusal:?}");
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
            let (_, generation) = parse(&words(&format!("-s h {line}"))).unwrap().run();
            assert_eq!(generation, Generation::Second, "{line}");
        }
        assert_eq!(parse(&words("-s h -q 5 -v -v -R")).unwrap().run().1, Generation::First);
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
