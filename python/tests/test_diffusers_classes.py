"""Tests of every class of ``wgvae.diffusers`` against diffusers' class of the same name.

Models are small, have random weights, and are saved by diffusers.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import normal

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
pytestmark = pytest.mark.extras

import wgvae  # noqa: E402
import wgvae.diffusers  # noqa: E402
from wgvae._arrays import as_array  # noqa: E402
from wgvae.diffusers._load import border_of  # noqa: E402
from wgvae.errors import ConfigError, FileError, InputError, ModelNotFoundError  # noqa: E402


@dataclass(frozen=True)
class Case:
    """A small model, and shapes for it."""

    kind: str
    settings: dict[str, Any]
    latents: tuple[int, ...]
    pictures: tuple[int, ...]


def blocks(levels: int) -> dict[str, Any]:
    return {
        "down_block_types": ["DownEncoderBlock2D"] * levels,
        "up_block_types": ["UpDecoderBlock2D"] * levels,
    }


KL = {"block_out_channels": [8, 16], "layers_per_block": 1, "norm_num_groups": 4, **blocks(2)}
WAN22 = {
    "base_dim": 8,
    "decoder_base_dim": 16,
    "num_res_blocks": 1,
    "is_residual": True,
    "z_dim": 48,
    "in_channels": 12,
    "out_channels": 12,
    "patch_size": 2,
    "scale_factor_spatial": 16,
    "latents_mean": [0.1] * 48,
    "latents_std": [0.9] * 48,
}
QWEN21 = {"base_dim": 8, "decoder_base_dim": 12, "num_res_blocks": 1}
HUNYUAN = {
    "in_channels": 3,
    "out_channels": 3,
    "latent_channels": 8,
    "block_out_channels": [32, 32, 64],
    "layers_per_block": 1,
    "spatial_compression_ratio": 4,
    "sample_size": 64,
    "scaling_factor": 0.75289,
}
HUNYUAN_VIDEO = {
    "latent_channels": 8,
    "block_out_channels": [16, 32, 32],
    "layers_per_block": 1,
    "spatial_compression_ratio": 4,
}
LTX2 = {
    "latent_channels": 8,
    "block_out_channels": [16, 32, 64, 128],
    "layers_per_block": [1, 2, 1, 1, 1],
    "decoder_block_out_channels": [16, 32, 64],
    "decoder_layers_per_block": [2, 1, 1, 1],
    "decoder_causal": False,
    "patch_size": 1,
    "spatial_compression_ratio": 8,
    "temporal_compression_ratio": 8,
}
LTX2_3 = LTX2 | {
    "block_out_channels": [16, 32, 64, 64],
    "decoder_block_out_channels": [16, 32, 32, 64],
    "decoder_layers_per_block": [1, 2, 1, 1, 1],
    "decoder_spatio_temporal_scaling": [True] * 4,
    "decoder_inject_noise": [False] * 5,
    "upsample_type": ["spatiotemporal", "spatiotemporal", "temporal", "spatial"],
    "upsample_factor": [2, 2, 1, 2],
    "upsample_residual": [False] * 4,
    "decoder_spatial_padding_mode": "zeros",
}
DC = {
    "latent_channels": 8,
    "attention_head_dim": 8,
    "encoder_block_types": ["ResBlock", "ResBlock", "EfficientViTBlock"],
    "decoder_block_types": ["ResBlock", "ResBlock", "EfficientViTBlock"],
    "encoder_block_out_channels": [8, 16, 32],
    "decoder_block_out_channels": [8, 16, 32],
    "encoder_layers_per_block": [1, 1, 1],
    "decoder_layers_per_block": [1, 1, 1],
    "encoder_qkv_multiscales": [[], [], [5]],
    "decoder_qkv_multiscales": [[], [], [5]],
    "scaling_factor": 0.41407,
}
SANA = DC | {"downsample_block_type": "conv", "upsample_block_type": "interpolate"}
DC_BATCH = DC | {
    "decoder_norm_types": ["batch_norm", "batch_norm", "rms_norm"],
    "decoder_act_fns": ["relu", "relu", "silu"],
}
TINY = {f"{half}_block_out_channels": [8] * 4 for half in ("encoder", "decoder")}

CASES = {
    "kl": Case("AutoencoderKL", KL | {"scaling_factor": 0.13025}, (2, 4, 5, 6), (2, 3, 12, 16)),
    "kl flux1": Case(
        "AutoencoderKL",
        KL
        | {
            "latent_channels": 16,
            "use_quant_conv": False,
            "use_post_quant_conv": False,
            "scaling_factor": 0.3611,
            "shift_factor": 0.1159,
        },
        (1, 16, 6, 4),
        (1, 3, 8, 16),
    ),
    "flux2": Case("AutoencoderKLFlux2", KL, (1, 32, 6, 4), (1, 3, 16, 8)),
    "hunyuan image": Case("AutoencoderKLHunyuanImage", HUNYUAN, (1, 8, 5, 4), (1, 3, 16, 24)),
    "sana": Case("AutoencoderDC", SANA, (2, 8, 3, 5), (1, 3, 24, 16)),
    "dc-ae": Case("AutoencoderDC", DC, (1, 8, 4, 3), (2, 3, 8, 24)),
    "dc-ae batch norm": Case("AutoencoderDC", DC_BATCH, (1, 8, 4, 3), (2, 3, 8, 24)),
    "tiny": Case("AutoencoderTiny", TINY, (2, 4, 3, 5), (2, 3, 16, 24)),
    "qwen image": Case(
        "AutoencoderKLQwenImage",
        {"base_dim": 8, "num_res_blocks": 1},
        (2, 16, 1, 3, 4),
        (1, 3, 1, 24, 16),
    ),
    "qwen image layered": Case(
        "AutoencoderKLQwenImage",
        {"base_dim": 8, "num_res_blocks": 1, "input_channels": 4},
        (2, 16, 1, 3, 2),
        (2, 4, 1, 16, 16),
    ),
    "qwen image 2.1": Case("AutoencoderKLQwenImage21", QWEN21, (1, 64, 1, 2, 3), (1, 4, 1, 32, 48)),
    "wan 2.1": Case(
        "AutoencoderKLWan",
        {"base_dim": 8, "num_res_blocks": 1},
        (2, 16, 3, 3, 4),
        (1, 3, 7, 24, 16),
    ),
    "wan 2.1, one frame": Case(
        "AutoencoderKLWan",
        {"base_dim": 8, "num_res_blocks": 1},
        (1, 16, 1, 3, 4),
        (1, 3, 1, 24, 16),
    ),
    "wan 2.2": Case("AutoencoderKLWan", WAN22, (1, 48, 2, 2, 3), (1, 3, 5, 32, 32)),
    # The attention of diffusers' class fails for more than one clip.
    "hunyuan video 1.5": Case(
        "AutoencoderKLHunyuanVideo15", HUNYUAN_VIDEO, (1, 8, 3, 3, 2), (1, 3, 9, 8, 12)
    ),
    "hunyuan video 1.5, one frame": Case(
        "AutoencoderKLHunyuanVideo15", HUNYUAN_VIDEO, (1, 8, 1, 3, 2), (1, 3, 1, 12, 8)
    ),
    "ltx-2": Case("AutoencoderKLLTX2Video", LTX2, (2, 8, 3, 2, 3), (1, 3, 9, 24, 16)),
    "ltx-2, one frame": Case("AutoencoderKLLTX2Video", LTX2, (1, 8, 1, 3, 2), (2, 3, 1, 16, 24)),
    "ltx-2.3": Case("AutoencoderKLLTX2Video", LTX2_3, (1, 8, 9, 3, 2), (1, 3, 17, 16, 24)),
}
# Largest difference, as a share of the largest value: both compute in f32 or round to 8 or 11 bits.
NOISE = {"float32": 2e-5, "bfloat16": 2.0**-7, "float16": 2.0**-10}


def saved(case: Case, folder: Path) -> Any:
    """Saves a model of diffusers with random weights, and returns it."""
    torch.manual_seed(0)
    own = getattr(diffusers, case.kind)(**case.settings).eval()
    if case.kind == "AutoencoderKLFlux2":
        own.bn.running_mean.copy_(torch.randn(128))
        own.bn.running_var.copy_(torch.rand(128) + 0.5)
    if case.kind == "AutoencoderKLLTX2Video":
        own.latents_mean.copy_(torch.randn(8))
        own.latents_std.copy_(torch.rand(8) + 0.5)
    own.save_pretrained(folder)
    return own


def opened(kind: str, *arguments: Any, **keywords: Any) -> Any:
    return getattr(wgvae.diffusers, kind).from_pretrained(*arguments, device="cpu", **keywords)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a small SDXL-like VAE."""
    saved(CASES["kl"], tmp_path / "kl")
    return tmp_path / "kl"


