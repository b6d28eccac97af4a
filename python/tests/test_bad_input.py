"""Tests of wrong arguments.

Each must raise an exception that says what was expected, must not panic, and must leave the Vae
usable.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DEMO, Floats, normal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import wgvae
from wgvae import errors


@pytest.mark.parametrize(
    ("latents", "says"),
    [
        (np.zeros((1, 4, 8, 8), np.float32), "sd15"),
        (np.zeros((8, 8), np.float32), r"\[n, c, h, w\]"),
        (np.zeros((0, 16, 8, 8), np.float32), "empty"),
        (np.zeros((1, 16, 0, 8), np.float32), "empty"),
        (np.zeros((1, 16, 8, 8)), "found float64"),
        (np.zeros((1, 16, 8, 8), np.int64), "found int64"),
        (np.zeros((1, 16, 8, 8), np.uint16), "found uint16"),
        (np.full((1, 16, 2, 2), np.nan, np.float32), "finite"),
        (np.full((1, 16, 2, 2), np.inf, np.float32), "finite"),
        (np.broadcast_to(np.float32(0), (1, 16, 1 << 20, 1 << 20)), "1048576"),
        (np.broadcast_to(np.float32(0), (1, 1 << 40, 2, 2)), "channels"),
        (np.ma.masked_invalid(np.zeros((1, 16, 2, 2), np.float32)), "a masked array"),
        ([[1, 2], [3]], "list"),
        ("latents", "str"),
        (None, "NoneType"),
        (object(), "object"),
    ],
)
def test_latents(vae: wgvae.Vae, latents: Any, says: str) -> None:
    with pytest.raises(errors.InputError, match=says) as caught:
        vae.decode(latents)
    assert caught.value.what.startswith(("latents", "size")) and caught.value.expected and caught.value.found


def test_more_images_than_memory(vae: wgvae.Vae) -> None:
    with pytest.raises(errors.HostMemoryError) as caught:
        vae.decode(np.broadcast_to(np.float32(0), (1 << 45, 16, 2, 2)))
    assert caught.value.needed > 1 << 45


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (np.zeros((48, 40), np.uint8), r"\[n, h, w, 3\]"),
        (np.zeros((48, 40, 4), np.uint8), "3"),
        (np.zeros((4, 40, 3), np.uint8), "at least 8 pixels"),
        (np.zeros((1, 3, 4, 40), np.float32), "at least 8x8 pixels"),
        (np.zeros((1, 4, 40, 40), np.float32), r"\[n, 3, h, w\]"),
        (np.zeros((48, 40, 3), np.int32), "int32"),
        (np.full((1, 3, 40, 40), np.nan, np.float32), "finite"),
        (Image.new("RGBA", (40, 40)), "mode RGBA"),
        (Image.new("P", (40, 40)), "mode P"),
        ([np.zeros((1, 16, 16, 3), np.uint8)], r"^images\[0\]: expected a shape \[h, w, 3\] of uint8 or"),
        ([], "none"),
        ([Image.new("RGB", (40, 40)), Image.new("RGB", (48, 40))], "one size"),
        ([Image.new("RGB", (40, 40)), "picture.png"], "str"),
        ("picture.png", "str"),
    ],
)
def test_images(vae: wgvae.Vae, images: Any, says: str) -> None:
    with pytest.raises(errors.InputError, match=says):
        vae.encode(images)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"output": "rgb"}, "uint8"),
        ({"memory_budget": "much"}, "512MiB"),
        ({"memory_budget": 0}, "bytes"),
        ({"memory_budget": -1}, "bytes"),
        ({"memory_budget": 1.5}, "bytes"),
        ({"memory_budget": 1 << 70}, "bytes"),
        ({"parking": "maybe"}, "maybe"),
        ({"parking": 3}, "word"),
        ({"progress": 3}, "function"),
        ({"unscaled": "no"}, "^unscaled: expected True or False, found 'no'$"),
        ({"memory_budget": True}, "bytes"),
        ({"max_side": True}, "^max_side: expected 1 to 4294967295 pixels, found True$"),
        ({"max_side": 16.0}, "^max_side: .* pixels, found 16.0$"),
        ({"tile_size": np.bool_(True)}, "^tile_size: "),
        ({"tile_overlap": -1}, "^tile_overlap: expected 0 to"),
    ],
)
def test_options(vae: wgvae.Vae, latents: Floats, options: dict[str, Any], says: str) -> None:
    with pytest.raises(errors.InputError, match=says):
        vae.decode(latents, **options)


@pytest.mark.parametrize("options", [{"seed": 3}, {"sample": True, "seed": -1}, {"sample": True, "seed": 1.5}, {"sample": True, "moments": True}, {"sample": 42}, {"seed": True, "sample": True}, {"moments": 1}])
def test_samples(vae: wgvae.Vae, options: dict[str, Any]) -> None:
    with pytest.raises(errors.InputError):
        vae.encode(np.zeros((8, 8, 3), np.uint8), **options)


@pytest.mark.parametrize("size", [(0, 8), (-8, 8), (8, 12), (1 << 40, 8), (8, math.nan), ("8", 8), (8, True), (1 << 31, 1 << 31)])
def test_sizes(vae: wgvae.Vae, size: Any) -> None:
    with pytest.raises(errors.InputError):
        vae.plan(*size)


def test_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ModelNotFoundError, match="is called hf:owner/name/folder"):
        wgvae.Vae.from_pretrained("owner/name/folder")
    (tmp_path / "owner").mkdir()
    with pytest.raises(errors.ModelNotFoundError, match="found nothing there$"):
        wgvae.Vae.from_pretrained("owner/name")
    with pytest.raises(errors.ModelNotFoundError, match="hf:stabilityai/sd-vae-ft-mse") as caught:
        wgvae.Vae.from_pretrained("stabilityai/sd-vae-ft-mse")
    assert isinstance(caught.value, FileNotFoundError) and caught.value.filename == "stabilityai/sd-vae-ft-mse"
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(errors.FormatError, match="model.safetensors"):
        wgvae.Vae.from_pretrained(tmp_path / "model.safetensors")
    for keywords in ({"precision": "f8"}, {"device": "tpu"}, {"device": 0}, {"threads": 0}, {"threads": "two"}, {"threads": 5000}, {"threads": True}, {"preview_rate": "no"}, {"least_memory": 1}, {"adapter": -1}, {"adapter": 1.5}, {"variant": "bf16"}, {"family": "none"}, {"family": 3}):
        with pytest.raises(errors.InputError, match=f"^{next(iter(keywords))}"):
            wgvae.Vae.from_pretrained(DEMO, **keywords)
    with pytest.raises(errors.InputError, match="^path_or_hf_name: expected a path, found an empty text$"):
        wgvae.Vae.from_pretrained("")
    for path in (3, None, b"model", "a\0b"):
        with pytest.raises((errors.Error, ValueError)):
            wgvae.Vae.from_pretrained(path)  # type: ignore[arg-type]
    with pytest.raises(errors.NoAdapterError, match="there are"):
        wgvae.Vae.from_pretrained(DEMO, adapter="no such GPU")


def test_a_model_whose_scale_nobody_knows(sd: Path, tmp_path: Path) -> None:
    """Latents in the VAE's scale are decoded. Those in the diffusion model's raise an error."""
    (tmp_path / "vae.safetensors").write_bytes((sd / "diffusion_pytorch_model.safetensors").read_bytes())
    latents = normal(8, 1, 4, 2, 2)
    with wgvae.Vae.from_pretrained(tmp_path / "vae.safetensors") as vae, wgvae.Vae.from_pretrained(sd) as known:
        with pytest.raises(errors.InputError, match="family"):
            vae.decode(latents)
        assert np.array_equal(vae.decode(latents, unscaled=True), known.decode(latents, unscaled=True))
        image = vae.decode(latents, unscaled=True)
        with pytest.raises(errors.InputError, match="family"):
            vae.encode(image)
        assert np.array_equal(vae.encode(image, moments=True), known.encode(image, moments=True))


ANYTHING = st.one_of(
    hnp.arrays(dtype=st.sampled_from([np.float32, np.float16, np.uint8, np.float64]), shape=hnp.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=4)),
    hnp.arrays(dtype=np.float32, shape=st.tuples(st.integers(1, 2), st.just(16), st.integers(1, 3), st.integers(1, 3))),
    hnp.arrays(dtype=np.uint8, shape=st.tuples(st.sampled_from([8, 16]), st.sampled_from([8, 12, 16]), st.sampled_from([3, 4]))),
    st.none(),
    st.text(),
    st.integers(),
    st.lists(st.floats()),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(value=ANYTHING, output=st.sampled_from(["uint8", "float", "other"]), budget=st.one_of(st.none(), st.integers(-1, 1 << 34), st.text(max_size=6)))
def test_anything(vae: wgvae.Vae, value: Any, output: Any, budget: Any) -> None:
    for call in (vae.decode, vae.encode):
        keywords = {"output": output} if call == vae.decode else {}
        try:
            result = call(value, memory_budget=budget, **keywords)
        except wgvae.Error as error:
            assert not isinstance(error, errors.InternalError), error
            assert str(error)
        else:
            assert isinstance(result, np.ndarray) and result.ndim == 4


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(value=ANYTHING, budget=st.one_of(st.none(), st.integers(-1, 1 << 34)))
def test_any_clip(wan_vae: wgvae.Vae, value: Any, budget: Any) -> None:
    clip = wan_vae.clip()
    for call in (clip.decode, clip.encode):
        try:
            result = call(value, memory_budget=budget)
        except wgvae.Error as error:
            assert not isinstance(error, errors.InternalError), error
        else:
            assert isinstance(result, np.ndarray) and result.ndim in (4, 5)


def test_clips(wan_vae: wgvae.Vae) -> None:
    clip = wan_vae.clip()
    for latents, says in (
        (np.zeros((2, 16, 1, 2, 2), np.float32), r"\[1, c, t, h, w\]"),
        (np.zeros((1, 16, 0, 2, 2), np.float32), "empty"),
        (np.zeros((1, 4, 2, 2, 2), np.float32), "channels"),
        (np.full((1, 16, 2, 2, 2), np.nan, np.float32), "finite"),
    ):
        with pytest.raises(errors.InputError, match=says):
            clip.decode(latents)
    for frames, says in ((np.zeros((4, 16, 16, 3), np.uint8), "such as 5"), (np.zeros((5, 4, 16, 3), np.uint8), "at least 8 pixels")):
        with pytest.raises(errors.InputError, match=says):
            clip.encode(frames)


def test_a_callback_of_a_clip_is_a_function(wan_vae: wgvae.Vae) -> None:
    with pytest.raises(errors.InputError, match="^on_frames: expected a function or None, found 3$"):
        wan_vae.clip().decode(np.zeros((1, 16, 2, 2, 2), np.float32), 3)  # type: ignore[call-overload]


def test_a_callback_of_a_clip_may_raise(wan_vae: wgvae.Vae) -> None:
    latents = np.zeros((1, 16, 2, 2, 2), np.float32)
    expected = wan_vae.clip().decode(latents)

    def stop(frames: object) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        wan_vae.clip().decode(latents, stop)
    again = wan_vae.clip().decode(latents)
    assert np.array_equal(again, expected)
