"""Plugin of pytest that runs diffusers' own pipeline tests without a network, and on wgvae.

    pytest -p upstream.plugin --wgvae cpu ~/diffusers/tests/pipelines/flux/test_pipeline_flux.py

With ``--wgvae`` and a device, each ``get_dummy_components`` gives wgvae's VAE with the weights of
diffusers' VAE. Without it, the tests run as they are: ``upstream.own_tests`` compares the two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from upstream.stand_ins import offline
from wgvae.diffusers._swap import CLASSES

SWAPPED = pytest.StashKey[int]()
"""Number of VAEs that were swapped."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wgvae", metavar="DEVICE", help="run VAEs on wgvae, on this device of it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Wraps ``get_dummy_components`` of the classes that define it."""
    device = config.getoption("--wgvae")
    config.stash[SWAPPED] = 0
    if device is None:
        return
    kinds = {
        base
        for item in items
        if isinstance(item, pytest.Function) and item.cls is not None
        for base in item.cls.__mro__
        if "get_dummy_components" in vars(base)
    }
    for kind in kinds:
        original = vars(kind)["get_dummy_components"]
        setattr(kind, "get_dummy_components", _swapping(original, device, config))


def _swapping(original: Callable[..., Any], device: str, config: pytest.Config) -> Callable[..., Any]:
    """Returns ``get_dummy_components`` with wgvae's VAEs instead of torch's."""

    @functools.wraps(original)
    def get_dummy_components(*arguments: Any, **keywords: Any) -> Any:
        components = original(*arguments, **keywords)
        for name, part in components.items():
            kind = CLASSES.get(type(part).__name__)
            if kind is not None and not isinstance(part, kind):
                components[name] = kind.from_torch(part, device=device, precision="f32")
                config.stash[SWAPPED] += 1
        return components

    return get_dummy_components


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Serves stand-ins for names of the Hub while tests run."""
    with offline():
        return (yield)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--wgvae"):
        terminalreporter.write_line(f"{config.stash[SWAPPED]} VAEs ran on wgvae")
