//! memaslap's text, to the column: the banner, periodic tables, the statistics at the end, counters and the last line.
//!
//! The layout is memaslap's, the numbers are brunt's. Invariant: fields that scripts extract keep their place; anything else is a
//! remark for standard error.

use super::command_line::CommandLine;
use super::tally::{Tallies, Tally};
use brunt_plan::quantile::Quantile;
use std::fmt::Write as _;

/// Clears a terminal and goes to its upper left corner.
const CLEAR: &str = "\x1b[1;1H\x1b[2J";
const MEBIBYTE: f64 = 1_048_576.0;
/// Powers of two per row of `Log2 Dist`.
const COLUMNS: usize = 4;
const PERCENTILES: [Quantile; 4] = [Quantile::P50, Quantile::P95, Quantile::P99, Quantile::P999];

/// The lines before the first connection. `shares` are the fractions of sets and of gets, in thousandths.
pub fn banner(line: &CommandLine, shares: [u32; 2]) -> String {
    let length = match line.execute_number {
        Some(operations) => format!("execute number: {operations}"),
        None => format!("run time: {}s", line.time_s),
    };
    let [sets, gets] = shares.map(|thousandths| f64::from(thousandths) / 1e3);
    format!(
        "servers: {}\nthreads count: {}\nconcurrency: {}\n{length}\nwindows size: {}k\n\
         set proportion: set_prop={sets:.2}\nget proportion: get_prop={gets:.2}\n",
        line.servers,
        line.threads,
        line.concurrency,
        line.win_size / 1024
    )
}

/// One of the two rows of a table: a part of the run and the operations in it.
pub struct Stretch<'a> {
    /// Length as it is printed.
    pub whole_seconds: u64,
    /// Exact length, which rates are computed from.
    pub seconds: f64,
    /// Operations in it.
    pub tallies: &'a Tallies,
}

/// The tables of a period: per kind of operation a row for the period and one for the run so far. `object_bytes` is the mean size of an object.
pub fn periodic(period: &Stretch<'_>, global: &Stretch<'_>, object_bytes: u64, is_terminal: bool) -> String {
    let mut text = if is_terminal { format!("{CLEAR}\n") } else { "\n".to_owned() };
    for ((title, latest), (_, all)) in period.tallies.titled().iter().zip(global.tallies.titled()) {
        if all.events() == 0 {
            continue;
        }
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{title} Statistics");
        let _ = writeln!(
            text,
            "{:<8} {:<8} {:<12} {:<12} {:<10} {:<10} {:<8} {:<10} {:<10} {:<10} {:<10}",
            "Type",
            "Time(s)",
            "Ops",
            "TPS(ops/s)",
            "Net(M/s)",
            "Get_miss",
            "Min(us)",
            "Max(us)",
            "Avg(us)",
            "Std_dev",
            "Geo_dist"
        );
        text.push_str(&row("Period", period, latest, object_bytes));
        text.push_str(&row("Global", global, &all, object_bytes));
        text.push('\n');
    }
    text
}

fn row(name: &str, stretch: &Stretch<'_>, tally: &Tally, object_bytes: u64) -> String {
    let per_second = |count: f64| if stretch.seconds > 0.0 { count / stretch.seconds } else { 0.0 };
    format!(
        "{name:<8} {:<8} {:<12} {:<12.0} {:<10.1} {:<10} {:<8} {:<10} {:<10} {:<10.2} {:.2}\n",
        stretch.whole_seconds,
        tally.events(),
        per_second(tally.events() as f64),
        per_second((tally.objects * object_bytes) as f64 / MEBIBYTE),
        tally.misses,
        tally.min_us(),
        tally.max_us(),
        tally.mean_us() as u64,
        tally.deviation_us(),
        tally.geometric_us(),
    )
}

