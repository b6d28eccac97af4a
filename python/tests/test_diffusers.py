"""Real pipelines of diffusers, with toy weights: with wgvae's VAE they give what they give with their own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import normal, toy
from toy_unet import toy_unet

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
pytest.importorskip("transformers")
pytestmark = pytest.mark.extras

import wgvae  # noqa: E402
from wgvae.diffusers import AutoencoderKL  # noqa: E402

SIZE = 64
# Both are f32: they differ in the order of sums, and pictures by a level where that falls on the edge.
TOLERANCE = 2e-3


@pytest.fixture(scope="module")
def flux_vae(tmp_path_factory: pytest.TempPathFactory) -> Path:
    channels = {"block_out_channels": [32, 64, 128, 128]}
    return toy(tmp_path_factory.mktemp("flux"), "flux1.diffusers", "flux1", 128, 32, channels)


@pytest.fixture
def ours(sd: Path) -> Iterator[AutoencoderKL]:
    vae = AutoencoderKL.from_pretrained(sd, precision="f32")
    yield vae
    vae.vae.close()


def text(*shape: int) -> Any:
    return torch.from_numpy(normal(11, *shape))


def sd_pipeline(sd: Path, kind: Any = None) -> Any:
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    scheduler = diffusers.DDIMScheduler(clip_sample=False, steps_offset=1)
    parts = {"text_encoder": None, "tokenizer": None, "safety_checker": None, "feature_extractor": None}
    pipe = (kind or diffusers.StableDiffusionPipeline)(own, unet=toy_unet(), scheduler=scheduler, requires_safety_checker=False, **parts)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def run(pipe: Any, **arguments: Any) -> Any:
    arguments = {"num_inference_steps": 2, "output_type": "np", **arguments}
    images = pipe(generator=torch.Generator().manual_seed(5), **arguments).images
    # Of one colour they would agree whatever is wrong.
    assert not isinstance(images, np.ndarray) or images.std() > 0.02
    return images


SD = {"prompt_embeds": text(1, 7, 32), "negative_prompt_embeds": text(1, 7, 32), "height": SIZE, "width": SIZE}


def test_stable_diffusion(sd: Path, ours: AutoencoderKL) -> None:
    pipe = sd_pipeline(sd)
    expected = run(pipe, **SD)
    pipe.vae = ours
    assert np.abs(run(pipe, **SD) - expected).max() < TOLERANCE
    pipe.to("cpu")
    assert pipe.vae is ours and len(run(pipe, **{**SD, "output_type": "pil"})) == 1


def test_latents_and_then_our_decode(sd: Path, ours: AutoencoderKL) -> None:
    pipe = sd_pipeline(sd)
    expected = run(pipe, **SD)
    latents = run(pipe, **SD, **{"output_type": "latent"})
    pictures = ours.vae.decode(latents)
    assert np.abs(pictures / 255 - expected).max() < TOLERANCE + 0.5 / 255


def test_image_to_image(sd: Path, ours: AutoencoderKL) -> None:
    pipe = sd_pipeline(sd, diffusers.StableDiffusionImg2ImgPipeline)
    arguments = {key: SD[key] for key in ("prompt_embeds", "negative_prompt_embeds")}
    arguments["image"] = torch.from_numpy(np.tanh(normal(12, 1, 3, SIZE, SIZE)) / 2 + 0.5)
    arguments["num_inference_steps"] = 4
    expected = run(pipe, **arguments)
    pipe.vae = ours
    assert np.abs(run(pipe, **arguments) - expected).max() < TOLERANCE


def test_sdxl(sd: Path, ours: AutoencoderKL) -> None:
    model = toy_unet(addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=8 * 6 + 32)
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    names = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    scheduler = diffusers.EulerDiscreteScheduler()
    pipe = diffusers.StableDiffusionXLPipeline(
        own, unet=model, scheduler=scheduler, add_watermarker=False, **dict.fromkeys(names)
    )
    pipe.set_progress_bar_config(disable=True)
    pooled = {"pooled_prompt_embeds": text(1, 32), "negative_pooled_prompt_embeds": text(1, 32)}
    expected = run(pipe, **SD, **pooled)
    pipe.vae = ours
    assert np.abs(run(pipe, **SD, **pooled) - expected).max() < TOLERANCE


def test_flux(flux_vae: Path) -> None:
    torch.manual_seed(0)
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=64,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
    )
    own = diffusers.AutoencoderKL.from_pretrained(flux_vae)
    names = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    pipe = diffusers.FluxPipeline(scheduler, own, transformer=transformer, **dict.fromkeys(names))
    pipe.set_progress_bar_config(disable=True)
    arguments = {"prompt_embeds": text(1, 7, 32), "pooled_prompt_embeds": text(1, 32), "height": SIZE, "width": SIZE}
    expected = run(pipe, **arguments)
    with wgvae.Vae.from_pretrained(flux_vae, precision="f32") as vae:
        pipe.vae = AutoencoderKL(vae)
        assert np.abs(run(pipe, **arguments) - expected).max() < TOLERANCE


def test_is_shaped_like_diffusers_own(sd: Path, ours: AutoencoderKL) -> None:
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    z, x = text(2, 4, 4, 6), torch.tanh(text(1, 3, 32, 24))
    with torch.no_grad():
        expected, posterior = own.decode(z).sample, own.encode(x).latent_dist
    decoded, dist = ours.decode(z).sample, ours.encode(x).latent_dist
    assert torch.equal(decoded, ours.decode(z, return_dict=False)[0])
    assert decoded.dtype == ours.dtype and decoded.device == ours.device
    assert (decoded - expected).abs().max() < 1e-3 * expected.abs().max()
    assert (dist.mode() - posterior.mode()).abs().max() < 1e-3 * posterior.mode().abs().max()
    seeds = [torch.Generator().manual_seed(1) for _ in range(2)]
    assert torch.allclose(dist.sample(seeds[0]), posterior.sample(seeds[1]), atol=1e-3)
    assert ours.config.scaling_factor == pytest.approx(own.config.scaling_factor)
    assert ours.to("cpu") is ours and not list(ours.modules()) and not list(ours.parameters())


def test_tensors_of_torch(ours: AutoencoderKL) -> None:
    z = text(1, 4, 4, 6)
    expected = ours.vae.decode(z.numpy())
    assert np.array_equal(ours.vae.decode(z), expected)
    assert np.array_equal(ours.vae.decode(z.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2)), expected)
    assert np.array_equal(ours.vae.decode(z.bfloat16()), ours.vae.decode(z.bfloat16().float()))
    assert np.array_equal(ours.vae.decode(z.half()), ours.vae.decode(z.half().float()))
    for bad in (z.double(), z.int(), z.to_sparse(), z.to("meta")):
        with pytest.raises(wgvae.errors.InputError):
            ours.vae.decode(bad)


def test_says_what_it_does_not(ours: AutoencoderKL) -> None:
    with pytest.warns(UserWarning, match="memory_budget"):
        ours.enable_tiling()
    with pytest.warns(UserWarning, match="one by one"):
        ours.enable_slicing()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.disable_tiling()
        ours.disable_slicing()
    with pytest.raises(wgvae.errors.InputError, match="gradients"):
        ours.decode(text(1, 4, 4, 4).requires_grad_())
