//! Keeps one more megabyte at every trade.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct GrowsMemory {
    kept: Vec<Vec<u8>>,
}

impl Strategy for GrowsMemory {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { kept: Vec::new() })
    }

    fn on_trade_tick(&mut self, _context: &mut Context, _trade: &Trade) {
        self.kept.push(vec![1; 1 << 20]);
    }
}

kumiki_sdk::register!(GrowsMemory);
