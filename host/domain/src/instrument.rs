//! Instruments of the Tokyo market: identifiers, vendor codes, tick sizes and daily price limits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::price::{Price, Quantity, UNITS_PER_YEN};

/// The only venue suffix of phases O0 to O2 (specification 2, `instrument_id`).
pub const TOKYO_SUFFIX: &str = "TSE";

/// Position of an instrument in the list given to a strategy at init; at most
/// [`crate::limits::INSTRUMENTS_MAX`] exist.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct InstrumentIx(pub u16);

/// Why a text is no instrument identifier or vendor code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InstrumentError {
    /// Not `<symbol>.<venue>`.
    #[error("`{0}` is not an instrument id; write the symbol and the venue, like `7203.TSE`")]
    NoVenue(String),
    /// A venue other than Tokyo.
    #[error("`{0}` names the venue `{1}`; only `TSE` (Tokyo) is known")]
    UnknownVenue(String, String),
    /// The symbol is no Tokyo code.
    #[error("`{0}` is not a Tokyo code: 4 or 5 characters, digits and capital letters")]
    BadCode(String),
}

fn is_code_text(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
}

/// The market-data vendor's five-character code: the exchange's four places and one more, which is
/// `0` for ordinary shares (`13010`, `130A0`) and another digit for share classes (`25935`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VendorCode([u8; 5]);

impl VendorCode {
    /// A vendor code from its five characters.
    ///
    /// # Errors
    /// [`InstrumentError::BadCode`] when they are not five digits or capital letters.
    pub fn new(text: &str) -> Result<Self, InstrumentError> {
        match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(bytes) if is_code_text(text) => Ok(Self(bytes)),
            _ => Err(InstrumentError::BadCode(text.to_owned())),
        }
    }

    /// The five characters.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 5] {
        &self.0
    }

    /// The five characters as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only digits and capital letters get in, so this is never the empty text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The instrument: a trailing `0` is dropped, any other fifth place is kept.
    #[must_use]
    pub fn instrument_id(&self) -> InstrumentId {
        let symbol = self.as_str();
        InstrumentId(format!("{}.{TOKYO_SUFFIX}", symbol.strip_suffix('0').unwrap_or(symbol)))
    }
}

