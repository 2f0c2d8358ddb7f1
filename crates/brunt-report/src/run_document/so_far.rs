//! Parts of a screen that shows a run while it goes on: the report's own head, table, events and status, each by itself, and narrow tables of the
//! last second beside them.
//!
//! Not where they stand on the screen, nor how much of each has room there. Invariant: every line reads as it will in the report.

use super::{OpRows, conclusion, events, fact_lines, head, latency};
use crate::document::{Content, Document, Level};
use crate::grid::{Column, Grid, Rows, shortened};
use crate::layout::{Layout, Line, Style, TimeUnit};
use crate::quantity::{self, rate};
use crate::server;
use crate::text::printable;
use brunt_stats::check::CheckStatus;
use brunt_stats::latency::LatencySummary;
use brunt_stats::outage::Outage;
use brunt_stats::summary::Summary;
use brunt_stats::usage::{ClientShares, ClientTime};

brunt_plan::named! {
    /// A part, in the order in which they stand below each other.
    pub enum Part {
        /// What runs, and against which servers.
        Head = "head",
        /// The table of response times.
        Latency = "latency",
        /// What became of requests, and how late the client was.
        Requests = "requests",
        /// Outages, and the p99 over time.
        Events = "events",
        /// Which percentiles may be quoted so far, and why not more.
        Conclusion = "conclusion",
    }
}

/// Lines of each part.
pub type SoFarText = [Vec<Line>; Part::COUNT];

/// The parts of a run that goes on, with these rows of operations.
pub fn so_far(summary: &Summary, layout: &Layout, rows: OpRows) -> SoFarText {
    Part::ALL.map(|part| {
        let mut document = Document::default();
        match part {
            Part::Head => {
                let lines = head::load_lines(summary);
                lines.into_iter().for_each(|(label, facts)| document.facts(label, facts));
            }
            Part::Latency => {
                let tables = latency::tables(summary, layout, rows);
                tables.into_iter().for_each(|grid| document.table(grid));
            }
            Part::Requests => requests(&mut document, summary),
            Part::Events => {
                events::write(&mut document, summary);
                events::over_time(&mut document, summary);
            }
            Part::Conclusion => found(&mut document, summary),
        }
        let lines = document.lines(layout, Level::Long).into_iter();
        lines.filter(|line| !line.is_empty()).collect()
    })
}

fn requests(document: &mut Document, summary: &Summary) {
    for (label, _, facts) in fact_lines(summary) {
        if matches!(label, "requests" | "errors") {
            document.facts(label, facts);
        }
    }
    let requests = &summary.total.requests;
    let in_system = requests.scheduled.saturating_sub(requests.unsent + requests.ended());
    let lag = &summary.total.latency.send_lag.summary;
    document
        .facts("backlog", [format!("{in_system} in the system")].into_iter().chain(lag_text(lag)).collect());
    document.facts("client", client(summary));
    document.facts("server", server(summary));
}

/// What a request costs the servers, and the connections to them: `4.58 us CPU/request · 16 connections open`.
fn server(summary: &Summary) -> Vec<String> {
    let cpu_ns = server::window(summary).and_then(|span| span.cpu_ns_per_request());
    let cpu = cpu_ns.map(|ns| format!("{} CPU/request", quantity::time(ns.round() as u64)));
    let open = quantity::things(summary.connections.open(), "connection");
    cpu.into_iter().chain([format!("{open} open")]).collect()
}

/// What workers did with their time in the window: `workers busy 39.0 %`.
fn client(summary: &Summary) -> Vec<String> {
    let shares = summary.client_time().shares();
    let Some(ClientShares { busy, run_delay, stolen, .. }) = shares else { return Vec::new() };
    let named = [("workers busy", busy), ("run delay", run_delay), ("stolen", stolen)];
    let known = named.into_iter().filter_map(|(name, share)| Some(format!("{name} {:.1} %", share? * 100.0)));
    known.collect()
}

/// How late requests were sent: `send lag p99 12.0 us, max 1.20 ms`.
fn lag_text(lag: &LatencySummary) -> Option<String> {
    let times = [("p99", lag.p99_ns()), ("max", lag.max_ns)];
    let known = times.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", quantity::time(ns?))));
    lag.max_ns.map(|_| format!("send lag {}", known.collect::<Vec<_>>().join(" ")))
}

/// The status so far first, the one line that a small screen has room for, then a line for each check that is not ok.
fn found(document: &mut Document, summary: &Summary) {
    let status = &summary.status;
    let (label, style) = ("so far".to_owned(), conclusion::style(status.status));
    document.push(0, Content::Sentence { label, text: status.headline(), style });
    for (name, text) in conclusion::findings(status) {
        document.push(0, Content::Advice { name, text });
    }
}

