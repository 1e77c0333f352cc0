//! Tests how often the intervals of fitted cost models hold, by simulation, and that generated functions compute the same.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use perfprop::cost::samples::Determinizer;
use perfprop::cost::solve::Solver;
use perfprop::cost::{
    Choice, CostModel, Emitted, Fit, FitOptions, FoundCoefficients, Language, TIME, Workload, WorkloadFile,
    WorkloadHeader, candidates, choose, emit,
};

use crate::folders::Folder;

/// Uniform numbers between 0 and 1, the same in every run.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        ((mixed ^ (mixed >> 33)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn gaussian(&mut self) -> f64 {
        (-2.0 * self.uniform().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's t with 3 degrees of freedom.
    fn student(&mut self) -> f64 {
        let square: f64 = (0..3).map(|_| self.gaussian().powi(2)).sum();
        self.gaussian() / (square / 3.0).sqrt()
    }
}

/// How measurements are off.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// By the same heavy-tailed amounts at all sizes.
    Student,
    /// By a tenth of their value.
    Relative,
    /// By amounts that go along with those of the run before, where runs are shuffled.
    Correlated,
}

const INTERCEPT: f64 = 500.0;
const FACTOR: f64 = 3.0;
const SIZES: usize = 12;
const RUNS: usize = 30;

fn header() -> WorkloadHeader {
    WorkloadHeader { perfprop_workload: 1, sizes: vec!["n".into()], ..WorkloadHeader::default() }
}

/// Twelve sizes with thirty runs each, in shuffled order.
fn simulated(noise: Noise, random: &mut Random) -> WorkloadFile {
    let size = |place: usize| (10.0 * 10f64.powf(place as f64 * 3.0 / (SIZES - 1) as f64)).round();
    let mut order: Vec<usize> = (0..SIZES * RUNS).map(|run| run % SIZES).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, (random.uniform() * (place + 1) as f64) as usize);
    }
    let mut samples = vec![Vec::new(); SIZES];
    let mut before = 0.0;
    let mut places = vec![Vec::new(); SIZES];
    for (run, place) in order.into_iter().enumerate() {
        places[place].push(run as u32);
        let truth = INTERCEPT + FACTOR * size(place);
        before = 0.5 * before + random.gaussian();
        samples[place].push(
            (truth
                + match noise {
                    Noise::Student => 40.0 * random.student(),
                    Noise::Relative => truth * 0.1 * random.gaussian(),
                    Noise::Correlated => 40.0 * before,
                })
            .max(0.0),
        );
    }
    let workload = |(place, (samples, order)): (usize, (Vec<f64>, Vec<u32>))| Workload {
        sizes: BTreeMap::from([("n".to_owned(), size(place))]),
        samples: BTreeMap::from([(TIME.to_owned(), samples)]),
        order,
    };
    WorkloadFile { header: header(), workloads: samples.into_iter().zip(places).enumerate().map(workload).collect() }
}

/// How many of the intervals of predictions and of both coefficients hold the truth.
fn coverage(noise: Noise, solver: Solver, determinizer: Determinizer, fits: usize) -> [f64; 3] {
    let model = CostModel::parse("a + b * n", &["n".into()]).unwrap();
    let options = FitOptions { solver, determinizer, ..FitOptions::default() };
    let mut random = Random(7);
    let mut held = [0.0; 3];
    for _ in 0..fits {
        let fit = Fit::new(&model, &simulated(noise, &mut random), &options).unwrap().fitted;
        let n = 10.0 * 10f64.powf(3.0 * random.uniform());
        let prediction = fit.predict(&model, &BTreeMap::from([("n".to_owned(), n)])).unwrap().interval;
        let intervals = [prediction, fit.coefficients[0].interval, fit.coefficients[1].interval];
        for ((held, interval), truth) in held.iter_mut().zip(intervals).zip([INTERCEPT + FACTOR * n, INTERCEPT, FACTOR])
        {
            let (low, high) = interval.unwrap();
            *held += f64::from(u8::from((low..=high).contains(&truth))) / fits as f64;
        }
    }
    held
}

