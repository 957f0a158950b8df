# SPDX-License-Identifier: Apache-2.0
"""Replicas for prompts, broken streams; with Ray installed, clusters of two nodes."""

import collections
import json
import os
import signal
from pathlib import Path

import pytest

from conftest import is_running, wait_until
from outrider.ray.answer_file import read_answers
from outrider.ray.batch_job import seed_of
from outrider.ray.event_stream import EventStream
from outrider.ray.prompt_key import in_turn, key_of, ranked

MODELS = Path(__file__).resolve().parents[2] / "models"


def keys_in(folder):
    return [answer["key"] for answer in read_answers(folder)]


# --- replicas


def chat(*contents, **more):
    return json.dumps({"messages": [{"role": "user", "content": content} for content in contents], **more}).encode()


def test_beginnings_decide_the_key():
    long = "You are a helpful assistant. " * 20
    assert key_of(chat(long, "one", temperature=1), 256) == key_of(chat(long, "two"), 256)
    assert key_of(chat("a", "one"), 256) != key_of(chat("b", "one"), 256)
    assert key_of(chat("a", tools=[{"x": 1}]), 256) != key_of(chat("a"), 256)
    for prompt in ("text", ["text"], [1, 2, 3]):
        body = json.dumps({"prompt": prompt, "max_tokens": 3}).encode()
        assert key_of(body, 64) == key_of(json.dumps({"max_tokens": 4, "prompt": prompt}).encode(), 64)
    for odd in (b"", b"\xff", b"[1]", b"{}", b'{"prompt": null}'):
        key_of(odd, 16)


def test_keys_are_dealt_out_and_stay():
    names = [f"replica {number}" for number in range(4)]
    keys = [f"key {number}" for number in range(2000)]
    homes = {key: ranked(key, names)[0] for key in keys}
    counts = collections.Counter(homes.values())
    # 500 each are expected; the standard deviation is 19.4, and five of them are 97.
    assert all(403 <= counts[name] <= 597 for name in names), counts
    fewer = names[1:]
    assert all(ranked(key, fewer)[0] == homes[key] for key in keys if homes[key] != names[0])


def test_loaded_replicas_are_passed_over():
    names = ["a", "b", "c", "d"]
    first, second = ranked("k", names)[:2]
    idle = dict.fromkeys(names, 0)
    assert in_turn("k", idle)[0] == first
    assert in_turn("k", idle, attempt=1)[0] == second
    assert sorted(in_turn("k", idle, attempt=7)) == names
    # 9 running: each may have ceil(1.25 * 10 / 4) = 4.
    assert in_turn("k", {**dict.fromkeys(names, 2), first: 3})[0] == first
    assert in_turn("k", {**dict.fromkeys(names, 2), first: 4})[0] == second
    assert in_turn("k", {**dict.fromkeys(names, 0), first: 4})[-1] == first
    assert in_turn("k", {}) == []


def test_events_are_passed_on_whole():
    events = [b'data: {"choices": [{"text": "\xc3\xa9"}]}\n\n', b'data: {"x": 1}\n\n', b"data: [DONE]\n\n"]
    whole = b"".join(events)
    for cut in range(len(whole)):
        stream = EventStream("/v1/completions")
        first = stream.push(whole[:cut])
        assert first in (b"", events[0], events[0] + events[1])
        assert not stream.is_finished()
        assert first + stream.push(whole[cut:]) == whole
        assert stream.is_finished()


