//! Prints what commands took at each set of sizes, and how they compare, as tables of plain text.

use std::collections::{BTreeMap, BTreeSet};

use super::difference::p_value;
use super::{column_width, wrapped};
use crate::bench::{
    EXIT_CODE, ProcessStart, StartRole, Swept, Variant, VariantComparison, comparisons, determined, quantities, unit,
};
use crate::compare::{MeanRatio, Verdict};
use crate::cost::samples::{Determinizer, far_off};
use crate::cost::{TIME, Workload, WorkloadFile, sizes_in_words};
use crate::names::shown;
use crate::number::{amount, decimals_of, range, uncertain};

/// What was measured, a line for each command and set of sizes, then how the commands compare with the first.
pub fn sweep(swept: &Swept, determinizer: Determinizer) -> String {
    let (variants, files) = (&swept.variants[..], &swept.files[..]);
    let mut out = legend(variants);
    out += &measured(variants, files, determinizer);
    out += &failures(files);
    out += &outliers(files);
    let compared = comparisons(files);
    if !compared.is_empty() {
        out += &comparison(variants, &compared);
    }
    out
}

/// Which command a label stands for, where there are several.
fn legend(variants: &[Variant]) -> String {
    let mut commands: Vec<(&str, String)> = Vec::new();
    for variant in variants.iter().filter(|variant| !variant.command_name.is_empty()) {
        if commands.iter().all(|(name, _)| *name != variant.command_name) {
            commands.push((&variant.command_name, variant.template.join(" ")));
        }
    }
    let width = column_width(commands.iter().map(|(label, _)| shown(label)));
    let lines = commands.iter().map(|(label, command)| format!("{:<width$}  {}\n", shown(label), shown(command)));
    lines.collect::<String>() + if commands.is_empty() { "" } else { "\n" }
}

/// The sets of sizes of all files, in the order of the first that has them.
fn all_sizes(files: &[WorkloadFile]) -> Vec<&BTreeMap<String, f64>> {
    let mut all: Vec<&BTreeMap<String, f64>> = Vec::new();
    for workload in files.iter().flat_map(|file| &file.workloads) {
        if !all.contains(&&workload.sizes) {
            all.push(&workload.sizes);
        }
    }
    all
}

/// What was measured, in as many tables one below the other as the width takes; then what their numbers are.
fn measured(variants: &[Variant], files: &[WorkloadFile], determinizer: Determinizer) -> String {
    let names = files.first().map(quantities).unwrap_or_default();
    let sizes = column_width(all_sizes(files).into_iter().map(sizes_in_words));
    let fixed = RUNS + 3 + width_of(variants) + 2 + sizes.max("SIZES".len());
    let mut tables: Vec<Vec<MeasuredColumn<'_>>> = Vec::new();
    for group in names.into_iter().flat_map(|name| MeasuredColumn::groups(name, determinizer)) {
        let has_room = |table: &&mut Vec<MeasuredColumn<'_>>| {
            table.iter().chain(&group).map(|column| column.width()).sum::<usize>() + fixed <= WIDTH
        };
        match tables.last_mut().filter(has_room) {
            Some(table) => table.extend(group),
            None => tables.push(group),
        }
    }
    let tables: Vec<String> = tables.iter().map(|columns| table(columns, variants, files, determinizer)).collect();
    let of = match determinizer {
        Determinizer::Percentile(_) => "the 95% interval of the percentile; ±? where too few runs lie beyond it",
        Determinizer::Median => "the 95% interval of the median",
        Determinizer::Mean => "the 95% interval of the mean",
    };
    format!("{}± is {of}\n", tables.join("\n"))
}

/// A column of what was measured.
#[derive(Clone, Copy)]
enum MeasuredColumn<'a> {
    /// The number that stands for all runs, with how far it may be off.
    Number(&'a str),
    /// The mean time of runs.
    MeanTime,
    /// The time of the fastest run.
    LeastTime,
    /// The time of the slowest run.
    MostTime,
}

