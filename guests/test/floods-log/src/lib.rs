//! Writes a long line to its log, and a long narrative record, at every trade, as its parameters say.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct FloodsLog {
    line_bytes: usize,
    narrative_bytes: usize,
}

impl Strategy for FloodsLog {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self {
            line_bytes: params.count("line_bytes", 0, 0..=usize::MAX)?,
            narrative_bytes: params.count("narrative_bytes", 0, 0..=usize::MAX)?,
        })
    }

    fn on_trade_tick(&mut self, context: &mut Context, _trade: &Trade) {
        if self.line_bytes > 0 {
            context.info(&"x".repeat(self.line_bytes));
        }
        if self.narrative_bytes > 0 {
            context.narrate(None, "flood", &"y".repeat(self.narrative_bytes));
        }
    }
}

kumiki_sdk::register!(FloodsLog);
