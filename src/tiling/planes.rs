//! Pixels of an image, or of a part of it: planes of f32.

use crate::tensor::Size;
use crate::tensor::rgba8::rgba8;

/// Planes of red, green, blue and perhaps opacity, `[c, h, w]`, about -1 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    size: Size,
    channels: usize,
    data: Vec<f32>,
}

impl Planes {
    /// Takes `data` of shape `[c, h, w]`.
    ///
    /// # Panics
    /// If there are not 3 or 4 channels.
    pub fn new(size: Size, data: Vec<f32>) -> Self {
        let pixels = size.width as usize * size.height as usize;
        let channels = data.len() / pixels;
        assert!(data.len() == channels * pixels && [3, 4].contains(&channels), "3 or 4 planes of {size}");
        Self { size, channels, data }
    }

    /// Makes `channels` planes of zeros.
    pub fn zero(size: Size, channels: usize) -> Self {
        Self { size, channels, data: vec![0.0; channels * size.width as usize * size.height as usize] }
    }

    /// Returns the number of planes.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the size in pixels.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns the values, `[c, h, w]`.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// Clamps all values to -1..1. NaN stays NaN.
    #[must_use]
    pub fn clamped(mut self) -> Self {
        self.data.iter_mut().for_each(|value| *value = value.clamp(-1.0, 1.0));
        self
    }

    /// Converts to RGBA8 `[h, w, 4]` as the kernel `image_out` does, see [`rgba8`].
    pub fn to_rgba8(&self) -> Vec<u8> {
        let plane = self.size.width as usize * self.size.height as usize;
        let value = |channel: usize, index: usize| self.data.get(channel * plane + index).copied().unwrap_or(1.0);
        (0..plane).flat_map(|index| rgba8([0, 1, 2, 3].map(|channel| value(channel, index)))).collect()
    }

    /// Returns row `y` of plane `channel`.
    pub(super) fn row(&self, channel: usize, y: usize) -> &[f32] {
        &self.data[self.at(channel, y)..][..self.size.width as usize]
    }

    /// Returns row `y` of plane `channel`, to be changed.
    pub(super) fn row_mut(&mut self, channel: usize, y: usize) -> &mut [f32] {
        let at = self.at(channel, y);
        &mut self.data[at..][..self.size.width as usize]
    }

    /// Copies the part of `size` whose upper left corner is at `(x, y)`.
    pub(super) fn part(&self, (x, y): (u32, u32), size: Size) -> Self {
        let mut data = Vec::with_capacity(self.channels * size.width as usize * size.height as usize);
        for channel in 0..self.channels {
            for row in y..y + size.height {
                data.extend_from_slice(&self.row(channel, row as usize)[x as usize..][..size.width as usize]);
            }
        }
        Self { size, channels: self.channels, data }
    }

    /// Overwrites the area of `part`'s size whose upper left corner is at `(x, y)`.
    pub(super) fn put(&mut self, (x, y): (u32, u32), part: &Self) {
        for channel in 0..part.channels {
            for row in 0..part.size.height as usize {
                let target = &mut self.row_mut(channel, y as usize + row)[x as usize..][..part.size.width as usize];
                target.copy_from_slice(part.row(channel, row));
            }
        }
    }

    fn at(&self, channel: usize, y: usize) -> usize {
        (channel * self.size.height as usize + y) * self.size.width as usize
    }
}
