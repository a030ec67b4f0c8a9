"""Field service in Argentina: invoices, payments, messages and voice notes in thirteen queues."""
