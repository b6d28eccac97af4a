"""Writes shards, records and the manifest as complete files or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import uuid
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save

from wgvae._arrays import Array, wrong

LATENTS = Literal["parquet", "safetensors"]
IMAGES = Literal["webdataset", "parquet", "folder"]


def put(path: Path, content: bytes) -> None:
    """Writes ``content`` to a temporary file and renames it: readers see no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.parent / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def put_json(path: Path, content: Any) -> None:
    """Writes JSON with sorted keys, so that equal content gives equal files."""
    put(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def put_latents(folder: Path, name: str, kind: str, rows: list[tuple[str, Array]]) -> None:
    """Writes a shard of latents: ``rows`` are ids and latents ``[c, h, w]``."""
    if kind == "safetensors":
        put(folder / f"{name}.safetensors", save({row: np.ascontiguousarray(latents) for row, latents in rows}))
        return
    little = [latents.astype(latents.dtype.newbyteorder("<"), copy=False) for _, latents in rows]
    table = pa.table(
        {
            "id": pa.array([row for row, _ in rows], pa.string()),
            "latents": pa.array([latents.tobytes() for latents in little], pa.large_binary()),
            "shape": pa.array([list(latents.shape) for latents in little], pa.list_(pa.int32())),
            "dtype": pa.array([latents.dtype.str for latents in little], pa.string()),
        }
    )
    put(folder / f"{name}.parquet", _parquet(table))


def put_images(folder: Path, name: str, kind: str, rows: list[tuple[str, bytes]]) -> None:
    """Writes a shard of pictures: ``rows`` are ids and PNG files."""
    if kind == "folder":
        for row, image in rows:
            put(folder / safe(row), image)
    elif kind == "parquet":
        ids, images = pa.array([row for row, _ in rows], pa.string()), pa.array([image for _, image in rows], pa.large_binary())
        put(folder / f"{name}.parquet", _parquet(pa.table({"id": ids, "image": images})))
    else:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            for row, image in rows:
                entry = tarfile.TarInfo(safe(row).as_posix())
                entry.size = len(image)
                archive.addfile(entry, io.BytesIO(image))
        put(folder / f"{name}.tar", file.getvalue())


def safe(row: str) -> PurePosixPath:
    """Returns the path of a PNG below the output folder for the id ``row``.

    Raises
    ------
    InputError
        If the path would leave the folder: ids come from untrusted files.
    """
    path = PurePosixPath(row)
    if path.is_absolute() or ".." in path.parts or "\0" in row or not path.name:
        raise wrong("id", "a path below the folder", repr(row))
    return path.with_name(path.name + ".png")


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
