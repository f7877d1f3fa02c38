//! Boards as gateways send them, complete, poor and broken.

use super::*;

/// A message with these fields beside the issue's.
fn message(fields: &str) -> String {
    format!(r#"{{"Symbol":"7203",{fields}}}"#)
}

fn board(fields: &str) -> Board {
    read(&message(fields)).unwrap()
}

fn pairs(levels: &[Level]) -> Vec<(i64, i64)> {
    levels.iter().map(|level| (level.price, level.qty)).collect()
}

#[test]
fn a_whole_message_is_read() {
    let board = board(
        r#""SymbolName":"トヨタ自動車","Exchange":1,"CurrentPrice":2408.5,
        "CurrentPriceTime":"2022-04-04T15:00:00+09:00","TradingVolume":4571500.0,
        "Sell1":{"Time":"x","Sign":"0101","Price":2409.0,"Qty":100.0},"Sell2":{"Qty":500,"Price":2409.5},
        "Buy1":{"Price":2407.5,"Qty":1e2},"OverSellQty":974900,"More":[{"Price":[null,true]}]"#,
    );
    let level = |price, qty| Level { price, qty };
    assert_eq!(
        board,
        Board {
            symbol: "7203".to_owned(),
            exchange: Some(1),
            name: Some("トヨタ自動車".to_owned()),
            last_price: Some(24_085_000),
            time_ms: Some(1_649_052_000_000),
            volume: Some(45_715_000_000),
            best_ask: Some(24_090_000),
            best_bid: Some(24_075_000),
            asks: vec![level(24_090_000, 1_000_000), level(24_095_000, 5_000_000)],
            bids: vec![level(24_075_000, 1_000_000)],
        }
    );
}

/// P53: what is null or missing is left out, and nothing is made up for it.
#[test]
fn what_is_null_or_missing_is_left_out() {
    let poor = read(r#"{"Symbol":"130A"}"#).unwrap();
    assert_eq!((poor.symbol.as_str(), poor.exchange, poor.name.as_deref()), ("130A", None, None));
    assert_eq!((poor.last_price, poor.time_ms, poor.volume), (None, None, None));
    assert_eq!((poor.best_ask, poor.best_bid), (None, None));
    assert!(poor.asks.is_empty() && poor.bids.is_empty());
    let nulls = read(
        r#"{"Symbol":"130A","SymbolName":null,"Exchange":null,"CurrentPrice":null,"CurrentPriceTime":null,
        "TradingVolume":null,"Sell1":null,"Sell2":{},"Sell3":{"Price":null,"Qty":1},"Buy1":{"Price":0,"Qty":0}}"#,
    );
    assert_eq!(nulls.unwrap(), poor);
    // The first level says which price is the best; the next one does not stand in for it.
    for first in ["null", "{}", r#"{"Price":null,"Qty":300}"#, r#"{"Price":0.0,"Qty":300}"#] {
        let board = board(&format!(
            r#""Sell1":{first},"Sell2":{{"Price":10}},"Buy1":{{"Price":9,"Qty":null}}"#
        ));
        assert_eq!((board.best_ask, pairs(&board.asks)), (None, vec![(100_000, 0)]), "{first}");
        assert_eq!((board.best_bid, pairs(&board.bids)), (Some(90_000), vec![(90_000, 0)]));
    }
}

#[test]
fn levels_stand_as_they_are_numbered() {
    let board = board(
        r#""Buy3":{"Price":5},"Buy2":{"Price":6},"Buy10":{"Price":7,"Qty":7},"Buy1":{"Price":6},
        "Sell1":{"Price":4},"Sell2":{"Price":3},"Sell01":{"Price":1},"Sell11":{"Price":1},"Sell0":{"Price":1},
        "Buy":7,"Sell":"x","sell1":2,"Sell1 ":3"#,
    );
    assert_eq!(pairs(&board.bids), [(60_000, 0), (60_000, 0), (50_000, 0), (70_000, 70_000)]);
    assert_eq!(pairs(&board.asks), [(40_000, 0), (30_000, 0)], "unordered and crossed, as it came");
    assert_eq!((board.best_ask, board.best_bid), (Some(40_000), Some(60_000)));
}

/// Whatever stands in `BidPrice` and `AskPrice` changes nothing, be it swapped, null or no number.
#[test]
fn swapped_quotes_change_nothing() {
    let levels = r#""Sell1":{"Price":2408.5,"Qty":1},"Buy1":{"Price":2407.5,"Qty":2}"#;
    let expected = board(levels);
    for quote in [
        r#""BidPrice":2408.5,"BidQty":1,"AskPrice":2407.5,"AskQty":2"#,
        r#""BidPrice":2407.5,"BidQty":2,"AskPrice":2408.5,"AskQty":1"#,
        r#""BidPrice":null,"AskPrice":"x","AskQty":{},"BidQty":-1.00001"#,
    ] {
        assert_eq!(board(&format!("{quote},{levels}")), expected);
        assert_eq!(board(&format!("{levels},{quote}")), expected);
    }
}

#[test]
fn names_are_one_line_and_short() {
    let named = |text: &str| board(&format!(r#""SymbolName":"{text}""#)).name;
    assert_eq!(named("a\\n\\u202eb\u{2028}c"), Some("a  b c".to_owned()));
    assert_eq!((named(""), named(" \\t ")), (None, None));
    assert_eq!(named(&"字".repeat(1_000)).unwrap().len(), 510);
    assert_eq!(read(r#"{"S\u0079mbol":"\u0037203"}"#).unwrap().symbol, "7203");
}

#[test]
fn errors_name_the_field_in_one_line() {
    for (fields, words) in [
        (r#""CurrentPrice":1.23456"#, "CurrentPrice: `1.23456` has more than 4 decimals"),
        (r#""CurrentPrice":1e30"#, "CurrentPrice: `1e30` is too large"),
        (r#""CurrentPrice":1000000000000.0001"#, "CurrentPrice: it is too large"),
        (r#""CurrentPrice":-1"#, "CurrentPrice: it is negative"),
        (r#""CurrentPrice":"2408""#, "CurrentPrice: `\"2408\"` is no number"),
        (r#""CurrentPrice":true"#, "CurrentPrice: `true` is no number"),
        (r#""CurrentPrice":nil"#, "`nil` at byte 32: a value is expected"),
        (r#""TradingVolume":-0.5"#, "TradingVolume: it is negative"),
        (r#""Exchange":"1""#, "Exchange: `\"1\"` is no number"),
        (r#""Exchange":1.5"#, "Exchange: `1.5` is no whole number"),
        (r#""SymbolName":1"#, "SymbolName: `1` is no text"),
        (r#""CurrentPriceTime":1649052000"#, "CurrentPriceTime: `1649052000` is no text"),
        (
            r#""CurrentPriceTime":"2022-04-04T15:00:00""#,
            "CurrentPriceTime: `2022-04-04T15:00:00` is no time with an offset",
        ),
        (r#""Sell1":[1]"#, "an object is expected"),
        (r#""Sell1":2408.5"#, "`2408.5` at byte 25: an object is expected"),
        (r#""Sell3":{"Price":0.00001}"#, "Sell3: Price: `0.00001` has more than 4 decimals"),
        (r#""Buy10":{"Qty":-1,"Price":1}"#, "Buy10: Qty: it is negative"),
        (r#""Buy2":{"Price":-1}"#, "Buy2: Price: it is negative"),
        (r#""Buy2":{"Price":1,"Price":1}"#, "Buy2: Price: it is there twice"),
        (r#""Buy2":{"Qty":null,"Qty":1}"#, "Buy2: Qty: it is there twice"),
        (r#""Buy2":{},"Buy2":null"#, "Buy2: it is there twice"),
        (r#""Symbol":"7203""#, "Symbol: it is there twice"),
        (r#""S\u0079mbol":"7203""#, "Symbol: it is there twice"),
    ] {
        let error = read(&message(fields)).unwrap_err();
        assert!(error.contains(words), "{fields}: {error}");
    }
    for text in [
        "",
        "x",
        "null",
        "[]",
        "{}",
        r#"{"Symbol":null}"#,
        r#"{"Symbol":""}"#,
        r#"{"Symbol":"7203-T"}"#,
        r#"{"Symbol":"130a"}"#,
        r#"{"Symbol":"12345678901234567"}"#,
        r#"{"Symbol":"7203"} {}"#,
        r#"{"Symbol":"7203","#,
    ] {
        let error = read(text).unwrap_err();
        assert!(!error.is_empty() && !error.contains(char::is_control), "{text}: {error:?}");
    }
    let deep = message(&format!(r#""a":{}{}"#, "[".repeat(9_999), "]".repeat(9_999)));
    assert!(read(&deep).unwrap_err().contains("more than 32 values"));
}
