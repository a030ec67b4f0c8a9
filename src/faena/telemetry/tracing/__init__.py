"""Spans of OpenTelemetry: of each enqueue, and of each attempt in the trace of its enqueue."""
