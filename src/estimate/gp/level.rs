//! Counts in, the rate that an event has at large out.

use super::Tuning;

/// The running mean of an event's rate, over the memory that has foretold it best.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    memories: Vec<Memory>,
    power: f64,
    memory: f64,
}

#[derive(Clone, Copy, Debug)]
struct Memory {
    decay: f64,
    count: f64,
    time: f64,
    error: f64,
}

impl Level {
    pub(crate) fn new(tuning: &Tuning) -> Self {
        let memories = &tuning.memories;
        let memories = memories.iter().map(|&decay| Memory { decay, count: 0.0, time: 0.0, error: 0.0 }).collect();
        Self { memories, power: tuning.power, memory: tuning.memory }
    }

    /// The rate per millisecond.
    pub(crate) fn rate(&self) -> Option<f64> {
        if self.memories[0].time <= 0.0 {
            return None;
        }
        let least = self.memories.iter().map(|m| m.error).fold(f64::INFINITY, f64::min);
        let (mut sum, mut weights) = (0.0, 0.0);
        for memory in &self.memories {
            let weight = ((least + 1e-12) / (memory.error + 1e-12)).powf(self.power);
            sum += weight * memory.count / memory.time;
            weights += weight;
        }
        Some((sum / weights).max(0.0025))
    }

    /// Takes a count over a time (ms) in an interval of some length.
    pub(crate) fn update(&mut self, count: f64, time: f64, length: f64) {
        if time <= 0.0 {
            return;
        }
        let rate = count / time;
        for memory in &mut self.memories {
            if memory.time > 0.0 {
                let expected = memory.count / memory.time;
                let error = (rate - expected).powi(2) / (rate + expected + 1e-9).powi(2);
                let forget = self.memory.powf(length / 100.0);
                memory.error = forget * memory.error + error;
            }
            let decay = memory.decay.powf(length / 100.0);
            memory.count = decay * memory.count + count;
            memory.time = decay * memory.time + time;
        }
    }
}
