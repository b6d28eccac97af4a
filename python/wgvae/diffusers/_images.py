"""VAEs of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import diffusers
import torch
from diffusers.models.autoencoders.autoencoder_tiny import AutoencoderTinyOutput
from diffusers.models.autoencoders.vae import DecoderOutput, EncoderOutput
from diffusers.utils.accelerate_utils import apply_forward_hook

from wgvae._arrays import Array
from wgvae.diffusers._kl import EngineModelKL, QuantConv
from wgvae.diffusers._model import EngineModel


class _Images(EngineModelKL):
    """Base of VAEs of images that give a distribution."""

    def _decode_array(self, z: torch.Tensor) -> Array:
        return self.vae.decode(z, output="float", unscaled=True, memory_budget=self.memory_budget)

    def _encode_array(self, x: torch.Tensor) -> Array:
        # Moments are unscaled. The flag tells that sides are multiples of the VAE's own factor.
        return self.vae.encode(x, moments=True, unscaled=True, memory_budget=self.memory_budget)


class AutoencoderKL(_Images, QuantConv, diffusers.AutoencoderKL):  # type: ignore[misc]
    """VAE of SD, SDXL, SD3, FLUX.1, Z-Image, CogView4 and others: :class:`EngineModel`."""

    _own = diffusers.AutoencoderKL

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        config = facts["config"]
        return (
            config["network"] == "kl"
            and config["patch"] == 1
            and config["batch_norm_eps"] is None
            and not config["has_shortcuts"]
        )


class AutoencoderKLFlux2(_Images, QuantConv, diffusers.AutoencoderKLFlux2):  # type: ignore[misc]
    """VAE of FLUX.2, with the statistics ``bn`` that its pipelines read: :class:`EngineModel`.

    ``decode`` takes ``[n, 32, h, w]``, and pipelines unpack their 128 channels to that.
    """

    _own = diffusers.AutoencoderKLFlux2
    _buffers_read = {"bn.running_mean": "bn.running_mean", "bn.running_var": "bn.running_var"}

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        config = facts["config"]
        return config["network"] == "kl" and config["batch_norm_eps"] is not None

    def _read_buffers(self) -> None:
        self.bn = torch.nn.BatchNorm2d(1, eps=self.config.batch_norm_eps, affine=False).to(
            self.dtype
        )
        super()._read_buffers()
        self.bn.num_features = self.bn.running_mean.numel()


class AutoencoderKLHunyuanImage(_Images, diffusers.AutoencoderKLHunyuanImage):  # type: ignore[misc]
    """VAE of HunyuanImage 2.1: :class:`EngineModel`."""

    _own = diffusers.AutoencoderKLHunyuanImage

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        config = facts["config"]
        return config["network"] == "kl" and bool(config["has_shortcuts"])


class AutoencoderDC(EngineModel, diffusers.AutoencoderDC):  # type: ignore[misc]
    """DC-AE, the VAE of Sana: :class:`EngineModel`."""

    _own = diffusers.AutoencoderDC

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        return bool(facts["config"]["network"] == "dc")

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def decode(self, z: torch.Tensor, return_dict: bool = True) -> Any:
        """Decodes latents ``z`` ``[n, c, h, w]`` to ``sample`` ``[n, 3, 32 h, 32 w]`` of ``dtype``.

        Errors are those of :meth:`wgvae.Vae.decode`.
        """
        image = self.vae.decode(
            self._given(z, "z"), output="float", unscaled=True, memory_budget=self.memory_budget
        )
        sample = self._result(image, z)
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def encode(self, x: torch.Tensor, return_dict: bool = True) -> Any:
        """Encodes ``x`` ``[n, 3, h, w]`` of -1 to 1 to ``latent`` ``[n, c, h / 32, w / 32]``.

        It is of ``dtype``. Errors are those of :meth:`wgvae.Vae.encode`.
        """
        latent = self._result(
            self.vae.encode(
                self._given(x, "x"), unscaled=True, memory_budget=self.memory_budget
            ),
            x,
        )
        return EncoderOutput(latent=latent) if return_dict else (latent,)


class AutoencoderTiny(EngineModel, diffusers.AutoencoderTiny):  # type: ignore[misc]
    """Tiny autoencoder of SD, SDXL, SD3 or FLUX.1: :class:`EngineModel`."""

    _own = diffusers.AutoencoderTiny

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        config = facts["config"]
        return (
            config["network"] == "tiny"
            and config["patch_size"] == 1
            and not config["grow_frames"]
            and not config["use_midblock_gn"]
        )

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def decode(
        self, x: torch.Tensor, generator: torch.Generator | None = None, return_dict: bool = True
    ) -> Any:
        """Decodes latents ``x`` ``[n, c, h, w]`` to ``sample`` ``[n, 3, 8 h, 8 w]`` of ``dtype``.

        ``generator`` is ignored, as in diffusers' class. Errors are those of
        :meth:`wgvae.Vae.decode`.
        """
        image = self.vae.decode(
            self._given(x, "x"), output="float", memory_budget=self.memory_budget
        )
        sample = self._result(image, x)
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    @apply_forward_hook  # type: ignore[untyped-decorator]
    def encode(self, x: torch.Tensor, return_dict: bool = True) -> Any:
        """Encodes ``x`` ``[n, 3, h, w]`` of -1 to 1 to ``latents`` ``[n, c, h / 8, w / 8]``.

        They are of ``dtype``. Errors are those of :meth:`wgvae.Vae.encode`.
        """
        latents = self._result(
            self.vae.encode(self._given(x, "x"), memory_budget=self.memory_budget), x
        )
        return AutoencoderTinyOutput(latents=latents) if return_dict else (latents,)
