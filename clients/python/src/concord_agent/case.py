"""What an agent does about the case that it is in."""

from __future__ import annotations

from .asking import Asker
from .message import Json, envelope
from .waiting import REQUEST_TIMEOUT


class CaseMember(Asker):
    """Lets others into a case, and reads what it sees of it."""

    async def add_participant(self, case_id: str, agent_id: str, *, timeout: float = REQUEST_TIMEOUT) -> Json:
        """Lets an agent into a case that is not over. Whoever opened the case may, and operators. The agent gets a
        `session_briefing`, everybody in the case hears `case_joined`; the answer is `{"agent_id": ...}`.

        Raises:
            RequestError: it is refused, and its text says what to do.
            RequestTimeout: nobody says whether it has joined. To ask again does no harm.
        """
        parameters = {"agent_id": agent_id}
        fields = {"timeout": timeout, "case_id": case_id}
        joined: Json = await self.request("coordinator", "add_participant", parameters, **fields)
        return joined

    async def confirm(
        self,
        case_id: str,
        finding: str,
        confidence: float,
        *,
        author: str | None = None,
        reasoning: str | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> float | None:
        """Confirms a finding of another in a case that both take part in, and waits until that is recorded: the confidence of the finding
        with all its confirmations; none while findings are collected, for they are secret until all are in.

        Args:
            case_id: the case.
            finding: the `message_id` of the finding.
            confidence: how sure this agent is, 0 to 1.
            author: whose finding it is; who names the author confirms nobody else's, whoever has used the same `message_id`.
            reasoning: what it has looked at, or why it comes to the same.

        Raises:
            RequestError: it is refused, and its text says what to do.
            RequestTimeout: nobody says whether it is recorded.
        """
        payload: Json = {"confirms": finding}
        if author is not None:
            payload["author"] = author
        if reasoning is not None:
            payload["reasoning"] = reasoning
        fields = {"case_id": case_id, "requires_response": True, "confidence": confidence}
        said = envelope(self.agent_id, "coordinator", "confirmation", payload, **fields)
        recorded: Json = await self._result_of(said, timeout)
        strengthened = recorded.get("strengthened")
        return None if strengthened is None else float(strengthened)

    async def context(self, case_id: str, agent_id: str | None = None) -> Json:
        """What this agent may see of a case's conversation, the oldest first: `{"case_id", "agent_id", "messages": [...]}`. The last
        of these it is given when a message wakes it. Operators and auditors may name another agent.

        Raises:
            RequestError: it takes no part in the case, or may not read the window of another.
            RequestTimeout: the agent adapter does not answer.
        """
        return await self.query_service("agent-adapter", "context", {"case_id": case_id, "agent_id": agent_id})
