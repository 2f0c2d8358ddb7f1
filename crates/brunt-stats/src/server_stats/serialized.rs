//! A server's record on its way through a file: of each snapshot what differs from the one before.
//!
//! Not another form of the numbers: most of what a server says stays the same from second to second. Invariant: what is read back is what
//! was written.

use super::{ServerRecord, ServerStat, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The snapshots in the order of time, each against the one before; the prepared one against the first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SerializedRecord {
    snapshots: Vec<Changes>,
    prepared: Option<Changes>,
    trouble: Option<String>,
    is_complete: bool,
}

/// A snapshot with what is not as it was before, `None` where the server no longer says it.
#[derive(Serialize, Deserialize)]
struct Changes {
    asked_ns: u64,
    at_ns: u64,
    version: Option<String>,
    values: BTreeMap<ServerStat, Option<u64>>,
}

impl Changes {
    fn of(snapshot: &Snapshot, before: Option<&Snapshot>) -> Self {
        let values = snapshot.changes_since(before).collect();
        let Snapshot { asked_ns, at_ns, version, .. } = snapshot.clone();
        Self { asked_ns, at_ns, version, values }
    }

    fn after(self, before: Option<&Snapshot>) -> Snapshot {
        let Self { asked_ns, at_ns, version, values: changed } = self;
        let mut values = before.map_or([None; ServerStat::COUNT], |before| before.values);
        changed.into_iter().for_each(|(statistic, value)| values[statistic as usize] = value);
        Snapshot { asked_ns, at_ns, version, values }
    }
}

impl From<ServerRecord> for SerializedRecord {
    fn from(record: ServerRecord) -> Self {
        let ServerRecord { snapshots, prepared, trouble, is_complete } = record;
        let befores = std::iter::once(None).chain(snapshots.iter().map(Some));
        Self {
            prepared: prepared.map(|prepared| Changes::of(&prepared, snapshots.first())),
            snapshots: snapshots
                .iter()
                .zip(befores)
                .map(|(held, before)| Changes::of(held, before))
                .collect(),
            trouble,
            is_complete,
        }
    }
}

impl From<SerializedRecord> for ServerRecord {
    fn from(carried: SerializedRecord) -> Self {
        let mut snapshots: Vec<Snapshot> = Vec::with_capacity(carried.snapshots.len());
        for changes in carried.snapshots {
            snapshots.push(changes.after(snapshots.last()));
        }
        let prepared = carried.prepared.map(|changes| changes.after(snapshots.first()));
        Self { snapshots, prepared, trouble: carried.trouble, is_complete: carried.is_complete }
    }
}
