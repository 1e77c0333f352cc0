//! Reads cost models: expressions of sizes and coefficients, and those that are known by name.
//!
//! ```text
//! model      := { 'let' name [ '(' name { ',' name } ')' ] '=' expression ';' } expression
//! expression := as everywhere in perfprop, with names of letters, digits and '_'
//! ```
//!
//! `true` is 1 and `false` is 0. A name that a workload has a size for is a size; every other one is a coefficient that a fit is to find.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use super::term::{LinearCombination, NotLinear, TermId, Terms};
use crate::expr::{Dialect, Expr, Function, NodeKind, ParseError, Subject, TextSpan, Variable, parse_with_functions};
use crate::names::quoted;

/// A cost model.
#[derive(Clone, Debug)]
pub struct CostModel {
    text: String,
    expr: Expr,
    terms: Terms,
    root: TermId,
}

/// Why a text isn't a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The text.
    pub text: String,
    /// What is wrong with it, with its place in the text.
    pub error: ParseError,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { span, help, .. } = &self.error;
        write!(f, "model {}, character {}: {}", quoted(&self.text), span.start + 1, self.error)?;
        help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl std::error::Error for ModelError {}

/// A model that is known by name.
#[derive(Debug)]
pub struct NamedModel {
    /// The name.
    pub name: &'static str,
    /// The names of its sizes and, in the end, of its breakpoints and offsets.
    pub parameters: &'static [&'static str],
    /// What it computes from them and from its coefficients.
    pub text: &'static str,
    /// How many of the parameters are numbers: breakpoints and offsets.
    pub numbers: usize,
}

const fn named(
    name: &'static str,
    parameters: &'static [&'static str],
    numbers: usize,
    text: &'static str,
) -> NamedModel {
    NamedModel { name, parameters, text, numbers }
}

/// The models that have names: those of tezos-snoop, `breakdown_const` and `jump_const`.
pub static NAMED_MODELS: [NamedModel; 24] = [
    named("const", &[], 0, "intercept"),
    named("linear", &["n"], 0, "coeff * n"),
    named("affine", &["n"], 0, "intercept + coeff * n"),
    named("affine_offset", &["n", "offset"], 1, "intercept + coeff * (n - offset)"),
    named("quadratic", &["n"], 0, "intercept + coeff * n * n"),
    named("nlogn", &["n"], 0, "intercept + coeff * n * log2(1 + n)"),
    named("nsqrtn", &["n"], 0, "intercept + coeff * n * sqrt(n)"),
    named("logn", &["n"], 0, "intercept + coeff * log2(1 + n)"),
    named("linear_sum", &["n", "m"], 0, "intercept + coeff * (n + m)"),
    named("linear_max", &["n", "m"], 0, "intercept + coeff * max(n, m)"),
    named("linear_min", &["n", "m"], 0, "intercept + coeff * min(n, m)"),
    named("linear_mul", &["n", "m"], 0, "intercept + coeff * n * m"),
    named("linear_sub", &["n", "m"], 0, "intercept + coeff * (n - m)"),
    named("bilinear", &["n", "m"], 0, "coeff1 * n + coeff2 * m"),
    named("bilinear_affine", &["n", "m"], 0, "intercept + coeff1 * n + coeff2 * m"),
    named("nlogm", &["n", "m"], 0, "intercept + coeff * n * log2(1 + m)"),
    named("n_plus_logm", &["n", "m"], 0, "intercept + linear_coeff * n + log_coeff * log2(1 + m)"),
    named("trilinear", &["n", "m", "k"], 0, "coeff1 * n + coeff2 * m + coeff3 * k"),
    named("breakdown", &["n", "at"], 1, "coeff1 * min(n, at) + coeff2 * max(0, n - at)"),
    named("breakdown_const", &["n", "at"], 1, "intercept + coeff1 * min(n, at) + coeff2 * max(0, n - at)"),
    named("jump_const", &["n", "at"], 1, "intercept + (coeff1 if n <= at else coeff2) * n"),
    named("breakdown2", &["n", "at1", "at2"], 2, BREAKDOWN2),
    named("breakdown2_const", &["n", "at1", "at2"], 2, BREAKDOWN2_CONST),
    named("breakdown2_const_offset", &["n", "at1", "at2", "offset"], 3, BREAKDOWN2_OFFSET),
];
const BREAKDOWN2: &str = "coeff1 * min(n, at1) + coeff2 * max(0, min(n, at2) - at1) + coeff3 * max(0, n - at2)";
const BREAKDOWN2_CONST: &str =
    "intercept + coeff1 * min(n, at1) + coeff2 * max(0, min(n, at2) - at1) + coeff3 * max(0, n - at2)";