impl<'a> MeasuredColumn<'a> {
    /// The columns of a quantity, of which those of a group stand in one table: of the time those of its range, too,
    /// and a mean that isn't its number already.
    fn groups(name: &'a str, determinizer: Determinizer) -> Vec<Vec<Self>> {
        let number = vec![Self::Number(name)];
        match (name, determinizer) {
            (TIME, Determinizer::Mean) => vec![number, vec![Self::LeastTime, Self::MostTime]],
            (TIME, _) => vec![number, vec![Self::MeanTime, Self::LeastTime, Self::MostTime]],
            _ => vec![number],
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Number(_) => COLUMN,
            Self::MeanTime | Self::LeastTime | Self::MostTime => TIME_COLUMN,
        }
    }

    fn heading(self) -> String {
        match self {
            Self::Number(name) => heading(&shown(name).to_uppercase()),
            Self::MeanTime => "MEAN".into(),
            Self::LeastTime => "LEAST".into(),
            Self::MostTime => "MOST".into(),
        }
    }

    fn cell(self, workload: &Workload, determinizer: Determinizer) -> String {
        let determinizer = match self {
            Self::Number(name) => return cell(workload, name, determinizer),
            Self::MeanTime => Determinizer::Mean,
            Self::LeastTime => Determinizer::Percentile(0.0),
            Self::MostTime => Determinizer::Percentile(100.0),
        };
        determinizer.value(times(workload)).map_or_else(|| "—".into(), |time| amount(time, &unit(TIME)))
    }
}

/// The width of a quantity's column, of those of a time alone, and of that of the number of runs.
const COLUMN: usize = 20;
const TIME_COLUMN: usize = 9;
const RUNS: usize = 6;
/// The width of the smallest terminal in use.
const WIDTH: usize = 80;

