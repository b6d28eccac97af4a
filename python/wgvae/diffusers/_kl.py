"""The interface of VAEs that encode to a distribution."""

from __future__ import annotations

from typing import Any

import torch
from diffusers.models.autoencoders.vae import DecoderOutput, DiagonalGaussianDistribution
from diffusers.models.modeling_outputs import AutoencoderKLOutput
from diffusers.utils.accelerate_utils import apply_forward_hook

from wgvae._arrays import Array
from wgvae.diffusers._model import EngineModel


class EngineModelKL(EngineModel):
    """Base of VAEs whose ``encode`` returns a distribution."""

    # Pipelines move to the GPU what their hooks say before they use the VAE, and off it the rest.
    @apply_forward_hook  # type: ignore[untyped-decorator]
    def decode(
        self, z: torch.Tensor, return_dict: bool = True, generator: torch.Generator | None = None
    ) -> Any:
        """Decodes latents ``z`` to ``sample`` of ``dtype``, with values of about -1 to 1.

        Images: ``[n, c, h, w]`` to ``[n, 3, f h, f w]``, with 4 channels for a model with opacity.
        Models for video: ``[n, c, t, h, w]`` to ``[n, 3, frames, f h, f w]``, clamped to -1 to 1
        except for HunyuanVideo 1.5.
        ``f`` is the compression ratio. ``generator`` is ignored, as in diffusers' class. Errors
        are those of :meth:`wgvae.Vae.decode`.
        """
        sample = self._result(self._decode_array(self._given(z, "z")), z)
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def encode(self, x: torch.Tensor, return_dict: bool = True) -> Any:
        """Encodes pictures ``x`` of -1 to 1 to ``latent_dist``, a distribution of ``dtype``.

        Images: ``[n, 3, h, w]`` to latents ``[n, c, h / f, w / f]``; a model with opacity takes 4
        channels, too. Models for video: ``[n, 3, frames, h, w]`` to ``[n, c, t, h / f, w / f]``.
        ``f`` is the compression ratio. Errors are those of :meth:`wgvae.Vae.encode`.
        """
        moments = self._result(self._encode_array(self._given(x, "x")), x)
        latent_dist = DiagonalGaussianDistribution(moments)
        return AutoencoderKLOutput(latent_dist=latent_dist) if return_dict else (latent_dist,)

    def _decode_array(self, z: torch.Tensor) -> Array:
        """Decodes latents of the VAE's own scale."""
        raise NotImplementedError

    def _encode_array(self, x: torch.Tensor) -> Array:
        """Encodes pictures to means and logarithms of variances."""
        raise NotImplementedError


class QuantConv:
    """A part of classes that have ``quant_conv`` and ``post_quant_conv``."""

    dtype: torch.dtype
    device: torch.device
    config: Any

    @property
    def quant_conv(self) -> torch.nn.Module | None:
        """Stand-in of a layer, as :attr:`post_quant_conv`."""
        return self._stand_in() if self.config.get("use_quant_conv", True) else None

    @property
    def post_quant_conv(self) -> torch.nn.Module | None:
        """Module with one empty parameter of ``dtype``, which SDXL's pipelines read.

        It is None if the network has no such layer.
        """
        return self._stand_in() if self.config.get("use_post_quant_conv", True) else None

    def _stand_in(self) -> torch.nn.Module:
        empty = torch.empty(0, dtype=self.dtype, device=self.device)
        return torch.nn.ParameterList([torch.nn.Parameter(empty, requires_grad=False)])