const BREAKDOWN2_OFFSET: &str = "intercept + coeff1 * min(n - offset, at1) + coeff2 * max(0, min(n - offset, at2) - at1) + \
     coeff3 * max(0, n - offset - at2)";

/// The named models as functions that models may call.
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let function = |model: &NamedModel| {
        Some(Function {
            name: model.name.to_owned(),
            parameters: model.parameters.iter().map(|&name| name.to_owned()).collect(),
            body: parse_with_functions(model.text, Dialect::Cost, &[]).ok()?,
        })
    };
    NAMED_MODELS.iter().filter(|model| !model.parameters.is_empty()).filter_map(function).collect()
});

/// What models know by name.
static CONSTANTS: LazyLock<Vec<(String, Expr)>> = LazyLock::new(|| {
    let constant =
        |(name, text): (&str, &str)| Some((name.to_owned(), parse_with_functions(text, Dialect::Cost, &[]).ok()?));
    [("true", "1"), ("false", "0")].into_iter().filter_map(constant).collect()
});

impl CostModel {
    /// Reads a model. A name alone, such as `nlogn`, is that model of the workload's sizes, in their order.
    ///
    /// # Errors
    /// Returns the first mistake in the text.
    pub fn parse(text: &str, sizes: &[String]) -> Result<Self, ModelError> {
        let text = whole(text.trim(), sizes);
        let mut functions = FUNCTIONS.clone();
        let mut variables = CONSTANTS.clone();
        let mut bodies = Vec::new();
        let mut start = 0;
        let fail = |error: ParseError, start: usize| {
            let span = TextSpan { start: error.span.start + start, end: error.span.end + start };
            ModelError { text: text.clone(), error: ParseError { span, ..error } }
        };
        while let Some(length) = text[start..].find(';') {
            let statement = &text[start..start + length];
            let definition = definition(statement, &functions, &variables).map_err(|error| fail(error, start))?;
            bodies.push(definition.body.clone());
            match definition.parameters.is_empty() {
                true => variables.push((definition.name, definition.body)),
                false => functions.push(definition),
            }
            start += length + 1;
        }
        let expr = parse_with_functions(&text[start..], Dialect::Cost, &functions)
            .and_then(|expr| with_variables(&expr, &variables))
            .map_err(|error| fail(error, start))?;
        let mut terms = Terms::default();
        let root =
            terms.of_expression_at(&expr, Some(start)).unwrap_or_else(|| unreachable!("an expression has a root"));
        // Only for their shifts. What the expression uses of them has its place there.
        for body in &bodies {
            terms.of_expression_at(body, None);
        }
        Ok(Self { text, expr, terms, root })
    }

    /// The text, with the sizes of a model that was named.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The model as one expression, without functions and `let`s.
    pub fn expression(&self) -> &Expr {
        &self.expr
    }

    /// The names of sizes and coefficients.
    pub fn names(&self) -> BTreeSet<&str> {
        self.terms.names(self.root)
    }

    /// The names that each comparison, least or most of the model compares, also where something is added to them.
    pub fn compared(&self) -> Vec<BTreeSet<String>> {
        self.terms.compared(self.root)
    }

    /// The model where names have these values, as a linear combination of the others.
    ///
    /// # Errors
    /// Returns the operation that isn't linear in them.
    pub fn at(&self, values: impl Fn(&str) -> Option<f64>) -> Result<LinearCombination, NotLinear> {
        self.terms.linear(self.root, values)
    }

    /// The number that the model gives where names have these values; `None` where one that is needed has none.
    pub fn value(&self, values: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        self.terms.value(self.root, values)
    }
}

