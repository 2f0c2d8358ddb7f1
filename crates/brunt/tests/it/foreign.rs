//! Command lines of other tools typed at brunt: each is answered with ours, and what is offered is taken.

use crate::server::{beside_others, plain};

/// What was typed, what the answer says of it, and the command line that it ends with.
#[rustfmt::skip]
const LINES: &[(&str, &str, &str)] = &[
    ("run --ratio 1:10", "--ratio is an option of memtier_benchmark", "run --server redis://127.0.0.1:6379 --mix set=1,get=10"),
    ("run -s 127.0.0.1 -p 6379 -c 50 -t 4 --ratio 1:10 -d 32 -n 10000 --hide-histogram", "-p, --ratio and --hide-histogram are options of memtier_benchmark", "run --server redis://127.0.0.1:6379 --connections 200 --threads 4 --mix set=1,get=10 --value-size 32 --requests 2000000"),
    ("run --server=10.0.0.5 --port=6380 --threads=2 --clients=25 --test-time=60 --ratio=1:0", "--port, --clients, --test-time and --ratio are options of memtier_benchmark", "run --server redis://10.0.0.5:6380 --threads 2 --connections 50 --time 60s --mix set=1"),
    ("run -s h --pipeline 32 --data-size-range 100-4000 --key-pattern S:S --key-maximum 1000000 -n allkeys", "--pipeline, --data-size-range, --key-pattern and --key-maximum are options of memtier_benchmark", "run --server redis://h:6379 --depth 32 --value-size uniform:100,4000 --popularity sequential --keys 1000001"),
    ("run -p 11211 -P memcache_text --key-maximum 100000 --key-pattern G:G --key-stddev 1000 --expiry-range 10-60 --data-size-list 100:3,1000:1", "-p, -P, --key-maximum, --key-pattern and 3 more are options of memtier_benchmark", "run --server memcached://127.0.0.1:11211 --keys 100001 --popularity gaussian:0.01 --ttl 60s --value-size discrete:100=3,1000=1"),
    ("run -P memcache_binary -s h -a me:hunter2 --ratio 0:1", "-P, -a and --ratio are options of memtier_benchmark", "run --server memcached://h:11211 --protocol memcached-binary --user me --password @redis.pw --mix get=1"),
    ("run -P resp3 -s h --tls --cacert ca.pem --cert c.pem --key k.pem --sni cache.example", "-P, --tls, --cacert, --cert and 2 more are options of memtier_benchmark", "run --server rediss://h:6379 --protocol resp3 --tls-ca ca.pem --tls-cert c.pem --tls-key k.pem --tls-server-name cache.example"),
    ("run -S /run/redis.sock --ratio 1:1 --run-count 3", "-S, --ratio and --run-count are options of memtier_benchmark", "run --server unix:/run/redis.sock --protocol resp2 --mix set=1,get=1 --repeat 3"),
    ("run -s h --cluster-mode --multi-key-get 10 --rate-limiting 100 -c 10 -t 2", "--cluster-mode, --multi-key-get and --rate-limiting are options of memtier_benchmark", "run --server redis://h:6379 --cluster --mix set=1,mget=10 --multiget 10 --rate 2000 --connections 20 --threads 2"),
    ("run --command 'SET __key__ __data__' --command-ratio 2 --command 'GET __key__' --command-key-pattern Z", "--command-ratio and --command-key-pattern are options of memtier_benchmark", "run --server redis://127.0.0.1:6379 --command 'SET {key} {value}' --mix raw=2+1 --command 'GET {key}' --popularity zipf:1"),
    ("run -u rediss://me:hunter2@cache:6380/1 --tls-skip-verify --randomize", "-u, --tls-skip-verify and --randomize are options of memtier_benchmark", "run --server rediss://me@cache:6380/1 --password @redis.pw --tls-insecure"),
    ("run -s h --key-prefix user: --key-minimum 1 --key-maximum 500000 --key-zipf-exp 1.2 --key-pattern Z:Z", "--key-prefix, --key-minimum, --key-maximum, --key-zipf-exp and --key-pattern are options of memtier_benchmark", "run --server redis://h:6379 --prefix user: --keys 500000 --first-key 1 --popularity zipf:1.2"),
    ("run -s h --json-out-file out.json --print-percentiles 50,99 --reconnect-interval 100 --distinct-client-seed -R", "--json-out-file, --print-percentiles, --reconnect-interval, --distinct-client-seed and -R are options of memtier_benchmark", "run --server redis://h:6379 --json out.json --percentiles 50,99 --calls-per-connection 100"),
    ("run -s h -4 --connection-timeout 5 --miss-rate-threshold 2.5 --data-verify --test-time 5", "-4, --connection-timeout, --miss-rate-threshold, --data-verify and --test-time are options of memtier_benchmark", "run --server redis://h:6379 --ip-version 4 --connect-timeout 5s --assert 'hit >= 97.5%' --verify --time 5s"),
    ("run -s cache:11211 -c 16 -t 10s --ratio 1:10 -d 100", "--ratio is an option of memtier_benchmark", "run -s cache:11211 -c 16 -t 10s --mix set=1,get=10 -d 100"),
    ("scan -s h:11211 --clients 10 --threads 2", "--clients is an option of memtier_benchmark", "scan --server h:11211 --connections 20 --threads 2"),
    ("search --slo 'p99 < 1ms' -s h -p 6379 --ratio 1:10", "-p and --ratio are options of memtier_benchmark", "search --slo 'p99 < 1ms' --server redis://h:6379 --mix set=1,get=10"),
    ("compare --live a:6379 b:6379 --data-size 100", "--data-size is an option of memtier_benchmark", "compare --live a:6379 b:6379 --value-size 100"),
    ("doctor -s h --clients 100 --threads 4", "--clients is an option of memtier_benchmark", "doctor --server redis://h:6379 --connections 400 --threads 4"),
    ("run -h 127.0.0.1 -p 6379 -c 50 -n 100000 -d 3 -P 16 -q", "-h, -p and -P are options of redis-benchmark", "run --server redis://127.0.0.1:6379 --connections 50 --requests 100000 --value-size 3 --depth 16 --brief"),
    ("run -t set,get -n 100000 -q", "-t is an option of redis-benchmark", "run --server redis://127.0.0.1:6379 --mix set=1,get=1 --requests 100000 --brief"),
    ("run -t ping,lpush,lrange_100,mset -c 10 --csv", "-t and --csv are options of redis-benchmark", "run --server redis://127.0.0.1:6379 --mix raw=1+1+1 --command PING --command 'LPUSH mylist {value}' --command 'LRANGE mylist 0 99' --connections 10 --json -"),
    ("run -h 10.1.1.1 -a hunter2 --user me --dbnum 2 -3 -k 0", "-h, -a, --dbnum, -3 and -k are options of redis-benchmark", "run --server redis://10.1.1.1:6379 --protocol resp3 --password @redis.pw --user me --database 2 --calls-per-connection 1"),
    ("run -s /tmp/redis.sock -t incr -r 100000", "-t is an option of redis-benchmark", "run --server unix:/tmp/redis.sock --protocol resp2 --mix incr=1 --keys 100000 --prefix key: --key-size 16"),
    ("run -r 10000 -n 10000 lpush mylist __rand_int__", "a command behind the options is of redis-benchmark", "run --server redis://127.0.0.1:6379 --keys 10000 --key-size 12 --requests 10000 --command 'lpush mylist {key}' --mix raw=1"),
    ("run -n 10 eval 'return redis.call(\"ping\")' 0", "a command behind the options is of redis-benchmark", "run --server redis://127.0.0.1:6379 --requests 10 --command 'eval \"return redis.call(\\\"ping\\\")\" 0' --mix raw=1"),
    ("run -h h -p 7000 --cluster -t get --threads 4 --precision 3", "-h, -p, -t and --precision are options of redis-benchmark", "run --server redis://h:7000 --cluster --mix get=1 --threads 4"),
    ("run -u redis://h:6380 -P 8 -l", "-u, -P and -l are options of redis-benchmark", "run --server redis://h:6380 --depth 8"),
    ("run --tls --sni cache.example --insecure -t get", "--tls, --sni, --insecure and -t are options of redis-benchmark", "run --server rediss://127.0.0.1:6379 --tls-server-name cache.example --tls-insecure --mix get=1"),
    ("run -c 50 --threads 4 --rps 10000 --duration 30 --warmup 5", "--rps and --duration are options of valkey-benchmark", "run --server redis://127.0.0.1:6379 --connections 50 --threads 4 --rate 10000 --time 30s --warmup 5s"),
    ("run -u valkey://h:6379 --sequential -r 1000 -t set", "-u, --sequential and -t are options of valkey-benchmark", "run --server redis://h:6379 --popularity sequential --keys 1000 --prefix key: --key-size 16 --mix set=1"),
    ("run -h h --rfr all --cluster -t get -c 100", "-h, --rfr and -t are options of valkey-benchmark", "run --server redis://h:6379 --cluster --mix get=1 --connections 100"),
    ("run -t hset,zadd --rps 500 -d 64", "-t and --rps are options of valkey-benchmark", "run --server redis://127.0.0.1:6379 --mix raw=1+1 --command 'HSET myhash {key} {value}' --command 'ZADD myzset 0 {key}' --rate 500 --value-size 64"),
    ("run -s cache:11211 -q 1000", "-q is an option of mutilate", "run --server cache:11211 --rate 1000"),
    ("run -s 10.0.0.5 -q 100000 -t 30 -K fb_key -V fb_value -i fb_ia -u 0.03 -T 4 -c 8 -r 1000000", "-q, -K, -V, -i and -u are options of mutilate", "run --server 10.0.0.5 --rate 100000 --time 30s --key-size fb_key --value-size fb_value --arrival fb_ia --mix get=97,set=3 --threads 4 --connections 32 --keys 1000000"),
    ("run -s a,b --scan 1000:50000:1000 -c 4", "--scan is an option of mutilate", "scan --server a --server b --over rate=1000..50000:1000 --connections 8"),
    ("run -s a --search 95:1000 -q 0 -vv", "--search, -q and -v are options of mutilate", "search --server a --slo 'p95 < 1000us'"),
    ("run -s a --search 97:1000", "--search is an option of mutilate", "search --server a --slo 'p97 < 1000us' --percentiles 97"),
    ("run -s a --loadonly -r 1000 -V normal:200,50 --binary", "--loadonly, -V and --binary are options of mutilate", "load --server a --keys 1000 --value-size normal:200,50 --protocol memcached-binary"),
    ("run -s a --noload -B -T 2 --affinity -a load1 -a load2 -Q 1000 -D 4 -C 2", "--noload, -B, --affinity, -a and 3 more are options of mutilate", "run --server a --no-preload --wait sleep --threads 2 --cpus 0-1 --agent load1 --agent load2 --measure-rate 1000 --measure-depth 4 --measure-connections 2"),
    ("run -s a --redis --getset --assoc=4 -N 100000 -w 2 --save samples.txt", "--redis, --getset, --assoc, -N and 2 more are options of mutilate", "run --server redis://a:11211 --on-miss set --hash-field 4 --requests 100000 --warmup 2s --samples samples.txt"),
    ("run -s a -U me -P hunter2 --binary -K 30 -i exponential -q 500 --moderate", "-U, -P, --binary, -K and 3 more are options of mutilate", "run --server a --user me --password @cache.pw --protocol memcached-binary --key-size 30 --arrival poisson --rate 500"),
    ("load -s h -p 6379 --key-maximum 1000 -d 32", "-p, --key-maximum and -d are options of memtier_benchmark", "load --server redis://h:6379 --keys 1001 --value-size 32"),
    ("run -q -s 127.0.0.1:28111 -t 1s -q 5000", "-q is an option of mutilate", "run -q -s 127.0.0.1:28111 -t 1s --rate 5000"),
    ("run -x 5 --ratio 1:1", "-x and --ratio are options of memtier_benchmark", "run --server redis://127.0.0.1:6379 --repeat 5 --mix set=1,get=1"),
    ("run --agentmode -T 3 -p 5557", "--agentmode and -p are options of mutilate", "agent --threads 3 --listen 0.0.0.0:5557"),
    ("run -x -n 10 set foo", "-x is an option of redis-benchmark", "run --server redis://127.0.0.1:6379 --requests 10 --command 'set foo {value}' --mix raw=1"),
    ("run redis -s -P workloads/workloada -p redis.host=h -p redis.port=6380 -p redis.password=hunter2 -p recordcount=1000 -threads 4 -target 1000", "this is a command line of YCSB", "run --server redis://h:6380 --progress 10s --prefix user --key-size 23 --value-size 1000 --mix get=1,set=1 --popularity zipf:0.99 --password @redis.pw --keys 1000 --connections 4 --rate 1000"),
    ("run -s cache:11211 -P workloads/workloada -p recordcount=1000 -threads 4", "this is a command line of YCSB", "run --server cache:11211 --prefix user --key-size 23 --value-size 1000 --mix get=1,set=1 --popularity zipf:0.99 --keys 1000 --connections 4"),
    ("run -t -db site.ycsb.db.RedisClient -P workloads/workloadc -p redis.host=h", "this is a command line of YCSB", "run --server redis://h:6379 --prefix user --key-size 23 --value-size 1000 --mix get=1 --popularity zipf:0.99"),
    ("run memcached -P workloads/workloadc -p memcached.hosts=a,b -p operationcount=5000 -p fieldcount=1", "this is a command line of YCSB", "run --server a --server b --prefix user --key-size 23 --value-size 1000 --mix get=1 --popularity zipf:0.99 --requests 5000"),
    ("load redis -s -P workloads/workloadb -p recordcount=1000 -threads 4", "this is a command line of YCSB", "load --server redis://127.0.0.1:6379 --progress 10s --prefix user --key-size 23 --value-size 1000 --keys 1000"),
    ("run -e -h h -t get", "-e, -h and -t are options of redis-benchmark", "run --server redis://h:6379 --mix get=1"),
    ("run -s h --key-pattern=G:G --key-stddev=10", "--key-pattern and --key-stddev are options of memtier_benchmark", "run --server redis://h:6379 --popularity gaussian:0.000001 --keys 10000001"),
    ("run -s h:7000 --cluster-mode --ratio 1:1", "--cluster-mode and --ratio are options of memtier_benchmark", "run --server redis://h:7000 --cluster --mix set=1,get=1"),
    ("run -s h:7000 --command 'SET __key__ __data__' --command-ratio=2", "--command-ratio is an option of memtier_benchmark", "run --server redis://h:7000 --command 'SET {key} {value}' --mix raw=2"),
    ("run -s redis://me:hunter2@h:1 --ratio 1:10 -t 5s", "--ratio is an option of memtier_benchmark", "run --server redis://me@h:1 --password @redis.pw --mix set=1,get=10 -t 5s"),
];

