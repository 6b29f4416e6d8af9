"""A small checker of JSON against the schemas of an OpenAPI file: what the contract tests need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPECS = Path(__file__).resolve().parents[3] / "shared" / "specs"
OURS = Path(__file__).resolve().parent / "specs"
"""Extracts of our own, for a checkout beside which the published files do not lie."""

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


@dataclass(frozen=True)
class Spec:
    """One OpenAPI document."""

    document: dict[str, Any]

    def operation(self, method: str, path: str) -> dict[str, Any]:
        """The operation of a request. Raises AssertionError where there is none."""
        wanted = path.strip("/").split("/")
        for template, item in self.document["paths"].items():
            parts = template.strip("/").split("/")
            same = len(parts) == len(wanted) and all(
                a == b or a.startswith("{") for a, b in zip(parts, wanted, strict=True)
            )
            if same and method.lower() in item:
                return {"parameters": [], **item[method.lower()], "template": template}
        raise AssertionError(f"{method} {path} is not in the spec")

    def problems(self, schema: dict[str, Any], value: Any, where: str = "$") -> Iterator[str]:
        """What is wrong with a value."""
        schema = self.resolved(schema)
        for part in schema.get("allOf", ()):
            yield from self.problems(part, value, where)
        for key in ("anyOf", "oneOf"):
            if key in schema and all(list(self.problems(s, value, where)) for s in schema[key]):
                yield f"{where}: fits none of {key}"
        if "const" in schema and value != schema["const"]:
            yield f"{where}: is not {schema['const']!r}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is not one of {schema['enum']}"
        kinds = schema.get("type")
        if kinds is not None:
            kinds = [kinds] if isinstance(kinds, str) else kinds
            if not any(_is(value, kind) for kind in kinds):
                yield f"{where}: is no {'|'.join(kinds)}"
                return
        yield from self._inside(schema, value, where)

    def _inside(self, schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
        if isinstance(value, dict):
            known = schema.get("properties", {})
            yield from (f"{where}.{k}: is missing" for k in schema.get("required", ()) if k not in value)
            if schema.get("additionalProperties") is False:
                yield from (f"{where}.{k}: is not known" for k in value if k not in known)
            for key, inner in value.items():
                if key in known:
                    yield from self.problems(known[key], inner, f"{where}.{key}")
        elif isinstance(value, list) and "items" in schema:
            for place, inner in enumerate(value):
                yield from self.problems(schema["items"], inner, f"{where}[{place}]")
        elif isinstance(value, str):
            if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", 1 << 30):
                yield f"{where}: has a wrong length"
            if "pattern" in schema and not re.search(schema["pattern"], value):
                yield f"{where}: does not match {schema['pattern']}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            low, high = schema.get("minimum", value), schema.get("maximum", value)
            yield from () if low <= value <= high else (f"{where}: is out of range",)

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema that a reference leads to."""
        while "$ref" in schema:
            found: Any = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema


def _is(value: Any, kind: str) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES[kind])


def load(name: str) -> tuple[Spec, bool]:
    """A published file where it lies beside the checkout, else our extract; and whether it is published."""
    published = SPECS / name
    if published.exists():
        text = published.read_text()
        if name.endswith(".json"):
            return Spec(json.loads(text)), True
        import yaml

        return Spec(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))), True
    return Spec(json.loads((OURS / Path(name).with_suffix(".json").name).read_text())), False