#[test]
fn intervals_of_fits_hold_as_often_as_they_say() {
    // 1,000 fits each make the table of docs/cost.md: PERFPROP_FITS=1000.
    let fits = std::env::var("PERFPROP_FITS").ok().and_then(|fits| fits.parse().ok()).unwrap_or(200);
    let solvers = [
        ("nnls", Solver::NonNegative, Determinizer::default()),
        ("robust", Solver::Robust, Determinizer::default()),
        ("least squares", Solver::LeastSquares, Determinizer::default()),
        ("least squares of means", Solver::LeastSquares, Determinizer::Mean),
    ];
    for noise in [Noise::Student, Noise::Relative, Noise::Correlated] {
        for (name, solver, determinizer) in solvers {
            let held = coverage(noise, solver, determinizer, fits);
            eprintln!("| {noise:?} | {name} | {:.3} | {:.3} | {:.3} |", held[0], held[1], held[2]);
            // 0.92 less what 200 fits may be off by chance.
            let least = 0.92 - 2.0 * (0.92 * 0.08 / fits as f64).sqrt();
            assert!(held.iter().all(|held| *held >= least), "{noise:?} {name}: {held:?}");
        }
    }
}

/// Measurements of a model without errors.
fn exact(sizes: &[f64], time: impl Fn(f64) -> f64) -> WorkloadFile {
    let workload = |&n: &f64| Workload {
        sizes: BTreeMap::from([("n".to_owned(), n)]),
        samples: BTreeMap::from([(TIME.to_owned(), vec![time(n)])]),
        order: Vec::new(),
    };
    WorkloadFile { header: header(), workloads: sizes.iter().map(workload).collect() }
}

#[test]
fn what_another_fit_found_is_as_uncertain_as_it_was_there() {
    // Five times of a timer, and a sort at one size twice as often, less the timer: b = mean / 2 - a / 2 by hand.
    let timer = exact(&[1.0, 2.0, 3.0, 4.0, 5.0], |n| 20.0 + 3.0 * (n - 3.0));
    let sort = exact(&[2.0, 2.0, 2.0, 2.0, 2.0, 2.0], |_| 50.0);
    let model = |text: &str| CostModel::parse(text, &["n".into()]).unwrap();
    let first = Fit::new(&model("a"), &timer, &FitOptions::default()).unwrap().fitted;
    let mut found = FoundCoefficients::default();
    found.add(&first, "timer.jsonl", |_| true);
    let overrides = BTreeMap::from([("a".to_owned(), first.coefficients[0].value)]);
    let options = FitOptions { overrides, found, ..FitOptions::default() };
    let second = Fit::new(&model("a + b * n"), &sort, &options).unwrap().fitted;
    let (of_a, of_b) = (first.coefficients[0].error.unwrap(), second.coefficients[0].error.unwrap());
    // Variance 22.5 of five; the sort's own is 0.
    assert!((of_a - 4.5_f64.sqrt()).abs() < 1e-9 && (of_b - 0.5 * of_a).abs() < 1e-9, "{of_a} {of_b}");
    assert_eq!(second.degrees, 5, "its own; intervals have the four of the timer, from which all errors come");
    // At n = 2 the errors of a and b cancel, at 0 that of a is left.
    let width = |n: f64| {
        let found = second.predict(&model("a + b * n"), &BTreeMap::from([("n".to_owned(), n)])).unwrap();
        found.interval.unwrap().1 - found.value
    };
    let of_first = first.coefficients[0].interval.unwrap().1 - first.coefficients[0].value;
    assert!(width(2.0) < 1e-6 && (width(0.0) - of_first).abs() < 1e-6, "{} {}", width(2.0), width(0.0));
}

/// How many intervals hold the truth where one file finds the constant of another one, with so many sizes each: of the other's
/// coefficient, and of a prediction.
fn injected_coverage([clock_sizes, sort_sizes]: [usize; 2], noise: f64, fits: usize) -> [f64; 2] {
    let model = |text: &str| CostModel::parse(text, &["n".into()]).unwrap();
    let (clock_model, sort_model) = (model("timer"), model("timer + swap * n"));
    let mut random = Random(11);
    let mut held = [0.0; 2];
    for _ in 0..fits {
        let clock = grown(|_| INTERCEPT, clock_sizes, 5, noise, &mut random);
        let sort = grown(|n| INTERCEPT + 0.01 * n, sort_sizes, 5, noise, &mut random);
        let first = Fit::new(&clock_model, &clock, &FitOptions::default()).unwrap().fitted;
        let mut found = FoundCoefficients::default();
        found.add(&first, "clock", |_| true);
        let overrides = BTreeMap::from([("timer".to_owned(), first.coefficients[0].value)]);
        let options = FitOptions { overrides, found, ..FitOptions::default() };
        let second = Fit::new(&sort_model, &sort, &options).unwrap().fitted;
        let n = 1e3 * 10f64.powf(3.0 * random.uniform());
        let prediction = second.predict(&sort_model, &BTreeMap::from([("n".to_owned(), n)])).unwrap().interval;
        let intervals = [(second.coefficients[0].interval, 0.01), (prediction, INTERCEPT + 0.01 * n)];
        for (held, (interval, truth)) in held.iter_mut().zip(intervals) {
            *held +=
                f64::from(u8::from(interval.is_some_and(|(low, high)| (low..=high).contains(&truth)))) / fits as f64;
        }
    }
    held
}

