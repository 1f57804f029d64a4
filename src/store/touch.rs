//! Touches: last access is a column in memory, and a new file whenever it is synced.

use super::Store;
use super::error::{TouchError, WriteError};
use super::format::Column;
use super::manifest::Entry;
use super::writer::ColumnWriter;

impl Store {
    /// Records that `rows` were retrieved at `now`: the last access of each becomes the later of `now`
    /// and what it was. Kept in memory until [`sync`](Store::sync), [`close`](Store::close) or drop.
    ///
    /// # Errors
    /// If a row does not exist or the handle cannot write. Nothing was touched then.
    pub fn touch(&mut self, rows: &[u32], now: i64) -> Result<(), TouchError> {
        self.writable()?;
        let len = self.len();
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= len) {
            return Err(TouchError::NoRow { row, rows: len });
        }
        for &row in rows {
            let last = &mut self.last_access[row as usize];
            self.touched |= now > *last;
            *last = now.max(*last);
        }
        Ok(())
    }

    /// Makes all touches durable. Does nothing if there are none.
    ///
    /// # Errors
    /// If the bytes do not reach the disk; the handle is then poisoned.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        if !self.touched {
            return Ok(());
        }
        self.writable()?;
        let written = self.write_last_access();
        match written {
            Ok(()) => self.touched = false,
            Err(_) => self.poisoned = true,
        }
        written
    }

    /// Syncs, and gives the lock back. Dropping a store does the same, but cannot say whether it went
    /// well.
    ///
    /// # Errors
    /// As [`sync`](Store::sync).
    pub fn close(mut self) -> Result<(), WriteError> {
        self.sync()
    }

    /// A whole new file, named by the next manifest: the old one stays as it is for those who read it.
    fn write_last_access(&mut self) -> Result<(), WriteError> {
        self.writable()?.check()?;
        let mut manifest = self.manifest.clone();
        manifest.sequence = manifest.next_sequence(&self.dir)?;
        let file = Column::LastAccess.file(manifest.dtype, Some(manifest.sequence));
        let path = self.dir.join(&file);
        (self.files.create_new(&path)).map_err(WriteError::io("creating", &path))?;
        let empty = Entry {
            file,
            bytes: 0,
            sums: Vec::new(),
        };
        let mut writer = ColumnWriter::new(&self.files, &self.dir, &empty);
        writer.push(bytemuck::cast_slice(&self.last_access))?;
        manifest.columns[Column::LastAccess as usize] = writer.finish()?;
        self.writable()?.check()?;
        manifest.publish(&*self.files, &self.dir)?;
        let old = self.manifest.column(Column::LastAccess).file.clone();
        self.columns.paths[Column::LastAccess as usize] = path;
        self.manifest = manifest;
        // If it stays, the next writer sweeps it.
        let _ = self.files.remove_file(&self.dir.join(old));
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.sync();
    }
}
