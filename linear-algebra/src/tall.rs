//! Factors and multiplies matrices of many rows and few columns, as regressions have them.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use crate::{Square, dot};

/// A matrix of many rows and few columns, one column after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tall {
    rows: usize,
    columns: Vec<Vec<f64>>,
}

/// So many rows pay for a thread.
const ROWS_OF_THREAD: usize = 16 << 10;

/// How many rows of two columns are multiplied before the next two: they stay in the first-level cache.
const BLOCK: usize = 512;

impl Tall {
    /// A matrix of these columns.
    ///
    /// # Panics
    /// Panics if they are not as long as `rows`.
    pub fn new(rows: usize, columns: Vec<Vec<f64>>) -> Self {
        assert!(columns.iter().all(|column| column.len() == rows), "all columns have as many rows");
        Self { rows, columns }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns.
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    /// The columns in these places, in this order.
    pub fn select(&self, places: &[usize]) -> Self {
        Self { rows: self.rows, columns: places.iter().map(|&place| self.columns[place].clone()).collect() }
    }

    /// A'A for this A, symmetric. Many rows are shared by the processors that there are.
    pub fn gram(&self) -> Square {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let parts = processors.min(self.rows / ROWS_OF_THREAD).max(1);
        // Whole blocks, so that a part begins where one does.
        let part = self.rows.div_ceil(parts).next_multiple_of(BLOCK);
        let ranges = (0..parts).map(|at| (at * part).min(self.rows)..((at + 1) * part).min(self.rows));
        let mut gram = Square::zeros(self.columns.len());
        thread::scope(|scope| {
            let others: Vec<_> = ranges.clone().skip(1).map(|rows| scope.spawn(move || self.gram_of(rows))).collect();
            gram = self.gram_of(0..part.min(self.rows));
            for other in others {
                gram.add(&other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
        });
        gram.mirror();
        gram
    }

    /// The lower half of A'A of some rows.
    fn gram_of(&self, rows: Range<usize>) -> Square {
        let mut gram = Square::zeros(self.columns.len());
        for start in rows.clone().step_by(BLOCK) {
            let end = rows.end.min(start + BLOCK);
            for (i, a) in self.columns.iter().enumerate() {
                for (j, b) in self.columns[..=i].iter().enumerate() {
                    *gram.at_mut(i, j) += dot(&a[start..end], &b[start..end]);
                }
            }
        }
        gram
    }

    /// Ax for this A.
    ///
    /// # Panics
    /// Panics if `x` is shorter than a row.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.rows];
        for (column, &factor) in self.columns.iter().zip(x) {
            if factor != 0.0 {
                product.iter_mut().zip(column).for_each(|(to, value)| *to += factor * value);
            }
        }
        product
    }

    /// A'v for this A.
    pub fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|column| dot(column, v)).collect()
    }

    /// QR, by Householder's reflections, of this matrix, and the first elements of Q't.
    ///
    /// The column that has most left of its length comes next (Golub and Van Loan, "Matrix Computations", 4th edition, 5.4.2, of
    /// columns of length 1), so that columns that follow from others come last, in whatever units columns are.
    pub fn factored(mut self, mut t: Vec<f64>) -> Factored {
        let count = self.columns.len().min(self.rows);
        let mut scales: Vec<f64> = self.columns.iter().map(|column| scale(column)).collect();
        for (column, scale) in self.columns.iter_mut().zip(&scales) {
            column.iter_mut().for_each(|value| *value /= scale);
        }
        let mut squares: Vec<f64> = self.columns.iter().map(|column| dot(column, column)).collect();
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        for step in 0..count {
            let most = step + self.column_with_most_left(step, &squares);
            self.columns.swap(step, most);
            order.swap(step, most);
            squares.swap(step, most);
            scales.swap(step, most);
            if !self.reflect(step, &mut t) {
                break;
            }
        }
        let mut r = Square::zeros(self.columns.len());
        for (j, (column, scale)) in self.columns.iter().zip(&scales).enumerate() {
            for (i, value) in column.iter().enumerate().take(j + 1) {
                *r.at_mut(i, j) = value * scale;
            }
        }
        let rest = dot(&t[count..], &t[count..]).sqrt();
        t.resize(self.columns.len(), 0.0);
        Factored { r, order, head: t, rest }
    }

