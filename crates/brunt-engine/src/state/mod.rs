//! What a worker keeps of its run: sessions with their routes, connections, operations in flight, deadlines, health of
//! servers, and what it records.
//!
//! Nothing here sends, receives or waits: that is `traffic` and `io`. Times are parameters.

pub(crate) mod absences;
pub(crate) mod audit;
pub(crate) mod busy_period;
pub(crate) mod connection;
pub(crate) mod deadline_queue;
pub(crate) mod group;
pub(crate) mod hash_slots;
pub(crate) mod health;
pub(crate) mod ids;
pub(crate) mod in_flight;
pub(crate) mod lane;
pub(crate) mod lifetime;
pub(crate) mod ready;
pub(crate) mod recording;
pub(crate) mod redirect_state;
pub(crate) mod shared_slot;
pub(crate) mod slab;
pub(crate) mod stamper;
pub(crate) mod stops;
pub(crate) mod tokens;
pub(crate) mod trace_feed;
