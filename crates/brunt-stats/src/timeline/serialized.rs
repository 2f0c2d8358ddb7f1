//! A timeline on its way through a file: plain lists, and what must be true of them.
//!
//! Not another form of the numbers. Invariant: what is read back lies on its grid, and adds up without going past what a number
//! can hold, so that whatever looks at it needs not look again.

use super::Timeline;
use super::grid::Grid;
use super::slice::{Slice, counts_of_row};
use crate::client_time::ClientTime;
use crate::counts::Counts;
use crate::interval::SLICE_NS;
use crate::server::ServerCounts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// No count of a slice is as large: a million requests a second for nine years. A million slices of such counts add up.
const COUNT_MAX: u64 = 1 << 48;
/// Nor is a sum of nanoseconds: as many values of five hours each.
const SUM_MAX: u128 = 1 << 92;

/// The slices, not looked at yet.
#[derive(Serialize, Deserialize)]
pub(super) struct SerializedTimeline {
    grid: Grid,
    /// Ascending: the beginning of a cell, and its slice.
    slices: Vec<(u64, Slice)>,
    /// What the client did in each slice; none where no clock was read.
    pub(super) client: Vec<ClientTime>,
}

impl From<Timeline> for SerializedTimeline {
    fn from(timeline: Timeline) -> Self {
        let mut client: Vec<ClientTime> = timeline.slices.values().map(|slice| slice.client).collect();
        if client.iter().all(|time| *time == ClientTime::default()) {
            client.clear();
        }
        let slices =
            timeline.slices.into_iter().map(|(cell_ns, slice)| (cell_ns, Arc::unwrap_or_clone(slice)));
        Self { grid: timeline.grid, slices: slices.collect(), client }
    }
}

impl TryFrom<SerializedTimeline> for Timeline {
    type Error = &'static str;

    fn try_from(carried: SerializedTimeline) -> Result<Self, Self::Error> {
        let SerializedTimeline { grid, mut slices, client } = carried;
        check_grid(&grid)?;
        if !slices.iter().map(|(cell_ns, _)| cell_ns).is_sorted_by(|one, other| one < other) {
            return Err("slices that are not in the order of time");
        }
        if !slices.iter().all(|(cell_ns, _)| grid.cell_of(*cell_ns) == *cell_ns) {
            return Err("a slice that is not on the grid of slices");
        }
        let servers = slices.first().map_or(0, |(_, slice)| slice.servers.len());
        if slices.iter().any(|(_, slice)| slice.servers.len() != servers) {
            return Err("slices of different numbers of servers");
        }
        slices.iter().try_for_each(|(_, slice)| check(slice))?;
        if !client.is_empty() && client.len() != slices.len() || !client.iter().all(ClientTime::is_sane) {
            return Err("other times of the client than those of its slices");
        }
        let client = client.into_iter().chain(std::iter::repeat(ClientTime::default()));
        slices.iter_mut().zip(client).for_each(|((_, slice), client)| slice.client = client);
        let slices = slices.into_iter().map(|(cell_ns, slice)| (cell_ns, Arc::new(slice))).collect();
        Ok(Self { grid, slices, bucket_bits: 0 })
    }
}

fn check_grid(grid: &Grid) -> Result<(), &'static str> {
    let Grid { lead_ns, slice_ns, asked_ns, .. } = *grid;
    let is_width =
        |width_ns: u64| (SLICE_NS..1 << 62).contains(&width_ns) && width_ns.is_multiple_of(SLICE_NS);
    let is_power =
        |width_ns: u64, of_ns: u64| width_ns.is_multiple_of(of_ns) && (width_ns / of_ns).is_power_of_two();
    let fits = |width_ns: u64| match asked_ns {
        Some(asked_ns) => asked_ns.is_multiple_of(width_ns) || is_power(width_ns, asked_ns),
        None => is_power(width_ns, SLICE_NS),
    };
    let widths = [lead_ns, slice_ns];
    (widths.into_iter().chain(asked_ns).all(is_width) && widths.into_iter().all(fits))
        .then_some(())
        .ok_or("slices of a length that there is not")
}

fn check(slice: &Slice) -> Result<(), &'static str> {
    let Slice { start_ns, end_ns, activity, preload, recorded_ns, keys, warmup_keys, .. } = slice;
    if start_ns > end_ns {
        return Err("a slice that ends before it begins");
    }
    if activity.values().zip(preload.values()).any(|(all, part)| part > all) {
        return Err("a slice with more of the preload than there is");
    }
    let keys = keys.values().chain(warmup_keys.values());
    let servers = slice.servers.iter().flat_map(ServerCounts::values);
    let rows = slice.rows.iter().flat_map(counts_of_row);
    let mut all = activity.values().chain(keys).chain(servers).chain(rows);
    let histograms = || slice.rows.iter().map(|row| &row.response).chain([&slice.warmup_response]);
    let mut backlogs = slice.rows.iter().map(|row| row.backlog.unsigned_abs());
    if all.any(|count| count >= COUNT_MAX)
        || backlogs.any(|count| count >= COUNT_MAX)
        || *recorded_ns >= 1 << 62
        || histograms().any(|of| of.count() >= COUNT_MAX || of.moments().sum >= SUM_MAX)
    {
        return Err("a slice with more than a run can hold");
    }
    let order = slice.rows.iter().map(|row| (row.class, row.op));
    order.is_sorted_by(|one, other| one < other).then_some(()).ok_or("a slice whose rows are in no order")
}
