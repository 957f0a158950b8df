# SPDX-License-Identifier: Apache-2.0
"""outrider.generate(): loads a model and generates, in one call."""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from ._outrider import Generator, Model, SamplingParams, UsageError, escape_spec_value

_MODEL = (
    "weights",
    "kv",
    "threads",
    "kernels",
    "kv_memory",
    "experts",
    "experts_memory",
    "device",
    "progress",
)
_SPECULATION = ("drafter", "rule", "tree", "verify", "adaptive", "drafter_options")
_SAMPLING = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
)


def generate(
    model: Union[str, os.PathLike, Model],
    prompt: Any,
    draft: Union[None, str, os.PathLike] = None,
    **keywords: Any,
) -> Any:
    """Loads the models and continues a prompt, or a list of prompts.

    model: a path, or a loaded Model. prompt: a text, token ids, or a list of texts or ids. draft:
    the path of a smaller draft model with the same vocabulary. Keywords: those of Model, Generator,
    SamplingParams and Generator.generate().

    Returns a Result, or a list of Results. Each call loads the models again. For repeated use,
    create one Generator.
    """

    def take(names):
        return {name: keywords.pop(name) for name in names if name in keywords}

    of_model, speculation, sampling = take(_MODEL), take(_SPECULATION), take(_SAMPLING)
    if draft is not None:
        if "drafter" in speculation:
            raise UsageError("[generate] draft: expected no drafter beside it, got one")
        speculation["drafter"] = "model:" + escape_spec_value(os.fspath(draft))
    if sampling:
        if keywords.get("sampling") is not None:
            raise UsageError("[generate] sampling: expected none beside its parts, got one")
        keywords["sampling"] = SamplingParams(**sampling)
    if isinstance(model, Model):
        if of_model:
            raise UsageError(f"[generate] {next(iter(of_model))}: expected a path, got a Model")
    else:
        model = Model(model, **of_model)
    return Generator(model, **speculation).generate(prompt, **keywords)