/// The words of a line, split as a shell does it.
pub(crate) fn words(line: &str) -> Vec<String> {
    let output =
        std::process::Command::new("sh").arg("-c").arg(format!("printf '%s\\n' {line}")).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Exit code and standard error of a line, in a directory with the files of passwords that answers name.
fn ended(words: &[String]) -> (i32, String) {
    let directory = std::env::temp_dir().join(format!("brunt-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    ["redis.pw", "cache.pw"].iter().for_each(|name| std::fs::write(directory.join(name), "x\n").unwrap());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = plain(&words).current_dir(&directory).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn other_tools_lines_get_equivalent_options() {
    let _beside = beside_others();
    assert!(LINES.len() >= 40);
    for (line, heading, ours) in LINES {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}: {message}");
        assert!(message.starts_with(&format!("error: {heading}; brunt ")), "{line}: {message}");
        let offered =
            message.split_once("The whole command line:\n").map(|(_, offered)| offered.lines().next());
        assert_eq!(offered, Some(Some(format!("  brunt {ours}").as_str())), "{line}: {message}");
        assert!(!message.contains("hunter2") && !message.contains("similar"), "{line}: {message}");
        // Agents would have to be there.
        if ["run", "scan", "search"].contains(&ours.split(' ').next().unwrap()) && !ours.contains("--agent") {
            let (exit, message) = ended(&words(&format!("{ours} --print-plan")));
            assert_eq!(exit, 0, "{ours}: {message}");
        }
    }
}

/// A value that an option does not take, or an option that needs another one: no line is offered, and the reason is said.
#[test]
fn what_cannot_be_translated_has_its_reason() {
    let _beside = beside_others();
    #[rustfmt::skip]
    let table = [
        ("run --ratio ten", "memtier_benchmark takes two whole numbers such as 1:10", "the value of --ratio is none that it takes"),
        ("run --ratio 1:1 --clients abc", "takes a whole number", "the value of --clients is none that it takes"),
        ("run --key-maximum", "takes a whole number", "the value of --key-maximum is none that it takes"),
        ("run --key-maximum --hide-histogram", "takes a whole number", "the value of --key-maximum is none that it takes"),
        ("run --data-size-range 100", "takes two whole numbers such as 100-4000", "the value of --data-size-range is none that it takes"),
        ("run --data-size-list 7", "takes SIZE:WEIGHT,SIZE:WEIGHT", "the value of --data-size-list is none that it takes"),
        ("run --key-pattern Q:Q", "takes two letters out of R G S P Z such as S:R", "the value of --key-pattern is none that it takes"),
        ("run -h h -p 6379 -P 16 -t set,get,foo", "redis-benchmark takes names of its tests, and has none called 'foo'", "the value of -t is none that it takes"),
        ("run --username=u --password=p -s a", "--user u", "--user requires --protocol memcached-binary, resp2 or resp3"),
        ("run --ratio 1:1 --lambda 5", "neither brunt nor the other tools have it", "neither brunt nor the other tools have --lambda"),
        ("run --sni x -h h", "--tls-server-name x", "--tls-server-name requires --transport tls"),
        ("run -s a -u 0.5 -Q 1000", "--measure-rate 1000", "--measure-rate requires --agent"),
        ("run -s a --search 95:1000 -N 5", "--requests 5", "--requests cannot be used with search: its steps end by --time"),
        ("run -h h -p 70000", "--server redis://h:70000", "invalid value 'redis://h:70000' for --server: expected "),
        ("run --hide-histogram --miss-rate-threshold 150", "takes a number from 0 to 100", "the value of --miss-rate-threshold is none that it takes"),
        ("compare a.json b.json --clients 5", "--connections 20", "--connections requires --live: these results were measured already"),
    ];
    for (line, note, reason) in table {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}: {message}");
        assert!(message.contains(note), "{line}: {message}");
        assert!(message.contains(&format!("\nNo whole command line: {reason}")), "{line}: {message}");
        assert!(!message.contains("The whole command line"), "{line}: {message}");
    }
}

/// What a tool does where nothing is said belongs to numbers that count by connection.
#[test]
fn defaults_that_belong_to_what_was_typed_are_said() {
    let _beside = beside_others();
    assert_eq!(
        ended(&words("run --ratio 1:0 -n 1000")).1,
        "\
error: --ratio is an option of memtier_benchmark; brunt run has other names:
  --ratio 1:0  --mix set=1
  -n 1000      --requests 200000 --connections 200  1000 for each of 200 connections
The whole command line:
  brunt run --server redis://127.0.0.1:6379 --mix set=1 --requests 200000 --connections 200
The rest has brunt's defaults; those of memtier_benchmark are --threads 4 --value-size 32 --keys 10000001
"
    );
    let (_, message) = ended(&words("run --requests 5000 --num-functions 10"));
    assert!(message.contains("Without --server it loads a server that brunt starts for it."), "{message}");
}

/// Options that both have are said to be other ones, unless the rest of the line is ours.
#[test]
fn shared_option_names_are_resolved() {
    let _beside = beside_others();
    let answer = |line: &str| ended(&words(line)).1;
    assert_eq!(
        answer("run -s h -c 10 -t 2 -d 32 --hide-histogram"),
        "\
error: --hide-histogram is an option of memtier_benchmark; brunt run has other names:
  -s h              --server redis://h:6379
  -c 10             --connections 20         10 for each of 2 threads
  -t 2              --threads 2              here -t is --time
  -d 32             --value-size 32          here -d is --depth
  --hide-histogram  -                        the report prints no histogram
The whole command line:
  brunt run --server redis://h:6379 --connections 20 --threads 2 --value-size 32
The rest has brunt's defaults; those of memtier_benchmark are --mix set=1,get=10 --keys 10000001
"
    );
    assert_eq!(
        answer("run -s h -c 10 -t 2s -d 32 --hide-histogram --foo"),
        "\
error: --hide-histogram is an option of memtier_benchmark; brunt run has other names:
  -t 2s             -t 2s  taken as --time; memtier_benchmark's is --threads
  -d 32             -d 32  taken as --depth; memtier_benchmark's is --value-size
  --hide-histogram  -      the report prints no histogram
  --foo             -      neither brunt nor the other tools have it
The whole command line:
  brunt run -s h -c 10 -t 2s -d 32
"
    );
}

/// What is no option of another tool is refused as ever, with a misspelt option of ours named and no other.
#[test]
fn misspellings_get_a_suggestion() {
    let _beside = beside_others();
    let table = [
        ("run --rato 5", Some("--rate")),
        ("run --conections 5", Some("--connections")),
        ("run --value_size 5", Some("--value-size")),
        ("run --data-siez 5", None),
        ("run --conduct 5", None),
        ("run --histogram", None),
        ("scan --conections 5", Some("--connections")),
        ("rum", Some("run")),
        ("ruin-everything", None),
    ];
    for (line, meant) in table {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}");
        assert_eq!(message.contains("similar"), meant.is_some(), "{line}: {message}");
        assert!(message.contains(meant.unwrap_or("error: ")), "{line}: {message}");
        // The usage has no option that merely resembles it.
        let usage = format!("Usage: brunt {} [OPTIONS] [PLAN.toml]\n", line.split(' ').next().unwrap());
        assert!(!line.contains("--") || message.contains(&usage), "{line}: {message}");
    }
}

