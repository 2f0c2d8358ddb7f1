//! A strict reader of OpenMetrics text, version 1.0.0, of the types that we write. Shares nothing with the writer.

use std::collections::{BTreeMap, BTreeSet};

/// A family by its name.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) samples: Vec<Sample>,
    /// Names and labels of these.
    series: BTreeSet<(String, BTreeMap<String, String>)>,
}

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

/// The families of a text.
#[derive(Debug, Default)]
pub(crate) struct Exposition(pub(crate) BTreeMap<String, Family>);

impl Exposition {
    /// Every sample of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.values().flat_map(|family| &family.samples).filter(move |sample| sample.name == name)
    }

    /// What the samples of this name come to that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has_all = |sample: &&Sample| labels.iter().all(|(label, value)| sample.has(label, value));
        self.all(name).filter(has_all).map(|sample| sample.value).sum()
    }
}

/// Takes a text apart.
pub(crate) fn read(text: &str) -> Result<Exposition, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with # EOF")?;
    if !body.is_empty() && !body.ends_with('\n') {
        return Err("a line does not end".to_owned());
    }
    let mut families = Exposition::default();
    // The family that is open, and what is known of it.
    let (mut open, mut heads) = (String::new(), BTreeSet::new());
    for (number, line) in body.lines().enumerate() {
        let read = match line.strip_prefix("# ") {
            Some(head) => read_head(head, &mut families, &mut open, &mut heads),
            None => read_sample(line, &open, &mut families),
        };
        read.map_err(|error| format!("line {}: {error}: {line}", number + 1))?;
    }
    check(&families)?;
    Ok(families)
}

fn read_head(
    head: &str,
    families: &mut Exposition,
    open: &mut String,
    heads: &mut BTreeSet<String>,
) -> Result<(), String> {
    let mut words = head.splitn(3, ' ');
    let (keyword, name, rest) = (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next());
    let rest = rest.ok_or("a head without its text")?;
    if keyword == "TYPE" {
        if !is_name(name) || families.0.contains_key(name) {
            return Err("the name is none, or there is another family of it".to_owned());
        }
        *open = name.to_owned();
        heads.clear();
        families.0.insert(name.to_owned(), Family { kind: rest.to_owned(), ..Family::default() });
    }
    let family = families.0.get(name).filter(|_| name == open).ok_or("a head of another family")?;
    if !family.samples.is_empty() || !heads.insert(keyword.to_owned()) {
        return Err("a head behind samples, or twice".to_owned());
    }
    match keyword {
        "TYPE" if ["counter", "gauge", "histogram", "info", "stateset"].contains(&rest) => Ok(()),
        "UNIT" if name.ends_with(&format!("_{rest}")) && family.kind != "info" => Ok(()),
        "HELP" => unescaped(rest).map(|_| ()),
        _ => Err("no such head".to_owned()),
    }
}

fn read_sample(line: &str, open: &str, families: &mut Exposition) -> Result<(), String> {
    let end = line.find(['{', ' ']).ok_or("a sample without a value")?;
    let (name, rest) = line.split_at(end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => read_labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let text = value.strip_prefix(' ').ok_or("no blank before the value")?;
    let value: f64 = text.parse().map_err(|_| "the value is no number")?;
    let family = families.0.get_mut(open).ok_or("a sample without a family")?;
    let suffix = name.strip_prefix(open).ok_or("a sample of another family")?;
    let suffixes: &[&str] = match family.kind.as_str() {
        "counter" => &["_total"],
        "histogram" => &["_bucket", "_count", "_sum"],
        "info" => &["_info"],
        _ => &[""],
    };
    if !suffixes.contains(&suffix) {
        return Err("no such suffix of its type".to_owned());
    }
    let is_fit = match family.kind.as_str() {
        "counter" | "histogram" => value.is_finite() && value >= 0.0,
        "info" => value == 1.0,
        "stateset" => [0.0, 1.0].contains(&value) && labels.contains_key(open),
        _ => value.is_finite(),
    };
    if !is_fit || (suffix == "_bucket") != labels.contains_key("le") {
        return Err("not fit for its type".to_owned());
    }
    if !family.series.insert((name.to_owned(), labels.clone())) {
        return Err("a series twice".to_owned());
    }
    family.samples.push(Sample { name: name.to_owned(), labels, value });
    Ok(())
}

/// The labels, and what is behind them.
fn read_labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    loop {
        let (label, behind) = rest.split_once("=\"").ok_or("a label without a value")?;
        let is_label = is_name(label) && !label.contains(':') && !label.starts_with("__");
        let mut is_escape = false;
        let is_end = |letter: char| {
            let is_end = letter == '"' && !is_escape;
            is_escape = letter == '\\' && !is_escape;
            is_end
        };
        let end = behind.find(is_end).ok_or("a value without an end")?;
        let value = unescaped(&behind[..end])?;
        if !is_label || value.is_empty() || labels.insert(label.to_owned(), value).is_some() {
            return Err(format!("label {label} is no name, empty, or there twice"));
        }
        rest = &behind[end + 1..];
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok((labels, behind));
        }
        rest = rest.strip_prefix(',').ok_or("no comma between labels")?;
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    name.chars().all(is_letter) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

fn unescaped(text: &str) -> Result<String, String> {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.push(match letters.next() {
                Some('n') => '\n',
                Some(escaped @ ('\\' | '"')) => escaped,
                _ => return Err("no such escape".to_owned()),
            }),
            '"' => return Err("a quote that is not escaped".to_owned()),
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

/// What only a whole family shows.
fn check(families: &Exposition) -> Result<(), String> {
    let mut taken = BTreeMap::new();
    for (name, family) in &families.0 {
        for sample in family.samples.iter().map(|sample| sample.name.as_str()).chain([name.as_str()]) {
            if taken.insert(sample.to_owned(), name).is_some_and(|other| other != name) {
                return Err(format!("{sample} is of two families"));
            }
        }
        if family.samples.is_empty() {
            return Err(format!("{name} is empty"));
        }
        if family.kind == "histogram" {
            check_histogram(family).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(())
}

fn check_histogram(family: &Family) -> Result<(), String> {
    let mut groups: BTreeMap<BTreeMap<String, String>, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.remove("le");
        groups.entry(labels).or_default().push(sample);
    }
    for (labels, samples) in groups {
        let of =
            |suffix: &str| samples.iter().filter(|sample| sample.name.ends_with(suffix)).collect::<Vec<_>>();
        let buckets: Vec<(f64, f64)> = of("_bucket")
            .iter()
            .map(|sample| (sample.labels["le"].replace('+', "").parse().unwrap_or(f64::NAN), sample.value))
            .collect();
        let ascend = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        let last = buckets.last().ok_or(format!("{labels:?} has no bucket"))?;
        match (of("_count").as_slice(), of("_sum").as_slice()) {
            ([count], [_])
                if last.0 == f64::INFINITY && last.1 == count.value && buckets.windows(2).all(ascend) => {}
            _ => return Err(format!("{labels:?} does not add up")),
        }
    }
    Ok(())
}
