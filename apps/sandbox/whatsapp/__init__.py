"""A stand-in of the WhatsApp Cloud API: `WhatsApp`, and what it sends and keeps."""

from apps.sandbox.whatsapp.delivery import Delivery, Event, Forgery
from apps.sandbox.whatsapp.media import File
from apps.sandbox.whatsapp.rate import Rate
from apps.sandbox.whatsapp.stand_in import WhatsApp
from apps.sandbox.whatsapp.template import ApprovedTemplate

__all__ = ["ApprovedTemplate", "Delivery", "Event", "File", "Forgery", "Rate", "WhatsApp"]
