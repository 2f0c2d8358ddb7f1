//! README.md and docs/recipes.md: every command runs as printed, in namespaces where the hosts that they name are servers.
//!
//! Only times and counts are shortened.

use crate::server::{Directory, Ended, PROGRAM, in_namespace, is_installed};
use crate::tls::Certificates;

const DOCUMENTS: [(&str, &str); 2] = [
    ("README.md", include_str!("../../../../README.md")),
    ("docs/recipes.md", include_str!("../../../../docs/recipes.md")),
];

/// The hosts of the documents: `cache` is memcached, and Redis with TLS; `redis` a Redis without; `node1` and `node2` are memcached, and the
/// first is a node of a cluster; `load1` and `load2` have agents, once the folder for them is made.
const NAMESPACE: &str = r#"
set -e
ip link set lo up
if [ "$1" = true ]; then exec "$@"; fi
printf '127.0.0.%s\n' '1 localhost' '2 cache' '3 redis' '4 node1' '5 node2' '6 old' '7 new' '8 load1' '9 load2' > hosts
mount --bind hosts /etc/hosts
serve() { brunt serve --listen "$1" > "serve-$1.log" & started="$started $!"; }
tls() {
    mkdir "$1" && redis-server --bind "$1" --port 0 --tls-port 6379 --tls-cert-file "$PWD/server.pem" --tls-key-file "$PWD/server.key" \
        --tls-ca-cert-file "$PWD/ca.pem" --tls-auth-clients no --save '' --dir "$PWD/$1" --aclfile "$PWD/users.acl" $2 > "redis-$1.log" &
    started="$started $!"
}
trap 'kill $started $agents 2> /dev/null; wait' EXIT
for place in 127.0.0.2:11211 127.0.0.3:6379 127.0.0.4:11211 127.0.0.5:11211 127.0.0.6:11211 127.0.0.7:11211; do
    serve $place
done
tls 127.0.0.2
tls 127.0.0.4 '--cluster-enabled yes --tls-cluster yes --cluster-announce-ip 127.0.0.4'
cli() { redis-cli --tls --cacert ca.pem -h "$1" --user app --pass s3cret --no-auth-warning "$2" "$3" "$4" "$5"; }
for try in $(seq 100); do
    if cli 127.0.0.4 cluster addslotsrange 0 16383 > /dev/null 2>&1; then break; fi
    sleep 0.05
done
for try in $(seq 100); do
    if cli 127.0.0.4 cluster info | grep -q cluster_state:ok; then break; fi
    sleep 0.05
done
while read -r line; do
    case $line in
        *--agent*) for host in 8 9; do brunt agent --auth auth --listen 127.0.0.$host:5556 > /dev/null 2>&1 & agents="$agents $!"; done; sleep 0.3 ;;
    esac
    set +e
    eval "$line" > out.txt 2>&1 < /dev/null
    printf '\n== %s %s\n' $? "$line"
    tail -5 out.txt
    set -e
done < commands
tail -n 3 redis-*.log
"#;

/// The commands of a document, in their order.
fn command_lines(document: &'static str) -> impl Iterator<Item = &'static str> {
    let blocks = document.split("```sh\n").skip(1).map(|behind| behind.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter(|line| line.starts_with("brunt "))
}

/// The same command, shorter.
fn shortened(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for index in 1..words.len() {
        match words[index - 1] {
            "-t" => words[index] = "300ms",
            "-r" => words[index] = "2k",
            "--until" => words[index] = "p99=50%,max=1s",
            "--keys" => words[index] = "1000",
            "--repeat" => words[index] = "2",
            _ => {}
        }
    }
    // Each option with its value, where the command has none.
    let more = match words[1] {
        "run" => "",
        "scan" => "--over rate=5k,10k",
        "search" | "calibrate" => "--from 1k|--to 2k",
        "compare" if words.contains(&"--live") => "--repeat 2",
        _ => return words.join(" "),
    };
    let of_all =
        ["-t 500ms", "--warmup 0s", "--keys 1000", "--progress none", "--allow BROKEN,LOAD,CLIENT,DATA"];
    let is_given = |option: &&str| words.contains(&option.split(' ').next().unwrap());
    let added =
        more.split('|').filter(|option| !option.is_empty()).chain(of_all).filter(|option| !is_given(option));
    let added: Vec<&str> = added.collect();
    [&words[..2], &added, &words[2..]].concat().join(" ")
}

#[test]
fn commands_of_documents_run_as_printed() {
    let Some(certificates) = Certificates::issue() else { return };
    if !is_installed("redis-server", "--version") {
        return;
    }
    let Some(mut command) = in_namespace("-n -m", NAMESPACE) else { return };
    let directory = Directory::new();
    for file in ["ca.pem", "server.pem", "server.key"] {
        std::fs::copy(certificates.path(file), directory.join(file)).unwrap();
    }
    directory.with("redis.pw", "s3cret\n");
    directory.with("users.acl", "user app on >s3cret ~* &* +@all\n");
    directory.with("requests.csv", "1,key-one,7,100,1,get,0\n2,key-two,7,50,1,set,60\n");
    let lines: Vec<&str> = DOCUMENTS.into_iter().flat_map(|(_, text)| command_lines(text)).collect();
    assert!(lines.len() >= 20, "{lines:?}");
    let commands: String = lines.iter().map(|line| shortened(line) + "\n").collect();
    directory.with("commands", &commands);
    std::os::unix::fs::symlink(PROGRAM, directory.join("brunt")).unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let output = Ended::from(command.current_dir(&directory).env("PATH", path));
    let ended: Vec<&str> = output.out.lines().filter_map(|line| line.strip_prefix("== ")).collect();
    assert_eq!(ended.len(), lines.len());
    for line in ended {
        let (exit, line) = line.split_once(' ').unwrap();
        // On a busy host no rate may meet the objective of a search, and a difference may be found, or none be decided.
        let is_open = ["--assert", "compare", "calibrate", "scan"].iter().any(|word| line.contains(word));
        assert!(exit == "0" || is_open && ["3", "4"].contains(&exit), "{line}: {exit}");
    }
}