/// The statistics of the whole run, with the distribution of response times by powers of two.
pub fn statistics(tallies: &Tallies) -> String {
    let mut text = String::new();
    for (title, tally) in tallies.titled().iter().filter(|(_, tally)| tally.events() > 0) {
        let _ = writeln!(text, "{title} Statistics ({} events)", tally.events());
        let (min, max, mean) = (tally.min_us(), tally.max_us(), tally.mean_us() as u64);
        let _ = writeln!(text, "   Min:  {min:>8}\n   Max:  {max:>8}\n   Avg:  {mean:>8}");
        let _ = writeln!(text, "   Geo:  {:>8.2}", tally.geometric_us());
        if tally.events() > 1 {
            let _ = writeln!(text, "   Std:  {:>8.2}", tally.deviation_us());
        }
        let _ = writeln!(text, "   Log2 Dist:");
        let powers = tally.powers();
        for (first, counts) in rows(&powers) {
            let _ = write!(text, "      {first:>2}:");
            for count in counts {
                let _ = write!(text, "   {count:>6}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// The rows of `Log2 Dist`, from the first with a count that is not 0, each with the number of its first column. The last row may be
/// shorter and is always shown; if it alone has counts, all rows are shown, as memaslap does.
fn rows(powers: &[u64]) -> impl Iterator<Item = (usize, &[u64])> {
    let last = powers.len().saturating_sub(1);
    let mut whole = powers.chunks(COLUMNS).enumerate().filter(|(row, _)| (row + 1) * COLUMNS <= last);
    let begin = whole.find(|(_, counts)| counts.iter().any(|count| *count > 0)).map_or(0, |(row, _)| row);
    powers.chunks(COLUMNS).enumerate().skip(begin).map(|(row, counts)| (row * COLUMNS, counts))
}

/// Percentiles, which memaslap does not have.
pub fn percentiles(tallies: &Tallies) -> String {
    let mut text = format!(
        "{:<16}{:>12}{:>12}{:>12}{:>12}{:>12}\n",
        "Percentiles(us)", "P50", "P95", "P99", "P999", "Max"
    );
    for (title, tally) in tallies.titled().iter().filter(|(_, tally)| tally.events() > 0) {
        let _ = write!(text, "{title:<16}");
        for quantile in PERCENTILES {
            let _ = write!(text, "{:>12.1}", tally.percentile_us(quantile).unwrap_or(0.0));
        }
        let _ = writeln!(text, "{:>12}", tally.max_us());
    }
    text.push('\n');
    text
}

/// Counters of a run, printed at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are the names of the lines, and of the last line")]
pub struct Counters {
    pub cmd_get: u64,
    pub cmd_set: u64,
    pub get_misses: u64,
    /// `verify_misses` and `verify_failed`, where values are compared.
    pub verified: Option<[u64; 2]>,
    /// `expired_get` and `unexpired_unget`, where objects expire.
    pub expired: Option<[u64; 2]>,
    pub written_bytes: u64,
    pub read_bytes: u64,
    pub object_bytes: u64,
    /// `packet_disorder`, `packet_drop` and `udp_timeout`, where there are datagrams.
    pub datagrams: Option<[u64; 3]>,
    /// Length of the measured window.
    pub seconds: f64,
    /// Operations in it.
    pub ops: u64,
    /// Bytes that crossed the wire in it, both ways.
    pub window_bytes: u64,
}

impl Counters {
    /// One line per counter, then the line with run time and rates.
    pub fn text(&self) -> String {
        let mut lines =
            vec![("cmd_get", self.cmd_get), ("cmd_set", self.cmd_set), ("get_misses", self.get_misses)];
        if let Some([misses, failed]) = self.verified {
            lines.extend([("verify_misses", misses), ("verify_failed", failed)]);
        }
        if let Some([expired_get, unexpired_unget]) = self.expired {
            lines.extend([("expired_get", expired_get), ("unexpired_unget", unexpired_unget)]);
        }
        lines.extend([
            ("written_bytes", self.written_bytes),
            ("read_bytes", self.read_bytes),
            ("object_bytes", self.object_bytes),
        ]);
        if let Some([disorder, drop, timeout]) = self.datagrams {
            lines.extend([("packet_disorder", disorder), ("packet_drop", drop), ("udp_timeout", timeout)]);
        }
        let per_second = |number: f64| if self.seconds > 0.0 { number / self.seconds } else { 0.0 };
        let mut text = String::new();
        for (name, count) in lines {
            let _ = writeln!(text, "{name}: {count}");
        }
        let (tps, net) = (per_second(self.ops as f64), per_second(self.window_bytes as f64 / MEBIBYTE));
        let _ = writeln!(
            text,
            "\nRun time: {:.1}s Ops: {} TPS: {tps:.0} Net_rate: {net:.1}M/s",
            self.seconds, self.ops
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::tally;
    use super::*;

    #[test]
    fn banner_has_memaslaps_layout() {
        let line = CommandLine {
            servers: "127.0.0.1:11211,b".to_owned(),
            threads: 2,
            time_s: 120,
            win_size: 40_960,
            ..CommandLine::default()
        };
        assert_eq!(
            banner(&line, [100, 900]),
            "servers: 127.0.0.1:11211,b\nthreads count: 2\nconcurrency: 16\nrun time: 120s\nwindows size: 40k\n\
             set proportion: set_prop=0.10\nget proportion: get_prop=0.90\n"
        );
        let counted = CommandLine { execute_number: Some(250_000_000), ..line };
        assert!(banner(&counted, [100, 900]).contains("\nexecute number: 250000000\nwindows"));
    }

    const HEAD: &str = "Type     Time(s)  Ops          TPS(ops/s)   Net(M/s)   Get_miss   Min(us)  Max(us)    Avg(us)    Std_dev    Geo_dist  \n";

    #[test]
    fn tables_have_memaslaps_columns() {
        let latest = Tallies { get: tally(&[100_000; 1000]), set: Tally::default() };
        let mut all = Tallies { set: tally(&[12_000, 48_000]), ..latest.clone() };
        all.get.misses = 3;
        let period = Stretch { whole_seconds: 1, seconds: 1.0, tallies: &latest };
        let global = Stretch { whole_seconds: 2, seconds: 2.0, tallies: &all };
        let text = periodic(&period, &global, 1_048_576, true);
        let expected = format!(
            "\x1b[1;1H\x1b[2J\nGet Statistics\n{HEAD}\
             Period   1        1000         1000         1000.0     0          100      100        100        0.00       100.00\n\
             Global   2        1000         500          500.0      3          100      100        100        0.00       100.00\n\n\
             Set Statistics\n{HEAD}\
             Period   1        0            0            0.0        0          0        0          0          0.00       0.00\n\
             Global   2        2            1            1.0        0          12       48         30         25.46      24.00\n\n\
             Total Statistics\n{HEAD}\
             Period   1        1000         1000         1000.0     0          100      100        100        0.00       100.00\n\
             Global   2        1002         501          501.0      3          12       100        99         3.23       99.70\n\n"
        );
        assert_eq!(text, expected);
        assert_eq!(periodic(&period, &global, 1_048_576, false), expected[CLEAR.len()..]);
        // Kinds without operations have no table.
        assert!(!periodic(&period, &period, 1, false).contains("Set"));
    }

    #[test]
    fn statistics_have_memaslaps_layout() {
        let tallies =
            Tallies { get: tally(&[14_500, 17_000, 17_100, 70_000, 3_117_000]), set: tally(&[9_000]) };
        let text = statistics(&tallies);
        let expected = "\
Get Statistics (5 events)
   Min:        14
   Max:      3117
   Avg:       647
   Geo:     62.04
   Std:   1380.90
   Log2 Dist:
       4:        1        2        0        1
       8:        0        0        0        0
      12:        1

Set Statistics (1 events)
   Min:         9
   Max:         9
   Avg:         9
   Geo:      9.00
   Log2 Dist:
       0:        0        0        0        0
       4:        1

Total Statistics (6 events)
";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(statistics(&Tallies::default()), "");
    }

    #[test]
    fn powers_are_printed_four_a_row() {
        let shown = |powers: &[u64]| {
            let rows = rows(powers).map(|(first, counts)| format!("{first}{counts:?}"));
            rows.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&[1]), "0[1]");
        assert_eq!(shown(&[0, 0, 0, 0, 1]), "0[0, 0, 0, 0] 4[1]");
        assert_eq!(shown(&[0, 0, 0, 0, 1, 0, 0, 0, 2]), "4[1, 0, 0, 0] 8[2]");
        assert_eq!(shown(&[0, 0, 0, 0, 0, 0, 0, 0, 2]), "0[0, 0, 0, 0] 4[0, 0, 0, 0] 8[2]");
    }

    #[test]
    fn percentiles_have_memaslaps_layout() {
        let times_ns: Vec<u64> = (1..=1000).map(|us| us * 1_000).collect();
        let text = percentiles(&Tallies { get: tally(&times_ns), set: Tally::default() });
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["Percentiles(us)", "P50", "P95", "P99", "P999", "Max"]);
        assert_eq!((rows[1][0], rows[2][0], rows.len()), ("Get", "Total", 4));
        for (found, expected) in rows[1][1..].iter().zip([500.0, 950.0, 990.0, 999.0, 1000.0]) {
            let found: f64 = found.parse().unwrap();
            assert!((expected..=expected * 1.001).contains(&found), "{found}, not {expected}");
        }
    }

    #[test]
    fn counters_have_memaslaps_layout() {
        let usual = Counters {
            cmd_get: 45_373,
            cmd_set: 5_042,
            get_misses: 7,
            written_bytes: 8_747_380,
            read_bytes: 50_402_146,
            object_bytes: 5_485_696,
            seconds: 2.0004,
            ops: 50_415,
            window_bytes: 59_149_526,
            ..Counters::default()
        };
        let begin = "cmd_get: 45373\ncmd_set: 5042\nget_misses: 7\n";
        let bytes = "written_bytes: 8747380\nread_bytes: 50402146\nobject_bytes: 5485696\n";
        let end = "\nRun time: 2.0s Ops: 50415 TPS: 25202 Net_rate: 28.2M/s\n";
        assert_eq!(usual.text(), format!("{begin}{bytes}{end}"));
        let all =
            Counters { verified: Some([1, 2]), expired: Some([3, 4]), datagrams: Some([5, 6, 7]), ..usual };
        let verified = "verify_misses: 1\nverify_failed: 2\nexpired_get: 3\nunexpired_unget: 4\n";
        let datagrams = "packet_disorder: 5\npacket_drop: 6\nudp_timeout: 7\n";
        assert_eq!(all.text(), format!("{begin}{verified}{bytes}{datagrams}{end}"));
        assert!(Counters::default().text().ends_with("\nRun time: 0.0s Ops: 0 TPS: 0 Net_rate: 0.0M/s\n"));
    }
}
