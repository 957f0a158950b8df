# SPDX-License-Identifier: Apache-2.0
"""Outrider as a model of EleutherAI's lm-evaluation-harness (PyPI's `lm-eval`).

    python -m outrider.lm_eval --model outrider --model_args pretrained=MODEL,weights=f32 --tasks NAME

runs the harness' own command with the model "outrider" registered. In a program, call
`outrider.lm_eval.register()` before lm_eval.simple_evaluate(model="outrider", ...).
"""

from outrider import Error

__all__ = ["OutriderLM", "register"]


def register() -> None:
    """Registers the model "outrider" with the harness. Its class is imported at the first use.

    Raises Error if lm-eval is not installed."""
    try:
        from lm_eval.api.registry import model_registry
    except ImportError as error:
        raise Error(f"[lm_eval] lm-eval: expected it to be installed (pip install lm-eval), got {error}") from None
    if "outrider" not in model_registry:
        model_registry.register("outrider", target="outrider.lm_eval.model:OutriderLM")


def __getattr__(name):
    if name != "OutriderLM":
        raise AttributeError(f"module 'outrider.lm_eval' has no attribute '{name}'")
    from outrider.lm_eval.model import OutriderLM

    return OutriderLM
