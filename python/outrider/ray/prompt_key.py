# SPDX-License-Identifier: Apache-2.0
"""Chooses the replica for a prompt: the one whose KV cache has the prompt's beginning.

Prompts with the same beginning have the same key. Replicas are ranked for a key by rendezvous
hashing (Thaler and Ravishankar, 1998): every router computes the same ranking without
communication, and if a replica goes, only its own keys move. A replica with more than its share of
the running requests is skipped, as in consistent hashing with bounded loads (Mirrokni, Thorup and
Zadimoghaddam, 2018). A beginning which all requests share therefore does not leave the other
replicas idle.

Pure functions, independent of Ray.
"""

import hashlib
import json
import math
from typing import List, Mapping, Sequence

# A replica accepts a request for its key while it has at most this multiple of its share of all
# requests. Simulated (in_turn, 16 running requests per replica, 200 beginnings): the share of
# requests that go to their own replica, and the mean load of the fullest replica as a multiple of
# its share.
#
#                                            1.0          1.1          1.25         1.5          2            no bound
#   4 replicas, beginnings equally frequent  0.26  1.00   0.83  1.11   0.93  1.18   0.99  1.28   1.00  1.31   1.00  1.31
#   8 replicas, the i-th one 1/i as often    0.13  1.00   0.59  1.12   0.72  1.25   0.84  1.47   0.94  1.85   1.00  2.31
#   8 replicas, half of all begin alike      0.13  1.00   0.40  1.12   0.47  1.25   0.55  1.50   0.65  1.99   1.00  4.62
#
# In the last two rows the fullest replica reaches the bound. 1.25 costs the first row little.
MOST_OF_SHARE = 1.25

# 128 bits: among 2^32 different beginnings, two have the same key with a probability of 2^-65.
_KEY_DIGITS = 32


def key_of(body: bytes, n_bytes: int) -> str:
    """Returns the key of a request: a hash of the first n_bytes of its prompt, or of its tools and
    messages in the order of the model's template. Of another body, a hash of its first n_bytes."""
    return hashlib.sha256(_beginning(body, n_bytes)).hexdigest()[:_KEY_DIGITS]


def _beginning(body: bytes, n_bytes: int) -> bytes:
    try:
        fields = json.loads(body)
    except ValueError:
        return body[:n_bytes]
    if not isinstance(fields, Mapping):
        return body[:n_bytes]
    if "prompt" in fields:
        parts = [fields["prompt"]]
    else:
        parts = [fields.get(name) for name in ("tools", "system", "instructions", "messages", "input")]
    whole = b""
    for part in parts:
        if part is not None and len(whole) < n_bytes:
            whole += _text_of(part)
    return whole[:n_bytes] if whole else body[:n_bytes]


def _text_of(part) -> bytes:
    # A list's opening bracket and a text's quotes are included: only equality of beginnings
    # matters.
    text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def ranked(key: str, replicas: Sequence[str]) -> List[str]:
    """Returns all replicas in the key's ranking, the key's own first."""
    return sorted(replicas, key=lambda name: hashlib.sha256(f"{key}\0{name}".encode()).digest())


def in_turn(key: str, running: Mapping[str, int], attempt: int = 0) -> List[str]:
    """Returns the replicas in the order in which to ask them.

    running: the number of requests of each replica. Replicas with more than their share come after
    the others, the least loaded first. attempt: how often the request was tried before. Each time
    the order starts one position later.
    """
    names = ranked(key, list(running))
    if not names:
        return []
    shift = attempt % len(names)
    names = names[shift:] + names[:shift]
    most = math.ceil(MOST_OF_SHARE * (sum(running.values()) + 1) / len(names))
    free = [name for name in names if running[name] < most]
    return free + sorted((name for name in names if running[name] >= most), key=lambda name: running[name])
