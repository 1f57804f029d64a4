//! A file that has its name only when it is whole: until then it has a temporary one in the same
//! folder, and is removed if the program fails. (A killed program leaves the temporary file
//! behind.)

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::{NamedTempFile, TempPath};

/// A file being written.
pub struct Output {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

/// A file that is whole and waits for its name.
pub struct Finished {
    path: PathBuf,
    temporary: TempPath,
}

impl Output {
    /// The file `prefix.extension`, whatever dots the prefix has.
    pub fn create(prefix: &Path, extension: &str) -> Result<Self> {
        let mut path = prefix.as_os_str().to_owned();
        path.push(".");
        path.push(extension);
        let path = PathBuf::from(path);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".memorank-data-gen-")
            // Private by default; a file of data gets what the user's other files get.
            .make_in(folder, |path| File::create_new(path))
            .with_context(|| format!("creating a file in {}", folder.display()))?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| self.writing())
    }

    pub fn finish(self) -> Result<Finished> {
        let writing = self.writing();
        let file = self
            .file
            .into_inner()
            .map_err(|error| error.into_error())
            .context(writing)?;
        Ok(Finished {
            path: self.path,
            temporary: file.into_temp_path(),
        })
    }

    fn writing(&self) -> String {
        format!("writing {}", self.path.display())
    }
}

impl Finished {
    pub fn rename(self) -> Result<PathBuf> {
        self.temporary
            .persist(&self.path)
            .with_context(|| format!("naming {}", self.path.display()))?;
        Ok(self.path)
    }
}
