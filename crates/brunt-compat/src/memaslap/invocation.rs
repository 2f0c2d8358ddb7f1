//! Translates a command line into a plan, and results of its run into text.
//!
//! Not a run. Invariant: what memaslap refuses before it connects is refused here, in its order: servers, file, what does not go
//! together, sizes.

use super::command_line::{CommandLine, PORT};
use super::workload_file::{DEFAULT_NAME, Range, WorkloadFile};
use crate::front_end::{Caller, as_warnings};
use crate::options::{invalid_value, refuse};
use brunt_plan::cpus::CpuList;
use brunt_plan::mix::Mix;
use brunt_plan::objective::Fraction;
use brunt_plan::op::OpKind;
use brunt_plan::plan::{KeyForm, Placement, Protocol, Reconnect, Transport, Wait};
use brunt_plan::popularity::{ObjectWindow, Popularity};
use brunt_plan::server::ServerAddress;
use brunt_plan::size::{SizeDistribution, SizeRange};
use brunt_plan::spec::{ClassSpec, PlanSpec, RouteSpec, RunSpec};
use brunt_plan::units::{Count, DurationNs, Rate};
use brunt_plan::url::ServerList;
use brunt_plan::warmup::Warmup;
use std::net::Ipv6Addr;

/// Time to live of objects that expire.
const TTL: DurationNs = DurationNs::from_secs(60);
/// How long a reply over UDP is awaited.
const UDP_TIMEOUT: DurationNs = DurationNs::from_secs(30);
const MICRO: u128 = 1_000_000;

/// A translated command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The plan to run, but for its data seed where the user gives none: that is the second of the start.
    pub spec: PlanSpec,
    /// The command line.
    pub line: CommandLine,
    /// Thousandths of the operations that are sets, and gets.
    pub shares: [u32; 2],
    /// What an object has on the average, in bytes of key and value.
    pub object_bytes: u64,
    /// Messages before the run, each with `warning: ` or `note: `.
    pub remarks: Vec<String>,
}

impl Invocation {
    /// Translates the command line.
    ///
    /// # Errors
    /// No plan does what it asks for.
    pub fn new(line: CommandLine, caller: &Caller<'_>) -> Result<Self, String> {
        let mut remarks = as_warnings(&line.warnings);
        let servers = servers(&line.servers)?;
        let file = workload(&line, caller, &mut remarks)?;
        check_together(&line, &servers)?;
        file.check_sizes(line.fixed_size.is_some())?;
        let servers = loaded(&line, servers, &mut remarks);
        let spec = PlanSpec {
            run: run_spec(&line, &servers, &file, caller.allowed_cpus),
            base: class_spec(&line, &file)?,
            classes: routes(&line, &file),
        };
        caller.check(&spec)?;
        let value_bytes = line.fixed_size.map_or_else(|| WorkloadFile::mean(&file.values), u64::from);
        let object_bytes = WorkloadFile::mean(&file.keys) + value_bytes;
        Ok(Self { spec, line, shares: [file.sets, file.gets], object_bytes, remarks })
    }

    /// Length of a period in seconds, where there are tables of periods.
    pub fn period_s(&self) -> Option<u64> {
        self.line.stat_freq_s.filter(|_| self.line.execute_number.is_none())
    }
}

/// Reads a list of `HOST[:PORT[ WEIGHT]]`. Empty items, such as the one behind a comma at the end, are none; weights, which libmemcached
/// reads and memaslap does not look at, are dropped.
///
/// # Errors
/// An item is no server.
fn servers(text: &str) -> Result<Vec<ServerAddress>, String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(server).collect()
}

