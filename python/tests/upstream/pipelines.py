"""Runs the VAE of every pipeline test class of diffusers on wgvae and on torch, and compares them.

``DIFFUSERS`` names a folder with diffusers' ``tests``, of the version that is installed:

    DIFFUSERS=~/diffusers PYTHONPATH=python/tests python -m upstream.pipelines

Every class that defines ``get_dummy_components`` counts. Its components are built without a
network, and its VAE encodes a picture and decodes latents in float32, bfloat16 and float16. Where
no component is missing, the whole pipeline runs, too, with torch's VAE and with wgvae's.
The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch

import wgvae
from upstream.compare import PRECISIONS, differences
from upstream.stand_ins import Absent, offline
from wgvae.diffusers import swap
from wgvae.diffusers._swap import CLASSES
from wgvae.errors import ConfigError

Known = tuple[str, dict[str, Any], dict[str, tuple[str, str]]]
"""Class that has a VAE, its settings, and the outcome and a text for each precision."""

PICTURES = 1e-3
"""Largest difference of whole pipelines' pictures of 0 to 1 in float32."""


def main() -> int:
    """Prints a line for each class and the counts, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("filter", nargs="?", default="", help="part of the names of classes to run")
    parser.add_argument("--device", default="cpu", help='wgvae\'s device, "cpu" or "gpu"')
    parser.add_argument("--vaes-only", action="store_true", help="run no whole pipelines")
    parser.add_argument("--write-configs", type=Path, help="write each VAE's settings to this file")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    diffusers.utils.logging.set_verbosity_error()
    diffusers.utils.logging.disable_progress_bar()
    folder = Path(os.environ["DIFFUSERS"]).expanduser()
    sys.path.insert(0, str(folder))
    counts: Counter[str] = Counter()
    known: dict[str, Known] = {}
    for kind in classes(folder):
        name = named(kind)
        if chosen.filter not in name:
            continue
        begin = time.monotonic()
        for outcome, text in results(kind, chosen.device, not chosen.vaes_only, known):
            counts[outcome] += 1
            print(f"{name}: {outcome}: {text}", flush=True)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    print(f"diffusers {diffusers.__version__}, torch {torch.__version__}, device {chosen.device}")
    print(f"{len(known):5} different VAEs")
    for outcome, count in sorted(counts.items()):
        print(f"{count:5} {outcome}")
    if chosen.write_configs:
        lines = [f" {json.dumps(name)}: {json.dumps(changed)}" for name, changed, _ in known.values()]
        chosen.write_configs.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    if not known:
        print(f"expected classes with a VAE in {folder}, found none")
    return int(not known or any("FAILED" in outcome for outcome in counts))


def classes(folder: Path) -> Iterator[type]:
    """Yields the classes of diffusers' pipeline tests that define dummy components."""
    for path in sorted((folder / "tests" / "pipelines").rglob("test_*.py")):
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        if name.endswith("test_pipelines_common"):
            continue
        for kind in vars(importlib.import_module(name)).values():
            if inspect.isclass(kind) and kind.__module__ == name and "get_dummy_components" in vars(kind):
                yield kind


def named(kind: type) -> str:
    """Returns the name of a test class below tests/pipelines."""
    return f"{kind.__module__.removeprefix('tests.pipelines.')}.{kind.__name__}"


