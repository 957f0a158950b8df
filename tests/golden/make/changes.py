# SPDX-License-Identifier: Apache-2.0
"""Changes of configurations and weights, the building blocks of reader mistakes
(family_mistakes.py): each is a function of both."""
import torch


def set_config(**changes):
    def wrong(config, _):
        for key, value in changes.items():
            setattr(config, key, value)
    return wrong


def set_rope(layer_type=None, **changes):
    def wrong(config, _):
        rope = config.rope_parameters
        (rope[layer_type] if layer_type else rope).update(changes)
    return wrong


def change(ending, function):
    """Every parameter whose name ends with this becomes function(config, parameter)."""
    def wrong(config, state):
        found = [key for key in state if key.endswith(ending)]
        assert found, ending
        for key in found:
            state[key] = function(config, state[key]).contiguous()
    return wrong


def zero(_, value):
    return torch.zeros_like(value)


def one_token_early(_, value):
    """For filters, whose last weight is that of the oldest token."""
    return torch.cat([value[..., 1:], torch.zeros_like(value[..., :1])], dim=-1)


def backwards(_, value):
    return value.flip(-1)


def next_row(_, value):
    """Each row (or expert) moves to the place of the one before it."""
    return value.roll(1, 0)
