//! Agents that dial their controller: ranks, replacements before the start, and strangers.

use crate::connection_limits::served;
use crate::fleet::AuthFolder;
use crate::measured::{ALL, Measured};
use crate::server::{Directory, Ended, Process, Server, begin, brunt, ended, temporary};
use brunt_fleet::agent_handshake::{Answer, Hello, VERSION, Welcome};
use brunt_plan::plan::OpenRate;
use brunt_plan::shard::Portion;
use brunt_workload::arrivals::Arrivals;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A controller that waits for its agents.
pub(crate) struct Controller {
    process: Process,
    address: String,
    said: BufReader<ChildStderr>,
}

impl Controller {
    pub(crate) fn wait(size: u32, server: &Server, flags: &str) -> Self {
        let usual = format!("--progress=none --wait sleep --allow={ALL} -o json:- -s {server}");
        let line = format!("run {usual} --fleet {size} --listen 127.0.0.1:0 {flags}");
        let mut child = begin(brunt(&line));
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut controller = Self { process: Process(child), address: String::new(), said };
        let line = controller.await_line("waiting for");
        controller.address = line.trim().rsplit_once(" at ").unwrap().1.to_owned();
        controller
    }

    /// The first line from now on that holds this.
    fn await_line(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it never said '{part}'");
            eprint!("controller: {line}");
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn measured(mut self) -> Measured {
        let (mut out, mut said) = (String::new(), String::new());
        self.process.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.said.read_to_string(&mut said).unwrap();
        let exit = self.process.0.wait().unwrap().code().unwrap();
        Measured::of(Ended { exit, out, said })
    }

    fn agent_line(&self, rank: u32, of: u32) -> String {
        format!("agent --join {} --rank {rank} --of {of} -T 1", self.address)
    }

    pub(crate) fn agent(&self, rank: u32, of: u32) -> Process {
        Process(begin(brunt(&self.agent_line(rank, of))))
    }
}

/// What Slurm sets in the environment of a task that it has placed again.
fn attempt(mut command: Command, attempt: u32) -> Process {
    command.env("SLURM_PROCID", "1").env("SLURM_NTASKS", "2").env("SLURM_RESTART_COUNT", attempt.to_string());
    Process(begin(command))
}

fn exit_of(mut process: Process) -> i32 {
    process.0.wait().unwrap().code().unwrap()
}

/// Seven agents, one of them not told its rank but by Slurm's variables, send exactly what the plan schedules; each ends with its controller.
#[test]
fn fleets_send_the_whole_plan() {
    let server = Server::reference("");
    let controller =
        Controller::wait(7, &server, "-r 2003 --arrival uniform -t 1s --warmup 0s -c 7 --keys 700");
    let mut agents: Vec<Process> = [6, 0, 3, 2, 5, 4].map(|rank| controller.agent(rank, 7)).into();
    // There are fewer connections than threads of all.
    let mut by_slurm = brunt(&format!("agent --join {} -T 3", controller.address));
    by_slurm.env("SLURM_PROCID", "1").env("SLURM_NTASKS", "7");
    agents.push(Process(begin(by_slurm)));
    let run = controller.measured();
    assert_eq!((run.exit, run.requests("scheduled"), run.requests("sent")), (0, 2_003, 2_003));
    let agents_of_run = run.at("client.agents").as_array().unwrap();
    let first: Vec<u64> = agents_of_run.iter().map(|agent| agent["first_worker"].as_u64().unwrap()).collect();
    assert_eq!(first, (0..7).collect::<Vec<_>>());
    assert!(agents_of_run[1]["name"].as_str().unwrap().starts_with("rank 1 ("));
    assert_eq!(agents.into_iter().map(exit_of).collect::<Vec<_>>(), [0; 7]);
    let statistics = server.statistics();
    let sent = |kind: &str| run.count_or_0(&format!("ops.{kind}.counts.requests.sent"));
    assert_eq!((statistics["cmd_get"], statistics["cmd_set"]), (sent("get"), sent("set") + 700));
}

/// What does not divide evenly among seven is scheduled to the request, and no request is there before the start.
#[test]
fn offered_totals_are_exact_and_begin_together() {
    const RATE: u64 = 100_003;
    let log = temporary("log");
    let server = Server::reference(&format!("--log {log} --script-after 7"));
    let load = format!(
        "-r {RATE} --arrival uniform -t 1s --warmup 0s -c 7 --keys 7 --mix get --set server-stats=false"
    );
    let controller = Controller::wait(7, &server, &load);
    let agents: Vec<Process> = (0..7).map(|rank| controller.agent(rank, 7)).collect();
    let run = controller.measured();
    let sent = run.requests("sent");
    assert_eq!(run.requests("scheduled"), RATE);
    // What this host has no time for is counted.
    assert_eq!(sent + run.requests("unsent"), RATE);
    let records = served(&log, 7 + sent as usize);
    // The first request of each agent, which has one connection.
    let mut first_ns = BTreeMap::new();
    for record in &records[7..] {
        let held = first_ns.entry(record.connection).or_insert(record.arrival_ns);
        *held = record.arrival_ns.min(*held);
    }
    let clock = |id| {
        let now = rustix::time::clock_gettime(id);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    let epoch_ns = clock(rustix::time::ClockId::Realtime) - clock(rustix::time::ClockId::Monotonic);
    let start_ns = run.at("window.start_unix_ns").as_i64().unwrap() - epoch_ns;
    let agents_of_run = run.at("client.agents").as_array().unwrap();
    let bound_ns = agents_of_run.iter().map(|agent| agent["clock_error_ns"].as_i64().unwrap()).max().unwrap();
    let late_ns: Vec<i64> = first_ns.values().map(|first_ns| *first_ns as i64 - start_ns).collect();
    let (first, last) = (late_ns.iter().min().unwrap(), late_ns.iter().max().unwrap());
    eprintln!("first requests {first} to {last} ns behind the start; clocks known to {bound_ns} ns");
    // The wall clock, by which the report tells the start, is adjusted between two readings.
    assert!(late_ns.len() == 7 && *first > -bound_ns - 1_000_000, "{late_ns:?}, bound {bound_ns}");
    drop(agents);
}

/// How many Poisson arrivals of a rate per second fall to this rank in the first second, by the schedule alone.
fn due_of_rank(rate: &str, seed: u64, rank: u32, of: u32) -> u64 {
    let rate = OpenRate::Constant(rate.parse().unwrap());
    let portion = Portion { first: rank, width: 1, of };
    let mut arrivals = Arrivals::new(&"poisson".parse().unwrap(), &rate, portion, seed, 0, 0);
    let mut due = 0;
    while arrivals.peek_ns() < 1_000_000_000 {
        arrivals.advance();
        due += 1;
    }
    due
}

/// What the schedule computes in virtual time for each rank is what its agent and the controller report, to the request.
#[test]
fn random_shares_are_those_of_virtual_time() {
    let server = Server::reference("");
    let folder = Directory::new();
    let load = "-r 2003 --arrival poisson --seed 5 -t 1s --warmup 0s -c 4 --keys 70 --mix get";
    let controller = Controller::wait(4, &server, load);
    let files: Vec<String> = (0..4).map(|rank| folder.path(&format!("r{rank}.json"))).collect();
    let agent = |rank: usize| brunt(&format!("{} -o {}", controller.agent_line(rank as u32, 4), files[rank]));
    let agents: Vec<Process> = (0..4).map(|rank| Process(begin(agent(rank)))).collect();
    let run = controller.measured();
    agents.into_iter().for_each(|agent| assert_eq!(exit_of(agent), 0));
    let due: Vec<u64> = (0..4).map(|rank| due_of_rank("2003", 5, rank, 4)).collect();
    let scheduled = |file: &String| {
        let part: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        part["counts"]["requests"]["scheduled"].as_u64().unwrap()
    };
    assert_eq!(files.iter().map(scheduled).collect::<Vec<_>>(), due);
    let of_gets = run.count_or_0("ops.get.counts.requests.scheduled");
    assert_eq!([run.requests("scheduled"), of_gets], [due.iter().sum::<u64>(); 2]);
}

/// A rank is taken by a later attempt, before all are there and while they store their keys; no key is missing then.
#[test]
fn later_attempts_take_ranks_before_the_start() {
    let server = Server::reference("");
    let load = "-n 2000 -c 4 --warmup 0s --keys 2000 --mix get --set preload-rate=1000";
    let mut controller = Controller::wait(2, &server, load);
    let by_slurm = || brunt(&format!("agent --join {} -T 1", controller.address));
    let [first, second, third] = [by_slurm(), by_slurm(), by_slurm()];
    let again = by_slurm();
    let first = attempt(first, 0);
    controller.await_line("rank 1");
    // Of the same attempt there is one.
    let twin = attempt(again, 0);
    controller.await_line("rank 1 is taken, by attempt 0 of it; this is attempt 0");
    assert_eq!(exit_of(twin), 1);
    let second = attempt(second, 1);
    controller.await_line("rank 1");
    assert_eq!(exit_of(first), 1);
    let other = controller.agent(0, 2);
    controller.await_line("storing 2000 keys");
    std::thread::park_timeout(Duration::from_millis(500));
    kill_process(second.pid(), Signal::KILL).unwrap();
    let third = attempt(third, 2);
    controller.await_line("takes the place of the one before");
    let run = controller.measured();
    assert_eq!((run.exit, run.requests("sent"), run.count_or_0("counts.keys.miss")), (0, 2_000, 0));
    assert_eq!((exit_of(other), exit_of(third)), (0, 0));
}

/// An engine sees by the exit codes that no part was carried out.
#[test]
fn agents_fail_with_their_run() {
    let server = Server::reference("");
    let controller = Controller::wait(2, &server, "-t 1s -c 2 --keys 10");
    server.kill();
    let agents = [0, 1].map(|rank| controller.agent(rank, 2));
    assert_eq!(exit_of(controller.process), 5);
    assert_eq!(agents.map(exit_of), [1, 1]);
}

/// A peer that is no agent of this fleet is told so, or dropped in time, and does not disturb the agents.
#[test]
fn strangers_are_refused() {
    let server = Server::reference("");
    let mut controller = Controller::wait(2, &server, "-n 1000 -c 2 --warmup 0s --keys 100");
    let first = controller.agent(0, 2);
    controller.await_line("rank 0");
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(&controller.address).unwrap()).collect();
    // One is let in and announces 2^63 bytes, lowest first or highest first, or the most that an agent may send later.
    for (bytes, why) in
        [(1_u64 << 63, ""), (1 << 7, ""), (127 << 20, "sent a message of 133169152 bytes; at most 4096")]
    {
        // Of several in a second one is named.
        std::thread::park_timeout(Duration::from_millis(1100));
        let mut stranger = TcpStream::connect(&controller.address).unwrap();
        let hello = Hello { version: VERSION, wants_token: false, nonce: [1; 32] };
        stranger.write_all(&hello.bytes()).unwrap();
        let mut answer = [0; Answer::BYTES];
        stranger.read_exact(&mut answer).unwrap();
        let welcome = Welcome::to(&hello, &Answer::read(&answer).unwrap(), None, false);
        stranger.write_all(&welcome.bytes()).unwrap();
        stranger.write_all(&bytes.to_le_bytes()).unwrap();
        let _ = stranger.write_all(&[0xff; 256]);
        assert!(controller.await_line(": refused").contains(why));
    }
    for bytes in [&[0xff; 64][..], b"GET / HTTP/1.1\r\n\r\n", &[0; 4096]] {
        let mut stranger = TcpStream::connect(&controller.address).unwrap();
        let _ = stranger.write_all(bytes);
    }
    let refused = ended(&controller.agent_line(1, 3));
    refused.is(1, &["was refused: rank 1 of 3 cannot join a fleet of 2"]);
    let second = controller.agent(1, 2);
    let run = controller.measured();
    assert_eq!((run.exit, run.requests("sent")), (0, 1_000));
    assert_eq!((exit_of(first), exit_of(second)), (0, 0));
    drop(silent);
}

/// Three hosts that share nothing but the plan and an instant: their parts add up to what the plan schedules, which is what the server saw,
/// and each has the part that the agent of its rank has.
#[test]
fn parts_without_a_controller_add_up() {
    let server = Server::reference("");
    let folder = Directory::new();
    let files: Vec<String> = (0..3).map(|rank| folder.path(&format!("r{rank}.json"))).collect();
    let load = "-r 1001 --arrival uniform -t 1s --warmup 0s -c 7 --keys 700 --seed 5 --threads 4";
    let start_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 10;
    let part = |rank: usize, start: u64, load: &str| {
        let usual = format!("--progress=none --wait sleep --allow={ALL} -s {server} -o {}", files[rank]);
        brunt(&format!("run {usual} {load} --rank {rank} --of 3 --start-at {start}"))
    };
    let began: Vec<Process> = (0..3).map(|rank| Process(begin(part(rank, start_s, load)))).collect();
    began.into_iter().for_each(|process| assert_eq!(exit_of(process), 0));
    let merged = Measured::of(brunt(&format!("report --merge -o json:- {}", files.join(" "))));
    assert_eq!((merged.requests("scheduled"), merged.requests("sent")), (1_001, 1_001));
    assert_eq!(merged.at("counts.phases.preload.stored.confirmed"), 700);
    let agents = merged.at("client.agents").as_array().unwrap().clone();
    let places: Vec<_> = agents.iter().map(|agent| (&agent["first_worker"], &agent["workers"])).collect();
    assert_eq!(places, [(&json!(0), &json!(2)), (&json!(2), &json!(1)), (&json!(3), &json!(1))]);

    let controller = Controller::wait(3, &server, load);
    let agents = [0, 1, 2].map(|rank| controller.agent(rank, 3));
    let fleet = controller.measured();
    agents.into_iter().for_each(|agent| assert_eq!(exit_of(agent), 0));
    for whole in [&merged, &fleet] {
        let agents = whole.at("client.agents").as_array().unwrap();
        let completed = agents.iter().map(|agent| agent["requests"]["completed"].as_u64().unwrap());
        assert_eq!(completed.sum::<u64>(), whole.requests("completed"));
    }
    for key in ["counts.requests.scheduled", "client.connections.established", "counts.keys.requested"] {
        assert_eq!(merged.at(key), fleet.at(key), "{key}");
    }

    let refused = ended(&format!("report --merge {} {}", files[0], files[2]));
    refused.is(2, &["no result has workers 2 to 2 of 4; accepted: all parts of a run"]);
    let late = Ended::from(part(0, start_s - 10, load));
    late.is(2, &["--start-at", "within a day"]);
    let soon_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3;
    let unready = Ended::from(part(0, soon_s, "--keys 3000000"));
    unready.is(1, &["this host was not ready at the common start"]);
}

/// A thousand connections at once and agents of another folder, token or version: the fleet waits, and its memory stays what it was.
#[test]
fn a_thousand_strangers_do_not_disturb_a_waiting_fleet() {
    let server = Server::reference("");
    let (folder, foreign) = (AuthFolder::new(), AuthFolder::new());
    let other_token = folder.with_other_token();
    let load = format!("-n 1000 -c 2 --warmup 0s --keys 100 --auth {}", folder.path());
    let mut controller = Controller::wait(2, &server, &load);
    let line = |rank, auth: &str| format!("{}{auth} --join-timeout 1s", controller.agent_line(rank, 2));
    let [with_folder, with_token, with_foreign, without] = [
        line(0, &format!(" --auth {}", folder.path())),
        line(1, &format!(" --auth {}", other_token.path())),
        line(1, &format!(" --auth {}", foreign.path())),
        line(1, ""),
    ];
    let first = Process(begin(brunt(&with_folder)));
    controller.await_line("rank 0");
    let before = resident_bytes(&controller);
    let strangers: Vec<TcpStream> = (0..1000)
        .map(|number| {
            let mut stranger = TcpStream::connect(&controller.address).unwrap();
            // Some are gone before they have said all.
            let said: &[u8] =
                [&b""[..], &[0xff; 64], b"GET / HTTP/1.1\r\n\r\n", &[0x16, 3, 1, 0xff, 0xff, 1]][number % 4];
            let _ = stranger.write_all(said);
            stranger
        })
        .collect();
    // Those that say nothing are there for four seconds, and the agents that are refused behind them are named with their number.
    let (mut grown, since) = (0, Instant::now());
    while since.elapsed() < Duration::from_secs(6) {
        std::thread::park_timeout(Duration::from_millis(20));
        grown = grown.max(resident_bytes(&controller).saturating_sub(before));
    }
    assert!(grown < 64 << 20, "{grown} bytes more");
    for refused in [with_token, with_foreign, without].map(|line| ended(&line)) {
        assert_eq!(refused.exit, 1, "{}", refused.said);
    }
    let second = Process(begin(brunt(&with_folder.replace("--rank 0", "--rank 1"))));
    let run = controller.measured();
    assert_eq!((run.exit, run.requests("sent")), (0, 1_000));
    assert_eq!((exit_of(first), exit_of(second)), (0, 0));
    drop(strangers);
}

fn resident_bytes(controller: &Controller) -> u64 {
    let path = format!("/proc/{}/statm", controller.process.0.id());
    let told = std::fs::read_to_string(path).unwrap();
    told.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
