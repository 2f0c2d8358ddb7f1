//! Translates a command line into a plan, and results of its run into text.
//!
//! Not a run. Invariant: the requests are mcperf's to the byte, and what no plan does is refused here, before anything is connected.

use super::command_line::CommandLine;
use crate::front_end::{Caller, as_warnings};
use crate::options::invalid_value;
use brunt_plan::arrival::Arrival;
use brunt_plan::distribution::{McperfDraw, McperfShape};
use brunt_plan::mix::Mix;
use brunt_plan::op::OpKind;
use brunt_plan::plan::{KeyForm, MeterKind, Protocol, Reconnect, ValueForm};
use brunt_plan::popularity::Popularity;
use brunt_plan::server::ServerAddress;
use brunt_plan::size::SizeDistribution;
use brunt_plan::sockets::SocketOptions;
use brunt_plan::spec::{ClassSpec, PlanSpec, RunSpec};
use brunt_plan::units::{Count, DurationNs, Rate};
use brunt_plan::url::ServerList;
use brunt_plan::warmup::Warmup;

/// Keys are numbered in 32 bits.
const KEYS_MAX: u64 = 1 << 32;
/// Digits of the number.
const NUMBER_BYTES: u32 = 8;
/// How many calls of all connections may be under way.
const CALLS_MAX: u64 = 1 << 22;
/// A client has no more ports to one server, so that no more can be open at a time.
const CONNECTIONS_MAX: u64 = 65_535;
/// memcached takes a longer expiry for a Unix time, and one before this for one that is long past.
const EXPIRY_S_MAX: u64 = 30 * 86_400;
const UNIX_TIME_MIN: u64 = 1_000_000_000;
const MICRO: f64 = 1e6;

/// A translated command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The plan to run.
    pub spec: PlanSpec,
    /// The command line.
    pub line: CommandLine,
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
        let calls = line.num_conns.saturating_mul(line.num_calls);
        if calls > KEYS_MAX {
            remarks.push(format!(
                "note: {calls} calls, and keys are numbered in 32 bits: call {} has the key of the first",
                KEYS_MAX + 1
            ));
        }
        let spec = PlanSpec { run: run_spec(&line)?, base: class_spec(&line)?, classes: Vec::new() };
        caller.check(&spec)?;
        Ok(Self { spec, line, remarks })
    }
}

fn server(line: &CommandLine) -> Result<ServerAddress, String> {
    let accepted = || {
        invalid_value(
            "server",
            &line.server,
            "the name or address of a host without a port, or the path of a socket",
        )
    };
    if line.server.starts_with('/') {
        return format!("unix:{}", line.server).parse().map_err(|_| accepted());
    }
    match line.server.parse().map_err(|_| accepted())? {
        ServerAddress::Network { host, port: 0 } => Ok(ServerAddress::network(host, line.port)),
        _ => Err(accepted()),
    }
}

fn run_spec(line: &CommandLine) -> Result<RunSpec, String> {
    let server = server(line)?;
    // What TCP alone has is not asked of a Unix socket.
    let is_tcp = !server.is_unix();
    let buffer = |bytes: u64| Some(Count(bytes.clamp(1, u64::from(SocketOptions::BUFFER_BYTES_MAX))));
    Ok(RunSpec {
        server: ServerList::of(&[server]),
        protocol: Some(Protocol::MemcachedText),
        nodelay: (is_tcp && line.disable_nodelay).then_some(false),
        linger: line.linger_s.filter(|_| is_tcp).map(DurationNs::from_secs),
        send_buffer: buffer(line.send_buffer),
        receive_buffer: buffer(line.recv_buffer),
        threads: Some(Count(1)),
        wait: line.wait,
        timeout: line.timeout,
        warmup: Some(Warmup::NONE),
        preload: Some(false),
        // Only the requested connections talk to the server.
        server_stats: Some(false),
        trailing_blank: Some(true),
        seed: Some(Count(u64::from(line.client))),
        data_seed: Some(Count(u64::from(line.client))),
        meter: Some(vec![
            MeterKind::ConnectionTime,
            MeterKind::ConnectTime,
            MeterKind::RequestSize,
            MeterKind::ResponseSize,
        ]),
        ..RunSpec::default()
    })
}

