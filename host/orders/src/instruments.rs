//! The instruments that the desk's orders name, by their positions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{InstrumentIx, ShortText};

/// The instruments that commands and the broker have named, by position. The decoder of commands and the desk
/// share it, and it grows with new names.
#[derive(Debug, Default)]
pub struct InstrumentTable(Mutex<Instruments>);

#[derive(Debug, Default)]
struct Instruments {
    names: Vec<ShortText>,
    places: HashMap<ShortText, InstrumentIx>,
}

impl InstrumentTable {
    fn lock(&self) -> MutexGuard<'_, Instruments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of an instrument, which gets one if it has none; `None` if the table is full.
    #[must_use]
    pub fn place(&self, instrument_id: &str) -> Option<InstrumentIx> {
        let mut table = self.lock();
        if let Some(place) = table.places.get(instrument_id) {
            return Some(*place);
        }
        let place = InstrumentIx(u16::try_from(table.names.len()).ok()?);
        let name = ShortText::from(instrument_id);
        table.names.push(name.clone());
        table.places.insert(name, place);
        Some(place)
    }

    /// The instrument at a position of this table.
    #[must_use]
    pub fn name(&self, place: InstrumentIx) -> Option<ShortText> {
        self.lock().names.get(usize::from(place.0)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instrument_has_one_place_and_the_table_has_an_end() {
        let table = InstrumentTable::default();
        let first = table.place("7203.TSE").unwrap();
        assert_eq!(table.place("7203.TSE"), Some(first));
        assert_eq!(table.name(first).as_deref(), Some("7203.TSE"));
        assert_eq!(table.name(InstrumentIx(1)), None);
        for number in 1..=u32::from(u16::MAX) {
            assert!(table.place(&number.to_string()).is_some());
        }
        assert_eq!(table.place("6758.TSE"), None);
        assert_eq!(table.place("7203.TSE"), Some(first));
    }
}
