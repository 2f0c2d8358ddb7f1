//! The options of other load generators, one row each: its names there, what it takes, and what brunt has for it.
//!
//! Values that depend on other options of the line are made in `translation.rs`. Invariant: a tool has one row for each name.

use super::value::ValueShape;

/// Whose option a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// redis-benchmark; valkey-benchmark takes its options, too.
    Redis,
    /// valkey-benchmark alone.
    Valkey,
    Memtier,
    Mutilate,
}

impl Tool {
    /// The name of the program.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-benchmark",
            Self::Valkey => "valkey-benchmark",
            Self::Memtier => "memtier_benchmark",
            Self::Mutilate => "mutilate",
        }
    }

    /// Does this tool understand the options of that one?
    pub(super) fn takes_those_of(self, other: Self) -> bool {
        self == other || (self == Self::Redis && other == Self::Valkey)
    }
}

/// What brunt has for an option.
#[derive(Clone, Copy)]
pub(super) enum Translation {
    /// These words, with the value in place of `{}`.
    As(&'static str),
    /// What `translation.rs` makes of the value and the line for this.
    Made(Translator),
    /// Nothing; the note says why.
    Nothing,
}

/// What an option means that needs more than its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Translator {
    /// The server, which several options name together.
    Server,
    /// Whether connections are kept.
    KeepAlive,
    /// How many keys, in redis-benchmark's form.
    RedisKeys,
    /// Operations by the names of tests.
    Tests,
    /// A user and a password.
    Credentials,
    /// The part of misses that is too much.
    MissRate,
    /// Requests of each client.
    Requests,
    /// Requests a second of each connection.
    RateOfConnections,
    /// Connections of each thread.
    Connections,
    /// The weights of operations or commands.
    Mix,
    /// Keys of a retrieval.
    MultiGet,
    /// A command.
    Template,
    /// How often each key is used.
    Popularity,
    /// Sizes between two.
    SizeRange,
    /// Sizes with weights.
    SizeList,
    /// Times to live.
    Expiry,
    /// The first and the last key.
    Keys,
    /// mutilate's servers.
    Servers,
    /// The rate of all connections.
    Qps,
    /// The part of stores.
    Update,
    /// A processor for each thread.
    Affinity,
    /// Where an agent listens.
    AgentPort,
    /// Gaps between requests.
    Arrival,
    /// A percentile and its bound.
    Search,
    /// Rates to go over.
    Scan,
}

/// An option of another tool.
pub(super) struct Row {
    pub of: Tool,
    /// As the tool spells it.
    pub names: &'static [&'static str],
    pub takes: ValueShape,
    pub ours: Translation,
    /// What else is to be said.
    pub note: &'static str,
}

const fn row(
    of: Tool,
    names: &'static [&'static str],
    takes: ValueShape,
    ours: Translation,
    note: &'static str,
) -> Row {
    Row { of, names, takes, ours, note }
}

/// The row of an option of this tool.
pub(super) fn find(tool: Tool, name: &str) -> Option<&'static Row> {
    OPTIONS.iter().find(|row| tool.takes_those_of(row.of) && row.names.contains(&name))
}

use Tool::{Memtier, Mutilate, Redis, Valkey};
use Translation::{As, Made, Nothing as Without};
use Translator::{
    Affinity, AgentPort, Arrival, Connections, Credentials, Expiry, KeepAlive, Keys, MissRate, Mix, MultiGet,
    Popularity, Qps, RateOfConnections, RedisKeys, Requests, Scan, Search, Server, Servers, SizeList,
    SizeRange, Template, Tests, Update,
};
use ValueShape::{
    Decimal, Host, Nothing, Number, Pair, Part, Path, Pattern, Patterns, Percent, Range, Sizes, Steps, Text,
    Uri,
};

