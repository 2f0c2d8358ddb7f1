//! Agents as processes: shares that add up, agents that die or hang are named in good time, strangers are refused.

use crate::measured::{ALL, Measured};
use crate::server::{Directory, Ended, Process, Server, begin, brunt, ended, file, temporary};
use crate::tls::{Certificates, redis_over_tls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Who is gone or hangs is named within this time: what is promised, and as much again for a host that others use.
const NAMED: Duration = Duration::from_secs(10);

/// A waiting agent.
pub(crate) struct Agent {
    process: Process,
    pub(crate) address: String,
}

impl Agent {
    pub(crate) fn wait(flags: &str) -> Self {
        Self::wait_at("127.0.0.1:0", flags)
    }

    fn wait_at(address: &str, flags: &str) -> Self {
        let agent = brunt(&format!("agent --listen {address} --quiet {flags}"));
        let (process, address) = Process::listening(agent);
        Self { process, address }
    }
}

impl std::fmt::Display for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.address)
    }
}

/// A run led by this process, with these agents.
fn led(server: &Server, agents: &[&Agent], flags: &str) -> Command {
    led_by("run", server, agents, flags)
}

fn led_by(command: &str, server: &Server, agents: &[&Agent], flags: &str) -> Command {
    // Asleep where nothing is due: other tests run beside this one, and processes do not know of one another that they spin.
    let usual = format!("--progress=none --wait sleep --allow={ALL} -o json:- -s {server}");
    let agents: String = agents.iter().map(|agent| format!(" --agent {agent}")).collect();
    brunt(&format!("{command} {usual}{agents} {flags}"))
}

fn measured(server: &Server, agents: &[&Agent], flags: &str) -> Measured {
    Measured::of(led(server, agents, flags))
}

/// What eight agents wrote themselves adds up to what their controller wrote: every count, histogram and percentile.
#[test]
fn agent_results_add_up_to_the_controllers() {
    let server = Server::reference("");
    let directory = Directory::new();
    let files: Vec<String> = (0..8).map(|index| directory.path(&format!("agent-{index}.json"))).collect();
    let agents: Vec<Agent> = files.iter().map(|file| Agent::wait(&format!("-T 1 -o {file}"))).collect();
    let flags = "-r 4k -t 1s -c 16 --keys 800 --warmup 200ms --mix get=8,set=1,mget=1";
    let fleet = measured(&server, &agents.iter().collect::<Vec<_>>(), flags);
    assert_eq!(fleet.exit, 0);
    let merged = Measured::of(brunt(&format!("report --merge -o json:- {}", files.join(" "))));
    let exact = "counts.requests counts.keys counts.in_window ops client.classes counts.phases.preload.requests \
                 counts.phases.warmup.requests counts.phases.measure counts.phases.drain.requests latency.response_ns \
                 latency.service_ns latency.send_lag_ns latency.including_failures_ns client.connections servers \
                 events.faults events.error_replies events.pushes events.recache events.values_foreign \
                 record.intervals.totals.rows record.intervals.request_counts record.intervals.totals.bytes record.intervals.totals.connections record.intervals.totals.servers \
                 record.intervals.totals.meters record.run.counts.occupancy";
    for key in exact.split_whitespace() {
        let (one, other) = (without_rates(merged.at(key)), without_rates(fleet.at(key)));
        assert!(one == other, "{key}: {one} of the agents, {other} of their controller");
    }
    assert!(merged.count("latency.response_ns.count") > 3_000);
    let other = directory.path("other.json");
    assert_eq!(ended(&format!("run -s {server} -n 100 --warmup 0s --allow={ALL} -o {other}")).exit, 0);
    let refused = ended(&format!("report --merge {} {other}", files[0]));
    assert!(refused.said.contains("it is the result of a whole run; accepted: parts"));
    assert_eq!(refused.exit, 2);
    let refused = ended(&format!("report --merge {} {} {}", files[0], files[1], files[0]));
    assert!(refused.said.contains("another result has its workers, too; accepted: each part once"));
}

/// Rates are of the window, whose ends each host knows as well as its clock.
fn without_rates(value: &Value) -> Value {
    let mut value = value.clone();
    let mut open = vec![&mut value];
    while let Some(held) = open.pop() {
        if let Value::Object(keys) = held {
            keys.retain(|key, _| key != "rate");
            open.extend(keys.values_mut());
        }
    }
    value
}

