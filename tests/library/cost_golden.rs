//! Tests cost models against tezos-snoop's own answers, and those of scipy and scikit-learn.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic")]

use std::collections::{BTreeMap, BTreeSet};

use perfprop::cost::samples::{Determinizer, cull, moments, percentile};
use perfprop::cost::solve::{Equations, Solver};
use perfprop::cost::{
    CostModel, DependencyGraph, Fit, FitOptions, GraphNode, TIME, TermId, Terms, UnrepeatedErrors, Workload,
    WorkloadFile,
};
use perfprop::expr::{Operation, operation};
use perfprop_linear_algebra::Tall;
use serde_json::Value;

use crate::goldens::TOOLS;

/// The cases of a file.
fn cases(path: &str) -> Vec<Value> {
    let Some(path) = TOOLS.find(path) else { return Vec::new() };
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!cases.is_empty());
    cases
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// JSON has no infinities.
fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_f64().unwrap(),
    }
}

fn equations(case: &Value) -> Equations {
    let rows: Vec<Vec<f64>> = case["A"].as_array().unwrap().iter().map(numbers).collect();
    let columns = (0..rows[0].len()).map(|j| rows.iter().map(|row| row[j]).collect()).collect();
    Equations { matrix: Tall::new(rows.len(), columns), target: numbers(&case["t"]) }
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// The largest difference, over the largest number expected.
fn difference(found: &[f64], expected: &[f64]) -> f64 {
    let most = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let off = found.iter().zip(expected).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
    if off == 0.0 { 0.0 } else { off / most.max(f64::MIN_POSITIVE) }
}

#[test]
fn golden_linear_nnls() {
    for case in cases("linear/solvers.json") {
        let (name, equations, expected) = (&case["name"], equations(&case), &case["nnls"]);
        let x = equations.solve(Solver::NonNegative);
        assert!(x.iter().all(|&x| x >= 0.0), "{name}: {x:?}");
        let (found, norm) = (squares(&equations.residuals(&x)).sqrt(), number(&expected["residual_norm"]));
        let scale = squares(&equations.target).sqrt();
        assert!(found <= norm + 1e-9 * scale, "{name}: {found} instead of {norm}");
        if expected["compare"] == "x" {
            let off = difference(&x, &numbers(&expected["x"]));
            assert!(off < 1e-6, "{name}: {x:?} instead of {}: {off}", expected["x"]);
        }
    }
}

#[test]
fn golden_linear_ridge() {
    for case in cases("linear/solvers.json") {
        let equations = equations(&case);
        let near = if case["cond"].as_f64().is_some_and(|cond| cond < 1e4) { 1e-8 } else { 1e-5 };
        for ridge in case["ridge"].as_array().unwrap() {
            let x = equations.solve(Solver::Ridge { alpha: number(&ridge["alpha"]) });
            let off = difference(&x, &numbers(&ridge["x_exact"]));
            assert!(off < near, "{} {}: {x:?} instead of {}: {off}", case["name"], ridge["alpha"], ridge["x_exact"]);
        }
    }
}

#[test]
fn golden_linear_lasso() {
    for case in cases("linear/solvers.json") {
        let equations = equations(&case);
        for lasso in case["lasso"].as_array().unwrap() {
            let (alpha, is_positive) = (number(&lasso["alpha"]), lasso["positive"].as_bool().unwrap());
            let x = equations.solve(Solver::Lasso { alpha, is_positive });
            let size: f64 = x.iter().map(|x| x.abs()).sum();
            let objective = squares(&equations.residuals(&x)) / (2.0 * equations.target.len() as f64) + alpha * size;
            let what = format!("{} {alpha} {is_positive}", case["name"]);
            let expected = number(&lasso["objective"]);
            assert!(objective <= expected * (1.0 + 1e-6) + 1e-300, "{what}: {objective} instead of {expected}");
            assert!(!is_positive || x.iter().all(|&x| x >= 0.0), "{what}: {x:?}");
            if lasso["compare"] == "x" {
                let off = difference(&x, &numbers(&lasso["x"]));
                assert!(off < 1e-6, "{what}: {x:?} instead of {}: {off}", lasso["x"]);
            }
        }
    }
}

#[test]
fn golden_linear_least_squares() {
    for case in cases("linear/solvers.json") {
        let equations = equations(&case);
        let x = equations.solve(Solver::LeastSquares);
        let (found, rss) = (squares(&equations.residuals(&x)), number(&case["least_squares_min_norm"]["rss"]));
        assert!(found <= rss + 1e-9 * squares(&equations.target), "{}: {found} instead of {rss}", case["name"]);
    }
}

#[test]
fn golden_linear_merge_sort() {
    for case in cases("linear/merge_sort.json") {
        let workload = |(n, t): (f64, f64)| Workload {
            sizes: BTreeMap::from([("n".to_owned(), n)]),
            samples: BTreeMap::from([(TIME.to_owned(), vec![t])]),
            order: Vec::new(),
        };
        let workloads = numbers(&case["n"]).into_iter().zip(numbers(&case["t"])).map(workload).collect();
        let file = WorkloadFile { workloads, ..WorkloadFile::default() };
        let model = CostModel::parse(case["model"].as_str().unwrap(), &["n".to_owned()]).unwrap();
        let solved = |solver| {
            // As the reference does, which weighs all alike.
            let options = FitOptions { solver, unrepeated: UnrepeatedErrors::Alike, ..FitOptions::default() };
            Fit::new(&model, &file, &options).unwrap()
        };
        let fits = [
            ("nnls", solved(Solver::NonNegative)),
            ("ols", solved(Solver::LeastSquares)),
            ("ridge_1", solved(Solver::Ridge { alpha: 1.0 })),
            ("lasso_1_pos", solved(Solver::Lasso { alpha: 1.0, is_positive: true })),
        ];
        for (name, fit) in &fits {
            let values: Vec<f64> = fit.fitted.coefficients.iter().map(|coefficient| coefficient.value).collect();
            let off = difference(&values, &numbers(&case["solutions"][name]));
            assert!(off < 1e-6, "{} {name}: {values:?} instead of {}", case["name"], case["solutions"][name]);
        }
        let (_, nnls) = &fits[0];
        let (r_squared, rmse) = (number(&case["scores_of_nnls"]["r2"]), number(&case["scores_of_nnls"]["rmse"]));
        let scale = numbers(&case["t"]).into_iter().fold(0.0, f64::max);
        assert!((nnls.r_squared.unwrap() - r_squared).abs() < 1e-9, "{}: {:?}", case["name"], nnls.r_squared);
        assert!((nnls.rmse - rmse).abs() < 1e-6 * rmse + 1e-9 * scale, "{}: {}", case["name"], nnls.rmse);
        // Of relative errors even least squares that takes them for equal ones finds the growth.
        let (noise, found) = (number(&case["relative_noise"]), nnls.fitted.coefficients[1].value);
        let off = (found / number(&case["theta1"]) - 1.0).abs();
        assert!(off <= noise.max(1e-6), "{}: {found} is off by {off}", case["name"]);
    }
}

#[test]
fn golden_linear_determinize() {
    for case in cases("linear/determinize.json") {
        let samples = numbers(&case["samples"]);
        for (percent, expected) in case["percentile"].as_object().unwrap() {
            assert_eq!(percentile(&samples, percent.parse().unwrap()), Some(number(expected)), "{percent}");
        }
        let found = moments(&samples).unwrap();
        assert!((found.mean - number(&case["mean"])).abs() <= 1e-12 * found.mean.abs());
        assert!((found.variance - number(&case["population_variance"])).abs() <= 1e-9 * found.variance.abs());
        assert_eq!(Determinizer::Mean.value(&samples), Some(found.mean));
    }
}

#[test]
fn golden_linear_cull_outliers() {
    for case in cases("linear/cull_outliers.json") {
        let culled = cull(&numbers(&case["times"]), number(&case["nsigmas"]));
        assert_eq!(serde_json::json!(culled.kept), case["kept"], "{case}");
        for (found, expected) in [(culled.lower, &case["lower"]), (culled.upper, &case["upper"])] {
            assert!((found - number(expected)).abs() <= 1e-9 * number(expected).abs(), "{case}");
        }
    }
}

/// A case's term is a nested list.
struct Builder<'a> {
    terms: &'a mut Terms,
    free: BTreeSet<String>,
}

