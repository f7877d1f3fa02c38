//! The tables of a run: one closed list of columns for CSV, JSON, Parquet and the schemas.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// Exact yen.
    Yen,
    /// A moment: nanoseconds since 1970, UTC.
    Moment,
    /// A date in Japan, `YYYY-MM-DD`.
    Date,
}

impl Kind {
    /// The word for the schemas.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Whole => "integer",
            Self::Yen => "decimal",
            Self::Moment => "timestamp",
            Self::Date => "date",
        }
    }
}

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be empty.
    pub optional: bool,
    /// What it holds in words, with its unit.
    pub meaning: &'static str,
}

const fn column(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, optional: false, meaning }
}

const fn optional(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, optional: true, meaning }
}

/// One table: `<name>.csv`, `<name>.json` and `<name>.parquet`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns in order.
    pub columns: &'static [Column],
}

const NANOS: &str = "when; nanoseconds since 1970, UTC";
const TS_EVENT: Column = column("ts_event_ns", Kind::Moment, NANOS);
const INSTRUMENT: Column = column("instrument_id", Kind::Text, "`<symbol>.TSE`");
const CLIENT_ORDER: Column =
    column("client_order_id", Kind::Text, "the strategy's id of the order");

/// Fills.
pub(crate) const FILLS: Table = Table {
    name: "fills",
    row: "a fill",
    columns: &[
        TS_EVENT,
        INSTRUMENT,
        CLIENT_ORDER,
        column("venue_order_id", Kind::Text, "the exchange's number of the order"),
        column("trade_id", Kind::Text, "the fill's own number"),
        column("side", Kind::Text, "BUY or SELL"),
        column("price", Kind::Yen, "yen per share"),
        column("quantity", Kind::Whole, "shares of this fill"),
        column("cumulative_quantity", Kind::Whole, "shares of the order done so far"),
        column("leaves_quantity", Kind::Whole, "shares of the order still open"),
        column("commission", Kind::Yen, "fee in yen"),
        column("market_price", Kind::Yen, "price of the market's trade that filled it, yen"),
        column(
            "slippage",
            Kind::Yen,
            "what it cost against that price, yen; 0 for a limit order filled at its own limit",
        ),
    ],
};

/// Orders.
pub(crate) const ORDERS: Table = Table {
    name: "orders",
    row: "an order, told when it is done",
    columns: &[
        column("ts_submitted_ns", Kind::Moment, "when it was sent; nanoseconds since 1970, UTC"),
        INSTRUMENT,
        CLIENT_ORDER,
        optional("venue_order_id", Kind::Text, "the exchange's number of the order"),
        column("side", Kind::Text, "BUY or SELL"),
        column("order_type", Kind::Text, "MARKET, LIMIT, ..."),
        column("time_in_force", Kind::Text, "DAY, ..."),
        column("quantity", Kind::Whole, "shares asked for"),
        optional("price", Kind::Yen, "limit price in yen"),
        optional("trigger_price", Kind::Yen, "trigger price in yen"),
        column("filled_quantity", Kind::Whole, "shares done"),
        column("leaves_quantity", Kind::Whole, "shares not done"),
        optional("average_price", Kind::Yen, "yen per share done, cut off at 1/10,000 yen"),
        column("status", Kind::Text, "state at the end"),
        column("ts_last_ns", Kind::Moment, "when something last happened to it"),
        optional("reason_code", Kind::Text, "why it was refused"),
        optional("reason_text", Kind::Text, "the same for people"),
        column("commission", Kind::Yen, "fees in yen"),
        optional("expire_time_ns", Kind::Moment, "end of life, for GTD orders"),
        optional("ts_triggered_ns", Kind::Moment, "when its stop was triggered"),
    ],
};

/// Round trips.
pub(crate) const ROUND_TRIPS: Table = Table {
    name: "round_trips",
    row: "a way from flat to flat, told at the end of its last day",
    columns: &[
        column("ts_entry_ns", Kind::Moment, "when the position was opened"),
        column("ts_exit_ns", Kind::Moment, "when it was flat again"),
        INSTRUMENT,
        column("entry_side", Kind::Text, "BUY for a long position, SELL for a short one"),
        column("entry_order_id", Kind::Text, "the order that opened it"),
        column("exit_order_id", Kind::Text, "the order that closed it"),
        column("quantity", Kind::Whole, "shares bought, which are as many as were sold"),
        column("quantity_max", Kind::Whole, "most shares held at the same time"),
        column("buy_price", Kind::Yen, "average price bought at, cut off at 1/10,000 yen"),
        column("sell_price", Kind::Yen, "average price sold at, cut off at 1/10,000 yen"),
        column("fills", Kind::Whole, "fills"),
        column("commission", Kind::Yen, "fees in yen"),
        column("pnl", Kind::Yen, "profit or loss in yen, fees taken off"),
        column(
            "mae",
            Kind::Yen,
            "lowest profit or loss on the way at the price of any trade, at most 0 (maximum \
             adverse excursion)",
        ),
        column(
            "mfe",
            Kind::Yen,
            "the highest of the same, at least 0 (maximum favourable excursion)",
        ),
        column("duration_ns", Kind::Whole, "from entry to exit, nanoseconds"),
    ],
};