fn server(item: &str) -> Result<ServerAddress, String> {
    let accepted = |_| invalid_value("servers", item, "HOST, HOST:PORT, [IPV6]:PORT or the path of a socket");
    let place = item.split_whitespace().next().unwrap_or_default();
    if place.starts_with('/') {
        return format!("unix:{place}").parse().map_err(accepted);
    }
    // Of HOST:PORT:WEIGHT. IPv6 literals have their own colons.
    let is_literal = place.starts_with('[') || place.parse::<Ipv6Addr>().is_ok();
    let weightless = match place.splitn(3, ':').collect::<Vec<_>>().as_slice() {
        [host, port, weight] if weight.parse::<u32>().is_ok() && !is_literal => {
            format!("{host}:{port}")
        }
        _ => place.to_owned(),
    };
    let without_port =
        weightless.strip_suffix(":0").filter(|host| !host.contains(':') || host.ends_with(']'));
    let address = without_port.unwrap_or(&weightless).parse::<ServerAddress>().map_err(accepted)?;
    Ok(address.at_port(PORT))
}

/// The file that is named, else the usual one where there is one, else memaslap's own sizes and shares.
fn workload(
    line: &CommandLine,
    caller: &Caller<'_>,
    remarks: &mut Vec<String>,
) -> Result<WorkloadFile, String> {
    let has_size = line.fixed_size.is_some();
    if let Some(path) = &line.cfg_cmd {
        let text = (caller.read_text)(path).map_err(|error| {
            format!("--cfg_cmd: cannot read '{path}' ({error}); expected the path of a text file")
        })?;
        return WorkloadFile::parse(path, &text, has_size);
    }
    let path = caller.home.map(|home| format!("{home}/{DEFAULT_NAME}"));
    match path.and_then(|path| (caller.read_text)(&path).ok().map(|text| (path, text))) {
        Some((path, text)) => {
            remarks.push(format!("note: sizes and shares are those of '{path}'"));
            WorkloadFile::parse(&path, &text, has_size)
        }
        None => Ok(WorkloadFile::default()),
    }
}

/// What does not go together, in memaslap's order, and behind that what does not work there.
fn check_together(line: &CommandLine, servers: &[ServerAddress]) -> Result<(), String> {
    let is_named_twice = |(index, server): (usize, &ServerAddress)| servers[..index].contains(server);
    let (by_udp, replicas) = (line.udp || line.facebook, line.rep_write);
    refuse(&[
        (
            line.facebook && line.division < 2,
            "--facebook requires --division of at least 2: a get has several keys",
        ),
        (line.facebook && line.udp, "--facebook cannot be used with --udp: gets go by UDP and sets by TCP"),
        (
            line.udp && line.conn_sock > 1,
            "--udp cannot be used with --conn_sock above 1: each client has one socket",
        ),
        (replicas.is_some() && servers.len() < 2, "--rep_write requires at least 2 --servers"),
        (
            replicas.is_some_and(|count| count as usize > servers.len()),
            "--rep_write exceeds the number of --servers",
        ),
        (
            line.udp && replicas.is_some(),
            "--udp cannot be used with --rep_write: replicas are written by TCP",
        ),
        (
            line.facebook && replicas.is_some(),
            "--facebook cannot be used with --rep_write: replicas are written and read by TCP",
        ),
        (
            replicas.is_some() && servers.iter().enumerate().any(is_named_twice),
            "--rep_write requires different --servers: one server would be two replicas",
        ),
        (
            by_udp && servers.iter().any(ServerAddress::is_unix),
            "--servers: a socket path cannot be used with --udp or --facebook",
        ),
        (
            line.udp && line.binary,
            "--udp cannot be used with --binary: memcached has no binary protocol over UDP",
        ),
        (
            line.facebook && line.binary,
            "--facebook cannot be used with --binary: gets go by UDP, which has no binary protocol",
        ),
    ])
}

/// The servers that get load: thread i loads server i mod N, also where the list names one several times; replicas are the first ones.
fn loaded(
    line: &CommandLine,
    mut servers: Vec<ServerAddress>,
    remarks: &mut Vec<String>,
) -> Vec<ServerAddress> {
    let most = line.rep_write.unwrap_or(line.threads);
    let behind = servers.split_off(servers.len().min(most as usize));
    let mut idle: Vec<String> = Vec::new();
    for server in behind.iter().filter(|server| !servers.contains(server)).map(ToString::to_string) {
        if !idle.contains(&server) {
            idle.push(server);
        }
    }
    if !idle.is_empty() {
        remarks.push(format!(
            "warning: --servers: each thread, or replica of --rep_write, has one, in their order; no load for {}",
            idle.join(", ")
        ));
    }
    if servers.iter().all(|server| *server == servers[0]) {
        servers.truncate(1);
    }
    servers
}

