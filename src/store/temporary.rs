//! Directories that are filled beside their destination and then renamed, so that there is a whole one
//! or none. One is called `.<name>.<pid>.<n>.tmp`, and holds a lock file that is locked while its maker lives.

use super::error::OpenError;
use super::files::Files;
use super::lock::Lock;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that is removed when it is dropped, unless it was renamed.
pub(crate) struct Temporary {
    files: Arc<dyn Files>,
    path: PathBuf,
    parent: PathBuf,
    /// `None` once it was renamed.
    lock: Option<Lock>,
}

impl Temporary {
    /// Makes a directory for what will be `destination`, and removes what was left of others for it by
    /// processes that are gone.
    pub(crate) fn beside(files: Arc<dyn Files>, destination: &Path) -> io::Result<Temporary> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = destination.file_name() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = match destination.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        sweep(&*files, parent, name);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut own = OsString::from(".");
            own.push(name);
            own.push(format!(".{}.{number}.tmp", std::process::id()));
            let path = parent.join(own);
            match files.create_dir(&path) {
                Ok(()) => {}
                // Left by a process that had our id.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e),
            }
            match Lock::take(&*files, &path) {
                Ok(lock) => {
                    return Ok(Temporary {
                        files,
                        path,
                        parent: parent.to_owned(),
                        lock: Some(lock),
                    });
                }
                Err(error) => {
                    let _ = files.remove_dir_all(&path);
                    return Err(match error {
                        OpenError::Io { source, .. } => source,
                        other => io::Error::other(other),
                    });
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that it and its destination are in.
    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// Gives what was made in it under `name`, and is durable there, its place, durably: all of it or nothing,
    /// and only if nothing is there, not even an empty directory.
    #[cfg(feature = "import")]
    pub(crate) fn publish(self, name: &str, destination: &Path) -> io::Result<()> {
        match self.files.what(destination) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        }
        self.files.rename(&self.path.join(name), destination)?;
        self.files.sync_dir(&self.parent).inspect_err(|_| {
            // Not known to be durable: better none. A second failure would add nothing to the first.
            let _ = self.files.remove_dir_all(destination);
        })
    }

    /// Gives the whole directory its name, replacing an empty directory and nothing else. Gives its lock.
    pub(super) fn rename(mut self, destination: &Path) -> io::Result<Lock> {
        self.files.rename(&self.path, destination)?;
        let lock = self.lock.take().expect("it is renamed once");
        Ok(lock.moved(destination))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // As well as it goes: a name that tells what it is, and the next one for this destination tries again.
            let _ = self.files.remove_dir_all(&self.path);
        }
    }
}

/// Removes what killed processes left for a destination called `name`. As well as it goes, and only what is
/// surely dead: no process has the id in its name, and its lock, which a process elsewhere (in another
/// container, say) would hold, can be had. One that was killed between making its directory and taking the
/// lock leaves an empty directory, which stays.
fn sweep(files: &dyn Files, parent: &Path, name: &OsStr) {
    for file in files.list(parent).unwrap_or_default() {
        let path = parent.join(&file);
        if let Some(pid) = maker(&file, name)
            && is_gone(pid)
            && let Some(_held) = Lock::take_left(files, &path)
        {
            let _ = files.remove_dir_all(&path);
        }
    }
}

/// The process id in the name of a directory for `name`.
fn maker(file: &OsStr, name: &OsStr) -> Option<u32> {
    let rest = file.as_encoded_bytes().strip_prefix(b".")?;
    let rest = rest.strip_prefix(name.as_encoded_bytes())?;
    let rest = std::str::from_utf8(rest).ok()?;
    let (pid, number) = rest
        .strip_prefix('.')?
        .strip_suffix(".tmp")?
        .split_once('.')?;
    let number = number.parse::<u64>().ok()?;
    let pid = pid.parse().ok()?;
    (rest == format!(".{pid}.{number}.tmp")).then_some(pid)
}

/// Whether no process has this id, where that can be known.
fn is_gone(pid: u32) -> bool {
    let own = format!("/proc/{}", std::process::id());
    cfg!(target_os = "linux")
        && Path::new(&own).exists()
        && !Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::files::Disk;
    use std::fs::{self, File};

    #[test]
    fn names_are_read_back_and_no_others() {
        let of = |file: &str| maker(file.as_ref(), "a.b".as_ref());
        assert_eq!(of(".a.b.12.3.tmp"), Some(12));
        for other in [
            "a.b.12.3.tmp",
            ".a.12.3.tmp",
            ".a.b.c.12.3.tmp",
            ".a.b.12.tmp",
            ".a.b.012.3.tmp",
            ".a.b.+12.3.tmp",
            ".a.b.12.3.4.tmp",
            ".a.b.12.3",
            ".a.b.99999999999.3.tmp",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn it_is_gone_when_dropped_and_whole_when_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let destination = dir.path().join("store");
        let one = Temporary::beside(Arc::new(Disk), &destination).unwrap();
        let two = Temporary::beside(Arc::new(Disk), &destination).unwrap();
        fs::write(one.path().join("x"), "x").unwrap();
        fs::write(two.path().join("x"), "x").unwrap();
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && two.path().exists());
        let lock = two.rename(&destination).unwrap();
        lock.check().unwrap();
        assert_eq!(fs::read(destination.join("x")).unwrap(), b"x");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// No Linux gives a process so large a number.
    const NOBODY: u32 = u32::MAX;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_what_the_dead_left_for_this_destination_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let left = |name: String, locked: bool| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.join("store")).unwrap();
            if locked {
                File::create(path.join("lock")).unwrap();
            }
            path
        };
        let swept = [0, 7].map(|n| left(format!(".a.{NOBODY}.{n}.tmp"), true));
        let own = std::process::id();
        let kept = [
            left(format!(".a.{own}.999999.tmp"), true),
            left(".a.1.0.tmp".into(), true),
            left(format!(".a.{NOBODY}.1.tmp"), false),
            left(format!(".b.{NOBODY}.0.tmp"), true),
            left(format!(".a.{NOBODY}.tmp"), true),
        ];
        let elsewhere = left(format!(".a.{NOBODY}.2.tmp"), true);
        let held = File::open(elsewhere.join("lock")).unwrap();
        held.lock().unwrap();
        let made = Temporary::beside(Arc::new(Disk), &dir.path().join("a")).unwrap();
        assert!(swept.iter().all(|path| !path.exists()));
        assert!(kept.iter().all(|path| path.exists()));
        assert!(elsewhere.exists() && made.path().exists());
        drop((held, made));
        drop(Temporary::beside(Arc::new(Disk), &dir.path().join("a")).unwrap());
        assert!(!elsewhere.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), kept.len());
    }
}