#[test]
fn intervals_hold_where_another_file_found_a_coefficient() {
    let fits = std::env::var("PERFPROP_FITS").ok().and_then(|fits| fits.parse().ok()).unwrap_or(100);
    for sizes in [[3, 12], [5, 12], [12, 12]] {
        for noise in [0.02, 0.1] {
            let held = injected_coverage(sizes, noise, fits);
            eprintln!("| {sizes:?} | {noise} | {:.3} | {:.3} |", held[0], held[1]);
            let least = 0.92 - 2.0 * (0.92 * 0.08 / fits as f64).sqrt();
            assert!(held.iter().all(|held| *held >= least), "{sizes:?} {noise}: {held:?}");
        }
    }
}

#[test]
fn the_model_that_made_the_data_is_the_likeliest() {
    let file = exact(&[10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0], |n| 50.0 + 2.0 * n * (n + 1.0).log2());
    let models = ["affine", "nlogn", "quadratic"].map(|name| CostModel::parse(name, &["n".into()]).unwrap());
    let choices = choose(models.into(), &file, &FitOptions::default()).unwrap();
    assert_eq!(choices[0].model.text(), "nlogn(n)");
    assert!(choices[0].likelihood.unwrap() > 0.999 && choices[0].left_out.unwrap() < 1e-9);
}

/// The time of a size.
type Growth = fn(f64) -> f64;

/// How times grow in a simulation: smooth ones, and two whose growth doubles in the middle of the sizes.
const GROWTHS: [(&str, bool, Growth); 5] = [
    ("a + b * n", false, |n| 2e4 + 2.0 * n),
    ("n log n", false, |n| 2.7e5 + 2.0 * n * (1.0 + n).log2()),
    ("quadratic", false, |n| 2e8 + 2.0 * n * n),
    ("bend", true, |n| 2e4 + 2.0 * n.min(MIDDLE) + 4.0 * (n - MIDDLE).max(0.0)),
    ("jump", true, |n| 2e3 + if n <= MIDDLE { 2.0 * n } else { 4.0 * n }),
];
const MIDDLE: f64 = 31_622.8;

/// Sizes, runs of each, and the part of the time by which these are off.
const DESIGNS: [(usize, usize, f64); 7] =
    [(12, 30, 0.1), (12, 1, 0.1), (12, 1, 0.05), (12, 3, 0.05), (20, 30, 0.1), (40, 30, 0.1), (8, 30, 0.05)];

/// Sizes from 1,000 to 1,000,000 that were measured so often, each run off by a part of its time.
fn grown(time: Growth, sizes: usize, runs: usize, noise: f64, random: &mut Random) -> WorkloadFile {
    let mut workload = |place: usize| {
        let n = (1e3 * 10f64.powf(3.0 * place as f64 / (sizes - 1) as f64)).round();
        let samples = (0..runs).map(|_| time(n) * (1.0 + noise * random.gaussian()).max(0.1)).collect();
        let sizes = BTreeMap::from([("n".to_owned(), n)]);
        Workload { sizes, samples: BTreeMap::from([(TIME.to_owned(), samples)]), order: Vec::new() }
    };
    WorkloadFile { header: header(), workloads: (0..sizes).map(&mut workload).collect() }
}

/// The part of the series for which a model with a breakpoint is the best, by likelihood and by the error of what is left out.
fn broken(growth: Growth, (sizes, runs, noise): (usize, usize, f64), series: usize) -> [f64; 2] {
    let mut random = Random(7);
    let mut broken = [0.0; 2];
    for _ in 0..series {
        let file = grown(growth, sizes, runs, noise, &mut random);
        let model = |text: &String| CostModel::parse(text, &file.header.sizes).unwrap();
        let models = candidates(&file.header.sizes).iter().map(model).collect();
        let choices = choose(models, &file, &FitOptions::default()).unwrap();
        let error = |choice: &&Choice| choice.left_out.unwrap_or(f64::INFINITY);
        let least = choices.iter().min_by(|a, b| error(a).total_cmp(&error(b))).unwrap();
        for (broken, best) in broken.iter_mut().zip([&choices[0], least]) {
            *broken += f64::from(u8::from(!best.fit.fitted.breakpoints.is_empty())) / series as f64;
        }
    }
    broken
}

