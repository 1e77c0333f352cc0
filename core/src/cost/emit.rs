//! Writes a fitted model as a function for other programs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use super::fitted::FittedModel;
use super::model::CostModel;
use super::term::{TermId, TermNode, Terms};
use super::workload::TIME;
use crate::number::shortest;

/// The quotient that is 0 where the divisor is.
const RATIO: &str = "d_ratio";
/// What makes Python compute a number where it is first needed.
const CACHE: &str = "functools.cache";

/// What a model is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitted {
    /// JSON, which `perfprop predict` reads.
    Json,
    /// A line of names and a line of coefficients; of several models a line for each, behind its name.
    Csv,
    /// A function, with a test.
    Code(Language),
}

/// A language in which functions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// C.
    C,
    /// Python.
    Python,
}

/// A fitted model that is written as a function.
#[derive(Clone, Copy, Debug)]
pub struct EmittedFit<'a> {
    /// What was fitted.
    pub fitted: &'a FittedModel,
    /// Its model.
    pub model: &'a CostModel,
    /// The name of the function, or of the line.
    pub name: &'a str,
}

/// The model's text in a form; the function has this name.
pub fn emit(fitted: &FittedModel, model: &CostModel, form: Emitted, name: &str) -> String {
    emit_all(&[EmittedFit { fitted, model, name }], form)
}

/// The text of several models in a form: functions with one test of all of them, or one table of coefficients.
pub fn emit_all(fits: &[EmittedFit<'_>], form: Emitted) -> String {
    match form {
        Emitted::Json => {
            fits.iter().map(|fit| serde_json::to_string_pretty(fit.fitted).unwrap_or_default() + "\n").collect()
        }
        Emitted::Csv => table(fits),
        Emitted::Code(language) => functions(fits, language),
    }
}

/// The coefficients of models as comma-separated values. A coefficient that a model didn't find is empty.
fn table(fits: &[EmittedFit<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for coefficient in fits.iter().flat_map(|fit| &fit.fitted.coefficients) {
        if !names.contains(&coefficient.name.as_str()) {
            names.push(&coefficient.name);
        }
    }
    let line = |fit: &EmittedFit<'_>| {
        let value = |name: &&str| {
            let found = fit.fitted.coefficients.iter().find(|coefficient| coefficient.name == **name);
            found.map_or_else(String::new, |coefficient| shortest(coefficient.value))
        };
        names.iter().map(value).collect::<Vec<_>>().join(",")
    };
    let heads = names.join(",");
    if let [fit] = fits {
        return format!("{heads}\n{}\n", line(fit));
    }
    let lines = fits.iter().map(|fit| format!("{},{}\n", field(fit.name), line(fit)));
    format!("{FILE},{heads}\n{}", lines.collect::<String>())
}

/// The title of the names in a table; with a space, as no coefficient has one.
const FILE: &str = "file name";

/// A name from outside as a field of comma-separated values.
fn field(name: &str) -> String {
    let name = crate::names::shown(name);
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.into_owned() }
}

