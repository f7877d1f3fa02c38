//! The read-only account: balances, and rows of orders and positions in the vendor's layout with the
//! filters of their queries.

use domain::Money;
use serde_json::{Map, Value, json};

use super::board_text::{Decimal, number};
use super::limits::ACCOUNT_ROWS_MAX;
use super::refusal::Refusal;
use super::rest::Query;

/// Balances and rows.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) cash: Money,
    pub(crate) margin: Money,
    pub(crate) orders: Vec<Value>,
    pub(crate) positions: Vec<Value>,
}

/// The value of a field whatever way the row has it: the vendor mixes numbers and texts.
fn text_of(row: &Value, name: &str) -> String {
    match row.get(name) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// `2022-04-04T18:00:51.763683+09:00` as `20220404180051`.
fn digits_of(time: &str) -> String {
    time.chars().take(19).filter(char::is_ascii_digit).collect()
}

/// When an order was last changed, as `updtime` counts it.
fn updated(row: &Value) -> String {
    let details = row.get("Details").and_then(Value::as_array).into_iter().flatten();
    let times = details.map(|detail| text_of(detail, "TransactTime"));
    times.chain([text_of(row, "RecvTime")]).map(|time| digits_of(&time)).max().unwrap_or_default()
}

/// Whether a row is of the product asked for.
fn is_product(row: &Value, product: &str, is_margin: bool) -> bool {
    let exchange = text_of(row, "Exchange");
    let is_derivative = matches!(exchange.as_str(), "2" | "23" | "24");
    match product {
        "" | "0" => true,
        "1" => !is_derivative && !is_margin,
        "2" => !is_derivative && is_margin,
        _ => is_derivative,
    }
}

fn one_of(query: &Query, name: &str, known: &[&str]) -> Result<String, Refusal> {
    let value = query.get(name);
    let is_known = value.is_empty() || known.contains(&value);
    if is_known { Ok(value.to_owned()) } else { Err(Refusal::Query) }
}

fn flag(query: &Query, name: &str) -> Result<bool, Refusal> {
    Ok(one_of(query, name, &["true", "false"])? != "false")
}

const PRODUCTS: [&str; 5] = ["0", "1", "2", "3", "4"];
const SIDES: [&str; 2] = ["1", "2"];

impl Account {
    /// An account.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(
        cash: Money,
        margin: Money,
        orders: Vec<Value>,
        positions: Vec<Value>,
    ) -> Result<Self, String> {
        if cash < Money::ZERO || margin < Money::ZERO {
            return Err(format!("cash {cash} and margin {margin} must be 0 or above"));
        }
        for (name, rows) in [("orders", &orders), ("positions", &positions)] {
            let count = rows.len();
            if count > ACCOUNT_ROWS_MAX {
                return Err(format!(
                    "{count} rows of {name} are more than ACCOUNT_ROWS_MAX ({ACCOUNT_ROWS_MAX})"
                ));
            }
            if let Some(place) = rows.iter().position(|row| !row.is_object()) {
                return Err(format!("row {} of {name} is not a JSON object", place + 1));
            }
        }
        Ok(Self { cash, margin, orders, positions })
    }

    /// `GET /wallet/cash`.
    pub(crate) fn wallet_cash(&self) -> String {
        let cash = number(Decimal::of_money(self.cash));
        format!(
            "{{\"StockAccountWallet\":{cash},\"AuKCStockAccountWallet\":{cash},\
             \"AuJbnStockAccountWallet\":0.0}}"
        )
    }

    /// `GET /wallet/margin`; rates are told for a symbol only.
    pub(crate) fn wallet_margin(&self, of_symbol: bool) -> String {
        let margin = number(Decimal::of_money(self.margin));
        let (keep, rate, cash_rate) =
            if of_symbol { ("150.0", "30.0", "0.0") } else { ("0.0", "null", "null") };
        format!(
            "{{\"MarginAccountWallet\":{margin},\"DepositkeepRate\":{keep},\
             \"ConsignmentDepositRate\":{rate},\"CashOfConsignmentDepositRate\":{cash_rate},\
             \"MaximumSellOpenAmountPerSymbol\":null,\"MaximumBuyOpenAmountPerSymbol\":null}}"
        )
    }

    /// `GET /orders`.
    pub(crate) fn orders(&self, query: &Query) -> Result<Value, Refusal> {
        let product = one_of(query, "product", &PRODUCTS)?;
        let state = one_of(query, "state", &["1", "2", "3", "4", "5"])?;
        let side = one_of(query, "side", &SIDES)?;
        let cash_margin = one_of(query, "cashmargin", &["2", "3"])?;
        let has_details = flag(query, "details")?;
        let (id, since, symbol) = (query.get("id"), query.get("updtime"), query.get("symbol"));
        let is_time = since.len() == 14 && since.bytes().all(|byte| byte.is_ascii_digit());
        if !since.is_empty() && !is_time {
            return Err(Refusal::Query);
        }
        let fits = |wanted: &str, row: &Value, name: &str| {
            wanted.is_empty() || text_of(row, name) == wanted
        };
        let rows = self.orders.iter().filter(|row| {
            let is_margin = matches!(text_of(row, "CashMargin").as_str(), "2" | "3");
            is_product(row, &product, is_margin)
                && (id.is_empty() || text_of(row, "ID").eq_ignore_ascii_case(id))
                && (since.is_empty() || updated(row).as_str() >= since)
                && fits(symbol, row, "Symbol")
                && fits(&state, row, "State")
                && fits(&side, row, "Side")
                && fits(&cash_margin, row, "CashMargin")
        });
        let mut rows: Vec<Value> = rows.cloned().collect();
        if !has_details {
            for row in rows.iter_mut().filter_map(Value::as_object_mut) {
                row.shift_remove("Details");
            }
        }
        Ok(Value::Array(rows))
    }

    /// `GET /positions`.
    pub(crate) fn positions(&self, query: &Query) -> Result<Value, Refusal> {
        let product = one_of(query, "product", &PRODUCTS)?;
        let side = one_of(query, "side", &SIDES)?;
        let symbol = query.get("symbol");
        let is_full = flag(query, "addinfo")?;
        let rows = self.positions.iter().filter(|row| {
            let is_margin = row.get("MarginTradeType").is_some_and(|kind| !kind.is_null());
            is_product(row, &product, is_margin)
                && (symbol.is_empty() || text_of(row, "Symbol") == symbol)
                && (side.is_empty() || text_of(row, "Side") == side)
        });
        let mut rows: Vec<Value> = rows.cloned().collect();
        if !is_full {
            for row in rows.iter_mut().filter_map(Value::as_object_mut) {
                for name in ["CurrentPrice", "Valuation", "ProfitLoss", "ProfitLossRate"] {
                    row.insert(name.to_owned(), Value::Null);
                }
            }
        }
        Ok(Value::Array(rows))
    }
}

