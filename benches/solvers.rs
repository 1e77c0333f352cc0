//! Times the solvers of `cost` on equations in a file; `benches/cost.py` runs it beside scikit-learn.
//! Run: `cargo bench --bench solvers -- FILE ROWS COLUMNS`, where FILE has the target and then each column, as
//! little-endian doubles. Prints a line of JSON: solver, median seconds, coefficients.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "prints results")]

use std::time::Instant;

use perfprop::cost::solve::{Equations, Solver};
use perfprop_linear_algebra::Tall;

const RUNS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let [file, rows, columns] = words.as_slice() else {
        println!("no file given: see benches/cost.py");
        return;
    };
    let (rows, columns): (usize, usize) = (rows.parse().unwrap(), columns.parse().unwrap());
    let bytes = std::fs::read(file).unwrap();
    let numbers: Vec<f64> = bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
    let column = |place: usize| numbers[place * rows..(place + 1) * rows].to_vec();
    let equations = Equations { matrix: Tall::new(rows, (1..=columns).map(column).collect()), target: column(0) };
    for (name, solver) in [
        ("ridge", Solver::Ridge { alpha: 1.0 }),
        ("lasso", Solver::Lasso { alpha: 0.01, is_positive: false }),
        ("nnls", Solver::NonNegative),
    ] {
        let mut times = Vec::new();
        let mut found = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            found = equations.solve(solver);
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        println!("{}", serde_json::json!({ "solver": name, "seconds": times[RUNS / 2], "coefficients": found }));
    }
}
