"""What an agent says to the group: names and arguments as in the specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .asking import Asker
from .checks import ALL, ANY, SERVICES, listed
from .message import Json, envelope, later
from .waiting import REQUEST_TIMEOUT
from .waking import conversation_under_way, question_under_way

#: How much longer than a question to the group lasts its asker waits to be told how it ended, in seconds.
GRACE = 15.0


class GroupMember(Asker):
    """Asks the group, and offers it help."""

    async def broadcast_query(self, question: str, conversation_id: str) -> str:
        """Asks the group; whoever has the skills may answer."""
        fields = {"case_id": conversation_id, "requires_response": True}
        return await self.send(ALL, "group_query", {"content": question}, **fields)

    async def request_group_help(self, question: str, conversation_id: str | None = None) -> str:
        """The same as :meth:`broadcast_query`, for an agent that is stuck. Without a conversation it is asked in that of the message which is
        handled here, and outside of any where none is."""
        conversation_id = conversation_id or conversation_under_way(self.agent_id)
        fields = {"case_id": conversation_id, "requires_response": True}
        return await self.send(ALL, "group_query", {"content": question}, **fields)

    async def request_peer_help(
        self, request: str, conversation_id: str, preferred_agents: Sequence[str] | None = None
    ) -> str:
        """Asks for help: preferred agents are woken, others join when it concerns them."""
        metadata = {"preferred_agents": listed("preferred_agents", preferred_agents)} if preferred_agents else None
        fields = {"case_id": conversation_id, "requires_response": True, "metadata": metadata}
        return await self.send(ANY, "peer_request", {"content": request}, **fields)

    async def ask_group(
        self,
        question: str,
        conversation_id: str | None = None,
        *,
        mode: str | None = None,
        synthesiser: str | None = None,
        domain: str | None = None,
        preferred_agents: Sequence[str] | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Json:
        """Asks whoever can help, and waits for the one answer that is made of theirs, an object with `primary`, `supplementary`,
        `declined`, `silent` and `asked`. Each agent's own answer comes beside it, to the handlers.

        Args:
            mode: `confidence`, which is usual, `first_responder` or `collaborative`.
            synthesiser: the agent that makes one answer of all, in the mode `collaborative`.
            domain: the domain in which track records count.
            preferred_agents: agents that are asked whatever the words.
            timeout: how long answers count, in seconds.

        Raises:
            RequestError: nobody can answer, or nobody has.
            RequestTimeout: nobody says how it ended; the coordinator or the agent adapter does not run.
        """
        terms = {
            "mode": mode,
            "synthesiser": synthesiser,
            "domain": domain,
            "preferred_agents": listed("preferred_agents", preferred_agents) if preferred_agents else None,
        }
        payload = {"content": question} | {name: value for name, value in terms.items() if value is not None}
        fields = {"case_id": conversation_id, "requires_response": True, "deadline": later(timeout)}
        kind = "peer_request" if preferred_agents else "group_query"
        said = envelope(self.agent_id, ANY, kind, payload, **fields)
        answer: Json = await self._result_of(said, timeout + GRACE, SERVICES)
        return answer

    async def offer_expertise(self, offer: str, conversation_id: str) -> str:
        """Offers help to the group unasked."""
        return await self.send(ALL, "expertise_offer", {"content": offer}, case_id=conversation_id)

    async def publish_task_result(
        self,
        content: str,
        conversation_id: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        confidence: float | None = None,
        reply_to: str | None = None,
        to: str | None = None,
    ) -> str:
        """Says what came of a task or query; of several answers the most confident is the primary one.

        While a question to the group is handled, this answers it: it goes to whoever asked, in reply to the question. Otherwise, and
        where `conversation_id` is another than the question's, it goes to everybody in the conversation.

        Args:
            reply_to: the `message_id` of what is answered, where it is something else.
            to: who is told, where that is somebody else.
        """
        payload, fields = {"content": content}, {"metadata": dict(metadata or {}), "confidence": confidence}
        question = question_under_way(self.agent_id, conversation_id) if to is None else None
        if question is not None and reply_to in (None, question.message_id):
            return await self.reply(question, "task_result", payload, **fields)
        return await self.send(to or ALL, "task_result", payload, case_id=conversation_id, reply_to=reply_to, **fields)
