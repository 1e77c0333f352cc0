//! Decides which fit provides which coefficient, and in which order fits run.
//!
//! A fit whose model has one coefficient finds it. In all other models that coefficient is known from then on; a model
//! that has one left then finds that one, and so on. What still has several left finds all of them together. Of several fits
//! that find one coefficient the one counts that needs the fewest others, and of equals the one solved last.
//! (The dependency solver of tezos-snoop; where fits find the same coefficient, the order of the input decides.)

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::names::quoted;

/// A fit, and the coefficients of its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// The name of the fit: of its file.
    pub name: String,
    /// The coefficients.
    pub variables: BTreeSet<String>,
}

/// What a fit needs, and what it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolvedNode {
    /// The name of the fit.
    pub name: String,
    /// The coefficients that other fits find.
    pub dependencies: BTreeSet<String>,
    /// The coefficients that it finds.
    pub provides: BTreeSet<String>,
}

/// Fits in an order in which each stands behind those that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyGraph {
    /// The fits.
    pub nodes: Vec<SolvedNode>,
    /// Who finds a coefficient for whom: places in `nodes`.
    pub edges: BTreeSet<(usize, usize)>,
    /// The coefficients that several fits find, each with the places of these fits; the first one counts.
    pub ambiguous: BTreeMap<String, Vec<usize>>,
}

/// Why fits have no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphError {
    /// Fits that need one another.
    Cycle(Vec<String>),
    /// Two fits have one name.
    SameName(String),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(names) => {
                let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
                write!(f, "{} need one another: set a coefficient of one of them (--set NAME=VALUE)", names.join(", "))
            }
            Self::SameName(name) => write!(f, "two fits are called {}", quoted(name)),
        }
    }
}

impl std::error::Error for GraphError {}

/// A fit of which not all is decided.
struct Undecided {
    place: usize,
    node: SolvedNode,
    undecided: BTreeSet<String>,
}

impl Undecided {
    /// The fit finds all that is left.
    fn solved(self) -> (usize, SolvedNode) {
        (self.place, SolvedNode { provides: self.undecided, ..self.node })
    }
}

impl DependencyGraph {
    /// Puts fits in order.
    ///
    /// # Errors
    /// Returns fits that need one another, or have the same name.
    pub fn new(fits: &[GraphNode]) -> Result<Self, GraphError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = fits.iter().find(|fit| !names.insert(&fit.name)) {
            return Err(GraphError::SameName(twice.name.clone()));
        }
        let solved = solved(fits);
        let mut providers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, node) in solved.iter().enumerate() {
            for variable in &node.provides {
                providers.entry(variable.clone()).or_default().push(place);
            }
        }
        for places in providers.values_mut() {
            // Stable: of equals the first one stays first.
            places.sort_by_key(|&place| solved[place].dependencies.len());
        }
        let users = solved.iter().enumerate();
        let edges: BTreeSet<(usize, usize)> = users
            .flat_map(|(user, node)| {
                node.dependencies
                    .iter()
                    .filter_map(|name| Some((*providers.get(name)?.first()?, user)))
                    .collect::<Vec<_>>()
            })
            .collect();
        let order = order(solved.len(), &edges)
            .map_err(|left| GraphError::Cycle(left.into_iter().map(|place| solved[place].name.clone()).collect()))?;
        let mut places = vec![0; solved.len()];
        order.iter().enumerate().for_each(|(new, &old)| places[old] = new);
        providers.retain(|_, places| places.len() > 1);
        Ok(Self {
            nodes: order.iter().map(|&place| solved[place].clone()).collect(),
            edges: edges.into_iter().map(|(from, to)| (places[from], places[to])).collect(),
            ambiguous: providers
                .into_iter()
                .map(|(name, of)| (name, of.into_iter().map(|place| places[place]).collect()))
                .collect(),
        })
    }
}

/// What each fit needs and finds: the ones decided last first, and those that find several coefficients at the end.
fn solved(fits: &[GraphNode]) -> Vec<SolvedNode> {
    let undecided = |(place, fit): (usize, &GraphNode)| Undecided {
        place,
        node: SolvedNode { name: fit.name.clone(), dependencies: BTreeSet::new(), provides: BTreeSet::new() },
        undecided: fit.variables.clone(),
    };
    let all: Vec<Undecided> = fits.iter().enumerate().map(undecided).rev().collect();
    let (mut waiting, mut left): (Vec<_>, Vec<_>) = all.into_iter().partition(|fit| fit.undecided.len() == 1);
    waiting.reverse();
    let mut solved = Vec::new();
    while let Some(fit) = waiting.pop() {
        let (_, node) = fit.solved();
        for other in &mut left {
            let known: Vec<String> = other.undecided.intersection(&node.provides).cloned().collect();
            for name in known {
                other.undecided.remove(&name);
                other.node.dependencies.insert(name);
            }
        }
        let (mut decided, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|fit| fit.undecided.len() <= 1);
        (left, decided) = (rest, std::mem::take(&mut decided));
        decided.sort_by_key(|fit| std::cmp::Reverse(fit.place));
        waiting.extend(decided);
        solved.insert(0, node);
    }
    solved.extend(left.into_iter().map(|fit| fit.solved().1));
    solved
}

/// An order in which both ends of each edge are; else the places that have none.
fn order(count: usize, edges: &BTreeSet<(usize, usize)>) -> Result<Vec<usize>, Vec<usize>> {
    let mut needs = vec![0_usize; count];
    edges.iter().for_each(|&(_, to)| needs[to] += 1);
    let mut ready: Vec<usize> = (0..count).filter(|&place| needs[place] == 0).collect();
    let mut order = Vec::new();
    while let Some(place) = ready.pop() {
        order.push(place);
        for &(_, to) in edges.range((place, 0)..(place + 1, 0)) {
            needs[to] -= 1;
            if needs[to] == 0 {
                ready.push(to);
            }
        }
    }
    if order.len() == count { Ok(order) } else { Err((0..count).filter(|&place| needs[place] > 0).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(name: &str, variables: &[&str]) -> GraphNode {
        GraphNode { name: name.into(), variables: variables.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn a_timer_comes_before_what_it_is_in() {
        let graph = DependencyGraph::new(&[fit("sort", &["timer", "swap"]), fit("clock", &["timer"])]);
        let names: Vec<_> = graph.iter().flat_map(|graph| &graph.nodes).map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["clock", "sort"]);
    }

    #[test]
    fn no_fits_have_an_order_and_two_of_a_name_have_none() {
        assert!(DependencyGraph::new(&[]).is_ok_and(|graph| graph.nodes.is_empty()));
        let twice = DependencyGraph::new(&[fit("a", &["x"]), fit("a", &["y"])]);
        assert_eq!(twice, Err(GraphError::SameName("a".into())));
    }

    #[test]
    fn a_coefficient_that_two_find_is_told() {
        let graph = DependencyGraph::new(&[fit("a", &["x"]), fit("b", &["x"])]);
        assert!(graph.is_ok_and(|graph| graph.ambiguous["x"].len() == 2 && graph.edges.is_empty()));
    }
}