@pytest.fixture
def kl(folder: Path) -> Iterator[Any]:
    model = opened("AutoencoderKL", folder)
    yield model
    model.vae.close()


def difference(found: Any, expected: Any) -> float:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    return float((found.float() - expected.float()).abs().max() / expected.float().abs().max())


def encoded(output: Any) -> Any:
    for name in ("latents", "latent"):
        if hasattr(output, name):
            return getattr(output, name)
    return output.latent_dist.parameters


@pytest.mark.parametrize("name", CASES)
def test_equals_diffusers(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    own, ours = saved(case, tmp_path), opened(case.kind, tmp_path)
    z, x = (
        torch.from_numpy(normal(1, *case.latents)),
        torch.tanh(torch.from_numpy(normal(2, *case.pictures))),
    )
    with torch.no_grad():
        sample, moments = own.decode(z).sample, encoded(own.encode(x))
        whole = own(x).sample
    assert sample.std() > 1e-3
    assert difference(ours.decode(z).sample, sample) < NOISE["float32"]
    assert difference(encoded(ours.encode(x)), moments) < NOISE["float32"]
    # The tiny autoencoder rounds its latents to bytes in between.
    assert difference(ours(x, return_dict=False)[0], whole) < (
        0.02 if name == "tiny" else 3 * NOISE["float32"]
    )
    for precision in ("bfloat16", "float16"):
        dtype = getattr(torch, precision)
        ours.to(dtype)
        assert difference(ours.decode(z).sample, sample.to(dtype)) < NOISE[precision]
        assert difference(encoded(ours.encode(x)), moments.to(dtype)) < NOISE[precision]


@pytest.mark.parametrize("name", CASES)
def test_has_the_attributes_of_diffusers(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    own = type(saved(case, tmp_path)).from_pretrained(tmp_path)
    ours = opened(case.kind, tmp_path)
    assert isinstance(ours, type(own)) and isinstance(
        ours, (diffusers.ModelMixin, diffusers.ConfigMixin)
    )
    assert {key: value for key, value in ours.config.items() if key[0] != "_"} == {
        key: value for key, value in own.config.items() if key[0] != "_"
    }
    plain = (bool, int, float, str, list, tuple, type(None))
    for attribute, value in vars(own).items():
        if isinstance(value, plain) and attribute != "training":
            assert getattr(ours, attribute) == value, attribute
    if name == "flux2":
        assert torch.equal(ours.bn.running_mean, own.bn.running_mean) and torch.equal(
            ours.bn.running_var, own.bn.running_var
        )
    if case.kind == "AutoencoderKLLTX2Video":
        for attribute in ("latents_mean", "latents_std"):
            assert torch.equal(getattr(ours, attribute), getattr(own, attribute))
        assert ours.half().latents_mean.dtype == torch.float16
    for attribute in ("quant_conv", "post_quant_conv"):
        theirs = getattr(own, attribute, None)
        assert (getattr(ours, attribute, None) is None) == (theirs is None)
        if theirs is not None:
            assert next(iter(getattr(ours.half(), attribute).parameters())).dtype == torch.float16
    assert ours.num_parameters() == 0


def test_wrong_classes_and_shapes_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"expected an AutoencoderKLWan, found .*kl with network kl"
    ):
        opened("AutoencoderKLWan", folder)
    saved(CASES["qwen image"], tmp_path / "qwen")
    with pytest.raises(InputError, match=r"wgvae\.diffusers\.AutoencoderKLQwenImage"):
        opened("AutoencoderKLWan", tmp_path / "qwen")
    ours = opened("AutoencoderKLQwenImage", tmp_path / "qwen")
    with pytest.raises(
        InputError, match=r"z: expected a shape \[n, c, t, h, w\], found \[1, 16, 2, 2\]"
    ):
        ours.decode(torch.zeros(1, 16, 2, 2))
    saved(CASES["qwen image layered"], tmp_path / "layered")
    with pytest.raises(InputError, match=r"z: expected one frame, .*found 2 frames"):
        opened("AutoencoderKLQwenImage", tmp_path / "layered").decode(torch.zeros(1, 16, 2, 2, 2))


def test_frames_that_fill_no_part_are_dropped_as_by_diffusers(tmp_path: Path) -> None:
    own, ours = saved(CASES["wan 2.1"], tmp_path), opened("AutoencoderKLWan", tmp_path)
    x = torch.tanh(torch.from_numpy(normal(2, 1, 3, 4, 16, 16)))
    with torch.no_grad():
        assert (
            difference(ours.encode(x).latent_dist.mode(), own.encode(x).latent_dist.mode())
            < NOISE["float32"]
        )


def test_ltx2_takes_diffusers_arguments(tmp_path: Path) -> None:
    own = saved(CASES["ltx-2"], tmp_path)
    ours = opened("AutoencoderKLLTX2Video", tmp_path)
    z = torch.from_numpy(normal(1, 1, 8, 2, 2, 2))
    with torch.no_grad():
        expected = own.decode(z, None, False, return_dict=False)[0]
        # Values are not clamped.
        bright = own.decode(20 * z).sample
    found = ours.decode(z, None, False, return_dict=False)[0]
    assert difference(found, expected) < NOISE["float32"]
    assert bright.abs().max() > 1
    assert difference(ours.decode(20 * z).sample, bright) < NOISE["float32"]
    x = torch.zeros(1, 3, 9, 16, 16)
    assert torch.equal(
        ours.encode(x, True, False)[0].mode(), ours.encode(x, causal=None).latent_dist.mode()
    )
    with pytest.raises(InputError, match="causal: expected None or False, .*decoder.*, found True"):
        ours.decode(z, causal=True)
    with pytest.raises(InputError, match="causal: expected None or True, .*encoder.*, found False"):
        ours.encode(x, causal=False)
    # Diffusers' class raises an error for them, too.
    with pytest.raises(InputError, match="10"):
        ours.encode(torch.zeros(1, 3, 10, 16, 16))
    with pytest.raises(RuntimeError):
        own.encode(torch.zeros(1, 3, 10, 16, 16))


def test_other_settings_of_ltx2_are_refused(tmp_path: Path) -> None:
    for setting, value in (("decoder_causal", True), ("timestep_conditioning", True)):
        case = Case("AutoencoderKLLTX2Video", LTX2 | {setting: value}, (), ())
        saved(case, tmp_path / setting)
        with pytest.raises(ConfigError, match=setting):
            opened("AutoencoderKLLTX2Video", tmp_path / setting)


@pytest.mark.parametrize("name", ["ltx-2", "ltx-2.3"])
def test_a_file_of_ltx2_tells_its_settings(name: str, tmp_path: Path) -> None:
    own = saved(
        Case("AutoencoderKLLTX2Video", CASES[name].settings | {"patch_size": 4}, (), ()), tmp_path
    )
    alone = tmp_path / "model.safetensors"
    shutil.move(tmp_path / "diffusion_pytorch_model.safetensors", alone)
    ours = wgvae.diffusers.AutoencoderKLLTX2Video.from_single_file(alone, device="cpu")
    again = type(own).from_config(dict(ours.config))
    again.load_state_dict(own.state_dict())
    z = torch.from_numpy(normal(1, 1, 8, 1, 2, 2))
    with torch.no_grad():
        expected = again.eval().decode(z).sample
    assert difference(ours.decode(z).sample, expected) < NOISE["float32"]
    assert ours.spatial_compression_ratio == 32 and ours.temporal_compression_ratio == 8
    assert torch.equal(ours.latents_std, own.latents_std)


def hub_cache(root: Path, name: str, files: dict[str, Path]) -> Path:
    """Writes a cache as huggingface_hub leaves it after a download."""
    repository = root / f"models--{name.replace('/', '--')}"
    for path, source in files.items():
        target = repository / "snapshots" / ("a" * 40) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    return root


def test_names_of_the_hub(folder: Path, tmp_path: Path) -> None:
    weights = "diffusion_pytorch_model.safetensors"
    files = {"vae/config.json": folder / "config.json", f"vae/{weights}": folder / weights}
    files["vae/diffusion_pytorch_model.fp16.safetensors"] = folder / weights
    files["config.json"] = folder / "config.json"
    cache = {
        "cache_dir": hub_cache(tmp_path / "hub", "someone/model", files),
        "local_files_only": True,
        "token": None,
    }
    z = torch.from_numpy(normal(1, 1, 4, 3, 3))
    expected = opened("AutoencoderKL", folder).decode(z).sample
    for keywords in (
        {},
        {"revision": "main"},
        {"variant": "fp16"},
        {"use_safetensors": True, "low_cpu_mem_usage": True},
    ):
        ours = opened(
            "AutoencoderKL",
            "someone/model",
            subfolder="vae",
            torch_dtype=torch.bfloat16,
            **cache,
            **keywords,
        )
        assert torch.equal(ours.decode(z).sample, expected.bfloat16())
    own = diffusers.AutoencoderKL.from_pretrained(folder)
    own.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    shards = {path.name: path for path in (tmp_path / "shards").iterdir()}
    assert len(shards) > 3
    in_shards = {**cache, "cache_dir": hub_cache(tmp_path / "sharded", "someone/shards", shards)}
    assert torch.equal(
        opened("AutoencoderKL", "someone/shards", **in_shards).decode(z).sample, expected
    )
    with pytest.raises(ModelNotFoundError, match=r'someone/model: .*subfolder="vae"'):
        opened("AutoencoderKL", "someone/model", **cache)
    with pytest.raises(FileError, match="someone/model/vae"):
        opened("AutoencoderKL", "someone/model", subfolder="vae", revision="other", **cache)
    with pytest.raises(InputError, match="hf:owner/name"):
        opened("AutoencoderKL", "hf:someone/model", **cache)
    with pytest.raises(InputError, match="use_safetensors"):
        opened("AutoencoderKL", folder, use_safetensors=False)
    with pytest.raises(TypeError, match="nonsense"):
        opened("AutoencoderKL", folder, nonsense=1)
    with pytest.raises(ModelNotFoundError, match="no-such-folder"):
        opened("AutoencoderKL", "no-such-folder")


def test_pipeline_folders_and_variants(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "pipeline" / "vae")
    marked = tmp_path / "pipeline" / "vae" / "diffusion_pytorch_model.fp16.safetensors"
    shutil.copy(folder / "diffusion_pytorch_model.safetensors", marked)
    assert opened("AutoencoderKL", tmp_path / "pipeline", subfolder="vae").vae.facts["files"] != [
        str(marked)
    ]
    assert opened(
        "AutoencoderKL", tmp_path / "pipeline", subfolder="vae", variant="fp16"
    ).vae.facts["files"] == [str(marked)]
    with pytest.raises(InputError, match="variant"):
        opened("AutoencoderKL", tmp_path / "pipeline", subfolder="vae", variant="int8")


def test_single_files(sd: Path, tmp_path: Path) -> None:
    alone = tmp_path / "model.safetensors"
    shutil.copy(sd / "diffusion_pytorch_model.safetensors", alone)
    settings = {**json.loads((sd / "config.json").read_text()), "scaling_factor": 0.5}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    own = diffusers.AutoencoderKL.from_pretrained(sd)
    z = torch.from_numpy(normal(1, 1, 4, 2, 2))
    kind = wgvae.diffusers.AutoencoderKL
    for config in (None, settings, tmp_path):
        ours = kind.from_single_file(alone, config=config, device="cpu")
        assert (
            ours.config.scaling_factor == 0.5
            and list(ours.config.block_out_channels) == settings["block_out_channels"]
        )
        with torch.no_grad():
            assert difference(ours.decode(z).sample, own.decode(z).sample) < NOISE["float32"]
    with pytest.raises(FileError):
        kind.from_single_file(tmp_path / "other.safetensors", device="cpu")


def test_is_saved_as_by_diffusers(kl: Any, folder: Path, tmp_path: Path) -> None:
    kl.register_to_config(scaling_factor=0.25)
    kl.half().save_pretrained(tmp_path / "saved", variant="fp16")
    own = diffusers.AutoencoderKL.from_pretrained(
        tmp_path / "saved", variant="fp16", torch_dtype=torch.float16
    )
    assert own.config.scaling_factor == 0.25
    expected = diffusers.AutoencoderKL.from_pretrained(
        folder, torch_dtype=torch.float16
    ).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in own.state_dict().items())
    again = opened("AutoencoderKL", tmp_path / "saved", variant="fp16")
    assert again.config.scaling_factor == 0.25


