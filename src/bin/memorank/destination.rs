//! A file that has its name only when it is whole: until then it has a temporary one in the same folder.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where a file may be written. Nothing is left there before it is.
pub struct Destination(PathBuf);

impl Destination {
    /// Finds out now what would be an error later: makes a file in the folder, and removes it.
    ///
    /// `inputs` are folders that the file may not lie in, and files that it may not replace.
    pub fn new(
        path: &Path,
        inputs: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Destination, Failure> {
        let failed = |e| cannot(path, &e);
        match fs::metadata(path) {
            // A rename would put the file in the place of a device or pipe.
            Ok(found) if !found.is_file() => {
                return Err(failed(io::Error::other("it is there and not a file")));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        // Behind a link, the file is replaced and the link stays.
        let destination = Destination(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        let folder = fs::canonicalize(destination.folder()).map_err(failed)?;
        let name = path.file_name();
        let name = name.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        // A link was followed: it has the name of what is behind it.
        let name = destination.0.file_name().unwrap_or(name);
        let destination = Destination(folder.join(name));
        // What is not there cannot be overwritten.
        for input in inputs
            .into_iter()
            .filter_map(|input| fs::canonicalize(input).ok())
        {
            if destination.0.starts_with(&input) {
                let told = match input.is_dir() {
                    true => "it would lie in the store",
                    false => "it is what is read",
                };
                return Err(failed(io::Error::other(told)));
            }
        }
        destination.temporary().map_err(failed)?;
        Ok(destination)
    }

    /// The same, of a file that may be wanted.
    pub fn of(
        path: Option<&Path>,
        inputs: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Option<Destination>, Failure> {
        path.map(|path| Destination::new(path, inputs)).transpose()
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the file: whole, or not at all.
    pub fn write(&self, content: &str) -> Result<(), Failure> {
        let write = || {
            let mut file = self.temporary()?;
            file.write_all(content.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.0)?;
            Ok(())
        };
        write().map_err(|e| cannot(&self.0, &e))
    }

    fn temporary(&self) -> io::Result<tempfile::NamedTempFile<File>> {
        tempfile::Builder::new()
            .prefix(".memorank-")
            // Private by default; a chart or setting gets what the user's other files get.
            .make_in(self.folder(), |path| File::create_new(path))
    }

    fn folder(&self) -> &Path {
        match self.0.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }
}

fn cannot(path: &Path, e: &io::Error) -> Failure {
    Failure::Error(format!("cannot write {}: {e}", path.display()).into())
}
