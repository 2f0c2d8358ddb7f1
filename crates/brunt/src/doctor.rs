//! `brunt doctor`: is this host fit for a plan, and what to do where it is not.
//!
//! Judges [`HostFacts`] and [`Needs`] with plain functions, one for each subject; nothing is changed on the host, and no
//! server is sent anything: whether it accepts a connection is tried, and kernel timestamps on a connection to itself. Invariant: `fail` is only where a run
//! of this plan would fail.

use crate::exit::{Exit, Failure};
use crate::host::Needs;
use crate::host::{HostFacts, TimeWaitReuse};
use crate::output::Outputs;
use crate::presentation::Form;
use crate::serve::check_storage;
use crate::terminal::wrapped;
use crate::{asking, campaign, cli, measurement, run};
use brunt_engine::{Address, TlsSettings};
use brunt_plan::plan::{IoChoice, Plan, Server, Timestamps, Transport};
use brunt_report::document::Level;
use brunt_report::quantity;
use brunt_stats::connection::{MORE_ADDRESSES, MORE_PORTS, PORTS_MAX};
use brunt_stats::usage::is_fast_clocksource;
use serde_json::json;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection in the queue of a listening socket is rarely alone: the engine begins many at once.
const BURST_MAX: u64 = 1_024;
/// A server that takes longer to accept a connection is as good as gone.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// By default memcached takes as many connections, some of them for itself.
const LIMIT_OF_SERVERS: u64 = 1_000;
/// How wide lines are where the text goes to no terminal.
const WIDTH: usize = 80;
/// Above this share of stolen time the tail shows other people's work.
const STOLEN_MAX: f64 = 0.01;
/// The kernel that brought epoll_pwait2, without which no wait is shorter than a millisecond.
const KERNEL_MIN: (u32, u32) = (5, 11);
/// The schema of what `-o json` writes.
const SCHEMA: &str = "brunt.doctor.v1";

