//! Holds what a formula module says of itself and of its needs against the limits.

use domain::fault::FaultKind;
use domain::formula::{FormulaDescription, FormulaInput, FormulaParameter, is_name};
use domain::limits::{
    FORMULA_COLUMNS_MAX, FORMULA_INPUTS_MAX, FORMULA_LAG_MAX, FORMULA_NAME_BYTES_MAX,
    FORMULA_PARAMETERS_MAX, FORMULA_TEXT_BYTES_MAX, FORMULA_WORD_BYTES_MAX,
};

pub(crate) type Checked = Result<(), FaultKind>;

fn broken(what: String) -> Checked {
    Err(FaultKind::Protocol(what))
}

fn within(what: &'static str, used: usize, allowed: usize) -> Checked {
    if used > allowed {
        let (used, allowed) = (used as u64, allowed as u64);
        return Err(FaultKind::Limit { what, used, allowed });
    }
    Ok(())
}

/// Checks a description.
pub(super) fn check(description: &FormulaDescription) -> Checked {
    let FormulaDescription { name, version, summary, parameters } = description;
    word("its name", name, FORMULA_NAME_BYTES_MAX, b'-')?;
    text("its version", version, FORMULA_WORD_BYTES_MAX)?;
    text("its summary", summary, FORMULA_TEXT_BYTES_MAX)?;
    within("parameters", parameters.len(), FORMULA_PARAMETERS_MAX)?;
    for (index, one) in parameters.iter().enumerate() {
        parameter(one)?;
        if parameters[..index].iter().any(|other| other.name == one.name) {
            return broken(format!("it has two parameters `{}`", one.name));
        }
    }
    Ok(())
}

/// A name that users write, see [`is_name`].
pub(crate) fn word(what: &str, name: &str, bytes_max: usize, sign: u8) -> Checked {
    if is_name(name, bytes_max, sign) {
        return Ok(());
    }
    broken(format!(
        "{what} is not 1 to {bytes_max} of `a` to `z`, `0` to `9` and `{}`, beginning with a letter",
        char::from(sign)
    ))
}

/// A text for people, on one line.
pub(crate) fn text(what: &str, text: &str, bytes_max: usize) -> Checked {
    if text.len() > bytes_max || text.contains(char::is_control) {
        return broken(format!("{what} is not one line of at most {bytes_max} bytes"));
    }
    Ok(())
}

fn parameter(parameter: &FormulaParameter) -> Checked {
    let FormulaParameter { name, description, default, minimum, maximum } = parameter;
    word("the name of a parameter", name, FORMULA_WORD_BYTES_MAX, b'_')?;
    text("the description of a parameter", description, FORMULA_TEXT_BYTES_MAX)?;
    let finite = minimum.is_finite() && maximum.is_finite();
    if !finite || !(*minimum..=*maximum).contains(default) {
        return broken(format!(
            "its parameter `{name}` is {default} by default and may be {minimum} to {maximum}"
        ));
    }
    Ok(())
}

/// Checks what a module wants to read.
pub(super) fn check_inputs(inputs: &[FormulaInput]) -> Checked {
    if inputs.is_empty() {
        return broken("it reads nothing; a formula has at least one input".to_owned());
    }
    within("inputs", inputs.len(), FORMULA_INPUTS_MAX)?;
    let mut columns = 0;
    for input in inputs {
        let (first, last) = (input.first_lag, input.last_lag);
        if first > last || last > FORMULA_LAG_MAX {
            return broken(format!(
                "it reads {} at the lags {first} to {last}; they must ascend and end at \
                 {FORMULA_LAG_MAX}",
                input.column
            ));
        }
        columns += (last - first) as usize + 1;
    }
    within("lags of all inputs together", columns, FORMULA_COLUMNS_MAX)
}

#[cfg(test)]
mod tests {
    use domain::formula::Column;

    use super::*;

    fn good() -> FormulaDescription {
        let parameter = FormulaParameter {
            name: "look_back".to_owned(),
            description: "days".to_owned(),
            default: 20.0,
            minimum: 1.0,
            maximum: 250.0,
        };
        FormulaDescription {
            name: "my-formula-2".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "Computes 値".to_owned(),
            parameters: vec![parameter],
        }
    }

    fn refused(change: impl FnOnce(&mut FormulaDescription)) -> String {
        let mut description = good();
        change(&mut description);
        check(&description).unwrap_err().to_string()
    }

    #[test]
    fn descriptions_have_limits() {
        assert_eq!(check(&good()), Ok(()));
        for name in ["", "A", "1a", "a b", "a/b", "..", &"a".repeat(65)] {
            assert!(
                refused(|one| one.name = name.to_owned()).contains("its name is not"),
                "{name}"
            );
        }
        assert!(refused(|one| one.version = "1".repeat(33)).contains("its version"));
        assert!(refused(|one| one.summary = "a\nb".to_owned()).contains("its summary"));
        assert!(refused(|one| one.summary = "a".repeat(401)).contains("at most 400 bytes"));
        assert!(refused(|one| one.parameters[0].name = "a-b".to_owned()).contains("and `_`"));
        assert!(refused(|one| one.parameters[0].default = f64::NAN).contains("NaN by default"));
        assert!(refused(|one| one.parameters[0].maximum = f64::INFINITY).contains("to inf"));
        assert!(refused(|one| one.parameters[0].minimum = 21.0).contains("may be 21 to 250"));
        let twice = refused(|one| one.parameters.push(one.parameters[0].clone()));
        assert!(twice.contains("two parameters `look_back`"), "{twice}");
        let many = |count: usize| {
            let mut description = good();
            let parameter = description.parameters[0].clone();
            description.parameters = (0..count)
                .map(|index| FormulaParameter { name: format!("p{index}"), ..parameter.clone() })
                .collect();
            check(&description)
        };
        assert_eq!(many(FORMULA_PARAMETERS_MAX), Ok(()));
        let (used, allowed) = (17, 16);
        assert_eq!(many(17), Err(FaultKind::Limit { what: "parameters", used, allowed }));
    }

    #[test]
    fn inputs_have_limits() {
        let input =
            |first_lag, last_lag| FormulaInput { column: Column::Close, first_lag, last_lag };
        let most = u32::try_from(FORMULA_COLUMNS_MAX).unwrap();
        assert_eq!(check_inputs(&[input(0, most - 1)]), Ok(()));
        assert_eq!(check_inputs(&[input(FORMULA_LAG_MAX, FORMULA_LAG_MAX)]), Ok(()));
        let refused = |inputs: &[FormulaInput]| check_inputs(inputs).unwrap_err().to_string();
        assert!(refused(&[]).contains("reads nothing"));
        assert!(refused(&[input(2, 1)]).contains("at the lags 2 to 1"));
        assert!(refused(&[input(0, FORMULA_LAG_MAX + 1)]).contains("end at 2600"));
        assert!(refused(&[input(0, most)]).contains("301 lags of all inputs together"));
        assert!(refused(&[input(0, 0); FORMULA_INPUTS_MAX + 1]).contains("65 inputs"));
        assert_eq!(check_inputs(&[input(0, 0); FORMULA_INPUTS_MAX]), Ok(()));
    }
}
