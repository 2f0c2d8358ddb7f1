//! A choice among weighted alternatives in constant time: the alias table (Walker 1977, built as by Vose 1991).

/// Picks index `i` with probability proportional to weight `i`, off by less than 2⁻³² of an even share.
#[derive(Clone, Debug)]
pub(crate) struct AliasTable {
    slots: Box<[AliasEntry]>,
}

#[derive(Clone, Copy, Debug)]
struct AliasEntry {
    /// The slot keeps a draw whose fraction is below this, in units of 2⁻³².
    keep_below: u32,
    /// Who gets the others; the slot itself where it keeps all.
    alias: u32,
}

impl AliasTable {
    /// Weights are finite, not negative, at least one of them positive; there are at most 2³² of them.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        assert!(sum > 0.0 && sum.is_finite(), "weights that sum to {sum}");
        let mut share: Vec<f64> = weights.iter().map(|weight| weight / sum * weights.len() as f64).collect();
        let mut slots: Vec<AliasEntry> =
            (0..weights.len() as u32).map(|own| AliasEntry { keep_below: 0, alias: own }).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..share.len()).partition(|i| share[*i] < 1.0);
        while let (Some(&taker), Some(&giver)) = (poor.last(), rich.last()) {
            poor.pop();
            slots[taker] =
                AliasEntry { keep_below: (share[taker] * 4_294_967_296.0) as u32, alias: giver as u32 };
            share[giver] -= 1.0 - share[taker];
            if share[giver] < 1.0 {
                rich.pop();
                poor.push(giver);
            }
        }
        // The remaining entries have a share of 1 up to rounding, and are their own aliases already.
        Self { slots: slots.into_boxed_slice() }
    }

    /// The index that these 64 random bits stand for.
    #[inline]
    pub(crate) fn pick(&self, bits: u64) -> usize {
        // One product yields both: the slot in its high half, an independent fraction in its low half.
        let product = u128::from(bits) * self.slots.len() as u128;
        let index = (product >> 64) as usize;
        let fraction = (product as u64 >> 32) as u32;
        let slot = self.slots[index];
        if fraction < slot.keep_below { index } else { slot.alias as usize }
    }
}

#[cfg(test)]
impl AliasTable {
    /// The probability of every index as the table stands, for checks against the weights.
    pub(crate) fn probabilities(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.slots.len()];
        for (index, slot) in self.slots.iter().enumerate() {
            let kept = f64::from(slot.keep_below) / 4_294_967_296.0;
            sums[index] += kept;
            sums[slot.alias as usize] += 1.0 - kept;
        }
        sums.iter().map(|sum| sum / self.slots.len() as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_the_weights() {
        for weights in [
            vec![1.0],
            vec![9.0, 1.0],
            vec![1.0, 0.0, 3.0],
            vec![1.0; 7],
            (1..=1_000).map(|k| 1.0 / f64::from(k)).collect(),
        ] {
            let sum: f64 = weights.iter().sum();
            let table = AliasTable::new(&weights);
            for (probability, weight) in table.probabilities().iter().zip(&weights) {
                let off = (probability - weight / sum).abs();
                assert!(off < 1e-9, "{weight} of {sum} became {probability}");
            }
        }
    }

    #[test]
    fn the_bits_decide() {
        let table = AliasTable::new(&[3.0, 1.0]);
        // Slot 0 is kept whole; the lower half of slot 1 is its own, the upper half is index 0's.
        for (bits, expected) in
            [(0, 0), (0x7FFF << 48, 0), (0x8000 << 48, 1), (0xBFFF << 48, 1), (0xC000 << 48, 0)]
        {
            assert_eq!(table.pick(bits), expected, "{bits:#x}");
        }
    }
}