/// Requests, connections and keys are divided among three workers on two agents, and nothing is lost or done twice: by our counts, and
/// by the server's.
#[test]
fn shares_add_up_to_the_plan() {
    let server = Server::reference("");
    let (one, two) = (Agent::wait("-T 2"), Agent::wait("-T 1"));
    let run = measured(&server, &[&one, &two], "-n 5000 -c 7 --keys 1001 --warmup 0s");
    assert_eq!(run.exit, 0);
    assert_eq!(run.requests("sent"), 5_000);
    assert_eq!(run.count("counts.keys.miss"), 0);
    assert_eq!(run.count("client.connections.phases.connect.established"), 7);
    let statistics = server.statistics();
    let sent = |kind: &str| run.count_or_0(&format!("ops.{kind}.counts.requests.sent"));
    assert_eq!((statistics["cmd_get"], statistics["cmd_set"]), (sent("get"), sent("set") + 1_001));
    let agents = run.at("client.agents").as_array().unwrap();
    let workers: Vec<_> = agents.iter().map(|agent| (&agent["first_worker"], &agent["workers"])).collect();
    assert_eq!(format!("{workers:?}"), "[(Number(0), Number(2)), (Number(2), Number(1))]");
    assert_eq!(run.at("client.workers").as_array().unwrap().len(), 3);
    // The same agents again, in open loop: the schedule's own count.
    let flags = "-r 1000 --arrival uniform -t 500ms --warmup 100ms -c 3 --keys 10";
    let run = measured(&server, &[&two, &one], flags);
    assert_eq!((run.requests("scheduled"), run.requests("sent")), (500, 500));
}

/// Each agent has the trace under a name of its own and sends the records of its keys; a file with other contents is refused.
#[test]
fn agents_replay_their_own_files() {
    let server = Server::reference("");
    let line = |id: u64| {
        format!("{},key{},6,50,1,{},0\n", id / 1_500, id * id % 601, ["get", "set"][id as usize % 2])
    };
    let text: String = (0..3_000).map(line).collect();
    let (ours, theirs) = (file("ours.csv", &text), file("theirs.csv", &text));
    let (one, two) =
        (Agent::wait(&format!("-T 2 --trace {theirs}")), Agent::wait(&format!("-T 1 --trace {ours}")));
    let flags = "--set trace-layout=twitter --replay --set trace-speed=2 -c 7 --no-preload";
    let run = measured(&server, &[&one, &two], &format!("--set trace={ours} {flags}"));
    assert_eq!((run.exit, run.requests("scheduled"), run.requests("completed")), (0, 3_000, 3_000));
    let statistics = server.statistics();
    let sent = |kind: &str| run.count(&format!("ops.{kind}.counts.requests.sent"));
    assert_eq!((statistics["cmd_get"], statistics["cmd_set"]), (sent("get"), sent("set")));
    assert_eq!((sent("get"), run.count("client.traces.0.records")), (1_500, 3_000));
    assert_eq!(run.at("client.traces.0.is_whole"), true);
    let other = file("other.csv", &text.replace("key0,", "key9,"));
    let refused = Ended::from(led(&server, &[&one, &two], &format!("--set trace={other} {flags}")));
    assert!(refused.said.contains("has another trace than the plan, sha256:"), "{}", refused.said);
    assert_eq!(refused.exit, 1);
}

/// The server is asked for its statistics before an agent stores anything, so that its account holds all stores: as long as it keeps its
/// answer back, no agent connects.
#[test]
fn server_errors_are_found_before_agents_connect() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let named = format!("memcached://{}", server.local_addr().unwrap());
    let agent = Agent::wait("-T 1");
    let words = format!("run -s {named} --agent {agent} -n 10 --keys 10 --progress=none");
    let mut run = brunt(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (mut first, _) = server.accept().unwrap();
    let mut said = [0; 7];
    first.read_exact(&mut said).unwrap();
    let wait = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
    let others = poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&wait)).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!((String::from_utf8_lossy(&said).as_ref(), others), ("stats\r\n", 0));
}

