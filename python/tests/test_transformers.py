# SPDX-License-Identifier: Apache-2.0
"""transformers' generate on the engine, and models of transformers taken from memory."""

import json
from pathlib import Path

import numpy
import pytest

import outrider
from outrider._transformers_scores import processed_scores

MODELS = Path(__file__).resolve().parents[2] / "models"
PROMPTS = ["She opened the letter, and", "The carriage stopped before the house, and a servant"]


@pytest.fixture(scope="module")
def model():
    return outrider.Model(str(MODELS / "target"), weights="f32", threads=1)


@pytest.fixture(scope="module")
def generator(model):
    return outrider.TransformersGenerator(outrider.Generator(model, drafter="suffix"))


@pytest.fixture(scope="module")
def plain(model):
    return outrider.Generator(model)


def padded(rows, pad):
    width = max(map(len, rows))
    ids = numpy.full((len(rows), width), pad, dtype=numpy.int64)
    mask = numpy.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, width - len(row):] = row
        mask[number, width - len(row):] = 1
    return ids, mask


def test_greedy_rows_are_the_engine_s(model, generator, plain):
    rows = [model.tokenizer.encode(prompt) for prompt in PROMPTS]
    ids, mask = padded(rows, 0)
    sequences = generator.generate(ids, attention_mask=mask, max_new_tokens=24, pad_token_id=0)
    assert sequences.dtype == numpy.int64 and sequences.shape == (2, ids.shape[1] + 24)
    for number, row in enumerate(rows):
        assert (sequences[number, :ids.shape[1]] == ids[number]).all()
        assert (sequences[number, ids.shape[1]:] == plain.generate(row.tolist(), max_tokens=24).ids).all()
    # Without a mask, pad tokens on the left are padding.
    again = generator.generate(ids, max_new_tokens=24, pad_token_id=0, eos_token_id=2)
    assert (again == sequences).all()
    one = generator.generate(rows[0], max_length=len(rows[0]) + 5)
    assert one.shape == (1, len(rows[0]) + 5)
    assert generator.generate(rows[0]).shape == (1, len(rows[0]) + 20)


def test_padding_without_a_mask_where_no_end_is_given(model, generator, plain):
    rows = [model.tokenizer.encode(prompt) for prompt in PROMPTS]
    end = model.end_tokens[0]
    assert end != 0 and len(rows[0]) != len(rows[1])
    # Only a token that is not an end token of the model counts as padding.
    ids, mask = padded(rows, 0)
    expected = generator.generate(ids, attention_mask=mask, max_new_tokens=8, pad_token_id=0)
    assert (generator.generate(ids, max_new_tokens=8, pad_token_id=0) == expected).all()
    ids, mask = padded(rows, end)
    sequences = generator.generate(ids, max_new_tokens=8, pad_token_id=end)
    for row, sequence in zip(ids, sequences):
        text = plain.generate(row.tolist(), max_tokens=8).ids
        assert (sequence[len(row):len(row) + len(text)] == text).all()
    # A call without pad_token_id pads with the end token, too.
    assert (generator.generate(ids, max_new_tokens=8) == sequences).all()


def test_ends_and_padding_at_the_right(model, generator, plain):
    rows = [model.tokenizer.encode(prompt) for prompt in PROMPTS]
    ids, mask = padded(rows, 0)
    texts = [plain.generate(row.tolist(), max_tokens=24).ids for row in rows]
    # The first token that only the first text has ends it, and is kept.
    end = next(int(token) for token in texts[0] if token not in texts[1])
    sequences = generator.generate(ids, attention_mask=mask, max_new_tokens=24, eos_token_id=[end], pad_token_id=3)
    place = list(texts[0]).index(end)
    new = sequences[:, ids.shape[1]:]
    assert (new[0, :place + 1] == texts[0][:place + 1]).all() and (new[0, place + 1:] == 3).all()
    assert (new[1] == texts[1]).all()
    text = plain.generate(PROMPTS[0], max_tokens=24).text
    stop = text.strip().split(" ")[2]
    shorter = generator.generate(rows[0], max_new_tokens=24, stop_strings=stop)
    assert stop in model.tokenizer.decode(shorter[0, len(rows[0]):]) and shorter.shape[1] < len(rows[0]) + 24


def test_sampled_rows(model, generator):
    row = model.tokenizer.encode(PROMPTS[0])
    options = {"do_sample": True, "num_return_sequences": 3, "max_new_tokens": 16, "eos_token_id": [], "pad_token_id": 0}
    first = generator.generate(row, seed=5, **options)
    assert first.shape == (3, len(row) + 16)
    assert (first == generator.generate(row, seed=5, **options)).all()
    assert len({tuple(text) for text in first.tolist()}) == 3, "copies of a prompt are drawn apart"
    assert not (first == generator.generate(row, seed=6, **options)).all()
    numpy.random.seed(1)
    drawn = [generator.generate(row, **options), generator.generate(row, **options)]
    numpy.random.seed(1)
    assert (generator.generate(row, **options) == drawn[0]).all() and not (drawn[0] == drawn[1]).all()
    likeliest = generator.generate(row, seed=5, **{**options, "top_k": 1})
    greedy = generator.generate(row, max_new_tokens=16, eos_token_id=[])
    assert (likeliest == greedy).all()