fn class_spec(line: &CommandLine) -> Result<ClassSpec, String> {
    let draw = |shape: McperfShape| McperfDraw { shape, client: line.client };
    let most = if line.conn_rate.is_some() { CONNECTIONS_MAX } else { 1 };
    let connections = line.num_conns.min(most);
    let counts = matches!(line.method, OpKind::Incr | OpKind::Decr);
    let stores = !counts && !line.method.is_retrieval() && line.method != OpKind::Delete;
    let sizes = || SizeDistribution::Mcperf(draw(line.sizes));
    Ok(ClassSpec {
        connections: Some(Count(connections)),
        depth: line.call_rate.map(|_| Count(line.num_calls.min(CALLS_MAX / connections))),
        mix: Some(Mix::of([(line.method, 1)])),
        ttl: expiry(line.expiry_s)?.filter(|_| stores),
        noreply: (line.use_noreply && !line.method.is_retrieval()).then_some(true),
        keys: Some(Count(line.num_conns.saturating_mul(line.num_calls).min(KEYS_MAX))),
        first_key: Some(Count(1)),
        prefix: Some(line.prefix.clone()),
        key_form: Some(KeyForm::Hex8),
        key_size: Some(SizeDistribution::Fixed(line.prefix.len() as u32 + NUMBER_BYTES)),
        value_form: Some(ValueForm::Zeros),
        value_size: stores.then(sizes),
        delta: counts.then(sizes),
        popularity: Some(Popularity::Sequential),
        connect_rate: line.conn_rate.map(|shape| rate("conn-rate", shape)).transpose()?,
        connect_arrival: line.conn_rate.map(|shape| arrival(draw(shape))),
        call_rate: line.call_rate.map(|shape| rate("call-rate", shape)).transpose()?,
        call_arrival: line.call_rate.map(|shape| arrival(draw(shape))),
        calls_per_connection: Some(Count(line.num_calls)),
        connections_total: Some(Count(line.num_conns)),
        reconnect: Some(Reconnect::Never),
        ..ClassSpec::default()
    })
}

fn expiry(seconds: u64) -> Result<Option<DurationNs>, String> {
    match seconds {
        0 => Ok(None),
        1..=EXPIRY_S_MAX | UNIX_TIME_MIN.. => Ok(Some(DurationNs::from_secs(seconds))),
        _ => Err(invalid_value(
            "expiry",
            &seconds.to_string(),
            "seconds up to 2592000 (30 days), or a Unix time: memcached takes this for a time that is long past",
        )),
    }
}

/// How many a second on the average; of gaps that grow without end, the rate in whose gaps they count.
fn rate(long: &str, shape: McperfShape) -> Result<Rate, String> {
    let per_second = McperfDraw { shape, client: 0 }.mean().map_or(1.0, f64::recip);
    let micro_per_second = (per_second * MICRO).round();
    if (1.0..1e18).contains(&micro_per_second) {
        return Ok(Rate { micro_per_second: micro_per_second as u64 });
    }
    Err(invalid_value(
        long,
        &format!("{per_second}/s"),
        "a mean rate from 0.000001 to 1000000000000 a second",
    ))
}