#[test]
fn a_breakpoint_is_found_where_one_is_and_nowhere_else() {
    // 200 series each make the table of docs/cost.md: PERFPROP_SERIES=200.
    let asked: Option<usize> = std::env::var("PERFPROP_SERIES").ok().and_then(|series| series.parse().ok());
    let (designs, series) = (&DESIGNS[..asked.map_or(2, |_| DESIGNS.len())], asked.unwrap_or(2));
    for &design in designs {
        let mut wrong = Vec::new();
        for (name, is_broken, growth) in GROWTHS {
            let [likelihood, left_out] = broken(growth, design, series);
            eprintln!("| {design:?} | {name} | {likelihood:.3} | {left_out:.3} |");
            if !is_broken {
                wrong.push(likelihood);
            } else if design.0 >= 12 && design.1 > 1 {
                assert!(likelihood >= 0.95, "{name} {design:?}: {likelihood}");
            }
        }
        // 0.05, and what few series may be off by chance.
        let most = 0.05 + 2.0 * (0.05 * 0.95 / (wrong.len() * series) as f64).sqrt();
        assert!(wrong.iter().sum::<f64>() / wrong.len() as f64 <= most, "{design:?}: {wrong:?}");
    }
}

#[test]
fn generated_functions_compute_what_the_model_does() {
    let text =
        "let f(x) = x * sqrt(x); let big = n > 50; a + b * f(n) + c * (max(n, 7) if big else pow(n, 2) / 9) + c * f(n)";
    let model = CostModel::parse(text, &["n".into()]).unwrap();
    let file = exact(&[1.0, 5.0, 20.0, 60.0, 90.0, 200.0], |n| 5.0 + n * n);
    let fit = Fit::new(&model, &file, &FitOptions { solver: Solver::LeastSquares, ..FitOptions::default() }).unwrap();
    let folder = Folder::new();
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).current_dir(&*folder).output().ok().map(|output| output.status.success())
    };
    let all = [(Language::C, "model.c"), (Language::Python, "model.py"), (Language::Rust, "model.rs")];
    for (language, file) in all {
        fs::write(folder.join(file), emit(&fit.fitted, &model, Emitted::Code(language), "cost of it")).unwrap();
    }
    let rust = run("rustc", &["--test", "--edition=2021", "-o", "rust-test", "model.rs"]);
    let c = run("cc", &["-DPERFPROP_TEST", "-o", "c-test", "model.c", "-lm"]);
    assert_eq!((rust, run("./rust-test", &[])), (Some(true), Some(true)));
    assert_eq!((c, run("./c-test", &[])), (Some(true), Some(true)));
    match run("python3", &["model.py"]) {
        Some(is_right) => assert!(is_right),
        None => eprintln!("skipped: no python3"),
    }
}

#[test]
fn generated_functions_have_the_models_value_where_it_is_0_or_not_computed() {
    assert_same_in_all_languages(
        "let part = 1 / n; a + b * (n & 12 | 1) + c * d_ratio(n + 1, n * 2 - 8) \
         + d * (part * sqrt(part) + d_ratio(n, part) if n > 0 else n | 5)",
    );
}

#[test]
fn generated_functions_have_the_models_value_where_constants_are_negative() {
    let values = assert_same_in_all_languages(
        "-a + -b * n + c * (sqrt(-(0 - 4) + n) + (max(-n, -7) - -3) * (n > -1)) \
         + d * (n % -3 + d_ratio(n, -2) + (pow(2, -1) * (n & -2) if n - -1 else -(-2 - n)))",
    );
    assert!(values["a"] < 0.0 || values["b"] < 0.0, "{values:?}");
}

