//! What each check is about, for a user who reads its name in a report: `brunt help LAG`.
//!
//! Thresholds are those of the checks' own files and the table of docs/measurement.md, cell by cell; a test holds the two together.

use super::OF_THE_WHOLE_RUN;

/// A check, explained.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// Its name in reports.
    pub id: &'static str,
    /// What it compares.
    pub measures: &'static str,
    /// From where on it calls for care; empty: never.
    pub caution: &'static str,
    /// From where on it convicts, by itself or with `--strict`; empty: never.
    pub not_trusted: &'static str,
    /// What it means for the numbers when it finds something.
    pub means: &'static str,
    /// What helps.
    pub helps: &'static str,
}

impl Explanation {
    /// The explanation of the check of this name, in capitals or not.
    pub fn of(id: &str) -> Option<&'static Self> {
        EXPLANATIONS.iter().find(|explanation| explanation.id.eq_ignore_ascii_case(id))
    }

    /// Does it convict a run without `--strict`?
    pub fn convicts(&self) -> bool {
        OF_THE_WHOLE_RUN.contains(&self.id)
    }
}

const fn explanation(
    id: &'static str,
    measures: &'static str,
    thresholds: [&'static str; 2],
    means: &'static str,
    helps: &'static str,
) -> Explanation {
    let [caution, not_trusted] = thresholds;
    Explanation { id, measures, caution, not_trusted, means, helps }
}

/// Every check, in the order of [`crate::check::CHECKS`].
#[rustfmt::skip]
pub static EXPLANATIONS: &[Explanation] = &[
    explanation(
        "SAMPLES",
        "requests that completed in the measured window, or were sent without asking for a reply",
        ["", "< 1000"],
        "Too few requests for any percentile.",
        "a longer --time, a higher --rate, or more --connections",
    ),
    explanation(
        "SHORT",
        "requests that were scheduled, against --requests",
        ["", "fewer"],
        "The run ended before it had issued the requests that were asked for, for example because --connections-total was used up.",
        "a larger --connections-total, or fewer --requests",
    ),
    explanation(
        "RATE",
        "open loop: requests that were due and never sent, as a part of those scheduled",
        ["> 0.1 %", "> 1 %"],
        "The server saw a lower rate than --rate. The requests that are missing would have waited longest, so the percentiles are too good.",
        "a lower --rate, more --connections or --depth; where a server was down, a server that stays up",
    ),
    explanation(
        "SAT",
        "open loop: requests answered in the last half of the window, against rate x time",
        ["> 1 %", "> 5 %"],
        "The server did not keep up. The backlog grows as long as the run lasts, and the percentiles with it: they hold for a run of this length alone.",
        "a lower --rate; brunt search finds the highest one that the server keeps up with",
    ),
    explanation(
        "LAG",
        "how much of each printed percentile up to p99.9 may be the client's own lateness: the time from when a request was due, or a reply arrived, to when the client handled it. client<~ rests on kernel timestamps of a sample, wake-ups and the client's kernel included, and is an estimate; client<= on clock readings and the cost of a wake-up; client<=? lacks the timestamps that were to be taken: clock readings and one wake-up, incomplete",
        ["> 10 us and > 20 %; strictly > 5 %", "> 50 % of the median of all requests; strictly > 20 % of any, in closed loop CAUTION"],
        "Part of the latency is brunt's and not the server's. The true percentile lies between the printed one less the client error and the printed one, as far as the client error is known.",
        "more --threads where workers are busy (CPU says so), processors that nothing else uses (--cpus, another host) where they are not, or less load",
    ),
    explanation(
        "STALL",
        "turns of a worker's loop that took longer than 10 ms inside the window; the longest",
        ["any", ""],
        "A worker stood still: it was stopped, had no processor, or a system call did not return. A closed loop shows this as a low rate and a few long response times, as if the server had been slow.",
        "an idle host, dedicated processors (--cpus), no limit on processor time (cgroup quota)",
    ),
    explanation(
        "CPU",
        "busy time and waiting for a processor, as a part of the window, of the worst worker",
        ["> 80 %", "> 95 % where an open loop's LAG is at least CAUTION, > 80 % where it is NOT TRUSTED"],
        "A worker has no time left, so that requests may wait in the client. LAG says what that did to the percentiles.",
        "more --threads, fewer requests each, or processors that nothing else uses",
    ),
    explanation(
        "STEAL",
        "time that the hypervisor took from the workers' processors; time that the worst worker waited for a CPU",
        ["> 0.5 %; > 0.5 %", "> 2 %; > 2 %, where an open loop's LAG is NOT TRUSTED"],
        "Other virtual machines or programs ran on the processors of this host. Client, kernel and a server here are slowed down alike.",
        "a dedicated host, other processors (--cpus), or a quieter time",
    ),
    explanation(
        "CLOCK",
        "the clock source; CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW; steps of the wall clock",
        ["slow or coarse to read; > 500 ppm; ≥ 1 ms", "CLOCK_MONOTONIC goes backwards"],
        "Times are read slowly, or the clock was being corrected during the run.",
        "the clock source tsc (or kvm-clock), and a run after NTP has settled",
    ),
    explanation(
        "COLO",
        "samples, one every 20 ms, at which a server on this host had last sent from the worker's own processor",
        ["> 75 %", ""],
        "Client and server take turns on one processor. What is measured includes their waiting for each other.",
        "different processors: --cpus for brunt, taskset for the server, or another host for one of the two",
    ),
    explanation(
        "NET",
        "TCP segments sent again and attempts to connect that were turned away, as a part of the requests sent",
        ["> 0", "> 0.1 %"],
        "Segments were lost on the way or dropped at a full queue. A retransmission costs 200 ms and more, which the highest percentiles show.",
        "nstat -az on both hosts (drops, overflows); a longer net.core.somaxconn for connections that begin at once",
    ),
    explanation(
        "CI-THIN",
        "batches of the window that do not reach the p99 of all requests",
        ["> 1/3, and half the interval > 20 % of the p99, or it has no upper end", ""],
        "A percentile rests on a few bursts. Another run may show another value.",
        "a longer --time, or --until p99=5%",
    ),
    explanation(
        "UNTIL",
        "precisions that --until asked for and that were not reached within --max-time",
        ["> 0", ""],
        "The confidence interval is wider than was asked for.",
        "a larger --max-time, a higher rate, or a wider precision",
    ),
    explanation(
        "WARM",
        "the beginning of the window, against the rest of it",
        ["it differs", ""],
        "The window began before the server was warm: latencies of the beginning are another kind than those of the rest. Nothing is left out of the numbers.",
        "a longer --warmup, or --warmup auto",
    ),
    explanation(
        "DRIFT",
        "the trend over the window of rate, hit ratio, p50 and p99 (Mann-Kendall)",
        ["|Z| > 3.023 and > 5 %", ""],
        "The number rises or falls all the time. A longer run would give another value.",
        "what changes on the server (a cache that fills, memory that grows, a neighbour), or a longer --warmup",
    ),
    explanation(
        "SHIFT",
        "a change of level within the window of rate, hit ratio, p50 and p99 (Pettitt)",
        ["p < 0.0025 and > 10 %", ""],
        "The window consists of two parts with different levels; the number printed is true of neither.",
        "what happened at that time (the report and --csv show it), and a run of each part",
    ),
    explanation(
        "HEADROOM",
        "the busiest rate of the run, against the headroom of this client that brunt calibrate found",
        ["> 70 %", ""],
        "The client is close to the rate at which its own part of the p99 reaches 10 us.",
        "more --threads and brunt calibrate with as many, or several hosts (--agent)",
    ),
    explanation(
        "ERR",
        "requests that failed (errors, time-outs, lost with their connection, given up), as a part of all",
        ["> 0", "> 1 %"],
        "Percentiles are of completed requests; those that failed are missing. The row `including failures` counts them as slow.",
        "the first error and the outages in the report, and the server's log",
    ),
    explanation(
        "FAULT",
        "connections that were lost or refused from warm-up to drain, and bytes that are no reply",
        ["> 0", "bytes that are no reply > 1 %, whether strict or not"],
        "A connection ended, or something that is no such server answered. Requests waited meanwhile.",
        "the rows of connection faults, the server's limit of connections and its log; the right --protocol",
    ),
    explanation(
        "CONSERVE",
        "whether every request that was due is counted exactly once, and every connection",
        ["", "do not balance"],
        "The counts of the run contradict each other: a defect of brunt.",
        "a report of the defect with the plan (--print-plan) and the seed",
    ),
    explanation(
        "LITTLE",
        "requests in the system by the clock of the loop, against the sum of their own times (Little's law)",
        ["> 0.5 %; > 1 %", "> 5 %"],
        "Latencies and rate do not go together: a defect of brunt, or a clock that is wrong.",
        "CLOCK first; else a report of the defect with the plan and the seed",
    ),
    explanation(
        "VERIFY",
        "values read that are not what was written; with --verify also keys that are missing though they were stored",
        ["missing > 0; --verify, and no value was checked", "> 0"],
        "The server returned wrong data, or another client writes the same keys.",
        "a --prefix of your own, enough memory for the server, and its log",
    ),
    explanation(
        "PEER",
        "certificates of servers that were not verified",
        ["--tls-insecure", ""],
        "It is not known who answered.",
        "--tls-ca FILE in place of --tls-insecure",
    ),
    explanation(
        "SERVER",
        "the servers' own counts of requests, against brunt's",
        ["one differs, or the counters began anew because the server was restarted or they were reset, or two names are one server", ""],
        "Another client uses the server, or it was restarted, so that its load was not this run's alone.",
        "a server that has no other clients meanwhile",
    ),
    explanation(
        "CACHE",
        "keys that were stored and gone after preload; evictions; items that rise over the window while keys are missed",
        ["any evictions; rising", "any key gone"],
        "The cache is too small for the data set, or still filling: hit ratio and latency will go on changing.",
        "more memory for the server, fewer --keys or smaller values, or a warm-up until the cache is full",
    ),
    explanation(
        "REPEAT",
        "the p50, p99 and p99.9 of repeated runs, against their own confidence intervals",
        ["I² > 50 % and (largest − smallest) / median > 5 %", ""],
        "Runs of one plan differ by more than chance: something differs from run to run.",
        "the range of all runs in place of one number; a restart between them (--between), a quieter host",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CHECKS;

    const DOCUMENT: &str = include_str!("../../../../docs/measurement.md");

    #[test]
    fn every_check_is_explained() {
        let ids: Vec<&str> = EXPLANATIONS.iter().map(|explanation| explanation.id).collect();
        assert_eq!(ids, CHECKS);
        for explanation in EXPLANATIONS {
            let Explanation { id, measures, means, helps, .. } = explanation;
            assert!([measures, means, helps].iter().all(|text| text.len() > 10), "{id}");
            assert_eq!(Explanation::of(&id.to_lowercase()).unwrap().id, *id);
        }
        assert!(Explanation::of("EMPTY").is_none());
    }

    /// Cells of the rows of a check; a row without a name belongs to the one above.
    fn documented(id: &str) -> Vec<Vec<String>> {
        let cells = |line: &str| -> Vec<String> {
            let line = line.replace("\\|", "\u{1}");
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
        };
        let verdicts = DOCUMENT.lines().skip_while(|line| !line.starts_with("| check | compares |"));
        let mut lines = verdicts.skip_while(|line| !line.starts_with(&format!("| {id} |")));
        let first = lines.next().map(cells).unwrap_or_default();
        let more = lines.take_while(|line| line.starts_with("| |")).map(cells);
        std::iter::once(first).chain(more).collect()
    }

    /// The document has the thresholds as they are here.
    #[test]
    fn the_document_agrees() {
        // Its row is in a table of its own, with both thresholds in one cell.
        for explanation in EXPLANATIONS.iter().filter(|explanation| explanation.id != "REPEAT") {
            let rows = documented(explanation.id);
            let column = |number: usize| {
                let cells = rows.iter().map(|row| row.get(number).cloned().unwrap_or_default());
                cells.collect::<Vec<_>>().join("; ").replace('`', "")
            };
            let said = [explanation.caution, explanation.not_trusted].map(str::to_owned);
            assert_eq!([column(2), column(3)], said, "{}", explanation.id);
        }
        let repeat = documented("REPEAT").concat().join(" ");
        assert!(repeat.contains(Explanation::of("REPEAT").unwrap().caution), "{repeat}");
    }
}
