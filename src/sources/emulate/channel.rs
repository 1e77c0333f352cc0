//! A process under valgrind in, its answers to one question out, without ever waiting for it.
//!
//! valgrind answers debuggers over two FIFOs that it makes beside a page of shared memory, in which
//! whoever writes counts the bytes that it has written. The words are those of gdb's remote protocol:
//!
//! ```text
//! \x03   $QStartNoAckMode#b0  $QPassSignals:...#..   $qRcmd,<status internal>#..   $c#63
//! wake   once: no acknowledgements, no stop at signals   the question               go on
//! ```
//!
//! All is written at once, so that a process that is woken answers and goes on by itself; one that
//! waits in the kernel reads it when it comes back, and counts nothing until then. The conversation
//! stays open, because valgrind sleeps for a tenth of a second whenever one is closed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// What callgrind is asked.
const QUESTION: &[u8] = b"status internal";

/// An answer that has begun is waited for: the process stands until it is read.
const PATIENCE: Duration = Duration::from_millis(100);

/// A stack of a million frames would make an answer of this order; what is longer is cut off.
const LONGEST: usize = 256 << 20;

/// `OK` in the protocol.
const OK: &[u8] = b"$OK#9a";

/// Signals as gdb numbers them, more than there are: none of them stops the process for us.
const SIGNALS: std::ops::RangeInclusive<u8> = 1..=150;

/// A conversation with a process.
#[derive(Debug)]
pub(super) struct Channel {
    to: File,
    from: File,
    shared: File,
    /// Where it was opened, and as which file: another program of the process makes another one.
    path: PathBuf,
    inode: u64,
    text: Vec<u8>,
    /// How many commands are to be answered with OK; none while nothing is asked.
    awaited: usize,
    heard: bool,
    asked: Instant,
    /// The answer that comes is to a question from before something else, and not wanted.
    stale: bool,
}

/// What there is of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing, or a part.
    Pending,
    /// All of it, and how long it took to come.
    Whole(String, Duration),
    /// Nothing was asked, or it was too long ago.
    None,
    /// The process is gone, or is another program now.
    Gone,
}

/// The files that valgrind made for a process, all with the same end of their names.
pub(super) struct Address<'a> {
    /// Their folder and the beginning of their names.
    pub(super) prefix: &'a Path,
    /// The end of their names: `PID-by-USER-on-HOST`.
    pub(super) suffix: &'a str,
}

impl Address<'_> {
    fn path(&self, what: &str) -> PathBuf {
        let mut path = self.prefix.as_os_str().to_owned();
        path.push(format!("-{what}-{}", self.suffix));
        path.into()
    }
}

impl Channel {
    /// Begins a conversation.
    ///
    /// # Errors
    /// The operating system's: the process doesn't listen yet, or no more.
    pub(super) fn open(address: &Address<'_>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let nonblocking = options.custom_flags(OFlag::O_NONBLOCK.bits());
        let path = address.path("from-vgdb-to");
        let to = nonblocking.clone().write(true).open(&path)?;
        let from = nonblocking.clone().read(true).open(address.path("to-vgdb-from"))?;
        let shared = OpenOptions::new().read(true).write(true).open(address.path("shared-mem-vgdb"))?;
        let inode = to.metadata()?.ino();
        let (text, asked) = (Vec::new(), Instant::now());
        Ok(Self { to, from, shared, path, inode, text, awaited: 0, heard: false, asked, stale: false })
    }

    /// Asks, unless an answer is still to come.
    ///
    /// # Errors
    /// The operating system's: the process is gone.
    pub(super) fn ask(&mut self) -> io::Result<()> {
        if self.awaited > 0 {
            return Ok(());
        }
        let (message, commands) = message(!self.heard);
        let mut counted = [0; 4];
        self.shared.read_exact_at(&mut counted, 0)?;
        // Far less than a FIFO holds, so that it is written whole or not at all.
        self.to.write_all(&message)?;
        let length = u32::try_from(message.len()).unwrap_or(0);
        self.shared.write_all_at(&u32::from_ne_bytes(counted).wrapping_add(length).to_ne_bytes(), 0)?;
        (self.awaited, self.asked, self.stale) = (commands, Instant::now(), false);
        self.text.clear();
        Ok(())
    }

    /// What is still to be answered was asked before something that makes it wrong.
    pub(super) fn forget_question(&mut self) {
        self.stale = true;
    }

