//! Lines of rpc-perf's log, as its version of 2017 lays them out and as that of 2016 does.
//!
//! Not when they are printed, and not where their numbers come from. Invariant: a line has its time of day, its level and the name of
//! the program before its text.

use super::command_line::{LogFormat, VERSION};
use super::config::{Parameter, Style};
use super::invocation::Invocation;
use super::request::{Request, log_name};
use super::window::{Counts, Window};
use brunt_plan::plan::IpVersion;
use jiff::Timestamp;
use std::fmt::Write as _;

/// The line between parts of the log.
const RULE: &str = "-----";

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Always printed.
    Info,
    /// With `-v`.
    Debug,
    /// With `-vv`.
    Trace,
}

/// How messages become lines, at one time.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// The layout.
    pub format: LogFormat,
    /// Local time in nanoseconds: since the midnight of the first of January 1970 there.
    pub local_ns: u64,
}

impl Log {
    /// Each message as a line of this level.
    pub fn lines<T: AsRef<str>>(&self, level: Level, messages: &[T]) -> String {
        let level = match level {
            Level::Info => "INFO ",
            Level::Debug => "DEBUG",
            Level::Trace => "TRACE",
        };
        let time = self.time();
        let mut text = String::new();
        for message in messages {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{time} {level} [rpc-perf] {}", message.as_ref());
        }
        text
    }

    fn time(&self) -> String {
        let layout = match self.format {
            LogFormat::Of2017 => "%Y-%m-%d %H:%M:%S.%3f",
            LogFormat::Of2016 => "%Y-%m-%d %H:%M:%S",
        };
        // Local time, read as if it were that of Greenwich. No clock stands beyond the year 9999.
        let local = Timestamp::from_nanosecond(self.local_ns.into()).unwrap_or(Timestamp::MAX);
        local.strftime(layout).to_string()
    }
}

/// The first lines: the version and the configuration.
pub fn banner(invocation: &Invocation, sent: &[Request]) -> Vec<String> {
    let settings = &invocation.settings;
    let mut lines = vec![format!("{VERSION} initializing...")];
    let (pool, ip) = match settings.log_format {
        LogFormat::Of2017 => {
            lines.push("feature: asm: disabled".to_owned());
            let ip = match invocation.ip_version {
                IpVersion::Any => "IP",
                IpVersion::V4 => "IPv4",
                IpVersion::V6 => "IPv6",
            };
            ("Poolsize", ip)
        }
        LogFormat::Of2016 => {
            let ip = match invocation.ip_version {
                IpVersion::Any => "IP::Any",
                IpVersion::V4 => "IP::V4",
                IpVersion::V6 => "IP::V6",
            };
            ("Connections", ip)
        }
    };
    lines.extend([RULE.to_owned(), "Config:".to_owned()]);
    for server in &settings.servers {
        lines.push(format!("Config: Server: {server} Protocol: {}", log_name(invocation.protocol)));
    }
    lines.push(format!("Config: IP: {ip} TCP_NODELAY: {}", settings.tcp_nodelay));
    lines.push(format!("Config: Threads: {} {pool}: {}", settings.threads, settings.connections));
    lines.push(format!("Config: Windows: {} Duration: {}", settings.windows, settings.duration_s));
    match settings.log_format {
        LogFormat::Of2017 => {
            let timeout = |given: Option<u32>| given.map_or("None".to_owned(), |ms| format!("{ms} ms"));
            lines.push(format!("Config: Request Timeout: {}", timeout(settings.request_timeout_ms)));
            lines.push(format!("Config: Connect Timeout: {}", timeout(settings.connect_timeout_ms)));
            let (rx, tx) = (settings.rx_buffer_size, settings.tx_buffer_size);
            lines.push(format!("Config: Buffer size (bytes): RX: {rx} TX: {tx}"));
        }
        LogFormat::Of2016 => lines.extend(workloads(invocation, sent)),
    }
    lines
}

