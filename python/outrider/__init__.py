# SPDX-License-Identifier: Apache-2.0
"""Outrider: language-model inference with speculative decoding.

A drafter proposes tokens, and the target verifies them in one pass. At temperature 0, the default,
the tokens are bit-identical to those of decoding without a drafter. Above it they follow the same
distribution; with verify="coupled" a seed also gives the same tokens. A rule other than "exact"
changes the distribution.
"""

from typing import TYPE_CHECKING

from ._outrider import (
    ChatStream,
    Draft,
    DraftedText,
    Error,
    Generator,
    Grammar,
    MaskedText,
    Model,
    ModelSummary,
    Reply,
    ReplyPiece,
    Result,
    SamplingParams,
    Statistics,
    Stream,
    Token,
    Tokenizer,
    TokenLogProb,
    UsageError,
    escape_spec_value,
    kernel_tables,
)
from .one_call import generate
from .own_drafter import OwnDrafter
from .server_process import Server
from .serving import serve

__all__ = [
    "ChatStream",
    "Draft",
    "DraftedText",
    "Error",
    "Generator",
    "Grammar",
    "MaskedText",
    "Model",
    "ModelSummary",
    "OwnDrafter",
    "Reply",
    "ReplyPiece",
    "Result",
    "SamplingParams",
    "Server",
    "Statistics",
    "Stream",
    "Token",
    "TokenLogProb",
    "Tokenizer",
    "UsageError",
    "escape_spec_value",
    "generate",
    "kernel_tables",
    "serve",
]

if TYPE_CHECKING:
    from .transformers import TransformersGenerator, from_transformers

# These names import numpy, which takes time, so they are loaded on first access.
_LATER = {
    "TransformersGenerator": "outrider.transformers",
    "from_transformers": "outrider.transformers",
}
__all__ += list(_LATER)


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'outrider' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value