    /// Reads what there is.
    pub(super) fn read(&mut self) -> Answer {
        if !self.path.metadata().is_ok_and(|file| file.ino() == self.inode) {
            return Answer::Gone;
        }
        if self.awaited == 0 {
            return Answer::None;
        }
        let begun = Instant::now();
        let mut buffer = [0; 1 << 16];
        loop {
            match self.from.read(&mut buffer) {
                // Nobody writes: not yet, or no more.
                Ok(0) if !self.heard && self.text.is_empty() => return Answer::Pending,
                Ok(0) => return Answer::Gone,
                Ok(count) => self.text.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.text.is_empty() || begun.elapsed() > PATIENCE {
                        return Answer::Pending;
                    }
                    let mut wanted = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
                    let _ = poll(&mut wanted, PollTimeout::from(5_u8));
                }
                Err(_) => return Answer::Gone,
            }
            if self.is_whole() {
                return self.answer(begun.elapsed());
            }
            if self.text.len() > LONGEST {
                return Answer::Gone;
            }
        }
    }

    /// How long an answer has been waited for; `None` if nothing was asked.
    pub(super) fn waiting(&self) -> Option<Duration> {
        (self.awaited > 0).then(|| self.asked.elapsed())
    }

    fn answer(&mut self, took: Duration) -> Answer {
        (self.awaited, self.heard) = (0, true);
        if self.stale { Answer::None } else { Answer::Whole(decode(&self.text), took) }
    }

    /// Each command but the last is answered with OK, which no text in the protocol contains.
    fn is_whole(&self) -> bool {
        self.text.ends_with(OK) && self.text.windows(OK.len()).filter(|window| *window == OK).count() >= self.awaited
    }
}

/// What is written, and how many of its commands are answered with OK.
fn message(is_first: bool) -> (Vec<u8>, usize) {
    let question: String = QUESTION.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut commands = Vec::new();
    if is_first {
        let signals: Vec<_> = SIGNALS.map(|signal| format!("{signal:02x}")).collect();
        commands.push("QStartNoAckMode".to_owned());
        commands.push(format!("QPassSignals:{}", signals.join(";")));
    }
    commands.push(format!("qRcmd,{question}"));
    let awaited = commands.len();
    commands.push("c".to_owned());
    let mut message = vec![3];
    for command in commands {
        let sum = command.bytes().fold(0_u8, u8::wrapping_add);
        message.extend_from_slice(format!("${command}#{sum:02x}").as_bytes());
    }
    (message, awaited)
}

/// The text of the packets `$O<hexadecimal>#..`, in which `x*n` stands for a run of `x`.
fn decode(packets: &[u8]) -> String {
    let mut text = Vec::new();
    for packet in packets.split(|&byte| byte == b'$').filter_map(|packet| packet.strip_prefix(b"O")) {
        let digits = packet.split(|&byte| byte == b'#').next().unwrap_or_default();
        let digits = unrolled(digits);
        let bytes =
            digits.chunks_exact(2).map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        text.extend(bytes);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs written out: the character behind `*`, less 29, says how many more there are.
fn unrolled(text: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match (byte, out.last().copied()) {
            (b'*', Some(last)) => {
                let more = bytes.next().map_or(0, |&count| usize::from(count.saturating_sub(29)));
                out.extend(std::iter::repeat_n(last, more));
            }
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_message_is_what_vgdb_writes() {
        let (first, commands) = message(true);
        assert!(first.starts_with(b"\x03$QStartNoAckMode#b0$QPassSignals:01;02;") && first.ends_with(b"$c#63"));
        assert_eq!(commands, 3);
        let (later, commands) = message(false);
        assert!(later.starts_with(b"\x03$qRcmd,737461747573") && commands == 1);
    }

    #[test]
    fn packets_decode_with_their_runs() {
        // "0* " is 0 and three more: the character is a blank, 32 - 29.
        assert_eq!(unrolled(b"0* 1"), b"00001");
        assert_eq!(unrolled(b"ab"), b"ab");
        assert_eq!(unrolled(b"*"), b"*");
        assert_eq!(decode(b"+$OK#9a$O61620a#00$O63#00$OK#9a$OK#9a"), "ab\nc");
    }

    #[test]
    fn nobody_who_listens_is_an_error() {
        let address = Address { prefix: Path::new("/nonexistent/vgdb"), suffix: "1-by-a-on-b" };
        assert_eq!(Channel::open(&address).err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
    }

    proptest! {
        #[test]
        fn no_answer_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
