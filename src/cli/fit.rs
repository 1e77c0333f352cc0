//! Implements `perfprop fit`: cost models from measurements.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Error;
use super::input::{self, is_dash, refuse_input};
use super::stream::{Stream, say};
use super::text_input::{in_file, text_of};
use crate::bench::nanoseconds;
use crate::charts::fit_picture;
use crate::cost::samples::Determinizer;
use crate::cost::solve::Solver;
use crate::cost::{
    CostModel, DependencyGraph, Emitted, EmittedFit, Fit, FitOptions, FittedRelation, FoundCoefficients, GraphNode,
    Language, NAMED_MODELS, NoRelation, TIME_UNITS, WorkloadFile, candidates, choose, emit, emit_all, emit_relations,
    is_unknown_model, unknown_breakpoints,
};
use crate::names::{nearest, quoted, quoted_path, shown};
use crate::recording::is_recording;
use crate::text;

/// The arguments of `perfprop fit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop fit sort.csv --model 'a + b * n * log2(n)'   time over n: a file with the columns n and time, in ns
  perfprop fit sort.jsonl --model auto                  which growth fits best, and how sure that is
  perfprop fit sort.jsonl --model nlogn --emit rust     a function with its test
  perfprop fit benchmarks/ --set timer=23ns             all files, each after those that it needs")]
pub(super) struct FitArgs {
    /// Measurements: JSON lines of `perfprop bench`, or comma-separated values with a line of names, whose column time is in
    /// nanoseconds, or has its unit in its name (time_ns, time_us, time_ms, time_s); `-` is standard input, and a folder
    /// fits all of its files
    #[arg(value_name = "FILE|DIR")]
    from: PathBuf,
    /// The model: an expression of sizes and coefficients, a model's name, or auto; several are compared
    #[arg(short, long, value_name = "EXPR|NAME|auto", help_heading = "Model")]
    model: Vec<String>,
    /// How coefficients are found
    #[arg(long, value_enum, default_value_t = SolverName::Nnls, help_heading = "Model")]
    solver: SolverName,
    /// How strongly ridge and lasso pull coefficients towards 0 (1 by default)
    #[arg(long, value_parser = alpha, help_heading = "Model")]
    alpha: Option<f64>,
    /// Let lasso find no coefficient below 0, as nnls does anyway
    #[arg(long, help_heading = "Model")]
    positive: bool,
    /// Give a coefficient a value: a time (s, ms, us, ns), or a number in the unit of what is fitted, which is ns of time
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment, help_heading = "Model")]
    set: Vec<(String, SetValue)>,
    /// What is fitted: time, or an event that was counted
    #[arg(long, value_name = "NAME", default_value = crate::cost::TIME, help_heading = "Measurements")]
    response: String,
    /// What stands for the repetitions of a size: mean, median, or a percentile (p0 is the fastest)
    #[arg(
        long,
        alias = "take",
        value_name = "mean|median|pN",
        default_value = "median",
        help_heading = "Measurements"
    )]
    statistic: Determinizer,
    /// Leave out what is so many standard deviations from the mean of all sizes; this takes large sizes away as well as odd ones
    #[arg(long, value_name = "SIGMAS", value_parser = sigmas, help_heading = "Measurements")]
    cull: Option<f64>,
    /// Write the fitted model in a form
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Output")]
    emit: Option<EmittedName>,
    /// Draw measurements, model and what is left as a picture (SVG)
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    plot: Option<PathBuf>,
    /// Print which file of a folder finds coefficients for which, and fit nothing
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", help_heading = "Output")]
    graph: Option<GraphForm>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// The names of solvers.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SolverName {
    /// Least squares with no coefficient below 0
    Nnls,
    /// Least squares
    Ols,
    /// Least squares that pulls coefficients towards 0
    Ridge,
    /// Least squares that makes small coefficients 0
    Lasso,
    /// Least squares in which what lies far off counts for less (Huber)
    Robust,
}

/// The forms of a graph.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum GraphForm {
    /// A line for each file, in the order in which they are fitted
    Text,
    /// Graphviz
    Dot,
}

/// The names of forms.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EmittedName {
    /// The model for `perfprop predict`
    Json,
    /// Names and values of coefficients; a line for each file of a folder
    Csv,
    /// A function in Rust, with its test
    Rust,
    /// A function in C, with its test
    C,
    /// A function in Python, with its test
    Python,
    /// A relation file: the event as a function of other events
    Relations,
}

