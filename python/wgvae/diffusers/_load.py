"""Opens and saves a VAE, with the methods and arguments of diffusers' models."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from wgvae._arrays import wrong
from wgvae._vae import Vae
from wgvae.diffusers._files import WEIGHTS, Hub, find, find_single
from wgvae.errors import InputError


# Attributes of modules that change no result, or that :func:`border_of` reads.
_HARMLESS = frozenset(("gradient_checkpointing", "inplace", "padding_mode", "training"))


def border_of(model: Any) -> dict[str, Any]:
    """Returns the argument ``border`` for what the convolutions of ``model`` see beyond borders.

    No config of diffusers has it: scripts set it for models such as EQ-SDXL-VAE. Any other change
    of a module is refused, as neither config.json nor the weights tell of it.

    Raises
    ------
    InputError
        If the convolutions differ, or a module is not as the model's config makes it.
    """
    _check_modules(model)
    convolutions = [part for part in model.modules() if isinstance(part, torch.nn.Conv2d)]
    modes = sorted({part.padding_mode for part in convolutions if any(part.padding)})
    if len(modes) > 1:
        raise wrong("model", "convolutions of one padding_mode", ", ".join(modes))
    # diffusers ignores what a config says about it, and wgvae would not.
    is_stated = "padding_mode" in model.config
    return {"border": mode for mode in modes if mode != "zeros" or is_stated}


def _check_modules(model: Any) -> None:
    """Checks that the modules of ``model`` are as its config makes them.

    Modules that only one of the two has are left to wgvae, which reads the names of the weights.
    """
    # A model that torch.compile wraps is taken out of it.
    model = getattr(model, "_orig_mod", model)
    with torch.device("meta"):
        fresh = dict(type(model).from_config(dict(model.config)).named_modules())
    for name, module in model.named_modules():
        made = fresh.get(name)
        if not name or made is None or isinstance(made, torch.nn.Dropout):
            continue
        if type(module) is not type(made):
            raise _changed(name, type(made).__name__, type(module).__name__)
        for setting, value in vars(made).items():
            is_plain = isinstance(value, (bool, float, int, str, tuple))
            if not is_plain or setting.startswith("_") or setting in _HARMLESS:
                continue
            found = getattr(module, setting, value)
            if found != value:
                raise _changed(name, f"{setting} = {value!r}", f"{setting} = {found!r}")


def _changed(name: str, expected: str, found: str) -> InputError:
    return wrong("model", f"{expected} in {name}, as its config makes it", found)


def _remove(folder: str, process: int) -> None:
    """Removes ``folder``, but not at the end of a forked child: ``process`` still reads it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class Loadable:
    """The part of :class:`EngineModel` that opens and saves files."""

    _own: ClassVar[Any]
    """Class of diffusers."""
    vae: Vae
    dtype: torch.dtype
    config: Any
    save_config: Callable[[str], None]

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
            raise wrong(
                "use_safetensors", "True or None, as wgvae reads .safetensors only", "False"
            )
        hub = Hub(revision, cache_dir, token, local_files_only, force_download)
        place = find(path_or_hf_name, subfolder, variant, hub)
        return cls._wrap(
            Vae.from_pretrained(**place.arguments, **engine),
            memory_budget,
            dtype=dtype,
            torch_dtype=torch_dtype,
        )

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
        memory_budget, dtype, torch_dtype
            See the constructor.
        revision, cache_dir, token, local_files_only, force_download
            Arguments for the Hub, as in diffusers.
        engine
            See :meth:`from_pretrained`. ``family`` names the model if the file fits several.

        Raises
        ------
        wgvae.Error
            The same errors as :meth:`from_pretrained`.
        """
        hub = Hub(revision, cache_dir, token, local_files_only, force_download)
        place = find_single(path_or_address, hub)
        if config is not None and not isinstance(config, Mapping):
            config = cls._own.load_config(
                config,
                subfolder=subfolder,
                cache_dir=cache_dir,
                token=token,
                local_files_only=local_files_only,
            )
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

        They are written to a temporary folder, which stays as long as ``vae`` of this object:
        wgvae reads weights when it first needs them. Other arguments are those of
        :meth:`from_pretrained`.

        Raises
        ------
        InputError
            If the model is of another class, its weights are not in memory, or a module was changed
            in place, such as the ``eps`` of a norm or ``conv_act``. ``padding_mode`` is taken over.
        wgvae.Error
            Other errors of :meth:`wgvae.Vae.from_pretrained`.
        """
        if any(parameter.is_meta for parameter in model.parameters()):
            raise wrong(
                "model",
                "weights in memory: swap before enable_sequential_cpu_offload()",
                "weights on the meta device",
            )
        folder = tempfile.mkdtemp(prefix="wgvae-")
        try:
            model.save_pretrained(folder)
            vae = Vae.from_pretrained(folder, **(border_of(model) | engine))
            wrapped = cls._wrap(vae, memory_budget, dtype=dtype or torch_dtype or model.dtype)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(vae, _remove, folder, os.getpid())
        return wrapped

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], *, memory_budget: int | str | None = None, **keywords: Any
    ) -> Self:
        """Makes a model with random weights, as diffusers does.

        Other arguments and errors are those of :meth:`from_torch`.
        """
        return cls.from_torch(cls._own.from_config(config), memory_budget=memory_budget, **keywords)

    def to_torch(self) -> Any:
        """Returns diffusers' own model with this model's weights, in ``dtype``, on the CPU.

        Its convolutions have this model's border, and its config has it as ``padding_mode``, which
        diffusers ignores and wgvae reads.

        Raises
        ------
        OSError, ValueError
            If diffusers cannot read the files.
        """
        first = Path(self.vae.facts["files"][0])
        if first.name.startswith(WEIGHTS):
            mark = (
                first.name.removeprefix(WEIGHTS)
                .removesuffix("safetensors")
                .split("-")[0]
                .strip(".")
            )
            own = self._own.from_pretrained(
                first.parent, variant=mark or None, torch_dtype=self.dtype
            )
        else:
            with tempfile.TemporaryDirectory(prefix="wgvae-") as folder:
                self.save_config(folder)
                own = self._own.from_single_file(str(first), config=folder, torch_dtype=self.dtype)
        own.register_to_config(
            **{name: value for name, value in self.config.items() if not name.startswith("_")}
        )
        border = self.vae.config.get("padding_mode", "zeros")
        if border != "zeros":
            own.register_to_config(padding_mode=border)
            for part in own.modules():
                if isinstance(part, torch.nn.Conv2d) and any(part.padding):
                    part.padding_mode = border
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
        own.save_pretrained(
            save_directory,
            is_main_process,
            save_function,
            safe_serialization,
            variant,
            max_shard_size,
            push_to_hub,
            **keywords,
        )

    @classmethod
    def _wrap(cls, vae: Vae, memory_budget: int | str | None, **keywords: Any) -> Self:
        """Calls the constructor, and closes ``vae`` if that fails."""
        raise NotImplementedError
