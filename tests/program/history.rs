//! Tests `perfprop history` as a program.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::folders::Folder;

fn perfprop(folder: &Folder, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.current_dir(&**folder).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Two levels with a little noise.
fn two_levels() -> String {
    let noise = |at: i32| f64::from(at * 7 % 5) / 10.0;
    (0..40).map(|at| format!("c{at},{},1\n", noise(at) + if at < 25 { 10.0 } else { 12.0 })).collect()
}

#[test]
fn steps_of_a_file_as_text_and_as_json() {
    let folder = Folder::new();
    fs::write(folder.join("levels.csv"), format!("commit,time,weight\n{}", two_levels())).unwrap();
    for method in ["best", "potts"] {
        let output = perfprop(&folder, &["history", "steps", "-j", "--method", method, "levels.csv"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let steps = json["steps"].as_array().unwrap();
        assert_eq!((steps.len(), &steps[1]["left"], &steps[1]["from"]), (2, &Value::from(25), &Value::from("c25")));
        let change = &steps[1]["change"];
        assert!(change["chance"].as_f64().unwrap() < 1e-3 && change["low"].as_f64().unwrap() > 1.5, "{change}");
    }
    let text = String::from_utf8(perfprop(&folder, &["history", "steps", "levels.csv"]).stdout).unwrap();
    assert!(text.contains("40 values: 1 change of level") && text.contains("c25"), "{text}");
}

#[test]
fn what_is_no_series_is_refused_with_its_line() {
    let folder = Folder::new();
    let refused = |text: &[u8], words: &str| {
        fs::write(folder.join("in.txt"), text).unwrap();
        let output = perfprop(&folder, &["history", "steps", "in.txt"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("in.txt") && error.contains(words), "{error}");
    };
    refused(b"", "there are no values");
    refused(b"1\n2\nthree\n", "line 3: 'three' is no number");
    refused(b"1\nNaN\n", "line 2: 'NaN' can't be compared");
    refused(b"0,1,1\n1,,1\n", "line 2: there is a weight without a value");
    refused(b"\xff\xfe\x00", "it is no text");
    let output = perfprop(&folder, &["history", "steps", "nothing.txt"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("nothing.txt") && error.contains("No such file"), "{error}");
}
