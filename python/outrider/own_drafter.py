# SPDX-License-Identifier: Apache-2.0
"""Drafters written in Python."""

from __future__ import annotations

from typing import Any, Optional, Protocol

from ._outrider import Draft, DraftedText


class Proposes(Protocol):
    """The method that every drafter must have."""

    def propose(self, text: DraftedText, draft: Draft) -> Optional[Any]: ...


class OwnDrafter:
    """Proposes tokens for the engine to judge: Generator(model, drafter=MyDrafter()).

    Whatever it proposes, texts equal those of plain decoding: bit for bit at temperature 0 and with
    verify="coupled", in distribution otherwise. Tokens drawn at random must meet the condition
    described at Draft.add().

    Several texts may be in progress at once; keep state per text under text.id. An exception from
    begin(), propose() or observe() ends only its text and is raised by generate(). Any object with
    a method propose() will do; the other methods are optional.
    """

    def begin(self, text: DraftedText) -> None:
        """A text begins: text.tokens is the prompt. A text that had to give up its memory ends and
        begins again, with the tokens generated until then."""

    def propose(self, text: DraftedText, draft: Draft) -> Optional[Any]:
        """Adds tokens to the draft, or returns ids that follow the text as a chain (at most
        draft.max_depth and draft.max_nodes of them), or does neither."""
        raise NotImplementedError

    def observe(self, text: DraftedText, accepted: Any) -> None:
        """Called after each round of the text, whose tokens have been added. accepted: int32 array
        of the accepted nodes of its last draft; after these the text has one more token, the
        model's own."""

    def end(self, id: int) -> None:
        """The text with this id is over. Exceptions go to sys.unraisablehook."""
