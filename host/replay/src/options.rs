//! What a replay can be told.

use domain::adjustment::ExRights;
use domain::limits::{CASH_YEN_MAX, INSTRUMENTS_MAX, LOT_MAX, WINDOW_ROWS_MAX};
use domain::{
    ExchangeCalendar, Instrument, InstrumentId, InstrumentIx, JstDate, Money, Price, Quantity,
    TickTable,
};
use thiserror::Error;

use exchange::{ExecutionModel, ModelError};

/// A day from which an instrument has another lot or other price steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitChange {
    /// The day in Japan.
    pub date: JstDate,
    /// The instrument, by its position in the list.
    pub instrument: InstrumentIx,
    /// Its lot from then on.
    pub lot: Quantity,
    /// Its steps from then on.
    pub ticks: TickTable,
}

/// What a replay can be told.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// What is traded, in the order in which the strategy counts them; 1 to 4, none twice.
    pub instruments: Vec<Instrument>,
    /// Money in the account at the start.
    pub cash: Money,
    /// How the exchange fills orders.
    pub model: ExecutionModel,
    /// Splits of the instruments, in the order of their dates.
    pub ex_rights: Vec<ExRights>,
    /// Trades or bars handed to the strategy at once, 1 to 65,536. Results do not depend on it; 1 (the
    /// default) never lets a trade into the strategy's memory before its time.
    pub window: u32,
    /// Configuration of the strategy: a JSON object.
    pub config_json: String,
    /// Warnings of commands that came to nothing which the log keeps; the others are counted.
    pub warnings_max: u64,
    /// Bytes that the strategy's rejected orders may leave behind.
    pub rejected_bytes_max: u64,
    /// Bytes that all records of the strategy may leave behind on the first day.
    pub folder_bytes_max: u64,
    /// So many more on each later day.
    pub folder_bytes_per_day: u64,
    /// The last close of each instrument before the first day; where it is missing or none, that day
    /// has no price range.
    pub base_prices: Vec<Option<Price>>,
    /// Days on which lots or price steps change, in order. The strategy was told those of the first
    /// day.
    pub unit_changes: Vec<UnitChange>,
    /// Of each instrument the dates, in order, of which it is known whether shares were split; where
    /// they are missing none is.
    pub split_dates_known: Vec<Vec<JstDate>>,
    /// The exchange's business days, which make the days of the run.
    pub calendar: ExchangeCalendar,
    /// First and last date of the run; without them those of its rows.
    pub dates: Option<(JstDate, JstDate)>,
}

/// Checks the number of instruments and that none comes twice, by the vendor's code: `7203.TSE` and
/// `72030.TSE` are one issue, whose trades fill one order. For callers that load the data of each before a run.
///
/// # Errors
/// [`OptionsError::Instruments`] or [`OptionsError::InstrumentTwice`].
pub fn check_instruments<'a>(
    ids: impl IntoIterator<Item = &'a InstrumentId>,
) -> Result<(), OptionsError> {
    let ids: Vec<_> = ids.into_iter().collect();
    if !(1..=INSTRUMENTS_MAX).contains(&ids.len()) {
        return Err(OptionsError::Instruments(ids.len()));
    }
    let is_same = |one: &InstrumentId, other: &InstrumentId| {
        let codes = (one.vendor_code().ok(), other.vendor_code().ok());
        one == other || codes.0.is_some() && codes.0 == codes.1
    };
    let twice =
        ids.iter().enumerate().find(|(index, id)| ids[..*index].iter().any(|one| is_same(one, id)));
    match twice {
        Some((_, id)) => Err(OptionsError::InstrumentTwice((*id).clone())),
        None => Ok(()),
    }
}

/// An option that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// The number of instruments.
    #[error("{0} instruments asked for; one replay takes 1 to {INSTRUMENTS_MAX}")]
    Instruments(usize),
    /// An instrument twice.
    #[error("the instrument {0} is given twice; give each once")]
    InstrumentTwice(InstrumentId),
    /// The window.
    #[error("the window is {0} trades; it must be 1 to {WINDOW_ROWS_MAX}")]
    Window(u32),
    /// A parameter of the exchange.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The lot.
    #[error("the lot is 0 shares; it must be at least 1")]
    Lot,
    /// A lot that no exchange has.
    #[error("the lot is {0} shares; it must be at most {LOT_MAX}")]
    LargeLot(Quantity),
    /// The cash.
    #[error("the cash is {0} yen; it must be 0 to {CASH_YEN_MAX}")]
    Cash(Money),
}

impl ReplayOptions {
    /// The instruments as they are on a date.
    #[must_use]
    pub fn instruments_on(&self, date: JstDate) -> Vec<Instrument> {
        let mut instruments = self.instruments.clone();
        for change in self.unit_changes.iter().filter(|change| change.date <= date) {
            if let Some(instrument) = instruments.get_mut(usize::from(change.instrument.0)) {
                (instrument.lot, instrument.ticks) = (change.lot, change.ticks);
            }
        }
        instruments
    }

    /// What a text says of each instrument, with commas between.
    pub fn of_each(&self, text: impl FnMut(&Instrument) -> String) -> String {
        self.instruments.iter().map(text).collect::<Vec<_>>().join(",")
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The first option that makes no sense.
    pub fn check(&self) -> Result<(), OptionsError> {
        check_instruments(self.instruments.iter().map(|instrument| &instrument.id))?;
        if !(1..=WINDOW_ROWS_MAX).contains(&self.window) {
            return Err(OptionsError::Window(self.window));
        }
        self.model.check()?;
        let lots = self.instruments.iter().map(|instrument| instrument.lot);
        if lots.chain(self.unit_changes.iter().map(|change| change.lot)).any(Quantity::is_zero) {
            return Err(OptionsError::Lot);
        }
        let lots = self.instruments.iter().map(|instrument| instrument.lot);
        if let Some(lot) = lots.max().filter(|lot| lot.shares() > LOT_MAX) {
            return Err(OptionsError::LargeLot(lot));
        }
        if !(Money::ZERO..=Money::from_yen(CASH_YEN_MAX)).contains(&self.cash) {
            return Err(OptionsError::Cash(self.cash));
        }
        Ok(())
    }
}
