//! Loops whose rounds run on all threads: rayon's. A browser's module has one thread, so there the
//! standard library's loops have the same names: rayon would add 17 KB to the download.

#[cfg(target_arch = "wasm32")]
pub(super) use self::alone::*;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use rayon::prelude::*;

#[cfg(target_arch = "wasm32")]
mod alone {
    use std::slice::{Chunks, ChunksMut, IterMut};

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