/// Positions.
pub(crate) const POSITIONS: Table = Table {
    name: "positions",
    row: "an instrument at the end of the run",
    columns: &[
        INSTRUMENT,
        column("quantity", Kind::Whole, "shares held"),
        column("cost", Kind::Yen, "what the shares held did cost, yen, fees not counted"),
        optional("average_cost", Kind::Yen, "cost of a share held, cut off at 1/10,000 yen"),
        optional("last_price", Kind::Yen, "last price in yen"),
        column("value", Kind::Yen, "shares at the last price, yen"),
        column("realised_pnl", Kind::Yen, "profit and loss of shares sold, yen, before fees"),
        column("unrealised_pnl", Kind::Yen, "value - cost, yen"),
    ],
};

/// Equity.
pub(crate) const EQUITY: Table = Table {
    name: "equity",
    row: "the end of a minute in which any instrument had trades",
    columns: &[
        TS_EVENT,
        column("cash", Kind::Yen, "money in yen"),
        column("position_value", Kind::Yen, "shares at the last prices, yen"),
        column("equity", Kind::Yen, "cash and position value, yen"),
    ],
};

/// Marks.
pub(crate) const MARKS: Table = Table {
    name: "marks",
    row: "an instrument at the end of a minute in which it had trades",
    columns: &[
        TS_EVENT,
        INSTRUMENT,
        column("price", Kind::Yen, "last price in yen"),
        column("quantity", Kind::Whole, "shares held"),
    ],
};

/// Days.
pub(crate) const DAYS: Table = Table {
    name: "days",
    row: "the end of a trading day",
    columns: &[
        column("date", Kind::Date, "the date in Japan"),
        TS_EVENT,
        column("cash", Kind::Yen, "money in yen"),
        column("equity", Kind::Yen, "cash and shares at the last prices, yen"),
    ],
};

/// Signals.
pub(crate) const SIGNALS: Table = Table {
    name: "signals",
    row: "a mark that the strategy has set",
    columns: &[
        TS_EVENT,
        INSTRUMENT,
        column("signal_kind", Kind::Text, "EntryLong, EntryShort, Exit or Annotate"),
        optional("side", Kind::Text, "BUY or SELL"),
        optional("price", Kind::Yen, "yen"),
        optional("tag", Kind::Text, "short name to group by"),
        optional("note", Kind::Text, "free text"),
    ],
};

/// Narrative.
pub(crate) const NARRATIVE: Table = Table {
    name: "narrative",
    row: "a decision of the strategy with its reasons",
    columns: &[
        TS_EVENT,
        optional("client_order_id", Kind::Text, "the order that it explains"),
        column("title", Kind::Text, "what was decided"),
        column("body", Kind::Text, "why"),
    ],
};

/// Log.
pub(crate) const LOG: Table = Table {
    name: "log",
    row: "a line of the strategy, or a warning of the host",
    columns: &[
        optional("ts_event_ns", Kind::Moment, "the event being handled; empty before the first"),
        column("level", Kind::Text, "DEBUG, INFO, WARN or ERROR"),
        column("message", Kind::Text, "the text"),
    ],
};

/// The summary.
pub(crate) const SUMMARY: Table = Table {
    name: "summary",
    row: "a number of the run",
    columns: &[
        column("name", Kind::Text, "which number; each is defined in statistics.md"),
        optional("value", Kind::Text, "the number; money in yen"),
    ],
};

/// Every table of a run.
pub const TABLES: [Table; 11] =
    [SUMMARY, ORDERS, FILLS, ROUND_TRIPS, POSITIONS, EQUITY, MARKS, DAYS, SIGNALS, NARRATIVE, LOG];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_have_the_promised_columns() {
        let names: Vec<_> = FILLS.columns.iter().map(|column| column.name).collect();
        assert_eq!(
            names.join(","),
            "ts_event_ns,instrument_id,client_order_id,venue_order_id,trade_id,side,price,\
             quantity,cumulative_quantity,leaves_quantity,commission,market_price,slippage"
        );
    }

    #[test]
    fn names_are_there_once() {
        for table in TABLES {
            let mut names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
    }
}