/// The controller's own class runs beside those of the agents, and is told apart.
#[test]
fn the_controller_measures_beside_its_agents() {
    let server = Server::reference("");
    let agent = Agent::wait("-T 2");
    let flags = "-r 600 --arrival uniform -t 1s --warmup 0s -c 4 --keys 100 --mix get --measure-rate 50 --set measure-connections=1";
    let run = measured(&server, &[&agent], flags);
    assert_eq!(run.exit, 0);
    let of = |class: &str| run.count(&format!("client.classes.{class}.counts.requests.sent"));
    assert_eq!((of("main"), of("measure")), (600, 50));
    assert_eq!(server.statistics()["cmd_get"], 650);
    assert_eq!(run.count("client.classes.measure.counts.keys.hit"), 50);
}

/// Agents take a plan in which another host's class is all that sends a command, or the only request.
#[test]
fn agents_take_plans_with_commands_and_requests_of_the_controller() {
    let server = Server::reference("");
    let agent = Agent::wait("-T 1");
    let table = [
        ("requests = 40\n[[class]]\nname = 'load'\n", "command = ['GET {key}']\n", [20, 20]),
        ("requests = 1\n", "[[class]]\nname = 'load'\n", [0, 1]),
    ];
    for (before, behind, sent) in table {
        let class = "[[class]]\nname = 'measure'\nconnections = 1\nruns-on = 'controller'\n";
        let run = "protocol = 'resp3'\nconnections = 2\nkeys = 10\nwarmup = '0s'\n";
        let plan = file("part.toml", &format!("{run}{before}{class}{behind}"));
        let run = measured(&server, &[&agent], &plan);
        assert_eq!(run.exit, 0);
        let of = |class: &str| run.count_or_0(&format!("client.classes.{class}.counts.requests.sent"));
        assert_eq!([of("load"), of("measure")], sent);
    }
}

/// The several runs of a campaign are led with the same agents.
#[test]
fn agents_carry_out_campaigns() {
    let server = Server::reference("");
    let agent = Agent::wait("-T 1");
    let flags = "--over rate=200,400 -t 200ms --warmup 0s -c 1 --keys 10";
    let scan = Measured::of(led_by("scan", &server, &[&agent], flags));
    assert_eq!(scan.json["runs"].as_array().map(Vec::len), Some(2));
}

/// The user's command between two runs may take longer than an agent waits for a word from its controller.
#[test]
fn agents_are_kept_between_runs() {
    let (server, agent) = (Server::reference(""), Agent::wait("-T 1"));
    let flags = "-n 10 -c 1 --keys 10 --warmup 0s --repeat 2 --between 'sleep 11'";
    assert_eq!(measured(&server, &[&agent], flags).json["runs"].as_array().map(Vec::len), Some(2));
}

/// A run of [`SECONDS`], and what became of it after this was done to it.
fn disturb(server: &Server, agents: &[&Agent], flags: &str, disturb: impl FnOnce()) -> Measured {
    // What other tests do to this host is no matter here.
    let judged = "--allow=LOAD,CLIENT,DATA,STEADY --progress=none --wait sleep -o json:-";
    let load = format!("-t {SECONDS}s -r 500 --arrival uniform -c 2 --keys 10 --mix get --warmup 0s {flags}");
    let agents: String = agents.iter().map(|agent| format!(" --agent {agent}")).collect();
    let run = begin(brunt(&format!("run {judged} -s {server}{agents} {load}")));
    server.await_gets(100);
    disturb();
    Measured::of(run)
}

/// Longer than an agent may be silent.
const SECONDS: u64 = 6;

