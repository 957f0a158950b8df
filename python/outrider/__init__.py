"""Outrider: language-model inference built around speculation.

A drafter proposes tokens, the target verifies them in one pass. By default the
tokens are, bit for bit, those of decoding without a drafter.
"""

from ._outrider import (
    Draft,
    DraftedText,
    Error,
    Generator,
    Grammar,
    MaskedText,
    Model,
    ModelSummary,
    Reply,
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
from .serving import Server, serve

__all__ = [
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
