-- The servers that jobs of a queue were sent to last: each program looks after its own queues.
CREATE TABLE faena.brokers (
    namespace text NOT NULL,
    queue text NOT NULL,
    servers text NOT NULL,         -- their run ids; or who looks now which jobs they have
    PRIMARY KEY (namespace, queue)
);