/// Fits a model, holds what functions of it compute with what it does itself, and returns the coefficients.
fn assert_same_in_all_languages(text: &str) -> BTreeMap<String, f64> {
    let model = CostModel::parse(text, &["n".into()]).unwrap();
    let file = exact(&[1.0, 5.0, 20.0, 60.0, 90.0, 200.0], |n| 5.0 + n * n);
    let fit = Fit::new(&model, &file, &FitOptions { solver: Solver::LeastSquares, ..FitOptions::default() }).unwrap();
    let values = fit.fitted.values();
    const SIZES: [f64; 4] = [0.0, 4.0, 7.5, 1e6];
    let expected = SIZES.map(|n| model.value(|name| if name == "n" { Some(n) } else { values.get(name).copied() }));
    let folder = Folder::new();
    let calls = |call: &dyn Fn(&str) -> String| SIZES.map(|n| call(&format!("cost({n:?})"))).concat();
    let all = [
        (
            Language::C,
            "c",
            format!("#include <stdio.h>\nint main(void) {{{}}}", calls(&|n| format!("printf(\"%.17g\\n\", {n});"))),
        ),
        (Language::Python, "py", calls(&|n| format!("print({n})\n"))),
        (Language::Rust, "rs", format!("fn main() {{{}}}", calls(&|n| format!("println!(\"{{}}\", {n});")))),
    ];
    for (language, ending, main) in all {
        let code = emit(&fit.fitted, &model, Emitted::Code(language), "cost") + "\n" + &main;
        fs::write(folder.join(format!("model.{ending}")), &code).unwrap();
        let run = |words: &[&str]| Command::new(words[0]).args(&words[1..]).current_dir(&*folder).output().ok();
        let built = match language {
            Language::C => run(&["cc", "-Wall", "-Werror", "-o", "of-c", "model.c", "-lm"]),
            Language::Rust => run(&["rustc", "--edition=2021", "-Dwarnings", "-o", "of-rs", "model.rs"]),
            Language::Python => None,
        };
        assert!(built.is_none_or(|built| built.status.success()), "{code}");
        let program = format!("./of-{ending}");
        let words = if ending == "py" { vec!["python3", "model.py"] } else { vec![program.as_str()] };
        let Some(ran) = run(&words) else {
            eprintln!("skipped: no {ending}");
            continue;
        };
        let out = String::from_utf8(ran.stdout).unwrap();
        let found: Vec<f64> = out.lines().map(|line| line.parse().unwrap()).collect();
        let is_near = |(found, expected): (&f64, &Option<f64>)| {
            expected.is_some_and(|expected| (found - expected).abs() <= 1e-9 * expected.abs())
        };
        assert!(
            found.len() == SIZES.len() && found.iter().zip(&expected).all(is_near),
            "{found:?} {expected:?} {code}"
        );
    }
    values
}

#[test]
fn names_that_a_language_has_taken_get_an_underscore() {
    // Sizes and functions by names that mean something else in one language or another.
    for (size, function) in
        [("int", "for"), ("lambda", "expected"), ("fn", "main"), ("math", "log2"), ("part1", "min"), ("self", "self")]
    {
        let text = format!("a + b * ({size} + 1) * log2({size} + 1) + c * max({size}, 7)");
        let model = CostModel::parse(&text, &[size.to_owned()]).unwrap();
        let mut file = exact(&[1.0, 5.0, 20.0, 60.0, 90.0, 200.0], |n| 5.0 + n * n);
        file.header.sizes = vec![size.to_owned()];
        for workload in &mut file.workloads {
            workload.sizes = BTreeMap::from([(size.to_owned(), workload.sizes["n"])]);
        }
        let fit =
            Fit::new(&model, &file, &FitOptions { solver: Solver::LeastSquares, ..FitOptions::default() }).unwrap();
        let folder = Folder::new();
        for (language, file) in [(Language::C, "model.c"), (Language::Python, "model.py"), (Language::Rust, "model.rs")]
        {
            fs::write(folder.join(file), emit(&fit.fitted, &model, Emitted::Code(language), function)).unwrap();
        }
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).current_dir(&*folder).output().ok()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Some((output.status.success(), said))
        };
        let right = Some((true, String::new()));
        let rust = ["--test", "--edition=2021", "-Dwarnings", "-o", "rust-test", "model.rs"];
        assert_eq!(run("rustc", &rust), right, "{size} {function}");
        assert_eq!(
            run("cc", &["-Wall", "-Werror", "-DPERFPROP_TEST", "-o", "c-test", "model.c", "-lm"]),
            right,
            "{size} {function}"
        );
        assert_eq!(run("./c-test", &[]), right);
        assert!(run("python3", &["model.py"]).is_none_or(|found| found.0), "{size} {function}");
        let python = fs::read_to_string(folder.join("model.py")).unwrap();
        assert!(python.contains("):\n    \"\"\"The time in nanoseconds of "), "{python}");
    }
}

/// The function that `perfprop fit --emit rust` wrote for the merge sort of the pictures.
mod merge_sort_fit {
    #![allow(missing_docs, unreachable_pub, unused_parens, clippy::all, reason = "it is generated, for any reader")]
    include!("../../screenshots/fits/sort.rs");
}

