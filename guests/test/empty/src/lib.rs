//! Does nothing: what a call costs when the strategy is free.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct Empty;

impl Strategy for Empty {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        Ok(Self)
    }
}

kumiki_sdk::register!(Empty);