/// What fits are written as.
enum FitForm {
    Emitted(Emitted),
    Relation,
}

impl From<EmittedName> for FitForm {
    fn from(name: EmittedName) -> Self {
        Self::Emitted(match name {
            EmittedName::Json => Emitted::Json,
            EmittedName::Csv => Emitted::Csv,
            EmittedName::Rust => Emitted::Code(Language::Rust),
            EmittedName::C => Emitted::Code(Language::C),
            EmittedName::Python => Emitted::Code(Language::Python),
            EmittedName::Relations => return Self::Relation,
        })
    }
}

fn alpha(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| *number >= 0.0 && number.is_finite())
        .ok_or_else(|| "expected a number from 0 up".into())
}

fn sigmas(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite()).ok_or_else(|| {
        "expected a number above 0: as many standard deviations from the mean of all sizes are kept".into()
    })
}

/// What a coefficient is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SetValue {
    /// In the unit of what is fitted.
    Plain(f64),
    /// In nanoseconds.
    Time(f64),
}

impl SetValue {
    fn of(text: &str) -> Option<Self> {
        let mut units = TIME_UNITS.into_iter().chain([("µs", 1e3)]);
        let of_unit =
            units.find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * factor));
        let plain = text.parse().ok().map(Self::Plain);
        plain.or(of_unit.map(Self::Time)).filter(|value| value.in_ns().is_finite())
    }

    /// The number; times are in nanoseconds.
    fn in_ns(self) -> f64 {
        match self {
            Self::Plain(number) | Self::Time(number) => number,
        }
    }

    /// Whether what is fitted can have it: a time is a part of times alone.
    fn fits(self, response: &str) -> bool {
        matches!(self, Self::Plain(_)) || nanoseconds(response).is_some()
    }

    /// The number in the unit of what is fitted.
    fn of_response(self, response: &str) -> f64 {
        match self {
            Self::Plain(number) => number,
            Self::Time(number) => number / nanoseconds(response).unwrap_or(1.0),
        }
    }
}

/// A number, which may have a unit of time; times are in nanoseconds.
pub(super) fn number(text: &str) -> Option<f64> {
    SetValue::of(text).map(SetValue::in_ns)
}

fn assignment(text: &str) -> Result<(String, SetValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = SetValue::of(value.trim()).ok_or("expected a number, or a time such as 23ns")?;
    Ok((name.trim().to_owned(), value))
}

pub(super) fn run(args: &FitArgs) -> Result<u8, Error> {
    let is_folder = args.from.is_dir();
    if args.graph.is_some() && !is_folder {
        return Err(Error::Usage("--graph is for a folder of measurements".into()));
    }
    check_solver(args)?;
    if let Some(path) = args.plot.as_deref().filter(|path| path.extension().is_none_or(|ending| ending != "svg")) {
        return Err(in_file(path, "--plot writes SVG: give it a name that ends in .svg"));
    }
    if args.plot.is_some() && is_folder {
        return Err(Error::Usage("--plot is for one file of measurements: name one of the folder's".into()));
    }
    let inputs = if is_folder { files_of(&args.from)? } else { vec![args.from.clone()] };
    for output in args.output.iter().chain(&args.plot) {
        refuse_input(inputs.iter(), output)?;
    }
    let text = if is_folder { fit_folder(args, inputs)? } else { fit_file(args)? };
    match &args.output {
        Some(path) => Stream::write_whole(Some(path), &text)?,
        None => Stream::stdout().print(&text)?,
    }
    Ok(0)
}

/// Refuses options that the solver would ignore.
fn check_solver(args: &FitArgs) -> Result<(), Error> {
    let name = args.solver.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let refused = |what: &str, can: &str| Err(Error::Usage(format!("--solver {name} {what}: choose {can}")));
    match args.solver {
        SolverName::Ols | SolverName::Robust | SolverName::Ridge if args.positive => {
            refused("can't keep coefficients from 0 up (--positive)", "--solver nnls or lasso")
        }
        SolverName::Nnls | SolverName::Ols | SolverName::Robust if args.alpha.is_some() => {
            refused("pulls nothing towards 0 (--alpha)", "--solver ridge or lasso")
        }
        _ => Ok(()),
    }
}

