//! The memory of a component. Events and orders are many small blocks that live for one call; the
//! system's allocator looks for a place for each. Here blocks of one size wait in a list, so that
//! taking one and giving it back is a few instructions. What is larger goes to the system.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;

/// Bytes of the smallest blocks; every further class has twice as many. Also the alignment of all.
const BLOCK_MIN: usize = 16;
/// Bytes of the largest blocks.
const BLOCK_MAX: usize = 1024;
const CLASSES: usize = (BLOCK_MAX / BLOCK_MIN).ilog2() as usize + 1;
/// Bytes that are asked of the system at once, for blocks of one class.
const CHUNK: usize = 4 * BLOCK_MAX;

/// A block that nobody has.
struct Free {
    next: *mut Self,
}

/// The lists of free blocks, by class.
struct Pools {
    free: UnsafeCell<[*mut Free; CLASSES]>,
}

/// The memory of this component.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static MEMORY: Pools = Pools::new();

// SAFETY: a component has one thread; this module is not there for targets with more.
unsafe impl Sync for Pools {}

/// The class of a layout; none for what goes to the system.
#[inline]
const fn class_of(layout: Layout) -> Option<usize> {
    if layout.size() > BLOCK_MAX || layout.align() > BLOCK_MIN {
        return None;
    }
    let blocks = layout.size().saturating_sub(1) / BLOCK_MIN;
    Some((usize::BITS - blocks.leading_zeros()) as usize)
}

impl Pools {
    const fn new() -> Self {
        Self { free: UnsafeCell::new([ptr::null_mut(); CLASSES]) }
    }

    /// A block of a class whose list is empty; the rest of its chunk fills the list.
    #[cold]
    fn refill(&self, class: usize) -> *mut u8 {
        let size = BLOCK_MIN << class;
        let Ok(layout) = Layout::from_size_align(CHUNK, BLOCK_MIN) else { return ptr::null_mut() };
        // SAFETY: the size is not zero.
        let chunk = unsafe { System.alloc(layout) };
        if chunk.is_null() {
            return chunk;
        }
        let mut next = ptr::null_mut();
        for block in 1..CHUNK / size {
            // SAFETY: the block lies inside the chunk, which is aligned to all that `Free` needs and
            // which nobody else has.
            unsafe {
                let block = chunk.add(block * size).cast::<Free>();
                block.write(Free { next });
                next = block;
            }
        }
        // SAFETY: one thread, and no reference into the lists outlives a call.
        unsafe { (*self.free.get())[class] = next };
        chunk
    }
}

/// What the host calls for the memory of what it hands over, by the rules of the canonical ABI: once
/// for each list and each text. It stands in for the one of the generated bindings, which goes
/// through four functions to get here.
///
/// # Safety
/// `old` is null, or a block of `old_size` bytes of that alignment that this allocator gave.
#[cfg(target_arch = "wasm32")]
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    old_size: usize,
    alignment: usize,
    size: usize,
) -> *mut u8 {
    // SAFETY: the host names alignments of the canonical ABI, and sizes that it could use.
    let layout = |size| unsafe { Layout::from_size_align_unchecked(size, alignment) };
    // SAFETY: as the caller promises.
    let block = unsafe {
        match (old_size, size) {
            (0, 0) => return alignment as *mut u8,
            (0, size) => MEMORY.alloc(layout(size)),
            (old_size, size) => MEMORY.realloc(old, layout(old_size), size),
        }
    };
    if block.is_null() {
        // The host must not get a place that is none.
        std::process::abort();
    }
    block
}

// SAFETY: blocks of a class have at least the bytes of its layouts and their alignment, and each is
// either in its list or with one owner; everything else is the system's.
unsafe impl GlobalAlloc for Pools {
    // SAFETY: the caller keeps the promises of `GlobalAlloc`.
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: one thread; what stands in a list is a free block.
        unsafe {
            let head = &mut (*self.free.get())[class];
            let block = *head;
            if block.is_null() {
                return self.refill(class);
            }
            *head = (*block).next;
            block.cast()
        }
    }

    // SAFETY: the caller keeps the promises of `GlobalAlloc`.
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(class) = class_of(layout) else {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(block, layout) };
        };
        // SAFETY: one thread; the caller gives the block back, and it is aligned and large enough.
        unsafe {
            let head = &mut (*self.free.get())[class];
            let block = block.cast::<Free>();
            block.write(Free { next: *head });
            *head = block;
        }
    }

    // SAFETY: the caller keeps the promises of `GlobalAlloc`.
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class_of(layout), class_of(wanted)) {
            (Some(old), Some(new)) if old == new => block,
            // SAFETY: both are the system's.
            (None, None) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: as the caller promises; the two blocks are not the same.
            _ => unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                moved
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn classes_hold_their_layouts() {
        for size in 1..=BLOCK_MAX {
            let class = class_of(layout(size)).unwrap();
            assert!(BLOCK_MIN << class >= size, "{size}");
            assert!(class == 0 || BLOCK_MIN << (class - 1) < size, "{size}");
        }
        assert_eq!(class_of(layout(BLOCK_MAX + 1)), None);
        assert_eq!(class_of(Layout::from_size_align(8, 2 * BLOCK_MIN).unwrap()), None);
    }

    #[test]
    fn blocks_are_apart_and_keep_what_is_in_them() {
        let pools = Pools::new();
        let mut taken = Vec::new();
        for round in 0..3_000_usize {
            let size = 1 + round * 37 % 1_500;
            // SAFETY: the layouts are the same when a block is taken, moved and given back.
            unsafe {
                let block = pools.alloc(layout(size));
                ptr::write_bytes(block, size as u8, size);
                taken.push((block, size));
                if round % 3 == 0 {
                    let (block, size) = taken.swap_remove(round % taken.len());
                    let larger = pools.realloc(block, layout(size), 2 * size);
                    let kept = std::slice::from_raw_parts(larger, size);
                    assert!(kept.iter().all(|byte| *byte == size as u8), "{size}");
                    pools.dealloc(larger, layout(2 * size));
                }
            }
        }
        for (block, size) in taken {
            // SAFETY: as above.
            unsafe {
                let kept = std::slice::from_raw_parts(block, size);
                assert!(kept.iter().all(|byte| *byte == size as u8), "{size}");
                pools.dealloc(block, layout(size));
            }
        }
    }
}
