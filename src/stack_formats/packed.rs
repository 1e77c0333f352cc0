//! Unpacks what gzip has packed, so that each format can be read from a packed file, too.

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

/// How a file begins that gzip has packed.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The mark that some editors and shells put before UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The input as it was before gzip packed it, or as it is, without a byte order mark.
///
/// # Errors
/// Returns the operating system's error if nothing can be read.
pub fn unpacked<'a>(mut input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut begun = Vec::new();
    input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut begun)?;
    let is_packed = begun.starts_with(&MAGIC);
    if begun == BYTE_ORDER_MARK {
        begun.clear();
    }
    let input = io::Cursor::new(begun).chain(input);
    Ok(if is_packed {
        Box::new(Packed { decoder: MultiGzDecoder::new(BufReader::new(input)), failed: None })
    } else {
        Box::new(input)
    })
}

/// A packed input; a fault stays one, however often it is read again.
struct Packed<R> {
    decoder: MultiGzDecoder<R>,
    failed: Option<io::ErrorKind>,
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(kind) = self.failed {
            return Err(fault(kind));
        }
        self.decoder.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            kind => {
                self.failed = Some(kind);
                fault(kind)
            }
        })
    }
}

fn fault(kind: io::ErrorKind) -> io::Error {
    let text = match kind {
        io::ErrorKind::UnexpectedEof => "the packed file is cut off",
        _ => "the packed file is damaged: gzip can't unpack it further",
    };
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_and_plain_inputs_read_alike() {
        for text in [b"".as_slice(), b"x", b"main;f 12\n"] {
            for input in [text.to_vec(), packed(text)] {
                let mut read = Vec::new();
                unpacked(&input[..]).unwrap().read_to_end(&mut read).unwrap();
                assert_eq!(read, text);
            }
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        for (input, text) in [("\u{feff}main;f 12\n", "main;f 12\n"), ("\u{feff}", ""), ("\u{fefe}x", "\u{fefe}x")] {
            let mut read = String::new();
            unpacked(input.as_bytes()).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn what_is_cut_off_gives_what_came_before_and_then_the_same_fault_again_and_again() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let whole = packed(&text);
        let mut input = unpacked(&whole[..whole.len() / 2]).unwrap();
        let mut read = Vec::new();
        for _ in 0..2 {
            let error = input.read_to_end(&mut read).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (io::ErrorKind::UnexpectedEof, "the packed file is cut off")
            );
        }
        assert!(!read.is_empty() && text.starts_with(&read));
    }
}
