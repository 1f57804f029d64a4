//! Files that flags name.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file, up to one more than `most`: a device may have no end.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
