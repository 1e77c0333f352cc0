//! Tests metrics: the values of the vendors' expressions and tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use perfprop::estimate::EstimatorKind;
use perfprop::events::{Event, Group, GroupBinding, Machine, Resolver, Tables};
use perfprop::expr::{Dialect, Expr, Fact, NodeKind, Subject, Variable, VariableSlot, parse};
use perfprop::metrics::vendor::Vendor;
use perfprop::metrics::{Catalog, Facts, MeasuredScope, Metric, MetricRequest};
use perfprop::monitor::Monitor;
use perfprop::plan::{EventIndex, Fit, Plan};
use perfprop::rates::Uncertain;
use perfprop::relations;
use perfprop::run::{Header, MetricFormula};
use perfprop::sources::{Reading, Round};
use perfprop::units::{CpuNs, WallNs};
use proptest::prelude::*;
use serde::Deserialize;

use crate::builders::{self, SECOND, measured};
use crate::goldens::PMU_EVENTS;

/// A metric of the tables, counts for its names, and what it comes to.
#[derive(Deserialize)]
struct Golden {
    file: String,
    metric: String,
    expr: String,
    values: HashMap<String, f64>,
    literals: HashMap<String, f64>,
    expected: Option<f64>,
}

impl Golden {
    /// What is known of the machine in these goldens; names are in any case of letters.
    fn fact(&self, fact: &Fact) -> Option<f64> {
        match fact {
            Fact::Literal(name) => {
                let named = |literal: &&String| literal.trim_start_matches('#').eq_ignore_ascii_case(name);
                self.literals.keys().find(named).map(|literal| self.literals[literal])
            }
            Fact::HasEvent(_) | Fact::SourceCount(_) => Some(1.0),
            Fact::CpuIs(_) => Some(0.0),
        }
    }

    fn value(&self, expr: &Expr) -> Result<f64, String> {
        let mut slots = Vec::new();
        let known = expr.with_parts(100_000, |kind| match kind {
            NodeKind::Fact(fact) => Expr::number(self.fact(fact)?, Dialect::Metric),
            _ => None,
        });
        let known = known.ok_or("too long")?.folded();
        let program = known.compile(|Variable { subject, .. }| {
            let Subject::Event(name) = subject else { return None };
            slots.push(*self.values.get(name)?);
            Some(VariableSlot(slots.len() - 1))
        });
        let program = program.map_err(|unresolved| format!("{:?}", unresolved[0].variable))?;
        Ok(program.eval(&slots))
    }

    fn mistake(&self) -> Option<String> {
        let text = || -> Result<(), String> {
            let expr = parse(&self.expr, Dialect::Vendor).map_err(|error| error.to_string())?;
            let again = parse(&expr.to_string(), Dialect::Metric).map_err(|error| error.to_string())?;
            for expr in [&expr, &again] {
                let found = self.value(expr)?;
                let is_right = match self.expected {
                    None => !found.is_finite(),
                    Some(expected) => (found - expected).abs() <= 1e-9 * expected.abs(),
                };
                if !is_right {
                    return Err(format!("{found} is not {:?}", self.expected));
                }
            }
            Ok(())
        };
        text().err().map(|error| format!("{}: {}: {error}\n    {}", self.file, self.metric, self.expr))
    }
}

#[test]
fn golden_metrics_of_pmu_events_have_their_values() {
    let Some(path) = PMU_EVENTS.find("metric-goldens.jsonl.gz") else { return };
    let file = File::open(path).unwrap();
    let lines: Vec<_> = BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap).collect();
    assert!(!lines.is_empty());
    let goldens = lines.iter().map(|line| serde_json::from_str::<Golden>(line).unwrap());
    let mistakes: Vec<_> = goldens.filter_map(|golden| golden.mistake()).collect();
    assert!(
        mistakes.is_empty(),
        "{} of {} are wrong:\n{}",
        mistakes.len(),
        lines.len(),
        mistakes[..mistakes.len().min(20)].join("\n")
    );
}

