//! An allocation that fails ends the process with a message; large needs of a plan are tried before.
//!
//! Invariant: no failed allocation aborts the process. What is tried is address space, which takes no memory until it is written to.

use crate::run_error::RunError;
use crate::state::in_flight::Entry;
use crate::state::lane::Picked;
use brunt_plan::plan::{Class, Load, Plan};
use brunt_plan::shard::Shard;
use brunt_stats::sample::Sample;
use brunt_workload::version_tracker::VersionTracker;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The system's allocator, but a failed allocation ends the process with a message.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: each call is the system allocator's; one that fails does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `System`.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(block, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Blocks of this size and above go back to the kernel when they are freed.
#[cfg(target_env = "gnu")]
const RETURNED_BYTES: libc::c_int = 256 << 10;

/// Keeps the resident memory of a long run level. To be called once, before other threads start. glibc would raise the size of blocks that it
/// returns to the kernel with each large block that is freed, and keep a heap for every thread, so that pages of results that
/// are written once a second leave ever more behind.
pub fn settle() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "mallopt is a function of C")]
    // SAFETY: both set a number.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// The block of an allocation, which is null if it failed.
fn checked(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() { exit_out_of_memory(bytes) } else { block }
}

/// Prints how much could not be allocated and ends the process. Allocates nothing, and runs no destructor, which might.
#[cold]
#[expect(unsafe_code, reason = "the standard library ends processes by handlers, which allocate")]
fn exit_out_of_memory(bytes: usize) -> ! {
    let mut text = [0; 256];
    let mut rest = &mut text[..];
    // What does not fit is cut off.
    let _ = writeln!(
        rest,
        "error: out of memory: cannot allocate {bytes} bytes (ulimit -v, or a full host); see which option asks for much: --connections, \
         --depth, --threads, --value-size, --multiget, --keys with --verify, samples-max"
    );
    let left = rest.len();
    // SAFETY: the text lives until the call returns.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len() - left) };
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// The first of these sizes in bytes that cannot be mapped beside those before it. All are unmapped again.
#[expect(unsafe_code, reason = "a mapping is tried")]
pub(crate) fn first_refused(sizes: &[usize]) -> Option<usize> {
    let mut tried = Vec::with_capacity(sizes.len());
    let is_refused = |bytes: &usize| {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping of its own, at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), (*bytes).max(1), access, flags, -1, 0) };
        if at != libc::MAP_FAILED {
            tried.push((at, (*bytes).max(1)));
        }
        at == libc::MAP_FAILED
    };
    let refused = sizes.iter().position(is_refused);
    for (at, bytes) in tried {
        // SAFETY: mapped above, and used nowhere else.
        unsafe { libc::munmap(at, bytes) };
    }
    refused
}

/// Of a connection: its send queue at least, and what is kept of it.
const CONNECTION_BYTES: usize = 8 << 10;
/// Of a worker: its stack, and three sets of histograms.
const WORKER_BYTES: usize = 6 << 20;

/// Of a slot of a class: its entry, its place among those that return from a lost connection, and that of a closed loop among those
/// that wait for one.
fn slot_bytes(class: &Class) -> usize {
    let places = if matches!(class.load, Load::Open { .. }) { 1 } else { 2 };
    size_of::<Entry>() + places * size_of::<Picked>()
}

/// Tries to map what workers with these shards need.
///
/// # Errors
/// The option whose need cannot be met, and how large it is.
pub(super) fn check(plan: &Plan, shards: &[Shard]) -> Result<(), RunError> {
    let of_shards = |need: &dyn Fn(&Class, usize) -> usize| -> usize {
        let of_shard = |shard: &Shard| -> usize {
            let own = plan.classes.iter().zip(&shard.classes);
            own.map(|(class, own)| need(class, own.connections.len() * class.paths.len())).sum()
        };
        shards.iter().map(of_shard).fold(0, usize::saturating_add)
    };
    let connections = of_shards(&|_, connections| connections);
    let slots = of_shards(&|class, connections| connections * class.depth as usize * slot_bytes(class));
    let depth = plan.classes.iter().map(|class| class.depth).max().unwrap_or(1);
    let value = plan.classes.iter().map(Class::value_bytes_max).max().unwrap_or(0);
    // Every worker tracks every key.
    let tracked =
        plan.classes.iter().filter(|class| plan.verify.is_some() && class.popularity.window().is_none());
    let tracked = tracked.map(|class| class.keyspace.keys).fold(0, u64::saturating_add);
    let trackers = (tracked as usize).saturating_mul(shards.len() * VersionTracker::KEY_BYTES);
    let samples = (plan.samples_max as usize).saturating_mul(size_of::<Sample>());
    let needs = [
        (format!("--value-size {value}"), value as usize),
        (format!("--threads {}", plan.threads), shards.len() * WORKER_BYTES),
        (format!("--connections {connections}"), connections * CONNECTION_BYTES),
        (format!("--depth {depth}, --connections {connections}"), slots),
        (format!("--verify, --keys {tracked}, --threads {}", plan.threads), trackers),
        (format!("samples-max {}", plan.samples_max), samples),
    ];
    let sizes = needs.each_ref().map(|(_, bytes)| *bytes);
    match first_refused(&sizes).map(|index| &needs[index]) {
        None => Ok(()),
        Some((option, bytes)) => Err(RunError::OutOfMemory { option: option.clone(), bytes: *bytes as u64 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_mapped_are_found() {
        // More than 47 bits address.
        let table = [(&[1, 1 << 20][..], None), (&[1, 1 << 50, 1], Some(1)), (&[], None)];
        for (sizes, expected) in table {
            assert_eq!(first_refused(sizes), expected, "{sizes:?}");
        }
    }
}
