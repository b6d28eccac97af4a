//! Pixels of an image, or of a part of it: three planes of f32.

use crate::tensor::Size;

/// Red, green and blue planes, `[3, h, w]`, about -1 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    size: Size,
    data: Vec<f32>,
}

impl Planes {
    /// Takes `data` of shape `[3, h, w]`.
    ///
    /// # Panics
    /// If `data` has another length.
    pub fn new(size: Size, data: Vec<f32>) -> Self {
        let pixels = size.width as usize * size.height as usize;
        assert_eq!(data.len(), 3 * pixels, "three planes of {size}");
        Self { size, data }
    }

    /// Makes planes of zeros.
    pub fn zero(size: Size) -> Self {
        Self { size, data: vec![0.0; 3 * size.width as usize * size.height as usize] }
    }

    /// Returns the size in pixels.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns the values, `[3, h, w]`.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// Clamps all values to -1..1. NaN stays NaN.
    #[must_use]
    pub fn clamped(mut self) -> Self {
        self.data.iter_mut().for_each(|value| *value = value.clamp(-1.0, 1.0));
        self
    }

    /// Converts to RGBA8 `[h, w, 4]`: `round(clamp(x / 2 + 1/2) * 255)`, half to even, as the
    /// kernel `image_out` does. Alpha is 255, or 0 if a colour is not finite.
    pub fn to_rgba8(&self) -> Vec<u8> {
        let plane = self.data.len() / 3;
        let pixel = |index: usize| {
            let color = [0, 1, 2].map(|channel| self.data[channel * plane + index]);
            let [red, green, blue] = color.map(level);
            [red, green, blue, if color.iter().all(|value| value.is_finite()) { 255 } else { 0 }]
        };
        (0..plane).flat_map(pixel).collect()
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
        let mut part = Self { size, data: Vec::with_capacity(3 * size.width as usize * size.height as usize) };
        for channel in 0..3 {
            for row in y..y + size.height {
                part.data.extend_from_slice(&self.row(channel, row as usize)[x as usize..][..size.width as usize]);
            }
        }
        part
    }

    /// Overwrites the area of `part`'s size whose upper left corner is at `(x, y)`.
    pub(super) fn put(&mut self, (x, y): (u32, u32), part: &Self) {
        for channel in 0..3 {
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

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn level(value: f32) -> u8 {
    (value.mul_add(0.5, 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8
}