/// Characters of the first column; longer names of servers are cut.
const NAME_WIDTH: usize = 16;

struct ServerRow {
    name: String,
    done_per_s: f64,
    /// Of all its outages that are over.
    down_ns: u64,
    cpu_ns: Option<f64>,
}

/// Each server: what it answered in the last second, how long it was down, and its CPU time per request, where it tells. Where there are
/// many, those that answer nothing, then those that were down longest.
pub fn servers(summary: &Summary, done_per_s: &[f64], layout: &Layout, lines_max: usize) -> Vec<Line> {
    server_table(server_rows(summary, done_per_s), layout, lines_max)
}

fn server_table(mut rows: Vec<ServerRow>, layout: &Layout, lines_max: usize) -> Vec<Line> {
    let has_cpu = rows.iter().any(|row| row.cpu_ns.is_some());
    let rows_max = lines_max.saturating_sub(1);
    if rows.len() > rows_max {
        rows.sort_by_key(|row| (row.done_per_s > 0.0, std::cmp::Reverse(row.down_ns)));
        let rest = rows.split_off(rows_max.saturating_sub(1));
        rows.push(ServerRow {
            name: format!("rest-{}", rest.len()),
            done_per_s: rest.iter().map(|row| row.done_per_s).sum(),
            down_ns: rest.iter().map(|row| row.down_ns).sum(),
            cpu_ns: None,
        });
    }
    let number = |ns: f64, unit: TimeUnit| quantity::significant(ns / unit.ns());
    let down = |row: &ServerRow| match row.down_ns {
        0 => "-".to_owned(),
        ns => number(ns as f64, TimeUnit::S),
    };
    let table = Rows::of(rows, |row| if row.done_per_s > 0.0 { Style::Plain } else { Style::Bad })
        .texts(Column::of_words("server", NAME_WIDTH), |row| {
            shortened(&printable(&row.name).replace(' ', "_"), NAME_WIDTH)
        })
        .texts(Column::of_numbers("done/s", 8), |row| rate(row.done_per_s))
        .texts(Column::of_numbers("down/s", 7), down)
        .texts_if(has_cpu, Column::of_numbers("cpu_us", 7), |row| {
            row.cpu_ns.map_or("-".to_owned(), |ns| number(ns, TimeUnit::Us))
        });
    table.grid(None).lines(layout)
}

fn server_rows(summary: &Summary, done_per_s: &[f64]) -> Vec<ServerRow> {
    let cpu_ns = server::cpu_ns_per_request(summary);
    let row = |((index, done_per_s), name): ((usize, &f64), String)| {
        let own = summary.outages.iter().filter(|outage| usize::from(outage.server) == index);
        ServerRow {
            name,
            done_per_s: *done_per_s,
            down_ns: own.filter_map(Outage::length_ns).sum(),
            cpu_ns: cpu_ns.get(index).copied().flatten(),
        }
    };
    done_per_s.iter().enumerate().zip(server::names(summary)).map(row).collect()
}

/// Each worker: the share of the last second in which it was busy, and ready without a CPU; the worst first.
pub fn workers(times: &[ClientTime], layout: &Layout, lines_max: usize) -> Vec<Line> {
    let shares = times.iter().map(|time| time.shares().unwrap_or_default());
    let mut rows: Vec<(usize, ClientShares)> =
        shares.enumerate().filter(|(_, shares)| shares.busy.is_some()).collect();
    let taken = |shares: &ClientShares| shares.busy.unwrap_or(0.0) + shares.run_delay.unwrap_or(0.0);
    rows.sort_by(|(_, one), (_, other)| taken(other).total_cmp(&taken(one)));
    let rows_max = lines_max.saturating_sub(1);
    let mut more = 0;
    if rows.len() > rows_max {
        more = rows.len() - rows_max.saturating_sub(1);
        rows.truncate(rows_max.saturating_sub(1));
    }
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}", share * 1e2));
    let table = Rows::of(rows, |_| Style::Plain)
        .texts(Column::of_words("worker", NAME_WIDTH), |(worker, _)| *worker)
        .texts(Column::of_numbers("busy%", 8), |(_, shares)| percent(shares.busy))
        .texts(Column::of_numbers("delay%", 7), |(_, shares)| percent(shares.run_delay));
    let mut grid = table.grid(None);
    if more > 0 {
        grid.push_texts([format!("{more} less busy")], Style::Dim);
    }
    grid.lines(layout)
}

/// What the checks come to so far: those that found something, the worst first, and the number of the others.
pub fn checks(summary: &Summary, layout: &Layout, lines_max: usize) -> Vec<Line> {
    let all: Vec<_> = summary.status.checks.iter().map(|check| (check.id.name(), check.status)).collect();
    check_table(&all, layout, lines_max)
}

