//! Writing into a component's memory. Its allocator is called as the engine's component model calls it: once for
//! each list and each text, empty ones too, a list before the texts inside it. So what a guest sees of its
//! memory is the same on both paths.

use wasmtime::{AsContextMut, Error, Result, StoreContextMut};

use crate::state::{Guest, State};

/// Largest buffer that is kept from one call to the next.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

impl Guest {
    /// Asks the strategy for `size` bytes of its memory; tells where they are, and gives them.
    #[inline]
    fn allocate<'s>(
        &self,
        store: &'s mut StoreContextMut<'_, State>,
        alignment: u32,
        size: usize,
    ) -> Result<(u32, &'s mut [u8])> {
        let wanted = u32::try_from(size)?;
        // The contract's imports are not to be called from inside the allocator.
        let may_leave = std::mem::replace(&mut store.data_mut().may_leave, false);
        let pointer = self.realloc.call(&mut *store, (0, 0, alignment, wanted))?;
        store.data_mut().may_leave = may_leave;
        let range = pointer as usize..pointer as usize + size;
        match self.memory.data_mut(store).get_mut(range) {
            Some(place) if pointer.is_multiple_of(alignment) => Ok((pointer, place)),
            _ => Err(Error::msg(format!(
                "its allocator was asked for {size} bytes at a multiple of {alignment} and gave \
                 {pointer}, which is outside its memory or not such a multiple"
            ))),
        }
    }

    /// Copies bytes into memory that the strategy then owns; tells where.
    pub(crate) fn copy_in(
        &self,
        store: &mut StoreContextMut<'_, State>,
        alignment: u32,
        bytes: &[u8],
    ) -> Result<u32> {
        let (pointer, place) = self.allocate(store, alignment, bytes.len())?;
        place.copy_from_slice(bytes);
        Ok(pointer)
    }

    /// Copies lists of numbers one after the other, as one list; tells where.
    pub(crate) fn copy_columns(
        &self,
        store: &mut StoreContextMut<'_, State>,
        columns: &[&[f64]],
    ) -> Result<u32> {
        let bytes = columns.iter().map(|column| size_of_val(*column)).sum();
        let (pointer, mut rest) = self.allocate(store, 8, bytes)?;
        for column in columns {
            let (target, after) = rest.split_at_mut(size_of_val(*column));
            target.copy_from_slice(bytemuck::cast_slice(column));
            rest = after;
        }
        Ok(pointer)
    }
}

/// Copies bytes to a place in a component's memory.
///
/// # Errors
/// When it cannot be there.
#[inline]
pub(crate) fn put_at(memory: &mut [u8], alignment: u32, pointer: u32, bytes: &[u8]) -> Result<()> {
    let range = pointer as usize..pointer as usize + bytes.len();
    match memory.get_mut(range) {
        Some(place) if pointer.is_multiple_of(alignment) => {
            place.copy_from_slice(bytes);
            Ok(())
        }
        _ => Err(no_place(pointer)),
    }
}

/// An answer cannot be where the strategy wants it.
#[cold]
fn no_place(pointer: u32) -> Error {
    let what = "which is outside its memory or not aligned";
    Error::msg(format!("it wants an answer at {pointer}, {what}"))
}

/// Bytes of an element of a list, and what its place is a multiple of.
pub(crate) type Layout = (usize, u32);

/// Lays out records one after another, as they are to stand in memory; lists and texts in them go there at once.
pub(crate) struct Lower<'a> {
    store: StoreContextMut<'a, State>,
    guest: &'a Guest,
    buffer: Vec<u8>,
}

impl<'a> Lower<'a> {
    pub(crate) fn new<C: AsContextMut<Data = State>>(store: &'a mut C, guest: &'a Guest) -> Self {
        let mut store = store.as_context_mut();
        let buffer = std::mem::take(&mut store.data_mut().buffer);
        Self { store, guest, buffer }
    }

