-- Relays of the release before read all queues in one order.
DROP INDEX faena.outbox_pending;
