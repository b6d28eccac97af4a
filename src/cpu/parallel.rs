//! Loops whose rounds run on all threads: rayon's. A browser's module that has one thread has
//! the standard library's loops by these names: rayon would add 17 KB to the download.

#[cfg(all(target_arch = "wasm32", not(feature = "threads")))]
pub(super) use self::alone::*;
#[cfg(any(not(target_arch = "wasm32"), feature = "threads"))]
pub(super) use rayon::{current_num_threads as threads, prelude::*};

#[cfg(all(target_arch = "wasm32", not(feature = "threads")))]
mod alone {
    use std::slice::{Chunks, ChunksMut, IterMut};

    pub(in crate::cpu) fn threads() -> usize {
        1
    }

    pub(in crate::cpu) trait ParallelSlice<T> {
        fn par_chunks(&self, length: usize) -> Chunks<'_, T>;
        fn par_chunks_mut(&mut self, length: usize) -> ChunksMut<'_, T>;
        fn par_iter_mut(&mut self) -> IterMut<'_, T>;
    }

    impl<T> ParallelSlice<T> for [T] {
        fn par_chunks(&self, length: usize) -> Chunks<'_, T> {
            self.chunks(length)
        }

        fn par_chunks_mut(&mut self, length: usize) -> ChunksMut<'_, T> {
            self.chunks_mut(length)
        }

        fn par_iter_mut(&mut self) -> IterMut<'_, T> {
            self.iter_mut()
        }
    }

    pub(in crate::cpu) trait IntoParallelIterator: IntoIterator + Sized {
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallelIterator for I {}
}
