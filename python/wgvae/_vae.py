"""A VAE on a GPU: decodes latents and encodes images."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from wgvae import _native
from wgvae._arrays import Array, ArrayLike, as_clip_latents, as_frames, as_images, as_latents, wrong
from wgvae.errors import ModelNotFoundError

if TYPE_CHECKING:
    from PIL.Image import Image

    Images: TypeAlias = ArrayLike | Image | Sequence[Image] | Sequence[Array]

Precision: TypeAlias = Literal["auto", "f16", "f32", "fast"]
Parking: TypeAlias = Literal["auto", "on", "off"]
Output: TypeAlias = Literal["uint8", "float"]


class Progress(NamedTuple):
    """How far a call is."""

    image: int
    """Index of the image, or of the part of a clip, that is being worked on."""
    images: int
    """How many there are."""
    done: int
    """Multiply-adds of it that are done, of ``total``."""
    total: int
    """Multiply-adds of it."""
    stage: str
    """The module that was reached, in diffusers' spelling."""

    @property
    def fraction(self) -> float:
        """Of all images, 0 to 1."""
        return (self.image + self.done / max(self.total, 1)) / max(self.images, 1)


ProgressArgument: TypeAlias = Callable[[Progress], object] | bool | None


@dataclass(frozen=True)
class Adapter:
    """A GPU, or what stands for one."""

    index: int
    """Its number for ``adapter=``. The best has number 0."""
    name: str
    backend: str
    device_type: str
    """``DiscreteGpu``, ``IntegratedGpu``, ``VirtualGpu``, ``Cpu`` or ``Other``."""
    driver: str
    pci_id: str
    """PCI vendor and device."""
    facts: dict[str, Any]
    """All that ``wgvae adapters --json`` says of it."""


def adapters() -> list[Adapter]:
    """The adapters of this machine, best first.

    Raises:
        NoAdapterError: there is none; it says what to install.
    """
    names = ("name", "backend", "device_type", "driver", "pci_id")
    found = enumerate(json.loads(_native.adapters()))
    return [Adapter(index, **{name: facts[name] for name in names}, facts=facts) for index, facts in found]


@dataclass(frozen=True)
class Plan:
    """What a decode or an encode takes, known before anything is allocated. ``str(plan)`` is what ``wgvae plan`` prints."""

    height: int
    """Of the image, pixels."""
    width: int
    peak_bytes: int
    """GPU memory at the peak, all of it."""
    weight_bytes: int
    """The part of it that is weights."""
    host_bytes: int
    """Host memory that a budget leaves things in."""
    transferred_bytes: int
    """What a budget moves between host and device."""
    seconds: float
    """What it should take on a device of this kind, roughly. Of a clip: one part."""
    macs: int
    """Multiply-adds. Of a clip: one part."""
    facts: list[dict[str, Any]]
    """All facts, as ``wgvae plan --json`` has them. Of a clip those of its first and of its other parts."""
    text: str

    def __str__(self) -> str:
        return self.text


