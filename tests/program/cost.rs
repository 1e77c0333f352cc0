//! Tests `perfprop bench`, `fit` and `predict` as programs.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::folders::Folder;
use crate::piped;

fn perfprop(folder: &Folder, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.current_dir(&**folder).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(folder: &Folder, args: &[&str], code: i32, words: &str) {
    let output = perfprop(folder, args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(text.contains(words), "{args:?}: {text}");
}

/// 100 + 2 n, as five measurements of four sizes each that are off by up to 2.
fn line() -> String {
    let times = (1..=4).flat_map(|n| (0..5).map(move |run| (n * 100, 100 + 200 * n + run - 2)));
    times.fold("n,time\n".to_owned(), |text, (n, time)| text + &format!("{n},{time}\n"))
}

#[test]
fn a_sweep_writes_what_a_fit_reads() {
    let folder = Folder::new();
    let script = "i=0; while [ $i -lt {n} ]; do i=$((i + 1)); done";
    let args = ["bench", "-P", "n=10,20", "-r", "3", "--warmup", "0", "-o", "loop.jsonl", "--", "sh", "-c", script];
    let table = stdout(&perfprop(&folder, &args));
    assert!(table.contains("n=10") && table.contains("n=20"), "{table}");
    let lines: Vec<Value> = fs::read_to_string(folder.join("loop.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((lines.len(), &lines[0]["sizes"][0]), (3, &Value::from("n")));
    let mut order: Vec<u64> = Vec::new();
    for line in &lines[1..] {
        assert_eq!(line["samples"]["time"].as_array().unwrap().len(), 3);
        order.extend(line["order"].as_array().unwrap().iter().map(|place| place.as_u64().unwrap()));
    }
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    assert!(stdout(&perfprop(&folder, &["fit", "loop.jsonl", "--model", "const"])).contains("intercept"));
}

#[test]
fn a_command_that_fails_ends_the_sweep_and_keeps_what_was_measured() {
    let folder = Folder::new();
    let sweep = ["bench", "-P", "n=0,1", "-r2", "--warmup=0", "--seed=2", "-o", "out.jsonl"];
    let args = [&sweep[..], &["--", "sh", "-c", "exit {n}"]].concat();
    refused(&folder, &args, 125, "ended with code 1 at n=1");
    // With this seed the first run is that of n=0.
    assert_eq!(fs::read_to_string(folder.join("out.jsonl")).unwrap().lines().count(), 2);
    refused(&folder, &["bench", "-P", "n=1", "--", "true"], 2, "the command has no {n}");
    refused(&folder, &["bench", "-P", "n=1", "--", "no-such-command", "{n}"], 127, "command not found");
    refused(&folder, &["bench", "-P", "n=1", "-e", "no-such-event", "--", "true", "{n}"], 2, "unknown event");
    refused(&folder, &["bench", "-P", "n=log:0..5:3", "--", "true", "{n}"], 2, "0 < LOW < HIGH");
}

#[test]
fn a_fitted_model_predicts() {
    let folder = Folder::new().with("line.csv", &line());
    let text = stdout(&perfprop(&folder, &["fit", "line.csv", "--model", "a + b * n"]));
    assert!(text.contains("time = a + b * n") && text.contains("R² 1.0000"), "{text}");
    let args = ["fit", "line.csv", "--model", "a + b * n", "--emit", "json", "-o", "line.model"];
    stdout(&perfprop(&folder, &args));
    let output = perfprop(&folder, &["predict", "line.model", "n=250,1000"]);
    let text = stdout(&output);
    assert!(
        text.starts_with("n=250  600 ns")
            && text.contains("the median of 5 runs: ")
            && text.contains("n=1000  2.10 µs"),
        "{text}"
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("n=1000 is outside of what was measured (100 to 400)"), "{said}");
    refused(&folder, &["predict", "line.model", "m=5"], 2, "the model needs n: give n=VALUE");
    refused(&folder, &["predict", "line.csv", "n=5"], 2, "it is no fitted model");
    refused(
        &folder,
        &["predict", "line.model", "n=1", "n=2"],
        2,
        "n is given twice: several values of it are n=VALUE,VALUE",
    );
}

#[test]
fn a_value_and_its_interval_have_as_many_decimals() {
    let times: String =
        (1..=8).map(|n| format!("{n}00,{}\n", 1000.0 + f64::from(n) * 0.8 + f64::from(n % 3))).collect();
    let folder = Folder::new().with("near.csv", &format!("n,time\n{times}"));
    let fit = ["fit", "near.csv", "--model", "a + b * n", "--emit", "json", "-o", "near.model"];
    stdout(&perfprop(&folder, &fit));
    let predicted = stdout(&perfprop(&folder, &["predict", "near.model", "n=450"]));
    assert!(predicted.starts_with("n=450  1.00472 µs   1.00395 µs to 1.00550 µs (95%)"), "{predicted}");
    assert!(predicted.contains(": 1.0024 µs to 1.0071 µs"), "{predicted}");
    let fitted = stdout(&perfprop(&folder, &["fit", "near.csv", "--model", "a + b * n"]));
    let constant = fitted.lines().find(|line| line.ends_with(" a")).unwrap();
    let fields: Vec<&str> = constant.split_whitespace().collect();
    let [value, low, high] = [0, 4, 7].map(|place| fields[place].split_once('.').unwrap().1.len());
    assert!((value, low) == (low, high) && value >= 2, "{constant}");
}

#[test]
fn measurements_and_models_come_from_standard_input() {
    let fitted = stdout(&piped::run(&["fit", "-", "--model", "a + b * n", "--emit", "json"], line().as_bytes()));
    assert_eq!(serde_json::from_str::<Value>(&fitted).unwrap()["name"], "model");
    let predicted = stdout(&piped::run(&["predict", "-", "n=250"], fitted.as_bytes()));
    assert!(predicted.starts_with("n=250  600 ns"), "{predicted}");
    let nothing = piped::run(&["fit", "-", "--model", "n"], b"");
    let text = String::from_utf8(nothing.stderr).unwrap();
    assert!(text.contains("perfprop: standard input: line 1: there is nothing here"), "{text}");
}

#[test]
fn predictions_below_0_have_intervals_that_hold_them() {
    let times = "n,time\n100,1.1\n200,101\n300,199\n400,301\n500,400\n";
    let folder = Folder::new().with("low.csv", times);
    let fit = ["fit", "low.csv", "--model", "a + b * n", "--solver", "ols", "--emit", "json", "-o", "low.model"];
    stdout(&perfprop(&folder, &fit));
    let text = stdout(&perfprop(&folder, &["predict", "low.model", "n=50"]));
    assert!(text.starts_with("n=50  −48.73 ns   −49.16 ns to −48.30 ns") && !text.contains(" 0 s to "), "{text}");
    refused(
        &folder,
        &["predict", "low.model", "n=-5"],
        2,
        "n=-5 is below 0, and the model was fitted to sizes from 100 up",
    );
}

/// Times of each size, three runs that are 1 % apart.
fn three_runs(sizes: impl Iterator<Item = f64>, time: impl Fn(f64) -> f64) -> String {
    let rows = sizes.flat_map(|n| (0..3).map(move |run| (n, 1.0 + 0.01 * f64::from(run - 1))));
    rows.fold("n,time\n".to_owned(), |text, (n, off)| text + &format!("{n},{}\n", time(n) * off))
}

#[test]
fn models_that_do_not_fit_are_told_and_so_are_their_predictions() {
    let folder = Folder::new()
        .with("fib.csv", &three_runs((10..=30).map(f64::from), |n| 1e3 * 1.618_f64.powf(n)))
        .with("falling.csv", &three_runs((1..=12).map(|n| f64::from(n) * 5e5), |n| 1e7 - n))
        .with("line.csv", &three_runs((1..=12).map(f64::from), |n| 1e6 + 3e5 * n));
    let told = |args: &[&str]| stdout(&perfprop(&folder, args)).replace("\n  ", "").replace("   ", " ");
    let text = told(&["fit", "fib.csv", "--model", "auto"]);
    assert!(
        text.contains("the model does not fit: at n=30 it gives 9") && text.contains("try another model"),
        "{text}"
    );
    let text = told(&["fit", "falling.csv", "--model", "auto"]);
    assert!(text.contains("does not fit: at n=6000000 it gives") && text.contains("--solver ols"), "{text}");
    let own = told(&["fit", "falling.csv", "--model", "affine"]);
    assert!(own.contains("it would fit with a coefficient below 0"), "{own}");
    for fits in [["falling.csv", "ols"], ["line.csv", "nnls"]] {
        let text = told(&["fit", fits[0], "--model", "affine", "--solver", fits[1]]);
        assert!(!text.contains("does not fit"), "{text}");
    }
    let emitted = perfprop(&folder, &["fit", "fib.csv", "--model", "auto", "--emit", "json", "-o", "fib.model"]);
    assert!(String::from_utf8_lossy(&emitted.stderr).contains("the model does not fit: at n=30"));
    let model: Value = serde_json::from_str(&fs::read_to_string(folder.join("fib.model")).unwrap()).unwrap();
    assert_eq!(model["lack_of_fit"]["sizes"]["n"], 30.0);
    let predicted = perfprop(&folder, &["predict", "fib.model", "n=30"]);
    let said = String::from_utf8_lossy(&predicted.stderr).into_owned();
    assert!(said.contains("the model does not fit: at n=30 it gives 9") && !stdout(&predicted).is_empty(), "{said}");
    // A file of before says nothing.
    let mut older = model;
    older.as_object_mut().unwrap().remove("lack_of_fit");
    fs::write(folder.join("older.model"), older.to_string()).unwrap();
    let predicted = perfprop(&folder, &["predict", "older.model", "n=30"]);
    assert!(predicted.stderr.is_empty() && !stdout(&predicted).is_empty());
}

#[test]
fn models_that_no_fit_wrote_are_refused() {
    let folder = Folder::new().with("line.csv", &line());
    let text = stdout(&perfprop(&folder, &["fit", "line.csv", "--model", "a + b * n", "--emit", "json"]));
    let model: Value = serde_json::from_str(&text).unwrap();
    for (place, value, words) in [
        ("/confidence", 1.5, "its confidence is 1.5"),
        ("/perfprop_model", 7.0, "version 7 of models; this perfprop reads 1"),
        ("/spread/factor", -1.0, "the variance of a measurement is below 0"),
        ("/covariance/0/0", -4.0, "a variance is below 0 (-4)"),
    ] {
        let mut wrong = model.clone();
        let value = if value == 7.0 { Value::from(7) } else { Value::from(value) };
        *wrong.pointer_mut(place).unwrap() = value;
        fs::write(folder.join("wrong.model"), wrong.to_string()).unwrap();
        refused(&folder, &["predict", "wrong.model", "n=250"], 2, words);
    }
    let mut short = model;
    short["covariance"] = serde_json::json!([[1.0]]);
    fs::write(folder.join("short.model"), short.to_string()).unwrap();
    refused(&folder, &["predict", "short.model", "n=250"], 2, "its covariances aren't 2 rows of 2 numbers");
}

#[test]
fn all_models_of_a_folder_predict() {
    let folder = Folder::new().with("two/a.csv", &line()).with("two/b.csv", &line().replace("n,time", "m,time"));
    stdout(&perfprop(&folder, &["fit", "two", "--model", "affine", "--emit", "json", "-o", "two.model"]));
    let text = stdout(&perfprop(&folder, &["predict", "two.model", "n=250,300", "m=200"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("a: n=250  600 ns")), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("b: m=200  500 ns")) && lines.len() == 3, "{text}");
    let output = perfprop(&folder, &["predict", "two.model", "n=250"]);
    assert_eq!(stdout(&output).lines().count(), 1);
    assert!(String::from_utf8(output.stderr).unwrap().contains("'b' is left out: it needs m (m=VALUE)"));
    refused(&folder, &["predict", "two.model", "n=1", "m=1", "z=5"], 2, "the model has no size 'z'; it has m, n");
}

#[test]
fn sizes_and_models_that_have_odd_names_or_come_twice() {
    let folder = Folder::new()
        .with("min.csv", &line().replace("n,time", "min,time"))
        .with("bom.csv", &format!("\u{feff}{}", line()))
        .with("coeff.csv", &line().replace("n,time", "coeff,time"));
    stdout(&perfprop(&folder, &["fit", "min.csv", "--model", "affine", "--emit", "json", "-o", "min.model"]));
    assert!(stdout(&perfprop(&folder, &["predict", "min.model", "min=250"])).starts_with("min=250  600 ns"));
    let text = stdout(&perfprop(&folder, &["fit", "bom.csv", "--model", "affine", "--model", "affine(n)"]));
    assert!(text.starts_with(" time = intercept + coeff * n"), "{text}");
    let text = stdout(&perfprop(&folder, &["fit", "bom.csv", "--model", "affine_offset", "--set", "offset=100"]));
    let line = text.lines().find(|line| line.ends_with("offset")).unwrap();
    assert!(line.trim_start().starts_with("100 ") && line.contains("set"), "an offset is no time: {text}");
    let text = stdout(&perfprop(&folder, &["fit", "bom.csv", "--model", "1"]));
    assert!(text.contains("the model has no coefficients: nothing was fitted"), "{text}");
    refused(&folder, &["fit", "coeff.csv", "--model", "auto"], 2, "the size 'coeff' has the name of a coefficient");
}

#[test]
fn files_of_a_folder_are_fitted_where_their_coefficients_are_known() {
    let header = |name: &str, model: &str| {
        format!("{{\"perfprop_workload\":1,\"name\":\"{name}\",\"sizes\":[\"n\"],\"model\":\"{model}\"}}\n")
    };
    let rows = |time: fn(u32) -> u32| -> String {
        let row = |n: u32| format!("{{\"sizes\":{{\"n\":{n}}},\"samples\":{{\"time\":[{}]}}}}\n", time(n));
        (1..6).map(row).collect()
    };
    let folder = Folder::new()
        .with("runs/a.jsonl", &(header("a", "start + each * n") + &rows(|n| 30 + 7 * n)))
        .with("runs/b.jsonl", &(header("b", "start") + &rows(|_| 30)));
    let text = stdout(&perfprop(&folder, &["fit", "runs"]));
    let (b, a) = (text.find("b.jsonl").unwrap(), text.find("a.jsonl").unwrap());
    assert!(b < a, "{text}");
    assert!(text.contains("from b.jsonl   start") && text.contains("7.00 ns"), "{text}");
    refused(
        &folder,
        &["fit", "runs/a.jsonl", "--model", "x * x * n"],
        2,
        "not linear in its coefficients, character 1, 'x * x': '*' has",
    );
}

/// A file of a timer that was read a hundred times, 18 to 22 ns, and one of what takes twice as long as it for each n.
fn timed() -> Folder {
    let header = |name: &str, sizes: &str, model: &str| {
        format!("{{\"perfprop_workload\":1,\"name\":\"{name}\",\"sizes\":{sizes},\"model\":\"{model}\"}}\n")
    };
    let times: Vec<String> = (0..100).map(|run| (18 + run % 5).to_string()).collect();
    let timer = format!("{{\"sizes\":{{}},\"samples\":{{\"time\":[{}]}}}}\n", times.join(","));
    let row = |n: u32| format!("{{\"sizes\":{{\"n\":{n}}},\"samples\":{{\"time\":[{}]}}}}\n", 20 + 40 * n + n % 2);
    let rows: String = (1..8).map(row).collect();
    Folder::new()
        .with("runs/timer.jsonl", &(header("timer", "[]", "timer") + &timer))
        .with("runs/code.jsonl", &(header("code", "[\"n\"]", "timer + each * n") + &rows))
}

#[test]
fn what_a_timer_takes_is_as_sure_as_its_runs_say() {
    let folder = timed();
    let timer = stdout(&perfprop(&folder, &["fit", "runs/timer.jsonl", "--emit", "json"]));
    let timer: Value = serde_json::from_str(&timer).unwrap();
    // At most 39 of 100 lie below the median in 0.0176 of sets, 40 in 0.0284: 0.682 of the way, and 60 of that over 40 + 20 of it is 0.763 of the
    // way from 19 to 20.
    let low = timer["coefficients"][0]["interval"][0].as_f64().unwrap();
    assert!((low - 19.7632).abs() < 1e-4, "{timer}");
    assert_eq!(timer["degrees"], 99);
    let text = stdout(&perfprop(&folder, &["fit", "runs"]));
    assert!(text.contains("one set of sizes: the interval is that of its runs"), "{text}");
    assert!(!text.contains("as many coefficients") && text.contains("from timer.jsonl   timer"), "{text}");
    let each = text.lines().find(|line| line.ends_with(" each")).unwrap();
    assert!(each.contains("40.11 ns") && each.contains("39.99 ns to 40.24 ns"), "{each}");
}

#[test]
fn measurements_without_sizes_are_constant() {
    let folder = Folder::new().with("timer.csv", "time\n18\n19\n20\n21\n22\n");
    let text = stdout(&perfprop(&folder, &["fit", "timer.csv", "--model", "auto"]));
    assert!(text.starts_with(" time = intercept\n"), "{text}");
    refused(&folder, &["fit", "timer.csv", "--model", "affine"], 2, "have no sizes, for which there is --model const");
    stdout(&perfprop(&folder, &["fit", "timer.csv", "--model", "const", "--emit", "json", "-o", "const.model"]));
    let text = stdout(&perfprop(&folder, &["predict", "const.model"]));
    assert!(text.starts_with("20.0 ns   ") && text.contains(" to "), "{text}");
    let words = "the model is a constant, and has no size 'i': perfprop predict MODEL, without sizes";
    refused(&folder, &["predict", "const.model", "i=1"], 2, words);
}

#[test]
fn functions_of_a_folder_have_one_test_and_say_where_numbers_are_from() {
    let folder = timed();
    let run = |program: &str, args: &[&str]| {
        Command::new(program).args(args).current_dir(&*folder).output().is_ok_and(|output| output.status.success())
    };
    for (form, file) in [("c", "all.c"), ("python", "all.py"), ("rust", "all.rs")] {
        let text = stdout(&perfprop(&folder, &["fit", "runs", "--emit", form]));
        assert!(text.contains("timer = 2.000000e1, from timer.jsonl"), "{text}");
        assert!(text.matches("int main").count() <= 1 && text.matches("import math").count() <= 1, "{text}");
        fs::write(folder.join(file), text).unwrap();
    }
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if is_there("cc") {
        assert!(run("cc", &["-Wall", "-Werror", "-DPERFPROP_TEST", "-o", "c-test", "all.c", "-lm"]));
        assert!(run("./c-test", &[]));
    }
    assert!(!is_there("python3") || run("python3", &["all.py"]));
    let table = stdout(&perfprop(&folder, &["fit", "runs", "--emit", "csv"]));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (3, "file name,timer,each", "timer.jsonl,20,"), "{table}");
    assert!(lines[2].starts_with("code.jsonl,,"), "{table}");
}

#[test]
fn a_table_of_a_folder_has_each_files_own_values() {
    let folder = Folder::new();
    fs::create_dir(folder.join("two")).unwrap();
    for (name, b) in [("a,b.csv", 3), ("c.csv", 5)] {
        let rows: String = (1..=6).map(|n| format!("{n},{}\n", 100 + b * n)).collect();
        fs::write(folder.join("two").join(name), format!("n,time\n{rows}")).unwrap();
    }
    let values = |from: &str| {
        let table = stdout(&perfprop(&folder, &["fit", from, "--model", "a + b * n", "--emit", "csv"]));
        let number =
            |field: &str| field.parse::<f64>().map_or_else(|_| field.to_owned(), |value| format!("{value:.6}"));
        table.lines().map(|line| line.split(',').map(number).collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    };
    let expected = ["file name,a,b", "\"a,b.csv\",100.000000,3.000000", "c.csv,100.000000,5.000000"];
    assert_eq!(values("two"), expected);
    assert_eq!(values("two/c.csv"), ["a,b", "100.000000,5.000000"]);
}

#[test]
fn columns_whose_names_no_model_can_have_get_others() {
    let folder = Folder::new().with("odd.csv", &line().replace("n,time", "n-size,time"));
    let text = stdout(&perfprop(&folder, &["fit", "odd.csv", "--model", "a + b * n_size"]));
    assert!(text.contains("R² 1.0000"), "{text}");
    let args = ["fit", "odd.csv", "--model", "a + shift_left(n_size, 2)"];
    refused(
        &folder,
        &args,
        2,
        "'shift_left(n_size, 2)': shift_left isn't allowed where coefficients are to be found; write",
    );
}

#[test]
fn what_is_no_data_is_told_with_its_place() {
    let folder = Folder::new()
        .with("empty.csv", "")
        .with("names.csv", "n,cycles\n1,2\n")
        .with("nan.csv", "n,time\n1,2\n2,NaN\n")
        .with("few.csv", "n,time\n1,2\n")
        .with("cut.jsonl", "{\"perfprop_workload\":1,\"name\":\"x\",\"sizes\":[\"n\"]}\n{\"sizes\":{\"n\"\n")
        .with("later.jsonl", "{\"perfprop_workload\":2,\"name\":\"x\",\"sizes\":[]}\n");
    let told = [
        ("empty.csv", "line 1: there is nothing here"),
        ("names.csv", "no column 'time': there are 'n', 'cycles'; name one with --response"),
        ("nan.csv", "NaN at n=2 is no measurement"),
        ("few.csv", "one set of sizes can't tell 2 coefficients ('coeff', 'intercept') apart"),
        ("cut.jsonl", "line 2: no workload"),
        ("later.jsonl", "line 1: version 2 of workloads; this perfprop reads 1"),
        ("absent.csv", "No such file"),
    ];
    for (file, words) in told {
        refused(&folder, &["fit", file, "--model", "affine"], 2, words);
    }
}

#[test]
fn what_is_no_model_is_told() {
    let folder = Folder::new().with("sort.csv", &line()).with("two.csv", "n,time\n1,2\n2,4\n");
    refused(&folder, &["fit", "sort.csv", "--model", "nlogN"], 2, "no model is named 'nlogN': did you mean nlogn");
    refused(&folder, &["fit", "sort.csv", "--model", "zzzzzzzzz"], 2, "those are const, linear");
    refused(&folder, &["fit", "sort.csv", "--model", "affine", "--set", "foo=1"], 2, "there are coeff, intercept");
    refused(
        &folder,
        &["fit", "sort.csv", "--model", "affine", "--set", "n=3"],
        2,
        "--set n: it is a size, whose values",
    );
    refused(
        &folder,
        &["fit", "sort.csv", "--model", "a + b * N * c"],
        2,
        "character 5, 'b * N': '*' has coefficients on both sides; 'N' is no size: the sizes are 'n'",
    );
    refused(
        &folder,
        &["fit", "sort.csv", "--model", "a + b * x"],
        2,
        "'b' and 'x' can't all be found: every name but the sizes ('n') is",
    );
    refused(&folder, &["fit", "sort.csv", "--model", "affine_offset"], 2, "(--set offset=VALUE)");
    refused(&folder, &["fit", "two.csv", "--model", "auto"], 2, "2 sets of sizes tell no models apart: measure 5");
}

#[test]
fn models_without_a_rival_are_not_called_likely() {
    let rows =
        |count: u32| (1..=count).fold("n,time\n".to_owned(), |text, n| text + &format!("{n},{}\n", 100 + 20 * n));
    let two = |count: u32| {
        (1..=count).fold("n,m,time\n".to_owned(), |text, n| text + &format!("{n},{},{}\n", n * n, 100 + 20 * n))
    };
    let folder =
        Folder::new().with("one.csv", "n,time\n1,2\n").with("negative.csv", "n,time\n-1,2\n-2,3\n-3,5\n-4,6\n-5,7\n");
    for (name, count) in [("four.csv", 4), ("five.csv", 5)] {
        fs::write(folder.join(name), rows(count)).unwrap();
        fs::write(folder.join(format!("two-{name}")), two(count)).unwrap();
    }
    fs::write(folder.join("two-six.csv"), two(6)).unwrap();
    for (file, words) in [
        ("one.csv", "one set of sizes tells no models apart: measure 5 at least"),
        ("four.csv", "4 sets of sizes tell no models apart: measure 5 at least, or name one model (--model)"),
        ("two-five.csv", "5 sets of sizes tell no models apart: measure 6 at least"),
    ] {
        refused(&folder, &["fit", file, "--model", "auto"], 2, words);
    }
    for file in ["five.csv", "two-six.csv"] {
        let text = stdout(&perfprop(&folder, &["fit", file, "--model", "auto"]));
        assert!(text.lines().nth(1).unwrap().contains("intercept + "), "{text}");
    }
    let args = ["fit", "negative.csv", "--model", "const", "--model", "a * sqrt(n)"];
    refused(
        &folder,
        &args,
        2,
        "only one of the models can be fitted, and nothing is compared with it: the model has no",
    );
}

/// What auto finds of a power of n, off by up to 9 % in ways that no model has.
fn found_of_power(power: f64) -> String {
    let time = |step: i32| (1000.0 * f64::from(step).exp2()).powf(power) * (1.0 + 0.04 * f64::from(step * 7 % 5 - 2));
    let rows =
        (0..12).flat_map(|step| (0..3).map(move |run| (step, 9.0 * time(step) * (1.0 + 0.01 * f64::from(run - 1)))));
    let csv = rows.fold("n,time\n".to_owned(), |text, (step, time)| text + &format!("{},{time:.0}\n", 1000 << step));
    let folder = Folder::new().with("power.csv", &csv);
    stdout(&perfprop(&folder, &["fit", "power.csv", "--model", "auto"])).replace("\n ", " ")
}

#[test]
fn models_that_predict_as_well_as_the_likeliest_are_named() {
    // Between n log n and the power that auto knows.
    let between = found_of_power(1.15);
    let wanted = "These models predict sizes that the fit did not see as well, within chance, so the data don't rule them out: intercept + coeff * n * log2(1 + n).";
    assert!(between.contains("14.8 times likelier than") && between.contains(wanted), "{between}");
    // Nearer to n log n.
    let sure = found_of_power(1.1);
    assert!(sure.contains("a million times likelier than") && !sure.contains("within chance"), "{sure}");
}

/// 100 + n up to 1,000, and 9 a piece from there on, off by up to 2 parts in 1,000.
fn broken_line() -> String {
    let time = |n: f64| 100.0 + n.min(1000.0) + 9.0 * (n - 1000.0).max(0.0);
    let rows = (0..16).flat_map(|step| (0..3).map(move |run| (100.0 * f64::from(step).mul_add(0.3, 0.0).exp2(), run)));
    rows.fold("n,time\n".to_owned(), |text, (n, run)| {
        text + &format!("{n},{}\n", time(n) * (1.0 + 0.002 * f64::from(run - 1)))
    })
}

#[test]
fn where_a_cost_changes_is_found_named_and_drawn() {
    let folder = Folder::new().with("walk.csv", &broken_line());
    // Rounding decides whether the break is 1000 or nearly so.
    let rounded = |text: String| text.replace("1.00k", "1k");
    let text = rounded(stdout(&perfprop(&folder, &["fit", "walk.csv", "--model", "auto", "--plot", "walk.svg"])));
    assert!(text.lines().nth(1).unwrap().ends_with("breakdown_const(n, break)"), "{text}");
    assert!(
        text.contains("\n breakdown_const(n, break), break = 1k:\n   more than a million times likelier than"),
        "{text}"
    );
    let line = text.lines().find(|line| line.ends_with("break, where it changes")).unwrap();
    assert!(line.trim_start().starts_with("1k "), "{line}");
    let picture = rounded(fs::read_to_string(folder.join("walk.svg")).unwrap());
    assert!(
        picture.contains("break = 1k") && picture.contains("the median of 3 runs") && picture.ends_with("</svg>\n"),
        "{picture}"
    );
    let function = stdout(&perfprop(&folder, &["fit", "walk.csv", "--model", "breakdown_const", "--emit", "c"]));
    assert!(
        function.lines().any(|line| line.starts_with("// at = ") && line.contains(", where it changes")),
        "{function}"
    );
    // The break is in the model that predicts, and in its intervals.
    stdout(&perfprop(
        &folder,
        &["fit", "walk.csv", "--model", "breakdown_const", "--emit", "json", "-o", "walk.model"],
    ));
    let text = stdout(&perfprop(&folder, &["predict", "walk.model", "n=2000"]));
    assert!(text.starts_with("n=2000  10.1 µs   "), "{text}");
    refused(&folder, &["fit", ".", "--model", "n", "--plot", "a.svg"], 2, "--plot is for one file");
}

#[test]
fn an_event_as_a_function_of_others_is_a_relation() {
    let sample = |n: u32| {
        let (instructions, misses) = (1000 * n, 7 * n + n * n);
        let cycles = 2 * instructions + 30 * misses;
        format!(
            r#"{{"sizes":{{"n":{n}}},"samples":{{"cycles":[{cycles}],"instructions":[{instructions}],"cache-misses":[{misses}]}}}}"#
        )
    };
    let header = r#"{"perfprop_workload":1,"name":"walk","sizes":["n"]}"#.to_owned();
    let lines = (1..=6).fold(header + "\n", |text, n| text + &sample(n) + "\n");
    let folder = Folder::new().with("walk.jsonl", &lines);
    let fit = |model: &str, more: &[&str]| {
        let options = ["fit", "walk.jsonl", "--response", "cycles", "--model", model];
        perfprop(&folder, &[&options, more].concat())
    };
    let model = "cpi * instructions + penalty * cache_misses";
    stdout(&fit(model, &["--emit", "relations", "-o", "cycles.json"]));
    let text = stdout(&perfprop(&folder, &["relations", "show", "cycles.json"]));
    assert!(text.contains("cycles = 2 * instructions + 30 * cache-misses"), "{text}");
    // Several files are one list, in which each has an id of its own.
    let folder_of_two = folder.join("walks");
    fs::create_dir(&folder_of_two).unwrap();
    for name in ["walk 1.jsonl", "walk-2.jsonl"] {
        fs::write(folder_of_two.join(name), &lines).unwrap();
    }
    let options = ["fit", "walks", "--response", "cycles", "--model", model, "--emit", "relations", "-o", "walks.json"];
    stdout(&perfprop(&folder, &options));
    let text = stdout(&perfprop(&folder, &["relations", "show", "walks.json"]));
    assert!(text.contains("fitted-cycles-walk_1") && text.contains("fitted-cycles-walk_2"), "{text}");
    for (model, more, words) in [
        (
            "cpi * instructions + constant",
            &["--set", "constant=5", "--emit", "relations"][..],
            "leave the constant out",
        ),
        ("cost * n", &["--emit", "relations"], "'n' is a size"),
    ] {
        let said = String::from_utf8(fit(model, more).stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_folder_shows_which_file_finds_what_for_which() {
    let clock = "n,time\n1,20\n2,20\n3,20\n";
    let folder = Folder::new().with("a.csv", clock).with("b.csv", clock);
    let with_model = |name: &str, model: &str| {
        let header = format!(r#"{{"perfprop_workload":1,"name":"{name}","sizes":["n"],"model":"{model}"}}"#);
        let line = |n: u32| format!(r#"{{"sizes":{{"n":{n}}},"samples":{{"time":[{}]}}}}"#, 20 + 3 * n);
        (1..=4).fold(header, |text, n| text + "\n" + &line(n))
    };
    let folder_of_two = folder.join("two");
    fs::create_dir(&folder_of_two).unwrap();
    fs::write(folder_of_two.join("clock.jsonl"), with_model("clock", "timer")).unwrap();
    fs::write(folder_of_two.join("sort.jsonl"), with_model("sort", "timer + swap * n")).unwrap();
    let text = stdout(&perfprop(&folder, &["fit", "two", "--graph"]));
    assert!(text.contains("1. two/clock.jsonl finds timer") && text.contains("2. two/sort.jsonl finds swap"), "{text}");
    assert!(text.contains("with timer of two/clock.jsonl"), "{text}");
    let dot = stdout(&perfprop(&folder, &["fit", "two", "--graph", "dot"]));
    assert!(
        dot.starts_with("digraph") && dot.contains(r#""two/clock.jsonl" -> "two/sort.jsonl" [label="timer"]"#),
        "{dot}"
    );
    refused(&folder, &["fit", "a.csv", "--graph"], 2, "--graph is for a folder");
}

/// The program of an example, which `cargo test` builds beside the tests.
fn example(name: &str) -> Option<String> {
    let program = std::env::current_exe().ok()?.parent()?.parent()?.join("examples").join(name);
    program.exists().then(|| program.display().to_string())
}

/// The growth of instructions of a merge sort under the emulated PMU, with numbers that a seed draws: the value and the
/// interval of what each n log2(1 + n) costs.
fn merge_sort(folder: &Folder, program: &str, seed: &str) -> (f64, f64, f64) {
    let file = format!("sort-{seed}.jsonl");
    let sizes = "n=log:300..6000:6";
    let options = ["bench", "-P", sizes, "-r", "1", "--warmup", "0", "-e", "instructions", "--source", "emulate"];
    let output = perfprop(folder, &[&options[..], &["-o", &file, "--", program, "{n}", seed]].concat());
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("times are those of the emulation"), "{said}");
    let model = stdout(&perfprop(
        folder,
        &[
            "fit",
            &file,
            "--response",
            "instructions",
            "--model",
            "a + b * n + theta1 * n * log2(1 + n)",
            "--emit",
            "json",
        ],
    ));
    let model: Value = serde_json::from_str(&model).unwrap();
    let coefficients = model["coefficients"].as_array().unwrap();
    let theta = coefficients.iter().find(|found| found["name"] == "theta1").unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    (number(&theta["value"]), number(&theta["interval"][0]), number(&theta["interval"][1]))
}

#[test]
fn the_growth_of_a_merge_sort_is_found_and_found_again() {
    let Some(program) = example("merge_sort") else {
        eprintln!("skipped: the example merge_sort isn't built (cargo build --example merge_sort)");
        return;
    };
    let folder = Folder::new();
    let probe = perfprop(&folder, &["stat", "--source", "emulate", "-e", "instructions", "--", "true"]);
    if !probe.status.success() {
        eprintln!("skipped: nothing is emulated here: {}", String::from_utf8_lossy(&probe.stderr));
        return;
    }
    let (first, low, high) = merge_sort(&folder, &program, "1");
    let (second, ..) = merge_sort(&folder, &program, "2");
    assert!(low <= second && second <= high, "{second} is not within {low} to {high}");
    assert!(low > 0.0 && high < 2.0 * first, "{low} to {high}");
    // A sort of twice as many numbers costs what the growth says: no quadratic one, no line.
    let file = "sort-1.jsonl";
    let auto = stdout(&perfprop(&folder, &["fit", file, "--response", "instructions", "--model", "auto"]));
    let best = auto.lines().nth(1).unwrap();
    assert!(best.contains("log2(1 + n)") || best.contains("pow(n, 1.2)"), "{auto}");
}

#[test]
fn the_best_of_several_models_is_fitted_in_a_folder_as_well() {
    let folder = Folder::new();
    fs::create_dir(folder.join("fits")).unwrap();
    let rows = (1..=8).fold("n,time\n".to_owned(), |text, n| text + &format!("{n},{}\n", 100 + 20 * n + n % 2));
    fs::write(folder.join("fits/line.csv"), rows).unwrap();
    let text = stdout(&perfprop(&folder, &["fit", "fits", "--model", "const", "--model", "a + b * n"]));
    assert!(text.contains("time = a + b * n"), "{text}");
    refused(&folder, &["fit", "fits/line.csv", "--model", "n", "--plot", "a.png"], 2, "ends in .svg");
    stdout(&perfprop(&folder, &["fit", "fits/line.csv", "--model", "const", "--statistic", "p0"]));
}

#[test]
fn options_that_a_solver_has_not_are_refused() {
    let folder = Folder::new().with("line.csv", &line());
    let fit = |more: &[&'static str]| [&["fit", "line.csv", "--model", "affine"], more].concat();
    for (more, words) in [
        (
            ["--solver=ols", "--positive"],
            "--solver ols can't keep coefficients from 0 up (--positive): choose --solver nnls or lasso",
        ),
        (["--solver=robust", "--positive"], "--solver robust can't"),
        (["--solver=ridge", "--positive"], "--solver ridge can't"),
        (
            ["--solver=ols", "--alpha=2"],
            "--solver ols pulls nothing towards 0 (--alpha): choose --solver ridge or lasso",
        ),
        (["--solver=nnls", "--alpha=2"], "--solver nnls pulls"),
        (["--cull=0", "--statistic=mean"], "a number above 0"),
    ] {
        refused(&folder, &fit(&more), 2, words);
    }
    for more in [["--solver=lasso", "--positive"], ["--solver=nnls", "--positive"], ["--solver=ridge", "--alpha=0.1"]] {
        stdout(&perfprop(&folder, &fit(&more)));
    }
}

#[test]
fn sizes_that_were_left_out_are_named() {
    let rows = (1..=12)
        .fold("n,time\n".to_owned(), |text, n| text + &format!("{n}00,{}\n", if n == 12 { 90_000 } else { 100 + n }));
    let folder = Folder::new().with("odd.csv", &rows);
    let text = stdout(&perfprop(&folder, &["fit", "odd.csv", "--model", "const", "--cull", "2"]));
    assert!(text.contains("1 set of sizes was left out") && text.contains("as odd ones: n=1200\n"), "{text}");
}

#[test]
fn a_coefficient_that_two_files_find_is_told_with_who_uses_it() {
    let rows = (1..=6).fold("n,time\n".to_owned(), |text, n| text + &format!("{n},{}\n", 100 + 20 * n + n % 2));
    let folder = Folder::new().with("two/a.csv", &rows).with("two/b.csv", &rows);
    let said = |model: &str| {
        let output = perfprop(&folder, &["fit", "two", "--model", model]);
        stdout(&output);
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said("a + b * n");
    assert!(text.contains("each find a: each keeps its own"), "{text}");
    assert!(!text.contains("use what"), "{text}");
}

#[test]
fn times_of_events_have_a_unit() {
    let folder = Folder::new().with("cpu.csv", &line().replace("time", "user_time"));
    let text = stdout(&perfprop(&folder, &["fit", "cpu.csv", "--model", "affine", "--response", "user_time"]));
    assert!(text.contains("2.00 ns") && text.contains("300 ns"), "{text}");
}

#[test]
fn a_response_keeps_the_unit_that_its_name_has() {
    let folder = Folder::new().with("f.csv", "n,latency_ms\n10,1.5\n20,2.5\n40,4.5\n80,8.5\n");
    let fit = |args: &[&str]| {
        stdout(&perfprop(
            &folder,
            &[&["fit", "f.csv", "--response", "latency_ms", "--model", "a + b * n"], args].concat(),
        ))
    };
    let text = fit(&[]);
    for words in ["500 µs", "100 µs", " 1.50 ms  "] {
        assert!(text.contains(words), "{words} in {text}");
    }
    // A time that is given is one of the same unit.
    let text = fit(&["--set", "a=500us"]);
    assert!(text.contains("100 µs") && text.contains("500 µs"), "{text}");
    fs::write(folder.join("m.json"), fit(&["--emit", "json"])).unwrap();
    assert!(stdout(&perfprop(&folder, &["predict", "m.json", "n=60"])).contains("6.50 ms"));
}

#[test]
fn errors_of_long_models_are_short() {
    let folder = Folder::new().with("line.csv", &line());
    let long = "x".repeat(60_000);
    let many: Vec<String> = (0..5000).map(|number| format!("a{number}")).collect();
    for (model, words) in [
        (format!("{long} {long}"), "expected an operator"),
        (many.join(" + "), "4 sets of sizes can't tell 5000 coefficients ('a0', 'a1', 'a10'"),
        (format!("({}) * b", many.join(" + ")), "and 4993 more can't all be found"),
        (format!("n * pow(2, {long})"), "can't be found"),
    ] {
        let output = perfprop(&folder, &["fit", "line.csv", "--model", &model]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.len() < 1000 && text.contains(words), "{} bytes: {}", text.len(), &text[..text.len().min(1000)]);
    }
}

#[test]
fn numbers_that_cannot_be_squared_are_refused() {
    let folder = Folder::new().with("times.csv", "n,time\n1,1e308\n2,1e308\n3,1.5e308\n");
    let folder = folder.with("sizes.csv", "n,time\n1e300,1\n2e300,2\n3e300,3\n").with("twice.csv", "n,n,time\n1,2,3\n");
    for file in ["times.csv", "sizes.csv"] {
        refused(&folder, &["fit", file, "--model", "a + b * n"], 2, "too large to be fitted");
    }
    refused(&folder, &["fit", "twice.csv", "--model", "a + b * n"], 2, "two columns are named 'n'");
}
