//! Finds the descriptors that names such as `/dev/fd/3` stand for.
//!
//! Linux opens such a name anew, at the beginning of its file: what is written there would lie over what others write
//! to the same descriptor, as in `{ date; perfprop stat -o /dev/fd/3 true; } 3>>log`.
#![expect(unsafe_code, reason = "of a descriptor that the program was started with only the number is known")]

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// The open file that a name stands for, written to where its descriptor is; `None` for other names.
pub(super) fn inherited(path: &Path) -> Option<io::Result<File>> {
    let number = number(path).filter(|number| Path::new(&format!("/proc/self/fd/{number}")).exists())?;
    // SAFETY: it is open, and is borrowed for one call only.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl(descriptor, FcntlArg::F_GETFD).map_or(FdFlag::empty(), FdFlag::from_bits_retain);
    // What perfprop opened itself is closed at exec; what it was started with isn't.
    if flags.contains(FdFlag::FD_CLOEXEC) {
        return Some(Err(Errno::EBADF.into()));
    }
    Some(descriptor.try_clone_to_owned().map(File::from))
}

fn number(path: &Path) -> Option<RawFd> {
    match path.to_str()? {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        path => {
            let digits = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?;
            digits.parse().ok().filter(|number: &RawFd| *number >= 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_descriptors_are_known() {
        let of = |path: &str| number(Path::new(path));
        assert_eq!(["/dev/stdout", "/dev/stderr", "/dev/fd/63", "/proc/self/fd/7"].map(of), [1, 2, 63, 7].map(Some));
        assert_eq!(["/dev/fd/-1", "/dev/fd/", "/dev/fd/3/x", "/dev/null", "fd/3"].map(of), [None; 5]);
    }
}