fn arrival(draw: McperfDraw) -> Arrival {
    match draw.shape {
        McperfShape::Fixed(_) => Arrival::Uniform,
        _ => Arrival::Mcperf(draw),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::command_line::parse;
    use super::*;
    use crate::front_end::tests::CALLER;
    use crate::options::Action;
    use crate::options::tests::{cases, words};

    pub(in super::super) fn invocation(line: &str) -> Result<Invocation, String> {
        match parse(&words(line)).map_err(|refusal| refusal.message)? {
            Action::Run(line) => Invocation::new(*line, &CALLER),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_become_a_plan() {
        let expected = "\
server = [\"localhost:11211\"]
protocol = \"memcached-text\"
send-buffer = 4096
receive-buffer = 16384
threads = 1
trailing-blank = true
warmup = \"0s\"
preload = false
server-stats = false
seed = 0
data-seed = 0
meter = [\"connection-time\", \"connect-time\", \"request-size\", \"response-size\"]
connections = 1
mix = \"set=1\"
keys = 1
first-key = 1
prefix = \"mcp:\"
key-form = \"hex8\"
key-size = \"fixed:12\"
value-form = \"zeros\"
value-size = \"mcperf:d1\"
popularity = \"sequential\"
calls-per-connection = 1
connections-total = 1
reconnect = \"never\"
";
        let text = invocation("").unwrap().spec.to_toml();
        let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(sorted(&text), sorted(expected), "{text}");
    }

    #[test]
    fn options_become_plans() {
        let usual = invocation("").unwrap().spec.to_toml();
        // (command line, what of the plan it changes)
        let table = cases(
            r#"
            -s h -p 22 -D => server = ["h:22"]; nodelay = false
            -s ::1 => server = ["[::1]:11211"]
            -s /tmp/mc.sock -D -l 0 => server = ["unix:/tmp/mc.sock"]
            -n 5 -N 20 => keys = 100; calls-per-connection = 20; connections-total = 5
            -n 200 -N 10 -r 1000 -R 1000
                => connections = 200; depth = 10; keys = 2000; connect-rate = "1000/s"; connect-arrival = "uniform"; call-rate = "1000/s"; call-arrival = "uniform"; calls-per-connection = 10; connections-total = 200
            -n 100000 -r d0.5
                => connections = 65535; keys = 100000; connect-rate = "2/s"; connect-arrival = "uniform"; connections-total = 100000
            -c 3/8 -R u0.001,0.003 -z u1,16
                => seed = 3; data-seed = 3; depth = 1; value-size = "mcperf:u1,16@3"; call-rate = "500/s"; call-arrival = "mcperf:u0.001,0.003@3"
            -r e0.01 => connect-rate = "100/s"; connect-arrival = "mcperf:e0.01"
            -R s0.5 => depth = 1; call-rate = "1/s"; call-arrival = "mcperf:s0.5"
            -z 0.01 => value-size = "mcperf:d100"
            -m get -q -e 5 -z e50 => mix = "get=1"
            -m delete -q -e 5 => mix = "delete=1"; noreply = true
            -m decr -z d2 => mix = "decr=1"; delta = "mcperf:d2"
            -m cas -e 100 => mix = "cas=1"; ttl = "100s"
            -e 1900000000 => ttl = "1900000000s"
            -P abcdefghijklmnop => prefix = "abcdefghijklmnop"; key-size = "fixed:24"
            -t 0.5 -l 3 -b 0 -B 65536 --wait spin
                => linger = "3s"; send-buffer = 1; receive-buffer = 65536; wait = "spin"; timeout = "500ms"
            -n 100000 -N 100000 => keys = 4294967296; calls-per-connection = 100000; connections-total = 100000
        "#,
        );
        for [line, expected] in table {
            let text = invocation(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}")).spec.to_toml();
            let lines = text.lines().filter(|line| !usual.lines().any(|held| held == *line));
            let mut lines: Vec<&str> = lines.collect();
            let mut expected: Vec<&str> = expected.split("; ").collect();
            lines.sort_unstable();
            expected.sort_unstable();
            assert_eq!(lines, expected, "{line}");
        }
    }

    #[test]
    fn command_lines_of_known_scripts_become_plans() {
        let table = [
            "--linger=0 --timeout=5 --conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=u1,16",
            "--linger=0 --call-rate=0 --num-calls=100 --conn-rate=0 --num-conns=100 --sizes=d1",
            "--linger=0 --timeout=5 --num-conns=1000 --conn-rate=1000 --num-calls=1000 --call-rate=1000 --sizes=u10,1024 \
             --method=set --server=172.20.99.136 --port=11211 --verbosity=6 --output=/tmp/log_1",
            "--server=localhost --port=11211 --client=3/16 --num-conns=10 --conn-rate=10000 --num-calls=10000 --call-rate=10000",
            "--server=localhost --port=11211 --num-conns=10 --conn-rate=10000 --num-calls=1000 --call-rate=0 --method=incr \
             --sizes=u1000,1000 --prefix=abc:",
            "--server=localhost --port=11211 --num-conns=10 --conn-rate=10000 --num-calls=1000 --call-rate=0 --method=append \
             --sizes=u1000,1000 --prefix=abc:",
            "--linger=0 --call-rate=0 --num-calls=2000000 --conn-rate=0 --num-conns=1 --sizes=d5120 --method=get",
            "--linger=0 --timeout=300 --conn-rate=100 --call-rate=1000 --num-calls=100000000 --num-conns=100 --sizes=u1,16 \
             -s ec2-1-2-3-4.compute-1.amazonaws.com -p 11211 --method=get",
            "--num-conns=64 --conn-rate=1000000 --num-calls=7812 --sizes=100 --method=set --port=11211",
            "--num-conns=100 --conn-rate=1000 --sizes=0.01 --num-calls=10000",
            "--num-conns=100 --conn-rate=1000 --sizes=0.00001 --num-calls=10000",
            "--server=172.17.0.2 -p22 -n1000",
            "--linger=0 --timeout=5 --num-conns=1000 --server=H --port=11222",
            "--num-calls=5 --num-conns=7 -s H",
            "--conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=d4096 --method=get",
            "--sizes=u100000,100000 --num-calls=1000 --num-conns=100 --call-rate=1000 --conn-rate=10000 --method=set \
             --server=127.0.0.1 --port=7",
            "--linger=0 --timeout=5 --num-conns=100 --conn-rate=1000 --num-calls=10000 --call-rate=1000 --sizes=u10,1024 \
             --method=get --port=11211",
            "--linger=0 --call-rate=0 --num-calls=100000 --conn-rate=0 --num-conns=1 --sizes=d10",
            "-H -m get -n 100 -N 1000 -r 1000 -R e0.001",
            "-m set -q -e 100 -n 2 -N 2 -z s5",
            "-s /tmp/memcached.sock -D -N 5",
            "-s /tmp/memcached.sock -N 5",
            "-c 3/8 -z u1,100 -N 3",
            "--server=H --port=7 --client=1/8 --num-conns=4 --conn-rate=100 --num-calls=50000 --call-rate=0 -z u1024,16384 \
             --method=append",
            "",
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
            -s h:7 => invalid value 'h:7' for --server: expected the name or address of a host without a port
            -s ! => invalid value '!' for --server
            -e 3000000 => invalid value '3000000' for --expiry: expected seconds up to 2592000 (30 days), or a Unix time
            -r d1e9 => invalid value '0.000000001/s' for --conn-rate: expected a mean rate from 0.000001
            -l 70000 => invalid value '70000s' for linger: expected whole seconds up to 65535
            -z d1e12 => --value-size mcperf:d1000000000000 exceeds 128MiB
        ",
        );
        for [line, message] in table {
            let Err(refusal) = invocation(line) else { panic!("{line} is accepted") };
            assert!(refusal.starts_with(message), "{line}: {refusal}");
        }
    }

    #[test]
    fn surprising_options_get_a_remark() {
        let remarks = |line: &str| invocation(line).unwrap().remarks.join("; ");
        assert_eq!(remarks(""), "");
        assert_eq!(remarks("x"), "warning: 'x' belongs to no option and has no effect");
        assert_eq!(
            remarks("-n 65537 -N 65536"),
            "note: 4295032832 calls, and keys are numbered in 32 bits: call 4294967297 has the key of the first"
        );
        assert_eq!(remarks("-n 65536 -N 65536"), "");
    }
}