/// The lines before connections are made.
pub fn connecting(threads: u32) -> Vec<String> {
    let clients = (0..threads).map(|client| format!("Client: {client}"));
    [RULE.to_owned(), "Connecting...".to_owned()].into_iter().chain(clients).collect()
}

/// The lines when the schedule begins; in 2017 the workloads.
pub fn scheduled(invocation: &Invocation, sent: &[Request]) -> Vec<String> {
    match invocation.settings.log_format {
        LogFormat::Of2017 => workloads(invocation, sent),
        LogFormat::Of2016 => Vec::new(),
    }
}

/// The lines when connections have been made; in 2016 how many were, and how many attempts failed.
pub fn connected(format: LogFormat, counts: Counts) -> Vec<String> {
    match format {
        LogFormat::Of2017 => Vec::new(),
        LogFormat::Of2016 => {
            let failures = counts.connect_errors + counts.connect_timeouts;
            vec![format!("Connections: {} Failures: {failures}", counts.established)]
        }
    }
}

fn workloads(invocation: &Invocation, sent: &[Request]) -> Vec<String> {
    let mut lines = vec![RULE.to_owned(), "Workload:".to_owned()];
    for (index, (workload, request)) in invocation.workloads.iter().zip(sent).enumerate() {
        lines.push(format!("Workload {index}: Method: {} Rate: {}", request.method, workload.rate));
        if invocation.settings.log_format == LogFormat::Of2016 {
            lines.extend(workload.parameters.iter().enumerate().map(parameter));
        }
    }
    lines
}

fn parameter((index, parameter): (usize, &Parameter)) -> String {
    let Parameter { style, regenerate, num, .. } = parameter;
    let size = parameter.size.unwrap_or(1);
    match (style, num) {
        (Style::Static, _) => {
            format!("Parameter: Static {{ size: {size}, seed: {} }}", parameter.seed.unwrap_or(index as u64))
        }
        (Style::Random, None) => format!("Parameter: Random {{ size: {size}, regenerate: {regenerate} }}"),
        (Style::Random, Some(num)) => {
            format!("Parameter: Random {{ size: {size}, num: {num}, regenerate: {regenerate} }}")
        }
    }
}

/// The lines at the end of the warm-up.
pub fn warmed_up() -> Vec<String> {
    vec![RULE.to_owned(), "Warmup complete".to_owned()]
}

/// The lines of a window.
pub fn window(format: LogFormat, number: u64, window: &Window) -> Vec<String> {
    let mut lines = vec![RULE.to_owned(), format!("Window: {number}")];
    match format {
        LogFormat::Of2017 => lines.extend(of_2017(window)),
        LogFormat::Of2016 => lines.extend(of_2016(window)),
    }
    lines
}

fn of_2017(window: &Window) -> [String; 6] {
    let Counts { begun, established, connect_errors, connect_timeouts, closed, open, .. } = window.counts;
    let Counts { scheduled, sent, replied, ok, errors, timeouts, in_flight, hits, misses, .. } =
        window.counts;
    let [min, p50, p90, p99, p999, p9999, max] = window.percentiles_ns().map(|ns| ns / 1_000);
    [
        format!(
            "Connections: Ok: {established} Error: {connect_errors} Timeout: {connect_timeouts} Open: {open}"
        ),
        format!("Sockets: Create: {begun} Close: {closed} Read: {replied} Write: {sent} Flush: 0"),
        format!("Requests: Sent: {sent} Prepared: {scheduled} In-Flight: {in_flight}"),
        format!("Responses: Ok: {ok} Error: {errors} Timeout: {timeouts} Hit: {hits} Miss: {misses}"),
        format!(
            "Rate: {:.2} rps Success: {:.2} % Hit Rate: {:.2} %",
            window.rate(),
            window.success(),
            window.hit_rate()
        ),
        format!(
            "Percentiles: Response OK (us): min: {min} p50: {p50} p90: {p90} p99: {p99} p999: {p999} p9999: {p9999} max: {max}"
        ),
    ]
}

