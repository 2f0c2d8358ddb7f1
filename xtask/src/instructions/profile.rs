//! What callgrind wrote, read: which address of which function spent how many instructions, whom it called, and what for.
//!
//! Not a general reader: it takes the one form that [`OPTIONS`] ask for, with every name in full and every address
//! absolute. Names of crates and of their public functions tell the parts of the worker apart, so that work within a crate moves nothing
//! from one part to another. Invariant: the parts and the Io add up to everything that was spent below the root.

use anyhow::{Context, ensure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What callgrind must be told for a profile that can be read here.
pub(super) const OPTIONS: [&str; 5] =
    ["--tool=callgrind", "--dump-instr=yes", "--dump-line=no", "--compress-strings=no", "--compress-pos=no"];

/// How deep calls may nest below the root. The worker does not recurse; library code that did would be found here.
const DEPTH_MAX: usize = 64;

/// The parts of the worker: which operation comes next, and when; from it to its bytes; from bytes to events; comparing what was read with
/// what was stored; counts, histograms, meters; and connections, operations in flight, timers.
pub(super) const PARTS: [&str; 6] = ["schedule", "encode", "decode", "check", "record", LOOP];
const LOOP: &str = "loop";

/// Parts of names of functions, and what those are of. The first row that fits decides: of the loop's own calls for keys, a get makes
/// three for the check alone.
const FUNCTIONS: [(&str, &str, &str); 9] = [
    ("brunt_workload::verify::", "", "check"),
    ("KeyGenerator::is_key_of", "", "check"),
    ("KeyGenerator::id_of_key", "", "check"),
    ("KeyGenerator::value_len", "", "check"),
    ("brunt_workload::", "", "schedule"),
    ("brunt_proto::", "::decode", "decode"),
    ("brunt_proto::", "", "encode"),
    ("brunt_stats::", "", "record"),
    ("brunt_engine::state::recording::", "", "record"),
];
/// Part of the name of every function of the Io, and what its instructions are counted as: no part of the worker.
const IO_FUNCTIONS: &str = "canned::Canned";
const IO: &str = "io";

/// The part of an instruction that is in these functions, each inlined into the next: the outermost that has
/// a part decides, as it tells what the inner ones are there for.
fn part_of(innermost_first: &[&str]) -> &'static str {
    let of =
        |name: &&str| FUNCTIONS.iter().find(|(head, inside, _)| name.contains(head) && name.contains(inside));
    innermost_first.iter().rev().find_map(of).map_or(LOOP, |(_, _, part)| part)
}

/// Instructions by part, and those of the Io.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Division(BTreeMap<&'static str, f64>);

impl FromIterator<(&'static str, f64)> for Division {
    fn from_iter<I: IntoIterator<Item = (&'static str, f64)>>(parts: I) -> Self {
        Self(parts.into_iter().collect())
    }
}

impl Division {
    /// Everything but the Io.
    pub(super) fn total(&self) -> f64 {
        self.0.iter().filter(|(part, _)| **part != IO).map(|(_, instructions)| instructions).sum()
    }

    /// Of a part, or in total.
    pub(super) fn of(&self, part: &str) -> f64 {
        if part == "total" { self.total() } else { self.0.get(part).copied().unwrap_or_default() }
    }

    /// The difference to a shorter run, per get that this one had more.
    pub(super) fn per_get(&self, shorter: &Self, gets: u64) -> Self {
        self.0.iter().map(|(part, longer)| (*part, (longer - shorter.of(part)) / gets as f64)).collect()
    }
}

/// Instructions spent at an address, by itself or by the function that it called and below.
#[derive(Debug)]
struct Spent {
    address: u64,
    callee: Option<String>,
    instructions: u64,
}

/// One function: the file of machine code that it is in, and what it spent.
type Function = (String, Vec<Spent>);

