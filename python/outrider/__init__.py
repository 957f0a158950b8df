"""Outrider: language-model inference built around speculation.

A drafter proposes tokens, the target verifies them in one pass. By default the
tokens are, bit for bit, those of decoding without a drafter.
"""

from ._outrider import (
    Error,
    Generator,
    Grammar,
    Model,
    ModelSummary,
    Result,
    SamplingParams,
    Statistics,
    Stream,
    Token,
    Tokenizer,
    TokenLogProb,
    UsageError,
    kernel_tables,
)

__all__ = [
    "Error",
    "Generator",
    "Grammar",
    "Model",
    "ModelSummary",
    "Result",
    "SamplingParams",
    "Statistics",
    "Stream",
    "Token",
    "TokenLogProb",
    "Tokenizer",
    "UsageError",
    "kernel_tables",
]
