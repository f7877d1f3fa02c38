//! Write Kumiki formula modules in Rust.
//!
//! A formula module computes one value for each issue of a day from daily columns; `kumiki rank`
//! ranks by it. It is a type that implements [`Formula`]; [`register_formula!`] makes it a component.
//!
//! ```
//! use kumiki_formula_sdk::prelude::*;
//!
//! /// Change of the close over some days, in percent.
//! struct Change {
//!     days: u32,
//! }
//!
//! impl Formula for Change {
//!     const DESCRIPTION: Description = Description {
//!         name: "change",
//!         version: "1.0.0",
//!         summary: "Change of the close over `days` business days, in percent",
//!         parameters: &[Parameter {
//!             name: "days",
//!             description: "business days",
//!             default: 5.0,
//!             minimum: 1.0,
//!             maximum: 250.0,
//!         }],
//!     };
//!
//!     fn new(values: &Values) -> Result<Self, String> {
//!         Ok(Self { days: values.whole("days")? })
//!     }
//!
//!     fn inputs(&self) -> Vec<Input> {
//!         vec![Input::at(Column::Close, 0), Input::at(Column::Close, self.days)]
//!     }
//!
//!     #[inline(always)]
//!     fn evaluate(&self, day: &Day) -> Vec<f64> {
//!         let (now, before) = (day.column(Column::Close, 0), day.column(Column::Close, self.days));
//!         now.iter().zip(before).map(|(now, before)| (now - before) / before * 100.0).collect()
//!     }
//! }
//!
//! kumiki_formula_sdk::register_formula!(Change);
//! # fn main() {}
//! ```
//!
//! Null is "not a number" ([`f64::NAN`]): a missing row, a price or volume of 0, a day before the
//! data begins. Arithmetic spreads it. In the answer infinities are null too, and 0 is a value. A module is a
//! function: it must keep nothing from one day to the next, because the host runs several instances and asks each for
//! any day.
//!
//! `#[inline(always)]` makes `evaluate` part of the exported function, and so of its vector instructions:
//! simple loops over columns take two values at a time, and half of the time.
//!
//! Test a formula without wasm with [`testing::TestDay`].

mod day;
mod model;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;

pub use day::Day;
pub use model::{Column, Description, Formula, Input, Parameter, Values};

/// Everything that a formula needs.
pub mod prelude {
    pub use crate::{Column, Day, Description, Formula, Input, Parameter, Values};
}

/// Makes a [`Formula`] the component's formula. Use it once, at the top level of the crate.
#[macro_export]
macro_rules! register_formula {
    ($formula:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            impl $crate::wasm::Slot for Component {
                type Formula = $formula;

                fn with<R>(
                    act: impl FnOnce(&mut Option<$crate::wasm::Machine<$formula>>) -> R,
                ) -> R {
                    ::std::thread_local! {
                        static MACHINE: ::std::cell::RefCell<
                            Option<$crate::wasm::Machine<$formula>>,
                        > = const { ::std::cell::RefCell::new(None) };
                    }
                    MACHINE.with_borrow_mut(act)
                }
            }

    $crate::wasm::export!(Component with_types_in $crate::wasm::bindings);
        };
    };
}
