//! Reads the vendors' metric tables, and collects what isn't right with them.
//!
//! Two forms are read: perf's (`MetricName`, `MetricExpr`, ...; `tools/perf/pmu-events` of Linux 6.12),
//! and that of Intel's perfmon files, where an object has a list of `Metrics` whose `Formula` is over
//! aliases of events and constants.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::{Grouping, Metric, MetricScale, is_name, list};
use crate::events::Tables;
use crate::expr::{Dialect, Expr, Fact, NodeKind, Subject, Variable, parse};
use crate::names::shown;

/// The most problems that are reported.
const MOST_PROBLEMS: usize = 20;

/// Nodes of one formula, aliases put in.
const MAX_NODES: usize = 10_000;

/// Metrics as tables have them, in the order of the files.
#[derive(Clone, Debug, Default)]
pub struct Vendor {
    /// The metrics that nothing is wrong with.
    pub metrics: Vec<Metric>,
    /// What is wrong with others, and in which file; ready for a terminal.
    pub problems: Vec<String>,
    /// How many more problems there are.
    pub untold: usize,
}

impl Vendor {
    /// The metrics of a CPU's tables.
    pub fn of_tables(tables: &Tables) -> Self {
        let names = PmuNames::of(tables.metrics().iter().map(|entry| &entry.fields));
        let mut vendor = Self::default();
        for entry in tables.metrics() {
            vendor.add(&entry.file, &entry.fields, perf_metric, &names);
        }
        vendor
    }

    /// The metrics in the text of one file of either form.
    ///
    /// # Errors
    /// Fails if the text is no table of metrics.
    pub fn of_file(file: &str, text: &str) -> Result<Self, String> {
        let mut vendor = Self::default();
        match serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))? {
            Value::Array(entries) => vendor.add_all(file, &entries, "MetricExpr", perf_metric),
            Value::Object(fields) => match fields.get("Metrics") {
                Some(Value::Array(entries)) => vendor.add_all(file, entries, "Formula", perfmon_metric),
                _ => return Err("an object without a list of Metrics".to_owned()),
            },
            _ => return Err("neither a list of metrics nor an object with one".to_owned()),
        }
        Ok(vendor)
    }

    /// Adds the entries that have a formula; event tables have others beside them.
    fn add_all(&mut self, file: &str, entries: &[Value], formula: &str, read: VendorReader) {
        let entries = || entries.iter().filter_map(Value::as_object).filter(|fields| fields.contains_key(formula));
        let names = PmuNames::of(entries());
        for entry in entries() {
            self.add(file, entry, read, &names);
        }
    }

    fn add(&mut self, file: &str, fields: &Map<String, Value>, read: VendorReader, names: &PmuNames) {
        match read(fields).and_then(|metric| names.apply(metric, unit(fields))) {
            Ok(metric) => self.metrics.push(metric),
            Err(_) if self.problems.len() >= MOST_PROBLEMS => self.untold += 1,
            Err(problem) => {
                let name = ["MetricName", "ArchStdEvent"].into_iter().find_map(|key| fields.get(key)?.as_str());
                let name = shown(name.unwrap_or("a metric without a name")).into_owned();
                self.problems.push(format!("{}: {name}: {problem}", shown(file)));
            }
        }
    }
}

/// The PMU of the cores whose metrics have their names alone.
const CORES: &str = "cpu_core";

/// Names that tell metrics of several PMUs apart, by the `Unit` and the name in small letters.
///
/// The kinds of cores of a processor have metrics of the same names. Those of [`CORES`], else of the first unit, keep
/// them; the others are named as events of a PMU are: `cpu_atom/tma_core_bound/`. A formula means its own unit's.
struct PmuNames(HashMap<(String, String), String>);

