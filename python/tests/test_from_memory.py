# SPDX-License-Identifier: Apache-2.0
"""Models from arrays: the same bits as from the files, and the same messages."""

import json

import numpy as np
import pytest

import outrider
from outrider._outrider import model_from_memory
from conftest import MODELS, PROMPTS

TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def read_safetensors(file):
    data = file.read_bytes()
    n = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, of in json.loads(data[8 : 8 + n]).items():
        if name != "__metadata__":
            begin, end = of["data_offsets"]
            values = np.frombuffer(data[8 + n + begin : 8 + n + end], TYPES[of["dtype"]])
            tensors[name] = values.reshape(of["shape"]).copy()
    return tensors


@pytest.fixture
def parts():
    folder = MODELS / "target"
    tensors = {}
    for file in folder.glob("*.safetensors"):
        tensors.update(read_safetensors(file))
    files = {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.suffix in (".json", ".jinja", ".model") and file.name != "config.json"
    }
    return (folder / "config.json").read_text(), tensors, files


@pytest.mark.parametrize("weights", ["", "f32", "int8"])
def test_it_has_the_bits_of_its_files(parts, weights):
    config, tensors, files = parts
    model = model_from_memory(config, tensors, files, weights=weights, threads=1)
    for array in tensors.values():  # the arrays are overwritten from here on
        array.fill(0)
    tensors.clear()
    expected = outrider.Model(MODELS / "target", weights=weights, threads=1)
    for name in ("weights", "weight_bytes", "n_parameters", "architecture"):
        assert getattr(model.summary, name) == getattr(expected.summary, name)
    assert model.path == ""
    assert model.end_tokens == expected.end_tokens
    ids = model.tokenizer.encode(PROMPTS[0])
    assert ids.tolist() == expected.tokenizer.encode(PROMPTS[0]).tolist()
    assert model.logits(ids).tobytes() == expected.logits(ids).tobytes()
    drafter = "suffix"
    one = outrider.Generator(model, drafter=drafter).generate(PROMPTS[0], max_tokens=20)
    other = outrider.Generator(expected, drafter=drafter).generate(PROMPTS[0], max_tokens=20)
    assert one.ids.tolist() == other.ids.tolist()


def test_arrays_that_are_not_in_one_piece(parts):
    config, tensors, files = parts
    expected = model_from_memory(config, tensors, files, threads=1)
    turned = {name: np.asfortranarray(array) for name, array in tensors.items()}
    model = model_from_memory(config, turned, files, threads=1)
    ids = model.tokenizer.encode(PROMPTS[0])
    assert model.logits(ids).tobytes() == expected.logits(ids).tobytes()


def test_what_is_wrong_is_said_as_of_files(parts):
    config, tensors, files = parts
    (name, *_) = [name for name in tensors if name.endswith("up_proj.weight")]

    def refusal(config=config, tensors=tensors, files=files, **options):
        with pytest.raises(outrider.Error) as caught:
            model_from_memory(config, tensors, files, threads=1, **options)
        return str(caught.value)

    without = {key: array for key, array in tensors.items() if key != name}
    message = refusal(tensors=without)
    assert "memory" in message and name in message
    message = refusal(tensors={**tensors, name: tensors[name][1:]})
    assert "memory" in message and name in message
    message = refusal(tensors={**tensors, name: np.zeros(tensors[name].shape, np.complex64)})
    assert name in message and "complex64" in message
    assert "memory/config.json" in refusal(config="{")
    assert "tokenizer.json" in refusal(files={})
    with pytest.raises(outrider.UsageError, match="one in memory"):
        model_from_memory(config, tensors, files, experts="mapped")
    with pytest.raises(outrider.UsageError, match="keyword"):
        model_from_memory(config, tensors, files, mood="good")
    with pytest.raises(TypeError, match="bytes by name"):
        model_from_memory(config, tensors, {"tokenizer.json": 5})


def test_progress_is_told_and_may_end_it(parts):
    shares = []
    model_from_memory(*parts, threads=1, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1

    def stop(share):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        model_from_memory(*parts, threads=1, progress=stop)
