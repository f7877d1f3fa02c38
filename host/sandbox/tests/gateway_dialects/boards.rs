//! Boards through both components: the vendor's sample, boards of every shape against their own numbers, and texts
//! of anybody's.

use std::sync::{Mutex, MutexGuard, OnceLock};

use domain::clock::Stopwatch;
use proptest::prelude::*;

use super::*;

fn level(price: i64, qty: i64) -> Level {
    Level { price, quantity: qty }
}

/// One instance of each for all cases of a property.
fn dialect(index: usize) -> MutexGuard<'static, GatewayDialectInstance> {
    static BOTH_OF_THEM: [OnceLock<Mutex<GatewayDialectInstance>>; 2] =
        [OnceLock::new(), OnceLock::new()];
    let made = || Mutex::new(load("dialects", BOTH[index]));
    BOTH_OF_THEM[index].get_or_init(made).lock().unwrap()
}

/// What both dialects read: the same.
fn read(message: &str) -> Result<GatewayBoard, String> {
    let found = [0, 1].map(|index| dialect(index).read_board(message).unwrap());
    let [spec, vendors] = found;
    assert_eq!(spec, vendors, "{message}");
    spec
}

/// The document says: Sell1 is 2,408.5 and Buy1 2,407.5, `BidPrice` is the former and `AskPrice` the latter, and the
/// eighth and the tenth level of those who buy have one price.
#[test]
fn the_sample_of_a_board_decodes_to_what_its_document_says() {
    let Some(text) = samples("samples/board_response.json") else { return };
    let board = read(&text).unwrap();
    assert_eq!((board.symbol.as_str(), board.exchange), ("5401", Some(1)));
    assert_eq!(board.name.as_deref(), Some("新日鐵住金"));
    assert_eq!((board.last_price, board.volume), (Some(24_080_000), Some(45_715_000_000)));
    assert_eq!(board.time_ms, Some(1_649_052_000_000), "2022-04-04 15:00:00 JST");
    assert_eq!((board.best_ask, board.best_bid), (Some(24_085_000), Some(24_075_000)));
    let asks = [
        (24_085_000, 100),
        (24_090_000, 800),
        (24_095_000, 2_100),
        (24_100_000, 800),
        (24_105_000, 500),
        (24_110_000, 8_400),
        (24_115_000, 1_200),
        (24_120_000, 27_200),
        (24_125_000, 400),
        (24_130_000, 16_400),
    ];
    let bids = [
        (24_075_000, 200),
        (24_070_000, 400),
        (24_065_000, 1_000),
        (24_060_000, 5_800),
        (24_055_000, 7_500),
        (24_050_000, 2_200),
        (24_045_000, 16_700),
        (24_030_000, 1_300),
        (24_035_000, 1_300),
        (24_030_000, 3_000),
    ];
    let units = |(price, shares): (i64, i64)| level(price, shares * 10_000);
    assert_eq!(board.asks, asks.map(units));
    assert_eq!(board.bids, bids.map(units), "unordered, as it came");
}

#[test]
fn swapped_quotes_give_the_same_board() {
    let message = |bid: &str, ask: &str| {
        format!(
            r#"{{"Symbol":"7203","CurrentPrice":2408.0,"TradingVolume":100,"BidPrice":{bid},"AskPrice":{ask},
            "Sell1":{{"Price":2408.5,"Qty":100.0}},"Buy1":{{"Price":2407.5,"Qty":200.0}}}}"#
        )
    };
    let swapped = read(&message("2408.5", "2407.5")).unwrap();
    assert_eq!((swapped.best_ask, swapped.best_bid), (Some(24_085_000), Some(24_075_000)));
    for (bid, ask) in [("2407.5", "2408.5"), ("null", "null"), ("0", "\"x\""), ("[]", "-1e99")] {
        assert_eq!(read(&message(bid, ask)).unwrap(), swapped, "{bid} {ask}");
    }
}

/// P53.
#[test]
fn malformed_and_too_fine_boards_say_why() {
    for (message, words) in [
        (
            "{\"Symbol\":\"7203\",\"CurrentPrice\":1.23456}",
            "CurrentPrice: `1.23456` has more than 4",
        ),
        (
            "{\"Symbol\":\"7203\",\"Sell2\":{\"Price\":1e-5}}",
            "Sell2: Price: `1e-5` has more than 4",
        ),
        ("{\"Symbol\":\"7203\",\"TradingVolume\":\"1\"}", "TradingVolume: `\"1\"` is no number"),
        ("{\"Symbol\":\"7203\"", "it ends where `,` or `}` is expected"),
        ("{\"Symbol\":\"7203\"}{}", "the end is expected"),
        ("\u{1b}[2J", "an object is expected"),
    ] {
        let why = read(message).unwrap_err();
        assert!(why.contains(words) && !why.contains(char::is_control), "{message}: {why:?}");
    }
}

/// A number in 1/10,000 and one of the ways to write it.
fn number() -> impl Strategy<Value = (i64, String)> {
    (0_i64..40_000_000, 0_usize..4).prop_map(|(units, form)| {
        let (whole, rest) = (units / 10_000, units % 10_000);
        let text = match form {
            0 => format!("{whole}.{rest:04}"),
            1 => format!("{units}e-4"),
            2 => format!("{whole}.{rest:04}00000000000000000000"),
            _ => format!("0.000{units:012}E+11"),
        };
        (units, text)
    })
}