impl PmuNames {
    fn of<'a>(entries: impl Iterator<Item = &'a Map<String, Value>>) -> Self {
        let mut units: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
        for fields in entries {
            if let (Some(name), Some(unit)) = (fields.get("MetricName").and_then(Value::as_str), unit(fields)) {
                units.entry(name.to_lowercase()).or_default().push((unit, name));
            }
        }
        let mut names = HashMap::new();
        for (key, metrics) in units {
            let alone = metrics.iter().find(|(unit, _)| *unit == CORES).or(metrics.first()).map(|(unit, _)| *unit);
            for (unit, name) in metrics.iter().filter(|(unit, _)| Some(*unit) != alone) {
                names.insert(((*unit).to_owned(), key.clone()), format!("{unit}/{name}/"));
            }
        }
        Self(names)
    }

    fn find(&self, unit: &str, name: &str) -> Option<&String> {
        self.0.get(&(unit.to_owned(), name.to_lowercase()))
    }

    /// The metric by its name among those of all units; the metrics that it names, too.
    fn apply(&self, metric: Metric, unit: Option<&str>) -> Result<Metric, String> {
        let Some(unit) = unit else { return Ok(metric) };
        let part = |kind: &NodeKind| match kind {
            NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) => {
                parse(&crate::expr::escaped_name(self.find(unit, name)?), Dialect::Metric).ok()
            }
            _ => None,
        };
        let renamed = |expr: Expr| expr.with_parts(MAX_NODES, part).ok_or("its formula is too long");
        let name = self.find(unit, &metric.name).unwrap_or(&metric.name).clone();
        if !is_name(&name) {
            return Err(NO_NAME.to_owned());
        }
        let (formula, threshold) = (renamed(metric.formula)?, metric.threshold.map(renamed).transpose()?);
        Ok(Metric { name, formula, threshold, ..metric })
    }
}

/// The PMU that a metric is of; perf's tables say it of those that not all PMUs of cores have.
fn unit(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("Unit")?.as_str()
}

type VendorReader = fn(&Map<String, Value>) -> Result<Metric, String>;

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{key} isn't text")),
    }
}

fn formula(key: &str, text: &str) -> Result<Expr, String> {
    parse(text, Dialect::Vendor).map_err(|error| format!("{key}, character {}: {error}", error.span.start + 1))
}

const NO_NAME: &str = "its name has control characters, spaces at an end, or not 1 to 100 characters";

/// What both forms have in common.
fn described(fields: &Map<String, Value>, name: &str, formula: Expr) -> Result<Metric, String> {
    if !is_name(name) {
        return Err(NO_NAME.to_owned());
    }
    let description = text(fields, "BriefDescription")?.or(text(fields, "PublicDescription")?);
    Ok(Metric {
        name: name.to_owned(),
        formula,
        scale: MetricScale::default(),
        groups: list(text(fields, "MetricGroup")?.unwrap_or_default()),
        threshold: None,
        description: description.unwrap_or_default().trim().to_owned(),
        grouping: Grouping::Together,
        apart_in: Vec::new(),
    })
}

fn perf_metric(fields: &Map<String, Value>) -> Result<Metric, String> {
    let name = text(fields, "MetricName")?.or(text(fields, "ArchStdEvent")?).ok_or("it has no name")?;
    let expr = text(fields, "MetricExpr")?.ok_or("MetricExpr is missing")?;
    let metric = described(fields, name, formula("MetricExpr", expr)?)?;
    let threshold = text(fields, "MetricThreshold")?.map(|text| formula("MetricThreshold", text)).transpose()?;
    let unit = text(fields, "ScaleUnit")?.unwrap_or_default();
    let scale =
        MetricScale::parse(unit).ok_or_else(|| format!("ScaleUnit '{}' isn't a number and a unit", shown(unit)))?;
    let grouping = match text(fields, "MetricConstraint")? {
        Some("NO_GROUP_EVENTS") => Grouping::Apart,
        Some("NO_GROUP_EVENTS_NMI") => Grouping::ApartUnderWatchdog,
        Some("NO_GROUP_EVENTS_SMT") => Grouping::ApartUnderSmt,
        // Whether a threshold's events join the group is no question: they aren't added.
        Some(_) | None => Grouping::Together,
    };
    let apart_in = list(text(fields, "MetricgroupNoGroup")?.unwrap_or_default());
    Ok(Metric { scale, threshold, grouping, apart_in, ..metric })
}

