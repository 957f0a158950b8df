# SPDX-License-Identifier: Apache-2.0
"""Generation: the same bits as the command line, batches, streams, keywords."""

import gc
import json
import weakref

import numpy as np
import pytest

import outrider
from conftest import DRAFTER, MODELS, PROMPTS

MODEL_FLAGS = ("--model", MODELS / "target", "--threads", 1)
DRAFT_FLAGS = ("--drafter", DRAFTER, "--tree", "own", "--profile", "none")
SAMPLED = outrider.SamplingParams(temperature=0.8, top_k=40, top_p=0.95, repetition_penalty=1.1)
SAMPLED_FLAGS = (
    *("--temperature", 0.8, "--top-k", 40, "--top-p", 0.95),
    *("--repetition-penalty", 1.1, "--seed", 7),
)


@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize("samples", [False, True])
def test_the_commands_bits(model, plain, drafted, program, tmp_path, drafts, samples):
    flags = (DRAFT_FLAGS if drafts else ()) + (SAMPLED_FLAGS if samples else ())
    rows = tmp_path / "rows"
    said = json.loads(
        program(
            *("generate", *MODEL_FLAGS, *flags, "--prompt", PROMPTS[0]),
            *("--max-tokens", 40, "--json", "--logits", rows),
        )
    )
    generator = drafted if drafts else plain
    sampling = SAMPLED if samples else None
    result = generator.generate(PROMPTS[0], sampling, max_tokens=40, seed=7, keep_logits=True)
    assert result.ids.tolist() == said["ids"]
    assert result.text == said["text"]
    assert result.finish_reason == said["finish_reason"]
    assert result.logits.tobytes() == rows.read_bytes()
    assert result.accepted_per_round.tolist() == said["accepted_per_round"]
    for name in ("target_passes", "drafter_passes", "drafted", "accepted", "emitted", "tau"):
        assert getattr(result.statistics, name) == said["stats"][name]
    assert generator.rule_scope == said["rule_scope"]
    assert (result.statistics.accepted > 0) == drafts


@pytest.mark.parametrize("samples", [False, True])
def test_batches_have_the_bits_of_single_texts(plain, drafted, samples):
    options = dict(sampling=SAMPLED if samples else None, max_tokens=30, keep_logits=True)
    for generator in (plain, drafted):
        together = generator.generate(PROMPTS, **options, seed=[3, 4, 5])
        for prompt, seed, result in zip(PROMPTS, [3, 4, 5], together):
            alone = generator.generate(prompt, **options, seed=seed)
            assert result.ids.tolist() == alone.ids.tolist()
            assert result.logits.tobytes() == alone.logits.tobytes()
            assert result.text == alone.text


def test_drafts_change_no_bits(plain, drafted):
    expected = plain.generate(PROMPTS[0], max_tokens=60, keep_logits=True)
    result = drafted.generate(PROMPTS[0], max_tokens=60, keep_logits=True)
    assert result.ids.tolist() == expected.ids.tolist()
    assert result.logits.tobytes() == expected.logits.tobytes()
    assert result.statistics.target_passes < expected.statistics.target_passes


def test_prompts_in_every_form(model, plain):
    ids = model.tokenizer.encode(PROMPTS[0])
    expected = plain.generate(PROMPTS[0], max_tokens=5).ids.tolist()
    for prompt in (ids, ids.tolist(), tuple(ids.tolist()), ids.astype(np.int64)):
        result = plain.generate(prompt, max_tokens=5)
        assert isinstance(result, outrider.Result)
        assert result.ids.tolist() == expected
    for prompts in ([ids, ids], [PROMPTS[0], ids.tolist()], np.stack([ids, ids])):
        results = plain.generate(prompts, max_tokens=5)
        assert [result.ids.tolist() for result in results] == [expected] * 2


def test_a_list_of_one_prompt_gives_a_list(plain):
    (result,) = plain.generate([PROMPTS[0]], max_tokens=2)
    assert len(result.ids) == 2


def test_a_results_arrays_are_its_memory(plain):
    result = plain.generate(PROMPTS[0], max_tokens=4, keep_logits=True)
    assert result.logits.shape == (4, 4096)
    assert not result.logits.flags.owndata
    assert np.shares_memory(result.logits, result.logits)
    assert np.shares_memory(result.ids, result.ids)
    rows, expected = result.logits, result.logits.copy()
    del result
    gc.collect()
    assert np.array_equal(rows, expected)
    assert plain.generate(PROMPTS[0], max_tokens=4).logits.shape == (0, 4096)


