//! Factors, inverts and multiplies symmetric positive definite matrices.
//!
//! Written out here because it is the estimator's inner loop and small: all of it is sums of products of
//! two matrices' columns, taken in tiles that stay in registers and compiled once more for wide vectors.

mod spare;
mod tall;

pub use tall::{Factored, Tall};

/// A square matrix, row after row, with zeros up to whole tiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Square {
    size: usize,
    stride: usize,
    values: Vec<f64>,
}

/// The rows and columns of a tile.
const ROWS: usize = 4;
const COLUMNS: usize = 8;
type Tile = [[f64; COLUMNS]; ROWS];

/// Calls a function as compiled for AVX2 and FMA, where the processor has them.
macro_rules! widest {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "the compiler can't see what the processor was asked for")]
        // SAFETY: the processor has all that the function is compiled for.
        let done = if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            unsafe { wide::$function($($argument),*) }
        } else {
            $function::<false>($($argument),*)
        };
        #[cfg(not(target_arch = "x86_64"))]
        let done = $function::<{ cfg!(target_arch = "aarch64") }>($($argument),*);
        done
    }};
}
impl Square {
    /// A matrix of zeros.
    pub fn zeros(size: usize) -> Self {
        let stride = size.next_multiple_of(COLUMNS);
        Self { size, stride, values: spare::zeros(stride * stride) }
    }

    /// How many rows it has.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// A row.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.stride..][..self.size]
    }

    /// A row, to be changed.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.stride..][..self.size]
    }

    /// A value.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline]
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.stride + column]
    }

    /// A value, to be changed.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline]
    pub fn at_mut(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.values[row * self.stride + column]
    }

    /// Adds another of the same size.
    pub fn add(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(to, value)| *to += value);
    }

    /// Makes it symmetric from its lower triangle.
    pub fn mirror(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                self.values[column * self.stride + row] = self.values[row * self.stride + column];
            }
        }
    }

    /// Replaces a symmetric matrix, of which the lower triangle is read, by the upper triangle U with
    /// U'U = self.
    ///
    /// False, with the matrix spoilt, where it isn't positive definite.
    pub fn cholesky(&mut self) -> bool {
        self.mirror();
        widest!(factor(self))
    }

    /// The inverse of a symmetric positive definite matrix, of which the lower triangle is read; `None` of others.
    pub fn inverse(mut self) -> Option<Self> {
        self.cholesky().then(|| {
            let mut inverse = self.inverse_of_transposed().gram_of_lower();
            inverse.mirror();
            inverse
        })
    }

    /// The lower triangle (U')^-1 of an upper triangle U.
    pub fn inverse_of_transposed(&self) -> Self {
        let mut inverse = Self::zeros(self.size);
        widest!(invert(self, &mut inverse));
        inverse
    }

    /// (U')^-1 B for an upper triangle U, with as many rows in B.
    ///
    /// # Panics
    /// Panics if there are fewer.
    pub fn transposed_solve(&self, right: &Tall) -> Tall {
        let stride = right.columns().len().max(1).next_multiple_of(COLUMNS);
        let mut rows = spare::zeros(self.stride * stride);
        for (j, column) in right.columns().iter().enumerate() {
            rows.chunks_exact_mut(stride).zip(column).for_each(|(row, value)| row[j] = *value);
        }
        widest!(substitute(self, &mut rows, stride));
        let column = |j: usize| rows.chunks_exact(stride).take(self.size).map(|row| row[j]).collect();
        let solved = Tall::new(self.size, (0..right.columns().len()).map(column).collect());
        spare::keep(rows);
        solved
    }

    /// The lower triangle of L'L, for a lower triangle L.
    pub fn gram_of_lower(&self) -> Self {
        let mut gram = Self::zeros(self.size);
        widest!(gram_of(self, &mut gram));
        gram
    }

    /// The product with another of the same size, of which all but some rows are taken to be zero; this
    /// one is symmetric.
    pub fn times(&self, other: &Self, rows: &[usize]) -> Self {
        let mut product = Self::zeros(self.size);
        widest!(multiply(self, other, rows, &mut product));
        product
    }

    /// The lower triangle of such a product, where that is symmetric; what is above it is no part of the product.
    pub fn times_to_symmetric(&self, other: &Self, rows: &[usize]) -> Self {
        let mut product = Self::zeros(self.size);
        widest!(multiply_to_symmetric(self, other, rows, &mut product));
        product
    }
}

