//! What the account may be worth. Prices and splits of the data may be any that the vendor's files can have; money
//! has 64 bits. So the account is held, before each day and after each fill, against the highest price that the
//! day has for it: whatever is counted up to the day's end fits then. Only an error comes of looking at prices that
//! have not traded yet.

use domain::fault::{Fault, FaultKind};
use domain::limits::INSTRUMENTS_MAX;
use domain::{Fill, Instrument, InstrumentId, InstrumentIx, JstDate, Price};
use exchange::Exchange;
use thiserror::Error;
use trader::{AccountCheck, LastPrices};

use super::Run;
use crate::series::MarketDay;

/// The largest value of a position, in yen. A share is worth no more either.
const POSITION_YEN_MAX: i64 = 100_000_000_000_000;
/// The largest value of cash and all positions together, in yen.
const ACCOUNT_YEN_MAX: i64 = 2 * POSITION_YEN_MAX;
/// The most that all fills of a run may be worth together, in yen. With what one row may fill besides it fits 64 bits.
const TURNOVER_YEN_MAX: i64 = 5 * POSITION_YEN_MAX;

/// In 1/10,000 yen.
fn units(yen: i64) -> i128 {
    i128::from(Price::from_yen(yen).units())
}

/// The data make an account worth more than is counted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorthError {
    /// A position.
    #[error(
        "{date}, {instrument}: {shares} shares at {price} yen are worth {value} yen; a position \
         may be worth at most {POSITION_YEN_MAX} yen. Check the prices of that day in the data, \
         and the AdjFactor of the days up to it"
    )]
    Position {
        /// The day.
        date: JstDate,
        /// The instrument.
        instrument: InstrumentId,
        /// Shares held.
        shares: i64,
        /// The highest price of the day.
        price: Price,
        /// What they are worth, in whole yen.
        value: i128,
    },
    /// A single share.
    #[error(
        "{date}, {instrument}: a share is worth more than {POSITION_YEN_MAX} yen, the most that a \
         share may be worth. Check the prices of the data and the AdjFactor of the days up to it"
    )]
    Share {
        /// The day.
        date: JstDate,
        /// The instrument.
        instrument: InstrumentId,
    },
    /// Cash and all positions.
    #[error(
        "{date}, {instruments}: cash and shares are worth {value} yen; an account may be worth at \
         most {ACCOUNT_YEN_MAX} yen. Check the prices of the data up to that day"
    )]
    Account {
        /// The day.
        date: JstDate,
        /// The instruments.
        instruments: String,
        /// What they are worth, in whole yen.
        value: i128,
    },
    /// Everything bought and sold.
    #[error(
        "{date}, {instruments}: the fills of the run are worth {value} yen; all fills may be worth \
         at most {TURNOVER_YEN_MAX} yen. Trade less, or check the prices of the data up to that \
         day"
    )]
    Turnover {
        /// The day.
        date: JstDate,
        /// The instruments.
        instruments: String,
        /// What they are worth, in whole yen.
        value: i128,
    },
}

/// The prices that the account is held against, and the fills so far.
#[derive(Debug)]
pub(super) struct Worth<'s> {
    listed: &'s [Instrument],
    /// The highest price of each instrument on the present day.
    highest: [Price; INSTRUMENTS_MAX],
    /// What all fills are worth together.
    turnover: i128,
    error: Option<Box<WorthError>>,
}

impl<'s> Worth<'s> {
    /// Nothing is worth anything yet.
    pub(super) fn new(listed: &'s [Instrument]) -> Self {
        let highest = [Price::default(); INSTRUMENTS_MAX];
        Self { listed, highest, turnover: 0, error: None }
    }

    /// Takes the highest prices of a day, where its rows are known.
    pub(super) fn begin_day(&mut self, day: Option<&MarketDay<'_>>) {
        self.highest = [Price::default(); INSTRUMENTS_MAX];
        match day {
            None => {}
            Some(MarketDay::Trades(parts)) => {
                for (highest, part) in self.highest.iter_mut().zip(parts) {
                    let price = part.price().iter().copied().max().unwrap_or_default();
                    *highest = Price::from_units(price);
                }
            }
            Some(MarketDay::Bars(bars)) => {
                for bar in bars {
                    if let Some(highest) = self.highest.get_mut(usize::from(bar.instrument.0)) {
                        *highest = bar.high.max(*highest);
                    }
                }
            }
        }
    }

