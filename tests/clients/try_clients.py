# SPDX-License-Identifier: Apache-2.0
"""The official clients of OpenAI and Anthropic against a running server.

    python3 tests/clients/try_clients.py http://127.0.0.1:8080 [--key KEY] [--instructed]

--instructed: the model follows instructions, and the contents of its answers are checked; otherwise
only their format. Prints one line per case; exits with 1 if one fails. scripts/test-clients
installs the clients, starts servers and runs this.
"""
import argparse
import json
import math
import traceback

import anthropic
import openai

TOOL = {"name": "get_weather", "description": "The current weather of a city.",
        "parameters": {"type": "object",
                       "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
                       "required": ["city", "unit"], "additionalProperties": False}}
PERSON = {"type": "object",
          "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
          "required": ["name", "age"], "additionalProperties": False}
QUESTION = [{"role": "user", "content": "What is the weather in Paris, in degrees C?"}]


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class Cases:
    def __init__(self, url, key, instructed):
        self.openai = openai.OpenAI(base_url=url + "/v1", api_key=key or "none", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=url, api_key=key or "none", max_retries=0)
        self.keyed = bool(key)
        self.url = url
        self.instructed = instructed
        self.model = self.openai.models.list().data[0].id

    def chat(self, **fields):
        fields = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 24, "temperature": 0, **fields}
        return self.openai.chat.completions.create(model=self.model, **fields)

    def case_chat(self):
        answer = self.chat()
        check(answer.choices[0].message.role == "assistant", "role")
        check(answer.choices[0].finish_reason in ("stop", "length"), "finish_reason")
        check(answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, "usage")
        check(answer.choices[0].message.content, "a text")

    def case_chat_stream(self):
        whole = self.chat().choices[0].message.content
        parts, usage = [], None
        for chunk in self.chat(stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            parts += [choice.delta.content or "" for choice in chunk.choices]
        check("".join(parts) == whole, f"{''.join(parts)!r} is {whole!r}")
        check(usage.completion_tokens > 0, "usage")

    def case_chat_speculation_off_is_the_same(self):
        off = self.chat(extra_body={"speculation": False}).choices[0].message.content
        check(off == self.chat().choices[0].message.content, "the same text")

    def case_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3, max_tokens=12)
        entries = answer.choices[0].logprobs.content
        check(entries, "entries")
        for entry in entries:
            check(entry.logprob <= 0 and len(entry.top_logprobs) == 3, "an entry")
            # Temperature 0: each is the likeliest token.
            check(math.isclose(entry.logprob, entry.top_logprobs[0].logprob), "the likeliest")
            check(bytes(entry.bytes).decode("utf-8", "replace") == entry.token, "bytes")
        off = self.chat(logprobs=True, top_logprobs=3, max_tokens=12, extra_body={"speculation": False})
        check([e.logprob for e in entries] == [e.logprob for e in off.choices[0].logprobs.content],
              "the same without speculation, to the bit")

    def case_n_and_seed(self):
        asked = dict(messages=[{"role": "user", "content": "Invent a name for a ship, and say why."}],
                     n=2, temperature=1, max_tokens=24)
        one, again, other = (self.chat(seed=seed, **asked) for seed in (7, 7, 8))
        texts = [[choice.message.content for choice in answer.choices] for answer in (one, again, other)]
        check(len(texts[0]) == 2, "two choices")
        check(texts[0] == texts[1], "the same seed, the same texts")
        check(texts[0] != texts[2], "another seed, other texts")

    def case_stop(self):
        whole = self.chat(max_tokens=24).choices[0].message.content
        check(len(whole) > 3, "a text")
        stop = whole[len(whole) // 2]
        cut = self.chat(max_tokens=24, stop=[stop])
        check(cut.choices[0].message.content == whole[:whole.index(stop)], "the text before the stop string")
        check(cut.choices[0].finish_reason == "stop", "stop")

    def case_completion(self):
        answer = self.openai.completions.create(model=self.model, prompt="Once upon a time", max_tokens=12, temperature=0, logprobs=2)
        check(answer.choices[0].text and answer.usage.completion_tokens <= 12, "a text")
        check(len(answer.choices[0].logprobs.tokens) == len(answer.choices[0].logprobs.token_logprobs), "logprobs")
        parts = self.openai.completions.create(model=self.model, prompt="Once upon a time", max_tokens=12, temperature=0, stream=True)
        check("".join(part.choices[0].text for part in parts) == answer.choices[0].text, "the stream")

    def case_json_schema(self):
        form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
        answer = self.chat(messages=[{"role": "user", "content": "Name a person and their age, as JSON."}],
                           response_format=form, max_tokens=200)
        person = json.loads(answer.choices[0].message.content)
        check(set(person) == {"name", "age"} and isinstance(person["age"], int), f"{person}")

    def case_json_object(self):
        answer = self.chat(response_format={"type": "json_object"}, max_tokens=300, stop=None, seed=1, temperature=1)
        if answer.choices[0].finish_reason == "stop":
            check(isinstance(json.loads(answer.choices[0].message.content), dict), "an object")

    def tool_round(self, stream):
        tools = [{"type": "function", "function": TOOL}]
        choice = {"type": "function", "function": {"name": "get_weather"}}
        asked = dict(messages=QUESTION, tools=tools, tool_choice=choice, parallel_tool_calls=False, max_tokens=200)
        if not stream:
            answer = self.chat(**asked)
            check(answer.choices[0].finish_reason == "tool_calls", answer.choices[0].finish_reason)
            return tools, answer.choices[0].message.tool_calls[0].model_dump()
        call = None
        for chunk in self.chat(stream=True, **asked):
            for delta in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
                if call is None:
                    call = delta.model_dump()
                else:
                    call["function"]["arguments"] += delta.function.arguments
        return tools, call

    def case_tools_two_rounds(self):
        for stream in (False, True):
            tools, call = self.tool_round(stream)
            check(call["function"]["name"] == "get_weather", "the name")
            arguments = json.loads(call["function"]["arguments"])
            check(set(arguments) == {"city", "unit"}, f"{arguments}")
            if self.instructed:
                check("paris" in arguments["city"].lower(), f"{arguments}")
            second = self.chat(messages=QUESTION + [
                {"role": "assistant", "content": None, "tool_calls": [{k: call[k] for k in ("id", "type", "function")}]},
                {"role": "tool", "tool_call_id": call["id"], "content": '{"degrees": 21}'}],
                tools=tools, tool_choice="auto", max_tokens=60)
            check(second.choices[0].message.content or second.choices[0].message.tool_calls, "an answer")
            if self.instructed:
                check("21" in (second.choices[0].message.content or ""), f"{second.choices[0].message}")

    def case_responses(self):
        answer = self.openai.responses.create(model=self.model, input="Say hello.", max_output_tokens=24, temperature=0)
        check(answer.output_text and answer.usage.output_tokens > 0, "a text")
        parts, last = [], None
        for event in self.openai.responses.create(model=self.model, input="Say hello.", max_output_tokens=24, temperature=0, stream=True):
            if event.type == "response.output_text.delta":
                parts.append(event.delta)
            last = event
        check("".join(parts) == answer.output_text, "the stream")
        check(last.type in ("response.completed", "response.incomplete"), last.type)
        check(last.response.output_text == answer.output_text, "the last event")

    def case_responses_tools(self):
        tool = {"type": "function", "strict": True, **TOOL}
        answer = self.openai.responses.create(model=self.model, input=QUESTION[0]["content"], tools=[tool],
                                              tool_choice={"type": "function", "name": "get_weather"},
                                              parallel_tool_calls=False, max_output_tokens=200, temperature=0)
        call = [item for item in answer.output if item.type == "function_call"][0]
        check(set(json.loads(call.arguments)) == {"city", "unit"}, call.arguments)
        second = self.openai.responses.create(
            model=self.model, tools=[tool], max_output_tokens=60, temperature=0,
            input=QUESTION + [{"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
                              {"type": "function_call_output", "call_id": call.call_id, "output": '{"degrees": 21}'}])
        check(second.output, "an answer")

    def case_responses_schema(self):
        answer = self.openai.responses.create(model=self.model, input="Name a person and their age.", max_output_tokens=200, temperature=0,
                                              text={"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}})
        check(set(json.loads(answer.output_text)) == {"name", "age"}, answer.output_text)

    def message(self, **fields):
        # The client's own signature no longer has a temperature.
        fields = {"max_tokens": 24, "messages": [{"role": "user", "content": "Say hello."}],
                  "extra_body": {"temperature": 0}, **fields}
        return self.anthropic.messages.create(model=self.model, **fields)

    def case_messages(self):
        answer = self.message(system="Be brief.")
        check(answer.type == "message" and answer.content[0].type == "text", "a text")
        with self.anthropic.messages.stream(model=self.model, max_tokens=24, extra_body={"temperature": 0}, system="Be brief.",
                                            messages=[{"role": "user", "content": "Say hello."}]) as stream:
            check("".join(stream.text_stream) == answer.content[0].text, "the stream")
            check(stream.get_final_message().stop_reason == answer.stop_reason, "stop_reason")
        counted = self.anthropic.messages.count_tokens(model=self.model, system="Be brief.",
                                                       messages=[{"role": "user", "content": "Say hello."}])
        usage = answer.usage
        check(counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0), "count_tokens")

    def case_messages_stop(self):
        whole = self.message().content[0].text
        stop = whole[len(whole) // 2]
        if not stop.strip():
            stop = whole.strip()[0]
        cut = self.message(stop_sequences=[stop])
        check(cut.stop_reason == "stop_sequence" and cut.stop_sequence == stop, f"{cut.stop_reason} {cut.stop_sequence!r}")

    def case_messages_tools(self):
        tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
        asked = dict(tools=[tool], tool_choice={"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
                     messages=QUESTION, max_tokens=200)
        answer = self.message(**asked)
        check(answer.stop_reason == "tool_use", answer.stop_reason)
        call = [block for block in answer.content if block.type == "tool_use"][0]
        check(set(call.input) == {"city", "unit"}, f"{call.input}")
        with self.anthropic.messages.stream(model=self.model, extra_body={"temperature": 0}, **asked) as stream:
            final = stream.get_final_message()
        check([block for block in final.content if block.type == "tool_use"][0].input == call.input, "the stream")
        second = self.message(tools=[tool], max_tokens=60, messages=QUESTION + [
            {"role": "assistant", "content": [call.model_dump(include={"type", "id", "name", "input"})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees C"}]}])
        check(second.content, "an answer")
        if self.instructed:
            check("21" in "".join(block.text for block in second.content if block.type == "text"), f"{second.content}")

    def case_messages_schema(self):
        answer = self.message(messages=[{"role": "user", "content": "Name a person and their age."}], max_tokens=200,
                              output_config={"format": {"type": "json_schema", "schema": PERSON}})
        check(set(json.loads(answer.content[0].text)) == {"name", "age"}, answer.content[0].text)

    def case_embeddings(self):
        answer = self.openai.embeddings.create(model=self.model, input=["a cat", "a dog", "a cat"])
        vectors = [one.embedding for one in answer.data]
        check(len(vectors) == 3 and vectors[0] == vectors[2] != vectors[1], "vectors")
        check(math.isclose(sum(x * x for x in vectors[0]), 1, abs_tol=1e-4), "length 1")
        floats = self.openai.embeddings.create(model=self.model, input="a cat", encoding_format="float").data[0].embedding
        check(all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(floats, vectors[0])), "base64 and float")

    def refused(self, kind, **fields):
        try:
            self.chat(**fields)
        except kind as error:
            return error
        raise AssertionError(f"no {kind.__name__}")

    def case_errors(self):
        error = self.refused(openai.BadRequestError, temperature=-1)
        check("temperature" in str(error), f"{error}")
        error = self.refused(openai.BadRequestError, messages=[])
        error = self.refused(openai.BadRequestError, extra_body={"nonsense": 1})
        check(error.code == "unknown_parameter" and error.param == "nonsense", f"{error}")
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {"type": "null"}}}}
        check("not" in str(self.refused(openai.BadRequestError, response_format=form)), "the keyword")
        error = self.refused(openai.BadRequestError, messages=[{"role": "user", "content": "word " * 200000}])
        check(error.code == "context_length_exceeded", f"{error.code}")
        try:
            self.message(max_tokens=-1)
            raise AssertionError("no error")
        except anthropic.BadRequestError as error:
            check(error.body["type"] == "error" and error.body["error"]["type"] == "invalid_request_error", f"{error.body}")

    def case_keys(self):
        if not self.keyed:
            return
        for client in (openai.OpenAI(base_url=self.url + "/v1", api_key="wrong", max_retries=0),):
            try:
                client.models.list()
                raise AssertionError("no error")
            except openai.AuthenticationError:
                pass
        try:
            anthropic.Anthropic(base_url=self.url, api_key="wrong", max_retries=0).messages.create(
                model="x", max_tokens=1, messages=QUESTION)
            raise AssertionError("no error")
        except anthropic.AuthenticationError:
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--key")
    parser.add_argument("--instructed", action="store_true")
    options = parser.parse_args()
    cases = Cases(options.url, options.key, options.instructed)
    failed = 0
    for name in sorted(name for name in dir(cases) if name.startswith("case_")):
        try:
            getattr(cases, name)()
            print(f"ok      {name[5:]}")
        except Exception:  # any error that a client raises
            failed += 1
            print(f"FAILED  {name[5:]}")
            traceback.print_exc(limit=4)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