/// A row of `Details`.
fn detail(number: u32, kind: u32, state: u32, quantity: u32, price: f64, time: &str) -> Value {
    let is_fill = kind == 8;
    let order_type = match kind {
        6 => Value::Null,
        3 | 7 | 8 => json!(0),
        _ => json!(1),
    };
    json!({
        "SeqNum": number,
        "ID": format!("20260511A02N{number:08}"),
        "RecType": kind,
        "ExchangeID": if kind >= 4 { Value::from("00000000-0000-0000-0000-00000000") } else { Value::Null },
        "State": state,
        "TransactTime": time,
        "OrdType": order_type,
        "Price": price,
        "Qty": quantity,
        "ExecutionID": if is_fill { Value::from(format!("E20260511{number:05}")) } else { Value::Null },
        "ExecutionDay": if is_fill { Value::from("2026-05-11T09:02:00+09:00") } else { Value::Null },
        "DelivDay": if is_fill { 20_260_513 } else { 0 },
        "Commission": 0,
        "CommissionTax": 0
    })
}

/// Orders in every state, on every exchange that rows carry: 1, 9 (SOR) and 27 (TSE+), among them a margin
/// order, a part fill, a cancelled, a lapsed, an expired and a refused one.
pub(crate) fn sample_orders() -> Vec<Value> {
    let time = |second: u32| format!("2026-05-11T09:00:{second:02}.763683+09:00");
    let row = |number: u32, state: u32, exchange: u32, side: &str, price: f64, filled: u32| {
        let name = match exchange {
            9 => "SOR",
            27 => "東証＋プ",
            _ => "東証プ",
        };
        json!({
            "ID": format!("20260511A02N{number:08}"), "State": state, "OrderState": state,
            "OrdType": 1, "RecvTime": time(number), "Symbol": "7203",
            "SymbolName": "トヨタ自動車", "Exchange": exchange, "ExchangeName": name,
            "TimeInForce": 1, "Price": price, "OrderQty": 300, "CumQty": filled, "Side": side,
            "AccountType": 4, "DelivType": 2, "ExpireDay": 20_260_511,
        })
    };
    let with = |mut row: Value, other: Value, details: Vec<Value>| {
        if let (Value::Object(row), Value::Object(other)) = (&mut row, other) {
            row.extend(other);
            row.insert("Details".to_owned(), Value::Array(details));
        }
        row
    };
    let nothing = || Value::Object(Map::new());
    let margin = json!({ "CashMargin": 2, "MarginTradeType": 1, "MarginPremium": null });
    let repay = json!({ "CashMargin": 3, "MarginTradeType": 3, "MarginPremium": 0.05 });
    let taken = |number, price| detail(number, 1, 3, 300, price, &time(number));
    let sent = |number, price| detail(number, 4, 3, 300, price, &time(number));
    let more = |number, kind, state, quantity, price| {
        detail(number, kind, state, quantity, price, &time(number + 10))
    };
    vec![
        with(row(1, 1, 9, "2", 2_840.0, 0), nothing(), vec![taken(1, 2_840.0)]),
        with(
            row(2, 2, 27, "2", 2_841.5, 0),
            nothing(),
            vec![taken(2, 2_841.5), detail(2, 4, 2, 300, 2_841.5, &time(2))],
        ),
        with(
            row(3, 3, 9, "1", 2_900.0, 100),
            margin,
            vec![taken(3, 2_900.0), sent(3, 2_900.0), more(3, 8, 3, 100, 2_900.0)],
        ),
        with(
            row(4, 4, 27, "2", 2_830.0, 0),
            nothing(),
            vec![taken(4, 2_830.0), sent(4, 2_830.0), more(4, 6, 2, 300, 2_830.0)],
        ),
        with(
            row(5, 5, 27, "2", 2_850.5, 300),
            nothing(),
            vec![taken(5, 2_850.5), sent(5, 2_850.5), more(5, 8, 3, 300, 2_850.5)],
        ),
        with(
            row(6, 5, 9, "1", 2_860.0, 0),
            repay,
            vec![taken(6, 2_860.0), sent(6, 2_860.0), more(6, 6, 3, 300, 2_860.0)],
        ),
        with(
            row(7, 5, 1, "2", 2_700.0, 0),
            nothing(),
            vec![taken(7, 2_700.0), sent(7, 2_700.0), more(7, 7, 3, 300, 2_700.0)],
        ),
        with(
            row(8, 5, 9, "2", 2_710.0, 100),
            nothing(),
            vec![
                taken(8, 2_710.0),
                sent(8, 2_710.0),
                more(8, 8, 3, 100, 2_710.0),
                more(8, 3, 3, 200, 2_710.0),
            ],
        ),
        with(
            row(9, 5, 9, "2", 9_999.0, 0),
            nothing(),
            vec![taken(9, 9_999.0), detail(9, 4, 4, 300, 9_999.0, &time(9))],
        ),
    ]
}

