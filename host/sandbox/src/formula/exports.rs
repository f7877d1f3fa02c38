//! The direct path of formula modules: what the host calls in a module's program.

use std::sync::Arc;

use domain::fault::FaultKind;
use domain::formula::{FormulaDescription, FormulaInput};
use wasmtime::{AsContextMut, Error, Instance, Result, Store};

use crate::abi::{self, Lift};
use crate::calls::FormulaCalls;
use crate::exports::{Lifted, guest};
use crate::proof::Plan;
use crate::state::{Guest, State};

/// The functions of one running module.
pub(crate) struct Exports {
    guest: Arc<Guest>,
    describe: Lifted<(), u32>,
    configure: Lifted<(u32, u32), u32>,
    evaluate: Lifted<(u32, u32, u32), u32>,
}

impl Exports {
    /// Finds them, and lets the program set itself up. They are there: the plan is proven.
    pub(crate) fn find(store: &mut Store<State>, instance: Instance, plan: &Plan) -> Result<Self> {
        Ok(Self {
            guest: guest(store, instance, plan)?,
            describe: Lifted::find(store, instance, plan, "describe")?,
            configure: Lifted::find(store, instance, plan, "configure")?,
            evaluate: Lifted::find(store, instance, plan, "evaluate")?,
        })
    }

    /// Reads from the module's memory, within what this call may still copy out.
    fn read<T>(
        &self,
        store: &mut Store<State>,
        take: impl FnOnce(&mut Lift<'_>) -> Result<T, FaultKind>,
    ) -> Result<T> {
        let (memory, state) = self.guest.memory.data_and_store_mut(store);
        let mut lift = Lift::new(memory, state.limits.result_bytes, state.bytes_left);
        let taken = take(&mut lift);
        state.bytes_left = lift.left();
        taken.or_else(|kind| state.breach(kind))
    }
}

impl FormulaCalls for Exports {
    fn describe(&self, store: &mut Store<State>) -> Result<FormulaDescription> {
        let pointer = self.describe.call(store, ())?;
        let found = self.read(store, |lift| abi::description(lift, pointer))?;
        self.describe.finish(store, pointer)?;
        Ok(found)
    }

    fn configure(
        &self,
        store: &mut Store<State>,
        values: &[f64],
    ) -> Result<Result<Vec<FormulaInput>, String>> {
        let list = self.guest.copy_columns(&mut store.as_context_mut(), &[values])?;
        let count = u32::try_from(values.len())?;
        let pointer = self.configure.call(store, (list, count))?;
        let found = self.read(store, |lift| abi::inputs(lift, pointer))?;
        self.configure.finish(store, pointer)?;
        Ok(found)
    }

    fn evaluate(
        &self,
        store: &mut Store<State>,
        columns: &[&[f64]],
        out: &mut [f64],
    ) -> Result<()> {
        let rows = u32::try_from(out.len())?;
        if let Some(other) = columns.iter().find(|column| column.len() != out.len()) {
            let length = other.len();
            return Err(Error::msg(format!("the host has {length} values for {rows} rows")));
        }
        let list = self.guest.copy_columns(&mut store.as_context_mut(), columns)?;
        let count = u32::try_from(columns.len().saturating_mul(out.len()))?;
        let pointer = self.evaluate.call(store, (rows, list, count))?;
        self.read(store, |lift| abi::values(lift, pointer, out))?;
        self.evaluate.finish(store, pointer)
    }
}

#[cfg(test)]
mod tests {
    use domain::formula::Column;
    use wasmtime::{Engine, Module};

    use super::*;
    use crate::config::Limits;
    use crate::proof::LiftedFunction;

    const GUEST: &str = crate::contract::FORMULA.guest_name;

    fn plan() -> Plan {
        let function = |name: &str| {
            let export = format!("{GUEST}#{name}");
            (name.to_owned(), LiftedFunction { export, post_return: None })
        };
        Plan {
            program: 0..0,
            imports: Vec::new(),
            memory: "memory".to_owned(),
            realloc: "cabi_realloc".to_owned(),
            set_up: Vec::new(),
            instances: 1,
            functions: ["describe", "configure", "evaluate"].map(function).into(),
        }
    }

