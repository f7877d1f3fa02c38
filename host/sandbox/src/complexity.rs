//! What the functions of a component cost to compile, counted before a compiler sees them.
//!
//! A compiler's work and memory do not grow with a function's bytes alone: where its control flow meets,
//! each value that may differ there is merged, so that 20 KB of nested loops over many locals keep a
//! compiler for minutes, in gigabytes.

use std::collections::HashSet; // lookup only: sets are counted and put together
use std::mem;

use domain::GuestLimit;
use wasmparser::{
    BlockType, CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, FuncToValidate,
    FuncValidator, FuncValidatorAllocations, FunctionBody, ModuleArity, Operator, Parser, Payload,
    Result, TableInit, ValidPayload, Validator, ValidatorResources, WasmFeatures,
    WasmModuleResources,
};

use crate::config::Limits;

/// An instruction may become a value that the compiler keeps with all that it finds out about it: 2 KB where a
/// long calculation leaves it no choice, a quarter of that for each unit.
const UNITS_PER_INSTRUCTION: u64 = 4;

/// Units of an operation of a constant, or of an item of a list of elements: 400 to 700 bytes each. All of a component's
/// stay in memory together, so that they count as one function.
const UNITS_PER_CONSTANT: u64 = 2;

/// Units of each way out of a `br_table`: of 20,000 ways into 20 blocks a compiler makes code for a second, and for
/// a minute of six times as many.
const UNITS_PER_TARGET: u64 = 40;

/// Units of a calculation with a constant that goes on with the result of such a calculation, besides its
/// instructions: compilers put the two constants together, and keep both ways to calculate it, 8 to 11 KB.
const UNITS_PER_FOLDING: u64 = 10;

/// What an instruction costs besides [`UNITS_PER_INSTRUCTION`], measured: some become loops, checks and calls of the
/// engine of up to 95 KB.
const fn further_units(operator: &Operator<'_>) -> u64 {
    match operator {
        Operator::TableCopy { .. } => 250,
        Operator::TableInit { .. } => 150,
        Operator::TableGrow { .. } => 100,
        Operator::TableFill { .. } => 80,
        Operator::TableGet { .. } => 30,
        Operator::MemoryCopy { .. }
        | Operator::MemoryFill { .. }
        | Operator::MemoryInit { .. }
        | Operator::MemoryGrow { .. } => 50,
        Operator::CallIndirect { .. }
        | Operator::CallRef { .. }
        | Operator::ReturnCall { .. }
        | Operator::ReturnCallIndirect { .. }
        | Operator::ReturnCallRef { .. }
        | Operator::Loop { .. } => 40,
        Operator::I32Rotl | Operator::I32Rotr | Operator::I64Rotl | Operator::I64Rotr => 20,
        Operator::I32x4TruncSatF32x4U | Operator::I32x4TruncSatF64x2UZero => 10,
        // Each looks whether its result is a number.
        Operator::F32Ceil
        | Operator::F32Floor
        | Operator::F32Trunc
        | Operator::F32Nearest
        | Operator::F32Sqrt
        | Operator::F32Add
        | Operator::F32Sub
        | Operator::F32Mul
        | Operator::F32Div
        | Operator::F32Min
        | Operator::F32Max
        | Operator::F64Ceil
        | Operator::F64Floor
        | Operator::F64Trunc
        | Operator::F64Nearest
        | Operator::F64Sqrt
        | Operator::F64Add
        | Operator::F64Sub
        | Operator::F64Mul
        | Operator::F64Div
        | Operator::F64Min
        | Operator::F64Max
        | Operator::If { .. }
        | Operator::Call { .. } => 5,
        _ => 0,
    }
}

/// Values that are only alive where control flow splits or meets cost little: compilers keep them as
/// bits.
const ALIVE_PER_UNIT: u64 = 32;

/// A value that is merged at a loop costs more than one at a block: it may change on every way round, and
/// compilers look at all of a function's loops for each.
const UNITS_PER_LOOP_VALUE: u64 = 8;

