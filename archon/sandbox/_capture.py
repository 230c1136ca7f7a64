"""Two output streams of a running program, each kept up to a limit and counted beyond it.

Past the limit the bytes are still taken and thrown away: an engine whose reader stops cannot be stopped quickly
(a container that floods an unread stream takes ten seconds and more to kill).
"""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">BxxxL")


class Capture:
    """Collects stdout and stderr up to `limit` bytes each. Used by one thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._streams = {1: bytearray(), 2: bytearray()}
        self.overflowed = False

    def add(self, stream: int, data: bytes | memoryview) -> None:
        """Take some bytes of stream 1 or 2; what is beyond the limit is dropped and marks the overflow."""
        kept = self._streams[stream]
        room = self._limit - len(kept)
        if len(data) > room:
            self.overflowed = True
        kept += data[:room]

    @property
    def stdout(self) -> bytes:
        """Return what was kept of stdout."""
        return bytes(self._streams[1])

    @property
    def stderr(self) -> bytes:
        """Return what was kept of stderr."""
        return bytes(self._streams[2])


class Demultiplexer:
    """Splits the container engine's one stream (8-byte header: stream, length) into a capture's two."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._header = bytearray()
        self._stream = 0
        self._left = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes as they came from the socket, cut anywhere.

        Raises:
            ConnectionError: a header names a stream other than stdout and stderr.
        """
        view = memoryview(data)
        while view:
            if self._left:
                part = view[: self._left]
                self._capture.add(self._stream, part)
                self._left -= len(part)
                view = view[len(part) :]
                continue
            need = _HEADER.size - len(self._header)
            self._header += view[:need]
            view = view[need:]
            if len(self._header) == _HEADER.size:
                self._stream, self._left = _HEADER.unpack(self._header)
                self._header.clear()
                if self._stream not in (1, 2):
                    raise ConnectionError(f"the engine's stream names stream {self._stream!r}; valid: 1, 2")