    /// A module with the right exports, an allocator, and the given bodies of `configure` and
    /// `evaluate`. At 64 lies a result with one input: the close at the lags 0 to 5.
    fn program(allocate: &str, configure: &str, evaluate: &str) -> (Store<State>, Exports) {
        let text = format!(
            r#"(module
            (memory (export "memory") 1)
            (data (i32.const 64) "\00\00\00\00\50\00\00\00\01\00\00\00")
            (data (i32.const 80) "\03\00\00\00\00\00\00\00\05\00\00\00")
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {allocate})
            (func (export "{GUEST}#describe") (result i32) i32.const 0)
            (func (export "{GUEST}#configure") (param i32 i32) (result i32) {configure})
            (func (export "{GUEST}#evaluate") (param i32 i32 i32) (result i32) {evaluate}))"#
        );
        let engine = Engine::default();
        let mut store = Store::new(&engine, State::new(Limits::formula()));
        let module = Module::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let exports = Exports::find(&mut store, instance, &plan()).unwrap();
        (store, exports)
    }

    fn words<T>(store: &mut Store<State>, outcome: Result<T>) -> String {
        let error = outcome.err().unwrap();
        store.data_mut().breach.take().map_or(format!("{error:#}"), |kind| kind.to_string())
    }

    /// What `evaluate` over two rows of one column ends with.
    fn evaluated(allocate: &str, evaluate: &str) -> Result<Vec<f64>, String> {
        let (mut store, exports) = program(allocate, "i32.const 64", evaluate);
        let mut out = vec![0.0; 2];
        let outcome = exports.evaluate(&mut store, &[&[1.5, 2.5]], &mut out);
        match outcome {
            Ok(()) => Ok(out),
            other => Err(words(&mut store, other)),
        }
    }

    /// Stores `pointer` and `length` at 8, where the answer is said to be.
    fn answer(pointer: i32, length: i32) -> String {
        format!(
            "(i32.store (i32.const 8) (i32.const {pointer}))
             (i32.store (i32.const 12) (i32.const {length})) i32.const 8"
        )
    }

    #[test]
    fn a_module_that_behaves_is_driven() {
        let (mut store, exports) = program("i32.const 1024", "i32.const 64", &answer(1024, 2));
        let inputs = exports.configure(&mut store, &[20.0]).unwrap().unwrap();
        assert_eq!(inputs, [FormulaInput { column: Column::Close, first_lag: 0, last_lag: 5 }]);
        let mut out = [0.0; 2];
        exports.evaluate(&mut store, &[&[1.5, 2.5]], &mut out).unwrap();
        assert_eq!(out, [1.5, 2.5], "it answers with what it was given");
        let short: &[f64] = &[1.0];
        let outcome = exports.evaluate(&mut store, &[short], &mut out);
        assert_eq!(words(&mut store, outcome), "the host has 1 values for 2 rows");
    }

    #[test]
    fn an_answer_of_another_length_is_refused() {
        let words = evaluated("i32.const 1024", &answer(1024, 3)).unwrap_err();
        assert_eq!(words, "broke the contract: it answered 3 values for 2 rows");
    }

    #[test]
    fn places_that_a_module_names_are_not_trusted() {
        let fault = |evaluate: &str| evaluated("i32.const 1024", evaluate).unwrap_err();
        let text = fault(&answer(65_528, 2));
        assert!(text.contains("16 bytes at 65528 are outside its memory"), "{text}");
        assert!(fault(&answer(1_028, 2)).contains("the place 1028 is not a multiple of 8"));
        assert!(fault("i32.const 65534").contains("the place 65534 is not a multiple of 4"));
        assert!(fault("i32.const -4").contains("8 bytes at 4294967292 are outside its memory"));
    }

    #[test]
    fn an_allocator_is_not_trusted() {
        let fault = |allocate: &str| evaluated(allocate, "i32.const 8").unwrap_err();
        assert!(fault("i32.const 65528").contains("was asked for 16 bytes at a multiple of 8"));
        assert!(fault("i32.const 1025").contains("and gave 1025"));
    }

    #[test]
    fn wrong_inputs_are_refused() {
        let fault = |configure: &str| {
            let (mut store, exports) = program("i32.const 1024", configure, "i32.const 8");
            let outcome = exports.configure(&mut store, &[]);
            words(&mut store, outcome)
        };
        let column = "(i32.store8 (i32.const 80) (i32.const 5)) i32.const 64";
        assert_eq!(fault(column), "broke the contract: 5 is no case of Column");
        let case = "(i32.store8 (i32.const 64) (i32.const 2)) i32.const 64";
        assert_eq!(fault(case), "broke the contract: 2 is no case of a result");
        let many = "(i32.store (i32.const 72) (i32.const -1)) i32.const 64";
        assert!(fault(many).contains("bytes in one call"));
    }
}