/// What compiling a component may cost, in units. An instruction is four units; a unit is a value that a call takes or
/// gives, or a value that is merged where control flow meets, at loops eight times; 32 values alive there are
/// one more, and as many blocks around them. Some instructions cost more, and each way out of a `br_table`; so do the
/// constants of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Of one function.
    pub(crate) function: u64,
    /// Of all functions together.
    pub(crate) functions: u64,
}

impl Allowed {
    /// What is allowed unless a user says otherwise.
    pub(crate) const USUAL: Self = Self {
        function: GuestLimit::Function.default_value(),
        functions: GuestLimit::Functions.default_value(),
    };

    /// What these limits allow.
    pub(crate) const fn of(limits: &Limits) -> Self {
        Self { function: limits.function_cost, functions: limits.functions_cost }
    }

    /// Whether some of it is more than in `other`.
    pub(crate) const fn exceeds(self, other: Self) -> bool {
        self.function > other.function || self.functions > other.functions
    }
}

/// What costs more than is allowed, and what was counted until it was too much.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Costly {
    /// One function, by its index in its module.
    Function { index: u32, used: u64 },
    /// All constants: what globals and elements begin with, and where segments go.
    Constants { used: u64 },
    /// All together.
    Functions { used: u64 },
}

/// What costs more than `allowed`, if anything does.
///
/// The count itself takes no longer than a validation and what is allowed together.
///
/// # Errors
/// When the component is not valid.
pub(crate) fn costly(component: &[u8], allowed: Allowed) -> Result<Option<Costly>> {
    let used = constants(component, allowed.function)?;
    if used > allowed.function {
        return Ok(Some(Costly::Constants { used }));
    }
    let (mut found, mut all) = (None, used);
    each_function(component, allowed.function, &mut |index, used| {
        all = all.saturating_add(used);
        if used > allowed.function {
            found = Some(Costly::Function { index, used });
        } else if all > allowed.functions {
            found = Some(Costly::Functions { used: all });
        }
        found.is_none()
    })?;
    Ok(found)
}

/// What the constants of all modules cost, counted up to somewhat more than `allowed`.
fn constants(component: &[u8], allowed: u64) -> Result<u64> {
    let mut used = 0_u64;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::GlobalSection(globals) => {
                for global in globals {
                    used += operations(&global?.init_expr, allowed)?;
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    if let TableInit::Expr(first) = table?.init {
                        used += operations(&first, allowed)?;
                    }
                }
            }
            Payload::ElementSection(elements) => {
                for element in elements {
                    let element = element?;
                    if let ElementKind::Active { offset_expr, .. } = &element.kind {
                        used += operations(offset_expr, allowed)?;
                    }
                    used += UNITS_PER_CONSTANT
                        * match element.items {
                            ElementItems::Functions(items) => u64::from(items.count()),
                            ElementItems::Expressions(_, items) => {
                                let first = items.clone();
                                for item in items {
                                    used += operations(&item?, allowed)?;
                                    if used > allowed {
                                        return Ok(used);
                                    }
                                }
                                u64::from(first.count())
                            }
                        };
                }
            }
            Payload::DataSection(data) => {
                for data in data {
                    if let DataKind::Active { offset_expr, .. } = &data?.kind {
                        used += operations(offset_expr, allowed)?;
                    }
                }
            }
            _ => {}
        }
        if used > allowed {
            return Ok(used);
        }
    }
    Ok(used)
}

/// What a constant costs.
fn operations(constant: &ConstExpr<'_>, allowed: u64) -> Result<u64> {
    let mut used = 0;
    for operator in constant.get_operators_reader() {
        operator?;
        used += UNITS_PER_CONSTANT;
        if used > allowed {
            break;
        }
    }
    Ok(used)
}

