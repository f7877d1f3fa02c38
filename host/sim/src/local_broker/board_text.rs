//! The texts of a board: a frame, and what `GET /board` and `GET /symbol` answer. Numbers are exact.

use std::fmt::Write as _;

use chrono::Datelike as _;
use domain::instrument::DailyLimits;
use domain::{Money, Price, TickTable, TsNanos};

use super::board::{Board, Book, Print, Side};
use super::config::QuoteNames;

/// An exact number of 1/10,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal(i128);

impl Decimal {
    pub(crate) fn of_money(money: Money) -> Self {
        Self(i128::from(money.units()))
    }

    fn of_price(price: Price) -> Self {
        Self(i128::from(price.units()))
    }
}

const UNIT: i128 = 10_000;
/// Shares that every issue has, for its market value.
const SHARES_ISSUED: i128 = 1_000_000_000;

/// A number as the vendor writes it: with at least one decimal.
pub(crate) fn number(value: Decimal) -> String {
    let mut text = String::new();
    write_number(&mut text, value);
    text
}

fn write_number(text: &mut String, Decimal(units): Decimal) {
    let sign = if units < 0 { "-" } else { "" };
    let (whole, part) =
        (units.unsigned_abs() / UNIT.unsigned_abs(), units.unsigned_abs() % UNIT.unsigned_abs());
    if part.is_multiple_of(1_000) {
        write!(text, "{sign}{whole}.{}", part / 1_000).ok();
    } else {
        let digits = format!("{part:04}");
        write!(text, "{sign}{whole}.{}", digits.trim_end_matches('0')).ok();
    }
}

impl Board {
    /// The text of a frame, and of `GET /board`: every official field of a stock.
    pub(crate) fn text(
        &self,
        symbol: &str,
        exchange: i64,
        book: &Book,
        names: QuoteNames,
    ) -> String {
        let mut text = String::with_capacity(2_600);
        write!(
            text,
            "{{\"Symbol\":\"{symbol}\",\"SymbolName\":{},\"Exchange\":{exchange},\
             \"ExchangeName\":\"{}\"",
            self.name,
            exchange_name(exchange)
        )
        .ok();
        let prices =
            |print: Option<Print>| (print.map(|print| print.price), print.map(|print| print.time));
        let trades = self.trades;
        let (last, last_at) = prices(trades.map(|trades| trades.last));
        price_field(&mut text, "CurrentPrice", last);
        time_field(&mut text, "CurrentPriceTime", last_at);
        match trades {
            Some(trades) => {
                write!(text, ",\"CurrentPriceChangeStatus\":\"{}\"", trades.change).ok();
                text.push_str(",\"CurrentPriceStatus\":1");
            }
            None => text.push_str(",\"CurrentPriceChangeStatus\":null,\"CurrentPriceStatus\":null"),
        }
        price_field(&mut text, "CalcPrice", Some(self.price()));
        price_field(&mut text, "PreviousClose", Some(self.previous_close));
        time_field(&mut text, "PreviousCloseTime", TsNanos::from_jst(self.previous_date, 0));
        self.changes(&mut text, last);
        for (name, print) in [
            ("OpeningPrice", trades.map(|trades| trades.first)),
            ("HighPrice", trades.map(|trades| trades.highest)),
            ("LowPrice", trades.map(|trades| trades.lowest)),
        ] {
            let (price, time) = prices(print);
            price_field(&mut text, name, price);
            time_field(&mut text, &format!("{name}Time"), time);
        }
        match self.volume {
            Some(volume) => write!(text, ",\"TradingVolume\":{volume}.0").ok(),
            None => write!(text, ",\"TradingVolume\":null").ok(),
        };
        time_field(&mut text, "TradingVolumeTime", last_at.filter(|_| self.volume.is_some()));
        let shares = self.volume.filter(|shares| *shares > 0);
        decimal_field(
            &mut text,
            "VWAP",
            shares.map(|shares| Decimal(self.value / i128::from(shares))),
        );
        decimal_field(&mut text, "TradingValue", self.volume.map(|_| Decimal(self.value)));
        let (at_sell, at_buy) = match names {
            QuoteNames::Vendor => ("Bid", "Ask"),
            QuoteNames::Usual => ("Ask", "Bid"),
        };
        self.side(&mut text, at_sell, "Sell", &book.sells);
        self.side(&mut text, at_buy, "Buy", &book.buys);
        text.push_str(",\"OverSellQty\":974900,\"UnderBuyQty\":756000");
        let whole = Decimal(i128::from(self.price().units()) * SHARES_ISSUED);
        decimal_field(&mut text, "TotalMarketValue", Some(whole));
        text.push_str(",\"SecurityType\":1}");
        text
    }

