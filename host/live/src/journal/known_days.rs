//! What a run knows of its days before it begins: splits, changes of lots and price steps, the exchange's calendar.

use domain::adjustment::{Adjustment, ExRights};
use domain::session::is_weekday;
use domain::{ExchangeCalendar, InstrumentIx, JstDate, Quantity, TickTable};
use replay::{ReplayOptions, UnitChange};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// So many days of the calendar are noted before the run and after its first day; a year holds all that it asks for.
const CALENDAR_DAYS_MAX: usize = 366;

/// A day in Japan, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Day(JstDate);

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::custom(format!("`{text}` is no date")))
    }
}

/// What a run knows of its days before it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDays {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    splits: Vec<(Day, InstrumentIx, Adjustment)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    units: Vec<(Day, InstrumentIx, Quantity, TickTable)>,
    /// Of each instrument the days of which it is known whether its shares are split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    splits_known: Vec<Vec<Day>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calendar: Option<CalendarDays>,
}

/// The exchange's own calendar, as far as it matters for the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CalendarDays {
    first: Day,
    last: Day,
    /// The weekdays between them on which the exchange is closed.
    closed: Vec<Day>,
}

impl CalendarDays {
    fn of(calendar: &ExchangeCalendar, begin: JstDate) -> Option<Self> {
        let (first, last) = calendar.listed_range()?;
        let before = std::iter::successors(Some(begin), JstDate::pred_opt);
        let earliest = before.take(CALENDAR_DAYS_MAX).last().unwrap_or(begin);
        let after = std::iter::successors(Some(begin), JstDate::succ_opt);
        let latest = after.take(CALENDAR_DAYS_MAX).last().unwrap_or(begin);
        let (first, last) = (first.max(earliest), last.min(latest));
        let days = first.iter_days().take_while(|day| *day <= last);
        let closed = days.filter(|day| is_weekday(*day) && !calendar.is_business_day(*day));
        let closed = closed.map(Day).collect();
        (first <= last).then_some(Self { first: Day(first), last: Day(last), closed })
    }

    fn calendar(&self) -> ExchangeCalendar {
        let days = self.first.0.iter_days().take_while(|day| *day <= self.last.0);
        let is_open = |day: &JstDate| is_weekday(*day) && !self.closed.contains(&Day(*day));
        // Its days follow each other, and none of a weekend is open.
        ExchangeCalendar::listed(days.map(|day| (day, is_open(&day)))).unwrap_or_default()
    }
}

impl KnownDays {
    /// What a run knows that begins on `begin`.
    #[must_use]
    pub fn of(options: &ReplayOptions, begin: JstDate) -> Self {
        let splits = options.ex_rights.iter();
        let units = options.unit_changes.iter();
        let known = options.split_dates_known.iter();
        Self {
            splits: splits.map(|one| (Day(one.date), one.instrument, one.adjustment)).collect(),
            units: units.map(|one| (Day(one.date), one.instrument, one.lot, one.ticks)).collect(),
            splits_known: known.map(|days| days.iter().copied().map(Day).collect()).collect(),
            calendar: CalendarDays::of(&options.calendar, begin),
        }
    }

    /// The options of a run that knows it.
    #[must_use]
    pub fn set_in(&self, options: ReplayOptions) -> ReplayOptions {
        let split = |&(Day(date), instrument, adjustment): &(Day, InstrumentIx, Adjustment)| {
            ExRights { date, instrument, adjustment }
        };
        let unit =
            |&(Day(date), instrument, lot, ticks): &(Day, InstrumentIx, Quantity, TickTable)| {
                UnitChange { date, instrument, lot, ticks }
            };
        let known = self.splits_known.iter();
        ReplayOptions {
            ex_rights: self.splits.iter().map(split).collect(),
            unit_changes: self.units.iter().map(unit).collect(),
            split_dates_known: known.map(|days| days.iter().map(|day| day.0).collect()).collect(),
            calendar: self.calendar.as_ref().map(CalendarDays::calendar).unwrap_or_default(),
            ..options
        }
    }
}
