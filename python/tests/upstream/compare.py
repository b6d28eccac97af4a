"""Compares a VAE of wgvae with diffusers' VAE of the same settings and weights, by precision."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

import wgvae.diffusers
from wgvae.errors import InputError

PRECISIONS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
ENGINE = {"f32": "f32", "bf16": "f16", "f16": "f16"}
"""wgvae's ``precision`` for each type: it has no bfloat16, and a GPU computes in float16."""
FACTOR = {"f32": 8.0, "bf16": 2.0, "f16": 2.0}
"""Allowed difference as a multiple of torch's own.

Float32 has room for Winograd's convolutions, which round more often than direct ones.
"""
FRAMES = {
    "AutoencoderKLHunyuanVideo15": 5,
    "AutoencoderKLLTX2Video": 9,
    "AutoencoderKLQwenImage": 1,
    "AutoencoderKLQwenImage21": 1,
    "AutoencoderKLWan": 5,
}
"""Frames of a clip for classes with an axis of frames. Two classes are for images."""
WITHOUT_MOMENTS = ("AutoencoderDC", "AutoencoderTiny")
"""Classes that encode to latents, not to a distribution."""


@dataclass(frozen=True)
class Difference:
    """Largest differences of one half in one precision from the exact values."""

    half: str
    precision: str
    ours: float
    torch: float
    rounding: float
    """Half of the last digit of the largest value."""

    @property
    def passed(self) -> bool:
        """True if wgvae is as near to the exact values as the precision allows."""
        return self.ours <= FACTOR[self.precision] * (self.torch + self.rounding)

    def __str__(self) -> str:
        times = self.ours / (self.torch + self.rounding)
        verdict = "passed" if self.passed else "FAILED"
        return f"{self.half} {verdict}, {self.ours:.1e}, {times:.1f} times torch's"


def differences(own: Any, precision: str, device: str) -> Iterator[Difference]:
    """Compares both halves of diffusers' VAE ``own`` with wgvae's VAE of its weights.

    The exact values are torch's from the same rounded weights and inputs, in float64 for float32
    and in float32 for the shorter types. Torch's difference from them is the precision's noise.

    Raises
    ------
    wgvae.Error
        If wgvae does not open the model.
    """
    dtype = PRECISIONS[precision]
    rounded = copy.deepcopy(own).eval().to(dtype)
    kind = getattr(wgvae.diffusers, type(own).__name__)
    ours = kind.from_torch(rounded, device=device, precision=ENGINE[precision])
    exact = copy.deepcopy(rounded).to(torch.float64 if dtype == torch.float32 else torch.float32)
    with torch.no_grad():
        picture = pictures(own).to(dtype)
        moments = encoded(exact, picture.to(exact.dtype))
        yield _difference("encode", precision, moments, *(encoded(v, picture) for v in (ours, rounded)))
        channels = moments.shape[1] // (1 if type(own).__name__ in WITHOUT_MOMENTS else 2)
        latents = _normal(7, channels, *moments.shape[2:]).to(dtype)
        wanted = exact.decode(latents.to(exact.dtype)).sample
        yield _difference("decode", precision, wanted, *(v.decode(latents).sample for v in (ours, rounded)))


def pictures(own: Any) -> torch.Tensor:
    """Returns a picture ``[1, c, h, w]`` or a clip ``[1, c, frames, h, w]`` of -1 to 1 for ``own``.

    Its latents have about 4 x 6 values a channel, or more, and two frames if it is a clip.
    """
    name, config = type(own).__name__, own.config
    channels = config.get("input_channels") or config.get("in_channels", 3)
    patch = config.get("patch_size")
    if name == "AutoencoderKLWan" and patch:
        channels //= patch**2
    frames = (FRAMES[name],) if name in FRAMES else ()
    sides = (64, 96) if getattr(own, "spatial_compression_ratio", 8) > 8 else (32, 48)
    return torch.tanh(_normal(3, channels, *frames, *sides))


def encoded(vae: Any, picture: torch.Tensor) -> torch.Tensor:
    """Returns what ``vae`` encodes to: moments ``[1, 2 c, ...]``, or latents ``[1, c, ...]``."""
    output = vae.encode(picture)
    for name in ("latents", "latent"):
        if hasattr(output, name):
            return getattr(output, name)
    return output.latent_dist.parameters


def _normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(1, *shape, generator=torch.Generator().manual_seed(seed))


def _difference(
    half: str, precision: str, exact: torch.Tensor, ours: torch.Tensor, own: torch.Tensor
) -> Difference:
    if ours.shape != exact.shape:
        raise InputError(f"{half}: expected {list(exact.shape)}, found {list(ours.shape)}")
    rounding = torch.finfo(PRECISIONS[precision]).eps / 2 * exact.abs().max().item()
    return Difference(
        half, precision, _largest(ours, exact), _largest(own, exact), rounding
    )


def _largest(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Returns the largest difference, which is NaN where a value is."""
    return float((found.double() - exact.double()).abs().max())
