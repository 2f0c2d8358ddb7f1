//! What is counted in a window, and the response times of what was answered.
//!
//! Not its line in the log. A request belongs to the window in which it ends; what is open or in flight is counted from the start of the
//! run. Invariant: what was sent was answered, failed, or is in flight.

use brunt_plan::outcome::{OutcomeClass, ReplyKind};
use brunt_plan::plan::MeterKind;
use brunt_plan::quantile::Quantile;
use brunt_stats::connection::FaultKind;
use brunt_stats::histogram::Histogram;
use brunt_stats::store::IntervalStore;

/// A window, or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// What happened in it.
    pub counts: Counts,
    /// Response times of what was answered, in nanoseconds from when it was due.
    pub response: Histogram,
    /// Response times of hits, where they are metered.
    pub hit: Histogram,
    /// Those of replies that say that there is no such key, where they are metered.
    pub miss: Histogram,
    /// How long attempts to connect took that succeeded, in nanoseconds.
    pub connect: Histogram,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections.
    pub connections: Connections,
    /// Requests.
    pub requests: Requests,
    /// Retrievals that found something.
    pub hits: u64,
    /// Retrievals that did not.
    pub misses: u64,
}

/// What happened to connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Attempts.
    pub begun: u64,
    /// Attempts that succeeded.
    pub established: u64,
    /// Attempts that failed.
    pub errors: u64,
    /// Attempts that took too long.
    pub timeouts: u64,
    /// Sockets that were closed.
    pub closed: u64,
    /// Connections that went away.
    pub lost: u64,
    /// Connections that are open at the end of the window.
    pub open: u64,
}

/// What happened to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// They were due.
    pub scheduled: u64,
    /// They were written.
    pub sent: u64,
    /// They have a reply, of whatever kind.
    pub replied: u64,
    /// Their reply is no error.
    pub ok: u64,
    /// Their reply is an error, or their connection was lost.
    pub errors: u64,
    /// Their reply did not come in time.
    pub timeouts: u64,
    /// Their reply is still to come at its end.
    pub in_flight: u64,
}

impl Window {
    /// Adds what was recorded in a part of it. `retrieves` says of each workload whether its replies count as hits and misses.
    pub fn add(&mut self, seconds: f64, recorded: &IntervalStore, retrieves: &[bool]) {
        self.seconds += seconds;
        self.counts.add(recorded, retrieves);
        recorded.rows().for_each(|(.., row)| self.response.merge(&row.latencies.response));
        for meter in recorded.meters() {
            let times = match meter.kind {
                MeterKind::HitTime => &mut self.hit,
                MeterKind::MissTime => &mut self.miss,
                MeterKind::ConnectTime => &mut self.connect,
                _ => continue,
            };
            times.merge_sparse(&meter.histogram);
        }
    }

    /// The beginning of the next window: nothing has happened in it, and what is open or in flight still is.
    pub fn next(&self) -> Self {
        let Counts { connections, requests, .. } = self.counts;
        let counts = Counts {
            connections: Connections { open: connections.open, ..Connections::default() },
            requests: Requests { in_flight: requests.in_flight, ..Requests::default() },
            ..Counts::default()
        };
        Self { counts, ..Self::default() }
    }

    /// Answers per second.
    pub fn rate(&self) -> f64 {
        let answered = self.counts.requests.ok + self.counts.requests.errors;
        if self.seconds > 0.0 { answered as f64 / self.seconds } else { 0.0 }
    }

    /// Successful requests in per cent of those that have ended.
    pub fn success(&self) -> f64 {
        let Requests { ok, errors, timeouts, .. } = self.counts.requests;
        percent(ok, ok + errors + timeouts)
    }

    /// Hits in per cent of hits and misses.
    pub fn hit_rate(&self) -> f64 {
        percent(self.counts.hits, self.counts.hits + self.counts.misses)
    }

    /// The least, five percentiles and the most; 0 where nothing was answered.
    pub fn percentiles_ns(&self) -> [u64; 7] {
        let quantiles = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999, Quantile::P9999];
        let [p50, p90, p99, p999, p9999] =
            quantiles.map(|quantile| self.response.quantile(quantile).unwrap_or(0));
        let (min, max) = (self.response.min().unwrap_or(0), self.response.max().unwrap_or(0));
        [min, p50, p90, p99, p999, p9999, max]
    }

    /// The mean, truncated to whole nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.response.moments().mean().unwrap_or(0.0) as u64
    }

    /// The standard deviation, truncated to whole nanoseconds.
    pub fn deviation_ns(&self) -> u64 {
        self.response.moments().stddev().unwrap_or(0.0) as u64
    }
}

impl Counts {
    /// Adds what was recorded, as [`Window::add`] does.
    pub fn add(&mut self, recorded: &IntervalStore, retrieves: &[bool]) {
        let request_timeouts = self.add_requests(recorded, retrieves);
        self.add_connections(recorded, request_timeouts);
    }

    fn add_requests(&mut self, recorded: &IntervalStore, retrieves: &[bool]) -> u64 {
        let mut timeouts = 0;
        for entry in recorded.books().entries() {
            let book = &entry.counts.requests;
            let failed = [OutcomeClass::Error, OutcomeClass::Mismatch, OutcomeClass::Lost]
                .map(|class| book.outcome(class));
            let timed_out = book.outcome(OutcomeClass::Timeout);
            let requests = &mut self.requests;
            requests.scheduled += book.scheduled;
            requests.sent += book.sent;
            requests.replied += book.ended() - book.reply(ReplyKind::None);
            requests.ok += book.completed() + book.outcome(OutcomeClass::Unacknowledged);
            requests.errors += failed.iter().sum::<u64>();
            requests.timeouts += timed_out;
            // What ends in it may have been sent before.
            requests.in_flight = (requests.in_flight + book.sent).saturating_sub(book.ended());
            if retrieves.get(usize::from(entry.class)) == Some(&true) {
                self.hits += book.reply(ReplyKind::Value);
                self.misses += book.reply(ReplyKind::NotFound);
            }
            timeouts += timed_out;
        }
        timeouts
    }

    fn add_connections(&mut self, recorded: &IntervalStore, request_timeouts: u64) {
        let connections = &mut self.connections;
        let (mut failed, mut established, mut gone) = (0, 0, 0);
        for counts in recorded.connections() {
            connections.begun += counts.begun;
            connections.lost += counts.lost;
            established += counts.established;
            failed += counts.failed;
            gone += counts.lost + counts.retired;
        }
        // A request that times out ends its connection, and its fault is no failed attempt to connect.
        let late =
            recorded.faults().count_of(FaultKind::TimedOut).saturating_sub(request_timeouts).min(failed);
        connections.established += established;
        connections.timeouts += late;
        connections.errors += failed - late;
        connections.closed += failed + gone;
        connections.open = (connections.open + established).saturating_sub(gone);
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
