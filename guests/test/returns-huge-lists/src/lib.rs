//! Asks for as many things at once as its parameter `count` says.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct ReturnsHugeLists {
    count: usize,
}

impl Strategy for ReturnsHugeLists {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { count: params.count("count", 300_000, 1..=usize::MAX)? })
    }

    fn on_trade_tick(&mut self, context: &mut Context, _trade: &Trade) {
        for _ in 0..self.count {
            context.cancel_all(None);
        }
    }
}

kumiki_sdk::register!(ReturnsHugeLists);