fn options(args: &FitArgs) -> FitOptions {
    let alpha = args.alpha.unwrap_or(1.0);
    let solver = match args.solver {
        SolverName::Nnls => Solver::NonNegative,
        SolverName::Ols => Solver::LeastSquares,
        SolverName::Ridge => Solver::Ridge { alpha },
        SolverName::Lasso => Solver::Lasso { alpha, is_positive: args.positive },
        SolverName::Robust => Solver::Robust,
    };
    FitOptions {
        solver,
        determinizer: args.statistic,
        cull: args.cull,
        overrides: args.set.iter().map(|(name, value)| (name.clone(), value.of_response(&args.response))).collect(),
        response: args.response.clone(),
        ..FitOptions::default()
    }
}

fn read(path: &Path, response: &str) -> Result<WorkloadFile, Error> {
    let text = text_of(path).map_err(|error| in_file(path, error))?;
    if is_recording(text.as_bytes()) {
        let wanted = "fit takes measurements of many sizes:  perfprop bench -P n=1e3,1e4 -o FILE -- COMMAND {n}";
        return Err(input::is_recording(path, wanted));
    }
    let name = path.file_stem().filter(|_| !is_dash(path)).unwrap_or(OsStr::new("model")).to_string_lossy();
    WorkloadFile::parse(&text, &name, response).map_err(|error| in_file(path, error))
}

/// The models that are asked for, or that the file names.
fn models(args: &FitArgs, file: &WorkloadFile, path: &Path) -> Result<Vec<CostModel>, Error> {
    let mut texts: Vec<String> =
        if args.model.is_empty() { file.header.model.iter().cloned().collect() } else { args.model.clone() };
    if texts.is_empty() {
        return Err(in_file(
            path,
            "it names no model: give one with --model, or --model auto, or write \"model\":\"a + b * n\" into its first line",
        ));
    }
    let quantities = file.quantities();
    let is_known = |name: &str| file.header.sizes.iter().any(|size| size == name) || quantities.contains_key(name);
    if let Some(unknown) = args.model.iter().find(|text| *text != "auto" && is_unknown_model(text) && !is_known(text)) {
        return Err(unknown_model(unknown));
    }
    let auto = texts.iter().position(|text| text == "auto");
    if let Some(place) = auto {
        texts.splice(place..=place, candidates(&file.header.sizes));
    }
    let has_name = |text: &String| NAMED_MODELS.iter().any(|model| text.split('(').next() == Some(model.name));
    if let Some(size) = file.header.sizes.iter().find(|size| COEFFICIENTS.contains(&size.as_str()))
        && (auto.is_some() || texts.iter().any(has_name))
    {
        let help = "write the model as an expression with other names, or name the size in another way";
        return Err(in_file(path, format!("the size {} has the name of a coefficient: {help}", quoted(size))));
    }
    let mut models: Vec<CostModel> = Vec::new();
    for text in &texts {
        let model = CostModel::parse(text, &file.header.sizes).map_err(|error| Error::Usage(error.to_string()))?;
        // One that is given twice is one model.
        if models.iter().all(|other| other.expression().to_string() != model.expression().to_string()) {
            models.push(model);
        }
    }
    Ok(models)
}

/// The names of coefficients in models that have names.
const COEFFICIENTS: [&str; 7] = ["intercept", "coeff", "coeff1", "coeff2", "coeff3", "linear_coeff", "log_coeff"];

