//! Parses expressions, and compiles them to programs for their value and derivatives.
//!
//! [`parse()`] reads one expression and [`parse_equation`] the two sides of an equation. Every node
//! of an [`Expr`] knows the bytes it was written in. [`Expr::compile`] ties variables to slots of
//! an array and gives a [`Program`], which evaluates without allocating
//! unless the expression is nested more deeply than people write.
//!
//! ```
//! # extern crate perfprop_core as perfprop;
//! use perfprop::expr::{Dialect, VariableSlot, parse};
//!
//! let twice = parse("2 * {mean} + 1", Dialect::Pair)?;
//! let program = twice.compile(|_| Some(VariableSlot(0))).expect("every variable has a slot");
//! let mut gradient = [0.0];
//! assert_eq!(program.eval_with_gradient(&[20.0], &mut gradient), 41.0);
//! assert_eq!(gradient, [2.0]);
//! # Ok::<(), perfprop::expr::ParseError>(())
//! ```
//!
//! # No value
//!
//! A division by zero, the root of a negative number and the logarithm of anything but a positive
//! number are NaN, and so is whatever is computed from NaN, comparisons, `min` and `max` included.
//! A result that isn't finite is to be read as "no value", never as a number.

mod mistake;
mod operations;
mod parse;
mod program;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

pub use mistake::ParseError;
pub use operations::{Notation, Operation, operation};
#[cfg(feature = "bench")]
pub(crate) use operations::{SHIFT_LEFT, SHIFT_RIGHT};
pub use parse::{Function, MAX_DEPTH, MAX_LENGTH, parse, parse_equation, parse_with_functions};
pub use program::{Program, Unresolved, VariableSlot};
pub(crate) use tokens::number_end;
pub use tree::{Dialect, Expr, ExprNode, Fact, Moment, NodeKind, Subject, TextSpan, Variable, escaped_name};