fn metrics(text: &str) -> Vec<Metric> {
    let parsed = relations::parse("f.json", text.as_bytes());
    assert!(parsed.diagnostics.is_empty(), "{}", parsed.diagnostics);
    parsed.metrics
}

fn catalog(text: &str) -> Catalog {
    Catalog::new(metrics(text))
}

#[test]
fn shipped_metrics_are_right_and_have_all_they_name() {
    let catalog = Catalog::new(relations::shipped_metrics().unwrap());
    assert!(catalog.metrics().len() >= 10 && catalog.endless().is_empty());
    let resolver = Resolver::new(Machine::here());
    let facts = Facts::new(&resolver, MeasuredScope::Part);
    let know = |fact: &Fact| facts.know(fact);
    let mut formulas = catalog.formulas(&know);
    for metric in catalog.metrics() {
        for name in MetricRequest::events_of(metric, &mut formulas) {
            assert!(name == "duration_time" || !facts.events(&name).is_empty(), "{}: {name}", metric.name);
        }
        assert!(
            metric.threshold.is_none() || catalog.is_named_in(metric.threshold.as_ref().unwrap()),
            "{}",
            metric.name
        );
    }
}

#[test]
fn metrics_name_metrics_in_any_case_and_what_is_known_is_left_out() {
    let catalog = catalog(
        r##"[{"metric": "Clocks", "formula": "a / 2 if #smt_on else a"},
        {"metric": "ipc", "formula": "i / CLOCKS"}, {"metric": "twice", "formula": "IPC + ipc"}]"##,
    );
    let formula = &catalog.find("TWICE").unwrap().formula;
    let smt = |fact: &Fact| (*fact == Fact::Literal("smt_on".into())).then_some(1.0);
    assert_eq!(catalog.expand(formula, &smt).unwrap().to_string(), "i / (a / 2) + i / (a / 2)");
    assert_eq!(catalog.expand(formula, &|_| Some(0.0)).unwrap().to_string(), "i / a + i / a");
}

#[test]
fn metrics_are_meant_by_name_pattern_and_group() {
    let catalog = catalog(
        r#"[{"metric": "L1", "formula": "a", "groups": "Cache"}, {"metric": "L2", "formula": "b", "groups": "cache;X"},
        {"metric": "cache", "formula": "c"}]"#,
    );
    let names = |wanted: &str| {
        catalog.select(wanted).into_iter().map(|metric| metric.name.clone()).collect::<Vec<_>>().join(",")
    };
    assert_eq!(
        [names("l1"), names("L*"), names("x"), names("cach?"), names("no")],
        ["L1", "L1,L2", "L2", "L1,L2,cache", ""]
    );
    assert_eq!(names("CACHE"), "cache", "a name goes before a group");
    assert_eq!(catalog.similar("L11"), ["L1"]);
}

