//! Numbers by which the parts of a worker's state name each other, and the values that name nothing.
//!
//! Each is an index into one table of one worker; none leaves its worker.

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
