//! Defines the expression tree, which can be walked and printed.

use std::fmt;

use super::operations::{COMPARISON, NEGATE, Notation, Operation, function};

/// The bytes of the text that a node was written in: `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSpan {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset past the last byte.
    pub end: usize,
}

/// How variables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// In the expectations of a pair: `{mean}`, `{variance}`, `{EVENT.mean}`, `{EVENT.variance}`.
    Pair,
    /// In an equation: the bare name of an event stands for its mean.
    ///
    /// A name begins with a letter or `_` and goes on with letters, digits, `_`, `.`, `:`, and `-`
    /// where another such character follows at once: `branch-misses` is one name,
    /// `branch - misses` a difference. A backslash makes any other character part of a name.
    Equation,
    /// In a metric: names as in an equation, which stand for counts, and [facts](Fact) of the machine.
    Metric,
    /// In the vendors' metric tables, which perf reads. A name is made of letters, digits, `_`, `.`,
    /// `:`, `?` and `@`, which stands for the slash of `pmu/event/`; a backslash makes any other
    /// character part of it. What was read so is an expression of the dialect [`Metric`](Self::Metric).
    Vendor,
    /// In a cost model: a bare name is a size of the workload, or a coefficient that is to be found. A name is made of
    /// letters, digits and `_`, so that `n-1` is a difference.
    Cost,
}

impl Dialect {
    /// Whether what isn't counted but known of the machine can be asked for.
    pub(super) fn has_facts(self) -> bool {
        matches!(self, Self::Metric | Self::Vendor)
    }
}

/// Which statistic of an event a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The mean of its rate, in counts per CPU-millisecond; in a metric, its count.
    Mean,
    /// The variance of its rate between intervals, in the square of that.
    Variance,
}

impl Moment {
    /// The word for it in braces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Variance => "variance",
        }
    }
}

/// The event whose statistic a variable is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The event that a pair goes out from (`eventFrom`).
    From,
    /// The event with this name.
    Event(String),
}

/// A statistic of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// The event that it is about.
    pub subject: Subject,
    /// The statistic that it stands for.
    pub moment: Moment,
}

impl Variable {
    /// As formulas for people have it: `L3_MISSES`, `variance(L3_MISSES)`, with `from` for the event
    /// that a pair goes out from. Equations are written so too, and know no variances.
    pub(crate) fn in_formula(&self, from: &str) -> String {
        let name = match &self.subject {
            Subject::From => escaped_name(from),
            Subject::Event(name) => escaped_name(name),
        };
        match self.moment {
            Moment::Mean => name,
            Moment::Variance => format!("variance({name})"),
        }
    }
}

/// What is known of a machine before anything is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    /// A property such as `#num_cpus`; the name without its `#`.
    Literal(String),
    /// `has_event(NAME)`: 1 if the machine has the event, else 0.
    HasEvent(String),
    /// `source_count(NAME)`: how many units count the event.
    SourceCount(String),
    /// `strcmp_cpuid_str(PATTERN)`: 1 if the CPU is one of those that the pattern means, else 0.
    CpuIs(String),
}

/// What becomes of the name in the parentheses of a function that asks for a fact.
pub(super) type MakeFact = fn(String) -> Fact;

impl Fact {
    /// The functions that ask for a fact.
    pub(super) const FUNCTIONS: [(&'static str, MakeFact); 3] =
        [("has_event", Self::HasEvent), ("source_count", Self::SourceCount), ("strcmp_cpuid_str", Self::CpuIs)];
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(name) => write!(f, "#{name}"),
            Self::HasEvent(name) => write!(f, "has_event({})", escaped_name(name)),
            Self::SourceCount(name) => write!(f, "source_count({})", escaped_name(name)),
            Self::CpuIs(pattern) => write!(f, "strcmp_cpuid_str({pattern})"),
        }
    }
}

/// What a node does with its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A number; finite and not negative.
    Number(f64),
    /// A statistic of an event.
    Variable(Variable),
    /// Something that is known of the machine.
    Fact(Fact),
    /// An operator or function of one or two operands.
    Operation(&'static Operation),
    /// `a if condition else b`, whose operands are `a`, `condition`, `b` in this order.
    Select,
}

impl NodeKind {
    /// How many operands it takes.
    pub fn arity(&self) -> usize {
        match self {
            Self::Number(_) | Self::Variable(_) | Self::Fact(_) => 0,
            Self::Operation(operation) => operation.arity(),
            Self::Select => 3,
        }
    }
}

/// A node and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct ExprNode {
    /// The operation, number or variable.
    pub kind: NodeKind,
    /// The bytes that it was written in.
    pub span: TextSpan,
}

