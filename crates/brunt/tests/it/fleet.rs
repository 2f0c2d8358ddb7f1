//! Agents as processes: shares that add up, agents that die or hang are named in good time, strangers are refused.

use crate::measured::Measured;
use crate::server::{Directory, Server, beside_others, brunt, temporary};
use crate::tls::{Certificates, redis_over_tls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// Who is gone or hangs is named within this time: what is promised, and as much again for a host that others use.
const NAMED: Duration = Duration::from_secs(10);

/// A waiting agent.
pub(crate) struct Agent {
    child: Child,
    pub(crate) address: String,
}

impl Agent {
    pub(crate) fn wait(flags: &[&str]) -> Self {
        Self::wait_at("127.0.0.1:0", flags)
    }

    fn wait_at(address: &str, flags: &[&str]) -> Self {
        let mut command = brunt(&["agent", "--listen", address, "--quiet"]);
        let mut child = command.args(flags).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("an announcement").to_owned();
        Self { child, address }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // One that was stopped is not killed by less.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run led by this process, with these agents.
fn led<'a>(server: &'a Server, agents: &[&'a Agent], flags: &[&'a str]) -> Vec<&'a str> {
    // Asleep where nothing is due: other tests run beside this one, and processes do not know of one another that they spin.
    let mut arguments = vec![
        "run",
        "--progress=none",
        "--wait",
        "sleep",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
        "-o",
        "json:-",
        "-s",
    ];
    arguments.push(&server.address);
    agents.iter().for_each(|agent| arguments.extend(["--agent", &agent.address]));
    arguments.extend(flags);
    arguments
}

fn measured(server: &Server, agents: &[&Agent], flags: &[&str]) -> Measured {
    Measured::of(&brunt(&led(server, agents, flags)).output().unwrap())
}

/// What eight agents wrote themselves adds up to what their controller wrote: every count, histogram and percentile.
#[test]
fn agent_results_add_up_to_the_controllers() {
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let directory = Directory::new();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let files: Vec<String> = (0..8).map(|index| path(&format!("agent-{index}.json"))).collect();
    let agents: Vec<Agent> = files.iter().map(|file| Agent::wait(&["-T", "1", "-o", file])).collect();
    let flags = [
        "-r",
        "4k",
        "-t",
        "1s",
        "-c",
        "16",
        "--keys",
        "800",
        "--warmup",
        "200ms",
        "--mix",
        "get=8,set=1,mget=1",
    ];
    let fleet = measured(&server, &agents.iter().collect::<Vec<_>>(), &flags);
    assert_eq!(fleet.exit, 0, "{}", fleet.text);
    let mut words = vec!["report", "--merge", "-o", "json:-"];
    words.extend(files.iter().map(String::as_str));
    let merged = Measured::of(&brunt(&words).output().unwrap());
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
    assert!(merged.count("latency.response_ns.count") > 3_000, "{}", merged.text);
    let other = path("other.json");
    let short = [
        "run",
        "-s",
        &server.address,
        "-n",
        "100",
        "--warmup",
        "0s",
        "--allow=BROKEN,LOAD,CLIENT,DATA",
        "-o",
        &other,
    ];
    assert_eq!(brunt(&short).output().unwrap().status.code(), Some(0));
    let refused = brunt(&["report", "--merge", &files[0], &other]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("are no parts of one run: their plans differ in "), "{said}");
    assert_eq!(refused.status.code(), Some(2));
    let refused = brunt(&["report", "--merge", &files[0], &files[1], &files[0]]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("are the same result; accepted: each part once"), "{said}");
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
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let (one, two) = (Agent::wait(&["-T", "2"]), Agent::wait(&["-T", "1"]));
    let run =
        measured(&server, &[&one, &two], &["-n", "5000", "-c", "7", "--keys", "1001", "--warmup", "0s"]);
    assert_eq!(run.exit, 0, "{}", run.text);
    assert_eq!(run.count("counts.requests.sent"), 5_000);
    assert_eq!(run.count("counts.keys.miss"), 0);
    assert_eq!(
        run.count("client.connections.phases.connect.established"),
        7,
        "{}",
        run.at("client.connections")
    );
    let statistics = server.statistics();
    let sent = |kind: &str| run.count_or_0(&format!("ops.{kind}.counts.requests.sent"));
    assert_eq!((statistics["cmd_get"], statistics["cmd_set"]), (sent("get"), sent("set") + 1_001));
    let agents = run.at("client.agents").as_array().unwrap();
    let workers: Vec<_> = agents.iter().map(|agent| (&agent["first_worker"], &agent["workers"])).collect();
    assert_eq!(format!("{workers:?}"), "[(Number(0), Number(2)), (Number(2), Number(1))]");
    assert_eq!(run.at("client.workers").as_array().unwrap().len(), 3);
    // The same agents again, in open loop: the schedule's own count.
    let flags =
        ["-r", "1000", "--arrival", "uniform", "-t", "500ms", "--warmup", "100ms", "-c", "3", "--keys", "10"];
    let run = measured(&server, &[&two, &one], &flags);
    assert_eq!(
        (run.count("counts.requests.scheduled"), run.count("counts.requests.sent")),
        (500, 500),
        "{}",
        run.text
    );
}

/// The server is asked for its statistics before an agent stores anything, so that its account holds all stores: as long as it keeps its
/// answer back, no agent connects.
#[test]
fn server_errors_are_found_before_agents_connect() {
    let _machine = beside_others();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let named = format!("memcached://{}", server.local_addr().unwrap());
    let agent = Agent::wait(&["-T", "1"]);
    let words =
        ["run", "-s", &named, "--agent", &agent.address, "-n", "10", "--keys", "10", "--progress=none"];
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
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let agent = Agent::wait(&["-T", "2"]);
    let flags = [
        "-r",
        "600",
        "--arrival",
        "uniform",
        "-t",
        "1s",
        "--warmup",
        "0s",
        "-c",
        "4",
        "--keys",
        "100",
        "--mix",
        "get",
        "--measure-rate",
        "50",
        "--set",
        "measure-connections=1",
    ];
    let run = measured(&server, &[&agent], &flags);
    assert_eq!(run.exit, 0, "{}", run.text);
    let of = |class: &str| run.count(&format!("client.classes.{class}.counts.requests.sent"));
    assert_eq!((of("main"), of("measure")), (600, 50), "{}", run.text);
    assert_eq!(server.statistics()["cmd_get"], 650);
    assert_eq!(run.count("client.classes.measure.counts.keys.hit"), 50);
}

/// Agents take a plan in which another host's class is all that sends a command, or the only request.
#[test]
fn agents_take_plans_with_commands_and_requests_of_the_controller() {
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let agent = Agent::wait(&["-T", "1"]);
    let table = [
        ("requests = 40\n[[class]]\nname = 'load'\n", "command = ['GET {key}']\n", [20, 20]),
        ("requests = 1\n", "[[class]]\nname = 'load'\n", [0, 1]),
    ];
    for (before, behind, sent) in table {
        let plan = temporary("part.toml");
        let class = "[[class]]\nname = 'measure'\nconnections = 1\nruns-on = 'controller'\n";
        let run = "protocol = 'resp3'\nconnections = 2\nkeys = 10\nwarmup = '0s'\n";
        std::fs::write(&plan, format!("{run}{before}{class}{behind}")).unwrap();
        let run = measured(&server, &[&agent], &[plan.to_str().unwrap()]);
        assert_eq!(run.exit, 0, "{}", run.text);
        let of = |class: &str| run.count_or_0(&format!("client.classes.{class}.counts.requests.sent"));
        assert_eq!([of("load"), of("measure")], sent, "{}", run.text);
    }
}

/// The several runs of a campaign are led with the same agents.
#[test]
fn agents_carry_out_campaigns() {
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let agent = Agent::wait(&["-T", "1"]);
    let mut arguments =
        led(&server, &[&agent], &["-t", "200ms", "--warmup", "0s", "-c", "1", "--keys", "10"]);
    arguments[0] = "scan";
    arguments.extend(["--over", "rate=200,400"]);
    let output = brunt(&arguments).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The user's command between two runs may take longer than an agent waits for a word from its controller.
#[test]
fn agents_are_kept_between_runs() {
    let _machine = beside_others();
    let (server, agent) = (Server::reference(&[]), Agent::wait(&["-T", "1"]));
    let flags =
        ["-n", "10", "-c", "1", "--keys", "10", "--warmup", "0s", "--repeat", "2", "--between", "sleep 11"];
    let output = brunt(&led(&server, &[&agent], &flags)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2), "{said}");
}

/// A long run, and what became of it after this was done to it; how long that took.
fn disturb(server: &Server, agents: &[&Agent], disturb: impl FnOnce()) -> (Output, Duration) {
    let flags = ["-t", "60s", "-r", "500", "-c", "2", "--keys", "10", "--warmup", "0s"];
    let run =
        brunt(&led(server, agents, &flags)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.await_gets(1);
    disturb();
    let since = Instant::now();
    (run.wait_with_output().unwrap(), since.elapsed())
}

fn check_named(ended: &(Output, Duration), agent: &Agent, reason: &str) {
    let (output, took) = ended;
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(last, format!("error: agent {} {reason}; the run ended then", agent.address), "{text}");
    // Lines are broken between words.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("ended when agent {} was lost", agent.address)), "{text}");
    // What all have recorded up to then is reported, and marked.
    assert!(words.contains(&format!("LOST: it {reason}, which ended the run")), "{text}");
    let measured = Measured::of(output);
    assert_eq!(measured.exit, 1, "{text}");
    measured.check_request_counts();
    assert!(
        measured.at("window.interrupted") == true && measured.count("counts.requests.completed") > 0,
        "{text}"
    );
    // BROKEN, which is allowed, names it and nothing that follows from its missing counts; so do facts.
    let (status, message) = measured.check("BROKEN");
    let named = format!("agent {} was lost after ", agent.address);
    assert!(status == "caution" && message.starts_with(&named), "{message}\n{text}");
    assert!(message.ends_with(&format!(" of the window ({reason})")), "{message}\n{text}");
    let agents = measured.at("client.agents").as_array().unwrap();
    let after_ns = agents.last().unwrap()["lost_after_ns"].as_i64().unwrap();
    assert!((1..60_000_000_000).contains(&after_ns), "{after_ns}: {text}");
    assert_eq!(measured.fact("others use the server"), None, "{text}");
    let lost: Vec<bool> = agents.iter().map(|agent| agent["lost"] == reason).collect();
    // The last one, and no other.
    assert_eq!(lost.iter().rposition(|is_lost| *is_lost), Some(lost.len() - 1), "{lost:?}");
    assert_eq!(lost.iter().filter(|is_lost| **is_lost).count(), 1, "{lost:?}");
    assert!(*took < NAMED, "{took:?}");
}

/// One that dies and one that hangs are named, and the others wait again.
#[test]
fn dead_and_hung_agents_are_named() {
    let _machine = beside_others();
    let (server, other) = (Server::reference(&[]), Server::reference(&[]));
    let (lasting, dying, hanging) =
        (Agent::wait(&["-T", "1"]), Agent::wait(&["-T", "1"]), Agent::wait(&["-T", "1"]));
    let killed = disturb(&server, &[&lasting, &dying], || kill_process(dying.pid(), Signal::KILL).unwrap());
    check_named(&killed, &dying, reason_of_killed(&killed.0));
    let hung = disturb(&other, &[&lasting, &hanging], || kill_process(hanging.pid(), Signal::STOP).unwrap());
    check_named(&hung, &hanging, "sent no heartbeat for 4 s");
    let run = measured(&server, &[&lasting], &["-n", "100", "-c", "1", "--keys", "10", "--warmup", "0s"]);
    assert_eq!(run.count("counts.requests.sent"), 100, "{}", run.text);
}

/// Where no other part of the run is left, what the agent had sent is the result.
#[test]
fn the_last_agent_leaves_what_it_had_sent() {
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let dying = Agent::wait(&["-T", "1"]);
    let killed = disturb(&server, &[&dying], || {
        // Of which an interval holds some.
        server.await_gets(250);
        kill_process(dying.pid(), Signal::KILL).unwrap();
    });
    check_named(&killed, &dying, reason_of_killed(&killed.0));
    let measured = Measured::of(&killed.0);
    assert!(measured.count("counts.requests.completed") >= 100, "{}", measured.text);
    // The window ended with the agent.
    let window_ns = measured.at("window.duration_ns").as_u64().unwrap();
    assert!((300_000_000..30_000_000_000).contains(&window_ns), "{window_ns}");
}

/// How the end of a killed process looks to its peer.
fn reason_of_killed(output: &Output) -> &'static str {
    match String::from_utf8_lossy(&output.stderr).contains("reset") {
        true => "lost its connection: Connection reset by peer (os error 104)",
        false => "closed the connection",
    }
}

/// An agent whose controller dies waits for the next.
#[test]
fn dead_controllers_are_abandoned() {
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let agent = Agent::wait(&["-T", "1"]);
    let flags = ["-t", "60s", "-r", "500", "-c", "1", "--keys", "10", "--warmup", "0s"];
    let mut run = brunt(&led(&server, &[&agent], &flags)).stdout(Stdio::null()).spawn().unwrap();
    server.await_gets(1);
    // Meanwhile it is another's.
    let output = brunt(&led(&server, &[&agent], &["-n", "1"])).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        text.trim(),
        format!(
            "error: agent {} is busy: another controller uses it or has just left it, or it is named twice",
            agent.address
        )
    );
    run.kill().unwrap();
    run.wait().unwrap();
    let run = measured(&server, &[&agent], &["-n", "100", "-c", "1", "--keys", "10", "--warmup", "0s"]);
    assert_eq!(run.count("counts.requests.sent"), 100, "{}", run.text);
}

