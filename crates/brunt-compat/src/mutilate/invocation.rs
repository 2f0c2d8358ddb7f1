//! Translates a command line into plans for the load and the measurements, and their results into text.
//!
//! Not a run. Invariant: the data set and the offered load are mutilate's; how requests are spread over connections is ours, and
//! docs/compat.md says where that differs.

use super::command_line::{CommandLine, Generation, ScanRange, SearchBound};
use super::generator::Generator;
use brunt_plan::arrival::Arrival;
use brunt_plan::cpus::CpuList;
use brunt_plan::login::Password;
use brunt_plan::mix::Mix;
use brunt_plan::op::OpKind;
use brunt_plan::plan::{MeterKind, OnMiss, Placement, Protocol, TraceLayout, TraceOrder, Wait};
use brunt_plan::server::ServerAddress;
use brunt_plan::size::SizeDistribution;
use brunt_plan::spec::{ClassSpec, PlanSpec, RunSpec};
use brunt_plan::units::{Count, DurationNs, Rate};
use brunt_plan::url::ServerList;
use brunt_plan::warmup::Warmup;

/// memcached's port, which mutilate takes for Redis as well.
const PORT: u16 = 11211;
/// How long `--moderate` pauses.
const MODERATE: DurationNs = DurationNs(250_000);
/// Weights of a mix are millionths.
const MILLION: f64 = 1e6;
/// No more raw samples are kept, at 72 bytes each.
const SAMPLES_MAX: u64 = 20_000_000;
/// Requests per second that a run without a rate is prepared for, per thread.
const SAMPLES_PER_SECOND: u64 = 500_000;

/// The runs to make.
#[derive(Clone, Debug, PartialEq)]
pub enum Campaign {
    /// The data set is stored, and that is all.
    LoadOnly,
    /// One measurement.
    Run,
    /// One for each rate.
    Scan(ScanRange),
    /// As many runs as the search takes.
    Search(SearchBound),
}

/// A translated command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The runs to make.
    pub campaign: Campaign,
    /// The command line; samples are saved only where a run has them.
    pub line: CommandLine,
    /// The columns of the report.
    pub generation: Generation,
    /// Keys on each server.
    pub records: u64,
    /// The servers as addressed.
    pub servers: Vec<ServerAddress>,
    /// The distributions of values, keys and gaps, as mutilate's log has them.
    pub generators: Vec<String>,
    /// Messages before the run, each without its prefix.
    pub warnings: Vec<String>,
    arrival: Arrival,
    run: RunSpec,
    class: ClassSpec,
}

impl Invocation {
    /// Translates the command line for a host with these allowed CPUs.
    ///
    /// # Errors
    /// No plan does what it asks for.
    pub fn new(mut line: CommandLine, generation: Generation, allowed_cpus: &[u32]) -> Result<Self, String> {
        let mut warnings = line.warnings.clone();
        let servers = servers(&line)?;
        let records = (line.records / servers.len() as u64).max(1);
        let is_paced = line.is_paced();
        // Without a rate nothing is drawn from it.
        let arrival = match line.iadist.as_deref().filter(|_| is_paced) {
            None => Arrival::Poisson,
            Some(text) => Generator::parse(text, Generator::OF_GAPS)
                .and_then(|generator| generator.arrival())
                .map_err(|fault| invalid_distribution("iadist", text, &fault))?,
        };
        if line.search.is_some() && line.update >= 1.0 && !line.follows() && line.read_file.is_none() {
            return Err(
                "--search judges reads, and --update 1 has none: expected an --update below 1".to_owned()
            );
        }
        line.save = line.save.filter(|_| line.search.is_some() || line.scan.is_none());
        Ok(Self {
            campaign: match (line.loadonly, line.search, line.scan) {
                (true, ..) => Campaign::LoadOnly,
                (_, Some(bound), _) => Campaign::Search(bound),
                (_, None, Some(range)) => Campaign::Scan(range),
                (_, None, None) => Campaign::Run,
            },
            generation,
            records,
            generators: logged(&line, is_paced),
            arrival,
            run: run_spec(&line, &servers, allowed_cpus, &mut warnings)?,
            class: class_spec(&line, records, servers.len() as u32, &mut warnings)?,
            servers,
            warnings,
            line,
        })
    }

