//! Checks the objects of a relation file, and makes relations and metrics of them.

use std::collections::HashMap;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::source::SourceText;
use super::syntax::{KeyEntry, KeyValue, Object, Problems, SyntaxProblem, read};
use super::{MAX_FILE, Parsed, Relation, RelationForm, TextPlace, Tolerance, Weight};
use crate::expr::{Dialect, Expr, ExprNode, NodeKind, ParseError, TextSpan, parse, parse_equation};
use crate::metrics::{MAX_NAME, Metric, is_name};
use crate::names::{is_hidden, nearest, quoted, shown};

/// The keys of a relation or of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DeclaredKey {
    Id,
    EventFrom,
    EventTo,
    ExpectedMean,
    ExpectedVariance,
    Relation,
    Weight,
    Tolerance,
    Metric,
    Formula,
    ScaleUnit,
    Groups,
    Threshold,
    Description,
    Grouping,
    ApartIn,
}

impl DeclaredKey {
    pub(super) const ALL: [(Self, &'static str); 16] = [
        (Self::Id, "id"),
        (Self::EventFrom, "eventFrom"),
        (Self::EventTo, "eventTo"),
        (Self::ExpectedMean, "expectedMean"),
        (Self::ExpectedVariance, "expectedVariance"),
        (Self::Relation, "relation"),
        (Self::Weight, "weight"),
        (Self::Tolerance, "tolerance"),
        (Self::Metric, "metric"),
        (Self::Formula, "formula"),
        (Self::ScaleUnit, "scaleUnit"),
        (Self::Groups, "groups"),
        (Self::Threshold, "threshold"),
        (Self::Description, "description"),
        (Self::Grouping, "grouping"),
        (Self::ApartIn, "apartIn"),
    ];

    /// Whether only metrics have it.
    pub(super) fn is_of_metrics(self) -> bool {
        !matches!(self, Self::Id | Self::Relation | Self::Weight | Self::Tolerance) && !Self::OF_PAIRS.contains(&self)
    }

    /// The keys that only pairs have.
    const OF_PAIRS: [Self; 4] = [Self::EventFrom, Self::EventTo, Self::ExpectedMean, Self::ExpectedVariance];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(key, _)| key)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(key, _)| *key == self).map_or("", |(_, name)| name)
    }
}

/// Reads and checks a whole file.
pub(super) fn check(file: &str, bytes: &[u8]) -> Parsed {
    if bytes.len() > MAX_FILE {
        return unreadable(Diagnostic {
            place: TextPlace { file: file.to_owned(), line: 1, column: 1 },
            message: format!("larger than {} MiB, which no relation file needs", MAX_FILE >> 20),
            excerpt: None,
            help: None,
            relation: None,
        });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => check_text(file, text),
        Err(error) => unreadable(not_utf8(file, bytes, error.valid_up_to())),
    }
}

fn unreadable(diagnostic: Diagnostic) -> Parsed {
    let diagnostics = Diagnostics { list: vec![diagnostic], ..Diagnostics::default() };
    Parsed { relations: Vec::new(), metrics: Vec::new(), diagnostics }
}

fn not_utf8(file: &str, bytes: &[u8], valid: usize) -> Diagnostic {
    let (before, after) = bytes.split_at(valid);
    let source = SourceText::new(file, std::str::from_utf8(before).unwrap_or_default());
    let label = format!("byte 0x{:02x} here", after.first().copied().unwrap_or_default());
    Diagnostic {
        place: source.place(valid),
        message: "the file is not UTF-8 text".to_owned(),
        excerpt: Some(source.excerpt(valid, &label)),
        help: bytes.starts_with(&[0xff, 0xfe]).then(|| "it looks like UTF-16; save it as UTF-8".into()),
        relation: None,
    }
}

