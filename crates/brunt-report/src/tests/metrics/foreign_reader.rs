//! OpenMetrics text read by the crate openmetrics-parser, as a sorted line for each sample.

use super::reader::Exposition;
use openmetrics_parser::openmetrics::parse_openmetrics;
use openmetrics_parser::{MetricNumber, OpenMetricsValue};

type Labels = Vec<(String, String)>;

/// Its samples. The crate refuses units of histograms, which OpenMetrics has (its section 4.5 asks for none of info and state sets alone): they are left out.
pub(super) fn lines(text: &str) -> Result<Vec<String>, String> {
    let kept = text.lines().filter(|line| !line.starts_with("# UNIT "));
    let kept: String = kept.flat_map(|line| [line, "\n"]).collect();
    let exposition = parse_openmetrics(&kept).map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    for (name, family) in &exposition.families {
        for sample in family.iter_samples() {
            let labels = sample.get_labelset().map_err(|error| error.to_string())?;
            let labels: Labels = labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let mut push = |suffix: &str, more: &[(String, String)], value: &MetricNumber| {
                lines.push(line(&format!("{name}{suffix}"), [&labels[..], more].concat(), value.as_f64()));
            };
            match &sample.value {
                OpenMetricsValue::Unknown(value)
                | OpenMetricsValue::Gauge(value)
                | OpenMetricsValue::StateSet(value) => push("", &[], value),
                OpenMetricsValue::Counter(counter) => push("_total", &[], &counter.value),
                OpenMetricsValue::Info => push("_info", &[], &MetricNumber::Int(1)),
                OpenMetricsValue::Histogram(histogram) => {
                    for bucket in &histogram.buckets {
                        let le = ("le".to_owned(), bucket.upper_bound.to_string());
                        push("_bucket", &[le], &bucket.count);
                    }
                    let count = histogram.count.ok_or("a histogram without its count")?;
                    push("_count", &[], &MetricNumber::Int(count as i64));
                    push("_sum", &[], histogram.sum.as_ref().ok_or("a histogram without its sum")?);
                }
                OpenMetricsValue::GaugeHistogram(_) | OpenMetricsValue::Summary(_) => {
                    return Err(format!("{name} is of a type that is never written"));
                }
            }
        }
    }
    lines.sort();
    Ok(lines)
}

/// The same of what our own reader found.
pub(super) fn lines_of_ours(exposition: &Exposition) -> Vec<String> {
    let samples = exposition.0.values().flat_map(|family| &family.samples);
    let mut lines: Vec<String> = samples
        .map(|sample| {
            let label = |(name, value): (&String, &String)| match name.as_str() {
                "le" => (name.clone(), value.replace("+Inf", "inf").parse::<f64>().unwrap().to_string()),
                _ => (name.clone(), value.clone()),
            };
            line(&sample.name, sample.labels.iter().map(label).collect(), sample.value)
        })
        .collect();
    lines.sort();
    lines
}

fn line(name: &str, mut labels: Labels, value: f64) -> String {
    labels.sort();
    let labels: Vec<String> = labels.into_iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{name} {} {value}", labels.join(" "))
}
