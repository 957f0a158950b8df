# SPDX-License-Identifier: Apache-2.0
"""outrider.serve(): a process that answers, and whose end is detected."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

import outrider
from conftest import DRAFTER, PROMPTS, is_running, wait_until
from outrider.server_process import Server

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


FAKE_SERVER = """
import os, sys, time
print(f"outrider: {os.getpid()} at http://127.0.0.1:1 (Ctrl-C: no more)", file=sys.stderr, flush=True)
time.sleep(float(sys.argv[-1]))
"""
FAKE_PROGRAM = [sys.executable, "-c", FAKE_SERVER]


def test_a_server_is_started_and_closed():
    deaths, lines = [], []
    server = Server(["60"], program=FAKE_PROGRAM, on_death=deaths.append, on_line=lines.append)
    assert server.url == "http://127.0.0.1:1" and server.is_alive()
    assert lines == [f"outrider: {server.pid} at http://127.0.0.1:1 (Ctrl-C: no more)"]
    server.close()
    assert not server.is_alive() and deaths == []
    server = Server(["0.05"], program=FAKE_PROGRAM, on_death=deaths.append)
    wait_until(lambda: deaths == [0])
    with pytest.raises(outrider.Error, match="status 0"):
        server.check()
    with pytest.raises(outrider.Error, match="no such model"):
        Server([], program=[sys.executable, "-c", "import sys; sys.exit('no such model')"])
    with pytest.raises(outrider.UsageError, match="status 2"):
        Server([], program=[sys.executable, "-c", "import sys; sys.exit(2)"])
    with pytest.raises(outrider.Error, match="within 0.2 s, got: nothing"):
        Server([], program=[sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.2)


def test_a_server_is_no_rank_of_its_parents_launch(monkeypatch):
    launcher = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1", "PMI_SIZE": "2",
                "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
    for name, value in launcher.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_LAUNCHERS", "stays")
    names = FAKE_SERVER.replace("import os, sys, time", "import os, sys, time; "
                                "print(sorted(os.environ), file=sys.stderr, flush=True)")
    lines = []
    with Server(["60"], program=[sys.executable, "-c", names], on_line=lines.append,
                environment={"OMPI_MCA_btl": "self"}):
        assert "'NO_LAUNCHERS'" in lines[0]
        assert "'OMPI_MCA_btl'" in lines[0]  # set by the caller
        for name in launcher:
            assert f"'{name}'" not in lines[0]


SERVES = """
import sys, time
import outrider
server = outrider.serve(sys.argv[1], profile="none", threads=1)
print(server.pid, flush=True)
time.sleep(600 if sys.argv[2] == "wait" else 0)
"""


def parent_of_a_server(models, what):
    """A process that has started a server, and the server's id."""
    words = [sys.executable, "-c", SERVES, str(models / "drafter"), what]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    return parent, int(parent.stdout.readline())


def test_a_server_ends_with_a_parent_that_is_killed(models):
    parent, server = parent_of_a_server(models, "wait")
    assert is_running(server)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_running(server))


def test_a_server_ends_with_a_parent_that_returns(models):
    parent, server = parent_of_a_server(models, "return")
    assert parent.wait(timeout=60) == 0
    assert not is_running(server)
