//! Work on many items, several at a time.

use std::sync::{Mutex, PoisonError};

/// How many threads compute at once.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Works on all items, `at_once` at a time, begun in their order. Returns the results in the order of the items.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, at_once: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (queue, done) = (Mutex::new(items.into_iter().enumerate()), Mutex::new(Vec::new()));
    let worker = || {
        // The lock is given back before the work.
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((index, item)) = next() {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        for at_once in [1, 3, 9] {
            let results = super::map((0..100).collect(), at_once, |item: u32| {
                std::thread::yield_now();
                item * item
            });
            assert_eq!(results, (0..100).map(|item| item * item).collect::<Vec<_>>());
        }
    }
}