#[test]
fn what_goes_round_is_told_with_its_chain() {
    let wrong = relations::parse("f", br#"[{"metric": "a", "formula": b}, {"metric": "b", "formula": a}]"#);
    assert!(wrong.metrics.is_empty());
    assert_eq!(wrong.diagnostics.list[0].excerpt.as_ref().unwrap().label, "it is computed from itself: a -> b -> a");
    // Across files, which are right each for itself.
    let both =
        metrics(r#"[{"metric": "a", "formula": b}]"#).into_iter().chain(metrics(r#"[{"metric": "b", "formula": A}]"#));
    let catalog = Catalog::new(both);
    let error = catalog.expand(&catalog.find("b").unwrap().formula, &|_| None).unwrap_err();
    assert_eq!(error.to_string(), "it is computed from itself: a -> b -> a");
}

#[test]
fn formulas_that_would_explode_are_refused_at_once() {
    let chain = |count: usize, formula: fn(usize) -> String| {
        let lines: Vec<_> =
            (0..count).map(|i| format!(r#"{{"metric": "m{i}", "formula": "{}"}}"#, formula(i + 1))).collect();
        relations::parse("f", format!("[{}]", lines.join(",")).as_bytes())
    };
    let doubling = chain(1000, |next| format!("m{next} + m{next}"));
    assert!(doubling.metrics.len() < 20 && !doubling.diagnostics.is_empty());
    let long = chain(2_000, |next| format!("m{next}"));
    assert_eq!(long.metrics.len(), 64);
}

/// Metrics of which each names the one before twice, up to 65,536 nodes, and as many more that name the longest.
fn long_ones(count: usize) -> Catalog {
    let formula = |i: usize| match i {
        0 => "a + b".to_owned(),
        1..=14 => format!("m{0} + m{0}", i - 1),
        i => format!("m14 * {i}"),
    };
    let lines: Vec<_> = (0..count).map(|i| format!(r#"{{"metric": "m{i}", "formula": "{}"}}"#, formula(i))).collect();
    catalog(&format!("[{}]", lines.join(",")))
}

#[test]
fn what_metrics_need_is_told_however_long_their_formulas_are() {
    let catalog = long_ones(1_515);
    let know = |_: &Fact| None;
    let mut formulas = catalog.formulas(&know);
    for metric in catalog.metrics() {
        assert_eq!(formulas.needs(&metric.formula).unwrap().events, ["a", "b"]);
    }
    assert_eq!(formulas.expand(&catalog.find("m14").unwrap().formula).unwrap().nodes().len(), 65_535);
}

#[test]
fn formulas_that_are_too_long_together_are_refused() {
    let catalog = long_ones(61);
    let know = |_: &Fact| None;
    let mut formulas = catalog.formulas(&know);
    let expanded = catalog.metrics().iter().map(|metric| formulas.expand(&metric.formula));
    let (fine, refused): (Vec<_>, Vec<_>) = expanded.partition(Result::is_ok);
    let nodes: usize = fine.into_iter().map(|expr| expr.unwrap().nodes().len()).sum();
    assert!(nodes <= perfprop::metrics::MAX_TOGETHER && !refused.is_empty(), "{nodes}");
    let message = refused[0].as_ref().unwrap_err().to_string();
    assert_eq!(message, "with those before it the formulas have more than 1000000 terms: ask for fewer");
}

#[test]
fn how_deep_metrics_lie_does_not_depend_on_what_was_asked_before() {
    let lines: Vec<_> = (0..100).map(|i| format!(r#"{{"metric": "m{i}", "formula": "m{}"}}"#, i + 1)).collect();
    let metrics = relations::parse("f", format!("[{}]", lines.join(",")).as_bytes());
    // Across files, so that nobody has refused them.
    let all: Vec<_> = lines.iter().flat_map(|line| metrics_of(line)).collect();
    assert!(metrics.metrics.len() == 64 && all.len() == 100);
    let catalog = Catalog::new(all);
    let deep = |order: &mut dyn Iterator<Item = usize>| {
        let know = |_: &Fact| None;
        let mut formulas = catalog.formulas(&know);
        let mut fine: Vec<_> = order.filter(|&i| formulas.needs(&catalog.metrics()[i].formula).is_ok()).collect();
        fine.sort_unstable();
        fine
    };
    assert_eq!(deep(&mut (0..100)), deep(&mut (0..100).rev()));
}

fn metrics_of(line: &str) -> Vec<perfprop::metrics::Metric> {
    metrics(&format!("[{line}]"))
}

#[test]
fn an_import_has_the_first_of_a_name_and_names_of_several_words() {
    let vendor = Vendor::of_file(
        "f",
        r#"[{"MetricName": "m", "MetricExpr": "a"}, {"MetricName": "M", "MetricExpr": "b"},
        {"MetricName": "tma_info_serialization _%_tpause_cycles", "MetricExpr": "c"}]"#,
    );
    let (written, problems) = relations::writable(vendor.unwrap().metrics);
    assert_eq!(problems, ["M: there is one of that name already, which holds"]);
    let again = metrics(&relations::metric_file(&written));
    assert_eq!((again.len(), again[1].name.as_str()), (2, "tma_info_serialization _%_tpause_cycles"));
    assert_eq!(Catalog::new(again).select("tma_info_serialization _%_tpause_cycles").len(), 1);
}

proptest! {
    #[test]
    fn what_is_imported_reads_back(
        entries in prop::collection::vec(
            (
                prop_oneof!["[a-cA-C_ %]{1,6}", "[a-b\u{202e} ]{1,4}", ".{0,110}"],
                prop_oneof!["[a-b+*()@ .:-]{0,9}", "[a-b\\\\\u{202e}/=,-]{1,8}", Just("a if b > 1 else c\\-d".to_owned())],
                ".{0,20}",
                prop_oneof!["[-1-9e.]{1,3}[a-z%/\u{202e} ]{0,5}", Just(String::new())],
                "[a-b; ,\u{202e}]{0,8}",
            ),
            0..6,
        )
    ) {
        let entry = |(name, formula, description, unit, groups)| serde_json::json!({
            "MetricName": name, "MetricExpr": formula, "BriefDescription": description, "ScaleUnit": unit,
            "MetricGroup": groups, "MetricThreshold": formula, "MetricConstraint": "NO_GROUP_EVENTS",
        });
        let text = entries.into_iter().map(entry).collect::<serde_json::Value>().to_string();
        let (written, _) = relations::writable(Vendor::of_file("f", &text).unwrap().metrics);
        let parsed = relations::parse("f", relations::metric_file(&written).as_bytes());
        prop_assert!(parsed.diagnostics.is_empty(), "{}", parsed.diagnostics);
        prop_assert_eq!(parsed.metrics, written);
    }
}

fn request(text: &str, wishes: &[&str]) -> (MetricRequest, Resolver) {
    let resolver = Resolver::new(Machine::here());
    let wishes: Vec<_> = wishes.iter().map(|&wish| wish.to_owned()).collect();
    let request = MetricRequest::new(&wishes, &catalog(text), &Facts::new(&resolver, MeasuredScope::Part)).unwrap();
    (request, resolver)
}

fn grouped(groups: &[Group]) -> String {
    let names = |group: &Group| group.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(",");
    let text = |group: &Group| match group.binding {
        GroupBinding::Free => names(group),
        GroupBinding::Braces | GroupBinding::Weak => format!("{{{}}}", names(group)),
    };
    groups.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// A machine with so many counters.
fn counters(most: usize) -> impl FnMut(&[&Event]) -> Fit {
    move |events| if events.len() <= most { Fit::Fits } else { Fit::TooMany }
}

const FOUR: &str = r#"[{"metric": "two", "formula": "r1 / r2 * page-faults"}, {"metric": "three", "formula": "r2 + r3 + r4"},
    {"metric": "lone", "formula": "r5 / r6", "grouping": "apart"}, {"metric": "near", "formula": "r4 / r7"}]"#;

#[test]
fn events_of_a_metric_are_counted_together_where_they_fit() {
    let (request, resolver) = request(FOUR, &["two", "three", "lone", "near"]);
    let groups = request.add_to(Vec::new(), &mut counters(4));
    assert_eq!(grouped(&groups), "{r2,r3,r4,r1} page-faults r5 r6 {r4,r7}");
    let few = request.add_to(Vec::new(), &mut counters(2));
    assert_eq!(grouped(&few), "r3 {r1,r2} page-faults r5 r6 {r4,r7}");
    let written = request.add_to(resolver.parse("r3,{r4,r7},r9").unwrap(), &mut counters(3));
    assert_eq!(grouped(&written), "{r4,r7} r9 {r2,r3,r4} {r1,r2} page-faults r5 r6");
}

#[test]
fn a_plan_has_the_events_of_each_metric() {
    let (request, _) = request(FOUR, &["two", "near"]);
    let written = Resolver::new(Machine::here()).parse("r11,r12,r13").unwrap();
    let plan = Plan::new(request.add_to(written, &mut counters(2)), &mut counters(2)).unwrap();
    let without_anchors = request.recorded(&plan);
    let plan = plan.linked(|_| vec![vec![EventIndex(0)]], &mut counters(9));
    assert!(!plan.anchors.is_empty());
    let recorded = request.recorded(&plan);
    assert_eq!(recorded, without_anchors, "no number is made of anchors");
    let names = |metric: &MetricFormula| {
        metric.events.iter().map(|(name, at)| (name.clone(), plan.events[at[0].0].name.clone())).collect::<Vec<_>>()
    };
    for metric in &recorded {
        assert!(names(metric).iter().all(|(name, event)| name == event), "{metric:?}");
    }
    assert_eq!(recorded[0].formula, "r1 / r2 * page-faults");
}

#[test]
fn unknown_metrics_and_events_are_told() {
    let resolver = Resolver::new(Machine::here());
    let facts = Facts::new(&resolver, MeasuredScope::Part);
    let catalog = catalog(
        r##"[{"metric": "good", "formula": "page-faults", "groups": "g"}, {"metric": "good,better; best", "formula": "cpu-migrations"},
        {"metric": "bad", "formula": "no-such-event + other-event", "groups": "g"}, {"metric": "fact", "formula": "#nothing"}]"##,
    );
    let request = |wish: &str| MetricRequest::new(&[wish.to_owned()], &catalog, &facts);
    let message = |wish: &str| request(wish).unwrap_err().to_string();
    assert_eq!(message("goood"), "unknown metric 'goood'\n      did you mean good?   all: perfprop list metric");
    let bad = "the metric bad can't be measured here: there is no event no-such-event, other-event";
    assert_eq!(message("bad"), bad);
    assert!(message("fact").ends_with("this machine doesn't tell #nothing"));
    // A name may have what parts a list.
    let groups = |wish: &str| grouped(&request(wish).unwrap().add_to(Vec::new(), &mut counters(4)));
    assert_eq!([groups(" Good,Better; best"), groups("good; good")], ["cpu-migrations", "page-faults"]);
    let skipped = request("g").unwrap().skipped;
    assert_eq!((skipped.len(), skipped[0].name.as_str()), (1, "bad"));
}

/// What is wrong with the second metric of a name. Tables have some twice.
const TWICE: &str = "there is one of that name already, which holds";

#[test]
fn golden_tables_of_pmu_events_become_relation_files() {
    let Some(arch) = PMU_EVENTS.find("arch/x86") else { return };
    let folders = std::fs::read_dir(arch).unwrap();
    let machine = Machine::under(std::path::Path::new("/nonexistent"));
    for folder in folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let tables = Tables::read(&folder, &machine).unwrap();
        let vendor = Vendor::of_tables(&tables);
        assert!(vendor.problems.is_empty(), "{:?}", vendor.problems);
        let count = vendor.metrics.len();
        let (written, problems) = relations::writable(vendor.metrics);
        assert!(problems.iter().all(|problem| problem.ends_with(TWICE)), "{}: {problems:?}", folder.display());
        assert_eq!(written.len() + problems.len(), count, "{}", folder.display());
        let again = metrics(&relations::metric_file(&written));
        assert_eq!(again, written, "{}", folder.display());
        assert!(Catalog::new(again).endless().is_empty());
    }
}

/// Two events of which one was counted for half of a second: 10,000, and 20,000 scaled to 40,000.
fn two_events(relations: &str, metric: MetricFormula) -> Monitor {
    let event = |name: &str| measured(Resolver::new(Machine::here()).parse(name).unwrap().remove(0).events.remove(0));
    let header = Header {
        metrics: vec![metric],
        period_ns: WallNs(SECOND),
        ..builders::header(["page-faults", "context-switches"].map(event))
    };
    let relations = relations::parse("f.json", relations.as_bytes()).relations;
    let mut monitor = builders::monitor(header, relations, EstimatorKind::Linear);
    let reading = |count, running| Some(Reading { count, enabled: CpuNs(SECOND), running: CpuNs(running) });
    let readings = vec![reading(10_000, SECOND), reading(20_000, 500_000_000)];
    monitor.round(&Round { at: WallNs(SECOND), readings, ..Round::default() }, 0);
    monitor
}

#[test]
fn values_are_those_of_the_estimator() {
    let metric = |name: &str, formula: &str| MetricFormula {
        name: name.into(),
        formula: formula.into(),
        threshold: None,
        factor: 1.0,
        unit: String::new(),
        description: String::new(),
        events: [("page-faults".to_owned(), vec![EventIndex(0)]), ("context-switches".to_owned(), vec![EventIndex(1)])]
            .into(),
    };
    let relation = r#"[{"eventFrom": "page-faults", "eventTo": "context-switches", "expectedMean": "5 * {mean}", "weight": 0.25}]"#;
    // 40 + 0.25 x (5 x 10 - 40) = 42.5 a millisecond.
    for (relations, expected) in [("[]", 4.0), (relation, 4.25)] {
        let monitor = two_events(relations, metric("m", "context-switches / page-faults"));
        let row = monitor.metrics().next().unwrap();
        let (run, interval) = (row.over_run().unwrap(), row.over_interval().unwrap());
        assert!(
            (run.value - expected).abs() < 1e-12 && (interval.value - expected).abs() < 1e-12,
            "{run:?} {interval:?}"
        );
        // The one event is exact, so that the error is that of the other, over 10,000.
        let best = monitor.row(1).best().unwrap().scaled(1e-4);
        let (bounds, other) = (run.uncertain().bounds(), best.bounds());
        let is_near = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 1e-9 && (b - d).abs() < 1e-9;
        assert!(bounds.zip(other).is_none_or(|(bounds, other)| is_near(bounds, other)), "{bounds:?} {other:?}");
        assert_eq!(bounds.is_some(), other.is_some());
    }
    // Over wall-clock time: that of the interval that ended last.
    let rate = two_events("[]", metric("m", "page-faults / duration_time"));
    assert_eq!(rate.metrics().next().unwrap().over_run().unwrap().uncertain(), Uncertain::exact(10_000.0));
}

#[test]
fn an_interval_in_which_nothing_was_counted_has_no_value() {
    let event = |name: &str| measured(Resolver::new(Machine::here()).parse(name).unwrap().remove(0).events.remove(0));
    let formula = MetricFormula {
        name: "faults".into(),
        formula: "page-faults / duration_time".into(),
        threshold: None,
        factor: 1.0,
        unit: String::new(),
        description: String::new(),
        events: [("page-faults".to_owned(), vec![EventIndex(0)])].into(),
    };
    let header =
        Header { metrics: vec![formula], period_ns: WallNs(SECOND), ..builders::header([event("page-faults")]) };
    let mut monitor = builders::monitor(header, Vec::new(), EstimatorKind::Scale);
    let mut value = |at: u64, count: u64, time: u64| {
        let reading = Reading { count, enabled: CpuNs(time), running: CpuNs(time) };
        monitor.round(&Round { at: WallNs(at), readings: vec![Some(reading)], ..Round::default() }, 0);
        monitor.metrics().next().unwrap().over_interval().ok().map(|number| number.value)
    };
    // A process that hasn't run yet; then it does, and after that it does nothing, which is known.
    assert_eq!(value(SECOND, 0, 0), None);
    assert_eq!(value(2 * SECOND, 30, SECOND), Some(30.0));
    assert_eq!(value(3 * SECOND, 30, SECOND), Some(0.0));
}