/// The run went on without the last agent, which has half of its load, and says so; what that agent had sent counts exactly.
fn check_degraded(measured: &Measured, agent: &Agent, reason: &str, status: &str) {
    // Lines are broken between words.
    let words = measured.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("LOST after ") && words.contains(&format!("of the schedule: it {reason}")));
    assert_eq!(measured.at("window.interrupted"), false);
    assert_eq!(measured.at("window.duration_ns"), SECONDS * 1_000_000_000);
    let (found, message) = measured.check("BROKEN");
    let named = format!("agent {agent} was lost ({reason}): 50.0 % of the agents' load is missing from ");
    assert!(found == status && message.starts_with(&named), "{found}: {message}");
    assert!(message.ends_with(&format!(" to {SECONDS}.00 s of the window")), "{message}");
    // It was said at once, too.
    assert!(
        words.contains(&format!("note: agent {agent} on "))
            && words.contains("): 50.0 % of the agents' load is missing from ")
    );
    assert_eq!(measured.fact("others use the server"), None);
    let agents = measured.at("client.agents").as_array().unwrap();
    let lost: Vec<bool> = agents.iter().map(|agent| agent["lost"] == reason).collect();
    assert_eq!(lost, [false, true]);
    // The other agent sends all of its own, one every 4 ms; this one what was due until its last interval ended.
    let (scheduled, own) = (measured.requests("scheduled"), SECONDS * 250);
    let until_ns = agents[1]["lost_after_ns"].as_u64().unwrap();
    let due = until_ns / 4_000_000;
    assert!((own + due..=own + due + 1).contains(&scheduled), "{scheduled} of {own} and {due}");
    let ends = ["completed", "in_flight", "error", "timeout", "mismatch", "lost", "unacknowledged"];
    assert_eq!(measured.requests("sent"), ends.iter().map(|end| measured.requests(end)).sum::<u64>());
    assert_eq!(scheduled, measured.requests("sent") + measured.requests("unsent"));
}

/// The run goes on without one that dies and without one that hangs; the other agent waits again.
#[test]
fn runs_go_on_without_lost_agents() {
    let (server, other) = (Server::reference(""), Server::reference(""));
    let (lasting, dying) = (Agent::wait("-T 1"), Agent::wait("-T 1"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (steady, hanging) = (Agent::wait("-T 1"), Agent::wait("-T 1"));
            let hung = disturb(&other, &[&steady, &hanging], "--tolerate-lost 1", || {
                kill_process(hanging.process.pid(), Signal::STOP).unwrap();
            });
            check_degraded(&hung, &hanging, "sent no heartbeat for 4 s", "caution");
            assert_eq!(hung.exit, 0);
        });
        let killed = disturb(&server, &[&lasting, &dying], "", || {
            kill_process(dying.process.pid(), Signal::KILL).unwrap();
        });
        check_degraded(&killed, &dying, reason_of_killed(&killed), "invalid");
        assert_eq!(killed.exit, 3);
    });
    let run = measured(&server, &[&lasting], "-n 100 -c 1 --keys 10 --warmup 0s");
    assert_eq!(run.requests("sent"), 100);
}

/// A controller that dies leaves a journal of which a report is made, with what both agents had sent.
#[test]
fn journals_survive_their_controller() {
    let server = Server::reference("");
    let (one, other) = (Agent::wait("-T 1"), Agent::wait("-T 1"));
    let journal = temporary("journal");
    let flags =
        format!("-t 60s -r 500 --arrival uniform -c 2 --keys 10 --mix get --warmup 0s --journal {journal}");
    let mut run = led(&server, &[&one, &other], &flags).stdout(Stdio::null()).spawn().unwrap();
    server.await_gets(300);
    run.kill().unwrap();
    run.wait().unwrap();
    let report = ended(&format!("report {journal} -o json:-"));
    assert_eq!(report.exit, 0);
    let held: Value = serde_json::from_str(&report.out).unwrap();
    let counts = &held["counts"]["requests"];
    let of = |key: &str| counts[key].as_u64().unwrap();
    // What of 300 gets had not come yet is of less than two intervals.
    assert!(of("scheduled") >= 150, "{counts}");
    assert_eq!(of("scheduled"), of("sent") + of("unsent"));
    assert_eq!(held["window"]["interrupted"], false);
    let broken = &held["status"]["checks"][0];
    let message = broken["message"].as_str().unwrap();
    assert!(
        message.starts_with("the journal ends before its run: this is what was received up to "),
        "{broken}"
    );
    // Which is allowed here.
    assert_eq!(broken["status"], "caution");
    let agents = held["client"]["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["workers"] == 1), "{agents:?}");
    let completed = agents.iter().map(|agent| agent["requests"]["completed"].as_u64().unwrap());
    assert_eq!(completed.sum::<u64>(), of("completed"));
    // Of a run that ends it is the result.
    let flags = format!("-n 100 -c 2 --keys 10 --warmup 0s --journal {journal}");
    let measured = measured(&server, &[&one, &other], &flags);
    let report = ended(&format!("report {journal} -o json:-"));
    let again: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(again["counts"], *measured.at("counts"));
    assert_eq!(measured.requests("sent"), 100);
}

/// Where no other part of the run is left, what the agent had sent is the result.
#[test]
fn the_last_agent_leaves_what_it_had_sent() {
    let server = Server::reference("");
    let dying = Agent::wait("-T 1");
    let since = Instant::now();
    let measured = disturb(&server, &[&dying], "", || {
        // Of which intervals hold some.
        server.await_gets(250);
        kill_process(dying.process.pid(), Signal::KILL).unwrap();
    });
    assert!(measured.requests("completed") >= 50);
    let (_, message) = measured.check("BROKEN");
    assert!(message.contains(": 100 % of the agents' load is missing from "), "{message}");
    // The window ended with the agent.
    let window_ns = measured.at("window.duration_ns").as_u64().unwrap();
    assert!((100_000_000..SECONDS * 1_000_000_000).contains(&window_ns), "{window_ns}");
    assert!(since.elapsed() < NAMED, "{:?}", since.elapsed());
}

/// How the end of a killed process looks to its peer.
fn reason_of_killed(measured: &Measured) -> &'static str {
    match measured.text.contains("reset") {
        true => "lost its connection: Connection reset by peer (os error 104)",
        false => "closed the connection",
    }
}

