"""Decodes and encodes the latents of diffusion models, on any GPU or on a CPU.

>>> import wgvae
>>> vae = wgvae.Vae.from_pretrained("sd-vae-ft-mse")        # doctest: +SKIP
>>> pictures = vae.decode(latents, memory_budget="2GiB")    # doctest: +SKIP

``wgvae.diffusers`` has a VAE for diffusers' pipelines. ``wgvae.ray`` encodes and decodes data sets
on many machines. Neither is imported here, as each needs more packages.
"""

from wgvae import errors
from wgvae._native import VERSION as __version__
from wgvae._vae import Adapter, Clip, Plan, Progress, Vae, adapters, preview
from wgvae.errors import Error

__all__ = ["Adapter", "Clip", "Error", "Plan", "Progress", "Vae", "__version__", "adapters", "errors", "preview"]