/// Whether a text is one name that no model has. As an expression it would be a single coefficient.
pub fn is_unknown_model(text: &str) -> bool {
    let text = text.trim();
    is_name(text) && !NAMED_MODELS.iter().any(|model| model.name == text || model.text == text)
}

/// Whether a text is a name of sizes, coefficients and functions.
fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && characters.all(|c| c.is_alphanumeric() || c == '_')
}

/// The text of a model; that of one that is named has the workload's sizes behind its name.
fn whole(text: &str, sizes: &[String]) -> String {
    match NAMED_MODELS.iter().find(|model| model.name == text) {
        Some(model) if model.parameters.is_empty() => model.text.to_owned(),
        Some(model) => {
            let (own, numbers) = model.parameters.split_at(model.parameters.len() - model.numbers);
            let own = own.iter().map(|&name| name.to_owned());
            let mut names: Vec<String> = if sizes.is_empty() { own.collect() } else { sizes.to_vec() };
            names.extend(numbers.iter().map(|&name| name.to_owned()));
            format!("{text}({})", names.join(", "))
        }
        None => text.to_owned(),
    }
}

/// `let name(parameters) = body`; without parameters it is a variable.
fn definition(text: &str, functions: &[Function], variables: &[(String, Expr)]) -> Result<Function, ParseError> {
    let wrong = |label: &str| ParseError {
        span: TextSpan { start: 0, end: text.len() },
        message: "expected 'let NAME = ...;' or 'let NAME(SIZE) = ...;'".to_owned(),
        label: label.to_owned(),
        help: None,
    };
    let rest = text.trim_start().strip_prefix("let ").ok_or_else(|| wrong("no 'let' here"))?;
    let (head, body) = rest.split_once('=').ok_or_else(|| wrong("no '=' here"))?;
    let at = text.len() - body.len();
    let (name, parameters) = match head.trim().split_once('(') {
        None => (head.trim(), Vec::new()),
        Some((name, parameters)) => {
            let list = parameters.trim_end().strip_suffix(')').ok_or_else(|| wrong("no ')' here"))?;
            (name.trim(), list.split(',').map(|name| name.trim().to_owned()).collect())
        }
    };
    if let Some(bad) = parameters.iter().map(String::as_str).chain([name]).find(|name| !is_name(name)) {
        return Err(wrong(&format!("{} is no name", quoted(bad))));
    }
    let moved = |error: ParseError| {
        let span = TextSpan { start: error.span.start + at, end: error.span.end + at };
        ParseError { span, ..error }
    };
    // A parameter hides a variable of its name.
    let visible: Vec<_> = variables.iter().filter(|(name, _)| !parameters.contains(name)).cloned().collect();
    let body = parse_with_functions(body, Dialect::Cost, functions).and_then(|body| with_variables(&body, &visible));
    Ok(Function { name: name.to_owned(), parameters, body: body.map_err(moved)? })
}

/// How many nodes a model may have.
const MOST_NODES: usize = 100_000;

