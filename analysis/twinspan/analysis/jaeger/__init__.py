"""Recorded spans on their way to Jaeger, by OTLP over HTTP."""

from twinspan.analysis.jaeger.sending import DEFAULT_ENDPOINT, Sent, send_spans

__all__ = ["DEFAULT_ENDPOINT", "Sent", "send_spans"]
