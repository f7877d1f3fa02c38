//! The tables of a run: each column once, with its name, its type, what it holds in words and its
//! cell in a row. CSV, JSON, Parquet, the page and the schemas come from here.

use std::io;
use std::path::Path;

use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{JstDate, Money, OrderRecord, Price, Quantity, TsNanos};

use super::cells::{Cell, CellValue, Names};
use super::column::{Column, Table};
use super::files::FolderError;
use super::forms::TableForms;
use crate::report::PageTable;
use crate::rows::{EquityRow, FillRow, MarkRow, PositionEnd, RoundTrip};
use crate::sink::Record;

/// Declares tables: for each column its name, the type of its cells, which gives its kind, its
/// meaning, and its cell in a row.
macro_rules! tables {
    ($($table:ident: $name:literal, $meaning:literal,
       $type:ty => |$row:pat_param, $names:pat_param| {
        $($column:literal: $cell:ty, $what:expr, $value:expr;)+
    })+) => {
        /// Every table of a run.
        pub const TABLES: &[Table] = &[$($table::TABLE),+];

        $(
            #[doc = concat!("`", $name, "`: a row is ", $meaning, ".")]
            pub(crate) struct $table;

            impl $table {
                pub(crate) const TABLE: Table = Table {
                    name: $name,
                    row: $meaning,
                    columns: &[$(Column {
                        name: $column,
                        kind: <$cell as Cell<'_>>::KIND,
                        optional: <$cell as Cell<'_>>::OPTIONAL,
                        meaning: $what,
                    }),+],
                };

                /// Hands the cells of a row over, in the order of the columns.
                pub(crate) fn push<'a>(
                    $row: $type,
                    $names: &'a Names,
                    to: impl FnOnce(&[CellValue<'_>]) -> io::Result<()>,
                ) -> io::Result<()> {
                    to(&[$({
                        let value: $cell = $value;
                        value.cell()
                    }),+])
                }
            }
        )+
    };
}

const NANOS: &str = "when; nanoseconds since 1970, UTC";
const INSTRUMENT: &str = "`<symbol>.TSE`";
const CLIENT_ORDER: &str = "the sender's id of the order";
const ORIGIN: &str = "whose order it is: strategy, or person for one of a client of the engine";

tables! {
    SummaryNumbers: "summary", "a number of the run",
    (&'a str, Option<String>) => |(name, value), _| {
        "name": &str, "which number; each is defined in statistics.md", name;
        "value": Option<&str>, "the number; money in yen", value.as_deref();
    }

    Orders: "orders", "an order, written when it is done", &'a OrderRecord => |order, names| {
        "ts_submitted_ns": TsNanos, "when it was sent; nanoseconds since 1970, UTC",
            order.ts_submitted;
        "instrument_id": &str, INSTRUMENT, names.of(order.request.instrument);
        "client_order_id": &str, CLIENT_ORDER, &order.request.client_order_id;
        "venue_order_id": Option<&str>, "the exchange's number of the order",
            order.venue_order_id.as_deref();
        "side": &str, "BUY or SELL", order.request.side.as_str();
        "order_type": &str, "MARKET, LIMIT, ...", order.request.order_type.as_str();
        "time_in_force": &str, "DAY, ...", order.request.time_in_force.as_str();
        "quantity": Quantity, "shares ordered", order.request.quantity;
        "price": Option<Price>, "limit price in yen", order.request.price;
        "trigger_price": Option<Price>, "trigger price in yen", order.request.trigger_price;
        "filled_quantity": Quantity, "shares filled", order.filled;
        "leaves_quantity": Quantity, "shares not filled", order.leaves();
        "average_price": Option<Price>, "yen per share filled, cut off at 1/10,000 yen",
            order.average_price();
        "status": &str, "state at the end", order.status.as_str();
        "ts_last_ns": TsNanos, "when it last changed", order.ts_last;
        "reason_code": Option<&str>,
            "why it was rejected, or why it expired before its time: EX_RIGHTS, LOT_CHANGE, ...",
            order.rejection.as_ref().map(|why| why.code.as_str()).or(order.expired_early);
        "reason_text": Option<&str>, "why it was rejected, for people",
            order.rejection.as_ref().map(|why| why.text.as_str());
        "commission": Money, "fees in yen", order.commission;
        "expire_time_ns": Option<TsNanos>, "end of life, for GTD orders", order.request.expire_time;
        "ts_triggered_ns": Option<TsNanos>, "when its stop was triggered", order.ts_triggered;
        "origin": &str, ORIGIN, order.origin.as_str();
    }

    Fills: "fills", "a fill", &'a FillRow => |fill, names| {
        "ts_event_ns": TsNanos, NANOS, fill.ts_event;
        "instrument_id": &str, INSTRUMENT, names.of(fill.instrument);
        "client_order_id": &str, CLIENT_ORDER, &fill.client_order_id;
        "venue_order_id": &str, "the exchange's number of the order", &fill.venue_order_id;
        "trade_id": &str, "the fill's own number", &fill.trade_id;
        "side": &str, "BUY or SELL", fill.side.as_str();
        "price": Price, "yen per share", fill.price;
        "quantity": Quantity, "shares of this fill", fill.quantity;
        "cumulative_quantity": Quantity, "shares of the order filled so far",
            fill.cumulative_quantity;
        "leaves_quantity": Quantity, "shares of the order still open", fill.leaves_quantity;
        "commission": Money, "fee in yen", fill.commission;
        "market_price": Price, "price of the market's trade that filled it, yen",
            fill.market_price;
        "slippage": Money,
            "what it cost against that price, yen; 0 for a limit order filled at its own limit",
            fill.slippage;
        "origin": &str, ORIGIN, fill.origin.as_str();
    }

    RoundTrips: "round_trips", "a round trip from flat to flat, written at the end of its last day",
    &'a RoundTrip => |trip, names| {
        "ts_entry_ns": TsNanos, "when the position was opened", trip.ts_entry;
        "ts_exit_ns": TsNanos, "when it was flat again", trip.ts_exit;
        "instrument_id": &str, INSTRUMENT, names.of(trip.instrument);
        "entry_side": &str, "BUY for a long position, SELL for a short one",
            trip.entry_side.as_str();
        "entry_order_id": &str, "the order that opened it", &trip.entry_order;
        "exit_order_id": &str, "the order that closed it", &trip.exit_order;
        "quantity": u64, "shares bought, which are as many as were sold", trip.quantity;
        "quantity_max": u64, "most shares held at the same time", trip.quantity_max;
        "buy_price": Price, "average price bought at, cut off at 1/10,000 yen", trip.buy_price;
        "sell_price": Price, "average price sold at, cut off at 1/10,000 yen", trip.sell_price;
        "fills": u32, "fills", trip.fills;
        "commission": Money, "fees in yen", trip.commission;
        "pnl": Money, "profit or loss in yen, fees taken off", trip.pnl;
        "mae": Money,
            "lowest profit or loss on the way at the price of any trade, at most 0 (maximum \
             adverse excursion)",
            trip.mae;
        "mfe": Money, "the highest of the same, at least 0 (maximum favourable excursion)",
            trip.mfe;
        "duration_ns": u64, "from entry to exit, nanoseconds",
            trip.ts_exit.nanos().saturating_sub(trip.ts_entry.nanos());
    }

    Positions: "positions", "an instrument at the end of the run",
    &'a PositionEnd => |position, names| {
        "instrument_id": &str, INSTRUMENT, names.of(position.instrument);
        "quantity": i64, "shares held", position.quantity;
        "cost": Money, "cost of the shares held, yen, without fees", position.cost;
        "average_cost": Option<Price>, "cost of a share held, cut off at 1/10,000 yen",
            position.average_cost();
        "last_price": Option<Price>, "last price in yen", position.last_price;
        "value": Money, "shares at the last price, yen", position.value();
        "realised_pnl": Money, "profit and loss of shares sold, yen, before fees",
            position.realised_pnl;
        "unrealised_pnl": Money, "value - cost, yen", position.unrealised_pnl();
    }

    Equity: "equity", "the end of a minute in which any instrument had trades",
    &'a EquityRow => |row, _| {
        "ts_event_ns": TsNanos, NANOS, row.ts_event;
        "cash": Money, "money in yen", row.cash;
        "position_value": Money, "shares at the last prices, yen", row.equity - row.cash;
        "equity": Money, "cash and position value, yen", row.equity;
    }

    Marks: "marks", "an instrument at the end of a minute in which it had trades",
    &'a MarkRow => |row, names| {
        "ts_event_ns": TsNanos, NANOS, row.ts_event;
        "instrument_id": &str, INSTRUMENT, names.of(row.instrument);
        "price": Price, "last price in yen", row.price;
        "quantity": i64, "shares held", row.quantity;
    }

    Days: "days", "the end of a trading day", &'a EquityRow => |row, _| {
        // The end of a minute with trades is no other day.
        "date": JstDate, "the date in Japan", row.ts_event.jst_date();
        "ts_event_ns": TsNanos, NANOS, row.ts_event;
        "cash": Money, "money in yen", row.cash;
        "equity": Money, "cash and shares at the last prices, yen", row.equity;
    }

    Signals: "signals", "a mark that the strategy has set",
    (TsNanos, &'a Signal) => |(ts_event, signal), names| {
        "ts_event_ns": TsNanos, NANOS, ts_event;
        "instrument_id": &str, INSTRUMENT, names.of(signal.instrument);
        "signal_kind": &str, "EntryLong, EntryShort, Exit or Annotate", signal.kind.as_str();
        "side": Option<&str>, "BUY or SELL", signal.side.map(|side| side.as_str());
        "price": Option<Price>, "yen", signal.price;
        "tag": Option<&str>, "short name to group by", signal.tag.as_deref();
        "note": Option<&str>, "free text", signal.note.as_deref();
    }

    Narrative: "narrative", "a decision of the strategy with its reasons",
    (TsNanos, &'a NarrativeRecord) => |(ts_event, record), _| {
        "ts_event_ns": TsNanos, NANOS, ts_event;
        "client_order_id": Option<&str>, "the order that it explains",
            record.client_order_id.as_deref();
        "title": &str, "what was decided", &record.title;
        "body": &str, "why", &record.body;
    }

    Log: "log", "a line of the strategy, or a warning of the host", &'a LogLine => |line, _| {
        "ts_event_ns": Option<TsNanos>, "the event being handled; empty before the first",
            line.ts_event;
        "level": &str, "DEBUG, INFO, WARN or ERROR", line.level.as_str();
        "message": &str, "the text", &line.message;
    }
}

