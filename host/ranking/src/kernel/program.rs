//! A formula as a straight list of steps over columns. Null is "not a number" here: it spreads
//! through arithmetic by itself, in the order of the tree and with the bits of IEEE doubles.

use crate::formula::{Column, Node, Operator};

/// Cells evaluated at a time, so that intermediate results stay in the processor's first cache.
pub(super) const CHUNK: usize = 1_024;

/// Where a step finds a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// The same number for all codes; null is "not a number".
    Number(f64),
    /// A column, by its index in [`Program::leaves`].
    Leaf(usize),
    /// The result of an earlier step.
    Register(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Action {
    Add,
    Subtract,
    Multiply,
    /// By a divisor that is never 0.
    Divide,
    /// By a divisor that may be 0, which gives null.
    DivideGuarded,
}

/// One step; its target is always the lowest free register.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Binary { action: Action, left: Source, right: Source, target: usize },
    Negate { value: Source, target: usize },
}

/// A formula ready to run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    leaves: Vec<(Column, u32)>,
    steps: Vec<Step>,
    result: Source,
    registers: usize,
}

impl Program {
    /// Compiles a tree.
    pub(crate) fn new(root: &Node) -> Self {
        let mut program = Self {
            leaves: root.values(),
            steps: Vec::new(),
            result: Source::Number(f64::NAN),
            registers: 0,
        };
        program.result = program.compile(root, 0);
        program
    }

    /// The columns it reads, with their lags.
    pub(crate) fn leaves(&self) -> &[(Column, u32)] {
        &self.leaves
    }

    /// Whether a row without a close has no value either, because the day's close is part of it.
    pub(crate) fn needs_close(&self) -> bool {
        self.leaves.contains(&(Column::Close, 0))
    }

    pub(super) fn registers(&self) -> usize {
        self.registers
    }

    /// Compiles a node so that no register below `free` is written.
    fn compile(&mut self, node: &Node, free: usize) -> Source {
        match node {
            Node::Number(value) => Source::Number(*value),
            Node::Value { column, lag } => {
                let index = self.leaves.iter().position(|leaf| *leaf == (*column, *lag));
                // Every value of the tree is among its leaves.
                index.map_or(Source::Number(f64::NAN), Source::Leaf)
            }
            Node::Negate(inner) => match self.compile(inner, free) {
                Source::Number(value) => Source::Number(-value),
                value => {
                    self.steps.push(Step::Negate { value, target: free });
                    self.register(free)
                }
            },
            Node::Binary { operator, left, right } => {
                let left = self.compile(left, free);
                let above = if matches!(left, Source::Register(_)) { free + 1 } else { free };
                let right = self.compile(right, above);
                self.binary(*operator, left, right, free)
            }
        }
    }

    fn binary(&mut self, operator: Operator, left: Source, right: Source, target: usize) -> Source {
        let action = match (operator, right) {
            (Operator::Add, _) => Action::Add,
            (Operator::Subtract, _) => Action::Subtract,
            (Operator::Multiply, _) => Action::Multiply,
            // Columns hold no 0.
            (Operator::Divide, Source::Leaf(_)) => Action::Divide,
            (Operator::Divide, Source::Number(divisor)) if divisor != 0.0 => Action::Divide,
            (Operator::Divide, _) => Action::DivideGuarded,
        };
        if let (Source::Number(left), Source::Number(right)) = (left, right) {
            return Source::Number(action.apply(left, right));
        }
        self.steps.push(Step::Binary { action, left, right, target });
        self.register(target)
    }

    fn register(&mut self, index: usize) -> Source {
        self.registers = self.registers.max(index + 1);
        Source::Register(index)
    }