#[test]
fn the_generated_function_of_a_sort_is_what_its_measurements_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("screenshots/fits");
    let text = fs::read_to_string(folder.join("sort.jsonl")).unwrap();
    let file = WorkloadFile::parse(&text, "sort", TIME).unwrap();
    let model = CostModel::parse("nlogn", &["n".into()]).unwrap();
    let fit = Fit::new(&model, &file, &FitOptions::default()).unwrap();
    for workload in &file.workloads {
        let n = workload.sizes["n"];
        let fitted = fit.fitted.predict(&model, &workload.sizes).unwrap().value;
        let written = merge_sort_fit::merge_sort(n);
        assert!((written - fitted).abs() <= 1e-9 * fitted, "{n}: {written} instead of {fitted}");
        // The median of what was measured is near.
        let mut times = workload.samples[TIME].clone();
        times.sort_by(f64::total_cmp);
        let measured = times[times.len() / 2];
        assert!((written - measured).abs() <= 0.25 * measured, "{n}: {written} instead of {measured}");
    }
}

#[test]
fn sizes_that_took_nothing_are_no_surer_than_others() {
    // One of five runs took n where n is small, and four where it is large: half of the medians are 0.
    let runs = |n: u32, of: u32| (0..5).map(move |run| format!("{n},{}\n", if run < of { n } else { 0 }));
    let small = [10, 40, 80].into_iter().flat_map(|n| runs(n, 1));
    let large = [160, 640, 2560].into_iter().flat_map(|n| runs(n, 4));
    let text = format!("n,count\n{}", small.chain(large).collect::<String>());
    let file = WorkloadFile::parse(&text, "sort", "count").unwrap();
    let options = FitOptions { response: "count".into(), ..FitOptions::default() };
    let fit = Fit::new(&CostModel::parse("a + b * n", &["n".into()]).unwrap(), &file, &options).unwrap();
    let b = fit.fitted.coefficients.iter().find(|found| found.name == "b").unwrap().value;
    assert!((0.8..1.2).contains(&b), "{b}");
}

/// 4.5 ms and 50 ms times the power of n over 1e6, off by up to 3 % in ways that no power has, in some unit of n.
fn in_unit(power: f64, unit: f64) -> WorkloadFile {
    let mut file = exact(&log_sizes(12), |n| 0.0 * n);
    for (place, workload) in file.workloads.iter_mut().enumerate() {
        let n = workload.sizes["n"];
        let time = (4.5e6 + 50e6 * (n / 1e6).powf(power)) * (1.0 + 0.01 * ((place * 5) % 7) as f64 - 0.03);
        workload.sizes.insert("n".to_owned(), n * unit);
        workload.samples.insert(TIME.to_owned(), vec![time]);
    }
    file
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    #[test]
    fn units_of_sizes_change_coefficients_by_themselves_alone(digits in -25..25_i32, power in 1..4_i32, solver in 0..3_usize) {
        let solver = [Solver::NonNegative, Solver::LeastSquares, Solver::Robust][solver];
        let options = FitOptions { solver, ..FitOptions::default() };
        let model = CostModel::parse(&format!("a + b * pow(n, {power})"), &["n".into()]).unwrap();
        let unit = 10f64.powi(digits);
        let [one, other] = [1.0, unit].map(|unit| Fit::new(&model, &in_unit(f64::from(power), unit), &options).unwrap());
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-7 * a.abs();
        let value = |fit: &Fit, place: usize| fit.fitted.coefficients[place].value;
        proptest::prop_assert!(value(&one, 0) > 4e6 && near(value(&one, 0), value(&other, 0)));
        proptest::prop_assert!(near(value(&one, 1), value(&other, 1) * unit.powi(power)));
        proptest::prop_assert!(one.points.iter().zip(&other.points).all(|(a, b)| near(a.predicted, b.predicted)));
        proptest::prop_assert!(near(one.r_squared.unwrap(), other.r_squared.unwrap()));
        proptest::prop_assert!(near(one.condition.unwrap(), other.condition.unwrap()));
        let error = |fit: &Fit| fit.fitted.coefficients[1].error.unwrap();
        proptest::prop_assert!(near(error(&one), error(&other) * unit.powi(power)));
    }
}

#[test]
fn units_of_sizes_change_no_choice() {
    // Logarithms of a size aren't the same in another unit, so that a power made the data.
    for (power, wanted) in [(2.0, "intercept + coeff * n * n"), (3.0, "intercept + coeff * pow(n, 3)")] {
        for digits in [0, 3, 9, 15, 25] {
            let file = in_unit(power, 10f64.powi(digits));
            let texts = candidates(&file.header.sizes);
            let models = texts.iter().map(|text| CostModel::parse(text, &file.header.sizes).unwrap());
            let choices = choose(models.collect(), &file, &FitOptions::default()).unwrap();
            assert_eq!(choices[0].model.text(), wanted, "{digits}");
            assert!(choices[0].fit.fitted.lack_of_fit.is_none());
        }
    }
}

