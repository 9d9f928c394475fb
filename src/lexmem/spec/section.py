"""The base of every parameter section: strict, frozen, and with errors that people can use."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from lexmem.spec.errors import UserError, nearest


class Section(BaseModel):
    """A block of parameters: no unknown keys, no values coerced from strings, no infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, values: Any, where: str) -> Self:
        """Validate ``values``; ``where`` (``presets/pocket.yaml: train``) opens every error line.

        Raises:
            UserError: naming the key, the value, what is allowed and the nearest match.
        """
        if not isinstance(values, dict):
            raise UserError(f"{where}: expected a block of keys, got {shortened(values)}")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            # A misspelt key comes first: what it was meant to be is also reported, as missing.
            errors = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
            raise UserError(f"{where}: " + _explain(cls, errors[0])) from None


def _explain(cls: type[BaseModel], error: dict) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}; {nearest(path[-1], _owner(cls, path[:-1]).model_fields)}"
    if error["type"] == "missing":
        return f"missing key {key!r}"
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if isinstance(error["input"], dict):  # a rule between several keys, which its message names
        return f"{key}: {message}" if key else message
    return f"{key} = {shortened(error['input'])}: {message}"


def _owner(cls: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """The section that the keys of ``path`` lead to."""
    for part in path:
        field = cls.model_fields.get(part)
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            break
        cls = field.annotation
    return cls


def shortened(value: Any) -> str:
    """The value as Python writes it, at most 80 characters of it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