    /// Pads to a multiple of `alignment`.
    #[inline]
    pub(crate) fn align(&mut self, alignment: usize) {
        let end = self.buffer.len().next_multiple_of(alignment);
        // Almost everything is aligned already.
        if end != self.buffer.len() {
            self.buffer.resize(end, 0);
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) {
        self.buffer.push(value);
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.align(2);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u64(&mut self, value: u64) {
        self.align(8);
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn s64(&mut self, value: i64) {
        self.u64(value.cast_unsigned());
    }

    /// An `option` of a number of 64 bits.
    pub(crate) fn optional_u64(&mut self, value: Option<u64>) {
        self.align(8);
        self.u8(u8::from(value.is_some()));
        self.u64(value.unwrap_or_default());
    }

    /// An `option` of an enumeration.
    pub(crate) fn optional_code(&mut self, value: Option<u8>) {
        self.u8(u8::from(value.is_some()));
        self.u8(value.unwrap_or_default());
    }

    /// Parts of a record that are laid out already.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Copies the bytes of a `string`; tells its pointer.
    #[inline]
    pub(crate) fn place(&mut self, text: &str) -> Result<u32> {
        self.guest.copy_in(&mut self.store, 1, text.as_bytes())
    }

    /// A `string`: its pointer and length; its bytes are copied now.
    #[inline]
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        let pointer = self.place(text)?;
        self.pointer_and_length(pointer, text.len())
    }

    /// An `option` of a `string`.
    pub(crate) fn optional_text(&mut self, text: Option<&str>) -> Result<()> {
        self.align(4);
        self.u8(u8::from(text.is_some()));
        match text {
            Some(text) => self.text(text),
            None => self.pointer_and_length(0, 0),
        }
    }

    /// A list inside a record, laid out by `each`.
    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        layout: Layout,
        each: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        let outer = std::mem::take(&mut self.buffer);
        let pointer = self.elements(items, layout, each)?;
        self.buffer = outer;
        self.pointer_and_length(pointer, items.len())
    }

    /// A list as an argument, laid out by `each`; tells its pointer.
    pub(crate) fn argument<T>(
        mut self,
        items: &[T],
        layout: Layout,
        each: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<u32> {
        let pointer = self.elements(items, layout, each)?;
        self.give_back();
        Ok(pointer)
    }

    /// Asks for the memory of a list, lays its elements out in the empty buffer, and copies them there.
    #[inline]
    fn elements<T>(
        &mut self,
        items: &[T],
        (bytes_each, alignment): Layout,
        mut each: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<u32> {
        let bytes = items.len() * bytes_each;
        let (pointer, _) = self.guest.allocate(&mut self.store, alignment, bytes)?;
        for item in items {
            each(self, item)?;
        }
        if self.buffer.len() != bytes {
            return Err(no_place(pointer));
        }
        // Memory never shrinks, so the place is still there.
        let memory = self.guest.memory.data_mut(&mut self.store);
        put_at(memory, alignment, pointer, &self.buffer)?;
        Ok(pointer)
    }

    #[inline]
    fn pointer_and_length(&mut self, pointer: u32, length: usize) -> Result<()> {
        self.u32(pointer);
        self.u32(u32::try_from(length)?);
        Ok(())
    }

    /// A case of a variant: its number, then its payload in the bytes of the largest payload.
    pub(crate) fn variant(
        &mut self,
        case: u8,
        alignment: usize,
        payload_bytes: usize,
        payload: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.align(alignment);
        self.u8(case);
        self.align(alignment);
        let end = self.buffer.len() + payload_bytes;
        payload(self)?;
        self.buffer.resize(end, 0);
        Ok(())
    }

    /// Copies what was laid out to an address that the strategy named.
    pub(crate) fn finish_at(mut self, alignment: u32, pointer: u32) -> Result<()> {
        let memory = self.guest.memory.data_mut(&mut self.store);
        put_at(memory, alignment, pointer, &self.buffer)?;
        self.give_back();
        Ok(())
    }

    /// Keeps the buffer for the next values, unless it has become large.
    fn give_back(mut self) {
        if self.buffer.capacity() <= BUFFER_BYTES_KEPT {
            self.buffer.clear();
            self.store.data_mut().buffer = self.buffer;
        }
    }
}