/// Counts each function up to `allowed`, and goes on as long as `go_on` is answered with yes.
fn each_function(
    component: &[u8],
    allowed: u64,
    go_on: &mut dyn FnMut(u32, u64) -> bool,
) -> Result<()> {
    // More than the engine takes: what it refuses it refuses itself.
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut allocations = FuncValidatorAllocations::default();
    for payload in Parser::new(0).parse_all(component) {
        if let ValidPayload::Func(function, body) = validator.payload(&payload?)? {
            let number = function.index;
            let gives = gives(&function);
            let validator = function.into_validator(mem::take(&mut allocations));
            let mut count = Count::new(validator, gives);
            count.read(&body, allowed)?;
            if !go_on(number, count.cost) {
                return Ok(());
            }
            allocations = count.validator.into_allocations();
        }
    }
    Ok(())
}

/// How many values a function gives.
fn gives(function: &FuncToValidate<ValidatorResources>) -> u64 {
    let of = function.resources.sub_type_at(function.ty);
    match of.map(|of| &of.composite_type.inner) {
        Some(CompositeInnerType::Func(of)) => of.results().len() as u64,
        _ => 0,
    }
}

/// One function so far.
struct Count {
    validator: FuncValidator<ValidatorResources>,
    /// The blocks around the present instruction, outermost first.
    frames: Vec<Frame>,
    /// Operands of which something is known, by their place on the stack, lowest first.
    known: Vec<(u32, Known)>,
    /// Locals that were given a constant somewhere.
    constants: HashSet<u32>,
    cost: u64,
}

/// What a compiler may know of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// That it is a constant.
    Constant,
    /// That it was calculated from something and a constant.
    Calculated,
}

/// What an instruction makes of what is known.
enum Effect {
    /// It gives what may be a constant.
    Constant,
    /// It gives one operand for one, a constant for a constant.
    OfOne,
    /// It gives one operand for two, which may be calculated from the same two in another way.
    OfTwo,
    /// It leaves all operands as they are.
    None,
    /// Nothing is known of what it gives.
    Other,
}

const fn effect(operator: &Operator<'_>) -> Effect {
    match operator {
        Operator::I32Const { .. }
        | Operator::I64Const { .. }
        | Operator::F32Const { .. }
        | Operator::F64Const { .. }
        | Operator::GlobalGet { .. }
        | Operator::MemorySize { .. }
        | Operator::TableSize { .. } => Effect::Constant,
        Operator::I32Eqz
        | Operator::I64Eqz
        | Operator::I32Clz
        | Operator::I32Ctz
        | Operator::I32Popcnt
        | Operator::I64Clz
        | Operator::I64Ctz
        | Operator::I64Popcnt
        | Operator::I32WrapI64
        | Operator::I64ExtendI32S
        | Operator::I64ExtendI32U
        | Operator::I32Extend8S
        | Operator::I32Extend16S
        | Operator::I64Extend8S
        | Operator::I64Extend16S
        | Operator::I64Extend32S
        | Operator::I32ReinterpretF32
        | Operator::I64ReinterpretF64
        | Operator::F32ReinterpretI32
        | Operator::F64ReinterpretI64 => Effect::OfOne,
        Operator::I32Add
        | Operator::I32Sub
        | Operator::I32Mul
        | Operator::I32DivS
        | Operator::I32DivU
        | Operator::I32RemS
        | Operator::I32RemU
        | Operator::I32And
        | Operator::I32Or
        | Operator::I32Xor
        | Operator::I32Shl
        | Operator::I32ShrS
        | Operator::I32ShrU
        | Operator::I32Rotl
        | Operator::I32Rotr
        | Operator::I64Add
        | Operator::I64Sub
        | Operator::I64Mul
        | Operator::I64DivS
        | Operator::I64DivU
        | Operator::I64RemS
        | Operator::I64RemU
        | Operator::I64And
        | Operator::I64Or
        | Operator::I64Xor
        | Operator::I64Shl
        | Operator::I64ShrS
        | Operator::I64ShrU
        | Operator::I64Rotl
        | Operator::I64Rotr => Effect::OfTwo,
        Operator::Nop | Operator::LocalTee { .. } => Effect::None,
        _ => Effect::Other,
    }
}

