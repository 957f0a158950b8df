# SPDX-License-Identifier: Apache-2.0
# Types of the extension module. The docstrings are in the module itself: help(outrider). Here they
# only state shapes.
import os
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

import numpy as np
import numpy.typing as npt

from .own_drafter import Proposes

Ids = Union[Sequence[int], npt.NDArray[np.integer[Any]]]
Prompt = Union[str, Ids]
Prompts = Union[Sequence[str], Sequence[Ids], npt.NDArray[np.integer[Any]]]

class Error(RuntimeError): ...
class UsageError(Error, ValueError): ...

class Tokenizer:
    @staticmethod
    def load(path: Union[str, os.PathLike[str]]) -> Tokenizer: ...
    def encode(self, text: str, add_special: bool = True) -> npt.NDArray[np.int32]:
        """(n)"""
    def decode(self, ids: Ids, keep_special: bool = False) -> str: ...
    def piece(self, id: int) -> str: ...
    def find(self, piece: str) -> Optional[int]: ...
    def bytes(self, id: int) -> bytes: ...
    def is_special(self, id: int) -> bool: ...
    def chat_template(
        self,
        messages: Union[str, Sequence[Dict[str, Any]]],
        tools: Union[None, str, Sequence[Dict[str, Any]]] = None,
        add_generation_prompt: bool = True,
        variables: Union[None, str, Dict[str, Any]] = None,
    ) -> str: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def bos_token(self) -> int: ...
    @property
    def eos_token(self) -> int: ...
    @property
    def warnings(self) -> List[str]: ...

