//! Symmetric positive definite matrices in, their inverses out.
//!
//! Written out here because it is the estimator's inner loop and small: rows are updated four at a
//! time, in a form that the compiler turns into vector instructions.

/// A square matrix, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Square {
    size: usize,
    values: Vec<f64>,
}

impl Square {
    /// Of zeros.
    pub(crate) fn zeros(size: usize) -> Self {
        Self { size, values: vec![0.0; size * size] }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.size..][..self.size]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.size..][..self.size]
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.size + column]
    }

    pub(crate) fn at_mut(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.values[row * self.size + column]
    }

    /// Makes it symmetric from its lower triangle.
    pub(crate) fn mirror(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                self.values[column * self.size + row] = self.values[row * self.size + column];
            }
        }
    }

    /// Replaces the lower triangle by L with L L' = self. The upper triangle isn't read.
    ///
    /// False, with the matrix spoilt, where it isn't positive definite.
    pub(crate) fn cholesky(&mut self) -> bool {
        let n = self.size;
        // Row k of L' is what rows above leave of the matrix' row k.
        self.mirror();
        for k in 0..n {
            let (above, row) = self.values.split_at_mut(k * n);
            let row = &mut row[k..n];
            let above = |m: usize| &above[m * n + k..][..n - k];
            let fours = k / 4 * 4;
            for m in (0..fours).step_by(4) {
                let rows = [0, 1, 2, 3].map(|i| above(m + i));
                add_scaled(row, rows, rows.map(|other| -other[0]));
            }
            for m in fours..k {
                let other = above(m);
                row.iter_mut().zip(other).for_each(|(to, from)| *to -= other[0] * from);
            }
            let rest = row[0];
            if !(rest > 0.0 && rest.is_finite()) {
                return false;
            }
            let factor = 1.0 / rest.sqrt();
            row.iter_mut().for_each(|value| *value *= factor);
        }
        for row in 0..n {
            for column in 0..row {
                self.values[row * n + column] = self.values[column * n + row];
            }
        }
        true
    }

    /// Replaces a lower triangle by its inverse.
    pub(crate) fn invert_lower(&mut self) {
        let n = self.size;
        let mut coefficients = vec![0.0; n];
        for i in 0..n {
            let (above, row) = self.values.split_at_mut(i * n);
            coefficients[..=i].copy_from_slice(&row[..=i]);
            let inverse = 1.0 / coefficients[i];
            row[..i].fill(0.0);
            let mut k = 0;
            while k + 4 <= i {
                let rows = [0, 1, 2, 3].map(|j| &above[(k + j) * n..][..k + 4]);
                let scales = [0, 1, 2, 3].map(|j| -inverse * coefficients[k + j]);
                add_scaled(&mut row[..k + 4], rows, scales);
                k += 4;
            }
            for k in k..i {
                let scale = -inverse * coefficients[k];
                for (to, from) in row[..=k].iter_mut().zip(&above[k * n..][..=k]) {
                    *to += scale * from;
                }
            }
            row[i] = inverse;
            // Rows are read past their diagonal, four at a time.
            row[i + 1..n].fill(0.0);
        }
    }

    /// The lower triangle of L'L, for a lower triangle L with zeros above.
    pub(crate) fn gram_of_lower(&self) -> Self {
        let n = self.size;
        let mut gram = Self::zeros(n);
        let mut k = 0;
        while k < n {
            let count = (n - k).min(4);
            let empty = [0.0; 0];
            for i in 0..k + count {
                let rows: [&[f64]; 4] =
                    [0, 1, 2, 3].map(|j| if j < count { &self.row(k + j)[..=i] } else { &empty[..] });
                let to = &mut gram.values[i * n..][..=i];
                if count == 4 {
                    add_scaled(to, rows, rows.map(|row| row[i]));
                } else {
                    for row in &rows[..count] {
                        for (to, from) in to.iter_mut().zip(*row) {
                            *to += row[i] * from;
                        }
                    }
                }
            }
            k += count;
        }
        gram
    }
}

