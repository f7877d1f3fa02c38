//! Misbehaves in the way that the first tag of an order asks for, or else the symbol of a row or the kind
//! of a frame; everything else it answers as the contract wants.

use kumiki_dialect_sdk::prelude::*;
use kumiki_dialect_sdk::register_dialect;
use std::cell::Cell;

/// The dialect.
#[derive(Debug)]
pub struct Turns;

std::thread_local! {
    /// How often this instance was asked: what a dialect must not rely on.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn request(fields: Vec<Field>) -> Request {
    named("CLMKabuNewOrder", fields)
}

fn named(id: &str, fields: Vec<Field>) -> Request {
    Request { id: id.to_owned(), fields, lists: Vec::new(), password_field: None }
}

fn turn(order: &Order) -> Result<Request, Refusal> {
    let refusal = |text: &str| Refusal { code: ReasonCode::VenueRejected, text: text.to_owned() };
    let asked = ASKED.with(|asked| asked.replace(asked.get() + 1));
    match order.tags.first().map_or("", String::as_str) {
        "traps" => panic!("an order was too much for me"),
        "loops" => loop {
            std::hint::black_box(asked);
        },
        "grows" => Ok(request(vec![field("a", "x".repeat(64 << 20))])),
        "answers-long" => Ok(request(vec![field("a", "x".repeat(5 << 10))])),
        "answers-much" => {
            let fields = (0..60).map(|index| field(&format!("f{index}"), "x".repeat(4 << 10)));
            let row: Vec<Field> = fields.collect();
            let list = FieldList { name: "rows".to_owned(), rows: vec![row; 6] };
            Ok(Request { lists: vec![list], ..request(Vec::new()) })
        }
        "many-fields" => {
            Ok(request((0..65).map(|index| field(&format!("f{index}"), "1")).collect()))
        }
        "many-lists" => {
            let list = |index| FieldList { name: format!("l{index}"), rows: Vec::new() };
            Ok(Request { lists: (0..5).map(list).collect(), ..request(Vec::new()) })
        }
        "many-rows" => {
            let list = FieldList { name: "rows".to_owned(), rows: vec![Vec::new(); 257] };
            Ok(Request { lists: vec![list], ..request(Vec::new()) })
        }
        "control-in-value" => Ok(request(vec![field("a", "1\u{1}2")])),
        "control-in-name" => Ok(request(vec![field("a\n", "1")])),
        "session-field" => Ok(request(vec![field("p_no", "1")])),
        "twice" => Ok(request(vec![field("a", "1"), field("a", "2")])),
        "own-password" => {
            let password_field = Some("a".to_owned());
            Ok(Request { password_field, ..request(vec![field("a", "1")]) })
        }
        "control-in-reason" => Err(refusal("CODE: one\nline")),
        "reason-without-code" => Err(refusal("no code here")),
        "small-reason" => Err(refusal("code: small letters")),
        "other-request" => Ok(named("CLMKabuCancelOrderAll", Vec::new())),
        "counts" => Ok(request(vec![field("asked", asked.to_string())])),
        _ => Ok(request(vec![field("sSymbol", order.symbol.as_str())])),
    }
}

impl Dialect for Turns {
    fn describe() -> Description {
        Description {
            name: "dialect-turns".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "misbehaves as it is asked to".to_owned(),
            decodes_answers: false,
            refused_change_rejects: false,
            order_rows: "rows".to_owned(),
        }
    }

    fn scope() -> Scope {
        let hosts = vec!["broker.example".to_owned()];
        Scope { hosts, fill_rows: Some("fills".to_owned()) }
    }

    fn list_fills(venue_order_id: &str, _: Option<&str>) -> Result<Request, Refusal> {
        Ok(match venue_order_id {
            "other-request" => request(Vec::new()),
            "password" => {
                let password_field = Some("sSecondPassword".to_owned());
                Request { password_field, ..named("CLMOrderListDetail", Vec::new()) }
            }
            number => named("CLMOrderListDetail", vec![field("sOrderNumber", number)]),
        })
    }

    fn read_fill(row: &[Field]) -> Result<ListedFill, String> {
        let quantity = of(row, "quantity").ok_or("no shares")?.parse().unwrap();
        let price = of(row, "price").unwrap_or("2440").to_owned();
        Ok(ListedFill { quantity, price, time: of(row, "time").map(str::to_owned) })
    }

    fn plan(order: &Order) -> Result<OrderPlan, Refusal> {
        turn(order)?;
        Ok(OrderPlan {
            funding: Funding::Cash,
            account: None,
            positions: vec!["1".to_owned(); 2],
            needs_cash: false,
            unknown_tags: Vec::new(),
        })
    }

    fn new_order(order: &Order, _account: &str, _: &[Allocation]) -> Result<Request, Refusal> {
        turn(order)
    }

    fn modify_order(_: &Change) -> Result<Request, Refusal> {
        Ok(request(Vec::new()))
    }

    fn cancel_order(_: &str, _: Option<&str>) -> Result<Request, Refusal> {
        Ok(request(Vec::new()))
    }

    fn cancel_all() -> Request {
        request(Vec::new())
    }

    fn list_orders() -> Request {
        let password_field = Some("sSecondPassword".to_owned());
        Request { password_field, ..named("CLMOrderList", Vec::new()) }
    }

    fn judge(answer: &Answer) -> Outcome {
        let verdict = match answer.errno.as_str() {
            "day" => Verdict::Accepted(Accepted {
                venue_order_id: None,
                business_day: Some("20261332".to_owned()),
                warning_code: None,
                warning_text: None,
            }),
            _ => Verdict::Unknown("one\u{1b}[2Jline".to_owned()),
        };
        Outcome { verdict, venue_closed: false }
    }

    fn read_order(row: &[Field]) -> Result<OrderRow, String> {
        let value = |name: &str, usual: &str| of(row, name).unwrap_or(usual).to_owned();
        let number =
            |name: &str, usual: u64| of(row, name).map_or(usual, |text| text.parse().unwrap());
        Ok(OrderRow {
            venue_order_id: value("id", "1"),
            business_day: None,
            symbol: value("symbol", "7203"),
            side: Side::Buy,
            order_type: OrderType::Limit,
            quantity: number("quantity", 100),
            filled: number("filled", 0),
            leaves: number("leaves", 100),
            price: Some(value("price", "2440")),
            trigger_price: None,
            time_in_force: TimeInForce::Day,
            expire_date: of(row, "date").map(str::to_owned),
            status: OrderStatus::Accepted,
            time: value("time", "20260511090001"),
            tags: Vec::new(),
        })
    }

    fn read_frame(fields: &[Field]) -> Result<Frame, String> {
        let notice = |kind| Notice {
            kind,
            venue_order_id: "1".to_owned(),
            business_day: None,
            symbol: "7203".to_owned(),
            side: None,
            quantity: None,
            fill: None,
            time: None,
            reason: None,
        };
        match of(fields, "kind") {
            Some("fill-without-shares") => Ok(Frame::Order(notice(NoticeKind::Filled))),
            Some("words") => Err("\u{202e}words".to_owned()),
            _ => Ok(Frame::Other),
        }
    }
}

register_dialect!(Turns);