def test_streams_say_what_generate_does(drafted):
    options = dict(max_tokens=50, log_probs=3, keep_logits=True)
    stream = drafted.stream(PROMPTS[0], **options)
    assert stream.result is None
    tokens = list(stream)
    result = stream.result
    expected = drafted.generate(PROMPTS[0], max_tokens=50, keep_logits=True)
    assert [token.id for token in tokens] == expected.ids.tolist() == result.ids.tolist()
    assert "".join(token.text for token in tokens) == expected.text == result.text
    # (The token after the last draft that max_tokens allows is a plain one.)
    assert {token.origin for token in tokens[:-1]} <= {"accepted", "corrected", "bonus"}
    accepted = [token for token in tokens if token.origin == "accepted"]
    assert len(accepted) == result.statistics.accepted
    assert all(token.rank == 0 for token in accepted)
    for token, row in zip(tokens, result.logits.astype(np.float64)):
        assert len(token.top) == 3 and token.top[0].id == token.id  # temperature 0
        assert token.log_prob == token.top[0].log_prob
        law = row - row.max()
        law -= np.log(np.exp(law).sum())
        # Sums of 4,096 doubles in another order; the rows themselves are the same.
        assert abs(token.log_prob - law[token.id]) < 1e-9
    with pytest.raises(StopIteration):
        next(stream)


def test_on_token_gets_the_streams_tokens(plain):
    seen = []
    plain.generate(PROMPTS[0], max_tokens=9, on_token=lambda token: seen.append(token.id))
    assert seen == [token.id for token in plain.stream(PROMPTS[0], max_tokens=9)]
    of_batch = {0: [], 1: []}
    results = plain.generate(
        PROMPTS[:2], max_tokens=9, on_token=lambda token, index: of_batch[index].append(token.id)
    )
    assert [of_batch[0], of_batch[1]] == [result.ids.tolist() for result in results]


def test_what_on_token_raises_comes_out(plain):
    def refuse(token):
        raise LookupError(token.text)

    with pytest.raises(LookupError):
        plain.generate(PROMPTS[0], max_tokens=9, on_token=refuse)
    assert len(plain.generate(PROMPTS[0], max_tokens=9).ids) == 9


def test_stops(model, plain):
    whole = plain.generate(PROMPTS[0], max_tokens=40)
    word = whole.text.split()[4]
    cut = plain.generate(PROMPTS[0], max_tokens=40, stop=word)
    assert (cut.finish_reason, cut.stop_string) == ("stop", word)
    assert cut.text == whole.text[: whole.text.index(word)]
    assert plain.generate(PROMPTS[0], max_tokens=40, stop=["never said", word]).text == cut.text
    token = int(whole.ids[6])
    first = whole.ids.tolist().index(token)
    stopped = plain.generate(PROMPTS[0], max_tokens=40, stop_tokens=[token])
    assert stopped.ids.tolist() == whole.ids[: first + 1].tolist()
    assert whole.finish_reason == "length"
    # Text held back as a possible stop string comes out at the end, with the last token.
    stream = plain.stream(PROMPTS[0], max_tokens=5, stop=whole.text[:200] + "never said")
    tokens = list(stream)
    assert "".join(token.text for token in tokens) == stream.result.text
    assert stream.result.text != ""


def test_grammars_hold(plain):
    grammar = outrider.Grammar.from_regex("(yes|no), [a-z]{3}")
    result = plain.generate(PROMPTS[0], max_tokens=20, grammar=grammar)
    assert result.finish_reason == "stop"
    assert result.text.split(", ")[0] in ("yes", "no") and len(result.text.split(", ")[1]) == 3
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
    for form in (schema, json.dumps(schema)):
        grammar = outrider.Grammar.from_json_schema(form)
        assert json.loads(plain.generate(PROMPTS[0], grammar=grammar).text)["n"] in (1, 2)
    with pytest.raises(outrider.Error):
        outrider.Grammar.from_gbnf("root ::= (")


def test_sampling_params():
    params = outrider.SamplingParams(temperature=0.5, logit_bias=[(3, -1.0)])
    assert params.temperature == 0.5 and params.logit_bias == [(3, -1.0)] and params.top_p == 1
    params.top_k = 7
    assert "top_k=7" in repr(params)


def test_a_bias_bans(plain):
    first = int(plain.generate(PROMPTS[0], max_tokens=1).ids[0])
    banned = outrider.SamplingParams(logit_bias=[(first, -np.inf)])
    assert plain.generate(PROMPTS[0], banned, max_tokens=1).ids[0] != first


def test_trees_as_the_command_line_spells_them(model, plain):
    expected = plain.generate(PROMPTS[1], max_tokens=30).ids.tolist()
    for tree in ("own", "auto", "widths:3,2,1", "dynamic:total=12,depth=4,topk=3"):
        generator = outrider.Generator(model, drafter=DRAFTER, tree=tree)
        assert generator.generate(PROMPTS[1], max_tokens=30).ids.tolist() == expected, tree