/// Bound names are told from free ones of the same letters.
fn bound(name: &str) -> String {
    format!("bound {name}")
}

impl Builder<'_> {
    fn term(&mut self, value: &Value) -> TermId {
        let parts = match value {
            Value::String(name) => return self.terms.name(&bound(name)),
            list => list.as_array().unwrap(),
        };
        let named: fn(&str) -> &'static Operation = |name| operation(name, 2).or(operation(name, 1)).unwrap();
        match (parts[0].as_str().unwrap(), &parts[1..]) {
            ("int" | "float", [literal]) => self.terms.number(number(literal)),
            ("free", [name]) => {
                self.free.insert(name.as_str().unwrap().to_owned());
                self.terms.name(name.as_str().unwrap())
            }
            ("if", [condition, then, otherwise]) => {
                let condition = self.condition(condition);
                let [then, otherwise] = [then, otherwise].map(|part| self.term(part));
                self.terms.select(then, condition, otherwise)
            }
            ("let", [name, value, body]) | ("app1", [name, body, value]) => self.apply(body, &[(name, value)]),
            ("app2", [first, second, body, a, b]) => self.apply(body, &[(first, a), (second, b)]),
            (shift @ ("shl" | "shr"), [a, by]) => {
                let (a, by) = (self.term(a), self.terms.number(number(by)));
                self.terms.operation(
                    named(if shift == "shl" { "shift_left" } else { "shift_right" }),
                    vec![a, by],
                    None,
                )
            }
            (name, operands) => {
                let operands: Vec<TermId> = operands.iter().map(|operand| self.term(operand)).collect();
                let name = match name {
                    "lt" => "<",
                    "eq" => "==",
                    name => name,
                };
                self.terms.operation(named(name), operands, None)
            }
        }
    }

    fn condition(&mut self, value: &Value) -> TermId {
        match value {
            Value::String(word) => self.terms.number(f64::from(u8::from(word == "true"))),
            // In tezos-snoop a choice is a size, and no size is true.
            choice if choice[0] == "if" => self.terms.number(0.0),
            comparison => self.term(comparison),
        }
    }

    fn apply(&mut self, body: &Value, values: &[(&Value, &Value)]) -> TermId {
        let body = self.term(body);
        let names: Vec<String> = values.iter().map(|(name, _)| bound(name.as_str().unwrap())).collect();
        let values: Vec<TermId> = values.iter().map(|(_, value)| self.term(value)).collect();
        let parts = names.iter().map(String::as_str).zip(values).collect();
        self.terms.substitute(body, &parts)
    }
}

