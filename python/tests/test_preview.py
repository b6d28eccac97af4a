"""Previews: the linear map of latents, and decodes of fewer latents."""

import numpy as np
import pytest

import wgvae

# ComfyUI's comfy/latent_formats.py, class SDXL.
FACTORS = np.array([[0.3651, 0.4232, 0.4341], [-0.2533, -0.0042, 0.1068], [0.1076, 0.1111, -0.0362], [-0.3165, -0.2492, -0.2188]])
BIAS = np.array([0.1084, -0.0175, -0.0011])


def test_a_preview_is_the_published_linear_map() -> None:
    latents = np.random.default_rng(0).standard_normal((2, 4, 6, 10)).astype(np.float32)
    expected = np.einsum("nchw,cd->nhwd", latents, FACTORS) + BIAS
    expected = np.clip((expected + 1) * 127.5, 0, 255)
    found = wgvae.preview(latents, "sdxl")
    assert found.dtype == np.uint8 and found.shape == (2, 6, 10, 3)
    assert np.abs(found - expected).max() < 0.51
    assert wgvae.preview(latents, "sdxl", max_side=5).shape == (2, 3, 5, 3)
    layers = np.stack([latents, latents[::-1]], 2)
    assert np.array_equal(wgvae.preview(layers, "sdxl")[[0, 2]], found)


def test_wrong_previews_are_named() -> None:
    latents = np.zeros((4, 2, 2), np.float32)
    with pytest.raises(wgvae.errors.InputError, match="family"):
        wgvae.preview(latents, "nothing")
    with pytest.raises(wgvae.errors.InputError, match="16 channels"):
        wgvae.preview(latents, "flux1")
    with pytest.raises(wgvae.errors.InputError, match="max_side"):
        wgvae.preview(latents, "sdxl", max_side=0)


def test_a_decode_of_few_pixels(vae: wgvae.Vae) -> None:
    channels = vae.config["latent_channels"]
    latents = np.random.default_rng(0).standard_normal((1, channels, 8, 12)).astype(np.float32)
    whole, small = vae.decode(latents), vae.decode(latents, max_side=vae.decode(latents).shape[2] // 2)
    assert small.shape == (1, whole.shape[1] // 2, whole.shape[2] // 2, 3)
    means = latents.reshape(1, channels, 4, 2, 6, 2).mean((3, 5))
    assert np.abs(vae.decode(means).astype(int) - small).max() <= 1
    with pytest.raises(wgvae.errors.InputError, match="for one latent"):
        vae.decode(latents, max_side=1)
