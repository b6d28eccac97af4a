"""VAEs for pipelines of diffusers, and previews while they work.

>>> from wgvae.diffusers import AutoencoderKL, preview_callback, swap    # doctest: +SKIP
>>> swap(pipe, memory_budget="2GiB")                                     # doctest: +SKIP
>>> pipe.vae = AutoencoderKL.from_pretrained("owner/name", subfolder="vae")    # doctest: +SKIP
>>> pipe(prompt, callback_on_step_end=preview_callback(pipe))            # doctest: +SKIP

The simplest way needs no module: ``pipe(..., output_type="latent")``, then ``wgvae.Vae.decode``.
"""

from wgvae.diffusers._images import (
    AutoencoderDC,
    AutoencoderKL,
    AutoencoderKLFlux2,
    AutoencoderKLHunyuanImage,
    AutoencoderTiny,
)
from wgvae.diffusers._preview import preview_callback
from wgvae.diffusers._swap import swap
from wgvae.diffusers._videos import (
    AutoencoderKLHunyuanVideo15,
    AutoencoderKLLTX2Video,
    AutoencoderKLQwenImage,
    AutoencoderKLQwenImage21,
    AutoencoderKLWan,
)

__all__ = [
    "AutoencoderDC",
    "AutoencoderKL",
    "AutoencoderKLFlux2",
    "AutoencoderKLHunyuanImage",
    "AutoencoderKLHunyuanVideo15",
    "AutoencoderKLLTX2Video",
    "AutoencoderKLQwenImage",
    "AutoencoderKLQwenImage21",
    "AutoencoderKLWan",
    "AutoencoderTiny",
    "preview_callback",
    "swap",
]
