//! Options and commands that brunt does not have: the error names what was meant, and whose it is.

use crate::server::{Ended, plain};

/// What is said of a line that is refused.
fn refused(line: &str) -> String {
    let mut output = Ended::from(plain(line));
    assert_eq!(output.exit, 2);
    std::mem::take(&mut output.said)
}

/// The usual error, and a line for each kind of owner: commands of brunt, and load generators without a front end.
#[test]
fn options_of_other_tools_name_them() {
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
        let message = refused(line);
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
        let message = refused(line);
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
    for line in ["compare A B -UNKNOWN -", "compare A B --unknown", "run -UNKNOWN"] {
        let message = refused(line);
        assert!(message.starts_with("error: unexpected argument '-"), "{line}: {message}");
        assert!(!message.contains("benchmark") && !message.contains("mutilate"), "{line}: {message}");
    }
}