    /// The plan that stores the data set; the driver gives its window no length, which a specification cannot.
    pub fn loading(&self) -> PlanSpec {
        let mut spec = self.measuring(0);
        spec.run.preload = Some(!self.line.noload);
        spec.run.server_stats = Some(false);
        spec.run.requests = None;
        spec.run.time = Some(DurationNs(1));
        spec.run.warmup = Some(Warmup::NONE);
        spec.run.samples_max = None;
        // Nothing is asked for.
        (spec.base.trace, spec.base.trace_layout, spec.base.trace_order) = (None, None, None);
        spec.base.purge = None;
        spec
    }

    /// The plan of a measurement at this rate.
    pub fn measuring(&self, qps: u64) -> PlanSpec {
        let mut spec = PlanSpec { run: self.run.clone(), base: self.class.clone(), classes: Vec::new() };
        spec.run.preload = Some(!self.line.noload);
        self.pace(&mut spec.base, (qps > 0).then(|| Rate::per_second(qps)));
        spec.run.samples_max = self.samples_max(qps);
        spec
    }

    /// Gives a class its rate, or none.
    pub(super) fn pace(&self, class: &mut ClassSpec, rate: Option<Rate>) {
        class.rate = rate;
        class.arrival = rate.map(|_| self.arrival.clone());
        class.think = (rate.is_none() && self.line.moderate).then_some(MODERATE);
    }

    /// How many single requests of this process are to be kept at this rate, if any.
    pub(super) fn samples_max(&self, qps: u64) -> Option<Count> {
        if self.line.save.is_some() || self.line.successful || self.line.misswindow > 0 {
            let threads = self.run.threads.map_or(1, |threads| threads.0);
            let per_second = if qps > 0 { qps + qps / 4 } else { SAMPLES_PER_SECOND * threads };
            let expected = match self.run.requests {
                Some(requests) => 2 * requests.0,
                // The length of the file is unknown.
                None if self.class.trace.is_some() => SAMPLES_MAX,
                None => per_second * self.line.time_s,
            };
            return Some(Count((expected + 10_000).min(SAMPLES_MAX)));
        }
        None
    }
}

/// The distributions as mutilate's log has them; without a rate there are no gaps.
fn logged(line: &CommandLine, is_paced: bool) -> Vec<String> {
    let gaps = if is_paced { line.iadist.as_deref().unwrap_or("exponential:0") } else { "0" };
    let texts = [line.valuesize.as_str(), line.keysize.as_str(), gaps];
    texts
        .into_iter()
        .filter_map(|text| Generator::parse(text, Generator::OF_VALUES).ok())
        .map(|held| held.to_string())
        .collect()
}

/// The servers with their ports.
fn servers(line: &CommandLine) -> Result<Vec<ServerAddress>, String> {
    let read = |text: &String| {
        let named = if line.unix_socket { format!("unix:{text}") } else { text.clone() };
        let address = named.parse::<ServerAddress>();
        address
            .map(|address| address.at_port(PORT))
            .map_err(|accepted| format!("invalid value '{text}' for --server: {accepted}"))
    };
    line.servers.iter().map(read).collect()
}

