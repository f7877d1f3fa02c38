//! Panics while it is made.

use kumiki_sdk::prelude::*;

/// The strategy.
#[derive(Debug)]
pub struct PanicsInInit;

impl Strategy for PanicsInInit {
    fn new(_params: &mut Params) -> Result<Self, ParamError> {
        panic!("this strategy cannot be made");
    }
}

kumiki_sdk::register!(PanicsInInit);
