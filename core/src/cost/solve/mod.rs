//! Solves regressions: the x for which A x is nearest to t, under a rule of the solver's.

mod lasso;
mod nonnegative;
mod robust;

use perfprop_linear_algebra::Tall;

pub use robust::huber_weights;

/// How coefficients are found. There is no intercept but by a column of ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver {
    /// Least squares of |A x - t|^2.
    LeastSquares,
    /// Least squares with no coefficient below 0: a cost isn't negative.
    NonNegative,
    /// The least |A x - t|^2 + alpha |x|^2: coefficients are pulled towards 0.
    Ridge {
        /// The weight of the pull.
        alpha: f64,
    },
    /// The least |A x - t|^2 / (2 n) + alpha (|x_1| + |x_2| + ...) of n rows: small coefficients become 0.
    Lasso {
        /// The weight of the pull.
        alpha: f64,
        /// Whether no coefficient may be below 0.
        is_positive: bool,
    },
    /// Huber's regression: what lies far off counts for less (see [`huber_weights`]).
    Robust,
}

impl Solver {
    /// Whether no coefficient may be below 0.
    pub fn is_positive(self) -> bool {
        matches!(self, Self::NonNegative | Self::Lasso { is_positive: true, .. })
    }
}

/// A x is to be near t.
#[derive(Clone, Debug, PartialEq)]
pub struct Equations {
    /// A: a column for each coefficient, a row for each measurement.
    pub matrix: Tall,
    /// t: what was measured.
    pub target: Vec<f64>,
}

impl Equations {
    /// The coefficients by a solver. Where columns follow from others, those that say least are 0.
    pub fn solve(&self, solver: Solver) -> Vec<f64> {
        match solver {
            Solver::LeastSquares => self.matrix.reduced(&self.target).solution(),
            Solver::NonNegative => nonnegative::solve(self),
            Solver::Ridge { alpha } => self.ridge(alpha),
            Solver::Lasso { alpha, is_positive } => lasso::solve(self, alpha, is_positive),
            Solver::Robust => robust::solve(self),
        }
    }

    /// What is left of t.
    pub fn residuals(&self, x: &[f64]) -> Vec<f64> {
        self.target.iter().zip(self.matrix.times(x)).map(|(t, fitted)| t - fitted).collect()
    }

    /// The equations with each row times a number.
    pub fn scaled_rows(&self, factors: &[f64]) -> Self {
        let scaled = |values: &[f64]| values.iter().zip(factors).map(|(value, factor)| value * factor).collect();
        let columns = self.matrix.columns().iter().map(|column| scaled(column)).collect();
        Self { matrix: Tall::new(self.matrix.rows(), columns), target: scaled(&self.target) }
    }

    /// Least squares of these rows, and behind them a row sqrt(alpha) x_j = 0 for each j.
    fn ridge(&self, alpha: f64) -> Vec<f64> {
        let reduced = self.matrix.reduced(&self.target);
        let mut columns = reduced.triangle().columns().to_vec();
        let size = columns.len();
        for (place, column) in columns.iter_mut().enumerate() {
            column.resize(2 * size, 0.0);
            column[size + place] = alpha.max(0.0).sqrt();
        }
        let mut target = reduced.head;
        target.resize(2 * size, 0.0);
        Tall::new(2 * size, columns).factored(target).solution()
    }
}

