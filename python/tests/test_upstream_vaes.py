"""VAEs of diffusers' own pipeline tests, in float32, bfloat16 and float16.

``upstream/vaes.json`` has the settings of some. ``python -m upstream.pipelines`` runs all, and
writes such a file with ``--write-configs``.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
pytestmark = pytest.mark.extras

import wgvae.diffusers  # noqa: E402
from upstream.compare import PRECISIONS, differences  # noqa: E402

VAES = json.loads((Path(__file__).parent / "upstream" / "vaes.json").read_text())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", VAES)
def test_differs_from_torch_no_more_than_the_precision(name: str, precision: str) -> None:
    settings = dict(VAES[name])
    torch.manual_seed(0)
    own = getattr(diffusers, settings.pop("class"))(**settings)
    found = list(differences(own, precision, "cpu"))
    assert [each.half for each in found] == ["encode", "decode"]
    assert all(each.passed for each in found), "; ".join(map(str, found))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_wrong_weight_is_found(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = wgvae.diffusers.AutoencoderKL
    original = kind.from_torch

    def with_wrong_bias(model: Any, **keywords: Any) -> Any:
        changed = copy.deepcopy(model)
        changed.decoder.conv_out.bias.data[0] += 0.25
        return original(changed, **keywords)

    monkeypatch.setattr(kind, "from_torch", with_wrong_bias)
    torch.manual_seed(0)
    own = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=4)
    assert [each.passed for each in differences(own, precision, "cpu")] == [True, False]