impl fmt::Display for VendorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An instrument as our own surface names it: `<symbol>.TSE`, for example `1306.TSE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstrumentId(String);

impl InstrumentId {
    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the venue.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.0.split_once('.').map_or(self.0.as_str(), |(symbol, _)| symbol)
    }

    /// The vendor's code: four places get a trailing `0`, five stay as they are.
    ///
    /// # Errors
    /// Never for an id made by parsing; the error type is kept for ids of later venues.
    pub fn vendor_code(&self) -> Result<VendorCode, InstrumentError> {
        let symbol = self.symbol();
        if symbol.len() == 4 {
            VendorCode::new(&format!("{symbol}0"))
        } else {
            VendorCode::new(symbol)
        }
    }
}

impl FromStr for InstrumentId {
    type Err = InstrumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (symbol, venue) =
            text.split_once('.').ok_or_else(|| InstrumentError::NoVenue(text.to_owned()))?;
        if venue != TOKYO_SUFFIX {
            return Err(InstrumentError::UnknownVenue(text.to_owned(), venue.to_owned()));
        }
        if !matches!(symbol.len(), 4 | 5) || !is_code_text(symbol) {
            return Err(InstrumentError::BadCode(symbol.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for InstrumentId {
    type Error = InstrumentError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<InstrumentId> for String {
    fn from(id: InstrumentId) -> Self {
        id.0
    }
}

impl fmt::Display for InstrumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A band of a tick table: prices up to and including `up_to` move in steps of `tick`, both in
/// 1/10,000 yen.
struct TickBand {
    up_to: i64,
    tick: i64,
}

const fn band(up_to_yen: i64, tick_units: i64) -> TickBand {
    TickBand { up_to: up_to_yen.saturating_mul(UNITS_PER_YEN), tick: tick_units }
}

const YEN: i64 = UNITS_PER_YEN;

/// Ordinary shares.
const NORMAL: &[TickBand] = &[
    band(3_000, YEN),
    band(5_000, 5 * YEN),
    band(30_000, 10 * YEN),
    band(50_000, 50 * YEN),
    band(300_000, 100 * YEN),
    band(500_000, 500 * YEN),
    band(3_000_000, 1_000 * YEN),
    band(5_000_000, 5_000 * YEN),
    band(30_000_000, 10_000 * YEN),
    band(50_000_000, 50_000 * YEN),
    band(i64::MAX, 100_000 * YEN),
];

/// Shares of the TOPIX500 index.
const TOPIX500: &[TickBand] = &[
    band(1_000, YEN / 10),
    band(3_000, YEN / 2),
    band(10_000, YEN),
    band(30_000, 5 * YEN),
    band(100_000, 10 * YEN),
    band(300_000, 50 * YEN),
    band(1_000_000, 100 * YEN),
    band(3_000_000, 500 * YEN),
    band(10_000_000, 1_000 * YEN),
    band(30_000_000, 5_000 * YEN),
    band(i64::MAX, 10_000 * YEN),
];

/// Exchange-traded funds with a trading unit of 1.
const ETF: &[TickBand] = &[
    band(10_000, YEN),
    band(30_000, 5 * YEN),
    band(100_000, 10 * YEN),
    band(300_000, 50 * YEN),
    band(1_000_000, 100 * YEN),
    band(3_000_000, 500 * YEN),
    band(10_000_000, 1_000 * YEN),
    band(30_000_000, 5_000 * YEN),
    band(i64::MAX, 10_000 * YEN),
];

/// The smallest price step of an instrument, by price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TickTable {
    /// Ordinary shares.
    Normal,
    /// Shares of the TOPIX500 index.
    Topix500,
    /// Exchange-traded funds with a trading unit of 1.
    Etf,
    /// One step at every price.
    Fixed(Price),
}

impl TickTable {
    /// The exchange's own tables, coarsest first.
    pub const OFFICIAL: [Self; 3] = [Self::Normal, Self::Etf, Self::Topix500];

    const fn table(self) -> &'static [TickBand] {
        match self {
            Self::Normal => NORMAL,
            Self::Topix500 => TOPIX500,
            Self::Etf => ETF,
            Self::Fixed(_) => &[],
        }
    }

    /// The step at `price`. A price on a band's upper edge belongs to the lower band.
    #[must_use]
    pub fn tick_at(self, price: Price) -> Price {
        if let Self::Fixed(tick) = self {
            return tick;
        }
        let found = self.table().iter().find(|band| price.units() <= band.up_to);
        Price::from_units(found.map_or(YEN, |band| band.tick))
    }

    /// The bands from the lowest: the highest price of each, and its step.
    pub fn bands(self) -> impl Iterator<Item = (Price, Price)> {
        let fixed = match self {
            Self::Fixed(tick) => Some((Price::from_units(i64::MAX), tick)),
            _ => None,
        };
        let table = self.table().iter();
        fixed
            .into_iter()
            .chain(table.map(|band| (Price::from_units(band.up_to), Price::from_units(band.tick))))
    }

    /// The price `steps` steps above `price`, or below it where `steps` is negative, each step as
    /// wide as the band that it leads into or out of says: one step above 3,000 yen of the normal
    /// table is 3,005. A price off the grid is first moved onto it in the same direction. Never
    /// below the lowest price of the grid, and at the end of 64 bits it stays there.
    #[must_use]
    pub fn moved(self, price: Price, steps: i64) -> Price {
        let count = steps.unsigned_abs();
        Price::from_units(match steps {
            0 => price.units(),
            1.. => self.above(price.units(), count),
            _ => self.below(price.units(), count),
        })
    }

    fn above(self, mut at: i64, mut left: u64) -> i64 {
        for (edge, tick) in self.bands().map(|(up_to, tick)| (up_to.units(), tick.units())) {
            if left > 0 && at < edge {
                at = at.saturating_add((tick - at % tick) % tick);
                let room = (edge - at).unsigned_abs() / tick.unsigned_abs();
                let taken = left.min(room);
                // Not past the edge, so it fits.
                at += tick * taken.cast_signed();
                left -= taken;
            }
        }
        at
    }

    fn below(self, mut at: i64, mut left: u64) -> i64 {
        let lowest = self.tick_at(Price::from_units(1)).units();
        at -= at % self.tick_at(Price::from_units(at)).units();
        while left > 0 && at > lowest {
            let tick = self.tick_at(Price::from_units(at)).units();
            // Where the steps of the band below begin.
            let edges = self.bands().map(|(up_to, _)| up_to.units());
            let edge = edges.filter(|edge| *edge < at).last().unwrap_or(tick);
            let taken = left.min((at - edge).max(0).unsigned_abs() / tick.unsigned_abs());
            at -= tick * taken.cast_signed();
            left -= taken;
        }
        at.max(lowest)
    }

    /// Whether `price` stands on the grid.
    #[must_use]
    pub fn is_aligned(self, price: Price) -> bool {
        price.units() % self.tick_at(price).units() == 0
    }

    /// The highest price of the grid that is not above `price`; 0 where there is none above 0.
    #[must_use]
    pub fn floor(self, price: Price) -> Price {
        Price::from_units(price.units() - price.units() % self.tick_at(price).units())
    }

    /// The lowest price of the grid that is not below `price`.
    #[must_use]
    pub fn ceil(self, price: Price) -> Price {
        let below = self.floor(price);
        if below == price {
            return price;
        }
        Price::from_units(below.units().saturating_add(self.tick_at(price).units()))
    }
}

impl fmt::Display for TickTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Topix500 => f.write_str("topix500"),
            Self::Etf => f.write_str("etf"),
            Self::Fixed(tick) => write!(f, "fixed {tick}"),
        }
    }
}

/// Half-widths of the daily price range: for base prices below the first number, the second (yen).
const DAILY_LIMIT_WIDTHS: &[(i64, i64)] = &[
    (100, 30),
    (200, 50),
    (500, 80),
    (700, 100),
    (1_000, 150),
    (1_500, 300),
    (2_000, 400),
    (3_000, 500),
    (5_000, 700),
    (7_000, 1_000),
    (10_000, 1_500),
    (15_000, 3_000),
    (20_000, 4_000),
    (30_000, 5_000),
    (50_000, 7_000),
    (70_000, 10_000),
    (100_000, 15_000),
    (150_000, 30_000),
    (200_000, 40_000),
    (300_000, 50_000),
    (500_000, 70_000),
    (700_000, 100_000),
    (1_000_000, 150_000),
    (1_500_000, 300_000),
    (2_000_000, 400_000),
    (3_000_000, 500_000),
    (5_000_000, 700_000),
    (7_000_000, 1_000_000),
    (10_000_000, 1_500_000),
    (15_000_000, 3_000_000),
    (20_000_000, 4_000_000),
    (30_000_000, 5_000_000),
    (50_000_000, 7_000_000),
    (i64::MAX, 10_000_000),
];

/// The prices a day may trade at, both inclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DailyLimits {
    /// Lowest price of the day.
    pub low: Price,
    /// Highest price of the day.
    pub high: Price,
}

impl DailyLimits {
    /// The range around a base price (the previous close). Never below one unit of price.
    #[must_use]
    pub fn around(base: Price) -> Self {
        Self::around_by(base, 1)
    }

    /// The range around a base price with so many times the usual width, as the exchange sets it
    /// after days without a trade inside the usual one.
    #[must_use]
    pub fn around_by(base: Price, times: i64) -> Self {
        let yen = base.units() / UNITS_PER_YEN;
        let width = DAILY_LIMIT_WIDTHS
            .iter()
            .find(|(below, _)| yen < *below)
            .map_or(10_000_000, |(_, width)| *width)
            .saturating_mul(UNITS_PER_YEN * times);
        Self {
            low: Price::from_units(base.units().saturating_sub(width).max(1)),
            high: Price::from_units(base.units().saturating_add(width)),
        }
    }

    /// The range on a grid: the upper limit rounded down to a tick, the lower one up.
    #[must_use]
    pub fn aligned(self, ticks: TickTable) -> Self {
        let (low, high) = (ticks.ceil(self.low), ticks.floor(self.high));
        // A step wider than the range leaves no price of its own inside.
        if low <= high { Self { low, high } } else { self }
    }

    /// `price`, moved to the nearer limit when it lies outside.
    #[must_use]
    pub fn clamp(self, price: Price) -> Price {
        price.clamp(self.low, self.high)
    }

    /// Whether the day may trade at `price`.
    #[must_use]
    pub fn contains(self, price: Price) -> bool {
        self.low <= price && price <= self.high
    }
}

/// What a strategy and the exchange need to know of an instrument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instrument {
    /// Our own name.
    pub id: InstrumentId,
    /// Shares in one trading unit; every order is a multiple. At least 1.
    pub lot: Quantity,
    /// Price steps.
    pub ticks: TickTable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_map_both_ways() {
        for (vendor, id) in [
            ("13010", "1301.TSE"),
            ("130A0", "130A.TSE"),
            ("25935", "25935.TSE"),
            ("285A0", "285A.TSE"),
        ] {
            let code = VendorCode::new(vendor).unwrap();
            assert_eq!(code.instrument_id().as_str(), id);
            assert_eq!(id.parse::<InstrumentId>().unwrap().vendor_code().unwrap(), code);
        }
    }

    #[test]
    fn bad_ids_say_what_to_write() {
        for (text, message) in [
            (
                "7203",
                "`7203` is not an instrument id; write the symbol and the venue, like `7203.TSE`",
            ),
            ("7203.OSE", "`7203.OSE` names the venue `OSE`; only `TSE` (Tokyo) is known"),
            ("72.TSE", "`72` is not a Tokyo code: 4 or 5 characters, digits and capital letters"),
            (
                "72o3.TSE",
                "`72o3` is not a Tokyo code: 4 or 5 characters, digits and capital letters",
            ),
        ] {
            assert_eq!(text.parse::<InstrumentId>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn ticks_follow_the_tables() {
        let tick =
            |table: TickTable, price: &str| table.tick_at(price.parse().unwrap()).to_string();
        assert_eq!(tick(TickTable::Normal, "3000"), "1");
        assert_eq!(tick(TickTable::Normal, "3000.1"), "5");
        assert_eq!(tick(TickTable::Topix500, "1000"), "0.1");
        assert_eq!(tick(TickTable::Topix500, "2999.5"), "0.5");
        assert_eq!(tick(TickTable::Etf, "20000"), "5");
        assert_eq!(tick(TickTable::Fixed(Price::from_units(1_000)), "20000"), "0.1");
        assert!(TickTable::Topix500.is_aligned("999.9".parse().unwrap()));
        assert!(!TickTable::Normal.is_aligned("3001".parse().unwrap()));
    }

    #[test]
    fn steps_go_along_the_table() {
        let moved = |table: TickTable, price: &str, steps| {
            table.moved(price.parse().unwrap(), steps).to_string()
        };
        assert_eq!(moved(TickTable::Normal, "3000", 1), "3005");
        assert_eq!(moved(TickTable::Normal, "3005", -1), "3000");
        assert_eq!(moved(TickTable::Normal, "3000", -1), "2999");
        assert_eq!(moved(TickTable::Normal, "2998", 4), "3010");
        assert_eq!(moved(TickTable::Normal, "3010", -4), "2998");
        assert_eq!(moved(TickTable::Normal, "2999", 500), "5990", "1 + 400 + 99 steps");
        assert_eq!(moved(TickTable::Normal, "5990", -500), "2999");
        assert_eq!(moved(TickTable::Topix500, "1000", 1), "1000.5");
        assert_eq!(moved(TickTable::Topix500, "1000", -1), "999.9");
        assert_eq!(moved(TickTable::Normal, "3002", 0), "3002");
        assert_eq!(moved(TickTable::Normal, "3002", 1), "3010", "first onto the grid");
        assert_eq!(moved(TickTable::Normal, "3002", -1), "2999");
        assert_eq!(moved(TickTable::Normal, "3", -9), "1");
        let fixed = TickTable::Fixed(Price::from_units(5_000));
        assert_eq!((moved(fixed, "10", 3), moved(fixed, "10", -3)), ("11.5".into(), "8.5".into()));
        let far = fixed.moved(Price::from_yen(1), i64::MAX);
        assert!(far.units() > i64::MAX - 5_000, "it stays at the end of 64 bits");
    }

    #[test]
    fn steps_are_the_same_one_by_one() {
        for table in TickTable::OFFICIAL {
            let mut at = Price::from_yen(2_980);
            for steps in 1..=2_000 {
                let next = table.moved(at, 1);
                assert!(next > at && table.is_aligned(next), "{next} of {table}");
                assert_eq!(table.moved(next, -1), at, "{table}");
                assert_eq!(table.moved(Price::from_yen(2_980), steps), next, "{table}");
                at = next;
            }
        }
    }

    #[test]
    fn daily_limits_follow_the_table() {
        let limits = DailyLimits::around(Price::from_yen(1_674));
        assert_eq!((limits.low, limits.high), (Price::from_yen(1_274), Price::from_yen(2_074)));
        assert_eq!(limits.clamp(Price::from_yen(9_999)), limits.high);
        assert!(limits.contains(limits.low) && !limits.contains(Price::from_yen(1_273)));
        assert_eq!(DailyLimits::around(Price::from_yen(20)).low, Price::from_units(1));
    }

    #[test]
    fn limits_stand_on_the_grid_inside_the_range() {
        let on_grid = |base: &str, ticks: TickTable| {
            let limits = DailyLimits::around(base.parse().unwrap()).aligned(ticks);
            (limits.low.to_string(), limits.high.to_string())
        };
        let pair = |low: &str, high: &str| (low.to_owned(), high.to_owned());
        assert_eq!(on_grid("1000.5", TickTable::Topix500), pair("700.5", "1300.5"));
        assert_eq!(on_grid("1000.5", TickTable::Normal), pair("701", "1300"));
        // 2,995 + 500 and - 500: above 3,000 yen a tick is 5.
        assert_eq!(on_grid("2998", TickTable::Normal), pair("2498", "3495"));
        assert_eq!(on_grid("20", TickTable::Normal), pair("1", "50"));
        let wide = DailyLimits::around_by(Price::from_yen(1_000), 4);
        assert_eq!((wide.low, wide.high), (Price::from_units(1), Price::from_yen(2_200)));
    }

    #[test]
    fn a_step_wider_than_the_range_leaves_the_range() {
        let limits = DailyLimits::around(Price::from_yen(1_000));
        assert_eq!(limits.aligned(TickTable::Fixed(Price::from_yen(5_000))), limits);
    }

    #[test]
    fn prices_move_to_the_grid() {
        let moved = |price: &str| {
            let price: Price = price.parse().unwrap();
            (TickTable::Normal.floor(price).to_string(), TickTable::Normal.ceil(price).to_string())
        };
        assert_eq!(moved("2999.5"), ("2999".to_owned(), "3000".to_owned()));
        assert_eq!(moved("3000"), ("3000".to_owned(), "3000".to_owned()));
        assert_eq!(moved("3001"), ("3000".to_owned(), "3005".to_owned()));
        assert_eq!(moved("0.4"), ("0".to_owned(), "1".to_owned()));
    }
}
