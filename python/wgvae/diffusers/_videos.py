"""VAEs whose tensors have an axis of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import diffusers
import numpy as np
import torch

from wgvae._arrays import Array, wrong
from wgvae.diffusers._kl import EngineModelKL, QuantConv


class _Frames(EngineModelKL):
    """Base of VAEs that take ``[n, c, frames, h, w]``."""

    _single_frames_are_images = True
    """True if single frames have the weights of images, which take less work than a clip's.

    Images and clips have different weights on the device. A class that has to do with both would
    read its files anew at each change.
    """

    def _decode_array(self, z: torch.Tensor) -> Array:
        frames = self._frames(z, "z", "[n, c, t, h, w]")
        if frames == 1 and self._single_frames_are_images:
            whole = self.vae.decode(
                z[:, :, 0], output="float", unscaled=True, memory_budget=self.memory_budget
            )[:, :, None]
        else:
            clip = self.vae.clip()
            whole = np.concatenate(
                [
                    clip.decode(
                        each, output="float", unscaled=True, memory_budget=self.memory_budget
                    )
                    for each in z.split(1)
                ]
            )
        return np.clip(whole, -1, 1, out=whole)

    def _encode_array(self, x: torch.Tensor) -> Array:
        frames = self._frames(x, "x", "[n, c, frames, h, w]")
        if frames == 1 and self._single_frames_are_images:
            return self.vae.encode(
                x[:, :, 0], moments=True, unscaled=True, memory_budget=self.memory_budget
            )[:, :, None]
        clip = self.vae.clip()
        # Diffusers' classes drop the frames that fill no part, too.
        x = x[:, :, : 1 + (frames - 1) // clip.temporal_factor * clip.temporal_factor]
        return np.concatenate(
            [
                clip.encode(each, moments=True, memory_budget=self.memory_budget)
                for each in x.split(1)
            ]
        )

    def _frames(self, given: torch.Tensor, name: str, shape: str) -> int:
        """Returns the number of frames, or raises InputError if the shape is another."""
        if given.ndim != 5 or given.shape[0] == 0 or given.shape[2] == 0:
            raise wrong(name, f"a shape {shape}", str(list(given.shape)))
        frames: int = given.shape[2]
        if frames > 1 and self.vae.facts["temporal_factor"] is None:
            raise wrong(name, "one frame, as this model is for images", f"{frames} frames")
        return frames


class AutoencoderKLWan(_Frames, QuantConv, diffusers.AutoencoderKLWan):  # type: ignore[misc]
    """VAE of Wan 2.1 and 2.2, also that of the 5B model: :class:`EngineModel`."""

    _own = diffusers.AutoencoderKLWan
    # Pipelines encode one picture and decode a clip.
    _single_frames_are_images = False

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        return facts["config"]["network"] == "wan" and facts["temporal_factor"] is not None


class AutoencoderKLQwenImage(_Frames, QuantConv, diffusers.AutoencoderKLQwenImage):  # type: ignore[misc]
    """VAE of Qwen-Image and Qwen-Image-Layered: :class:`EngineModel`."""

    _own = diffusers.AutoencoderKLQwenImage

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        return facts["config"]["network"] == "wan" and not facts["config"]["is_residual"]


class AutoencoderKLQwenImage21(_Frames, QuantConv, diffusers.AutoencoderKLQwenImage21):  # type: ignore[misc]
    """VAE of Qwen-Image 2.1, whose pictures have opacity: :class:`EngineModel`."""

    _own = diffusers.AutoencoderKLQwenImage21

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        return (
            facts["config"]["network"] == "wan"
            and facts["config"]["is_residual"]
            and facts["temporal_factor"] is None
        )
