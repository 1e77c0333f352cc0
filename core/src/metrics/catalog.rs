//! Finds metrics by name, pattern or group, and expands the metrics that their formulas name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use super::Metric;
use crate::expr::{Dialect, Expr, ExprNode, Fact, Moment, NodeKind, Subject, Variable};
use crate::names::{glob, nearest, shown};

/// How many nodes a formula can have once the metrics that it names are put in. The vendors' longest
/// has 7,000.
pub const MAX_NODES: usize = 100_000;

/// How long a chain of metrics that name one another can be. The vendors' longest has 12.
pub const MAX_NAMING: usize = 64;

/// How many nodes the formulas of all metrics and relations that are asked for can have together: as many as ten of
/// the longest. A recording has them as text, in a line of 64 MiB at most.
pub const MAX_TOGETHER: usize = 10 * MAX_NODES;

/// All metrics that can be asked for.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    metrics: Vec<Metric>,
    /// The place of each name in small letters.
    places: HashMap<String, usize>,
}

/// Why the names of metrics in a formula can't be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpansionError {
    /// A metric is computed from itself: the chain of names, the first and the last of which are the same.
    Cycle(Vec<String>),
    /// More than [`MAX_NAMING`] metrics name one another in a row, from this one on.
    TooDeep(String),
    /// More than [`MAX_NODES`] nodes in the formula of this metric.
    TooLong(String),
    /// More than [`MAX_TOGETHER`] nodes in all formulas that were asked for.
    TooMuch,
}

impl fmt::Display for ExpansionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(chain) => write!(f, "it is computed from itself: {}", shown(&chain.join(" -> "))),
            Self::TooDeep(name) => {
                write!(f, "more than {MAX_NAMING} metrics name one another in a row, {} among them", shown(name))
            }
            Self::TooLong(name) => {
                write!(f, "{} is too long once the metrics that it names are put in", shown(name))
            }
            Self::TooMuch => {
                write!(f, "with those before it the formulas have more than {MAX_TOGETHER} terms: ask for fewer")
            }
        }
    }
}

impl std::error::Error for ExpansionError {}

impl Catalog {
    /// A catalog of these metrics. Of several with one name, in any case of letters, the first holds.
    pub fn new(metrics: impl IntoIterator<Item = Metric>) -> Self {
        let mut catalog = Self::default();
        for metric in metrics {
            let place = catalog.metrics.len();
            if let std::collections::hash_map::Entry::Vacant(free) = catalog.places.entry(metric.name.to_lowercase()) {
                free.insert(place);
                catalog.metrics.push(metric);
            }
        }
        catalog
    }

    /// The metrics, in the order given.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The metric of this name, in any case of letters.
    pub fn find(&self, name: &str) -> Option<&Metric> {
        self.places.get(&name.to_lowercase()).and_then(|&place| self.metrics.get(place))
    }

    /// The groups of metrics by name, each with how many it has.
    pub fn groups(&self) -> BTreeMap<&str, usize> {
        let mut groups = BTreeMap::new();
        for group in self.metrics.iter().flat_map(|metric| &metric.groups) {
            *groups.entry(group.as_str()).or_insert(0) += 1;
        }
        groups
    }

    /// The metrics that `wanted` selects: one by its name, or all whose name or group it is or matches.
    pub fn select(&self, wanted: &str) -> Vec<&Metric> {
        let wanted = wanted.to_lowercase();
        if let Some(metric) = self.find(&wanted) {
            return vec![metric];
        }
        let is_meant = |name: &str| glob::matches(&wanted, &name.to_lowercase());
        let metrics = self.metrics.iter();
        metrics.filter(|metric| is_meant(&metric.name) || metric.groups.iter().any(|group| is_meant(group))).collect()
    }

    /// The names of metrics and groups that are nearest to a wrong one.
    pub fn similar(&self, wrong: &str) -> Vec<String> {
        let names = self.metrics.iter().map(|metric| metric.name.as_str());
        nearest(wrong, names.chain(self.groups().into_keys())).into_iter().map(str::to_owned).collect()
    }

    /// `expr` with the formulas of metrics in place of their names, the numbers that `know` has in place
    /// of facts, and without what then can't matter.
    ///
    /// # Errors
    /// Metrics that are computed from themselves, and formulas that get too long or too deep.
    pub fn expand(&self, expr: &Expr, know: &dyn Fn(&Fact) -> Option<f64>) -> Result<Expr, ExpansionError> {
        self.formulas(know).expand(expr)
    }

