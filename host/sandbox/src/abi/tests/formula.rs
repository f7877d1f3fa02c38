//! The layouts of formula modules against `wit/formula`.

use domain::fault::FaultKind;
use domain::formula::{Column, FormulaDescription, FormulaInput, FormulaParameter};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Type, TypeDefKind};

use super::super::formula::{DESCRIPTION_BYTES, INPUT_BYTES, INPUTS_BYTES, PARAMETER_BYTES};
use super::super::{Enumeration, Lift, description, inputs, values};
use super::text::{Contract, Value, case, enumerated};
use crate::contract::FORMULA;

/// Encodes a value of the contract at 16 and tells the memory.
fn encoded(contract: &Contract, of: &Type, value: &Value) -> Vec<u8> {
    let mut memory = vec![0xEE; 16 + contract.size(of)];
    contract.encode(of, value, &mut memory, 16);
    memory
}

fn lift(memory: &[u8]) -> Lift<'_> {
    Lift::new(memory, 1 << 20, 1 << 20)
}

#[test]
fn the_functions_have_the_signatures_that_the_host_calls() {
    let contract = Contract::new(&FORMULA);
    let mut interfaces = contract.resolve.interfaces.iter();
    let guest = interfaces.find(|(_, one)| one.name.as_deref() == Some("guest")).unwrap().1;
    assert_eq!(
        guest.functions.keys().map(String::as_str).collect::<Vec<_>>(),
        ["describe", "configure", "evaluate"]
    );
    for (function, arguments) in guest.functions.values().zip([0, 2, 3]) {
        let signature = contract.resolve.wasm_signature(AbiVariant::GuestExport, function);
        // Numbers of 32 bits are places, lengths and counts of rows.
        assert!(
            signature
                .params
                .iter()
                .all(|one| { matches!(one, WasmType::I32 | WasmType::Pointer | WasmType::Length) })
        );
        assert_eq!((signature.params.len(), signature.results.len()), (arguments, 1));
        assert!(!signature.indirect_params && signature.retptr, "{}", function.name);
    }
}

#[test]
fn columns_have_the_numbers_of_the_contract() {
    let contract = Contract::new(&FORMULA);
    let of = contract.named("column");
    let Some(TypeDefKind::Enum(cases)) = contract.kind(&of) else { panic!("no enumeration") };
    let theirs: Vec<_> = cases.cases.iter().map(|case| case.name.clone()).collect();
    assert_eq!(Column::CASES.to_vec(), Column::ALL.to_vec());
    assert_eq!(Column::ALL.map(|column| column.name().to_lowercase()).to_vec(), theirs);
}

#[test]
fn descriptions_are_read_as_the_contract_says() {
    use Value::{Double, Fields, List, Text};
    let contract = Contract::new(&FORMULA);
    let of = contract.named("description");
    assert_eq!(contract.size(&of), DESCRIPTION_BYTES);
    assert_eq!(contract.size(&contract.named("parameter")), PARAMETER_BYTES);
    let parameter = |name, numbers: [f64; 3]| {
        let mut fields = vec![Text(name), Text("what it is")];
        fields.extend(numbers.map(Double));
        Fields(fields)
    };
    let parameters = vec![parameter("a", [1.5, -2.5, 1e9]), parameter("bc", [0.0, 0.0, 4.0])];
    let value = Fields(vec![Text("mine"), Text("1.2"), Text("Ranks 値"), List(parameters)]);
    let memory = encoded(&contract, &of, &value);
    let parameter = |name: &str, [default, minimum, maximum]: [f64; 3]| FormulaParameter {
        name: name.to_owned(),
        description: "what it is".to_owned(),
        default,
        minimum,
        maximum,
    };
    let expected = FormulaDescription {
        name: "mine".to_owned(),
        version: "1.2".to_owned(),
        summary: "Ranks 値".to_owned(),
        parameters: vec![parameter("a", [1.5, -2.5, 1e9]), parameter("bc", [0.0, 0.0, 4.0])],
    };
    assert_eq!(description(&mut lift(&memory), 16), Ok(expected));
}

/// The type that `configure` answers with.
fn inputs_type(contract: &Contract) -> Type {
    let mut interfaces = contract.resolve.interfaces.iter();
    let guest = interfaces.find(|(_, one)| one.name.as_deref() == Some("guest")).unwrap().1;
    guest.functions["configure"].result.unwrap()
}

#[test]
fn inputs_and_refusals_are_read_as_the_contract_says() {
    use Value::{Fields, List, Number, Text};
    let contract = Contract::new(&FORMULA);
    let of = inputs_type(&contract);
    assert_eq!(contract.size(&of), INPUTS_BYTES);
    assert_eq!(contract.size(&contract.named("input")), INPUT_BYTES);
    let input = |name, first, last| Fields(vec![enumerated(name), Number(first), Number(last)]);
    let value = case("ok", List(vec![input("volume", 0, 7), input("high", 3, 2_600)]));
    let found = inputs(&mut lift(&encoded(&contract, &of, &value)), 16).unwrap();
    let input = |column, first_lag, last_lag| FormulaInput { column, first_lag, last_lag };
    assert_eq!(found, Ok(vec![input(Column::Volume, 0, 7), input(Column::High, 3, 2_600)]));
    let refused = encoded(&contract, &of, &case("err", Text("not so")));
    assert_eq!(inputs(&mut lift(&refused), 16), Ok(Err("not so".to_owned())));
}

#[test]
fn values_are_copied_bit_for_bit() {
    let numbers = [1.5, f64::from_bits(0x7ff8_0000_0000_0123), -0.0];
    let mut memory = vec![0_u8; 16];
    memory[0..4].copy_from_slice(&16_u32.to_le_bytes());
    memory[4..8].copy_from_slice(&3_u32.to_le_bytes());
    numbers.iter().for_each(|number| memory.extend(number.to_le_bytes()));
    let mut out = [0.0; 3];
    values(&mut lift(&memory), 0, &mut out).unwrap();
    assert_eq!(out.map(f64::to_bits), numbers.map(f64::to_bits));
    let mut reader = Lift::new(&memory, 23, 23);
    let limit = values(&mut reader, 0, &mut out).unwrap_err();
    assert!(matches!(limit, FaultKind::Budget { allowed: 23, .. }), "{limit:?}");
}