/// The functions of models, each of another name, and what tests them.
fn functions(fits: &[EmittedFit<'_>], language: Language) -> String {
    let mut taken = Vec::new();
    let functions: Vec<Function> = fits.iter().map(|fit| Code::new(fit, language, &mut taken).function()).collect();
    let [texts, tests] = [|function: &Function| function.text.clone(), |function: &Function| function.test.clone()]
        .map(|part| functions.iter().map(part).collect::<Vec<_>>());
    match language {
        Language::C => format!(
            "#include <math.h>\n\n{}\n#ifdef PERFPROP_TEST\nint main(void) {{\n{}\n}}\n#endif\n",
            texts.join("\n"),
            c_tests(&tests),
        ),
        Language::Python => {
            let texts = texts.join("\n\n");
            let caches = if texts.contains(CACHE) { "import functools\n" } else { "" };
            format!("{caches}import math\n\n\n{texts}\n\nif __name__ == \"__main__\":\n{}\n", tests.join("\n"))
        }
        Language::Rust => {
            texts.iter().zip(&tests).map(|(text, test)| format!("{text}\n{test}\n")).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The body of `main`, which gives 0 where all of these are so.
fn c_tests(tests: &[String]) -> String {
    match tests {
        [test] => format!("    return {test} ? 0 : 1;"),
        tests => {
            let lines = tests.iter().map(|test| format!("    failed |= !({test});\n"));
            format!("    int failed = 0;\n{}    return failed;", lines.collect::<String>())
        }
    }
}

/// A function in a language, and what tests it.
struct Function {
    text: String,
    test: String,
}

/// A function in the making.
struct Code<'a> {
    fitted: &'a FittedModel,
    language: Language,
    name: String,
    /// The sizes, with the names that they have in the code.
    sizes: Vec<(String, String)>,
    terms: Terms,
    root: TermId,
    model: &'a CostModel,
}

impl<'a> Code<'a> {
    /// `taken` has the names of the functions before, and gets that of this one.
    fn new(fit: &EmittedFit<'a>, language: Language, taken: &mut Vec<String>) -> Self {
        let EmittedFit { fitted, model, name } = *fit;
        let mut terms = Terms::default();
        let root = terms.of_expression(model.expression()).unwrap_or_else(|| terms.number(f64::NAN));
        let values = fitted.values();
        let known: Vec<(&str, TermId)> =
            values.iter().map(|(name, value)| (name.as_str(), terms.number(*value))).collect();
        let root = terms.substitute(root, &known.into_iter().collect());
        let mut sizes: Vec<(String, String)> = Vec::new();
        let names = terms.names(root);
        for size in &names {
            let mut written = (*size).to_owned();
            // One with an underscore may be that of another size.
            while is_taken(language, &written) || (written != *size && names.contains(written.as_str())) {
                written.push('_');
            }
            sizes.push(((*size).to_owned(), written));
        }
        let mut name = identifier(name);
        // The test of a function has its name without the underscores.
        let plain = |name: &str| name.trim_end_matches('_').to_owned();
        while is_taken(language, &name) || taken.iter().any(|other| plain(other) == plain(&name)) {
            name.push(if is_taken(language, &name) { '_' } else { '2' });
        }
        taken.push(name.clone());
        Self { fitted, language, name, sizes, terms, root, model }
    }

    fn function(&self) -> Function {
        let (lines, result) = self.body();
        let sizes = |before: &str, behind: &str| {
            let sizes: Vec<_> = self.sizes.iter().map(|(_, name)| format!("{before}{name}{behind}")).collect();
            sizes.join(", ")
        };
        let doc = self.doc();
        let example: BTreeMap<String, f64> = self
            .sizes
            .iter()
            .map(|(name, _)| (name.clone(), self.fitted.measured.get(name).map_or(1.0, |(_, high)| *high)))
            .collect();
        let arguments: Vec<_> = self.sizes.iter().map(|(name, _)| self.number(example[name])).collect();
        let arguments = arguments.iter().map(|argument| bare(argument)).collect::<Vec<_>>().join(", ");
        let all: BTreeMap<String, f64> = self.fitted.values().into_iter().chain(example).collect();
        let expected = self.number(self.model.value(|name| all.get(name).copied()).unwrap_or(f64::NAN));
        let plainly_expected = bare(&expected);
        let name = &self.name;
        let (text, test) = match self.language {
            Language::C => (
                format!(
                    "{}double {name}({}) {{\n{}    return {result};\n}}\n",
                    commented(&doc, "// "),
                    if self.sizes.is_empty() { "void".to_owned() } else { sizes("double ", "") },
                    indented(&lines, |name, value| format!("double {name} = {value};")),
                ),
                format!("fabs({name}({arguments}) - {expected}) <= 1e-9 * fabs({plainly_expected})"),
            ),
            Language::Python => (
                format!(
                    "def {name}({}):\n{}{}    return {result}\n",
                    sizes("", ""),
                    docstring(&doc),
                    indented(&lines, |name, value| format!("{name} = {value}")),
                ),
                format!("    assert math.isclose({name}({arguments}), {plainly_expected}, rel_tol=1e-9)"),
            ),
            Language::Rust => (
                format!(
                    "{}pub fn {name}({}) -> f64 {{\n{}    {result}\n}}\n",
                    commented(&doc, "/// "),
                    sizes("", ": f64"),
                    indented(&lines, |name, value| format!("let {name} = {value};")),
                ),
                format!(
                    "#[test]\nfn {}_is_as_it_was_fitted() {{\n    let expected: f64 = {plainly_expected};\n    \
                     assert!(({name}({arguments}) - expected).abs() <= 1e-9 * expected.abs());\n}}",
                    name.trim_end_matches('_'),
                ),
            ),
        };
        Function { text, test }
    }

    /// What the function gives, and how sure it is.
    fn doc(&self) -> Vec<String> {
        let unit = if self.fitted.response == TIME { "time in nanoseconds" } else { &self.fitted.response };
        let mut lines = vec![format!("The {unit} of {}.", crate::names::shown(&self.fitted.model))];
        for coefficient in &self.fitted.coefficients {
            let interval = coefficient.interval.map_or_else(String::new, |(low, high)| {
                format!(", {:.3e} to {high:.3e} at {} %", low, self.fitted.confidence_in_percent())
            });
            lines.push(format!("{} = {:.6e}{interval}", coefficient.name, coefficient.value));
        }
        for breakpoint in &self.fitted.breakpoints {
            let interval = breakpoint.interval.map_or_else(String::new, |(low, high)| {
                format!(", {} to {} at {} %", shortest(low), shortest(high), self.fitted.confidence_in_percent())
            });
            lines.push(format!("{} = {}, where it changes{interval}", breakpoint.name, shortest(breakpoint.value)));
        }
        for (name, value) in &self.fitted.known {
            let source = self.fitted.injected.as_ref().and_then(|injected| injected.sources.get(name));
            let from = source.map_or_else(|| "set".to_owned(), |source| format!("from {}", in_comment(source)));
            lines.push(format!("{name} = {value:.6e}, {from}"));
        }
        for (name, (low, high)) in &self.fitted.measured {
            lines.push(format!("Measured for {name} from {} to {}.", shortest(*low), shortest(*high)));
        }
        lines
    }

    /// Variables for what is used more than once, and the result. Python, where a division by 0 is an error, computes what stands
    /// in branches alone where it is first needed.
    fn body(&self) -> (Vec<(String, String)>, String) {
        let order = self.terms.reached(&[self.root]);
        let (uses, always) = (self.uses(&order), self.always_computed());
        let mut texts: HashMap<TermId, String> = HashMap::new();
        let mut lines = Vec::new();
        for term in order {
            let text = self.expression(term, &texts);
            let is_leaf = self.terms.operands(term).is_empty();
            let text = if !is_leaf && uses.get(&term).is_some_and(|uses| *uses > 1) {
                let name = format!("part{}", lines.len() + 1);
                let is_late = self.language == Language::Python && !always.contains(&term);
                let text = bare(&text);
                let value = if is_late { format!("{CACHE}(lambda: {text})") } else { text.to_owned() };
                lines.push((name.clone(), value));
                if is_late { format!("{name}()") } else { name }
            } else {
                text
            };
            texts.insert(term, text);
        }
        (lines, texts.get(&self.root).map_or_else(String::new, |text| bare(text).to_owned()))
    }

    /// How often the code names each of these terms.
    fn uses(&self, terms: &[TermId]) -> HashMap<TermId, usize> {
        let mut uses: HashMap<TermId, usize> = HashMap::new();
        for &term in terms {
            let operands = self.terms.operands(term);
            operands.iter().for_each(|operand| *uses.entry(*operand).or_default() += 1);
            if let TermNode::Operation(operation, _) = self.terms.node(term)
                && operation.name == RATIO
                && let Some(divisor) = operands.last()
            {
                // It is compared with 0 as well.
                *uses.entry(*divisor).or_default() += 1;
            }
        }
        uses
    }

    /// The terms that are computed whichever branches are taken.
    fn always_computed(&self) -> HashSet<TermId> {
        let (mut found, mut waiting) = (HashSet::new(), vec![self.root]);
        while let Some(term) = waiting.pop() {
            if found.insert(term) {
                match self.terms.node(term) {
                    TermNode::Select([_, condition, _]) => waiting.push(*condition),
                    // What is divided is computed unless the divisor is 0.
                    TermNode::Operation(operation, _) if operation.name == RATIO => {
                        waiting.extend(self.terms.operands(term).last());
                    }
                    _ => waiting.extend(self.terms.operands(term)),
                }
            }
        }
        found
    }

    fn expression(&self, term: TermId, texts: &HashMap<TermId, String>) -> String {
        let text = |term: &TermId| texts[term].as_str();
        match self.terms.node(term) {
            TermNode::Number(number) => self.number(*number),
            TermNode::Name(name) => {
                let written = self.sizes.iter().find(|(size, _)| size == name).map(|(_, written)| written);
                written.unwrap_or(name).clone()
            }
            TermNode::Select([then, condition, otherwise]) => {
                let (then, condition, otherwise) = (text(then), text(condition), text(otherwise));
                match self.language {
                    Language::C => format!("(({condition}) != 0 ? {then} : {otherwise})"),
                    Language::Python => format!("({then} if {condition} else {otherwise})"),
                    Language::Rust => {
                        format!("(if {condition} != 0.0 {{ {} }} else {{ {} }})", bare(then), bare(otherwise))
                    }
                }
            }
            TermNode::Operation(operation, operands) => {
                let operands: Vec<&str> = operands.iter().map(text).collect();
                self.operation(operation.name, &operands)
            }
        }
    }

    fn operation(&self, name: &str, operands: &[&str]) -> String {
        let call = |function: &str| match (self.language, operands) {
            (Language::Rust, [a]) => format!("({}).{function}()", bare(a)),
            (Language::Rust, [a, b]) => format!("({}).{function}({})", bare(a), bare(b)),
            (Language::Rust | Language::C | Language::Python, _) => format!("{function}({})", operands.join(", ")),
        };
        let of = |rust: &str, c: &str, python: &str| match self.language {
            Language::C => call(c),
            Language::Python => call(python),
            Language::Rust => call(rust),
        };
        match (name, operands) {
            ("-", [a]) => format!("(-{a})"),
            ("+" | "-" | "*" | "/", [a, b]) => format!("({a} {name} {b})"),
            ("<" | ">" | "<=" | ">=" | "==" | "!=", [a, b]) => match self.language {
                Language::Rust => format!("f64::from(u8::from({a} {name} {b}))"),
                Language::C => format!("(double)({a} {name} {b})"),
                Language::Python => format!("float({a} {name} {b})"),
            },
            ("%", [a, b]) if self.language == Language::Rust => format!("({a} % {b})"),
            ("%", _) => of("", "fmod", "math.fmod"),
            ("min", _) => of("min", "fmin", "min"),
            ("max", _) => of("max", "fmax", "max"),
            ("abs", _) => of("abs", "fabs", "abs"),
            ("sqrt", _) => of("sqrt", "sqrt", "math.sqrt"),
            ("log2", _) => of("log2", "log2", "math.log2"),
            ("pow", _) => of("powf", "pow", "math.pow"),
            ("shift_left", [a, b]) => format!("({a} * {})", self.operation("pow", &[&self.number(2.0), b])),
            ("shift_right", [a, b]) => format!("({a} / {})", self.operation("pow", &[&self.number(2.0), b])),
            (RATIO, [a, b]) => match self.language {
                Language::C => format!("({b} == 0 ? 0.0 : {a} / {b})"),
                Language::Python => format!("({a} / {b} if {b} else 0.0)"),
                Language::Rust => format!("(if {b} == 0.0 {{ 0.0 }} else {{ {a} / {b} }})"),
            },
            ("&" | "|", [a, b]) => match self.language {
                Language::C => format!("((double)((long long){a} {name} (long long){b}))"),
                Language::Python => format!("float(int({}) {name} int({}))", bare(a), bare(b)),
                Language::Rust => format!("((({a} as i64) {name} ({b} as i64)) as f64)"),
            },
            (other, _) => call(other),
        }
    }

    /// A number that the language takes for a floating-point one, whatever operator stands before it.
    fn number(&self, number: f64) -> String {
        let text = match self.language {
            Language::Rust => format!("{number:?}_f64"),
            Language::C | Language::Python => format!("{number:?}"),
        };
        if text.starts_with('-') { format!("({text})") } else { text }
    }
}

fn indented(lines: &[(String, String)], line: impl Fn(&str, &str) -> String) -> String {
    lines.iter().map(|(name, value)| format!("    {}\n", line(name, value))).collect()
}

fn commented(lines: &[String], start: &str) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{start}{line}");
        text
    })
}

