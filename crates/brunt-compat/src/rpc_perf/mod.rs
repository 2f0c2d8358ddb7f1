//! rpc-perf of 2017: what it writes of latencies second by second, [`trace`] as text and [`waterfall`] as a picture, both
//! from [`slices`] in the layout of [`buckets`].
//!
//! Not what carries out a front end: that is the binary.

pub mod buckets;
pub mod slices;
pub mod trace;
pub mod waterfall;
