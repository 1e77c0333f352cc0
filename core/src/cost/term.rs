//! Builds terms, which share equal parts, and evaluates them to numbers and to linear combinations.
//!
//! Functions and `let`s are gone once a term is built: what they bind stands in their place. As equal parts are one node
//! (hash-consing), that doesn't make a term larger. Evaluation begins at the root and computes each node once, where it is
//! needed: the branch that isn't taken costs nothing, and can't fail.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use crate::expr::{Expr, NodeKind, Operation, SHIFT_LEFT, SHIFT_RIGHT, Subject, TextSpan, Variable};

/// The number of a node of [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(usize);

/// What a node of a term does with its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum TermNode {
    /// A number.
    Number(f64),
    /// A size or a coefficient.
    Name(String),
    /// An operation on one or two operands.
    Operation(&'static Operation, Vec<TermId>),
    /// The first operand where the second one isn't 0, else the third.
    Select([TermId; 3]),
}

/// What makes two nodes the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum NodeKey {
    Number(u64),
    Name(String),
    Operation(&'static str, Vec<TermId>),
    Select([TermId; 3]),
}

/// Terms that share their nodes.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: Vec<TermNode>,
    /// Where each node was written first, if it was.
    spans: Vec<Option<TextSpan>>,
    known: HashMap<NodeKey, TermId>,
    /// The first node that shifts, wherever it ended up.
    shift: Option<TermId>,
}

/// Operations that compare their operands.
const COMPARES: [&str; 8] = ["min", "max", "<", ">", "<=", ">=", "==", "!="];

/// A number plus a multiple of each of some names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearCombination {
    /// What is left where all names are 0.
    pub constant: f64,
    /// The factor of each name; none is 0.
    pub coefficients: BTreeMap<String, f64>,
}

/// An operation that isn't linear where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLinear {
    /// The name of the operation: `*`, `max`.
    pub operation: &'static str,
    /// Where it was written, in text.
    pub span: Option<TextSpan>,
    /// The names in its operands, sizes among them.
    pub names: BTreeSet<String>,
}

impl fmt::Display for NotLinear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            "*" => f.write_str("'*' has coefficients on both sides"),
            "/" => f.write_str("'/' divides by a coefficient"),
            "if" => f.write_str("the condition of 'if' depends on a coefficient"),
            SHIFT_LEFT | SHIFT_RIGHT => {
                write!(f, "{} isn't allowed where coefficients are to be found", self.operation)
            }
            operation => write!(f, "'{operation}' is applied to a coefficient"),
        }
    }
}

impl std::error::Error for NotLinear {}

impl NotLinear {
    /// What to write instead, where that doesn't depend on what is to be found.
    pub fn remedy(&self) -> Option<&'static str> {
        match self.operation {
            SHIFT_LEFT => Some("write a product: n * 4 for shift_left(n, 2)"),
            SHIFT_RIGHT => Some("write a quotient: n / 4 for shift_right(n, 2)"),
            _ => None,
        }
    }
}

impl Terms {
    /// A node.
    ///
    /// # Panics
    /// Panics if another [`Terms`] made the number.
    pub fn node(&self, term: TermId) -> &TermNode {
        &self.nodes[term.0]
    }

