"""VAEs whose tensors have an axis of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import diffusers
import numpy as np
import torch
from diffusers.utils.accelerate_utils import apply_forward_hook

from wgvae._arrays import Array, wrong
from wgvae.diffusers._kl import EngineModelKL, QuantConv


class _Frames(EngineModelKL):
    """Base of VAEs that take ``[n, c, frames, h, w]``."""

    _single_frames_are_images = True
    """True if single frames have the weights of images, which take less work than a clip's.

    Images and clips have different weights on the device. A class that has to do with both would
    read its files anew at each change.
    """
    _clamps = True
    """True if diffusers' class clamps decoded values to -1 to 1."""
    _drops_last_frames = True
    """True if diffusers' class drops the frames that fill no part, and raises no error for them."""

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
        return np.clip(whole, -1, 1, out=whole) if self._clamps else whole

    def _encode_array(self, x: torch.Tensor) -> Array:
        frames = self._frames(x, "x", "[n, c, frames, h, w]")
        if frames == 1 and self._single_frames_are_images:
            return self.vae.encode(
                x[:, :, 0], moments=True, unscaled=True, memory_budget=self.memory_budget
            )[:, :, None]
        clip = self.vae.clip()
        if self._drops_last_frames:
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


class AutoencoderKLHunyuanVideo15(_Frames, diffusers.AutoencoderKLHunyuanVideo15):  # type: ignore[misc]
    """VAE of HunyuanVideo 1.5: :class:`EngineModel`. Decoded values are not clamped."""

    _own = diffusers.AutoencoderKLHunyuanVideo15
    # Pipelines encode one picture and decode a clip.
    _single_frames_are_images = False
    _clamps = False
    _drops_last_frames = False

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        return bool(facts["config"]["network"] == "hunyuan_video")


class AutoencoderKLLTX2Video(_Frames, diffusers.AutoencoderKLLTX2Video):  # type: ignore[misc]
    """VAE of LTX-2 and LTX-2.3, with the statistics of latents: :class:`EngineModel`.

    ``latents_mean`` and ``latents_std`` are ``[c]``. Decoded values are not clamped.
    """

    _own = diffusers.AutoencoderKLLTX2Video
    # Pipelines encode one picture and decode a clip.
    _single_frames_are_images = False
    _clamps = False
    _drops_last_frames = False

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def decode(
        self,
        z: torch.Tensor,
        temb: torch.Tensor | None = None,
        causal: bool | None = None,
        return_dict: bool = True,
    ) -> Any:
        """Decodes latents ``z`` ``[n, c, t, h, w]`` to ``sample`` of ``dtype``.

        ``sample`` is ``[n, 3, 8 (t - 1) + 1, 32 h, 32 w]``, with values of about -1 to 1.
        ``temb`` is ignored, as by diffusers' class if ``config.timestep_conditioning`` is False.
        wgvae opens no model where it is True. ``causal`` is None or ``config.decoder_causal``.

        Raises
        ------
        InputError
            If ``causal`` or the shape is another.
        wgvae.Error
            Other errors of :meth:`wgvae.Clip.decode`.
        """
        self._only_causal("decoder", causal)
        return super().decode(z, return_dict)

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def encode(self, x: torch.Tensor, causal: bool | None = None, return_dict: bool = True) -> Any:
        """Encodes frames ``x`` of -1 to 1 to ``latent_dist``, a distribution of ``dtype``.

        ``x`` is ``[n, 3, frames, h, w]`` with 1, 9, 17 and so on frames. Latents are
        ``[n, c, (frames - 1) / 8 + 1, h / 32, w / 32]``. ``causal`` is None or
        ``config.encoder_causal``.

        Raises
        ------
        InputError
            If ``causal`` or the shape is another.
        wgvae.Error
            Other errors of :meth:`wgvae.Clip.encode`.
        """
        self._only_causal("encoder", causal)
        return super().encode(x, return_dict)

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        return bool(facts["config"]["network"] == "ltx2")

    def _read_buffers(self) -> None:
        # Files have the statistics under several names, and their model has read them.
        for name in ("latents_mean", "latents_std"):
            self.register_buffer(name, torch.tensor(self.vae.config[name], dtype=self.dtype))

    def _only_causal(self, half: str, causal: bool | None) -> None:
        known = self.config[f"{half}_causal"]
        if causal not in (None, known):
            raise wrong("causal", f"None or {known}, the {half}'s setting", repr(causal))