/// A name from outside as a part of a comment, which it can't end.
fn in_comment(name: &str) -> String {
    crate::names::shown(name).replace(['"', '\\'], "_")
}

/// The lines as what Python's `help` prints.
fn docstring(lines: &[String]) -> String {
    format!("    \"\"\"{}\n    \"\"\"\n", lines.join("\n    "))
}

/// A text without parentheses around all of it.
fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let depths = inner.chars().scan(0_i32, |depth, c| {
        *depth += i32::from(c == '(') - i32::from(c == ')');
        Some(*depth)
    });
    // Where it falls below 0 the first parenthesis ended before the last one.
    if depths.min().is_none_or(|least| least >= 0) { inner } else { text }
}

/// Whether a name means something else in the code: a keyword, or what the code itself uses.
fn is_taken(language: Language, name: &str) -> bool {
    let words = match language {
        Language::Rust => TAKEN_IN_RUST,
        Language::C => TAKEN_IN_C,
        Language::Python => TAKEN_IN_PYTHON,
    };
    let is_part = name.strip_prefix("part").is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()));
    is_part || words.split_whitespace().any(|word| word == name)
}

const TAKEN_IN_RUST: &str = "_ abstract as async await become box break const continue crate do dyn else enum expected \
    extern false final fn for gen if impl in let loop macro main match mod move mut override priv pub ref return self Self \
    static struct super trait true try type typeof union unsafe unsized use virtual where while yield";
/// Keywords up to C23, and the functions and macros of `math.h`.
const TAKEN_IN_C: &str = "alignas alignof auto bool break case char const constexpr continue default do double else enum \
    expected extern false float for goto if inline int long main nullptr register restrict return short signed sizeof static \
    static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while asm fortran \
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim finite floor fma \
    fmax fmin fmod frexp gamma hypot ilogb isinf isnan isfinite isnormal j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb \
    lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn signbit signgam \
    significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn abs labs NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL \
    FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL M_E M_PI M_PI_2 M_PI_4 M_LN2 M_LN10 M_SQRT2 PERFPROP_TEST";
const TAKEN_IN_PYTHON: &str = "False None True and as assert async await break class continue def del elif else except finally \
    for from global if import in is lambda nonlocal not or pass raise return try while with yield __name__ abs float functools int math max min";

/// A name for a function, or a part of one: letters, digits and underscores alone.
pub(super) fn identifier(name: &str) -> String {
    let mut text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    text
}
