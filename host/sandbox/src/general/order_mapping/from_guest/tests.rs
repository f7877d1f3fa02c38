//! What a dialect may say, and what the broker may say through it.

use super::*;

fn reader() -> Reader {
    Reader::new(1 << 20)
}

fn request(id: &str, password_field: Option<&str>) -> wit::Request {
    wit::Request {
        id: id.to_owned(),
        fields: Vec::new(),
        lists: Vec::new(),
        password_field: password_field.map(str::to_owned),
    }
}

#[test]
fn each_operation_has_a_request_of_its_own() {
    use Operation as Op;
    let all = [Op::New, Op::Modify, Op::Cancel, Op::CancelAll, Op::List];
    for wanted in all {
        for made in all {
            let found = reader().request(request(made.id(), None), wanted);
            assert_eq!(found.is_ok(), made == wanted, "{wanted:?} as {made:?}");
        }
        assert!(reader().request(request("CLMAuthLoginRequest", None), wanted).is_err());
        let takes = reader().request(request(wanted.id(), Some("sSecondPassword")), wanted);
        assert_eq!(takes.is_ok(), wanted != Op::List, "{wanted:?}");
    }
}

fn row(number: &str, symbol: &str) -> wit::OrderRow {
    wit::OrderRow {
        venue_order_id: number.to_owned(),
        business_day: None,
        symbol: symbol.to_owned(),
        side: wit::Side::Buy,
        order_type: wit::OrderType::Limit,
        quantity: 100,
        filled: 0,
        leaves: 100,
        price: Some("2440".to_owned()),
        trigger_price: None,
        time_in_force: wit::TimeInForce::Day,
        expire_date: None,
        status: wit::OrderStatus::Accepted,
        time: "20260511090001".to_owned(),
        tags: Vec::new(),
    }
}

fn notice(number: &str, symbol: &str, trade: &str) -> wit::Frame {
    let fill = wit::Fill { trade_id: trade.to_owned(), quantity: 100, price: "2440".to_owned() };
    wit::Frame::Order(wit::Notice {
        kind: wit::NoticeKind::Filled,
        venue_order_id: number.to_owned(),
        business_day: None,
        symbol: symbol.to_owned(),
        side: None,
        quantity: None,
        fill: Some(fill),
        time: None,
        reason: None,
    })
}

/// A part of an address of a session, as the broker may put it into any field.
const SECRET: &str = "6882c267d8f8480ba5ec6985f2a709f4";

#[test]
fn names_of_the_broker_s_are_short_or_the_row_cannot_be_read() {
    for (number, symbol) in [("20000001", "7203"), ("1-2.3", "130A"), ("1234567890123456", "1301T")]
    {
        let read = reader().row(row(number, symbol)).unwrap().unwrap();
        assert_eq!((&*read.venue_order_id, &*read.symbol), (number, symbol));
        let read = reader().frame(notice(number, symbol, "20261120-10507")).unwrap();
        assert!(matches!(read, Ok(BrokerFrame::Order(_))), "{read:?}");
    }
    for (number, symbol) in [(SECRET, "7203"), ("1", SECRET), ("a_b", "7203"), ("1", "7203_T")] {
        let why = reader().row(row(number, symbol)).unwrap().unwrap_err();
        assert!(why.contains("is not 1 to") && !why.contains(SECRET), "{why}");
        assert!(reader().frame(notice(number, symbol, "1")).unwrap().is_err(), "{number} {symbol}");
    }
    let why = reader().frame(notice("1", "7203", SECRET)).unwrap().unwrap_err();
    assert!(why.contains("the fill") && !why.contains(SECRET), "{why}");
}

#[test]
fn the_code_of_a_reason_is_short() {
    let reason = |tag: &str| reader().reason(format!("{tag}: words"));
    let longest = "P_ERRNO_MINUS_4294967295";
    assert_eq!(reason(longest).unwrap(), format!("{longest}: words"));
    assert_eq!(reason(&SECRET.to_ascii_uppercase()).unwrap(), "UNREADABLE_CODE: words");
    assert!(reason(SECRET).is_err(), "small letters");
}