/// An agent whose controller dies waits for the next.
#[test]
fn dead_controllers_are_abandoned() {
    let server = Server::reference("");
    let agent = Agent::wait("-T 1");
    let flags = "-t 60s -r 500 -c 1 --keys 10 --warmup 0s";
    let mut run = led(&server, &[&agent], flags).stdout(Stdio::null()).spawn().unwrap();
    server.await_gets(1);
    // Meanwhile it is another's.
    let output = Ended::from(led(&server, &[&agent], "-n 1"));
    let reason = "is busy: another controller uses it or has just left it, or it is named twice";
    assert_eq!(output.said.trim(), format!("error: agent {agent} {reason}"));
    run.kill().unwrap();
    run.wait().unwrap();
    let run = measured(&server, &[&agent], "-n 100 -c 1 --keys 10 --warmup 0s");
    assert_eq!(run.requests("sent"), 100);
}

/// A folder of `brunt agent --new-auth`, removed with the value.
pub(crate) struct AuthFolder(Directory);

impl AuthFolder {
    pub(crate) fn new() -> Self {
        let folder = Self(Directory::new());
        let output = ended(&format!("agent --new-auth {}", folder.path()));
        let shown = &output.out;
        assert!(output.exit == 0 && shown.contains("--auth ") && shown.lines().count() == 2);
        folder
    }

    /// The same but for its token.
    pub(crate) fn with_other_token(&self) -> Self {
        let folder = Self(Directory::new());
        for name in ["token", "ca.pem", "certificate.pem", "key.pem"] {
            std::fs::copy(self.0.join(name), folder.0.join(name)).unwrap();
        }
        folder.0.with("token", "battery staple");
        folder
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

/// Only a controller with the folder leads; what others send is refused before it is read, and does no harm.
#[test]
fn unauthenticated_peers_are_rejected() {
    let server = Server::reference("");
    let (ours, others) = (AuthFolder::new(), AuthFolder::new());
    let without_token = ours.with_other_token();
    let [right, wrong, other_token] = [&ours, &others, &without_token].map(AuthFolder::path);
    let agent = Agent::wait(&format!("-T 1 --auth {right}"));
    let open = Agent::wait("-T 1");
    let short = "-n 100 -c 1 --keys 10 --warmup 0s";
    let table = [
        (&agent, format!("--auth {wrong}"), "has another --auth folder"),
        (&agent, format!("--auth {other_token}"), "rejected this controller: wrong token"),
        (&agent, String::new(), "sent no handshake; if it has --auth, set --auth here too"),
        (&open, format!("--auth {right}"), "does not use TLS: start it with --auth"),
    ];
    for (agent, flags, reason) in table {
        let output = Ended::from(led(&server, &[agent], &format!("{short} {flags}")));
        assert_eq!(output.said.trim(), format!("error: agent {agent} {reason}"));
        assert_eq!(output.exit, 1);
    }
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096]] {
        let mut stranger = TcpStream::connect(&agent.address).unwrap();
        // It may be refused before it has said all.
        let _ = stranger.write_all(bytes);
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        // A client that is refused while it still sends may be cut off.
        let _ = stranger.read_to_end(&mut said);
        assert!(said.len() <= 64, "{} bytes for a stranger", said.len());
    }
    // A client that only connects keeps no other out.
    let _silent = TcpStream::connect(&agent.address).unwrap();
    let run = measured(&server, &[&agent], &format!("{short} --auth {right}"));
    assert_eq!(run.requests("sent"), 100);
}

