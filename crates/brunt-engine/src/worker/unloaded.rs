//! The service time without load: a few requests one at a time, after the preload and before the schedule.
//!
//! They are ordinary operations of the warm-up, of a closed loop that thinks for a moment: in that moment nothing is in flight, and the
//! operation that has ended last is noted. Invariant: none is sent after [`TIME_MAX_NS`], and a lost connection ends it.

use crate::state::lane::Lanes;
use crate::state::recording::Ended;
use brunt_stats::sample::Times;

/// Requests at the most.
pub(crate) const REQUESTS: u64 = 50;
/// From one reply to the next request: long enough that the loop sees that nothing is in flight.
pub(crate) const THINK_NS: u64 = 50_000;
/// No request is sent later than this after the first.
const TIME_MAX_NS: u64 = 500_000_000;

/// Builds the lanes that start at this time.
pub(crate) type MakeUnloadedLanes = Box<dyn FnOnce(u64) -> Lanes + Send>;

/// The requests of one worker, if it is the one.
#[derive(Default)]
pub(crate) struct Unloaded {
    make_lanes: Option<MakeUnloadedLanes>,
    /// Workers of the host.
    workers: u32,
    /// When no more requests are sent, if there are any left; `u64::MAX` afterwards.
    pub until_ns: u64,
    last: Ended,
    service_ns: Vec<u64>,
}

impl Unloaded {
    pub(crate) fn new(make_lanes: Option<MakeUnloadedLanes>, workers: u32) -> Self {
        let room = if make_lanes.is_some() { REQUESTS as usize } else { 0 };
        Self { make_lanes, workers, service_ns: Vec::with_capacity(room), ..Self::default() }
    }

    /// Is this worker to ask, and has not begun?
    pub(crate) const fn is_waiting(&self) -> bool {
        self.make_lanes.is_some()
    }

    /// Begins where it waits and the preload of all workers is over.
    pub(crate) fn begin(&mut self, now_ns: u64, loaded: u32, last: Ended) -> Option<Lanes> {
        let lanes = self.make_lanes.take_if(|_| loaded >= self.workers)?(now_ns);
        (self.until_ns, self.last) = (now_ns + TIME_MAX_NS, last);
        Some(lanes)
    }

    /// Notes the operation that has ended last, if it is another one.
    pub(crate) fn note(&mut self, last: Ended) {
        if std::mem::replace(&mut self.last, last) != last {
            let times = Times { sent_ns: last.sent_ns, done_ns: last.done_ns, ..Times::default() };
            self.service_ns.push(times.service_ns());
        }
    }

    /// The median of the service times; `None` where no request was answered.
    pub(crate) fn median_ns(mut self) -> Option<u64> {
        self.service_ns.sort_unstable();
        self.service_ns.get(self.service_ns.len() / 2).copied()
    }
}
