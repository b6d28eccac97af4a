//! A pipe whose reads time out, so that a process that delivers nothing is noticed.

use std::io::{ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Most pieces that wait to be read.
const QUEUE: usize = 4;
/// Bytes in a piece.
const PIECE: usize = 1 << 16;

/// A pipe whose reads fail with [`ErrorKind::TimedOut`] if no data comes for `patience`.
pub(super) struct PatientReader {
    pieces: Receiver<std::io::Result<Vec<u8>>>,
    /// The piece being read, and the number of its bytes that were read.
    piece: (Vec<u8>, usize),
    patience: Duration,
}

impl PatientReader {
    /// Reads `pipe` in its own thread, which ends when the pipe ends or this value is dropped.
    pub(super) fn new(mut pipe: impl Read + Send + 'static, patience: Duration) -> Self {
        let (sender, pieces) = sync_channel(QUEUE);
        std::thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = pipe.read(&mut piece);
                let is_last = !matches!(read, Ok(1..));
                let read = read.map(|count| {
                    piece.truncate(count);
                    piece
                });
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { pieces, piece: (Vec::new(), 0), patience }
    }
}

impl Read for PatientReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.1 == self.piece.0.len() {
            self.piece = match self.pieces.recv_timeout(self.patience) {
                Ok(piece) => (piece?, 0),
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::TimedOut.into()),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            };
        }
        let (piece, start) = (&self.piece.0, self.piece.1);
        let count = buffer.len().min(piece.len() - start);
        buffer[..count].copy_from_slice(&piece[start..start + count]);
        self.piece.1 += count;
        Ok(count)
    }
}
