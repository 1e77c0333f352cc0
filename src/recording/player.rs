//! Plays a recording's rounds at the pace at which they were recorded.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::sampling::SamplerMessage;
use crate::sources::RecordedRound;
use crate::units::WallNs;

/// Rounds that may wait for their taker.
const CAPACITY: usize = 600;

/// A recording that is being played; dropping it stops the thread.
#[derive(Debug)]
pub struct Player {
    samples: Receiver<SamplerMessage>,
    _stop: Sender<()>,
}

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Without waiting between rounds.
    AtOnce,
    /// At this many times the speed of the recording.
    Times(f64),
}

impl Player {
    /// Plays the rounds of a recording from a place among them on. What comes before the time `from` is given at once.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(rounds: Arc<[RecordedRound]>, first: usize, speed: Speed, from: WallNs) -> io::Result<Self> {
        let (samples_in, samples) = bounded(CAPACITY);
        let (stop, stopped) = bounded(0);
        let play = move || play(rounds.get(first..).unwrap_or_default(), speed, from, &samples_in, &stopped);
        thread::Builder::new().name("perfprop-player".into()).spawn(play)?;
        Ok(Self { samples, _stop: stop })
    }

    /// Where the rounds come out.
    pub fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }
}

fn play(
    rounds: &[RecordedRound],
    speed: Speed,
    from: WallNs,
    samples: &Sender<SamplerMessage>,
    stopped: &Receiver<()>,
) {
    let start = Instant::now();
    for RecordedRound { round, lost } in rounds.iter().cloned() {
        let plays_on = match start.checked_add(delay(round.at, speed, from)) {
            Some(due) if due <= Instant::now() => true,
            Some(due) => stopped.recv_deadline(due) == Err(RecvTimeoutError::Timeout),
            // A time that never comes: wait to be stopped.
            None => stopped.recv().is_ok(),
        };
        if !plays_on {
            return;
        }
        if samples.send(SamplerMessage::Round { round, lost }).is_err() {
            return;
        }
    }
    let _ = samples.send(SamplerMessage::End);
}

/// How long after the start a round of this time is due.
fn delay(at: WallNs, speed: Speed, from: WallNs) -> Duration {
    match speed {
        Speed::Times(times) => Duration::try_from_secs_f64((at - from).as_secs() / times).unwrap_or(Duration::MAX),
        Speed::AtOnce => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::sources::Round;

    #[test]
    fn delays_by_hand() {
        let second = WallNs(1_000_000_000);
        assert_eq!(delay(second, Speed::Times(2.0), WallNs(0)), Duration::from_millis(500));
        assert_eq!(delay(second, Speed::Times(1.0), second), Duration::ZERO);
        assert_eq!(delay(second, Speed::AtOnce, WallNs(0)), Duration::ZERO);
        assert_eq!(delay(second, Speed::Times(f64::MIN_POSITIVE), WallNs(0)), Duration::MAX);
    }

    fn round(at: u64) -> RecordedRound {
        RecordedRound { round: Round { at: WallNs(at), readings: vec![], ..Round::default() }, lost: 0 }
    }

    #[test]
    fn every_round_from_the_first_on_is_played_in_order_and_then_the_end() {
        let rounds: Arc<[RecordedRound]> = (0..2000).map(round).collect();
        for first in [0, 1500, 2000, 2001] {
            let player = Player::start(Arc::clone(&rounds), first, Speed::AtOnce, WallNs(0)).unwrap();
            for RecordedRound { round, lost } in rounds.iter().skip(first).cloned() {
                assert_eq!(player.samples().recv(), Ok(SamplerMessage::Round { round, lost }));
            }
            assert_eq!(player.samples().recv(), Ok(SamplerMessage::End));
        }
    }

    #[test]
    fn a_dropped_player_ends_its_thread() {
        let player = Player::start([round(u64::MAX)].into(), 0, Speed::Times(1.0), WallNs(0)).unwrap();
        let samples = player.samples().clone();
        drop(player);
        assert!(samples.recv().is_err());
    }
}
