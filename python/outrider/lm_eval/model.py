# SPDX-License-Identifier: Apache-2.0
"""The model class for the harness. Requests and tokenization follow the harness' own HFLM, so that
results of the two can be compared."""

from typing import Dict, List, Optional, Tuple

from lm_eval import utils
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import handle_stop_sequences, has_bos_prefix, normalize_gen_kwargs, postprocess_generated_text
from tqdm import tqdm

import outrider
from outrider.lm_eval.scoring import Scored, of_decoder, of_encoder_decoder, score

# The default of transformers, for tasks that sample without setting it.
_DEFAULT_TOP_K = 50

# The batch size for "auto": as many texts as `outrider serve` decodes at a time. In comparison to 8
# texts at a time, 32 gave 1.15 times the tokens per second with a model of half a billion weights.
# A small model gained nothing beyond 8 texts (docs/serve.md).
_AUTO_BATCH = 32

# The default of HFLM, if neither the task nor the user sets one.
_DEFAULT_NEW_TOKENS = 256


class OutriderLM(TemplateLM):
    """An outrider.Model as a model of the harness.

    pretrained: a path, as for outrider.Model, or an outrider.Model. weights, kv, threads, kernels,
    kv_memory: its options. drafter, rule, tree, verify: for generated texts; with the rule "exact"
    they change only the speed. max_length: number of context tokens (default: the model's).
    max_gen_toks: limit of generated tokens if a task sets none.

    add_bos_token: whether texts get the tokenizer's special tokens (None: the tokenizer's default).
    prefix_token_id: the token before a text without context (default: bos, or else eos).
    batch_size: number of texts that share passes; "auto": 32. seed: seed of sampling. device is
    ignored: passes run on the processor.
    """

    def __init__(self, pretrained, drafter: str = "none", rule: str = "exact", tree: str = "", verify: str = "exact",
                 weights: str = "", kv: str = "", threads: int = 0, kernels: str = "", kv_memory: int = 0,
                 max_length: Optional[int] = None, max_gen_toks: int = _DEFAULT_NEW_TOKENS, batch_size=1,
                 max_batch_size: Optional[int] = None, device: Optional[str] = None,
                 add_bos_token: Optional[bool] = None, prefix_token_id: Optional[int] = None, seed: int = 0):
        super().__init__()
        del device  # the harness passes "cuda:0" by default
        self.model = pretrained if isinstance(pretrained, outrider.Model) else outrider.Model(
            pretrained, weights=weights, kv=kv, threads=int(threads), kernels=kernels, kv_memory=int(kv_memory))
        self.generator = outrider.Generator(self.model, drafter=drafter, rule=rule, tree=tree, verify=verify)
        self.tokenizer = self.model.tokenizer
        self.backend = "seq2seq" if self.model.summary.n_encoder_layers else "causal"
        self.max_length = int(max_length or self.model.summary.context_length)
        self.max_gen_toks = int(max_gen_toks)
        self.batch_size = min(_AUTO_BATCH, int(max_batch_size or _AUTO_BATCH)) \
            if str(batch_size).startswith("auto") else int(batch_size)
        self._name = str(getattr(self.model, "path", "")) or "outrider"
        self._add_bos_token = add_bos_token
        self._prefix_token_id = prefix_token_id
        self._seed = int(seed)

    @property
    def eot_token_id(self) -> int:
        return self.tokenizer.eos_token if self.tokenizer.eos_token >= 0 else self.model.end_tokens[0]

    @property
    def prefix_token_id(self) -> int:
        if self._prefix_token_id is not None:
            return int(self._prefix_token_id)
        return self.tokenizer.bos_token if self.tokenizer.bos_token >= 0 else self.eot_token_id

    @property
    def tokenizer_name(self) -> str:
        return self._name.replace("/", "__")

    def tok_encode(self, string: str, add_special_tokens: Optional[bool] = None, **_) -> List[int]:
        if add_special_tokens is None:
            prefix = self.tokenizer.decode([self.prefix_token_id], keep_special=True)
            add_special_tokens = not has_bos_prefix(string, prefix) and self._add_bos_token is not False
        return self.tokenizer.encode(string, add_special=add_special_tokens).tolist()

    def _scored(self, context: List[int], continuation: List[int]) -> Scored:
        if self.backend == "seq2seq":
            return of_encoder_decoder(context, continuation, self.model.summary.start_token, self.max_length)
        return of_decoder(context, continuation, self.max_length)

    def _logits(self, ids, encoder_ids, first):
        return self.model.logits(ids, encoder_ids=encoder_ids if self.backend == "seq2seq" else None, first=first)

    def _loglikelihood_tokens(self, requests, disable_tqdm: bool = False, **_) -> List[Tuple[float, bool]]:
        with tqdm(total=len(requests), disable=disable_tqdm, desc="Running loglikelihood requests") as bar:
            answers = score([self._scored(context, continuation) for _, context, continuation in requests],
                            self.batch_size, self._logits, bar.update)
        for (texts, _, _), answer in zip(requests, answers):
            # Windows of a rolling log-likelihood come without texts.
            if texts is not None:
                self.cache_hook.add_partial("loglikelihood", texts, answer)
        return answers

    def loglikelihood_rolling(self, requests, disable_tqdm: bool = False) -> List[float]:
        windows, owners = [], []
        for number, request in enumerate(requests):
            tokens = self.tok_encode(request.args[0])
            for window in utils.get_rolling_token_windows(token_list=tokens, prefix_token=self.prefix_token_id,
                                                          max_seq_len=self.max_length, context_len=1):
                context, continuation = utils.make_disjoint_window(window)
                windows.append((None, context, continuation))
                owners.append(number)
        sums = [0.0] * len(requests)
        for owner, (log_likelihood, _) in zip(owners, self._loglikelihood_tokens(windows, disable_tqdm=disable_tqdm)):
            sums[owner] += log_likelihood
        for request, total in zip(requests, sums):
            self.cache_hook.add_partial("loglikelihood_rolling", (request.args[0],), total)
        return sums

    def generate_until(self, requests, disable_tqdm: bool = False) -> List[str]:
        answers: List[Optional[str]] = [None] * len(requests)
        # Texts that share passes have the same sampling parameters.
        groups: Dict[str, List[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(repr(sorted(request.args[1].items(), key=repr)), []).append(number)
        with tqdm(total=len(requests), disable=disable_tqdm, desc="Running generate_until requests") as bar:
            for members in groups.values():
                encoded = {number: self.tok_encode(requests[number].args[0]) for number in members}
                members.sort(key=lambda number: -len(encoded[number]))
                for begin in range(0, len(members), self.batch_size):
                    batch = members[begin:begin + self.batch_size]
                    arguments = requests[batch[0]].args[1]
                    texts = self._generate([encoded[number] for number in batch], arguments,
                                           [self._seed + number for number in batch])
                    for number, text in zip(batch, texts):
                        answers[number] = text
                        self.cache_hook.add_partial("generate_until", requests[number].args, text)
                    bar.update(len(batch))
        return answers

    def _generate(self, contexts: List[List[int]], arguments: dict, seeds: List[int]) -> List[str]:
        left = dict(normalize_gen_kwargs(arguments, self.max_gen_toks))
        eos = self.tokenizer.decode([self.eot_token_id], keep_special=True)
        until = [text for text in handle_stop_sequences(left.pop("until", None), eos=eos) if text]
        n_new = left.pop("max_gen_toks")
        sampling = _sampling(left)
        most = self.max_length if self.backend == "seq2seq" else self.max_length - n_new
        if most < 1:
            raise outrider.Error(f"[lm_eval] max_gen_toks: expected less than the context of {self.max_length} tokens, "
                                 f"got {n_new}")
        results = self.generator.generate([context[-most:] for context in contexts], sampling, max_tokens=n_new,
                                          seed=seeds, stop=until)
        # Decodes these ids alone, as HFLM does: Result.text may begin with a blank.
        return [postprocess_generated_text(self.tokenizer.decode(result.ids), stop=until, think_end_token=None)
                for result in results]

    def chat_template(self, chat_template=False) -> Optional[str]:
        # The harness stores this with the results and uses it in the keys of caches.
        return f"{self._name}: the model's own" if chat_template else None

    def apply_chat_template(self, chat_history, add_generation_prompt: bool = True) -> str:
        text = self.tokenizer.chat_template(chat_history, add_generation_prompt=add_generation_prompt)
        if add_generation_prompt:
            return text
        # The last message is to be continued: the tokens that end a turn must not follow it.
        last = chat_history[-1]["content"].strip()
        end = text.rfind(last)
        if end < 0:
            raise outrider.Error("[lm_eval] chat template: expected the last message in it, got it changed")
        return text[:end + len(last)]

    def get_model_info(self) -> dict:
        summary = self.model.summary
        return {"model_num_parameters": summary.n_parameters, "model_dtype": summary.weights,
                "model_revision": "", "model_sha": ""}


def _sampling(left: dict):
    """Returns the SamplingParams of a task's settings. Raises UsageError for one that would be ignored."""
    samples = bool(left.pop("do_sample", False))
    fields = {"temperature": float(left.pop("temperature", 0.0) or 0.0), "top_k": left.pop("top_k", None),
              "top_p": left.pop("top_p", None), "min_p": left.pop("min_p", None)}
    penalties = {name: float(left.pop(name)) for name in ("repetition_penalty", "presence_penalty",
                                                          "frequency_penalty") if left.get(name) is not None}
    for name in ("num_beams", "use_cache"):
        if left.pop(name, 1) not in (None, 1, True):
            raise outrider.UsageError(f"[lm_eval] {name}: expected 1, the only value that is supported")
    if left:
        raise outrider.UsageError(f"[lm_eval] generation arguments: no such ones here: {', '.join(sorted(left))}")
    if not samples:
        return outrider.SamplingParams(**penalties)
    fields = {name: value for name, value in fields.items() if value is not None}
    return outrider.SamplingParams(**{"top_k": _DEFAULT_TOP_K, **fields, **penalties})