fn is_same(found: f64, expected: f64) -> bool {
    found == expected || (found.is_nan() && expected.is_nan()) || (found - expected).abs() <= 1e-12 * expected.abs()
}

#[test]
fn golden_costlang() {
    for case in cases("costlang/terms.json") {
        let mut terms = Terms::default();
        let mut builder = Builder { terms: &mut terms, free: BTreeSet::new() };
        let term = builder.term(&case["term"]);
        let free: Vec<_> = builder.free.into_iter().collect();
        assert_eq!(serde_json::json!(free), case["free_variables"], "{}", case["name"]);
        let overrides: BTreeMap<&str, f64> =
            case["overrides"].as_object().unwrap().iter().map(|(name, value)| (name.as_str(), number(value))).collect();
        let value = |name: &str| overrides.get(name).copied();
        match (terms.linear(term, value), case["linear_error"].as_str()) {
            (Err(error), Some(expected)) => {
                let name = match error.operation {
                    "<" => "lt",
                    "==" => "eq",
                    name => name,
                };
                assert_eq!(name, expected, "{}", case["name"]);
            }
            (Ok(found), None) => {
                let expected = &case["linear"];
                let coefficients = expected["coeffs"].as_object().unwrap();
                let names: Vec<_> = found.coefficients.keys().collect();
                let mut expected_names: Vec<_> = coefficients.keys().collect();
                expected_names.sort();
                assert_eq!(names, expected_names, "{}", case["name"]);
                assert!(is_same(found.constant, number(&expected["const"])), "{}: {found:?}", case["name"]);
                let is_right = |(name, &factor): (&String, &f64)| is_same(factor, number(&coefficients[name]));
                assert!(found.coefficients.iter().all(is_right), "{}: {found:?}", case["name"]);
            }
            (found, expected) => panic!("{}: {found:?} instead of {expected:?}", case["name"]),
        }
        if !case["value"].is_null() {
            let found = terms.value(term, value).unwrap();
            assert!(is_same(found, number(&case["value"])), "{}: {found} instead of {}", case["name"], case["value"]);
        }
    }
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn golden_depgraph() {
    for case in cases("depgraph/graphs.json") {
        let node = |node: &Value| GraphNode {
            name: node["name"].as_str().unwrap().to_owned(),
            variables: names(&node["variables"]),
        };
        let nodes: Vec<GraphNode> = case["nodes"].as_array().unwrap().iter().map(node).collect();
        let graph = match DependencyGraph::new(&nodes) {
            Ok(graph) => graph,
            Err(error) => {
                assert!(!case["error"].is_null() || case["order_sensitive"] == true, "{}: {error}", case["name"]);
                continue;
            }
        };
        // Each variable of a node is needed or found, and who finds it for whom stands before.
        for node in &nodes {
            let solved = graph.nodes.iter().find(|solved| solved.name == node.name).unwrap();
            let all: BTreeSet<_> = solved.dependencies.union(&solved.provides).cloned().collect();
            assert_eq!(all, node.variables, "{}", case["name"]);
            assert!(solved.dependencies.is_disjoint(&solved.provides), "{}", case["name"]);
        }
        assert!(graph.edges.iter().all(|(from, to)| from < to), "{}", case["name"]);
        if case["order_sensitive"] == true {
            continue;
        }
        for solved in case["solved"].as_array().unwrap() {
            let found = graph.nodes.iter().find(|node| solved["name"] == node.name.as_str()).unwrap();
            assert_eq!(found.dependencies, names(&solved["dependencies"]), "{}: {solved}", case["name"]);
            assert_eq!(found.provides, names(&solved["provides"]), "{}: {solved}", case["name"]);
        }
        let name = |place: usize| graph.nodes[place].name.clone();
        let edges: BTreeSet<_> = graph.edges.iter().map(|&(from, to)| vec![name(from), name(to)]).collect();
        let expected: BTreeSet<Vec<String>> = serde_json::from_value(case["edges"].clone()).unwrap();
        assert_eq!(edges, expected, "{}", case["name"]);
    }
}
