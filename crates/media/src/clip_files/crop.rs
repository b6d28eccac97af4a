//! Crop of the middle of each frame while a source is read.

use std::path::PathBuf;

use wgvae::{Result, Size};

use super::frame::{FrameSource, PlanarFrame};
use super::options::Fps;
use crate::picture::{Remark, middle_begin};

/// A source that yields the middle of each frame of another source.
#[derive(Debug)]
pub struct Cropped {
    source: Box<dyn FrameSource>,
    size: Size,
}

impl Cropped {
    /// Crops each frame to `size`, or less where the frame is smaller.
    pub fn new(source: Box<dyn FrameSource>, size: Size) -> Self {
        let whole = source.size();
        let size = Size { width: size.width.min(whole.width), height: size.height.min(whole.height) };
        Self { source, size }
    }
}

impl FrameSource for Cropped {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn size(&self) -> Size {
        self.size
    }

    fn frames(&self) -> Option<u64> {
        self.source.frames()
    }

    fn fps(&self) -> Option<Fps> {
        self.source.fps()
    }

    fn remarks(&self) -> &[(PathBuf, Remark)] {
        self.source.remarks()
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        let Some(frame) = self.source.next()? else { return Ok(None) };
        if frame.size == self.size {
            return Ok(Some(frame));
        }
        let (whole, Size { width, height }) = (frame.size, self.size);
        let (left, top) = (middle_begin(whole.width, width), middle_begin(whole.height, height));
        let planes = frame.data.chunks_exact(whole.width as usize * whole.height as usize);
        let rows = planes.flat_map(|plane| plane.chunks_exact(whole.width as usize).skip(top).take(height as usize));
        let data = rows.flat_map(|row| &row[left..left + width as usize]).copied().collect();
        Ok(Some(PlanarFrame { size: self.size, data }))
    }
}
