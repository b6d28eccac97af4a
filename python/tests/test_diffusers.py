"""Tests of real pipelines of diffusers with toy weights.

A pipeline must give the same pictures with the VAE of wgvae as with its own.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
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
# Both compute in f32 and differ in the order of sums. Where a sum lies on the edge between two
# levels, pictures differ by one level.
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
    # Pictures of one colour would agree in spite of errors.
    assert not isinstance(images, np.ndarray) or images.std() > 0.02
    return images


EMBEDS = {"prompt_embeds": text(1, 7, 32), "negative_prompt_embeds": text(1, 7, 32)}
SD = {**EMBEDS, "height": SIZE, "width": SIZE}
IMAGE = {"image": torch.from_numpy(np.tanh(normal(12, 1, 3, SIZE, SIZE)) / 2 + 0.5), "num_inference_steps": 4}
MASK = {"mask_image": torch.from_numpy((normal(13, 1, 1, SIZE, SIZE) > 0).astype(np.float32)), "strength": 0.8}


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
    arguments = {**EMBEDS, **IMAGE}
    expected = run(pipe, **arguments)
    pipe.vae = ours
    assert np.abs(run(pipe, **arguments) - expected).max() < TOLERANCE


def sdxl_pipeline(sd: Path, kind: Any = None) -> Any:
    model = toy_unet(addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=8 * 6 + 32)
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    names = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    scheduler = diffusers.EulerDiscreteScheduler()
    pipe = (kind or diffusers.StableDiffusionXLPipeline)(own, unet=model, scheduler=scheduler, add_watermarker=False, **dict.fromkeys(names))
    pipe.set_progress_bar_config(disable=True)
    return pipe


POOLED = {"pooled_prompt_embeds": text(1, 32), "negative_pooled_prompt_embeds": text(1, 32)}


def test_sdxl(sd: Path, ours: AutoencoderKL) -> None:
    pipe = sdxl_pipeline(sd)
    expected = run(pipe, **SD, **POOLED)
    pipe.vae = ours
    assert np.abs(run(pipe, **SD, **POOLED) - expected).max() < TOLERANCE


def flux_pipeline(folder: Path, kind: Any = None) -> Any:
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
    own = diffusers.AutoencoderKL.from_pretrained(folder)
    names = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    pipe = (kind or diffusers.FluxPipeline)(scheduler, own, transformer=transformer, **dict.fromkeys(names))
    pipe.set_progress_bar_config(disable=True)
    return pipe


FLUX = {"prompt_embeds": text(1, 7, 32), "pooled_prompt_embeds": text(1, 32), "height": SIZE, "width": SIZE}


def test_flux(flux_vae: Path) -> None:
    pipe = flux_pipeline(flux_vae)
    expected = run(pipe, **FLUX)
    with wgvae.Vae.from_pretrained(flux_vae, precision="f32") as vae:
        pipe.vae = AutoencoderKL(vae)
        assert np.abs(run(pipe, **FLUX) - expected).max() < TOLERANCE


def sd3_pipeline(folder: Path, kind: Any) -> Any:
    torch.manual_seed(0)
    transformer = diffusers.SD3Transformer2DModel(
        sample_size=SIZE // 8,
        patch_size=1,
        in_channels=16,
        out_channels=16,
        num_layers=1,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_projection_dim=32,
        joint_attention_dim=32,
        pooled_projection_dim=32,
    )
    own = diffusers.AutoencoderKL.from_pretrained(folder)
    names = ("text_encoder", "text_encoder_2", "text_encoder_3", "tokenizer", "tokenizer_2", "tokenizer_3")
    pipe = kind(transformer, diffusers.FlowMatchEulerDiscreteScheduler(), own, **dict.fromkeys(names))
    pipe.set_progress_bar_config(disable=True)
    return pipe


# Each pipeline encodes, and then decodes. Those of Stable Diffusion XL upcast the VAE, and cast it
# back.
IN_HALF: dict[str, Callable[[Path, Path], tuple[Path, Any, dict[str, Any]]]] = {
    "sd": lambda sd, _: (sd, sd_pipeline(sd, diffusers.StableDiffusionImg2ImgPipeline), {**EMBEDS, **IMAGE}),
    "sdxl": lambda sd, _: (sd, sdxl_pipeline(sd, diffusers.StableDiffusionXLImg2ImgPipeline), {**EMBEDS, **POOLED, **IMAGE}),
    "sdxl inpaint": lambda sd, _: (sd, sdxl_pipeline(sd, diffusers.StableDiffusionXLInpaintPipeline), {**SD, **POOLED, **IMAGE, **MASK}),
    "sd3 inpaint": lambda _, flux: (flux, sd3_pipeline(flux, diffusers.StableDiffusion3InpaintPipeline), {**SD, **POOLED, **IMAGE, **MASK}),
    "flux": lambda _, flux: (flux, flux_pipeline(flux, diffusers.FluxImg2ImgPipeline), {**FLUX, **IMAGE}),
}
# Largest difference of pictures. Torch's own pictures change by up to 0.031 and 0.0025 when its VAE
# computes in f32 instead of this precision.
NOISE = {"bfloat16": 0.05, "float16": 0.005}


@pytest.mark.parametrize("precision", NOISE)
@pytest.mark.parametrize("name", IN_HALF)
def test_pipelines_in_half_precision(name: str, precision: str, sd: Path, flux_vae: Path) -> None:
    folder, pipe, arguments = IN_HALF[name](sd, flux_vae)
    dtype = getattr(torch, precision)
    arguments = {key: value.to(dtype) if key.endswith("embeds") else value for key, value in arguments.items()}
    pipe.to(dtype)
    expected = run(pipe, **arguments)
    with wgvae.Vae.from_pretrained(folder, precision="f32") as vae:
        pipe.vae = AutoencoderKL(vae)
        pipe.to(dtype)
        assert pipe.vae.dtype == dtype
        assert np.abs(run(pipe, **arguments) - expected).max() < NOISE[precision]


def test_dtype_follows_as_that_of_a_module_does(sd: Path, ours: AutoencoderKL) -> None:
    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    assert ours.dtype == single
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("to", (half,), {}),
        ("to", ("cpu", brain), {}),
        ("to", (), {"device": "cpu", "dtype": half}),
        ("to", (text(1).bfloat16(),), {}),
        ("to", ("cpu",), {}),
        ("to", (None, half), {}),
        ("to", (), {"dtype": single, "non_blocking": True}),
        ("to", (), {"memory_format": torch.channels_last}),
        ("half", (), {}),
        ("bfloat16", (), {}),
        ("cpu", (), {}),
        ("float", (), {}),
        ("type", (half,), {}),
        ("eval", (), {}),
    ]
    for name, positional, keywords in steps:
        getattr(own, name)(*positional, **keywords)
        assert getattr(ours, name)(*positional, **keywords) is ours
        assert ours.dtype == own.dtype, (name, positional, keywords)
        assert next(iter(ours.post_quant_conv.parameters())).dtype == next(iter(own.post_quant_conv.parameters())).dtype
    for bad in ((torch.int8,), ("nowhere",), (1, 2, 3, 4, 5), (text(1).int(),)):
        with pytest.raises((TypeError, RuntimeError)) as theirs:
            own.to(*bad)
        with pytest.raises(theirs.type):
            ours.to(*bad)
    for unsupported in (torch.float64, torch.complex64):
        with pytest.raises(wgvae.errors.InputError, match="expected torch.float32, torch.float16 or torch.bfloat16, found torch."):
            ours.to(unsupported)
    with pytest.raises(wgvae.errors.InputError, match="float64"):
        ours.double()
    assert ours.dtype == half
    assert ours.to("meta", brain) is ours and ours.dtype == brain and ours.device == torch.device("meta")


def test_is_opened_in_a_dtype(sd: Path, ours: AutoencoderKL) -> None:
    for keywords, expected in (
        ({}, torch.float32),
        ({"torch_dtype": torch.float16}, torch.float16),
        ({"dtype": torch.bfloat16}, torch.bfloat16),
        ({"dtype": torch.bfloat16, "torch_dtype": torch.float16}, torch.bfloat16),
    ):
        assert AutoencoderKL(ours.vae, **keywords).dtype == expected
        opened = AutoencoderKL.from_pretrained(sd, **keywords)
        assert opened.dtype == expected
        opened.vae.close()
    for bad in (torch.float64, torch.int8, "float16", 16):
        with pytest.raises(wgvae.errors.InputError, match="dtype: expected torch.float32"):
            AutoencoderKL(ours.vae, dtype=bad)


@pytest.mark.parametrize("precision", NOISE)
def test_answers_in_its_dtype(precision: str, ours: AutoencoderKL) -> None:
    dtype = getattr(torch, precision)
    z, x = text(2, 4, 4, 6).to(dtype), torch.tanh(text(1, 3, 32, 24)).to(dtype)
    # Half precision is read exactly, so the same values in f32 give the same results.
    sample, moments = ours.decode(z.float()).sample, ours.encode(x.float()).latent_dist.parameters
    assert torch.equal(ours.decode(z).sample, sample) and torch.equal(ours.encode(x).latent_dist.parameters, moments)
    ours.to(dtype)
    for given in (z, z.float()):
        decoded = ours.decode(given, return_dict=False)[0]
        assert decoded.dtype == dtype and torch.equal(decoded, sample.to(dtype))
    for given in (x, x.float()):
        dist = ours.encode(given).latent_dist
        assert torch.equal(dist.parameters, moments.to(dtype))
        assert {each.dtype for each in (dist.mode(), dist.sample(), dist.mean, dist.std, dist.logvar)} == {dtype}


@pytest.mark.parametrize("changes", [{"scaling_factor": 0.18215, "shift_factor": None}, {"scaling_factor": 0.3611, "shift_factor": 0.1159}, {"shift_factor": 0.0}])
def test_config_has_the_numbers_of_the_file(changes: dict[str, Any], sd: Path, tmp_path: Path) -> None:
    settings = {**json.loads((sd / "config.json").read_text()), **changes}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    weights = "diffusion_pytorch_model.safetensors"
    (tmp_path / weights).write_bytes((sd / weights).read_bytes())
    own = diffusers.AutoencoderKL.from_pretrained(tmp_path)
    with wgvae.Vae.from_pretrained(tmp_path) as vae:
        for config in (vae.config, AutoencoderKL(vae).config):
            for name in ("scaling_factor", "shift_factor", "latents_mean", "force_upcast"):
                assert config[name] == own.config[name] and type(config[name]) is type(own.config[name])


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
    assert ours.config.scaling_factor == own.config.scaling_factor
    assert ours.to("cpu") is ours and not list(ours.children()) and ours.num_parameters() == 0


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


def test_tiles_of_diffusers(sd: Path, ours: AutoencoderKL) -> None:
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    own.enable_tiling()
    own.tile_sample_min_size, own.tile_latent_min_size = 64, 8
    z = text(2, 4, 12, 20)
    with torch.no_grad():
        expected = own.decode(z).sample.numpy()
    tiles: dict[str, Any] = {"output": "float", "unscaled": True, "tiling": "blend", "tile_size": 64}
    found = ours.vae.decode(z, **tiles)
    whole = ours.vae.decode(z, output="float", unscaled=True)
    assert np.abs(found - expected).max() < 1e-4 < np.abs(whole - expected).max()


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