/// A profile: functions by name.
#[derive(Debug)]
pub(super) struct Profile(HashMap<String, Function>);

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// A line that does not belong there, by its number.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut functions: HashMap<String, Function> = HashMap::new();
        let (mut object, mut name, mut called, mut callee) = ("", "", "", None);
        // Behind the header come objects, functions and what they spent.
        let body = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("ob="));
        for (index, line) in body {
            match line.split_once('=').unwrap_or((line, "")) {
                ("ob", of) => object = of,
                ("fn", of) => name = of,
                ("cfn", of) => called = of,
                ("calls", _) => callee = Some(called.to_owned()),
                _ if line.starts_with("0x") => {
                    let spent =
                        address_and_number(line).with_context(|| format!("line {}: '{line}'", index + 1))?;
                    let function = functions.entry(name.to_owned()).or_default();
                    object.clone_into(&mut function.0);
                    let (address, instructions) = spent;
                    function.1.push(Spent { address, callee: callee.take(), instructions });
                }
                _ => {}
            }
        }
        Ok(Self(functions))
    }

    /// Every address of the program at `object` that spent something.
    pub(super) fn addresses(&self, object: &str) -> BTreeSet<u64> {
        let inside = self.0.values().filter(|(of, _)| of == object);
        inside.flat_map(|(_, spent)| spent).map(|spent| spent.address).collect()
    }

    /// Divides what was spent in `root` and below among the parts, by those of addresses of `object`.
    ///
    /// What is called from a place of a part belongs to that part with all below it. A function that the loop calls is
    /// divided by its own places; where others call it too, in the proportion that the loop's calls have.
    ///
    /// # Errors
    /// The profile has no function of that name.
    pub(super) fn divide(
        &self,
        root: &str,
        object: &str,
        parts: &HashMap<u64, &'static str>,
    ) -> anyhow::Result<Division> {
        ensure!(self.0.contains_key(root), "the profile has no function '{root}'");
        let inclusive = |name: &String| {
            self.0.get(name).map_or(0, |(_, spent)| spent.iter().map(|spent| spent.instructions).sum::<u64>())
        };
        let mut division = Division::default();
        let mut open = vec![(root, 1.0, 0)];
        while let Some((name, fraction, depth)) = open.pop() {
            let (of, spent) = &self.0[name];
            for Spent { address, callee, instructions } in spent {
                let instructions = fraction * *instructions as f64;
                let part = parts.get(address).filter(|_| of == object).copied().unwrap_or(LOOP);
                let below = callee.as_ref().map_or(0, inclusive);
                let part = match callee {
                    Some(callee) if callee.contains(IO_FUNCTIONS) => IO,
                    Some(callee) if part == LOOP && below > 0 && depth < DEPTH_MAX => {
                        open.push((callee.as_str(), instructions / below as f64, depth + 1));
                        continue;
                    }
                    _ => part,
                };
                *division.0.entry(part).or_default() += instructions;
            }
        }
        Ok(division)
    }
}

/// `0xADDRESS NUMBER`.
fn address_and_number(line: &str) -> Option<(u64, u64)> {
    let (address, number) = line.split_once(' ')?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    Some((address, number.trim().parse().ok()?))
}

/// The part of every address, by the functions that were inlined there.
pub(super) fn parts_of(
    binary: &Path,
    addresses: &BTreeSet<u64>,
) -> anyhow::Result<HashMap<u64, &'static str>> {
    let mut child = Command::new("addr2line")
        .args(["--addresses", "--functions", "--inlines", "--demangle", "--exe"])
        .arg(binary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run addr2line")?;
    let mut input = child.stdin.take().expect("stdin is piped");
    let lines: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    // From a thread of its own: it answers while it reads, and either pipe may be full.
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("writing does not panic")?;
    ensure!(output.status.success(), "addr2line ended with {}", output.status);
    Ok(parse_places(&String::from_utf8_lossy(&output.stdout)))
}

