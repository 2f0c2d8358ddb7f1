//! A run of `brunt run -o json:-` taken apart: exit code, result, text.

use crate::experiments::is_full;
use crate::server::{Ended, brunt, undisturbed};
use serde_json::Value;

/// How an experiment at full length fails that the host has spoilt.
pub(crate) const HOST_DISTURBED: &str =
    "this host disturbed the experiment, which shows nothing: make it again on an idle machine";
/// Every kind of check that a run may be allowed to fail.
pub(crate) const ALL: &str = "BROKEN,LOAD,CLIENT,DATA";
/// A worker that loses less than this share of its time to others is left in peace, and so is a host.
pub(crate) const QUIET: f64 = 0.02;

/// One run. A test that fails shows what it said.
pub(crate) struct Measured {
    pub(crate) exit: i32,
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Drop for Measured {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("exit code {}\n{}", self.exit, self.text);
        }
    }
}

impl Measured {
    /// Runs with these flags against a server and takes in the result.
    pub(crate) fn run(server: &str, flags: &str) -> Self {
        Self::of(brunt(&format!("run --server {server} -o json:- {flags}")))
    }

    /// The same, ahead of whatever else wants a processor.
    pub(crate) fn run_undisturbed(server: &str, flags: &str) -> Self {
        Self::of(undisturbed(&format!("run --server {server} -o json:- {flags}")))
    }

    pub(crate) fn of(ended: impl Into<Ended>) -> Self {
        let mut ended = ended.into();
        // A command that failed has nothing to say there.
        let json = if ended.out.is_empty() { Value::Null } else { serde_json::from_str(&ended.out).unwrap() };
        let measured = Self { exit: ended.exit, json, text: std::mem::take(&mut ended.said) };
        // Of a run, and of no campaign.
        if measured.json["counts"].is_object() {
            measured.check_request_counts();
            measured.check_connections();
        }
        measured
    }

    /// The integer at a path such as `counts.requests.sent`.
    pub(crate) fn count(&self, path: &str) -> u64 {
        let value = self.at(path);
        value.as_u64().unwrap_or_else(|| panic!("{path} is {value}"))
    }

    /// The requests that became this.
    pub(crate) fn requests(&self, what: &str) -> u64 {
        self.count(&format!("counts.requests.{what}"))
    }

    /// The connections that became this.
    pub(crate) fn connections(&self, what: &str) -> u64 {
        self.count(&format!("client.connections.{what}"))
    }

    /// The same; 0 where there is none.
    pub(crate) fn count_or_0(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or(0)
    }

    /// The value at a path.
    pub(crate) fn at(&self, path: &str) -> &Value {
        // The dot of `p99.9` parts no keys.
        path.replace(".9", "_9").split('.').fold(&self.json, |value, key| match key.parse::<usize>() {
            Ok(index) => &value[index],
            Err(_) => &value[key.replace("_9", ".9")],
        })
    }

    /// A latency in milliseconds.
    pub(crate) fn ms(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap_or_else(|| panic!("{path} is {}", self.at(path))) / 1e6
    }

    /// One check of the status: how it came out and what it says.
    pub(crate) fn check(&self, id: &str) -> (&str, &str) {
        let checks = self.at("status.checks").as_array().unwrap();
        let check = checks.iter().find(|check| check["id"] == id).unwrap();
        (check["status"].as_str().unwrap(), check["message"].as_str().unwrap())
    }

    /// What to do about what a check found.
    pub(crate) fn fix(&self, id: &str) -> &str {
        let checks = self.at("status.checks").as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap()["fix"].as_str().unwrap()
    }

    /// The fact that holds this; `None` where the run has none.
    pub(crate) fn fact(&self, part: &str) -> Option<&str> {
        let facts = self.at("status.facts").as_array().unwrap();
        facts.iter().map(|fact| fact.as_str().unwrap()).find(|fact| fact.contains(part))
    }

    /// The checks that are invalid.
    pub(crate) fn invalid(&self) -> Vec<&str> {
        let checks = self.at("status.checks").as_array().unwrap();
        let invalid = checks.iter().filter(|check| check["status"] == "invalid");
        invalid.map(|check| check["id"].as_str().unwrap()).collect()
    }

    /// The share of the window for which the first worker was ready to run and did not.
    pub(crate) fn delayed(&self) -> f64 {
        let worker = &self.at("client.workers")[0];
        worker["run_delay_ns"].as_f64().unwrap_or(0.0) / worker["wall_ns"].as_f64().unwrap()
    }

    /// The share of the processors' time that the hypervisor gave to others.
    pub(crate) fn stolen(&self) -> f64 {
        let host = self.at("client.host");
        let window_ns = self.at("window.duration_ns").as_f64().unwrap() * host["cpus"].as_f64().unwrap();
        host["stolen_ns"].as_f64().unwrap_or(0.0) / window_ns
    }