fn perfmon_metric(fields: &Map<String, Value>) -> Result<Metric, String> {
    let name = text(fields, "LegacyName")?.or(text(fields, "MetricName")?).ok_or("it has no name")?;
    let name = name.strip_prefix("metric_").unwrap_or(name);
    let expr = formula("Formula", text(fields, "Formula")?.ok_or("Formula is missing")?)?;
    let mut aliases = Vec::new();
    for (key, part) in [("Events", event_named as FormulaPart), ("Constants", constant_named)] {
        for entry in fields.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
            let (alias, named) = (text(entry, "Alias")?, text(entry, "Name")?);
            let (alias, named) = (alias.ok_or("an alias is missing")?, named.ok_or("a name is missing")?);
            aliases.push((alias.to_owned(), part(named)?));
        }
    }
    let whole = expr.with_parts(MAX_NODES, |kind| match kind {
        NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) => {
            aliases.iter().find(|(alias, _)| alias == name).map(|(_, part)| part.clone())
        }
        _ => None,
    });
    let metric = described(fields, name, whole.ok_or("Formula is too long")?)?;
    let unit = match text(fields, "UnitOfMeasure")?.unwrap_or_default() {
        "percent" => "%",
        unit => unit,
    };
    Ok(Metric { scale: MetricScale { factor: 1.0, unit: unit.to_owned() }, ..metric })
}

type FormulaPart = fn(&str) -> Result<Expr, String>;

/// `INST_RETIRED.ANY:USER=1` is perf's `INST_RETIRED.ANY:u`.
fn event_named(name: &str) -> Result<Expr, String> {
    let name = match name.split_once(':') {
        None => name.to_owned(),
        Some((event, "USER=1" | "user=1")) => format!("{event}:u"),
        Some((event, "SUP" | "SUP=1" | "sup=1")) => format!("{event}:k"),
        Some(_) => return Err(format!("the event {} has modifiers that have no name in perf", shown(name))),
    };
    let words = crate::expr::escaped_name(&name);
    parse(&words, Dialect::Metric).map_err(|_| format!("{} is no event's name", shown(&name)))
}

