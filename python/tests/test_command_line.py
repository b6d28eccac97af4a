"""Tests that results of Python equal those of the command line to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from conftest import DEMO, Floats, normal
from numpy.typing import NDArray
from PIL import Image

import wgvae
from wgvae._arrays import Array

Cli = Callable[..., None]


@pytest.mark.parametrize("flags", [[], ["--unscaled"], ["--memory-budget", "12MiB"]])
def test_floats(cli: Cli, vae: wgvae.Vae, latents: Floats, tmp_path: Path, flags: list[str]) -> None:
    np.save(tmp_path / "latents.npy", latents)
    cli("decode", "--model", DEMO, "--latents", tmp_path / "latents.npy", "-o", tmp_path / "image.npy", "--device", vae.device, *flags)
    budget = "12MiB" if "--memory-budget" in flags else None
    decoded = vae.decode(latents, output="float", unscaled="--unscaled" in flags, memory_budget=budget)
    assert decoded.dtype == np.float32
    assert np.array_equal(decoded, np.load(tmp_path / "image.npy"))


def test_pictures(cli: Cli, vae: wgvae.Vae, latents: Floats, tmp_path: Path) -> None:
    np.save(tmp_path / "latents.npy", latents)
    cli("decode", "--model", DEMO, "--latents", tmp_path / "latents.npy", "-o", tmp_path / "image.png", "--device", vae.device)
    decoded = vae.decode(latents)
    assert decoded.shape == (2, 48, 40, 3) and decoded.dtype == np.uint8
    for index, picture in enumerate(decoded):
        assert np.array_equal(picture, np.asarray(Image.open(tmp_path / f"image-{index + 1}.png").convert("RGB")))


def test_half_precision(cli: Cli, latents: Floats, tmp_path: Path) -> None:
    np.save(tmp_path / "latents.npy", latents.astype(np.float16))
    cli("decode", "--model", DEMO, "--latents", tmp_path / "latents.npy", "-o", tmp_path / "image.npy", "--precision", "f16")
    with wgvae.Vae.from_pretrained(DEMO, precision="f16") as vae:
        decoded = vae.decode(latents.astype(np.float16), output="float")
    assert np.array_equal(decoded, np.load(tmp_path / "image.npy"))


@pytest.mark.parametrize("flags", [[], ["--unscaled"], ["--moments"], ["--sample", "--seed", "7"], ["--memory-budget", "12MiB"]])
def test_encode(cli: Cli, vae: wgvae.Vae, pictures: NDArray[np.uint8], tmp_path: Path, flags: list[str]) -> None:
    paths = [tmp_path / f"{index}.png" for index in range(len(pictures))]
    for path, picture in zip(paths, pictures, strict=True):
        Image.fromarray(picture).save(path)
    cli("encode", "--model", DEMO, "--image", *paths, "-o", tmp_path / "latents.npy", "--device", vae.device, *flags)
    expected = np.load(tmp_path / "latents.npy")
    sample, seed = ("--sample" in flags), (7 if "--sample" in flags else None)
    moments, unscaled = "--moments" in flags, "--unscaled" in flags
    budget = "12MiB" if "--memory-budget" in flags else None
    encoded = vae.encode(pictures, sample=sample, seed=seed, moments=moments, unscaled=unscaled, memory_budget=budget)
    assert np.array_equal(encoded, expected)
    opened = [Image.open(path) for path in paths]
    encoded = vae.encode(opened, sample=sample, seed=seed, moments=moments, unscaled=unscaled, memory_budget=budget)
    assert np.array_equal(encoded, expected)


def test_encode_floats(cli: Cli, vae: wgvae.Vae, tmp_path: Path) -> None:
    images = np.tanh(normal(4, 1, 3, 32, 24))
    np.save(tmp_path / "images.npy", images)
    cli("encode", "--model", DEMO, "--image", tmp_path / "images.npy", "-o", tmp_path / "latents.npy", "--device", vae.device)
    assert np.array_equal(vae.encode(images), np.load(tmp_path / "latents.npy"))


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_clips(cli: Cli, wan: Path, tmp_path: Path, device: Literal["gpu", "cpu"]) -> None:
    latents = normal(5, 1, 16, 3, 3, 2)
    np.save(tmp_path / "latents.npy", latents)
    cli("decode", "--model", wan, "--latents", tmp_path / "latents.npy", "-o", tmp_path / "clip.npy", "--device", device)
    cli("encode", "--model", wan, "--image", tmp_path / "clip.npy", "-o", tmp_path / "again.npy", "--device", device)
    frames = np.load(tmp_path / "clip.npy")
    with wgvae.Vae.from_pretrained(wan, device=device) as vae:
        clip = vae.clip()
        decoded = clip.decode(latents, output="float")
        assert decoded.shape == (1, 3, 9, 24, 16)
        assert np.array_equal(decoded, frames)
        with pytest.raises(wgvae.errors.BudgetError) as refused:
            clip.decode(latents, output="float", memory_budget=1)
        within = clip.decode(latents, output="float", memory_budget=refused.value.smallest)
        assert np.array_equal(within, frames)
        parts: list[Floats] = []
        assert clip.decode(latents, parts.append, output="float") is None
        assert [len(part) for part in parts] == [1, 4, 4]
        assert np.array_equal(np.concatenate(parts).swapaxes(0, 1)[None], frames)
        assert np.array_equal(clip.encode(frames), np.load(tmp_path / "again.npy"))
        levels = clip.decode(latents)
        assert levels.shape == (9, 24, 16, 3)
        expected = np.clip(frames[0].transpose(1, 2, 3, 0) / 2 + 0.5, 0, 1) * 255
        assert np.abs(levels - expected).max() <= 0.51


def test_sizes_that_fill_no_latent(cli: Cli, vae: wgvae.Vae, pictures: NDArray[np.uint8], tmp_path: Path) -> None:
    """Pictures are scaled down, and floats are encoded as they are."""
    picture, images = pictures[0, :45, :38], np.tanh(normal(4, 1, 3, 45, 38))
    Image.fromarray(picture).save(tmp_path / "picture.png")
    np.save(tmp_path / "images.npy", images)
    given: list[tuple[str, list[Any], str]] = [
        ("picture.png", [picture, Image.open(tmp_path / "picture.png")], "images: scaled to 32x40, as 38x45 is no multiple of 8 pixels"),
        ("images.npy", [images], "images: 38x45 is no multiple of 8 pixels: the network rounds edges"),
    ]
    for name, arrays, says in given:
        cli("encode", "--model", DEMO, "--image", tmp_path / name, "-o", tmp_path / "latents.npy", "--device", vae.device)
        for array in arrays:
            with pytest.warns(UserWarning, match=says):
                encoded = vae.encode(array)
            assert np.array_equal(encoded, np.load(tmp_path / "latents.npy"))


def test_frames_that_fill_no_latent(cli: Cli, wan: Path, wan_vae: wgvae.Vae, tmp_path: Path) -> None:
    """Frames of levels are cropped to their middle, and floats are encoded as they are."""
    frames = np.random.default_rng(6).integers(0, 256, (5, 27, 21, 3), dtype=np.uint8)
    for index, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"frame-{index}.png")
    floats = np.tanh(normal(7, 1, 3, 5, 27, 21))
    np.save(tmp_path / "clip.npy", floats)
    given: list[tuple[str, Array, str]] = [
        ("frame-%d.png", frames, "frames: encoding the middle 16x24, as 21x27 is no multiple of 8 pixels"),
        ("clip.npy", floats, "frames: 21x27 is no multiple of 8 pixels: the network rounds edges"),
    ]
    for name, array, says in given:
        cli("encode", "--model", wan, "--image", tmp_path / name, "-o", tmp_path / "latents.npy", "--device", "gpu")
        with pytest.warns(UserWarning, match=says):
            encoded = wan_vae.clip().encode(array)
        assert np.array_equal(encoded, np.load(tmp_path / "latents.npy"))
