//! The page as a snapshot for each way a search can end, and what is written read back.

use super::*;

fn calibration(headroom: Headroom) -> Calibration {
    let probe = |rate, error_ns| Probe {
        rate,
        p99_ns: Some(60_000 + error_ns),
        error_ns: Some(error_ns),
        is_saturated: false,
    };
    Calibration {
        made_at_s: 1_795_132_800,
        brunt_version: "0.1.0".to_owned(),
        host: HostIdentity {
            machine: "7d1b6a1c20e5f3aa".to_owned(),
            cpu_model: "Made-up 9000".to_owned(),
            allowed_cpus: "0-1".to_owned(),
            kernel: "6.1.0".to_owned(),
        },
        shape: Shape {
            threads: 1,
            cpus: String::new(),
            io: "epoll".to_owned(),
            wait: "hybrid".to_owned(),
            connections: 16,
            depth: 1,
            value_size: "200".to_owned(),
        },
        in_process: LatencyFloor { p50_ns: 412, p99_ns: 1_130 },
        in_process_cpu_ns: 287,
        loopback: LatencyFloor { p50_ns: 38_100, p99_ns: 71_400 },
        floor_rate: 2_000,
        oversleep: Some(LatencyFloor { p50_ns: 31_000, p99_ns: 92_000 }),
        headroom,
        probes: vec![
            probe(2_000, 1_200),
            probe(4_000, 1_900),
            probe(8_000, 12_000),
            probe(8_000, 14_000),
            probe(5_660, 88_000),
            probe(5_660, 3_000),
            probe(5_660, 4_000),
            Probe { is_saturated: true, error_ns: None, p99_ns: None, ..probe(16_000, 0) },
        ],
        waits: vec![
            WaitCost {
                wait: "hybrid".to_owned(),
                rate: 1_000,
                response_ns: [Some(33_100), Some(48_000)],
                wire_ns: [Some(26_000), Some(39_500)],
                cpu_ns: 71_000,
                is_saturated: false,
                is_disturbed: false,
            },
            WaitCost {
                wait: "sleep".to_owned(),
                rate: 1_000,
                response_ns: [Some(75_000), None],
                wire_ns: [None, None],
                cpu_ns: 42_000,
                is_saturated: false,
                is_disturbed: false,
            },
        ],
        disturbed: None,
    }
}

const CROSSED: Headroom =
    Headroom { rate: Some(5_660), limit: HeadroomLimit::Client, limit_rate: Some(8_000) };

fn page_of(calibration: &Calibration) -> String {
    let mut out = Vec::new();
    write_text(calibration, &Layout::default(), &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    assert!(page.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{page}");
    page
}

fn file_of(calibrations: &[Calibration]) -> String {
    let mut out = Vec::new();
    write_all(calibrations, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn pages() {
    insta::assert_snapshot!(page_of(&calibration(CROSSED)));
    let table = [
        (Headroom { limit: HeadroomLimit::Server, ..CROSSED }, "at least 5660/s: there"),
        (Headroom { limit: HeadroomLimit::Search, limit_rate: None, ..CROSSED }, "no higher rate was tried"),
        (
            Headroom { rate: None, ..CROSSED },
            "none: the client error of the p99 exceeds 10.0 us already at 8000/s",
        ),
        (Headroom { rate: None, limit: HeadroomLimit::Server, ..CROSSED }, "not known: the reference server"),
    ];
    for (headroom, expected) in table {
        let page = page_of(&calibration(headroom));
        let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(expected), "{expected:?} is not in {page}");
    }
}

#[test]
fn a_disturbed_calibration_is_marked() {
    insta::assert_snapshot!(page_of(&disturbed()));
}

fn disturbed() -> Calibration {
    let steal = "3 of 14 steps were disturbed, the first at 2000/s: STEAL worker 0 waited for a CPU for 7.16 % of the window";
    let mut disturbed = Calibration { disturbed: Some(steal.to_owned()), ..calibration(CROSSED) };
    disturbed.waits[0].is_disturbed = true;
    (disturbed.waits[1].is_saturated, disturbed.waits[1].is_disturbed) = (true, true);
    disturbed
}

#[test]
fn written_calibrations_are_read_back() {
    let pinned = Calibration {
        shape: Shape { cpus: "1".to_owned(), ..calibration(CROSSED).shape },
        oversleep: None,
        ..calibration(Headroom { rate: None, limit: HeadroomLimit::Search, limit_rate: None })
    };
    let all = vec![calibration(CROSSED), pinned, disturbed()];
    assert_eq!(read_all(&file_of(&all)), Ok(all));
    assert_eq!(read_all(&file_of(&[])), Ok(Vec::new()));
}

#[test]
fn unreadable_files_name_the_key() {
    let whole = file_of(&[calibration(CROSSED)]);
    let table = [
        ("", "", "is not JSON"),
        ("brunt.calibrations.v1", "brunt.calibrations.v2", "has the schema 'brunt.calibrations.v2'"),
        ("brunt.calibration.v1", "other", "has the schema 'other', not 'brunt.calibration.v1'"),
        ("\"calibrations\"", "\"others\"", "has no list 'calibrations'"),
        ("\"threads\": 1", "\"threads\": \"1\"", "has a calibration with an error: invalid type"),
        ("\"threads\": 1", "\"threads\": 5000000000", "expected u32"),
        ("\"kernel\"", "\"kernal\"", "missing field `kernel`"),
        ("\"limit\": \"client\"", "\"limit\": \"none\"", "unknown variant `none`"),
    ];
    for (from, to, expected) in table {
        let text =
            if from.is_empty() { whole[..whole.len() / 2].to_owned() } else { whole.replace(from, to) };
        let error = read_all(&text).unwrap_err();
        assert!(error.contains(expected), "{from} → {to}: {error}");
    }
}

#[test]
fn every_key_is_documented() {
    let formats = include_str!("../../../../docs/results.md");
    let part =
        formats.split("## JSON: `brunt.calibration.v1`").nth(1).expect("the schema has a part of its own");
    let part = part.split("\n## ").next().unwrap();
    let told: Vec<&str> = part.split('`').skip(1).step_by(2).map(|key| key.trim_end_matches("[]")).collect();
    let value = value(&calibration(CROSSED)).unwrap();
    let mut keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    for inner in ["host", "shape", "headroom"] {
        keys.extend(value[inner].as_object().unwrap().keys());
    }
    keys.extend(value["probes"][0].as_object().unwrap().keys());
    keys.extend(value["waits"][0].as_object().unwrap().keys());
    for key in keys {
        assert!(told.contains(&key.as_str()), "docs/results.md does not say what {key} means");
    }
}
