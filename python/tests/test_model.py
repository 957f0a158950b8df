# SPDX-License-Identifier: Apache-2.0
"""Model and Tokenizer: what is loaded, rows of logits and hidden states."""

import gc

import numpy as np
import pytest

import outrider
from conftest import PROMPTS


def test_summary_and_paths(model, models):
    summary = model.summary
    assert summary.architecture == "llama"
    assert (summary.vocabulary_size, summary.dim, summary.n_layers) == (4096, 256, 6)
    assert summary.threads == 1
    assert model.path == str(models / "target")
    assert 2 in model.end_tokens


def test_progress_is_told_and_may_refuse(models):
    shares = []
    outrider.Model(models / "drafter", threads=1, progress=shares.append)
    assert shares and shares == sorted(shares) and 0 <= shares[0] and shares[-1] <= 1

    def refuse(share):
        raise LookupError("no")

    with pytest.raises(LookupError):
        outrider.Model(models / "drafter", threads=1, progress=refuse)


def test_errors_have_their_types(models):
    with pytest.raises(outrider.Error) as error:
        outrider.Model(models / "nothing")
    assert not isinstance(error.value, outrider.UsageError)
    assert isinstance(error.value, RuntimeError)
    with pytest.raises(outrider.UsageError) as usage:
        outrider.Model(models / "target", weights="int3")
    assert isinstance(usage.value, (outrider.Error, ValueError))
    with pytest.raises(outrider.UsageError):
        outrider.Model(models / "target", weight="int8")
    with pytest.raises(TypeError):
        outrider.Model(models / "target", threads="two")


def test_tokenizer_is_the_programs(model, models, program):
    tokenizer = model.tokenizer
    ids = tokenizer.encode(PROMPTS[0])
    assert ids.dtype == np.int32 and ids.ndim == 1
    assert ids[0] == tokenizer.bos_token
    assert np.array_equal(ids[1:], tokenizer.encode(PROMPTS[0], add_special=False))
    assert tokenizer.decode(ids) == PROMPTS[0]
    assert tokenizer.find(tokenizer.piece(int(ids[1]))) == ids[1]
    assert tokenizer.find("no such piece at all") is None
    assert b"".join(tokenizer.bytes(int(id)) for id in ids).decode().strip() == PROMPTS[0]
    with pytest.raises(outrider.Error):
        tokenizer.decode([10**6])
    alone = outrider.Tokenizer.load(models / "target")
    assert np.array_equal(alone.encode(PROMPTS[0]), ids)


def test_tokenizer_outlives_its_model(models):
    tokenizer = outrider.Model(models / "drafter", threads=1).tokenizer
    gc.collect()
    assert tokenizer.decode(tokenizer.encode("All the same.")) == "All the same."


@pytest.mark.parametrize(
    "ids",
    [[1.5], ["a"], "text", b"bytes", 3, None, [[1]], [True], np.array([1.0]), np.array(1), [2**40]],
)
def test_what_are_no_ids_is_refused(model, ids):
    with pytest.raises((outrider.Error, TypeError)):
        model.tokenizer.decode(ids)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint16, list, tuple])
def test_ids_of_every_integer_type(model, kind):
    ids = model.tokenizer.encode(PROMPTS[0])
    given = kind(int(id) for id in ids) if kind in (list, tuple) else ids.astype(kind)[::1]
    assert model.tokenizer.decode(given) == PROMPTS[0]
    strided = np.repeat(ids, 2)[::2]
    assert model.tokenizer.decode(strided) == PROMPTS[0]


def test_logits_have_the_bits_of_generating(model, plain):
    prompt = model.tokenizer.encode(PROMPTS[0])
    result = plain.generate(prompt, max_tokens=12, keep_logits=True, ignore_eos=True)
    text = np.concatenate([prompt, result.ids[:-1]])
    rows = model.logits(text, first=len(prompt) - 1)
    assert rows.dtype == np.float32 and rows.shape == (12, 4096)
    assert rows.tobytes() == result.logits.tobytes()
    assert model.logits(text)[len(prompt) - 1 :].tobytes() == rows.tobytes()


def test_texts_of_one_call_share_passes_and_no_bits(model):
    texts = [model.tokenizer.encode(prompt * 12) for prompt in PROMPTS]
    assert sum(len(text) for text in texts) > 256
    layers = [6, 0]
    for text, logits, features in zip(texts, model.logits(texts), model.features(texts, layers)):
        assert logits.tobytes() == model.logits(text).tobytes()
        assert features.shape == (len(text), 2, 256)
        assert features.tobytes() == model.features(text, layers).tobytes()


def test_a_layer_of_features_is_that_layer(model):
    ids = model.tokenizer.encode(PROMPTS[1])
    all_layers = model.features(ids, list(range(7)))
    for layer in (0, 3, 6):
        assert np.array_equal(model.features(ids, [layer])[:, 0], all_layers[:, layer])
    # The same token has the same embedding at every position.
    twice = model.features([int(ids[1]), int(ids[2]), int(ids[1])], [0])
    assert np.array_equal(twice[0], twice[2])
    assert not np.array_equal(twice[0], twice[1])


def test_arrays_outlive_their_model(models):
    model = outrider.Model(models / "drafter", threads=1)
    expected = model.logits([1, 5]).copy()
    rows = model.logits([1, 5])
    del model
    gc.collect()
    assert np.array_equal(rows, expected)


def test_what_cannot_be_scored_is_refused(model):
    for ids in ([], [-1], [4096], [1] * 1025):
        with pytest.raises(outrider.Error):
            model.logits([ids])
    with pytest.raises(outrider.UsageError):
        model.features([1], [7])
    with pytest.raises(outrider.UsageError):
        model.logits([1], encoder_ids=[1])
    with pytest.raises(outrider.UsageError):
        model.logits([1], first=2)


def test_kernel_tables_name_the_one_in_use(model):
    tables = dict(outrider.kernel_tables())
    assert tables[model.summary.kernels]
    assert "scalar" in tables