def test_coupled_drafts_say_what_plain_sampling_does(model, plain):
    for tree in ("own", "auto"):
        generator = outrider.Generator(model, drafter=DRAFTER, tree=tree, verify="coupled")
        assert (
            generator.generate(PROMPTS[0], SAMPLED, max_tokens=30, seed=11).ids.tolist()
            == plain.generate(PROMPTS[0], SAMPLED, max_tokens=30, seed=11).ids.tolist()
        )


def test_rules_as_the_command_line_spells_them(model, program):
    generator = outrider.Generator(
        model, drafter=DRAFTER, tree="own", rule="lossy:alpha=0.5", drafter_options={"threads": 1}
    )
    result = generator.generate(PROMPTS[0], SAMPLED, max_tokens=30, seed=7)
    said = json.loads(
        program(
            *("generate", *MODEL_FLAGS, *DRAFT_FLAGS, *SAMPLED_FLAGS, "--rule", "lossy:alpha=0.5"),
            *("--prompt", PROMPTS[0], "--max-tokens", 30, "--json"),
        )
    )
    assert result.ids.tolist() == said["ids"]
    assert result.statistics.accepted == said["stats"]["accepted"]
    assert result.statistics.rule_tv == said["stats"]["rule_tv"] > 0


@pytest.mark.parametrize(
    "keywords",
    [
        {"maximum": 3},
        {"sampling": outrider.SamplingParams(temperature=-1)},
        {"seed": [1, 2]},
        {"encoder_prompt": "no encoder"},
        {"max_tokens": -1},
    ],
)
def test_what_cannot_be_meant_is_refused(plain, keywords):
    with pytest.raises(outrider.Error):
        plain.generate(PROMPTS[0], **{"max_tokens": 3, **keywords})
    assert len(plain.generate(PROMPTS[0], max_tokens=3).ids) == 3


@pytest.mark.parametrize(
    "keywords",
    [{"max_tokens": "three"}, {"seed": "one"}, {"grammar": "root"}, {"stop": 3}, {"sampling": 0.5}],
)
def test_values_of_other_types_are_type_errors(plain, keywords):
    with pytest.raises(TypeError) as error:
        plain.generate(PROMPTS[0], **keywords)
    assert next(iter(keywords)) in str(error.value)


@pytest.mark.parametrize("prompt", [[], 3, None, b"bytes", [[]], ["text", 3], [-1], [10**6]])
def test_what_is_no_prompt_is_refused(plain, prompt):
    with pytest.raises(outrider.Error):
        plain.generate(prompt, max_tokens=3)


def test_one_bad_prompt_of_a_batch_refuses_all(plain):
    told = []
    with pytest.raises(outrider.Error):
        plain.generate([PROMPTS[0], [10**6]], on_token=lambda *of: told.append(of))
    assert not told


def test_unknown_specs_are_refused(model):
    for keywords in ({"drafter": "nobody"}, {"rule": "no rule"}, {"tree": "bush"}):
        with pytest.raises(outrider.UsageError):
            outrider.Generator(model, **keywords)


def test_a_kept_text_is_not_run_again(model):
    generator = outrider.Generator(model)
    generator.keep_last_text(True)
    first = generator.generate(PROMPTS[0], max_tokens=10)
    second = generator.generate(PROMPTS[0], max_tokens=10)
    assert first.statistics.reused == 0 and second.statistics.reused > 0
    assert first.ids.tolist() == second.ids.tolist()


def test_max_seconds_ends_a_text(plain):
    result = plain.generate(PROMPTS[0], max_tokens=900, ignore_eos=True, max_seconds=1e-9)
    assert result.finish_reason == "time" and len(result.ids) < 900


def test_one_call_for_everything(model, models, plain):
    expected = plain.generate(PROMPTS[0], max_tokens=10).ids.tolist()
    result = outrider.generate(
        models / "target", PROMPTS[0], models / "drafter", threads=1, max_tokens=10
    )
    assert result.ids.tolist() == expected and result.statistics.drafted > 0
    assert outrider.generate(model, PROMPTS[0], max_tokens=10).ids.tolist() == expected
    sampled = outrider.generate(model, PROMPTS[0], temperature=0.9, seed=5, max_tokens=10)
    params = outrider.SamplingParams(temperature=0.9)
    expected = plain.generate(PROMPTS[0], params, seed=5, max_tokens=10).ids.tolist()
    assert sampled.ids.tolist() == expected
    for wrong in ({"weights": "int8"}, {"draft": "a", "drafter": "suffix"}, {"temprature": 1}):
        with pytest.raises(outrider.UsageError):
            outrider.generate(model, PROMPTS[0], **wrong)


def test_generators_and_results_are_freed(models):
    model = outrider.Model(models / "drafter", threads=1)
    generator = outrider.Generator(model)
    result = generator.generate(PROMPTS[0], max_tokens=3)
    held = [weakref.ref(model), weakref.ref(generator), weakref.ref(result)]
    del model, generator, result
    gc.collect()
    assert [ref() for ref in held] == [None] * 3
