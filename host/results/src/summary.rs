//! The numbers of a run, each with its name, unit and formula in one place.

use domain::{Money, TsNanos};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::totals::RunTotals;

/// What a number is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Words, or a name.
    Text,
    /// A timestamp in Japan time.
    Timestamp,
    /// A whole number of things.
    Count,
    /// A whole number of shares.
    Shares,
    /// Exact yen.
    Yen,
    /// A ratio; people see percent.
    Ratio,
    /// A plain number.
    Number,
}

impl Unit {
    /// The word for files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Timestamp => "timestamp",
            Self::Count => "count",
            Self::Shares => "shares",
            Self::Yen => "yen",
            Self::Ratio => "ratio",
            Self::Number => "number",
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a number of the summary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// The group that it is shown in.
    pub group: &'static str,
    /// Its name in files.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// What it says and how it is made.
    pub text: &'static str,
}

/// Declares the summary and, from the same words, its documentation.
macro_rules! summary {
    ($($group:literal { $($name:ident: $kind:ty, $unit:ident, $title:literal, $text:literal;)+ })+) => {
        /// A run in a few numbers. Money is exact text in yen; ratios are ordinary numbers, 0.01 for
        /// one percent; what cannot be told is missing.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct Summary {
            $($(#[doc = $text] pub $name: $kind,)+)+
        }

        /// Every number of the summary, in its order.
        pub const DEFINITIONS: &[Definition] = &[
            $($(Definition {
                group: $group,
                name: stringify!($name),
                title: $title,
                unit: Unit::$unit,
                text: $text,
            },)+)+
        ];
    };
}

summary! {
    "Run" {
        status: String, Text, "Status", "`completed`, `interrupted` or `failed`.";
        first_trade: String, Timestamp, "First trade", "The first trade that the strategy has seen, in Japan time.";
        last_trade: String, Timestamp, "Last trade", "The last trade that the strategy has seen, in Japan time.";
        days: u64, Count, "Trading days", "Days of the run that the strategy has come to, those without trades too.";
        trades_seen: u64, Count, "Trades seen", "Trades of the market that the strategy has seen.";
        event_log_digest: String, Text, "Event-log digest", "xxh3-128 of the event log: equal for runs in which the same happened.";
    }
    "Result" {
        cash_start: String, Yen, "Cash at the start", "Money in the account before the first trade.";
        cash_end: String, Yen, "Cash at the end", "Money in the account at the end.";
        position_end: i64, Shares, "Position at the end", "Shares held at the end, of all instruments together.";
        equity_end: String, Yen, "Final equity", "Cash and the value of the shares held, each at its last price (F8).";
        profit: String, Yen, "Profit", "Final equity - cash at the start.";
        realised_pnl: String, Yen, "Realised profit", "Profit and loss of shares sold against their average cost, before fees.";
        unrealised_pnl: String, Yen, "Unrealised profit", "Value of the shares held at the last prices - their average cost, before fees.";
        return_ratio: Option<f64>, Ratio, "Return", "Profit / cash at the start.";
        cagr: Option<f64>, Ratio, "Return per year (CAGR)", "(final equity / cash at the start) ^ (252 / trading days) - 1. Means little for a few days.";
        best_day: Option<f64>, Ratio, "Best day", "The largest daily return. The daily return is the change of the equity from one day's last minute to the next (first day: from the cash at the start) per equity before.";
        worst_day: Option<f64>, Ratio, "Worst day", "The smallest daily return.";
    }
    "Risk" {
        volatility: Option<f64>, Ratio, "Volatility per year", "s * sqrt(252), with s the standard deviation of the daily returns (sample, n - 1).";
        sharpe: Option<f64>, Number, "Sharpe ratio", "mean / s * sqrt(252) of the daily returns; risk-free rate 0.";
        sortino: Option<f64>, Number, "Sortino ratio", "mean / d * sqrt(252), with d = sqrt(mean of min(daily return, 0)^2) over all days; risk-free rate 0.";
        calmar: Option<f64>, Number, "Calmar ratio", "Return per year / maximum drawdown.";
        max_drawdown_ratio: f64, Ratio, "Maximum drawdown", "The largest drop of the equity below its highest value so far, per that value, at the ends of minutes with trades.";
        max_drawdown: String, Yen, "Maximum drawdown in yen", "The depth of the same drop in yen.";
        max_drawdown_start: Option<String>, Timestamp, "Drawdown from", "When the highest value before that drop was reached; missing when it was the cash at the start.";
        max_drawdown_trough: Option<String>, Timestamp, "Drawdown trough", "When the lowest value of that drop was reached.";
        max_drawdown_recovery: Option<String>, Timestamp, "Drawdown recovered", "When the equity was back at the highest value; missing while it is not.";
        exposure: Option<f64>, Ratio, "Exposure time", "Minutes with trades at whose end shares were held / minutes with trades.";
    }
    "Round trips" {
        round_trips: u64, Count, "Round trips", "Times a position went from flat to flat.";
        win_rate: Option<f64>, Ratio, "Win rate", "Round trips with a profit above zero, fees taken off / round trips.";
        profit_factor: Option<f64>, Number, "Profit factor", "Sum of the profits of winning round trips / sum of the losses of losing ones; missing without a loss.";
        expectancy: Option<String>, Yen, "Expectancy", "Mean profit or loss of a round trip, fees taken off.";
        average_win: Option<String>, Yen, "Average win", "Mean profit of the winning round trips.";
        average_loss: Option<String>, Yen, "Average loss", "Mean loss of the losing round trips, below zero.";
    }
    "Orders and costs" {
        orders: u64, Count, "Orders", "Orders sent, or rejected before sending.";
        orders_filled: u64, Count, "Orders filled", "Orders filled wholly.";
        orders_rejected: u64, Count, "Orders rejected", "Orders rejected, by the checks or by the exchange.";
        orders_expired: u64, Count, "Orders expired", "Orders whose time ran out.";
        orders_canceled: u64, Count, "Orders cancelled", "Orders cancelled.";
        fills: u64, Count, "Fills", "Fills of all orders; one order may have many.";
        turnover: String, Yen, "Turnover", "Value of everything bought and sold.";
        turnover_ratio: Option<f64>, Number, "Turnover ratio", "Turnover / mean of the equity at the ends of the days.";
        commission: String, Yen, "Fees", "Commission of all fills.";
        slippage: String, Yen, "Slippage paid", "Sum over fills of side * (price of the fill - price of the market's trade that filled it) * shares, with side 1 for a buy and -1 for a sell. Limit orders filled at their own limit count nothing.";
        our_volume: u64, Shares, "Our volume", "Shares of our fills.";
        market_volume: String, Shares, "Market volume", "Shares traded on the market in the trades seen.";
        participation: f64, Ratio, "Participation", "Our volume / market volume.";
    }
}

impl Summary {
    /// The summary of a run.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ratios for people; exact values stand beside")]
    pub fn new(totals: &RunTotals) -> Self {
        let performance = &totals.performance;
        let profit = totals.equity_end - totals.cash_start;
        let returns = performance.returns();
        let days = returns.best_and_worst();
        let drawdown = performance.drawdown.deepest();
        let drawdown_ratio = drawdown.map_or(0.0, |drawdown| drawdown.ratio());
        let cagr = returns.cagr();
        let unrealised: Money = totals.positions.iter().map(|one| one.unrealised_pnl()).sum();
        let trips = &performance.trips;
        let text = |at: Option<TsNanos>| at.map(|at| at.to_string());
        let yen = |amount: Option<Money>| amount.map(|amount| amount.to_string());
        let seen = |at: Option<TsNanos>| text(at).unwrap_or_else(|| "none".to_owned());
        let per = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let cash = totals.cash_start.approximate_yen();
        Self {
            status: totals.status.as_str().to_owned(),
            first_trade: seen(totals.span.map(|span| span.0)),
            last_trade: seen(totals.span.map(|span| span.1)),
            days: performance.days.len() as u64,
            trades_seen: totals.trades_seen,
            event_log_digest: totals.digest.to_string(),
            cash_start: totals.cash_start.to_string(),
            cash_end: totals.cash_end.to_string(),
            position_end: totals.position_end,
            equity_end: totals.equity_end.to_string(),
            profit: profit.to_string(),
            realised_pnl: totals.realised_pnl.to_string(),
            unrealised_pnl: unrealised.to_string(),
            return_ratio: per(profit.approximate_yen(), cash),
            cagr,
            best_day: days.map(|days| days.0),
            worst_day: days.map(|days| days.1),
            volatility: returns.volatility(),
            sharpe: returns.sharpe(),
            sortino: returns.sortino(),
            calmar: cagr.and_then(|cagr| (drawdown_ratio > 0.0).then(|| cagr / drawdown_ratio)),
            max_drawdown_ratio: drawdown_ratio,
            max_drawdown: drawdown.map_or(Money::ZERO, |one| one.depth()).to_string(),
            max_drawdown_start: text(drawdown.and_then(|one| one.start)),
            max_drawdown_trough: text(drawdown.map(|one| one.trough)),
            max_drawdown_recovery: text(drawdown.and_then(|one| one.recovery)),
            exposure: per(performance.minutes_held as f64, performance.minutes as f64),
            round_trips: trips.count,
            win_rate: trips.win_rate(),
            profit_factor: trips.profit_factor(),
            expectancy: yen(trips.expectancy()),
            average_win: yen(trips.average_win()),
            average_loss: yen(trips.average_loss()),
            orders: totals.order_counts.all,
            orders_filled: totals.order_counts.filled,
            orders_rejected: totals.order_counts.rejected,
            orders_expired: totals.order_counts.expired,
            orders_canceled: totals.order_counts.canceled,
            fills: totals.fill_count,
            turnover: performance.turnover.to_string(),
            turnover_ratio: performance
                .mean_equity()
                .and_then(|mean| per(performance.turnover.approximate_yen(), mean)),
            commission: totals.commission.to_string(),
            slippage: performance.slippage.to_string(),
            our_volume: totals.our_volume.shares(),
            market_volume: totals.market_volume.to_string(),
            participation: per(totals.our_volume.shares() as f64, totals.market_volume as f64)
                .unwrap_or(0.0),
        }
    }
}

/// The definitions as a page of documentation in Markdown.
#[must_use]
pub fn definitions_markdown() -> String {
    let mut page = String::from(
        "# Statistics of a replay\n\nGenerated from `host/results/src/summary.rs` by `cargo xtask \
         schemas`; the report shows the same words.\n\nDaily returns run from one trading day's last \
         minute to the next, the first from the cash at the start. A year has 252 trading days. The \
         risk-free rate is 0. Ratios are written as numbers: 0.01 is one percent. Money is exact \
         text in yen.\n",
    );
    let mut group = "";
    for one in DEFINITIONS {
        if one.group != group {
            group = one.group;
            page.push_str(&format!(
                "\n## {group}\n\n| name | what | unit | formula |\n|---|---|---|---|\n"
            ));
        }
        let text = one.text.replace('|', "\\|");
        page.push_str(&format!(
            "| `{}` | {} | {} | {text} |\n",
            one.name,
            one.title,
            one.unit.as_str()
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use serde_json::Value;

    #[test]
    fn every_number_has_its_definition() {
        let summary = serde_json::to_value(Summary::new(&sample::empty().totals)).unwrap();
        let names: Vec<&String> = summary.as_object().unwrap().keys().collect();
        let defined: Vec<&str> = DEFINITIONS.iter().map(|one| one.name).collect();
        assert_eq!(names, defined);
        for one in DEFINITIONS {
            assert!(one.text.ends_with('.'), "{}", one.name);
        }
    }

    #[test]
    fn a_run_in_which_nothing_happened_has_few_numbers() {
        let summary = serde_json::to_value(Summary::new(&sample::empty().totals)).unwrap();
        for name in ["win_rate", "sharpe", "cagr", "exposure", "calmar", "turnover_ratio"] {
            assert_eq!(summary[name], Value::Null, "{name}");
        }
        assert_eq!(summary["return_ratio"], 0.0);
        assert_eq!(summary["max_drawdown"], "0");
    }

    #[test]
    fn the_page_of_definitions_holds_them_all() {
        let page = definitions_markdown();
        assert!(DEFINITIONS.iter().all(|one| page.contains(&format!("| `{}` |", one.name))));
        assert_eq!(page.matches("\n## ").count(), 5);
    }
}