class Vae:
    """A VAE on a GPU. Weights are read when they are wanted first: a decode reads no encoder's.

    Several threads may share one: they take turns, and others run meanwhile, as the GIL is free while the GPU works. A child process cannot use its
    parent's, and it cannot be pickled: open the model there. Ctrl-C, and whatever ``progress`` raises, stops a call within a submission (about 0.1 s), and
    leaves the object as good as before.
    """

    def __init__(self, model: _native.Model) -> None:
        """Use :meth:`from_pretrained`."""
        self._model = model
        self._facts: dict[str, Any] = json.loads(model.facts)

    @classmethod
    def from_pretrained(
        cls,
        path_or_hf_name: str | os.PathLike[str],
        *,
        adapter: str | int | None = None,
        precision: Precision | None = None,
        family: str | None = None,
        variant: Literal["fp16"] | None = None,
    ) -> Vae:
        """Opens a model: a .safetensors file, a diffusers VAE folder, a pipeline's folder, or a name on the Hugging Face Hub.

        Args:
            path_or_hf_name: where it is on this machine, or ``hf:owner/name[/folder or file][@revision]`` on the Hugging Face Hub. Of that, config.json and the
                VAE's weights are downloaded into the cache of ``huggingface_hub``, with its token and by its environment variables.
            adapter: part of a GPU's name, or its index in :func:`adapters`; the best one where it is not given.
            precision: of weights and activations, "f16" or "f32"; "auto" is f16 on a GPU and f32 on a CPU driver. Sums are f32. "fast" is f16 with less traffic on
                the GPU and a few times its error; it needs a device with ``shader-f16``.
            family: the published model that it is, such as "sdxl", where the files do not say.
            variant: "fp16" prefers the files that are marked so.

        Raises:
            ModelNotFoundError: there is no such path.
            FileError: the hub does not answer, or refuses.
            FormatError, TensorError, ConfigError, FileError: the files are no model that can be used.
            NoAdapterError, DeviceError: the GPU.
        """
        try:
            path = os.fspath(path_or_hf_name)
        except TypeError:
            expected = "a path, as str or os.PathLike"
            raise wrong("path_or_hf_name", expected, type(path_or_hf_name).__name__) from None
        if not isinstance(path, str):
            raise wrong("path_or_hf_name", "a path, as str or os.PathLike", "bytes")
        if variant not in (None, "fp16"):
            raise wrong("variant", '"fp16" or None', repr(variant))
        if family is not None and not isinstance(family, str):
            raise wrong("family", "a name", repr(family))
        if "\0" not in path and not path.startswith("hf:") and not os.path.exists(path):
            raise _not_found(path)
        stored = _word("precision", precision or "auto")
        return cls(_native.Model.open(path, family, variant == "fp16", _adapter(adapter), stored))

    def decode(
        self,
        latents: ArrayLike,
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array:
        """Decodes latents ``[n, c, h, w]`` or ``[c, h, w]`` to images.

        The latents' memory is read as it lies, with any strides, and copied once, image by image, in the native half. Pictures are not copied.

        Args:
            latents: float32, float16 or bfloat16, as the diffusion model leaves them: a numpy array, a torch tensor on the CPU, or anything with
                ``__array__`` or ``__dlpack__``.
            output: "uint8" for pictures ``[n, h, w, 3]``, "float" for float32 ``[n, 3, h, w]`` of about -1 to 1, not clamped.
            unscaled: they are the VAE's own, already divided by the model's scaling factor: what diffusers' ``vae.decode`` takes, and ComfyUI has. With a tiny
                autoencoder, which takes the diffusion model's, those of the VAE that it stands in for: ``family`` or the file's name says which.
            memory_budget: the most GPU memory to take in bytes, or such as "2GiB". The result is the same to the bit.
            parking: whether what does not fit the budget may wait in host memory; "auto": not where the device's memory is the host's.
            progress: called with :class:`Progress` after each submission, and may raise to stop; or True for a bar of tqdm.

        Raises:
            InputError: shapes, types or values that do not fit the model.
            BudgetError, TooLargeError, HostMemoryError, DeviceMemoryError: memory.
            NotFiniteError: the result is not finite.
        """
        array, bfloat16 = as_latents(latents)
        options = _options(unscaled, _floats(output), memory_budget, parking)
        with _watched(progress, "decode") as watch:
            return self._model.decode(array, bfloat16, options, watch)

    def encode(
        self,
        images: Images,
        sample: bool = False,
        seed: int | None = None,
        *,
        moments: bool = False,
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array:
        """Encodes images to latents, float32 ``[n, c, h, w]``, scaled as the diffusion model takes them.

        Args:
            images: uint8 ``[n, h, w, 3]`` or ``[h, w, 3]``, floats ``[n, 3, h, w]`` or ``[3, h, w]`` of -1 to 1, or PIL images of one size. Sides are
                multiples of what the model takes.
            sample: draws from the distribution that the encoder gives, instead of taking its middle.
            seed: which noise to draw: the same on every machine, and other noise for each image. None draws new noise every time.
            moments: gives the distribution itself, ``[n, 2c, h, w]``: means, then logarithms of variances, unscaled.
            unscaled: gives the VAE's own latents, without the diffusion model's scale.
            memory_budget, parking, progress: see :meth:`decode`.

        Raises:
            As :meth:`decode`.
        """
        array, bfloat16 = as_images(images)
        options = _options(unscaled, True, memory_budget, parking, bool(moments), _seed(sample, seed, moments))
        with _watched(progress, "encode") as watch:
            return self._model.encode(array, bfloat16, options, watch)

    def plan(
        self,
        height: int,
        width: int,
        memory_budget: int | str | None = None,
        *,
        encode: bool = False,
        output: Output = "uint8",
        unscaled: bool = False,
        parking: Parking = "auto",
    ) -> Plan:
        """Plans the decode to an image of ``height`` by ``width`` pixels, or its encode. Costs no GPU memory, and waits for no call that runs.

        Raises:
            InputError: no latents make such an image.
            BudgetError: no plan keeps the budget. It says which would do.
        """
        return self._plan(height, width, memory_budget, encode, output, unscaled, parking, clip=False)

    def clip(self) -> Clip:
        """The same model for clips, if it is one for video.

        Images and clips have weights of their own: going back and forth reads the files each time. Open the model twice to do both.
        """
        return Clip(self)

    @property
    def config(self) -> dict[str, Any]:
        """The network and what its latents mean, by diffusers' names."""
        return dict(self._facts["config"])

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of the model and its device."""
        return dict(self._facts)

    @property
    def adapter(self) -> str:
        """Name of its GPU."""
        return str(self._facts["adapter"]["name"])

    def memory(self) -> tuple[int, int]:
        """GPU memory in bytes: what is held now, and the most that was."""
        return self._model.memory()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._model.closed

    def close(self) -> None:
        """Gives the GPU's memory back, once calls that run in other threads have ended."""
        self._model.close()

    def __enter__(self) -> Vae:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("Vae: expected to be opened where it is used (Vae.from_pretrained), found an attempt to pickle or copy it: it holds a GPU")

    def __repr__(self) -> str:
        return f"<wgvae.Vae {self._facts['name']} on {self.adapter}, {self._facts['storage']}>"

    def _plan(
        self,
        height: int,
        width: int,
        memory_budget: int | str | None,
        encode: bool,
        output: Output,
        unscaled: bool,
        parking: Parking,
        clip: bool,
    ) -> Plan:
        options = _options(unscaled, _floats(output), memory_budget, parking)
        height, width = _side("height", height), _side("width", width)
        text, facts_json = self._model.plan(height, width, bool(encode), clip, options)
        facts = json.loads(facts_json)

        def most(name: str) -> int:
            return max(int(part[name]) for part in facts)

        return Plan(
            height=height,
            width=width,
            peak_bytes=most("predicted_peak_bytes"),
            weight_bytes=most("weight_bytes"),
            host_bytes=most("host_bytes"),
            transferred_bytes=most("transferred_bytes"),
            seconds=float(facts[-1]["predicted_seconds"]),
            macs=most("macs"),
            facts=facts,
            text=text,
        )


class Clip:
    """Decodes and encodes clips, part by part, in the memory of one part: see :meth:`Vae.clip`."""

    def __init__(self, vae: Vae) -> None:
        """Use :meth:`Vae.clip`."""
        factor = vae.facts["temporal_factor"]
        if factor is None:
            raise wrong("clip", "a model for video", str(vae.facts["name"]))
        self._vae = vae
        self.temporal_factor = int(factor)
        """Frames that each frame of latents after the first becomes."""

    def decode(
        self,
        latents: ArrayLike,
        on_frames: Callable[[Array], object] | None = None,
        *,
        output: Output = "uint8",
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array | None:
        """Decodes latents ``[1, c, t, h, w]`` to frames, uint8 ``[f, h, w, 3]`` or floats ``[1, 3, f, h, w]``.

        Args:
            latents: as those of :meth:`Vae.decode`.
            on_frames: called with the frames of each part, ``[k, h, w, 3]`` or ``[k, 3, h, w]``, as they are ready. Nothing is kept or returned then.
            output, unscaled, memory_budget, parking, progress: see :meth:`Vae.decode`.
        """
        array, bfloat16 = as_clip_latents(latents)
        floats = _floats(output)
        options = _options(unscaled, floats, memory_budget, parking)
        parts: list[Array] = []
        with _watched(progress, "decode clip") as watch:
            self._vae._model.decode_clip(array, bfloat16, on_frames or parts.append, options, watch)
        if on_frames is not None:
            return None
        frames = np.concatenate(parts)
        return np.ascontiguousarray(frames.swapaxes(0, 1))[None] if floats else frames

    def encode(
        self,
        frames: ArrayLike | Sequence[Image] | Sequence[Array],
        sample: bool = False,
        seed: int | None = None,
        *,
        moments: bool = False,
        unscaled: bool = False,
        memory_budget: int | str | None = None,
        parking: Parking = "auto",
        progress: ProgressArgument = None,
    ) -> Array:
        """Encodes 1, 5, 9 and so on frames, uint8 ``[f, h, w, 3]``, floats ``[1, 3, f, h, w]`` or PIL images, to latents ``[1, c, t, h, w]``.

        Args:
            frames: all of one size, with sides that are multiples of what the model takes.
            sample, seed, moments, unscaled: see :meth:`Vae.encode`.
            memory_budget, parking, progress: see :meth:`Vae.decode`.
        """
        array, bfloat16 = as_frames(frames)
        options = _options(unscaled, True, memory_budget, parking, bool(moments), _seed(sample, seed, moments))
        parts: list[Array] = []
        with _watched(progress, "encode clip") as watch:
            self._vae._model.encode_clip(array, bfloat16, parts.append, options, watch)
        return np.ascontiguousarray(np.concatenate(parts).swapaxes(0, 1))[None]

    def plan(
        self,
        height: int,
        width: int,
        memory_budget: int | str | None = None,
        *,
        encode: bool = False,
        output: Output = "uint8",
        unscaled: bool = False,
        parking: Parking = "auto",
    ) -> Plan:
        """Plans the decode or the encode of a clip of any length: see :meth:`Vae.plan`."""
        return self._vae._plan(height, width, memory_budget, encode, output, unscaled, parking, clip=True)


def _not_found(path: str) -> ModelNotFoundError:
    message = f"{path}: expected a .safetensors file or a folder, found nothing there"
    words = path.split("/")
    if len(words) == 2 and all(words):
        message += f"; a model of the Hugging Face Hub is called hf:{path}"
    return ModelNotFoundError(message, filename=path, errno=2, strerror="No such file or directory")


def _adapter(adapter: str | int | None) -> str | None:
    if isinstance(adapter, int) and not isinstance(adapter, bool) and adapter >= 0:
        return str(adapter)
    if adapter is None or isinstance(adapter, str):
        return adapter
    raise wrong("adapter", "part of a name, an index from 0, or None", repr(adapter))


def _word(what: str, word: str) -> str:
    if not isinstance(word, str):
        raise wrong(what, "a word", repr(word))
    return word


def _floats(output: str) -> bool:
    if output not in ("uint8", "float"):
        raise wrong("output", '"uint8" or "float"', repr(output))
    return output == "float"


def _side(what: str, pixels: int) -> int:
    try:
        pixels = pixels.__index__()
    except AttributeError:
        raise wrong(what, "a number of pixels", repr(pixels)) from None
    if not 0 < pixels < 1 << 32:
        raise wrong(what, "1 to 4294967295 pixels", str(pixels))
    return pixels


def _options(
    unscaled: bool,
    floats: bool,
    memory_budget: int | str | None,
    parking: str,
    moments: bool = False,
    seed: int | None = None,
) -> _native.Options:
    budget = _native.parse_bytes(memory_budget) if isinstance(memory_budget, str) else memory_budget
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or not 0 < budget < 1 << 64):
        raise wrong("memory_budget", 'bytes, such as 2 << 30 or "2GiB"', repr(memory_budget))
    return {
        "unscaled": bool(unscaled),
        "floats": floats,
        "memory_budget": budget,
        "parking": _word("parking", parking),
        "moments": moments,
        "seed": seed,
    }


def _seed(sample: bool, seed: int | None, moments: bool) -> int | None:
    """The seed to draw by; None draws nothing."""
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 1 << 64):
        raise wrong("seed", "a number of 0 to 2**64 - 1, or None", repr(seed))
    if not sample:
        if seed is not None:
            raise wrong("seed", "sample=True with it", "sample=False")
        return None
    if moments:
        raise wrong("moments", "sample=False with it", "sample=True")
    return secrets.randbits(64) if seed is None else seed


@contextmanager
def _watched(progress: ProgressArgument, name: str) -> Iterator[Callable[[int, int, int, int, str], object] | None]:
    """What the native half calls."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        from tqdm.auto import tqdm

        with tqdm(total=1.0, desc=name, bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]") as bar:
            yield lambda *told: bar.update(Progress(*told).fraction - bar.n)
    elif callable(progress):
        call = progress
        yield lambda *told: call(Progress(*told))
    else:
        raise wrong("progress", "a function, True or None", repr(progress))