    /// Runs over one chunk: `leaves` are the columns, all as long as `out`, which gets the result.
    pub(super) fn run(&self, leaves: &[&[f64]], registers: &mut [Vec<f64>], out: &mut [f64]) {
        for step in &self.steps {
            let target = match *step {
                Step::Binary { target, .. } | Step::Negate { target, .. } => target,
            };
            let Some(slot) = registers.get_mut(target) else { continue };
            let mut taken = std::mem::take(slot);
            let room = taken.get_mut(..out.len()).unwrap_or_default();
            run_step(step, leaves, registers, room);
            if let Some(slot) = registers.get_mut(target) {
                *slot = taken;
            }
        }
        match self.result {
            Source::Number(value) => out.fill(value),
            source => out.copy_from_slice(slice(source, leaves, registers, out.len())),
        }
    }
}

impl Action {
    #[inline(always)]
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::DivideGuarded => {
                let quotient = left / right;
                if right == 0.0 { f64::NAN } else { quotient }
            }
        }
    }
}

fn slice<'a>(
    source: Source,
    leaves: &[&'a [f64]],
    registers: &'a [Vec<f64>],
    length: usize,
) -> &'a [f64] {
    let values = match source {
        Source::Leaf(index) => leaves.get(index).copied(),
        Source::Register(index) => registers.get(index).map(Vec::as_slice),
        Source::Number(_) => None,
    };
    values.and_then(|values| values.get(..length)).unwrap_or_default()
}

/// Runs one step into `room`, which is the taken target: a source that is the target is read from
/// `room` itself.
fn run_step(step: &Step, leaves: &[&[f64]], registers: &[Vec<f64>], room: &mut [f64]) {
    match *step {
        Step::Negate { value: Source::Register(index), target } if index == target => {
            room.iter_mut().for_each(|value| *value = -*value);
        }
        Step::Negate { value, .. } => {
            let values = slice(value, leaves, registers, room.len());
            room.iter_mut().zip(values).for_each(|(slot, value)| *slot = -value);
        }
        Step::Binary { action, left, right, target } => {
            let operands = Operands { left, right, target, leaves, registers };
            match action {
                Action::Add => operands.run(room, |a, b| Action::Add.apply(a, b)),
                Action::Subtract => operands.run(room, |a, b| Action::Subtract.apply(a, b)),
                Action::Multiply => operands.run(room, |a, b| Action::Multiply.apply(a, b)),
                Action::Divide => operands.run(room, |a, b| Action::Divide.apply(a, b)),
                Action::DivideGuarded => {
                    operands.run(room, |a, b| Action::DivideGuarded.apply(a, b));
                }
            }
        }
    }
}

struct Operands<'a> {
    left: Source,
    right: Source,
    target: usize,
    leaves: &'a [&'a [f64]],
    registers: &'a [Vec<f64>],
}

impl Operands<'_> {
    /// One loop for each kind of operands, so that the compiler makes vector code of each.
    #[inline(always)]
    fn run(&self, room: &mut [f64], apply: impl Fn(f64, f64) -> f64) {
        let own = Source::Register(self.target);
        let values = |source| slice(source, self.leaves, self.registers, room.len());
        match (self.left, self.right) {
            (left, Source::Number(b)) if left == own => {
                room.iter_mut().for_each(|slot| *slot = apply(*slot, b));
            }
            (Source::Number(a), right) if right == own => {
                room.iter_mut().for_each(|slot| *slot = apply(a, *slot));
            }
            (left, right) if left == own => {
                let values = values(right);
                room.iter_mut().zip(values).for_each(|(slot, b)| *slot = apply(*slot, *b));
            }
            (left, right) if right == own => {
                let values = values(left);
                room.iter_mut().zip(values).for_each(|(slot, a)| *slot = apply(*a, *slot));
            }
            (left, Source::Number(b)) => {
                let values = values(left);
                room.iter_mut().zip(values).for_each(|(slot, a)| *slot = apply(*a, b));
            }
            (Source::Number(a), right) => {
                let values = values(right);
                room.iter_mut().zip(values).for_each(|(slot, b)| *slot = apply(a, *b));
            }
            (left, right) => {
                let pairs = values(left).iter().zip(values(right));
                room.iter_mut().zip(pairs).for_each(|(slot, (a, b))| *slot = apply(*a, *b));
            }
        }
    }
}
