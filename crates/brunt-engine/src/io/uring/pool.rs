//! The buffers that the kernel puts what it receives into: a ring of addresses that both sides know.
//!
//! Received bytes stay here until the worker has handled them. Invariant: a buffer is either in the ring and owned by the
//! kernel, or lent to the worker until it is given back.

#![expect(unsafe_code, reason = "memory that the kernel writes to, and a ring that it reads")]

use io_uring::{Submitter, types::BufRingEntry};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Rings and buffers begin with a page; the kernel asks that of the ring.
const PAGE: usize = 4096;
/// The only group of buffers that a ring has.
pub(super) const GROUP: u16 = 0;

/// Memory that begins with a page.
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

impl Pages {
    fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes.max(1), PAGE).expect("a power of two, and far below isize::MAX");
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        Self { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The buffers of one ring.
pub(super) struct Pool {
    ring: Pages,
    memory: Pages,
    /// A power of two.
    count: u16,
    buffer_bytes: usize,
    /// Buffers given to the kernel so far, modulo 2¹⁶.
    tail: u16,
}

impl Pool {
    /// `count` buffers of `buffer_bytes` each, both powers of two; registered with `submitter`'s ring.
    ///
    /// # Safety
    /// The pool outlives that ring, and whatever the ring has under way.
    pub(super) unsafe fn register(
        submitter: &Submitter<'_>,
        count: u16,
        buffer_bytes: usize,
    ) -> io::Result<Self> {
        assert!(count.is_power_of_two() && buffer_bytes.is_power_of_two(), "{count} × {buffer_bytes}");
        let mut pool = Self {
            ring: Pages::new(usize::from(count) * size_of::<BufRingEntry>()),
            memory: Pages::new(usize::from(count) * buffer_bytes),
            count,
            buffer_bytes,
            tail: 0,
        };
        // SAFETY: the address is that of a page, there is room for `count` entries, and the caller keeps the pool alive.
        unsafe { submitter.register_buf_ring_with_flags(pool.ring.start.as_ptr() as u64, count, GROUP, 0)? };
        (0..count).for_each(|id| pool.give_back(id));
        Ok(pool)
    }

    /// Where a buffer begins, counted from the first.
    #[inline]
    pub(super) fn start(&self, id: u16) -> usize {
        usize::from(id) * self.buffer_bytes
    }

    /// Bytes of a buffer that is lent out, if they lie in one.
    #[inline]
    pub(super) fn bytes(&self, start: usize, len: usize) -> Option<&[u8]> {
        if start + len > self.memory.layout.size() {
            return None;
        }
        // SAFETY: within the memory, which was zeroed and so is initialised; the kernel writes to no buffer that is lent out.
        Some(unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr().add(start), len) })
    }

    /// Gives a buffer to the kernel.
    #[inline]
    pub(super) fn give_back(&mut self, id: u16) {
        debug_assert!(id < self.count);
        let place = usize::from(self.tail & (self.count - 1));
        let ring = self.ring.start.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the ring has `count` entries and `id` names one of as many buffers. The kernel reads an entry only when the
        // tail has moved past it, which the store below does last. The tail lies in the first entry's spare field, which
        // `set_addr`, `set_len` and `set_bid` leave alone.
        unsafe {
            let entry = &mut *ring.add(place);
            entry.set_addr(self.memory.start.as_ptr().add(self.start(id)) as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(ring).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}