    /// How many nodes there are: equal parts of all terms are one.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing was built yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn add(&mut self, key: NodeKey, node: TermNode, span: Option<TextSpan>) -> TermId {
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let term = TermId(self.nodes.len());
        self.nodes.push(node);
        self.spans.push(span);
        self.known.insert(key, term);
        term
    }

    /// A number.
    pub fn number(&mut self, number: f64) -> TermId {
        self.add(NodeKey::Number(number.to_bits()), TermNode::Number(number), None)
    }

    /// A name.
    pub fn name(&mut self, name: &str) -> TermId {
        self.written_name(name, None)
    }

    fn written_name(&mut self, name: &str, span: Option<TextSpan>) -> TermId {
        self.add(NodeKey::Name(name.to_owned()), TermNode::Name(name.to_owned()), span)
    }

    /// An operation on as many operands as it takes.
    pub fn operation(
        &mut self,
        operation: &'static Operation,
        operands: Vec<TermId>,
        span: Option<TextSpan>,
    ) -> TermId {
        let key = NodeKey::Operation(operation.name, operands.clone());
        let term = self.add(key, TermNode::Operation(operation, operands), span);
        if matches!(operation.name, SHIFT_LEFT | SHIFT_RIGHT) {
            self.shift.get_or_insert(term);
        }
        term
    }

    /// `then if condition else otherwise`.
    pub fn select(&mut self, then: TermId, condition: TermId, otherwise: TermId) -> TermId {
        let parts = [then, condition, otherwise];
        self.add(NodeKey::Select(parts), TermNode::Select(parts), None)
    }

    /// The term of an expression. The machine's facts mean nothing in a cost model, whose dialect has none.
    pub fn of_expression(&mut self, expr: &Expr) -> Option<TermId> {
        self.of_expression_at(expr, Some(0))
    }

    /// The same of one that begins in a longer text at this place, or nowhere in it.
    pub(super) fn of_expression_at(&mut self, expr: &Expr, start: Option<usize>) -> Option<TermId> {
        let place = |span: TextSpan| start.map(|by| TextSpan { start: span.start + by, end: span.end + by });
        expr.fold(|node, operands: Vec<TermId>| match &node.kind {
            NodeKind::Number(number) => self.number(*number),
            NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) => {
                self.written_name(name, place(node.span))
            }
            NodeKind::Variable(_) | NodeKind::Fact(_) => self.number(f64::NAN),
            NodeKind::Operation(operation) => self.operation(operation, operands, place(node.span)),
            NodeKind::Select => match operands[..] {
                [then, condition, otherwise] => self.select(then, condition, otherwise),
                _ => self.number(f64::NAN),
            },
        })
    }

    /// A term with others in place of some of its names, all at once: a name within what is put in stays.
    pub fn substitute(&mut self, term: TermId, parts: &BTreeMap<&str, TermId>) -> TermId {
        let mut done: HashMap<TermId, TermId> = HashMap::new();
        for node in self.reached(&[term]) {
            let new = match self.nodes[node.0].clone() {
                TermNode::Number(_) => node,
                TermNode::Name(name) => parts.get(name.as_str()).copied().unwrap_or(node),
                TermNode::Operation(operation, operands) => {
                    let operands = operands.iter().map(|operand| done[operand]).collect();
                    self.operation(operation, operands, self.spans[node.0])
                }
                TermNode::Select([then, condition, otherwise]) => {
                    self.select(done[&then], done[&condition], done[&otherwise])
                }
            };
            done.insert(node, new);
        }
        done[&term]
    }

    /// The nodes of these terms, each behind its operands and once.
    pub fn reached(&self, terms: &[TermId]) -> Vec<TermId> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<(TermId, bool)> = terms.iter().rev().map(|&term| (term, false)).collect();
        while let Some((term, are_operands_done)) = waiting.pop() {
            if are_operands_done {
                order.push(term);
            } else if seen.insert(term) {
                waiting.push((term, true));
                waiting.extend(self.operands(term).iter().rev().map(|&operand| (operand, false)));
            }
        }
        order
    }

    /// The names that each comparison, least or most in a term compares, also where something is added to them.
    pub fn compared(&self, term: TermId) -> Vec<BTreeSet<String>> {
        let is_comparison = |node: &TermId| match &self.nodes[node.0] {
            TermNode::Operation(operation, _) => COMPARES.contains(&operation.name),
            _ => false,
        };
        self.reached(&[term]).into_iter().filter(is_comparison).map(|node| self.added(node)).collect()
    }

    /// The names to which nothing but sums, differences, leasts and mosts are applied.
    fn added(&self, term: TermId) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let (mut waiting, mut seen) = (vec![term], BTreeSet::from([term]));
        while let Some(node) = waiting.pop() {
            match &self.nodes[node.0] {
                TermNode::Name(name) => drop(names.insert(name.clone())),
                TermNode::Operation(operation, operands)
                    if node == term || ["+", "-", "min", "max"].contains(&operation.name) =>
                {
                    waiting.extend(operands.iter().copied().filter(|&operand| seen.insert(operand)));
                }
                _ => {}
            }
        }
        names
    }

    pub(super) fn operands(&self, term: TermId) -> &[TermId] {
        match &self.nodes[term.0] {
            TermNode::Number(_) | TermNode::Name(_) => &[],
            TermNode::Operation(_, operands) => operands,
            TermNode::Select(parts) => parts,
        }
    }

    /// The names in a term, in the order of the alphabet.
    pub fn names(&self, term: TermId) -> BTreeSet<&str> {
        let name = |term: TermId| match &self.nodes[term.0] {
            TermNode::Name(name) => Some(name.as_str()),
            _ => None,
        };
        self.reached(&[term]).into_iter().filter_map(name).collect()
    }

    /// The number that a term is where names have these values: by the rules of IEEE 754, so that 1 / 0 is infinite.
    /// `None` where a name that is needed has no value.
    pub fn value(&self, term: TermId, values: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        self.evaluate(term, values).ok()?.as_constant()
    }

    /// The linear combination that a term is of the names without a value.
    ///
    /// Multiplication wants one factor without names, division a divisor without, and everything else but sums,
    /// differences and choices operands without. Shifts are refused wherever they were built, as tezos-snoop does.
    ///
    /// # Errors
    /// Returns the operation that isn't linear.
    pub fn linear(&self, term: TermId, values: impl Fn(&str) -> Option<f64>) -> Result<LinearCombination, NotLinear> {
        if let Some(shift) = self.shift
            && let TermNode::Operation(operation, _) = self.node(shift)
        {
            return Err(self.not_linear(shift, operation.name));
        }
        self.evaluate(term, values)
    }

    /// Computes nodes as they are needed, each once.
    fn evaluate(&self, root: TermId, values: impl Fn(&str) -> Option<f64>) -> Result<LinearCombination, NotLinear> {
        let mut done: HashMap<TermId, LinearCombination> = HashMap::new();
        let mut waiting = vec![root];
        while let Some(&term) = waiting.last() {
            let needed = self.needed(term, &done)?;
            let missing = needed.iter().filter(|operand| !done.contains_key(operand));
            let before = waiting.len();
            // The first one on top, as it is the first whose mistake is told.
            waiting.extend(missing.rev());
            if waiting.len() == before {
                let result = self.step(term, needed, &done, &values)?;
                done.insert(term, result);
                waiting.pop();
            }
        }
        Ok(done.remove(&root).unwrap_or_default())
    }

    /// The operands that a node needs next: of a choice its condition, and then the branch that is taken.
    fn needed(&self, term: TermId, done: &HashMap<TermId, LinearCombination>) -> Result<&[TermId], NotLinear> {
        let TermNode::Select(parts @ [_, condition, _]) = &self.nodes[term.0] else { return Ok(self.operands(term)) };
        let Some(known) = done.get(condition) else { return Ok(&parts[1..2]) };
        match known.as_constant() {
            None => Err(self.not_linear(*condition, "if")),
            Some(0.0) => Ok(&parts[2..]),
            Some(_) => Ok(&parts[..1]),
        }
    }

    /// Computes a node from what it needs.
    fn step(
        &self,
        term: TermId,
        needed: &[TermId],
        done: &HashMap<TermId, LinearCombination>,
        values: impl Fn(&str) -> Option<f64>,
    ) -> Result<LinearCombination, NotLinear> {
        Ok(match &self.nodes[term.0] {
            TermNode::Number(number) => LinearCombination::number(*number),
            TermNode::Name(name) => {
                values(name).map_or_else(|| LinearCombination::name(name), LinearCombination::number)
            }
            TermNode::Select(_) => done[&needed[0]].clone(),
            TermNode::Operation(operation, operands) => {
                let mut operands = operands.iter().map(|operand| &done[operand]);
                let none = LinearCombination::default();
                let (a, b) = (operands.next().unwrap_or(&none), operands.next().unwrap_or(&none));
                applied(operation, a, b).ok_or_else(|| self.not_linear(term, operation.name))?
            }
        })
    }

    fn not_linear(&self, term: TermId, operation: &'static str) -> NotLinear {
        let names = self.names(term).into_iter().map(str::to_owned).collect();
        NotLinear { operation, span: self.spans[term.0], names }
    }
}