const REPORTED: &str = "the report of every run has it";
const NEVER: &str = "brunt has nothing of the kind";
const SEEDS: &str = "every run has a seed of its own, and prints it; --seed repeats a run";
const ALWAYS_RECONNECTS: &str = "lost connections are always replaced; --reconnect changes that";
const REPLACED_BY_HTTP: &str = "--http PORT shows the run as it goes on, for Prometheus";
const STEPS: &str = "a staircase of connections: brunt scan --over connections=10,20,40";
const NO_DELAYS: &str = "--connect-rate spaces the connections out";
const NO_RETRIES: &str = "a request that fails is counted, and not sent again";

/// Every option.
#[rustfmt::skip]
pub(super) static OPTIONS: &[Row] = &[
    row(Redis, &["-h"], Host, Made(Server), ""),
    row(Redis, &["-p"], Number, Made(Server), ""),
    row(Redis, &["-s"], Path, Made(Server), ""),
    row(Redis, &["-u"], Uri, Made(Server), ""),
    row(Redis, &["-a"], ValueShape::Secret, As("--password @redis.pw"), "a file whose first line is the password"),
    row(Redis, &["--user"], Text, As("--user {}"), ""),
    row(Redis, &["-c"], Number, As("--connections {}"), ""),
    row(Redis, &["-n"], Number, As("--requests {}"), ""),
    row(Redis, &["-d"], Number, As("--value-size {}"), ""),
    row(Redis, &["--dbnum"], Number, As("--database {}"), ""),
    row(Redis, &["-3"], Nothing, Made(Server), ""),
    row(Redis, &["--threads"], Number, As("--threads {}"), ""),
    row(Redis, &["--cluster"], Nothing, As("--cluster"), ""),
    row(Redis, &["--enable-tracking"], Nothing, Without, NEVER),
    row(Redis, &["-k"], Number, Made(KeepAlive), ""),
    row(Redis, &["-r"], Number, Made(RedisKeys), ""),
    row(Redis, &["-P"], Number, As("--depth {}"), "requests in flight on each connection"),
    row(Redis, &["-q"], Nothing, As("--brief"), "one line; here -q prints errors only"),
    row(Redis, &["--precision"], Number, Without, "percentiles have three digits"),
    row(Redis, &["--csv"], Nothing, As("--json -"), "here --csv PATH writes a line per second"),
    row(Redis, &["-l"], Nothing, Without, "a run ends after --time; Ctrl-C ends it sooner, with its report"),
    row(Redis, &["-t"], ValueShape::Tests, Made(Tests), "side by side in one run"),
    row(Redis, &["-I"], Nothing, Without, "connections are idle at a low --rate"),
    row(Redis, &["-e"], Nothing, Without, "the report counts error replies and quotes the first"),
    row(Redis, &["-x"], Nothing, Without, "its last argument is {value} here, of --value-size"),
    row(Redis, &["--seed"], Number, As("--seed {}"), ""),
    row(Redis, &["--tls"], Nothing, Made(Server), ""),
    row(Redis, &["--sni"], Text, As("--tls-server-name {}"), ""),
    row(Redis, &["--cacert"], Text, As("--tls-ca {}"), ""),
    row(Redis, &["--cacertdir"], Text, Without, "--tls-ca FILE takes one file of certificates"),
    row(Redis, &["--insecure"], Nothing, As("--tls-insecure"), ""),
    row(Redis, &["--cert"], Text, As("--tls-cert {}"), ""),
    row(Redis, &["--key"], Text, As("--tls-key {}"), ""),
    row(Redis, &["--tls-ciphers"], Text, Without, NEVER),
    row(Redis, &["--tls-ciphersuites"], Text, Without, NEVER),
    row(Valkey, &["--rps"], Number, As("--rate {}"), "an open loop: latency counts from when a request was due"),
    row(Valkey, &["--duration"], Number, As("--time {}s"), ""),
    row(Valkey, &["--warmup"], Number, As("--warmup {}s"), ""),
    row(Valkey, &["--sequential"], Nothing, As("--popularity sequential"), ""),
    row(Valkey, &["--rfr"], Text, Without, "reads go to the primaries"),
    row(Valkey, &["--dataset"], Text, Without, "a trace in a plan file replays data: docs/workload.md"),
    row(Valkey, &["--maxdocs"], Number, Without, NEVER),
    row(Valkey, &["--xml-root-element"], Text, Without, NEVER),
    row(Valkey, &["--num-functions"], Number, Without, "write the calls as --command"),
    row(Valkey, &["--num-keys-in-fcall"], Number, Without, "write the calls as --command"),
    row(Valkey, &["--rdma"], Nothing, Without, NEVER),
    row(Valkey, &["--mptcp"], Nothing, Without, NEVER),

    row(Memtier, &["--server", "-s", "--host", "-h"], Host, Made(Server), ""),
    row(Memtier, &["--port", "-p"], Number, Made(Server), ""),
    row(Memtier, &["--unix-socket", "-S"], Text, Made(Server), ""),
    row(Memtier, &["--uri", "-u"], Uri, Made(Server), ""),
    row(Memtier, &["--protocol", "-P"], ValueShape::Protocol, Made(Server), ""),
    row(Memtier, &["--tls"], Nothing, Made(Server), ""),
    row(Memtier, &["--ipv4", "-4"], Nothing, As("--ip-version 4"), ""),
    row(Memtier, &["--ipv6", "-6"], Nothing, As("--ip-version 6"), ""),
    row(Memtier, &["--authenticate", "-a"], ValueShape::Secret, Made(Credentials), "a file whose first line is the password"),
    row(Memtier, &["--cert"], Text, As("--tls-cert {}"), ""),
    row(Memtier, &["--key"], Text, As("--tls-key {}"), ""),
    row(Memtier, &["--cacert"], Text, As("--tls-ca {}"), ""),
    row(Memtier, &["--tls-skip-verify"], Nothing, As("--tls-insecure"), ""),
    row(Memtier, &["--tls-protocols"], Text, Without, "TLS 1.2 and 1.3 are offered"),
    row(Memtier, &["--sni"], Text, As("--tls-server-name {}"), ""),
    row(Memtier, &["--run-count", "-x"], Number, As("--repeat {}"), ""),
    row(Memtier, &["--debug", "-D"], Nothing, Without, NEVER),
    row(Memtier, &["--cluster-mode"], Nothing, As("--cluster"), ""),
    row(Memtier, &["--transaction"], Nothing, Without, NEVER),
    row(Memtier, &["--out-file", "-o"], Text, Without, "the report goes to standard output: > FILE"),
    row(Memtier, &["--json-out-file"], Text, As("--json {}"), ""),
    row(Memtier, &["--client-stats"], Text, Without, "--samples FILE writes single requests, --csv FILE a line per second"),
    row(Memtier, &["--hdr-file-prefix"], Text, Without, "--json FILE has the histograms"),
    row(Memtier, &["--show-config"], Nothing, Without, "--print-plan prints the plan, and does nothing else"),
    row(Memtier, &["--hide-histogram"], Nothing, Without, "the report prints no histogram"),
    row(Memtier, &["--print-percentiles"], Text, As("--percentiles {}"), ""),
    row(Memtier, &["--print-all-runs"], Nothing, Without, "--repeat prints every run"),
    row(Memtier, &["--realtime-latencies"], Nothing, Without, "the line of progress has them; --http PORT shows them to other programs"),
    row(Memtier, &["--command-stats-breakdown"], Text, Without, REPORTED),
    row(Memtier, &["--command-miss-tracking"], Text, Without, REPORTED),
    row(Memtier, &["--miss-rate-threshold"], Percent, Made(MissRate), ""),
    row(Memtier, &["--statsd-host"], Text, Without, REPLACED_BY_HTTP),
    row(Memtier, &["--statsd-port"], Number, Without, REPLACED_BY_HTTP),
    row(Memtier, &["--statsd-prefix"], Text, Without, REPLACED_BY_HTTP),
    row(Memtier, &["--statsd-run-label"], Text, Without, REPLACED_BY_HTTP),
    row(Memtier, &["--graphite-port"], Number, Without, REPLACED_BY_HTTP),
    row(Memtier, &["--prometheus-port"], Number, As("--http {}"), ""),
    row(Memtier, &["--prometheus-bind-addr"], Text, Without, "--http ADDRESS:PORT"),
    row(Memtier, &["--prometheus-run-label"], Text, Without, NEVER),
    row(Memtier, &["--prometheus-latency-buckets"], Text, Without, NEVER),
    row(Memtier, &["--requests", "-n"], ValueShape::Requests, Made(Requests), ""),
    row(Memtier, &["--rate-limiting"], Number, Made(RateOfConnections), "an open loop: latency counts from when a request was due"),
    row(Memtier, &["--clients", "-c"], Number, Made(Connections), ""),
    row(Memtier, &["--threads", "-t"], Number, As("--threads {}"), ""),
    row(Memtier, &["--test-time"], Number, As("--time {}s"), ""),
    row(Memtier, &["--clients-start"], Number, Without, STEPS),
    row(Memtier, &["--clients-step"], Number, Without, STEPS),
    row(Memtier, &["--step-duration"], Number, Without, STEPS),
    row(Memtier, &["--ratio"], Pair, Made(Mix), ""),
    row(Memtier, &["--pipeline"], Number, As("--depth {}"), "requests in flight on each connection"),
    row(Memtier, &["--reconnect-interval"], Number, As("--calls-per-connection {}"), ""),
    row(Memtier, &["--reconnect-on-error"], Nothing, Without, ALWAYS_RECONNECTS),
    row(Memtier, &["--max-reconnect-attempts"], Number, Without, ALWAYS_RECONNECTS),
    row(Memtier, &["--reconnect-backoff-factor"], Decimal, Without, ALWAYS_RECONNECTS),
    row(Memtier, &["--retry-on-error"], Nothing, Without, NO_RETRIES),
    row(Memtier, &["--max-retries"], Text, Without, NO_RETRIES),
    row(Memtier, &["--retry-backoff-ms"], Number, Without, NO_RETRIES),
    row(Memtier, &["--retry-backoff-factor"], Decimal, Without, NO_RETRIES),
    row(Memtier, &["--retry-on"], Text, Without, NO_RETRIES),
    row(Memtier, &["--max-retry-queue"], Number, Without, NO_RETRIES),
    row(Memtier, &["--failed-keys-file"], Text, Without, "--samples FILE writes single requests with their outcome"),
    row(Memtier, &["--connection-timeout"], Number, As("--connect-timeout {}s"), ""),
    row(Memtier, &["--connection-stage-timeout"], Number, As("--connect-timeout {}s"), ""),
    row(Memtier, &["--thread-conn-start-min-jitter-micros"], Number, Without, NO_DELAYS),
    row(Memtier, &["--thread-conn-start-max-jitter-micros"], Number, Without, NO_DELAYS),
    row(Memtier, &["--multi-key-get"], Number, Made(MultiGet), ""),
    row(Memtier, &["--select-db"], Number, As("--database {}"), ""),
    row(Memtier, &["--distinct-client-seed"], Nothing, Without, "connections draw from one sequence"),
    row(Memtier, &["--randomize"], Nothing, Without, SEEDS),
    row(Memtier, &["--command"], Text, Made(Template), ""),
    row(Memtier, &["--command-ratio"], Number, Made(Mix), ""),
    row(Memtier, &["--command-key-pattern"], Pattern, Made(Popularity), ""),
    row(Memtier, &["--command-is-read"], Nothing, Without, NEVER),
    row(Memtier, &["--monitor-input"], Text, Without, "a trace in a plan file replays requests: docs/workload.md"),
    row(Memtier, &["--monitor-pattern"], Text, Without, NEVER),
    row(Memtier, &["--scan-incremental-iteration"], Nothing, Without, NEVER),
    row(Memtier, &["--scan-incremental-max-iterations"], Number, Without, NEVER),
    row(Memtier, &["--read-preference"], Text, Without, "reads go to the primaries"),
    row(Memtier, &["--read-server"], Text, Without, "--replicas N, or a [[class.route]] of a plan file"),
    row(Memtier, &["--replica-clients"], Number, Without, NEVER),
    row(Memtier, &["--replicas-per-shard"], Number, Without, NEVER),
    row(Memtier, &["--read-preference-fallback"], Text, Without, NEVER),
    row(Memtier, &["--data-size", "-d"], Number, As("--value-size {}"), ""),
    row(Memtier, &["--data-offset"], Number, Without, NEVER),
    row(Memtier, &["--random-data", "-R"], Nothing, Without, "values are random; --value-form zeros makes them zeros"),
    row(Memtier, &["--data-size-range"], Range, Made(SizeRange), ""),
    row(Memtier, &["--data-size-list"], Sizes, Made(SizeList), ""),
    row(Memtier, &["--data-size-pattern"], Text, Without, "sizes are drawn by --value-size, one for each key"),
    row(Memtier, &["--expiry-range"], Range, Made(Expiry), "one time to live for all"),
    row(Memtier, &["--data-import"], Text, Without, "a trace in a plan file replays requests: docs/workload.md"),
    row(Memtier, &["--data-verify"], Nothing, As("--verify"), "while the run goes on"),
    row(Memtier, &["--verify-only"], Nothing, As("--verify"), "while the run goes on"),
    row(Memtier, &["--generate-keys"], Nothing, Without, "keys are generated"),
    row(Memtier, &["--no-expiry"], Nothing, Without, "without --ttl nothing expires"),
    row(Memtier, &["--key-prefix"], Text, As("--prefix {}"), ""),
    row(Memtier, &["--key-minimum"], Number, Made(Keys), ""),
    row(Memtier, &["--key-maximum"], Number, Made(Keys), ""),
    row(Memtier, &["--key-pattern"], Patterns, Made(Popularity), ""),
    row(Memtier, &["--key-stddev"], Decimal, Made(Popularity), ""),
    row(Memtier, &["--key-median"], Decimal, Without, "gaussian has its centre in the middle of the keys"),
    row(Memtier, &["--key-zipf-exp"], Decimal, Made(Popularity), ""),
    row(Memtier, &["--wait-ratio"], Pair, Without, NEVER),
    row(Memtier, &["--num-slaves"], Text, Without, NEVER),
    row(Memtier, &["--wait-timeout"], Text, Without, NEVER),

    row(Mutilate, &["--server", "-s"], Text, Made(Servers), ""),
    row(Mutilate, &["--binary"], Nothing, As("--protocol memcached-binary"), ""),
    row(Mutilate, &["--qps", "-q"], Number, Made(Qps), ""),
    row(Mutilate, &["--time", "-t"], Number, As("--time {}s"), ""),
    row(Mutilate, &["--keysize", "-K"], Text, As("--key-size {}"), ""),
    row(Mutilate, &["--valuesize", "-V"], Text, As("--value-size {}"), ""),
    row(Mutilate, &["--records", "-r"], Number, As("--keys {}"), ""),
    row(Mutilate, &["--update", "-u"], Part, Made(Update), ""),
    row(Mutilate, &["--username", "-U"], Text, As("--user {}"), ""),
    row(Mutilate, &["--password", "-P"], ValueShape::Secret, As("--password @cache.pw"), "a file whose first line is the password"),
    row(Mutilate, &["--threads", "-T"], Number, As("--threads {}"), ""),
    row(Mutilate, &["--affinity"], Nothing, Made(Affinity), ""),
    row(Mutilate, &["--connections", "-c"], Number, Made(Connections), ""),
    row(Mutilate, &["--depth", "-d"], Number, As("--depth {}"), ""),
    row(Mutilate, &["--roundrobin", "-R"], Nothing, As("--placement by-thread"), ""),
    row(Mutilate, &["--iadist", "-i"], Text, Made(Arrival), ""),
    row(Mutilate, &["--skip", "-S"], Nothing, Without, "a request that is due is never skipped; waiting counts"),
    row(Mutilate, &["--moderate"], Nothing, Without, "--think pauses a closed loop"),
    row(Mutilate, &["--noload"], Nothing, As("--no-preload"), ""),
    row(Mutilate, &["--loadonly"], Nothing, Without, "brunt load stores the keys and stops"),
    row(Mutilate, &["--blocking", "-B"], Nothing, As("--wait sleep"), ""),
    row(Mutilate, &["--no_nodelay"], Nothing, As("--no-nodelay"), ""),
    row(Mutilate, &["--warmup", "-w"], Number, As("--warmup {}s"), ""),
    row(Mutilate, &["--wait", "-W"], Number, Without, "agents begin together without it"),
    row(Mutilate, &["--save"], Text, As("--samples {}"), ""),
    row(Mutilate, &["--search"], Pair, Made(Search), ""),
    row(Mutilate, &["--scan"], Steps, Made(Scan), ""),
    row(Mutilate, &["--agentmode", "-A"], Nothing, Without, "brunt agent waits for controllers"),
    row(Mutilate, &["--agent", "-a"], Text, As("--agent {}"), ""),
    row(Mutilate, &["--agent_port", "-p"], Number, Made(AgentPort), ""),
    row(Mutilate, &["--lambda_mul", "-l"], Number, Without, "agents share a rate by what they can do"),
    row(Mutilate, &["--measure_connections", "-C"], Number, As("--measure-connections {}"), ""),
    row(Mutilate, &["--measure_qps", "-Q"], Number, As("--measure-rate {}"), ""),
    row(Mutilate, &["--measure_depth", "-D"], Number, As("--measure-depth {}"), ""),
    row(Mutilate, &["--verbose", "-v"], Nothing, Without, REPORTED),
    row(Mutilate, &["--quiet"], Nothing, Without, "here --quiet prints errors only, and no report"),
    row(Mutilate, &["--redis"], Nothing, Made(Servers), ""),
    row(Mutilate, &["--unix_socket"], Nothing, Made(Servers), ""),
    row(Mutilate, &["--getset"], Nothing, As("--on-miss set"), ""),
    row(Mutilate, &["--getsetorset"], Nothing, As("--on-miss set"), ""),
    row(Mutilate, &["--successful"], Nothing, Without, REPORTED),
    row(Mutilate, &["--prefix"], Text, As("--prefix {}"), ""),
    row(Mutilate, &["--delete90"], Nothing, Without, NEVER),
    row(Mutilate, &["--assoc"], Number, As("--hash-field {}"), ""),
    row(Mutilate, &["--read_file"], Text, Without, "a trace in a plan file replays requests: docs/workload.md"),
    row(Mutilate, &["--twitter_trace"], Number, Without, "trace-layout in a plan file: docs/workload.md"),
    row(Mutilate, &["--misswindow", "-m"], Number, Without, REPORTED),
    row(Mutilate, &["--queries", "-N"], Number, As("--requests {}"), "of all connections together"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_names_are_unique_within_a_tool() {
        for row in OPTIONS {
            for name in row.names {
                let rows = OPTIONS.iter().filter(|other| other.of == row.of && other.names.contains(name));
                assert_eq!(rows.count(), 1, "{} {name}", row.of.name());
            }
            assert!(!matches!(row.ours, Without) || !row.note.is_empty(), "{:?} says nothing", row.names);
        }
    }
}
