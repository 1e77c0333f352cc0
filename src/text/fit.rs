//! Prints fitted cost models and their predictions for people.

use std::collections::BTreeSet;

use super::wrapped;
use crate::bench::unit;
use crate::cost::{Choice, Coefficient, DependencyGraph, Fit, FittedModel, LackOfFit, Prediction, sizes_in_words};
use crate::events::Unit;
use crate::names::shown;
use crate::number::{counted, grouped, percent, plain, shortest, si, with_interval};

/// A value of a quantity: a time, or a count.
fn amount(response: &str, value: f64) -> String {
    crate::number::amount(value, &unit(response))
}

/// A number alone, such as a coefficient: however small it is, it has three digits.
fn alone(value: f64, unit: &Unit) -> String {
    with_interval(value, (value, value), unit)[0].clone()
}

/// A number, and the ends of its interval: `—` where there is none.
fn with_ends(found: &Coefficient, unit: &Unit) -> (String, String) {
    let Some(interval) = found.interval else { return (alone(found.value, unit), "—".to_owned()) };
    let [value, low, high] = with_interval(found.value, interval, unit);
    (value, format!("{low} to {high}"))
}

/// The coefficients with their intervals, how well the model fits, and what to be careful of.
pub fn fit(fit: &Fit, width: usize) -> String {
    let fitted = &fit.fitted;
    let mut out = format!(" {} = {}\n\n", shown(&fitted.response), shown(&fitted.model));
    out += &coefficients(fit);
    out += &quality(fit);
    out += &plot(fit, width);
    out += &warnings(fit);
    out
}

fn coefficients(fit: &Fit) -> String {
    let fitted = &fit.fitted;
    let level = format!("{}% INTERVAL", 100.0 * fitted.confidence);
    let mut out = format!("{:>14}  {:>14}  {:>29}   COEFFICIENT\n", "VALUE", "STD. ERROR", level);
    let unit = unit(&fitted.response);
    for found in &fitted.coefficients {
        let (value, interval) = with_ends(found, &unit);
        let error = found.error.map_or_else(|| "—".to_owned(), |error| alone(error, &unit));
        out += &format!("{value:>14}  {error:>14}  {interval:>29}   {}\n", shown(&found.name));
    }
    for found in &fitted.breakpoints {
        let (value, interval) = with_ends(found, &Unit::Count);
        out += &format!("{value:>14}  {:>14}  {interval:>29}   {}, where it changes\n", "—", shown(&found.name));
    }
    for (name, value) in &fitted.known {
        let source = fitted.injected.as_ref().and_then(|injected| injected.sources.get(name));
        let from = source.map_or_else(|| "set".to_owned(), |source| format!("from {}", shown(source)));
        let value = if fit.is_cost(name) { alone(*value, &unit) } else { si(*value) };
        out += &format!("{value:>14}  {:>14}  {from:>29}   {}\n", "", shown(name));
    }
    out + "\n"
}

fn quality(fit: &Fit) -> String {
    let samples: usize = fit.points.iter().map(|point| point.samples).sum();
    let r_squared = fit.r_squared.map_or_else(|| "none, as nothing varies".to_owned(), |value| plain(value, 4));
    let condition = match fit.condition {
        _ if fit.fitted.coefficients.is_empty() => String::new(),
        condition => format!("   condition number {}", condition.map_or_else(|| "infinite".to_owned(), si)),
    };
    format!(
        " {} of sizes, {} runs   R² {r_squared}   RMSE {}{condition}\n\n",
        counted(fit.points.len(), "set"),
        grouped(samples as u64),
        amount(&fit.fitted.response, fit.rmse),
    )
}

/// A line for each set of sizes: measured, predicted, and a bar of how far they are apart.
fn plot(fit: &Fit, width: usize) -> String {
    const FIXED: usize = 64;
    let half = (width.saturating_sub(FIXED) / 2).clamp(5, 20);
    // Nothing is a part of 0.
    let apart = |measured: f64, predicted: f64| (measured != 0.0).then(|| predicted / measured - 1.0);
    let all = fit.points.iter().filter_map(|point| apart(point.measured, point.predicted).map(f64::abs));
    let most = all.fold(0.0, f64::max).max(1e-9);
    let mut out =
        format!("{:>12}  {:>12}  {:>9}  {:^bar$}  SIZES\n", "MEASURED", "MODEL", "MODEL IS", "", bar = 2 * half + 1);
    for point in &fit.points {
        let part = apart(point.measured, point.predicted);
        let off = part.unwrap_or(0.0);
        let cells = ((off.abs() / most) * half as f64).round() as usize;
        let (left, right) = if off < 0.0 { (cells, 0) } else { (0, cells) };
        let bar = format!("{:>half$}│{:<half$}", "█".repeat(left), "█".repeat(right));
        let sizes: Vec<_> =
            point.sizes.iter().map(|(name, size)| format!("{}={}", shown(name), shortest(*size))).collect();
        let sign = if off < 0.0 { "−" } else { "+" };
        out += &format!(
            "{:>12}  {:>12}  {:>9}  {bar}  {}\n",
            amount(&fit.fitted.response, point.measured),
            amount(&fit.fitted.response, point.predicted),
            part.map_or_else(|| "—".to_owned(), |_| format!("{sign}{}", percent(off.abs()))),
            sizes.join(" "),
        );
    }
    out
}