    /// Which of the columns from `step` on has the largest part of its square left in the rows from there on.
    fn column_with_most_left(&self, step: usize, squares: &[f64]) -> usize {
        let left =
            |(column, square): (&Vec<f64>, &f64)| dot(&column[step..], &column[step..]) / square.max(f64::MIN_POSITIVE);
        let parts: Vec<f64> = self.columns[step..].iter().zip(&squares[step..]).map(left).collect();
        (0..parts.len()).fold(0, |most, place| if parts[place] > parts[most] { place } else { most })
    }

    /// Reflects so that nothing of a column is left below its diagonal, and the columns behind it and `t` likewise; false where
    /// nothing was left of it.
    fn reflect(&mut self, step: usize, t: &mut [f64]) -> bool {
        let (done, rest) = self.columns.split_at_mut(step + 1);
        let Some(column) = done.last_mut() else { return false };
        let norm = dot(&column[step..], &column[step..]).sqrt();
        if norm == 0.0 {
            return false;
        }
        // The reflection's vector: the sign keeps it from cancelling.
        let head = if column[step] > 0.0 { -norm } else { norm };
        let mut vector = column[step..].to_vec();
        vector[0] -= head;
        let square = dot(&vector, &vector);
        for other in rest.iter_mut().map(|column| &mut column[step..]).chain([&mut t[step..]]) {
            let factor = 2.0 * dot(&vector, other) / square;
            other.iter_mut().zip(&vector).for_each(|(to, value)| *to -= factor * value);
        }
        column[step..].fill(0.0);
        column[step] = head;
        true
    }

    /// The singular values, and the directions that have them in the rows of another matrix: rotations of pairs of columns
    /// until all are square to one another (Hestenes, "Inversion of matrices by biorthogonalization", 1958). Small ones have
    /// as many digits as large ones, which eigenvalues of A'A lack.
    pub fn singular_values(mut self) -> (Vec<f64>, Square) {
        let count = self.columns.len();
        let mut directions = vec![vec![0.0; count]; count];
        (0..count).for_each(|place| directions[place][place] = 1.0);
        for _ in 0..SWEEPS {
            let mut is_square = true;
            for (p, q) in (0..count).flat_map(|p| (p + 1..count).map(move |q| (p, q))) {
                let [a, b] = [&self.columns[p], &self.columns[q]];
                let (pp, qq, pq) = (dot(a, a), dot(b, b), dot(a, b));
                if pq.abs() <= f64::EPSILON * (pp * qq).sqrt() {
                    continue;
                }
                is_square = false;
                let zeta = (qq - pp) / (2.0 * pq);
                let tangent = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
                rotate(&mut self.columns, p, q, tangent);
                rotate(&mut directions, p, q, tangent);
            }
            if is_square {
                break;
            }
        }
        let mut rows = Square::zeros(count);
        directions.iter().enumerate().for_each(|(place, row)| rows.row_mut(place).copy_from_slice(row));
        (self.columns.iter().map(|column| dot(column, column).sqrt()).collect(), rows)
    }
}

/// Rotates a pair of vectors by the angle with this tangent.
fn rotate(vectors: &mut [Vec<f64>], p: usize, q: usize, tangent: f64) {
    let cosine = 1.0 / tangent.hypot(1.0);
    let (before, behind) = vectors.split_at_mut(q);
    for (a, b) in before[p].iter_mut().zip(&mut behind[0]) {
        (*a, *b) = (cosine * (*a - tangent * *b), cosine * (tangent * *a + *b));
    }
}

/// More sweeps over all pairs than any matrix needs that isn't stopped by rounding.
const SWEEPS: usize = 40;

