"""Tests of ``wgvae.diffusers.swap`` and ``preview_callback`` in small pipelines of diffusers."""

from __future__ import annotations

import json
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import normal
from test_diffusers_classes import CASES, KL, saved
from toy_unet import toy_unet

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
pytest.importorskip("transformers")
pytestmark = pytest.mark.extras

import wgvae  # noqa: E402
from wgvae.diffusers import AutoencoderKL, preview_callback, swap  # noqa: E402
from wgvae.errors import InputError  # noqa: E402

# Largest difference of pictures of 0 to 1.
NOISE = {"float32": 1e-4, "bfloat16": 0.03, "float16": 0.004}


def text(*shape: int) -> Any:
    return torch.from_numpy(normal(11, *shape))


def quiet(pipe: Any) -> Any:
    pipe.set_progress_bar_config(disable=True)
    return pipe


def sd_pipeline(vae: Any) -> Any:
    names = ("text_encoder", "tokenizer", "safety_checker", "feature_extractor")
    scheduler = diffusers.DDIMScheduler(clip_sample=False, steps_offset=1)
    return quiet(
        diffusers.StableDiffusionPipeline(
            vae,
            unet=toy_unet(),
            scheduler=scheduler,
            requires_safety_checker=False,
            **dict.fromkeys(names),
        )
    )


SD = {
    "prompt_embeds": text(1, 7, 32),
    "negative_prompt_embeds": text(1, 7, 32),
    "height": 16,
    "width": 24,
    "output_type": "np",
}


def flux_pipeline(vae: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "patch_size": 1,
        "in_channels": 64,
        "num_layers": 1,
        "num_single_layers": 1,
        "attention_head_dim": 16,
        "num_attention_heads": 2,
    }
    transformer = diffusers.FluxTransformer2DModel(
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8), **sizes
    )
    names = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    return quiet(
        diffusers.FluxPipeline(
            diffusers.FlowMatchEulerDiscreteScheduler(),
            vae,
            transformer=transformer,
            **dict.fromkeys(names),
        )
    )


FLUX = {
    "prompt_embeds": text(1, 7, 32),
    "pooled_prompt_embeds": text(1, 32),
    "height": 16,
    "width": 24,
    "output_type": "np",
}


def flux2_pipeline(vae: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "patch_size": 1,
        "in_channels": 128,
        "num_layers": 1,
        "num_single_layers": 1,
        "attention_head_dim": 16,
        "num_attention_heads": 2,
    }
    transformer = diffusers.Flux2Transformer2DModel(
        joint_attention_dim=32, timestep_guidance_channels=32, axes_dims_rope=(4, 4, 4, 4), **sizes
    )
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    return quiet(
        diffusers.Flux2Pipeline(
            scheduler, vae, text_encoder=None, tokenizer=None, transformer=transformer
        )
    )


FLUX2 = {"prompt_embeds": text(1, 7, 32), "height": 16, "width": 24, "output_type": "np"}


def qwen_pipeline(vae: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "patch_size": 2,
        "in_channels": 64,
        "out_channels": 16,
        "num_layers": 1,
        "attention_head_dim": 16,
        "num_attention_heads": 2,
    }
    transformer = diffusers.QwenImageTransformer2DModel(
        joint_attention_dim=32, axes_dims_rope=(4, 4, 8), **sizes
    )
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    return quiet(
        diffusers.QwenImagePipeline(
            scheduler, vae, text_encoder=None, tokenizer=None, transformer=transformer
        )
    )


QWEN = {
    "prompt_embeds": text(1, 7, 32),
    "prompt_embeds_mask": torch.ones(1, 7, dtype=torch.int64),
    "height": 32,
    "width": 48,
    "output_type": "np",
}


def wan_pipeline(vae: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "in_channels": 16,
        "out_channels": 16,
        "num_layers": 1,
        "attention_head_dim": 12,
        "num_attention_heads": 2,
        "ffn_dim": 32,
        "freq_dim": 32,
    }
    transformer = diffusers.WanTransformer3DModel(
        patch_size=(1, 2, 2), text_dim=32, cross_attn_norm=True, rope_max_seq_len=32, **sizes
    )
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    return quiet(diffusers.WanPipeline(None, None, vae, scheduler, transformer=transformer))


WAN = {
    "prompt_embeds": text(1, 7, 32),
    "negative_prompt_embeds": text(1, 7, 32),
    "height": 32,
    "width": 48,
    "num_frames": 5,
    "output_type": "np",
}

