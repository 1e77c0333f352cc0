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

    /// The same with each row times a number.
    pub fn scaled_rows(&self, factors: &[f64]) -> Self {
        let scaled = |values: &[f64]| values.iter().zip(factors).map(|(value, factor)| value * factor).collect();
        let columns = self.matrix.columns().iter().map(|column| scaled(column)).collect();
        Self { matrix: Tall::new(self.matrix.rows(), columns), target: scaled(&self.target) }
    }

    /// Least squares of these rows, and behind them a row sqrt(alpha) x_j = 0 for each j.
    fn ridge(&self, alpha: f64) -> Vec<f64> {
        let reduced = self.matrix.reduced(&self.target);
        let size = reduced.order.len();
        let mut columns = vec![vec![0.0; 2 * size]; size];
        for (place, &column) in reduced.order.iter().enumerate() {
            (0..=place).for_each(|row| columns[column][row] = reduced.r.at(row, place));
            columns[column][size + column] = alpha.max(0.0).sqrt();
        }
        let mut target = reduced.head;
        target.resize(2 * size, 0.0);
        Tall::new(2 * size, columns).factored(target).solution()
    }
}