brunt_plan::named! {
    /// Result of a check.
    pub enum HostStatus {
        /// Nothing to do.
        Ok = "ok",
        /// Measurements suffer.
        Warn = "care",
        /// The run fails.
        Fix = "fail",
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostFinding {
    status: HostStatus,
    subject: String,
    /// What there is.
    says: String,
    /// What to do about it, where there is something.
    remedy: Option<String>,
}

fn finding(status: HostStatus, says: impl Into<String>, remedy: Option<String>) -> HostFinding {
    HostFinding { status, subject: String::new(), says: says.into(), remedy }
}

fn ok(says: impl Into<String>) -> HostFinding {
    finding(HostStatus::Ok, says, None)
}

fn warn(says: impl Into<String>, remedy: impl Into<String>) -> HostFinding {
    finding(HostStatus::Warn, says, Some(remedy.into()))
}

fn fix(says: impl Into<String>, remedy: impl Into<String>) -> HostFinding {
    finding(HostStatus::Fix, says, Some(remedy.into()))
}

impl HostFinding {
    fn of(self, subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..self }
    }
}

/// Judges this host for the plan of `brunt run` with these options, and says so. Agents are not asked.
pub(crate) fn doctor(flags: &cli::Repeated) -> Result<Exit, Failure> {
    let (asked, plan) = campaign::plan_of_run(flags)?;
    let flags = &flags.run;
    if flags.output.print_plan {
        return run::print_plan(&asked.printed(&plan));
    }
    let outputs = Outputs::of_findings(&flags.output.files, &asked.spec)?;
    let facts = HostFacts::read();
    let mut findings = Vec::new();
    if asking::is_needed(&asked.spec) {
        findings.push(ok("asked of the server before a run, or given by --protocol").of("protocol"));
    }
    let addresses = match addresses(&plan) {
        Ok(addresses) => addresses,
        Err(reason) => {
            let remedy = match plan.transport {
                Transport::Unix => "start the server, and look with: ls -l PATH",
                Transport::Tcp | Transport::Tls | Transport::Udp => "check the name with: getent hosts NAME",
            };
            findings.push(fix(reason, remedy).of("server"));
            Vec::new()
        }
    };
    if plan.uses_transport(Transport::Tls) {
        let files = match TlsSettings::read(&plan.tls) {
            Ok(_) => ok("the files are in order"),
            Err(reason) => fix(reason, "see --tls-ca, --tls-cert and --tls-key in: brunt help run"),
        };
        findings.push(files.of("TLS"));
    }
    findings.extend(unreachable(&addresses));
    let too_large = check_storage(&plan, &asked.host).err();
    findings.extend(too_large.map(|reason| fix(reason, "give fewer --keys, or --no-preload").of("memory")));
    let needs = Needs::of(&plan, &addresses, facts.time_wait_reuse);
    findings.extend(judge(&plan, &addresses, &needs, &facts));
    findings.push(io_uring(&plan, &facts, brunt_engine::kernel_interface::io_uring_works()).of("io_uring"));
    findings.push(timestamps(&plan, brunt_engine::timestamps_work()).of("kernel stamps"));
    let is_fit = findings.iter().all(|finding| finding.status != HostStatus::Fix);
    let delivery = outputs.deliver(
        Form::Report(Level::Short),
        |_, out| write_json(&findings, needs.connections, is_fit, out),
        |goes_to_stderr, out| {
            let presentation = flags.progress.presentation();
            let width = presentation.layout(goes_to_stderr).columns.unwrap_or(WIDTH);
            let text = match flags.progress.quiet {
                true => findings
                    .iter()
                    .filter(|finding| finding.status == HostStatus::Fix)
                    .map(|finding| line(finding, width) + "\n")
                    .collect(),
                false => {
                    let has_details = presentation.form == Form::Report(Level::Long);
                    report(&findings, needs.connections, has_details, width)
                }
            };
            out.write_all(text.as_bytes())
        },
    );
    Ok(delivery.exit(if is_fit { Exit::Done } else { Exit::Failed }))
}

/// Writes the schema `brunt.doctor.v1`.
fn write_json(
    findings: &[HostFinding],
    connections: u64,
    is_fit: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let finding = |finding: &HostFinding| {
        let HostFinding { status, subject, says, remedy } = finding;
        json!({ "check": subject, "status": status.name(), "value": says, "fix": remedy })
    };
    let found = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "connections": connections,
        "fit": is_fit,
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &found)?;
    writeln!(out)
}

/// The first address of every server, which is the one that is tried first.
fn addresses(plan: &Plan) -> Result<Vec<Address>, String> {
    let first = |server: &Server| match &server.address {
        // The reference server takes any free port.
        None => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()),
        Some(address) => measurement::find(address, server.transport, plan.ip_version, None)
            .map(|endpoint| endpoint.addresses[0].clone()),
    };
    plan.servers.iter().map(first).collect::<Result<_, _>>().map_err(|failure| failure.error.to_string())
}

/// The first server that accepts no connection. Of datagrams nothing is known before a reply, and the reference server is not there yet.
fn unreachable(addresses: &[Address]) -> Option<HostFinding> {
    let refused = |address: &Address| {
        let (name, tried) = match address {
            Address::Network(at) if at.port() > 0 => {
                (at.to_string(), TcpStream::connect_timeout(at, CONNECT_MAX).map(drop))
            }
            Address::Unix(path) => (path.display().to_string(), UnixStream::connect(path).map(drop)),
            Address::Network(_) | Address::Datagram(_) => return None,
        };
        let error = tried.err()?;
        let says = format!("{name} accepts no connection: {error}");
        Some(fix(says, "start it, or correct --server").of("server"))
    };
    addresses.iter().find_map(refused)
}

