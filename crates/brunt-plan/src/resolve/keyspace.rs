//! The keys and values of a class: how many, and sizes that have room for what a key tells.
//!
//! Invariant: every id has a key of its own in every size that the class has.

use super::{ErrorContext, Resolved};
use crate::mix::Mix;
use crate::plan::{KEY_BYTES_MAX, KeyForm, Keyspace, ValueForm};
use crate::popularity::{ObjectWindow, Popularity};
use crate::size::SizeDistribution;
use crate::spec::ClassSpec;
use crate::units::Count;

/// The largest value we send: the block that values are cut from is this long, and memcached takes 1 MiB by default.
const VALUE_SIZE_MAX: u32 = 128 << 20;
/// The longest of memaslap's values, which are cut from a table.
const TABLE_VALUE_MAX: u32 = 1 << 20;
/// What the places of all windows together may take, and what each takes.
const WINDOW_BYTES_MAX: u64 = 16 << 30;
const BYTES_PER_PLACE: u64 = 8;
const DEFAULT_KEYS: u64 = 100_000;
pub(crate) const DEFAULT_KEY_SIZE: u32 = 30;
const DEFAULT_VALUE_SIZE: u32 = 200;
/// Tells our keys from those of others on the same server.
const DEFAULT_PREFIX: &str = "brunt:";

/// The data set of a class, which has `windows` windows if it has any.
pub(super) fn resolve(
    context: &ErrorContext<'_>,
    spec: &mut ClassSpec,
    mix: &Mix,
    windows: u64,
) -> Resolved<Keyspace> {
    let keyspace = match &spec.popularity {
        Some(Popularity::Window(window)) => of_windows(context, spec, window, windows)?,
        _ => {
            let keyspace = of_keys(context, spec, spec.trace.is_none() && mix.has_counters())?;
            spec.keys = Some(Count(keyspace.keys));
            keyspace
        }
    };
    spec.prefix = Some(keyspace.prefix.clone());
    spec.key_size = Some(keyspace.key_size.clone());
    spec.value_size = Some(keyspace.value_size.clone());
    Ok(keyspace)
}

fn of_keys(context: &ErrorContext<'_>, spec: &ClassSpec, has_counters: bool) -> Resolved<Keyspace> {
    let value_form = spec.value_form.unwrap_or_default();
    let has_counters = has_counters && value_form == ValueForm::Random;
    let most = if has_counters { u64::MAX / 2 } else { u64::MAX };
    let keys = context.count("keys", spec.keys, DEFAULT_KEYS, 1, most)?;
    let ids = if has_counters { keys * 2 } else { keys };
    let key_form = spec.key_form.unwrap_or_default();
    if key_form.is_memaslap() {
        return Err(context.requires(&format!("key-form {key_form}"), "--popularity window:OBJECTS"));
    }
    if ids > key_form.ids_max() {
        let reason = format!("at most {} keys and counters", key_form.ids_max());
        return Err(context.requires(&format!("key-form {key_form}"), reason));
    }
    let first_key = resolve_first_key(context, spec, ids, key_form)?;
    let digits = key_form.bytes_needed(if key_form == KeyForm::Hex8 { ids } else { first_key + ids });
    let prefix = resolve_prefix(spec, digits);
    let needed = prefix.len() as u64 + u64::from(digits);
    let key_size = resolve_key_size(context, spec, key_form, needed, || {
        let things = if has_counters { "keys and counters" } else { "keys" };
        let number = match key_form {
            KeyForm::Decimal => format!("the {digits} digits of the last of {ids} {things}"),
            KeyForm::Hex8 => format!("{digits} hexadecimal digits"),
            KeyForm::Random => format!("{digits} letters and digits, enough for {ids} {things}"),
            KeyForm::Memaslap | KeyForm::MemaslapPrintable => format!("{digits} bytes of the number"),
        };
        format!("prefix and {number}")
    })?;
    let value_size = resolve_value_size(context, spec)?;
    Ok(Keyspace { keys, prefix, key_form, first_key, key_size, value_size, value_form })
}

/// The prefix as given, else the usual one where the shortest key has room for it and `digits` bytes. Keys of a trace are their own.
fn resolve_prefix(spec: &ClassSpec, digits: u32) -> String {
    let needed = DEFAULT_PREFIX.len() as u32 + digits;
    let is_long_enough = |sizes: &SizeDistribution| {
        needed <= KEY_BYTES_MAX && sizes.clone().cut_to(needed, KEY_BYTES_MAX).min() >= needed
    };
    match &spec.prefix {
        Some(given) => given.clone(),
        None if spec.trace.is_none() && spec.key_size.as_ref().is_none_or(is_long_enough) => {
            DEFAULT_PREFIX.to_owned()
        }
        None => String::new(),
    }
}

