"""OpenAI: chats, answers of a type, transcriptions."""

from apps.providers.openai.answer import Reply, Transcript
from apps.providers.openai.client import MOST_TOKENS, Client, Message
from apps.providers.openai.errors import (
    OpenAIError,
    Permanent,
    RateLimited,
    Retryable,
    Unfit,
    UnknownOutcome,
)
from apps.providers.openai.estimate import chat_estimate, speech_estimate
from apps.providers.openai.settings import Settings
from apps.providers.openai.upstream import openai_upstream

__all__ = [
    "MOST_TOKENS",
    "Client",
    "Message",
    "OpenAIError",
    "Permanent",
    "RateLimited",
    "Reply",
    "Retryable",
    "Settings",
    "Transcript",
    "Unfit",
    "UnknownOutcome",
    "chat_estimate",
    "openai_upstream",
    "speech_estimate",
]
