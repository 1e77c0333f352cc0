//! Finds least squares with a price on the size of coefficients, by a search over their signs.
//!
//! Once it is known which coefficients are 0 and of which sign the others are, these solve linear equations (Lee, Battle,
//! Raina and Ng, "Efficient sparse coding algorithms", 2006: feature-sign search). So the coefficient whose price is exceeded most
//! joins the others with the sign that helps; the way to the solution for these signs is searched for the best point at
//! which one becomes 0. Where its column follows from those of the others, it takes over from them until one of them is 0.
//! Each step lowers the objective, so no signs come twice.

use super::nonnegative::small;
use super::{Equations, length};

/// More steps for each column than any problem needs that isn't stopped by rounding.
const STEPS: usize = 100;

struct Lasso {
    /// As many rows as columns, with the same least squares.
    small: Equations,
    /// The price of a coefficient's size, where the other part of the objective is half a sum of squares.
    price: f64,
    is_positive: bool,
}

pub(super) fn solve(equations: &Equations, alpha: f64, is_positive: bool) -> Vec<f64> {
    let price = alpha.max(0.0) * equations.matrix.rows() as f64;
    let problem = Lasso { small: small(equations), price, is_positive };
    let count = equations.matrix.columns().len();
    let mut x = vec![0.0; count];
    let mut refused = vec![false; count];
    for _ in 0..STEPS * count {
        let Some((joins, sign)) = problem.joins(&x, &refused) else { break };
        let mut signs = signs_of(&x);
        signs[joins] = sign;
        let before = problem.objective(&x);
        problem.descend(&mut x, signs);
        // Rounding alone said that it helps.
        if problem.objective(&x) < before { refused.fill(false) } else { refused[joins] = true }
    }
    x
}

impl Lasso {
    fn objective(&self, x: &[f64]) -> f64 {
        let squares: f64 = self.small.residuals(x).iter().map(|left| left * left).sum();
        0.5 * squares + self.price * x.iter().map(|x| x.abs()).sum::<f64>()
    }

    /// The coefficient that is 0 and whose price is exceeded most, by more than rounding; with the sign that helps.
    fn joins(&self, x: &[f64], refused: &[bool]) -> Option<(usize, f64)> {
        let left = self.small.matrix.transposed_times(&self.small.residuals(x));
        let lengths = self.small.matrix.columns().iter().map(|column| length(column));
        let slack = 1e-14 * length(&self.small.target);
        let gain = |left: f64| if self.is_positive { left } else { left.abs() };
        let candidates = left.iter().zip(lengths).enumerate().filter(|(j, _)| x[*j] == 0.0 && !refused[*j]);
        let exceeding = candidates.filter(|(_, (left, length))| gain(**left) > self.price + slack * length);
        let most = exceeding.max_by(|(_, (a, _)), (_, (b, _))| gain(**a).total_cmp(&gain(**b)));
        most.map(|(j, (left, _))| (j, left.signum()))
    }

    /// Goes to the optimum for these signs, or to the best point on the way at which a coefficient becomes 0, until all
    /// that aren't 0 are at their optimum.
    fn descend(&self, x: &mut Vec<f64>, mut signs: Vec<f64>) {
        for _ in 0..STEPS * x.len() {
            let point = match self.optimum(&signs) {
                Some(to) if to.iter().zip(&signs).all(|(to, sign)| to * sign >= 0.0) => {
                    *x = to;
                    return;
                }
                Some(to) => self.best_on_the_way(x, &to),
                None => self.exchanged(x, &signs),
            };
            match point {
                Some(point) if self.objective(&point) < self.objective(x) => *x = point,
                _ => return,
            }
            signs = signs_of(x);
        }
    }

    /// The best of the points between `x` and `to` at which a coefficient becomes 0, and of `to` where it is allowed.
    fn best_on_the_way(&self, x: &[f64], to: &[f64]) -> Option<Vec<f64>> {
        let crosses = |j: usize| x[j] != 0.0 && x[j] * to[j] < 0.0;
        let crossings = (0..x.len()).filter(|&j| crosses(j)).map(|j| (Some(j), x[j] / (x[j] - to[j])));
        let points = crossings.chain((!self.is_positive).then_some((None, 1.0)));
        let at = |(zero, part): (Option<usize>, f64)| {
            let mut point: Vec<f64> = x.iter().zip(to).map(|(x, to)| x + part * (to - x)).collect();
            if let Some(zero) = zero {
                point[zero] = 0.0;
            }
            point
        };
        let allowed = |point: &Vec<f64>| !self.is_positive || point.iter().all(|&x| x >= 0.0);
        points.map(at).filter(allowed).min_by(|a, b| self.objective(a).total_cmp(&self.objective(b)))
    }

    /// Where the column of the coefficient that joins follows from those of the others: the point at which it has taken
    /// over from them, until the first of them is 0. What is fitted stays the same, and the price falls.
    fn exchanged(&self, x: &[f64], signs: &[f64]) -> Option<Vec<f64>> {
        let joins = (0..x.len()).find(|&j| x[j] == 0.0 && signs[j] != 0.0)?;
        let others: Vec<usize> = (0..x.len()).filter(|&j| x[j] != 0.0).collect();
        let column = self.small.matrix.columns()[joins].clone();
        let shares = self.small.matrix.select(&others).factored(column).solution();
        let slopes: Vec<f64> = shares.iter().map(|share| share * signs[joins]).collect();
        let steps = others.iter().zip(&slopes).map(|(&j, slope)| (j, x[j] / slope));
        let falling = steps.filter(|(_, step)| *step > 0.0 && step.is_finite());
        let (leaves, step) = falling.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let mut point = x.to_vec();
        others.iter().zip(&slopes).for_each(|(&j, slope)| point[j] -= step * slope);
        (point[joins], point[leaves]) = (step * signs[joins], 0.0);
        if self.is_positive {
            point.iter_mut().for_each(|x| *x = x.max(0.0));
        }
        Some(point)
    }

    /// The optimum where coefficients without a sign are 0 and the price of the others goes by their sign; `None`
    /// where columns follow from one another.
    fn optimum(&self, signs: &[f64]) -> Option<Vec<f64>> {
        let active: Vec<usize> = (0..signs.len()).filter(|&j| signs[j] != 0.0).collect();
        let plain = self.small.matrix.select(&active).factored(self.small.target.clone());
        // A'A x = A't - price sign.
        let inverse = plain.inverse_gram()?;
        let pull = |row: usize| -> f64 { active.iter().enumerate().map(|(k, &j)| inverse.at(row, k) * signs[j]).sum() };
        let mut x = vec![0.0; signs.len()];
        for (place, (&j, value)) in active.iter().zip(plain.solution()).enumerate() {
            x[j] = value - self.price * pull(place);
        }
        Some(x)
    }
}

fn signs_of(x: &[f64]) -> Vec<f64> {
    x.iter().map(|&x| if x == 0.0 { 0.0 } else { x.signum() }).collect()
}
