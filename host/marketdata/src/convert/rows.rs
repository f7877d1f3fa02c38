//! Rows of trades between their text and their columns.

use std::fmt::Write;

use domain::price::UNITS_PER_YEN;
use domain::time::NANOS_PER_SECOND;
use domain::{JstDate, Price, ShortText, TsNanos, VendorCode, session};

use crate::parquet::Values;
use crate::reader::TradeRow;

/// Digits after the point of a price that a table keeps; rows with more keep their text.
pub(super) const DIGITS_MAX: usize = 9;

/// A row in the vendor's standard spelling, without line feed; its price with so many digits after
/// the point, or with as few as it needs.
pub(crate) fn push_line(line: &mut String, row: &TradeRow, price_digits: Option<usize>) {
    let timestamp = TsNanos::from_nanos(row.ts_event);
    let of_day = timestamp.jst_nanos_of_day();
    let seconds = of_day / NANOS_PER_SECOND;
    let session = if of_day < session::AFTERNOON_OPEN { "01" } else { "02" };
    // Writing to a text never fails.
    let _ = write!(
        line,
        "{},{},{:02}:{:02}:{:02}.{:06},{session},{}",
        timestamp.jst_date(),
        row.code,
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        of_day % NANOS_PER_SECOND / 1_000,
        Price::from_units(row.price),
    );
    if let Some(digits) = price_digits {
        let has_point = row.price % UNITS_PER_YEN != 0;
        let written = if has_point {
            line.len() - line.rfind('.').map_or(line.len(), |point| point + 1)
        } else {
            line.push('.');
            0
        };
        line.extend(std::iter::repeat_n('0', digits.saturating_sub(written)));
    }
    let _ = write!(line, ",{},{:012}", row.quantity, row.transaction_id);
}

/// How a row is written.
pub(super) enum Spelling<'a> {
    /// In the vendor's spelling, its price with so many digits.
    Digits(Option<usize>),
    /// Like this.
    Own(&'a str),
}

/// The columns of one row group.
pub(super) struct Rows {
    numbers: [Vec<Option<i64>>; 5],
    code: Vec<Option<ShortText>>,
    text: Vec<Option<ShortText>>,
}

impl Rows {
    pub(super) fn of(columns: Vec<Values>) -> Option<Self> {
        let mut columns = columns.into_iter();
        let mut next = || columns.next();
        let (Some(Values::Int(ts)), Some(Values::Text(code))) = (next(), next()) else {
            return None;
        };
        let mut number = || match next() {
            Some(Values::Int(values)) => Some(values),
            _ => None,
        };
        let numbers = [ts, number()?, number()?, number()?, number()?];
        let Some(Values::Text(text)) = next() else { return None };
        Some(Self { numbers, code, text })
    }

    pub(super) fn len(&self) -> usize {
        self.code.len()
    }

    /// The row at an index and how it is written.
    pub(super) fn at(&self, index: usize) -> Result<(TradeRow, Spelling<'_>), &'static str> {
        let [ts, price, quantity, id, digits] = &self.numbers;
        let text = self.text[index].as_deref();
        if text.is_some_and(|text| text.contains('\n')) {
            return Err("its text has a line feed inside");
        }
        let positive = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let code = self.code[index].as_deref().and_then(|code| VendorCode::new(code).ok());
        let date_max = JstDate::from_ymd_opt(2500, 12, 31).unwrap_or_default();
        let timestamp = positive(ts[index])
            .filter(|nanos| TsNanos::from_nanos(*nanos).jst_date() <= date_max)
            .ok_or("its moment is before 1970 or after 2500")?;
        let row = TradeRow {
            code_index: 0,
            code: code.ok_or("its code is no vendor code")?,
            ts_event: timestamp,
            price: price[index].filter(|price| *price > 0).ok_or("its price is not above 0")?,
            quantity: positive(quantity[index]).ok_or("its quantity is below 0")?,
            // An id that does not fit is in the row's own text.
            transaction_id: match (positive(id[index]), text) {
                (Some(id), _) => id,
                (None, Some(_)) => 0,
                (None, None) => return Err("its transaction id is missing"),
            },
        };
        let digits = match digits[index] {
            None => None,
            Some(digits) => Some(
                usize::try_from(digits)
                    .ok()
                    .filter(|digits| *digits <= DIGITS_MAX)
                    .ok_or("its price has an impossible number of digits")?,
            ),
        };
        Ok((row, text.map_or(Spelling::Digits(digits), Spelling::Own)))
    }
}
