"""The VAE for pipelines of diffusers.

>>> pipe.vae = wgvae.diffusers.AutoencoderKL.from_pretrained("sdxl-vae")    # doctest: +SKIP

The simplest way needs no module: ``pipe(..., output_type="latent")``, then ``wgvae.Vae.decode``.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch
from diffusers.configuration_utils import FrozenDict
from diffusers.models.autoencoders.vae import DecoderOutput, DiagonalGaussianDistribution
from diffusers.models.modeling_outputs import AutoencoderKLOutput

from wgvae._arrays import wrong
from wgvae._vae import Vae

_NO_TILES = "wgvae decodes the whole image within a memory budget, exactly: AutoencoderKL(vae, memory_budget=...)"


class AutoencoderKL(torch.nn.Module):  # type: ignore[misc]
    """The ``vae`` of diffusers' pipelines for SD, SDXL, SD3 and FLUX.1, run by wgvae.

    Give it to a pipeline that exists: ``from_pretrained(..., vae=None)``, then ``pipe.vae = ...``.
    A pipeline's ``from_pretrained`` only takes models of diffusers.

    ``dtype`` is the type of results: float32, float16 or bfloat16. It follows the pipeline as with
    any module: ``pipe.to(torch.bfloat16)``, ``vae.half()``, ``torch_dtype=``. It does not change
    the precision of the computation: ``precision=`` of :meth:`from_pretrained` does.

    ``encode`` and ``decode`` take all three types, whatever ``dtype`` is, and read each value
    exactly. They return tensors of ``dtype``, on the device of their input. Latents are the VAE's
    own, as with diffusers' class. There are no gradients. Torch sees no parameters: it moves and
    offloads nothing.
    """

    def __init__(
        self,
        vae: Vae,
        memory_budget: int | str | None = None,
        *,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
    ) -> None:
        """Wraps a model for pipelines.

        Parameters
        ----------
        vae
            Model of SD, SDXL, SD3 or FLUX.1.
        memory_budget
            Limit of the device's memory, in bytes or as text such as "2GiB".
        dtype
            Type of results, float32 by default.
        torch_dtype
            Older name of ``dtype``. If both are given, ``dtype`` counts, as in diffusers.

        Raises
        ------
        InputError
            If the model is another, or results cannot have the type.
        """
        super().__init__()
        config = vae.config
        if config["network"] != "kl" or config["patch"] != 1:
            raise wrong("vae", "an AutoencoderKL of SD, SDXL, SD3 or FLUX.1", f"{config['network']}, {config['patch']} latents a side together")
        self.vae = vae
        self.memory_budget = memory_budget
        self.config = FrozenDict(config)
        self.use_slicing = False
        self.use_tiling = False
        chosen = torch_dtype if dtype is None else dtype
        self._dtype = torch.float32 if chosen is None else _result_type(chosen)
        self.eval()

    @classmethod
    def from_pretrained(
        cls,
        path_or_hf_name: str | os.PathLike[str],
        *,
        memory_budget: int | str | None = None,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
        **keywords: Any,
    ) -> AutoencoderKL:
        """Opens a model.

        ``keywords`` go to :meth:`wgvae.Vae.from_pretrained`, the other arguments to the
        constructor. Their errors are the errors of this method.
        """
        return cls(Vae.from_pretrained(path_or_hf_name, **keywords), memory_budget, dtype=dtype, torch_dtype=torch_dtype)

    @property
    def dtype(self) -> torch.dtype:
        """Type of results. Weights and sums may have another type."""
        return self._dtype

    @property
    def device(self) -> torch.device:
        """The CPU, where tensors are read and written, whichever device computes."""
        return torch.device("cpu")

    @property
    def post_quant_conv(self) -> torch.nn.Module:
        """Module with one empty parameter of ``dtype``, which SDXL's pipelines read."""
        return torch.nn.ParameterList([torch.nn.Parameter(torch.empty(0, dtype=self.dtype), requires_grad=False)])

    def decode(self, z: torch.Tensor, return_dict: bool = True, generator: torch.Generator | None = None) -> Any:
        """Decodes ``z`` ``[n, c, h, w]`` to ``sample`` ``[n, 3, 8 h, 8 w]`` of ``dtype``.

        A model with opacity gives 4 channels. Values of pictures are about -1 to 1. ``generator``
        is ignored, as in diffusers' class. Errors are those of :meth:`wgvae.Vae.decode`.
        """
        image = self.vae.decode(_given(z, "z"), output="float", unscaled=True, memory_budget=self.memory_budget)
        sample = torch.from_numpy(image).to(z.device, self.dtype)
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    def encode(self, x: torch.Tensor, return_dict: bool = True) -> Any:
        """Encodes ``x`` ``[n, 3, h, w]`` of -1 to 1 to ``latent_dist``.

        A model with opacity takes 4 channels, too. ``latent_dist`` is a distribution of latents
        ``[n, c, h / 8, w / 8]`` of ``dtype``. Errors are those of :meth:`wgvae.Vae.encode`.
        """
        moments = self.vae.encode(_given(x, "x"), moments=True, memory_budget=self.memory_budget)
        latent_dist = DiagonalGaussianDistribution(torch.from_numpy(moments).to(x.device, self.dtype))
        return AutoencoderKLOutput(latent_dist=latent_dist) if return_dict else (latent_dist,)

    def to(self, *arguments: Any, **keywords: Any) -> AutoencoderKL:
        """Sets ``dtype`` if a type or a tensor is given.

        Takes the arguments of ``torch.nn.Module.to``. A device changes nothing.
        """
        super().to(*arguments, **keywords)
        for given in (*arguments, *keywords.values()):
            if isinstance(given, (torch.dtype, torch.Tensor)):
                self._dtype = _result_type(given if isinstance(given, torch.dtype) else given.dtype)
        return self

    def half(self) -> AutoencoderKL:
        """Sets ``dtype`` to float16."""
        return self.to(torch.float16)

    def bfloat16(self) -> AutoencoderKL:
        """Sets ``dtype`` to bfloat16."""
        return self.to(torch.bfloat16)

    def float(self) -> AutoencoderKL:
        """Sets ``dtype`` to float32."""
        return self.to(torch.float32)

    def double(self) -> AutoencoderKL:
        """Raises InputError: results are computed in float32 at most."""
        return self.to(torch.float64)

    def type(self, dst_type: torch.dtype) -> AutoencoderKL:
        """Sets ``dtype`` to ``dst_type``."""
        return self.to(dst_type)

    def requires_grad_(self, requires_grad: bool = True) -> AutoencoderKL:
        """Does nothing, or raises InputError if gradients are wanted."""
        if requires_grad:
            raise wrong("requires_grad", "False, as there are no gradients", "True")
        return self

    def enable_tiling(self, *_: Any, **__: Any) -> None:
        """Warns and does nothing: tiles are not needed to save memory, and change the picture."""
        warnings.warn(f"enable_tiling does nothing: {_NO_TILES}", stacklevel=2)

    def disable_tiling(self) -> None:
        """Does nothing: there are no tiles."""

    def enable_slicing(self) -> None:
        """Warns and does nothing: images of a batch are decoded one by one anyway."""
        warnings.warn("enable_slicing does nothing: wgvae decodes the images of a batch one by one anyway", stacklevel=2)

    def disable_slicing(self) -> None:
        """Does nothing: images of a batch are decoded one by one."""


def _given(tensor: torch.Tensor, what: str) -> torch.Tensor:
    """Returns ``tensor`` on the CPU, or raises InputError if it needs gradients."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise wrong(what, "a tensor without gradients (torch.no_grad(), or detach())", "one that requires them")
    return tensor.detach().cpu()


def _result_type(dtype: torch.dtype) -> torch.dtype:
    """Returns ``dtype``, or raises InputError if results cannot have it."""
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise wrong("dtype", "torch.float32, torch.float16 or torch.bfloat16", repr(dtype))
    return dtype