class ModelSummary:
    """Sizes in bytes, context_length in tokens."""

    @property
    def architecture(self) -> str: ...
    @property
    def kernels(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def context_length(self) -> int: ...
    @property
    def n_layers(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def n_heads(self) -> int: ...
    @property
    def n_kv_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def hidden_dim(self) -> int: ...
    @property
    def n_encoder_layers(self) -> int: ...
    @property
    def start_token(self) -> int: ...
    @property
    def weights(self) -> str: ...
    @property
    def kv(self) -> str: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def kv_bytes_per_token(self) -> int: ...
    @property
    def n_experts(self) -> int: ...
    @property
    def n_experts_used(self) -> int: ...
    @property
    def idle_bytes(self) -> int: ...
    @property
    def mapped_bytes(self) -> int: ...
    @property
    def expert_memory_bytes(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    @property
    def state_bytes_per_node(self) -> int: ...

class Model:
    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        progress: Optional[Callable[[float], None]] = None,
        weights: str = "",
        kv: str = "",
        threads: int = 0,
        kernels: str = "",
        kv_memory: int = 0,
        experts: str = "",
        experts_memory: int = 0,
        device: str = "",
    ) -> None: ...
    @overload
    def logits(
        self, ids: Ids, *, encoder_ids: Optional[Ids] = None, first: int = 0
    ) -> npt.NDArray[np.float32]:
        """(n - first, vocabulary)"""
    @overload
    def logits(
        self, ids: Sequence[Ids], *, encoder_ids: Optional[Sequence[Ids]] = None, first: int = 0
    ) -> List[npt.NDArray[np.float32]]: ...
    @overload
    def features(
        self, ids: Ids, layers: Sequence[int], *, encoder_ids: Optional[Ids] = None
    ) -> npt.NDArray[np.float32]:
        """(n, len(layers), dim)"""
    @overload
    def features(
        self,
        ids: Sequence[Ids],
        layers: Sequence[int],
        *,
        encoder_ids: Optional[Sequence[Ids]] = None,
    ) -> List[npt.NDArray[np.float32]]: ...
    @property
    def path(self) -> str: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def summary(self) -> ModelSummary: ...
    @property
    def end_tokens(self) -> List[int]: ...
    @property
    def warnings(self) -> List[str]: ...

class SamplingParams:
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: List[Tuple[int, float]]
    def __init__(
        self,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        logit_bias: Sequence[Tuple[int, float]] = ...,
    ) -> None: ...

class Grammar:
    @staticmethod
    def from_gbnf(text: str) -> Grammar: ...
    @staticmethod
    def from_json_schema(schema: Union[str, Dict[str, Any], bool]) -> Grammar: ...
    @staticmethod
    def from_regex(text: str) -> Grammar: ...
    @staticmethod
    def any_json_object() -> Grammar: ...
    @staticmethod
    def choice(one: Grammar, other: Grammar) -> Grammar: ...
    @staticmethod
    def sequence(first: Grammar, second: Grammar) -> Grammar: ...

class TokenLogProb:
    @property
    def id(self) -> int: ...
    @property
    def log_prob(self) -> float: ...

class Token:
    @property
    def id(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def log_prob(self) -> Optional[float]: ...
    @property
    def top(self) -> List[TokenLogProb]: ...
    @property
    def ends(self) -> bool: ...

class Statistics:
    """Counts of one text; times in seconds."""

    @property
    def target_passes(self) -> int: ...
    @property
    def drafter_passes(self) -> int: ...
    @property
    def drafted(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def rejected(self) -> int: ...
    @property
    def emitted(self) -> int: ...
    @property
    def rule_kl(self) -> float: ...
    @property
    def rule_tv(self) -> float: ...
    @property
    def deferral_rate(self) -> float: ...
    @property
    def reused(self) -> int: ...
    @property
    def prefill_seconds(self) -> float: ...
    @property
    def decode_seconds(self) -> float: ...
    @property
    def draft_seconds(self) -> float: ...
    @property
    def target_seconds(self) -> float: ...
    @property
    def verify_seconds(self) -> float: ...
    @property
    def tau(self) -> float: ...
    @property
    def acceptance_rate(self) -> float: ...
    @property
    def tokens_per_second(self) -> float: ...

class Result:
    @property
    def ids(self) -> npt.NDArray[np.int32]:
        """(n)"""
    @property
    def logits(self) -> npt.NDArray[np.float32]:
        """(n, vocabulary); (0, vocabulary) without keep_logits"""
    @property
    def accepted_per_round(self) -> npt.NDArray[np.int32]:
        """(passes)"""
    @property
    def text(self) -> str: ...
    @property
    def finish_reason(self) -> str: ...
    @property
    def stop_string(self) -> str: ...
    @property
    def statistics(self) -> Statistics: ...

class Stream:
    def __iter__(self) -> Iterator[Token]: ...
    def __next__(self) -> Token: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *error: Any) -> None: ...
    def close(self) -> None: ...
    @property
    def result(self) -> Optional[Result]: ...

class Reply:
    @property
    def content(self) -> str: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def tool_calls(self) -> List[Dict[str, Any]]: ...
    @property
    def result(self) -> Result: ...

class ReplyPiece:
    @property
    def kind(self) -> str:
        """content, reasoning, call_begin, call_arguments or call_end"""
    @property
    def text(self) -> str: ...
    @property
    def call(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def tool_call(self) -> Optional[Dict[str, Any]]: ...
    @property
    def of_broken_call(self) -> bool: ...

class ChatStream:
    def __iter__(self) -> Iterator[ReplyPiece]: ...
    def __next__(self) -> ReplyPiece: ...
    def __enter__(self) -> ChatStream: ...
    def __exit__(self, *error: Any) -> None: ...
    def close(self) -> None: ...
    @property
    def reply(self) -> Optional[Reply]: ...

class DraftedText:
    @property
    def id(self) -> int: ...
    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """(n >= 1)"""

Probs = Union[Sequence[float], npt.NDArray[np.floating[Any]]]
# (ids, probs), or the probabilities of all tokens.
Distribution = Union[Tuple[Ids, Probs], npt.NDArray[np.floating[Any]]]

class Draft:
    @property
    def max_depth(self) -> int: ...
    @property
    def max_nodes(self) -> int: ...
    @property
    def is_chain(self) -> bool: ...
    @property
    def vocabulary_size(self) -> int: ...
    def __len__(self) -> int: ...
    def add(self, parent: int, token: int, distribution: Optional[Distribution] = None) -> int: ...
    def draw(self, parent: int, distribution: Distribution) -> Tuple[int, int]: ...

class MaskedText:
    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """(n)"""
    @property
    def n_prompt(self) -> int: ...
    @property
    def n_committed(self) -> int: ...

# A function that returns the tokens that may follow. None: all tokens. Otherwise bits ((vocabulary +
# 31) // 32 of 32-bit integers), booleans (vocabulary), or ids.
Mask = Callable[[MaskedText], Union[None, npt.NDArray[Any], Sequence[int]]]

class Generator:
    def __init__(
        self,
        model: Model,
        *,
        drafter: Union[str, Proposes] = "none",
        rule: str = "exact",
        tree: str = "",
        verify: str = "",
        adaptive: bool = False,
        drafter_options: Optional[Dict[str, Any]] = None,
    ) -> None: ...
    @overload
    def generate(
        self,
        prompt: Prompt,
        sampling: Optional[SamplingParams] = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        stop: Union[str, Sequence[str]] = (),
        stop_tokens: Ids = (),
        ignore_eos: bool = False,
        add_special: bool = True,
        keep_logits: bool = False,
        log_probs: int = -1,
        grammar: Optional[Grammar] = None,
        mask: Optional[Mask] = None,
        max_seconds: float = 0,
        encoder_prompt: Optional[Prompt] = None,
        on_token: Optional[Callable[[Token], Any]] = None,
    ) -> Result: ...
    @overload
    def generate(
        self,
        prompt: Prompts,
        sampling: Optional[SamplingParams] = None,
        *,
        max_tokens: int = 256,
        seed: Union[int, Sequence[int]] = 0,
        stop: Union[str, Sequence[str]] = (),
        stop_tokens: Ids = (),
        ignore_eos: bool = False,
        add_special: bool = True,
        keep_logits: bool = False,
        log_probs: int = -1,
        grammar: Optional[Grammar] = None,
        mask: Optional[Mask] = None,
        max_seconds: float = 0,
        on_token: Optional[Callable[[Token, int], Any]] = None,
    ) -> List[Result]: ...
    def stream(
        self,
        prompt: Prompt,
        sampling: Optional[SamplingParams] = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        stop: Union[str, Sequence[str]] = (),
        stop_tokens: Ids = (),
        ignore_eos: bool = False,
        add_special: bool = True,
        keep_logits: bool = False,
        log_probs: int = -1,
        grammar: Optional[Grammar] = None,
        mask: Optional[Mask] = None,
        max_seconds: float = 0,
        encoder_prompt: Optional[Prompt] = None,
    ) -> Stream: ...
    def chat(
        self,
        messages: Union[str, Sequence[Dict[str, Any]]],
        *,
        tools: Union[None, str, Sequence[Dict[str, Any]]] = None,
        tool_choice: Union[None, str, Dict[str, Any]] = None,
        variables: Union[None, str, Dict[str, Any]] = None,
        parallel_calls: bool = True,
        trust_messages: bool = False,
        sampling: Optional[SamplingParams] = None,
        max_tokens: int = 256,
        seed: int = 0,
        stop: Union[str, Sequence[str]] = (),
        stop_tokens: Ids = (),
        ignore_eos: bool = False,
        keep_logits: bool = False,
        log_probs: int = -1,
        grammar: Optional[Grammar] = None,
        mask: Optional[Mask] = None,
        max_seconds: float = 0,
        on_token: Optional[Callable[[Token], Any]] = None,
    ) -> Reply: ...
    def stream_chat(
        self,
        messages: Union[str, Sequence[Dict[str, Any]]],
        *,
        tools: Union[None, str, Sequence[Dict[str, Any]]] = None,
        tool_choice: Union[None, str, Dict[str, Any]] = None,
        variables: Union[None, str, Dict[str, Any]] = None,
        parallel_calls: bool = True,
        trust_messages: bool = False,
        sampling: Optional[SamplingParams] = None,
        max_tokens: int = 256,
        seed: int = 0,
        stop: Union[str, Sequence[str]] = (),
        stop_tokens: Ids = (),
        ignore_eos: bool = False,
        keep_logits: bool = False,
        log_probs: int = -1,
        grammar: Optional[Grammar] = None,
        mask: Optional[Mask] = None,
        max_seconds: float = 0,
        on_token: Optional[Callable[[Token], Any]] = None,
    ) -> ChatStream: ...
    def keep_last_text(self, keep: bool) -> None: ...
    @property
    def model(self) -> Model: ...
    @property
    def rule_scope(self) -> str: ...

def model_from_memory(
    config_json: str,
    tensors: Mapping[str, npt.NDArray[Any]],
    tokenizer_files: Mapping[str, bytes],
    *,
    progress: Optional[Callable[[float], None]] = None,
    weights: str = "",
    kv: str = "",
    threads: int = 0,
    kernels: str = "",
    kv_memory: int = 0,
    experts: str = "",
    experts_memory: int = 0,
    device: str = "",
) -> Model: ...
def kernel_tables() -> List[Tuple[str, bool]]: ...
def escape_spec_value(value: str) -> str: ...
def _generate_keywords() -> List[str]: ...
