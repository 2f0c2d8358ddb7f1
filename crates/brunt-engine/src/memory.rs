//! Memory that cannot be had: an allocation that fails ends the process with a sentence, and what a plan needs most is tried before.
//!
//! Invariant: no end of the memory is an abort. What is tried here is address space, which costs nothing until it is written to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The allocator of a program: the system's, but for what happens when there is no more.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: each call is the system allocator's; one that fails does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `System`.
        had(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        had(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        had(unsafe { System.realloc(block, layout, bytes) }, bytes)
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

fn had(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() { end(bytes) } else { block }
}

/// Says what could not be had and ends the process, without memory of its own. No destructor runs: they might want some.
#[cold]
#[expect(unsafe_code, reason = "the standard library ends processes by handlers, which allocate")]
fn end(bytes: usize) -> ! {
    let mut text = [0; 256];
    let mut rest = &mut text[..];
    // What has no room is left out.
    let _ = writeln!(
        rest,
        "error: out of memory: cannot have {bytes} bytes more (ulimit -v, or a full host); give fewer --connections, --depth or --threads, \
         or a smaller --value-size"
    );
    let left = rest.len();
    // SAFETY: the text lives until the call returns.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len() - left) };
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// The first of these sizes in bytes that cannot be had beside those before it; all are given back.
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
        // SAFETY: mapped above, and nobody else knows of it.
        unsafe { libc::munmap(at, bytes) };
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_found() {
        // More than 47 bits address.
        let table = [(&[1, 1 << 20][..], None), (&[1, 1 << 50, 1], Some(1)), (&[], None)];
        for (sizes, expected) in table {
            assert_eq!(first_refused(sizes), expected, "{sizes:?}");
        }
    }
}
