//! Misbehaves in the way that a message asks for; everything else it answers as the contract wants.

use std::cell::Cell;

use kumiki_dialect_sdk::gateway::prelude::*;
use kumiki_dialect_sdk::register_gateway_dialect;

/// The dialect.
#[derive(Debug)]
pub struct Turns;

std::thread_local! {
    /// How often this instance was asked: what a dialect must not rely on.
    static ASKED: Cell<i64> = const { Cell::new(0) };
}

fn board() -> Board {
    let level = |price, qty| Level { price, qty };
    Board {
        symbol: "7203".to_owned(),
        exchange: Some(1),
        name: Some("name".to_owned()),
        last_price: Some(24_085_000),
        time_ms: Some(1),
        volume: Some(0),
        best_ask: Some(24_090_000),
        best_bid: None,
        asks: vec![level(24_090_000, 0)],
        bids: vec![level(24_080_000, 1_000_000)],
    }
}

/// A board that breaks the contract in one way.
fn broken(turn: &str) -> Board {
    let text = |text: &str| text.to_owned();
    let level = Level { price: 1, qty: 1 };
    match turn {
        "many-levels" => Board { bids: vec![level; 11], ..board() },
        "huge-levels" => Board { bids: vec![level; 100_000], ..board() },
        "long-name" => Board { name: Some("x".repeat(513)), ..board() },
        "huge-name" => Board { name: Some("x".repeat(1 << 20)), ..board() },
        "two-lines" => Board { name: Some(text("two\nlines")), ..board() },
        "no-symbol" => Board { symbol: String::new(), ..board() },
        "long-symbol" => Board { symbol: "7".repeat(17), ..board() },
        "small-symbol" => Board { symbol: text("130a"), ..board() },
        "negative-volume" => Board { volume: Some(-1), ..board() },
        "huge-volume" => Board { volume: Some(10_000_000_000_000_001), ..board() },
        "late" => Board { time_ms: Some(1 << 62), ..board() },
        "negative-price" => Board { last_price: Some(-1), ..board() },
        "no-price" => Board { asks: vec![Level { price: 0, qty: 1 }], ..board() },
        "negative-qty" => Board { bids: vec![Level { price: 1, qty: -1 }], ..board() },
        "other-ask" => Board { best_ask: Some(24_080_000), ..board() },
        "other-bid" => Board { best_bid: Some(1), bids: Vec::new(), ..board() },
        _ => board(),
    }
}

impl GatewayDialect for Turns {
    fn describe() -> Description {
        Description {
            name: "gateway-turns".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "misbehaves as it is asked to".to_owned(),
            rest_prefix: "/a-prefix".to_owned(),
            push_path: "/a_path/websocket".to_owned(),
            board_read_registers: false,
        }
    }

    fn classify(status: u16, body: &str) -> GatewayError {
        let message = match body {
            "traps" => panic!("an error was too much for me"),
            "long" => "x".repeat(513),
            "two-lines" => "two\nlines".to_owned(),
            body => body.len().to_string(),
        };
        GatewayError { kind: ErrorKind::Other, code: Some(status.into()), message }
    }

    fn read_board(message: &str) -> Result<Board, String> {
        let asked = ASKED.with(|asked| asked.replace(asked.get() + 1));
        match message {
            "traps" => panic!("a message was too much for me"),
            "loops" => loop {
                std::hint::black_box(asked);
            },
            "grows" => Ok(Board { name: Some("x".repeat(64 << 20)), ..board() }),
            "counts" => Ok(Board { volume: Some(asked), ..board() }),
            "says-why" => Err("\u{202e}two\nlines".to_owned()),
            "says-much" => Err("x".repeat(513)),
            turn => Ok(broken(turn)),
        }
    }
}

register_gateway_dialect!(Turns);