/// A margin position and one of cash, which has nulls where only margin ones have something.
pub(crate) fn sample_positions() -> Vec<Value> {
    vec![
        json!({
            "ExecutionID": "E2026051100003", "AccountType": 4, "Symbol": "7203",
            "SymbolName": "トヨタ自動車", "Exchange": 1, "ExchangeName": "東証プ",
            "ExecutionDay": 20_260_511, "Price": 2_900, "LeavesQty": 100, "HoldQty": 0, "Side": "1",
            "Expenses": 0, "Commission": 0, "CommissionTax": 0, "ExpireDay": 20_261_111,
            "MarginTradeType": 1, "CurrentPrice": 2_850.5, "Valuation": 285_050, "ProfitLoss": 4_950,
            "ProfitLossRate": 1.706_896_551_724_138
        }),
        json!({
            "ExecutionID": null, "AccountType": 2, "Symbol": "130A", "SymbolName": "ソ表ニックス",
            "Exchange": 1, "ExchangeName": "東証グ", "ExecutionDay": null, "Price": 1_200.5,
            "LeavesQty": 500, "HoldQty": 100, "Side": "2", "Expenses": null, "Commission": null,
            "CommissionTax": null, "ExpireDay": null, "MarginTradeType": null,
            "CurrentPrice": 1_250, "Valuation": 625_000, "ProfitLoss": 24_750,
            "ProfitLossRate": 4.123_281_965_847_564
        }),
    ]
}