def test_scores_and_logits(model, generator, plain):
    rows = [model.tokenizer.encode(prompt) for prompt in PROMPTS]
    ids, mask = padded(rows, 0)
    output = generator.generate(ids, attention_mask=mask, max_new_tokens=6, return_dict_in_generate=True,
                                output_scores=True, output_logits=True, repetition_penalty=1.3, pad_token_id=0)
    assert len(output.scores) == len(output["logits"]) == 6
    assert output.logits[0].shape == (2, model.summary.vocabulary_size)
    for number, row in enumerate(rows):
        alone = plain.generate(row.tolist(), outrider.SamplingParams(repetition_penalty=1.3), max_tokens=6, keep_logits=True)
        for step in range(6):
            assert (output.logits[step][number] == alone.logits[step]).all()
            assert int(output.scores[step][number].argmax()) == alone.ids[step]
    assert not (output.scores[0] == output.logits[0]).all()
    bare = generator.generate(ids, attention_mask=mask, max_new_tokens=6, return_dict_in_generate=True)
    assert bare.scores is None and bare.logits is None and len(bare.results) == 2


def test_scores_by_hand():
    row = numpy.array([[2.0, 1.0, -1.0, 0.0, 2.0]], dtype=numpy.float32)
    sampling = {"repetition_penalty": 2.0, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    assert processed_scores(row, [0, 2], [1], sampling).tolist() == [[1.0, 1.0, -2.0, 0.0, 2.0]]
    sampling["repetition_penalty"] = 1.0
    inf = -numpy.inf
    # Among ties the lowest id is kept.
    assert processed_scores(row, [3], [1], {**sampling, "top_k": 1}).tolist() == [[2.0, inf, inf, inf, inf]]
    # Probabilities: 0.392, 0.144, 0.020, 0.053, 0.392.
    assert processed_scores(row, [3], [1], {**sampling, "top_p": 0.7}).tolist() == [[2.0, inf, inf, inf, 2.0]]
    assert processed_scores(row, [3], [1], {**sampling, "top_p": 0.8}).tolist() == [[2.0, 1.0, inf, inf, 2.0]]
    assert processed_scores(row, [3], [1], {**sampling, "min_p": 0.3}).tolist() == [[2.0, 1.0, inf, inf, 2.0]]
    assert processed_scores(row, [3], [1], {**sampling, "temperature": 0.5}).tolist() == [[4.0, 2.0, -2.0, 0.0, 4.0]]
    assert row.tolist() == [[2.0, 1.0, -1.0, 0.0, 2.0]]


@pytest.mark.parametrize("arguments", [
    {"num_beams": 4}, {"frob": 1}, {"no_repeat_ngram_size": 2}, {"assistant_model": object()}, {"min_new_tokens": 3},
    {"max_new_tokens": 0}, {"num_return_sequences": 2}, {"do_sample": True, "temperature": 0.0},
    {"attention_mask": [[1, 1, 0]]}, {"attention_mask": [[0, 0, 0]]}, {"attention_mask": [[1, 1]]},
    {"inputs": [[1, 2]]}, {"use_cache": False}, {"generation_config": {"num_beams": 2}}, {"logits_processor": [len]},
])
def test_nothing_is_ignored(generator, arguments):
    with pytest.raises(outrider.UsageError):
        generator.generate(numpy.array([[1, 5, 6]]), **arguments)


def test_what_is_neutral_is_taken(generator):
    expected = generator.generate(numpy.array([[1, 5, 6]]), max_new_tokens=4)
    config = {"num_beams": 1, "max_length": 20, "max_new_tokens": 4, "transformers_version": "5", "top_k": 50, "min_p": None}
    for arguments in ({"num_beams": 1, "use_cache": True, "max_new_tokens": 4}, {"generation_config": config}):
        assert (generator.generate(numpy.array([[1, 5, 6]]), **arguments) == expected).all()
    with pytest.warns(UserWarning, match="temperature"):
        generator.generate(numpy.array([[1, 5, 6]]), max_new_tokens=4, temperature=0.7)
    defaults = outrider.TransformersGenerator(generator.generator, generation_config={"max_new_tokens": 4})
    assert (defaults.generate(numpy.array([[1, 5, 6]])) == expected).all()


class Streamer:
    def __init__(self):
        self.put_values, self.ended = [], False

    def put(self, value):
        self.put_values.append(value)

    def end(self):
        self.ended = True


def test_streamer(generator):
    streamer = Streamer()
    ids = numpy.array([[1, 5, 6]])
    sequences = generator.generate(ids, max_new_tokens=8, eos_token_id=[], streamer=streamer)
    assert streamer.ended and (streamer.put_values[0] == ids).all()
    assert [int(value[0]) for value in streamer.put_values[1:]] == sequences[0, 3:].tolist()
    with pytest.raises(outrider.UsageError, match="one row"):
        generator.generate(numpy.array([[1, 5], [1, 6]]), streamer=streamer)


# --- with torch and transformers


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def hugging(torch):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return (transformers.AutoModelForCausalLM.from_pretrained(str(MODELS / "target"), dtype=torch.float32),
            transformers.AutoTokenizer.from_pretrained(str(MODELS / "target")))


def test_tensors_of_torch(torch, generator):
    ids = torch.tensor([[1, 5, 6]])
    sequences = generator.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=4)
    assert isinstance(sequences, torch.Tensor) and sequences.dtype == torch.int64
    assert (sequences.numpy() == generator.generate(ids.numpy(), max_new_tokens=4)).all()
    torch.manual_seed(3)
    first = generator.generate(ids, do_sample=True, max_new_tokens=8)
    torch.manual_seed(3)
    assert torch.equal(first, generator.generate(ids, do_sample=True, max_new_tokens=8))


