//! Pieces of the run's report under the names by which reports of campaigns and comparisons know them.

pub(crate) mod conclusion;

pub(crate) use crate::run_document::head;

pub(crate) mod latency {
    pub(crate) use crate::quantity::rate;
}
