# SPDX-License-Identifier: Apache-2.0
"""Drafters written in Python."""

from __future__ import annotations

from typing import Any, Optional, Protocol

from ._outrider import Draft, DraftedText


class Proposes(Protocol):
    """The method that every drafter must have."""

    def propose(self, text: DraftedText, draft: Draft) -> Optional[Any]: ...


class OwnDrafter:
    """Base class of drafters written in Python: Generator(model, drafter=MyDrafter()).

    A drafter proposes tokens, and the engine verifies them. For any proposals the texts are those
    of plain decoding: bit for bit at temperature 0 and with verify="coupled", in distribution
    otherwise. Tokens drawn at random must meet the condition described at Draft.add().

    Several texts may be in progress at once; keep state per text under text.id. An exception from
    begin(), propose() or observe() ends only its text and is raised by generate(). A drafter may be
    any object with a method propose(); the other methods are optional.
    """

    def begin(self, text: DraftedText) -> None:
        """Called when a text begins: text.tokens is the prompt. A preempted text, whose KV cache
        was freed for others, ends and begins again with the tokens generated so far."""

    def propose(self, text: DraftedText, draft: Draft) -> Optional[Any]:
        """Drafts the next tokens. Adds them to the draft, or returns the ids of a chain that
        follows the text (at most draft.max_depth and draft.max_nodes of them). May do neither."""
        raise NotImplementedError

    def observe(self, text: DraftedText, accepted: Any) -> None:
        """Called after each round of the text, when text.tokens includes the new tokens.
        accepted: int32 array of the accepted nodes of the text's last draft. After their tokens the
        text has one more token, the model's own."""

    def end(self, id: int) -> None:
        """Called when the text with this id has ended. Exceptions go to sys.unraisablehook."""
