"""Which names a Lua chunk takes from outside, which it declares at its top, and which it assigns.

Enough of Lua 5.1 for the engine's scripts: blocks open and close scopes, and a name belongs to the
innermost `local`, parameter or loop variable of its spelling. A `local` counts from its own
statement on, so `local count = count(...)` is read as the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<skip>\s+|--\[\[.*?\]\]|--[^\n]*)"
    r"|(?P<text>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|\[\[.*?\]\])"
    r"|(?P<number>0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\.\.\.|\.\.|==|~=|<=|>=|.)",
    re.DOTALL,
)
_KEYWORDS = frozenset(
    (
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in"),
        *("local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    )
)


class Use(NamedTuple):
    """One mention of a name that is not declared in an inner scope."""

    name: str
    at: int
    """Where in the text."""
    is_assigned: bool


class Names(NamedTuple):
    """What a chunk says."""

    declared: set[str]
    """At its top, with `local`."""
    uses: list[Use]
    """Of names that are declared at its top, or nowhere."""

    @property
    def free(self) -> set[str]:
        """Names that must come from outside."""
        return {use.name for use in self.uses} - self.declared


class _Token(NamedTuple):
    text: str
    at: int
    is_name: bool


def names_in(text: str) -> Names:
    """Read a chunk."""
    return _Reader(list(_tokens(text))).read()


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "skip":
            word = found.group()
            is_name = found.lastgroup == "name" and word not in _KEYWORDS
            is_text = found.lastgroup == "text"
            yield _Token("''" if is_text else word, found.start(), is_name)


class _Reader:
    """Goes through the tokens with the scopes that are open."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = [*tokens, _Token("", 0, is_name=False)]
        self.at = 0
        self.scopes: list[set[str]] = [set()]
        self.uses: list[Use] = []
        self.braces: list[str] = []

    def read(self) -> Names:
        while self.at < len(self.tokens) - 1:
            self._next()
        return Names(self.scopes[0], self.uses)

    def _next(self) -> None:
        token = self.tokens[self.at]
        self.at += 1
        if token.is_name:
            self._mention(token)
        else:
            self._sign(token.text)

    def _sign(self, word: str) -> None:
        if word in ("{", "("):
            self.braces.append(word)
        elif word in ("}", ")"):
            self.braces.pop()
        elif word == "local":
            self._local()
        elif word == "function":
            self._function()
        elif word == "for":
            self._open(self._list())
            self._until("do")
        elif word in ("do", "then", "repeat"):
            self._open(())
        elif word in ("end", "until", "elseif", "else"):
            self.scopes.pop()
            if word == "else":
                self._open(())

    def _local(self) -> None:
        if self.tokens[self.at].text == "function":
            self.at += 1
            self.scopes[-1].add(self.tokens[self.at].text)
            self.at += 1
            self._parameters()
        else:
            self.scopes[-1].update(self._list())

    def _function(self) -> None:
        if self.tokens[self.at].is_name:
            self._mention(self.tokens[self.at], is_assigned=True)
            self.at += 1
        self._parameters()

    def _parameters(self) -> None:
        self.at += 1
        self._open(self._list())
        self.at += 1

    def _list(self) -> list[str]:
        """Names and commas, up to something else."""
        found: list[str] = []
        while self.tokens[self.at].is_name or self.tokens[self.at].text in (",", "..."):
            found += [self.tokens[self.at].text] if self.tokens[self.at].is_name else []
            self.at += 1
        return found

    def _until(self, word: str) -> None:
        """What a loop goes through is read outside its scope."""
        inner = self.scopes.pop()
        while self.tokens[self.at].text != word:
            self._next()
        self.at += 1
        self.scopes.append(inner)

    def _open(self, names: list[str] | tuple[()]) -> None:
        self.scopes.append(set(names))

    def _mention(self, token: _Token, *, is_assigned: bool = False) -> None:
        before, after = self.tokens[self.at - 2].text, self.tokens[self.at].text
        if before in (".", ":") and not is_assigned:
            return
        if after == "=" and self.braces and self.braces[-1] == "{":
            return  # a field
        if any(token.text in scope for scope in self.scopes[1:]):
            return
        self.uses.append(Use(token.text, token.at, is_assigned or self._is_target()))

    def _is_target(self) -> bool:
        """Whether names and commas lead from here to an equals sign, in a statement."""
        ahead = self.at
        while self.tokens[ahead].text == "," and self.tokens[ahead + 1].is_name:
            ahead += 2
        return self.tokens[ahead].text == "=" and not self.braces
