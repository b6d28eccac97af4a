"""Tests of the nodes for ComfyUI against its documented protocol.

ComfyUI itself is not installed: stand-ins replace its modules.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from conftest import DEMO, ROOT, Floats, normal, toy

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.extras

from safetensors.torch import load_file, save_file  # noqa: E402

import wgvae  # noqa: E402


class Interrupted(Exception):
    """The exception that ComfyUI raises when the user has stopped a prompt."""


class Comfy:
    """A stand-in for ComfyUI that records calls."""

    def __init__(self) -> None:
        self.needed: list[int] = []
        self.loaded: list[Any] = []
        self.progress: list[int] = []
        self.interrupted = False
        self.files: dict[str, dict[str, Path]] = {"vae": {"demo.safetensors": DEMO}, "checkpoints": {}, "vae_approx": {}}

    def load_models_gpu(self, models: list[Any], memory_required: int) -> None:
        """Records the memory that a call needs besides what its models hold."""
        self.needed.append(memory_required + sum(model.model_size() - model.loaded_size() for model in models))
        for model in models:
            if model in self.loaded:
                model.detach(unpatch_all=False)
            assert model.partially_load(model.load_device, 0, force_patch_weights=False) == 0
            assert model.current_loaded_device() == model.load_device
        self.loaded = models

    def unload_all_models(self) -> None:
        for model in self.loaded:
            assert model.partially_unload(model.offload_device, 1) == 0
            model.detach()
        self.loaded = []

    def throw_exception_if_processing_interrupted(self) -> None:
        if self.interrupted:
            raise Interrupted

    def bar(self, total: int) -> Any:
        return SimpleNamespace(update_absolute=lambda value, total=None: self.progress.append(value))

    def list_as(self, folder: str, name: str, path: Path) -> None:
        self.files[folder][name] = path


class ModelPatcher:
    """A stand-in for ComfyUI's class. Its constructor asks for the size, too."""

    def __init__(self, model: Any, load_device: Any, offload_device: Any) -> None:
        self.model, self.load_device, self.offload_device = model, load_device, offload_device
        self.model_size()

    def model_size(self) -> int:
        raise NotImplementedError


@pytest.fixture
def comfy(monkeypatch: pytest.MonkeyPatch) -> Comfy:
    told = Comfy()
    cpu = torch.device("cpu")
    parts: dict[str, dict[str, Any]] = {
        "comfy": {},
        "comfy.model_management": {
            "load_models_gpu": told.load_models_gpu,
            "get_torch_device": lambda: cpu,
            "intermediate_device": lambda: cpu,
            "vae_offload_device": lambda: cpu,
            "throw_exception_if_processing_interrupted": told.throw_exception_if_processing_interrupted,
        },
        "comfy.model_patcher": {"ModelPatcher": ModelPatcher},
        "comfy.utils": {"ProgressBar": told.bar, "load_torch_file": load_file},
        "folder_paths": {
            "get_filename_list": lambda kind: list(told.files[kind]),
            "get_full_path_or_raise": lambda kind, name: str(told.files[kind][name]),
        },
    }
    modules = {name: ModuleType(name) for name in parts}
    for name, content in parts.items():
        vars(modules[name]).update(content)
        monkeypatch.setitem(sys.modules, name, modules[name])
    for name in ("model_management", "model_patcher", "utils"):
        setattr(modules["comfy"], name, modules[f"comfy.{name}"])
    return told


def load(nodes: dict[str, Any], comfy: Comfy, path: Path, **arguments: Any) -> Any:
    """Loads a model that ComfyUI lists as model.safetensors."""
    comfy.list_as("vae", "model.safetensors", path)
    return call(nodes, "WgvaeLoader", vae_name="model.safetensors", **{"precision": "f32", "device": "cpu", **arguments})