fn run_spec(
    line: &CommandLine,
    servers: &[ServerAddress],
    allowed_cpus: &[u32],
    warnings: &mut Vec<String>,
) -> Result<RunSpec, String> {
    let protocol = match (line.binary, line.redis) {
        (true, _) => Protocol::MemcachedBinary,
        (false, true) => Protocol::Resp2,
        (false, false) => Protocol::MemcachedText,
    };
    let login = match (&line.username, &line.password) {
        (Some(user), password) if line.binary => {
            let password = password
                .as_ref()
                .filter(|password| !password.is_empty())
                .ok_or_else(|| "--username requires a --password that is not empty".to_owned())?;
            Some((user.clone(), Password::verbatim(password.clone())))
        }
        _ => None,
    };
    let connections = connections(line, servers.len() as u32);
    let asked = line.threads.max(1);
    let threads = asked.min(connections / servers.len() as u32);
    if threads < asked {
        warnings.push(format!(
            "--threads: {threads} instead of {}, because each of ours has a connection to every server",
            line.threads
        ));
    }
    let bound = (line.queries > 0).then_some(Count(line.queries));
    Ok(RunSpec {
        server: ServerList::of(servers),
        // Every server holds all records, and every connection takes its turn.
        placement: (servers.len() > 1).then_some(Placement::RoundRobin),
        protocol: Some(protocol),
        hash_field: line.assoc.map(|bytes| Count(u64::from(bytes))),
        nodelay: (line.no_nodelay && !line.unix_socket).then_some(false),
        user: login.as_ref().map(|(user, _)| user.clone()),
        password: login.map(|(_, password)| password),
        threads: Some(Count(u64::from(threads))),
        cpus: (line.affinity && threads > 1).then(|| CpuList(allowed_cpus.to_vec())),
        wait: Some(if line.blocking { Wait::Sleep } else { Wait::Hybrid }),
        // A file is replayed to its end.
        time: (bound.is_none() && line.read_file.is_none()).then(|| DurationNs::from_secs(line.time_s)),
        requests: bound,
        warmup: Some(Warmup::For(DurationNs::from_secs(line.warmup_s))),
        meter: Some(vec![MeterKind::Outstanding]),
        ..RunSpec::default()
    })
}

/// Connections in all.
fn connections(line: &CommandLine, servers: u32) -> u32 {
    let each = line.measure_connections.unwrap_or(line.connections);
    // Without threads only agents send; this class stores the data set.
    each.saturating_mul(pairs(line.roundrobin, servers, line.threads.max(1)))
}

/// What the lines of the file say.
fn layout(line: &CommandLine) -> TraceLayout {
    match line.twitter_trace {
        _ if line.getset => TraceLayout::MutilateAllGets,
        Some(1) => TraceLayout::Twitter,
        Some(2) => TraceLayout::MutilateOneTwo,
        _ => TraceLayout::MutilateReadWrite,
    }
}

/// The message for a distribution that is not accepted, and why.
fn invalid_distribution(option: &str, text: &str, fault: &str) -> String {
    format!("invalid value '{text}' for --{option}: {fault}")
}

fn class_spec(
    line: &CommandLine,
    records: u64,
    servers: u32,
    warnings: &mut Vec<String>,
) -> Result<ClassSpec, String> {
    let digits = records.ilog10() + 1;
    let keys = Generator::parse(&line.keysize, Generator::OF_KEYS)
        .and_then(|generator| generator.key_size(digits, line.prefix.len() as u32))
        .map_err(|fault| invalid_distribution("keysize", &line.keysize, &fault))?;
    if keys.is_cut {
        warnings.push("--keysize: keys end at 250 bytes, for memcached takes no longer ones".to_owned());
    }
    let values: SizeDistribution = Generator::parse(&line.valuesize, Generator::OF_VALUES)
        .and_then(|generator| generator.value_size())
        .map_err(|fault| invalid_distribution("valuesize", &line.valuesize, &fault))?;
    let updates = if line.follows() { 0 } else { (line.update * MILLION).round() as u32 };
    Ok(ClassSpec {
        connections: Some(Count(u64::from(connections(line, servers)))),
        depth: Some(Count(u64::from(line.depth))),
        mix: line
            .read_file
            .is_none()
            .then(|| Mix::of([(OpKind::Get, MILLION as u32 - updates), (OpKind::Set, updates)])),
        purge: line.delete90.then_some(Count(10)),
        trace: line.read_file.clone(),
        trace_layout: line.read_file.as_ref().map(|_| layout(line)),
        // As many lines as are asked for, whatever their keys.
        trace_order: line.read_file.as_ref().map(|_| TraceOrder::Lines),
        on_miss: line.follows().then_some(OnMiss::Set),
        keys: Some(Count(records)),
        prefix: Some(line.prefix.clone()),
        key_size: Some(keys.distribution),
        value_size: Some(values),
        ..ClassSpec::default()
    })
}

