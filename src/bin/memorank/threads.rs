//! Threads for rankings.

use crate::failure::Failure;
use memorank::Par;

/// A number of threads. Thousands would take minutes to start, and longer to rank than one.
pub fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|&n| n <= 1024);
    threads.ok_or_else(|| "a whole number from 0 to 1024".to_owned())
}

/// Runs `work` on so many threads: a pool of this program's for more than one.
pub fn on_threads<T: Send>(
    threads: usize,
    work: impl FnOnce(Par) -> T + Send,
) -> Result<T, Failure> {
    if threads == 1 {
        return Ok(work(Par::Serial));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool
        .map_err(|e| Failure::Error(e.into()))?
        .install(|| work(Par::Rayon)))
}