@pytest.fixture
def nodes(comfy: Comfy) -> Iterator[dict[str, Any]]:
    """The nodes, imported as ComfyUI imports a folder of custom_nodes."""
    folder = ROOT / "python" / "comfyui"
    spec = importlib.util.spec_from_file_location("custom_nodes_wgvae", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["custom_nodes_wgvae"] = module
    spec.loader.exec_module(module)
    yield module.NODE_CLASS_MAPPINGS
    for name in [name for name in sys.modules if name.startswith("custom_nodes_wgvae")]:
        del sys.modules[name]


def test_protocol(nodes: dict[str, Any]) -> None:
    display = sys.modules["custom_nodes_wgvae"].NODE_DISPLAY_NAME_MAPPINGS
    assert nodes.keys() == display.keys()
    for node in nodes.values():
        inputs = node.INPUT_TYPES()
        assert inspect.ismethod(node.INPUT_TYPES) and inputs.keys() <= {"required", "optional", "hidden"}
        assert isinstance(node.RETURN_TYPES, tuple) and all(isinstance(kind, str) for kind in node.RETURN_TYPES)
        assert isinstance(node.CATEGORY, str)
        parameters = inspect.signature(getattr(node(), node.FUNCTION)).parameters
        hidden = inputs.get("hidden", {})
        assert list(parameters) == [*inputs["required"], *inputs.get("optional", {}), *hidden]
        assert all(parameters[name].default is None for name in hidden)
        for name, declared in {**inputs["required"], **inputs.get("optional", {})}.items():
            assert isinstance(declared, tuple) and isinstance(declared[0], (str, list)), name
            assert (parameters[name].default is inspect.Parameter.empty) == (name in inputs["required"])


def call(nodes: dict[str, Any], name: str, **inputs: Any) -> Any:
    node = nodes[name]
    results = getattr(node(), node.FUNCTION)(**inputs)
    assert isinstance(results, tuple) and len(results) == len(node.RETURN_TYPES)
    return results[0]


def core_decode(vae: Any, latents: Floats) -> Any:
    """Decodes as ComfyUI's node VAEDecode."""
    images = vae.decode(torch.from_numpy(latents))
    return images.reshape(-1, *images.shape[-3:]) if images.ndim == 5 else images


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_decode_and_encode(nodes: dict[str, Any], comfy: Comfy, device: Literal["gpu", "cpu"]) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device=device)
    latents = normal(1, 2, 16, 6, 5)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
    assert images.shape == (2, 48, 40, 3) and images.dtype == torch.float32
    assert 0 <= images.min() and images.max() <= 1
    with wgvae.Vae.from_pretrained(DEMO, device=device, precision="f32") as judge:
        assert vae.first_stage_model.on_gpu == (judge.device == "gpu")
        pictures = judge.decode(latents, unscaled=True)
        assert np.abs(images.numpy() * 255 - pictures).max() <= 0.5 + 1e-3
        assert comfy.needed == [judge.plan(48, 40, unscaled=True).peak_bytes]
        assert comfy.progress[-1] == 1000
        # A larger picture with alpha is cropped at its edges.
        padded = torch.nn.functional.pad(images, (0, 1, 3, 2, 1, 2))
        encoded = call(nodes, "WgvaeEncode", pixels=padded, vae=vae)["samples"]
        assert encoded.shape == (2, 16, 6, 5)
        floats = (padded[:, 1:49, 2:42, :3].movedim(-1, 1) * 2 - 1).contiguous()
        assert np.array_equal(encoded.numpy(), judge.encode(floats, unscaled=True))


def test_nodes_of_comfyui_take_it(nodes: dict[str, Any], comfy: Comfy) -> None:
    """ComfyUI's nodes use these methods and fields of a VAE."""
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    assert nodes["WgvaeLoader"].RETURN_TYPES == ("VAE",)
    vae.throw_exception_if_invalid()
    assert (vae.latent_channels, vae.latent_dim, vae.output_channels) == (16, 2, 3)
    assert vae.downscale_ratio == vae.upscale_ratio == 8
    assert vae.spacial_compression_decode() == vae.spacial_compression_encode() == 8
    assert vae.temporal_compression_decode() is None and vae.upscale_index_formula is None
    samples = torch.from_numpy(normal(1, 1, 16, 6, 5))
    images = vae.decode(samples)
    assert torch.equal(images, call(nodes, "WgvaeDecode", samples={"samples": samples}, vae=vae))
    assert torch.equal(images, vae.decode(samples.double(), vae_options={}))
    assert torch.equal(
        images,
        vae.decode_tiled(samples, tile_x=64, tile_y=64, overlap=8, tile_t=None, overlap_t=None),
    )
    latents = vae.encode(images)
    assert torch.equal(
        latents,
        vae.encode_tiled(images, tile_x=512, tile_y=512, overlap=64, tile_t=64, overlap_t=8),
    )
    assert vae.memory_used_decode(samples.shape, vae.vae_dtype) > 0
    assert vae.memory_used_encode((1, 3, 48, 40), vae.vae_dtype) > 0
    with pytest.raises(wgvae.errors.InputError, match="vae_options: expected none, found num_chunks"):
        vae.decode(samples, vae_options={"num_chunks": 8000})


