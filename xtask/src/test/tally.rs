//! What became of the tests of a run: how many passed, which failed, which took longest.

use super::runner::EndedTest;
use super::suite::Test;
use std::time::Duration;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// The sum over a run's tests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    passed: usize,
    pub(super) failed: Vec<Test>,
    /// Those that failed first, and passed when they were made again.
    again: Vec<String>,
    /// Slowest first.
    slowest: Vec<(Duration, String)>,
}

impl Tally {
    pub(super) fn of(ended: Vec<EndedTest>) -> Self {
        let mut slowest: Vec<_> = ended.iter().map(|ended| (ended.took, ended.test.to_string())).collect();
        slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        slowest.truncate(SLOWEST);
        let (passed, failed): (Vec<EndedTest>, Vec<EndedTest>) =
            ended.into_iter().partition(|ended| ended.passed);
        let failed = failed.into_iter().map(|ended| ended.test).collect();
        Self { passed: passed.len(), failed, again: Vec::new(), slowest }
    }

    /// Adds those that failed, and have all passed now.
    pub(super) fn add_made_again(&mut self, names: Vec<String>) {
        self.passed += names.len();
        self.again = names;
    }

    pub(super) fn failed_names(&self) -> Vec<String> {
        self.failed.iter().map(Test::to_string).collect()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "the slowest tests:")?;
        for (took, name) in &self.slowest {
            writeln!(formatter, "  {:6.2} s  {name}", took.as_secs_f64())?;
        }
        for name in self.failed_names() {
            writeln!(formatter, "FAILED: {name}")?;
        }
        for name in &self.again {
            writeln!(
                formatter,
                "MADE AGAIN: {name} failed while the hypervisor had the processors, and passed by itself"
            )?;
        }
        write!(formatter, "{} passed, {} failed", self.passed, self.failed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::suite::Program;
    use std::sync::Arc;

    fn ended(name: &str, took_ms: u64, passed: bool) -> EndedTest {
        let program = Arc::new(Program {
            package: "brunt-plan".to_owned(),
            executable: "/plan".into(),
            directory: "/".into(),
            is_integration: false,
        });
        let test = Test { program, name: name.to_owned() };
        EndedTest { test, took: Duration::from_millis(took_ms), passed }
    }

    #[test]
    fn tests_are_counted_and_the_slowest_named() {
        let quick = (0..SLOWEST as u64 + 5).map(|number| ended("quick", number, true));
        let mut tally =
            Tally::of(quick.chain([ended("slow", 2_000, true), ended("wrong", 1_500, false)]).collect());
        let text = tally.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + SLOWEST + 2, "{text}");
        assert_eq!(
            lines[1..4],
            ["    2.00 s  brunt-plan slow", "    1.50 s  brunt-plan wrong", "    0.01 s  brunt-plan quick"]
        );
        assert_eq!(lines[1 + SLOWEST..], ["FAILED: brunt-plan wrong", "16 passed, 1 failed"]);
        let names = tally.failed_names();
        tally.failed.clear();
        tally.add_made_again(names);
        let text = tally.to_string();
        assert!(
            text.contains("\nMADE AGAIN: brunt-plan wrong failed while")
                && text.ends_with("\n17 passed, 0 failed"),
            "{text}"
        );
    }
}