impl Drop for Square {
    fn drop(&mut self) {
        spare::keep(std::mem::take(&mut self.values));
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::Square;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn factor(matrix: &mut Square) -> bool {
        super::factor::<true>(matrix)
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn invert(factor: &Square, inverse: &mut Square) {
        super::invert::<true>(factor, inverse);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn substitute(factor: &Square, rows: &mut [f64], stride: usize) {
        super::substitute::<true>(factor, rows, stride);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn gram_of(lower: &Square, gram: &mut Square) {
        super::gram_of::<true>(lower, gram);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn multiply(symmetric: &Square, other: &Square, rows: &[usize], product: &mut Square) {
        super::multiply::<true>(symmetric, other, rows, product);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn multiply_to_symmetric(symmetric: &Square, other: &Square, rows: &[usize], product: &mut Square) {
        super::multiply_to_symmetric::<true>(symmetric, other, rows, product);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn sum_of_products(a: &[f64], b: &[f64]) -> f64 {
        super::sum_of_products::<true>(a, b)
    }
}

/// The tile at (i, j) of A'B, of pairs of their rows.
#[inline(always)]
fn products<'a, const FUSED: bool>(rows: impl Iterator<Item = (&'a [f64], &'a [f64])>, i: usize, j: usize) -> Tile {
    let mut tile = [[0.0; COLUMNS]; ROWS];
    for (a, b) in rows {
        let (Some(a), Some(b)) = (a[i..].first_chunk::<ROWS>(), b[j..].first_chunk::<COLUMNS>()) else { break };
        for (to, a) in tile.iter_mut().zip(a) {
            for (to, b) in to.iter_mut().zip(b) {
                // Without an instruction for it, a fused one is a slow call.
                *to = if FUSED { a.mul_add(*b, *to) } else { a * b + *to };
            }
        }
    }
    tile
}

#[inline(always)]
fn factor<const FUSED: bool>(matrix: &mut Square) -> bool {
    let (n, stride) = (matrix.size, matrix.stride);
    for i in (0..n).step_by(ROWS) {
        // What rows above leave of these.
        let (above, rows) = matrix.values.split_at_mut(i * stride);
        let rows = &mut rows[..ROWS * stride];
        for j in (i / COLUMNS * COLUMNS..stride).step_by(COLUMNS) {
            let tile = products::<FUSED>(above.chunks_exact(stride).map(|row| (row, row)), i, j);
            for (row, tile) in rows.chunks_exact_mut(stride).zip(&tile) {
                row[j..].iter_mut().zip(tile).for_each(|(to, from)| *to -= from);
            }
        }
        for k in i..n.min(i + ROWS) {
            let (above, row) = rows.split_at_mut((k - i) * stride);
            let row = &mut row[..stride];
            for other in above.chunks_exact(stride) {
                let scale = other[k];
                row[k..].iter_mut().zip(&other[k..]).for_each(|(to, from)| *to -= scale * from);
            }
            let rest = row[k];
            if !(rest > 0.0 && rest.is_finite()) {
                return false;
            }
            let scale = 1.0 / rest.sqrt();
            row[k..].iter_mut().for_each(|value| *value *= scale);
            row[..k].fill(0.0);
        }
    }
    true
}

#[inline(always)]
fn invert<const FUSED: bool>(factor: &Square, inverse: &mut Square) {
    let (n, stride) = (factor.size, factor.stride);
    for i in (0..n).step_by(ROWS) {
        let (above, rows) = inverse.values.split_at_mut(i * stride);
        let rows = &mut rows[..ROWS * stride];
        for j in (0..i).step_by(COLUMNS) {
            let both = factor.values.chunks_exact(stride).zip(above.chunks_exact(stride));
            let tile = products::<FUSED>(both.skip(j), i, j);
            for (row, tile) in rows.chunks_exact_mut(stride).zip(&tile) {
                row[j..].iter_mut().zip(tile).for_each(|(to, from)| *to = -from);
            }
        }
        for k in i..n.min(i + ROWS) {
            let (above, row) = rows.split_at_mut((k - i) * stride);
            let row = &mut row[..=k];
            for (m, other) in (i..k).zip(above.chunks_exact(stride)) {
                let scale = factor.at(m, k);
                row.iter_mut().zip(&other[..=m]).for_each(|(to, from)| *to -= scale * from);
            }
            row[k] += 1.0;
            let scale = 1.0 / factor.at(k, k);
            row.iter_mut().for_each(|value| *value *= scale);
        }
    }
}

/// Solves U'X = B in place, in rows of `stride` values.
#[inline(always)]
fn substitute<const FUSED: bool>(factor: &Square, rows: &mut [f64], stride: usize) {
    for i in (0..factor.size).step_by(ROWS) {
        let (above, rows) = rows.split_at_mut(i * stride);
        let rows = &mut rows[..ROWS * stride];
        for j in (0..stride).step_by(COLUMNS) {
            let both = factor.values.chunks_exact(factor.stride).zip(above.chunks_exact(stride));
            let tile = products::<FUSED>(both, i, j);
            for (row, tile) in rows.chunks_exact_mut(stride).zip(&tile) {
                row[j..].iter_mut().zip(tile).for_each(|(to, from)| *to -= from);
            }
        }
        for k in i..factor.size.min(i + ROWS) {
            let (above, row) = rows.split_at_mut((k - i) * stride);
            let row = &mut row[..stride];
            for (m, other) in (i..k).zip(above.chunks_exact(stride)) {
                let scale = factor.at(m, k);
                row.iter_mut().zip(other).for_each(|(to, from)| *to -= scale * from);
            }
            let scale = 1.0 / factor.at(k, k);
            row.iter_mut().for_each(|value| *value *= scale);
        }
    }
}

#[inline(always)]
fn gram_of<const FUSED: bool>(lower: &Square, gram: &mut Square) {
    let stride = lower.stride;
    for i in (0..stride).step_by(ROWS) {
        let rows = &lower.values[i * stride..];
        for j in (0..=i).step_by(COLUMNS) {
            set(gram, i, j, &products::<FUSED>(rows.chunks_exact(stride).map(|row| (row, row)), i, j));
        }
    }
}

#[inline(always)]
fn multiply<const FUSED: bool>(symmetric: &Square, other: &Square, rows: &[usize], product: &mut Square) {
    for i in (0..symmetric.stride).step_by(ROWS) {
        for j in (0..symmetric.stride).step_by(COLUMNS) {
            multiply_tile::<FUSED>(symmetric, other, rows, product, i, j);
        }
    }
}

#[inline(always)]
fn multiply_to_symmetric<const FUSED: bool>(symmetric: &Square, other: &Square, rows: &[usize], product: &mut Square) {
    for i in (0..symmetric.stride).step_by(ROWS) {
        for j in (0..=i).step_by(COLUMNS) {
            multiply_tile::<FUSED>(symmetric, other, rows, product, i, j);
        }
    }
}

#[inline(always)]
fn multiply_tile<const FUSED: bool>(a: &Square, b: &Square, rows: &[usize], product: &mut Square, i: usize, j: usize) {
    let rows = rows.iter().map(|&k| (&a.values[k * a.stride..], &b.values[k * a.stride..]));
    set(product, i, j, &products::<FUSED>(rows, i, j));
}

#[inline(always)]
fn set(matrix: &mut Square, i: usize, j: usize, tile: &Tile) {
    for (row, tile) in matrix.values[i * matrix.stride..].chunks_exact_mut(matrix.stride).zip(tile) {
        row[j..][..COLUMNS].copy_from_slice(tile);
    }
}

/// The sum of products.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    widest!(sum_of_products(a, b))
}

/// In lanes that the compiler can keep in vector registers. Never fused, so that all processors have the same sum.
#[inline(always)]
fn sum_of_products<const FUSED: bool>(a: &[f64], b: &[f64]) -> f64 {
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

/// The nearest symmetric matrix with no eigenvalue below `floor`, by Jacobi's rotations.
pub fn clipped(matrix: &Square, floor: f64) -> Square {
    let n = matrix.size;
    let (values, vectors) = eigenvalues(matrix);
    let mut result = Square::zeros(n);
    for (k, value) in values.into_iter().enumerate() {
        let value = value.max(floor);
        let vector = vectors.row(k).to_vec();
        for i in 0..n {
            for (to, other) in result.row_mut(i).iter_mut().zip(&vector) {
                *to += value * vector[i] * other;
            }
        }
    }
    result
}

/// The eigenvalues of a symmetric matrix, and its eigenvectors in the rows of another one, by Jacobi's rotations.
pub fn eigenvalues(matrix: &Square) -> (Vec<f64>, Square) {
    let n = matrix.size;
    let mut a = matrix.clone();
    let mut vectors = Square::zeros(n);
    for i in 0..n {
        *vectors.at_mut(i, i) = 1.0;
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
    ((0..n).map(|k| a.at(k, k)).collect(), vectors)
}

/// Rotates so that the element (p, q) becomes zero; `vectors` holds eigenvectors in rows.
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

    fn square(size: usize, value: impl Fn(usize, usize) -> f64) -> Square {
        let mut matrix = Square::zeros(size);
        for row in 0..size {
            for column in 0..size {
                *matrix.at_mut(row, column) = value(row, column);
            }
        }
        matrix
    }

    fn inverse(matrix: &Square) -> Square {
        matrix.clone().inverse().unwrap_or_else(|| unreachable!())
    }

    #[test]
    fn two_by_two_by_hand() {
        // The inverse of [[4, 2], [2, 3]] is [[3, -2], [-2, 4]] / 8.
        let matrix = square(2, |row, column| [4.0, 2.0, 2.0, 3.0][2 * row + column]);
        let inverse = inverse(&matrix);
        for (i, wanted) in [0.375, -0.25, -0.25, 0.5].into_iter().enumerate() {
            assert!((inverse.at(i / 2, i % 2) - wanted).abs() < 1e-12);
        }
        let one = matrix.times(&inverse, &[0, 1]);
        assert!((one.at(0, 0) - 1.0).abs() < 1e-12 && one.at(0, 1).abs() < 1e-12);
        // The first column of the one times the first row of the other.
        let part = matrix.times(&inverse, &[0]);
        assert!((part.at(0, 0) - 1.5).abs() < 1e-12 && (part.at(1, 1) + 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_triangle_is_solved_by_hand() {
        // 2 x = 4 and x + 3 y = 11; 2 x = 0 and x + 3 y = -3.
        let upper = square(2, |row, column| [2.0, 1.0, 0.0, 3.0][2 * row + column]);
        let solved = upper.transposed_solve(&Tall::new(2, vec![vec![4.0, 11.0], vec![0.0, -3.0]]));
        assert_eq!(solved.columns(), [vec![2.0, 3.0], vec![0.0, -1.0]]);
        assert_eq!(upper.transposed_solve(&Tall::new(2, vec![])), Tall::new(2, vec![]));
        assert_eq!(Square::zeros(0).transposed_solve(&Tall::new(0, vec![vec![]])).columns(), [[0.0; 0]]);
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        assert!(!square(2, |row, column| if row == column { 1.0 } else { 2.0 }).cholesky());
        assert!(!square(1, |_, _| f64::NAN).cholesky());
        assert!(Square::zeros(0).cholesky());
        assert!(square(1, |_, _| -1.0).inverse().is_none() && Square::zeros(0).inverse().is_some());
    }

    proptest! {
        #[test]
        fn a_matrix_times_its_inverse_is_one(size in 1usize..30, seed in prop::collection::vec(-1.0f64..1.0, 900)) {
            let matrix = square(size, |i, j| {
                let product: f64 = (0..size).map(|k| seed[i * 30 + k] * seed[j * 30 + k]).sum();
                product + if i == j { 0.1 } else { 0.0 }
            });
            let all: Vec<usize> = (0..size).collect();
            let one = matrix.times(&inverse(&matrix), &all);
            for i in 0..size {
                for j in 0..size {
                    prop_assert!((one.at(i, j) - f64::from(u8::from(i == j))).abs() < 1e-8);
                }
            }
        }

        #[test]
        fn wide_and_narrow_vectors_agree(size in 0usize..30, seed in prop::collection::vec(-1.0f64..1.0, 900)) {
            let matrix = square(size, |i, j| {
                seed[30 * i.max(j) + i.min(j)] + if i == j { size as f64 } else { 0.0 }
            });
            let (mut one, mut other) = (matrix.clone(), matrix.clone());
            prop_assert!(one.cholesky() && factor::<false>(&mut other));
            let mut inverse = Square::zeros(size);
            invert::<false>(&other, &mut inverse);
            let close = |a: &Square, b: &Square| a.values.iter().zip(&b.values).all(|(a, b)| (a - b).abs() < 1e-9);
            prop_assert!(close(&one, &other) && close(&one.inverse_of_transposed(), &inverse));
            // By substitution, the columns of the inverse.
            let column = |j: usize| (0..size).map(|i| f64::from(u8::from(i == j))).collect();
            let ones = Tall::new(size, (0..size).map(column).collect());
            let mut rows = ones.columns().iter().flat_map(|row| row.iter().copied().chain([0.0; 32]).take(32)).collect::<Vec<f64>>();
            rows.resize(32 * 32, 0.0);
            substitute::<false>(&other, &mut rows, 32);
            for (j, column) in one.transposed_solve(&ones).columns().iter().enumerate() {
                for (i, value) in column.iter().enumerate() {
                    prop_assert!((value - inverse.at(i, j)).abs() < 1e-9 && (value - rows[32 * i + j]).abs() < 1e-9);
                }
            }
            let (mut gram, mut product) = (Square::zeros(size), Square::zeros(size));
            gram_of::<false>(&inverse, &mut gram);
            let all: Vec<usize> = (0..size).collect();
            multiply::<false>(&matrix, &inverse, &all, &mut product);
            prop_assert!(close(&inverse.gram_of_lower(), &gram) && close(&matrix.times(&inverse, &all), &product));
            let (square, half) = (matrix.times(&matrix, &all), matrix.times_to_symmetric(&matrix, &all));
            for i in 0..size {
                prop_assert_eq!(&half.row(i)[..=i], &square.row(i)[..=i]);
            }
        }
    }
}
