//! Options and commands that brunt does not have: the error names what was meant, and whose it is.

use crate::server::{beside_others, plain};

/// The words of a line, split as a shell does it.
pub(crate) fn words(line: &str) -> Vec<String> {
    let output =
        std::process::Command::new("sh").arg("-c").arg(format!("printf '%s\\n' {line}")).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Exit code and standard error of a line.
fn ended(words: &[String]) -> (i32, String) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = plain(&words).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The usual error, and a line for each kind of owner: commands of brunt, and load generators without a front end.
#[test]
fn options_of_other_tools_name_them() {
    let _beside = beside_others();
    let migrating = ": see docs/migrating.md\n";
    #[rustfmt::skip]
    let table = [
        ("run --ratio 1:10", "--ratio", vec![format!("memtier_benchmark{migrating}")]),
        ("run --ratio=1:10", "--ratio", vec![format!("memtier_benchmark{migrating}")]),
        ("run -s h -c 10 -t 2s --hide-histogram", "--hide-histogram", vec![format!("memtier_benchmark{migrating}")]),
        ("scan --clients 10", "--clients", vec![format!("memtier_benchmark{migrating}")]),
        ("run --dbnum 2", "--dbnum", vec![format!("redis-benchmark{migrating}")]),
        ("load --rps 10000", "--rps", vec![format!("valkey-benchmark{migrating}")]),
        ("run --cacert ca.pem", "--cacert", vec![format!("memtier_benchmark, redis-benchmark{migrating}")]),
        ("run --authenticate=me:hunter2", "--authenticate", vec![format!("memtier_benchmark{migrating}")]),
        ("run --keysize fb_key", "--keysize", vec!["brunt mutilate\n".to_owned()]),
        ("run --execute_number 5", "--execute_number", vec!["brunt memaslap\n".to_owned()]),
        ("run --num-conns 5", "--num-conns", vec!["brunt mcperf\n".to_owned()]),
        ("run --waterfall w.png", "--waterfall", vec!["brunt rpc-perf\n".to_owned()]),
        ("run -P workloads/workloada", "-P", vec![
            "brunt mutilate, brunt memaslap, brunt mcperf\n".to_owned(),
            format!("memtier_benchmark, redis-benchmark, YCSB{migrating}"),
        ]),
    ];
    for (line, option, owners) in table {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}: {message}");
        let error = format!("error: unexpected argument '{option}' found\n");
        assert!(message.starts_with(&error) && !message.contains("hunter2"), "{line}: {message}");
        let tips: Vec<&str> = message.split(&format!("tip: {option} is an option of ")).skip(1).collect();
        assert_eq!(tips.len(), owners.len(), "{line}: {message}");
        for (tip, owner) in tips.iter().zip(owners) {
            assert!(tip.starts_with(&owner), "{line}: {message}");
        }
    }
}

/// A misspelled option of brunt is named, and no other.
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

/// A word behind one dash is no option of a tool that has its first letter.
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
        ("run --from 1k", "tip: --from is an option of brunt search"),
        (
            "run -d 4",
            "tip: -d is --depth, the requests in flight per connection, or --value-size, which is -d elsewhere",
        ),
        ("report a.json --html b", "tip: a file is written by -o html:PATH"),
        ("run --linger 1s", "tip: --linger is a key of the plan: --set linger=5s"),
        ("load --no-nodelay", "tip: --nodelay is a key of the plan: --set nodelay=false"),
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
        ("run --percentiles 50,101", "invalid value '50,101' for --percentiles: expected up to 12 numbers"),
        ("scan --over rate=1k-10k", "a range is FIRST..LAST:STEP"),
    ];
    for (line, expected) in table {
        let (exit, message) = ended(&words(line));
        assert_eq!(exit, 2, "{line}");
        assert!(message.contains(expected), "{line}: {message}");
    }
}