@pytest.mark.parametrize("path, last, begun", [
    ("/v1/chat/completions", b"data: [DONE]\n\n", b'data: {"choices": []}\n\n'),
    ("/v1/messages", b'event: message_stop\ndata: {"type": "message_stop"}\n\n', b'event: ping\ndata: {}\n\n'),
    ("/v1/responses", b'event: response.completed\ndata: {"sequence_number": 9}\n\n',
     b'event: response.created\ndata: {"sequence_number":0}\n\n'),
])
def test_ends_of_streams(path, last, begun):
    stream = EventStream(path + "?x=1")
    stream.push(begun)
    assert not stream.is_finished()
    error = stream.error_event("gone")
    assert error.endswith(b"\n\n") and error.count(b"\n\n") == 1
    data = json.loads(error.partition(b"data: ")[2])
    if path == "/v1/messages":
        assert error.startswith(b"event: error\n") and data["error"]["message"] == "gone"
    elif path == "/v1/responses":
        assert data["message"] == "gone" and data["sequence_number"] == 1
    else:
        assert data["error"]["message"] == "gone"
    stream.push(last)
    assert stream.is_finished()
    stream = EventStream(path)
    stream.push(error)
    assert stream.is_finished(), "an error of the server's own is an end"


# --- the ingress, with replicas that follow a script


class Parts:
    """The result of a call of a replica: items, or an exception raised in their place."""

    def __init__(self, items):
        self.items = list(items)
        self.cancelled = False

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.items:
            raise StopAsyncIteration
        item = self.items.pop(0)
        if isinstance(item, BaseException):
            raise item
        return item

    def cancel(self):
        self.cancelled = True


class Replicas:
    """A handle whose calls follow one script after the other."""

    def __init__(self, *scripts):
        self.scripts = [Parts(script) for script in scripts]
        self.asked = []
        self.answer = self

    def options(self, **_):
        return self

    def remote(self, asked):
        self.asked.append((asked.attempt, asked.key, asked.path))
        return self.scripts[len(self.asked) - 1]


def ask_ingress(replicas, path="/v1/completions", body=b'{"prompt": "x"}', attempts=3):
    """(status, headers, body) of a request, and whether anything was sent before an exception propagated."""
    import asyncio

    pytest.importorskip("ray.serve", reason="ray's serve is not installed")
    from starlette.requests import Request

    from outrider.ray.serving import Ingress

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    sent = []

    async def send(message):
        sent.append(message)

    async def run():
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [(b"host", b"x")],
                 "http_version": "1.1", "scheme": "http", "server": ("x", 80), "asgi": {"spec_version": "2.4"}}
        answer = await Ingress(replicas, 64, attempts, 1000)(Request(scope, receive))
        await answer(scope, receive, send)

    asyncio.run(run())
    start = next(message for message in sent if message["type"] == "http.response.start")
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(message.get("body", b"") for message in sent)


def scripts():
    pytest.importorskip("ray.serve", reason="ray's serve is not installed")
    import ray.exceptions

    from outrider.ray.serving import Head, ReplicaFailed

    json_head = Head(200, {"content-type": "application/json"})
    stream_head = Head(200, {"content-type": "text/event-stream"})
    return json_head, stream_head, ReplicaFailed("gone"), ray.exceptions.RayError("died"), Head


EVENTS = [b'data: {"choices": [{"text": "one"}]}\n\n', b'data: {"choices": [{"text": "two"}]}\n\n', b"data: [DONE]\n\n"]


def test_a_failed_request_is_asked_again():
    head, _, gone, died, _ = scripts()
    for failure in ([gone], [died], [head, gone], [head, b"half of it", died], []):
        replicas = Replicas(failure, [head, b"whole ", b"answer"])
        status, headers, body = ask_ingress(replicas)
        assert (status, body, headers["x-outrider-attempts"]) == (200, b"whole answer", "2")
        assert [attempt for attempt, _, _ in replicas.asked] == [0, 1]
    status, headers, body = ask_ingress(Replicas([gone], [gone], [gone]))
    assert status == 503 and b"gone" in body and json.loads(body)["error"]["type"] == "unavailable_error"


def test_a_full_replica_is_left_for_another():
    head, _, _, _, Head = scripts()
    full = Head(429, {"content-type": "application/json"})
    replicas = Replicas([full, b"full"], [head, b"answer"])
    assert ask_ingress(replicas)[2] == b"answer" and replicas.scripts[0].cancelled
    # All are full: that is the answer. A request's own error is not retried.
    assert ask_ingress(Replicas([full, b"1"], [full, b"2"], [full, b"3"]))[::2] == (429, b"3")
    assert ask_ingress(Replicas([Head(400, {"content-type": "application/json"}), b"bad"]))[::2] == (400, b"bad")


