//! Inputs made of those in a corpus, without a fuzzer: as many as are asked for, always the same.

use brunt_plan::split_mix::output;

/// A number below `bound`, which is above 0.
fn below(seed: u64, draw: &mut u64, bound: usize) -> usize {
    *draw += 1;
    (output(seed, *draw) % bound as u64) as usize
}

/// The input of this number: a few changes to one of `inputs`, of which there is at least one.
pub(crate) fn mutated(inputs: &[Vec<u8>], number: u64) -> Vec<u8> {
    let (seed, mut draw) = (number, 0);
    let mut next = |bound: usize| below(seed, &mut draw, bound);
    let mut bytes = inputs[next(inputs.len())].clone();
    for _ in 0..=next(4) {
        let at = next(bytes.len() + 1);
        let end = (at + next(16)).min(bytes.len());
        match next(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.insert(at, next(256) as u8),
            // A piece again, and a piece of another input.
            3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            4 => {
                let other = &inputs[next(inputs.len())];
                let from = next(other.len() + 1);
                bytes.splice(at..end, other[from..(from + next(32)).min(other.len())].to_vec());
            }
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << next(8)),
        }
    }
    bytes
}
