# SPDX-License-Identifier: Apache-2.0
"""Clients that misuse a server, beside clients that must get correct answers all the while.

    python3 tools/disturb_server.py http://127.0.0.1:8080 --disconnects 1000 --malformed 500

Disconnects: requests of every kind whose connection is closed or reset at a random moment.
Malformed: requests with changed, lost or doubled bytes, with wrong lengths, and slow ones that
never end. Steady clients send requests with seeds; each answer must equal the answer to the same
request before the disturbance. Exits with 1 if an answer differs, or the server answers 5xx or not
at all.
"""
import argparse
import asyncio
import json
import random
import socket
import struct
from urllib.parse import urlparse

WORDS = "the cold night and a light over water he said that she would go to the old house by noon".split()
PATHS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/tokenize")


def prompt_of(source, n_words):
    return " ".join(source.choice(WORDS) for _ in range(n_words))


def body_of(path, source):
    text = prompt_of(source, source.randrange(1, 60))
    most = source.randrange(1, 200)
    if path == "/v1/completions":
        return {"prompt": text, "max_tokens": most, "stream": source.random() < 0.5, "n": source.randrange(1, 4)}
    if path == "/v1/chat/completions":
        return {"messages": [{"role": "user", "content": text}], "max_tokens": most, "stream": source.random() < 0.5}
    if path == "/v1/responses":
        return {"input": text, "max_output_tokens": most, "stream": source.random() < 0.5}
    if path == "/v1/messages":
        return {"messages": [{"role": "user", "content": text}], "max_tokens": most, "stream": source.random() < 0.5}
    if path == "/v1/embeddings":
        return {"input": [text] * source.randrange(1, 5)}
    return {"content": text}


def request_of(path, body, host):
    payload = json.dumps({"model": "model", **body}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


def spoilt(request, source):
    """The request with an error in it; sometimes it happens to stay valid."""
    request = bytearray(request)
    for _ in range(source.randrange(1, 6)):
        at = source.randrange(len(request))
        kind = source.randrange(5)
        if kind == 0:
            request[at] = source.randrange(256)
        elif kind == 1:
            del request[at:at + source.randrange(1, 30)]
        elif kind == 2:
            request[at:at] = request[at:at + source.randrange(1, 200)]
        elif kind == 3:
            request[at:at] = source.choice((b"\r\n", b"\0", b"\xff\xfe", b"{" * 300, b'"', b"Content-Length: 99999999\r\n"))
        else:
            request = bytearray(bytes(request).replace(b"Content-Length: ", source.choice((
                b"Content-Length: -", b"Content-Length: 1", b"Transfer-Encoding: chunked\r\nX: ", b"Content-length:"))))
        if not request:
            return b"\r\n"
    return bytes(request)


class Server:
    def __init__(self, url):
        parsed = urlparse(url)
        self.host, self.port = parsed.hostname, parsed.port
        self.statuses = {}
        self.problems = []

    async def open(self):
        return await asyncio.open_connection(self.host, self.port)

    async def completion(self, body):
        reader, writer = await self.open()
        try:
            writer.write(request_of("/v1/completions", body, self.host).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            answer = await asyncio.wait_for(reader.read(), 300)
        finally:
            writer.close()
        head, _, payload = answer.partition(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"{head[:60]!r} {payload[:300]!r}")
        return json.loads(payload)["choices"][0]["text"]

    async def cut_off(self, source):
        path = source.choice(PATHS)
        reader, writer = await self.open()
        request = request_of(path, body_of(path, source), self.host)
        if source.random() < 0.2:
            request = request[:source.randrange(len(request))]
        writer.write(request)
        try:
            await asyncio.wait_for(reader.read(source.randrange(1, 4000)), source.random() ** 3 * 0.5)
        except asyncio.TimeoutError:
            pass
        if source.random() < 0.5:  # a reset
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    async def malformed(self, source):
        path = source.choice(PATHS)
        reader, writer = await self.open()
        writer.write(spoilt(request_of(path, body_of(path, source), self.host), source))
        try:
            line = await asyncio.wait_for(reader.readline(), 2 if source.random() < 0.9 else 0.1)
        except asyncio.TimeoutError:
            line = b"waits"
        words = line.split()
        status = words[1].decode() if len(words) > 1 and words[0].startswith(b"HTTP/") else line.decode(errors="replace") or "closed"
        self.statuses[status] = self.statuses.get(status, 0) + 1
        # 503 means a full server, 501 an unknown transfer coding.
        if status.startswith("5") and status not in ("501", "503"):
            self.problems.append(f"malformed: {line!r} {(await reader.read(500))!r}")
        writer.close()


async def repeat(work, count, at_once, seed):
    """Runs work(source) `count` times, with limited concurrency; broken connections are the purpose."""
    left = iter(range(count))

    async def one():
        for number in left:
            try:
                await work(random.Random(seed * 1_000_003 + number))
            except (ConnectionError, asyncio.IncompleteReadError, ValueError):
                pass

    await asyncio.gather(*(one() for _ in range(at_once)))


async def run(options):
    server = Server(options.url)
    source = random.Random(options.seed)
    wishes = [{"prompt": prompt_of(source, 12), "max_tokens": options.steady_tokens, "seed": number, "temperature": number % 2,
               "ignore_eos": True} for number in range(options.steady)]
    expected = [await server.completion(wish) for wish in wishes]
    ended = False
    n_right = 0

    async def steady(number):
        nonlocal n_right
        while not ended:
            try:
                text = await server.completion(wishes[number])
            except RuntimeError as error:
                if "queue_full" not in str(error):
                    raise
                await asyncio.sleep(0.2)
                continue
            if text != expected[number]:
                server.problems.append(f"request {number}: expected {expected[number]!r}, got {text!r}")
            n_right += text == expected[number]

    tasks = [asyncio.create_task(steady(number)) for number in range(options.steady)]
    await repeat(server.cut_off, options.disconnects, 12, options.seed)
    print(f"{options.disconnects} disconnects; {n_right} steady answers as before", flush=True)
    await repeat(server.malformed, options.malformed, 12, options.seed + 1)
    ended = True
    await asyncio.gather(*tasks)
    print(f"{options.malformed} malformed: {dict(sorted(server.statuses.items()))}; {n_right} steady answers as before")
    for wish, text in zip(wishes, expected):
        if await server.completion(wish) != text:
            server.problems.append(f"afterwards: {wish}")
    for problem in server.problems[:10]:
        print(problem)
    return 1 if server.problems or not n_right else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--disconnects", type=int, default=1000)
    parser.add_argument("--malformed", type=int, default=500)
    parser.add_argument("--steady", type=int, default=4, help="clients whose answers are looked at")
    parser.add_argument("--steady-tokens", type=int, default=48, help="of their answers")
    parser.add_argument("--seed", type=int, default=1)
    raise SystemExit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