/// An expression: a tree whose nodes lie in one vector, each behind its operands.
///
/// ```text
///      *            2   {mean}   *   50   +
///     / \           |      |     |    |   |
///    2  {mean}      `------`-----'    |   |      2 * {mean} + 50
///     \   /               `-----------`---'
///       +  50
/// ```
///
/// So the vector is at the same time the order of evaluation, and neither walking nor dropping a
/// tree recurses. Two expressions are equal when their nodes are, wherever they were written.
#[derive(Clone, Debug)]
pub struct Expr {
    dialect: Dialect,
    nodes: Vec<ExprNode>,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        let kinds = |expr: &Self| expr.nodes.iter().map(|node| node.kind.clone()).collect::<Vec<_>>();
        self.dialect == other.dialect && kinds(self) == kinds(other)
    }
}

impl Expr {
    /// `nodes` must be one tree in postfix order, which only the parser can promise.
    pub(super) fn new(dialect: Dialect, nodes: Vec<ExprNode>) -> Self {
        let dialect = if dialect == Dialect::Vendor { Dialect::Metric } else { dialect };
        Self { dialect, nodes }
    }

    /// How its variables are written.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// All nodes, each behind its operands; the last one is the root.
    pub fn nodes(&self) -> &[ExprNode] {
        &self.nodes
    }

    /// The variables in the order written, each as often as it is written.
    pub fn variables(&self) -> impl Iterator<Item = (&Variable, TextSpan)> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Variable(variable) => Some((variable, node.span)),
            _ => None,
        })
    }

    /// The facts in the order written, each as often as it is written.
    pub fn facts(&self) -> impl Iterator<Item = (&Fact, TextSpan)> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Fact(fact) => Some((fact, node.span)),
            _ => None,
        })
    }

    /// The expression with others in place of some of its variables and facts; they stand where what
    /// they replace was written. `None` if it would have more than `most` nodes.
    pub fn with_parts(&self, most: usize, mut part: impl FnMut(&NodeKind) -> Option<Self>) -> Option<Self> {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            match part(&node.kind).filter(|_| node.kind.arity() == 0) {
                Some(part) => {
                    nodes.extend(part.nodes.into_iter().map(|ExprNode { kind, .. }| ExprNode { kind, ..*node }))
                }
                None => nodes.push(node.clone()),
            }
            if nodes.len() > most {
                return None;
            }
        }
        Some(Self { dialect: self.dialect, nodes })
    }

    /// A single number; `None` where no text says it.
    pub fn number(number: f64, dialect: Dialect) -> Option<Self> {
        let kind = NodeKind::Number(number);
        let is_written = number.is_finite() && number >= 0.0;
        is_written.then(|| Self { dialect, nodes: vec![ExprNode { kind, span: TextSpan { start: 0, end: 0 } }] })
    }

    /// The expression without what can't matter: choices whose condition is a number, and operations
    /// on numbers alone.
    pub fn folded(&self) -> Self {
        let nodes = self.fold(|node, operands: Vec<Vec<ExprNode>>| {
            let numbers: Option<Vec<f64>> = operands.iter().map(|nodes| number_in(nodes)).collect();
            if let (NodeKind::Select, Some(condition)) =
                (&node.kind, operands.get(1).and_then(|nodes| number_in(nodes)))
            {
                let mut operands = operands;
                return operands.swap_remove(if condition == 0.0 { 2 } else { 0 });
            }
            let known = match (&node.kind, numbers.as_deref()) {
                (NodeKind::Operation(operation), Some([a])) => Some(operation.value(*a, 0.0)),
                (NodeKind::Operation(operation), Some([a, b])) => Some(operation.value(*a, *b)),
                _ => None,
            };
            match known.filter(|known| known.is_finite() && *known >= 0.0) {
                Some(known) => vec![ExprNode { kind: NodeKind::Number(known), span: node.span }],
                None => joined(operands, node),
            }
        });
        Self { dialect: self.dialect, nodes: nodes.unwrap_or_default() }
    }

    /// Computes a value for every node from those of its operands, and returns that of the root.
    pub fn fold<T>(&self, mut step: impl FnMut(&ExprNode, Vec<T>) -> T) -> Option<T> {
        let mut stack = Vec::new();
        for node in &self.nodes {
            let operands = stack.split_off(stack.len().saturating_sub(node.kind.arity()));
            stack.push(step(node, operands));
        }
        stack.pop()
    }

    /// The canonical text, with variables written by `name`.
    pub fn text_with(&self, name: impl Fn(&Variable) -> String) -> String {
        let root = self.fold(|node, operands| PrintedNode::new(&node.kind, operands, &name));
        root.map_or_else(String::new, |printed| printed.text)
    }
}

/// The number that `nodes` are.
fn number_in(nodes: &[ExprNode]) -> Option<f64> {
    match nodes {
        [ExprNode { kind: NodeKind::Number(number), .. }] => Some(*number),
        _ => None,
    }
}