/// That a model doesn't fit, by how much it is off where, and what to try; `None` of one that fits.
pub fn lack_of_fit(fitted: &FittedModel) -> Option<String> {
    let lack = fitted.lack_of_fit.as_ref()?;
    let remedy = match &lack.fits_below_zero {
        Some(model) if *model == fitted.model => {
            "it would fit with a coefficient below 0, as --solver ols allows it".to_owned()
        }
        Some(model) => format!("with a coefficient below 0 {} would fit: --solver ols", shown(model)),
        None => "try another model, a smaller range of sizes, or more sizes to see the shape".to_owned(),
    };
    Some(format!("{}, more than chance explains; {remedy}", does_not_fit(lack)))
}

/// That a model doesn't fit, and by how much it is off where.
fn does_not_fit(lack: &LackOfFit) -> String {
    let part = lack.part();
    let place = lack.place();
    let off = match part {
        part if part < -1.0 => "less than 0".to_owned(),
        part if part > 1.0 => format!("{} times what was measured", si(1.0 + part)),
        part => format!("{} {} than was measured", percent(part.abs()), if part < 0.0 { "less" } else { "more" }),
    };
    let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
    format!("the model does not fit:{at} it gives {off}")
}

/// What to say of a prediction of a model that doesn't fit; `None` of one that fits.
pub fn doubtful_prediction(fitted: &FittedModel) -> Option<String> {
    let lack = fitted.lack_of_fit.as_ref()?;
    Some(format!("{}; the intervals don't hold that", does_not_fit(lack)))
}

