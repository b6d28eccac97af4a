"""Finds the files of a VAE as diffusers does: in folders, on the Hugging Face Hub, by addresses."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError, HFValidationError, HfHubHTTPError
from safetensors import safe_open

from wgvae._arrays import wrong
from wgvae.errors import FileError, ModelNotFoundError

WEIGHTS = "diffusion_pytorch_model"

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_ADDRESS = re.compile(
    r"(?:https?://)?(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+)/(?:blob|resolve|raw)/([^/]+)/(.+)"
)


@dataclass(frozen=True)
class Hub:
    """Arguments for the Hugging Face Hub, by the names that ``huggingface_hub`` gives them."""

    revision: str | None = None
    cache_dir: str | os.PathLike[str] | None = None
    token: bool | str | None = None
    local_files_only: bool = False
    force_download: bool = False

    def fetch(self, name: str, file: str, subfolder: str | None = None) -> Path:
        """Returns the path of a file of the repository ``name``, and downloads it if necessary."""
        return Path(hf_hub_download(name, file, subfolder=subfolder, **asdict(self)))


@dataclass(frozen=True)
class Place:
    """Files to open: arguments of :meth:`wgvae.Vae.from_pretrained`."""

    path: str
    variant: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments by their names."""
        return {"path_or_hf_name": self.path, "variant": self.variant}


def find(
    path: str | os.PathLike[str], subfolder: str | None, variant: str | None, hub: Hub
) -> Place:
    """Returns the place of a VAE, and downloads its files if ``path`` is a name of the Hub.

    Raises
    ------
    InputError
        If ``variant`` is unknown, or ``path`` begins with ``hf:`` and arguments for the Hub are
        given, too.
    ModelNotFoundError
        If the repository has no VAE there.
    FileError
        If the Hub does not answer or denies access, or the cache lacks a file.
    """
    text = os.fspath(path)
    if variant not in (None, "fp16"):
        raise wrong("variant", '"fp16" or None', repr(variant))
    if text.startswith("hf:"):
        if subfolder is not None or hub != Hub():
            expected = "hf:owner/name/folder@revision alone, or owner/name with such arguments"
            raise wrong("path_or_hf_name", expected, f"{text} with them")
        return Place(text, variant)
    if not os.path.exists(text) and _NAME.fullmatch(text):
        return _downloaded(text, subfolder, variant, hub)
    return Place(text if subfolder is None else os.path.join(text, subfolder), variant)


def find_single(path: str | os.PathLike[str], hub: Hub) -> Place:
    """Returns the place of one file, and downloads it if ``path`` is an address of the Hub.

    Raises
    ------
    FileError
        If the Hub does not answer or denies access, or there is no such file.
    """
    address = _ADDRESS.fullmatch(os.fspath(path))
    if address is None:
        return Place(os.fspath(path), None)
    name, revision, file = address.groups()
    pinned = Hub(**{**asdict(hub), "revision": hub.revision or revision})
    try:
        return Place(str(pinned.fetch(name, file.partition("?")[0])), None)
    except (OSError, ValueError) as error:
        raise _refused(os.fspath(path), error) from error


def tensors(files: list[str]) -> Iterator[tuple[str, Any]]:
    """Reads the names and tensors of ``files``, one at a time."""
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                yield name, opened.get_tensor(name)


def tensor(files: list[str], name: str) -> Any:
    """Returns the tensor ``name`` of ``files``.

    Raises
    ------
    InputError
        If no file has it.
    """
    for file in files:
        with safe_open(file, framework="pt") as opened:
            if name in opened.keys():  # noqa: SIM118
                return opened.get_tensor(name)
    raise wrong("vae", f"a tensor {name}", f"none in {', '.join(files)}")


def _downloaded(name: str, subfolder: str | None, variant: str | None, hub: Hub) -> Place:
    mark = "" if variant is None else f".{variant}"
    try:
        folder = hub.fetch(name, "config.json", subfolder).parent
        try:
            hub.fetch(name, f"{WEIGHTS}{mark}.safetensors", subfolder)
        except EntryNotFoundError:
            index = hub.fetch(name, f"{WEIGHTS}.safetensors.index{mark}.json", subfolder)
            for shard in sorted(set(json.loads(index.read_text())["weight_map"].values())):
                hub.fetch(name, shard, subfolder)
        return Place(str(folder), variant)
    except (HfHubHTTPError, EntryNotFoundError, HFValidationError, OSError, ValueError) as error:
        raise _refused(f"{name}/{subfolder}" if subfolder else name, error, subfolder) from error


def _refused(name: str, error: Exception, subfolder: str | None = "") -> FileError:
    """Returns the error for a failed download."""
    reason = " ".join(str(error).split())
    missing = isinstance(error, EntryNotFoundError)
    hint = '; the VAE of a pipeline is in subfolder="vae"' if missing and subfolder is None else ""
    kind = ModelNotFoundError if missing else FileError
    return kind(f"{name}: {reason}{hint}", filename=name, errno=None, strerror=reason)
