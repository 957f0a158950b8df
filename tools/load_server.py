# SPDX-License-Identifier: Apache-2.0
"""Clients that request texts from a server, all at once: tokens per second, times to the first
token and between tokens, and this program's own share of the processor.

    python3 tools/load_server.py http://127.0.0.1:8080 --prompts FILE.txt --clients 1,4,16 \\
        --variant 'on={}' --variant 'off={"speculation": false}'

Each client requests one streamed text after the other from /v1/completions. Variants are JSON
objects of further fields; they take turns, --rounds times each, for --seconds. A client's prompts
are pieces of --prompt-bytes bytes of the file, the same ones for each variant. With --check N there
are N prompts, each run alone first: a later text that differs is wrong. Temperatures above 0 then
need a seed, which is the prompt's number.
"""
import argparse
import asyncio
import json
import random
import resource
import statistics
import time
from urllib.parse import urlparse


class Text:
    def __init__(self):
        self.began = time.perf_counter()
        self.times = []      # of events with text
        self.tokens = 0
        self.content = ""
        self.error = None
        self.wrong = False   # the text differs from the one that was answered alone


async def ask(host, port, path, body, key):
    """One streamed completion over a connection of its own."""
    text = Text()
    try:
        reader, writer = await asyncio.open_connection(host, port)
        payload = json.dumps(body).encode()
        authorization = f"Authorization: Bearer {key}\r\n" if key else ""
        writer.write((f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                      f"{authorization}Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n").encode() + payload)
        status = (await reader.readline()).split()
        ok = len(status) > 1 and status[1] == b"200"
        while (await reader.readline()) not in (b"\r\n", b""):
            pass
        if not ok:
            text.error = f"status {status[1].decode() if len(status) > 1 else 'none'}: {(await reader.read())[:300]!r}"
        else:
            async for line in reader:
                if not line.startswith(b"data: "):
                    continue
                if line.startswith(b"data: [DONE]"):
                    break
                event = json.loads(line[6:])
                if "error" in event:
                    text.error = str(event["error"])
                    break
                if event.get("usage"):
                    text.tokens = event["usage"]["completion_tokens"]
                for choice in event.get("choices", ()):
                    if choice.get("text"):
                        text.times.append(time.perf_counter())
                        text.content += choice["text"]
        writer.close()
    except (OSError, ValueError, KeyError) as error:
        text.error = repr(error)
    return text


def request(options, at, extra):
    return {"model": options.model, "prompt": options.text[at:at + options.prompt_bytes],
            "max_tokens": options.max_tokens, "stream": True,
            "stream_options": {"include_usage": True}, **options.fields, **extra}


def random_place(options, generator):
    return generator.randrange(max(1, len(options.text) - options.prompt_bytes))


async def client(options, number, extra, until, texts, alone):
    generator = random.Random(number)
    while time.perf_counter() < until:
        if alone:
            which = generator.randrange(len(alone))
            at, seed, content = alone[which]
            body = request(options, at, {**extra, "seed": seed})
        else:
            body, content = request(options, random_place(options, generator), extra), None
        text = await ask(options.host, options.port, "/v1/completions", body, options.key)
        text.wrong = content is not None and not text.error and text.content != content
        texts.append(text)
        if text.error:
            await asyncio.sleep(0.05)


async def ask_alone(options, extra):
    """Prompts with the server's answers while it has no other requests: (place, seed, text)."""
    generator = random.Random(0)
    alone = []
    for seed in range(options.check):
        at = random_place(options, generator)
        text = await ask(options.host, options.port, "/v1/completions",
                         request(options, at, {**extra, "seed": seed}), options.key)
        if text.error:
            raise SystemExit(f"asked alone: {text.error}")
        alone.append((at, seed, text.content))
    return alone


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


async def measure(options, n_clients, extra, alone):
    texts = []
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    until = began + options.seconds
    await asyncio.gather(*(client(options, number, extra, until, texts, alone) for number in range(n_clients)))
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    own = used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime
    first = [text.times[0] - text.began for text in texts if text.times]
    gaps = [after - before for text in texts for before, after in zip(text.times, text.times[1:])]
    return {"tokens_per_second": sum(text.tokens for text in texts) / seconds, "texts": len(texts),
            "errors": [text.error for text in texts if text.error],
            "wrong": sum(text.wrong for text in texts),
            "first_p50": quantile(first, 0.5), "first_p99": quantile(first, 0.99),
            "gap_p50": quantile(gaps, 0.5), "gap_p99": quantile(gaps, 0.99), "own_share": own / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--prompts", required=True, help="a text file that prompts are cut from")
    parser.add_argument("--prompt-bytes", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--clients", default="1,2,4,8,16,32,64")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variant", action="append", help="NAME=JSON", default=[])
    parser.add_argument("--fields", type=json.loads, default={"temperature": 0}, help="JSON for all variants")
    parser.add_argument("--model", default="model")
    parser.add_argument("--check", type=int, default=0, metavar="N", help="compare texts of N prompts")
    parser.add_argument("--key")
    options = parser.parse_args()
    url = urlparse(options.url)
    options.host, options.port = url.hostname, url.port
    with open(options.prompts, encoding="utf-8") as file:
        options.text = file.read()
    variants = [(name, json.loads(value)) for name, value in
                (variant.split("=", 1) for variant in options.variant or ["server={}"])]
    n_errors = 0
    alone = {name: asyncio.run(ask_alone(options, extra)) for name, extra in variants}
    for n_clients in map(int, options.clients.split(",")):
        results = {name: [] for name, _ in variants}
        for _ in range(options.rounds):
            for name, extra in variants:
                results[name].append(asyncio.run(measure(options, n_clients, extra, alone[name])))
        base = statistics.median(one["tokens_per_second"] for one in results[variants[-1][0]])
        for name, _ in variants:
            ones = results[name]
            rates = [one["tokens_per_second"] for one in ones]
            middle = statistics.median(rates)
            errors = [error for one in ones for error in one["errors"]]
            n_wrong = sum(one["wrong"] for one in ones)
            n_errors += len(errors) + n_wrong
            print(f"{n_clients:3} clients  {name:10} {middle:8.1f} tok/s ({min(rates):.1f}-{max(rates):.1f})"
                  f"  x{middle / base:.3f}"
                  f"  first {statistics.median(one['first_p50'] for one in ones):.3f}/{max(one['first_p99'] for one in ones):.3f} s"
                  f"  gap {1000 * statistics.median(one['gap_p50'] for one in ones):.1f}/{1000 * max(one['gap_p99'] for one in ones):.1f} ms"
                  f"  texts {sum(one['texts'] for one in ones)}  errors {len(errors)}"
                  f"{f'  wrong {n_wrong}' if options.check else ''}"
                  f"  own {100 * max(one['own_share'] for one in ones):.0f}%", flush=True)
            for error in errors[:2]:
                print("   ", error, flush=True)
    raise SystemExit(1 if n_errors else 0)


if __name__ == "__main__":
    main()
