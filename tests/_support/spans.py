"""Spans of OpenTelemetry's own SDK, kept in memory, or in a file that processes share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import Tracer


class Spans:
    """A provider, and the spans that have ended."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        return self.provider.get_tracer("test")

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def everything(self) -> str:
        """All that would be exported."""
        return "\n".join(span.to_json() for span in self.ended)


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    own = span.parent
    return own is not None and (own.trace_id, own.span_id) == (
        parent.context.trace_id,
        parent.context.span_id,
    )


def linked(span: ReadableSpan) -> set[int]:
    """The ids of the spans that it has links to."""
    return {link.context.span_id for link in span.links}


# -- in processes ---------------------------------------------------------------------------------


def provider_to(path: str, *, holds: bool = False) -> TracerProvider:
    """A provider whose spans are lines of a file, which any number of processes append to.

    One that `holds` them writes after an hour, or when its program ends.
    """
    provider = TracerProvider()
    out = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - as long as the process
    exporter = ConsoleSpanExporter(out=out, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    later = BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000) if holds else None
    provider.add_span_processor(later or SimpleSpanProcessor(exporter))
    return provider


class Written(NamedTuple):
    """A span in a file."""

    name: str
    trace: str
    id: str
    parent: str | None
    attributes: dict[str, Any]


def written_in(path: Path) -> list[Written]:
    """The spans of a file, in the order in which they ended."""
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [_written(json.loads(line)) for line in lines if line.endswith("\n")]


def _written(span: dict[str, Any]) -> Written:
    context = span["context"]
    return Written(
        span["name"],
        context["trace_id"].removeprefix("0x"),
        context["span_id"].removeprefix("0x"),
        span["parent_id"] and span["parent_id"].removeprefix("0x"),
        span["attributes"],
    )