/// A folder of `brunt agent --new-auth`, removed with the value.
pub(crate) struct AuthFolder(Directory);

impl AuthFolder {
    pub(crate) fn new() -> Self {
        let folder = Self(Directory::new());
        let output = brunt(&["agent", "--new-auth", &folder.path()]).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && shown.contains("--auth ") && shown.lines().count() == 2,
            "{output:?}"
        );
        folder
    }

    /// The same but for its token.
    pub(crate) fn with_other_token(&self) -> Self {
        let folder = Self(Directory::new());
        for name in ["token", "ca.pem", "certificate.pem", "key.pem"] {
            std::fs::copy(self.0.join(name), folder.0.join(name)).unwrap();
        }
        std::fs::write(folder.0.join("token"), "battery staple").unwrap();
        folder
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

/// Only a controller with the folder leads; what others send is refused before it is read, and does no harm.
#[test]
fn unauthenticated_peers_are_rejected() {
    let _machine = beside_others();
    let server = Server::reference(&[]);
    let (ours, others) = (AuthFolder::new(), AuthFolder::new());
    let without_token = ours.with_other_token();
    let [right, wrong, other_token] = [&ours, &others, &without_token].map(AuthFolder::path);
    let agent = Agent::wait(&["-T", "1", "--auth", &right]);
    let open = Agent::wait(&["-T", "1"]);
    let short = ["-n", "100", "-c", "1", "--keys", "10", "--warmup", "0s"];
    let table = [
        (&agent, vec!["--auth", wrong.as_str()], "has another --auth folder"),
        (&agent, vec!["--auth", &other_token], "rejected this controller: wrong token"),
        (&agent, vec![], "sent no handshake within 4 s; if it has --auth, set --auth here too"),
        (&open, vec!["--auth", &right], "does not use TLS: start it with --auth"),
    ];
    for (agent, flags, reason) in table {
        let output = brunt(&led(&server, &[agent], &[&short[..], &flags].concat())).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text.trim(), format!("error: agent {} {reason}", agent.address));
        assert_eq!(output.status.code(), Some(1));
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
    let run = measured(&server, &[&agent], &[&short[..], &["--auth", &right]].concat());
    assert_eq!(run.count("counts.requests.sent"), 100, "{}", run.text);
}

/// An agent that any host may lead is reached from its own host alone; what is missing of a folder is named, and no folder is overwritten.
#[test]
fn open_agents_listen_to_their_own_host() {
    let _machine = beside_others();
    let folder = AuthFolder::new();
    let path = folder.path();
    let refused = |arguments: &[&str]| {
        let output = brunt(&[&["agent"], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:5556"] {
        assert_eq!(
            refused(&["--listen", address]),
            format!(
                "error: --listen {address} requires --auth DIR, or any host that reaches it directs the load; brunt agent \
                 --new-auth DIR makes one"
            )
        );
    }
    assert!(
        refused(&["--new-auth", &path])
            .contains("(it is not empty): expected the path of a new or empty folder")
    );
    assert!(
        refused(&["--new-auth", &path, "--quiet"])
            .contains("'--new-auth <DIR>' cannot be used with '--quiet'")
    );
    let token = format!("{path}/token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let warned =
        brunt(&["run", "-s", "memcached://h", "--agent", "127.0.0.1:1", "--auth", &path]).output().unwrap();
    let warned = String::from_utf8_lossy(&warned.stderr).into_owned();
    let expected = format!("warning: '{token}' is accessible to other users: chmod 600 '{token}'");
    assert_eq!(warned.lines().next(), Some(&*expected), "{warned}");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let everywhere = Agent::wait_at("0.0.0.0:0", &["--auth", &path]);
    assert!(everywhere.address.starts_with("0.0.0.0:"), "{}", everywhere.address);
    std::fs::remove_file(folder.0.join("key.pem")).unwrap();
    let said = refused(&["--auth", &path]);
    assert!(said.starts_with(&format!("error: --auth: '{path}/key.pem' cannot be read (")), "{said}");
    let said = brunt(&["run", "-s", "h", "--agent", "h", "--auth", &path]).output().unwrap();
    assert_eq!(said.status.code(), Some(2), "{said:?}");
}

/// Servers by TLS: an agent has files of its own, whatever those of the controller are called.
#[test]
fn agents_have_tls_files_of_their_own() {
    let _machine = beside_others();
    let Some(papers) = Certificates::issue() else { return };
    let Some((_server, address)) = redis_over_tls(&papers, &[]) else { return };
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| papers.path(name));
    let run = |agent: &Agent, flags: &[&str]| {
        let words = [
            "run",
            "--progress=none",
            "-o",
            "json:-",
            "--allow=BROKEN,LOAD,CLIENT,DATA",
            "-s",
            &address,
            "--agent",
            &agent.address,
        ];
        let short = [
            "--protocol",
            "resp2",
            "--set",
            "transport=tls",
            "-n",
            "100",
            "-c",
            "1",
            "--keys",
            "10",
            "--warmup",
            "0s",
        ];
        let own = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
        brunt(&[&words[..], &short, &own, flags].concat()).output().unwrap()
    };
    let own = ["--target-ca", &ca, "--target-cert", &certificate, "--target-key", &key];
    let measured = Measured::of(&run(&Agent::wait(&[&["-T", "1"], &own[..]].concat()), &[]));
    assert_eq!(measured.count("counts.requests.sent"), 100, "{}", measured.text);
    let without = Agent::wait(&["-T", "1", "--target-ca", &ca]);
    let output = run(&without, &[]);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default(),
        format!(
            "error: agent {}: has no certificate for the servers: start it with --target-cert and --target-key",
            without.address
        )
    );
    assert_eq!(output.status.code(), Some(1));
    // The controller was given a CA, of which the agent has nothing.
    let bare = Agent::wait(&["-T", "1", "--target-cert", &certificate, "--target-key", &key]);
    let said = String::from_utf8_lossy(&run(&bare, &[]).stderr).into_owned();
    let hint = "certificate not signed by a trusted CA; add brunt agent --target-ca FILE or --tls-insecure";
    assert!(said.contains(&format!("\nerror: agent {}", bare.address)) && said.contains(hint), "{said}");
}

/// What is wrong with a server as an agent sees it is the server's, and what is wrong with a plan the user's.
#[test]
fn agent_limits_are_reported() {
    let _machine = beside_others();
    let agent = Agent::wait(&["-T", "1"]);
    let gone = Server::reference(&[]);
    let address = gone.address.clone();
    gone.kill();
    let output = brunt(&["run", "-q", "-s", &format!("memcached://{address}"), "--agent", &agent.address])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let reason = "Connection refused (os error 111)";
    assert_eq!(text.trim(), format!("error: agent {}: cannot connect to {address}: {reason}", agent.address));
    assert_eq!(output.status.code(), Some(5));
}