/// A block, loop or condition.
#[derive(Default)]
struct Frame {
    /// Values that its label takes.
    label: u64,
    /// Units of each value that is merged at the label.
    units: u64,
    /// Ways to its label, but for the one through it.
    edges: u64,
    /// Locals that are read or written inside: what may have to be merged at its label.
    touched: HashSet<u32>,
}

impl Count {
    /// A function that gives so many values.
    fn new(validator: FuncValidator<ValidatorResources>, gives: u64) -> Self {
        Self {
            validator,
            frames: vec![Frame { label: gives, ..Frame::default() }],
            known: Vec::new(),
            constants: HashSet::new(),
            cost: 0,
        }
    }

    /// Reads the function, but not on after it has cost more than `allowed`.
    fn read(&mut self, body: &FunctionBody<'_>, allowed: u64) -> Result<()> {
        let mut reader = body.get_binary_reader();
        self.validator.read_locals(&mut reader)?;
        self.alive();
        reader.set_features(*self.validator.features());
        while !reader.eof() && self.cost <= allowed {
            let offset = reader.original_position();
            let operator = reader.peek_operator(&self.validator.visitor(offset))?;
            // Before it is validated, because an `end` takes its block away.
            self.take(&operator);
            reader.visit_operator(&mut self.validator.visitor(offset))??;
        }
        Ok(())
    }