/// What is not in order, the worst first, then the names of what is; with details every subject in the order of judging. Last the answer.
fn report(findings: &[HostFinding], connections: u64, has_details: bool, width: usize) -> String {
    let of = |status: HostStatus| findings.iter().filter(move |finding| finding.status == status);
    let shown: Vec<&HostFinding> = match has_details {
        true => findings.iter().collect(),
        false => of(HostStatus::Fix).chain(of(HostStatus::Warn)).collect(),
    };
    let mut lines: Vec<String> = shown.into_iter().map(|finding| line(finding, width)).collect();
    let fine: Vec<&str> = of(HostStatus::Ok).map(|finding| finding.subject.as_str()).collect();
    if !has_details && !fine.is_empty() {
        let more = if lines.is_empty() { "checked" } else { "more" };
        let others = ok(format!("{} (--report full)", fine.join(", "))).of(format!("{} {more}", fine.len()));
        lines.push(line(&others, width));
    }
    let things = quantity::things(connections, "connection");
    let (failing, careful) = (of(HostStatus::Fix).count(), of(HostStatus::Warn).count());
    let with_care = if careful > 0 { format!("; {careful} to take care of") } else { String::new() };
    lines.push(match failing {
        0 if connections >= LIMIT_OF_SERVERS => {
            format!(
                "FIT for {things}{with_care}, if the server takes as many (memcached -c, Redis maxclients)"
            )
        }
        0 => format!("FIT for {things}{with_care}"),
        _ => format!("NOT FIT for {things}: {failing} would fail{with_care}"),
    });
    lines.join("\n") + "\n"
}

