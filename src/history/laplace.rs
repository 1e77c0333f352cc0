//! Computes where the middle of a distribution may lie, given samples with Laplace noise of unknown size.

/// The posterior distribution of the middle β of a Laplace distribution, for m samples y and a scale whose prior is 1/σ. Its
/// density is proportional to (Σ |yⱼ - β|)^-m, which is integrated in parts between the samples.
pub(super) struct LaplacePosterior {
    /// The samples in their order, less their median, in units of `scale`.
    sorted: Vec<f64>,
    median: f64,
    scale: f64,
    /// The integral up to each sample, and up to infinity.
    cumulative: Vec<f64>,
}

impl LaplacePosterior {
    /// Of at least two samples in their order, with their median.
    pub(super) fn new(sorted: &[f64], median: f64) -> Self {
        let nu = sorted.len() as f64 - 1.0;
        // In these units the density is about 1/nu at its top, so that powers of it stay within numbers.
        let scale = sorted.iter().map(|y| (y - median).abs()).sum::<f64>() * nu.powf(1.0 / (nu + 1.0));
        let unit = if scale == 0.0 { f64::INFINITY } else { scale };
        let sorted = sorted.iter().map(|y| (y - median) / unit).collect();
        let mut posterior = Self { sorted, median, scale, cumulative: Vec::new() };
        let mut sum = 0.0;
        for part in 0..=posterior.sorted.len() {
            sum += posterior.integral(part).max(0.0);
            posterior.cumulative.push(sum);
        }
        posterior
    }

    /// The exponent less 1.
    fn nu(&self) -> f64 {
        self.sorted.len() as f64 - 1.0
    }

    /// Σ |yⱼ - β| = slope β + rest between the samples before `part` and those from it on.
    fn line(&self, part: usize) -> (f64, f64) {
        let (below, above) = self.sorted.split_at(part);
        (2.0 * part as f64 - self.sorted.len() as f64, above.iter().sum::<f64>() - below.iter().sum::<f64>())
    }

    /// The integral between the samples on either side of a part.
    fn integral(&self, part: usize) -> f64 {
        let from = part.checked_sub(1).map_or(f64::NEG_INFINITY, |before| self.sorted[before]);
        let to = self.sorted.get(part).copied().unwrap_or(f64::INFINITY);
        let (nu, (slope, rest)) = (self.nu(), self.line(part));
        if slope == 0.0 {
            (to - from) / rest.powf(nu + 1.0)
        } else {
            ((from * slope + rest).powf(-nu) - (to * slope + rest).powf(-nu)) / (nu * slope)
        }
    }

    /// The β that is not exceeded with a probability.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let Some(&all) = self.cumulative.last().filter(|_| self.scale != 0.0) else { return self.median };
        let wanted = (probability * all).min(all);
        let part = self.cumulative.iter().position(|&sum| wanted <= sum).unwrap_or(self.sorted.len());
        let (nu, (slope, rest)) = (self.nu(), self.line(part));
        let before = part.checked_sub(1).map(|before| (self.sorted[before], self.cumulative[before]));
        let beta = match before {
            Some((from, sum)) if slope == 0.0 => from + (wanted - sum) * rest.powf(nu + 1.0),
            before => {
                let power = before.map_or(0.0, |(from, _)| (from * slope + rest).powf(-nu));
                let sum = before.map_or(0.0, |(_, sum)| sum);
                let power = power - nu * slope * (wanted - sum);
                if power > 0.0 { (power.powf(-1.0 / nu) - rest) / slope } else { f64::INFINITY * slope.signum() }
            }
        };
        let beta = self.sorted.get(part).map_or(beta, |&to| beta.min(to));
        beta * self.scale + self.median
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_samples_by_hand() {
        // For samples at -1 and 1 the density is 1/4 between them and 1/(4 β²) outside: 1/4, 1/2 and 1/4 of the whole.
        let posterior = LaplacePosterior::new(&[-1.0, 1.0], 0.0);
        for (probability, beta) in [(0.125, -2.0), (0.25, -1.0), (0.5, 0.0), (0.75, 1.0), (0.875, 2.0)] {
            let found = posterior.quantile(probability);
            assert!((found - beta).abs() < 1e-12, "{probability}: {found}");
        }
    }

    #[test]
    fn equal_samples_leave_no_doubt() {
        assert_eq!(LaplacePosterior::new(&[3.0, 3.0, 3.0], 3.0).quantile(0.005), 3.0);
    }

    proptest! {
        #[test]
        fn quantiles_grow(mut samples in prop::collection::vec(-5f64..5.0, 2..20), low in 0.01f64..0.5) {
            samples.sort_unstable_by(f64::total_cmp);
            let posterior = LaplacePosterior::new(&samples, samples[samples.len() / 2]);
            prop_assert!(posterior.quantile(low) <= posterior.quantile(low + 0.4) + 1e-9);
        }
    }
}