/// Declares where each record of a run goes.
macro_rules! streamed_tables {
    ($($field:ident: $table:ident, $record:pat => $row:expr;)+) => {
        /// The tables that grow while a run goes on.
        pub(crate) struct StreamedTables {
            $($field: TableForms,)+
        }

        impl StreamedTables {
            /// Begins the files in a folder.
            pub(crate) fn create(folder: &Path) -> Result<Self, FolderError> {
                Ok(Self { $($field: TableForms::create(folder, &$table::TABLE)?,)+ })
            }

            /// Writes a record into its table, if it is a row of one.
            pub(crate) fn take(&mut self, record: Record<'_>, names: &Names) -> io::Result<()> {
                match record {
                    $($record => $table::push($row, names, |cells| self.$field.push(cells)),)+
                    Record::OrderEvent { .. }
                    | Record::Position(_)
                    | Record::ClientWarning { .. }
                    | Record::ClientCommand(_)
                    | Record::ClientRejection { .. }
                    | Record::Split { .. }
                    | Record::Trade(_)
                    | Record::Bar(_)
                    | Record::BuyingPower(_) => Ok(()),
                }
            }

            /// Completes the files, and gives what the page shows of the tables.
            pub(crate) fn finish(self) -> Result<Vec<PageTable>, FolderError> {
                let shown = [$(self.$field.finish()?,)+];
                Ok(shown.into_iter().flatten().collect())
            }
        }
    };
}

streamed_tables! {
    orders: Orders, Record::Order(order) => order;
    fills: Fills, Record::Fill(fill) => fill;
    round_trips: RoundTrips, Record::RoundTrip(trip) => trip;
    equity: Equity, Record::Equity(row) => row;
    marks: Marks, Record::Mark(row) => row;
    days: Days, Record::Day(row) => row;
    signals: Signals, Record::Signal(ts_event, signal) => (ts_event, signal);
    narrative: Narrative, Record::Narrative(ts_event, record) => (ts_event, record);
    log: Log, Record::Log(line) => line;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_have_the_promised_columns() {
        let names: Vec<_> = Fills::TABLE.columns.iter().map(|column| column.name).collect();
        assert_eq!(
            names.join(","),
            "ts_event_ns,instrument_id,client_order_id,venue_order_id,trade_id,side,price,\
             quantity,cumulative_quantity,leaves_quantity,commission,market_price,slippage,origin"
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
