"""Variants are found by their files: each public module of ``lexmem.variants`` is a type of that name."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from typing import Any

from lexmem.spec.errors import UserError, nearest
from lexmem.spec.section import Section

PACKAGE = "lexmem.variants"


def variant_types() -> list[str]:
    """Names of the files of ``lexmem/variants`` that do not start with an underscore; imports none of them."""
    spec = importlib.util.find_spec(PACKAGE)
    locations = spec.submodule_search_locations if spec else None
    return sorted(module.name for module in pkgutil.iter_modules(locations or []) if not module.name.startswith("_"))


def load_variant(name: str) -> type[Section]:
    """Import ``lexmem.variants.<name>`` and return its ``Config`` class.

    Raises:
        UserError: if there is no such file; the line names those there are and the nearest match.
    """
    if name not in variant_types():
        raise UserError(f"variant = {name!r}: no such file in lexmem/variants; {nearest(name, variant_types())}")
    return importlib.import_module(f"{PACKAGE}.{name}").Config


def resolve(label: str, values: Mapping[str, Any]) -> tuple[str, Section]:
    """Validate one block of ``configs``: the variant type it names (default: ``label``) and its parameters.

    Returns:
        The type's name and an instance of its ``Config``.

    Raises:
        UserError: naming ``configs.<label>`` and the key at fault.
    """
    where = f"params.yaml: configs.{label}"
    if not isinstance(values, Mapping):
        raise UserError(f"{where}: expected a block of keys, got {values!r}")
    name = values.get("variant", label)
    try:
        config = load_variant(name)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return name, config.read({key: value for key, value in values.items() if key != "variant"}, where)