fn of_2016(window: &Window) -> [String; 4] {
    let Counts { sent, ok, misses, errors, timeouts, lost, .. } = window.counts;
    let [min, p50, p90, p99, p999, p9999, max] = window.percentiles_ns();
    let moments = window.response.moments();
    let [mean, deviation] = [moments.mean(), moments.stddev()].map(|ns| ns.unwrap_or(0.0) as u64);
    [
        format!("Requests: {sent} Ok: {ok} Miss: {misses} Error: {} Closed: {lost}", errors + timeouts),
        format!(
            "Rate: {:.2} rps Success: {:.2} % Hitrate: {:.2} %",
            window.rate(),
            window.success(),
            window.hit_rate()
        ),
        format!("Latency: min: {min} ns max: {max} ns avg: {mean} ns stddev: {deviation} ns"),
        format!("Percentiles: p50: {p50} ns p90: {p90} ns p99: {p99} ns p999: {p999} ns p9999: {p9999} ns"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc_perf::command_line::CommandLine;
    use crate::rpc_perf::config::Workload;
    use brunt_plan::plan::Protocol;

    fn invocation(log_format: LogFormat) -> Invocation {
        let settings = CommandLine {
            servers: vec!["127.0.0.1:11211".to_owned()],
            threads: 2,
            connections: 3,
            windows: 1,
            request_timeout_ms: Some(200),
            tx_buffer_size: 1_048_576,
            log_format,
            ..CommandLine::default()
        };
        Invocation {
            settings,
            protocol: Protocol::MemcachedText,
            ip_version: IpVersion::Any,
            workloads: workloads(),
            remarks: Vec::new(),
        }
    }

    fn workloads() -> Vec<Workload> {
        let random = Parameter { style: Style::Random, size: Some(128), ..Parameter::default() };
        let drawn = Parameter { regenerate: true, num: std::num::NonZeroU64::new(500), ..random.clone() };
        let workload = |method: &str, rate, parameters| {
            let method = Some(method.to_owned());
            Workload { method, rate, parameters, ..Workload::default() }
        };
        let key = Parameter { seed: Some(0), ..Parameter::default() };
        vec![workload("get", 0, vec![key]), workload("set", 1, vec![drawn, random])]
    }

    fn a_window() -> Window {
        let mut window = Window {
            seconds: 60.0,
            counts: Counts {
                begun: 3,
                established: 1,
                connect_errors: 1,
                connect_timeouts: 1,
                closed: 2,
                lost: 4,
                open: 5,
                scheduled: 986_240,
                sent: 986_234,
                replied: 986_233,
                ok: 986_231,
                errors: 2,
                timeouts: 1,
                in_flight: 6,
                hits: 3,
                misses: 1,
            },
            ..Window::default()
        };
        // As exact as a histogram is where values are small.
        (1..=10).for_each(|us| window.response.record(us * 100));
        window
    }

    #[test]
    fn times_of_day_have_their_date() {
        let time = |local_s: u64, format: LogFormat| {
            Log { format, local_ns: local_s * 1_000_000_000 + 79_000_000 }.time()
        };
        // (seconds since 1970, as `date -u` writes them)
        let table = [
            (0, "1970-01-01 00:00:00.079"),
            (951_782_399, "2000-02-28 23:59:59.079"),
            (951_782_400, "2000-02-29 00:00:00.079"),
            (951_868_800, "2000-03-01 00:00:00.079"),
            (1_763_697_787, "2025-11-21 04:03:07.079"),
            (4_107_542_400, "2100-03-01 00:00:00.079"),
            (4_107_456_000, "2100-02-28 00:00:00.079"),
        ];
        for (local_s, expected) in table {
            assert_eq!(time(local_s, LogFormat::Of2017), expected);
        }
        assert_eq!(time(1_458_918_037, LogFormat::Of2016), "2016-03-25 15:00:37");
    }

    #[test]
    fn lines_have_time_and_level() {
        let log = Log { format: LogFormat::Of2017, local_ns: 1_763_697_787_901_999_999 };
        assert_eq!(
            log.lines(Level::Info, &["a", "b"]),
            "2025-11-21 04:03:07.901 INFO  [rpc-perf] a\n2025-11-21 04:03:07.901 INFO  [rpc-perf] b\n"
        );
        let log = Log { format: LogFormat::Of2016, ..log };
        assert_eq!(log.lines(Level::Debug, &["x"]), "2025-11-21 04:03:07 DEBUG [rpc-perf] x\n");
        assert_eq!(log.lines(Level::Trace, &["x"]), "2025-11-21 04:03:07 TRACE [rpc-perf] x\n");
    }

    /// The log of a run with one window.
    fn lines_of(format: LogFormat) -> Vec<String> {
        let invocation = invocation(format);
        let sent = invocation.requests(0).unwrap();
        [
            banner(&invocation, &sent),
            connecting(invocation.settings.threads),
            scheduled(&invocation, &sent),
            connected(format, a_window().counts),
            warmed_up(),
            window(format, 1, &a_window()),
        ]
        .concat()
    }

    #[test]
    fn log_of_2017_has_its_layout() {
        let lines = lines_of(LogFormat::Of2017);
        let expected = "\
rpc-perf 2.1.0-pre initializing...
feature: asm: disabled
-----
Config:
Config: Server: 127.0.0.1:11211 Protocol: memcache
Config: IP: IP TCP_NODELAY: false
Config: Threads: 2 Poolsize: 3
Config: Windows: 1 Duration: 60
Config: Request Timeout: 200 ms
Config: Connect Timeout: None
Config: Buffer size (bytes): RX: 4096 TX: 1048576
-----
Connecting...
Client: 0
Client: 1
-----
Workload:
Workload 0: Method: get Rate: 0
Workload 1: Method: set Rate: 1
-----
Warmup complete
-----
Window: 1
Connections: Ok: 1 Error: 1 Timeout: 1 Open: 5
Sockets: Create: 3 Close: 2 Read: 986233 Write: 986234 Flush: 0
Requests: Sent: 986234 Prepared: 986240 In-Flight: 6
Responses: Ok: 986231 Error: 2 Timeout: 1 Hit: 3 Miss: 1
Rate: 16437.22 rps Success: 100.00 % Hit Rate: 75.00 %
Percentiles: Response OK (us): min: 0 p50: 0 p90: 0 p99: 1 p999: 1 p9999: 1 max: 1";
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn log_of_2016_has_its_layout() {
        let lines = lines_of(LogFormat::Of2016);
        let expected = "\
rpc-perf 2.1.0-pre initializing...
-----
Config:
Config: Server: 127.0.0.1:11211 Protocol: memcache
Config: IP: IP::Any TCP_NODELAY: false
Config: Threads: 2 Connections: 3
Config: Windows: 1 Duration: 60
-----
Workload:
Workload 0: Method: get Rate: 0
Parameter: Static { size: 1, seed: 0 }
Workload 1: Method: set Rate: 1
Parameter: Random { size: 128, num: 500, regenerate: true }
Parameter: Random { size: 128, regenerate: false }
-----
Connecting...
Client: 0
Client: 1
Connections: 1 Failures: 2
-----
Warmup complete
-----
Window: 1
Requests: 986234 Ok: 986231 Miss: 1 Error: 3 Closed: 4
Rate: 16437.22 rps Success: 100.00 % Hitrate: 75.00 %
Latency: min: 100 ns max: 1000 ns avg: 550 ns stddev: 287 ns
Percentiles: p50: 500 ns p90: 900 ns p99: 1000 ns p999: 1000 ns p9999: 1000 ns";
        assert_eq!(lines.join("\n"), expected);
    }
}