def test_patches_are_an_error(nodes: dict[str, Any]) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    with pytest.raises(wgvae.errors.InputError, match="wgvae's VAE takes no patches: use 'Load VAE'"):
        vae.patcher.add_patches({"encoder.conv_in.weight": (torch.zeros(1),)}, strength_patch=1.0)


def test_comfyui_evicts_it(nodes: dict[str, Any], comfy: Comfy) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="gpu")
    samples = torch.from_numpy(normal(1, 1, 16, 6, 5))
    assert vae.patcher.loaded_size() == 0
    images = vae.decode(samples)
    assert comfy.loaded == [vae.patcher]
    assert vae.patcher.model_size() >= vae.patcher.loaded_size() > 0
    # ComfyUI lists a model anew before each call. That does not close it.
    held = vae.patcher.loaded_size()
    vae.decode(samples)
    assert vae.patcher.loaded_size() == held
    comfy.unload_all_models()
    assert vae.patcher.loaded_size() == 0
    assert torch.equal(vae.decode(samples), images)


def test_models_of_three_folders(
    nodes: dict[str, Any], comfy: Comfy, sd: Path, tmp_path: Path
) -> None:
    weights = load_file(sd / "diffusion_pytorch_model.safetensors")
    checkpoint = {f"vae.{name}": tensor for name, tensor in weights.items()}
    save_file({**checkpoint, "model.other": torch.ones(1)}, tmp_path / "all.safetensors")
    comfy.list_as("checkpoints", "sub/all.safetensors", tmp_path / "all.safetensors")
    comfy.list_as("checkpoints", "old.ckpt", tmp_path / "old.ckpt")
    for half in ("encoder", "decoder"):
        name = f"taesd_{half}.safetensors"
        folder = tmp_path / half
        folder.mkdir()
        toy(folder, f"taesd.upstream_{half}", "taesd", 64, 64, {})
        (folder / "diffusion_pytorch_model.safetensors").rename(tmp_path / name)
        comfy.list_as("vae_approx", name, tmp_path / name)
    comfy.list_as("vae_approx", "taesdxl_encoder.safetensors", tmp_path / "none")
    comfy.list_as("vae_approx", "taesdxl_decoder.pth", tmp_path / "none")
    assert nodes["WgvaeLoader"].INPUT_TYPES()["required"]["vae_name"][0] == [
        "demo.safetensors",
        "checkpoints/sub/all.safetensors",
        "vae_approx/taesd",
        "vae_approx/taesdxl_encoder.safetensors",
    ]
    latents = normal(1, 1, 4, 4, 3)
    arguments = {"precision": "f32", "device": "cpu"}
    with pytest.warns(UserWarning, match="all.safetensors: .*norm_num_groups: 32 are assumed"):
        vae = call(nodes, "WgvaeLoader", vae_name="checkpoints/sub/all.safetensors", family="sd15", **arguments)
    judge = load(nodes, comfy, sd, family="sd15")
    assert torch.equal(core_decode(vae, latents), core_decode(judge, latents))
    assert vae.get_sd().keys() == weights.keys()
    tiny = call(nodes, "WgvaeLoader", vae_name="vae_approx/taesd", **arguments)
    images = core_decode(tiny, latents)
    assert images.shape == (1, 32, 24, 3) and tiny.encode(images).shape == latents.shape
    with pytest.raises(wgvae.errors.InputError, match="expected a VAE of one file, found"):
        tiny.get_sd()
    with pytest.raises(wgvae.errors.InputError, match="vae_name: expected a .safetensors or .sft file"):
        call(nodes, "WgvaeLoader", vae_name="checkpoints/old.ckpt", **arguments)


