//! Writing into a component's memory.

use wasmtime::{AsContextMut, Error, Memory, Result, StoreContextMut, TypedFunc};

use crate::state::State;

/// Largest room that is kept from one call to the next.
const IMAGE_BYTES_KEPT: usize = 1 << 20;

/// The parts of a running module that moving values needs.
pub(crate) struct Guest {
    pub(crate) memory: Memory,
    /// `cabi_realloc(old, old_size, alignment, size) -> new`, the strategy's own allocator.
    pub(crate) realloc: TypedFunc<(u32, u32, u32, u32), u32>,
}

impl Guest {
    /// Asks the strategy for `size` bytes of its memory.
    fn allocate(
        &self,
        store: &mut StoreContextMut<'_, State>,
        alignment: u32,
        size: usize,
    ) -> Result<u32> {
        let wanted = u32::try_from(size)?;
        // The contract's imports are not to be called from inside the allocator.
        let may_leave = std::mem::replace(&mut store.data_mut().may_leave, false);
        let place = self.realloc.call(&mut *store, (0, 0, alignment, wanted))?;
        store.data_mut().may_leave = may_leave;
        let end = place as usize + size;
        if !place.is_multiple_of(alignment) || end > self.memory.data_size(&mut *store) {
            return Err(Error::msg(format!(
                "its allocator was asked for {size} bytes at a multiple of {alignment} and gave \
                 {place}, which is outside its memory or not such a multiple"
            )));
        }
        Ok(place)
    }

    /// Copies bytes into memory that the strategy then owns; tells where. Nothing is asked for
    /// when there are no bytes: no one may look there.
    pub(crate) fn copy_in(
        &self,
        store: &mut StoreContextMut<'_, State>,
        alignment: u32,
        bytes: &[u8],
    ) -> Result<u32> {
        if bytes.is_empty() {
            return Ok(alignment);
        }
        let place = self.allocate(store, alignment, bytes.len())?;
        let start = place as usize;
        self.memory.data_mut(store)[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(place)
    }

    /// Copies lists of numbers one after the other, as one list; tells where.
    pub(crate) fn copy_columns(
        &self,
        store: &mut StoreContextMut<'_, State>,
        columns: &[&[f64]],
    ) -> Result<u32> {
        let bytes = columns.iter().map(|column| size_of_val(*column)).sum();
        if bytes == 0 {
            return Ok(8);
        }
        let place = self.allocate(store, 8, bytes)?;
        let mut rest = &mut self.memory.data_mut(store)[place as usize..];
        for column in columns {
            let (target, after) = rest.split_at_mut(size_of_val(*column));
            target.copy_from_slice(bytemuck::cast_slice(column));
            rest = after;
        }
        Ok(place)
    }
}

/// Lays out records one after another, as they are to stand in memory; texts go there at once.
pub(crate) struct Lower<'a> {
    store: StoreContextMut<'a, State>,
    guest: &'a Guest,
    image: Vec<u8>,
}

impl<'a> Lower<'a> {
    pub(crate) fn new<C: AsContextMut<Data = State>>(store: &'a mut C, guest: &'a Guest) -> Self {
        let mut store = store.as_context_mut();
        let image = std::mem::take(&mut store.data_mut().image);
        Self { store, guest, image }
    }

    /// Pads to a multiple of `alignment`.
    #[inline]
    pub(crate) fn align(&mut self, alignment: usize) {
        self.image.resize(self.image.len().next_multiple_of(alignment), 0);
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) {
        self.image.push(value);
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.align(2);
        self.image.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        self.image.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u64(&mut self, value: u64) {
        self.align(8);
        self.image.extend_from_slice(&value.to_le_bytes());
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

    /// A `string`: its place and length; its bytes are copied now.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        let place = self.guest.copy_in(&mut self.store, 1, text.as_bytes())?;
        self.place_and_length(place, text.len())
    }

    /// An `option` of a `string`.
    pub(crate) fn optional_text(&mut self, text: Option<&str>) -> Result<()> {
        self.align(4);
        self.u8(u8::from(text.is_some()));
        match text {
            Some(text) => self.text(text),
            None => self.place_and_length(0, 0),
        }
    }

    /// A list inside a record, laid out by `each` with elements of the given alignment.
    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        alignment: u32,
        mut each: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        let outer = std::mem::take(&mut self.image);
        for item in items {
            each(self, item)?;
        }
        let inner = std::mem::replace(&mut self.image, outer);
        let place = self.guest.copy_in(&mut self.store, alignment, &inner)?;
        self.place_and_length(place, items.len())
    }

    fn place_and_length(&mut self, place: u32, length: usize) -> Result<()> {
        self.u32(place);
        self.u32(u32::try_from(length)?);
        Ok(())
    }

    /// A case of a variant: its number, then its payload in the room of the largest payload.
    pub(crate) fn variant(
        &mut self,
        case: u8,
        alignment: usize,
        room: usize,
        payload: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.align(alignment);
        self.u8(case);
        self.align(alignment);
        let end = self.image.len() + room;
        payload(self)?;
        self.image.resize(end, 0);
        Ok(())
    }

    /// Copies what was laid out into memory that the strategy then owns; tells where.
    pub(crate) fn finish(mut self, alignment: u32) -> Result<u32> {
        let place = self.guest.copy_in(&mut self.store, alignment, &self.image);
        self.give_back();
        place
    }

    /// Copies what was laid out to a place that the strategy named.
    pub(crate) fn finish_at(mut self, alignment: u32, place: u32) -> Result<()> {
        let range = place as usize..place as usize + self.image.len();
        match self.guest.memory.data_mut(&mut self.store).get_mut(range) {
            Some(target) if place.is_multiple_of(alignment) => {
                target.copy_from_slice(&self.image);
                self.give_back();
                Ok(())
            }
            _ => Err(Error::msg(format!("it wants an answer at {place}, where it cannot be"))),
        }
    }
    /// Keeps the room for the next values, unless it has become large.
    fn give_back(mut self) {
        if self.image.capacity() <= IMAGE_BYTES_KEPT {
            self.image.clear();
            self.store.data_mut().image = self.image;
        }
    }
}