/// Pairs of a thread and a server that have connections, in one process.
pub(super) fn pairs(roundrobin: bool, servers: u32, threads: u32) -> u32 {
    match roundrobin && threads > 1 {
        true => servers.max(threads),
        false => servers.saturating_mul(threads),
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_line::parse;
    use super::*;
    use crate::front_end::Refusal;
    use crate::front_end::tests::changes;
    use crate::options::tests::{cases, words};
    use brunt_plan::resolve::{Host, resolve};

    fn invocation(line: &str) -> Result<Invocation, Refusal> {
        let (line, generation) = parse(&words(line))?.run();
        Ok(Invocation::new(line, generation, &[0, 1, 2, 3])?)
    }

    /// The lines of the plan at its own rate that differ from those of `-s h`.
    fn plan(line: &str) -> String {
        let spec = |line: &str| {
            let invocation = invocation(line).unwrap();
            invocation.measuring(invocation.line.qps)
        };
        changes(&spec("-s h"), &spec(line))
    }

    #[test]
    fn options_become_plans() {
        // (command line, what of the plan it changes)
        let table = cases(
            r#"
            -s h => ''
            -s h -T 2 -c 8 -d 4 => threads = 2; connections = 16; depth = 4
            -s a,b:7 -c 2 -r 13 => server = ["a:11211", "b:7"]; placement = "round-robin"; connections = 4; keys = 6
            -s a,b -T 4 -R -c 2 -r 13
                => server = ["a:11211", "b:11211"]; placement = "round-robin"; threads = 4; connections = 8; keys = 6
            -s h -q 500 -i fb_ia => rate = "500/s"; arrival = "fb_ia"
            -s h -q 500 => rate = "500/s"; arrival = "poisson"
            -s h --moderate => think = "250us"
            -s h -u 0.03 => mix = "get=970000,set=30000"
            -s h -u 1 => mix = "set=1000000"
            -s h --getset -N 500 --noload => requests = 500; preload = false; on-miss = "set"
            -s h --prefix t1: -K fb_key => key-size = "mutilate:gev:33.7984,8.20449,0.078688@8..250"; prefix = "t1:"
            -s h --getsetorset -N 500 => requests = 500; on-miss = "set"
            -s h --getset --delete90 -N 500 => requests = 500; purge = 10; on-miss = "set"
            -s h --getset --read_file f.csv --prefix p:
                => trace = "f.csv"; trace-layout = "mutilate-all-gets"; trace-order = "lines"; key-size = "fixed:32"; prefix = "p:"; on-miss = "set"
            -s h --read_file f.zst -N 7 => requests = 7; trace = "f.zst"; trace-layout = "mutilate-read-write"; trace-order = "lines"
            -s h --getsetorset --read_file f --twitter_trace=1 -q 50
                => trace = "f"; trace-layout = "twitter"; trace-order = "lines"; rate = "50/s"; arrival = "poisson"; on-miss = "set"
            -s h --read_file f --twitter_trace=2 => trace = "f"; trace-layout = "mutilate-1-2"; trace-order = "lines"
            -s h -B -w 3 -t 9 => time = "9s"; warmup = "3s"; wait = "sleep"
            -s h --no_nodelay => nodelay = false
            -s /tmp/mc.sock --unix_socket --no_nodelay => server = ["unix:/tmp/mc.sock"]; transport = "unix"
            -s h --affinity -T 2 => threads = 2; cpus = "0-3"; connections = 2
            -s h --redis => protocol = "resp2"
            -s h --redis --assoc=4 => protocol = "resp2"; hash-field = 4; server-stats = false
            -s /tmp/mc.sock --unix_socket => server = ["unix:/tmp/mc.sock"]; transport = "unix"
            -s h --save f -q 1000 -t 2 => time = "2s"; samples-max = 12500; rate = "1000/s"; arrival = "poisson"
        "#,
        );
        for [line, expected] in table {
            assert_eq!(plan(line), expected, "{line}");
        }
    }

    #[test]
    fn command_lines_of_known_scripts_become_plans() {
        let host = Host::of(vec![0, 1, 2, 3], 7);
        let table = [
            "-s localhost",
            "-s zephyr2-10g -T 24 -c 8",
            "-s memcached_server --loadonly",
            "-vv --binary -s 10.10.1.1:11211 --loadonly -K fb_key -V fb_value",
            "-s 172.16.0.18 --noload -T 4 -c 4 -t 1 -i exponential:1 --scan=200:4000:100 -v",
            "-T 8 -s 10.0.0.1 -K fb_key -V fb_value -i fb_ia -r 1000000 -c 20 -q 400000 -d 1 -u 0.03 --noload -t 30",
            "-s 10.0.0.1 -t 20 -w 5 -W 5 -B -T 4 -c 16 -V 64",
            "--search 99:1000 --server 127.0.0.1 --time 1 --save tmp/search.log",
            "--search 99:9 -s 127.0.0.1 -t 1 -T 4 -c 64",
            "--scan 0:80000:10000 --time 1 --save tmp/scan.log -s 127.0.0.1",
            "-s ip:11211 -K gev:30.7984,8.20449,0.078688 -i pareto:0.0,16.0292,0.154971 -r 50000000 -u 1",
            "--server=127.0.0.1:3001 -T 10 -t 60 -K uniform:1000 -i uniform:1000",
            "--server=127.0.0.1:3001 -T 10 -t 60 -K normal:10000,1000 -i exponential:0.9",
            "-s h --loadonly -K normal:200,2 -V normal:2000,2",
            "--server h --valuesize=1024000 --threads=10 --affinity -t 5",
            "-s 127.0.0.1:11211 -T 8 -Q 20000 -C 64 -t 600 -K 50 -V 400",
            "--records=1000000 --binary --keysize=19 --valuesize=2 --server=IP:11211 --loadonly",
            "--keysize=16 --valuesize=128 --records=10000 --roundrobin --server=ip:11211 --server=ip:11212 --noload --qps=0 \
             --time=300 --update=0.0 --threads=8 --connections=8 --depth=4 --measure_connections=8 --measure_qps=1000 \
             --measure_depth=1 --iadist=exponential:0.0 --binary",
            "--redis -s h:6379 --getset -N 100000 -m 1000 -K fb_key -V fb_value -r 1000000 --noload",
            "--unix_socket -s /tmp/memcached.sock --binary --getsetorset --read_file cluster52.csv --twitter_trace=1 -T 8 -c 4 \
             -d 16 --noload",
            "--redis --getset --delete90 -N 200000 --successful -s h:6379",
            "--redis -s h:6379 --assoc=4 --prefix t1: -t 10 -u 0.1",
        ];
        for line in table {
            let invocation = invocation(line).unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"));
            for spec in [invocation.loading(), invocation.measuring(0), invocation.measuring(200)] {
                resolve(&spec, &host).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }

    #[test]
    fn invalid_combinations_are_rejected() {
        let table = cases(
            r"
            -s h -K foo => invalid value 'foo' for --keysize
            -s h -K -5 => invalid value '-5' for --keysize: expected lengths from 0 bytes
            -s h -V gev => invalid value 'gev' for --valuesize: its SHAPE is 0
            -s h -V 5000000000 => invalid value '5000000000' for --valuesize: expected lengths from 0 to 4294967295 bytes
            -s h -V 0.5 => invalid value '0.5' for --valuesize: expected a whole number, fixed:N
            -s h -q 5 -i fb_value => invalid value 'fb_value' for --iadist: it is no law of gaps; expected exponential
            -s h --binary -U me => --username requires a --password
            -s a:b => invalid value 'a:b' for --server
            -s h -u 1 --search 95:1 => --search judges reads
        ",
        );
        for [line, message] in table {
            let refusal = invocation(line).unwrap_err();
            assert!(refusal.code.is_none() && refusal.message.starts_with(message), "{line}: {refusal:?}");
        }
    }

    #[test]
    fn adjusted_options_are_warned_of() {
        let warned = |line: &str| invocation(line).unwrap().warnings.join("; ");
        assert!(warned("-s h -K uniform:1000").contains("keys end at 250 bytes"));
        assert!(warned("-s a,b -R -T 2").contains("--threads: 1 instead of 2"));
        assert_eq!(warned("-s h -K fb_key"), "");
    }
}
