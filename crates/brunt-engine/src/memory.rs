//! An allocation that fails ends the process with a message.
//!
//! Invariant: no failed allocation aborts the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

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
    // Workers run out of it together: the first one speaks for all, and ends the others.
    static IS_FIRST: AtomicBool = AtomicBool::new(true);
    while !IS_FIRST.swap(false, Ordering::Relaxed) {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
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
