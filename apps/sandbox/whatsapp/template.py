"""Templates that Meta has approved, and whether a message fills one in as it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from apps.sandbox.whatsapp.graph_error import Refused

Header = Literal["text", "image", "video", "document"]

_BROKEN: Final = ("\n", "\t", "     ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedTemplate:
    """A template and what must be filled in."""

    name: str
    language: str = "es_AR"
    parameters: int = 0
    """How many its text has."""
    header: Header | None = None
    """What its header must be given; None: nothing."""
    buttons: tuple[Literal["url", "quick_reply"], ...] = ()
    """Those that must be given something, in order."""
    state: Literal["approved", "paused", "disabled"] = "approved"

    def check(self, components: Any) -> None:
        """Refuse what does not fill it in."""
        if self.state != "approved":
            code = {"paused": 132015, "disabled": 132016}[self.state]
            raise Refused(code, f"template {self.name} is {self.state}")
        if not isinstance(components, list):
            raise Refused(132012, "components must be a list")
        parts = [_object("component", one) for one in cast("list[Any]", components)]
        known = {"header", "body", "button"}
        if any(one.get("type") not in known for one in parts):
            raise Refused(132012, f"a component must be one of {', '.join(sorted(known))}")
        self._check_body([one for one in parts if one["type"] == "body"])
        self._check_header([one for one in parts if one["type"] == "header"])
        self._check_buttons([one for one in parts if one["type"] == "button"])

    def _check_body(self, bodies: list[Mapping[str, Any]]) -> None:
        given = [each for one in bodies for each in _parameters(one)]
        if len(bodies) > 1 or len(given) != self.parameters:
            details = f"body: number of localizable_params ({len(given)}) does not match the "
            raise Refused(132000, f"{details}expected number of params ({self.parameters})")
        for one in given:
            _check_value(one, "text")

    def _check_header(self, headers: list[Mapping[str, Any]]) -> None:
        given = [each for one in headers for each in _parameters(one)]
        if len(given) != (self.header is not None) or len(headers) > 1:
            raise Refused(132000, "header: number of params does not match")
        for one in given:
            _check_value(one, self.header or "")

    def _check_buttons(self, buttons: list[Mapping[str, Any]]) -> None:
        given = {one.get("index"): one.get("sub_type") for one in buttons}
        wanted = {str(index): kind for index, kind in enumerate(self.buttons)}
        if given != wanted or len(given) != len(buttons):
            raise Refused(132000, "button: params do not match those of the template")
        for one in buttons:
            values = _parameters(one)
            if len(values) != 1:
                raise Refused(132000, "button: each must have one param")
            _check_value(values[0], "text" if one["sub_type"] == "url" else "payload")


def _parameters(component: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = component.get("parameters")
    if not isinstance(given, list):
        raise Refused(132012, "parameters must be a list")
    return [_object("parameter", one) for one in cast("list[Any]", given)]


def _check_value(parameter: Mapping[str, Any], kind: str) -> None:
    if parameter.get("type") != kind:
        raise Refused(132012, f"a parameter of type {kind} was expected")
    value = parameter.get(kind)
    if kind in {"text", "payload"}:
        if not isinstance(value, str) or not value:
            raise Refused(131008, f"Parameter of type {kind} is missing {kind} value")
        if any(one in value for one in _BROKEN):
            details = "Param text cannot have new-line/tab characters or more than 4 spaces"
            raise Refused(132012, details)
    elif not isinstance(value, dict) or len({"id", "link"} & value.keys()) != 1:
        raise Refused(132012, f"{kind} must have an id or a link")


def _object(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Refused(132012, f"a {what} must be an object")
    return cast("dict[str, Any]", value)
