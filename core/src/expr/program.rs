//! Compiles expressions to code that computes value and derivatives.

use super::operations::{Operation, choose};
use super::tree::{Expr, ExprNode, NodeKind, TextSpan, Variable};

/// An index into the array that a [`Program`] reads its variables from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableSlot(pub usize);

/// A variable that has no slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The variable that is read.
    pub variable: Variable,
    /// The bytes that it was written in.
    pub span: TextSpan,
}

/// One step on a stack of numbers.
#[derive(Clone, Copy, Debug)]
enum StackStep {
    Constant(f64),
    Load(VariableSlot),
    Unary(&'static Operation),
    Binary(&'static Operation),
    Select,
}

/// An expression over the slots of an array, ready to be evaluated many times.
#[derive(Clone, Debug)]
pub struct Program {
    steps: Vec<StackStep>,
    slots: Vec<VariableSlot>,
    stack: usize,
}

/// The stack of nearly every expression that people write; a larger one is allocated.
const SMALL_STACK: usize = 16;

impl Expr {
    /// Puts the variables into the slots that `resolve` names. A fact that is still there has no value.
    ///
    /// # Errors
    /// Returns every variable that `resolve` has no slot for.
    pub fn compile(
        &self,
        mut resolve: impl FnMut(&Variable) -> Option<VariableSlot>,
    ) -> Result<Program, Vec<Unresolved>> {
        let mut steps = Vec::with_capacity(self.nodes().len());
        let mut unresolved = Vec::new();
        for ExprNode { kind, span } in self.nodes() {
            steps.push(match kind {
                NodeKind::Number(number) => StackStep::Constant(*number),
                NodeKind::Fact(_) => StackStep::Constant(f64::NAN),
                NodeKind::Operation(operation) if operation.arity() == 1 => StackStep::Unary(operation),
                NodeKind::Operation(operation) => StackStep::Binary(operation),
                NodeKind::Select => StackStep::Select,
                NodeKind::Variable(variable) => match resolve(variable) {
                    Some(slot) => StackStep::Load(slot),
                    None => {
                        unresolved.push(Unresolved { variable: variable.clone(), span: *span });
                        continue;
                    }
                },
            });
        }
        if unresolved.is_empty() { Ok(Program::new(steps)) } else { Err(unresolved) }
    }
}

impl Program {
    fn new(steps: Vec<StackStep>) -> Self {
        let (mut height, mut stack) = (0_usize, 0);
        let mut slots = Vec::new();
        for step in &steps {
            height = match step {
                StackStep::Constant(_) | StackStep::Load(_) => height + 1,
                StackStep::Unary(_) => height,
                StackStep::Binary(_) => height - 1,
                StackStep::Select => height - 2,
            };
            stack = stack.max(height);
            if let StackStep::Load(slot) = step {
                slots.push(*slot);
            }
        }
        slots.sort_unstable();
        slots.dedup();
        Self { steps, slots, stack }
    }

    /// The program for `left - right`.
    pub(crate) fn difference(left: &Self, right: &Self) -> Option<Self> {
        let (minus, _) = super::operations::infix("-")?;
        let sides = left.steps.iter().chain(&right.steps).copied();
        Some(Self::new(sides.chain([StackStep::Binary(minus)]).collect()))
    }

    /// The slots that it reads, ascending, each once: the order of the gradient.
    pub fn slots(&self) -> &[VariableSlot] {
        &self.slots
    }

    /// The value at `values`. Not finite means that there is none; a slot past the end of `values`
    /// has none.
    pub fn eval(&self, values: &[f64]) -> f64 {
        let load = |VariableSlot(slot)| values.get(slot).copied().unwrap_or(f64::NAN);
        if self.stack <= SMALL_STACK {
            self.run(&mut [0.0; SMALL_STACK], load)
        } else {
            self.run(&mut vec![0.0; self.stack], load)
        }
    }

    /// The value, and in `gradient[k]` its derivative by the number in `self.slots()[k]`.
    ///
    /// Forward mode with one pass for each slot, as relations have few of them. A `gradient` that
    /// is shorter than [`slots`](Self::slots) gets the first derivatives, and what is longer is
    /// left as it is.
    pub fn eval_with_gradient(&self, values: &[f64], gradient: &mut [f64]) -> f64 {
        for (derivative, &slot) in gradient.iter_mut().zip(&self.slots) {
            *derivative = self.derivative(values, slot);
        }
        self.eval(values)
    }

    fn derivative(&self, values: &[f64], by: VariableSlot) -> f64 {
        let load = |slot: VariableSlot| Dual {
            value: values.get(slot.0).copied().unwrap_or(f64::NAN),
            slope: if slot == by { 1.0 } else { 0.0 },
        };
        let result = if self.stack <= SMALL_STACK {
            self.run(&mut [Dual::constant(0.0); SMALL_STACK], load)
        } else {
            self.run(&mut vec![Dual::constant(0.0); self.stack], load)
        };
        if result.value.is_nan() { f64::NAN } else { result.slope }
    }

    /// `stack` must hold `self.stack` numbers.
    fn run<N: StackNumber>(&self, stack: &mut [N], load: impl Fn(VariableSlot) -> N) -> N {
        let mut top = 0;
        for step in &self.steps {
            match *step {
                StackStep::Constant(number) => {
                    stack[top] = N::constant(number);
                    top += 1;
                }
                StackStep::Load(slot) => {
                    stack[top] = load(slot);
                    top += 1;
                }
                StackStep::Unary(operation) => {
                    stack[top - 1] = N::apply(operation, stack[top - 1], N::constant(0.0));
                }
                StackStep::Binary(operation) => {
                    top -= 1;
                    stack[top - 1] = N::apply(operation, stack[top - 1], stack[top]);
                }
                StackStep::Select => {
                    top -= 2;
                    let [a, condition, b] = [stack[top - 1], stack[top], stack[top + 1]];
                    stack[top - 1] = choose(condition.value(), a, b).unwrap_or(N::constant(f64::NAN));
                }
            }
        }
        stack[0]
    }
}

/// What a program computes with: values alone, or values with a derivative.
trait StackNumber: Copy {
    fn constant(value: f64) -> Self;
    fn value(self) -> f64;
    fn apply(operation: &Operation, a: Self, b: Self) -> Self;
}

impl StackNumber for f64 {
    fn constant(value: f64) -> Self {
        value
    }

    fn value(self) -> f64 {
        self
    }

    fn apply(operation: &Operation, a: Self, b: Self) -> Self {
        operation.value(a, b)
    }
}

/// A dual number: a value and its derivative by one variable.
#[derive(Clone, Copy)]
struct Dual {
    value: f64,
    slope: f64,
}

impl StackNumber for Dual {
    fn constant(value: f64) -> Self {
        Self { value, slope: 0.0 }
    }

    fn value(self) -> f64 {
        self.value
    }

    /// The chain rule. An operand that doesn't depend on the variable adds nothing, even where the
    /// slope is infinite.
    fn apply(operation: &Operation, a: Self, b: Self) -> Self {
        let [by_a, by_b] = operation.slopes(a.value, b.value);
        let part = |by: f64, slope: f64| if slope == 0.0 { 0.0 } else { by * slope };
        Self { value: operation.value(a.value, b.value), slope: part(by_a, a.slope) + part(by_b, b.slope) }
    }
}