/// A line, or where that would be too long several: the remedy begins one of its own, so that a command in it stays
/// whole as long as it can.
fn line(finding: &HostFinding, width: usize) -> String {
    let HostFinding { status, subject, says, remedy } = finding;
    let head = format!("{:<4}  {subject:<13}  ", status.name());
    let indent = head.chars().count();
    let room = width.max(2 * indent) - indent;
    let remedy = remedy.as_ref().map(|remedy| format!("-> {remedy}"));
    let whole = remedy.as_ref().map_or(says.clone(), |remedy| format!("{says} {remedy}"));
    let lines = match remedy {
        Some(remedy) if whole.chars().count() > room => {
            [wrapped(says, room), wrapped(&remedy, room)].concat()
        }
        _ => wrapped(&whole, room),
    };
    head + &lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Every subject in the order of printing.
fn judge(plan: &Plan, addresses: &[Address], needs: &Needs, facts: &HostFacts) -> Vec<HostFinding> {
    let is_local = addresses.iter().any(Address::is_loopback);
    let syn_backlog = match plan.transport {
        Transport::Unix => ok("none of Unix sockets"),
        Transport::Udp => ok("none of UDP"),
        Transport::Tcp | Transport::Tls => {
            queue("net.ipv4.tcp_max_syn_backlog", needs, facts.syn_backlog, is_local)
        }
    };
    vec![
        open_files(needs, facts).of("open files"),
        local_ports(needs, facts).of("local ports"),
        time_wait(needs, facts).of("TIME_WAIT"),
        queue("net.core.somaxconn", needs, facts.somaxconn, is_local).of("somaxconn"),
        syn_backlog.of("syn backlog"),
        processors(plan, facts).of("processors"),
        quota(plan, facts).of("cpu quota"),
        stolen(facts).of("stolen time"),
        governor(facts).of("governor"),
        clock(facts).of("clock source"),
        timer_slack(facts).of("timer slack"),
        kernel(facts).of("kernel"),
    ]
}

fn open_files(needs: &Needs, facts: &HostFacts) -> HostFinding {
    let needed = needs.open_files;
    match facts.open_files_hard {
        None => ok(format!("{needed} needed, no limit")),
        Some(hard) if needs.open_files > hard => fix(
            format!("{needed} needed, hard limit {hard}"),
            format!("as root: prlimit --pid $$ --nofile={0}:{0}", needs.open_files),
        ),
        Some(hard) => {
            let raised = match facts.open_files_soft {
                Some(soft) if needs.open_files > soft => " (the soft limit is raised at the start)",
                _ => "",
            };
            ok(format!("{needed} needed, hard limit {hard}{raised}"))
        }
    }
}

fn local_ports(needs: &Needs, facts: &HostFacts) -> HostFinding {
    let (ports, had) = (facts.local_ports, facts.local_ports.count());
    let says = format!(
        "{} needed to each server, {} there ({}-{})",
        needs.ports.max(needs.ports_expected),
        had,
        ports.first,
        ports.last
    );
    let remedy = if needs.ports > PORTS_MAX { MORE_ADDRESSES } else { MORE_PORTS };
    match (needs.ports > had, needs.ports_expected > had) {
        (true, _) => fix(says, remedy),
        (false, true) => warn(says, remedy),
        (false, false) => ok(says),
    }
}

/// Ports that rest matter only where connections come and go.
fn time_wait(needs: &Needs, facts: &HostFacts) -> HostFinding {
    let now = facts.time_wait.map(|count| format!(", {count} now")).unwrap_or_default();
    let reuse = match facts.time_wait_reuse {
        TimeWaitReuse::Never => "never reused",
        TimeWaitReuse::Loopback => "reused on loopback",
        TimeWaitReuse::Always => "reused",
    };
    let says = format!("{reuse}{now}");
    let had = facts.local_ports.count();
    let taken = facts.time_wait.unwrap_or(0).saturating_add(needs.ports_expected);
    match needs.ports_expected <= had && taken > had {
        true => warn(says, "wait a minute before the run"),
        false => ok(says),
    }
}

/// A queue of the listening side, which overflows when many connections begin at once.
fn queue(sysctl: &str, needs: &Needs, length: Option<u64>, is_local: bool) -> HostFinding {
    let wanted = needs.connections.min(BURST_MAX);
    match length {
        None => ok("not told"),
        Some(length) if !is_local => ok(format!("{length} here; the servers' own matters")),
        Some(length) if length < wanted => warn(
            format!("{length} for {wanted} connections that may begin at once"),
            format!("sudo sysctl -w {sysctl}=4096"),
        ),
        Some(length) => ok(length.to_string()),
    }
}

fn processors(plan: &Plan, facts: &HostFacts) -> HostFinding {
    let allowed = facts.allowed_cpus.len();
    let online = facts.online_cpus.map(|online| format!(" of {online}")).unwrap_or_default();
    let threads = plan.threads as usize;
    let says = format!("{allowed}{online} allowed, {threads} for workers");
    let pinned = plan.cpus.len();
    if pinned > 0 && pinned < threads {
        let remedy = format!("give --cpus {threads} processors, or use --threads {pinned}");
        warn(format!("{says}, pinned to {pinned}"), remedy)
    } else if threads > allowed {
        warn(says, format!("use --threads {allowed} or fewer"))
    } else if threads == allowed {
        let remedy = match allowed {
            1 => "client, kernel and server take turns: measure from a host with more".to_owned(),
            _ => format!("none is left for the kernel and a server here: use --threads {}", allowed - 1),
        };
        warn(says, remedy)
    } else {
        ok(says)
    }
}

fn quota(plan: &Plan, facts: &HostFacts) -> HostFinding {
    let Some(quota) = facts.quota_cpus else { return ok("none") };
    let says = format!("the control group allows {quota:.1} processors, {} for workers", plan.threads);
    // A worker that is out of quota stands still for the rest of the period, up to 100 ms.
    match quota >= f64::from(plan.threads) + 1.0 {
        true => ok(says),
        false => warn(says, "raise the group's quota (cpu.max or cpu.cfs_quota_us), or use fewer --threads"),
    }
}

fn stolen(facts: &HostFacts) -> HostFinding {
    let Some(share) = facts.stolen else { return ok("not told") };
    let says = format!("{:.2} % since the host started", share * 100.0);
    match share <= STOLEN_MAX {
        true => ok(says),
        false => warn(says, "the hypervisor runs others on these processors: measure on dedicated ones"),
    }
}

fn governor(facts: &HostFacts) -> HostFinding {
    let governors = facts.governors.join(", ");
    match facts.governors.as_slice() {
        [] => ok("none here (a guest, or fixed frequencies)"),
        [only] if only == "performance" => ok(governors),
        _ => warn(governors, "sudo cpupower frequency-set -g performance"),
    }
}

fn clock(facts: &HostFacts) -> HostFinding {
    match &facts.clocksource {
        None => ok("not told"),
        Some(source) if is_fast_clocksource(source) => ok(source),
        Some(source) => warn(
            format!("{source}: reading the time is slow"),
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
    }
}

/// Workers set their own; what is told is what the others of this host get.
fn timer_slack(facts: &HostFacts) -> HostFinding {
    let told = facts.timer_slack_ns.map(|ns| format!("{} by default, ", quantity::time(ns)));
    ok(format!("{}1 ns for workers", told.unwrap_or_default()))
}

fn kernel(facts: &HostFacts) -> HostFinding {
    match facts.kernel {
        None => ok("not told"),
        Some((major, minor)) if (major, minor) < KERNEL_MIN => fix(
            format!("Linux {major}.{minor}, without epoll_pwait2"),
            format!("use Linux {}.{} or later", KERNEL_MIN.0, KERNEL_MIN.1),
        ),
        Some((major, minor)) => ok(format!("Linux {major}.{minor}")),
    }
}

/// Does io_uring work, with all that the engine needs of it?
fn io_uring(plan: &Plan, facts: &HostFacts, trial: Result<(), String>) -> HostFinding {
    match (trial, facts.io_uring_disabled) {
        (Ok(()), _) => ok("works"),
        (Err(reason), _) if plan.io == IoChoice::Uring => fix(reason, "leave --io uring out"),
        (Err(reason), Some(1 | 2)) => {
            warn(reason, "epoll serves instead; to allow it: sudo sysctl -w kernel.io_uring_disabled=0")
        }
        (Err(reason), _) => warn(reason, "epoll serves instead"),
    }
}

/// Do kernel timestamps come, of what is sent and of what is received?
fn timestamps(plan: &Plan, trial: Result<(), &str>) -> HostFinding {
    match trial {
        Ok(()) => ok("of both directions, on loopback"),
        Err(reason) if plan.timestamps == Timestamps::Kernel => fix(reason, "leave timestamps out"),
        Err(reason) => warn(reason, "the kernel's part of latencies stays unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::host::tests::{FAR, LOOPBACK, UNIX, address, facts, needs, plan};

    /// The finding about a subject.
    fn finding_about(subject: &str, toml: &str, servers: &[&str], facts: &HostFacts) -> HostFinding {
        let plan = plan(toml);
        let addresses: Vec<Address> = servers.iter().map(|server| address(server)).collect();
        let needs = needs(&plan, servers, facts.time_wait_reuse);
        let findings = judge(&plan, &addresses, &needs, facts);
        findings.into_iter().find(|finding| finding.subject == subject).unwrap()
    }

    #[test]
    fn a_host_without_fault() {
        let plan = plan("");
        let needs = needs(&plan, LOOPBACK, TimeWaitReuse::Loopback);
        let findings = judge(&plan, &[address("127.0.0.1:11211")], &needs, &facts());
        let lines: Vec<String> = findings.iter().map(|finding| line(finding, WIDTH)).collect();
        assert_eq!(
            lines,
            [
                "ok    open files     52 needed, hard limit 20000",
                "ok    local ports    16 needed to each server, 28232 there (32768-60999)",
                "ok    TIME_WAIT      reused on loopback, 0 now",
                "ok    somaxconn      4096",
                "ok    syn backlog    4096",
                "ok    processors     8 of 8 allowed, 1 for workers",
                "ok    cpu quota      none",
                "ok    stolen time    0.00 % since the host started",
                "ok    governor       performance",
                "ok    clock source   tsc",
                "ok    timer slack    50.0 us by default, 1 ns for workers",
                "ok    kernel         Linux 6.18",
            ]
        );
    }

    /// More connections than one address has ports for need more addresses, not more ports.
    #[test]
    fn remedies_for_ports_can_be_followed() {
        for (connections, remedy) in [(60_000, MORE_PORTS), (300_000, MORE_ADDRESSES)] {
            let plan = format!("connections = {connections}");
            let found = finding_about("local ports", &plan, LOOPBACK, &facts());
            assert_eq!(found.remedy.as_deref(), Some(remedy), "{connections}");
        }
    }

    #[test]
    fn lines_are_as_wide_as_the_terminal() {
        let remedy = "none is left for the kernel and a server here: use --threads 1";
        let finding = warn("2 of 2 allowed, 2 for workers", remedy).of("processors");
        let lines = |width| line(&finding, width).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(200).len(), 1);
        assert_eq!(
            lines(60),
            [
                "care  processors     2 of 2 allowed, 2 for workers",
                "                     -> none is left for the kernel and a",
                "                     server here: use --threads 1",
            ]
        );
    }

    #[test]
    fn findings_without_fault_take_a_line() {
        let findings = [
            ok("Linux 6.18").of("kernel"),
            warn("powersave", "set it to performance").of("governor"),
            ok("tsc").of("clock source"),
            fix("10016 needed, hard limit 1024", "ulimit -n 10016").of("open files"),
        ];
        let expected = [
            "fail  open files     10016 needed, hard limit 1024 -> ulimit -n 10016",
            "care  governor       powersave -> set it to performance",
            "ok    2 more         kernel, clock source (--report full)",
            "NOT FIT for 10000 connections: 1 would fail; 1 to take care of",
        ];
        assert_eq!(report(&findings, 10_000, false, WIDTH).lines().collect::<Vec<_>>(), expected);
        assert_eq!(report(&findings, 10_000, true, WIDTH).lines().count(), 5);
        let fit = report(&findings[..1], 1, false, WIDTH);
        assert_eq!(fit, "ok    1 checked      kernel (--report full)\nFIT for 1 connection\n");
    }

    #[test]
    fn kernel_interfaces_are_checked_only_if_requested() {
        let table = "
stamps | | works | ok of both directions, on loopback
stamps | | what is sent gets no stamp | care what is sent gets no stamp -> the kernel's part of latencies stays unknown
stamps | timestamps = 'kernel' | what is sent gets no stamp | fail what is sent gets no stamp -> leave timestamps out
0 | | works | ok works
none | io = 'uring' | works | ok works
0 | | too old | care too old -> epoll serves instead
0 | io = 'uring' | too old | fail too old -> leave --io uring out
2 | | not permitted | care not permitted -> epoll serves instead; to allow it: sudo sysctl -w kernel.io_uring_disabled=0";
        for [interface, toml, trial, expected] in cases(table) {
            let (plan, disabled) = (plan(&toml), interface.parse().ok());
            let trial = if trial == "works" { Ok(()) } else { Err(trial.as_str()) };
            let facts = HostFacts { io_uring_disabled: disabled, ..facts() };
            let found = match interface.as_str() {
                "stamps" => timestamps(&plan, trial),
                _ => io_uring(&plan, &facts, trial.map_err(str::to_owned)),
            };
            let said = line(&found, WIDTH).split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(said, expected, "{interface} {toml}");
        }
    }

    #[test]
    fn a_long_line_is_broken_before_the_remedy() {
        let stolen = HostFacts { stolen: Some(0.031), ..facts() };
        assert_eq!(
            line(&super::stolen(&stolen).of("stolen time"), 100).lines().collect::<Vec<_>>(),
            [
                "care  stolen time    3.10 % since the host started",
                "                     -> the hypervisor runs others on these processors: measure on dedicated ones",
            ]
        );
        let long = warn("word ".repeat(30).trim(), "remedy ".repeat(30).trim()).of("subject");
        let text = line(&long, 100);
        assert!(text.lines().all(|line| line.chars().count() <= 100 && line == line.trim_end()), "{text}");
        assert_eq!(
            (text.lines().count(), text.matches("word").count(), text.matches("remedy").count()),
            (5, 30, 30)
        );
    }

    /// Subject, plan, servers, host; how it stands, and a word of what is said.
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], HostFacts, HostStatus, &'a str);

    /// Both sides of every threshold.
    #[test]
    fn every_threshold_has_two_sides() {
        use HostStatus::{Fix, Ok, Warn};
        let change = |change: fn(&mut HostFacts)| {
            let mut facts = facts();
            change(&mut facts);
            facts
        };
        let churn = "time = '10m'\nconnections = 232\ncalls-per-connection = 1\nconnect-rate = ";
        let (fits, too_fast) = (format!("{churn}466"), format!("{churn}467"));
        let unix = "server = 'unix:/run/cache.sock'";
        let queues = |length| HostFacts { somaxconn: Some(length), syn_backlog: Some(length), ..facts() };
        let table: &[Row<'_>] = &[
            ("open files", "connections = 19964", FAR, facts(), Ok, "raised at the start"),
            ("open files", "connections = 19965", FAR, facts(), Fix, "--nofile=20001:20001"),
            ("open files", "connections = 19965", FAR, change(|f| f.open_files_hard = None), Ok, "no limit"),
            ("local ports", &fits, FAR, facts(), Ok, "28192 needed"),
            ("local ports", &too_fast, FAR, facts(), Fix, "sudo sysctl"),
            ("local ports", &too_fast, LOOPBACK, facts(), Ok, "699 needed"),
            ("local ports", "time = '10m'\nreconnect-every = '30ms'", FAR, facts(), Warn, "sudo sysctl"),
            ("TIME_WAIT", "", FAR, change(|f| f.time_wait = Some(28_216)), Ok, "28216 now"),
            ("TIME_WAIT", "", FAR, change(|f| f.time_wait = Some(28_217)), Warn, "wait a minute"),
            ("TIME_WAIT", "connections = 28233", FAR, facts(), Ok, "0 now"),
            ("somaxconn", "connections = 128", LOOPBACK, queues(128), Ok, "128"),
            ("somaxconn", "connections = 129", LOOPBACK, queues(128), Warn, "sudo sysctl"),
            ("somaxconn", "connections = 129", FAR, queues(128), Ok, "the servers' own"),
            ("somaxconn", "connections = 9000", LOOPBACK, queues(1_024), Ok, "1024"),
            ("syn backlog", "connections = 129", LOOPBACK, queues(128), Warn, "syn_backlog"),
            ("somaxconn", unix, UNIX, queues(8), Warn, "8 for 16 connections that may begin at once"),
            ("syn backlog", unix, UNIX, queues(8), Ok, "none of Unix sockets"),
            ("local ports", unix, UNIX, facts(), Ok, "0 needed to each server, 28232 there (32768-60999)"),
            ("processors", "", FAR, change(|f| f.allowed_cpus = vec![0, 1]), Ok, "2 of 8"),
            ("processors", "", FAR, change(|f| f.allowed_cpus = vec![0]), Warn, "take turns"),
            ("processors", "threads = 7", FAR, facts(), Ok, "7 for workers"),
            ("processors", "threads = 8", FAR, facts(), Warn, "--threads 7"),
            ("processors", "threads = 9", FAR, facts(), Warn, "--threads 8"),
            ("processors", "threads = 2\ncpus = '1-2'", FAR, facts(), Ok, "2 for workers"),
            ("processors", "threads = 2\ncpus = '1'", FAR, facts(), Warn, "pinned to 1"),
            ("cpu quota", "", FAR, change(|f| f.quota_cpus = Some(2.0)), Ok, "2.0 processors"),
            ("cpu quota", "", FAR, change(|f| f.quota_cpus = Some(1.9)), Warn, "cpu.max"),
            ("stolen time", "", FAR, change(|f| f.stolen = Some(0.01)), Ok, "1.00 %"),
            ("stolen time", "", FAR, change(|f| f.stolen = Some(0.011)), Warn, "1.10 %"),
            ("governor", "", FAR, change(|f| f.governors.clear()), Ok, "none"),
            ("governor", "", FAR, change(|f| f.governors.push("powersave".into())), Warn, "cpupower"),
            ("clock source", "", FAR, change(|f| f.clocksource = Some("kvm-clock".into())), Ok, "kvm-clock"),
            ("clock source", "", FAR, change(|f| f.clocksource = Some("hpet".into())), Warn, "hpet"),
            ("kernel", "", FAR, change(|f| f.kernel = Some((5, 11))), Ok, "5.11"),
            ("kernel", "", FAR, change(|f| f.kernel = Some((5, 10))), Fix, "epoll_pwait2"),
        ];
        for (subject, toml, servers, facts, status, word) in table {
            let finding = finding_about(subject, toml, servers, facts);
            assert_eq!(finding.status, *status, "{toml}: {}", line(&finding, 100));
            let said = line(&finding, 100);
            assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(word), "{toml}: {said}");
            assert_eq!(finding.remedy.is_some(), *status != Ok, "something to do, where there is: {said}");
        }
    }
}
