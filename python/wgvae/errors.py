"""The exceptions of wgvae, whose fields say what was expected and what was found."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Base class of all errors. The text names the cause, what was expected and what was found."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self._fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        # OSError would build a text of its own from its fields.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), self._fields)


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    """Returns an error from its pickle."""
    return kind(message, **fields)


class InputError(Error, ValueError):
    """An argument ``what`` is wrong: the call ``expected`` one thing and ``found`` another."""

    what: str
    expected: str
    found: str


class FormatError(Error):
    """The content of ``file`` contradicts its name or its header: ``problem`` says how."""

    file: str
    problem: str


class TensorError(Error):
    """The shape, type or content of ``tensor`` in a file does not fit the model.

    ``expected`` and ``found`` describe it.
    """

    tensor: str
    expected: str
    found: str


class MissingTensorsError(Error):
    """The names ``tensors`` are missing in ``file``, and the model needs them."""

    file: str
    tensors: list[str]


class ConfigError(Error):
    """The ``field`` of a config.json is missing or not supported.

    ``expected`` and ``found`` are values of the field.
    """

    field: str
    expected: str
    found: str


class BudgetError(Error, MemoryError):
    """No plan for an image of ``width`` by ``height`` pixels fits in ``budget`` bytes.

    ``smallest`` is the smallest budget found, in bytes. A call with it takes about ``seconds``.
    """

    budget: int
    smallest: int
    seconds: float
    width: int
    height: int


class TooLargeError(Error):
    """A step, tensor or buffer ``what`` needs ``needed`` bytes, more than ``limit`` bytes."""

    what: str
    needed: int
    limit: int


class NotFiniteError(Error, ArithmeticError):
    """The result is not finite, first at the pixel ``column``, ``row``.

    The latents or weights exceeded the range of the precision.
    """

    column: int
    row: int


class HostMemoryError(Error, MemoryError):
    """The host lacks ``needed`` bytes of memory for ``what``."""

    what: str
    needed: int


class FileError(Error, OSError):
    """The file ``filename`` could not be read: ``strerror`` and ``errno`` say why."""


class ModelNotFoundError(FileError, FileNotFoundError):
    """No model exists at ``filename``."""


class Cancelled(Error):
    """The caller stopped the work."""


class DeviceError(Error, RuntimeError):
    """Base class of errors of the device or its driver."""


class NoAdapterError(DeviceError):
    """No adapter matches the request: ``reason`` says why."""

    reason: str


class AdapterTooSmallError(DeviceError):
    """The ``limit`` of ``adapter`` is ``found``, and every plan needs ``needed`` or more."""

    adapter: str
    limit: str
    needed: int
    found: int


class DeviceRefusedError(DeviceError):
    """The driver of ``adapter`` returned no device: ``reason`` says why."""

    adapter: str
    reason: str


class DeviceMemoryError(DeviceError, MemoryError):
    """The device ran out of memory while ``doing``: ``reason`` is the driver's text."""

    doing: str
    reason: str


class DeviceLostError(DeviceError):
    """The device was lost while ``doing``: ``reason`` is the driver's text.

    Open the model again.
    """

    doing: str
    reason: str


class DeviceFailedError(DeviceError):
    """The device failed while ``doing``: ``reason`` is the driver's text.

    It is a bug of wgvae or of the driver.
    """

    doing: str
    reason: str


class InternalError(Error, RuntimeError):
    """A bug of wgvae. Discard the object that raised it; other objects still work."""
