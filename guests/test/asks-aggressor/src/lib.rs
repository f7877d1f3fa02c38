//! Asks for the aggressor side of every trade and notes each kind of answer once.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct AsksAggressor {
    noted: bool,
}

impl Strategy for AsksAggressor {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { noted: false })
    }

    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        let side = context.aggressor_side(trade);
        if !self.noted {
            self.noted = true;
            context.info(&format!("{side:?}"));
        }
    }
}

kumiki_sdk::register!(AsksAggressor);
