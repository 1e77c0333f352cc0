//! Finds the caller of code that a process made while it ran, by the instructions that follow a call.
//!
//! Such code has no unwind information, and the small pieces that runtimes put between frames may keep no frame
//! pointer: CPython's trampolines are `sub $8,%rsp; call *%rcx; add $8,%rsp; ret`. What runs behind a call up to the
//! return tells how much of the stack lies before the return address, whatever the code does elsewhere.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// So much code is read behind a call.
const MOST: usize = 32;

/// What of the stack lies between a place that a call returns to and the address that its function returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epilogue {
    /// Bytes before the return address.
    pub(super) before_return: u64,
    /// Where among them the caller's frame pointer is kept, if there.
    pub(super) frame_pointer: Option<u64>,
}

impl Epilogue {
    /// Of the code of a process at an address that a call returns to.
    pub(super) fn at(pid: i32, address: u64) -> Option<Self> {
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let mut code = [0; MOST];
        // The code may be the last of its mapping.
        let page = 4096 - usize::try_from(address % 4096).ok()?;
        let length = memory.read_at(&mut code[..MOST.min(page)], address).ok()?;
        Self::parse(&code[..length])
    }

    /// Of x86-64 code; `None` where anything but the release of a frame stands before the return.
    fn parse(code: &[u8]) -> Option<Self> {
        let mut epilogue = Self { before_return: 0, frame_pointer: None };
        let mut rest = code;
        loop {
            let (bytes, length) = match *rest {
                [0xc3, ..] | [0xf3, 0xc3, ..] => return Some(epilogue),
                // add $N,%rsp
                [0x48, 0x83, 0xc4, bytes @ 0..=0x7f, ..] => (u64::from(bytes), 4),
                [0x48, 0x81, 0xc4, a, b, c, d @ 0..=0x7f, ..] => (u64::from(u32::from_le_bytes([a, b, c, d])), 7),
                // pop %rbp
                [0x5d, ..] => {
                    epilogue.frame_pointer = Some(epilogue.before_return);
                    (8, 1)
                }
                // pop %rsp is no part of a release.
                [0x58..=0x5b | 0x5e..=0x5f, ..] => (8, 1),
                [0x41, 0x58..=0x5f, ..] => (8, 2),
                _ => return None,
            };
            epilogue.before_return += bytes;
            rest = &rest[length..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(code: &[u8]) -> Option<(u64, Option<u64>)> {
        Epilogue::parse(code).map(|found| (found.before_return, found.frame_pointer))
    }

    #[test]
    fn what_runs_up_to_the_return_tells_where_its_address_is() {
        // add $8,%rsp; ret
        assert_eq!(parse(&[0x48, 0x83, 0xc4, 8, 0xc3, 0xcc]), Some((8, None)));
        // add $0x100,%rsp; pop %rbx; pop %rbp; pop %r12; repz ret
        let code = [0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x5b, 0x5d, 0x41, 0x5c, 0xf3, 0xc3];
        assert_eq!(parse(&code), Some((0x100 + 24, Some(0x108))));
        assert_eq!(parse(&[0xc3]), Some((0, None)));
    }

    #[test]
    fn other_code_tells_nothing() {
        // No code, a release that goes on elsewhere, one that takes more, leave, pop %rsp.
        for code in
            [&[][..], &[0x48, 0x83, 0xc4], &[0x48, 0x83, 0xc4, 0xf8, 0xc3], &[0xc9, 0xc3], &[0x5c, 0xc3], &[0x5d]]
        {
            assert_eq!(parse(code), None, "{code:x?}");
        }
        assert_eq!(Epilogue::at(i32::MAX, 0x1000), None);
    }

    #[test]
    fn code_of_this_process_is_read() {
        static CODE: [u8; 5] = [0x48, 0x83, 0xc4, 8, 0xc3];
        let found = Epilogue::at(std::process::id().cast_signed(), CODE.as_ptr() as usize as u64);
        assert_eq!(found, Some(Epilogue { before_return: 8, frame_pointer: None }));
    }
}
