//! The board of an issue: its trades of the day and its book.

use domain::random::Random;
use domain::{JstDate, Price, TsNanos};

use crate::web_broker::Issue;

/// Levels of one side.
pub(crate) const LEVELS: usize = 10;

/// Orders that rest at a price; a side of the book may lack some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// None: the vendor sends levels without a price.
    pub(crate) price: Option<Price>,
    pub(crate) shares: u64,
}

/// One side, from the best price on.
pub(crate) type Side = [Option<Level>; LEVELS];

/// Both sides as a frame shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) sells: Side,
    pub(crate) buys: Side,
}

/// A price of the day, and when it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Print {
    pub(crate) price: Price,
    pub(crate) time: TsNanos,
}

/// What happened on the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trades {
    pub(crate) first: Print,
    pub(crate) highest: Print,
    pub(crate) lowest: Print,
    pub(crate) last: Print,
    /// `0056` as before, `0057` up, `0058` down.
    pub(crate) change: &'static str,
}

/// A stretch in which the told volume only grows: from its first number, which is a client's first frame, or
/// from 0 where frames before it had none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) date: JstDate,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// What was really traded and pushed, for tests to compare with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    /// Shares traded, of all days.
    pub(crate) volume: u64,
    /// Trades, of all days.
    pub(crate) trades: u64,
    /// Frames pushed, without extra ones and repetitions.
    pub(crate) frames: u64,
    /// Trades whose frame was pushed.
    pub(crate) pushed_trades: u64,
    /// Shares between the first and the last number of stretches that are no longer kept.
    pub(crate) older: u64,
    pub(crate) stretches: Vec<Stretch>,
}

/// The board of an issue.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) issue: Issue,
    /// The name as JSON.
    pub(crate) name: String,
    pub(crate) previous_close: Price,
    pub(crate) previous_date: JstDate,
    pub(crate) trades: Option<Trades>,
    /// Shares of the day as they are told; none before the first trade.
    pub(crate) volume: Option<u64>,
    /// Yen times 10,000.
    pub(crate) value: i128,
    pub(crate) quoted_at: TsNanos,
    pub(crate) book: Book,
    random: Random,
    pub(crate) truth: Truth,
    /// A reset or a new day: the next number begins a stretch.
    pub(crate) begins_stretch: bool,
    /// A frame without a number was pushed on this connection and day: the first number is the opening.
    pub(crate) told_unopened: bool,
}

impl Board {
    pub(crate) fn new(issue: Issue, seed: u64, previous: JstDate, now: TsNanos) -> Self {
        let base = issue.base;
        let symbol = issue.symbol.bytes().fold(seed, |all, byte| all * 131 + u64::from(byte));
        let mut board = Self {
            name: serde_json::Value::from(issue.name.as_str()).to_string(),
            issue,
            previous_close: base,
            previous_date: previous,
            trades: None,
            volume: None,
            value: 0,
            quoted_at: now,
            book: Book { sells: [None; LEVELS], buys: [None; LEVELS] },
            random: Random::new(&[seed, symbol]),
            truth: Truth::default(),
            begins_stretch: true,
            told_unopened: false,
        };
        board.quote(base, now);
        board
    }

    /// The last price, or the last close before.
    pub(crate) fn price(&self) -> Price {
        self.trades.map_or(self.previous_close, |trades| trades.last.price)
    }

    /// A new day: nothing was traded yet. One share has become `split` shares overnight; 1: none did.
    pub(crate) fn begin_day(&mut self, previous: JstDate, now: TsNanos, split: u64) {
        let close = match split {
            1 => self.price(),
            into => crate::after_split(self.issue.ticks, self.price(), into),
        };
        (self.previous_close, self.previous_date) = (close, previous);
        (self.trades, self.volume, self.value) = (None, None, 0);
        (self.begins_stretch, self.told_unopened) = (true, false);
        self.quote(self.previous_close, now);
    }

    /// The told volume begins again at 0.
    pub(crate) fn reset_volume(&mut self) {
        (self.volume, self.value) = (Some(0), 0);
        self.begins_stretch = true;
    }

    /// A trade, and the book around it.
    pub(crate) fn trade(&mut self, price: Price, shares: u64, time: TsNanos) {
        let print = Print { price, time };
        self.trades = Some(match self.trades {
            None => {
                Trades { first: print, highest: print, lowest: print, last: print, change: "0000" }
            }
            Some(before) => Trades {
                first: before.first,
                highest: if price > before.highest.price { print } else { before.highest },
                lowest: if price < before.lowest.price { print } else { before.lowest },
                last: print,
                change: match price.cmp(&before.last.price) {
                    std::cmp::Ordering::Equal => "0056",
                    std::cmp::Ordering::Greater => "0057",
                    std::cmp::Ordering::Less => "0058",
                },
            },
        });
        self.volume = Some(self.volume.unwrap_or_default().saturating_add(shares));
        self.value += i128::from(price.units()) * i128::from(shares);
        self.truth.volume = self.truth.volume.saturating_add(shares);
        self.truth.trades += 1;
        self.quote(price, time);
    }

    /// A new book, of which the price is the best of one side, or inside a wide spread.
    fn quote(&mut self, around: Price, time: TsNanos) {
        let ticks = self.issue.ticks;
        let spread = i64::from(self.random.halvings().min(3)) + 1;
        // How far the best price of those who buy is below: nothing, all of the spread, or between.
        let below = i64::try_from(self.random.below(spread.unsigned_abs() + 1)).unwrap_or_default();
        let best_buy = ticks.moved(around, -below).max(ticks.tick_at(Price::from_units(1)));
        let best_sell = ticks.moved(best_buy, spread);
        for step in 0..LEVELS {
            let away = i64::try_from(step).unwrap_or_default();
            let (sell, buy) = (ticks.moved(best_sell, away), ticks.moved(best_buy, -away));
            let is_new = step == 0 || buy < ticks.moved(best_buy, 1 - away);
            let sells = self.resting();
            let buys = self.resting();
            self.book.sells[step] = Some(Level { price: Some(sell), shares: sells });
            self.book.buys[step] = is_new.then_some(Level { price: Some(buy), shares: buys });
        }
        self.quoted_at = time;
    }

    fn resting(&mut self) -> u64 {
        let lots = (self.random.below(20) + 1) << self.random.halvings().min(4);
        lots * self.issue.lot.shares()
    }

    /// Orders come and go: sizes change, sometimes the best prices.
    pub(crate) fn change_book(&mut self, time: TsNanos) {
        if self.random.permille(350) {
            self.quote(self.price(), time);
            return;
        }
        let step = self.random.place(LEVELS);
        let shares = self.resting();
        let is_sell = self.random.permille(500);
        let side = if is_sell { &mut self.book.sells } else { &mut self.book.buys };
        if let Some(level) = &mut side[step] {
            level.shares = shares;
        }
        self.quoted_at = time;
    }
}
