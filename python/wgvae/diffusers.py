"""A VAE for the pipelines of diffusers: ``pipe.vae = wgvae.diffusers.AutoencoderKL.from_pretrained("sdxl-vae")``.

The simplest way needs nothing of this: ``pipe(..., output_type="latent")`` and ``wgvae.Vae.decode`` afterwards.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from diffusers.configuration_utils import FrozenDict
from diffusers.models.autoencoders.vae import DecoderOutput, DiagonalGaussianDistribution
from diffusers.models.modeling_outputs import AutoencoderKLOutput

from wgvae._arrays import wrong
from wgvae._vae import Vae

_NO_TILES = "wgvae decodes the whole image within a memory budget, exactly: AutoencoderKL(vae, memory_budget=...)"


class AutoencoderKL:
    """What pipelines for SD, SDXL, SD3 and FLUX.1 ask of ``vae``, done by wgvae.

    It is no ``torch.nn.Module``: pipelines do not move, offload or save it. Give it to a pipeline after that is made (``from_pretrained(..., vae=None)`` and then
    ``pipe.vae = ...``), as ``from_pretrained`` refuses what is no model of diffusers.

    Latents are the VAE's own here, as with diffusers' class. Results are float32, on the device of what went in. There are no gradients.
    """

    def __init__(self, vae: Vae, memory_budget: int | str | None = None) -> None:
        """Uses ``vae`` within ``memory_budget``, bytes or such as "2GiB"."""
        config = vae.config
        if config["network"] != "kl" or config["patch"] != 1:
            raise wrong("vae", "an AutoencoderKL of SD, SDXL, SD3 or FLUX.1", f"{config['network']}, {config['patch']} latents a side together")
        self.vae = vae
        self.memory_budget = memory_budget
        self.config = FrozenDict(config)
        self.use_slicing = False
        self.use_tiling = False

    @classmethod
    def from_pretrained(
        cls, path_or_hf_name: str | os.PathLike[str], *, memory_budget: int | str | None = None, **keywords: Any
    ) -> AutoencoderKL:
        """Opens a model: see :meth:`wgvae.Vae.from_pretrained`."""
        return cls(Vae.from_pretrained(path_or_hf_name, **keywords), memory_budget)

    @property
    def dtype(self) -> torch.dtype:
        """Of results, whatever the weights are stored in."""
        return torch.float32

    @property
    def device(self) -> torch.device:
        """Where torch sees results, whatever GPU makes them."""
        return torch.device("cpu")

    def decode(self, z: torch.Tensor, return_dict: bool = True, generator: torch.Generator | None = None) -> Any:
        """Decodes ``[n, c, h, w]`` to ``sample`` ``[n, 3, 8 h, 8 w]``, about -1 to 1. ``generator`` is not used, as by diffusers' class."""
        image = self.vae.decode(_given(z, "z"), output="float", unscaled=True, memory_budget=self.memory_budget)
        sample = torch.from_numpy(image).to(z.device)
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    def encode(self, x: torch.Tensor, return_dict: bool = True) -> Any:
        """Encodes ``[n, 3, h, w]`` of -1 to 1 to ``latent_dist``, a distribution of ``[n, c, h / 8, w / 8]``."""
        moments = self.vae.encode(_given(x, "x"), moments=True, memory_budget=self.memory_budget)
        latent_dist = DiagonalGaussianDistribution(torch.from_numpy(moments).to(x.device))
        return AutoencoderKLOutput(latent_dist=latent_dist) if return_dict else (latent_dist,)

    def modules(self) -> Iterator[torch.nn.Module]:
        """None: nothing here is torch's."""
        return iter(())

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """None: nothing here is torch's."""
        return iter(())

    def to(self, *_: Any, **__: Any) -> AutoencoderKL:
        """Nothing: the GPU and the precision were chosen when the model was opened."""
        return self

    def eval(self) -> AutoencoderKL:
        """Nothing: it is never trained."""
        return self

    def requires_grad_(self, requires_grad: bool = True) -> AutoencoderKL:
        """Nothing, unless gradients are wanted, which there are none of."""
        if requires_grad:
            raise wrong("requires_grad", "False, as there are no gradients", "True")
        return self

    def enable_tiling(self, *_: Any, **__: Any) -> None:
        """Nothing but a warning: tiles are not needed to save memory, and change the picture."""
        warnings.warn(f"enable_tiling does nothing: {_NO_TILES}", stacklevel=2)

    def disable_tiling(self) -> None:
        """Nothing: there are no tiles."""

    def enable_slicing(self) -> None:
        """Nothing but a warning: images of a batch are decoded one by one anyway."""
        warnings.warn("enable_slicing does nothing: wgvae decodes the images of a batch one by one anyway", stacklevel=2)

    def disable_slicing(self) -> None:
        """Nothing: images of a batch are decoded one by one."""


def _given(tensor: torch.Tensor, what: str) -> torch.Tensor:
    """On the CPU, and nothing that gradients are wanted of."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise wrong(what, "a tensor without gradients (torch.no_grad(), or detach())", "one that requires them")
    return tensor.detach().cpu()