fn unknown_model(name: &str) -> Error {
    let names = || NAMED_MODELS.iter().map(|model| model.name);
    let near = nearest(name, names().chain(["auto"]));
    let help = match near.as_slice() {
        [] => format!("those are {}, auto", names().collect::<Vec<_>>().join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    Error::Usage(format!("no model is named {}: {help}", quoted(name)))
}

/// Refuses to set what no model has, and sizes, whose values are measured.
fn check_set<'a>(args: &FitArgs, models: impl Iterator<Item = (&'a CostModel, &'a WorkloadFile)>) -> Result<(), Error> {
    if let Some((name, _)) = args.set.iter().find(|(_, value)| !value.fits(&args.response)) {
        let (name, response) = (shown(name), shown(&args.response));
        return Err(Error::Usage(format!("--set {name}: {response} is no time: give a number without a unit")));
    }
    let (mut names, mut all_sizes) = (BTreeSet::new(), BTreeSet::new());
    for (model, file) in models {
        let (sizes, others): (BTreeSet<&str>, BTreeSet<&str>) =
            model.names().into_iter().partition(|name| file.header.sizes.iter().any(|size| size == name));
        names.extend(others);
        all_sizes.extend(sizes);
    }
    let is_size = |name: &str| all_sizes.contains(name) && !names.contains(name);
    if let Some((size, _)) = args.set.iter().find(|(name, _)| is_size(name)) {
        return Err(Error::Usage(format!("--set {}: it is a size, whose values were measured", shown(size))));
    }
    let Some((unknown, _)) = args.set.iter().find(|(name, _)| !names.contains(name.as_str())) else { return Ok(()) };
    let names: Vec<_> = names.into_iter().map(shown).collect();
    Err(Error::Usage(format!("--set {}: no model has this name; there are {}", shown(unknown), names.join(", "))))
}

fn fit_file(args: &FitArgs) -> Result<String, Error> {
    let file = read(&args.from, &args.response)?;
    let models = models(args, &file, &args.from)?;
    check_set(args, models.iter().map(|model| (model, &file)))?;
    let choices = choose(models, &file, &options(args)).map_err(|error| in_file(&args.from, error))?;
    let Some(best) = choices.first() else { return Ok(String::new()) };
    if let Some(path) = &args.plot {
        Stream::write_whole(Some(path), &fit_picture(&best.fit, &best.model))?;
    }
    if let Some(form) = args.emit {
        say_lack_of_fit(&best.fit, "");
        return emitted(form, &best.fit, &best.model, &file.header.name).map_err(|what| in_file(&args.from, what));
    }
    let compared = if choices.len() > 1 { text::choices(&choices) } else { String::new() };
    Ok(compared + &text::fit(&best.fit, WIDTH))
}

/// Tells beside a written model what the report would say, behind a label.
fn say_lack_of_fit(fit: &Fit, label: &str) {
    if let Some(text) = text::lack_of_fit(&fit.fitted) {
        say(&format!("{label}{text}"));
    }
}

fn emitted(form: EmittedName, fit: &Fit, model: &CostModel, name: &str) -> Result<String, NoRelation> {
    match form.into() {
        FitForm::Emitted(form) => Ok(emit(&fit.fitted, model, form, name)),
        FitForm::Relation => Ok(emit_relations(&[(name, &FittedRelation::new(fit, model)?)])),
    }
}

/// The width of reports: that of the smallest terminal in use.
const WIDTH: usize = 80;

/// A file of a folder, with its model.
struct OfFolder {
    path: PathBuf,
    file: WorkloadFile,
    model: CostModel,
}

/// The files of measurements in a folder, sorted.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(|error| in_file(folder, error))?;
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_workload(path)).collect();
    paths.sort();
    if paths.is_empty() {
        return Err(in_file(folder, "there are no files of measurements (.jsonl, .csv) in this folder"));
    }
    Ok(paths)
}

/// Fits these files of a folder, each with what those before it found.
fn fit_folder(args: &FitArgs, paths: Vec<PathBuf>) -> Result<String, Error> {
    let one = |path: PathBuf| -> Result<OfFolder, Error> {
        let file = read(&path, &args.response)?;
        let mut all = models(args, &file, &path)?;
        // Which of several is best is decided before other files are known.
        if all.len() > 1 {
            let choices = choose(all, &file, &options(args)).map_err(|error| in_file(&path, error))?;
            all = choices.into_iter().map(|choice| choice.model).collect();
        }
        Ok(OfFolder { model: all.swap_remove(0), path, file })
    };
    let all: Vec<OfFolder> = paths.into_iter().map(one).collect::<Result<_, _>>()?;
    check_set(args, all.iter().map(|one| (&one.model, &one.file)))?;
    let mut options = options(args);
    let node = |one: &OfFolder| GraphNode {
        name: one.path.to_string_lossy().into_owned(),
        variables: coefficients(one, &options),
    };
    let nodes: Vec<GraphNode> = all.iter().map(node).collect();
    let graph = DependencyGraph::new(&nodes).map_err(|error| in_file(&args.from, error))?;
    for (name, places) in &graph.ambiguous {
        let names: Vec<_> = places.iter().map(|&place| quoted(&graph.nodes[place].name)).collect();
        let (name, first) = (shown(name), names.first().map_or("", String::as_str));
        let is_used = graph.nodes.iter().any(|node| node.dependencies.contains(name.as_ref()));
        let then = if is_used { format!("others use what {first} finds") } else { "each keeps its own".to_owned() };
        say(&format!("{} each find {name}: {then}; give it one value with --set {name}=VALUE", names.join(" and ")));
    }
    match args.graph {
        Some(GraphForm::Text) => return Ok(text::fit_graph(&graph)),
        Some(GraphForm::Dot) => return Ok(text::fit_graph_dot(&graph)),
        None => {}
    }
    let mut fits: Vec<(Fit, &OfFolder)> = Vec::new();
    let mut found: BTreeMap<String, f64> = options.overrides.clone();
    let mut sure = FoundCoefficients::default();
    for (place, node) in graph.nodes.iter().enumerate() {
        let Some(one) = all.iter().find(|one| one.path.to_string_lossy() == node.name) else { continue };
        options.overrides = found.clone();
        options.overrides.retain(|name, _| one.model.names().contains(name.as_str()) && !node.provides.contains(name));
        options.found = sure.only(|name| options.overrides.contains_key(name));
        let fit = Fit::new(&one.model, &one.file, &options).map_err(|error| in_file(&one.path, error))?;
        let counts = |name: &str| graph.ambiguous.get(name).is_none_or(|places| places.first() == Some(&place));
        for coefficient in fit.fitted.coefficients.iter().filter(|coefficient| counts(&coefficient.name)) {
            found.insert(coefficient.name.clone(), coefficient.value);
        }
        sure.add(&fit.fitted, &one.path.file_name().unwrap_or_default().to_string_lossy(), counts);
        fits.push((fit, one));
    }
    texts_of_folder(&fits, args.emit)
}

