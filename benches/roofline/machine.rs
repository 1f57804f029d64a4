//! What the bench runs on, and how much of it.

use memorank::Par;
use memorank::kernel::{Isa, Kernel};
use std::path::Path;

/// The machine, and the sizes for it.
pub struct Setup {
    /// `--test`.
    pub tiny: bool,
    /// What is measured beside each other: AVX2 and AVX-512 where there are, or else the portable one.
    pub kernels: Vec<Kernel>,
    /// What verdicts are about.
    pub judged: Kernel,
}

impl Setup {
    pub fn new(tiny: bool) -> Setup {
        let judged =
            Isa::from_env().expect("MEMORANK_ISA names an instruction set of this machine");
        let judged = Kernel::new(judged).expect("checked just now");
        let vectors = [Isa::Avx2, Isa::Avx512];
        let mut kernels: Vec<Kernel> = (vectors.into_iter())
            .filter_map(|isa| Kernel::new(isa).ok())
            .collect();
        if !kernels.contains(&judged) {
            kernels.push(judged);
        }
        Setup {
            tiny,
            kernels,
            judged,
        }
    }

    /// Memories where a million are asked for.
    pub fn million(&self) -> usize {
        if self.tiny { 5_000 } else { 1_000_000 }
    }

    /// Rounds of turns.
    pub fn rounds(&self) -> usize {
        if self.tiny { 3 } else { 21 }
    }

    /// One thread, and all where there are more.
    pub fn pars(&self) -> Vec<Par> {
        match Par::Rayon.threads() {
            1 => vec![Par::Serial],
            _ => vec![Par::Serial, Par::Rayon],
        }
    }

    pub fn describe(&self) -> String {
        let threads = Par::Rayon.threads();
        format!("{}, {threads} threads, {}", cpu_model(), self.judged.isa())
    }
}

/// Into how many parts work is cut: as the library does.
pub fn parts(par: Par) -> usize {
    match par.threads() {
        1 => 1,
        threads => threads * 8,
    }
}

pub fn cpu_model() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned())
}

/// Bytes of memory that programs and the page cache can have.
pub fn available_memory() -> u64 {
    number("/proc/meminfo", "MemAvailable") * 1024
}

/// Bytes of this process's memory that no file stands behind.
pub fn anonymous_memory() -> u64 {
    number("/proc/self/status", "RssAnon") * 1024
}

/// Bytes this process has had fetched from a disk, page faults included.
pub fn fetched_from_disk() -> u64 {
    number("/proc/self/io", "read_bytes")
}

/// Bytes left on the disk of `path`.
pub fn free_disk(path: &Path) -> u64 {
    let disk = rustix::fs::statvfs(path).expect("the folder is there");
    disk.f_bavail * disk.f_frsize
}

/// The number of a field, without its unit.
fn number(file: &str, name: &str) -> u64 {
    let value = field(file, name).unwrap_or_else(|| panic!("{file} has {name} on Linux"));
    let number = value.trim_end_matches(" kB").parse();
    number.unwrap_or_else(|_| panic!("{file}: {name} is {value:?}"))
}

/// A `name: value` of one of Linux's text files.
fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}