    /// The text of `GET /symbol`, of an issue that is a share; without additional facts those are null.
    pub(crate) fn master(&self, exchange: i64, is_full: bool) -> String {
        let limits = DailyLimits::around(self.previous_close).aligned(self.issue.ticks);
        let group = match self.issue.ticks {
            TickTable::Topix500 => "10003",
            TickTable::Etf => "10004",
            _ => "10000",
        };
        let mut text = String::new();
        write!(
            text,
            "{{\"Symbol\":\"{}\",\"SymbolName\":{name},\"DisplayName\":{name},\
             \"Exchange\":{exchange},\"ExchangeName\":\"{}\",\"BisCategory\":\"9999\"",
            self.issue.symbol,
            exchange_name(exchange),
            name = self.name
        )
        .ok();
        let full = |value: i128| is_full.then_some(Decimal(value));
        let whole = i128::from(self.price().units()) * SHARES_ISSUED;
        decimal_field(&mut text, "TotalMarketValue", full(whole));
        decimal_field(&mut text, "TotalStocks", full(SHARES_ISSUED * UNIT));
        write!(text, ",\"TradingUnit\":{}.0", self.issue.lot).ok();
        text.push_str(",\"FiscalYearEndBasic\":20270331");
        write!(text, ",\"PriceRangeGroup\":\"{group}\"").ok();
        text.push_str(
            ",\"KCMarginBuy\":true,\"KCMarginSell\":true,\"MarginBuy\":true,\"MarginSell\":true",
        );
        price_field(&mut text, "UpperLimit", Some(limits.high));
        price_field(&mut text, "LowerLimit", Some(limits.low));
        text.push('}');
        text
    }

    fn changes(&self, text: &mut String, last: Option<Price>) {
        let before = i128::from(self.previous_close.units());
        let change = last.map(|last| i128::from(last.units()) - before);
        decimal_field(text, "ChangePreviousClose", change.map(Decimal));
        // In hundredths of a percent.
        let hundredths = change.map(|change| change * 10_000 / before.max(1));
        decimal_field(text, "ChangePreviousClosePer", hundredths.map(|part| Decimal(part * 100)));
    }

    /// One side: the fields of its best level, the market orders, and its levels.
    fn side(&self, text: &mut String, best: &str, name: &str, side: &Side) {
        let first = side[0];
        match first {
            Some(level) => write!(text, ",\"{best}Qty\":{}.0", level.shares).ok(),
            None => write!(text, ",\"{best}Qty\":null").ok(),
        };
        price_field(text, &format!("{best}Price"), first.and_then(|level| level.price));
        let time = first.map(|_| self.quoted_at);
        time_field(text, &format!("{best}Time"), time);
        let sign = if first.is_some() { "\"0101\"" } else { "null" };
        write!(text, ",\"{best}Sign\":{sign},\"MarketOrder{name}Qty\":0.0").ok();
        for (level, place) in side.iter().zip(1..) {
            let place: u32 = place;
            write!(text, ",\"{name}{place}\":").ok();
            let Some(level) = level else {
                text.push_str("null");
                continue;
            };
            text.push('{');
            if place == 1 {
                text.push_str("\"Time\":");
                write_time(text, time);
                write!(text, ",\"Sign\":{sign},").ok();
            }
            text.push_str("\"Price\":");
            match level.price {
                Some(price) => write_number(text, Decimal::of_price(price)),
                None => text.push_str("null"),
            }
            // Numbers come with and without decimals.
            let decimals = if place == 5 { "" } else { ".0" };
            write!(text, ",\"Qty\":{}{decimals}}}", level.shares).ok();
        }
    }
}

fn exchange_name(exchange: i64) -> &'static str {
    match exchange {
        3 => "名証",
        5 => "福証",
        6 => "札証",
        _ => "東証プ",
    }
}

