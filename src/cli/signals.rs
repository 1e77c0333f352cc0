//! Signals of the operating system in, numbers in a channel out.

use std::io;
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::iterator::Signals;

/// The signals that end a program.
const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// From now on INT, TERM and HUP don't end the process, but come out here.
pub(super) fn listen() -> io::Result<Receiver<i32>> {
    forward(&ENDS)
}

/// The same, and what screens answer to besides: being stopped and continued, and USR1, which
/// saves.
pub(super) fn listen_for_screens() -> io::Result<Receiver<i32>> {
    forward(&[&ENDS[..], &[SIGTSTP, SIGCONT, SIGUSR1]].concat())
}

fn forward(numbers: &[i32]) -> io::Result<Receiver<i32>> {
    let mut signals = Signals::new(numbers)?;
    let (sender, receiver) = bounded(16);
    let forward = move || {
        for signal in signals.forever() {
            // Whoever doesn't take sixteen signals won't miss the seventeenth.
            let _ = sender.try_send(signal);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(forward)?;
    Ok(receiver)
}
