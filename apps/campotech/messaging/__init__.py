"""WhatsApp: messages to customers and from them, voice notes, and people who take over."""