/// For each address a line with it, then function and place by turns, innermost first.
fn parse_places(text: &str) -> HashMap<u64, &'static str> {
    let of_address = |lines: &str| {
        let mut lines = lines.lines();
        let address = u64::from_str_radix(lines.next()?, 16).ok()?;
        Some((address, part_of(&lines.step_by(2).collect::<Vec<_>>())))
    };
    format!("\n{text}").split("\n0x").filter_map(of_address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `turn` (10 own at 0x1) calls the Io (100), `copy` from a place that encodes (6) and from the loop (2), and
    /// `decode` (40, of which 30 its own), which calls `copy` (10) from a place of the loop.
    const PROFILE: &str = "\
# callgrind format
positions: instr
events: Ir
summary: 158

ob=/bench
fl=a.rs
fn=turn
0x1 7
fi=b.rs
0x2 3
cfi=c.rs
cfn=canned::Canned::send
calls=2 0x50
0x1 100
cob=/libc
cfn=copy
calls=3 0x90
0x2 6
cob=/libc
cfn=copy
calls=1 0x90
0x1 2
cfn=decode
calls=1 0x60
0x1 40

fn=canned::Canned::send
0x50 100

fn=decode
0x60 30
cob=/libc
cfn=copy
calls=5 0x90
0x61 10

ob=/libc
fn=copy
0x1 18

totals: 158
";

    #[test]
    fn everything_below_the_root_is_divided() {
        let profile = Profile::parse(PROFILE).unwrap();
        assert_eq!(profile.addresses("/bench"), [0x1, 0x2, 0x50, 0x60, 0x61].into());
        let parts = [(0x2, "encode"), (0x60, "decode")].into();
        let division = profile.divide("turn", "/bench", &parts).unwrap();
        // Places of another object are never looked up.
        let expected = [(IO, 100.0), ("encode", 3.0 + 6.0), ("decode", 30.0), (LOOP, 7.0 + 2.0 + 10.0)];
        assert_eq!(division, expected.into_iter().collect());
        assert_eq!(division.total() + division.of(IO), 158.0);
        assert!(profile.divide("turns", "/bench", &parts).is_err());
    }

    #[test]
    fn slopes_are_differences_per_get() {
        let shorter = Division::from_iter([("schedule", 10.0), (LOOP, 5.0), (IO, 1.0)]);
        let longer = Division::from_iter([("schedule", 30.0), ("decode", 4.0), (LOOP, 5.0), (IO, 41.0)]);
        let expected = Division::from_iter([("schedule", 1.0), ("decode", 0.2), (LOOP, 0.0), (IO, 2.0)]);
        assert_eq!(longer.per_get(&shorter, 20), expected);
    }

    #[test]
    fn unreadable_lines_are_named() {
        let error = Profile::parse("ob=/bench\nfn=a\n0x1 many\n").unwrap_err();
        assert!(format!("{error:#}").contains("line 3: '0x1 many'"), "{error:#}");
    }

    #[test]
    fn inlined_functions_are_resolved() {
        let text = "\
0x0000000000000010
core::slice::index
/rustc/index.rs:3
brunt_workload::keys::KeyGenerator::write_key
crates/brunt-workload/src/keys.rs:7
brunt_engine::traffic::Traffic<C>::place
crates/brunt-engine/src/traffic.rs:9
0x0000000000000018
??
??:0
";
        assert_eq!(parse_places(text), [(0x10, "schedule"), (0x18, LOOP)].into());
    }

    #[test]
    fn outermost_known_function_decides_the_part() {
        let place = "brunt_engine::traffic::Traffic<C>::place";
        let loop_decodes = "brunt_engine::traffic::Traffic<C>::decode";
        let codec =
            |function| format!("<brunt_proto::memcached::text::TextCodec as brunt_proto::Codec>::{function}");
        let (encode, decode, decode_found) = (codec("encode"), codec("decode"), codec("decode_found"));
        let table: [(&[&str], &str); 10] = [
            (&[place], LOOP),
            (&["core::slice::index", place], LOOP),
            (&["core::slice::index", "brunt_workload::keys::KeyGenerator::write_key", place], "schedule"),
            (&["brunt_proto::out::Out::put", &encode, place], "encode"),
            (&[&decode], "decode"),
            (&[&decode_found, place], "decode"),
            (&[loop_decodes], LOOP),
            (&["brunt_workload::keys::KeyGenerator::is_key_of", loop_decodes], "check"),
            (
                &["brunt_stats::histogram::index", "brunt_engine::state::recording::Recording::record"],
                "record",
            ),
            (&[], LOOP),
        ];
        for (functions, expected) in table {
            assert_eq!(part_of(functions), expected, "{functions:?}");
        }
    }
}
