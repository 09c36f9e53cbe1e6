"""A provider that sends the demo's spans by OTLP, as an application's own would."""

from __future__ import annotations

from importlib.util import find_spec

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from twinspan.instrumentation.errors import MissingExtra

TIMEOUT_SECONDS = 5.0


def provider_for(endpoint: str) -> TracerProvider:
    """A provider whose spans go to an OTLP/HTTP endpoint.

    Args:
        endpoint: base URL, such as http://localhost:4318.

    Raises:
        MissingExtra: if the exporter is not installed.
    """
    package = "opentelemetry.exporter.otlp.proto.http"
    if not _is_installed(package):
        raise MissingExtra(package, extra="otlp")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=TIMEOUT_SECONDS
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "twinspan-demo"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
