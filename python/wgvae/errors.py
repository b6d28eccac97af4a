"""What can go wrong: exceptions whose fields say what was expected and what was found."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Any error of wgvae. Its text names the thing, what was expected and what was found."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self._fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        # An OSError would make a text of its own from its fields.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), self._fields)


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    """What was pickled."""
    return kind(message, **fields)


class InputError(Error, ValueError):
    """An argument does not fit: ``what`` it is, what was ``expected`` and what was ``found``."""

    what: str
    expected: str
    found: str


class FormatError(Error):
    """A ``file`` is not what its name or its header says: ``problem``."""

    file: str
    problem: str


class TensorError(Error):
    """``tensor`` of a file has another shape, type or content than the model needs: ``expected``, ``found``."""

    tensor: str
    expected: str
    found: str


class MissingTensorsError(Error):
    """The model needs ``tensors`` that ``file`` does not have."""

    file: str
    tensors: list[str]


class ConfigError(Error):
    """``field`` of a config.json is missing or not supported: ``expected``, ``found``."""

    field: str
    expected: str
    found: str


class BudgetError(Error, MemoryError):
    """No plan for an image of ``width`` by ``height`` pixels keeps ``budget`` bytes. ``smallest`` is what was found to do, and would take ``seconds``."""

    budget: int
    smallest: int
    seconds: float
    width: int
    height: int


class TooLargeError(Error):
    """``what`` needs ``needed`` bytes, and there are ``limit``."""

    what: str
    needed: int
    limit: int


class NotFiniteError(Error, ArithmeticError):
    """The result is not finite, first at ``column``, ``row``: what went in outgrew the precision."""

    column: int
    row: int


class HostMemoryError(Error, MemoryError):
    """The host has no ``needed`` bytes of memory for ``what``."""

    what: str
    needed: int


class FileError(Error, OSError):
    """``filename`` could not be read: ``strerror``, ``errno``."""


class ModelNotFoundError(FileError, FileNotFoundError):
    """There is no model at ``filename``."""


class Cancelled(Error):
    """The work was stopped."""


class DeviceError(Error, RuntimeError):
    """The GPU, its driver, or its absence."""


class NoAdapterError(DeviceError):
    """No adapter is what was asked for: ``reason``."""

    reason: str


class AdapterTooSmallError(DeviceError):
    """``adapter`` has ``found`` of ``limit``, and every plan needs ``needed``."""

    adapter: str
    limit: str
    needed: int
    found: int


class DeviceRefusedError(DeviceError):
    """``adapter`` gave no device: ``reason``."""

    adapter: str
    reason: str


class DeviceMemoryError(DeviceError, MemoryError):
    """The GPU had no memory while ``doing``: ``reason``."""

    doing: str
    reason: str


class DeviceLostError(DeviceError):
    """The GPU disappeared while ``doing``: ``reason``. Open the model again."""

    doing: str
    reason: str


class DeviceFailedError(DeviceError):
    """The GPU failed while ``doing``: ``reason``. A bug here or in the driver."""

    doing: str
    reason: str


class InternalError(Error, RuntimeError):
    """A bug of wgvae. The object that raised it is of no more use; others are not concerned."""