def small_models(transformers):
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    yield transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, tie_word_embeddings=False))
    yield transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, tie_word_embeddings=True)).bfloat16()
    # Its experts have another layout in memory than in files.
    yield transformers.MixtralForCausalLM(transformers.MixtralConfig(**sizes, num_local_experts=4))
    # Three names for its embedding, of which files have one.
    yield transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4))


def test_tensors_are_those_of_files(torch, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from safetensors.torch import load_file

    from outrider._transformers_model import config_json, tensors_of

    for number, model in enumerate(small_models(transformers)):
        folder = tmp_path / str(number)
        model.save_pretrained(folder)
        stored = load_file(folder / "model.safetensors")
        tensors = tensors_of(model)
        assert stored.keys() == tensors.keys()
        for name, tensor in stored.items():
            bits = tensor.view(torch.int16).numpy().view(numpy.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()
            assert bits.dtype == tensors[name].dtype and (bits == tensors[name]).all(), name
        assert json.loads(config_json(model)) == json.loads((folder / "config.json").read_text())


def test_a_model_from_memory_is_the_one_from_its_file(hugging, model, plain):
    hf_model, tokenizer = hugging
    for tokens in (tokenizer, None, str(MODELS / "target"), tokenizer.backend_tokenizer):
        taken = outrider.from_transformers(hf_model, tokens)
        assert taken.tokenizer.encode(PROMPTS[0]).tolist() == model.tokenizer.encode(PROMPTS[0]).tolist()
    # The file holds bfloat16, which float32 holds exactly.
    result = outrider.Generator(taken).generate(PROMPTS[0], max_tokens=16, keep_logits=True)
    expected = plain.generate(PROMPTS[0], max_tokens=16, keep_logits=True)
    assert (result.ids == expected.ids).all() and (result.logits == expected.logits).all()


def test_a_model_in_bfloat16(torch, hugging, plain):
    hf_model, tokenizer = hugging
    import copy

    taken = outrider.from_transformers(copy.deepcopy(hf_model).to(torch.bfloat16), tokenizer)
    result = outrider.Generator(taken).generate(PROMPTS[0], max_tokens=16, keep_logits=True)
    assert (result.logits == plain.generate(PROMPTS[0], max_tokens=16, keep_logits=True).logits).all()


def test_greedy_texts_are_transformers_own(hugging):
    hf_model, tokenizer = hugging
    taken = outrider.TransformersGenerator(outrider.Generator(outrider.from_transformers(hf_model, tokenizer)))
    tokenizer.padding_side, tokenizer.pad_token = "left", "</s>"
    batch = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    ours = taken.generate(**batch, max_new_tokens=24)
    theirs = hf_model.generate(**batch, max_new_tokens=24, do_sample=False)
    assert ours.tolist() == theirs.tolist()


def test_models_that_cannot_be_taken(torch, hugging):
    hf_model, tokenizer = hugging
    with pytest.raises(outrider.UsageError, match="transformers model"):
        outrider.from_transformers(object(), tokenizer)
    with pytest.raises(outrider.UsageError, match="tokenizer"):
        outrider.from_transformers(hf_model, 5)
    import copy

    with pytest.raises(outrider.UsageError, match="float64"):
        outrider.from_transformers(copy.deepcopy(hf_model).double(), tokenizer)
