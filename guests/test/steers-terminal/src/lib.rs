//! Writes, at the first trade, texts that would clear and colour a terminal and look like lines of the
//! host, wherever a guest can write; at the trade with the number of its parameter `at` it panics so.
//! Its parameter `says` is another text to write, like one that would steer a page in a browser.

use kumiki_sdk::prelude::*;

/// Clears the screen, in two spellings, and begins a line that looks like the host's.
const HOSTILE: &str = "\u{1b}[2J\u{9b}2J\r\nerror: forged\u{7}";

/// The strategy.
#[derive(Debug)]
pub struct SteersTerminal {
    says: String,
    at: i64,
    trades: i64,
}

impl Strategy for SteersTerminal {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        if params.boolean("refuses", false)? {
            return Err(ParamError::new(format!("I refuse {HOSTILE}")));
        }
        let says = match params.text("says", "")? {
            none if none.is_empty() => HOSTILE.to_owned(),
            says => says,
        };
        Ok(Self { says, at: params.integer("at", 3, 1..=i64::MAX)?, trades: 0 })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        self.trades += 1;
        if self.trades == 1 {
            let says = self.says.as_str();
            let lot = context.instrument(trade.instrument).lot;
            let order = Order::market(trade.instrument, Side::Buy, lot);
            let order = context.submit(order.with_id(says).with_tag(says, says));
            context.info(says);
            context.narrate(Some(&order), says, says);
            context.cancel(says);
            let signal = SignalKind::Annotate;
            let text = Some(says);
            context.emit_signal(trade.instrument, signal, None, None, text, text);
        }
        assert!(self.trades < self.at, "{}", self.says);
    }
}

kumiki_sdk::register!(SteersTerminal);