/// The length of a vector.
fn length(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equations(columns: &[&[f64]], target: &[f64]) -> Equations {
        let columns = columns.iter().map(|column| column.to_vec()).collect();
        Equations { matrix: Tall::new(target.len(), columns), target: target.to_vec() }
    }

    fn near(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    const ONES: [f64; 4] = [1.0; 4];
    const SIZES: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

    #[test]
    fn a_falling_line_by_hand() {
        // 9 - 2 n: without negative coefficients the best is the mean, 6.
        let falling = equations(&[&ONES, &SIZES], &[9.0, 7.0, 5.0, 3.0]);
        assert!(near(&falling.solve(Solver::LeastSquares), &[9.0, -2.0]));
        assert!(near(&falling.solve(Solver::NonNegative), &[6.0, 0.0]));
        assert!(near(&falling.solve(Solver::Lasso { alpha: 0.0, is_positive: true }), &[6.0, 0.0]));
    }

    #[test]
    fn one_column_by_hand() {
        // a't = 20 and a'a = 10: 20 / (10 + 10), and (20 - 4 * 1.5) / 10 of four rows.
        let one = equations(&[&[1.0, 2.0, 2.0, 1.0]], &[2.0, 4.0, 4.0, 2.0]);
        assert!(near(&one.solve(Solver::Ridge { alpha: 10.0 }), &[1.0]));
        assert!(near(&one.solve(Solver::Lasso { alpha: 1.5, is_positive: false }), &[1.4]));
        // A price above the product makes it 0.
        assert!(near(&one.solve(Solver::Lasso { alpha: 5.1, is_positive: false }), &[0.0]));
    }

    #[test]
    fn a_lasso_of_fewer_rows_than_columns_by_hand() {
        // One row, 2 = x_0 + 2 x_1: the longer column costs half of the size. x_1 = (2 * 2 - 0.5) / 4.
        let one_row = equations(&[&[1.0], &[2.0]], &[2.0]);
        // The third column is the sum of the others, and takes over from them: (20 - 2 * 0.5) / 10 of two rows.
        let sum = equations(&[&[3.0, 0.0], &[0.0, 1.0], &[3.0, 1.0]], &[6.0, 2.0]);
        let smaller = equations(&[&[-3.0, 0.0], &[0.0, 1.0], &[-3.0, 1.0]], &[6.0, -2.0]);
        for is_positive in [false, true] {
            let solver = Solver::Lasso { alpha: 0.5, is_positive };
            assert!(near(&one_row.solve(solver), &[0.0, 0.875]));
            assert!(near(&sum.solve(solver), &[0.0, 0.0, 1.9]));
        }
        let both = Solver::Lasso { alpha: 0.5, is_positive: false };
        assert!(near(&smaller.solve(both), &[0.0, 0.0, -1.9]));
    }

    #[test]
    fn one_measurement_far_off_moves_robust_lines_little() {
        let mut target: Vec<f64> = (0..20).map(|n| 5.0 + 3.0 * f64::from(n) + f64::from(n % 3) * 0.1).collect();
        target[15] += 1000.0;
        let sizes: Vec<f64> = (0..20).map(f64::from).collect();
        let line = equations(&[&[1.0; 20], &sizes], &target);
        let [plain, robust] = [Solver::LeastSquares, Solver::Robust].map(|solver| line.solve(solver)[1]);
        assert!((plain - 3.0).abs() > 5.0 && (robust - 3.0).abs() < 0.02, "{plain} {robust}");
        // Two standard deviations off: the weight is 1.345 of 2.
        let weights = huber_weights(&[-1.0, 1.0, -1.0, 1.0, 2.0 * 1.4826], 0);
        assert!((weights[4] - 1.345 / 2.0).abs() < 1e-12 && weights[0] == 1.0);
    }

    #[test]
    fn without_columns_or_with_empty_ones_nothing_is_found() {
        for solver in [
            Solver::LeastSquares,
            Solver::NonNegative,
            Solver::Ridge { alpha: 1.0 },
            Solver::Lasso { alpha: 1.0, is_positive: false },
            Solver::Robust,
        ] {
            assert!(equations(&[], &ONES).solve(solver).is_empty(), "{solver:?}");
            assert!(near(&equations(&[&[0.0; 4]], &ONES).solve(solver), &[0.0]), "{solver:?}");
            assert!(near(&equations(&[&ONES], &[0.0; 4]).solve(solver), &[0.0]), "{solver:?}");
        }
    }

    proptest! {
        /// As many rows as columns or fewer: a coefficient that isn't 0 is worth its price, none at 0 more.
        #[test]
        fn nothing_betters_a_lasso_of_few_rows(
            (rows, values) in (1..6_usize).prop_flat_map(|rows| (Just(rows), prop::collection::vec(-5.0..5.0_f64, rows * 6))),
            target in prop::collection::vec(-5.0..5.0_f64, 6),
            alpha in 0.01..1.0_f64,
        ) {
            let columns: Vec<&[f64]> = values.chunks(rows).collect();
            let problem = equations(&columns, &target[..rows]);
            let price = alpha * rows as f64;
            for is_positive in [false, true] {
                let x = problem.solve(Solver::Lasso { alpha, is_positive });
                let gains = problem.matrix.transposed_times(&problem.residuals(&x));
                for (&x, gain) in x.iter().zip(gains) {
                    let most = if is_positive { gain } else { gain.abs() };
                    let is_paid = x == 0.0 || (gain - price * x.signum()).abs() < 1e-7;
                    prop_assert!(most <= price + 1e-7 && is_paid && (x >= 0.0 || !is_positive), "{x} {gain} {price}");
                }
            }
        }

        /// The conditions of Karush, Kuhn and Tucker: no free coefficient can be bettered, none at 0 helps.
        #[test]
        fn nothing_betters_a_nonnegative_or_lasso_solution(
            values in prop::collection::vec(-5.0..5.0_f64, 40),
            target in prop::collection::vec(-5.0..5.0_f64, 10),
            alpha in 0.0..1.0_f64,
        ) {
            let columns: Vec<&[f64]> = values.chunks(10).collect();
            let problem = equations(&columns, &target);
            for (solver, price) in [(Solver::NonNegative, 0.0), (Solver::Lasso { alpha, is_positive: true }, alpha * 10.0)] {
                let x = problem.solve(solver);
                let gains = problem.matrix.transposed_times(&problem.residuals(&x));
                for (x, gain) in x.iter().zip(gains) {
                    prop_assert!(*x >= 0.0 && gain <= price + 1e-7 && (*x == 0.0 || gain >= price - 1e-7), "{x} {gain} {price}");
                }
            }
        }
    }
}
