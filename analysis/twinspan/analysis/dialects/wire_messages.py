"""OTLP protobuf as it lies in files: bare messages, length-prefixed ones, compressed ones.

A file may be one message, several behind one another (which protobuf reads as one), or messages
each behind its length in four bytes, as a Collector's file exporter writes them; with its
compression switched on, each of those is a zstd frame. The outermost fields are walked here, so
that a file of any size is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, cast

import pyarrow as pa

_RESOURCE_SPANS: Final = 0x0A
"""The tag of field 1 of both `TracesData` and `ExportTraceServiceRequest`."""

_WITHIN: Final = frozenset({0x0A, 0x12, 0x1A})
"""Tags of the fields of `ResourceSpans`: resource, scope spans, schema URL."""

_PREFIX_BYTES: Final = 4
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_VARINT_BYTES: Final = 10


class Malformed(ValueError):
    """Bytes that are no message of this form."""


class CutOff(EOFError):
    """A message that ends before its length says."""


def looks_like_spans(beginning: bytes) -> bool:
    """Whether a file begins like OTLP protobuf of spans, bare or length-prefixed.

    >>> looks_like_spans(bytes([0x0A, 2, 0x0A, 0])), looks_like_spans(b'{"resourceSpans": []}')
    (True, False)
    """
    if beginning[:1] == b"\n":
        return _begins_resource_spans(beginning)
    inner = beginning[_PREFIX_BYTES:]
    return inner[:4] == _ZSTD_MAGIC or (
        beginning[:1] == b"\0" and inner[:1] == b"\n" and _begins_resource_spans(inner)
    )


def _begins_resource_spans(data: bytes) -> bool:
    """Whether the fields of the first `ResourceSpans` fit into each other, as far as is seen."""
    try:
        length, at = _varint(data, 1)
        end = at + length
        while at < min(end, len(data)):
            tag, at = data[at], at + 1
            if tag not in _WITHIN:
                return False
            length, at = _varint(data, at)
            at += length
        return at == end or at > len(data)
    except CutOff:
        return True
    except Malformed:
        return False


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in protobuf's variable length, and where it ends."""
    value = 0
    for place in range(_VARINT_BYTES):
        if at + place >= len(data):
            raise CutOff
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise Malformed("a number without an end")


def resource_spans(file: BinaryIO) -> Iterator[bytes]:
    """Each `ResourceSpans` of a file, still encoded; JSON documents as they are.

    Raises:
        Malformed: at the first byte that belongs to nothing.
        CutOff: where the file ends within a message.
    """
    first = file.read(1)
    if first == b"\n":
        yield from _bare(file, first)
        return
    while first:
        length = int.from_bytes(first + _exactly(file, _PREFIX_BYTES - 1))
        yield from _of_message(_exactly(file, length))
        first = file.read(1)


def _of_message(message: bytes) -> Iterator[bytes]:
    if message[:4] == _ZSTD_MAGIC:
        with pa.CompressedInputStream(pa.BufferReader(message), "zstd") as stream:
            message = stream.read()
    if message[:1] == b"{":
        yield message
        return
    with pa.BufferReader(message) as inside:
        source = cast(BinaryIO, inside)
        yield from _bare(source, source.read(1))


def _bare(file: BinaryIO, first: bytes) -> Iterator[bytes]:
    """The `ResourceSpans` of messages that follow each other without a length."""
    while first:
        if first[0] != _RESOURCE_SPANS:
            raise Malformed(f"an unknown field {first[0] >> 3}")
        yield _exactly(file, _length(file))
        first = file.read(1)


def _length(file: BinaryIO) -> int:
    data = b""
    while len(data) < _VARINT_BYTES:
        data += _exactly(file, 1)
        if data[-1] < 0x80:
            return _varint(data, 0)[0]
    raise Malformed("a number without an end")


_CHUNK: Final = 16 * 1024 * 1024


def _exactly(file: BinaryIO, size: int) -> bytes:
    """So many bytes. A length that is junk must not ask for that much memory at once."""
    pieces: list[bytes] = []
    while size > 0:
        piece = file.read(min(size, _CHUNK))
        if not piece:
            raise CutOff
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
