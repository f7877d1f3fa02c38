//! Reading from a component's memory. Nothing in it is trusted.

use domain::GuestLimit;
use domain::fault::FaultKind;

use super::Enumeration;
use crate::config::Limits;

/// Reads records one after another; what is read in one call is limited.
pub(crate) struct Lift<'m> {
    memory: &'m [u8],
    at: usize,
    allowed: usize,
    left: usize,
}

type Lifted<T> = Result<T, FaultKind>;

fn broken<T>(what: impl Into<String>) -> Lifted<T> {
    Err(FaultKind::Protocol(what.into()))
}

impl<'m> Lift<'m> {
    /// Reads `memory`, at most `left` of the `allowed` bytes of one call.
    pub(crate) fn new(memory: &'m [u8], allowed: usize, left: usize) -> Self {
        Self { memory, at: 0, allowed, left }
    }

    /// Bytes that may still be read in this call.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Goes to an address; `bytes` must be there.
    pub(crate) fn go_to(&mut self, pointer: u32, alignment: u32, bytes: usize) -> Lifted<()> {
        let at = pointer as usize;
        if !pointer.is_multiple_of(alignment) {
            return broken(format!("the place {pointer} is not a multiple of {alignment}"));
        }
        self.slice(at, bytes)?;
        self.at = at;
        Ok(())
    }

