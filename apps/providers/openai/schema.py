"""The JSON schema of a type, as OpenAI's strict mode wants it.

Objects allow no other properties and require all of theirs; what may be missing is a union with
None. Defaults are not understood. The root is an object itself, no reference to one.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_REFERENCE: Final = "#/$defs/{name}"
_WRONG: Final = re.compile(r"[^a-zA-Z0-9_-]")
_NAMED: Final = frozenset({"properties", "$defs"})
"""Where keys are names of the program's own, such as `default`."""


def strict_schema(kind: type) -> dict[str, Any]:
    """The schema of a msgspec struct, a dataclass or a TypedDict."""
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    reference = root.get("$ref", "")
    whole = dict(parts.get(reference.removeprefix("#/$defs/"), root))
    if whole.get("type") != "object" or "properties" not in whole:
        raise TypeError(f"the type of an answer must have fields, got {kind!r}")
    if others := {name: part for name, part in parts.items() if _is_used(name, parts)}:
        whole["$defs"] = others
    return _tightened(whole)


def schema_name(kind: type) -> str:
    """How the schema is called: letters, digits, underscores and hyphens, at most 64."""
    return _WRONG.sub("_", getattr(kind, "__name__", "answer"))[:64]


def _is_used(name: str, parts: dict[str, Any]) -> bool:
    """Whether a part is referred to from any; that of the root may be, too."""
    reference = msgspec.json.encode(_REFERENCE.format(name=name))
    return reference in msgspec.json.encode(parts)


def _tightened(node: Any) -> Any:
    if isinstance(node, list):
        return [_tightened(one) for one in node]
    if not isinstance(node, dict):
        return node
    tight = {name: _tightened(part) for name, part in node.items() if name not in _NAMED}
    tight.pop("default", None)
    for group in _NAMED & node.keys():
        tight[group] = {name: _tightened(part) for name, part in node[group].items()}
    if "properties" in tight:
        tight |= {"additionalProperties": False, "required": list(tight["properties"])}
    return tight
