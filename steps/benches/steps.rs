//! Detects the steps of series that it reads as JSON lines, for benches/steps.py: prints where each begins, and the seconds
//! that it took.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and stops at what is wrong"
)]

use std::io::stdin;
use std::time::Instant;

use perfprop_steps::{StepMethod, detect};
use serde_json::{Value, json};

fn main() {
    for line in stdin().lines() {
        let series: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let numbers = |name: &str| -> Option<Vec<Option<f64>>> {
            series[name].as_array().map(|numbers| numbers.iter().map(Value::as_f64).collect())
        };
        let method = if series["method"] == "potts" { StepMethod::Potts } else { StepMethod::Best };
        let (values, weights) = (numbers("values").unwrap(), numbers("weights"));
        let start = Instant::now();
        let steps = detect(&values, weights.as_deref(), method);
        let seconds = start.elapsed().as_secs_f64();
        let lefts: Vec<usize> = steps.iter().skip(1).map(|step| step.left).collect();
        println!("{}", json!({ "steps": lefts, "seconds": seconds }));
    }
}
