//! A file with the checksum of all that was read from it or written to it.

use std::io::{self, Read, Write};
use xxhash_rust::xxh3::Xxh3;

pub(crate) struct Summed<F> {
    file: F,
    sum: Xxh3,
    bytes: u64,
}

impl<F> Summed<F> {
    pub(crate) fn new(file: F) -> Summed<F> {
        Summed {
            file,
            sum: Xxh3::new(),
            bytes: 0,
        }
    }

    pub(crate) fn get_ref(&self) -> &F {
        &self.file
    }

    /// XXH3-64 of the bytes so far.
    pub(crate) fn sum(&self) -> u64 {
        self.sum.digest()
    }

    /// How many they are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn count(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<F: Read> Read for Summed<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.count(&buffer[..read]);
        Ok(read)
    }
}

impl<F: Write> Write for Summed<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.count(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