fn check_text(file: &str, text: &str) -> Parsed {
    let source = SourceText::new(file, text);
    let (objects, problems) = read(text);
    let mut checker = Checker { source: &source, problems, object: 0 };
    let ids = checker.ids(&objects);
    let (mut relations, mut metrics) = (Vec::new(), Vec::new());
    let mut broken = Vec::new();
    for (index, (object, id)) in objects.iter().zip(&ids).enumerate() {
        checker.object = index;
        match checker.statement(object, id) {
            Some(Statement::Relation(relation)) => relations.push(relation),
            Some(Statement::Metric(metric)) => metrics.push((index, metric)),
            None => broken.push(broken_id(object, id)),
        }
    }
    let endless = checker.endless(&objects, &metrics);
    broken.extend(endless.iter().map(|&index| ids[index].clone()));
    let metrics: Vec<_> =
        metrics.into_iter().filter(|(index, _)| !endless.contains(index)).map(|(_, metric)| metric).collect();
    let Problems { mut list, unlisted } = checker.problems;
    list.sort_by_key(|problem| problem.offset);
    let list = list.into_iter().map(|problem| diagnostic(&source, &ids, problem)).collect();
    let diagnostics =
        Diagnostics { list, unlisted, fine: relations.len() + metrics.len(), broken, ..Diagnostics::default() };
    Parsed { relations, metrics, diagnostics }
}

fn diagnostic(source: &SourceText<'_>, ids: &[String], problem: SyntaxProblem) -> Diagnostic {
    let SyntaxProblem { offset, message, label, help, object } = problem;
    Diagnostic {
        place: source.place(offset),
        message,
        excerpt: (!label.is_empty()).then(|| source.excerpt(offset, &label)),
        help,
        relation: object.and_then(|index| ids.get(index)).cloned(),
    }
}

/// What an object of a relation file says.
enum Statement {
    Relation(Relation),
    Metric(Metric),
}

pub(super) struct Checker<'a> {
    source: &'a SourceText<'a>,
    problems: Problems,
    /// The index of the object that is being checked.
    pub(super) object: usize,
}

/// The values of one object by their keys.
pub(super) struct Fields<'a> {
    values: HashMap<DeclaredKey, &'a KeyValue<'a>>,
    /// Whether nothing else is in the object, so that a missing key is missing indeed.
    pub(super) are_all: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, key: DeclaredKey) -> Option<&'a KeyValue<'a>> {
        self.values.get(&key).copied()
    }
}