/// What Intel's tools know of a system, in perf's words.
fn constant_named(name: &str) -> Result<Expr, String> {
    let dialect = Dialect::Metric;
    let fact = |name: &str| parse(&Fact::Literal(name.to_owned()).to_string(), dialect);
    let found = match name.to_ascii_lowercase().as_str() {
        "durationtimeinseconds" => parse("duration_time", dialect),
        "durationtimeinmilliseconds" => parse("duration_time * 1000", dialect),
        "system.tsc_freq" => fact("system_tsc_freq"),
        "system.socket_count" | "socket_count" => fact("num_packages"),
        "hyperthreading_on" | "system.hyperthreading_on" => fact("smt_on"),
        number => parse(number, dialect),
    };
    let expr = found.map_err(|error| format!("the constant {}: {error}", shown(name)))?;
    let is_known = expr.variables().all(|(variable, _)| variable.subject == Subject::Event("duration_time".into()));
    if is_known { Ok(expr) } else { Err(format!("the constant {} is known to Intel's tools only", shown(name))) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;

    fn one(text: &str) -> Metric {
        let vendor = Vendor::of_file("f.json", text).unwrap();
        assert_eq!(vendor.problems, Vec::<String>::new());
        vendor.metrics.into_iter().next().unwrap()
    }

    #[test]
    fn perfs_fields_become_a_metric() {
        let metric =
            one(r#"[{"EventName": "A"}, {"MetricName": "m", "MetricExpr": "a\\-b / cpu@c@", "ScaleUnit": "100%",
            "MetricGroup": "G;H", "MetricThreshold": "m > 0.1", "MetricConstraint": "NO_GROUP_EVENTS_NMI",
            "MetricgroupNoGroup": "H", "BriefDescription": "words"}]"#);
        assert_eq!(metric.formula.to_string(), "a-b / cpu\\/c\\/");
        assert_eq!((metric.scale.to_string().as_str(), metric.groups.join("+").as_str()), ("100%", "G+H"));
        assert_eq!(metric.threshold.unwrap().to_string(), "m > 0.1");
        assert_eq!((metric.grouping, metric.apart_in), (Grouping::ApartUnderWatchdog, vec!["H".to_owned()]));
    }

    #[test]
    fn metrics_of_several_pmus_are_told_apart() {
        let text = r#"[{"MetricName": "Bound", "MetricExpr": "cpu_atom@a@ / 5", "Unit": "cpu_atom", "MetricThreshold": "Bound > 0.1"},
            {"MetricName": "atoms", "MetricExpr": "1 - bound", "Unit": "cpu_atom"},
            {"MetricName": "bound", "MetricExpr": "cpu_core@b@", "Unit": "cpu_core"},
            {"MetricName": "cores", "MetricExpr": "1 - bound", "Unit": "cpu_core"},
            {"MetricName": "all", "MetricExpr": "bound"}]"#;
        let vendor = Vendor::of_file("f", text).unwrap();
        let lines: Vec<_> =
            vendor.metrics.iter().map(|metric| format!("{} = {}", metric.name, metric.formula)).collect();
        let atom = "cpu_atom\\/Bound\\/";
        let expected = [
            "cpu_atom/Bound/ = cpu_atom\\/a\\/ / 5".to_owned(),
            format!("atoms = 1 - {atom}"),
            "bound = cpu_core\\/b\\/".to_owned(),
            "cores = 1 - bound".to_owned(),
            "all = bound".to_owned(),
        ];
        assert_eq!(lines, expected);
        let threshold = vendor.metrics[0].threshold.as_ref().map(ToString::to_string);
        assert_eq!(threshold, Some(format!("{atom} > 0.1")));
    }

    #[test]
    fn perfmon_formulas_are_over_aliases() {
        let metric =
            one(r#"{"Header": {}, "Metrics": [{"MetricName": "metric_IPC_user", "Formula": "100 * a / (b * t)",
            "Events": [{"Name": "INST_RETIRED.ANY:USER=1", "Alias": "a"}, {"Name": "CPU_CLK.THREAD", "Alias": "b"}],
            "Constants": [{"Name": "DURATIONTIMEINSECONDS", "Alias": "t"}], "UnitOfMeasure": "percent"}]}"#);
        assert_eq!((metric.name.as_str(), metric.scale.unit.as_str()), ("IPC_user", "%"));
        assert_eq!(metric.formula.to_string(), "100 * INST_RETIRED.ANY:u / (CPU_CLK.THREAD * duration_time)");
    }

    #[test]
    fn what_is_wrong_is_told_by_file_and_metric() {
        let vendor = Vendor::of_file(
            "f",
            r#"[{"MetricExpr": "a"}, {"MetricName": "x\u001b", "MetricExpr": "a +"},
            {"MetricName": "y", "MetricExpr": 1}, {"MetricName": "z", "MetricExpr": "a", "ScaleUnit": "x"}]"#,
        );
        let expected = [
            "f: a metric without a name: it has no name",
            "f: x\\x1b: MetricExpr, character 4: expected an event or '(' after '+' (it ends here)",
            "f: y: MetricExpr isn't text",
            "f: z: ScaleUnit 'x' isn't a number and a unit",
        ];
        assert_eq!(vendor.unwrap().problems, expected);
        assert!(Vendor::of_file("f", "3").is_err() && Vendor::of_file("f", "{}").is_err());
    }
}
