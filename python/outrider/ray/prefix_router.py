# SPDX-License-Identifier: Apache-2.0
"""Makes Ray Serve choose a replica by the beginning of a prompt (see prompt_key).

Ray's own prefix-aware router is a part of ray.serve.llm. It keeps a tree of all prompts in one
actor, which every request asks twice. Here each router hashes a key locally.
"""

from dataclasses import dataclass
from typing import Dict, List, Optional

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from outrider.ray.prompt_key import in_turn


@dataclass
class Asked:
    """A request on its way to a replica: the first argument of Replica.answer."""

    method: str
    path: str  # with its query
    headers: Dict[str, str]
    body: bytes
    key: str
    attempt: int = 0


class PrefixRouter(RequestRouter):
    """Ranks replicas for a request's key; if a replica's queue is full, the next one is asked."""

    async def choose_replicas(self, candidate_replicas: List[RunningReplica],
                              pending_request: Optional[PendingRequest] = None) -> List[List[RunningReplica]]:
        asked = next((argument for argument in pending_request.args if isinstance(argument, Asked)),
                     None) if pending_request is not None else None
        if pending_request is not None:
            # All replicas are among those returned: wait before they are asked again.
            pending_request.routing_context.should_backoff = True
        by_name = {replica.replica_id.to_full_id_str(): replica for replica in candidate_replicas}
        running = {name: self.replica_queue_len_cache.get(replica.replica_id) or 0
                   for name, replica in by_name.items()}
        names = in_turn(asked.key if asked else "", running, asked.attempt if asked else 0)
        return [[by_name[name]] for name in names]