#[test]
fn one_column_twice_in_any_unit_is_told_and_leaves_no_condition() {
    for digits in [-20, 0, 20] {
        let model = CostModel::parse("a + b * n + c * (n + n)", &["n".into()]).unwrap();
        let fit = Fit::new(&model, &in_unit(1.0, 10f64.powi(digits)), &FitOptions::default()).unwrap();
        assert_eq!((fit.condition, fit.collinear), (None, vec![vec!["b".to_owned(), "c".to_owned()]]));
    }
}

/// Counts at sets of sizes, with the same result in each of so many runs.
fn repeated(names: &[&str], sets: &[Vec<f64>], runs: usize, count: impl Fn(&[f64]) -> f64) -> WorkloadFile {
    let workload = |set: &Vec<f64>| Workload {
        sizes: names.iter().map(|name| (*name).to_owned()).zip(set.iter().copied()).collect(),
        samples: BTreeMap::from([(TIME.to_owned(), vec![count(set); runs])]),
        order: Vec::new(),
    };
    let sizes = names.iter().map(|name| (*name).to_owned()).collect();
    let header = WorkloadHeader { sizes, ..header() };
    WorkloadFile { header, workloads: sets.iter().map(workload).collect() }
}

/// The best of the models, or of those that auto compares.
fn best_of(file: &WorkloadFile, model: &str) -> Choice {
    let sizes = &file.header.sizes;
    let texts = if model == "auto" { candidates(sizes) } else { vec![model.to_owned()] };
    let models = texts.iter().map(|text| CostModel::parse(text, sizes).unwrap());
    choose(models.collect(), file, &FitOptions::default()).unwrap().swap_remove(0)
}

#[test]
fn all_that_is_left_of_runs_that_agree_exactly_is_the_models() {
    let grid: Vec<Vec<f64>> =
        (0..16).map(|place| vec![f64::from(1 << (place % 4)), f64::from(place / 4 + 1)]).collect();
    let product = |sizes: &[f64]| 146_000.0 + 6e4 * sizes[0] * sizes[1];
    let lack = best_of(&repeated(&["n", "m"], &grid, 3, product), "auto").fit.fitted.lack_of_fit.unwrap();
    assert!(lack.part().abs() > 0.05, "{lack:?}");
    let line: Vec<Vec<f64>> = (0..10).map(|place| vec![f64::from(100 << place)]).collect();
    let power = |sizes: &[f64]| (146_000.0 + 6.0 * sizes[0].powf(1.7)).round();
    let said = |count: &dyn Fn(&[f64]) -> f64, runs| {
        best_of(&repeated(&["n"], &line, runs, count), "intercept + coeff * n").fit.fitted.lack_of_fit.is_some()
    };
    assert!(said(&power, 3) && said(&power, 2));
    // A whole number that is off by less than 1 was rounded, and 4 % doesn't matter.
    assert!(!said(&|sizes| 2.0 + (sizes[0] / 25_000.0).floor(), 3));
    assert!(!said(&|sizes| (1e6 + 6e3 * sizes[0]) * if sizes[0] > 1e4 { 1.04 } else { 1.0 }, 3));
}

#[test]
fn of_models_that_would_fit_with_coefficients_below_0_the_best_is_named() {
    // 10 ms less 1 ns each: the line is exact, the root nearly fits.
    let sizes: Vec<Vec<f64>> = (4..=12).map(|place| vec![f64::from(place) * 5e5]).collect();
    let best = best_of(&repeated(&["n"], &sizes, 3, |sizes| 1e7 - sizes[0]), "auto");
    let named = best.fit.fitted.lack_of_fit.unwrap().fits_below_zero;
    assert_eq!(named.as_deref(), Some("intercept + coeff * n"));
}

/// Errors of a simulation of models that are right.
#[derive(Clone, Copy, Debug)]
enum Chance {
    /// Normal, a part of the time.
    Part(f64),
    /// Normal, the same at all sizes: this part of the least time.
    Alike(f64),
    /// Normal, with the root of the time: this part of the least time.
    Root(f64),
    /// A part of the time, by Student's t with 3 degrees of freedom.
    Tails(f64),
    /// A part of the time, and one run in ten takes three times as long.
    Disturbed(f64),
}

