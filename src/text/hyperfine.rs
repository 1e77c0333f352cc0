//! Writes what commands took in the forms that hyperfine has: JSON, CSV, and tables in Markdown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::csv::quoted;
use crate::bench::{CPU_TIMES, EXIT_CODE, Swept, Variant, VariantComparison, command_line, comparisons, determined};
use crate::compare::MeanRatio;
use crate::cost::samples::{Determinizer, moments, percentile};
use crate::cost::{TIME, Workload};
use crate::names::{markdown, shown};
use crate::number::shortest;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Each command at each set of sizes, with all its times in seconds, as `hyperfine --export-json` writes them.
pub fn hyperfine_json(swept: &Swept) -> String {
    let results: Vec<Value> = each(swept).map(|(_, variant, workload)| result(variant, workload)).collect();
    let text = serde_json::to_string_pretty(&json!({ "results": results }));
    text.unwrap_or_default() + "\n"
}

/// A line for each command at each set of sizes, with times in seconds, as `hyperfine --export-csv` writes them.
pub fn hyperfine_csv(swept: &Swept) -> String {
    const TIMES: [&str; 7] = ["mean", "stddev", "median", "user", "system", "min", "max"];
    let results: Vec<Value> = each(swept).map(|(_, variant, workload)| result(variant, workload)).collect();
    let parameters = results.iter().filter_map(|one| one["parameters"].as_object());
    let names: BTreeSet<&String> = parameters.flat_map(|parameters| parameters.keys()).collect();
    let titles = TIMES.iter().map(|&name| name.to_owned()).chain(names.iter().map(|name| format!("parameter_{name}")));
    let mut out =
        format!("command,{}\n", titles.map(|title| quoted(&title, ",").into_owned()).collect::<Vec<_>>().join(","));
    for one in &results {
        let text = |value: &Value| quoted(value.as_str().unwrap_or_default(), ",").into_owned();
        // What isn't known is empty.
        let time = |name: &&str| one[*name].as_f64().map_or_else(String::new, shortest);
        let mut fields = vec![text(&one["command"])];
        fields.extend(TIMES.iter().map(time));
        fields.extend(names.iter().map(|name| text(&one["parameters"][name.as_str()])));
        out += &(fields.join(",") + "\n");
    }
    out
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

/// `102.4 ± 0.3`; `4.1 (0.0 to 8.5)` where the error is larger than the time, which isn't below 0.
fn with_interval(determinizer: Determinizer, all: &[f64]) -> String {
    let Some(number) = determined(determinizer, all) else { return "—".into() };
    let error = match (number.error.half_width(), number.bounds()) {
        (Some(half), Some((low, high))) if half > number.value => format!(" ({:.1} to {high:.1})", low.max(0.0)),
        (Some(half), _) => format!(" ± {half:.1}"),
        (None, _) => String::new(),
    };
    format!("{:.1}{error}", number.value)
}

/// A cell with the ratio to the first command.
fn relative(compared: &[VariantComparison], place: usize, workload: &Workload) -> String {
    let is_it =
        |one: &&VariantComparison| one.variant == place && one.sizes == workload.sizes && one.event.name == TIME;
    let text = match compared.iter().find(is_it).map(|one| one.event.ratio()) {
        None if place == 0 => "1.00".into(),
        Some(MeanRatio { value: Some(ratio), interval: Some((low, high)) }) => {
            format!("{ratio:.2} ({low:.2} to {high:.2})")
        }
        Some(MeanRatio { value: Some(ratio), interval: None }) => format!("{ratio:.2}"),
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
    fn a_line_of_csv_for_each() {
        let text = hyperfine_csv(&two_commands());
        let lines: Vec<&str> = text.lines().collect();
        let heads = "command,mean,stddev,median,user,system,min,max,parameter_algo,parameter_n";
        assert_eq!((lines.len(), lines[0]), (5, heads), "{text}");
        let fields: Vec<&str> = lines[1].split(',').collect();
        let is_near = |place: usize, value: f64| (fields[place].parse::<f64>().unwrap() / value - 1.0).abs() < 1e-9;
        assert_eq!((fields[0], &fields[8..]), ("./sort --by=a|b quick 10", &["quick", "10"][..]));
        // 1.0 to 1.4 ms; a deviation of 0.1 times the root of 2.5; no time in the kernel.
        assert!(is_near(1, 0.0012) && is_near(2, 1e-4 * 2.5_f64.sqrt()) && is_near(4, 5e-4), "{text}");
        assert_eq!(fields[5], "");
        let mut swept = two_commands();
        swept.variants[0].command[0] = "a,\"b\"".into();
        swept.files[0].workloads[0].samples = [(TIME.to_owned(), vec![2e9])].into();
        let text = hyperfine_csv(&swept);
        assert!(text.contains("\n\"a,\"\"b\"\" --by=a|b quick 10\",2,,2,,,2,2,quick,10\n"), "{text}");
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
    fn no_time_is_below_zero() {
        assert_eq!(with_interval(Determinizer::Mean, &[3.8, 4.1, 7.9]), "5.3 (0.0 to 10.9)");
        assert_eq!(with_interval(Determinizer::Mean, &[4.0, 4.1, 4.2]), "4.1 ± 0.2");
    }

    #[test]
    fn a_percentile_that_few_runs_do_not_bound_has_no_interval() {
        let mut swept = two_commands();
        swept.files.truncate(1);
        swept.variants.truncate(1);
        let times = |count: u32| (1..=count).map(|run| 1e9 + f64::from(run) * 1e8).collect();
        let mut line = |determinizer, count| {
            swept.files[0].workloads[0].samples = [(TIME.to_owned(), times(count))].into();
            let table = hyperfine_markdown(&swept, determinizer);
            table.lines().nth(2).unwrap().rsplit('|').nth(3).unwrap().trim().to_owned()
        };
        let p90 = Determinizer::Percentile(90.0);
        // The 32nd of 36 lies between the 29th and the 36th; of 35 none is sure to lie above p90.
        assert_eq!(line(p90, 36), "4200.0 ± 400.0");
        assert_eq!([line(p90, 35), line(Determinizer::Percentile(0.0), 99)], ["4100.0", "1100.0"]);
    }

    #[test]
    fn commands_stay_in_their_cell() {
        assert_eq!([code("a|b"), code("a `` <b")], [r"`a\|b`", r"<code>a \`\` \<b</code>"]);
        assert_eq!(code(r"grep a\|b"), r"<code>grep a\\\|b</code>");
    }
}