/// Sizes of keys that have room for `needed` bytes, which `contents` describes.
fn resolve_key_size(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    key_form: KeyForm,
    needed: u64,
    contents: impl Fn() -> String,
) -> Resolved<SizeDistribution> {
    let default_len = if key_form == KeyForm::Hex8 { 0 } else { DEFAULT_KEY_SIZE };
    let default_size = SizeDistribution::Fixed(default_len.max(needed.min(u64::from(KEY_BYTES_MAX)) as u32));
    let least = u32::try_from(needed).unwrap_or(u32::MAX);
    let given = spec.key_size.clone().unwrap_or(default_size);
    let key_size = given.clone().cut_to(least, KEY_BYTES_MAX.max(least));
    if u64::from(key_size.min()) < needed || key_size.max() > KEY_BYTES_MAX {
        let accepted = format!("sizes from {needed} ({}) to {KEY_BYTES_MAX}", contents());
        return Err(context.invalid("key-size", given, accepted));
    }
    Ok(key_size)
}

/// The number of the first key: this and the following `ids` numbers must fit the form.
fn resolve_first_key(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    ids: u64,
    key_form: KeyForm,
) -> Resolved<u64> {
    let first = spec.first_key.map_or(0, |count| count.0);
    // Eight hexadecimal digits begin anew behind the last number.
    let most = if key_form == KeyForm::Hex8 { key_form.ids_max() - 1 } else { key_form.ids_max() - ids };
    if first > most {
        let accepted = format!("an integer from 0 to {most} with {ids} keys and counters");
        return Err(context.invalid("first-key", first, accepted));
    }
    Ok(first)
}

fn resolve_value_size(context: &ErrorContext<'_>, spec: &ClassSpec) -> Resolved<SizeDistribution> {
    let value_size = spec.value_size.clone().unwrap_or(SizeDistribution::Fixed(DEFAULT_VALUE_SIZE));
    if value_size.max() > VALUE_SIZE_MAX {
        return Err(context.exceeds("value-size", value_size, "128MiB"));
    }
    Ok(value_size)
}

/// The keys of a class with `windows` windows: as many numbers as the keys can hold.
fn of_windows(
    context: &ErrorContext<'_>,
    spec: &ClassSpec,
    window: &ObjectWindow,
    windows: u64,
) -> Resolved<Keyspace> {
    let key_form = spec.key_form.unwrap_or_default();
    let objects = windows * u64::from(window.objects);
    if objects * BYTES_PER_PLACE > WINDOW_BYTES_MAX {
        let most = WINDOW_BYTES_MAX / BYTES_PER_PLACE / windows;
        let limit = format!("{most} objects in each of {windows} windows, for memory");
        return Err(context.exceeds("popularity", window, limit));
    }
    // What is let go must not be taken for what comes in its place.
    let told_apart = objects.saturating_mul(2);
    let digits = key_form.bytes_needed(told_apart);
    let prefix = resolve_prefix(spec, digits);
    let needed = prefix.len() as u64 + u64::from(digits);
    let contents = || format!("the prefix and the numbers of {told_apart} objects");
    let key_size = resolve_key_size(context, spec, key_form, needed, contents)?;
    let value_size = resolve_value_size(context, spec)?;
    if key_form.is_memaslap() {
        for (option, size) in [("key-size", &key_size), ("value-size", &value_size)] {
            let is_laid = matches!(
                size,
                SizeDistribution::Fixed(_) | SizeDistribution::Uniform { .. } | SizeDistribution::Ranges(_)
            );
            if !is_laid {
                let accepted =
                    format!("a size, uniform:MIN,MAX or ranges:MIN-MAX@SHARE,... with key-form {key_form}");
                return Err(context.invalid(option, size, accepted));
            }
        }
        if value_size.max() > TABLE_VALUE_MAX {
            let limit = format!("1MiB: key-form {key_form}");
            return Err(context.exceeds("value-size", value_size, limit));
        }
    }
    let keys = key_form.ids_in(key_size.min() - prefix.len() as u32).min(ObjectWindow::NUMBERS_MAX);
    let value_form = ValueForm::Random;
    Ok(Keyspace { keys, prefix, key_form, first_key: 0, key_size, value_size, value_form })
}
