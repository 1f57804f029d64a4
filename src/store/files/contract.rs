//! What [`Files`] promises, on disk and in memory.

use super::*;
use crate::kernel::Dtype;
use crate::store::{CreateError, CreateOptions, OpenError, Store};
use std::io::ErrorKind;

fn on_disk_and_in_memory(test: impl Fn(&dyn Files, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    test(&Disk, dir.path());
    let files = InMemory::new();
    files.create_dir(Path::new("/here")).unwrap();
    test(&files, Path::new("here"));
}

pub(super) fn put(files: &dyn Files, path: &Path, bytes: &[u8]) -> Box<dyn File> {
    let file = files.create_new(path).unwrap();
    write_all_at(&*file, 0, bytes).unwrap();
    file
}

fn all(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    read_exact_at(file, 0, &mut bytes).unwrap();
    bytes
}

fn get(files: &dyn Files, path: &Path) -> Vec<u8> {
    all(&*files.open(path).unwrap())
}

pub(super) fn list(files: &dyn Files, dir: &Path) -> Vec<OsString> {
    let mut names = files.list(dir).unwrap();
    names.sort();
    names
}

#[track_caller]
pub(super) fn fails<T: std::fmt::Debug>(result: io::Result<T>, kind: ErrorKind) {
    assert_eq!(result.map_err(|e| e.kind()).unwrap_err(), kind);
}

#[test]
fn bytes_are_where_they_were_written() {
    on_disk_and_in_memory(|files, dir| {
        let path = dir.join("a");
        let file = files.create_new(&path).unwrap();
        assert_eq!(file.bytes().unwrap(), 0);
        write_all_at(&*file, 3, b"hello").unwrap();
        write_all_at(&*file, 4, b"a").unwrap();
        file.sync().unwrap();
        files.sync_dir(dir).unwrap();
        assert_eq!(get(files, &path), b"\0\0\0hallo");
        assert_eq!(file.write_at(100, b"").unwrap(), 0);
        assert_eq!(file.bytes().unwrap(), 8);

        let read = files.open(&path).unwrap();
        let mut buffer = [b'x'; 4];
        assert_eq!(read.read_at(6, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer, b"loxx");
        for offset in [8, 9, 1 << 40] {
            assert_eq!(read.read_at(offset, &mut buffer).unwrap(), 0);
        }
        assert_eq!(read.read_at(0, &mut []).unwrap(), 0);

        let write = files.open_to_write(&path).unwrap();
        write.set_len(5).unwrap();
        write.set_len(7).unwrap();
        for handle in [&file, &read, &write] {
            assert_eq!(all(&**handle), b"\0\0\0ha\0\0");
        }
        assert!(read.write_at(0, b"x").is_err());
        assert!(read.set_len(0).is_err());
        assert_eq!(all(&*file), b"\0\0\0ha\0\0");
    });
}

#[test]
fn bytes_stay_while_they_are_looked_at() {
    on_disk_and_in_memory(|files, dir| {
        let path = dir.join("a");
        let file = put(files, &path, b"hello");
        let bytes = files.open(&path).unwrap().map(4).unwrap();
        assert_eq!(file.map(0).unwrap().as_slice(), b"");
        fails(file.map(6), ErrorKind::UnexpectedEof);
        fails(Bytes::read(&*file, 6), ErrorKind::UnexpectedEof);
        write_all_at(&*file, 5, b" world").unwrap();
        put(files, &dir.join("b"), b"other");
        files.rename(&dir.join("b"), &path).unwrap();
        assert_eq!(bytes.as_slice(), b"hell");
        files.remove_file(&path).unwrap();
        assert_eq!(bytes.as_slice(), b"hell");
        assert_eq!(bytes.view::<u16>().len(), 2);
    });
}

#[test]
fn only_what_is_there_is_opened_and_only_what_is_not_is_made() {
    on_disk_and_in_memory(|files, dir| {
        let (a, folder) = (dir.join("a"), dir.join("folder"));
        put(files, &a, b"a");
        files.create_dir(&folder).unwrap();
        put(files, &folder.join("x"), b"x");
        for path in [dir.join("none"), dir.join("none/a")] {
            fails(files.open(&path), ErrorKind::NotFound);
            fails(files.open_to_write(&path), ErrorKind::NotFound);
            fails(files.remove_file(&path), ErrorKind::NotFound);
            fails(files.remove_dir_all(&path), ErrorKind::NotFound);
            fails(files.list(&path), ErrorKind::NotFound);
            fails(files.what(&path), ErrorKind::NotFound);
            fails(files.rename(&path, &dir.join("b")), ErrorKind::NotFound);
        }
        let below = dir.join("none/a");
        fails(files.create_new(&below), ErrorKind::NotFound);
        fails(files.create_dir(&below), ErrorKind::NotFound);
        fails(files.lock(&below), ErrorKind::NotFound);
        fails(files.rename(&a, &below), ErrorKind::NotFound);
        for taken in [&a, &folder, dir] {
            fails(files.create_new(taken), ErrorKind::AlreadyExists);
            fails(files.create_dir(taken), ErrorKind::AlreadyExists);
        }
        // A file is no directory, and a directory no file.
        let below = a.join("x");
        fails(files.open(&below), ErrorKind::NotADirectory);
        fails(files.create_new(&below), ErrorKind::NotADirectory);
        fails(files.create_dir(&below), ErrorKind::NotADirectory);
        fails(files.what(&below), ErrorKind::NotADirectory);
        fails(files.list(&a), ErrorKind::NotADirectory);
        assert!(files.remove_dir_all(&a).is_err());
        fails(files.open(&folder), ErrorKind::InvalidInput);
        fails(files.open_to_write(&folder), ErrorKind::InvalidInput);
        assert!(files.lock(&folder).is_err());
        assert!(files.remove_file(&folder).is_err());

        assert_eq!(list(files, dir), ["a", "folder"]);
        assert_eq!(files.what(&a).unwrap(), What::File);
        assert_eq!(files.what(&folder).unwrap(), What::Directory);
        assert_eq!(
            (get(files, &a), list(files, &folder).len()),
            (b"a".to_vec(), 1)
        );
    });
}

#[test]
fn a_file_that_lost_its_name_stays_open() {
    on_disk_and_in_memory(|files, dir| {
        let (a, b) = (dir.join("a"), dir.join("b"));
        let old = put(files, &a, b"old");
        let new = put(files, &b, b"new");
        files.rename(&b, &a).unwrap();
        assert_eq!((all(&*old), all(&*new)), (b"old".to_vec(), b"new".to_vec()));
        assert_eq!(
            (get(files, &a), list(files, dir)),
            (b"new".to_vec(), vec!["a".into()])
        );
        files.rename(&a, &a).unwrap();
        files.remove_file(&a).unwrap();
        write_all_at(&*new, 3, b"er").unwrap();
        put(files, &a, b"another");
        assert_eq!(
            (all(&*old), all(&*new)),
            (b"old".to_vec(), b"newer".to_vec())
        );
        assert_eq!(get(files, &a), b"another");
    });
}

#[test]
fn a_directory_is_renamed_whole_onto_nothing_or_an_empty_one() {
    on_disk_and_in_memory(|files, dir| {
        let at = |name: &str| dir.join(name);
        files.create_dir(&at("a")).unwrap();
        files.create_dir(&at("a/inner")).unwrap();
        put(files, &at("a/inner/x"), b"x");
        // Names that a comparison of bytes puts between a directory and what is in it.
        files.create_dir(&at("a.b")).unwrap();
        put(files, &at("a.b/y"), b"y");
        put(files, &at("a b"), b"z");
        let open = files.open(&at("a/inner/x")).unwrap();

        fails(
            files.rename(&at("a"), &at("a.b")),
            ErrorKind::DirectoryNotEmpty,
        );
        fails(files.rename(&at("a"), &at("a b")), ErrorKind::NotADirectory);
        fails(files.rename(&at("a b"), &at("a")), ErrorKind::IsADirectory);
        fails(
            files.rename(&at("a"), &at("a/inner/a")),
            ErrorKind::InvalidInput,
        );
        assert_eq!(list(files, dir), ["a", "a b", "a.b"]);
        assert_eq!(list(files, &at("a")), ["inner"]);

        files.rename(&at("a"), &at("new")).unwrap();
        files.create_dir(&at("empty")).unwrap();
        files.rename(&at("new"), &at("empty")).unwrap();
        assert_eq!(list(files, dir), ["a b", "a.b", "empty"]);
        assert_eq!(list(files, &at("empty")), ["inner"]);
        assert_eq!(get(files, &at("empty/inner/x")), b"x");
        assert_eq!(get(files, &at("a.b/y")), b"y");
        files.remove_dir_all(&at("empty")).unwrap();
        assert_eq!(list(files, dir), ["a b", "a.b"]);
        assert_eq!(all(&*open), b"x");
    });
}

#[test]
fn one_handle_at_a_time_has_the_lock() {
    on_disk_and_in_memory(|files, dir| {
        let (old, new) = (dir.join("old"), dir.join("new"));
        files.create_dir(&old).unwrap();
        let mut held = files.lock(&old.join("lock")).unwrap().unwrap();
        assert_eq!(get(files, &old.join("lock")), b"");
        assert!(files.lock(&old.join("lock")).unwrap().is_none());
        assert!(held.is_current().unwrap());

        files.rename(&old, &new).unwrap();
        assert!(!held.is_current().unwrap());
        held.moved(&new.join("lock"));
        assert!(held.is_current().unwrap());
        assert!(files.lock(&new.join("lock")).unwrap().is_none());

        drop(held);
        let held = files.lock(&new.join("lock")).unwrap().unwrap();
        files.remove_file(&new.join("lock")).unwrap();
        assert!(!held.is_current().unwrap());
        put(files, &new.join("lock"), b"kept");
        assert!(!held.is_current().unwrap());
        let other = files.lock(&new.join("lock")).unwrap().unwrap();
        assert!(other.is_current().unwrap());
        assert_eq!(get(files, &new.join("lock")), b"kept");
    });
}

#[test]
#[cfg(unix)]
fn links_are_followed_to_be_opened_and_not_to_be_examined() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    put(&Disk, &at("a"), b"a");
    for (target, link) in [("a", "to_a"), (".", "to_dir"), ("none", "to_none")] {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
        assert_eq!(Disk.what(&at(link)).unwrap(), What::Other);
    }
    assert_eq!(get(&Disk, &at("to_a")), b"a");
    assert_eq!(Disk.list(&at("to_dir")).unwrap().len(), 4);
    fails(Disk.open(&at("to_none")), ErrorKind::NotFound);
    // The errors of opening a store tell the same of a link as of what it leads to.
    let open = |name: &str| Store::open_read_only(at(name)).unwrap_err();
    assert!(matches!(open("to_a"), OpenError::NotADirectory { .. }));
    assert!(matches!(open("to_dir"), OpenError::NotAStore { .. }));
    assert!(matches!(open("to_none"), OpenError::Missing { .. }));
    // A store is never made through one.
    let options = CreateOptions {
        dim: 2.try_into().unwrap(),
        dtype: Dtype::F32,
        model: None,
    };
    for link in ["to_a", "to_dir", "to_none"] {
        let made = Store::create(at(link), &options);
        assert!(matches!(made, Err(CreateError::Exists { .. })), "{made:?}");
    }
}

#[test]
fn paths_in_memory_start_at_one_root() {
    let files = InMemory::new();
    let clone = files.clone();
    put(&files, Path::new("a"), b"a");
    files.create_dir(Path::new("/b")).unwrap();
    for path in ["a", "/a", "./a", "b/../a", "../../a"] {
        assert_eq!(get(&clone, Path::new(path)), b"a", "{path}");
    }
    for root in ["", "/", ".", "b/.."] {
        assert_eq!(list(&files, Path::new(root)), ["a", "b"], "{root}");
        assert_eq!(files.what(Path::new(root)).unwrap(), What::Directory);
    }
    fails(
        files.rename(Path::new("/"), Path::new("b/c")),
        ErrorKind::InvalidInput,
    );
    assert_eq!(format!("{files:?}"), r#"{"a", "b"}"#);
}

#[test]
fn a_file_in_memory_that_has_no_room_stays_as_it_was() {
    let file = put(&InMemory::new(), Path::new("a"), b"abc");
    for end in [i64::MAX as u64, u64::MAX] {
        assert!(file.set_len(end).is_err());
        assert!(file.write_at(end, b"d").is_err());
    }
    assert_eq!(all(&*file), b"abc");
}