    #[inline]
    fn slice(&self, at: usize, bytes: usize) -> Lifted<&'m [u8]> {
        let found = at.checked_add(bytes).and_then(|end| self.memory.get(at..end));
        match found {
            Some(found) => Ok(found),
            None => broken(format!("{bytes} bytes at {at} are outside its memory")),
        }
    }

    fn spend(&mut self, bytes: usize) -> Lifted<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(FaultKind::Budget {
                limit: GuestLimit::Result,
                used: self.allowed as u64 + 1,
                allowed: self.allowed as u64,
            }),
        }
    }

    /// Skips to a multiple of `alignment`.
    #[inline]
    pub(crate) fn align(&mut self, alignment: usize) {
        self.at = self.at.next_multiple_of(alignment);
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Lifted<[u8; N]> {
        self.align(N);
        let found = self.slice(self.at, N)?;
        self.at += N;
        // A slice of N bytes fills an array of N bytes.
        Ok(std::array::from_fn(|index| found[index]))
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Lifted<u8> {
        Ok(self.take::<1>()?[0])
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Lifted<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Lifted<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Lifted<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    #[inline]
    pub(crate) fn s64(&mut self) -> Lifted<i64> {
        Ok(self.u64()?.cast_signed())
    }

    pub(crate) fn f64(&mut self) -> Lifted<f64> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// Numbers of 64 bits, one after the other.
    #[inline]
    pub(crate) fn words<const N: usize>(&mut self) -> Lifted<[u64; N]> {
        self.align(8);
        let found = self.slice(self.at, size_of::<[u64; N]>())?;
        self.at += found.len();
        // As many as were asked for.
        let (words, _) = found.as_chunks();
        Ok(std::array::from_fn(|index| u64::from_le_bytes(words[index])))
    }

    /// A case of an enumeration.
    pub(crate) fn case<E: Enumeration>(&mut self) -> Lifted<E> {
        case(self.u8()?)
    }

    /// An `option` whose payload has the given alignment and size.
    pub(crate) fn option<T>(
        &mut self,
        alignment: usize,
        size: usize,
        payload: impl FnOnce(&mut Self) -> Lifted<T>,
    ) -> Lifted<Option<T>> {
        self.align(alignment);
        let present = self.u8()?;
        self.align(alignment);
        let end = self.at + size;
        let value = if is_some(present)? { Some(payload(self)?) } else { None };
        self.at = end;
        Ok(value)
    }

    /// A `string`.
    pub(crate) fn text(&mut self) -> Lifted<&'m str> {
        let (pointer, length) = (self.u32()?, self.u32()?);
        self.text_at(pointer, length)
    }

    /// A `string` within a limit, which is checked before anything of it is read.
    pub(crate) fn text_within(&mut self, limits: &Limits, limit: GuestLimit) -> Lifted<&'m str> {
        let (pointer, length) = (self.u32()?, self.u32()?);
        self.text_at_within(limits, limit, pointer, length)
    }

    /// The same at an address.
    #[inline]
    pub(crate) fn text_at_within(
        &mut self,
        limits: &Limits,
        limit: GuestLimit,
        pointer: u32,
        length: u32,
    ) -> Lifted<&'m str> {
        limits.allow(limit, length as usize)?;
        self.text_at(pointer, length)
    }

    /// An `option` of such a `string`.
    pub(crate) fn optional_text_within(
        &mut self,
        limits: &Limits,
        limit: GuestLimit,
    ) -> Lifted<Option<&'m str>> {
        self.option(4, 8, |lift| lift.text_within(limits, limit))
    }

    /// An `option` of a number of 64 bits.
    pub(crate) fn optional_u64(&mut self) -> Lifted<Option<u64>> {
        self.option(8, 8, Self::u64)
    }

    /// An `option` of a signed number of 64 bits.
    pub(crate) fn optional_s64(&mut self) -> Lifted<Option<i64>> {
        self.option(8, 8, Self::s64)
    }

    /// A text at an address.
    pub(crate) fn text_at(&mut self, pointer: u32, length: u32) -> Lifted<&'m str> {
        let length = length as usize;
        self.spend(length)?;
        match std::str::from_utf8(self.slice(pointer as usize, length)?) {
            Ok(text) => Ok(text),
            Err(error) => broken(format!("a text is not UTF-8: {error}")),
        }
    }

    /// A list of numbers at an address, copied into `out`, which has its length.
    pub(crate) fn f64s_at(&mut self, pointer: u32, out: &mut [f64]) -> Lifted<()> {
        let bytes = size_of_val(out);
        self.spend(bytes)?;
        self.go_to(pointer, 8, bytes)?;
        bytemuck::cast_slice_mut(out).copy_from_slice(self.slice(self.at, bytes)?);
        Ok(())
    }

    /// A list of texts at an address: the limits of their number and of the length of each.
    pub(crate) fn texts_at_within(
        &mut self,
        limits: &Limits,
        (number, each): (GuestLimit, GuestLimit),
        pointer: u32,
        length: u32,
    ) -> Lifted<Vec<String>> {
        limits.allow(number, length as usize)?;
        self.list_at(pointer, length, 4, 8, |lift| Ok(lift.text_within(limits, each)?.to_owned()))
    }

    /// A list inside a record.
    pub(crate) fn list<T>(
        &mut self,
        alignment: u32,
        size: usize,
        each: impl FnMut(&mut Self) -> Lifted<T>,
    ) -> Lifted<Vec<T>> {
        let (pointer, length) = (self.u32()?, self.u32()?);
        let back = self.at;
        let items = self.list_at(pointer, length, alignment, size, each)?;
        self.at = back;
        Ok(items)
    }

    /// A list at an address, with elements of the given alignment and size.
    pub(crate) fn list_at<T>(
        &mut self,
        pointer: u32,
        length: u32,
        alignment: u32,
        size: usize,
        each: impl FnMut(&mut Self) -> Lifted<T>,
    ) -> Lifted<Vec<T>> {
        let mut items = Vec::new();
        self.list_into(&mut items, pointer, length, alignment, size, each)?;
        Ok(items)
    }

    /// The same, behind the items that there are.
    pub(crate) fn list_into<T>(
        &mut self,
        items: &mut Vec<T>,
        pointer: u32,
        length: u32,
        alignment: u32,
        size: usize,
        mut each: impl FnMut(&mut Self) -> Lifted<T>,
    ) -> Lifted<()> {
        let length = length as usize;
        let bytes = length.saturating_mul(size);
        self.spend(bytes)?;
        self.go_to(pointer, alignment, bytes)?;
        items.reserve(length);
        for index in 0..length {
            self.at = pointer as usize + index * size;
            items.push(each(self)?);
        }
        Ok(())
    }
}

/// A case of an enumeration by its number.
#[inline]
pub(super) fn case<E: Enumeration>(code: u8) -> Lifted<E> {
    match E::of_code(code) {
        Some(case) => Ok(case),
        None => broken(format!("{code} is no case of {}", short_name::<E>())),
    }
}

/// Whether an `option` of this case has a value.
#[inline]
pub(super) fn is_some(case: u8) -> Lifted<bool> {
    match case {
        0 => Ok(false),
        1 => Ok(true),
        other => broken(format!("{other} is no case of an option")),
    }
}

fn short_name<E>() -> &'static str {
    let name = std::any::type_name::<E>();
    name.rsplit("::").next().unwrap_or(name)
}
