"""The base of every parameter section: strict, frozen, and with errors that people can use."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from lexmem.spec.errors import UserError, nearest


class Section(BaseModel):
    """A block of parameters. Unknown keys are refused and values are never coerced from strings."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def read(cls, values: Any, where: str) -> Self:
        """Validate ``values``; ``where`` (``presets/pocket.yaml: train``) opens every error line.

        Raises:
            UserError: naming the key, the value, what is allowed and the nearest match.
        """
        if not isinstance(values, dict):
            raise UserError(f"{where}: expected a block of keys, got {values!r}")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UserError(f"{where}: " + _explain(cls, error.errors()[0])) from None


def _explain(cls: type[BaseModel], error: dict) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        owner = cls
        for part in path[:-1]:
            field = owner.model_fields.get(part)
            if field is None or not isinstance(field.annotation, type):
                break
            owner = field.annotation
        return f"unknown key {key!r}; {nearest(path[-1], owner.model_fields)}"
    if error["type"] == "missing":
        return f"missing key {key!r}"
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{key} = {error['input']!r}: {message}" if key else message
