"""A stand-in for OpenAI, and recordings that it understands."""

from apps.sandbox.openai.spoken import spoken
from apps.sandbox.openai.stand_in import OpenAI, tokens

__all__ = ["OpenAI", "spoken", "tokens"]