def test_takes_over_weights_of_torch(kl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = kl.to_torch()
    own.decoder.conv_out.bias.data += 1
    z = torch.from_numpy(normal(1, 1, 4, 3, 3))
    ours = wgvae.diffusers.AutoencoderKL.from_torch(own, device="cpu")
    folder = Path(ours.vae.facts["name"])
    assert folder.exists()
    with torch.no_grad():
        assert difference(ours.decode(z).sample, own.decode(z).sample) < NOISE["float32"]
    vae = ours.vae
    del ours
    assert np.isfinite(vae.encode(np.zeros((16, 16, 3), np.uint8))).all()
    del vae
    assert not folder.exists()
    fresh = wgvae.diffusers.AutoencoderKL.from_config(kl.config, device="cpu")
    assert fresh.decode(z).sample.shape == kl.decode(z).sample.shape
    folder = Path(fresh.vae.facts["name"])
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        del fresh
    assert folder.exists()
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", CASES)
def test_modules_are_as_configs_make_them(name: str, tmp_path: Path) -> None:
    assert border_of(saved(CASES[name], tmp_path)) == {}


def test_changed_modules_are_refused_by_name(kl: Any) -> None:
    own = kl.to_torch()
    own.decoder.conv_norm_out.eps = 1e-3
    with pytest.raises(
        InputError,
        match=r"model: expected eps = 1e-06 in decoder\.conv_norm_out, .*found eps = 0\.001",
    ):
        wgvae.diffusers.AutoencoderKL.from_torch(own, device="cpu")
    own.decoder.conv_norm_out.eps = 1e-6
    own.encoder.conv_act = torch.nn.ReLU()
    with pytest.raises(InputError, match=r"model: expected SiLU in encoder\.conv_act, .*found ReLU"):
        wgvae.diffusers.AutoencoderKL.from_torch(own, device="cpu")
    own.encoder.conv_act = torch.nn.SiLU(inplace=True)
    wgvae.diffusers.AutoencoderKL.from_torch(own.train(), device="cpu").vae.close()
    other = diffusers.AutoencoderKL(**KL, act_fn="relu")
    with pytest.raises(ConfigError, match="act_fn"):
        wgvae.diffusers.AutoencoderKL.from_torch(other, device="cpu")


@pytest.mark.parametrize("name", ["kl", "flux2", "tiny", "qwen image", "wan 2.1"])
def test_other_sizes_are_encoded_as_by_diffusers(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    own, ours = saved(case, tmp_path), opened(case.kind, tmp_path)
    *others, height, width = case.pictures
    x = torch.tanh(torch.from_numpy(normal(2, *others, height + 5, width + 7)))
    with torch.no_grad():
        expected = encoded(own.encode(x))
    with pytest.warns(UserWarning, match=f"{width + 7}x{height + 5} is no multiple of"):
        found = encoded(ours.encode(x))
    assert difference(found, expected) < NOISE["float32"]


def test_values_that_no_picture_has(kl: Any) -> None:
    with pytest.warns(UserWarning, match="values range from 0 to 255") as caught:
        kl.encode(torch.tensor([0.0, 255.0]).repeat(1, 3, 8, 4))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("attempt", [copy.deepcopy, copy.copy, pickle.dumps])
def test_copies_are_refused_with_a_way_out(attempt: Callable[[Any], Any], kl: Any) -> None:
    with pytest.raises(
        TypeError, match=r"AutoencoderKL\.from_pretrained again, found an attempt to copy"
    ):
        attempt(kl)


def test_device_is_as_asked(kl: Any) -> None:
    assert kl.device == torch.device("cpu")
    assert kl.to("meta") is kl and kl.device == torch.device("meta")
    assert kl.decode(torch.zeros(1, 4, 2, 2)).sample.device == torch.device("cpu")


def test_wrong_settings_are_refused_at_once(kl: Any) -> None:
    before = kl.memory_budget
    for limit in ("much", -1, 1.5, True):
        with pytest.raises(InputError, match="^memory_budget"):
            kl.memory_budget = limit
    assert kl.memory_budget == before
    with pytest.raises(InputError, match=r"^load_state_dict: expected AutoencoderKL\.from_torch"):
        kl.load_state_dict({}, strict=False)


def test_tensors_that_are_not_aligned() -> None:
    odd = torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1)
    array, _ = as_array(odd, "z")
    assert array.flags.aligned and np.array_equal(array, odd.numpy())


def test_tiles_are_refused_or_ignored(kl: Any) -> None:
    with pytest.warns(UserWarning, match="memory_budget"):
        kl.enable_tiling()
    assert (
        not kl.use_tiling
        and kl.tile_sample_min_size == kl.config.sample_size
        and kl.tile_overlap_factor == 0.25
    )
    for call in (kl.tiled_decode, kl.tiled_encode):
        with pytest.raises(InputError, match="memory_budget"):
            call(torch.zeros(1, 4, 2, 2))
