# SPDX-License-Identifier: Apache-2.0
"""Runs several `outrider serve` as replicas of a Ray Serve application, behind one address."""

import asyncio
import logging
import os
import time
from dataclasses import dataclass
from typing import AsyncIterator, Dict, List, Mapping, Optional, Sequence

import ray.exceptions
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.exceptions import BackPressureError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from outrider import UsageError
from outrider.ray.event_stream import EventStream, error_body
from outrider.ray.prefix_router import Asked, PrefixRouter
from outrider.ray.prompt_key import key_of
from outrider.server_process import CLOSE_SECONDS, Server

_log = logging.getLogger("ray.serve")

# Headers of one hop; the next hop has its own (RFC 9110, 7.6.1). Bodies are decoded, and their
# length is computed anew.
_HOP_HEADERS = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
                "transfer-encoding", "upgrade", "host", "content-length", "expect", "accept-encoding"}

# How long parts of a stream are collected into one message. Each message between processes has a
# cost, and a screen shows 60 frames per second.
_GATHER_SECONDS = 1 / 60

# Statuses of a replica that is full or drains. Another replica may answer the request.
_ELSEWHERE = (429, 503)

_ATTEMPTS_HEADER = "x-outrider-attempts"

# The default number of texts that `outrider serve` decodes at a time, and of requests that wait in
# it.
_PARALLEL = 32
_QUEUE = 256

# The first pause between attempts; each further pause is twice as long. A full replica ends one of
# 32 texts of 256 tokens, 20 ms apart (docs/serve.md, 64 clients), every 0.16 s.
_PAUSE_SECONDS = 0.16
# The pauses of four attempts add up to 1.1 s. After that the client is told to retry in a second,
# the smallest value of the header.
_ATTEMPTS = 4
_RETRY_AFTER = {"retry-after": "1"}

# Prompts share at least a page of the KV cache, which holds 64 tokens. English text has 3.4 to 3.7
# bytes per token (measured: the novel Botchan, with two vocabularies of 32,000 tokens): 220 to 240
# bytes.
_PREFIX_BYTES = 256

# How often Ray looks for dead replicas, which it replaces. Until then a dead replica's share of
# requests takes a second attempt. Ray's default of 10 s would be longer than a small model takes to
# load.
_HEALTH_SECONDS = 2

# The limit of `outrider serve` (docs/serve.md).
_MOST_BODY_BYTES = 8 << 20

# Ray's default for num_replicas="auto".
_AUTO_REPLICAS = 100


@dataclass
class Head:
    """The head of a replica's answer; bytes follow."""

    status: int
    headers: Dict[str, str]


class ReplicaFailed(Exception):
    """The server of a replica did not complete its answer."""


class Replica:
    """One server, and the requests forwarded to it."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]):
        import aiohttp

        self._aiohttp = aiohttp
        self._session: Optional[aiohttp.ClientSession] = None
        # If the server ends, so does the replica: Ray then starts another.
        self._server = Server(["--host", "127.0.0.1", "--port", "0", *arguments], environment=environment,
                              on_line=_log.info, on_death=lambda status: os._exit(1))

    def process_ids(self) -> List[int]:
        """Returns the process ids of the replica and its server. For tests that kill them."""
        return [os.getpid(), self._server.pid]

    def check_health(self) -> None:
        if not self._server.is_alive():
            raise RuntimeError("the server has ended")

    async def answer(self, asked: Asked) -> AsyncIterator:
        """Yields the head, then the body's bytes as they come."""
        if self._session is None:
            self._session = self._aiohttp.ClientSession(
                # A connection for each request: a kept connection may be closed by the server at
                # that moment.
                auto_decompress=False, connector=self._aiohttp.TCPConnector(limit=0, force_close=True),
                timeout=self._aiohttp.ClientTimeout(total=None))
        try:
            # If the caller goes away this generator is cancelled, the connection is closed, and the
            # server ends the text.
            async with self._session.request(asked.method, self._server.url + asked.path, headers=asked.headers,
                                             data=asked.body or None) as answer:
                yield Head(answer.status, {name.lower(): value for name, value in answer.headers.items()
                                           if name.lower() not in _HOP_HEADERS})
                began = 0.0
                while data := await answer.content.readany():
                    yield data
                    wait = began + _GATHER_SECONDS - time.monotonic()
                    if wait > 0:
                        await asyncio.sleep(wait)
                    began = time.monotonic()
        except (self._aiohttp.ClientError, OSError) as error:
            raise ReplicaFailed(f"{type(error).__name__}: {error}") from None

    def __del__(self) -> None:
        if hasattr(self, "_server"):
            self._server.close()


