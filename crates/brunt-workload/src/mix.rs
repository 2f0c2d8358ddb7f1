//! Sampler of operations by weight (`--mix`).

use crate::alias::AliasTable;
use crate::rng::Draw;
use brunt_plan::mix::Mix;
use brunt_plan::op::OpKind;

/// Draws kinds of operation by weight: one draw each, none where there is only one kind.
#[derive(Clone, Debug)]
pub struct KindChooser {
    /// The kind, where there is only one.
    only: Option<OpKind>,
    kinds: Vec<OpKind>,
    table: AliasTable,
    /// Which raw command; `None` where there is at most one.
    commands: Option<AliasTable>,
}

impl KindChooser {
    /// The sampler of this mix.
    pub fn new(mix: &Mix) -> Self {
        let weights: Vec<f64> = mix.weights.iter().map(|(_, weight)| f64::from(*weight)).collect();
        let kinds: Vec<OpKind> = mix.weights.iter().map(|(kind, _)| *kind).collect();
        let only = if let [only] = kinds[..] { Some(only) } else { None };
        let of_commands: Vec<f64> = mix.commands.iter().map(|weight| f64::from(*weight)).collect();
        let commands = (of_commands.len() > 1).then(|| AliasTable::new(&of_commands));
        Self { only, kinds, table: AliasTable::new(&weights), commands }
    }

    /// The kind of the next operation.
    #[inline]
    pub fn choose(&self, draw: &mut impl Draw) -> OpKind {
        match self.only {
            Some(only) => only,
            None => self.kinds[self.table.pick(draw.next_u64())],
        }
    }

    /// The number of the plan's command that the next raw operation is, counted from 1: one draw, none where there is only one.
    pub fn choose_command(&self, draw: &mut impl Draw) -> u16 {
        self.commands.as_ref().map_or(1, |table| table.pick(draw.next_u64()) as u16 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Rng};

    #[test]
    fn kinds_come_by_weight() {
        // Counts of 100 000 draws within 4 standard deviations of a binomial count.
        let table: [(&str, &[(OpKind, f64)]); 4] = [
            ("get", &[(OpKind::Get, 1.0)]),
            ("get=9,set=1", &[(OpKind::Get, 0.9), (OpKind::Set, 0.1)]),
            ("set=1,get=1", &[(OpKind::Get, 0.5), (OpKind::Set, 0.5)]),
            ("get=7,mget=2,set=1", &[(OpKind::Get, 0.7), (OpKind::Mget, 0.2), (OpKind::Set, 0.1)]),
        ];
        for (text, shares) in table {
            let chooser = KindChooser::new(&text.parse().unwrap());
            let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
            let mut counts = [0f64; OpKind::COUNT];
            (0..100_000).for_each(|_| counts[chooser.choose(&mut rng) as usize] += 1.0);
            for (kind, share) in shares {
                let bar = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
                let off = (counts[*kind as usize] - share * 100_000.0).abs();
                assert!(off <= bar, "{text}: {kind} is off by {off}");
            }
        }
    }

    #[test]
    fn commands_come_by_weight() {
        let mut rng = Rng::for_stream(1, Purpose::Ops, 0, 0);
        let chooser = KindChooser::new(&"raw=3+0+1".parse().unwrap());
        let mut counts = [0_i32; 4];
        (0..40_000).for_each(|_| counts[usize::from(chooser.choose_command(&mut rng))] += 1);
        // Four standard deviations.
        assert!((counts[1] - 30_000).abs() < 350 && counts[0] + counts[2] == 0, "{counts:?}");
        for text in ["get=1", "get=1,raw=5"] {
            assert_eq!(KindChooser::new(&text.parse().unwrap()).choose_command(&mut rng), 1);
        }
    }
}