/// An expression with variables' expressions in their place. The last one of a name counts.
fn with_variables(expr: &Expr, variables: &[(String, Expr)]) -> Result<Expr, ParseError> {
    let part = |kind: &NodeKind| match kind {
        NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) => {
            variables.iter().rfind(|(known, _)| known == name).map(|(_, expr)| expr.clone())
        }
        _ => None,
    };
    expr.with_parts(MOST_NODES, part).ok_or_else(|| ParseError {
        span: TextSpan { start: 0, end: 0 },
        message: "the variables make the model too large".to_owned(),
        label: format!("more than {MOST_NODES} nodes"),
        help: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::collections::BTreeMap;

    use super::*;

    fn value(text: &str, values: &[(&str, f64)]) -> Option<f64> {
        let model = CostModel::parse(text, &["n".to_owned()]).unwrap();
        model.value(|name| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }

    fn error(text: &str) -> String {
        CostModel::parse(text, &["n".to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn functions_and_variables_stand_in_their_place() {
        let text = "let half = n / 2; let f(x, y) = x * y + half; f(n, f(1, 2))";
        // half is 2, f(1, 2) is 4, f(4, 4) is 18.
        assert_eq!(value(text, &[("n", 4.0)]), Some(18.0));
        assert_eq!(value("let n(x) = x + n; n(1)", &[("n", 4.0)]), Some(5.0), "a function and a size may share a name");
        assert_eq!(value("let x = 1; let f(x) = x * 2; f(5) + x", &[]), Some(11.0), "a parameter hides a variable");
        assert_eq!(value("n-1", &[("n", 4.0)]), Some(3.0));
        assert_eq!(value("min + 2 * min(min, 3)", &[("min", 5.0)]), Some(11.0));
        let model = CostModel::parse("a * min + sqrt(min)", &[]).unwrap();
        assert_eq!(model.expression().to_string(), "a * min + sqrt(min)");
    }

    #[test]
    fn true_and_false_are_numbers() {
        assert_eq!(value("n * true + 10 * false", &[("n", 4.0)]), Some(4.0));
        assert_eq!(CostModel::parse("a * true + b", &[]).unwrap().names(), BTreeSet::from(["a", "b"]));
        assert!(error("a + b * n if n > 2 then 3").contains("; write X if CONDITION else Y"));
        assert!(error("a + if n > 2 then 3 else 4").contains("; write X if CONDITION else Y"));
    }

    #[test]
    fn every_named_model_can_be_read_and_computed() {
        let values: BTreeMap<String, f64> = NAMED_MODELS
            .iter()
            .flat_map(|model| model.parameters)
            .chain(&["intercept", "coeff", "coeff1", "coeff2", "coeff3", "linear_coeff", "log_coeff"])
            .map(|&name| (name.to_owned(), 3.0))
            .collect();
        for model in &NAMED_MODELS {
            let parsed = CostModel::parse(model.name, &[]).unwrap();
            assert!(parsed.value(|name| values.get(name).copied()).is_some_and(f64::is_finite), "{}", model.name);
            assert!(model.numbers <= model.parameters.len());
        }
        // 2 * 10 up to 10, and 5 a piece for the 20 above.
        let sizes = [("n", 30.0), ("coeff1", 2.0), ("coeff2", 5.0)];
        assert_eq!(value("breakdown(n, 10)", &sizes), Some(120.0));
    }

    #[test]
    fn what_is_not_linear_has_its_place_in_the_whole_text() {
        let place = |text: &str| {
            let model = CostModel::parse(text, &["n".to_owned()]).unwrap();
            let error = model.at(|name| (name == "n").then_some(2.0)).unwrap_err();
            error.span.map(|span| model.text()[span.start..span.end].to_owned())
        };
        for (text, written) in [
            ("a + b * c", "b * c"),
            ("let y = a * b; n + (y + 1)", "y"),
            ("let f(x) = x * b; a * n + f(b)", "f(b)"),
            ("let y = a * b; n + a * b", "a * b"),
            ("a if b else n", "b"),
            ("n + shift_left(a, 2)", "shift_left(a, 2)"),
        ] {
            assert_eq!(place(text).as_deref(), Some(written), "{text}");
        }
        assert_eq!(place("let unused = shift_left(a, 2); n"), None);
    }

    #[test]
    fn a_name_alone_is_that_of_a_model() {
        assert!(["nlogN", "brekdown", " x "].into_iter().all(is_unknown_model));
        assert!(
            ["nlogn", "const", "intercept", "a + b", "nlogn(n)", "2x", ""]
                .into_iter()
                .all(|text| !is_unknown_model(text))
        );
    }

    #[test]
    fn mistakes_have_their_place_in_the_whole_text() {
        assert!(
            error("let f(x) = x * ; f(n)").starts_with("model 'let f(x) = x * ; f(n)', character 15"),
            "{}",
            error("let f(x) = x * ; f(n)")
        );
        assert!(error("a + n^2").contains("a power is written pow(n, 2)"));
        assert!(error("f(x) = x; n").contains("no 'let' here"));
        assert!(error("let 2x = 1; n").contains("'2x' is no name"));
        assert!(error("").contains("there is nothing here"));
        let doubling: String = (0..30).map(|_| "let x = x + x;").collect();
        assert!(error(&(doubling + "x")).contains("too large"));
    }
}