fn check_table(all: &[(&str, CheckStatus)], layout: &Layout, lines_max: usize) -> Vec<Line> {
    let mut found: Vec<_> = all.iter().copied().filter(|(_, status)| *status > CheckStatus::Ok).collect();
    found.sort_by_key(|(_, status)| std::cmp::Reverse(*status));
    let mut rest = Vec::new();
    let rows_max = lines_max.saturating_sub(2);
    if found.len() > rows_max {
        rest.push(format!("{} more", found.len() - rows_max));
        found.truncate(rows_max);
    }
    for (status, name) in [(CheckStatus::Ok, "ok"), (CheckStatus::Skipped, "skipped")] {
        let count = all.iter().filter(|(_, found)| *found == status).count();
        rest.extend((count > 0).then(|| format!("{count} {name}")));
    }
    let mut grid = Grid::new(vec![Column::of_words("check", NAME_WIDTH), Column::of_words("so far", 13)]);
    for (id, status) in found {
        let (word, style) = match status {
            CheckStatus::Invalid => ("INVALID", Style::Bad),
            _ => ("CAUTION", Style::Doubt),
        };
        grid.push_texts([id.to_owned(), word.to_owned()], style);
    }
    grid.push_texts([rest.join(", ")], Style::Plain);
    grid.lines(layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_stats::interval::WorkerTime;
    use brunt_stats::recorder::{Layout as Recorded, RecorderSet};

    const MS: u64 = 1_000_000;
    const NARROW: Layout = Layout { unit: None, columns: Some(38), is_coloured: false, is_ascii: false };

    fn check(found: &[Line], expected: &str) {
        let found: Vec<String> = found.iter().map(|line| crate::layout::painted(line, false)).collect();
        assert_eq!(found.join("\n"), expected.trim_matches('\n'), "{}", found.join("\n"));
        assert!(found.iter().all(|line| line.chars().count() <= 38));
    }

    #[test]
    fn a_silent_server_and_one_that_was_down_come_first() {
        let row = |index: usize, done_per_s, down_ns, cpu_ns| ServerRow {
            name: format!("cache-{index}.example.org:11211"),
            done_per_s,
            down_ns,
            cpu_ns,
        };
        let rows = || {
            vec![
                row(0, 20_012.0, 0, Some(8_100.0)),
                row(1, 19_980.0, 410 * MS, Some(11_900.0)),
                row(2, 0.0, 0, None),
                row(3, 20_018.0, 0, Some(8_240.0)),
            ]
        };
        check(
            &server_table(rows(), &NARROW, 5),
            "
server            done/s down/s cpu_us
cache-0.example~   20012      -   8.10
cache-1.example~   19980  0.410   11.9
cache-2.example~       0      -      -
cache-3.example~   20018      -   8.24
",
        );
        check(
            &server_table(rows(), &NARROW, 4),
            "
server            done/s down/s cpu_us
cache-2.example~       0      -      -
cache-1.example~   19980  0.410   11.9
rest-2             40030      -      -
",
        );
    }

    #[test]
    fn the_busiest_worker_comes_first() {
        let mut set = RecorderSet::new(&Recorded::default());
        let mut time = |busy_ms: u64, delay_ms: Option<u64>| {
            let mut interval = set.take_interval(0, 0, 1_000 * MS);
            let run_delay_ns = delay_ms.map(|ms| ms * MS);
            interval.worker_time = Some(WorkerTime { busy_ns: busy_ms * MS, run_delay_ns });
            ClientTime::of(&interval)
        };
        let mut times = vec![time(300, Some(0)), time(250, Some(100)), time(978, None)];
        times.push(ClientTime::default());
        check(
            &workers(&times, &NARROW, 4),
            "
worker             busy% delay%
2                   97.8      -
1                   25.0   10.0
0                   30.0    0.0
",
        );
        check(
            &workers(&times, &NARROW, 3),
            "
worker             busy% delay%
2                   97.8      -
2 less busy
",
        );
    }

    #[test]
    fn checks_that_found_something_come_first() {
        use CheckStatus::{Caution, Invalid, Ok, Skipped};
        let all = [("BROKEN", Ok), ("DATA", Caution), ("LOAD", Invalid), ("REPEAT", Skipped), ("CLIENT", Ok)];
        check(
            &check_table(&all, &NARROW, 4),
            "
check             so far
LOAD              INVALID
DATA              CAUTION
2 ok, 1 skipped
",
        );
        check(
            &check_table(&all, &NARROW, 3),
            "
check                    so far
LOAD                     INVALID
1 more, 2 ok, 1 skipped
",
        );
    }
}
