//! Benches closures of this program: one at many sizes, or two in turns.
//!
//! ```
//! # extern crate perfprop_core as perfprop;
//! use perfprop::bench::{ClosureBench, timer_latency};
//! use perfprop::cost::{CostModel, Fit, FitOptions};
//!
//! let mut bench = ClosureBench::new("sort", &["n"]).repeats(5);
//! for n in [100, 200, 400, 800] {
//!     // What is made for a call isn't in its time.
//!     let numbers = move || (0..n).map(|i| i * 7919 % n).collect::<Vec<u64>>();
//!     bench.with_context(&[n as f64], numbers, |numbers| numbers.sort_unstable());
//! }
//! let file = bench.run();
//! let model = CostModel::parse("nlogn", &file.header.sizes)?;
//! let fit = Fit::new(&model, &file, &FitOptions::default())?;
//! assert!(fit.fitted.coefficients.iter().any(|found| found.name == "coeff"));
//! # let _ = timer_latency(5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod paired;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

pub use paired::{PairedChange, paired};

use super::order;
use crate::cost::{TIME, Workload, WorkloadFile, WorkloadHeader};
use crate::run::MeasuredMachine;

/// A measurement of a closure that has no context lasts so long at least, so that the timer takes little of it.
const LEAST: Duration = Duration::from_micros(20);

/// Measures closures at many sizes, for a [`Fit`](crate::cost::Fit).
pub struct ClosureBench<'a> {
    name: String,
    sizes: Vec<String>,
    cases: Vec<Case<'a>>,
    repeats: usize,
    warmups: usize,
    seed: u64,
}

/// A closure at some sizes.
struct Case<'a> {
    sizes: BTreeMap<String, f64>,
    /// Measures it: the time of a call, in nanoseconds.
    measure: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> ClosureBench<'a> {
    /// A bench without closures, whose closures have these sizes. Each is measured 30 times after one warm-up.
    pub fn new(name: &str, sizes: &[&str]) -> Self {
        let sizes = sizes.iter().map(|&size| size.to_owned()).collect();
        Self { name: name.to_owned(), sizes, cases: Vec::new(), repeats: 30, warmups: 1, seed: 1 }
    }

    /// How often each closure is measured.
    pub fn repeats(self, repeats: usize) -> Self {
        Self { repeats, ..self }
    }

    /// How often each closure is measured before anything is kept.
    pub fn warmups(self, warmups: usize) -> Self {
        Self { warmups, ..self }
    }

    /// What the shuffled order of measurements is drawn by.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Adds a closure with values of the sizes, in the order of their names. It is called as often as it takes for the
    /// timer not to matter, so that it must do the same in each call.
    ///
    /// # Panics
    /// Panics where there are more or fewer values than names.
    pub fn plain<R>(&mut self, sizes: &[f64], mut run: impl FnMut() -> R + 'a) {
        let mut calls = 1_u32;
        let measure = move || {
            loop {
                let start = Instant::now();
                for _ in 0..calls {
                    black_box(run());
                }
                let elapsed = start.elapsed();
                if elapsed >= LEAST || calls >= 1 << 24 {
                    return elapsed.as_nanos() as f64 / f64::from(calls);
                }
                calls *= 2;
            }
        };
        self.add(sizes, measure);
    }

    /// Adds a closure that wants something made anew for each call: what makes it is outside of the time. The timer's
    /// latency is in it; see [`timer_latency`].
    ///
    /// # Panics
    /// Panics where there are more or fewer values than names.
    pub fn with_context<C, R>(
        &mut self,
        sizes: &[f64],
        mut make: impl FnMut() -> C + 'a,
        mut run: impl FnMut(&mut C) -> R + 'a,
    ) {
        let measure = move || {
            let mut context = black_box(make());
            let start = Instant::now();
            let result = black_box(run(&mut context));
            let elapsed = start.elapsed();
            drop((result, context));
            elapsed.as_nanos() as f64
        };
        self.add(sizes, measure);
    }

    fn add(&mut self, sizes: &[f64], measure: impl FnMut() -> f64 + 'a) {
        assert_eq!(sizes.len(), self.sizes.len(), "a value for each of the sizes {:?}", self.sizes);
        let sizes = self.sizes.iter().cloned().zip(sizes.iter().copied()).collect();
        self.cases.push(Case { sizes, measure: Box::new(measure) });
    }

    /// Measures all closures, in shuffled order, so that a drift of the machine is in all of them alike.
    pub fn run(mut self) -> WorkloadFile {
        let mut workloads: Vec<Workload> = (self.cases.iter())
            .map(|case| Workload { sizes: case.sizes.clone(), samples: BTreeMap::new(), order: Vec::new() })
            .collect();
        for place in order(self.cases.len(), self.warmups, self.seed) {
            black_box((self.cases[place].measure)());
        }
        for (run, place) in order(self.cases.len(), self.repeats, self.seed.wrapping_add(1)).into_iter().enumerate() {
            let time = (self.cases[place].measure)();
            workloads[place].samples.entry(TIME.to_owned()).or_default().push(time);
            workloads[place].order.push(run as u32);
        }
        let machine = MeasuredMachine::this();
        let header = WorkloadHeader {
            perfprop_workload: 1,
            name: self.name,
            sizes: self.sizes,
            machine,
            ..WorkloadHeader::default()
        };
        WorkloadFile { header, workloads }
    }
}

/// Measures what reading the timer twice takes: the benchmark that finds `timer` for models such as
/// `timer + coeff * n`, where it stands in one folder with them.
pub fn timer_latency(repeats: usize) -> WorkloadFile {
    let mut bench = ClosureBench::new("timer", &[]).repeats(repeats);
    bench.with_context(&[], || (), |()| ());
    let mut file = bench.run();
    file.header.model = Some("timer".to_owned());
    file
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn closures_are_measured_as_often_as_said_and_contexts_are_made_for_each_call() {
        let (made, run) = (Cell::new(0), Cell::new(0));
        let mut bench = ClosureBench::new("count", &["n", "m"]).repeats(3).warmups(2).seed(7);
        bench.with_context(
            &[1.0, 2.0],
            || made.set(made.get() + 1),
            |()| {
                run.set(run.get() + 1);
                assert_eq!(made.get(), run.get());
            },
        );
        bench.plain(&[2.0, 2.0], || 1 + 1);
        let file = bench.run();
        assert_eq!((run.get(), file.workloads.len(), file.workloads[0].sizes["m"]), (5, 2, 2.0));
        let mut order: Vec<u32> = file.workloads.iter().flat_map(|workload| workload.order.clone()).collect();
        order.sort_unstable();
        assert_eq!(order, (0..6).collect::<Vec<_>>());
        assert!(file.workloads.iter().all(|workload| workload.samples[TIME].iter().all(|time| *time >= 0.0)));
    }

    #[test]
    fn a_bench_without_closures_measures_nothing() {
        assert!(ClosureBench::new("nothing", &["n"]).run().workloads.is_empty());
    }

    #[test]
    fn the_timer_is_a_benchmark_without_sizes() {
        let file = timer_latency(4);
        assert_eq!((file.workloads.len(), file.workloads[0].samples[TIME].len()), (1, 4));
        assert_eq!(file.header.model.as_deref(), Some("timer"));
    }
}
