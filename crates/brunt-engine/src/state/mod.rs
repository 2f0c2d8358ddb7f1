//! What a worker keeps of its run: sessions with their routes, connections, operations in flight, deadlines, health of
//! servers, and what it records.
//!
//! Nothing here sends, receives or waits: that is `traffic` and `io`. Times are parameters.

pub(crate) mod absences;
pub(crate) mod audit;
pub(crate) mod busy_period;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod deadline_queue;
pub(crate) mod dispatch;
pub(crate) mod group;
pub(crate) mod hash_slots;
pub(crate) mod health;
pub(crate) mod in_flight;
pub(crate) mod lane;
pub(crate) mod lifetime;
pub(crate) mod ready;
pub(crate) mod recording;
pub(crate) mod slab;
pub(crate) mod stamper;

// Numbers by which the parts of this state name each other: each is an index into one table of one worker.

/// Index of a route within its worker.
pub(crate) type RouteId = u32;

/// Index of an entry in flight; [`NO_ENTRY`] is none.
pub(crate) type EntryId = u32;
/// The end of a chain.
pub(crate) const NO_ENTRY: EntryId = u32::MAX;

/// Index of a group; [`NO_GROUP`] is none.
pub(crate) type GroupId = u32;
/// The operation is whole.
pub(crate) const NO_GROUP: GroupId = u32::MAX;

/// Index of a shared slot; [`NO_SHARED_SLOT`] is none.
pub(crate) type SharedSlotId = u32;
/// The operation has its slot to itself.
pub(crate) const NO_SHARED_SLOT: SharedSlotId = u32::MAX;

/// Index of a redirect state; [`NO_REDIRECT`] is none.
pub(crate) type RedirectStateId = u32;
/// The operation is where it was sent at first.
pub(crate) const NO_REDIRECT: RedirectStateId = u32::MAX;
