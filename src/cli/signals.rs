//! Signals of the operating system in, numbers in a channel out.

use std::io;
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// From now on INT, TERM and HUP don't end the process, but come out here.
pub(super) fn listen() -> io::Result<Receiver<i32>> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (sender, receiver) = bounded(16);
    let forward = move || signals.forever().for_each(|signal| drop(sender.try_send(signal)));
    thread::Builder::new().name("signals".into()).spawn(forward)?;
    Ok(receiver)
}