fn with_chance(time: Growth, sizes: &[f64], runs: usize, chance: Chance, random: &mut Random) -> WorkloadFile {
    let least = time(sizes[0]);
    let mut one = |n: f64| {
        let t = time(n);
        let off = match chance {
            Chance::Part(part) => t * part * random.gaussian(),
            Chance::Alike(part) => least * part * random.gaussian(),
            Chance::Root(part) => (least * t).sqrt() * part * random.gaussian(),
            Chance::Tails(part) => t * part * random.student(),
            Chance::Disturbed(part) => t * (part * random.gaussian() + if random.uniform() < 0.1 { 2.0 } else { 0.0 }),
        };
        (t + off).max(0.05 * t)
    };
    let mut workload = |&n: &f64| Workload {
        sizes: BTreeMap::from([("n".to_owned(), n)]),
        samples: BTreeMap::from([(TIME.to_owned(), (0..runs).map(|_| one(n)).collect())]),
        order: Vec::new(),
    };
    WorkloadFile { header: header(), workloads: sizes.iter().map(&mut workload).collect() }
}

/// The part of fits that are said not to fit: of a model, or of the best that auto finds.
fn said_not_to_fit(model: &str, files: impl Iterator<Item = WorkloadFile>, solver: Solver) -> f64 {
    let options = FitOptions { solver, ..FitOptions::default() };
    let texts = if model == "auto" { candidates(&["n".into()]) } else { vec![model.to_owned()] };
    let models: Vec<CostModel> = texts.iter().map(|text| CostModel::parse(text, &["n".into()]).unwrap()).collect();
    let said = files.map(|file| choose(models.clone(), &file, &options).unwrap().swap_remove(0));
    let said: Vec<bool> = said.map(|best| best.fit.fitted.lack_of_fit.is_some()).collect();
    said.iter().filter(|said| **said).count() as f64 / said.len() as f64
}

fn log_sizes(count: usize) -> Vec<f64> {
    (0..count).map(|place| (1e3 * 10f64.powf(3.0 * place as f64 / (count - 1) as f64)).round()).collect()
}

#[test]
fn models_that_are_right_are_seldom_said_not_to_fit() {
    // 15 series each make the table of docs/cost.md: PERFPROP_JUDGED=15.
    let series = std::env::var("PERFPROP_JUDGED").ok().and_then(|series| series.parse().ok()).unwrap_or(4);
    let models: [(&str, Growth); 3] = [("affine", GROWTHS[0].2), ("nlogn", GROWTHS[1].2), ("quadratic", GROWTHS[2].2)];
    let chances = [
        Chance::Part(0.02),
        Chance::Part(0.1),
        Chance::Part(0.3),
        Chance::Alike(0.3),
        Chance::Root(0.1),
        Chance::Tails(0.1),
        Chance::Disturbed(0.05),
    ];
    let mut all = 0.0;
    for runs in [1, 2, 3, 5, 30] {
        for chance in chances {
            let mut rates = Vec::new();
            for count in [6, 12, 40] {
                let mut random = Random(count as u64);
                let series = models.iter().map(|(model, time)| {
                    let files = (0..series).map(|_| with_chance(*time, &log_sizes(count), runs, chance, &mut random));
                    said_not_to_fit(model, files, Solver::NonNegative) / models.len() as f64
                });
                rates.push(series.sum::<f64>());
            }
            eprintln!("| {runs} | {chance:?} | {:.3} | {:.3} | {:.3} |", rates[0], rates[1], rates[2]);
            all += rates.iter().sum::<f64>() / (3 * 5 * chances.len()) as f64;
        }
    }
    assert!(all < 0.03, "{all}");
}

#[test]
fn models_that_are_wrong_are_said_not_to_fit() {
    // PERFPROP_WRONG=200 prints the shares of more series.
    let series = std::env::var("PERFPROP_WRONG").ok().and_then(|series| series.parse().ok()).unwrap_or(2);
    let exponential: Vec<f64> = (10..=30).map(f64::from).collect();
    let falling: Vec<f64> = (1..=12).map(|n| f64::from(n) * 5e5).collect();
    let wrong: [(&str, Vec<f64>, Growth); 3] = [
        ("1.618^n", exponential, |n| 1e3 * 1.618f64.powf(n)),
        ("n^2.5", log_sizes(12), |n| 1e-3 * n.powf(2.5)),
        ("10 ms - n ns", falling, |n| 1e7 - n),
    ];
    for (name, sizes, time) in wrong {
        for runs in [1, 3, 30] {
            let mut random = Random(5);
            let files = (0..series).map(|_| with_chance(time, &sizes, runs, Chance::Part(0.02), &mut random));
            let said = said_not_to_fit("auto", files, Solver::NonNegative);
            eprintln!("| {name} | {runs} | {said:.3} |");
            assert!(said > 0.9, "{name} {runs}: {said}");
        }
    }
}
