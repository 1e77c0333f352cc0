//! Fits a linear regression by gradient ascent, and names the parts of its log density.
//!
//! Run it as `perfprop stat -- target/debug/examples/linear_regression`, or with `PERFPROP_REGION_CSV=-`.
//!
//! The model is `y ~ normal(x * b + a, sigma)` with normal priors. Operations are recorded on a tape, which is run backwards
//! for the gradient: each region has a forward and a reverse time.

#![allow(clippy::print_stdout, reason = "an example prints")]

use perfprop_regions::{Counter, Region, counter, phase};

static MODEL: Region = Region::new("model");
static PRIOR: Region = Region::new("prior");
static LIKELIHOOD: Region = Region::new("likelihood");

/// A number that knows its place on the tape.
#[derive(Clone, Copy)]
struct Var {
    value: f64,
    place: usize,
}

/// What the tape keeps of an operation: of which numbers, and its derivatives by them.
enum Entry {
    Input,
    Operation([(usize, f64); 2]),
    Begin,
    End(&'static Region),
}

#[derive(Default)]
struct Tape {
    entries: Vec<Entry>,
}

impl Tape {
    fn push(&mut self, entry: Entry, value: f64) -> Var {
        self.entries.push(entry);
        Var { value, place: self.entries.len() - 1 }
    }

    fn input(&mut self, value: f64) -> Var {
        self.push(Entry::Input, value)
    }

    fn add(&mut self, a: Var, b: Var) -> Var {
        self.push(Entry::Operation([(a.place, 1.0), (b.place, 1.0)]), a.value + b.value)
    }

    fn scale(&mut self, a: Var, factor: f64) -> Var {
        self.push(Entry::Operation([(a.place, factor), (a.place, 0.0)]), a.value * factor)
    }

    /// The logarithm of the density of a normal variable, without its constant.
    fn normal(&mut self, a: Var, mean: f64) -> Var {
        let off = a.value - mean;
        self.push(Entry::Operation([(a.place, -off), (a.place, 0.0)]), -0.5 * off * off)
    }

    /// Does something in a region that has a run backwards as well, and counts how long the tape gets.
    fn within<T>(&mut self, region: &'static Region, length: Counter, action: impl FnOnce(&mut Self) -> T) -> T {
        let open = region.enter_recorded();
        self.entries.push(Entry::Begin);
        let before = self.entries.len();
        let done = action(self);
        open.count(length, (self.entries.len() - before) as u64);
        self.entries.push(Entry::End(region));
        done
    }

    /// The derivatives of a number by all on the tape.
    fn backwards(&self, of: Var) -> Vec<f64> {
        let mut derivatives = vec![0.0; self.entries.len()];
        derivatives[of.place] = 1.0;
        let mut runs = Vec::new();
        for (place, entry) in self.entries.iter().enumerate().rev() {
            match entry {
                Entry::Input => {}
                Entry::Operation(operands) => {
                    let derivative = derivatives[place];
                    operands.iter().for_each(|(operand, by)| derivatives[*operand] += derivative * by);
                }
                Entry::End(region) => runs.push(region.reverse()),
                Entry::Begin => drop(runs.pop()),
            }
        }
        derivatives
    }
}

/// The log density, and its gradient.
fn log_density(data: &[(f64, f64)], at: [f64; 2], length: Counter) -> (f64, [f64; 2]) {
    let mut tape = Tape::default();
    let (a, b) = (tape.input(at[0]), tape.input(at[1]));
    let sum = tape.within(&MODEL, length, |tape| {
        let prior = tape.within(&PRIOR, length, |tape| {
            let (of_a, of_b) = (tape.normal(a, 0.0), tape.normal(b, 0.0));
            tape.add(of_a, of_b)
        });
        let likelihood = tape.within(&LIKELIHOOD, length, |tape| {
            data.iter().fold(tape.input(0.0), |sum, &(x, y)| {
                let slope = tape.scale(b, x);
                let mean = tape.add(a, slope);
                let one = tape.normal(mean, y);
                tape.add(sum, one)
            })
        });
        tape.add(prior, likelihood)
    });
    let derivatives = tape.backwards(sum);
    (sum.value, [derivatives[a.place], derivatives[b.place]])
}

fn main() {
    let length = counter("chain_stack");
    let data: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i) / 1000.0, 1.0 + 2.0 * f64::from(i) / 1000.0)).collect();
    let mut at = [0.0, 0.0];
    phase("warmup");
    for step in 0..400 {
        if step == 100 {
            phase("");
        }
        let (_, gradient) = log_density(&data, at, length);
        at = [at[0] + 5e-4 * gradient[0], at[1] + 5e-4 * gradient[1]];
    }
    println!("a = {:.3}, b = {:.3}", at[0], at[1]);
}