def ltx2_pipeline(vae: Any) -> Any:
    """The pipeline that doubles the sides of a clip: it encodes and decodes."""
    torch.manual_seed(0)
    upsampler = diffusers.pipelines.ltx2.latent_upsampler.LTX2LatentUpsamplerModel(
        in_channels=8, mid_channels=32, num_blocks_per_stage=1, use_rational_resampler=False
    )
    return quiet(diffusers.LTX2LatentUpsamplePipeline(vae, upsampler.eval()))


def hunyuan_video_pipeline(vae: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "in_channels": 17,
        "out_channels": 8,
        "num_layers": 1,
        "num_refiner_layers": 1,
        "attention_head_dim": 12,
        "num_attention_heads": 2,
    }
    transformer = diffusers.HunyuanVideo15Transformer3DModel(
        text_embed_dim=32,
        text_embed_2_dim=32,
        image_embed_dim=32,
        rope_axes_dim=(4, 4, 4),
        **sizes,
    )
    names = ("text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2")
    return quiet(
        diffusers.HunyuanVideo15Pipeline(
            vae=vae,
            transformer=transformer.eval(),
            scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
            guider=diffusers.ClassifierFreeGuidance(guidance_scale=1.0),
            **dict.fromkeys(names),
        )
    )


HUNYUAN_VIDEO = {
    "prompt_embeds": text(1, 7, 32),
    "prompt_embeds_mask": torch.ones(1, 7, dtype=torch.int64),
    "prompt_embeds_2": text(1, 5, 32),
    "prompt_embeds_mask_2": torch.ones(1, 5, dtype=torch.int64),
    "height": 16,
    "width": 24,
    "num_frames": 9,
    "output_type": "np",
}


def sana_pipeline(vae: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "in_channels": 8,
        "out_channels": 8,
        "num_layers": 1,
        "num_attention_heads": 2,
        "attention_head_dim": 8,
        "num_cross_attention_heads": 2,
        "cross_attention_head_dim": 8,
        "cross_attention_dim": 16,
    }
    transformer = diffusers.SanaTransformer2DModel(
        caption_channels=32, sample_size=8, patch_size=1, **sizes
    )
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
    return quiet(diffusers.SanaPipeline(None, None, vae, transformer, scheduler))


SANA = {
    "prompt": None,
    "prompt_embeds": text(1, 7, 32),
    "prompt_attention_mask": torch.ones(1, 7, dtype=torch.int64),
    "negative_prompt": None,
    "guidance_scale": 1.0,
    "use_resolution_binning": False,
    "height": 32,
    "width": 64,
    "output_type": "np",
}


PIPELINES: dict[str, tuple[str, Callable[[Any], Any], dict[str, Any]]] = {
    "sd": ("kl", sd_pipeline, SD),
    "sd, tiny": ("tiny", sd_pipeline, {**SD, "height": 32, "width": 48}),
    "flux": ("kl flux1", flux_pipeline, FLUX),
    "flux2": ("flux2", flux2_pipeline, FLUX2),
    "qwen image": ("qwen image", qwen_pipeline, QWEN),
    "wan": ("wan 2.1", wan_pipeline, WAN),
}


def run(pipe: Any, arguments: dict[str, Any], **more: Any) -> Any:
    output = pipe(
        generator=torch.Generator().manual_seed(5), num_inference_steps=1, **arguments, **more
    )[0]
    assert output.std() > 1e-3
    return output


@pytest.mark.parametrize(
    ("name", "precision"),
    [(name, "float32") for name in PIPELINES]
    + [("flux2", "bfloat16"), ("qwen image", "float16"), ("wan", "bfloat16")],
)
def test_swapped_pipelines_give_the_same_pictures(
    name: str, precision: str, tmp_path: Path
) -> None:
    case, build, arguments = PIPELINES[name]
    own = saved(CASES[case], tmp_path)
    pipe, dtype = build(own), getattr(torch, precision)
    arguments = {
        key: value.to(dtype) if key.endswith("embeds") else value
        for key, value in arguments.items()
    }
    pipe.to(dtype)
    expected = run(pipe, arguments)
    said = swap(pipe, device="cpu", precision="f32")
    assert f"vae: {type(own).__name__} now runs on wgvae" in said and "temporary folder" in said
    assert pipe.vae.dtype == dtype and type(pipe.vae) is getattr(
        wgvae.diffusers, type(own).__name__
    )
    assert np.abs(run(pipe, arguments) - expected).max() < NOISE[precision]
    pictures: list[Any] = []
    run(
        pipe,
        arguments,
        callback_on_step_end=preview_callback(
            pipe, show=pictures.append, family="sd15" if "tiny" in name else None
        ),
    )
    # A pixel of each latent, and a picture of each frame of them.
    factor = arguments["height"] // pictures[0].shape[1]
    assert (
        factor == pipe.vae_scale_factor
        if hasattr(pipe, "vae_scale_factor")
        else pipe.vae_scale_factor_spatial
    )
    assert len(pictures) == 1 and pictures[0].shape == (
        2 if name == "wan" else 1,
        arguments["height"] // factor,
        arguments["width"] // factor,
        3,
    )