/// The power of two that is nearest below the largest number of a column, by which it can be divided without rounding; 1 of a
/// column of zeros.
fn scale(column: &[f64]) -> f64 {
    let most = column.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let power = f64::from_bits(most.to_bits() & f64::INFINITY.to_bits());
    if power > 0.0 && power.is_finite() { power } else { 1.0 }
}

/// A matrix as a rotation times an upper triangle.
#[derive(Clone, Debug)]
pub struct Factored {
    /// The triangle. As a part of its column's length, its diagonal falls in size.
    pub r: Square,
    /// The column of the matrix that each column of the triangle was.
    pub order: Vec<usize>,
    /// The first elements of Q't: what the columns can explain of t.
    pub head: Vec<f64>,
    /// The length of what they can't.
    pub rest: f64,
}

impl Factored {
    /// How many columns don't follow from others, to the precision of numbers: something of their length is left beside the
    /// others, whatever that length is. Columns of the triangle are as long as those of the matrix.
    pub fn rank(&self) -> usize {
        let size = self.r.size();
        let least = f64::EPSILON * size as f64 * 16.0;
        let part_left = |i: usize| {
            let column: Vec<f64> = (0..=i).map(|row| self.r.at(row, i)).collect();
            let scale = scale(&column);
            let square: f64 = column.iter().map(|value| (value / scale).powi(2)).sum();
            (column[i] / scale).abs() / square.sqrt()
        };
        (0..size).take_while(|&i| part_left(i) > least).count()
    }

    /// As many rows as columns, in the matrix's order of columns: R, whose products of columns are those of the matrix.
    pub fn triangle(&self) -> Tall {
        let size = self.r.size();
        let mut columns = vec![vec![0.0; size]; size];
        for (place, &column) in self.order.iter().enumerate() {
            (0..=place).for_each(|row| columns[column][row] = self.r.at(row, place));
        }
        Tall::new(size, columns)
    }

    /// The x of least squares, in the matrix's order of columns; those that follow from others are 0.
    pub fn solution(&self) -> Vec<f64> {
        let rank = self.rank();
        let mut x = vec![0.0; self.r.size()];
        let mut found = vec![0.0; rank];
        for i in (0..rank).rev() {
            let known: f64 = (i + 1..rank).map(|j| self.r.at(i, j) * found[j]).sum();
            found[i] = (self.head[i] - known) / self.r.at(i, i);
            x[self.order[i]] = found[i];
        }
        x
    }

    /// (A'A)^-1, in the matrix's order of columns, where no column follows from others.
    pub fn inverse_gram(&self) -> Option<Square> {
        let size = self.r.size();
        if self.rank() < size {
            return None;
        }
        // Columns of R^-1, by substitution back.
        let mut inverse = Square::zeros(size);
        for j in 0..size {
            for i in (0..=j).rev() {
                let known: f64 = (i + 1..=j).map(|k| self.r.at(i, k) * inverse.at(k, j)).sum();
                *inverse.at_mut(i, j) = (f64::from(u8::from(i == j)) - known) / self.r.at(i, i);
            }
        }
        let mut gram = Square::zeros(size);
        for i in 0..size {
            for j in 0..size {
                *gram.at_mut(self.order[i], self.order[j]) = dot(inverse.row(i), inverse.row(j));
            }
        }
        Some(gram)
    }
}

impl Tall {
    /// The triangle R with R'R = A'A, the first elements of Q't, and the length of the rest of t: all that a regression
    /// needs of the rows.
    ///
    /// Many rows are added up to A'A first, which is several times as fast, if its factor says that no digits that matter
    /// are lost; else they are reflected.
    pub fn reduced(&self, t: &[f64]) -> Factored {
        self.by_products(t).unwrap_or_else(|| self.clone().factored(t.to_vec()))
    }