    /// The metrics as they are on a machine of which `know` tells.
    pub fn formulas<'a>(&'a self, know: &'a dyn Fn(&Fact) -> Option<f64>) -> Formulas<'a> {
        Formulas { catalog: self, know, chain: Vec::new(), known: HashMap::new(), made: 0 }
    }

    /// The metrics whose formulas can't be expanded, by their places, and why. Takes time in proportion to
    /// the formulas as they are written, however long they would get.
    pub fn endless(&self) -> Vec<(usize, ExpansionError)> {
        let mut sizes = HashMap::new();
        let metrics = self.metrics.iter().enumerate();
        metrics
            .filter_map(|(place, metric)| Some((place, self.size(metric, &mut Vec::new(), &mut sizes).err()?)))
            .collect()
    }

    /// How many nodes a formula has at most with those that it names.
    fn size<'a>(
        &'a self,
        metric: &'a Metric,
        chain: &mut Vec<&'a str>,
        sizes: &mut HashMap<&'a str, usize>,
    ) -> Result<usize, ExpansionError> {
        if let Some(&size) = sizes.get(metric.name.as_str()) {
            return Ok(size);
        }
        if let Some(first) = chain.iter().position(|name| *name == metric.name) {
            let cycle = chain[first..].iter().copied().chain([metric.name.as_str()]);
            return Err(ExpansionError::Cycle(cycle.map(str::to_owned).collect()));
        }
        if chain.len() >= MAX_NAMING {
            return Err(ExpansionError::TooDeep(metric.name.clone()));
        }
        chain.push(&metric.name);
        let mut size = 0_usize;
        for node in metric.formula.nodes() {
            size += self.named(&node.kind).map_or(Ok(1), |named| self.size(named, chain, sizes))?;
            if size > MAX_NODES {
                return Err(ExpansionError::TooLong(metric.name.clone()));
            }
        }
        chain.pop();
        sizes.insert(&metric.name, size);
        Ok(size)
    }

    /// The metric that a variable names.
    fn named(&self, kind: &NodeKind) -> Option<&Metric> {
        match kind {
            NodeKind::Variable(Variable { subject: Subject::Event(name), moment: Moment::Mean }) => self.find(name),
            _ => None,
        }
    }

    /// Whether `expr` names a metric.
    pub fn is_named_in(&self, expr: &Expr) -> bool {
        expr.nodes().iter().any(|node| self.named(&node.kind).is_some())
    }
}

/// The metrics of a catalog as they are on a machine. Each is looked at once, however many name it.
pub struct Formulas<'a> {
    catalog: &'a Catalog,
    know: &'a dyn Fn(&Fact) -> Option<f64>,
    /// The metrics that are being looked at, each named by the one before.
    chain: Vec<String>,
    known: HashMap<String, Result<Rc<KnownFormula>, ExpansionError>>,
    /// How many nodes were made of formulas.
    made: usize,
}

/// A formula as far as it is written itself.
struct KnownFormula {
    /// With the numbers of facts and of metrics that are one, and without what then can't matter; other metrics by
    /// their names.
    own: Expr,
    /// How many nodes it has with those that it names.
    size: usize,
    /// How many metrics name one another in a row below it.
    depth: usize,
}

/// What a formula is computed from, each once and in the order in which the whole formula names it.
#[derive(Debug, Default)]
pub struct FormulaNeeds {
    /// The names of its events.
    pub events: Vec<String>,
    /// What the machine doesn't tell.
    pub facts: Vec<Fact>,
}

impl<'a> Formulas<'a> {
    /// The metrics.
    pub fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// `expr` with the formulas of metrics in place of their names, the numbers that are known in place of facts,
    /// and without what then can't matter.
    ///
    /// # Errors
    /// Metrics that are computed from themselves, and formulas that get too long or too deep.
    pub fn expand(&mut self, expr: &Expr) -> Result<Expr, ExpansionError> {
        let known = self.known(expr)?;
        self.made = self.made.saturating_add(known.size);
        if self.made > MAX_TOGETHER {
            return Err(ExpansionError::TooMuch);
        }
        Ok(self.whole(&known.own))
    }