def test_borders_are_those_of_the_convolutions(tmp_path: Path) -> None:
    own = saved(CASES["kl"], tmp_path)
    for part in own.modules():
        if isinstance(part, torch.nn.Conv2d) and any(part.padding):
            part.padding_mode = "reflect"
    pipe = sd_pipeline(own)
    expected = run(pipe, SD)
    swap(pipe, device="cpu", precision="f32")
    assert pipe.vae.vae.config["padding_mode"] == "reflect"
    assert np.abs(run(pipe, SD) - expected).max() < NOISE["float32"]
    assert np.array_equal(run(sd_pipeline(pipe.vae.to_torch()), SD), expected)
    pipe.vae.save_pretrained(tmp_path / "again")
    again = AutoencoderKL.from_pretrained(tmp_path / "again", device="cpu", precision="f32")
    assert np.abs(run(sd_pipeline(again), SD) - expected).max() < NOISE["float32"]
    # diffusers ignores the border in the config, so its pictures are those of zeros.
    zeros = sd_pipeline(diffusers.AutoencoderKL.from_pretrained(tmp_path / "again"))
    expected = run(zeros, SD)
    swap(zeros, device="cpu", precision="f32")
    assert zeros.vae.vae.config["padding_mode"] == "zeros"
    assert np.abs(run(zeros, SD) - expected).max() < NOISE["float32"]
    own.decoder.conv_in.padding_mode = "circular"
    with pytest.raises(InputError, match="model: expected convolutions of one padding_mode, found circular, reflect"):
        swap(sd_pipeline(own), device="cpu", precision="f32")


def test_a_changed_module_is_refused(tmp_path: Path) -> None:
    saved(CASES["kl"], tmp_path)
    own = diffusers.AutoencoderKL.from_pretrained(tmp_path)
    own.decoder.conv_act = torch.nn.ReLU()
    with pytest.raises(InputError, match=r"expected SiLU in decoder\.conv_act, .*found ReLU"):
        swap(sd_pipeline(own), device="cpu")


def test_a_pipeline_of_ltx2(tmp_path: Path) -> None:
    pipe = ltx2_pipeline(saved(CASES["ltx-2"], tmp_path))
    sizes = {"height": 16, "width": 24, "output_type": "np"}
    frames = list(np.tanh(normal(12, 9, 16, 24, 3)) / 2 + 0.5)
    latents = text(1, 8, 2, 2, 3)

    def outputs() -> list[Any]:
        return [
            pipe(**given, **sizes, generator=torch.Generator().manual_seed(5))[0]
            for given in (
                {"video": [frames]},
                {"latents": latents, "latents_normalized": True, "adain_factor": 0.5},
            )
        ]

    expected = outputs()
    assert expected[0].shape == (1, 9, 32, 48, 3) and expected[0].std() > 1e-3
    assert "AutoencoderKLLTX2Video now runs on wgvae" in swap(pipe, device="cpu")
    for found, wanted in zip(outputs(), expected, strict=True):
        assert np.abs(found - wanted).max() < NOISE["float32"]


def test_a_pipeline_of_sana(tmp_path: Path) -> None:
    pipe = sana_pipeline(saved(CASES["sana"], tmp_path))
    expected = run(pipe, SANA)
    assert "AutoencoderDC now runs on wgvae" in swap(pipe, device="cpu")
    assert np.abs(run(pipe, SANA) - expected).max() < NOISE["float32"]


def test_a_pipeline_of_hunyuan_video(tmp_path: Path) -> None:
    pipe = hunyuan_video_pipeline(saved(CASES["hunyuan video 1.5"], tmp_path))
    expected = run(pipe, HUNYUAN_VIDEO)
    assert expected.shape == (1, 9, 16, 24, 3)
    assert "AutoencoderKLHunyuanVideo15 now runs on wgvae" in swap(pipe, device="cpu")
    assert np.abs(run(pipe, HUNYUAN_VIDEO) - expected).max() < NOISE["float32"]


