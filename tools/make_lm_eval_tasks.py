# SPDX-License-Identifier: Apache-2.0
"""Small tasks for lm-evaluation-harness from local test sets: no network, nothing of the data is kept
but in the folder that is made.

    python3 tools/make_lm_eval_tasks.py DATA OUT [--items N]

DATA: a folder with svamp/test.json, gsm8k/test.jsonl and wmt22/generaltest2022.de-en.{src.de,ref.A.en}.
OUT gets a JSONL and a YAML file for each task:

    small_svamp        generated answers, the number compared (exact_match)
    small_gsm8k        which of four numbers is the answer (acc)
    small_translation  which of four sentences translates a German one (acc)
    small_text         log-likelihood of running text (word_perplexity)
"""
import argparse
import json
import random
from pathlib import Path

SEED = 20220901


def svamp(data, n):
    items = map(json.loads, (data / "svamp/test.json").read_text().splitlines()[:n])
    return [{"question": f"{item['Body'].strip().rstrip('.')}. {item['Question']}", "answer": f"{item['Answer']:g}"}
            for item in items]


def gsm8k(data, n):
    chance = random.Random(SEED)
    docs = []
    for line in (data / "gsm8k/test.jsonl").read_text().splitlines()[:n]:
        item = json.loads(line)
        right = int(item["answer"].rpartition("####")[2].replace(",", "").strip())
        others = sorted({right + 1, right * 2, max(0, right - 2), right + 10, right // 2} - {right})
        choices = [right, *chance.sample(others, 3)]
        chance.shuffle(choices)
        docs.append({"question": item["question"], "choices": [str(choice) for choice in choices],
                     "answer": choices.index(right)})
    return docs


def translation(data, n):
    chance = random.Random(SEED + 1)
    source = (data / "wmt22/generaltest2022.de-en.src.de").read_text().splitlines()
    target = (data / "wmt22/generaltest2022.de-en.ref.A.en").read_text().splitlines()
    # Of medium length: names alone say nothing, and long texts take long.
    pairs = [pair for pair in zip(source, target) if 40 <= len(pair[1]) <= 160][:n]
    docs = []
    for number, (german, english) in enumerate(pairs):
        others = [pairs[other][1] for other in chance.sample([i for i in range(len(pairs)) if i != number], 3)]
        choices = [english, *others]
        chance.shuffle(choices)
        docs.append({"question": german, "choices": choices, "answer": choices.index(english)})
    return docs


def text(data, n):
    lines = (data / "gsm8k/test.jsonl").read_text().splitlines()
    return [{"page": json.loads(line)["question"]} for line in lines[-n:]]


# Texts without a space at their end: that space would begin the answer.
TASKS = {
    "small_svamp": (svamp, """
output_type: generate_until
doc_to_text: "Question: {{question}}\\nThe answer is the number"
doc_to_target: "{{answer}}"
generation_kwargs:
  until: ["\\n"]
  max_gen_toks: 24
  do_sample: false
filter_list:
  - name: number
    filter:
      - function: regex
        regex_pattern: "(-?[0-9]+(?:\\\\.[0-9]+)?)"
        group_select: 0
      - function: take_first
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""),
    "small_gsm8k": (gsm8k, """
output_type: multiple_choice
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""),
    "small_translation": (translation, """
output_type: multiple_choice
doc_to_text: "German: {{question}}\\nEnglish:"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""),
    "small_text": (text, """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{page}}"
metric_list:
  - metric: word_perplexity
"""),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=250, help="of each task")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, (docs_of, yaml) in TASKS.items():
        docs = docs_of(options.data, options.items)
        file = (options.out / f"{name}.jsonl").resolve()
        file.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        head = (f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {json.dumps(str(file))}\n"
                "test_split: test\nnum_fewshot: 0")
        (options.out / f"{name}.yaml").write_text(head + yaml + "metadata:\n  version: 1.0\n")
        print(f"{name}: {len(docs)} items")


if __name__ == "__main__":
    main()