    /// Does the run itself say that this host had no time for it, or not enough? Then it vouches for no times, and a test of
    /// times has nothing to judge. What is asked is its own evidence: numbers that are wrong and vouched for are a failure. At full
    /// length either is.
    pub(crate) fn is_disturbed(&self) -> bool {
        let (status, message) = self.check("CLIENT");
        let is_client = matches!(status, "caution" | "invalid");
        let is_disturbed = is_client || self.delayed() > QUIET || self.stolen() > QUIET;
        assert!(!is_disturbed || !is_full(), "{HOST_DISTURBED}: {message}");
        if is_disturbed {
            eprintln!("NOT JUDGED: the run itself says of this host: {message}\n{}", self.text);
        }
        is_disturbed
    }

    /// Every count of the servers is ours, as far as they told.
    pub(crate) fn check_server_counts(&self) {
        let agreement = self.at("events.server_stats.agreement").as_array().unwrap();
        assert!(!agreement.is_empty());
        assert_eq!(self.check("BROKEN").0, "ok");
        assert_eq!(self.fact("others use the server"), None);
    }

    /// How many faults were counted, of this kind or of any.
    pub(crate) fn faults(&self, kind: Option<&str>) -> u64 {
        let faults = self.at("events.faults").as_array().unwrap().iter();
        let counted = faults.filter(|fault| kind.is_none_or(|kind| fault["kind"] == kind));
        counted.map(|fault| fault["count"].as_u64().unwrap()).sum()
    }

    /// All faults are connections that were lost or could not be had, and each of these is one.
    pub(crate) fn check_faults(&self) {
        let gone = ["lost", "failed"].map(|key| self.connections(key));
        assert_eq!(self.faults(None), gone.iter().sum::<u64>());
    }

    /// Nothing makes the run invalid, unless this host had no time for it, which is no matter of the program's.
    pub(crate) fn check_exit(&self) {
        let invalid = self.invalid();
        // A server that gets no processor does not keep up, either.
        let is_of_host = |id: &str| ["CLIENT", "LOAD"].contains(&id) && self.is_disturbed();
        assert!(invalid.iter().all(|id| is_of_host(id)), "{invalid:?}");
        assert_eq!(self.exit, if invalid.is_empty() { 0 } else { 3 });
    }

    /// Sums an integer over all phases.
    pub(crate) fn over_phases(&self, path: &str) -> u64 {
        let phases = self.json["counts"]["phases"].as_object().unwrap();
        phases
            .values()
            .map(|phase| path.split('.').fold(phase, |value, key| &value[key]).as_u64().unwrap_or(0))
            .sum()
    }

    /// Requests and keys of every phase add up, and the counts of the window.
    fn check_request_counts(&self) {
        for (phase, value) in self.json["counts"]["phases"].as_object().unwrap() {
            let request = |key: &str| value["requests"][key].as_u64().unwrap();
            assert_eq!(request("scheduled"), request("sent") + request("unsent"), "{phase}");
            let ends = ["completed", "error", "timeout", "mismatch", "lost", "unacknowledged", "in_flight"];
            assert_eq!(request("sent"), ends.iter().map(|key| request(key)).sum::<u64>(), "{phase}");
            let keys = |key: &str| value["keys"][key].as_u64().unwrap();
            assert_eq!(keys("requested"), keys("hit") + keys("miss") + keys("failed"), "{phase}");
        }
        for (key, value) in self.at("counts.requests").as_object().unwrap() {
            assert_eq!(value, &self.json["counts"]["phases"]["measure"]["requests"][key], "{key}");
        }
        Self::check_window("all", &self.json);
        self.at("ops").as_object().unwrap().iter().for_each(|(op, row)| Self::check_window(op, row));
    }

    /// What happened in the window, as one row has it.
    fn check_window(name: &str, row: &Value) {
        let window = |key: &str| row["counts"]["in_window"][key].as_u64().unwrap();
        let ended = window("completed") + window("failed") + window("unacknowledged");
        assert_eq!(
            window("in_flight_at_start") + window("sent"),
            ended + window("in_flight_at_end"),
            "{name}: {row}"
        );
        assert_eq!(
            window("waiting_at_start") + row["counts"]["requests"]["scheduled"].as_u64().unwrap(),
            window("sent") + window("abandoned") + window("waiting_at_end"),
            "{name}: {row}"
        );
    }

    /// Every connection that was begun has become something, and those that stand are no more than they may be.
    fn check_connections(&self) {
        let count = |key| self.connections(key);
        let begun = count("begun");
        let classes = self.at("plan.class").as_array().unwrap();
        let routes = |class: &Value| class["route"].as_array().map_or(0, Vec::len) as u64;
        let most =
            classes.iter().map(|class| class["connections"].as_u64().unwrap() * (1 + routes(class))).sum();
        assert_eq!(begun, count("established") + count("failed") + count("pending"));
        assert_eq!(count("established"), count("retired") + count("lost") + count("open"));
        assert!(count("pending") + count("open") <= most);
        let phases = self.at("client.connections.phases").as_object().unwrap();
        assert_eq!(phases.values().map(|phase| phase["begun"].as_u64().unwrap()).sum::<u64>(), begun);
    }
}
