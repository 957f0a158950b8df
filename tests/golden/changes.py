"""Changes of configurations and weights, of which the mistakes of readers are made
(family_mistakes.py): each gives a function of both."""
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
    """Every parameter whose name ends so becomes function(config, parameter)."""
    def wrong(config, state):
        found = [key for key in state if key.endswith(ending)]
        assert found, ending
        for key in found:
            state[key] = function(config, state[key]).contiguous()
    return wrong


def zero(_, value):
    return torch.zeros_like(value)


def one_token_early(_, value):
    """Of filters, the oldest token's weight last."""
    return torch.cat([value[..., 1:], torch.zeros_like(value[..., :1])], dim=-1)


def backwards(_, value):
    return value.flip(-1)


def next_row(_, value):
    """Rows, or experts, each in the place of the one before it."""
    return value.roll(1, 0)
