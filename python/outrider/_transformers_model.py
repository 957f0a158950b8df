# SPDX-License-Identifier: Apache-2.0
"""`outrider.from_transformers`: makes a Model from a transformers model in memory."""

import json
import os
import tempfile
from pathlib import Path
from typing import Dict, Mapping

import numpy

from outrider import Error, UsageError

# Files in a tokenizer's folder that the engine reads.
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
                    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                    "chat_template.jinja", "chat_template.json", "generation_config.json")


def from_transformers(model, tokenizer=None, *, weights: str = "f32", kv: str = "", threads: int = 0,
                      kernels: str = "", kv_memory: int = 0, progress=None):
    """Makes an outrider.Model from a transformers model (a PreTrainedModel) without a file in between.

    model: a model of a family that outrider loads from Hugging Face directories. Its parameters are
    float32, bfloat16 or float16, on any device; those in main memory are read in place. The engine
    packs its own copy: the model may be deleted afterwards. Later changes to the model (training)
    do not reach the copy.

    tokenizer: one of transformers' (fast) tokenizers, a tokenizers.Tokenizer, a folder or a
    tokenizer.json. Or a dict of such files: contents as bytes by names. None: the folder from which
    the model was loaded, if it is on this machine.

    weights: "f32" (the default, exact), "bf16", "int8" or "int4". The other options are those of
    outrider.Model.

    Raises UsageError if the model is not supported, Error if its tensors do not match its
    configuration.
    """
    from outrider import _outrider

    for name in ("state_dict", "config"):
        if not hasattr(model, name):
            raise UsageError(f"[from_transformers] model: expected a transformers model, got {type(model).__name__}")
    if hasattr(model, "peft_config"):
        raise UsageError("[from_transformers] model: expected one without adapters (merge_and_unload()), got adapters")
    files = _tokenizer_files(model, tokenizer)
    if "generation_config.json" not in files and getattr(model, "generation_config", None) is not None:
        files["generation_config.json"] = model.generation_config.to_json_string().encode()
    options = {"weights": weights, "kv": kv, "threads": threads, "kernels": kernels, "kv_memory": kv_memory,
               "progress": progress}
    return _outrider.model_from_memory(config_json(model), tensors_of(model), files, **options)


def config_json(model) -> str:
    """Returns the contents of the model's config.json."""
    config = json.loads(model.config.to_json_string())
    # save_pretrained() adds this field. In memory it may be missing or name another class.
    config["architectures"] = [type(model).__name__]
    return json.dumps(config)


def tensors_of(model) -> Dict[str, numpy.ndarray]:
    """Returns the model's tensors by the names that they have in files: float32 and float16 arrays,
    and bfloat16 as uint16 arrays of its bits. Tied tensors are included once. Arrays share the
    model's memory where possible; they are valid as long as the model lives."""
    state = _as_stored(model, model.state_dict())
    tensors: Dict[str, numpy.ndarray] = {}
    tied = _tied_names(model)
    places = set()
    # Tied names last, so that the names to which they are tied come first.
    for name in sorted(state, key=lambda name: name in tied):
        tensor = state[name]
        if getattr(tensor, "is_meta", False):
            raise UsageError(f"[from_transformers] {name}: expected a tensor in memory, got none (offloaded)")
        place = (tensor.data_ptr(), tuple(tensor.shape), str(tensor.dtype))
        if name in tied and place in places:
            continue
        places.add(place)
        array = _array(name, tensor)
        if array is not None:
            tensors[name] = array
    return tensors


def _as_stored(model, state: Mapping) -> Mapping:
    """Returns names and shapes as in files: from version 5 on, transformers keeps some (experts) differently."""
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:
        return state
    return revert_weight_conversion(model, state)


def _tied_names(model) -> set:
    names = set()
    for attribute in ("all_tied_weights_keys", "_tied_weights_keys"):
        names.update(getattr(model, attribute, None) or ())
    if getattr(model.config, "tie_word_embeddings", False):
        names.add("lm_head.weight")
    return names


def _array(name: str, tensor):
    import torch

    tensor = tensor.detach()
    if not tensor.is_floating_point():
        # Counters and indices are no weights; packed tensors (for example of bitsandbytes) are.
        if tensor.dim() < 2:
            return None
        raise UsageError(f"[from_transformers] {name}: expected float32, bfloat16 or float16, got {tensor.dtype}")
    tensor = tensor.cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(numpy.uint16)
    if tensor.dtype not in (torch.float32, torch.float16):
        raise UsageError(f"[from_transformers] {name}: expected float32, bfloat16 or float16, got {tensor.dtype}")
    return tensor.numpy()


def _tokenizer_files(model, tokenizer) -> Dict[str, bytes]:
    if tokenizer is None:
        folder = Path(getattr(model, "name_or_path", "") or "")
        if not str(folder) or str(folder) == "." or not folder.is_dir():
            raise UsageError("[from_transformers] tokenizer: expected one, got none "
                             "(and the model was not loaded from a folder that is here)")
        return _files_in(folder)
    if isinstance(tokenizer, Mapping):
        return {str(name): bytes(data) for name, data in tokenizer.items()}
    if isinstance(tokenizer, (str, os.PathLike)):
        path = Path(tokenizer)
        return _files_in(path) if path.is_dir() else {path.name: path.read_bytes()}
    if hasattr(tokenizer, "save_pretrained"):
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            return _files_in(Path(folder))
    if hasattr(tokenizer, "to_str"):
        return {"tokenizer.json": tokenizer.to_str().encode()}
    raise UsageError(f"[from_transformers] tokenizer: expected one of transformers or tokenizers, a folder or "
                     f"files, got {type(tokenizer).__name__}")


def _files_in(folder: Path) -> Dict[str, bytes]:
    files = {name: (folder / name).read_bytes() for name in _TOKENIZER_FILES if (folder / name).is_file()}
    if not files:
        raise Error(f"[from_transformers] {folder}: expected a tokenizer's files, got none")
    return files
