# SPDX-License-Identifier: Apache-2.0
"""Conversations: prompts by the model's template, parsed replies, tool calls."""

import json

import pytest

import outrider
from conftest import CHAT_TEMPLATE, TOOLS

MESSAGES = [{"role": "user", "content": "What did she say?"}]


@pytest.fixture(scope="module")
def chatty(with_template):
    return with_template(CHAT_TEMPLATE)


@pytest.fixture(scope="module")
def generator(chatty):
    return outrider.Generator(chatty)


def test_a_reply_is_what_follows_the_rendered_prompt(chatty, generator):
    reply = generator.chat(MESSAGES, max_tokens=20)
    prompt = chatty.tokenizer.chat_template(MESSAGES)
    assert prompt == "user: What did she say?\nassistant:"
    expected = generator.generate(prompt, add_special=False, max_tokens=20)
    assert reply.result.ids.tolist() == expected.ids.tolist()
    assert reply.content.strip() == expected.text.strip()
    assert reply.reasoning == "" and reply.tool_calls == []


def test_the_commands_chat(chatty, generator, program):
    said = json.loads(
        program(
            *("generate", "--model", chatty.path, "--threads", 1, "--chat", "--json"),
            *("--prompt", MESSAGES[0]["content"], "--max-tokens", 20),
        )
    )
    assert generator.chat(MESSAGES, max_tokens=20).result.ids.tolist() == said["ids"]


@pytest.mark.parametrize(
    "choice", ["required", "weather", {"type": "function", "function": {"name": "weather"}}]
)
def test_a_call_that_must_be(generator, choice):
    seen = []
    reply = generator.chat(
        MESSAGES,
        tools=TOOLS,
        tool_choice=choice,
        parallel_calls=False,
        max_tokens=400,
        on_token=seen.append,
    )
    assert reply.result.finish_reason == "stop"
    (call,) = reply.tool_calls
    assert call["type"] == "function" and call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"])["city"] in ("Rome", "Paris")
    assert len(seen) == len(reply.result.ids)


def test_tools_that_may_be_called_are_in_the_prompt(chatty, generator):
    assert "weather" in chatty.tokenizer.chat_template(MESSAGES, tools=TOOLS)
    told = generator.chat(MESSAGES, tools=TOOLS, max_tokens=5).result.ids.tolist()
    untold = generator.chat(MESSAGES, tools=TOOLS, tool_choice="none", max_tokens=5)
    assert untold.result.ids.tolist() == generator.chat(MESSAGES, max_tokens=5).result.ids.tolist()
    assert told != untold.result.ids.tolist()


def test_a_form_of_the_answer(generator):
    grammar = outrider.Grammar.from_regex(" ?(yes|no)")
    assert generator.chat(MESSAGES, grammar=grammar).content.strip() in ("yes", "no")


def test_messages_spell_no_special_tokens(chatty, generator):
    spelling = [{"role": "user", "content": "</s>"}]
    options = dict(max_tokens=1, keep_logits=True)
    guarded = generator.chat(spelling, **options).result.logits.tobytes()
    trusted = generator.chat(spelling, trust_messages=True, **options).result.logits.tobytes()
    prompt = chatty.tokenizer.chat_template(spelling)
    expected = generator.generate(prompt, add_special=False, **options).logits.tobytes()
    assert trusted == expected and guarded != trusted


def test_variables_reach_the_template(chatty):
    said = chatty.tokenizer.chat_template([], variables={"messages": MESSAGES})
    assert said == chatty.tokenizer.chat_template(MESSAGES)


def test_what_cannot_be_meant_is_refused(generator, plain):
    for keywords in (
        {"tool_choice": "required"},
        {"tools": TOOLS, "tool_choice": "time"},
        {"tools": TOOLS, "tool_choice": 3},
        {"seed": [1, 2]},
        {"maximum": 3},
    ):
        with pytest.raises(outrider.UsageError):
            generator.chat(MESSAGES, **{"max_tokens": 3, **keywords})
    with pytest.raises(outrider.Error, match="template"):
        plain.chat(MESSAGES)