impl Checker<'_> {
    /// Notes a mistake. What is wrong has no value.
    pub(super) fn wrong<T>(
        &mut self,
        offset: usize,
        message: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) -> Option<T> {
        let (message, label) = (message.into(), label.into());
        self.problems.push(SyntaxProblem { offset, message, label, help, object: Some(self.object) });
        None
    }

    /// An id for every object: its own, or one made from its position that no other has. Where two
    /// have the same, it is the first one's. Names of metrics are the same in any case of letters.
    fn ids(&mut self, objects: &[Object<'_>]) -> Vec<String> {
        let (mut owners, mut metrics) = (HashMap::new(), HashMap::new());
        for (object, own) in objects.iter().filter_map(|object| Some((object, own_id(object)?))) {
            owners.entry(&*own.text).or_insert(own.offset);
            if is_metric(object) {
                metrics.entry(own.text.to_lowercase()).or_insert(own.offset);
            }
        }
        let first = |object: &Object<'_>, own: &str| {
            let metric = is_metric(object).then(|| metrics.get(&own.to_lowercase())).flatten();
            owners.get(own).into_iter().chain(metric).min().copied()
        };
        let mut ids = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            let own = own_id(object).map(|own| (own, first(object, &own.text)));
            ids.push(match own {
                Some((own, Some(first))) if first == own.offset => own.text.to_string(),
                Some((own, Some(first))) => {
                    self.object = index;
                    let what = if is_metric(object) { "metric" } else { "relation" };
                    let message = format!("a second {what} is called {}", quoted(&own.text));
                    let label = format!("the first one is in line {}", self.source.place(first).line);
                    self.wrong::<()>(own.offset, message, label, None);
                    made_id(index, &owners)
                }
                _ => made_id(index, &owners),
            });
        }
        ids
    }

    fn statement(&mut self, object: &Object<'_>, id: &str) -> Option<Statement> {
        let fields = self.fields(object);
        let of_metric = DeclaredKey::ALL
            .into_iter()
            .find_map(|(key, _)| Some((key, fields.get(key)?)).filter(|_| key.is_of_metrics()));
        match of_metric {
            None => self.relation(object, &fields, id).map(Statement::Relation),
            Some((key, value)) => self.metric(object, &fields, id, key, value).map(Statement::Metric),
        }
    }

    fn relation(&mut self, object: &Object<'_>, fields: &Fields<'_>, id: &str) -> Option<Relation> {
        let is_id_right = self.is_id_right(fields, id);
        let weight = self.fraction(fields, DeclaredKey::Weight, Weight::new);
        let tolerance = self.fraction(fields, DeclaredKey::Tolerance, Tolerance::new);
        let form = self.form(object, fields);
        let (weight, tolerance, form) = (weight?, tolerance?, form?);
        (is_id_right && fields.are_all).then(|| Relation {
            id: id.to_owned(),
            form,
            weight: weight.unwrap_or_default(),
            tolerance: tolerance.unwrap_or_default(),
            place: self.source.place(object.offset),
        })
    }

    fn fields<'a>(&mut self, object: &'a Object<'a>) -> Fields<'a> {
        let mut fields = Fields { values: HashMap::new(), are_all: !object.is_broken };
        let mut places = HashMap::new();
        for KeyEntry { key: name, value } in &object.entries {
            let Some(key) = DeclaredKey::named(&name.text) else {
                fields.are_all = false;
                self.unknown_key(name);
                continue;
            };
            match places.insert(key, name.offset) {
                None => {
                    fields.values.extend(value.iter().map(|value| (key, value)));
                }
                Some(first) => {
                    fields.are_all = false;
                    let message = format!("{} is given twice", key.name());
                    let label = format!("the first one is in line {}", self.source.place(first).line);
                    self.wrong::<()>(name.offset, message, label, None);
                }
            }
        }
        fields
    }

    fn unknown_key(&mut self, name: &KeyValue<'_>) {
        let names = DeclaredKey::ALL.map(|(_, name)| name);
        let help = match nearest(&name.text, names).first() {
            Some(similar) => format!("did you mean {similar}?"),
            None => format!("keys: {}", names.join(", ")),
        };
        let message = format!("there is no key {}", quoted(&name.text));
        self.wrong::<()>(name.offset, message, "not a key of a relation or metric", Some(help));
    }

    fn is_id_right(&mut self, fields: &Fields<'_>, id: &str) -> bool {
        match fields.get(DeclaredKey::Id) {
            None => true,
            Some(own) if is_id(own) => own.text == id,
            Some(own) => {
                let message = "an id is a string of 1 to 100 printable characters";
                self.wrong::<()>(own.offset, message, "not an id", unquoted_help(own));
                false
            }
        }
    }

    /// The fraction at `key`: `Some(None)` if it isn't given, `None` if it is wrong.
    fn fraction<T>(&mut self, fields: &Fields<'_>, key: DeclaredKey, make: fn(f64) -> Option<T>) -> Option<Option<T>> {
        let Some(value) = fields.get(key) else {
            return Some(None);
        };
        let text = value.text.trim();
        let (digits, scale) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (text, 1.0),
        };
        // Rust also reads "inf" and "nan".
        let number = digits.parse::<f64>().ok().filter(|_| !digits.contains(['i', 'I', 'n', 'N']));
        let Some(number) = number else {
            let message = format!("expected a number for {}", key.name());
            return self.wrong(value.offset, message, format!("{} here", quoted(text)), None);
        };
        if let Some(fraction) = make(number / scale) {
            return Some(Some(fraction));
        }
        let is_percent = key == DeclaredKey::Tolerance && scale == 1.0 && (1.0..=100.0).contains(&number);
        let help = is_percent.then(|| format!("{number} % is written \"{number}%\" or {}", number / 100.0));
        let message = format!("{} must be above 0 and at most 1", key.name());
        self.wrong(value.offset, message, format!("{} here", quoted(text)), help)
    }

    fn form(&mut self, object: &Object<'_>, fields: &Fields<'_>) -> Option<RelationForm> {
        let of_pair = DeclaredKey::OF_PAIRS.into_iter().find_map(|key| Some((key, fields.get(key)?)));
        match (fields.get(DeclaredKey::Relation), of_pair) {
            (Some(equation), None) => self.equation(equation),
            (None, _) => self.pair(object, fields),
            (Some(equation), Some((key, _))) => {
                let message = format!("{} belongs to a pair, relation to an equation", key.name());
                self.wrong(equation.offset, message, "a relation is one or the other", None)
            }
        }
    }

    fn equation(&mut self, value: &KeyValue<'_>) -> Option<RelationForm> {
        let (left, right) = self.parsed(value, parse_equation(&value.text))?;
        if left.variables().chain(right.variables()).next().is_none() {
            return self.wrong(value.offset, "an equation needs an event", "there is none here", None);
        }
        if left == right {
            let label = "it holds whatever is counted";
            return self.wrong(value.offset, "both sides are the same", label, None);
        }
        let (left, right) = (self.with_value(value, left)?, self.with_value(value, right)?);
        let (left, right) = (self.of_counts(value, left)?, self.of_counts(value, right)?);
        Some(RelationForm::Equation { left, right })
    }

    /// The expression, unless it has a part that never has a value: a division by a number that is 0, the root of one
    /// below 0.
    fn with_value(&mut self, value: &KeyValue<'_>, expr: Expr) -> Option<Expr> {
        if let Some(span) = zero_divisor(&expr) {
            return self.wrong(value.offset_of(span.start), "a division by 0 has no value", "this is 0", None);
        }
        match without_value(&expr) {
            None => Some(expr),
            Some(span) => {
                let message = "this has no value, whatever is counted";
                self.wrong(value.offset_of(span.start), message, "no number here", None)
            }
        }
    }

    /// The expression, unless it is below 0 whatever is counted.
    fn above_zero(&mut self, value: &KeyValue<'_>, expr: Expr) -> Option<Expr> {
        match expr.folded().fold(|node, operands: Vec<Sign>| Sign::of(&node.kind, &operands)) {
            Some(Sign::Negative) => {
                let message = "expectedMean is below 0, and no count is";
                self.wrong(value.offset, message, "never above 0", None)
            }
            _ => Some(expr),
        }
    }

    /// The expression, unless it has a number that no two counts of 64 bits are apart by: an event that is derived by
    /// it would have more than a counter holds.
    fn of_counts(&mut self, value: &KeyValue<'_>, expr: Expr) -> Option<Expr> {
        let is_far = |number: f64| number != 0.0 && !(FARTHEST.recip()..=FARTHEST).contains(&number.abs());
        let folded = expr.folded();
        let far = folded.nodes().iter().find(|node| matches!(node.kind, NodeKind::Number(number) if is_far(number)));
        match far.map(|node| node.span) {
            None => Some(expr),
            Some(span) => {
                let message = "no two counts are so far apart: counters have 64 bits";
                self.wrong(value.offset_of(span.start), message, "this is beyond 2^64, or below its inverse", None)
            }
        }
    }

    fn pair(&mut self, object: &Object<'_>, fields: &Fields<'_>) -> Option<RelationForm> {
        let from = self.event(fields, DeclaredKey::EventFrom);
        let to = self.event(fields, DeclaredKey::EventTo);
        let expected_mean = self.expectation(fields, DeclaredKey::ExpectedMean);
        let expected_variance = self.expectation(fields, DeclaredKey::ExpectedVariance);
        if let (true, Some((message, label))) = (fields.are_all, missing(fields)) {
            return self.wrong(object.offset, message, label, None);
        }
        let (from, to) = (from?, to?);
        if from.eq_ignore_ascii_case(&to) {
            let place = fields.get(DeclaredKey::EventTo).map_or(object.offset, |value| value.offset);
            let label = "it would correct itself";
            return self.wrong(place, "eventFrom and eventTo are the same event", label, None);
        }
        Some(RelationForm::Pair { from, to, expected_mean: expected_mean?, expected_variance: expected_variance? })
    }

    /// The name at `key`, if it is given and right.
    pub(super) fn event(&mut self, fields: &Fields<'_>, key: DeclaredKey) -> Option<String> {
        let value = fields.get(key)?;
        let mut characters = value.text.char_indices();
        // Some of the vendors' metrics have names of several words.
        let is_word = |at: usize| key == DeclaredKey::Metric && at > 0 && at + 1 < value.text.len();
        let bad = characters.find(|&(at, c)| c.is_whitespace() && !(c == ' ' && is_word(at)) || is_hidden(c));
        match bad {
            _ if !value.is_quoted => {
                let message = format!("{} is a name in quotes", key.name());
                self.wrong(value.offset, message, "not in quotes", unquoted_help(value))
            }
            None if value.text.is_empty() => {
                let message = format!("{} is empty", key.name());
                let what = if key == DeclaredKey::Metric { "a metric" } else { "an event" };
                self.wrong(value.offset, message, format!("expected the name of {what}"), None)
            }
            Some((at, c)) => {
                let place = value.offset_of(at);
                let label = format!("{} here", quoted(c.encode_utf8(&mut [0; 4])));
                let whose = if key == DeclaredKey::Metric { "metrics'" } else { "events'" };
                let spaces = if key == DeclaredKey::Metric { "no spaces at their ends" } else { "no spaces" };
                let message = format!("{whose} names have {spaces} or control characters");
                self.wrong(place, message, label, None)
            }
            None if key == DeclaredKey::Metric && !is_name(&value.text) => {
                let message = format!("a metric's name has {MAX_NAME} characters at most");
                self.wrong(value.offset, message, format!("{} here", value.text.chars().count()), None)
            }
            None => Some(value.text.to_string()),
        }
    }

    /// The expression at `key`: `Some(None)` if it isn't given, `None` if it is wrong.
    fn expectation(&mut self, fields: &Fields<'_>, key: DeclaredKey) -> Option<Option<Expr>> {
        match fields.get(key) {
            None => Some(None),
            Some(value) => {
                let expr = self.parsed(value, parse(&value.text, Dialect::Pair))?;
                let expr = self.with_value(value, expr)?;
                // Variances are of squares.
                if key != DeclaredKey::ExpectedMean {
                    return Some(Some(expr));
                }
                let expr = self.of_counts(value, expr)?;
                self.above_zero(value, expr).map(Some)
            }
        }
    }

    /// What the parser made of `value`, or its mistake in the file.
    pub(super) fn parsed<T>(&mut self, value: &KeyValue<'_>, result: Result<T, ParseError>) -> Option<T> {
        result.map_or_else(
            |ParseError { span, message, label, help }| self.wrong(value.offset_of(span.start), message, label, help),
            Some,
        )
    }
}