    /// Takes the highest price of a row that comes next. Says whether it is the highest of the day so far.
    pub(super) fn raise(&mut self, instrument: InstrumentIx, price: Price) -> bool {
        let highest = &mut self.highest[usize::from(instrument.0)];
        let is_new = price > *highest;
        *highest = price.max(*highest);
        is_new
    }

    /// Whether the account was found to be worth too much.
    pub(super) const fn is_beyond(&self) -> bool {
        self.error.is_some()
    }

    /// Why the run has no result.
    pub(super) fn take_error(&mut self) -> Option<Box<WorthError>> {
        self.error.take()
    }

    /// Keeps an error, which is no fault of the strategy: [`Self::take_error`] gives it.
    fn end_with(&mut self, error: Option<WorthError>) -> Result<(), FaultKind> {
        let Some(error) = error else { return Ok(()) };
        let text = error.to_string();
        self.error = Some(Box::new(error));
        Err(FaultKind::Protocol(text))
    }

    fn account_error(
        &self,
        date: JstDate,
        exchange: &Exchange,
        prices: &LastPrices,
    ) -> Option<WorthError> {
        let account = exchange.account();
        let mut value = i128::from(account.account().cash.units());
        for (index, instrument) in self.listed.iter().enumerate() {
            // There are at most 4 instruments.
            let number = InstrumentIx(index as u16);
            let price = self.highest[index].max(prices.known(number).unwrap_or_default());
            let shares = account.held(number);
            if let Some(error) = position_error(date, &instrument.id, (shares, price)) {
                return Some(error);
            }
            value += worth(shares, price);
        }
        let turnover = self.turnover;
        if value <= units(ACCOUNT_YEN_MAX) && turnover <= units(TURNOVER_YEN_MAX) {
            return None;
        }
        let ids: Vec<String> = self.listed.iter().map(|one| one.id.to_string()).collect();
        let instruments = ids.join(", ");
        Some(if value > units(ACCOUNT_YEN_MAX) {
            WorthError::Account { date, instruments, value: whole_yen(value) }
        } else {
            WorthError::Turnover { date, instruments, value: whole_yen(turnover) }
        })
    }
}

/// What shares are worth at a price, in 1/10,000 yen.
fn worth(shares: i64, price: Price) -> i128 {
    i128::from(shares) * i128::from(price.units())
}

fn whole_yen(value: i128) -> i128 {
    value / units(1)
}

/// A position that is worth too much, or a single share of it.
fn position_error(
    date: JstDate,
    instrument: &InstrumentId,
    (shares, price): (i64, Price),
) -> Option<WorthError> {
    let most = units(POSITION_YEN_MAX);
    if worth(1, price) > most {
        return Some(WorthError::Share { date, instrument: instrument.clone() });
    }
    let value = worth(shares, price);
    (value > most).then(|| WorthError::Position {
        date,
        instrument: instrument.clone(),
        shares,
        price,
        value: whole_yen(value),
    })
}

impl AccountCheck<Exchange> for Worth<'_> {
    /// Says whether all fills together can still be counted.
    fn fill(&mut self, fill: &Fill) -> bool {
        let shares = i128::from(fill.last_quantity.shares());
        self.turnover += i128::from(fill.last_price.units()) * shares;
        self.turnover <= units(TURNOVER_YEN_MAX)
    }

    /// Holds the account against the prices of a day.
    fn check(
        &mut self,
        date: JstDate,
        exchange: &Exchange,
        prices: &LastPrices,
    ) -> Result<(), FaultKind> {
        let error = self.account_error(date, exchange, prices);
        self.end_with(error)
    }
}

impl Run<'_> {
    /// Holds one instrument against the limits, when it has a number of shares at a price.
    ///
    /// # Errors
    /// What ends the run, and is no fault of the strategy.
    pub(super) fn check_position(
        &mut self,
        date: JstDate,
        instrument: InstrumentIx,
        (shares, price): (i64, Price),
    ) -> Result<(), Box<Fault>> {
        let id = &self.listed[usize::from(instrument.0)].id;
        let error = position_error(date, id, (shares, price));
        let checked = self.session.check.end_with(error);
        checked.map_err(|kind| self.session.fault("advance", kind))
    }
}