fn table(
    columns: &[MeasuredColumn<'_>],
    variants: &[Variant],
    files: &[WorkloadFile],
    determinizer: Determinizer,
) -> String {
    let width = width_of(variants);
    let mut out = String::new();
    for column in columns {
        out += &format!("{:>width$}", column.heading(), width = column.width());
    }
    out += &format!("{:>RUNS$}   ", "RUNS");
    if width > 0 {
        out += &format!("{:<width$}  ", "COMMAND");
    }
    out += "SIZES\n";
    for sizes in all_sizes(files) {
        for (variant, file) in variants.iter().zip(files) {
            let Some(workload) = file.workloads.iter().find(|workload| workload.sizes == *sizes) else { continue };
            for column in columns {
                out += &format!("{:>width$}", column.cell(workload, determinizer), width = column.width());
            }
            let label = if width > 0 { format!("{:<width$}  ", shown(&variant.label)) } else { String::new() };
            let line = format!("{:>RUNS$}   {label}{}", times(workload).len(), sizes_in_words(sizes));
            out += line.trim_end();
            out.push('\n');
        }
    }
    out
}

/// A name that leaves two spaces of a column of 20; one that is longer is cut in the middle.
fn heading(name: &str) -> String {
    const ROOM: usize = 18;
    let all: Vec<char> = name.chars().collect();
    if all.len() <= ROOM {
        return name.to_owned();
    }
    let (head, tail) = (&all[..ROOM / 2], &all[all.len() - (ROOM - 1 - ROOM / 2)..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// The width of the column of labels; 0 where nothing has to be told apart.
fn width_of(variants: &[Variant]) -> usize {
    let longest = column_width(variants.iter().map(|variant| shown(&variant.label)));
    if longest == 0 { 0 } else { longest.max("COMMAND".len()) }
}

fn times(workload: &Workload) -> &[f64] {
    workload.samples.get(TIME).map_or(&[], Vec::as_slice)
}

fn cell(workload: &Workload, name: &str, determinizer: Determinizer) -> String {
    let samples = workload.samples.get(name).map_or(&[][..], Vec::as_slice);
    let unit = unit(name);
    let number = determined(determinizer, samples);
    number.map_or_else(|| "—".into(), |number| uncertain(number, &unit))
}

/// How many runs failed, if some did.
fn failures(files: &[WorkloadFile]) -> String {
    let workloads = files.iter().flat_map(|file| &file.workloads);
    let codes: Vec<f64> = workloads.filter_map(|workload| workload.samples.get(EXIT_CODE)).flatten().copied().collect();
    match codes.iter().filter(|code| **code != 0.0).count() {
        0 => String::new(),
        failed => format!("{failed} of {} runs ended with another exit code than 0\n", codes.len()),
    }
}

/// How many runs took far longer or shorter than the others of their line, and what may help; nothing if none did.
fn outliers(files: &[WorkloadFile]) -> String {
    let all = files.iter().flat_map(|file| &file.workloads).map(times);
    let (mut far, mut runs, mut is_first) = (0, 0, true);
    for times in all {
        let places = far_off(times);
        (far, runs) = (far + places.len(), runs + times.len());
        is_first &= places.iter().all(|&place| place == 0);
    }
    let (what, help) = match (far, is_first) {
        (0, _) => return String::new(),
        (1, true) => ("1 run, the first of its line,".to_owned(), FIRST_RUNS),
        (_, true) => (format!("{far} of {runs} runs, the first of their lines,"), FIRST_RUNS),
        (_, false) => (format!("{far} of {runs} runs"), OTHER_RUNS),
    };
    wrapped(&format!("{what} took far longer or shorter than the other runs of the same command and size: {help}"), 0)
        + "\n"
}

/// What helps where first runs alone are far off, and where others are.
const FIRST_RUNS: &str = "caches were cold; raise --warmup, or make all runs alike with --prepare";
const OTHER_RUNS: &str = "the machine did something else meanwhile, or the command does not always do the same; end other programs, or keep it on a quiet CPU (--cpu-affinity N)";

/// How commands compare with the first: in one table, or where that is wider than the width in one for each quantity.
fn comparison(variants: &[Variant], compared: &[VariantComparison]) -> String {
    let all: Vec<&VariantComparison> = compared.iter().collect();
    let whole = comparison_table(variants, &all, true);
    let names: BTreeSet<&str> = compared.iter().map(|one| one.event.name.as_str()).collect();
    if names.len() == 1 || whole.lines().all(|line| line.chars().count() <= WIDTH) {
        return format!("\n{whole}{}", notes(variants, compared));
    }
    let mut out = String::new();
    let mut done = BTreeSet::new();
    for name in all.iter().map(|one| one.event.name.as_str()).filter(|name| done.insert(*name)) {
        let of_name: Vec<_> = all.iter().copied().filter(|one| one.event.name == name).collect();
        out += &format!("\n{}\n{}", shown(name), comparison_table(variants, &of_name, false));
    }
    format!("{out}\n{}", notes(variants, compared))
}

/// A line for each comparison, with the name of the quantity or without.
fn comparison_table(variants: &[Variant], compared: &[&VariantComparison], has_names: bool) -> String {
    let label = |one: &VariantComparison| shown(variants.get(one.variant).map_or("", |it| &it.label)).into_owned();
    let of = |title: &str, text: &dyn Fn(&VariantComparison) -> String| {
        let mut column: Vec<String> = compared.iter().map(|one| text(one)).collect();
        column.insert(0, title.to_owned());
        column
    };
    let left = [
        of("QUANTITY", &|one| if has_names { shown(&one.event.name).into_owned() } else { String::new() }),
        of("COMMAND", &label),
        of("SIZES", &|one| sizes_in_words(&one.sizes)),
    ];
    let right = [of("RATIO", &|one| ratio(one.event.ratio()).0), of("INTERVAL", &|one| ratio(one.event.ratio()).1)];
    let p = of("P", &|one| one.event.p.map_or_else(|| "—".into(), p_value));
    let verdicts = of("IS", &|one| verdict(one.event.verdict));
    let mut out = String::new();
    for line in 0..=compared.len() {
        for column in left.iter().filter(|column| column[1..].iter().any(|text| !text.is_empty())) {
            out += &format!("{:<width$}  ", column[line], width = column_width(column));
        }
        for column in &right {
            out += &format!("{:>width$}  ", column[line], width = column_width(column));
        }
        out += &format!("{:>5}  {}\n", p[line], verdicts[line]);
    }
    out
}

/// The ratio and the ends of its interval, with digits that the interval leaves.
pub(super) fn ratio(MeanRatio { value, interval }: MeanRatio) -> (String, String) {
    let width = interval.map_or(0.01, |(low, high)| high - low);
    let decimals = decimals_of(width.max(1e-9), 2).clamp(2.0, 6.0) as usize;
    let text = |number: f64| format!("{number:.decimals$}");
    let missing = || "—".to_owned();
    let ends = interval.map_or_else(missing, |(low, high)| format!("{} to {}", text(low), text(high)));
    (value.map_or_else(missing, text), ends)
}

fn verdict(verdict: Verdict) -> String {
    let needs = verdict.needs().map_or_else(String::new, |runs| format!(" ({runs} runs)"));
    format!("{}{needs}", verdict.word())
}

fn notes(variants: &[Variant], compared: &[VariantComparison]) -> String {
    let first = shown(variants.first().map_or("", |variant| &variant.label));
    let lines = [
        format!("ratio: of the trimmed means, which leave out a seventh of the runs at each end, to {first}"),
        format!(
            "higher, lower: more than chance by a t-test; with 95% confidence all of these verdicts are right ({} tested, P and \
             INTERVAL are corrected for that)",
            compared.iter().filter(|one| one.event.verdict.is_of_both()).count()
        ),
        "within error: no difference was found, and INTERVAL says how large one may be; (N runs): so many of each show it, if \
         it is as it seems"
            .to_owned(),
    ];
    lines.iter().map(|line| wrapped(line, 0) + "\n").collect()
}

/// What starting a process takes, and how a fit is told where that is the constant of a model, or why it is not; `None` where
/// it wasn't measured.
pub fn process_start(file: &WorkloadFile, path: Option<&str>, determinizer: Determinizer) -> Option<String> {
    let ProcessStart { time, role } = ProcessStart::of(file, determinizer)?;
    let unit = unit(TIME);
    let taken = format!("a process that does nothing takes {}", uncertain(time, &unit));
    Some(match role {
        StartRole::Uncertain => {
            format!("{taken}: too uncertain to be the constant of a model; more runs (-r) tell it better")
        }
        StartRole::MostOfCommand(shortest) => {
            let shortest = amount(shortest, &unit);
            format!("{taken}, and the command only {shortest}: most of that is its start; measure larger sizes")
        }
        StartRole::Constant { model } => format!(
            "{taken}, and the likeliest model has that as its constant; to set it:\n      \
             perfprop fit {} --model '{model}' --set intercept={:.1}us",
            path.map_or_else(|| "FILE".into(), shown),
            time.value / 1e3,
        ),
        StartRole::OtherConstant { model, interval: (low, high) } => format!(
            "{taken}, but the likeliest model, {model}, has another constant, {}: let the fit find it, without \
             --set intercept",
            range(low, high, &unit)
        ),
        StartRole::Untold => taken,
    })
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::bench::{Parameter, SweepProgress, variants};
    use crate::cost::{SweepRecord, WorkloadHeader};

    #[test]
    fn headings_leave_two_spaces_between_columns() {
        assert_eq!(heading("CACHE-MISSES"), "CACHE-MISSES");
        let long = heading("L1-DCACHE-LOAD-MISSES");
        assert_eq!((long.as_str(), long.chars().count()), ("L1-DCACHE…D-MISSES", 18));
    }

    /// Two commands at two sizes, five runs each.
    pub(in crate::text) fn two_commands() -> Swept {
        let command = ["./sort", "--by=a|b", "{algo}", "{n}"].map(str::to_owned).to_vec();
        let variants = variants(&[command], &[Parameter::parse("algo=quick,merge").unwrap()]);
        let workload = |n: f64, first: f64, step: f64| Workload {
            sizes: BTreeMap::from([("n".to_owned(), n)]),
            samples: BTreeMap::from([
                (TIME.to_owned(), (0..5).map(|run| (first + step * f64::from(run)) * 1e6).collect()),
                ("page-faults".to_owned(), vec![83.0; 5]),
                ("user_time".to_owned(), vec![5e5; 5]),
            ]),
            order: (0..5).collect(),
        };
        let sweep = SweepRecord {
            events: vec!["page-faults".into()],
            process_start: Some(workload(0.0, 0.5, 0.001)),
            ..SweepRecord::default()
        };
        let file = |workloads: Vec<Workload>| WorkloadFile {
            header: WorkloadHeader { sizes: vec!["n".into()], sweep: Some(sweep.clone()), ..WorkloadHeader::default() },
            workloads,
        };
        let files = vec![
            file(vec![workload(10.0, 1.0, 0.1), workload(20.0, 2.0, 0.1)]),
            file(vec![workload(10.0, 3.0, 0.1), workload(20.0, 2.01, 0.1)]),
        ];
        Swept { variants, files, progress: SweepProgress::default(), error: None, signal: None }
    }

    #[test]
    fn two_commands_side_by_side() {
        crate::goldens::assert_golden!("bench", "two_commands", sweep(&two_commands(), Determinizer::Median));
    }

    #[test]
    fn a_start_is_advised_as_a_constant_only_where_a_fit_finds_it() {
        let of = |constant: f64, count: usize| {
            let mut file = two_commands().files.swap_remove(0);
            let time = |n: usize, run: usize| {
                let off = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0][n - 1] * 0.003 + (run as f64 - 2.0) * 0.004;
                (constant + n as f64 * 1e6) * (1.0 + off)
            };
            let workload = |n: usize| Workload {
                sizes: BTreeMap::from([("n".to_owned(), n as f64)]),
                samples: BTreeMap::from([(TIME.to_owned(), (0..5).map(|run| time(n, run)).collect())]),
                order: Vec::new(),
            };
            file.workloads = (1..=count).map(workload).collect();
            process_start(&file, Some("sort.jsonl"), Determinizer::Mean).unwrap()
        };
        let same = of(5e5, 8);
        let command = "\n      perfprop fit sort.jsonl --model 'intercept + coeff * n' --set intercept=502.0us";
        assert!(same.contains("takes 502 µs ±") && same.ends_with(command), "{same}");
        let other = of(5e6, 8);
        assert!(
            other.ends_with("has another constant, 4.9–5.1 ms: let the fit find it, without --set intercept"),
            "{other}"
        );
        let few = of(5e5, 2);
        assert!(few.starts_with("a process that does nothing takes 502 µs ±") && !few.contains(':'), "{few}");
    }

    #[test]
    fn what_is_wider_than_a_terminal_is_split() {
        let mut swept = two_commands();
        let events = ["page-faults", "task-clock", "context-switches", "L1-dcache-load-misses"].map(str::to_owned);
        for (place, file) in swept.files.iter_mut().enumerate() {
            let more = 1.0 + 0.05 * place as f64;
            file.header.sweep.as_mut().unwrap().events = events.to_vec();
            for workload in &mut file.workloads {
                let many = |(place, name): (usize, &String)| (name.clone(), vec![1e6 + 1e3 * place as f64; 5]);
                workload.samples.extend(events.iter().enumerate().map(many));
                let switches = [1.0, 1.2, 0.9, 1.3, 1.1].map(|part| 1e6 * part * more);
                workload.samples.insert("context-switches".to_owned(), switches.to_vec());
            }
        }
        let text = sweep(&swept, Determinizer::Median);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches("RUNS   COMMAND").count(), 3, "{text}");
        assert!(text.contains("\ncontext-switches\nCOMMAND") && !text.contains("QUANTITY"), "{text}");
    }

    #[test]
    fn a_start_that_is_uncertain_or_most_of_the_time_is_no_constant() {
        let started = |samples: Vec<f64>| {
            let mut file = two_commands().files.swap_remove(0);
            let sweep = file.header.sweep.as_mut().unwrap();
            sweep.process_start.as_mut().unwrap().samples.insert(TIME.to_owned(), samples);
            process_start(&file, None, Determinizer::Median).unwrap()
        };
        let wide = started(vec![1e5, 2e5, 5e5, 8e5, 9e5]);
        assert!(wide.contains("too uncertain") && !wide.contains("--set"), "{wide}");
        let long = started(vec![2e6, 2.01e6, 2e6, 2e6, 2.01e6]);
        assert!(long.contains("measure larger sizes") && !long.contains("--set"), "{long}");
    }

    #[test]
    fn one_command_has_no_comparison_and_failures_are_told() {
        let mut swept = two_commands();
        swept.variants.truncate(1);
        swept.variants[0].label.clear();
        swept.files.truncate(1);
        swept.files[0].workloads[0].samples.insert(EXIT_CODE.into(), vec![0.0, 1.0, 0.0, 2.0, 0.0]);
        let text = sweep(&swept, Determinizer::Percentile(0.0));
        assert!(!text.contains("RATIO") && !text.contains("COMMAND"), "{text}");
        assert!(!text.contains("far longer"), "{text}");
        assert!(text.contains("1.00 ms ±") && text.contains("2 of 5 runs ended"), "{text}");
    }

    #[test]
    fn one_command_has_its_range_and_outliers_in_80_columns() {
        let mut swept = two_commands();
        swept.variants.truncate(1);
        swept.variants[0].label.clear();
        swept.files.truncate(1);
        swept.files[0].header.sweep.as_mut().unwrap().events.clear();
        let told = |determinizer, far: &[usize]| {
            let time = |run: usize| if far.contains(&run) { 9e6 } else { (1.0 + 0.001 * run as f64) * 1e6 };
            let mut swept = Swept { variants: swept.variants.clone(), files: swept.files.clone(), ..two_commands() };
            swept.files[0].workloads[0].samples.insert(TIME.to_owned(), (0..21).map(time).collect());
            let text = sweep(&swept, determinizer);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            text
        };
        let text = told(Determinizer::Median, &[20]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "                TIME     MEAN    LEAST     MOST  RUNS   SIZES");
        assert_eq!(lines[1], "       1.01 ms ±0.4%  1.39 ms  1.00 ms  9.00 ms    21   n=10", "{text}");
        assert_eq!(lines[3], "± is the 95% interval of the median", "{text}");
        assert!(text.contains("\n1 of 26 runs took far longer") && text.contains("--cpu-affinity N"), "{text}");
        let text = told(Determinizer::Mean, &[0]);
        assert!(!text.contains("MEAN") && text.contains("\n1 run, the first of its line, took far"), "{text}");
        assert!(text.contains("raise --warmup") && !told(Determinizer::Median, &[]).contains("far longer"), "{text}");
    }

    #[test]
    fn ratios_have_the_digits_that_their_interval_leaves() {
        let text = |value: f64, low: f64, high: f64| {
            let (value, ends) = ratio(MeanRatio { value: Some(value), interval: Some((low, high)) });
            format!("{value}: {ends}")
        };
        assert_eq!(text(1.5234, 1.48, 1.57), "1.523: 1.480 to 1.570");
        assert_eq!(text(12.34, 9.0, 15.9), "12.34: 9.00 to 15.90");
        assert_eq!(text(1.0, 0.9999, 1.0001), "1.00000: 0.99990 to 1.00010");
        assert_eq!(ratio(MeanRatio::default()), ("—".to_owned(), "—".to_owned()));
    }
}