impl LinearCombination {
    fn number(constant: f64) -> Self {
        Self { constant, coefficients: BTreeMap::new() }
    }

    fn name(name: &str) -> Self {
        Self { constant: 0.0, coefficients: BTreeMap::from([(name.to_owned(), 1.0)]) }
    }

    /// The number that it is, where it has no names.
    pub fn as_constant(&self) -> Option<f64> {
        self.coefficients.is_empty().then_some(self.constant)
    }

    /// Computes another number from each; names whose factor becomes 0 are gone.
    fn map(&self, compute: impl Fn(f64) -> f64) -> Self {
        let factors = self.coefficients.iter().map(|(name, &factor)| (name.clone(), compute(factor)));
        Self { constant: compute(self.constant), coefficients: factors.filter(|(_, factor)| *factor != 0.0).collect() }
    }

    fn plus(&self, other: &Self, sign: f64) -> Self {
        let mut sum = self.clone();
        sum.constant += sign * other.constant;
        for (name, factor) in &other.coefficients {
            *sum.coefficients.entry(name.clone()).or_default() += sign * factor;
        }
        sum.coefficients.retain(|_, factor| *factor != 0.0);
        sum
    }
}

/// The result of an operation; `None` where it isn't linear in the names of its operands.
fn applied(operation: &'static Operation, a: &LinearCombination, b: &LinearCombination) -> Option<LinearCombination> {
    match (operation.name, operation.arity(), a.as_constant(), b.as_constant()) {
        ("+", ..) => Some(a.plus(b, 1.0)),
        ("-", 2, ..) => Some(a.plus(b, -1.0)),
        ("-", ..) => Some(a.map(|number| -number)),
        ("*", _, _, Some(factor)) => Some(a.map(|number| number * factor)),
        ("*", _, Some(factor), None) => Some(b.map(|number| factor * number)),
        ("/", _, _, Some(divisor)) => Some(a.map(|number| number / divisor)),
        (_, _, Some(a), Some(b)) => Some(LinearCombination::number(operation.ieee_value(a, b))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::expr::{Dialect, parse};

    fn built(text: &str) -> (Terms, TermId) {
        let mut terms = Terms::default();
        let term = terms.of_expression(&parse(text, Dialect::Cost).unwrap()).unwrap();
        (terms, term)
    }

    fn at_eight(name: &str) -> Option<f64> {
        (name == "n").then_some(8.0)
    }

    #[test]
    fn a_merge_sort_by_hand() {
        let (terms, term) = built("a + b * n * log2(n) - n / 4");
        let found = terms.linear(term, at_eight).unwrap();
        let expected = BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), 24.0)]);
        assert_eq!(found, LinearCombination { constant: -2.0, coefficients: expected });
        assert_eq!(terms.value(term, at_eight), None, "a and b have no value");
        let all = |name: &str| at_eight(name).or(Some(2.0));
        assert_eq!(terms.value(term, all), Some(48.0));
    }

    #[test]
    fn equal_parts_are_one_node() {
        let (terms, _) = built("(n + 1) * (n + 1) + (n + 1)");
        // n, 1, n + 1, their product, the sum.
        assert_eq!(terms.len(), 5);
    }

    #[test]
    fn what_is_not_linear_says_where() {
        for (text, operation, start) in [("a * b", "*", 0), ("1 + max(a, n)", "max", 4), ("n / a", "/", 0)] {
            let (terms, term) = built(text);
            let error = terms.linear(term, at_eight).unwrap_err();
            assert_eq!((error.operation, error.span.unwrap().start), (operation, start), "{text}");
        }
        let (terms, term) = built("a * b if n > 9 else a - a + 0 * b");
        assert_eq!(terms.linear(term, at_eight).unwrap().as_constant(), Some(0.0), "the other branch costs nothing");
    }

    #[test]
    fn names_are_replaced_all_at_once() {
        let (mut terms, term) = built("x - y");
        let (x, y) = (terms.name("x"), terms.name("y"));
        let swapped = terms.substitute(term, &BTreeMap::from([("x", y), ("y", x)]));
        let value = |name: &str| Some(if name == "x" { 5.0 } else { 3.0 });
        assert_eq!((terms.value(term, value), terms.value(swapped, value)), (Some(2.0), Some(-2.0)));
    }

    proptest::proptest! {
        /// A combination has the value of its term, whatever the coefficients are.
        #[test]
        fn a_combination_has_the_terms_value(n in 1.0..1e6_f64, a in -1e3..1e3_f64, b in -1e3..1e3_f64) {
            let (terms, term) = built("a * (n + 3) + (b if n > 1000 else 2 * b) * sqrt(n) - n");
            let found = terms.linear(term, |name| (name == "n").then_some(n)).unwrap();
            let sum = found.constant + found.coefficients["a"] * a + found.coefficients["b"] * b;
            let whole = terms.value(term, |name| Some(match name { "n" => n, "a" => a, _ => b })).unwrap();
            proptest::prop_assert!((sum - whole).abs() <= 1e-9 * (1.0 + whole.abs()));
        }
    }
}
