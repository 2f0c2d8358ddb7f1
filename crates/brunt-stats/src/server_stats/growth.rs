//! Is a cache still filling? Items and bytes, second by second of the measured window, all servers together.
//!
//! Not a test of stationarity: those look at what we measured. Here the server's own stock is asked, which tells of a false
//! steady state that no latency shows.

use super::{NEAR_NS, STEP_NS, ServerRecord, ServerStat};
use std::ops::Range;

/// How a stock went from the first point of the window to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The statistic that grew: items or bytes.
    pub of: ServerStat,
    /// At the first point.
    pub from: u64,
    /// At the last.
    pub to: u64,
    /// From how many points to the next it rose.
    pub rises: u64,
    /// Number of steps.
    pub steps: u64,
}

/// What servers have as a stock, of items and of bytes.
const STOCKS: [ServerStat; 4] =
    [ServerStat::CurrItems, ServerStat::Keys, ServerStat::Bytes, ServerStat::UsedMemory];

impl Growth {
    /// The growth of every stock that all servers tell of.
    pub fn of_stocks(records: &[ServerRecord], window: &Range<u64>) -> Vec<Self> {
        STOCKS.into_iter().filter_map(|stock| Self::of(stock, records, window.clone())).collect()
    }

    /// The growth of a stock within the window; `None` with fewer than two points at which all servers tell of it.
    pub fn of(statistic: ServerStat, records: &[ServerRecord], window: Range<u64>) -> Option<Self> {
        let at = |at_ns: u64| -> Option<u64> {
            let of = |record: &ServerRecord| record.nearest(at_ns, NEAR_NS)?.get(statistic);
            (!records.is_empty()).then(|| records.iter().map(of).sum()).flatten()
        };
        let starts = (0..).map(|index| window.start + index * STEP_NS);
        let mut instants: Vec<u64> = starts.take_while(|at_ns| *at_ns < window.end).collect();
        // A last piece that is short has its snapshots in common with the one before it.
        if instants.last().is_some_and(|last_ns| window.end - last_ns < STEP_NS && instants.len() > 1) {
            instants.pop();
        }
        instants.push(window.end);
        let points: Vec<u64> = instants.into_iter().filter_map(at).collect();
        let (from, to) = (*points.first()?, *points.last()?);
        let rises = points.windows(2).filter(|pair| pair[1] > pair[0]).count() as u64;
        let steps = points.len() as u64 - 1;
        (steps > 0).then_some(Self { of: statistic, from, to, rises, steps })
    }

    /// By which part of what it came to it grew; negative, shrank.
    pub fn share(&self) -> f64 {
        if self.to == 0 { 0.0 } else { (self.to as f64 - self.from as f64) / self.to as f64 }
    }
}
