# SPDX-License-Identifier: Apache-2.0
"""Computes log-likelihoods of continuations, in batches of texts. Independent of the harness."""

from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

import numpy

from outrider import Error


@dataclass(frozen=True)
class Scored:
    """A text that the model reads, and the tokens to score."""

    encoder_ids: Tuple[int, ...]   # for an encoder-decoder; otherwise empty
    ids: Tuple[int, ...]           # the input; row i of the logits predicts the token after ids[:i + 1]
    continuation: Tuple[int, ...]  # the last len(continuation) rows predict these tokens


def of_decoder(context: Sequence[int], continuation: Sequence[int], most: int) -> Scored:
    """Returns the input for a decoder: the last `most` tokens before the continuation's last token.
    Raises Error if the continuation alone is longer, or is empty."""
    if not 1 <= len(continuation) <= most or not context:
        raise Error(f"[lm_eval] continuation: expected 1 to {most} tokens behind a context, "
                    f"got {len(continuation)} behind {len(context)}")
    whole = (list(context) + list(continuation))[-(most + 1):]
    return Scored((), tuple(whole[:-1]), tuple(continuation))


def of_encoder_decoder(context: Sequence[int], continuation: Sequence[int], start_token: int, most: int) -> Scored:
    continuation = list(continuation)[-most:]
    return Scored(tuple(context[-most:]), tuple([start_token, *continuation[:-1]]), tuple(continuation))


def score(texts: Sequence[Scored], batch_size: int, logits: Callable[..., List[numpy.ndarray]],
          on_done: Callable[[int], None] = lambda n: None) -> List[Tuple[float, bool]]:
    """Returns for each text (log-likelihood in nats, whether every token is the likeliest one).

    logits(ids, encoder_ids, first) returns, for each of a list of texts, the rows after the tokens
    from `first` on, float32 (n, vocabulary). Texts with the same input are run once. on_done is
    called after each batch with its number of texts.
    """
    groups: Dict[tuple, List[int]] = {}
    for number, text in enumerate(texts):
        groups.setdefault((text.encoder_ids, text.ids), []).append(number)
    answers: List = [None] * len(texts)
    for batch in _batches(texts, groups, batch_size):
        first = min(_first_row(texts[number]) for members in batch for number in members)
        leaders = [texts[members[0]] for members in batch]
        rows_of_all = logits([list(text.ids) for text in leaders], [list(text.encoder_ids) for text in leaders], first)
        for members, rows in zip(batch, rows_of_all):
            for number in members:
                answers[number] = _judge(rows, texts[number].continuation)
        on_done(sum(len(members) for members in batch))
    return answers


def _first_row(text: Scored) -> int:
    return len(text.ids) - len(text.continuation)


def _batches(texts, groups, size) -> Iterator[List[List[int]]]:
    # Texts of a batch share `first`: texts with similar values are batched together, so that few
    # unneeded rows are kept. The longest come first, so that a shortage of memory shows at once.
    ordered = sorted(groups.values(), key=lambda members: (-min(_first_row(texts[number]) for number in members),
                                                           -len(texts[members[0]].ids)))
    for begin in range(0, len(ordered), size):
        yield ordered[begin:begin + size]


def _judge(rows: numpy.ndarray, continuation: Tuple[int, ...]) -> Tuple[float, bool]:
    rows = rows[len(rows) - len(continuation):].astype(numpy.float64)
    tokens = numpy.asarray(continuation)
    most = rows.max(axis=1)
    log_sums = most + numpy.log(numpy.exp(rows - most[:, None]).sum(axis=1))
    log_probs = rows[numpy.arange(len(tokens)), tokens] - log_sums
    return float(log_probs.sum()), bool((rows.argmax(axis=1) == tokens).all())
