//! What callgrind wrote, read: which address of which function spent how many instructions, and whom it called.
//!
//! Not a general reader: it takes the one form that [`OPTIONS`] ask for, with every name in full and every address
//! absolute. Invariant: the parts and the Io add up to everything that was spent below the root.

use super::part::Part;
use anyhow::{Context, ensure};
use std::collections::HashMap;

/// What callgrind must be told for a profile that can be read here.
pub(super) const OPTIONS: [&str; 5] =
    ["--tool=callgrind", "--dump-instr=yes", "--dump-line=no", "--compress-strings=no", "--compress-pos=no"];

/// How deep calls may nest below the root. The worker does not recurse; library code that did would be found here.
const DEPTH_MAX: usize = 64;

/// Instructions at one address.
#[derive(Debug)]
struct Spent {
    address: u64,
    instructions: u64,
}

/// Calls from one address to one function.
#[derive(Debug)]
struct Call {
    address: u64,
    callee: String,
    /// Spent in the callee and below.
    instructions: u64,
}

/// One function.
#[derive(Debug, Default)]
struct Function {
    /// The file of machine code that it is in.
    object: String,
    own: Vec<Spent>,
    calls: Vec<Call>,
}

impl Function {
    /// Spent in it and below.
    fn inclusive(&self) -> u64 {
        let own: u64 = self.own.iter().map(|spent| spent.instructions).sum();
        own + self.calls.iter().map(|call| call.instructions).sum::<u64>()
    }
}

/// A profile.
#[derive(Debug)]
pub(super) struct Profile {
    functions: HashMap<String, Function>,
}

/// Instructions of a worker by part, and those of the Io apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Division {
    pub(super) parts: [f64; Part::COUNT],
    pub(super) io: f64,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// A line that does not belong there, by its number.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut functions: HashMap<String, Function> = HashMap::new();
        let (mut object, mut name, mut callee) = (String::new(), String::new(), String::new());
        let mut is_call = false;
        // Behind the header come objects, functions and what they spent.
        let body = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("ob="));
        for (index, line) in body {
            if let Some(of) = line.strip_prefix("ob=") {
                of.clone_into(&mut object);
            } else if let Some(of) = line.strip_prefix("fn=") {
                of.clone_into(&mut name);
                functions.entry(name.clone()).or_default().object.clone_from(&object);
            } else if let Some(of) = line.strip_prefix("cfn=") {
                of.clone_into(&mut callee);
            } else if line.starts_with("calls=") {
                is_call = true;
            } else if line.starts_with("0x") {
                let (address, instructions) =
                    address_and_number(line).with_context(|| format!("line {}: '{line}'", index + 1))?;
                let function = functions.entry(name.clone()).or_default();
                if std::mem::take(&mut is_call) {
                    function.calls.push(Call { address, callee: callee.clone(), instructions });
                } else {
                    function.own.push(Spent { address, instructions });
                }
            }
        }
        Ok(Self { functions })
    }

    /// Every address of the program at `object` that spent something, ascending.
    pub(super) fn addresses(&self, object: &str) -> Vec<u64> {
        let inside = self.functions.values().filter(|function| function.object == object);
        let mut addresses: Vec<u64> = inside
            .flat_map(|function| {
                let calls = function.calls.iter().map(|call| call.address);
                function.own.iter().map(|spent| spent.address).chain(calls)
            })
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Divides what was spent in `root` and below among the parts. `is_io` tells the Io's functions by name, `part_of`
    /// says which part an address of `object` belongs to.
    ///
    /// What is called from a place of a part belongs to that part with all below it. A function that the loop calls is
    /// divided by its own places; where others call it too, in the proportion that the loop's calls have.
    ///
    /// # Errors
    /// When the profile has no function of that name.
    pub(super) fn divide(
        &self,
        root: &str,
        object: &str,
        is_io: impl Fn(&str) -> bool,
        part_of: impl Fn(u64) -> Part,
    ) -> anyhow::Result<Division> {
        ensure!(self.functions.contains_key(root), "the profile has no function '{root}'");
        let mut division = Division::default();
        let mut open = vec![(root, 1.0, 0)];
        while let Some((name, share, depth)) = open.pop() {
            let function = &self.functions[name];
            let part_at = |address| if function.object == object { part_of(address) } else { Part::Loop };
            for spent in &function.own {
                division.parts[part_at(spent.address) as usize] += share * spent.instructions as f64;
            }
            for call in &function.calls {
                let instructions = share * call.instructions as f64;
                let part = part_at(call.address);
                let callee = self.functions.get(&call.callee);
                let inclusive = callee.map_or(0, Function::inclusive);
                if is_io(&call.callee) {
                    division.io += instructions;
                } else if part != Part::Loop || inclusive == 0 || depth == DEPTH_MAX {
                    division.parts[part as usize] += instructions;
                } else {
                    open.push((&call.callee, instructions / inclusive as f64, depth + 1));
                }
            }
        }
        Ok(division)
    }
}

impl Division {
    /// Everything but the Io.
    pub(super) fn worker(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// The difference to a shorter run, per operation that this one had more.
    pub(super) fn slope(&self, shorter: &Self, ops: u64) -> Self {
        let slope = |longer: f64, shorter: f64| (longer - shorter) / ops as f64;
        Self {
            parts: std::array::from_fn(|index| slope(self.parts[index], shorter.parts[index])),
            io: slope(self.io, shorter.io),
        }
    }
}

/// `0xADDRESS NUMBER`.
fn address_and_number(line: &str) -> Option<(u64, u64)> {
    let (address, number) = line.split_once(' ')?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    Some((address, number.trim().parse().ok()?))
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
cfn=Canned::send
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

fn=Canned::send
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

    fn part_of(address: u64) -> Part {
        match address {
            0x2 => Part::Encode,
            0x60 => Part::Decode,
            _ => Part::Loop,
        }
    }

    #[test]
    fn everything_below_the_root_is_divided() {
        let profile = Profile::parse(PROFILE).unwrap();
        assert_eq!(profile.addresses("/bench"), [0x1, 0x2, 0x50, 0x60, 0x61]);
        let division = profile.divide("turn", "/bench", |name| name.contains("Canned"), part_of).unwrap();
        assert_eq!(division.io, 100.0);
        assert_eq!(division.parts[Part::Encode as usize], 3.0 + 6.0);
        assert_eq!(division.parts[Part::Decode as usize], 30.0);
        // Places of another object are never looked up.
        assert_eq!(division.parts[Part::Loop as usize], 7.0 + 2.0 + 10.0);
        assert_eq!(division.worker() + division.io, 158.0);
        assert!(profile.divide("turns", "/bench", |_| false, part_of).is_err());
    }

    #[test]
    fn slopes_are_differences_per_operation() {
        let shorter = Division { parts: [10.0, 0.0, 0.0, 0.0, 0.0, 5.0], io: 1.0 };
        let longer = Division { parts: [30.0, 0.0, 4.0, 0.0, 0.0, 5.0], io: 41.0 };
        let slope = longer.slope(&shorter, 20);
        assert_eq!(slope, Division { parts: [1.0, 0.0, 0.2, 0.0, 0.0, 0.0], io: 2.0 });
    }

    #[test]
    fn unreadable_lines_are_named() {
        let error = Profile::parse("ob=/bench\nfn=a\n0x1 many\n").unwrap_err();
        assert!(format!("{error:#}").contains("line 3: '0x1 many'"), "{error:#}");
    }
}