/// Letters and words that no tool has are no command line of one.
#[test]
fn unknown_letters_are_refused_as_such() {
    let _beside = beside_others();
    for line in ["compare A B -UNKNOWN -", "compare A B --unknown", "run -UNKNOWN"] {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}");
        assert!(message.starts_with("error: unexpected argument '-"), "{line}: {message}");
        assert!(!message.contains("benchmark") && !message.contains("mutilate"), "{line}: {message}");
    }
}

/// An option that only other commands have is answered with these.
#[test]
fn options_of_other_commands_name_them() {
    let _beside = beside_others();
    let table = [
        ("run --slo 'p99 < 1ms'", "tip: --slo is an option of brunt search"),
        ("run --over rate=1k,2k", "tip: --over is an option of brunt scan"),
        ("report --rate 5 a.json", "tip: --rate is an option of brunt run, "),
        ("compare 127.0.0.1:28111 b:6379", "expected a result in JSON; servers are compared by --live A B"),
        (
            "run --command GET {key}",
            "cannot read the plan {key} (a command is one word, in quotes: --command 'GET {key}')",
        ),
        (
            "run --value-size 100-1000",
            "invalid value '100-1000' for --value-size: no size; expected a size such as 200 or 4KiB, fixed:N, ",
        ),
        ("load", "error: brunt load requires --server\n"),
        ("run -c 4 -t 2", "; for 2 seconds -t 2s, for 2 threads (memtier_benchmark's -t) --threads 2"),
        ("run --percentiles 50,101", "invalid value '50,101' for --percentiles: expected numbers above 0"),
        ("scan --over rate=1k-10k", "a range is FIRST..LAST:STEP"),
    ];
    for (line, expected) in table {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}");
        assert!(message.contains(expected), "{line}: {message}");
    }
}