    fn take(&mut self, operator: &Operator<'_>) {
        self.cost += UNITS_PER_INSTRUCTION + further_units(operator);
        self.follow(operator);
        match operator {
            Operator::LocalGet { local_index }
            | Operator::LocalSet { local_index }
            | Operator::LocalTee { local_index } => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.touched.insert(*local_index);
                }
            }
            Operator::Loop { blockty } => self.begin(*blockty, true),
            Operator::Block { blockty } | Operator::If { blockty } => self.begin(*blockty, false),
            Operator::TryTable { try_table } => self.begin(try_table.ty, false),
            Operator::Else => self.edge(0),
            Operator::End => self.end(),
            Operator::Return => self.edge(self.frames.len().saturating_sub(1) as u32),
            Operator::Br { relative_depth }
            | Operator::BrIf { relative_depth }
            | Operator::BrOnNull { relative_depth }
            | Operator::BrOnNonNull { relative_depth } => self.edge(*relative_depth),
            Operator::BrTable { targets } => {
                for depth in targets.targets().flatten().chain([targets.default()]) {
                    self.cost += UNITS_PER_TARGET;
                    self.edge(depth);
                }
            }
            Operator::Call { .. } | Operator::CallIndirect { .. } | Operator::CallRef { .. } => {
                let (takes, gives) = operator.operator_arity(&self.validator).unwrap_or_default();
                self.cost += u64::from(takes) + u64::from(gives);
            }
            _ => {}
        }
    }

    /// Follows the constants: what is put together from them costs more.
    fn follow(&mut self, operator: &Operator<'_>) {
        let height = self.validator.operand_stack_height();
        self.forget_from(height);
        match (effect(operator), operator) {
            (Effect::Constant, _) => self.known.push((height, Known::Constant)),
            (_, Operator::LocalGet { local_index }) => {
                if self.constants.contains(local_index) {
                    self.known.push((height, Known::Constant));
                }
            }
            (_, Operator::LocalSet { local_index } | Operator::LocalTee { local_index }) => {
                let top = height.checked_sub(1).map(|place| (place, Known::Constant));
                if top.is_some() && self.known.last().copied() == top {
                    self.constants.insert(*local_index);
                }
            }
            (Effect::OfOne, _) => {
                let place = height.saturating_sub(1);
                if self.taken_from(place) == Some(Known::Constant) {
                    self.known.push((place, Known::Constant));
                }
            }
            (Effect::OfTwo, _) => {
                // Where nothing is reached any more there may be no operands.
                let Some(place) = height.checked_sub(2) else {
                    self.known.clear();
                    return;
                };
                let (second, first) = (self.taken_from(place + 1), self.taken_from(place));
                let gives = match (first, second) {
                    (Some(Known::Constant), Some(Known::Constant)) => Known::Constant,
                    (Some(Known::Constant), None) | (None, Some(Known::Constant)) => {
                        Known::Calculated
                    }
                    (Some(Known::Constant), Some(Known::Calculated))
                    | (Some(Known::Calculated), Some(Known::Constant)) => {
                        self.cost += UNITS_PER_FOLDING;
                        Known::Calculated
                    }
                    (None | Some(Known::Calculated), None | Some(Known::Calculated)) => return,
                };
                self.known.push((place, gives));
            }
            (Effect::None, _) => {}
            (Effect::Other, _) if self.known.is_empty() => {}
            (Effect::Other, _) => {
                let takes =
                    operator.operator_arity(&self.validator).map_or(height, |(takes, _)| takes);
                self.forget_from(height.saturating_sub(takes));
            }
        }
    }

    /// Nothing is known any more of the operands from this place on.
    fn forget_from(&mut self, place: u32) {
        while self.known.last().is_some_and(|&(known, _)| known >= place) {
            self.known.pop();
        }
    }

    /// What is known of the uppermost operand, which is taken from this place.
    fn taken_from(&mut self, place: u32) -> Option<Known> {
        let (_, known) = self.known.pop_if(|&mut (known, _)| known == place)?;
        Some(known)
    }

    fn begin(&mut self, blockty: BlockType, is_loop: bool) {
        let (takes, gives) = self.validator.block_type_arity(blockty).unwrap_or_default();
        let (label, units) = match is_loop {
            true => (u64::from(takes), UNITS_PER_LOOP_VALUE),
            false => (u64::from(gives), 1),
        };
        // What compilers find out of a block they look up in those around it.
        self.cost += self.frames.len() as u64 / ALIVE_PER_UNIT;
        self.frames.push(Frame { label, units, ..Frame::default() });
        self.alive();
    }

    fn edge(&mut self, depth: u32) {
        let place = self.frames.len().checked_sub(depth as usize + 1);
        if let Some(frame) = place.and_then(|place| self.frames.get_mut(place)) {
            frame.edges += 1;
            // What a function gives is not merged at its end but handed over on each way there.
            if place == Some(0) {
                self.cost += frame.label;
            }
        }
        self.alive();
    }

    /// What may be alive where control flow splits or meets.
    fn alive(&mut self) {
        let alive = self.validator.len_locals() + self.validator.operand_stack_height();
        self.cost += u64::from(alive) / ALIVE_PER_UNIT;
    }

    fn end(&mut self) {
        let Some(Frame { label, units, edges, mut touched }) = self.frames.pop() else { return };
        // So it is at the end of the function.
        let Some(outer) = self.frames.last_mut() else { return };
        let merged = (label + touched.len() as u64) * units;
        self.cost = self.cost.saturating_add(merged.saturating_mul(edges + 1));
        // The smaller set goes into the larger one: no more work than has just been counted.
        if touched.len() > outer.touched.len() {
            mem::swap(&mut touched, &mut outer.touched);
        }
        outer.touched.extend(touched);
        self.alive();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction.
    const I: u64 = UNITS_PER_INSTRUCTION;

    /// What each function of a module in text costs.
    fn costs(text: &str) -> Vec<u64> {
        let mut found = Vec::new();
        let bytes = wat::parse_str(text).unwrap();
        each_function(&bytes, u64::MAX, &mut |_, cost| {
            found.push(cost);
            true
        })
        .unwrap();
        found
    }

    /// A function with loops around each other, in which every local changes.
    fn loops(depth: usize, locals: usize) -> String {
        let changes: String = (0..locals)
            .map(|local| format!("local.get {local} i32.const 1 i32.add local.set {local} "))
            .collect();
        let back: String = (0..depth).map(|loops| format!("local.get 0 br_if {loops} ")).collect();
        let (begin, end) = ("loop ".repeat(depth), "end ".repeat(depth));
        let declared = "i32 ".repeat(locals);
        format!("(module (func (local {declared}) {begin}{changes}{back}{end}))")
    }

    #[test]
    fn instructions_cost_the_same_each() {
        assert_eq!(costs("(module (func) (func nop nop))"), [I, 3 * I]);
        let call = "(module (func $f (param i32 i32) (result i32) local.get 0)
                     (func i32.const 1 i32.const 2 call $f drop))";
        assert_eq!(costs(call), [2 * I, 5 * I + 5 + 3], "two values go in and one comes out");
    }

    #[test]
    fn what_is_merged_costs_for_each_way_to_it() {
        // One local and one result, merged from the branch and from the end of the block.
        let block = "(module (func (param i32) (result i32)
            (block (result i32) local.get 0 local.get 0 br_if 0)))";
        assert_eq!(costs(block), [6 * I + 2 * 2]);
        let table = "(module (func (param i32)
            (block local.get 0 br_table 0 0 0 0)))";
        assert_eq!(costs(table), [5 * I + 4 * UNITS_PER_TARGET + (4 + 1)]);
        // Each loop has a way back and a way in, and all locals are merged there.
        let (depth, locals) = (20, 30);
        let instructions = I * (2 * depth + 4 * locals + 2 * depth + 1) as u64;
        let merged = 40 * depth as u64 + UNITS_PER_LOOP_VALUE * 2 * (depth * locals) as u64;
        assert_eq!(costs(&loops(depth, locals)), [instructions + merged]);
    }

    #[test]
    fn constants_that_are_put_together_cost_more() {
        let cost = |body: &str| {
            let imported = r#"(import "a" "b" (global i64))"#;
            let function = format!("(func (param i64) (local i64) {body} drop)");
            costs(&format!("(module {imported} {function})"))[0]
        };
        let step = "i64.const 7 i64.xor ";
        let first = cost(&format!("local.get 0 {step}"));
        assert_eq!(first, 5 * I);
        for (more, instructions, foldings) in [
            (step, 2, 1),
            ("i64.const 7 nop i64.add nop local.tee 0 i64.const 5 i64.mul ", 7, 2),
            ("i32.const 7 i64.extend_i32_u i64.sub ", 3, 1),
            ("f64.const 7 i64.reinterpret_f64 i64.or ", 3, 1),
            ("global.get 0 i64.add ", 2, 1),
            ("i64.const 3 local.set 1 local.get 1 i64.xor local.get 1 i64.and ", 6, 2),
            // Constants of which one is made count as one.
            ("i64.const 3 i64.const 4 i64.add i64.xor ", 4, 1),
            ("local.get 0 i64.xor ", 2, 0),
            ("drop local.get 0 i64.const 3 i64.xor ", 4, 0),
            ("local.get 0 i64.mul i64.const 3 i64.xor ", 4, 0),
        ] {
            let all = cost(&format!("local.get 0 {step}{more}"));
            assert_eq!(all - first, I * instructions + UNITS_PER_FOLDING * foldings, "{more}");
        }
        // The constants lie there before.
        let before =
            cost("i64.const 1 i64.const 2 i64.const 3 local.get 0 i64.xor i64.xor i64.xor");
        assert_eq!(before, 9 * I + 2 * UNITS_PER_FOLDING);
        // Behind a way out nothing is known of operands that there are not.
        assert_eq!(cost("i64.const 1 unreachable i64.add i64.add"), 6 * I);
    }

    #[test]
    fn what_a_function_gives_costs_on_each_way_to_its_end() {
        let function = |ways: &str| {
            let results = "i32 ".repeat(20);
            let given = "i32.const 1 ".repeat(20);
            costs(&format!("(module (func (param i32) (result {results}) {given} {ways}))"))
        };
        let plain = function("")[0];
        assert_eq!(function("local.get 0 br_if 0")[0], plain + 2 * I + 20);
        assert_eq!(function("return")[0], plain + I + 20);
    }

    #[test]
    fn constants_count_as_one_function() {
        let cost = |text: &str| constants(&wat::parse_str(text).unwrap(), u64::MAX).unwrap();
        // Each ends with an `end`.
        assert_eq!(cost("(module (global i32 (i32.add (i32.const 1) (i32.const 2))))"), 4 * 2);
        let elements = "(module (func) (table 1 funcref) (elem func 0 0 0)
            (elem funcref (ref.null func) (ref.func 0)) (elem (i32.const 0) func 0))";
        assert_eq!(cost(elements), 2 * 3 + 2 * (2 + 4) + 2 * (2 + 1));
        assert_eq!(cost("(module (memory 1) (data (i32.const 0) \"a\"))"), 2 * 2);
        let component = "(component (core module (global i32 (i32.const 1))))";
        assert_eq!(cost(component), 2 * 2);
        let allowed = |function| Allowed { function, functions: u64::MAX };
        let found = |function| costly(&wat::parse_str(component).unwrap(), allowed(function));
        assert_eq!(found(4).unwrap(), None);
        assert_eq!(found(3).unwrap(), Some(Costly::Constants { used: 4 }));
    }

    #[test]
    fn values_that_wait_cost_too() {
        let alive = "(module (func (param i32) (local i64)".to_owned() + &" (local i64)".repeat(62);
        let split = alive + " (block) (block)))";
        // 64 locals are two units where each block begins and where it ends.
        assert_eq!(costs(&split), [5 * I + 2 + 2 * 2 * 2]);
    }

    /// The component that xtask has built of a language, or the reason why there is none.
    fn built(name: &str) -> Result<Vec<u8>, String> {
        let test = std::env::current_exe().unwrap();
        let release = test.ancestors().find(|folder| folder.ends_with("release"));
        let path = release.unwrap().join("languages").join(name).with_extension("wasm");
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whole interpreters are allowed, with room for larger ones.
    #[test]
    fn interpreters_cost_less_than_what_is_allowed() {
        for name in ["sma-cross-python", "sma-cross-javascript", "sma-cross-c"] {
            let component = match built(name) {
                Ok(component) => component,
                Err(reason) => {
                    println!("skipped: {reason}");
                    continue;
                }
            };
            let (mut most, mut all) = (0, 0);
            each_function(&component, u64::MAX, &mut |_, cost| {
                (most, all) = (most.max(cost), all + cost);
                true
            })
            .unwrap();
            println!("{name}: {most} units in one function, {all} in all");
            let Allowed { function, functions } = Allowed::USUAL;
            assert!(most < function / 5 * 4, "{name}: {most} of {function}");
            assert!(all < functions / 4 * 3, "{name}: {all} of {functions}");
        }
    }

    #[test]
    fn the_first_function_that_costs_too_much_is_found_early() {
        let bytes = wat::parse_str(loops(500, 300)).unwrap();
        let allowed = |function, functions| Allowed { function, functions };
        assert_eq!(costly(&bytes, allowed(10_000_000, 10_000_000)).unwrap(), None);
        let found = costly(&bytes, allowed(100_000, u64::MAX)).unwrap().unwrap();
        let Costly::Function { index: 0, used } = found else { panic!("{found:?}") };
        assert!((100_001..110_000).contains(&used), "{found:?}");
        let component = format!("(component (core {}", &loops(500, 300)[1..]) + ")";
        let inside = wat::parse_str(component).unwrap();
        assert_eq!(costly(&inside, allowed(100_000, u64::MAX)).unwrap(), Some(found));
        assert!(costly(&bytes[..bytes.len() - 2], allowed(100_000, u64::MAX)).is_err());
    }

    #[test]
    fn functions_that_cost_too_much_together_are_found() {
        let bytes = wat::parse_str("(module (func) (func nop) (func))").unwrap();
        let allowed = |functions| Allowed { function: 2 * I, functions };
        let too_much = |used| Some(Costly::Functions { used });
        assert_eq!(costly(&bytes, allowed(4 * I)).unwrap(), None);
        assert_eq!(costly(&bytes, allowed(4 * I - 1)).unwrap(), too_much(4 * I));
        assert_eq!(costly(&bytes, allowed(3 * I - 1)).unwrap(), too_much(3 * I));
    }
}
