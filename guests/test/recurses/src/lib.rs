//! Calls itself without end at its first trade, with small frames or (parameter `large`) with frames
//! that fill the stack in linear memory first.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct Recurses {
    large: bool,
}

// What comes back is used after the call, or the compiler would make these loops.

#[expect(unconditional_recursion, reason = "what this guest is for")]
fn deeper(depth: u64) -> u64 {
    std::hint::black_box(deeper(depth + 1)) + depth
}

#[expect(unconditional_recursion, reason = "what this guest is for")]
fn deeper_with_large_frames(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 128]);
    frame[127] + std::hint::black_box(deeper_with_large_frames(depth + 1))
}

impl Strategy for Recurses {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self { large: params.boolean("large", false)? })
    }

    fn on_trade_tick(&mut self, context: &mut Context, _trade: &Trade) {
        let sum = if self.large { deeper_with_large_frames(0) } else { deeper(0) };
        context.info(&sum.to_string());
    }
}

kumiki_sdk::register!(Recurses);