/// 2^64, more than a counter holds.
const FARTHEST: f64 = 18_446_744_073_709_551_616.0;

/// Where an expression divides by a number that is 0, if it does.
fn zero_divisor(expr: &Expr) -> Option<TextSpan> {
    let folded = expr.folded();
    // Each operation stands behind its last operand.
    folded.nodes().windows(2).find_map(|pair| match pair {
        [ExprNode { kind: NodeKind::Number(0.0), span }, ExprNode { kind: NodeKind::Operation(operation), .. }]
            if operation.name == "/" =>
        {
            Some(*span)
        }
        _ => None,
    })
}

/// Where a part of an expression has only numbers in it and no value, if one has.
fn without_value(expr: &Expr) -> Option<TextSpan> {
    let mut found = None;
    expr.fold(|node, operands: Vec<Option<f64>>| {
        let operands: Option<Vec<f64>> = operands.into_iter().collect();
        let value = match (&node.kind, operands?.as_slice()) {
            (NodeKind::Number(number), _) => *number,
            (NodeKind::Operation(operation), [a]) => operation.value(*a, 0.0),
            (NodeKind::Operation(operation), [a, b]) => operation.value(*a, *b),
            _ => return None,
        };
        if !value.is_finite() {
            found = found.or(Some(node.span));
        }
        Some(value).filter(|value| value.is_finite())
    });
    found
}

