//! What the texts of options read as, by `texts.txt`: what their values print as, or the message of what is none.

use std::fmt::{Debug, Display};
use std::str::FromStr;

fn check<T: FromStr<Err = String> + Display + PartialEq + Debug>(name: &str) {
    let sections = include_str!("texts.txt").split("== ");
    let rows = sections.filter_map(|section| section.strip_prefix(name)?.strip_prefix('\n')).next().unwrap();
    for row in rows.lines().filter(|row| !row.is_empty()) {
        let (text, expected) = row.rsplit_once(" => ").unwrap();
        match (text.replace("\\n", "\n").parse::<T>(), expected.strip_prefix("! ")) {
            (Ok(value), None) => {
                assert_eq!(value.to_string(), expected, "{name} {text:?}");
                assert_eq!(expected.parse(), Ok(value), "{name}");
            }
            (Err(error), Some(fault)) => match fault.strip_suffix('…') {
                Some(start) => assert!(error.starts_with(start), "{name} {text:?}: {error}"),
                None => assert_eq!(error, fault, "{name} {text:?}"),
            },
            (read, _) => panic!("{name} {text:?}: {read:?}"),
        }
    }
}

macro_rules! check_all {
    ($($module:ident::$value:ident),+ $(,)?) => {
        #[test]
        fn texts_are_read_and_printed() {
            $(check::<crate::$module::$value>(stringify!($value));)+
        }
    };
}

check_all!(
    arrival::Arrival,
    arrival::RateProfile,
    cpus::CpuList,
    distribution::Distribution,
    mix::CommandSpec,
    mix::Mix,
    objective::Objective,
    objective::Requirement,
    op::OpName,
    popularity::Drift,
    popularity::Popularity,
    quantile::Percentiles,
    quantile::Quantile,
    server::ServerAddress,
    size::SizeDistribution,
    time_law::TimeLaw,
    units::ByteSize,
    units::Count,
    units::DurationNs,
    units::Rate,
    until::Until,
    url::NamedServer,
    warmup::Warmup,
);
