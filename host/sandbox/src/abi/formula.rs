//! A formula module's values, read in the contract's layout, field by field in the order of
//! `wit/formula`. What goes in are lists of numbers alone ([`crate::state::Guest::copy_columns`]).

use domain::fault::FaultKind;
use domain::formula::{Column, FormulaDescription, FormulaInput, FormulaParameter};

use super::Lift;

/// Bytes of a `record description`.
pub(crate) const DESCRIPTION_BYTES: usize = 32;
/// Bytes of a `record parameter`.
pub(crate) const PARAMETER_BYTES: usize = 40;
/// Bytes of a `record input`.
pub(crate) const INPUT_BYTES: usize = 12;
/// Bytes of a `result<list<input>, string>`.
pub(super) const INPUTS_BYTES: usize = 12;

type Lifted<T> = Result<T, FaultKind>;

/// `record description` at an address.
pub(crate) fn description(lift: &mut Lift<'_>, pointer: u32) -> Lifted<FormulaDescription> {
    lift.go_to(pointer, 4, DESCRIPTION_BYTES)?;
    Ok(FormulaDescription {
        name: lift.text()?.to_owned(),
        version: lift.text()?.to_owned(),
        summary: lift.text()?.to_owned(),
        parameters: lift.list(8, PARAMETER_BYTES, parameter)?,
    })
}

/// `record parameter`
fn parameter(lift: &mut Lift<'_>) -> Lifted<FormulaParameter> {
    Ok(FormulaParameter {
        name: lift.text()?.to_owned(),
        description: lift.text()?.to_owned(),
        default: lift.f64()?,
        minimum: lift.f64()?,
        maximum: lift.f64()?,
    })
}

/// `result<list<input>, string>` at an address.
pub(crate) fn inputs(
    lift: &mut Lift<'_>,
    pointer: u32,
) -> Lifted<Result<Vec<FormulaInput>, String>> {
    lift.go_to(pointer, 4, INPUTS_BYTES)?;
    let case = lift.u8()?;
    lift.align(4);
    match case {
        0 => Ok(Ok(lift.list(4, INPUT_BYTES, input)?)),
        1 => Ok(Err(lift.text()?.to_owned())),
        other => Err(FaultKind::Protocol(format!("{other} is no case of a result"))),
    }
}

/// `record input`
fn input(lift: &mut Lift<'_>) -> Lifted<FormulaInput> {
    let column: Column = lift.case()?;
    Ok(FormulaInput { column, first_lag: lift.u32()?, last_lag: lift.u32()? })
}

/// `list<f64>` whose pointer and length stand at an address; it must fill `out`.
pub(crate) fn values(lift: &mut Lift<'_>, pointer: u32, out: &mut [f64]) -> Lifted<()> {
    lift.go_to(pointer, 4, 8)?;
    let (pointer, length) = (lift.u32()?, lift.u32()?);
    if length as usize != out.len() {
        let rows = out.len();
        return Err(FaultKind::Protocol(format!("it answered {length} values for {rows} rows")));
    }
    lift.f64s_at(pointer, out)
}
