//! Values as cells of a table, whatever form the table is written in.

use domain::{InstrumentId, InstrumentIx, JstDate, Money, Price, Quantity, TsNanos};
use ipc::Decimal;
use serde::{Serialize, Serializer};

use super::column::Kind;

/// Names of the instruments of a run, by their index.
#[derive(Debug, Clone)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub(crate) fn new(ids: &[InstrumentId]) -> Self {
        Self(ids.iter().map(ToString::to_string).collect())
    }

    /// The name of an instrument. An order for an index that does not exist was rejected; `unknown`
    /// stands for it.
    pub(super) fn of(&self, instrument: InstrumentIx) -> &str {
        self.0.get(usize::from(instrument.0)).map_or("unknown", String::as_str)
    }
}

/// A cell, as the kind of its column says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CellValue<'a> {
    /// Nothing, in a column that may be empty.
    Empty,
    /// A text.
    Text(&'a str),
    /// A whole number or a timestamp; it may be larger than 63 bits.
    Whole(i128),
    /// Exact yen.
    Yen(Decimal),
    /// A date.
    Date(JstDate),
}

impl<'a> CellValue<'a> {
    /// The text.
    pub(crate) const fn text(self) -> Option<&'a str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The whole number or timestamp.
    pub(crate) const fn whole(self) -> Option<i128> {
        if let Self::Whole(number) = self { Some(number) } else { None }
    }

    /// The value as 64 bits: 1/10,000 yen, days since 1970. None where it has or fits none.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Self::Whole(number) => i64::try_from(number).ok(),
            Self::Yen(amount) => Some(amount.units()),
            Self::Date(date) => Some(date.to_epoch_days().into()),
            Self::Empty | Self::Text(_) => None,
        }
    }
}

/// Exact amounts are texts, because JSON's numbers are not exact.
impl Serialize for CellValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.serialize_none(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Whole(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            Self::Yen(amount) => amount.serialize(serializer),
            Self::Date(date) => serializer.collect_str(date),
        }
    }
}

/// A type of value that a column can hold.
pub(crate) trait Cell<'a> {
    /// What a column of such values holds.
    const KIND: Kind;
    /// Whether a column of such values may be empty.
    const OPTIONAL: bool = false;

    /// The value as every form takes it.
    fn cell(self) -> CellValue<'a>;
}

macro_rules! cells {
    ($($value:ty: $kind:ident, $cell:expr;)+) => {
        $(impl<'a> Cell<'a> for $value {
            const KIND: Kind = Kind::$kind;

            fn cell(self) -> CellValue<'a> {
                let cell: fn(Self) -> CellValue<'a> = $cell;
                cell(self)
            }
        })+
    };
}

cells! {
    &'a str: Text, CellValue::Text;
    u32: Whole, |number| CellValue::Whole(number.into());
    u64: Whole, |number| CellValue::Whole(number.into());
    i64: Whole, |number| CellValue::Whole(number.into());
    Quantity: Whole, |quantity| quantity.shares().cell();
    TsNanos: Timestamp, |timestamp| timestamp.nanos().cell();
    JstDate: Date, CellValue::Date;
    Money: Yen, |money| CellValue::Yen(money.into());
    Price: Yen, |price| CellValue::Yen(price.into());
}

impl<'a, C: Cell<'a>> Cell<'a> for Option<C> {
    const KIND: Kind = C::KIND;
    const OPTIONAL: bool = true;

    fn cell(self) -> CellValue<'a> {
        match self.map(Cell::cell) {
            // CSV has one form for both.
            None | Some(CellValue::Text("")) => CellValue::Empty,
            Some(cell) => cell,
        }
    }
}