/// How many connections a client has: to every replica, or to its thread's server.
fn connections_each(line: &CommandLine) -> u32 {
    line.conn_sock.saturating_mul(line.rep_write.unwrap_or(1))
}

fn run_spec(
    line: &CommandLine,
    servers: &[ServerAddress],
    file: &WorkloadFile,
    allowed_cpus: &[u32],
) -> RunSpec {
    let share = |share: f64| Fraction { per_billion: (share * 1e9).round() as u64 };
    RunSpec {
        server: ServerList::of(servers),
        placement: (servers.len() > 1 && line.rep_write.is_none()).then_some(Placement::ByThread),
        protocol: Some(if line.binary { Protocol::MemcachedBinary } else { Protocol::MemcachedText }),
        transport: line.udp.then_some(Transport::Udp),
        threads: Some(Count(u64::from(line.threads))),
        cpus: (line.threads > 1).then(|| CpuList(allowed_cpus.to_vec())),
        wait: Some(Wait::Sleep),
        timeout: (line.udp || line.facebook).then_some(UDP_TIMEOUT),
        time: line.execute_number.is_none().then(|| DurationNs::from_secs(line.time_s)),
        requests: line.execute_number.map(Count),
        warmup: Some(Warmup::NONE),
        preload: Some(file.sets == 0),
        verify: (line.verify > 0.0).then(|| share(line.verify)),
        seed: line.seed.map(Count),
        data_seed: line.seed.map(Count),
        ..RunSpec::default()
    }
}

fn class_spec(line: &CommandLine, file: &WorkloadFile) -> Result<ClassSpec, String> {
    let get = if line.division > 1 { OpKind::Mget } else { OpKind::Get };
    let objects = u32::try_from(line.win_size).ok().filter(|objects| *objects <= ObjectWindow::OBJECTS_MAX);
    let objects = objects.ok_or_else(|| {
        invalid_value(
            "win_size",
            &line.win_size.to_string(),
            &format!("up to {}k", ObjectWindow::OBJECTS_MAX / 1024),
        )
    })?;
    let each = connections_each(line);
    let connections = u64::from(line.concurrency) * u64::from(each);
    let rate = u128::from(line.tps) * MICRO / u128::from(line.concurrency);
    Ok(ClassSpec {
        call_rate: (rate > 0).then(|| Rate { micro_per_second: u64::try_from(rate).unwrap_or(u64::MAX) }),
        connections: Some(Count(connections)),
        client_connections: Some(Count(u64::from(each))),
        depth: Some(Count(1)),
        mix: Some(Mix::of([(OpKind::Set, file.sets), (get, file.gets)])),
        multiget: (line.division > 1 && file.gets > 0).then_some(Count(u64::from(line.division))),
        ttl: (line.exp_verify > 0.0).then_some(TTL),
        prefix: Some(String::new()),
        key_form: Some(if line.printable_keys { KeyForm::MemaslapPrintable } else { KeyForm::Memaslap }),
        key_size: Some(sizes(&file.keys)),
        value_size: Some(line.fixed_size.map_or_else(|| sizes(&file.values), SizeDistribution::Fixed)),
        popularity: Some(Popularity::Window(ObjectWindow {
            objects,
            overwrite: line.overwrite,
            expire: line.exp_verify,
        })),
        reconnect: Some(match (line.reconnect, line.rep_write) {
            // Clients with a connection to each replica go on without one of them, and end with the last.
            (_, Some(_)) => Reconnect::WhileOneStands,
            (true, None) => Reconnect::Always,
            (false, None) => Reconnect::Never,
        }),
        replicas: line.rep_write.filter(|replicas| *replicas > 1).map(|replicas| Count(u64::from(replicas))),
        ..ClassSpec::default()
    })
}

