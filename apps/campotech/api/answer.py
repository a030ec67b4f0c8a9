"""What answers have in common: they are spelt as the web application does."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Answer(BaseModel):
    """The content of an answer: `created_at` is sent as `createdAt`."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, from_attributes=True
    )
