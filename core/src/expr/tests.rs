//! Tests parsing, printing and evaluating expressions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// The values that `A`, `B` and `C` (or `{mean}`, `{variance}` and `{C.mean}`) have.
const VALUES: [f64; 3] = [12.0, 5.0, 0.25];

fn slot(variable: &Variable) -> Option<VariableSlot> {
    let index = match (&variable.subject, variable.moment) {
        (Subject::From, Moment::Mean) => 0,
        (Subject::From, Moment::Variance) => 1,
        (Subject::Event(name), Moment::Mean) => ["A", "B", "C"].iter().position(|known| known == name)?,
        _ => return None,
    };
    Some(VariableSlot(index))
}

fn program(text: &str) -> Program {
    let dialect = if text.contains('{') { Dialect::Pair } else { Dialect::Metric };
    parse(text, dialect).unwrap().compile(slot).unwrap()
}

fn value(text: &str) -> f64 {
    program(text).eval(&VALUES)
}

fn error(text: &str) -> String {
    parse(text, Dialect::Equation).unwrap_err().to_string()
}

#[test]
fn operators_bind_as_in_perf_metrics() {
    let worked = [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("8 / 4 / 2", 1.0),
        ("-A + B", -7.0),
        ("2 - -A * B", 62.0),
        ("--A", 12.0),
        ("1 + 1 < 3", 1.0),
        ("A <= B", 0.0),
        ("A >= B & C == .25", 1.0),
        ("A != A | B > 4", 1.0),
        ("6 & 3 | 8", 10.0),
        ("1 | 6 ^ 2 & 3", 5.0),
        ("5.9 ^ 1", 4.0),
        ("7 % 4 * 2", 6.0),
        ("-7 % 4", -3.0),
        ("d_ratio(A, B - 5) + d_ratio(A, B)", 2.4),
        ("A if (0 if B else 1) else C", 0.25),
        ("A if 0 if B else 1 else C", 0.25),
        ("1 | 0 & 0", 1.0),
        ("A if B > 4 else C", 12.0),
        ("A if B > 5 else C if 0 else 7", 7.0),
        ("(A if 0 else B) + 1", 6.0),
        ("1e2 + 1.5E-1 + 2.", 102.15),
    ];
    for (text, expected) in worked {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn functions_and_variables_of_pairs() {
    assert_eq!(value("2 * {mean} + 50"), 74.0);
    assert_eq!(value("{ variance } / { C.mean }"), 20.0);
    assert_eq!(value("min({mean}, {variance}) + max({mean}, {variance})"), 17.0);
    assert_eq!(value("sqrt(abs({variance} - 14)) + log2(8)"), 6.0);
}

#[test]
fn what_has_no_value_is_not_a_number() {
    let none = [
        "A / 0",
        "0 / 0",
        "1 / (1 / 0)",
        "sqrt(-1)",
        "log2(0)",
        "log2(-1)",
        "0 * (A / 0)",
        "min(1, 0 / 0)",
        "max(0 / 0, 1)",
        "0 / 0 < 1",
        "0 / 0 == 0 / 0",
        "1 | 0 / 0",
        "1 ^ 0 / 0",
        "A % 0",
        "d_ratio(0 / 0, 0)",
        "pow(0 / 0, 0)",
        "pow(1, 0 / 0)",
        "d_ratio(0, 0 / 0)",
        "1 if 0 / 0 else 2",
    ];
    for text in none {
        assert!(value(text).is_nan(), "{text}");
    }
    assert!(!value("1e300 * 1e300").is_finite());
    assert_eq!(value("1 if 1 else 0 / 0"), 1.0, "the other side isn't looked at");
    assert!(program("A").eval(&[]).is_nan(), "a slot that isn't there");
}

#[test]
fn gradients_are_those_of_the_rules_of_calculus() {
    let worked = [
        ("A * B + C", [5.0, 12.0, 1.0]),
        ("A / B - C", [0.2, -0.48, -1.0]),
        ("A * A * A + 0 * B + 0 * C", [432.0, 0.0, 0.0]),
        ("sqrt(C) + log2(A) * 0 + abs(-B)", [0.0, 1.0, 1.0]),
        ("min(A, B) + max(A, C)", [1.0, 1.0, 0.0]),
        ("A if B < C else B * C", [0.0, 0.25, 5.0]),
        ("(A < B) + B + C", [0.0, 1.0, 1.0]),
        ("abs(A - A) + B + C", [0.0, 1.0, 1.0]),
        ("d_ratio(A, B) + C", [0.2, -0.48, 1.0]),
        ("d_ratio(A, B - 5) + B + C", [0.0, 1.0, 1.0]),
        ("A % B + C", [1.0, -2.0, 1.0]),
        ("(A ^ 3) + B + C", [0.0, 1.0, 1.0]),
        ("sqrt(A - 12) + B + C", [f64::INFINITY, 1.0, 1.0]),
        ("A / 0 + B + C", [f64::NAN, f64::NAN, f64::NAN]),
    ];
    for (text, expected) in worked {
        let program = program(text);
        assert_eq!(program.slots(), [VariableSlot(0), VariableSlot(1), VariableSlot(2)]);
        let mut gradient = [9.0; 3];
        let value = program.eval_with_gradient(&VALUES, &mut gradient);
        assert_eq!(value.to_bits(), program.eval(&VALUES).to_bits());
        for (found, expected) in gradient.iter().zip(expected) {
            let is_same =
                *found == expected || (found - expected).abs() < 1e-12 || (found.is_nan() && expected.is_nan());
            assert!(is_same, "{text}: {gradient:?}");
        }
    }
}

#[test]
fn a_gradient_of_another_length_does_no_harm() {
    let program = program("A + 3 * C");
    let (mut short, mut long) = ([0.0; 1], [7.0; 3]);
    program.eval_with_gradient(&VALUES, &mut short);
    program.eval_with_gradient(&VALUES, &mut long);
    assert_eq!((short, long), ([1.0], [1.0, 3.0, 7.0]));
}

#[test]
fn names_are_read_to_their_end() {
    let names = [
        ("L1-dcache-loads", "L1-dcache-loads"),
        ("sched:sched_switch", "sched:sched_switch"),
        ("CPU_CLK_UNHALTED.THREAD_P:u", "CPU_CLK_UNHALTED.THREAD_P:u"),
        ("cpu\\/event\\=0x3c\\,umask\\=1\\/", "cpu/event=0x3c,umask=1/"),
        ("\\min", "min"),
        ("\\2nd\\-", "2nd-"),
        ("a\\\\b", "a\\b"),
    ];
    for (text, name) in names {
        let expr = parse(text, Dialect::Equation).unwrap();
        let event = Subject::Event(name.to_owned());
        assert_eq!(expr.variables().next().unwrap().0.subject, event);
        assert_eq!(expr.to_string(), text);
    }
    assert_eq!(value("A -B"), 7.0);
    assert_eq!(value("A- B"), 7.0);
    assert_eq!(value("A-(B)"), 7.0);
}

#[test]
fn comparisons_may_be_written_as_functions() {
    let canonical = |text: &str| parse(text, Dialect::Equation).unwrap().to_string();
    assert_eq!(canonical("lt(a, b + 1) * 2"), canonical("(a < b + 1) * 2"));
    assert_eq!(canonical("a if eq(a, b) else 0"), canonical("a if a == b else 0"));
    assert!(parse("lt(a)", Dialect::Equation).is_err(), "it takes two");
}

#[test]
fn vendors_write_names_in_their_own_way() {
    let name = |text: &str| match &parse(text, Dialect::Vendor).unwrap().nodes()[0].kind {
        NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) => name.clone(),
        kind => panic!("{kind:?}"),
    };
    assert_eq!(name("cpu@event\\=0xc9\\,umask\\=4@u"), "cpu/event=0xc9,umask=4/u");
    assert_eq!(name("cstate_core@c3\\-residency@"), "cstate_core/c3-residency/");
    assert_eq!(name("a\\@b:k?"), "a@b:k?");
    assert_eq!(name("2nd.try"), "2nd.try");
    let canonical = |text: &str| parse(text, Dialect::Vendor).unwrap().to_string();
    assert_eq!(canonical("A-B"), "A - B");
    assert_eq!(canonical("1e-3*x_1"), "0.001 * x_1");
    assert_eq!(canonical("a<b<c"), "(a < b) < c");
    assert_eq!(canonical("#SMT_on|has_event(x@y@)"), "#smt_on | has_event(x\\/y\\/)");
    assert_eq!(canonical("strcmp_cpuid_str(0x410f(d|e))"), "strcmp_cpuid_str(0x410f(d|e))");
}

#[test]
fn parts_take_the_place_of_names_and_what_is_known_is_folded() {
    let expr = parse("a * tma if #smt_on | has_event(x) else b", Dialect::Vendor).unwrap();
    let part = |kind: &NodeKind| match kind {
        NodeKind::Fact(Fact::Literal(name)) if name == "smt_on" => Expr::number(0.0, Dialect::Metric),
        NodeKind::Fact(_) => Expr::number(1.0, Dialect::Metric),
        NodeKind::Variable(variable) if variable.subject == Subject::Event("tma".into()) => {
            parse("c + d", Dialect::Metric).ok()
        }
        _ => None,
    };
    let whole = expr.with_parts(100, part).unwrap();
    assert_eq!(whole.to_string(), "a * (c + d) if 0 | 1 else b");
    assert_eq!(whole.folded().to_string(), "a * (c + d)");
    assert_eq!(expr.with_parts(8, part), None, "nine nodes are more than eight");
    assert_eq!(Expr::number(-1.0, Dialect::Metric), None);
}

#[test]
fn a_number_is_the_same_at_the_end_of_a_text() {
    for (text, expected) in [("0.25", 0.25), ("1.5e3", 1500.0), ("7.", 7.0), (".5", 0.5), ("12", 12.0), ("2E-1", 0.2)] {
        for text in [text.to_owned(), format!("{text} "), format!("({text})"), format!("0 + {text}")] {
            for dialect in [Dialect::Metric, Dialect::Vendor] {
                let program = parse(&text, dialect).unwrap().compile(slot).unwrap();
                assert_eq!(program.eval(&[]), expected, "{text}");
            }
        }
    }
}

#[test]
fn facts_are_for_metrics() {
    for text in ["A * #num_cpus", "has_event(A)", "A + source_count(B)"] {
        assert!(error(text).contains("is known in metrics only"), "{text}: {}", error(text));
        assert!(
            parse(text, Dialect::Metric).unwrap().compile(|_| Some(VariableSlot(0))).unwrap().eval(&[1.0]).is_nan()
        );
    }
    let wrong = |text| parse(text, Dialect::Metric).unwrap_err().to_string();
    assert_eq!(wrong("has_event()"), "has_event takes one name (not a name)");
    assert_eq!(wrong("has_event(a b)"), "has_event takes one name (not a name)");
    assert_eq!(wrong("has_event(a"), "expected ')' after 'a' (it ends here)");
    assert_eq!(wrong("has_event"), "expected '(' after 'has_event' (it ends here)");
    assert_eq!(wrong("A + #"), "'#' means nothing in an expression ('#' here)");
}

#[test]
fn canonical_text_has_no_needless_parentheses() {
    let texts = [
        ("((A)+(B*C))", "A + B * C"),
        ("(A+B)*C", "(A + B) * C"),
        ("A-(B -C)", "A - (B - C)"),
        ("-(A*B)", "-(A * B)"),
        ("(-A)*B", "-A * B"),
        ("(A<B)<C", "(A < B) < C"),
        (
            "(A if B else C) if (1 if 2 else 3) else (4 if 5 else 6)",
            "(A if B else C) if (1 if 2 else 3) else 4 if 5 else 6",
        ),
        ("min((A),(B if 1 else 2))", "min(A, B if 1 else 2)"),
        ("1e300+0.10+1e-12", "1e300 + 0.1 + 1e-12"),
    ];
    for (text, canonical) in texts {
        assert_eq!(parse(text, Dialect::Equation).unwrap().to_string(), canonical);
    }
    let pair = parse("{ A.mean }*{variance}", Dialect::Pair).unwrap();
    assert_eq!(pair.to_string(), "{A.mean} * {variance}");
}

#[test]
fn every_node_knows_its_place() {
    let text = " min(A, 2) * (B + C)";
    let expr = parse(text, Dialect::Equation).unwrap();
    let places = expr.nodes().iter().map(|node| &text[node.span.start..node.span.end]);
    let expected = ["A", "2", "min(A, 2)", "B", "C", "B + C", "min(A, 2) * (B + C)"];
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

#[test]
fn unresolved_variables_are_named_all_at_once() {
    let expr = parse("A + X * B + Y", Dialect::Equation).unwrap();
    let unresolved = expr.compile(slot).unwrap_err();
    let places = unresolved.iter().map(|unresolved| unresolved.span.start);
    assert_eq!(places.collect::<Vec<_>>(), [4, 12]);
}

#[test]
fn mistakes_say_what_was_expected_and_what_is_there() {
    assert_eq!(error("A + + B"), "expected an event or '(' after '+' (second '+' here)");
    assert_eq!(error(""), "expected an event or '(' (there is nothing here)");
    assert_eq!(error("A B"), "expected an operator after 'A' ('B' here)");
    assert_eq!(error("(A"), "expected ')' or an operator after 'A' (it ends here)");
    assert_eq!(error("A \u{1b}"), "'\\x1b' means nothing in an expression ('\\x1b' here)");
    let help = parse("2 * logg2(A)", Dialect::Equation).unwrap_err().help;
    assert_eq!(help.unwrap(), "did you mean log2?");
}

#[test]
fn deep_and_long_texts_are_refused_without_overflowing_the_stack() {
    let nested = |open: &str, close: &str, depth| format!("{}A{}", open.repeat(depth), close.repeat(depth));
    let long = MAX_LENGTH / 8;
    for open in ["(", "-", "1|1&1<1+1*(", "abs(", "1 if 1 else ", "A if min(1, 1|1&1<1+1*("] {
        let parsed = parse(&open.repeat(long / open.len()), Dialect::Equation);
        assert_eq!(parsed.unwrap_err().message, "the expression is nested too deeply", "{open}");
    }
    assert!(parse(&nested("(", ")", MAX_DEPTH), Dialect::Equation).is_ok());
    assert!(parse(&nested("(", ")", MAX_DEPTH + 1), Dialect::Equation).is_err());
    let million = "(".repeat(1_000_000);
    assert_eq!(parse(&million, Dialect::Pair).unwrap_err().label, "at most 262144 bytes");
}

#[test]
fn the_greediest_expressions_fit_on_the_stack() {
    // Eight numbers wait at each level, and a condition is a level of its own.
    let levels = MAX_DEPTH / 2;
    let open = "1 if 1 | 1 ^ 1 & 0 < 1 + 1 * max(2, ".repeat(levels);
    let greedy = program(&format!("{open}A{}", ") else 0".repeat(levels)));
    assert_eq!(greedy.eval_with_gradient(&VALUES, &mut [0.0]), 1.0);
    let sum = vec!["A"; 20_000].join("+");
    assert_eq!(value(&sum), 240_000.0);
    let printed = parse(&sum, Dialect::Equation).unwrap().to_string();
    assert_eq!(printed.len(), 4 * 20_000 - 3);
}

/// Texts of expressions of `A`, `B` and `C`. With all operators, or with those that have a
/// derivative nearly everywhere.
fn expressions(operators: &'static [&'static str], numbers: std::ops::Range<f64>) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["A", "B", "C"]).prop_map(str::to_owned),
        (0.0..100.0_f64).prop_map(|number| number.to_string()),
        numbers.prop_map(|number| format!("{number:e}")),
    ];
    leaf.prop_recursive(5, 40, 3, move |inner| {
        let operator = prop::sample::select(operators);
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone(), any::<[bool; 2]>()).prop_map(binary),
            1 => inner.clone().prop_map(|a| format!("-({a})")),
            1 => (inner.clone(), prop::sample::select(vec!["abs", "sqrt", "log2"]))
                .prop_map(|(a, function)| format!("{function}({a})")),
            1 => (inner.clone(), inner.clone(), prop::sample::select(vec!["min", "max"]))
                .prop_map(|(a, b, function)| format!("{function}({a}, {b})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("(({a}) if ({b}) else {c})")),
        ]
    })
}

