#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives the page of `outrider serve` in headless Chromium, and takes pictures of it.

    python3 tests/page/try_page.py --program build/outrider [--chat MODEL] [--pictures FOLDER]

Serves the shipped pair (no chat template), and with --chat a model that has one. Needs Chromium and
the Python package playwright; if either is missing it says so and exits with 0 (SKIPPED).
"""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIR = ["--model", "models/target", "--drafter", "model:models/drafter", "--also-drafter", "suffix"]
KEY = "a key of the test"


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(0)


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    skip("no chromium, chromium-browser or google-chrome on the PATH")


try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    skip("the Python package playwright is not installed")


@contextlib.contextmanager
def server(program, flags):
    """The address of a server that runs for the duration of the block."""
    process = subprocess.Popen([program, "serve", "--port", "0", *flags], cwd=ROOT,
                               stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise RuntimeError(f"the server ended with {process.wait()}")
        yield found.group(0), process
    finally:
        process.terminate()
        process.wait()


class Page:
    """A page in a browser of its own, whose console and requests are watched."""

    def __init__(self, browser, address, pictures, width=1400, height=900, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": height},
                                           color_scheme=scheme)
        self.tab = self.context.new_page()
        self.pictures = pictures
        self.problems = []
        self.foreign = []
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("console", lambda message: self.note(message))
        self.tab.on("request", lambda request: self.foreign.append(request.url)
                    if not request.url.startswith(address) else None)
        self.tab.goto(address)

    def note(self, message):
        # Answers with an error status are among the tested cases.
        if message.type == "error" and "status of 4" not in message.text:
            self.problems.append(message.text)

    def ready(self):
        expect(self.tab.locator("#model")).to_contain_text("context of")

    def at(self, selector):
        return self.tab.locator(selector)

    def set(self, name, value):
        self.at("#settings").evaluate("(element) => { element.open = true; }")
        self.at(name).evaluate(
            "(element, value) => { element.value = value;"
            " element.dispatchEvent(new Event('input', {bubbles: true})); }", str(value))

    def send(self, text):
        self.at("#message").fill(text)
        self.at("#message").press("Enter")

    def wait_for_end(self):
        expect(self.at("#stop")).to_be_disabled(timeout=120_000)

    def wait_for_tokens(self, n_tokens):
        """Waits for this number of tokens in the last reply. (The page's policy forbids
        Playwright's own waiting.)"""
        for _ in range(1000):
            if self.at(".turn:last-child .text .token").count() >= n_tokens:
                return
            time.sleep(0.02)
        raise AssertionError(f"no {n_tokens} tokens in 20 seconds")

    def picture(self, name):
        if self.pictures:
            self.tab.screenshot(path=self.pictures / f"{name}.png")

    def fits(self):
        """Checks that nothing is wider than the window."""
        wide = self.tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"the page is {wide} pixels wider than the window"

    def close(self):
        self.context.close()
        assert not self.problems, self.problems
        assert not self.foreign, f"requests to others: {self.foreign}"


def chunks_of(address, body):
    request = urllib.request.Request(f"{address}/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        lines = [line[6:].strip() for line in response if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    return [json.loads(line)["choices"][0] for line in lines[:-1]]


def trace_streams(address):
    """A trace can be requested, its times add up, and it changes nothing else."""
    for temperature in (0, 1):
        body = {"prompt": "Once upon a time", "max_tokens": 80, "stream": True, "seed": 5,
                "temperature": temperature, "speculation": {"tree": "widths:3,2,1"}}
        plain = chunks_of(address, body)
        traced = chunks_of(address, body | {"trace": True})
        assert not any("trace" in choice for choice in plain)
        without = [{name: value for name, value in choice.items() if name != "trace"}
                   for choice in traced]
        assert without == plain, "a trace changes the stream"
        rounds = [part for choice in traced for part in choice["trace"]["rounds"]]
        tokens = [token for part in rounds for token in part["tokens"]]
        text = "".join(choice["text"] for choice in traced)
        assert text.startswith("".join(token["text"] for token in tokens))
        drafts = [part["draft"] for part in rounds if "draft" in part]
        last = traced[-1]["trace"]["statistics"]
        assert last["tokens"] == 80 and last["rounds"] == rounds[-1]["round"]
        assert last["drafted"] == sum(len(draft["tokens"]) for draft in drafts)
        assert last["accepted"] == sum(token["origin"] == "accepted" for token in tokens)
        for draft in drafts:
            parents = [draft["parents"][node] for node in draft["accepted"]]
            assert parents == ([-1] + draft["accepted"])[:len(parents)], "no path"
    try:
        chunks_of(address, {"prompt": "Once", "trace": True})
        raise AssertionError("a trace without a stream")
    except urllib.error.HTTPError as error:
        assert error.code == 400 and "trace" in json.load(error)["error"]["message"]


def look_at_heads(address):
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"),
                       ("/page.js", "text/javascript"), ("/page.svg", "image/svg+xml")):
        with urllib.request.urlopen(address + path) as response:
            heads = response.headers
        assert heads["Content-Type"].startswith(kind)
        assert heads["Content-Security-Policy"].startswith("default-src 'self'")
        assert heads["X-Content-Type-Options"] == "nosniff"
        again = urllib.request.Request(address + path, headers={"If-None-Match": heads["ETag"]})
        try:
            urllib.request.urlopen(again)
            raise AssertionError("the file again")
        except urllib.error.HTTPError as error:
            assert error.code == 304 and error.read() == b""


def continue_texts(browser, address, pictures):
    """The shipped pair: continuations, trees, rules, errors, keyboard."""
    page = Page(browser, address, pictures)
    page.ready()
    expect(page.at("#notice")).to_contain_text("no chat template")
    expect(page.at("#system-label")).to_be_hidden()
    assert page.at("#drafter option").all_inner_texts() == ["model:models/drafter", "suffix"]
    page.picture("wide-light-empty")

    # A reply with a tree, while it comes.
    page.set("#shape", "widths:2,2,1,1")
    page.set("#temperature", 0.7)
    page.set("#max-tokens", 400)
    page.send("Once upon a time there was a king who")
    page.wait_for_tokens(60)
    expect(page.at("#stop")).to_be_enabled()
    assert page.at("#tree svg .node").count() > 3
    page.picture("wide-light-streaming")
    page.wait_for_end()
    expect(page.at(".reply-facts").last).to_contain_text("tau")
    for origin in ("accepted", "corrected", "bonus"):
        assert page.at(f".text .token.{origin}").count() > 0, origin
    lines = {page.at(f".text .token.{origin}").first.evaluate(
        "(element) => getComputedStyle(element).textDecorationStyle")
        for origin in ("accepted", "corrected", "bonus")}
    assert len(lines) == 3, "ways that a token came are told apart by colour alone"
    assert re.fullmatch(r"[\d.]+", page.at("#tau").inner_text())
    assert page.at("#tau-plot .line").count() == 1

    # Tokens selected by keyboard: round and facts follow.
    page.at(".turn.assistant .text").focus()
    page.tab.keyboard.press("Home")
    for _ in range(8):
        page.tab.keyboard.press("ArrowRight")
    expect(page.at("#token-facts")).to_contain_text("round")
    assert page.at(".token.selected").count() == 1
    page.picture("wide-light-selected")

    # The text continues; Esc stops it; Shift+Enter does not send.
    page.at("#message").fill("\nAnd then")
    page.at("#message").press("Shift+Enter")
    assert page.at("#message").input_value() == "\nAnd then\n"
    page.set("#max-tokens", 700)
    page.set("#rule", "token-v3")
    page.set("#alpha", 0.4)
    page.send("And then the old woman said:")
    page.wait_for_tokens(10)
    page.tab.keyboard.press("Escape")
    page.wait_for_end()
    expect(page.at(".reply-facts").last).to_contain_text("stopped")

    # A request that the server refuses: the page shows the error, and the message is restored.
    page.set("#rule", "lossy-greedy")
    page.send("One more")
    page.wait_for_end()
    expect(page.at("#error")).to_contain_text("temperature")
    expect(page.at("#message")).to_have_value("One more")
    expect(page.at(".turn")).to_have_count(4)
    page.picture("wide-light-error")

    # Cleared while a reply comes: nothing of it remains, and the next one is complete.
    page.set("#rule", "exact")
    page.at("#clear").click()
    page.send("A long story:")
    page.wait_for_tokens(5)
    page.at("#clear").click()
    expect(page.at(".turn")).to_have_count(0)
    page.set("#max-tokens", 20)
    page.send("A long story:")
    page.wait_for_end()
    expect(page.at(".turn")).to_have_count(2)
    expect(page.at(".reply-facts").last).to_contain_text("20 tokens")

    # Rules depend on the drafter; without one there are none.
    page.set("#drafter", "suffix")
    assert page.at("#rule option").all_inner_texts() == ["exact", "typical", "fly"]
    page.set("#shape", "")
    page.at("#speculates").uncheck()
    expect(page.at("#drafter")).to_be_disabled()
    page.at("#clear").click()
    expect(page.at(".turn")).to_have_count(0)
    page.set("#max-tokens", 12)
    page.set("#seed", 3)
    texts = []
    for _ in range(2):
        page.send("The sea was")
        page.wait_for_end()
        assert page.at(".text .token.plain").count() == 12
        texts.append(page.at(".turn.assistant .text").inner_text())
        page.at("#clear").click()
    assert texts[0] == texts[1], "a seed gives the same text again"
    page.close()


def look_at_sizes(browser, address, pictures):
    for width, height, name in ((360, 740, "phone"), (1400, 900, "wide")):
        for scheme in ("light", "dark"):
            page = Page(browser, address, pictures, width, height, scheme)
            page.ready()
            page.fits()
            page.set("#shape", "widths:3,2,1")
            page.set("#max-tokens", 60)
            page.at("#settings").evaluate("(element, open) => { element.open = open; }",
                                          width > 900)
            page.send("Once upon a time, in a small house near the sea,")
            page.wait_for_tokens(20)
            page.picture(f"{name}-{scheme}-streaming")
            page.wait_for_end()
            page.fits()
            page.picture(f"{name}-{scheme}")
            if width == 360 and pictures:
                page.tab.screenshot(path=pictures / f"{name}-{scheme}-whole.png", full_page=True)
                page.set("#rule", "token-v3")
                page.fits()
                page.tab.screenshot(path=pictures / f"{name}-{scheme}-settings.png",
                                    full_page=True)
            page.close()


def chat(browser, address, pictures):
    """A model with a template: turns, a system prompt, an end chosen by the model."""
    page = Page(browser, address, pictures, scheme="dark")
    page.ready()
    expect(page.at("#notice")).to_be_hidden()
    page.set("#temperature", 0)
    page.set("#max-tokens", 60)
    page.set("#system", "You are a helpful assistant who answers in one short sentence.")
    for question in ("What is the capital of France?", "And of Italy?"):
        page.send(question)
        page.wait_for_end()
    expect(page.at(".turn")).to_have_count(4)
    assert "Paris" in page.at(".turn.assistant .text").first.inner_text()
    for reply in page.at(".turn.assistant .text").all_inner_texts():
        assert "<|im_" not in reply
    page.picture("chat-dark")
    page.close()


def ask_for_keys(browser, address, pictures, process):
    page = Page(browser, address, pictures)
    expect(page.at("#key-dialog")).to_be_visible()
    # Without a key every request is refused; the page asks again.
    page.tab.keyboard.press("Escape")
    expect(page.at("#key-dialog")).to_be_hidden()
    page.send("Once")
    expect(page.at("#key-dialog")).to_be_visible()
    page.at("#key").fill("another key")
    page.at("#key").press("Enter")
    expect(page.at("#key-problem")).to_be_visible()
    page.picture("wide-light-key")
    page.at("#key").fill(KEY)
    page.at("#key").press("Enter")
    page.ready()
    expect(page.at("#key-dialog")).to_be_hidden()
    page.tab.reload()
    page.ready()  # the key is kept
    page.set("#max-tokens", 5)
    page.send("Once")
    page.wait_for_end()
    assert page.at(".text .token").count() == 5
    # A server that has ended.
    process.terminate()
    process.wait()
    page.problems.clear()
    page.send("Twice")
    expect(page.at("#error")).to_contain_text("still running")
    page.problems.clear()  # the console reports it as well
    page.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/outrider", help="outrider (build/outrider)")
    parser.add_argument("--chat", help="a model with a chat template")
    parser.add_argument("--pictures", type=pathlib.Path, help="folder for pictures")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    pictures = arguments.pictures
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        # As root, as in containers, Chromium's sandbox does not work.
        browser = playwright.chromium.launch(executable_path=find_chromium(),
                                             args=["--no-sandbox"])
        with server(program, PAIR) as (address, _):
            look_at_heads(address)
            trace_streams(address)
            continue_texts(browser, address, pictures)
            look_at_sizes(browser, address, pictures)
        print("the pair: ok")
        keys = pathlib.Path(folder) / "keys"
        keys.write_text(KEY + "\n", encoding="utf-8")
        with server(program, [*PAIR, "--api-key-file", str(keys)]) as (address, process):
            ask_for_keys(browser, address, pictures, process)
        print("keys: ok")
        if arguments.chat:
            with server(program, ["--model", arguments.chat, "--drafter", "suffix"]) as (address, _):
                chat(browser, address, pictures)
            print("chat: ok")
        browser.close()


if __name__ == "__main__":
    main()