fn decimal_field(text: &mut String, name: &str, value: Option<Decimal>) {
    write!(text, ",\"{name}\":").ok();
    match value {
        Some(value) => write_number(text, value),
        None => text.push_str("null"),
    }
}

fn price_field(text: &mut String, name: &str, price: Option<Price>) {
    decimal_field(text, name, price.map(Decimal::of_price));
}

fn time_field(text: &mut String, name: &str, time: Option<TsNanos>) {
    write!(text, ",\"{name}\":").ok();
    write_time(text, time);
}

/// `"2022-04-04T15:00:00+09:00"`, to the second.
fn write_time(text: &mut String, time: Option<TsNanos>) {
    let Some(time) = time else {
        text.push_str("null");
        return;
    };
    let date = time.jst_date();
    let seconds = time.jst_nanos_of_day() / domain::time::NANOS_PER_SECOND;
    write!(
        text,
        "\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}+09:00\"",
        date.year(),
        date.month(),
        date.day(),
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
    .ok();
}

#[cfg(test)]
mod tests {
    use domain::{JstDate, Quantity, TickTable};
    use serde_json::{Value, json};

    use super::*;
    use crate::web_broker::Issue;

    fn board() -> Board {
        let issue = Issue {
            symbol: "7203".to_owned(),
            name: "トヨタ\"自動車".to_owned(),
            lot: Quantity::new(100),
            ticks: TickTable::Topix500,
            base: Price::from_yen(2_850),
        };
        let date = JstDate::from_ymd_opt(2026, 5, 8).unwrap();
        let now = TsNanos::from_jst(date, 0).unwrap();
        Board::new(issue, 7, date, now)
    }

    fn told(board: &Board, names: QuoteNames) -> Value {
        serde_json::from_str(&board.text("7203", 1, &board.book, names)).unwrap()
    }

    #[test]
    fn numbers_are_exact_and_have_a_decimal() {
        for (units, text) in [
            (24_085_000, "2408.5"),
            (10_000, "1.0"),
            (-1, "-0.0001"),
            (0, "0.0"),
            (12_340, "1.234"),
        ] {
            assert_eq!(number(Decimal(units)), text);
        }
    }

    #[test]
    fn a_day_is_told_from_its_first_trade_on() {
        let mut board = board();
        let before = told(&board, QuoteNames::Vendor);
        assert!(before["CurrentPrice"].is_null() && before["TradingVolume"].is_null());
        assert_eq!(before["Sell1"]["Sign"], "0101");
        assert!(before["Sell2"].get("Time").is_none());
        let date = JstDate::from_ymd_opt(2026, 5, 11).unwrap();
        let at = |second: u64| {
            TsNanos::from_jst(date, 32_400_000_000_000 + second * 500_000_000).unwrap()
        };
        board.trade(Price::from_units(28_505_000), 200, at(1));
        board.trade(Price::from_units(28_495_000), 300, at(3));
        let after = told(&board, QuoteNames::Vendor);
        assert_eq!(after["CurrentPriceTime"], "2026-05-11T09:00:01+09:00");
        assert_eq!(
            (&after["TradingVolume"], &after["CurrentPriceChangeStatus"]),
            (&json!(500.0), &json!("0058"))
        );
        assert_eq!((&after["HighPrice"], &after["VWAP"]), (&json!(2850.5), &json!(2849.9)));
        board.begin_day(date, at(9), 1);
        let next = told(&board, QuoteNames::Vendor);
        assert_eq!(
            (&next["PreviousClose"], &next["TradingVolume"]),
            (&json!(2849.5), &Value::Null)
        );
    }

    #[test]
    fn the_best_prices_have_two_names() {
        let board = board();
        let (vendor, usual) = (told(&board, QuoteNames::Vendor), told(&board, QuoteNames::Usual));
        assert_eq!(vendor["BidPrice"], vendor["Sell1"]["Price"]);
        assert_eq!(vendor["AskPrice"], vendor["Buy1"]["Price"]);
        assert_eq!(usual["AskPrice"], usual["Sell1"]["Price"]);
        assert_eq!(usual["BidPrice"], usual["Buy1"]["Price"]);
        assert!(vendor["Sell1"]["Price"].as_f64() > vendor["Buy1"]["Price"].as_f64());
    }
}