def test_a_vae_of_comfyui_is_opened_by_its_file(
    nodes: dict[str, Any], comfy: Comfy, tmp_path: Path
) -> None:
    weights = load_file(DEMO / "diffusion_pytorch_model.safetensors")
    config = (DEMO / "config.json").read_text()
    for folder, prefix in (("vae", ""), ("checkpoints", "vae.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(config)
        path = tmp_path / folder / "model.safetensors"
        save_file({prefix + name: tensor for name, tensor in weights.items()}, path)
        comfy.list_as(folder, "model.safetensors", path)
    samples = {"samples": torch.from_numpy(normal(1, 1, 16, 6, 5))}
    judge = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32")
    wanted = call(nodes, "WgvaeDecode", samples=samples, vae=judge)
    core = SimpleNamespace(vae_dtype=torch.float32)
    for kind, name, output, folder, prefix, listed in (
        ("VAELoader", "vae_name", 0, "vae", "", "model.safetensors"),
        ("CheckpointLoaderSimple", "ckpt_name", 2, "checkpoints", "vae.", "checkpoints/model.safetensors"),
    ):
        loader: dict[str, Any] = {"class_type": kind, "inputs": {name: "model.safetensors"}}
        prompt = {"1": loader, "2": {"class_type": "WgvaeDecode", "inputs": {"vae": ["1", output]}}}
        hidden = {"prompt": prompt, "unique_id": "2"}
        images = call(nodes, "WgvaeDecode", samples=samples, vae=core, **hidden)
        assert torch.equal(images, wanted)
        latents = call(nodes, "WgvaeEncode", pixels=images, vae=core, **hidden)["samples"]
        assert torch.equal(latents, call(nodes, "WgvaeEncode", pixels=images, vae=judge)["samples"])
        told = nodes["WgvaePlan"]().plan(core, 48, 32, "decode", **hidden)
        assert told == nodes["WgvaePlan"]().plan(judge, 48, 32, "decode")
        # Another file in its place.
        changed = {prefix + name: tensor for name, tensor in weights.items()}
        changed[prefix + "decoder.conv_out.bias"] = weights["decoder.conv_out.bias"] + 0.25
        state = nodes["WgvaeLoader"].IS_CHANGED(listed)
        save_file(changed, tmp_path / folder / "model.safetensors")
        assert nodes["WgvaeLoader"].IS_CHANGED(listed) != state
        brighter = call(nodes, "WgvaeDecode", samples=samples, vae=core, **hidden)
        assert (brighter - wanted).mean() > 0.05
        loader["inputs"][name] = "old.ckpt"
        with pytest.raises(wgvae.errors.InputError, match=r"vae: expected a .safetensors .*old\.ckpt"):
            call(nodes, "WgvaeDecode", samples=samples, vae=core, **hidden)


def test_a_vae_of_comfyui_without_a_file_is_named(nodes: dict[str, Any]) -> None:
    message = (
        r"vae: expected the output of 'Load VAE \(wgvae\)', or directly .*, "
        r"found SimpleNamespace, which does not tell its file: use 'Load VAE \(wgvae\)'"
    )
    merged: dict[str, Any] = {"class_type": "Merge", "inputs": {"vae_name": "demo.safetensors"}}
    loader: dict[str, Any] = {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "demo.safetensors"}}
    prompts: list[dict[str, Any] | None] = [None, {}]
    prompts += [{"1": one, "2": {"inputs": {"vae": ["1", 0]}}} for one in (merged, loader)]
    for prompt in prompts:
        for name, given in (("WgvaeDecode", {"samples": None}), ("WgvaeEncode", {"pixels": None}), ("WgvaePreview", {"samples": None, "max_side": 64}), ("WgvaeDecodeTiled", {"samples": None, "rule": "blend"})):
            with pytest.raises(wgvae.errors.InputError, match=message):
                call(nodes, name, vae=SimpleNamespace(), prompt=prompt, unique_id="2", **given)


@pytest.mark.usefixtures("nodes")
def test_files_of_comfyuis_loaders_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loaders = SimpleNamespace(VAELoader=SimpleNamespace(video_taes=["taehv"]))
    monkeypatch.setitem(sys.modules, "nodes", loaders)

    def found(kind: str, key: str, name: str, output: int) -> str | None:
        loader = {"class_type": kind, "inputs": {key: name}}
        graph = {"1": loader, "2": {"inputs": {"vae": ["1", output]}}}
        file: str | None = sys.modules["custom_nodes_wgvae.core"]._name_of_file(graph, "2")
        return file

    def vae(name: str) -> str | None:
        return found("VAELoader", "vae_name", name, 0)

    assert vae("taesd") == "vae_approx/taesd"
    assert vae("taehv.safetensors") == "vae_approx/taehv.safetensors"
    assert vae("ae.safetensors") == "ae.safetensors"
    assert vae("pixel_space") is None
    checkpoint = found("CheckpointLoaderSimple", "ckpt_name", "taehv.safetensors", 2)
    assert checkpoint == "checkpoints/taehv.safetensors"


def test_tiles_of_other_tools(nodes: dict[str, Any], comfy: Comfy, wan: Path) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    z = normal(1, 1, 16, 6, 12)
    samples = {"samples": torch.from_numpy(z)}
    wanted = {"vae": vae, "samples": samples}
    found = call(nodes, "WgvaeDecodeTiled", rule="blend", tile_size=48, tile_overlap=16, **wanted)
    with wgvae.Vae.from_pretrained(DEMO, precision="f32", device="cpu") as judge:
        options: dict[str, Any] = {"tiling": "blend", "tile_size": 48, "tile_overlap": 16}
        expected = judge.decode(z, unscaled=True, output="float", **options)
    assert np.array_equal(found.numpy(), np.clip(expected / 2 + 0.5, 0, 1).transpose(0, 2, 3, 1))
    assert not torch.equal(found, call(nodes, "WgvaeDecode", **wanted))
    # The model's own tiles are larger than this image.
    own = call(nodes, "WgvaeDecodeTiled", rule="cosine", **wanted)
    assert torch.equal(own, call(nodes, "WgvaeDecode", **wanted))
    video = load(nodes, comfy, wan)
    clip = {"samples": torch.from_numpy(normal(2, 1, 16, 2, 4, 4))}
    with pytest.raises(wgvae.errors.InputError, match="samples: expected one frame.*found 2 frames"):
        call(nodes, "WgvaeDecodeTiled", rule="blend", vae=video, samples=clip)


def test_packed_latents_have_no_tiles(nodes: dict[str, Any]) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    # As FLUX.2's VAE has it.
    vae.first_stage_model.config["patch"] = 2
    samples = {"samples": torch.from_numpy(normal(2, 1, 16, 4, 4))}
    expected = "vae: expected a model whose latents ComfyUI does not pack, found "
    with pytest.raises(wgvae.errors.InputError, match=expected):
        call(nodes, "WgvaeDecodeTiled", rule="blend", vae=vae, samples=samples)


def test_tiles_of_one_frame_of_a_video_model(nodes: dict[str, Any], comfy: Comfy, seedvr: Path) -> None:
    vae = load(nodes, comfy, seedvr, family="seedvr2")
    samples = {"samples": torch.from_numpy(normal(2, 1, 16, 1, 6, 4))}
    given = {"vae": vae, "samples": samples}
    tiled = call(nodes, "WgvaeDecodeTiled", rule="cosine", tile_size=32, tile_overlap=8, **given)
    whole = call(nodes, "WgvaeDecode", **given)
    assert tiled.shape == whole.shape and not torch.equal(tiled, whole)
    one_tile = call(nodes, "WgvaeDecodeTiled", rule="cosine", **given)
    assert (one_tile - whole).abs().max() < 1e-4


def test_previews_are_small(nodes: dict[str, Any], comfy: Comfy, wan: Path) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    latents = normal(1, 2, 16, 6, 4)
    samples = {"samples": torch.from_numpy(latents)}
    small = call(nodes, "WgvaePreview", samples=samples, vae=vae, max_side=31)
    assert small.shape == (2, 24, 16, 3)
    with wgvae.Vae.from_pretrained(DEMO, device="cpu", precision="f32") as judge:
        assert comfy.needed == [judge.plan(24, 16, unscaled=True).peak_bytes]
    means = latents.reshape(2, 16, 3, 2, 2, 2).mean((3, 5))
    close(small.numpy(), core_decode(vae, means).numpy())
    whole = call(nodes, "WgvaePreview", samples=samples, vae=vae, max_side=48)
    assert torch.equal(whole, call(nodes, "WgvaeDecode", samples=samples, vae=vae))
    with pytest.raises(wgvae.errors.InputError, match="for one latent"):
        call(nodes, "WgvaePreview", samples=samples, vae=vae, max_side=7)
    # Each frame of a clip becomes a picture.
    frames = normal(2, 1, 16, 3, 4, 2)
    video = load(nodes, comfy, wan)
    small = call(nodes, "WgvaePreview", samples={"samples": torch.from_numpy(frames)}, vae=video, max_side=16)
    means = frames[0].swapaxes(0, 1).reshape(3, 16, 2, 2, 1, 2).mean((3, 5))
    close(small.numpy(), core_decode(video, means).numpy())


def test_budget_and_stop(nodes: dict[str, Any], comfy: Comfy) -> None:
    arguments = {"vae_name": "demo.safetensors", "precision": "f32", "device": "gpu"}
    vae = call(nodes, "WgvaeLoader", **arguments)
    samples = {"samples": torch.from_numpy(normal(1, 1, 16, 6, 5))}
    whole = call(nodes, "WgvaeDecode", samples=samples, vae=vae)
    within = call(nodes, "WgvaeDecode", samples=samples, vae=vae, memory_budget="6MiB")
    assert torch.equal(whole, within)
    limited = call(nodes, "WgvaeLoader", memory_budget="6MiB", **arguments)
    assert torch.equal(whole, limited.decode(samples["samples"]))
    assert comfy.needed[-1] <= 6 << 20 < comfy.needed[0]
    with pytest.raises(wgvae.errors.BudgetError):
        call(nodes, "WgvaeDecode", samples=samples, vae=limited, memory_budget="1MiB")
    comfy.interrupted = True
    with pytest.raises(Interrupted):
        vae.decode(samples["samples"])


def test_memory_is_told_before(nodes: dict[str, Any], comfy: Comfy, wan: Path) -> None:
    def said(vae: Any, **inputs: Any) -> str:
        result = nodes["WgvaePlan"]().plan(vae, 48, 32, **inputs)
        assert result["ui"]["text"] == result["result"]
        return str(result["result"][0])

    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    assert re.fullmatch(
        r"An image of 48x32 pixels will take [0-9.]+ MiB to decode, "
        r"of which [0-9.]+ MiB are weights\.",
        said(vae, work="decode"),
    )
    assert "to encode" in said(vae, work="encode")
    video = load(nodes, comfy, wan)
    assert said(video, work="decode").startswith("An image")
    assert said(video, work="decode", frames=5).startswith("A clip of up to 5 frames")


def test_clip(nodes: dict[str, Any], comfy: Comfy, wan: Path, wan_vae: wgvae.Vae) -> None:
    vae = load(nodes, comfy, wan, device="gpu")
    latents = normal(2, 1, 16, 2, 2, 3)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
    frames = wan_vae.clip().decode(latents, unscaled=True)
    assert images.shape == (5, 16, 24, 3)
    assert np.abs(images.numpy() * 255 - frames).max() <= 0.5 + 1e-3
    assert vae.decode(torch.from_numpy(latents)).shape == (1, 5, 16, 24, 3)
    two = vae.decode(torch.from_numpy(np.concatenate([latents, latents])))
    assert two.shape == (2, 5, 16, 24, 3) and torch.equal(two[1], images)
    assert comfy.needed[0] == wan_vae.clip().plan(16, 24, unscaled=True).peak_bytes


def test_fields_of_a_model_for_video(nodes: dict[str, Any], comfy: Comfy, wan: Path) -> None:
    vae = load(nodes, comfy, wan)
    assert (vae.latent_channels, vae.latent_dim, vae.not_video) == (16, 3, False)
    assert vae.temporal_compression_decode() == 4
    assert vae.spacial_compression_decode() == vae.spacial_compression_encode() == 8
    assert vae.downscale_index_formula == vae.upscale_index_formula == (4, 8, 8)
    assert [vae.upscale_ratio[0](latents) for latents in (0, 1, 2, 21)] == [0, 1, 5, 81]
    assert [vae.downscale_ratio[0](frames) for frames in (0, 1, 4, 5, 81)] == [0, 1, 1, 2, 21]


def test_axes_of_latents_are_as_in_comfyui(
    nodes: dict[str, Any], comfy: Comfy, wan: Path, seedvr: Path
) -> None:
    demo = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", device="cpu")
    frames = torch.from_numpy(normal(2, 1, 16, 2, 6, 5))
    assert torch.equal(demo.decode(frames), demo.decode(frames[:, :, 0]))
    assert demo.prepare_decode(frames.shape) == 1 and len(comfy.needed) == 3
    video = load(nodes, comfy, wan)
    assert video.decode(torch.from_numpy(normal(2, 2, 16, 2, 3))).shape == (2, 1, 16, 24, 3)
    vae = load(nodes, comfy, seedvr, family="seedvr2")
    assert torch.equal(vae.decode(frames.flatten(1, 2)), vae.decode(frames))
    with pytest.raises(wgvae.errors.InputError, match="channels"):
        vae.decode(frames[:, :15].flatten(1, 2))
    for each in (demo, video, vae):
        assert each.format_encoded is None and each.vae_output_dtype() == torch.float32


def test_a_decode_that_doubles_the_sides(
    nodes: dict[str, Any], comfy: Comfy, tmp_path: Path
) -> None:
    toy(tmp_path, "wan21_upscale2x.original", "wan21", 96, 16, {})
    (tmp_path / "config.json").unlink()
    vae = load(nodes, comfy, tmp_path, family="wan21_upscale2x")
    assert (vae.spacial_compression_decode(), vae.spacial_compression_encode()) == (16, 8)
    assert core_decode(vae, normal(2, 1, 16, 1, 2, 3)).shape == (1, 32, 48, 3)


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (2, 1), (4, 1), (5, 5), (6, 5), (8, 5), (9, 9)])
def test_encodes_a_clip(
    nodes: dict[str, Any], comfy: Comfy, wan: Path, wan_vae: wgvae.Vae, count: int, kept: int
) -> None:
    """All images are one clip, as in ComfyUI.

    Last frames that fill no frame of latents are left out.
    """
    pixels = torch.from_numpy(normal(4, count, 19, 24, 3)).sigmoid()
    vae = load(nodes, comfy, wan, device="gpu")
    encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"]
    assert encoded.shape == (1, 16, (kept + 3) // 4, 2, 3)
    frames = (pixels[:kept, 1:17].permute(3, 0, 1, 2)[None] * 2 - 1).contiguous()
    close(encoded.numpy(), wan_vae.clip().encode(frames, unscaled=True))
    with wgvae.Vae.from_pretrained(wan, device="gpu") as judge:
        planner = judge if kept == 1 else judge.clip()
        assert comfy.needed == [planner.plan(16, 24, encode=True, unscaled=True).peak_bytes]
    if count == 9:
        two = vae.encode(torch.stack([pixels, pixels]))
        assert two.shape == (2, 16, 3, 2, 3) and torch.equal(two[0], two[1])


def test_encodes_a_clip_of_seedvr(nodes: dict[str, Any], comfy: Comfy, seedvr: Path) -> None:
    vae = load(nodes, comfy, seedvr, family="seedvr2")
    pixels = torch.from_numpy(normal(5, 6, 16, 16, 3)).sigmoid()
    encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"]
    assert encoded.shape == (1, 16, 2, 2, 2)
    images = call(nodes, "WgvaeDecode", samples={"samples": encoded}, vae=vae)
    assert images.shape == (5, 16, 16, 3)
    # ComfyUI multiplies latents by the factor of 0.9152.
    frames = (pixels[:5].permute(3, 0, 1, 2)[None] * 2 - 1).contiguous()
    with wgvae.Vae.from_pretrained(seedvr, family="seedvr2", device="cpu") as judge:
        close(encoded.numpy(), judge.clip().encode(frames))


def test_latents_of_ltx2_are_in_the_diffusion_models_scale(
    nodes: dict[str, Any], comfy: Comfy, tmp_path: Path
) -> None:
    pytest.importorskip("diffusers")
    from test_diffusers_classes import CASES, saved

    saved(CASES["ltx-2"], tmp_path)
    vae = load(nodes, comfy, tmp_path)
    assert vae.temporal_compression_decode() == vae.spacial_compression_decode() == 8
    latents = normal(9, 1, 8, 2, 2, 2)
    with wgvae.Vae.from_pretrained(tmp_path, device="cpu") as judge:
        frames = judge.clip().decode(latents)
        assert frames.shape == (9, 16, 16, 3)
        assert np.abs(core_decode(vae, latents).numpy() * 255 - frames).max() <= 0.5 + 1e-3
        # As ComfyUI's nodes around its upsampler of latents do.
        statistics = vae.first_stage_model.per_channel_statistics
        own = statistics.un_normalize(torch.from_numpy(latents))
        assert not torch.equal(own, torch.from_numpy(latents))
        close(statistics.normalize(own).numpy(), latents)
        unscaled = judge.clip().decode(own.numpy(), unscaled=True)
        assert np.abs(unscaled.astype(int) - frames).max() <= 1
    sound = torch.zeros(1, 8, 4)
    nested = SimpleNamespace(is_nested=True, unbind=lambda: (torch.from_numpy(latents), sound))
    images = call(nodes, "WgvaeDecode", samples={"samples": nested}, vae=vae)
    assert torch.equal(images, core_decode(vae, latents).flatten(0, -4))


def test_what_the_inputs_of_nodes_may_be(nodes: dict[str, Any]) -> None:
    vae = call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", family=" FLUX1 ", memory_budget=" 300 MiB ")
    assert vae.memory_budget == "300 MiB"
    with pytest.raises(wgvae.errors.InputError, match="^image: expected at least 8x8 pixels, found 7x70$"):
        call(nodes, "WgvaeEncode", pixels=torch.zeros(1, 70, 7, 3), vae=vae)
    with pytest.raises(wgvae.errors.InputError, match='^memory_budget: expected bytes, .*, found "2 gigs"$'):
        call(nodes, "WgvaeLoader", vae_name="demo.safetensors", precision="f32", memory_budget="2 gigs")


def test_a_tiny_autoencoder_takes_any_number_of_frames(
    nodes: dict[str, Any], comfy: Comfy, taehv: Path
) -> None:
    vae = load(nodes, comfy, taehv, family="taew2_1")
    pixels = torch.from_numpy(normal(6, 6, 16, 16, 3)).sigmoid()
    encoded = call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"]
    assert encoded.shape == (1, 16, 2, 2, 2)
    frames = (pixels.permute(3, 0, 1, 2)[None] * 2 - 1).contiguous()
    filled = torch.cat([frames, frames[:, :, -1:], frames[:, :, -1:]], dim=2)
    with wgvae.Vae.from_pretrained(taehv, family="taew2_1", device="cpu") as judge:
        assert np.array_equal(encoded.numpy(), judge.clip().encode(filled, unscaled=True))


def test_a_picture_is_one_latent_of_taeh3(
    nodes: dict[str, Any], comfy: Comfy, taeh3: Path
) -> None:
    vae = load(nodes, comfy, taeh3, family="taeh3")
    pixels = torch.from_numpy(normal(6, 5, 32, 32, 3)).sigmoid()
    encoded = vae.encode(pixels[:1])
    assert encoded.shape == (1, 24, 1, 2, 2)
    assert torch.equal(encoded, vae.encode(pixels)[:, :, :1])
    assert vae.decode(encoded).shape == (1, 1, 32, 32, 3)


def test_opacity_and_layers(nodes: dict[str, Any], comfy: Comfy, layered: Path) -> None:
    latents = normal(8, 1, 16, 3, 2, 3)
    vae = load(nodes, comfy, layered)
    images = call(nodes, "WgvaeDecode", samples={"samples": torch.from_numpy(latents)}, vae=vae)
    assert images.shape == (3, 16, 24, 4)
    with wgvae.Vae.from_pretrained(layered, device="cpu") as judge:
        pictures = judge.decode(latents, unscaled=True)
        assert np.abs(images.numpy() * 255 - pictures).max() <= 0.5 + 1e-3
        # ComfyUI's latents of this model have an axis for the frame.
        encoded = call(nodes, "WgvaeEncode", pixels=images, vae=vae)["samples"]
        assert encoded.shape == (3, 16, 1, 2, 3)
        own = judge.encode(images.movedim(-1, 1) * 2 - 1, unscaled=True)
        assert np.array_equal(encoded[:, :, 0].numpy(), own)
    opaque = images.clone()
    opaque[..., 3] = 1
    assert torch.equal(*(call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"] for pixels in (opaque, images[..., :3])))


def close(found: Floats, wanted: Floats) -> None:
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize(("family", "scale", "shift"), [("taesd3", 1.5305, 0.0609), ("taef1", 0.3611, 0.1159)])
def test_tiny_autoencoders(
    nodes: dict[str, Any], comfy: Comfy, taesd3: Path, family: str, scale: float, shift: float
) -> None:
    """A tiny autoencoder gets (own - shift) * scale, as in ComfyUI.

    ``own`` are latents in the scale of the big VAE.
    """
    diffusers = pytest.importorskip("diffusers")
    judge = diffusers.AutoencoderTiny.from_pretrained(taesd3)
    own = torch.from_numpy(normal(6, 2, 16, 3, 4)) * 3
    pixels = torch.from_numpy(normal(7, 1, 24, 32, 3)).sigmoid()
    with torch.no_grad():
        wanted = judge.decode((own - shift) * scale).sample
        latents = judge.encode(pixels.movedim(-1, 1) * 2 - 1).latents / scale + shift
    vae = load(nodes, comfy, taesd3, family=family)
    images = call(nodes, "WgvaeDecode", samples={"samples": own}, vae=vae)
    close(images.numpy(), (wanted.movedim(1, -1) / 2 + 0.5).clamp(0, 1).numpy())
    close(call(nodes, "WgvaeEncode", pixels=pixels, vae=vae)["samples"].numpy(), latents.numpy())


def test_tiny_autoencoders_need_a_family_for_the_own_latents_of_a_vae(
    nodes: dict[str, Any], comfy: Comfy, taesd3: Path
) -> None:
    vae = load(nodes, comfy, taesd3)
    with pytest.raises(wgvae.errors.InputError, match="taesd3, taef1"):
        core_decode(vae, normal(6, 1, 16, 3, 4))
    with pytest.raises(wgvae.errors.InputError, match="taesd3, taef1"):
        call(nodes, "WgvaeEncode", pixels=torch.zeros(1, 24, 32, 3), vae=vae)
