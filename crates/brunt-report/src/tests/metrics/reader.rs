//! OpenMetrics text read by the crate openmetrics-parser, with what the crate does not check: heads of units, series that are there twice, and
//! histograms that add up. Shares nothing with the writer.

use openmetrics_parser::openmetrics::parse_openmetrics;
use openmetrics_parser::{HistogramValue, MetricNumber, OpenMetricsValue};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Sample {
    /// Has it this label, with this value?
    pub(crate) fn has(&self, label: &str, value: &str) -> bool {
        self.labels.get(label).is_some_and(|held| held == value)
    }
}

/// The samples of a text.
#[derive(Debug, Default)]
pub(crate) struct Exposition(pub(crate) Vec<Sample>);

impl Exposition {
    /// Every sample of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// What the samples of this name come to that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has_all = |sample: &&Sample| labels.iter().all(|(label, value)| sample.has(label, value));
        self.all(name).filter(has_all).map(|sample| sample.value).sum()
    }
}

/// Takes a text apart. The crate refuses units of histograms, which OpenMetrics has (its section 4.5 asks for none of info and state sets alone):
/// they are left out.
pub(crate) fn read(text: &str) -> Result<Exposition, String> {
    let (units, kept): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("# UNIT "));
    for head in units {
        let mut words = head.split(' ').skip(2);
        let (name, unit) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if !name.ends_with(&format!("_{unit}")) || text.matches(&format!("# TYPE {name} ")).count() != 1 {
            return Err(format!("{head}: no unit of its family"));
        }
    }
    let exposition = parse_openmetrics(&(kept.join("\n") + "\n")).map_err(|error| error.to_string())?;
    let mut found = Exposition::default();
    for (name, family) in &exposition.families {
        for sample in family.iter_samples() {
            let labels = sample.get_labelset().map_err(|error| error.to_string())?;
            let labels: BTreeMap<String, String> =
                labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let mut push = |suffix: &str, more: Option<String>, value: &MetricNumber| {
                let mut labels = labels.clone();
                labels.extend(more.map(|bound| ("le".to_owned(), bound)));
                found.0.push(Sample { name: format!("{name}{suffix}"), labels, value: value.as_f64() });
            };
            match &sample.value {
                OpenMetricsValue::Gauge(value) | OpenMetricsValue::StateSet(value) => push("", None, value),
                OpenMetricsValue::Counter(counter) => push("_total", None, &counter.value),
                OpenMetricsValue::Info => push("_info", None, &MetricNumber::Int(1)),
                OpenMetricsValue::Histogram(histogram) => {
                    let count = adds_up(histogram).ok_or_else(|| format!("{name} does not add up"))?;
                    for bucket in &histogram.buckets {
                        let bound = bucket.upper_bound.to_string().replace("inf", "+Inf");
                        push("_bucket", Some(bound), &bucket.count);
                    }
                    push("_count", None, &MetricNumber::Int(count as i64));
                    push("_sum", None, histogram.sum.as_ref().ok_or("a histogram without its sum")?);
                }
                _ => return Err(format!("{name} is of a type that is never written")),
            }
        }
    }
    let series: BTreeSet<_> = found.0.iter().map(|sample| (&sample.name, &sample.labels)).collect();
    if series.len() < found.0.len() {
        return Err("a series twice".to_owned());
    }
    Ok(found)
}

/// The count of a histogram whose buckets ascend up to it.
fn adds_up(histogram: &HistogramValue) -> Option<u64> {
    let buckets: Vec<(f64, f64)> =
        histogram.buckets.iter().map(|bucket| (bucket.upper_bound, bucket.count.as_f64())).collect();
    let ascend = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
    let last = buckets.last().filter(|last| last.0 == f64::INFINITY && buckets.windows(2).all(ascend))?;
    histogram.count.filter(|count| *count as f64 == last.1)
}