class Ingress:
    """Forwards each request to the replica to which its prompt belongs. If that fails before a byte
    of the answer has been forwarded, another replica gets the request."""

    def __init__(self, replicas, prefix_bytes: int, attempts: int, max_body_bytes: int):
        self._replicas = replicas.options(stream=True)
        self._prefix_bytes = prefix_bytes
        self._attempts = attempts
        self._max_body_bytes = max_body_bytes

    async def __call__(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith("/slots"):
            return _error(path, 404, "slots are a single server's: there are several behind this address")
        if path == "/metrics":
            return _error(path, 404, "metrics are a single server's: Ray has the replicas' own")
        body = await request.body()
        if len(body) > self._max_body_bytes:
            return _error(path, 413, f"body: expected at most {self._max_body_bytes} bytes, got {len(body)}")
        asked = Asked(request.method, path + (f"?{request.url.query}" if request.url.query else ""),
                      {name: value for name, value in request.headers.items() if name not in _HOP_HEADERS},
                      body, key_of(body, self._prefix_bytes))
        failure = ""
        for attempt in range(self._attempts):
            if attempt > 0:
                await asyncio.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            asked.attempt = attempt
            is_last = attempt + 1 == self._attempts
            parts = self._replicas.answer.remote(asked)
            try:
                head = await parts.__anext__()
                if head.status in _ELSEWHERE and not is_last:
                    parts.cancel()
                    failure = f"status {head.status}"
                    continue
                if head.headers.get("content-type", "").startswith("text/event-stream"):
                    return await self._streamed(asked, head, parts)
                return self._whole(head, asked, b"".join([data async for data in parts]))
            except BackPressureError:
                return _error(path, 429, "too many requests wait", _RETRY_AFTER)
            except (ReplicaFailed, ray.exceptions.RayError, StopAsyncIteration) as error:
                failure = _told(error)
                _log.warning("%s %s: attempt %d failed: %s", request.method, path, attempt + 1, failure)
            except BaseException:
                parts.cancel()  # the client has gone, or this process ends
                raise
        return _error(path, 503, f"no replica answered; the last of {self._attempts} attempts: {failure}",
                      {**_RETRY_AFTER, _ATTEMPTS_HEADER: str(self._attempts)})

    @staticmethod
    def _whole(head: Head, asked: Asked, body: bytes) -> Response:
        return Response(body, head.status, {**head.headers, _ATTEMPTS_HEADER: str(asked.attempt + 1)})

    async def _streamed(self, asked: Asked, head: Head, parts) -> Response:
        """Forwards a stream from its first event on. Until then the request can be retried elsewhere."""
        stream = EventStream(asked.path)
        first = b""
        while not first:
            first = stream.push(await parts.__anext__())

        async def events() -> AsyncIterator[bytes]:
            failure = "it ended too early"
            try:
                yield first
                async for data in parts:
                    if whole := stream.push(data):
                        yield whole
            except (ReplicaFailed, ray.exceptions.RayError) as error:
                failure = _told(error)
            except BaseException:
                # The client has gone, or this process ends.
                parts.cancel()
                raise
            if not stream.is_finished():
                _log.warning("%s: a stream broke: %s", asked.path, failure)
                yield stream.error_event("the replica that wrote this answer failed in its middle; ask again")

        return StreamingResponse(events(), head.status, {**head.headers, _ATTEMPTS_HEADER: str(asked.attempt + 1)})


def _told(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[-1] or type(error).__name__


def _error(path: str, status: int, message: str, headers: Optional[Mapping[str, str]] = None) -> Response:
    return JSONResponse(error_body(path, status, message), status, dict(headers or {}))


def serve_app(model, drafter: Optional[str] = None, *, replicas: int = 1, threads: int = 1, name: str = "",
              weights: str = "", kv: str = "", parallel: int = _PARALLEL, queue: Optional[int] = None,
              max_waiting: int = _QUEUE, prefix_bytes: int = _PREFIX_BYTES, attempts: int = _ATTEMPTS,
              server_arguments: Sequence[str] = (),
              environment: Optional[Mapping[str, str]] = None, replica_options: Optional[Mapping] = None,
              ingress_options: Optional[Mapping] = None):
    """Returns a Ray Serve application: serve.run(serve_app("MODEL", "suffix", replicas=4, threads=8)).

    Each replica is a Ray actor with `threads` CPUs. It runs `outrider serve` as a child process on a
    loopback port of its machine. If either is killed the other also ends, and Ray starts another
    replica. The address is Ray Serve's (http://127.0.0.1:8000 unless serve.start sets another). It
    has the interfaces of docs/serve.md except /slots and /metrics, which belong to one server.

    Choice of replica: requests are routed by the first `prefix_bytes` bytes of their prompt or
    messages. So a replica has the beginning of a conversation in its KV cache. A replica that has
    more than 1.25 times its share of the running requests is skipped.

    Failures: if a request's replica dies, is full (429) or drains (503), another replica gets the
    request. This happens up to `attempts` attempts in all, as long as no part of the answer has
    been sent. A stream that breaks later ends with an error event in the format of its interface;
    nothing is sent twice. Answers have a header x-outrider-attempts.

    model, drafter, weights, kv: as for `outrider serve`; the paths must exist on every machine.
    name: the model's name in answers. parallel: number of texts that a replica decodes at a time.
    queue: number of requests that wait in a replica. None: the same as parallel, since a waiting
    request cannot move to a replica that becomes free. max_waiting: number of further requests that
    wait for a replica (one more gets 429).

    server_arguments: further arguments of `outrider serve`, such as ("--api-key-file", FILE),
    except host and port. environment: environment variables of the servers; OMP_WAIT_POLICY is
    "passive" by default, since replicas share processors. replica_options, ingress_options: options
    of Ray Serve's deployments, such as autoscaling_config or ray_actor_options.

    Raises UsageError. Thread-safe.
    """
    queue = parallel if queue is None else queue
    for what, value, least in (("replicas", replicas, 1), ("threads", threads, 1), ("parallel", parallel, 1),
                               ("queue", queue, 0), ("attempts", attempts, 1), ("prefix_bytes", prefix_bytes, 1)):
        if value < least:
            raise UsageError(f"[serve_app] {what}: expected {least} or more, got {value}")
    for flag in ("--host", "--port", "--model", "--models"):
        if any(argument == flag or argument.startswith(flag + "=") for argument in server_arguments):
            raise UsageError(f"[serve_app] server_arguments: expected none of host, port and model, got {flag}")
    arguments = ["--model", os.fspath(model), "--threads", str(threads), "--parallel", str(parallel),
                 "--queue", str(queue)]
    for flag, value in (("--drafter", drafter), ("--name", name), ("--weights", weights), ("--kv", kv)):
        if value:
            arguments += [flag, value]
    options = {
        "num_replicas": replicas,
        "ray_actor_options": {"num_cpus": threads},
        "max_ongoing_requests": parallel + queue,
        "max_queued_requests": max_waiting,
        "request_router_config": RequestRouterConfig(request_router_class=PrefixRouter),
        "health_check_period_s": _HEALTH_SECONDS,
        # Enough for the replica's requests to end, and then its server (Replica.__del__).
        "graceful_shutdown_timeout_s": 2 * CLOSE_SECONDS,
        **(replica_options or {}),
    }
    if "autoscaling_config" in options:
        del options["num_replicas"]
    replica = serve.deployment(name="OutriderReplica", **options)(Replica).bind(
        [*arguments, *server_arguments], {"OMP_WAIT_POLICY": "passive", **(environment or {})})
    # The ingress mostly waits: it reserves no processor. A request beyond the running and waiting
    # ones gets 429.
    max_requests = _max_replicas(options) * options["max_ongoing_requests"] + options["max_queued_requests"] + 1
    ingress = serve.deployment(name="Outrider", **{"max_ongoing_requests": max_requests,
                                                   "ray_actor_options": {"num_cpus": 0},
                                                   **(ingress_options or {})})(Ingress)
    return ingress.bind(replica, prefix_bytes, attempts, _MOST_BODY_BYTES)


def _max_replicas(options: Mapping) -> int:
    scaling = options.get("autoscaling_config")
    if scaling is not None:
        most = scaling.get("max_replicas") if isinstance(scaling, Mapping) else scaling.max_replicas
    else:
        most = options["num_replicas"]
    return most if isinstance(most, int) else _AUTO_REPLICAS