/// The sum of products, in lanes that the compiler can keep in vector registers.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// Adds four rows, each times its scale.
fn add_scaled(to: &mut [f64], rows: [&[f64]; 4], scales: [f64; 4]) {
    let [a, b, c, d] = rows.map(|row| &row[..to.len()]);
    for i in 0..to.len() {
        to[i] += scales[0] * a[i] + scales[1] * b[i] + scales[2] * c[i] + scales[3] * d[i];
    }
}

/// The nearest symmetric matrix with no eigenvalue below `floor`, by Jacobi's rotations.
pub(crate) fn clipped(matrix: &Square, floor: f64) -> Square {
    let n = matrix.size;
    let mut a = matrix.clone();
    let mut vectors = Square::zeros(n);
    for i in 0..n {
        vectors.values[i * n + i] = 1.0;
    }
    for _ in 0..30 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a.at(i, j).powi(2)).sum();
        let diagonal: f64 = (0..n).map(|i| a.at(i, i).powi(2)).sum();
        if off <= 1e-20 * diagonal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut vectors, p, q);
            }
        }
    }
    let mut result = Square::zeros(n);
    for k in 0..n {
        let value = a.at(k, k).max(floor);
        let vector = vectors.row(k).to_vec();
        for i in 0..n {
            for (to, other) in result.row_mut(i).iter_mut().zip(&vector) {
                *to += value * vector[i] * other;
            }
        }
    }
    result
}

/// One rotation that makes the element (p, q) zero; `vectors` holds eigenvectors in rows.
fn rotate(a: &mut Square, vectors: &mut Square, p: usize, q: usize) {
    let n = a.size;
    let apq = a.at(p, q);
    if apq == 0.0 {
        return;
    }
    let theta = (a.at(q, q) - a.at(p, p)) / (2.0 * apq);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let t = if theta == 0.0 { 1.0 } else { t };
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for k in 0..n {
        let (x, y) = (a.at(k, p), a.at(k, q));
        *a.at_mut(k, p) = c * x - s * y;
        *a.at_mut(k, q) = s * x + c * y;
    }
    for matrix in [&mut *a, vectors] {
        for k in 0..n {
            let (x, y) = (matrix.at(p, k), matrix.at(q, k));
            *matrix.at_mut(p, k) = c * x - s * y;
            *matrix.at_mut(q, k) = s * x + c * y;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inverse(matrix: &Square) -> Square {
        let mut lower = matrix.clone();
        assert!(lower.cholesky());
        lower.invert_lower();
        let mut inverse = lower.gram_of_lower();
        inverse.mirror();
        inverse
    }

    #[test]
    fn two_by_two_by_hand() {
        // The inverse of [[4, 2], [2, 3]] is [[3, -2], [-2, 4]] / 8.
        let matrix = Square { size: 2, values: vec![4.0, 2.0, 2.0, 3.0] };
        let inverse = inverse(&matrix);
        for (got, wanted) in inverse.values.iter().zip([0.375, -0.25, -0.25, 0.5]) {
            assert!((got - wanted).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        assert!(!Square { size: 2, values: vec![1.0, 2.0, 2.0, 1.0] }.cholesky());
        assert!(!Square { size: 1, values: vec![f64::NAN] }.cholesky());
        assert!(Square::zeros(0).cholesky());
    }

    proptest! {
        #[test]
        fn a_matrix_times_its_inverse_is_one(size in 1usize..30, seed in prop::collection::vec(-1.0f64..1.0, 900)) {
            let mut matrix = Square::zeros(size);
            for i in 0..size {
                for j in 0..size {
                    let product: f64 = (0..size).map(|k| seed[i * 30 + k] * seed[j * 30 + k]).sum();
                    *matrix.at_mut(i, j) = product + if i == j { 0.1 } else { 0.0 };
                }
            }
            let inverse = inverse(&matrix);
            for i in 0..size {
                for j in 0..size {
                    let one: f64 = (0..size).map(|k| matrix.at(i, k) * inverse.at(k, j)).sum();
                    prop_assert!((one - f64::from(u8::from(i == j))).abs() < 1e-8);
                }
            }
        }
    }
}
