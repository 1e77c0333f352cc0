//! Writes what commands took in the forms that hyperfine has: JSON, and tables in Markdown.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bench::{CPU_TIMES, EXIT_CODE, Swept, Variant, VariantComparison, command_line, comparisons, determined};
use crate::cost::samples::{Determinizer, moments, percentile};
use crate::cost::{TIME, Workload};
use crate::names::{markdown, shown};

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Each command at each set of sizes, with all its times in seconds, as `hyperfine --export-json` writes them.
pub fn hyperfine_json(swept: &Swept) -> String {
    let results: Vec<Value> = each(swept).map(|(_, variant, workload)| result(variant, workload)).collect();
    let text = serde_json::to_string_pretty(&json!({ "results": results }));
    text.unwrap_or_default() + "\n"
}

/// The places of commands, the commands, and what was measured of them.
fn each(swept: &Swept) -> impl Iterator<Item = (usize, &Variant, &Workload)> {
    let files = swept.variants.iter().zip(&swept.files).enumerate();
    files.flat_map(|(place, (variant, file))| file.workloads.iter().map(move |workload| (place, variant, workload)))
}

fn times(workload: &Workload, name: &str) -> Vec<f64> {
    workload.samples.get(name).into_iter().flatten().map(|time| time / SECOND).collect()
}

fn result(variant: &Variant, workload: &Workload) -> Value {
    let all = times(workload, TIME);
    let mean = |name: &str| Determinizer::Mean.value(&times(workload, name));
    let count = all.len() as f64;
    let deviation = moments(&all).filter(|_| all.len() > 1).map(|it| (it.variance * count / (count - 1.0)).sqrt());
    let codes = workload.samples.get(EXIT_CODE).cloned();
    // Without it a run counts only if it ended with 0.
    let codes: Vec<i64> = codes.unwrap_or_else(|| vec![0.0; all.len()]).iter().map(|code| *code as i64).collect();
    let sizes = workload.sizes.iter().map(|(name, size)| (name.clone(), size.to_string()));
    let parameters: BTreeMap<String, String> = sizes.chain(variant.words.clone()).collect();
    let [user, system] = CPU_TIMES.map(mean);
    json!({
        "command": command_line(variant, &workload.sizes),
        "mean": mean(TIME),
        "stddev": deviation,
        "median": Determinizer::Median.value(&all),
        "user": user,
        "system": system,
        "min": percentile(&all, 0.0),
        "max": percentile(&all, 100.0),
        "times": all,
        "exit_codes": codes,
        "parameters": parameters,
    })
}

/// A table of commands in Markdown: the time with its 95 % interval, the fastest and the slowest run, and the ratio to
/// the first command at the same sizes, with the interval of that.
pub fn hyperfine_markdown(swept: &Swept, determinizer: Determinizer) -> String {
    let numbers = each(swept).filter_map(|(_, _, workload)| determinizer.value(&times(workload, TIME)));
    let (unit, factor) = match numbers.fold(f64::INFINITY, f64::min) {
        least if least >= 1.0 => ("s", 1.0),
        least if least >= 1e-3 => ("ms", 1e3),
        _ => ("µs", 1e6),
    };
    let compared = comparisons(&swept.files);
    let what = word(determinizer);
    let (head, line) = if compared.is_empty() { ("", "") } else { (" Relative (95 % interval) |", "---:|") };
    let mut out = format!(
        "| Command | {what} [{unit}] ± 95 % | Min [{unit}] | Max [{unit}] |{head}\n|:---|---:|---:|---:|{line}\n"
    );
    for (place, variant, workload) in each(swept) {
        let all: Vec<f64> = times(workload, TIME).iter().map(|time| time * factor).collect();
        let ends = [0.0, 100.0].map(|percent| decimals(percentile(&all, percent)));
        let relative = if compared.is_empty() { String::new() } else { relative(&compared, place, workload) };
        let command = code(&command_line(variant, &workload.sizes));
        out +=
            &format!("| {command} | {} | {} | {} |{relative}\n", with_interval(determinizer, &all), ends[0], ends[1]);
    }
    out
}

fn word(determinizer: Determinizer) -> String {
    match determinizer {
        Determinizer::Mean => "Mean".into(),
        Determinizer::Median => "Median".into(),
        Determinizer::Percentile(percent) => format!("Percentile {percent}"),
    }
}

fn decimals(number: Option<f64>) -> String {
    number.map_or_else(|| "—".into(), |number| format!("{number:.1}"))
}

/// `102.4 ± 0.3`.
fn with_interval(determinizer: Determinizer, all: &[f64]) -> String {
    let Some(number) = determined(determinizer, all) else { return "—".into() };
    let half = number.error.half_width().map_or_else(String::new, |half| format!(" ± {half:.1}"));
    format!("{:.1}{half}", number.value)
}

/// A cell with the ratio to the first command.
fn relative(compared: &[VariantComparison], place: usize, workload: &Workload) -> String {
    let is_it =
        |one: &&VariantComparison| one.variant == place && one.sizes == workload.sizes && one.event.name == TIME;
    let text = match compared.iter().find(is_it).map(VariantComparison::ratio) {
        None if place == 0 => "1.00".into(),
        Some((Some(ratio), Some((low, high)))) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
        Some((Some(ratio), None)) => format!("{ratio:.2}"),
        _ => "—".into(),
    };
    format!(" {text} |")
}

/// A command as code, which ends with its cell: between backticks, where none and no backslash is in it.
fn code(command: &str) -> String {
    match shown(command) {
        text if text.contains(['`', '\\']) => format!("<code>{}</code>", markdown(command)),
        text => format!("`{}`", text.replace('|', "\\|")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::bench::tests::two_commands;
    use super::*;

    #[test]
    fn two_commands_in_hyperfines_forms() {
        let swept = two_commands();
        crate::goldens::assert_golden!("bench", "hyperfine_markdown", hyperfine_markdown(&swept, Determinizer::Median));
        let json: Value = serde_json::from_str(&hyperfine_json(&swept)).unwrap();
        assert_eq!(json["results"].as_array().unwrap().len(), 4);
        crate::goldens::assert_golden!(
            "bench",
            "hyperfine_json",
            serde_json::to_string_pretty(&json["results"][2]).unwrap()
        );
    }

    #[test]
    fn one_run_has_no_deviation_and_one_command_no_ratio() {
        let mut swept = two_commands();
        swept.files.truncate(1);
        swept.variants.truncate(1);
        let workload = &mut swept.files[0].workloads[0];
        workload.samples = [(TIME.to_owned(), vec![2e9]), (EXIT_CODE.to_owned(), vec![3.0])].into();
        let json: Value = serde_json::from_str(&hyperfine_json(&swept)).unwrap();
        let one = &json["results"][0];
        assert_eq!((&one["stddev"], &one["user"], &one["mean"]), (&Value::Null, &Value::Null, &json!(2.0)));
        assert_eq!((&one["exit_codes"], &json["results"][1]["exit_codes"]), (&json!([3]), &json!([0, 0, 0, 0, 0])));
        let table = hyperfine_markdown(&swept, Determinizer::Mean);
        assert!(!table.contains("Relative") && table.contains("| 2000.0 | 2000.0 |"), "{table}");
    }

    #[test]
    fn commands_stay_in_their_cell() {
        assert_eq!([code("a|b"), code("a `` <b")], [r"`a\|b`", r"<code>a \`\` \<b</code>"]);
        assert_eq!(code(r"grep a\|b"), r"<code>grep a\\\|b</code>");
    }
}
