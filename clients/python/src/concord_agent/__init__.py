"""An agent for Concord: answers tasks and questions over NATS, asks its peers, and takes part in debates."""

from . import types
from .agent import Agent
from .errors import ConcordError, RequestError, RequestTimeout
from .message import Message

__all__ = ["Agent", "ConcordError", "Message", "RequestError", "RequestTimeout", "types"]
