# SPDX-License-Identifier: Apache-2.0
"""Forwards a stream of server-sent events, and ends it properly if the sender dies.

Clients get whole events only. If a stream stops before its last event, the caller sends the event of
error_event() instead of the rest. This module imports neither Ray nor HTTP.
"""

import json
import re
from typing import List


class EventStream:
    """Splits one stream's bytes into events, and knows whether the last event has come."""

    # path: the request's, with or without a query. It determines the interface: OpenAI's completions,
    # chat or responses, or Anthropic's messages.
    def __init__(self, path: str):
        self._path = path
        self._held = b""
        self._last = b""

    def push(self, data: bytes) -> bytes:
        """Returns the events that are now complete, unchanged. An event ends with two newlines, as
        outrider's server writes them."""
        self._held += data
        end = self._held.rfind(b"\n\n")
        if end < 0:
            return b""
        whole, self._held = self._held[:end + 2], self._held[end + 2:]
        self._last = whole[:-2].rpartition(b"\n\n")[2]
        return whole

    def is_finished(self) -> bool:
        """Returns whether the stream so far ends with the interface's last event, or with an error
        that the server sent."""
        name, data = _fields(self._last)
        # The server writes the key "error" first, without blanks.
        if name == "error" or data.startswith('{"error"'):
            return True
        if _is(self._path, "/v1/messages"):
            return name == "message_stop"
        if _is(self._path, "/v1/responses"):
            return name in ("response.completed", "response.incomplete", "response.failed")
        return data == "[DONE]"

    def error_event(self, message: str) -> bytes:
        """Returns the event that a client gets in place of the rest."""
        if _is(self._path, "/v1/messages"):
            return _event({"type": "error", "error": {"type": "api_error", "message": message}}, "error")
        if _is(self._path, "/v1/responses"):
            found = re.search(r'"sequence_number":\s*(\d+)', _fields(self._last)[1])
            return _event({"type": "error", "code": "server_error", "message": message, "param": None,
                           "sequence_number": int(found.group(1)) + 1 if found else 0}, "error")
        return _event(error_body(self._path, 502, message))


def error_body(path: str, status: int, message: str) -> dict:
    """Returns an error in the format of the interface to which `path` belongs. status: the HTTP
    status, which determines the error's type."""
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": "overloaded_error" if status in (429, 503) else "api_error",
                                           "message": message}}
    kind = {404: "not_found_error", 429: "rate_limit_error", 503: "unavailable_error"}.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _is(path: str, name: str) -> bool:
    return path.partition("?")[0].rstrip("/") == name


def _event(data: dict, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


# Returns an event's name and its data; lines of data are joined.
def _fields(event: bytes):
    name = ""
    data: List[str] = []
    for line in event.decode("utf-8", "replace").split("\n"):
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
    return name, "\n".join(data)
