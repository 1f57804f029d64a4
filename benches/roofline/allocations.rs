//! The system's allocator, counting.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static CALLS: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn count(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    ALLOCATED.fetch_add(bytes, Relaxed);
}

// SAFETY: every call goes to `System` unchanged, and counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's duties are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size(), Relaxed);
        // SAFETY: as in `alloc`; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        FREED.fetch_add(layout.size(), Relaxed);
        // SAFETY: as in `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often memory was asked for during `work`, by any thread.
pub fn calls_during(work: impl FnOnce()) -> usize {
    let before = CALLS.load(Relaxed);
    work();
    CALLS.load(Relaxed) - before
}

/// Bytes that `make`'s value holds on the heap.
pub fn bytes_of<T>(make: impl FnOnce() -> T) -> usize {
    let held = || ALLOCATED.load(Relaxed) - FREED.load(Relaxed);
    let before = held();
    let value = make();
    let after = held();
    drop(value);
    after - before
}
