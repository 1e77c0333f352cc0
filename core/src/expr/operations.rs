//! Defines operators and functions: their names, values and slopes.
//!
//! Whatever an expression can compute from one or two numbers is a row of [`OPERATIONS`]; the
//! parser, the printer and the evaluator read it from there.

use std::fmt;

/// An operator or function of one or two numbers.
pub struct Operation {
    /// `+`, `<=`, `min`: as it is written.
    pub name: &'static str,
    /// How it is written in an expression.
    pub notation: Notation,
    value: fn(f64, f64) -> f64,
    slopes: fn(f64, f64) -> [f64; 2],
}

/// How an [`Operation`] is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Prefix: in front of its one operand.
    Prefix,
    /// Between its two operands; the one of higher power takes the operand between two operators.
    Infix {
        /// Binding power: 1 for `|` to 6 for `*`.
        power: u8,
    },
    /// Call: a name with one or two arguments in parentheses.
    Call {
        /// How many arguments it takes.
        arity: usize,
    },
}

impl Operation {
    /// How many operands it takes.
    pub fn arity(&self) -> usize {
        match self.notation {
            Notation::Prefix => 1,
            Notation::Infix { .. } => 2,
            Notation::Call { arity } => arity,
        }
    }

    /// The value at `(a, b)`; one that takes one operand ignores `b`.
    pub fn value(&self, a: f64, b: f64) -> f64 {
        (self.value)(a, b)
    }

    /// The value at `(a, b)` by the rules of IEEE 754, where [`value`](Self::value) has none: 1 / 0 is infinite, and
    /// no comparison with NaN holds, which leaves `min` and `max` the second operand.
    #[cfg(feature = "bench")]
    pub(crate) fn ieee_value(&self, a: f64, b: f64) -> f64 {
        match self.name {
            "/" => a / b,
            "log2" => a.log2(),
            "min" if a.is_nan() || b.is_nan() => b,
            "max" if a.is_nan() || b.is_nan() => b,
            "!=" if a.is_nan() || b.is_nan() => 1.0,
            "<" | "<=" | ">" | ">=" | "==" if a.is_nan() || b.is_nan() => 0.0,
            _ => self.value(a, b),
        }
    }

    /// The partial derivatives at `(a, b)` by `a` and by `b`.
    pub(super) fn slopes(&self, a: f64, b: f64) -> [f64; 2] {
        (self.slopes)(a, b)
    }
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.notation) == (other.name, other.notation)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// `shift_left(a, b)` is a times 2 to the power b.
pub(crate) const SHIFT_LEFT: &str = "shift_left";
/// `shift_right(a, b)` is a over 2 to the power b.
pub(crate) const SHIFT_RIGHT: &str = "shift_right";

/// The power of comparisons, which don't chain.
pub(super) const COMPARISON: u8 = 4;

/// The minus in front of an operand.
pub(super) static NEGATE: Operation =
    Operation { name: "-", notation: Notation::Prefix, value: |a, _| -a, slopes: |_, _| [-1.0, 0.0] };

/// The infix operator written `symbol`.
pub(super) fn infix(symbol: &str) -> Option<(&'static Operation, u8)> {
    OPERATIONS.iter().find_map(|operation| match operation.notation {
        Notation::Infix { power } if operation.name == symbol => Some((operation, power)),
        _ => None,
    })
}

/// The function called `name`; `lt(a, b)` is `a < b`, and `eq(a, b)` is `a == b`.
pub(super) fn function(name: &str) -> Option<(&'static Operation, usize)> {
    let comparison = match name {
        "lt" => infix("<"),
        "eq" => infix("=="),
        _ => None,
    };
    if let Some((operation, _)) = comparison {
        return Some((operation, operation.arity()));
    }
    OPERATIONS.iter().find_map(|operation| match operation.notation {
        Notation::Call { arity } if operation.name == name => Some((operation, arity)),
        _ => None,
    })
}

/// The operator between two operands, in front of one, or function that is written so.
pub fn operation(name: &str, arity: usize) -> Option<&'static Operation> {
    OPERATIONS.iter().chain([&NEGATE]).find(|operation| (operation.name, operation.arity()) == (name, arity))
}

/// The names of all functions.
pub(super) fn function_names() -> impl Iterator<Item = &'static str> {
    OPERATIONS
        .iter()
        .filter(|operation| matches!(operation.notation, Notation::Call { .. }))
        .map(|operation| operation.name)
}

/// `a if condition else b`. Both sides are computed, so a NaN in the other one does no harm.
pub(super) fn choose<T>(condition: f64, a: T, b: T) -> Option<T> {
    match condition {
        c if c.is_nan() => None,
        0.0 => Some(b),
        _ => Some(a),
    }
}