/// The fits of a folder for people, or in a form.
fn texts_of_folder(fits: &[(Fit, &OfFolder)], form: Option<EmittedName>) -> Result<String, Error> {
    let for_people =
        |(fit, one): &(Fit, &OfFolder)| format!("{}\n{}\n", shown(&one.path.to_string_lossy()), text::fit(fit, WIDTH));
    if form.is_some() {
        fits.iter().for_each(|(fit, one)| say_lack_of_fit(fit, &format!("{}: ", quoted_path(&one.path))));
    }
    match form.map(FitForm::from) {
        None => Ok(fits.iter().map(for_people).collect()),
        Some(FitForm::Emitted(form)) => {
            let files: Vec<_> =
                fits.iter().map(|(_, one)| one.path.file_name().unwrap_or_default().to_string_lossy()).collect();
            let of = fits.iter().zip(&files).map(|((fit, one), file)| EmittedFit {
                fitted: &fit.fitted,
                model: &one.model,
                name: if form == Emitted::Csv { file } else { &one.file.header.name },
            });
            Ok(emit_all(&of.collect::<Vec<_>>(), form))
        }
        Some(FitForm::Relation) => relations_of_folder(fits),
    }
}

/// The fits of a folder as one file of relations.
fn relations_of_folder(fits: &[(Fit, &OfFolder)]) -> Result<String, Error> {
    let mut all = Vec::new();
    for (fit, one) in fits {
        let relation = FittedRelation::new(fit, &one.model).map_err(|what| in_file(&one.path, what))?;
        all.push((one.path.file_stem().unwrap_or_default().to_string_lossy(), relation));
    }
    let all: Vec<_> = all.iter().map(|(name, relation)| (name.as_ref(), relation)).collect();
    Ok(emit_relations(&all))
}

/// The names of a model that are no sizes, no quantities that were measured, and not known; nor breakpoints, which are
/// each file's own.
fn coefficients(one: &OfFolder, options: &FitOptions) -> BTreeSet<String> {
    let breakpoints = unknown_breakpoints(&one.model, &one.file, options);
    let quantities = one.file.quantities();
    let is_found = |name: &&str| {
        !one.file.header.sizes.iter().any(|size| size == name)
            && !quantities.contains_key(*name)
            && !options.overrides.contains_key(*name)
            && !breakpoints.contains(*name)
    };
    one.model.names().into_iter().filter(is_found).map(str::to_owned).collect()
}

fn is_workload(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|ending| ending == "jsonl" || ending == "csv")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_number_without_a_unit_is_in_that_of_the_response() {
        let set = |text: &str, response: &str| {
            let value = SetValue::of(text).unwrap();
            value.fits(response).then(|| value.of_response(response))
        };
        assert_eq!([set("5", "time"), set("5us", "time")], [Some(5.0), Some(5000.0)]);
        assert_eq!([set("5", "latency_ms"), set("5us", "latency_ms")], [Some(5.0), Some(0.005)]);
        assert_eq!([set("5", "cache-misses"), set("5us", "cache-misses")], [Some(5.0), None]);
    }
}
