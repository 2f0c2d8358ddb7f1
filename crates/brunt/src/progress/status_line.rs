//! The text of one line of progress: plain numbers in, characters out.
//!
//! Invariant: a line is never wider than it was allowed to be; what
//! does not fit is left out from the end, where the least important part is.

use super::glance::Glance;
use brunt_plan::phase::Phase;
use brunt_report::layout::BarScale;
use brunt_report::layout::{Line, Span, Style, painted};
use brunt_report::quantity;

/// Characters of the bar.
const BAR: u64 = 10;

/// A length of time without more digits than a person reads in passing: `3.0s`, `2m05s`, `1h02m`.
fn span(ns: u64) -> String {
    let tenths = (ns + 50_000_000) / 100_000_000;
    let seconds = (ns + 500_000_000) / 1_000_000_000;
    match seconds {
        _ if tenths < 600 => format!("{}.{}s", tenths / 10, tenths % 10),
        0..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The line at most `width` characters wide, in colour where something is wrong and colour is allowed.
pub(crate) fn text(label: &str, glance: &Glance, width: usize, colour: bool) -> String {
    painted(&line(label, glance, width), colour)
}

/// The line at most `width` characters wide. A label that is not empty is before everything else.
pub(crate) fn line(label: &str, glance: &Glance, width: usize) -> Line {
    let mut line = Line::new();
    let mut used = 0;
    let label = (!label.is_empty()).then(|| (label.to_owned(), false));
    for (part, is_alarm) in label.into_iter().chain(parts(glance)) {
        let divider = if used == 0 { "" } else { " " };
        let wide = divider.len() + part.chars().count();
        if used + wide > width {
            break;
        }
        used += wide;
        line.push(Span { text: divider.to_owned(), style: Style::Plain });
        line.push(Span { text: part, style: if is_alarm { Style::Bad } else { Style::Plain } });
    }
    line
}

/// The parts in their order, and whether each is an alarm.
fn parts(glance: &Glance) -> impl Iterator<Item = (String, bool)> + use<> {
    let of = glance.total_ns.map(|total_ns| format!("/{}", span(total_ns))).unwrap_or_default();
    let has_failed = glance.failed > 0;
    let failed = (has_failed || glance.phase != Phase::Connect).then(|| format!("failed {}", glance.failed));
    let scale = BarScale::of(&glance.course).filter(|_| glance.course.len() > 1).map(BarScale::with_a_decade);
    let course = |scale: BarScale| glance.course.iter().map(|time_ns| scale.bar(*time_ns)).collect();
    let parts = [
        (Some(format!("{} {}{of}", glance.phase.name(), span(glance.elapsed_ns))), false),
        (fraction(glance).map(bar), false),
        (glance.done.map(|(done, wanted, things)| format!("{done}/{wanted}{things}")), false),
        (glance.rate.map(|rate| format!("{rate:.0}/s")), false),
        (glance.tail.map(|(name, ns)| format!("{name} {}", quantity::time(ns).replace(' ', ""))), false),
        (failed, has_failed),
        (scale.map(course), false),
        (glance.to_go_ns.map(|to_go_ns| format!("{} left", span(to_go_ns))), false),
    ];
    parts.into_iter().filter_map(|(part, is_alarm)| Some((part?, is_alarm)))
}

/// How much of the phase is over, where that is known.
fn fraction(glance: &Glance) -> Option<f64> {
    let (done, whole) = match (glance.done, glance.total_ns) {
        (Some((done, wanted, _)), _) => (done, wanted),
        (None, Some(total_ns)) => (glance.elapsed_ns, total_ns),
        (None, None) => return None,
    };
    (whole > 0).then(|| (done as f64 / whole as f64).min(1.0))
}

fn bar(fraction: f64) -> String {
    let full = (fraction * BAR as f64) as u64;
    let cell = |index: u64| if index < full { '#' } else { '.' };
    format!("[{}]", (0..BAR).map(cell).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measuring() -> Glance {
        Glance {
            phase: Phase::Measure,
            elapsed_ns: 3_000_000_000,
            total_ns: Some(10_000_000_000),
            done: None,
            rate: Some(9_998.4),
            tail: Some(("p99", 412_345)),
            course: Vec::new(),
            failed: 0,
            to_go_ns: Some(7_000_000_000),
        }
    }

    #[test]
    fn status_lines_have_their_layout() {
        let preload = Glance {
            phase: Phase::Preload,
            elapsed_ns: 125_400_000_000,
            total_ns: None,
            done: Some((1_204_000, 2_000_000, " keys")),
            rate: Some(380_000.0),
            tail: None,
            course: Vec::new(),
            failed: 2,
            to_go_ns: Some(2_100_000_000),
        };
        let connect = Glance {
            phase: Phase::Connect,
            elapsed_ns: 40_000_000,
            done: None,
            rate: None,
            to_go_ns: None,
            ..preload.clone()
        };
        let table = [
            (measuring(), "measure 3.0s/10.0s [###.......] 9998/s p99 412us failed 0 7.0s left"),
            (
                Glance { tail: Some(("max", 1_200_000)), rate: Some(0.2), to_go_ns: None, ..measuring() },
                "measure 3.0s/10.0s [###.......] 0/s max 1.20ms failed 0",
            ),
            (
                Glance { done: Some((31_000, 100_000, "")), total_ns: None, ..measuring() },
                "measure 3.0s [###.......] 31000/100000 9998/s p99 412us failed 0 7.0s left",
            ),
            (
                Glance {
                    course: [400_000, 412_345, 40_000_000].map(Some).into_iter().chain([None]).collect(),
                    ..measuring()
                },
                "measure 3.0s/10.0s [###.......] 9998/s p99 412us failed 0 ▁▁█  7.0s left",
            ),
            (preload, "preload 2m05s [######....] 1204000/2000000 keys 380000/s failed 2 2.1s left"),
            (connect, "connect 0.0s failed 2"),
        ];
        for (glance, expected) in table {
            assert_eq!(text("", &glance, 110, false), expected);
        }
    }

    #[test]
    fn durations_are_short() {
        let table = [
            (0, "0.0s"),
            (49_999_999, "0.0s"),
            (50_000_000, "0.1s"),
            (59_940_000_000, "59.9s"),
            (59_960_000_000, "1m00s"),
            (60_000_000_000, "1m00s"),
            (3_599_000_000_000, "59m59s"),
            (3_600_000_000_000, "1h00m"),
            (90_000_000_000_000, "25h00m"),
        ];
        for (ns, expected) in table {
            assert_eq!(span(ns), expected, "{ns}");
        }
    }

    #[test]
    fn status_lines_fit_the_terminal() {
        let full = text("", &measuring(), 1_000, false);
        for width in 0..100 {
            let line = text("", &measuring(), width, false);
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert!(full.starts_with(&line), "{line}");
        }
        assert_eq!(text("", &measuring(), 36, false), "measure 3.0s/10.0s [###.......]");
        assert_eq!(text("", &measuring(), 5, false), "");
        assert_eq!(text("step 3 of 12", &measuring(), 40, false), "step 3 of 12 measure 3.0s/10.0s");
        // Colour takes no room.
        let failing = Glance { failed: 7, ..measuring() };
        let (plain, coloured) = (text("", &failing, 64, false), text("", &failing, 64, true));
        assert!(coloured.contains("\x1b[31mfailed 7\x1b[0m"), "{coloured:?}");
        assert_eq!(coloured.replace("\x1b[31m", "").replace("\x1b[0m", ""), plain);
        assert!(!text("", &measuring(), 80, true).contains('\x1b'), "nothing is wrong");
    }
}