def results(
    kind: type, device: str, whole: bool, known: dict[str, Known]
) -> Iterator[tuple[str, str]]:
    """Yields outcomes and texts of the class, its VAEs by precision, and if ``whole`` its pipeline.

    VAEs of equal settings and weights are compared once: ``known`` keeps the results.
    """
    try:
        with offline(absent=True):
            test = kind()
            components = test.get_dummy_components()
    except Exception as error:
        yield "class not built", described(error)
        return
    vaes = [
        part
        for part in components.values()
        if type(part).__module__.startswith("diffusers.models.autoencoders.") and hasattr(part, "decode")
    ]
    engines = [part for part in vaes if type(part).__name__ in CLASSES]
    if not engines:
        lacking = ", ".join(type(part).__name__ for part in vaes)
        yield ("class whose VAE wgvae lacks", lacking) if vaes else ("class without a VAE", "")
        return
    passed = True
    for part in engines:
        refusal = refused(part, device)
        if refusal:
            yield "class whose VAE's settings wgvae refuses", refusal
            return
        key = digest(part)
        if key not in known:
            found = {each: of_vae(part, each, device) for each in PRECISIONS}
            known[key] = (named(kind), settings(part), found)
        for precision, (outcome, text) in known[key][2].items():
            passed &= outcome == "passed"
            yield f"{precision} {outcome}", f"{type(part).__name__}: {text}"
    yield f"class {'passed' if passed else 'FAILED'}", ", ".join(type(each).__name__ for each in vaes)
    if whole:
        yield of_pipeline(test, components, device)


def refused(vae: Any, device: str) -> str | None:
    """Returns wgvae's error if it refuses a VAE's settings, or None."""
    try:
        CLASSES[type(vae).__name__].from_torch(vae, device=device)
    except ConfigError as error:
        return f"{type(vae).__name__}: {described(error)}"
    return None


def settings(vae: Any) -> dict[str, Any]:
    """Returns a VAE's class and the settings that are not the defaults."""
    defaults = inspect.signature(type(vae).__init__).parameters
    known = {name: vae.config[name] for name in defaults if name in vae.config}
    changed = {name: value for name, value in known.items() if value != defaults[name].default}
    return {"class": type(vae).__name__, **changed}


def of_vae(vae: Any, precision: str, device: str) -> tuple[str, str]:
    """Compares a VAE in one precision."""
    try:
        found = list(differences(vae, precision, device))
    except Exception as error:
        return "FAILED", described(error)
    text = "; ".join(map(str, found))
    return ("passed" if all(each.passed for each in found) else "FAILED"), text


def digest(vae: Any) -> str:
    """Returns a text that tells a VAE's class, settings and weights from others."""
    digest = hashlib.sha256(json.dumps(settings(vae), sort_keys=True).encode())
    for name, weight in vae.state_dict().items():
        digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()


def of_pipeline(test: Any, components: dict[str, Any], device: str) -> tuple[str, str]:
    """Compares the pictures of the whole pipeline in float32."""
    missing = [key for key, part in components.items() if isinstance(part, Absent)]
    if missing:
        return "pipeline not run", f"{', '.join(missing)}: only on the Hub"
    try:
        with offline():
            pipe = test.pipeline_class(**components)
            pipe.set_progress_bar_config(disable=True)
            for part in components.values():
                if isinstance(part, torch.nn.Module):
                    part.eval()
            expected, again = output(test, pipe), output(test, pipe)
    except Exception as error:
        return "pipeline not run", f"torch: {described(error)}"
    if expected.size == 0 or not np.isfinite(expected).all() or not np.array_equal(expected, again):
        return "pipeline not run", "torch's own pictures are not finite, or not the same twice"
    try:
        with offline():
            swap(pipe, device=device, precision="f32")
            found = output(test, pipe)
    except Exception as error:
        return "pipeline FAILED", described(error)
    if found.shape != expected.shape:
        return "pipeline FAILED", f"expected {expected.shape}, found {found.shape}"
    difference = float(np.abs(found - expected).max())
    return ("pipeline passed" if difference <= PICTURES else "pipeline FAILED"), f"{difference:.1e}"


def output(test: Any, pipe: Any) -> Any:
    """Returns the pipeline's first output as an array of float64, with values of 0 to 1."""
    takes_device = "device" in inspect.signature(test.get_dummy_inputs).parameters
    inputs = test.get_dummy_inputs(*(["cpu"] if takes_device else []))
    torch.manual_seed(0)
    result = pipe(**inputs)[0]
    if isinstance(result, torch.Tensor):
        return result.double().numpy()
    pictures = np.asarray(result)
    return pictures.astype(np.float64) / (255 if pictures.dtype == np.uint8 else 1)


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}".replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