/// Writes an operation with or without parentheses; always with, where a comparison would be chained.
fn binary((a, operator, b, bare): (String, &str, String, [bool; 2])) -> String {
    let compares = |text: &str| text.contains(['<', '>', '=']);
    let side = |text: String, is_bare: bool| {
        if is_bare && !(compares(operator) && compares(&text)) { text } else { format!("({text})") }
    };
    let (a, b) = (side(a, bare[0]), side(b, bare[1]));
    // Precedence can also bring two comparisons side by side that had none between them.
    if compares(operator) { format!("(({a}) {operator} ({b}))") } else { format!("{a} {operator} {b}") }
}

const ALL: &[&str] = &["+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^"];
const SMOOTH: &[&str] = &["+", "-", "*", "/"];

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() }
}

/// The derivative by one slot from two differences, and by how much they are apart.
fn difference(program: &Program, values: [f64; 3], slot: VariableSlot) -> (f64, f64) {
    let quotient = |step: f64| {
        let at = |step: f64| {
            let mut moved = values;
            moved[slot.0] += step;
            program.eval(&moved)
        };
        (at(step) - at(-step)) / (2.0 * step)
    };
    let (coarse, fine) = (quotient(values[slot.0] * 2e-5), quotient(values[slot.0] * 1e-5));
    (fine, (coarse - fine).abs())
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        for dialect in [Dialect::Pair, Dialect::Equation, Dialect::Metric, Dialect::Vendor] {
            let _ = parse(&text, dialect);
        }
        let _ = parse_equation(&text);
    }

    #[test]
    fn text_of_its_own_words_keeps_its_spans(text in "([-+*/%^#@?()<>=!&|,.{}\\\\ AB1e]|mean|if|else|min|has_event|\\{mean\\}|é){0,30}") {
        for dialect in [Dialect::Pair, Dialect::Equation, Dialect::Metric, Dialect::Vendor] {
            match parse(&text, dialect) {
                Ok(expr) => prop_assert!(expr.nodes().iter().all(|node| text.get(node.span.start..node.span.end).is_some())),
                Err(error) => prop_assert!(text.get(error.span.start..error.span.end).is_some()),
            }
        }
    }

    #[test]
    fn what_vendors_write_is_written_in_our_words(text in "([-+*/%^()<>&|,. ]|A|B1|2x|c@D@|e\\\\-f|9|1e3|#smt_on| if | else |has_event\\(a@b@\\)|max\\(|d_ratio\\(1,){0,20}") {
        if let Ok(expr) = parse(&text, Dialect::Vendor) {
            prop_assert_eq!(parse(&expr.to_string(), Dialect::Metric).unwrap(), expr);
        }
    }

    #[test]
    fn folding_keeps_the_value(text in expressions(ALL, 0.0..1e6), values in prop::array::uniform3(0.5..50.0_f64)) {
        let expr = parse(&text, Dialect::Metric).unwrap();
        let folded = expr.folded();
        prop_assert!(folded.nodes().len() <= expr.nodes().len());
        let [whole, short] = [&expr, &folded].map(|expr| expr.compile(slot).unwrap().eval(&values));
        prop_assert!(whole.to_bits() == short.to_bits() || (whole.is_nan() && short.is_nan()), "{text}: {whole} {short}");
    }

    #[test]
    fn canonical_text_gives_the_same_tree(text in expressions(ALL, 0.0..f64::MAX)) {
        let expr = parse(&text, Dialect::Metric).unwrap();
        let canonical = expr.to_string();
        prop_assert_eq!(&parse(&canonical, Dialect::Metric).unwrap(), &expr);
        prop_assert!(canonical.len() <= 2 * text.len() + 8);
    }

    #[test]
    fn any_name_is_written_so_that_it_is_read(name in "[^\\s\\p{C}]{1,12}") {
        prop_assume!(!name.contains(crate::names::is_hidden));
        let written = format!("1 - {}", escaped_name(&name));
        let expr = parse(&written, Dialect::Equation).unwrap();
        prop_assert_eq!(&expr.variables().next().unwrap().0.subject, &Subject::Event(name));
        prop_assert_eq!(expr.to_string(), written);
    }

    #[test]
    fn gradients_agree_with_differences(
        text in expressions(SMOOTH, 0.0..1e6),
        values in prop::array::uniform3(0.5..50.0_f64),
    ) {
        let program = program(&text);
        let mut gradient = [0.0; 3];
        let value = program.eval_with_gradient(&values, &mut gradient);
        prop_assert!(value.is_nan() == program.eval(&values).is_nan());
        for (&slot, derivative) in program.slots().iter().zip(gradient) {
            let (expected, doubt) = difference(&program, values, slot);
            // At a kink, a pole or where the digits run out, differences say nothing.
            let noise = value.abs() * 1e-10 / values[slot.0] + doubt * 10.0;
            if expected.is_finite() && noise < 1e-3 * expected.abs() {
                prop_assert!(
                    (derivative - expected).abs() <= noise + 1e-6 * expected.abs(),
                    "{text} at {values:?}: {derivative} is not {expected}"
                );
            }
        }
    }
}
