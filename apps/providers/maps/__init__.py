"""Ways and distances, from Google's maps."""

from apps.providers.maps.answer import Distance, Leg, Matrix, Route
from apps.providers.maps.client import MOST_ELEMENTS, MOST_PLACES, Client, matrix_items
from apps.providers.maps.errors import (
    MapsError,
    NoRoute,
    Permanent,
    RateLimited,
    Retryable,
    UnknownOutcome,
)
from apps.providers.maps.place import Place, Point
from apps.providers.maps.settings import Settings
from apps.providers.maps.upstream import maps_upstream

__all__ = [
    "MOST_ELEMENTS",
    "MOST_PLACES",
    "Client",
    "Distance",
    "Leg",
    "MapsError",
    "Matrix",
    "NoRoute",
    "Permanent",
    "Place",
    "Point",
    "RateLimited",
    "Retryable",
    "Route",
    "Settings",
    "UnknownOutcome",
    "maps_upstream",
    "matrix_items",
]
