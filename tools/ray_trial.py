# SPDX-License-Identifier: Apache-2.0
"""Replicas and batch generation on a Ray cluster of two nodes on this machine, while processes are
killed.

    python3 tools/ray_trial.py MODEL [--drafter SPEC] [--seconds 300] [--clients 64] [--replicas 4]
                               [--prompts 500] [--figures FILE]

Two raylets with half of the replicas' CPUs each. Clients request greedy texts, every second one
streamed; halfway one replica is killed (SIGKILL). Every text is compared with the plain engine's; a
broken stream must be a prefix of it. Then map_prompts answers prompts; its driver is killed and run
again. Prints figures as JSON; exits with 1 if something is wrong.
"""
import argparse
import asyncio
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPENINGS = ["She opened the letter, and", "The carriage stopped before the house, and a servant",
            "It was late in the evening when the two brothers", "Nobody in the village had ever seen him before, but",
            "The old gentleman looked at her for a moment, and then", "\"I do not know what you mean,\" said",
            "When the winter came, the whole family", "There was a knock at the door, and"]


def prompts_of(n):
    """n different prompts, eight per beginning."""
    return [f"Chapter {number // 8 + 1}. {OPENINGS[number // 8 % len(OPENINGS)]} {'very ' * (number % 8)}" .rstrip()
            for number in range(n)]