def test_the_folder_of_a_pipeline_is_used_if_it_has_the_weights(tmp_path: Path) -> None:
    saved(CASES["kl"], tmp_path / "kl")
    pipe = sd_pipeline(
        diffusers.AutoencoderKL.from_pretrained(tmp_path / "kl", torch_dtype=torch.float16)
    )
    assert f"with the weights of {tmp_path / 'kl'}" in swap(
        pipe, memory_budget="64MiB", device="cpu"
    )
    assert pipe.vae.memory_budget == "64MiB" and pipe.vae.dtype == torch.float16
    changed = diffusers.AutoencoderKL.from_pretrained(tmp_path / "kl")
    changed.decoder.conv_out.bias.data += 0.5
    pipe = sd_pipeline(changed)
    pipe.vae = torch.compile(pipe.vae)
    with torch.no_grad():
        expected = changed.decode(text(1, 4, 2, 2)).sample
    assert "temporary folder" in swap(pipe, device="cpu")
    assert (pipe.vae.decode(text(1, 4, 2, 2)).sample - expected).abs().max() < NOISE["float32"]


def test_swaps_nothing_that_it_lacks(tmp_path: Path) -> None:
    lacking = diffusers.AsymmetricAutoencoderKL(
        norm_num_groups=32, up_block_out_channels=(64,), layers_per_up_block=1
    )
    pipe = sd_pipeline(lacking)
    with pytest.raises(
        InputError,
        match=r"a class that wgvae has \(AutoencoderDC, .*\), found vae: AsymmetricAutoencoderKL",
    ):
        swap(pipe)
    assert pipe.vae is lacking
    with pytest.raises(InputError, match="a pipeline of diffusers, found int"):
        swap(1)
    saved(CASES["kl"], tmp_path)
    pipe.vae = AutoencoderKL.from_pretrained(tmp_path, device="cpu")
    with pytest.raises(InputError, match="found vae: one that runs on wgvae already"):
        swap(pipe)
    pipe.vae = None
    with pytest.raises(InputError, match="found none in StableDiffusionPipeline"):
        swap(pipe)


def test_pipelines_open_and_save_with_it(tmp_path: Path) -> None:
    own = saved(CASES["kl"], tmp_path / "kl")
    sd_pipeline(own).save_pretrained(tmp_path / "pipeline")
    ours = AutoencoderKL.from_pretrained(tmp_path / "pipeline", subfolder="vae", device="cpu")
    parts = {"text_encoder": None, "tokenizer": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pipe = quiet(
            diffusers.StableDiffusionPipeline.from_pretrained(
                tmp_path / "pipeline", vae=ours, **parts
            )
        )
    assert pipe.vae is ours
    expected = run(pipe, SD)
    pipe.save_pretrained(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "model_index.json").read_text())["vae"] == [
        "diffusers",
        "AutoencoderKL",
    ]
    again = quiet(diffusers.StableDiffusionPipeline.from_pretrained(tmp_path / "again", **parts))
    assert type(again.vae) is diffusers.AutoencoderKL
    assert np.abs(run(again, SD) - expected).max() < NOISE["float32"]
    assert (
        diffusers.StableDiffusionImg2ImgPipeline.from_pipe(pipe, requires_safety_checker=False).vae
        is ours
    )


@pytest.fixture
def pipe(tmp_path: Path) -> Any:
    return sd_pipeline(saved(CASES["kl"], tmp_path / "kl"))


def test_previews_come_at_some_steps(pipe: Any) -> None:
    pictures: list[Any] = []
    callback = preview_callback(pipe, every=2, max_side=4, show=pictures.append)
    latents = {"latents": text(1, 4, 6, 8)}
    assert all(callback(pipe, step, 0, latents) is latents for step in range(5))
    assert len(pictures) == 3 and pictures[0].shape == (1, 3, 4, 3)
    assert np.array_equal(pictures[0], wgvae.preview(normal(11, 1, 4, 6, 8), "sdxl", max_side=4))


def test_previews_by_a_tiny_autoencoder(tmp_path: Path) -> None:
    tiny = saved(CASES["tiny"], tmp_path / "tiny")
    # No published model has this scale, so no map is known.
    pipe = sd_pipeline(diffusers.AutoencoderKL(**KL, scaling_factor=0.7))
    latents = text(2, 4, 6, 8)
    means = latents.reshape(2, 4, 3, 2, 4, 2).mean((3, 5))
    with wgvae.Vae.from_pretrained(tmp_path / "tiny", device="cpu") as vae:
        for model in (vae, tmp_path / "tiny", str(tmp_path / "tiny")):
            for max_side, taken in ((64, latents), (32, means)):
                with torch.no_grad():
                    wanted = (tiny.decode(taken).sample / 2 + 0.5).clamp(0, 1) * 255
                pictures: list[Any] = []
                callback = preview_callback(
                    pipe, max_side=max_side, show=pictures.append, model=model
                )
                assert callback(pipe, 0, 0, {"latents": latents})["latents"] is latents
                assert pictures[0].dtype == np.uint8
                assert np.abs(pictures[0] - wanted.movedim(1, -1).numpy()).max() < 1
        # Frames of a clip, one after the other.
        callback = preview_callback(pipe, show=pictures.append, model=vae)
        callback(pipe, 0, 0, {"latents": latents.movedim(0, 1)[None]})
        assert np.array_equal(pictures[-1], vae.decode(latents))
    with pytest.warns(UserWarning, match="no more previews"):
        callback(pipe, 0, 0, {"latents": latents})


