//! Draws numbers that are the same in every run and on every machine.
//!
//! SplitMix64 of G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

/// The bits of the golden ratio, by which the state goes on.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator, whose state goes through all numbers of 64 bits.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that begins with this state.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number: each of all that have 64 bits is as likely.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number from 0 to below 1, of 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of a normal distribution of mean 0 and variance 1, by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The `n`th number of the generator with seed 0, from 1 on.
pub fn nth(n: u64) -> u64 {
    mix(n.wrapping_mul(GOLDEN))
}

/// One number for another, in no order that can be seen.
fn mix(bits: u64) -> u64 {
    let mixed = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first<const N: usize>(seed: u64) -> [u64; N] {
        let mut random = SplitMix64::new(seed);
        std::array::from_fn(|_| random.draw())
    }

    #[test]
    fn numbers_are_those_that_were_published() {
        // Of Sebastiano Vigna's splitmix64.c, as Rosetta Code ("Pseudo-random numbers/Splitmix64") has them.
        assert_eq!(
            first(1_234_567),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
        // Of java.util.SplittableRandom(0), which is that of the paper.
        assert_eq!(first(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
        assert_eq!((nth(0), mix(0)), (0, 0));
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut random = SplitMix64::new(1);
        let mut means = |draw: fn(&mut SplitMix64) -> f64| {
            let numbers: Vec<f64> = (0..100_000).map(|_| draw(&mut random)).collect();
            [1, 2].map(|power| numbers.iter().map(|number| number.powi(power)).sum::<f64>() / 1e5)
        };
        // Within some four standard errors.
        let [mean, square] = means(SplitMix64::uniform);
        assert!((mean - 0.5).abs() < 0.004 && (square - 1.0 / 3.0).abs() < 0.004, "{mean} {square}");
        let [mean, square] = means(SplitMix64::normal);
        assert!(mean.abs() < 0.013 && (square - 1.0).abs() < 0.018, "{mean} {square}");
    }

    proptest! {
        #[test]
        fn uniform_numbers_lie_between_0_and_1(seed: u64) {
            prop_assert!((0.0..1.0).contains(&SplitMix64::new(seed).uniform()));
        }

        #[test]
        fn the_nth_number_is_that_after_so_many_steps(n in 1u64..200) {
            let mut random = SplitMix64::new(0);
            prop_assert_eq!((0..n).map(|_| random.draw()).last(), Some(nth(n)));
        }

        #[test]
        fn all_generators_are_at_another_place_of_one_cycle(seed: u64) {
            let [_, second] = first(seed);
            prop_assert_eq!(first(seed.wrapping_add(GOLDEN)), [second]);
        }
    }
}