def test_a_stream_is_asked_again_until_its_first_event_and_never_later():
    _, head, gone, died, _ = scripts()
    whole = b"".join(EVENTS)
    for failure in ([gone], [head, gone], [head, EVENTS[0][:9], died], [head]):
        status, headers, body = ask_ingress(Replicas(failure, [head, *EVENTS]))
        assert (body, headers["x-outrider-attempts"]) == (whole, "2")
    for items in ([EVENTS[0], gone], [EVENTS[0], EVENTS[1][:7], died], [EVENTS[0]], [EVENTS[0] + EVENTS[1][:5]]):
        replicas = Replicas([head, *items], [head, *EVENTS])
        status, _, body = ask_ingress(replicas)
        assert len(replicas.asked) == 1
        assert body.startswith(EVENTS[0]) and body.count(b"one") == 1 and b"two" not in body
        last = body[len(EVENTS[0]):]
        assert json.loads(last.partition(b"data: ")[2])["error"]["type"] == "server_error" and last.count(b"\n\n") == 1
    # A complete stream is unchanged, and an error of the server's own is not doubled.
    error = b'data: {"error": {"message": "NaN"}}\n\n'
    for items in (EVENTS, [EVENTS[0], error]):
        assert ask_ingress(Replicas([head, *items]))[2] == b"".join(items)


def test_what_is_not_passed_on():
    assert ask_ingress(Replicas(), path="/slots/0")[0] == 404
    assert ask_ingress(Replicas(), path="/metrics")[0] == 404
    assert ask_ingress(Replicas(), body=b"x" * 1001)[0] == 413


def test_the_ingress_takes_what_replicas_and_queues_hold():
    pytest.importorskip("ray.serve", reason="ray's serve is not installed")
    from ray.serve.config import AutoscalingConfig

    from outrider.ray import serve_app
    from outrider.ray.serving import _max_replicas

    for options, most in (({"num_replicas": 3}, 3), ({"num_replicas": "auto"}, 100),
                          ({"autoscaling_config": {"max_replicas": 7}}, 7), ({"autoscaling_config": {}}, 100),
                          ({"autoscaling_config": AutoscalingConfig(max_replicas=5)}, 5)):
        assert _max_replicas(options) == most
    app = serve_app(MODELS / "target", replicas=2, parallel=4, queue=3, max_waiting=5)
    assert app._bound_deployment.max_ongoing_requests == 2 * (4 + 3) + 5 + 1


# --- on Ray


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed (pip install 'ray[serve,data]')")
    pytest.importorskip("ray.serve", reason="ray's serve is not installed")
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S="60",
                      RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S="60")
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False,
                                                         "object_store_memory": 100 << 20})
    nodes.add_node(num_cpus=2, object_store_memory=100 << 20)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_map_prompts_gives_the_engine_s_texts(cluster, tmp_path):
    import outrider
    from outrider.ray import map_prompts

    prompts = [f"Chapter {number}. The old house" for number in range(10)] + ["x " * 2000]
    options = {"max_tokens": 12, "sampling": {"temperature": 1.0}, "seed": 3}
    result = map_prompts(prompts, MODELS / "target", out=tmp_path, workers=2, batch=3, **options)
    assert (result.n_answered, result.n_before, result.n_errors, result.n_lost) == (11, 0, 1, 0)
    answers = {answer["key"]: answer for answer in read_answers(tmp_path)}
    assert "at most" in answers["10"]["error"] or "context" in answers["10"]["error"]
    generator = outrider.Generator(outrider.Model(str(MODELS / "target"), threads=1))
    for number in range(10):
        alone = generator.generate(prompts[number], outrider.SamplingParams(temperature=1.0), max_tokens=12,
                                   seed=seed_of(3, str(number)))
        assert answers[str(number)]["ids"] == alone.ids.tolist()
        assert answers[str(number)]["text"] == alone.text
    again = map_prompts(prompts, MODELS / "target", out=tmp_path, workers=1, **options)
    assert (again.n_answered, again.n_before) == (0, 11)