def test_a_preview_by_a_model_for_other_latents_is_named(pipe: Any, tmp_path: Path) -> None:
    saved(CASES["qwen image"], tmp_path)
    with pytest.raises(InputError, match="model: expected one for .* 4 channels, found .* 16 channels"):
        preview_callback(pipe, show=print, model=tmp_path)
    with pytest.raises(wgvae.errors.ModelNotFoundError, match="nowhere"):
        preview_callback(pipe, show=print, model="nowhere")


def test_previews_never_break_a_generation(pipe: Any) -> None:
    calls: list[int] = []

    def failing(_: Any) -> None:
        calls.append(1)
        raise OSError("no disk")

    with pytest.warns(UserWarning, match="no more previews: OSError: no disk") as told:
        run(pipe, SD, callback_on_step_end=preview_callback(pipe, show=failing))
    assert len(calls) == 1 and len([one for one in told if "previews" in str(one.message)]) == 1


def test_previews_never_break_a_generation_if_warnings_are_errors(pipe: Any) -> None:
    callback = preview_callback(pipe, show=print)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert callback(pipe, 0, 0, {}) == {}


def test_packed_latents_of_layers_and_of_squares(tmp_path: Path) -> None:
    class Pipeline:
        """Stands in for a pipeline: height and width are variables of its call."""

        vae = saved(CASES["qwen image"], tmp_path)
        vae_scale_factor = 8

        def __call__(self, latents: Any, height: int, width: int) -> None:
            callback(self, 0, 0, {"latents": latents})

    latents = text(1, 16, 3, 4, 6)
    packed = latents.reshape(1, 16, 3, 2, 2, 3, 2).permute(0, 2, 3, 5, 1, 4, 6).reshape(1, 18, 64)
    pictures: list[Any] = []
    pipe = Pipeline()
    callback = preview_callback(pipe, show=pictures.append)
    pipe(packed, 32, 48)
    assert np.array_equal(pictures[0], wgvae.preview(latents.numpy(), "qwen_image"))
    callback(None, 0, 0, {"latents": packed[:, :9]})
    assert pictures[1].shape == (1, 6, 6, 3)
    with pytest.warns(UserWarning, match="4 rows and 4 columns, found 18 latents"):
        callback(None, 0, 0, {"latents": packed})


def test_previews_in_files_and_notebooks(
    pipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    run(pipe, SD, callback_on_step_end=preview_callback(pipe, show=tmp_path / "preview.png"))
    assert image.open(tmp_path / "preview.png").size == (12, 8)
    with pytest.raises(InputError, match="show='preview.png'"):
        preview_callback(pipe)
    shown: list[Any] = []
    handle = types.SimpleNamespace(update=shown.append)

    def display(picture: Any, display_id: bool) -> Any:
        assert display_id
        shown.append(picture)
        return handle

    notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    callback = preview_callback(pipe)
    for _ in range(2):
        run(pipe, SD, callback_on_step_end=callback)
    assert [picture.size for picture in shown] == [(12, 8)] * 2


def test_wrong_arguments_of_previews_are_named(pipe: Any) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"every": 0}, "every"),
        ({"max_side": "large"}, "max_side"),
        ({"show": 5}, "show: expected a function"),
        ({"family": "seedvr2"}, "linear map"),
        ({"family": "wan22"}, "48 channels"),
        ({"family": "flux1"}, "16 channels"),
    )
    for arguments, message in wrong:
        with pytest.raises(InputError, match=message):
            preview_callback(pipe, **{"show": print, **arguments})
    pipe.vae = diffusers.AutoencoderKL(**KL, scaling_factor=0.7)
    with pytest.raises(InputError, match="family='sdxl'"):
        preview_callback(pipe, show=print)
    pipe.vae = diffusers.AutoencoderKLLTX2Video(latent_channels=128, block_out_channels=(8, 8, 8, 8))
    with pytest.raises(InputError, match="pipe: expected .* time apart .* AutoencoderKLLTX2Video"):
        preview_callback(pipe, show=print, family="ltx2")
