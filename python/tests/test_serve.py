"""outrider.serve(): a process that answers, and whose end is seen."""

import json
import os
import signal
import time
import urllib.error
import urllib.request

import pytest

import outrider
from conftest import DRAFTER, PROMPTS

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, body: dict) -> dict:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with opener.open(request, timeout=120) as answer:
        return json.load(answer)


def test_the_server_says_what_generate_does(model, plain):
    expected = plain.generate(PROMPTS[0], max_tokens=20)
    with outrider.serve(model, drafter=DRAFTER, profile="none", threads=1, parallel=2) as server:
        assert server.is_alive()
        server.check()
        said = ask(
            server.url + "/v1/completions",
            {"model": "target", "prompt": PROMPTS[0], "max_tokens": 20, "temperature": 0},
        )
        assert said["choices"][0]["text"] == expected.text
        assert server.url in server.log
        pid = server.pid
    assert not server.is_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises((urllib.error.URLError, OSError)):
        opener.open(server.url + "/health", timeout=5)
    server.close()


def test_a_server_that_dies_is_an_error(models):
    with outrider.serve(models / "target", profile="none", threads=1) as server:
        os.kill(server.pid, signal.SIGKILL)
        while server.is_alive():
            time.sleep(0.01)
        with pytest.raises(outrider.Error, match="-9"):
            server.check()


def test_flags_that_the_command_refuses_are_usage_errors(models):
    with pytest.raises(outrider.UsageError, match="--no-such-flag"):
        outrider.serve(models / "target", no_such_flag=3)
    with pytest.raises(outrider.UsageError, match="nobody"):
        outrider.serve(models / "target", drafter="nobody", profile="none")
    with pytest.raises(outrider.Error, match="expected a file"):
        outrider.serve(models / "nothing")