    fn by_products(&self, t: &[f64]) -> Option<Factored> {
        if self.rows < MANY_ROWS {
            return None;
        }
        let mut r = self.gram();
        let size = r.size();
        let scales: Vec<f64> = (0..size).map(|i| r.at(i, i).sqrt()).collect();
        if !r.cholesky() || (0..size).any(|i| r.at(i, i) < LEAST_LEFT * scales[i]) {
            return None;
        }
        let products = self.transposed_times(t);
        let mut head = vec![0.0; size];
        for i in 0..size {
            let known: f64 = (0..i).map(|k| r.at(k, i) * head[k]).sum();
            head[i] = (products[i] - known) / r.at(i, i);
        }
        let mut factored = Factored { r, order: (0..size).collect(), head, rest: 0.0 };
        let fitted = self.times(&factored.solution());
        factored.rest = t.iter().zip(&fitted).map(|(t, fitted)| (t - fitted).powi(2)).sum::<f64>().sqrt();
        Some(factored)
    }
}

/// From so many rows on, sums of products are faster than reflections.
const MANY_ROWS: usize = 4096;
/// The part of a column that others must leave for its sums of products to be precise: a millionth of its square.
const LEAST_LEFT: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_through_three_points_by_hand() {
        // 1 + 2 n at n = 0, 1, 2, with the middle one 3 too high: the line is 2 + 2 n, and 2, 1 and 1 are left.
        let line = Tall::new(3, vec![vec![1.0; 3], vec![0.0, 1.0, 2.0]]);
        let factored = line.factored(vec![1.0, 6.0, 5.0]);
        let x = factored.solution();
        assert!((x[0] - 2.0).abs() < 1e-14 && (x[1] - 2.0).abs() < 1e-14, "{x:?}");
        assert!((factored.rest - 6f64.sqrt()).abs() < 1e-14);
        // (A'A)^-1 = [3 3; 3 5]^-1 = [5 -3; -3 3] / 6.
        let inverse = factored.inverse_gram().unwrap_or_default();
        let expected = [5.0 / 6.0, -0.5, -0.5, 0.5];
        let found = [inverse.at(0, 0), inverse.at(0, 1), inverse.at(1, 0), inverse.at(1, 1)];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?}");
    }

    #[test]
    fn columns_that_follow_from_others_are_left_out() {
        let columns = vec![vec![1.0; 4], vec![0.0; 4], vec![1.0, 2.0, 3.0, 4.0], vec![2.0, 3.0, 4.0, 5.0]];
        let factored = Tall::new(4, columns).factored(vec![3.0, 5.0, 7.0, 9.0]);
        assert_eq!((factored.rank(), factored.inverse_gram()), (2, None));
        assert!(factored.rest < 1e-13);
        assert_eq!(factored.solution()[1], 0.0);
        let none = Tall::new(0, vec![]).factored(vec![]);
        assert_eq!((none.rank(), none.solution()), (0, vec![]));
        assert_eq!(Tall::new(2, vec![vec![0.0; 2]]).factored(vec![1.0, 1.0]).solution(), [0.0]);
    }

    #[test]
    fn columns_of_any_length_count_alike_by_hand() {
        // 4.5 + 50 n at n = 0, 1 and 2, in units of 1e-18: what is left of the ones is 16 digits below the other column.
        let columns = |unit: f64| vec![vec![1.0; 3], vec![0.0, unit, 2.0 * unit]];
        for unit in [1e-150, 1e-18, 1.0, 1e18, 1e120] {
            let factored = Tall::new(3, columns(unit)).factored(vec![4.5, 54.5, 104.5]);
            let x = factored.solution();
            assert!((x[0] - 4.5).abs() < 1e-12 && (x[1] * unit - 50.0).abs() < 1e-12, "{unit}: {x:?}");
            assert_eq!(
                (factored.rank(), Tall::new(3, vec![vec![unit; 3], vec![1.0; 3]]).factored(vec![0.0; 3]).rank()),
                (2, 1)
            );
        }
    }

    #[test]
    fn singular_values_by_hand() {
        // A'A = [9 12; 12 41], whose eigenvalues are 45 and 5.
        let (mut values, _) = Tall::new(2, vec![vec![3.0, 0.0], vec![4.0, 5.0]]).singular_values();
        values.sort_by(f64::total_cmp);
        assert!((values[0].powi(2) - 5.0).abs() < 1e-12 && (values[1].powi(2) - 45.0).abs() < 1e-12, "{values:?}");
        // A determinant of 1e-10 and a largest value of 2: eigenvalues of A'A would say 0 for the least.
        let (mut values, _) = Tall::new(2, vec![vec![1.0; 2], vec![1.0, 1.0 + 1e-10]]).singular_values();
        values.sort_by(f64::total_cmp);
        assert!((values[0] - 5e-11).abs() < 1e-15, "{values:?}");
        assert_eq!(Tall::new(2, vec![vec![0.0; 2], vec![3.0, 4.0]]).singular_values().0, [0.0, 5.0]);
        assert!(Tall::default().singular_values().0.is_empty());
    }

    proptest! {
        #[test]
        fn units_of_columns_change_the_solution_by_themselves_alone(
            values in prop::collection::vec(-10.0..10.0_f64, 24),
            t in prop::collection::vec(-10.0..10.0_f64, 8),
            powers in prop::collection::vec(-200..200, 3),
        ) {
            let columns: Vec<Vec<f64>> = values.chunks(8).map(<[f64]>::to_vec).collect();
            let units: Vec<f64> = powers.iter().map(|&power| 2f64.powi(power)).collect();
            let scaled = columns.iter().zip(&units).map(|(column, unit)| column.iter().map(|value| value * unit).collect());
            let found = Tall::new(8, scaled.collect()).factored(t.clone()).solution();
            let expected = Tall::new(8, columns).factored(t).solution();
            prop_assert!(found.iter().zip(&units).zip(&expected).all(|((found, unit), x)| found * unit == *x), "{found:?} {expected:?}");
        }

        #[test]
        fn singular_values_have_the_length_of_all_columns(values in prop::collection::vec(-10.0..10.0_f64, 12)) {
            let matrix = Tall::new(4, values.chunks(4).map(<[f64]>::to_vec).collect());
            let squares: f64 = matrix.singular_values().0.iter().map(|value| value * value).sum();
            prop_assert!((squares - dot(&values, &values)).abs() < 1e-9);
        }

        #[test]
        fn what_is_left_is_square_to_all_columns(
            values in prop::collection::vec(-10.0..10.0_f64, 60),
            t in prop::collection::vec(-10.0..10.0_f64, 20),
        ) {
            let matrix = Tall::new(20, values.chunks(20).map(<[f64]>::to_vec).collect());
            let x = matrix.clone().factored(t.clone()).solution();
            let left: Vec<f64> = t.iter().zip(matrix.times(&x)).map(|(t, fitted)| t - fitted).collect();
            prop_assert!(matrix.transposed_times(&left).iter().all(|product| product.abs() < 1e-9));
        }
    }

    #[test]
    fn parts_of_rows_add_up_to_the_products_of_columns() {
        for (rows, count) in [(0, 0), (1, 1), (513, 3), (40_000, 2), (70_001, 3)] {
            let column = |j: usize| (0..rows).map(|i| ((i * 31 + j * 17) % 23) as f64 - 11.0).collect();
            let tall = Tall::new(rows, (0..count).map(column).collect());
            let gram = tall.gram();
            for (i, j) in (0..count).flat_map(|i| (0..count).map(move |j| (i, j))) {
                assert_eq!(gram.at(i, j), dot(&tall.columns[i], &tall.columns[j]), "{rows} x {count}: {i}, {j}");
            }
        }
    }

    #[test]
    fn sums_of_products_and_reflections_agree() {
        let rows = MANY_ROWS + 3;
        let value = |i: usize, j: usize| (((i * 37 + j * 101) % 97) as f64).sqrt();
        let matrix = Tall::new(rows, (0..4).map(|j| (0..rows).map(|i| value(i, j)).collect()).collect());
        let t: Vec<f64> = (0..rows).map(|i| value(i, 9)).collect();
        let (fast, sure) = (matrix.reduced(&t), matrix.clone().factored(t.clone()));
        assert!(matrix.by_products(&t).is_some());
        assert!((fast.rest - sure.rest).abs() < 1e-9 * sure.rest);
        assert!(fast.solution().iter().zip(sure.solution()).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}