    /// What `expr` is computed from. Takes time in proportion to the formulas as they are written, however long
    /// they would get.
    ///
    /// # Errors
    /// As those of [`expand`](Self::expand).
    pub fn needs(&mut self, expr: &Expr) -> Result<FormulaNeeds, ExpansionError> {
        let known = self.known(expr)?;
        let (mut needs, mut seen) = (FormulaNeeds::default(), HashSet::new());
        self.gather(&known.own, &mut needs, &mut seen);
        Ok(needs)
    }

    fn known(&mut self, expr: &Expr) -> Result<KnownFormula, ExpansionError> {
        let catalog = self.catalog;
        // Facts first: what they rule out needn't be looked at.
        let known = expr.with_parts(MAX_NODES, |kind| match kind {
            NodeKind::Fact(fact) => Expr::number((self.know)(fact)?, Dialect::Metric),
            _ => None,
        });
        let known = known.ok_or_else(|| self.too_long())?.folded();
        for node in known.nodes() {
            if let Some(metric) = catalog.named(&node.kind) {
                self.metric(metric)?;
            }
        }
        let number = |known: &KnownFormula| matches!(known.own.nodes(), [ExprNode { kind: NodeKind::Number(_), .. }]);
        let constant = |kind: &NodeKind| self.named(kind).filter(|known| number(known)).map(|known| known.own.clone());
        let own = known.with_parts(MAX_NODES, constant).ok_or_else(|| self.too_long())?.folded();
        let (mut size, mut depth) = (0_usize, 0);
        for node in own.nodes() {
            let named = self.named(&node.kind);
            size = size.saturating_add(named.map_or(1, |named| named.size));
            depth = depth.max(named.map_or(0, |named| named.depth + 1));
        }
        match self.chain.last() {
            _ if size > MAX_NODES => Err(self.too_long()),
            Some(last) if self.chain.len() + depth > MAX_NAMING => Err(ExpansionError::TooDeep(last.clone())),
            _ => Ok(KnownFormula { own, size, depth }),
        }
    }

    /// The metric that a variable names, which has been looked at.
    fn named(&self, kind: &NodeKind) -> Option<&Rc<KnownFormula>> {
        self.known.get(&self.catalog.named(kind)?.name)?.as_ref().ok()
    }

    fn metric(&mut self, metric: &Metric) -> Result<(), ExpansionError> {
        if let Some(known) = self.known.get(&metric.name) {
            return known.as_ref().map(|_| ()).map_err(Clone::clone);
        }
        if let Some(first) = self.chain.iter().position(|name| *name == metric.name) {
            let cycle = self.chain[first..].iter().chain([&metric.name]).cloned();
            return Err(ExpansionError::Cycle(cycle.collect()));
        }
        if self.chain.len() >= MAX_NAMING {
            return Err(ExpansionError::TooDeep(metric.name.clone()));
        }
        self.chain.push(metric.name.clone());
        let known = self.known(&metric.formula);
        self.chain.pop();
        // How deep it lies is no matter of the metric alone.
        let is_settled = !matches!(known, Err(ExpansionError::TooDeep(_) | ExpansionError::Cycle(_)));
        let known = known.map(Rc::new);
        let result = known.as_ref().map(|_| ()).map_err(Clone::clone);
        if is_settled {
            self.known.insert(metric.name.clone(), known);
        }
        result
    }

    /// No deeper than [`MAX_NAMING`], and no longer than what was looked at says.
    fn whole(&self, own: &Expr) -> Expr {
        let part = |kind: &NodeKind| self.named(kind).map(|known| self.whole(&known.own));
        own.with_parts(usize::MAX, part).unwrap_or_else(|| own.clone())
    }

    fn gather<'s>(&'s self, own: &'s Expr, needs: &mut FormulaNeeds, seen: &mut HashSet<&'s str>) {
        for node in own.nodes() {
            match &node.kind {
                NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) if seen.insert(name) => {
                    match self.named(&node.kind) {
                        Some(known) => self.gather(&known.own, needs, seen),
                        None => needs.events.push(name.clone()),
                    }
                }
                NodeKind::Fact(fact) if !needs.facts.contains(fact) => needs.facts.push(fact.clone()),
                _ => {}
            }
        }
    }

    fn too_long(&self) -> ExpansionError {
        ExpansionError::TooLong(self.chain.last().cloned().unwrap_or_else(|| "the formula".to_owned()))
    }
}
