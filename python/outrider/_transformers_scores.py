# SPDX-License-Identifier: Apache-2.0
"""Scores as transformers defines them: logits after penalties, temperature and truncation."""

import numpy


def processed_scores(logits: numpy.ndarray, prompt, ids, sampling: dict) -> numpy.ndarray:
    """Returns the scores from which `ids` were drawn: float32 (n, vocabulary), -inf for tokens that
    could not be drawn. Row i is row i of `logits` after the steps of outrider.SamplingParams, in
    their order. Without a temperature (greedy) the only step is the repetition penalty."""
    scores = numpy.array(logits, dtype=numpy.float32)
    for step, row in enumerate(scores):
        _penalise(row, numpy.concatenate([numpy.asarray(prompt), numpy.asarray(ids[:step])]),
                  sampling["repetition_penalty"])
        if sampling.get("temperature", 0) > 0:
            row /= numpy.float32(sampling["temperature"])
            _cut(row, sampling["top_k"], sampling["top_p"], sampling["min_p"])
    return scores


def _penalise(row: numpy.ndarray, seen: numpy.ndarray, penalty: float) -> None:
    if penalty == 1:
        return
    tokens = numpy.unique(seen).astype(numpy.int64)
    values = row[tokens]
    row[tokens] = numpy.where(values > 0, values / penalty, values * penalty)


def _cut(row: numpy.ndarray, top_k: int, top_p: float, min_p: float) -> None:
    # The likeliest first; among ties, the lowest id.
    order = numpy.argsort(-row, kind="stable")
    n_kept = min(top_k, len(row)) if top_k > 0 else len(row)
    if top_p < 1 or min_p > 0:
        kept = row[order[:n_kept]].astype(numpy.float64)
        probs = numpy.exp(kept - kept[0])
        probs /= probs.sum()
        if top_p < 1:
            # The fewest tokens that hold the mass: those before each of them hold less than top_p.
            n_kept = int(numpy.count_nonzero(numpy.cumsum(probs) - probs < top_p))
        if min_p > 0:
            n_kept = min(n_kept, int(numpy.count_nonzero(probs[:n_kept] >= min_p * probs[0])))
    row[order[max(1, n_kept):]] = -numpy.inf
