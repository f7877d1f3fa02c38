//! Never returns from its third trade.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct LoopsForever {
    trades: u64,
}

impl Strategy for LoopsForever {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { trades: 0 })
    }

    fn on_trade_tick(&mut self, _context: &mut Context, _trade: &Trade) {
        self.trades += 1;
        if self.trades >= 3 {
            loop {
                std::hint::spin_loop();
            }
        }
    }
}

kumiki_sdk::register!(LoopsForever);
