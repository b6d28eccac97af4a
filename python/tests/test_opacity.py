"""Tests of models with opacity, whose images have a fourth channel, and of latents with layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Floats, normal
from numpy.typing import NDArray
from PIL import Image

import wgvae
from wgvae import errors


@pytest.fixture(scope="module")
def pictures() -> NDArray[np.uint8]:
    """Two pictures with opacity, [2, 16, 24, 4]. Transparent pixels have colours, too."""
    return np.random.default_rng(3).integers(0, 256, (2, 16, 24, 4), dtype=np.uint8)


def floats(pictures: NDArray[np.uint8]) -> Floats:
    return (pictures.astype(np.float32) / np.float32(255) * np.float32(2) - np.float32(1)).transpose(0, 3, 1, 2)


def test_decodes_to_four_channels(layered_vae: wgvae.Vae) -> None:
    latents = normal(1, 2, 16, 2, 3)
    image, levels = layered_vae.decode(latents, output="float"), layered_vae.decode(latents)
    assert (image.shape, image.dtype, levels.shape, levels.dtype) == ((2, 4, 16, 24), np.float32, (2, 16, 24, 4), np.uint8)
    # Every channel is rounded by itself: colours are not multiplied with the opacity.
    wanted = np.clip(image.transpose(0, 2, 3, 1) / 2 + 0.5, 0, 1) * 255
    assert np.abs(levels - wanted).max() <= 0.5 + 1e-3
    assert levels[..., 3].min() < 100 < levels[..., 3].max()
    assert (layered_vae.config["in_channels"], layered_vae.config["out_channels"]) == (4, 4)


def test_layers_are_images(layered_vae: wgvae.Vae) -> None:
    latents = normal(2, 2, 16, 3, 2, 3)
    decoded = layered_vae.decode(latents)
    assert decoded.shape == (6, 16, 24, 4)
    for image in range(2):
        for layer in range(3):
            assert np.array_equal(decoded[3 * image + layer], layered_vae.decode(latents[image, :, layer])[0])
    assert np.array_equal(layered_vae.decode(latents[1:]), decoded[3:])


def test_layers_of_a_model_without_opacity(vae: wgvae.Vae) -> None:
    latents = normal(2, 1, 16, 2, 2, 3)
    assert np.array_equal(vae.decode(latents), vae.decode(latents[0].swapaxes(0, 1)))


def test_frames_are_no_layers(wan_vae: wgvae.Vae) -> None:
    for frames in (1, 2):
        with pytest.raises(errors.InputError, match=r"Vae\.clip\(\) decodes \[1, c, t, h, w\]"):
            wan_vae.decode(normal(2, 1, 16, frames, 2, 3))


def test_taehv_needs_a_family_and_takes_clips(taehv: Path) -> None:
    latents = normal(2, 1, 16, 3, 2, 3)
    with wgvae.Vae.from_pretrained(taehv) as vae, pytest.raises(errors.InputError, match="expected a family"):
        vae.clip().decode(latents)
    with wgvae.Vae.from_pretrained(taehv, family="taew2_1") as vae:
        image = vae.decode(latents[:, :, 0])
        frames = vae.clip().decode(latents)
        assert frames.shape == (9, 16, 24, 3)
        assert np.array_equal(frames[:1], image)
        again = vae.clip().encode(frames)
        assert again.shape == latents.shape
        # Four frames are one of latents, and the last is repeated.
        assert np.array_equal(vae.clip().encode(frames[:8]), again[:, :, :2])
        repeated = np.concatenate([frames[:6], frames[5:6], frames[5:6]])
        assert np.array_equal(vae.clip().encode(frames[:6]), vae.clip().encode(repeated))
        assert vae.clip().encode(frames[:1]).shape == (1, 16, 1, 2, 3)


def test_encodes_opacity(layered_vae: wgvae.Vae, pictures: NDArray[np.uint8]) -> None:
    expected = layered_vae.encode(pictures)
    opened = [Image.fromarray(picture) for picture in pictures]
    for given in (floats(pictures), opened, list(pictures)):
        assert np.array_equal(layered_vae.encode(given), expected)
    assert opened[0].mode == "RGBA" and np.array_equal(layered_vae.encode(opened[0]), expected[:1])
    # The colours of transparent pixels count.
    other = np.where(pictures[..., 3:] == 0, np.uint8(9), pictures)
    assert not np.array_equal(layered_vae.encode(other), expected)


def test_images_without_opacity_are_opaque(layered_vae: wgvae.Vae, pictures: NDArray[np.uint8]) -> None:
    opaque = pictures.copy()
    opaque[..., 3] = 255
    expected, colours = layered_vae.encode(opaque), pictures[..., :3]
    for given in (colours, floats(pictures)[:, :3], [Image.fromarray(one) for one in colours]):
        assert np.array_equal(layered_vae.encode(given), expected)
    grey = Image.fromarray(pictures[0, :, :, 0])
    assert np.array_equal(layered_vae.encode(grey), layered_vae.encode(grey.convert("RGBA")))


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (np.zeros((16, 24, 5), np.uint8), r"\[n, h, w, 4\]"),
        (np.zeros((1, 2, 16, 24), np.float32), r"\[n, 4, h, w\]"),
        (np.zeros((16, 24), np.uint8), r"\[n, h, w, 4\]"),
        (Image.new("P", (24, 16)), "mode RGBA, RGB or L.*mode P"),
        ([Image.new("RGBA", (24, 16)), Image.new("RGB", (24, 16))], "one size and type"),
    ],
)
def test_other_images(layered_vae: wgvae.Vae, images: Any, says: str) -> None:
    with pytest.raises(errors.InputError, match=says):
        layered_vae.encode(images)


@pytest.mark.extras
def test_as_diffusers(layered: Path, layered_vae: wgvae.Vae, pictures: NDArray[np.uint8]) -> None:
    torch, diffusers = pytest.importorskip("torch"), pytest.importorskip("diffusers")
    judge = diffusers.AutoencoderKLQwenImage.from_pretrained(layered)
    assert judge.config.input_channels == 4
    latents = normal(4, 1, 16, 2, 2, 3)
    with torch.no_grad():
        # Diffusers' pipeline decodes each layer by itself, too.
        layers = torch.from_numpy(latents[0]).movedim(1, 0)[:, :, None]
        image = judge.decode(layers).sample[:, :, 0].numpy()
        moments = judge.encode(torch.from_numpy(floats(pictures))[:, :, None]).latent_dist.parameters[:, :, 0].numpy()
    for found, wanted in (
        (layered_vae.decode(latents, unscaled=True, output="float"), image),
        (layered_vae.encode(pictures, moments=True), moments),
    ):
        assert found.shape == wanted.shape and np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
