//! Serial or on rayon's pool: the library's one module that names rayon.

/// Where a ranking runs. The results are the same, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Par {
    /// On the calling thread. Never touches rayon.
    Serial,
    /// On the rayon pool the caller is in, or else on rayon's global one, which rayon starts at its
    /// first use. This crate builds no pool. Calls from inside rayon tasks work. A thread that waits
    /// inside a parallel call may run other tasks of the pool: do not hold a lock across the call
    /// that those tasks take, or use [`Par::Serial`] there.
    #[cfg(feature = "rayon")]
    Rayon,
}

impl Par {
    /// How many threads it runs on at most.
    pub fn threads(self) -> usize {
        match self {
            Par::Serial => 1,
            #[cfg(feature = "rayon")]
            Par::Rayon => rayon::current_num_threads(),
        }
    }

    /// Into how many parts work is worth cutting: more than there are threads, so that a slow one does
    /// not hold up the rest.
    pub(crate) fn parts(self) -> usize {
        match self.threads() {
            1 => 1,
            threads => threads * 8,
        }
    }

    /// Calls `f(i, &mut states[i], the i-th chunk of data)` for every chunk of `size` elements.
    ///
    /// # Panics
    /// If there are fewer states than chunks.
    pub(crate) fn for_each_chunk<S: Send, T: Send>(
        self,
        states: &mut [S],
        data: &mut [T],
        size: usize,
        f: impl Fn(usize, &mut S, &mut [T]) + Sync,
    ) {
        assert!(
            states.len() >= data.len().div_ceil(size),
            "a state for every chunk"
        );
        match self {
            Par::Serial => {
                for (i, (chunk, state)) in data.chunks_mut(size).zip(states).enumerate() {
                    f(i, state, chunk);
                }
            }
            // One part is not worth the way to another thread.
            #[cfg(feature = "rayon")]
            Par::Rayon if data.len() <= size => {
                Par::Serial.for_each_chunk(states, data, size, f);
            }
            #[cfg(feature = "rayon")]
            Par::Rayon => {
                use rayon::prelude::*;
                // Indexed chunks of one part each: work stealing decides who takes which.
                data.par_chunks_mut(size)
                    .zip(states)
                    .enumerate()
                    .with_max_len(1)
                    .for_each(|(i, (chunk, state))| f(i, state, chunk));
            }
        }
    }

    /// Calls `f(i, &mut states[i])` for every state.
    pub(crate) fn for_each<S: Send>(self, states: &mut [S], f: impl Fn(usize, &mut S) + Sync) {
        match self {
            Par::Serial => states
                .iter_mut()
                .enumerate()
                .for_each(|(i, state)| f(i, state)),
            #[cfg(feature = "rayon")]
            Par::Rayon if states.len() <= 1 => Par::Serial.for_each(states, f),
            #[cfg(feature = "rayon")]
            Par::Rayon => {
                use rayon::prelude::*;
                states
                    .par_iter_mut()
                    .enumerate()
                    .with_max_len(1)
                    .for_each(|(i, state)| f(i, state));
            }
        }
    }
}