const fn operator(name: &'static str, power: u8, value: fn(f64, f64) -> f64) -> Operation {
    Operation { name, notation: Notation::Infix { power }, value, slopes: flat }
}

const fn call(name: &'static str, arity: usize, value: fn(f64, f64) -> f64) -> Operation {
    Operation { name, notation: Notation::Call { arity }, value, slopes: flat }
}

impl Operation {
    const fn slopes_are(mut self, slopes: fn(f64, f64) -> [f64; 2]) -> Self {
        self.slopes = slopes;
        self
    }
}

/// The operators and functions. `|`, `^` and `&` work on the bits of whole numbers, as perf's do; what
/// stands behind the point is cut off. Where `min`, `max` and `abs` have a kink, the slope is that of
/// the first operand, and 0 for `abs`.
static OPERATIONS: [Operation; 23] = [
    operator("|", 1, |a, b| bits(a, b, |a, b| a | b)),
    operator("^", 2, |a, b| bits(a, b, |a, b| a ^ b)),
    operator("&", 3, |a, b| bits(a, b, |a, b| a & b)),
    operator("<=", COMPARISON, |a, b| truth(a <= b, a, b)),
    operator(">=", COMPARISON, |a, b| truth(a >= b, a, b)),
    operator("==", COMPARISON, |a, b| truth(a == b, a, b)),
    operator("!=", COMPARISON, |a, b| truth(a != b, a, b)),
    operator("<", COMPARISON, |a, b| truth(a < b, a, b)),
    operator(">", COMPARISON, |a, b| truth(a > b, a, b)),
    operator("+", 5, |a, b| a + b).slopes_are(|_, _| [1.0, 1.0]),
    operator("-", 5, |a, b| a - b).slopes_are(|_, _| [1.0, -1.0]),
    operator("*", 6, |a, b| a * b).slopes_are(|a, b| [b, a]),
    operator("/", 6, |a, b| if b == 0.0 { f64::NAN } else { a / b }).slopes_are(|a, b| [1.0 / b, -a / b / b]),
    operator("%", 6, |a, b| a % b).slopes_are(|a, b| [1.0, -(a / b).trunc()]),
    call("min", 2, |a, b| either(a <= b, a, b)).slopes_are(|a, b| first(a <= b)),
    call("max", 2, |a, b| either(a >= b, a, b)).slopes_are(|a, b| first(a >= b)),
    call("d_ratio", 2, |a, b| if b == 0.0 { 0.0 * a } else { a / b })
        .slopes_are(|a, b| if b == 0.0 { [0.0, 0.0] } else { [1.0 / b, -a / b / b] }),
    call("abs", 1, |a, _| a.abs()).slopes_are(|a, _| [if a == 0.0 { 0.0 } else { a.signum() }, 0.0]),
    call("sqrt", 1, |a, _| a.sqrt()).slopes_are(|a, _| [0.5 / a.sqrt(), 0.0]),
    call("pow", 2, power).slopes_are(|a, b| [b * a.powf(b - 1.0), if a > 0.0 { a.powf(b) * a.ln() } else { f64::NAN }]),
    call(SHIFT_LEFT, 2, |a, b| a * b.trunc().exp2()).slopes_are(|_, b| [b.trunc().exp2(), 0.0]),
    call(SHIFT_RIGHT, 2, |a, b| a / b.trunc().exp2()).slopes_are(|_, b| [1.0 / b.trunc().exp2(), 0.0]),
    call("log2", 1, |a, _| if a > 0.0 { a.log2() } else { f64::NAN })
        .slopes_are(|a, _| [std::f64::consts::LOG2_E / a, 0.0]),
];

fn bits(a: f64, b: f64, of: fn(i64, i64) -> i64) -> f64 {
    // Casts keep to the range of whole numbers: what is too large becomes the largest.
    if a.is_nan() || b.is_nan() { f64::NAN } else { of(a as i64, b as i64) as f64 }
}

/// `f64::powf` has 1 for NaN to the power 0, and for 1 to the power NaN; here NaN must come through.
fn power(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.powf(b) }
}

fn flat(_: f64, _: f64) -> [f64; 2] {
    [0.0, 0.0]
}

fn truth(holds: bool, a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { f64::from(u8::from(holds)) }
}

/// `f64::min` and `max` leave a NaN out; here it must come through.
fn either(takes_first: bool, a: f64, b: f64) -> f64 {
    match takes_first {
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        true => a,
        false => b,
    }
}

fn first(takes_first: bool) -> [f64; 2] {
    if takes_first { [1.0, 0.0] } else { [0.0, 1.0] }
}