def test_map_prompts_refuses_wrong_settings(cluster, tmp_path):
    from outrider import Error, UsageError
    from outrider.ray import map_prompts

    options = {"out": tmp_path, "workers": 1}
    with pytest.raises(UsageError, match=r"^\[sampling\] temperature: expected a number >= 0, got -1$"):
        map_prompts(["one"], MODELS / "target", sampling={"temperature": -1}, **options)
    with pytest.raises(Error, match="nothing"):
        map_prompts(["one"], MODELS / "nothing", **options)
    assert keys_in(tmp_path) == []
    assert map_prompts(["one"], MODELS / "target", max_tokens=2, **options).n_answered == 1


def test_map_prompts_survives_a_killed_worker(cluster, tmp_path):
    import ray

    import outrider.ray.batch_job as job

    class Killer:
        """Kills the process of the first worker once some answers exist."""

        done = False

        def __call__(self, n_answers):
            if not Killer.done and n_answers >= 6:
                Killer.done = True
                worker = ray.get(pools[0]._workers[0].__ray_call__.remote(lambda self: os.getpid()))
                # The environment at the process's start, before the engine was loaded.
                assert "OMP_WAIT_POLICY=passive" in Path(f"/proc/{worker}/environ").read_text().split("\0")
                os.kill(worker, signal.SIGKILL)

    pools = []
    original = job.RayPool

    def remembered(*arguments):
        pools.append(original(*arguments))
        return pools[-1]

    job.RayPool = remembered
    try:
        result = job.map_prompts([f"Number {number}" for number in range(60)], MODELS / "target", out=tmp_path,
                                 workers=2, batch=3, max_tokens=60, ignore_eos=True, on_batch=Killer())
    finally:
        job.RayPool = original
    assert Killer.done and result.n_lost >= 1 and result.n_answered == 60
    assert sorted(map(int, keys_in(tmp_path))) == list(range(60))


def test_replicas_answer_and_are_replaced(cluster):
    import urllib.request

    from ray import serve

    import outrider
    from outrider.ray import serve_app

    def ask(**fields):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/completions", json.dumps({"temperature": 0, **fields}).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
            return answer.read(), answer.headers

    port = 8473
    serve.start(proxy_location="HeadOnly", http_options={"port": port})
    try:
        serve.run(serve_app(MODELS / "target", "suffix", replicas=2, parallel=4), route_prefix="/")
        alone = outrider.Generator(outrider.Model(str(MODELS / "target"), threads=1)).generate(
            "She opened the letter, and", max_tokens=32)
        body, headers = ask(prompt="She opened the letter, and", max_tokens=32)
        assert json.loads(body)["choices"][0]["text"] == alone.text
        assert headers["x-outrider-attempts"] == "1"
        streamed, _ = ask(prompt="She opened the letter, and", max_tokens=32, stream=True)
        events = [json.loads(line[6:]) for line in streamed.split(b"\n")
                  if line.startswith(b"data: {")]
        assert "".join(event["choices"][0]["text"] for event in events if event["choices"]) == alone.text
        assert streamed.endswith(b"data: [DONE]\n\n")
        handle = serve.get_deployment_handle("OutriderReplica", "default")
        for _ in range(2):  # first the actor, then the server of a replica
            actor, server = handle.process_ids.remote().result()
            os.kill((actor, server)[_], signal.SIGKILL)
            wait_until(lambda: not is_running(server) and not is_running(actor))
            assert json.loads(ask(prompt="She opened the letter, and", max_tokens=32)[0])["choices"][0]["text"] == alone.text
    finally:
        serve.shutdown()
