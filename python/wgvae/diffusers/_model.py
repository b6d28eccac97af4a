"""The base of all classes: a model of diffusers without weights, whose work wgvae does."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from diffusers.models.autoencoders.vae import DecoderOutput, DiagonalGaussianDistribution
from diffusers.models.modeling_outputs import AutoencoderKLOutput
from diffusers.utils.accelerate_utils import apply_forward_hook

from wgvae._arrays import Array, wrong
from wgvae._vae import Vae
from wgvae.diffusers._files import WEIGHTS, Hub, find, find_single, tensor
from wgvae.diffusers._settings import settings

_NO_TILES = "wgvae decodes the whole image within a memory budget, exactly: from_pretrained(..., memory_budget=...)"


class _EqualToOwn(type):
    """Makes a class equal to diffusers' class of the same name.

    ``Pipeline.from_pipe`` takes over a model only if its class is one of those that the new
    pipeline names, and not if it is a subclass. Python compares classes by ``==`` there.
    """

    _own: Any = None

    def __eq__(cls, other: object) -> bool:
        return cls is other or (cls._own is not None and cls._own is other)

    def __hash__(cls) -> int:
        return type.__hash__(cls if cls._own is None else cls._own)


class EngineModel(torch.nn.Module, metaclass=_EqualToOwn):  # type: ignore[misc]
    """Base of the ``vae`` of diffusers' pipelines, run by wgvae.

    Each class is a subclass of diffusers' class of the same name: pipelines accept it wherever
    they accept that one, and it has the same ``config`` and attributes. Its one parameter is empty.

    ``dtype`` is the type of results: float32, float16 or bfloat16. It follows the pipeline as with
    any module: ``pipe.to(torch.bfloat16)``, ``vae.half()``, ``torch_dtype=``. It does not change
    the precision of the computation: ``precision=`` of :meth:`from_pretrained` does. ``device``
    is the one that was asked for, too, and does not change where wgvae computes.

    ``encode`` and ``decode`` take all three types, whatever ``dtype`` is, and read each value
    exactly. They return tensors of ``dtype``, on the device of their input. Latents are the VAE's
    own, as with diffusers' class. There are no gradients.
    """

    _own: ClassVar[Any]
    """Class of diffusers."""
    _buffers_read: ClassVar[Mapping[str, str]] = {}
    """Buffers that pipelines read: their names in the module, and in the file."""

    def __init__(
        self,
        vae: Vae,
        memory_budget: int | str | None = None,
        *,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Wraps a model for pipelines.

        Parameters
        ----------
        vae
            Model of this class.
        memory_budget
            Limit of the device's memory, in bytes or as text such as "2GiB".
        dtype
            Type of results, float32 by default.
        torch_dtype
            Older name of ``dtype``. If both are given, ``dtype`` counts, as in diffusers.
        config
            Settings of diffusers' class, if not those of the config.json beside the weights.

        Raises
        ------
        InputError
            If the model is of another class, or results cannot have the type.
        """
        torch.nn.Module.__init__(self)
        if not self._fits(vae.facts):
            raise wrong("vae", f"an {self._own.__name__}", _described(vae.facts))
        chosen = torch_dtype if dtype is None else dtype
        self._take_attributes(settings(self._own, vae.facts) if config is None else config)
        # Accelerate's hooks and many scripts take type and device from the first parameter.
        result = torch.empty(0, dtype=_result_type(torch.float32 if chosen is None else chosen))
        self.nothing = torch.nn.Parameter(result, requires_grad=False)
        self.vae = vae
        self.memory_budget = memory_budget
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        # Diffusers writes this module's name into a pipeline's model_index.json. With that of its
        # own class, the saved pipeline opens where wgvae is not installed.
        self.__module__ = self._own.__module__
        self._read_buffers()
        self.eval()

    @classmethod
    def from_pretrained(
        cls,
        path_or_hf_name: str | os.PathLike[str],
        *,
        subfolder: str | None = None,
        memory_budget: int | str | None = None,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
        variant: str | None = None,
        revision: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        token: bool | str | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        use_safetensors: bool | None = None,
        low_cpu_mem_usage: bool | None = None,
        **engine: Any,
    ) -> Self:
        """Opens a model.

        Parameters
        ----------
        path_or_hf_name
            ``owner/name`` on the Hugging Face Hub as in diffusers, or all that
            :meth:`wgvae.Vae.from_pretrained` takes: a folder, a file, ``hf:owner/name``.
        subfolder
            Folder of the VAE in there, such as "vae" in a pipeline.
        memory_budget, dtype, torch_dtype
            See the constructor.
        variant
            Mark in the names of the files, such as "fp16".
        revision, cache_dir, token, local_files_only, force_download
            Arguments for the Hub, as in diffusers.
        use_safetensors
            True or None, as wgvae reads nothing else.
        low_cpu_mem_usage
            Accepted for scripts that give it, without effect: memory is low anyway.
        engine
            Arguments of :meth:`wgvae.Vae.from_pretrained`: ``device``, ``adapter``, ``threads``,
            ``precision``, ``family``, ``least_memory``.

        Raises
        ------
        ModelNotFoundError
            If there is no model of that name.
        FileError
            If the Hub does not answer or denies access.
        wgvae.Error
            Other errors of :meth:`wgvae.Vae.from_pretrained` and of the constructor.
        """
        if use_safetensors is False:
            raise wrong("use_safetensors", "True or None, as wgvae reads .safetensors only", "False")
        hub = Hub(revision, cache_dir, token, local_files_only, force_download)
        place = find(path_or_hf_name, subfolder, variant, hub)
        return cls._wrap(Vae.from_pretrained(**place.arguments, **engine), memory_budget, dtype=dtype, torch_dtype=torch_dtype)

    @classmethod
    def from_single_file(
        cls,
        path_or_address: str | os.PathLike[str],
        *,
        config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        subfolder: str | None = None,
        memory_budget: int | str | None = None,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
        revision: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        token: bool | str | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        **engine: Any,
    ) -> Self:
        """Opens a .safetensors file, such as the original release's or a whole checkpoint.

        Parameters
        ----------
        path_or_address
            A file, or its address ``https://huggingface.co/owner/name/blob/main/file``.
        config
            Settings of diffusers' class, or a folder or a name on the Hub with a config.json. The
            file itself tells the network and its numbers, without a download.
        subfolder
            Folder of ``config``'s config.json.
        memory_budget, dtype, torch_dtype, revision, cache_dir, token, local_files_only, force_download, engine
            See :meth:`from_pretrained`. ``family`` names the model if the file fits several.

        Raises
        ------
        wgvae.Error
            The same errors as :meth:`from_pretrained`.
        """
        hub = Hub(revision, cache_dir, token, local_files_only, force_download)
        place = find_single(path_or_address, hub)
        if config is not None and not isinstance(config, Mapping):
            config = cls._own.load_config(config, subfolder=subfolder, cache_dir=cache_dir, token=token, local_files_only=local_files_only)
        vae = Vae.from_pretrained(**place.arguments, **engine)
        return cls._wrap(vae, memory_budget, dtype=dtype, torch_dtype=torch_dtype, config=config)

    @classmethod
    def from_torch(
        cls,
        model: Any,
        *,
        memory_budget: int | str | None = None,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
        **engine: Any,
    ) -> Self:
        """Takes over the weights of diffusers' ``model`` as they are now.

        They are written to a temporary folder, which stays as long as this object: wgvae reads
        weights when it first needs them. Other arguments are those of :meth:`from_pretrained`.

        Raises
        ------
        InputError
            If the model is of another class, or its weights are not in memory.
        wgvae.Error
            Other errors of :meth:`wgvae.Vae.from_pretrained`.
        """
        if any(parameter.is_meta for parameter in model.parameters()):
            raise wrong("model", "weights in memory: swap before enable_sequential_cpu_offload()", "weights on the meta device")
        folder = tempfile.TemporaryDirectory(prefix="wgvae-")
        model.save_pretrained(folder.name)
        vae = Vae.from_pretrained(folder.name, **engine)
        wrapped = cls._wrap(vae, memory_budget, dtype=dtype or torch_dtype or model.dtype)
        wrapped._folder = folder
        return wrapped

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, memory_budget: int | str | None = None, **keywords: Any) -> Self:
        """Makes a model with random weights, as diffusers does.

        Other arguments and errors are those of :meth:`from_torch`.
        """
        return cls.from_torch(cls._own.from_config(config), memory_budget=memory_budget, **keywords)

    def to_torch(self) -> Any:
        """Returns diffusers' own model with this model's weights, in ``dtype``, on the CPU.

        Raises
        ------
        OSError, ValueError
            If diffusers cannot read the files.
        """
        first = Path(self.vae.facts["files"][0])
        if first.name.startswith(WEIGHTS):
            mark = first.name.removeprefix(WEIGHTS).removesuffix("safetensors").split("-")[0].strip(".")
            own = self._own.from_pretrained(first.parent, variant=mark or None, torch_dtype=self.dtype)
        else:
            with tempfile.TemporaryDirectory(prefix="wgvae-") as folder:
                self.save_config(folder)
                own = self._own.from_single_file(str(first), config=folder, torch_dtype=self.dtype)
        own.register_to_config(**{name: value for name, value in self.config.items() if not name.startswith("_")})
        return own

    def save_pretrained(
        self,
        save_directory: str | os.PathLike[str],
        is_main_process: bool = True,
        save_function: Callable[..., Any] | None = None,
        safe_serialization: bool = True,
        variant: str | None = None,
        max_shard_size: int | str = "10GB",
        push_to_hub: bool = False,
        **keywords: Any,
    ) -> None:
        """Writes config.json and the weights in ``dtype`` to a folder, as diffusers' class does.

        Diffusers' class does it: arguments and errors are those of its method and of
        :meth:`to_torch`.
        """
        own = self.to_torch()
        own.save_pretrained(save_directory, is_main_process, save_function, safe_serialization, variant, max_shard_size, push_to_hub, **keywords)

    @property
    def dtype(self) -> torch.dtype:
        """Type of results. Weights and sums may have another type."""
        dtype: torch.dtype = self.nothing.dtype
        return dtype

    @property
    def device(self) -> torch.device:
        """The device that was asked for with ``to``, the CPU at first.

        ``vae.device`` and ``vae.adapter`` of the attribute ``vae`` say where wgvae computes.
        """
        device: torch.device = self.nothing.device
        return device

    def type(self, dst_type: torch.dtype) -> Self:
        """Sets ``dtype`` to ``dst_type``."""
        self.to(dst_type)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Does nothing, or raises InputError if gradients are wanted."""
        if requires_grad:
            raise wrong("requires_grad", "False, as there are no gradients", "True")
        return self

    def enable_tiling(self, *_: Any, **__: Any) -> None:
        """Warns and does nothing: tiles are not needed to save memory, and change the picture.

        ``use_tiling`` stays False. Tile sizes can be read and set, without effect.
        """
        warnings.warn(f"enable_tiling does nothing: {_NO_TILES}", stacklevel=2)

    def disable_tiling(self) -> None:
        """Does nothing: there are no tiles."""

    def enable_slicing(self) -> None:
        """Warns and does nothing: images of a batch are decoded one by one anyway."""
        warnings.warn("enable_slicing does nothing: wgvae decodes the images of a batch one by one anyway", stacklevel=2)

    def disable_slicing(self) -> None:
        """Does nothing: images of a batch are decoded one by one."""

    def tiled_decode(self, *_: Any, **__: Any) -> Any:
        """Raises InputError: :meth:`decode` needs no tiles."""
        raise wrong("tiled_decode", f"decode instead: {_NO_TILES}", "a call")

    def tiled_encode(self, *_: Any, **__: Any) -> Any:
        """Raises InputError: :meth:`encode` needs no tiles."""
        raise wrong("tiled_encode", f"encode instead: {_NO_TILES}", "a call")

    def extra_repr(self) -> str:
        """Returns the model's name and its device, for ``repr``."""
        return f"{self.vae.facts['name']} on {self.vae.adapter}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        name = type(self).__name__
        expected = f"one object that pipelines share (Pipeline.from_pipe), or {name}.from_pretrained again"
        raise TypeError(f"{name}: expected {expected}, found an attempt to copy or pickle it: it holds a device")

    @classmethod
    def _fits(cls, facts: Mapping[str, Any]) -> bool:
        """Returns True if the class is the one for a model with these facts."""
        raise NotImplementedError

    @classmethod
    def _wrap(cls, vae: Vae, memory_budget: int | str | None, **keywords: Any) -> Self:
        """Calls the constructor, and closes ``vae`` if that fails."""
        try:
            return cls(vae, memory_budget, **keywords)
        except BaseException:
            vae.close()
            raise

    def _take_attributes(self, config: Mapping[str, Any]) -> None:
        """Sets the attributes of diffusers' object of this ``config``, but not its modules."""
        with torch.device("meta"):
            own = self._own.from_config(dict(config))
        properties = {name for name in vars(own) if isinstance(getattr(type(self), name, None), property)}
        for name in vars(own).keys() - vars(torch.nn.Module()).keys() - properties:
            setattr(self, name, vars(own)[name])

    def _read_buffers(self) -> None:
        """Reads the buffers that pipelines read from the files."""
        for name, stored in self._buffers_read.items():
            holder, _, leaf = name.rpartition(".")
            value = tensor(self.vae.facts["files"], stored).to(self.dtype)
            module = self.get_submodule(holder) if holder else self
            module.register_buffer(leaf, value)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        """Changes type and device: ``to``, ``half``, ``cuda`` and the like end here."""
        _result_type(fn(self.nothing).dtype)
        super()._apply(fn, recurse)
        return self

    def _given(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """Returns ``tensor`` on the CPU, or raises InputError if it needs gradients."""
        if tensor.requires_grad and torch.is_grad_enabled():
            raise wrong(name, "a tensor without gradients (torch.no_grad(), or detach())", "one that requires them")
        return tensor.detach().cpu()

    def _result(self, array: Array, given: torch.Tensor) -> torch.Tensor:
        """Returns ``array`` as a tensor of ``dtype`` on the device of ``given``."""
        return torch.from_numpy(array).to(given.device, self.dtype)


class EngineModelKL(EngineModel):
    """Base of VAEs whose ``encode`` returns a distribution."""

    # Pipelines move to the GPU what their hooks say before they use the VAE, and off it the rest.
    @apply_forward_hook  # type: ignore[untyped-decorator]
    def decode(self, z: torch.Tensor, return_dict: bool = True, generator: torch.Generator | None = None) -> Any:
        """Decodes latents ``z`` to ``sample`` of ``dtype``, with values of about -1 to 1.

        Images: ``[n, c, h, w]`` to ``[n, 3, f h, f w]``, with 4 channels for a model with opacity.
        Models for video: ``[n, c, t, h, w]`` to ``[n, 3, frames, f h, f w]``, clamped to -1 to 1.
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


def _described(facts: Mapping[str, Any]) -> str:
    """Describes a model, for errors."""
    config = facts["config"]
    return f"{facts['name']} with network {config['network']}, {config['latent_channels']} channels of latents, {config['patch']} of them a side together"


def _result_type(dtype: torch.dtype) -> torch.dtype:
    """Returns ``dtype``, or raises InputError if results cannot have it."""
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise wrong("dtype", "torch.float32, torch.float16 or torch.bfloat16", repr(dtype))
    return dtype