/// On which side of 0 an expression is, whatever is counted: means and variances aren't below it.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    /// At 0 or above.
    Positive,
    /// At 0 or below, and not always at 0.
    Negative,
    Unknown,
}

impl Sign {
    fn of(kind: &NodeKind, operands: &[Self]) -> Self {
        let name = if let NodeKind::Operation(operation) = kind { operation.name } else { "" };
        match (kind, name, operands) {
            (NodeKind::Number(number), ..) if *number < 0.0 => Self::Negative,
            (NodeKind::Number(_) | NodeKind::Variable(_), ..) => Self::Positive,
            (_, "-", [one]) => one.turned(),
            (_, "+" | "min" | "max", [one, other]) if one == other => *one,
            (_, "-", [one, other]) if *one == other.turned() => *one,
            (_, "*" | "/", [Self::Positive, other] | [other, Self::Positive]) => *other,
            (_, "*" | "/", [Self::Negative, Self::Negative]) => Self::Positive,
            _ => Self::Unknown,
        }
    }

    fn turned(self) -> Self {
        match self {
            Self::Positive => Self::Negative,
            Self::Negative => Self::Positive,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// The message and label for the field that a pair lacks; `None` where it has all.
fn missing(fields: &Fields<'_>) -> Option<(&'static str, &'static str)> {
    let has = |key| fields.get(key).is_some();
    let expects = has(DeclaredKey::ExpectedMean) || has(DeclaredKey::ExpectedVariance);
    match (has(DeclaredKey::EventFrom), has(DeclaredKey::EventTo)) {
        (false, false) if !expects => {
            Some(("a relation needs eventFrom and eventTo, or relation", "neither is in this one"))
        }
        (false, _) => Some(("eventFrom is missing", "not in this relation")),
        (_, false) => Some(("eventTo is missing", "not in this relation")),
        _ if !expects => Some(("a pair needs expectedMean or expectedVariance", "neither is in this one")),
        _ => None,
    }
}

fn is_metric(object: &Object<'_>) -> bool {
    object.entries.iter().any(|entry| DeclaredKey::named(&entry.key.text) == Some(DeclaredKey::Metric))
}

/// The id that the object has itself: that of a metric is its name.
fn own_id<'a>(object: &'a Object<'a>) -> Option<&'a KeyValue<'a>> {
    let key = if is_metric(object) { DeclaredKey::Metric } else { DeclaredKey::Id };
    let entry = object.entries.iter().find(|entry| DeclaredKey::named(&entry.key.text) == Some(key))?;
    entry.value.as_ref().filter(|value| is_id(value))
}

/// What an object that can't be used is called: one that has another's id is named by that.
fn broken_id(object: &Object<'_>, id: &str) -> String {
    match own_id(object) {
        Some(own) if own.text != id => format!("the other {}", own.text),
        _ => id.to_owned(),
    }
}

fn is_id(value: &KeyValue<'_>) -> bool {
    value.is_quoted && !value.text.contains(is_hidden) && (1..=MAX_NAME).contains(&value.text.chars().count())
}

/// `R3` for the third object, or `R3-2`, `R3-3`, ... where `R3` is another's.
fn made_id(index: usize, owners: &HashMap<&str, usize>) -> String {
    let mut id = format!("R{}", index + 1);
    for n in 2.. {
        if !owners.contains_key(id.as_str()) {
            break;
        }
        id = format!("R{}-{n}", index + 1);
    }
    id
}

fn unquoted_help(value: &KeyValue<'_>) -> Option<String> {
    let text = value.text.trim();
    let is_word = !text.is_empty() && text.len() <= 100 && !text.contains(char::is_whitespace);
    (is_word && !value.is_quoted).then(|| format!("write \"{}\"", shown(text)))
}
