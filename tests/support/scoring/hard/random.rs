//! Random numbers that are the same every time.

/// A permuted congruential generator (M. E. O'Neill, "PCG: a family of simple fast space-efficient statistically good
/// algorithms for random number generation", 2014), by the name of what it is for.
pub struct Random(u64);

impl Random {
    pub fn new(name: &str, seed: usize, run: usize) -> Self {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mut random = Self(hash ^ ((seed as u64) << 32) ^ ((run as u64) << 1));
        for _ in 0..4 {
            random.bits();
        }
        random
    }

    fn bits(&mut self) -> u32 {
        let state = self.0;
        self.0 = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((((state >> 18) ^ state) >> 27) as u32).rotate_right((state >> 59) as u32)
    }

    /// From 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.bits()) / 2f64.powi(32)
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number below another.
    pub fn below(&mut self, most: usize) -> usize {
        ((self.unit() * most as f64) as usize).min(most.saturating_sub(1))
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// As many as happen where so many are expected; of many, as a normal number.
    pub fn poisson(&mut self, expected: f64) -> f64 {
        if expected > 30.0 {
            return (expected + expected.sqrt() * self.normal()).round().max(0.0);
        }
        let (mut count, mut product, least) = (0.0, self.unit(), (-expected).exp());
        while product > least {
            product *= self.unit();
            count += 1.0;
        }
        count
    }

    /// Normal noise of variance one that remembers for so many rows.
    pub fn remembering(&mut self, rows: usize, memory: f64) -> Vec<f64> {
        let keep = (-1.0 / memory).exp();
        let fresh = (1.0 - keep * keep).sqrt();
        let mut value = self.normal();
        (0..rows)
            .map(|_| {
                let now = value;
                value = keep * value + fresh * self.normal();
                now
            })
            .collect()
    }

    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<_> = (0..count).collect();
        (1..count).rev().for_each(|last| all.swap(last, self.below(last + 1)));
        all
    }

    /// Pieces of random length, with this mean beyond the least.
    pub fn pieces(&mut self, rows: usize, mean: f64, least: usize) -> Vec<std::ops::Range<usize>> {
        let (mut pieces, mut start) = (Vec::new(), 0);
        while start < rows {
            let end = rows.min(start + least + self.exponential(mean) as usize);
            pieces.push(start..end.max(start + 1));
            start = end.max(start + 1);
        }
        pieces
    }
}
