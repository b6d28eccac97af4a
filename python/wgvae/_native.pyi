"""The compiled half of the package, for internal use: it changes without notice."""

import os
from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

VERSION: str

class Options(TypedDict):
    unscaled: bool
    floats: bool
    memory_budget: int | None
    least_memory: bool
    parking: str
    clip_latents: int | None
    moments: bool
    seed: int | None
    max_side: int | None
    tiling: str
    tile_size: int | None
    tile_overlap: int | None

class Place(TypedDict):
    device: str
    adapter: str | None
    threads: int | None
    precision: str

_Progress = Callable[[int, int, int, int, str], object] | None
_Array = np.ndarray[Any, Any]

def adapters() -> str: ...
def inspect(path: str | os.PathLike[str], family: str | None, border: str | None) -> str: ...
def parse_bytes(text: str) -> int: ...
def preview(latents: _Array, bfloat16: bool, family: str, max_side: int) -> _Array: ...

class Model:
    @staticmethod
    def open(
        path: str | os.PathLike[str], family: str | None, border: str | None, fp16: bool, preview_rate: bool, place: Place
    ) -> Model: ...
    @property
    def facts(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def memory(self) -> tuple[int, int]: ...
    def decode(self, latents: _Array, bfloat16: bool, options: Options, progress: _Progress) -> _Array: ...
    def encode(self, images: _Array, bfloat16: bool, options: Options, progress: _Progress) -> _Array: ...
    def decode_clip(
        self, latents: _Array, bfloat16: bool, take: Callable[[_Array], object], options: Options, progress: _Progress
    ) -> None: ...
    def encode_clip(
        self, frames: _Array, bfloat16: bool, take: Callable[[_Array], object], options: Options, progress: _Progress
    ) -> None: ...
    def plan(self, height: int, width: int, encode: bool, clip: bool, options: Options) -> tuple[str, str]: ...
