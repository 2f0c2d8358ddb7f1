//! Workloads that were published, by name (`--preset`): plain plan keys, which other options replace.
//!
//! Not a workload of its own kind: nothing behind the command line knows that a plan came from a preset. Invariant: every row of the table
//! is a valid plan.

use std::sync::LazyLock;
use toml::{Table, Value};

const ROWS: &str = include_str!("presets.txt");
const KEYS: [&str; 7] = ["keys", "key-size", "value-size", "mix", "popularity", "ttl", "prefix"];

/// Each with its fields, one per key.
fn rows() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    ROWS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        Some((fields.next()?, fields))
    })
}

/// All names.
pub static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| rows().map(|(name, _)| name).collect());

/// The plan keys of this name.
///
/// # Errors
/// What is accepted.
pub fn keys_of(name: &str) -> Result<Table, String> {
    match name {
        "ycsb-e" => return Err("it scans ranges of keys, which no cache server does".to_owned()),
        "twitter-5" => return Err("of this cluster nothing is published".to_owned()),
        _ => {}
    }
    let row = rows().find(|(held, _)| *held == name);
    let (_, fields) = row.ok_or(
        "expected etc, usr, app, var, sys, ycsb-a to ycsb-d, ycsb-f, or twitter-1 to twitter-54 except 5",
    )?;
    let given = KEYS.into_iter().zip(fields).filter(|(_, text)| !text.is_empty());
    Ok(given.map(|(key, text)| (key.to_owned(), Value::from(text))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::PlanSpec;

    #[test]
    fn every_preset_is_a_plan() {
        assert_eq!(NAMES.len(), 5 + 5 + 53);
        for &name in &*NAMES {
            let spec: PlanSpec = keys_of(name).unwrap().try_into().unwrap();
            let given = spec.base.given();
            assert!(given.contains(&"mix".to_owned()) && given.contains(&"value-size".to_owned()), "{name}");
        }
        // Working sets without expiry in the published table, in MB, over the mean sizes of key and value.
        for (name, set_mb, sizes) in [
            ("twitter-12", 612_397, 44 + 1_030),
            ("twitter-52", 14_057, 20 + 273),
            ("twitter-6", 4_807, 44 + 252),
        ] {
            let keys = (set_mb * 1_000_000_u64 / sizes).to_string();
            assert_eq!(keys_of(name).unwrap()["keys"], Value::from(keys), "{name}");
        }
    }

    #[test]
    fn what_is_no_preset_is_named() {
        for (name, said) in [
            ("ycsb-e", "scans"),
            ("twitter-5", "nothing is published"),
            ("twitter-55", "ycsb-a to ycsb-d, ycsb-f, or twitter-1 to twitter-54 except 5"),
            ("", "expected etc"),
        ] {
            assert!(keys_of(name).unwrap_err().contains(said), "{name}");
        }
    }
}
