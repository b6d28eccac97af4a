"""The base of all classes: a model of diffusers without weights, whose work wgvae does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import torch

from wgvae._arrays import Array, wrong
from wgvae._options import budget
from wgvae._vae import Vae
from wgvae.diffusers._files import tensor
from wgvae.diffusers._load import Loadable
from wgvae.diffusers._settings import settings

_NO_TILES = "memory_budget= of from_pretrained bounds the memory, with the exact result"


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


class EngineModel(Loadable, torch.nn.Module, metaclass=_EqualToOwn):  # type: ignore[misc]
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
        # Diffusers writes this module's name into a pipeline's model_index.json. With that of its
        # own class, the saved pipeline opens where wgvae is not installed.
        self.__module__ = self._own.__module__
        self._read_buffers()
        self.eval()

    @property
    def memory_budget(self) -> int | str | None:
        """Limit of the device's memory, in bytes or as text such as "2GiB"."""
        return self._memory_budget

    @memory_budget.setter
    def memory_budget(self, limit: int | str | None) -> None:
        budget(limit)
        self._memory_budget = limit

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

    def load_state_dict(self, *_: Any, **__: Any) -> Any:
        """Raises InputError: wgvae reads the weights from files."""
        expected = f"{type(self).__name__}.from_torch of a model that has loaded them"
        raise wrong("load_state_dict", expected, "a call")

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
        warnings.warn(
            "enable_slicing does nothing: wgvae decodes the images of a batch one by one anyway",
            stacklevel=2,
        )

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
        expected = (
            f"one object that pipelines share (Pipeline.from_pipe), or {name}.from_pretrained again"
        )
        raise TypeError(
            f"{name}: expected {expected}, found an attempt to copy or pickle it: it holds a device"
        )

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
        properties = {
            name for name in vars(own) if isinstance(getattr(type(self), name, None), property)
        }
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
            raise wrong(
                name,
                "a tensor without gradients (torch.no_grad(), or detach())",
                "one that requires them",
            )
        return tensor.detach().cpu()

    def _result(self, array: Array, given: torch.Tensor) -> torch.Tensor:
        """Returns ``array`` as a tensor of ``dtype`` on the device of ``given``."""
        return torch.from_numpy(array).to(given.device, self.dtype)


def _described(facts: Mapping[str, Any]) -> str:
    """Describes a model, for errors."""
    config = facts["config"]
    latents = f"{config['latent_channels']} channels of latents, {config['patch']} a side together"
    return f"{facts['name']} with network {config['network']}, {latents}"


def _result_type(dtype: torch.dtype) -> torch.dtype:
    """Returns ``dtype``, or raises InputError if results cannot have it."""
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise wrong("dtype", "torch.float32, torch.float16 or torch.bfloat16", repr(dtype))
    return dtype