fn warnings(fit: &Fit) -> String {
    let mut lines = Vec::new();
    lines.extend(lack_of_fit(&fit.fitted));
    if fit.fitted.coefficients.is_empty() {
        lines.push("the model has no coefficients: nothing was fitted".to_owned());
    }
    if fit.fitted.degrees == 0 {
        lines.push("as many coefficients as sets of sizes: nothing tells how far they are off".to_owned());
    }
    if fit.points.len() == 1 && fit.fitted.degrees > 0 && !fit.fitted.coefficients.is_empty() {
        lines.push(
            "one set of sizes: the interval is that of its runs, and lacks what disturbed all of them".to_owned(),
        );
    }
    for names in &fit.collinear {
        let names: Vec<_> = names.iter().map(|name| shown(name).into_owned()).collect();
        lines.push(format!(
            "{} are nearly collinear: these sizes hardly tell them apart; measure sizes further apart, or set one (--set)",
            names.join(" and ")
        ));
    }
    if fit.is_biased {
        lines.push("this solver pulls coefficients towards 0: the intervals don't hold that".to_owned());
    }
    if !fit.culled.is_empty() {
        let sizes: Vec<_> = fit.culled.values().map(sizes_in_words).collect();
        let sets = match sizes.len() {
            1 => "1 set of sizes was".to_owned(),
            count => format!("{count} sets of sizes were"),
        };
        let what = "left out for their times alone, which takes large sizes as well as odd ones";
        lines.push(format!("{sets} {what}: {}", sizes.join(", ")));
    }
    let text: String = lines.iter().map(|line| format!(" ! {}\n", wrapped(line, 3))).collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Models beside one another, the likeliest first.
pub fn choices(choices: &[Choice]) -> String {
    let mut out = format!("{:>10}  {:>14}  {:>8}   MODEL\n", "WEIGHT", "LEFT-OUT ERROR", "R²");
    for choice in choices {
        let left_out = choice.left_out.map_or_else(|| "—".to_owned(), percent);
        let r_squared = choice.fit.r_squared.map_or_else(|| "—".to_owned(), |value| plain(value, 4));
        let likelihood = choice.likelihood.map_or_else(|| "—".to_owned(), percent);
        out += &format!("{likelihood:>10}  {left_out:>14}  {r_squared:>8}   {}\n", shown(choice.model.text()));
    }
    out += &best_of(choices);
    let unknown: Vec<_> =
        choices.iter().filter(|choice| choice.likelihood.is_none()).map(|choice| shown(choice.model.text())).collect();
    if !unknown.is_empty() {
        let text = format!("Too many coefficients for so few sizes to compare: {}.", unknown.join("; "));
        out += &format!(" {}\n", wrapped(&text, 1));
    }
    out + "\n"
}

/// How much likelier the first model is than the next; or which the measurements don't tell apart.
fn best_of(choices: &[Choice]) -> String {
    let likely: Vec<(f64, String)> =
        choices.iter().filter_map(|choice| Some((choice.likelihood?, with_breakpoints(choice)))).collect();
    let [(first, best), (second, next), ..] = likely.as_slice() else { return String::new() };
    let near = likely.iter().filter(|(likelihood, _)| first / likelihood < NEAR).count();
    match first / second {
        _ if near > 2 => format!("\n The measurements hardly tell the first {near} apart.\n"),
        _ if near == 2 => format!("\n The measurements hardly tell these apart:\n   {best}\n   {next}\n"),
        times => {
            let times = if times > 1e6 { "more than a million".to_owned() } else { si(times) };
            let likelier = wrapped(&format!("{times} times likelier than {next}"), 3);
            format!("\n {best}:\n   {likelier}\n{}", as_near(choices))
        }
    }
}

/// The models that are likely by far less, and yet predict sizes that were left out as well as the likeliest does,
/// within chance: a likelihood takes it that one of the models is right, and none may be. Those with a breakpoint
/// predict them better than they should (docs/cost.md).
fn as_near(choices: &[Choice]) -> String {
    let [best, others @ ..] = choices else { return String::new() };
    let is_near = |choice: &&Choice| choice.fit.fitted.breakpoints.is_empty() && choice.predicts_as_well_as(best);
    let near: Vec<_> = others.iter().filter(is_near).map(|choice| shown(choice.model.text())).collect();
    if near.is_empty() {
        return String::new();
    }
    let text = format!(
        "These models predict sizes that the fit did not see as well, within chance, so the data don't rule them out: {}.",
        near.join("; ")
    );
    format!(" {}\n", wrapped(&text, 1))
}

/// The text of a model, with the sizes at which it changes.
fn with_breakpoints(choice: &Choice) -> String {
    let found = choice.fit.fitted.breakpoints.iter();
    let places: String = found.map(|found| format!(", {} = {}", shown(&found.name), si(found.value))).collect();
    format!("{}{places}", shown(choice.model.text()))
}

/// A model that is less than so many times likelier than another one is hardly better.
const NEAR: f64 = 3.0;

/// Which fit finds coefficients for which, in the order in which fits run.
pub fn fit_graph(graph: &DependencyGraph) -> String {
    let list =
        |names: &BTreeSet<String>| names.iter().map(|name| shown(name).into_owned()).collect::<Vec<_>>().join(", ");
    let mut out = String::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        out += &format!("{:>4}. {} finds {}\n", place + 1, shown(&node.name), list(&node.provides));
        for &(from, _) in graph.edges.iter().filter(|(_, to)| *to == place) {
            let taken = graph.nodes[from].provides.intersection(&node.dependencies).cloned().collect();
            out += &format!("      with {} of {}\n", list(&taken), shown(&graph.nodes[from].name));
        }
    }
    out
}

/// Which fit finds coefficients for which, for Graphviz.
pub fn fit_graph_dot(graph: &DependencyGraph) -> String {
    let text = |text: &str| format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = "digraph fits {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for node in &graph.nodes {
        out += &format!("  {};\n", text(&node.name));
    }
    for &(from, to) in &graph.edges {
        let (from, to) = (&graph.nodes[from], &graph.nodes[to]);
        let names: Vec<_> = from.provides.intersection(&to.dependencies).cloned().collect();
        out += &format!("  {} -> {} [label={}];\n", text(&from.name), text(&to.name), text(&names.join(", ")));
    }
    out + "}\n"
}

/// A prediction, and which sizes weren't measured.
pub fn prediction(fitted: &FittedModel, sizes: &[(String, f64)], prediction: &Prediction) -> String {
    let unit = unit(&fitted.response);
    let words: Vec<_> = sizes.iter().map(|(name, size)| format!("{}={}", shown(name), shortest(*size))).collect();
    let words = if words.is_empty() { String::new() } else { words.join(" ") + "  " };
    let (Some((low, high)), Some((next_low, next_high))) = (prediction.interval, prediction.next) else {
        return format!("{words}{}   ±?\n", alone(prediction.value, &unit));
    };
    // No cost is below 0, but where the model says so.
    let [low, next_low] = [low, next_low].map(|low| if prediction.value < 0.0 { low } else { low.max(0.0) });
    let [value, low, high] = with_interval(prediction.value, (low, high), &unit);
    let [_, next_low, next_high] = with_interval(prediction.value, (next_low, next_high), &unit);
    let (level, measurement) = (100.0 * fitted.confidence, shown(&fitted.measurement));
    format!("{words}{value}   {low} to {high} ({level}%)   {measurement}: {next_low} to {next_high}\n")
}