/// An agent that any host may lead is reached from its own host alone; what is missing of a folder is named, and no folder is overwritten.
#[test]
fn open_agents_listen_to_their_own_host() {
    let folder = AuthFolder::new();
    let path = folder.path();
    let refused = |arguments: &str| {
        let output = ended(&format!("agent {arguments}"));
        assert_eq!(output.exit, 2);
        output.said.trim().to_owned()
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:5556"] {
        let expected = "requires --auth DIR, or any host that reaches it directs the load; brunt agent --new-auth DIR makes one";
        assert_eq!(refused(&format!("--listen {address}")), format!("error: --listen {address} {expected}"));
    }
    for (flag, expected) in [
        ("", "(it is not empty): expected the path of a new or empty folder"),
        ("--quiet", "'--new-auth <DIR>' cannot be used with '--quiet'"),
    ] {
        assert!(refused(&format!("--new-auth {path} {flag}")).contains(expected));
    }
    let token = format!("{path}/token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let warned = ended(&format!("run -s memcached://h --agent 127.0.0.1:1 --auth {path}"));
    let expected = format!("warning: '{token}' is accessible to other users: chmod 600 '{token}'");
    assert_eq!(warned.said.lines().next(), Some(&*expected));
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let everywhere = Agent::wait_at("0.0.0.0:0", &format!("--auth {path}"));
    assert!(everywhere.address.starts_with("0.0.0.0:"), "{}", everywhere.address);
    std::fs::remove_file(folder.0.join("key.pem")).unwrap();
    let said = refused(&format!("--auth {path}"));
    assert!(said.starts_with(&format!("error: --auth: '{path}/key.pem' cannot be read (")), "{said}");
    ended(&format!("run -s memcached://h --agent h --auth {path}")).is(2, &[]);
}

/// Servers by TLS: an agent has files of its own, whatever those of the controller are called.
#[test]
fn agents_have_tls_files_of_their_own() {
    let Some(papers) = Certificates::issue() else { return };
    let Some((_server, address)) = redis_over_tls(&papers, "") else { return };
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| papers.path(name));
    let run = |agent: &Agent| {
        let words = format!("run --progress=none -o json:- --allow={ALL} -s {address} --agent {agent}");
        let short = "--protocol resp2 --set transport=tls -n 100 -c 1 --keys 10 --warmup 0s";
        ended(&format!("{words} {short} --tls-ca {ca} --tls-cert {certificate} --tls-key {key}"))
    };
    let own = format!("--target-ca {ca} --target-cert {certificate} --target-key {key}");
    let measured = Measured::of(run(&Agent::wait(&format!("-T 1 {own}"))));
    assert_eq!(measured.requests("sent"), 100);
    let without = Agent::wait(&format!("-T 1 --target-ca {ca}"));
    let output = run(&without);
    let reason = "has no certificate for the servers: start it with --target-cert and --target-key";
    let last = output.said.trim().lines().last();
    assert_eq!(last, Some(&*format!("error: agent {without}: {reason}")));
    assert_eq!(output.exit, 1);
    // The controller was given a CA, of which the agent has nothing.
    let bare = Agent::wait(&format!("-T 1 --target-cert {certificate} --target-key {key}"));
    let said = &run(&bare).said;
    let hint = "certificate not signed by a trusted CA; add brunt agent --target-ca FILE or --tls-insecure";
    assert!(said.contains(&format!("\nerror: agent {bare}")) && said.contains(hint), "{said}");
}

/// What is wrong with a server as an agent sees it is the server's, and what is wrong with a plan the user's.
#[test]
fn agent_limits_are_reported() {
    let agent = Agent::wait("-T 1");
    let gone = Server::reference("");
    let address = gone.address.clone();
    gone.kill();
    let output = ended(&format!("run -q -s memcached://{address} --agent {agent}"));
    let reason = "Connection refused (os error 111); start it, or give its port";
    assert_eq!(output.said.trim(), format!("error: agent {agent}: cannot connect to {address}: {reason}"));
    assert_eq!(output.exit, 5);
}
