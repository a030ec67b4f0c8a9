"""Values that fit a JSON schema, out of what a Spanish text says.

A property is filled by the words of its name: `client_name` with who speaks, `direccion` with an
address, and so on. What the text does not say is None where the schema allows it, else empty. An
enumeration takes the first of its values that the text contains.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_CAPITAL: Final = r"[A-ZÁÉÍÓÚÑ][\wáéíóúñ]+"
_FLAGS: Final = re.IGNORECASE
_FINDERS: Final = (
    (
        {"client", "customer", "cliente", "name", "nombre"},
        re.compile(rf"(?:[Ss]oy|[Mm]e llamo|[Hh]abla) ({_CAPITAL}(?: {_CAPITAL})?)"),
    ),
    (
        {"address", "direccion", "domicilio"},
        re.compile(rf"(?:en|calle|avenida|Av\.) ({_CAPITAL}(?: [\wáéíóúñ.]+)*? \d{{1,5}})"),
    ),
    ({"phone", "telefono", "celular"}, re.compile(r"(\+?\d[\d -]{6,}\d)")),
    ({"time", "hora"}, re.compile(r"a las (\d{1,2}(?::\d{2})?)", _FLAGS)),
    (
        {"date", "fecha", "day", "dia", "when"},
        re.compile(
            r"\b(hoy|pasado mañana|mañana|lunes|martes|miércoles|jueves|viernes|sábado)\b", _FLAGS
        ),
    ),
    (
        {"amount", "price", "precio", "monto", "total"},
        re.compile(r"(\d[\d.]*) ?(?:pesos|dólares)", _FLAGS),
    ),
    (
        {"description", "descripcion", "problem", "problema", "service", "servicio", "title"},
        re.compile(r"(?:necesito|quiero|hay que|se rompió) (.+?)(?:[.,;]|$)", _FLAGS),
    ),
    ({"urgent", "urgente"}, re.compile(r"\b(urgente|urgencia|cuanto antes|ya mismo)\b", _FLAGS)),
    ({"confidence", "confianza"}, re.compile(r"(.)")),
)
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+")
_CONFIDENCE: Final = 0.9
_EMPTY: Final[Mapping[str, Any]] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "null": None,
}  # fmt: skip
_EMPTY_TEXT: Final = {"date": "2024-01-01", "date-time": "2024-01-01T00:00:00Z", "time": "00:00:00"}


def fill(schema: Mapping[str, Any], text: str) -> Any:
    """A value that fits the schema."""
    return _Filler(schema.get("$defs", {}), text).value(schema, "")


class _Filler:
    def __init__(self, parts: Mapping[str, Any], text: str) -> None:
        self._parts, self._text = parts, text

    def value(self, node: Mapping[str, Any], name: str) -> Any:
        if "$ref" in node:
            return self.value(self._parts[node["$ref"].rpartition("/")[2]], name)
        if "anyOf" in node:
            return self._either(node["anyOf"], name)
        if "enum" in node:
            found = (one for one in node["enum"] if str(one).lower() in self._text.lower())
            return next(found, node["enum"][0])
        if "properties" in node:
            return {key: self.value(part, key) for key, part in node["properties"].items()}
        return self._plain(node, name)

    def _either(self, nodes: list[Mapping[str, Any]], name: str) -> Any:
        rest = [one for one in nodes if one.get("type") != "null"]
        is_said = any("enum" in one or "properties" in one or "$ref" in one for one in rest)
        if len(rest) < len(nodes) and not is_said and self._found(name) is None:
            return None
        return self.value(rest[0], name)

    def _plain(self, node: Mapping[str, Any], name: str) -> Any:
        kind, found = node.get("type", "string"), self._found(name)
        if found is None or kind not in ("string", "boolean", "integer", "number"):
            return _EMPTY_TEXT.get(node.get("format", ""), _EMPTY.get(kind, ""))
        if kind == "boolean":
            return True
        if kind == "string":
            return _EMPTY_TEXT.get(node.get("format", ""), found)
        if {"confidence", "confianza"} & _words(name):
            return _CONFIDENCE
        digits = re.sub(r"\D", "", found)
        return int(digits) if digits else 0

    def _found(self, name: str) -> str | None:
        """What the text says of a property."""
        for names, pattern in _FINDERS:
            if names & _words(name) and (match := pattern.search(self._text)):
                return match[1].strip()
        return None


def _words(name: str) -> set[str]:
    return {one.lower() for one in _WORDS.findall(name)}