def plain_texts(model, prompts, n_tokens):
    """{prompt: text} by the engine itself, without a drafter, in a process of its own."""
    script = ("import json, sys, outrider\n"
              "generator = outrider.Generator(outrider.Model(sys.argv[1]))\n"
              "prompts = json.load(sys.stdin)\n"
              "texts = {}\n"
              "for at in range(0, len(prompts), 16):\n"
              "    part = prompts[at:at + 16]\n"
              "    for prompt, result in zip(part, generator.generate(part, max_tokens=int(sys.argv[2]))):\n"
              "        texts[prompt] = result.text\n"
              "json.dump(texts, sys.stdout)\n")
    done = subprocess.run([sys.executable, "-c", script, model, str(n_tokens)], input=json.dumps(prompts), text=True,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


class Clients:
    """The clients' requests and their results."""

    def __init__(self, url, texts, n_tokens):
        self.url = url
        self.texts = texts
        self.n_tokens = n_tokens
        self.counts = collections.Counter()
        self.seconds = []
        self.longest_gap = 0.0  # between any two answers of the clients
        self.last = None
        self.wrong = []

    def _done(self, kind, began):
        now = time.monotonic()
        self.counts[kind] += 1
        self.seconds.append(now - began)
        if self.last is not None:
            self.longest_gap = max(self.longest_gap, now - self.last)
        self.last = now

    async def run(self, session, number, until):
        chance = random.Random(number)
        while time.monotonic() < until:
            prompt = chance.choice(list(self.texts))
            streams = chance.random() < 0.5
            began = time.monotonic()
            body = {"prompt": prompt, "temperature": 0, "max_tokens": self.n_tokens, "stream": streams}
            try:
                async with session.post(self.url + "/v1/completions", json=body) as answer:
                    if int(answer.headers.get("x-outrider-attempts", 1)) > 1:
                        self.counts["retried"] += 1
                    if answer.status != 200:
                        self.counts[f"status {answer.status}"] += 1
                    elif streams:
                        await self._streamed(answer, prompt, began)
                    else:
                        text = (await answer.json())["choices"][0]["text"]
                        self._judge(prompt, text, text == self.texts[prompt])
                        self._done("whole answers", began)
            except Exception as error:  # The connection broke, from a client's view.
                self.counts[f"connection: {type(error).__name__}"] += 1

    async def _streamed(self, answer, prompt, began):
        text, ended, failed = "", False, False
        async for line in answer.content:
            if line.startswith(b"data: [DONE]"):
                ended = True
            elif line.startswith(b"data: "):
                event = json.loads(line[6:])
                failed = failed or "error" in event
                for choice in event.get("choices", ()):
                    text += choice.get("text", "")
        if failed:
            self._judge(prompt, text, self.texts[prompt].startswith(text))
            self._done("broken streams", began)
        else:
            self._judge(prompt, text, ended and text == self.texts[prompt])
            self._done("streams", began)

    def _judge(self, prompt, text, right):
        if not right:
            self.counts["wrong"] += 1
            self.wrong.append((prompt, text))

    def figures(self):
        ordered = sorted(self.seconds)
        place = lambda share: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else None
        return {**self.counts, "seconds p50": place(0.5), "seconds p99": place(0.99),
                "longest time without an answer": round(self.longest_gap, 2)}


async def under_load(options, clients, handle):
    """Runs the clients, with a kill halfway; returns what was killed and when all replicas were back."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0),
                                     timeout=aiohttp.ClientTimeout(total=300)) as session:
        until = time.monotonic() + options.seconds
        running = [asyncio.create_task(clients.run(session, number, until)) for number in range(options.clients)]
        await asyncio.sleep(options.seconds / 2)
        actor, _ = await handle.process_ids.remote()
        os.kill(actor, signal.SIGKILL)
        killed = time.monotonic()
        returned = None
        while not all(task.done() for task in running):
            await asyncio.sleep(1)
            if returned is None and n_replicas() == options.replicas and time.monotonic() - killed > 3:
                returned = round(time.monotonic() - killed, 1)
        return {"killed": "a replica's actor", "all replicas again after, seconds": returned}


def n_replicas():
    from ray import serve

    application = serve.status().applications.get("default")
    return application.deployments["OutriderReplica"].replica_states.get("RUNNING", 0) if application else 0


def start_serving(options):
    import ray.exceptions
    from ray import serve

    from outrider.ray import serve_app

    for attempt in range(5):
        try:
            serve.start(proxy_location="HeadOnly", http_options={"port": options.port})
            break
        except (TimeoutError, ray.exceptions.RayError):  # a busy machine: its proxy takes longer than Ray waits
            if attempt == 4:
                raise
            time.sleep(10)
    serve.run(serve_app(options.model, options.drafter, replicas=options.replicas, threads=1), route_prefix="/")
    return serve.get_deployment_handle("OutriderReplica", "default")


def serve_part(options):
    texts = plain_texts(options.model, prompts_of(96), options.tokens)
    handle = start_serving(options)
    clients = Clients(f"http://127.0.0.1:{options.port}", texts, options.tokens)
    loss = asyncio.run(under_load(options, clients, handle))
    from ray import serve

    serve.shutdown()
    problems = [f"a wrong text for {prompt!r}: {text!r}" for prompt, text in clients.wrong[:5]]
    problems += [f"{count} times: {kind}" for kind, count in clients.counts.items()
                 if kind.startswith(("status", "connection"))]
    if not clients.counts["retried"]:
        problems.append("no request was retried: nothing ran on the replica that was killed")
    return {**clients.figures(), **loss}, problems


def map_driver(options):
    """Runs map_prompts over the prompts, in this process."""
    import ray

    from outrider.ray import map_prompts

    ray.init(address=options.address, log_to_driver=False)
    result = map_prompts(prompts_of(options.prompts), options.model, out=options.map_into, drafter=options.drafter or "none",
                         max_tokens=options.tokens, workers=options.replicas, batch=8)
    print(json.dumps({"answered": result.n_answered, "before": result.n_before, "lost": result.n_lost}))


def map_part(options, address):
    from outrider.ray import read_answers

    texts = plain_texts(options.model, prompts_of(options.prompts), options.tokens)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, options.model, "--drafter", options.drafter, "--prompts",
                   str(options.prompts), "--tokens", str(options.tokens), "--replicas", str(options.replicas),
                   "--address", address, "--map-into", folder]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while driver.poll() is None and sum(1 for _ in read_answers(folder)) < options.prompts // 3:
            time.sleep(0.05)
        driver.kill()
        was_killed = driver.wait() == -signal.SIGKILL
        n_killed = sum(1 for _ in read_answers(folder))
        again = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        answers = list(read_answers(folder))
        lines = (Path(folder) / "answers.jsonl").read_bytes().count(b"\n")
    counts = collections.Counter(answer["key"] for answer in answers)
    prompts = prompts_of(options.prompts)
    problems = [] if was_killed and 0 < n_killed < options.prompts else ["the driver was not killed in its middle"]
    if counts != collections.Counter(str(number) for number in range(options.prompts)) or lines != options.prompts:
        problems.append(f"{lines} lines, {len(counts)} keys: not each prompt once")
    wrong = [answer["key"] for answer in answers if answer.get("text") != texts[prompts[int(answer["key"])]]]
    if wrong:
        problems.append(f"wrong texts of {wrong[:5]}")
    return {"answers when the driver was killed": n_killed, "second run": json.loads(again.stdout.splitlines()[-1])}, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--drafter", default="suffix")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--tokens", type=int, default=64, help="of an answer")
    parser.add_argument("--port", type=int, default=8471)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--map-into", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.model = str(Path(options.model).resolve())
    # Niceness 0 in place of Ray's 15: beside other load, Ray's processes would not start in time.
    os.environ.update(OMP_WAIT_POLICY="passive", RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0",
                      RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S="60", RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S="60")
    if options.map_into:
        return map_driver(options)
    import ray
    from ray.cluster_utils import Cluster

    per_node = -(-options.replicas // 2)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": per_node, "include_dashboard": False,
                                                           "object_store_memory": 200 << 20})
    cluster.add_node(num_cpus=per_node, object_store_memory=200 << 20)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        served, problems = serve_part(options)
        mapped, more = map_part(options, cluster.address)
    finally:
        ray.shutdown()
        cluster.shutdown()
    figures = {"nodes": 2, "replicas": options.replicas, "clients": options.clients, "seconds": options.seconds,
               "serving": served, "map_prompts": mapped, "problems": problems + more}
    text = json.dumps(figures, indent=1)
    if options.figures:
        options.figures.write_text(text + "\n")
    print(text)
    return 1 if figures["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