/// The operands' nodes one after another, and `last` behind them. Appends to the first, so that a
/// long sum takes linear time.
fn joined(operands: Vec<Vec<ExprNode>>, last: &ExprNode) -> Vec<ExprNode> {
    let mut operands = operands.into_iter();
    let mut nodes = operands.next().unwrap_or_default();
    nodes.extend(operands.flatten());
    nodes.push(last.clone());
    nodes
}

/// The canonical text: spaces around operators, no parentheses but those that are needed. Parsed
/// again, it gives an equal expression.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with(|variable| match (self.dialect, &variable.subject) {
            (Dialect::Pair, _) => in_braces(variable),
            // Its names need no backslash, and it has none.
            (Dialect::Cost, Subject::Event(name)) => name.clone(),
            (Dialect::Equation | Dialect::Metric | Dialect::Vendor | Dialect::Cost, _) => variable.in_formula("mean"),
        }))
    }
}

/// `{mean}`, `{L3_MISSES.variance}`.
fn in_braces(variable: &Variable) -> String {
    match &variable.subject {
        Subject::From => format!("{{{}}}", variable.moment.name()),
        Subject::Event(name) => format!("{{{name}.{}}}", variable.moment.name()),
    }
}

/// An event's name as equations write it: backslashes before what would end it.
pub fn escaped_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut characters = name.chars().enumerate().peekable();
    while let Some((index, c)) = characters.next() {
        let is_plain = match c {
            '-' => index > 0 && characters.peek().is_some(),
            _ if index == 0 => is_name_start(c) && !is_reserved(name),
            _ => is_name_char(c),
        };
        out.extend((!is_plain).then_some('\\'));
        out.push(c);
    }
    out
}

/// Whether a bare `word` means something else than an event.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(word, "if" | "else") || function(word).is_some() || fact_function(word).is_some()
}

/// The fact that the function called `word` asks for.
pub(super) fn fact_function(word: &str) -> Option<MakeFact> {
    Fact::FUNCTIONS.into_iter().find(|(name, _)| *name == word).map(|(_, make)| make)
}

/// Whether an event's name can begin with `c` without a backslash.
pub(super) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Whether an event's name can go on with `c` without a backslash.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':')
}

/// A printed node and how firmly it holds together.
struct PrintedNode {
    text: String,
    power: u8,
}

/// The powers around those of the infix operators.
const SELECT: u8 = 0;
const CONDITION: u8 = 1;
const UNARY: u8 = 7;
const ATOM: u8 = 8;

impl PrintedNode {
    fn new(kind: &NodeKind, operands: Vec<Self>, name: &impl Fn(&Variable) -> String) -> Self {
        match kind {
            NodeKind::Number(number) => Self { text: number_text(*number), power: ATOM },
            NodeKind::Variable(variable) => Self { text: name(variable), power: ATOM },
            NodeKind::Fact(fact) => Self { text: fact.to_string(), power: ATOM },
            NodeKind::Operation(operation) => Self::operation(operation, operands),
            NodeKind::Select => {
                let least = [CONDITION, CONDITION, SELECT];
                let parts = operands.into_iter().zip(least).map(|(part, least)| part.at_least(least));
                Self { text: join(parts, &[" if ", " else "]), power: SELECT }
            }
        }
    }

    fn operation(operation: &Operation, operands: Vec<Self>) -> Self {
        match operation.notation {
            Notation::Prefix => {
                let operands = operands.into_iter().map(|operand| operand.at_least(UNARY));
                Self { text: format!("{}{}", NEGATE.name, join(operands, &[])), power: UNARY }
            }
            Notation::Infix { power } => {
                let left = if power == COMPARISON { power + 1 } else { power };
                let parts = operands.into_iter().zip([left, power + 1]);
                let parts = parts.map(|(part, least)| part.at_least(least));
                Self { text: join(parts, &[&format!(" {} ", operation.name)]), power }
            }
            Notation::Call { .. } => {
                let arguments = join(operands.into_iter().map(|operand| operand.text), &[", "]);
                Self { text: format!("{}({arguments})", operation.name), power: ATOM }
            }
        }
    }

    /// Writes the expression in parentheses, unless it binds as firmly as `least`.
    fn at_least(self, least: u8) -> String {
        if self.power < least { format!("({})", self.text) } else { self.text }
    }
}

/// Appends to the first part, so that a long sum is printed in linear time.
fn join(mut parts: impl Iterator<Item = String>, separators: &[&str]) -> String {
    let mut text = parts.next().unwrap_or_default();
    for (part, separator) in parts.zip(separators) {
        text.push_str(separator);
        text.push_str(&part);
    }
    text
}

/// The shortest text that reads back as `number`: plain unless that has many zeros.
fn number_text(number: f64) -> String {
    let plain = number.to_string();
    if plain.len() <= 12 { plain } else { format!("{number:e}") }
}