/// A level's price and quantity; none is null or left out.
type Written = Option<(Option<(i64, String)>, Option<(i64, String)>)>;

fn side() -> impl Strategy<Value = Vec<Written>> {
    let written = || prop::option::of(number());
    prop::collection::vec(prop::option::of((written(), written())), 10)
}

/// The levels of one side as JSON, and as they must come out.
fn spell(name: &str, side: &[Written]) -> (Vec<String>, Vec<Level>, Option<i64>) {
    let (mut fields, mut levels, mut best) = (Vec::new(), Vec::new(), None);
    for (index, written) in side.iter().enumerate() {
        let Some((price, qty)) = written else {
            fields.push(format!("\"{name}{}\":null", index + 1));
            continue;
        };
        let text = |value: &Option<(i64, String)>| {
            value.as_ref().map_or("null".to_owned(), |(_, text)| text.clone())
        };
        let (priced, counted) = (text(price), text(qty));
        let number = index + 1;
        fields.push(format!(
            "\"{name}{number}\" : {{\"Time\":null,\"Price\":{priced},\"Qty\":{counted}}}"
        ));
        let units = price.as_ref().map_or(0, |(units, _)| *units);
        if units > 0 {
            levels.push(level(units, qty.as_ref().map_or(0, |(units, _)| *units)));
            best = if index == 0 { Some(units) } else { best };
        }
    }
    (fields, levels, best)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every board comes out with its own numbers and order, in whatever order and form it is written.
    #[test]
    fn boards_come_out_as_they_went_in(
        sell in side(),
        buy in side(),
        last in prop::option::of(number()),
        turned in any::<bool>(),
    ) {
        let (mut fields, asks, best_ask) = spell("Sell", &sell);
        let (more, bids, best_bid) = spell("Buy", &buy);
        fields.extend(more);
        fields.push("\"Symbol\":\"130A\"".to_owned());
        fields.push(format!("\"BidPrice\":{}", last.as_ref().map_or("null", |(_, text)| text)));
        fields.push(format!("\"CurrentPrice\":{}", last.as_ref().map_or("null", |(_, text)| text)));
        if turned {
            fields.reverse();
        }
        let last_price = last.map(|(units, _)| units).filter(|units| *units > 0);
        let expected = GatewayBoard {
            symbol: "130A".to_owned(), last_price, best_ask, best_bid, asks, bids, ..GatewayBoard::default()
        };
        prop_assert_eq!(read(&format!("{{{}}}", fields.join(" ,\n"))), Ok(expected));
    }

    /// No text of anybody's makes a dialect fail, nor a message with some bytes of another.
    #[test]
    fn no_text_makes_a_dialect_fail(
        texts in prop::collection::vec("\\PC{0,40}|[\\[{\":,0-9eE.+\\\\u-]{0,40}|[ -~]{0,40}", 8),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        status in any::<u16>(),
    ) {
        let whole = br#"{"Symbol":"7203","SymbolName":"\u30c8\ud83d\ude00","Exchange":1,"CurrentPrice":2408.5,
            "CurrentPriceTime":"2022-04-04T15:00:00+09:00","TradingVolume":4571500.0,"x":[{"y":[null,1e3]}],
            "Sell1":{"Price":2409.0,"Qty":1},"Buy1":{"Price":24.5e2,"Qty":null},"Code":4001001,"Message":"a"}"#;
        let mut message = whole.to_vec();
        for (index, byte) in &bytes {
            let at = index.index(message.len());
            message[at] = *byte;
        }
        let message = String::from_utf8_lossy(&message).into_owned();
        let field = format!("{{\"Symbol\":\"7203\",\"CurrentPriceTime\":\"{}\",{}", texts[0], texts[1]);
        for text in texts.iter().chain([&message, &field]) {
            if let Err(why) = read(text) {
                prop_assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}");
            }
            for index in 0..BOTH.len() {
                dialect(index).classify(status, text).unwrap();
            }
        }
        prop_assert_eq!(bytes.is_empty() && read(&message).is_err(), false);
    }
}

/// What a call costs; run it optimized by hand with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_board_costs() {
    let Some(sample) = samples("samples/board_response.json") else { return };
    let compact = serde_json::from_str::<serde_json::Value>(&sample).unwrap().to_string();
    let mut turns = turns();
    let mut spec = load("dialects", BOTH[0]);
    let measure = |what: &str, dialect: &mut GatewayDialectInstance, message: &str| {
        let before = dialect.fuel_used();
        let mut times: Vec<_> = (0..100_000)
            .map(|_| {
                let start = Stopwatch::start();
                std::hint::black_box(dialect.read_board(message).unwrap().unwrap());
                start.elapsed().as_nanos()
            })
            .collect();
        times.sort_unstable();
        let fuel = (dialect.fuel_used() - before) / 100_000;
        let (middle, late) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{what}: {} bytes, p50 {middle} ns, p99 {late} ns, fuel {fuel}", message.len());
    };
    measure("a call and its board, not read", &mut turns, "");
    measure("a call with a long message, not read", &mut turns, &sample);
    measure("the sample", &mut spec, &sample);
    measure("the sample without blanks", &mut spec, &compact);
    measure("an issue alone", &mut spec, "{\"Symbol\":\"5401\"}");
}
