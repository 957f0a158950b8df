# SPDX-License-Identifier: Apache-2.0
"""The interface of transformers' `generate` for an outrider.Generator."""

import warnings
from dataclasses import dataclass, field
from typing import List, Optional, Sequence

import numpy

from outrider import UsageError
from outrider._transformers_scores import processed_scores

_OPERATION = "[TransformersGenerator.generate]"

# The defaults of transformers, if neither a call nor a generation_config sets a value.
_DEFAULT_NEW_TOKENS = 20
_DEFAULT_TOP_K = 50

# Arguments accepted with their neutral values only, because their functions are not implemented.
_NEUTRAL = {
    "num_beams": (None, 1),
    "num_beam_groups": (None, 1),
    "penalty_alpha": (None, 0, 0.0),
    "use_cache": (None, True),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "typical_p": (None, 1, 1.0),
    "epsilon_cutoff": (None, 0, 0.0),
    "eta_cutoff": (None, 0, 0.0),
    "top_h": (None,),
    "length_penalty": (None, 1, 1.0),
    "diversity_penalty": (None, 0, 0.0),
    "encoder_repetition_penalty": (None, 1, 1.0),
    "no_repeat_ngram_size": (None, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "early_stopping": (None, False),
    "remove_invalid_values": (None, False),
    "renormalize_logits": (None, False),
    "output_attentions": (None, False),
    "output_hidden_states": (None, False),
    "synced_gpus": (None, False),
    "cache_implementation": (None, "dynamic", "static"),
    "bad_words_ids": (None,),
    "force_words_ids": (None,),
    "constraints": (None,),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "suppress_tokens": (None,),
    "begin_suppress_tokens": (None,),
    "exponential_decay_length_penalty": (None,),
    "sequence_bias": (None,),
    "guidance_scale": (None, 1, 1.0),
    "prefix_allowed_tokens_fn": (None,),
    "logits_processor": (None, []),
    "stopping_criteria": (None, []),
    "assistant_model": (None,),
    "negative_prompt_ids": (None,),
    "negative_prompt_attention_mask": (None,),
    "position_ids": (None,),
    "token_type_ids": (None,),
    "past_key_values": (None,),
    "inputs_embeds": (None,),
}

# Settings that a call or a generation_config may have, with their defaults.
_KNOWN = {
    "max_new_tokens": None,
    "max_length": None,
    "do_sample": False,
    "temperature": 1.0,
    "top_k": _DEFAULT_TOP_K,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "num_return_sequences": 1,
    "eos_token_id": None,
    "pad_token_id": None,
    "stop_strings": None,
    "max_time": None,
    "return_dict_in_generate": False,
    "output_scores": False,
    "output_logits": False,
}

# Fields of a generation_config that are ignored: the origin of the file, and settings of other
# decoding methods.
_CONFIG_ONLY = {
    "_from_model_config", "_commit_hash", "_original_object_hash", "transformers_version", "generation_kwargs",
    "bos_token_id", "decoder_start_token_id", "is_assistant", "num_assistant_tokens",
    "num_assistant_tokens_schedule", "assistant_confidence_threshold", "prompt_lookup_num_tokens",
    "max_matching_ngram_size", "assistant_early_exit", "assistant_lookbehind", "target_lookbehind",
    "cache_config", "return_legacy_cache", "prefill_chunk_size", "compile_config", "disable_compile",
    "token_healing", "low_memory", "dola_layers", "watermarking_config", "continuous_batching_config",
}


class GenerateOutput(dict):
    """The result of `generate` with return_dict_in_generate=True. Fields are also attributes.

    sequences: the result without return_dict_in_generate. scores, logits: None, or a tuple with one
    array (rows, vocabulary) for each new token. After the end of a row's text its values are NaN.
    results: an outrider.Result for each row.
    """

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class _Inputs:
    """input_ids without their padding."""

    rows: List[numpy.ndarray]     # the ids of each prompt, (its length)
    padded: numpy.ndarray         # input_ids as given, (n, width)
    like: object                  # input_ids as given: results have its type and device

    def as_given(self, array: numpy.ndarray):
        if not hasattr(self.like, "device"):
            return array
        torch = _torch_of(self.like)
        return array if torch is None else torch.from_numpy(array).to(self.like.device)


@dataclass
class _Ends:
    """The conditions that end a text."""

    tokens: Optional[Sequence[int]]  # None: the model's end tokens
    strings: Sequence[str] = field(default_factory=tuple)


class TransformersGenerator:
    """An outrider.Generator with the interface of transformers' `model.generate`.

    generation_config: the defaults for calls, a transformers GenerationConfig or a dict of its
    fields. Without it transformers' own defaults apply: greedy, 20 new tokens, and with do_sample a
    top_k of 50. Not thread-safe, as the generator is not.
    """

    def __init__(self, generator, *, generation_config=None):
        self.generator = generator
        self._defaults = _read_config(generation_config)

    def generate(self, input_ids=None, *, attention_mask=None, generation_config=None, streamer=None, seed=None,
                 tokenizer=None, inputs=None, **arguments):
        """Continues each row of `input_ids`, (n, width) or (width): torch tensors or NumPy arrays
        of ids.

        Returns ids of the form that transformers returns: (n * num_return_sequences, width + new
        tokens), int64, prompts included. They have the type of input_ids (and are on its device).
        Shorter texts are padded with pad_token_id on the right. With return_dict_in_generate,
        returns a GenerateOutput.

        attention_mask: 0 for padding, which must be on the left. Without it, pad_token_id at the
        left of a row is padding, unless it is also an end token.

        Supported: max_new_tokens, max_length, do_sample, temperature, top_k, top_p, min_p,
        repetition_penalty, num_return_sequences, eos_token_id (one or a list; None: the model's),
        pad_token_id, stop_strings (no tokenizer is needed for them), max_time, streamer (one row),
        return_dict_in_generate, output_scores, output_logits, generation_config. Other arguments of
        transformers are accepted with their neutral values (num_beams=1). Any other value, and any
        unknown name, raises UsageError.

        seed: seed of this call's random numbers. None: drawn from torch's generator if input_ids is
        a torch tensor (torch.manual_seed makes it repeatable), otherwise from NumPy's.

        Differences from transformers: penalties ignore padding, and top_k keeps exactly k tokens if
        several tie. Sampled texts have the same distribution but other random numbers.
        """
        del tokenizer  # transformers needs one for stop_strings; the model here has its own
        if input_ids is None:
            input_ids = inputs
        elif inputs is not None:
            raise UsageError(f"{_OPERATION} inputs: expected one of inputs and input_ids, got both")
        if input_ids is None:
            raise UsageError(f"{_OPERATION} input_ids: expected token ids, got none")
        values = {**_KNOWN, **self._defaults, **_read_config(generation_config), **_checked(arguments)}
        ends = self._ends(values)
        pad = self._pad(values, ends)
        read = _read_inputs(input_ids, attention_mask, pad, ends.tokens if ends.tokens is not None
                            else self.generator.model.end_tokens)
        n_new = _n_new_tokens(values, read.padded.shape[1])
        n_copies = int(values["num_return_sequences"])
        if n_copies < 1:
            raise UsageError(f"{_OPERATION} num_return_sequences: expected 1 or more, got {n_copies}")
        if n_copies > 1 and not values["do_sample"]:
            raise UsageError(f"{_OPERATION} num_return_sequences: expected 1 without do_sample, got {n_copies}")
        prompts = [row for row in read.rows for _ in range(n_copies)]
        if streamer is not None and len(prompts) != 1:
            raise UsageError(f"{_OPERATION} streamer: expected one row, got {len(prompts)}")
        sampling = _sampling(values, arguments)
        keeps_rows = bool(values["return_dict_in_generate"]) and (values["output_scores"] or values["output_logits"])
        results = self._run(prompts, sampling, ends, n_new, keeps_rows, values["max_time"], _seeds(
            seed, len(prompts), read.like if values["do_sample"] else None), _Stream(streamer, read))
        sequences = _sequences(results, read, n_copies, pad)
        if not values["return_dict_in_generate"]:
            return read.as_given(sequences)
        n_steps = max(len(result.ids) for result in results)
        output = GenerateOutput(sequences=read.as_given(sequences), scores=None, logits=None, results=results)
        if values["output_logits"]:
            output["logits"] = _steps([result.logits for result in results], n_steps, read)
        if values["output_scores"]:
            output["scores"] = _steps([processed_scores(result.logits, prompt, result.ids, sampling)
                                       for prompt, result in zip(prompts, results)], n_steps, read)
        return output

    def _ends(self, values) -> _Ends:
        tokens = values["eos_token_id"]
        if tokens is not None:
            tokens = [int(token) for token in numpy.atleast_1d(numpy.asarray(_to_numpy(tokens)))]
            tokens = [token for token in tokens if token >= 0]
        strings = values["stop_strings"]
        return _Ends(tokens, [strings] if isinstance(strings, str) else list(strings or ()))

    def _pad(self, values, ends: _Ends) -> Optional[int]:
        if values["pad_token_id"] is not None:
            return int(values["pad_token_id"])
        tokens = ends.tokens if ends.tokens is not None else list(self.generator.model.end_tokens)
        return int(tokens[0]) if tokens else None

    def _run(self, prompts, sampling, ends, n_new, keeps_rows, max_time, seeds, stream):
        import outrider

        options = {"max_tokens": n_new, "stop": ends.strings, "add_special": False, "keep_logits": keeps_rows,
                   "max_seconds": max_time or 0, "on_token": stream.on_token}
        if ends.tokens is not None:
            options.update(ignore_eos=True, stop_tokens=ends.tokens)
        stream.begin()
        results = self.generator.generate([prompt.tolist() for prompt in prompts], outrider.SamplingParams(**sampling),
                                          seed=seeds, **options)
        stream.end()
        return results


class _Stream:
    """The interface of transformers' streamers: the prompt first, then each token, then the end."""

    def __init__(self, streamer, read: _Inputs):
        self._streamer = streamer
        self._read = read
        self.on_token = None if streamer is None else self._put

    def begin(self) -> None:
        if self._streamer is not None:
            self._streamer.put(_on_processor(self._read.as_given(self._read.padded)))

    def _put(self, token, _row: int = 0) -> None:
        if token.id < 0:  # text held back until the time limit was reached
            return
        self._streamer.put(_on_processor(self._read.as_given(numpy.array([token.id], dtype=numpy.int64))))

    def end(self) -> None:
        if self._streamer is not None:
            self._streamer.end()


def _on_processor(ids):
    return ids.cpu() if hasattr(ids, "cpu") else ids


def _torch_of(tensor):
    """The torch module of a tensor; None for arrays."""
    if type(tensor).__module__.partition(".")[0] != "torch":
        return None
    import torch

    return torch


def _to_numpy(values):
    return values.detach().cpu().numpy() if _torch_of(values) is not None else values


def _read_config(config) -> dict:
    """Returns the fields of a generation_config that have a value."""
    if config is None:
        return {}
    fields = dict(config) if isinstance(config, dict) else config.to_dict()
    given = {name: value for name, value in fields.items() if name not in _CONFIG_ONLY and value is not None}
    # A max_length of 20 is the default of transformers, not a setting of the model.
    if given.get("max_length") == _DEFAULT_NEW_TOKENS:
        del given["max_length"]
    return _checked(given)


def _checked(arguments: dict) -> dict:
    """Returns the `arguments` that have an effect. Raises UsageError for one that would be ignored."""
    taken = {}
    for name, value in arguments.items():
        if name in _KNOWN:
            if value is not None:
                taken[name] = value
        elif name not in _NEUTRAL:
            raise UsageError(f"{_OPERATION} {name}: no argument that is known here")
        elif not any(value is neutral or (type(value) is type(neutral) and value == neutral)
                     for neutral in _NEUTRAL[name]):
            neutral = _NEUTRAL[name][-1]
            raise UsageError(f"{_OPERATION} {name}: expected {neutral!r}, the only value that is supported, "
                             f"got {value!r}")
    return taken


def _read_inputs(input_ids, attention_mask, pad, end_tokens) -> _Inputs:
    ids = numpy.asarray(_to_numpy(input_ids))
    if ids.ndim == 1:
        ids = ids[None, :]
    if ids.ndim != 2 or ids.shape[0] == 0 or not numpy.issubdtype(ids.dtype, numpy.integer):
        raise UsageError(f"{_OPERATION} input_ids: expected integers, (n, width), got {ids.dtype} {ids.shape}")
    ids = ids.astype(numpy.int64)
    if attention_mask is not None:
        mask = numpy.asarray(_to_numpy(attention_mask))
        mask = (mask[None, :] if mask.ndim == 1 else mask) != 0
        if mask.shape != ids.shape:
            raise UsageError(f"{_OPERATION} attention_mask: expected {ids.shape}, as input_ids, got {mask.shape}")
    elif pad is not None and end_tokens is not None and pad not in end_tokens:
        mask = numpy.cumsum(ids != pad, axis=1) > 0
    else:
        mask = numpy.ones(ids.shape, dtype=bool)
    rows = []
    for number, (row, seen) in enumerate(zip(ids, mask)):
        if not seen.any():
            raise UsageError(f"{_OPERATION} row {number}: expected a token that is no padding, got none")
        begin = int(numpy.argmax(seen))
        if not seen[begin:].all():
            raise UsageError(f"{_OPERATION} attention_mask: expected padding at the left alone, "
                             f"got some behind the first token in row {number}")
        rows.append(row[begin:])
    return _Inputs(rows, ids, input_ids)


def _n_new_tokens(values, width: int) -> int:
    if values["max_new_tokens"] is not None:
        n_new = int(values["max_new_tokens"])
    elif values["max_length"] is not None:
        n_new = int(values["max_length"]) - width
    else:
        n_new = _DEFAULT_NEW_TOKENS
    if n_new < 1:
        raise UsageError(f"{_OPERATION} max_new_tokens: expected room for a token or more, got {n_new}")
    return n_new


def _sampling(values, arguments) -> dict:
    """Returns the fields of SamplingParams."""
    sampling = {"repetition_penalty": float(values["repetition_penalty"])}
    if values["do_sample"]:
        sampling.update(temperature=float(values["temperature"]), top_k=int(values["top_k"]),
                        top_p=float(values["top_p"]), min_p=float(values["min_p"]))
        if sampling["temperature"] <= 0:
            raise UsageError(f"{_OPERATION} temperature: expected more than 0 with do_sample, "
                             f"got {values['temperature']}")
        return sampling
    for name in ("temperature", "top_k", "top_p", "min_p"):
        if arguments.get(name) not in (None, _KNOWN[name]):
            warnings.warn(f"{_OPERATION} {name} decides nothing without do_sample=True", stacklevel=3)
    return sampling


def _seeds(seed, n: int, like) -> List[int]:
    """Returns one seed per row, so that rows of the same prompt differ."""
    if seed is None and like is not None:
        torch = _torch_of(like)
        most = 2**31 - 1
        seed = int(torch.randint(most, ()) if torch is not None else numpy.random.randint(most))
    return [(int(seed or 0) + row) % 2**64 for row in range(n)]


def _sequences(results, read: _Inputs, n_copies: int, pad: Optional[int]) -> numpy.ndarray:
    longest = max(len(result.ids) for result in results)
    shortest = min(len(result.ids) for result in results)
    if pad is None and shortest < longest:
        raise UsageError(f"{_OPERATION} pad_token_id: expected one, as texts differ in length, got none")
    width = read.padded.shape[1]
    sequences = numpy.full((len(results), width + longest), 0 if pad is None else pad, dtype=numpy.int64)
    for number, result in enumerate(results):
        sequences[number, :width] = read.padded[number // n_copies]
        sequences[number, width:width + len(result.ids)] = result.ids
    return sequences


def _steps(rows: List[numpy.ndarray], n_steps: int, read: _Inputs) -> tuple:
    steps = []
    for step in range(n_steps):
        values = numpy.full((len(rows), rows[0].shape[1]), numpy.nan, dtype=numpy.float32)
        for number, row in enumerate(rows):
            if step < len(row):
                values[number] = row[step]
        steps.append(read.as_given(values))
    return tuple(steps)
