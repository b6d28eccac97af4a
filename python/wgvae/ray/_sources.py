"""The sources of pictures or latents.

The driver lists the shards of a source, and an actor reads the items of a shard.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.numpy import load_file

from wgvae._arrays import Array, wrong

COLUMNS = ("id", "latents", "shape", "dtype")
"""Columns of latents in .parquet files."""

PICTURES = frozenset((".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"))


@dataclass(frozen=True)
class Shard:
    """A piece of work that becomes one file called ``name``."""

    name: str
    kind: str
    """``files``, ``tar``, ``parquet`` or ``safetensors``."""
    root: str
    """Absolute path of the source's folder."""
    members: tuple[str, ...]
    """Paths of files below ``root``. For ``parquet`` one file."""
    group: int = 0
    """Index of the row group, for ``parquet``."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Shard:
        fields = json.loads(text)
        return cls(**{**fields, "members": tuple(fields["members"])})


def list_shards(source: str, shard_rows: int, latents: bool) -> list[Shard]:
    """Lists the shards of a folder or a file.

    A shard is ``shard_rows`` pictures, a .tar file, a row group of a .parquet file, or a
    .safetensors file.

    Raises
    ------
    InputError
        If there is no such path, no usable file, or files of several kinds.
    """
    # Workers run in another folder than the driver.
    path = Path(source).absolute()
    if not path.exists():
        raise wrong("source", "a folder or a file", f"{source}, where there is nothing")
    root = path if path.is_dir() else path.parent
    found = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    files = [one.relative_to(root).as_posix() for one in found if not any(part.startswith(".") for part in one.relative_to(root).parts)]
    by_ending = {ending: [one for one in files if one.lower().endswith(ending)] for ending in (".tar", ".parquet", ".safetensors")}
    pictures = [one for one in files if Path(one).suffix.lower() in PICTURES]
    kinds = {"tar": by_ending[".tar"], "parquet": by_ending[".parquet"]}
    kinds |= {"safetensors": by_ending[".safetensors"]} if latents else {"files": pictures}
    if latents:
        del kinds["tar"]
    there = {kind: members for kind, members in kinds.items() if members}
    expected = ".parquet or .safetensors" if latents else "pictures, .tar or .parquet"
    if len(there) != 1:
        raise wrong("source", f"files of one kind: {expected}", " and ".join(sorted(there)) or f"none in {source}")
    ((kind, members),) = there.items()
    if kind == "files":
        cuts = [tuple(members[start : start + shard_rows]) for start in range(0, len(members), shard_rows)]
        return [Shard(f"shard-{index:06}", kind, str(root), cut) for index, cut in enumerate(cuts)]
    if kind == "parquet":
        groups = [(one, group) for one in members for group in range(pq.ParquetFile(root / one).num_row_groups)]
        if not groups:
            raise wrong("source", "at least one row", f"none in {source}")
        return [Shard(f"shard-{index:06}", kind, str(root), (one,), group) for index, (one, group) in enumerate(groups)]
    return [Shard(f"shard-{index:06}", kind, str(root), (one,)) for index, one in enumerate(members)]


def check_tables(shards: list[Shard], columns: Sequence[str], id_column: str | None) -> None:
    """Checks the columns of .parquet files, and that no id of a file occurs twice.

    Raises
    ------
    InputError
        If a column is missing, or an id occurs several times.
    """
    seen: set[str] = set()
    for kind, path in dict.fromkeys((shard.kind, Path(shard.root) / shard.members[0]) for shard in shards):
        names: list[str] = []
        if kind == "parquet":
            table = pq.ParquetFile(path)
            found = table.schema_arrow.names
            if not set(columns) <= set(found):
                raise wrong("source", f"the columns {', '.join(columns)} in {path.name}", ", ".join(found))
            if id_column is not None:
                column = table.read(columns=[id_column])[id_column]
                names = [str(name) for name in column.to_pylist() if name is not None]
        elif kind == "safetensors":
            with safe_open(path, framework="numpy") as tensors:
                names = tensors.keys()
        for name in names:
            if name in seen:
                raise wrong("ids", "each once in the source", f"{name!r} several times")
            seen.add(name)


def pictures_of(shard: Shard, image_column: str, id_column: str | None) -> Iterator[tuple[str, bytes | Exception]]:
    """Yields the id of each picture, and its bytes or the exception of reading it."""
    if shard.kind == "files":
        for member in shard.members:
            try:
                yield member, (Path(shard.root) / member).read_bytes()
            except OSError as error:
                yield member, error
    elif shard.kind == "tar":
        yield from _of_tar(shard)
    else:
        columns = [image_column] if id_column is None else [image_column, id_column]
        table = pq.ParquetFile(Path(shard.root) / shard.members[0]).read_row_group(shard.group, columns=columns)
        for row, item in enumerate(table.to_pylist()):
            name = f"{shard.members[0]}#{shard.group}.{row}" if id_column is None else str(item[id_column])
            image = item[image_column]
            image = image.get("bytes") if isinstance(image, dict) else image
            yield name, image if isinstance(image, bytes) else ValueError(f"column {image_column} has no bytes")


def _of_tar(shard: Shard) -> Iterator[tuple[str, bytes | Exception]]:
    member = shard.members[0]
    try:
        with tarfile.open(Path(shard.root) / member) as archive:
            for entry in archive:
                if entry.isfile() and Path(entry.name).suffix.lower() in PICTURES:
                    file = archive.extractfile(entry)
                    yield f"{member}/{entry.name}", file.read() if file is not None else ValueError("no file")
    except (OSError, EOFError, tarfile.TarError) as error:
        # Earlier entries are good. The error tells users that later ones may be missing.
        yield f"{member}/...", error


def latents_of(shard: Shard) -> Iterator[tuple[str, Array | Exception]]:
    """Yields the id of each row, and its latents ``[c, h, w]`` or the exception of reading them."""
    path = Path(shard.root) / shard.members[0]
    if shard.kind == "safetensors":
        yield from sorted(load_file(path).items())
        return
    table = pq.ParquetFile(path).read_row_group(shard.group, columns=list(COLUMNS))
    for item in table.to_pylist():
        name = str(item["id"])
        try:
            if item["id"] is None:
                raise TypeError("a row without an id")
            yield name, np.frombuffer(item["latents"], np.dtype(item["dtype"])).reshape(item["shape"])
        except (TypeError, ValueError) as error:
            yield name, error
