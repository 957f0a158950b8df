# SPDX-License-Identifier: Apache-2.0
"""Replicas and batch generation on a Ray cluster (https://ray.io; PyPI's `ray`).

serve_app: an OpenAI server of several replicas, for Ray Serve (pip install 'ray[serve]').
map_prompts: answers many prompts, each once, and can be resumed (pip install ray; 'ray[data]' for
its datasets). read_answers: reads those answers. docs/scale.md says when to use which.
"""

import importlib

_PLACES = {
    "MapResult": "outrider.ray.batch_job",
    "map_prompts": "outrider.ray.batch_job",
    "read_answers": "outrider.ray.answer_file",
    "serve_app": "outrider.ray.serving",
}

__all__ = ["MapResult", "map_prompts", "read_answers", "serve_app"]


def __getattr__(name):
    # Loaded on first access, because workers and the router's process need one part each.
    if name not in _PLACES:
        raise AttributeError(f"module 'outrider.ray' has no attribute '{name}'")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