fn sizes(ranges: &[Range]) -> SizeDistribution {
    let given = ranges.iter().filter(|range| range.thousandths > 0);
    let size = |range: &Range| SizeRange {
        min: range.start,
        max: range.end,
        share: f64::from(range.thousandths) / 1e3,
    };
    SizeDistribution::Ranges(given.map(size).collect())
}

/// The routes of `--facebook`: gets go by UDP.
fn routes(line: &CommandLine, file: &WorkloadFile) -> Vec<ClassSpec> {
    let by_udp = RouteSpec { ops: vec![OpKind::Mget], server: None, transport: Some(Transport::Udp) };
    let class = ClassSpec { route: Some(vec![by_udp]), ..ClassSpec::default() };
    if line.facebook && file.gets > 0 { vec![class] } else { Vec::new() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::command_line::NAMES;
    use super::super::command_line::{OPTIONS, parse};
    use super::*;
    use crate::front_end::tests::{CALLER, changes};
    use crate::options::Action;
    use crate::options::tests::{cases, words};
    use std::io::ErrorKind;

    const FILES: [(&str, &str); 5] = [
        ("mix", "key\n16 64 0.5\n65 100 0.5\nvalue\n10 100 0.3\n101 1000 0.7\ncmd\n0 0.3\n1 0.7"),
        ("small", "key\n16 24 1\nvalue\n100 100 1\ncmd\n0 0.1\n1 0.9"),
        ("get", "key\n64 64 1\nvalue\n100 100 1\ncmd\n0 0.0\n1 1.0"),
        ("set", "key\n30 60 1\nvalue\n100 1000 1\ncmd\n0 1\n1 0"),
        ("short", "key\n8 8 1\nvalue\n100 100 1\ncmd\n0 0.1\n1 0.9"),
    ];

    pub(in super::super) fn invocation(line: &str) -> Result<Invocation, String> {
        let read_text = |path: &str| {
            let file = FILES.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| ErrorKind::NotFound.into())
        };
        let caller = Caller { read_text: &read_text, ..CALLER };
        match parse(&words(line), &|_| None).map_err(|refusal| refusal.message)? {
            Action::Run(line) => Invocation::new(*line, &caller),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// The lines of the plan that differ from those of `-s h`.
    fn plan(line: &str) -> String {
        let spec = |line: &str| invocation(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}")).spec;
        changes(&spec("-s h"), &spec(line))
    }

    #[test]
    fn defaults_become_a_plan() {
        let spec = invocation("-s h").unwrap().spec;
        let expected = "\
server = [\"h:11211\"]
protocol = \"memcached-text\"
threads = 1
wait = \"sleep\"
time = \"10m\"
warmup = \"0s\"
preload = false
connections = 16
client-connections = 1
depth = 1
mix = \"set=100,get=900\"
key-form = \"memaslap\"
key-size = \"ranges:64-64@1\"
value-size = \"ranges:1024-1024@1\"
popularity = \"window:10240\"
prefix = \"\"
reconnect = \"never\"
";
        let text = spec.to_toml();
        let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(sorted(&text), sorted(expected), "{text}");
    }

    #[test]
    fn options_become_plans() {
        // (command line, what of the plan it changes)
        let table = cases(
            r#"
            -s h -T 2 -c 8 -n 3 => threads = 2; cpus = "0-3"; connections = 24; client-connections = 3
            -s a:1,b:2 -T 2 => server = ["a:1", "b:2"]; placement = "by-thread"; threads = 2; cpus = "0-3"
            -s a,b => server = ["a:11211"]
            // Thread i has server i mod N of the list as it is.
            -s a,a,b -T 3 -c 3
                => server = ["a:11211", "a:11211", "b:11211"]; placement = "by-thread"; threads = 3; cpus = "0-3"; connections = 3
            -s a,a,b -T 2 => server = ["a:11211"]; threads = 2; cpus = "0-3"
            -s h -a -d 2 -F set
                => timeout = "30s"; drain = "30s"; mix = "set=1000"; key-size = "ranges:30-60@1"; value-size = "ranges:100-1000@1"
            -s a,b,c -p 2 -n 2 -c 4
                => server = ["a:11211", "b:11211"]; placement = "modulo"; replicas = 2; client-connections = 4; reconnect = "while-one-stands"
            -s h -B -R => protocol = "memcached-binary"; reconnect = "always"
            -s h -U -F small
                => transport = "udp"; timeout = "30s"; drain = "30s"; key-size = "ranges:16-24@1"; value-size = "ranges:100-100@1"
            -s h -a -d 20 -F small -n 4
                => timeout = "30s"; drain = "30s"; connections = 64; client-connections = 4; mix = "set=100,mget=900"; key-size = "ranges:16-24@1"; value-size = "ranges:100-100@1"; multiget = 20; [[class.route]]; ops = ["mget"]; transport = "udp"
            -s h -P 40k -c 64 => connections = 64; call-rate = "640/s"; call-arrival = "uniform"
            -s h -P 10k -c 7 => connections = 7; call-rate = "1462.857142/s"; call-arrival = "uniform"
            -s h -x 2000 -d 20 => requests = 2000; mix = "set=100,mget=900"; multiget = 20
            -s h -F mix
                => mix = "set=300,get=700"; key-size = "ranges:16-64@0.5,65-100@0.5"; value-size = "ranges:10-100@0.3,101-1000@0.7"
            -s h -F get -w 1k => preload = true; mix = "get=1000"; value-size = "ranges:100-100@1"; popularity = "window:1024"
            -s h -F set -X 100 => mix = "set=1000"; key-size = "ranges:30-60@1"; value-size = "fixed:100"
            -s h -v 0.2 -e 0.05 -o 0.1 => verify = "20%"; popularity = "window:10240,overwrite=0.1,expire=0.05"; ttl = "1m"
            -s h --seed 5 => seed = 5; data-seed = 5
            -s h --printable-keys => key-form = "memaslap-printable"
            -s /tmp/x => server = ["unix:/tmp/x"]; transport = "unix"
        "#,
        );
        for [line, expected] in table {
            assert_eq!(plan(line), expected, "{line}");
        }
    }

    #[test]
    fn command_lines_of_known_scripts_become_plans() {
        let table = [
            "-s 127.0.0.1:11211 -S 5s",
            "-s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b",
            "-s 127.0.0.1:11211 -F mix -t 2m -w 40k -S 20s -o 0.2",
            "-s 127.0.0.1:11211 -F mix -t 2m -T 4 -c 128 -d 20 -P 40k",
            "-s 127.0.0.1:11211 -F small -t 2m -d 50 -a -n 40",
            "-s 127.0.0.1:11211,127.0.0.1:11212 -F mix -t 2m",
            "-s 127.0.0.1:11211,127.0.0.1:11212 -F mix -t 2m -p 2",
            "--servers=10.1.1.1:11211,10.1.1.2:11212,10.1.1.3:11213 --threads=6 --concurrency=36",
            "--servers=h --facebook --division=50 --conn_sock=200 -F small",
            "--servers=h --threads=8 --concurrency=128 --conn_sock=128",
            "--servers=192.0.2.1:11211 --threads=4 --concurrency=256 --time=60s --binary --cfg_cmd=mix --verbose",
            "-s 127.0.0.1:11212 -T 14 -c 896 -t 2m",
            "-s H:11211 -t 10s -v 0.2 -e 0.05 -B -T 4 -c 128 -x 100000",
            "-s 127.0.0.1:6666 -U -S 1s -T1 -c 1 -F small",
            "-s 127.0.0.1:8000 -T 64 -c 64 -w 1K -o 0.9 -t 60s -S 1s -F mix 1",
            "-s H:11211 -T 16 -c 160 -F set -x 250000000",
            "-s 127.0.0.1:11211 -T 16 -c 256 -t 180s -X 131072",
            "--servers=127.0.0.1:11211 --concurrency=100 --execute_number=1000000 --win_size=10k",
            "--servers=H:11211 --concurrency=128 --time=60s --udp --stat_freq=10s --win_size=10k --cfg_cmd=mix --fixed_size=64",
            "--servers=localhost:11211 --concurrency=10 --time=5s --win_size=500k --stat_freq=1s --reconnect --seed 1",
            "-s H:11211 -t 60s -c 16 -S 2d",
            "-s 127.0.0.1:11211 -t 1m -T4 --facebook -d 4 -b",
            "--servers=127.0.0.1:11211 -c 1 -t 1s -x 10",
            "-B -c 512 -s A:1,B:1,C:1,D:1 -T 16",
            "-b -s 127.0.0.1:1,127.0.0.1:2, -T 2 -c 8 -t 2s -d 20 -P 40k",
            "-s h -c 10000 -w 1k",
            "-s h -a -d 4 -P 10k -F small -v 0.1",
            "-s a,b -p 2 -P 10k -v 0.1 -e 0.1 -d 4",
            "-s h -n 2 -P 10k -v 0.1 -e 0.1",
            "-s a,b -T 2 -P 10k -v 0.1 -e 0.1 -o 0.1 -d 4 -B -R",
            "-s h -U -d 4 -P 10k -F small -v 0.1 -e 0.1",
            "-s h -a -d 4 -F get",
            "-s h -w 500k -c 128 -n 40",
        ];
        for line in table {
            if let Err(refusal) = invocation(line) {
                panic!("{line}: {refusal}");
            }
        }
    }

    #[test]
    fn invalid_combinations_are_rejected() {
        let table = cases(
            r"
            -s h -a -U -F short => --facebook requires --division
            -s h -a -d 2 -U => --facebook cannot be used with --udp: gets go by UDP and sets by TCP
            -s h -U -n 2 => --udp cannot be used with --conn_sock above 1
            -s h -p 2 => --rep_write requires at least 2 --servers
            -s a,b -p 3 => --rep_write exceeds the number of --servers
            -s a,b -p 2 -U => --udp cannot be used with --rep_write
            -s a,b -p 2 -a -d 2 => --facebook cannot be used with --rep_write
            -s a,a -p 2 => --rep_write requires different --servers
            -s /tmp/x -U => --servers: a socket path cannot be used with --udp
            -s /tmp/x -a -d 2 => --servers: a socket path cannot be used with --udp or --facebook
            -s h -F get -X 1400 -U
                => --fixed_size 1400 exceeds 1224 bytes: UDP, keys of 64 bytes, one datagram of 1400 per request; sets that fill the windows are such requests, too
            -s h -c 1000000 => --win_size 10240 exceeds 2147 objects in each of
            -s h -U -B => --udp cannot be used with --binary
            // The file comes before what does not go together, its sizes behind.
            -s a:b -F none => invalid value 'a:b' for --servers
            -s h -U -n 2 -F none => --cfg_cmd: cannot read 'none'
            -s h -F short => --cfg_cmd: 'short' line 2: keys of 8 to 8 bytes; expected from 16 to 250 bytes
            -s h -w 1g => invalid value '1073741824' for --win_size: expected up to 16384k
            -s h -U -X 1400 => --fixed_size 1400 exceeds 12
            -s h -d 100 -a => --division 100 exceeds\x20
            -s h -c 1000000 -n 1000
                => invalid value '1000000000' for connections (--concurrency × --conn_sock × --rep_write): expected
        ",
        );
        for [line, message] in table {
            let Err(refusal) = invocation(line) else { panic!("{line} is accepted") };
            let said = NAMES.translate(&refusal);
            assert!(said.starts_with(message), "{line}: {said}");
        }
    }

    #[test]
    fn idle_servers_are_named() {
        let remarks = |line: &str| invocation(line).unwrap().remarks.join("; ");
        assert_eq!(
            remarks("-s a,b,b,c,c -T 2"),
            "warning: --servers: each thread, or replica of --rep_write, has one, in their order; no load for c:11211"
        );
        assert_eq!(
            remarks("-s a,b"),
            "warning: --servers: each thread, or replica of --rep_write, has one, in their order; no load for b:11211"
        );
        assert_eq!(
            remarks("-s a,b -p 1"),
            "warning: --servers: each thread, or replica of --rep_write, has one, in their order; no load for b:11211"
        );
        assert_eq!(remarks("-s a,b,a -T 2 -c 4"), "");
        assert_eq!(
            remarks("-s a,b,c -p 2"),
            "warning: --servers: each thread, or replica of --rep_write, has one, in their order; no load for c:11211"
        );
        assert_eq!(remarks("-s a,b,c -T 4 -c 4"), "");
    }

    /// Of command lines made up of values at the ends of their ranges.
    #[test]
    fn errors_name_only_options_of_memaslap() {
        let values: [(&str, &[&str]); 17] = [
            ("-T", &["1", "2", "3", "16", "2000"]),
            ("-c", &["16", "48", "6000", "1000000", "4294967295"]),
            ("-n", &["2", "1000", "4294967295"]),
            ("-x", &["1", "9223372036854775806"]),
            ("-t", &["1s", "36500d"]),
            ("-F", &["mix", "small", "get", "set"]),
            ("-w", &["1k", "1000k", "16384k"]),
            ("-X", &["1", "1400", "1048576"]),
            ("-v", &["0.000000001", "1"]),
            ("-d", &["1", "20", "100", "1024", "100000"]),
            ("-S", &["1s", "36500d"]),
            ("-e", &["0.000000001", "1"]),
            ("-o", &["0.000000001", "1"]),
            ("-P", &["0k", "1k", "8000000000g"]),
            ("-p", &["1", "2", "3", "100"]),
            ("--seed", &["0", "18446744073709551615"]),
            ("--printable-keys", &[""]),
        ];
        let servers = ["h", "a,b", "a,b,c", "a,a,b", "/tmp/x", "/tmp/x,b"];
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            // Knuth's constants for a linear congruential generator of 64 bits.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut refused = 0;
        for _ in 0..5_000 {
            let mut line = format!("-s {}", servers[draw(servers.len())]);
            for (option, values) in &values {
                if draw(4) == 0 {
                    line += &format!(" {option} {}", values[draw(values.len())]);
                }
            }
            for flag in ["-R", "-U", "-a", "-B", "-b"] {
                line += &if draw(5) == 0 { format!(" {flag}") } else { String::new() };
            }
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let Ok(Action::Run(_)) = parse(&words, &|_| None) else { continue };
            let Err(refusal) = invocation(&line) else { continue };
            refused += 1;
            let said = NAMES.translate(&refusal);
            let is_own = |word: &str| OPTIONS.iter().any(|option| option.long == word);
            let named = said.split("--").skip(1).map(|rest| {
                rest.split(|letter: char| !letter.is_ascii_alphanumeric() && !"-_".contains(letter)).next()
            });
            let foreign: Vec<&str> = named.flatten().filter(|word| !is_own(word)).collect();
            let has_advice = ["accepted: ", "expected ", " exceeds ", " requires ", " cannot be used with "]
                .map(|form| said.contains(form));
            assert!(foreign.is_empty() && has_advice.contains(&true), "{line}: {said}");
        }
        assert!(refused > 1_000, "{refused}");
    }

    #[test]
    fn server_lists_are_parsed() {
        let table = [
            ("127.0.0.1:11212", "127.0.0.1:11212"),
            ("a", "a:11211"),
            ("a:1,b:2,", "a:1 b:2"),
            ("a:1, b:2", "a:1 b:2"),
            ("a:0,b:7 5,c:8:5", "a:11211 b:7 c:8"),
            ("[::1]:7,::1,[::1]:0", "[::1]:7 [::1]:11211 [::1]:11211"),
            ("/tmp/mc.sock,unix:/run/x", "unix:/tmp/mc.sock unix:/run/x"),
        ];
        for (text, expected) in table {
            let shown: Vec<String> = servers(text).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(shown.join(" "), expected, "{text}");
        }
        for text in ["a:b", "a:1:x", "a:99999", "!"] {
            let refusal = servers(&format!("ok,{text}")).unwrap_err();
            assert!(
                refusal.starts_with(&format!("invalid value '{text}' for --servers: expected HOST")),
                "{refusal}"
            );
        }
    }
}
