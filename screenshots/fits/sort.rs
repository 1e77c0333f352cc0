/// The time in nanoseconds of intercept + coeff * n * log2(1 + n).
/// coeff = 7.624527e0, 7.497e0 to 7.752e0 at 95 %
/// intercept = 2.055847e6, 1.899e6 to 2.212e6 at 95 %
/// Measured for n from 20000 to 2000000.
pub fn merge_sort(n: f64) -> f64 {
    2055846.66490537_f64 + ((7.624527279249949_f64 * n) * (1.0_f64 + n).log2())
}

#[test]
fn merge_sort_is_as_it_was_fitted() {
    let expected: f64 = 321242488.77337635_f64;
    assert!((merge_sort(2000000.0_f64) - expected).abs() <= 1e-9 * expected.abs());
}
