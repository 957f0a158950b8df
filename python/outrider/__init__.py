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

# What needs other packages, or costs time to import, comes when it is asked for.
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
