"""The catalogue of keys: every name a script may use, with its type, contents and bound.

All keys of a queue share a prefix whose hash tag is the queue, so they share a cluster slot and
every script is valid on a cluster. The tests compare this table with a live server and with the
scripts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One row of the catalogue; a name that ends in ':' is a family of keys."""

    name: str
    type: str
    holds: str
    bound: str


CATALOGUE = (
    Key(
        "conf",
        "hash",
        "settings: limits, max_running, lease, retention, …",
        "one field per setting",
    ),
    Key("clock", "hash", "last order stamp, counters for the audit, window sums", "fixed"),
    Key("specs", "hash", "id → envelope and the producer's JSON, byte for byte", "one per job"),
    Key("marks", "hash", "id → packed facts of jobs that are not ordinary", "at most one per job"),
    Key("leases", "hash", "id → lease, claimed at, worker, score", "running jobs"),
    Key("results", "hash", "id → result", "kept completed jobs"),
    Key("info:", "hash", "errors (20), log lines (100) and progress of one job", "with its job"),
    Key("ready", "zset", "ids by score", "back-pressure"),
    Key("delayed", "zset", "ids by due instant", "back-pressure"),
    Key(
        "blocked",
        "zset",
        "ids that wait for another job, by when they may run",
        "back-pressure",
    ),
    Key("running", "zset", "ids by lease deadline", "leases"),
    Key("completed", "zset", "ids by finish instant", "retention"),
    Key("dead", "zset", "ids by finish instant", "retention"),
    Key("cancelled", "zset", "ids by finish instant", "retention"),
    Key("desk", "hash", "id → packed record at the dead-letter desk", "dead jobs"),
    Key("desk:", "zset", "dead ids by instant of death, one set per search term", "dead jobs"),
    Key("desk_groups", "zset", "fingerprints of errors by pending jobs", "dead jobs"),
    Key("desk_samples", "hash", "fingerprint → packed name, code, message", "dead jobs"),
    Key("desk_due", "zset", "dead ids by when to retry them automatically", "dead jobs"),
    Key("desk_alerts", "hash", "alert → when it was last raised", "fixed"),
    Key("redrives", "hash", "id → packed record of a redrive", "100, and those under way"),
    Key("redriver:", "string", "which process drives a redrive", "TTL 5 s"),
    Key("lanes", "hash", "lane → live jobs * 1000000 + running ones", "lanes with live jobs"),
    Key("lane:", "zset", "ready ids of one lane by score", "with its jobs"),
    Key("ring", "zset", "lanes that may be served, by their next turn", "lanes with ready jobs"),
    Key("parked", "zset", "lanes that may not, by when to check again", "lanes with ready jobs"),
    Key("debts", "zset", "lanes outside the ring, by their next turn", "until virtual time passes"),
    Key("aside", "zset", "keys whose jobs wait for a limit, by when to check again", "its jobs"),
    Key("aside:", "zset", "ready ids that wait for their key's limit, by score", "with its jobs"),
    Key("heads", "hash", "chain → the job whose turn it is", "chains with live jobs"),
    Key("tail:", "zset", "ids blocked in one chain, by stamp", "with its jobs"),
    Key("tenants", "hash", "lane → packed overrides of one tenant", "one per tenant"),
    Key("shards", "hash", "routing table: epoch, shards, lanes with their own", "one per lane"),
    Key("moves", "hash", "lane → in or out, for lanes that move", "lanes that move"),
    Key("transfer_out", "hash", "shard → packed jobs on their way there", "one batch per shard"),
    Key("transfer_in", "hash", "shard → number of the last batch from there", "one per shard"),
    Key("late", "hash", "job → lane, for jobs that move when they have run", "running jobs"),
    Key("recipients", "set", "queues that messages wait for", "one per queue"),
    Key("message_streams", "hash", "queues that messages were ever written to", "one per queue"),
    Key("messages:", "stream", "outbox: messages to one queue", "until applied"),
    Key(
        "received",
        "hash",
        "shard → the last message that came from there; @database → its outbox was sent here",
        "one per shard and database",
    ),
    Key("pending_sends", "zset", "jobs to send or cancel for flows and groups", "one per node"),
    Key("sent:", "string", "a job sent for a flow, group or outbox that has ended", "TTL 5 min"),
    Key("flow:", "hash", "a flow and its nodes", "7 days, 10,000; TTL 1 h while written"),
    Key("flows", "zset", "flows under way, by when they began", "live flows"),
    Key("flows_done", "zset", "flows that have ended, by when", "7 days, 10,000"),
    Key("group:", "hash", "how members of a group ended, its callbacks", "TTL 7 d from its end"),
    Key("groups", "zset", "groups under way, by when they began", "live groups"),
    Key("groups_done", "zset", "groups that have ended, by when", "TTL 7 d, 10,000"),
    Key("relocator", "string", "which process moves lanes between shards", "TTL 10 s"),
    Key("claims:", "string", "claims inside the window of a lane's or key's limit, packed", "TTL"),
    Key("learned", "hash", "window → what its limit fell to, and when", "limits that fell"),
    Key("shares:", "hash", "lane → what it was given in one minute, and its waits", "TTL 1 h"),
    Key("throttled", "hash", "lane → since when it is parked", "parked lanes"),
    Key("retired", "zset", "retired shards, by when; their shares are still read", "TTL 1 h"),
    Key("retired_stats", "zset", "those whose statistics are kept, by when", "TTL 30 d"),
    Key("retired_messages", "zset", "those that may have messages for a database", "TTL 7 d"),
    Key("holds", "hash", "reason → until, by, at", "one field per reason"),
    Key("costs:", "string", "what was claimed in the window of a limit by cost, packed", "TTL"),
    Key("window:", "list", "claims inside a limit's window: instant, number", "TTL, 1000 entries"),
    Key("unique:", "string", "by mode and hash: the job that claims it", "with its job, or TTL"),
    Key("idem:", "hash", "idempotency record: status, owner, token of its attempt, result", "TTL"),
    Key("call:", "string", "a caller's last call and its answer", "TTL 1 h"),
    Key("waiters", "hash", "ids whose end a caller waits for", "live jobs"),
    Key("workers", "zset", "workers by the instant they are presumed gone", "live workers"),
    Key("about", "hash", "worker → since when, pid, version, library, host", "live workers"),
    Key("schedules", "hash", "name → version and record of a schedule", "one per schedule"),
    Key("schedule_due", "zset", "schedules by the instant they are due", "one per schedule"),
    Key("fired", "hash", "schedule → last instant whose job was stored here", "one per schedule"),
    Key("stats:", "hash", "counters and histograms of one minute", "TTL 2 days from its end"),
    Key("stats_hour:", "hash", "the same of one hour", "TTL 30 days"),
    Key("totals", "hash", "the same counters, ever; the minute that is counted", "TTL 400 days"),
    Key("alerts", "hash", "rule and subject → packed state of an alert", "alerts under way"),
    Key("alert_turn:", "string", "who judges alerts, until when; by set of rules", "TTL 1 h"),
    Key("alert_totals:", "hash", "of a minute: queue → its packed totals", "TTL 65 min"),
    Key("alert_notices", "hash", "id → packed notice that is no job yet", "1,000"),
    Key("alert_silences", "hash", "id → packed silence", "1,000"),
    Key("alert_history", "stream", "how alerts have changed", "about 1,000"),
    Key("events", "stream", "one entry per batch", "capped by events_kept"),
    Key("history", "stream", "jobs that have ended, for a reader outside", "history:room bytes"),
    Key("history_stats", "hash", "bytes of `history`; jobs that found no room", "fixed"),
    Key("arrivals", "stream", "single jobs that no script has stored yet", "100, and producers"),
    Key("wake", "zset", "at most one marker for idle workers", "one member"),
    Key("upstreams", "hash", "upstream → packed settings, !upstream → panic", "one per upstream"),
    Key("breaker:", "string", "packed state of a circuit breaker", "TTL 1 h beyond its wait"),
    Key("troubled", "hash", "scope → state, of breakers that are not closed", "swept by workers"),
    Key(
        "features",
        "hash",
        "features and levels: settings, states, what was set by hand, health checks; packed",
        "a few fields per feature, level and upstream",
    ),
    Key("reserved", "hash", "scope of budgets → what is reserved, in millionths", "one per scope"),
    Key("lots", "hash", "permits granted together → what each reserves", "one per lot under way"),
    Key("lot_ends", "zset", "lots by when their holder is taken for dead", "one per lot under way"),
    Key("forgotten", "hash", "upstream without settings → currency of its costs", "TTL 121 days"),
    Key("spent:", "hash", "of a day or month: what calls have cost", "TTL 121 days"),
    Key("spenders:", "zset", "of a day or month and upstream: tenant → cost", "TTL 121 days"),
    Key("warned:", "hash", "of a period: scope → threshold told; !scope → used up", "TTL 70 days"),
    Key("cached", "hash", "a value read from a source, its age, who reads it anew", "TTL"),
    Key("fence", "string", "what a durable enqueue waits for; written by the wire", "TTL 1 s"),
    Key("accounts", "hash", "user or token of the dashboard → packed account", "one per account"),
    Key("session:", "string", "packed session of a person, by its digest", "TTL 8 h"),
    Key("link:", "string", "whom a link lets in, by its digest", "TTL 10 min, used once"),
    Key("tries:", "string", "failed tries to sign in, by user and by address", "TTL 15 min"),
    Key("place:", "string", "how far a search of a tenant has come", "TTL 15 min"),
    Key("views:", "hash", "name → query of a saved view, of a user or of all", "50 each"),
    Key("bulks", "hash", "id → packed record of a bulk action", "100, and those under way"),
    Key("trail", "stream", "the audit trail: packed records of changes", "100,000"),
    Key("trail_open", "hash", "id → packed record of a change under way", "ended after 1 h"),
)

CHANNELS = (
    ("done", "awaited jobs that are finished"),
    ("stop", "running jobs that are to be cancelled"),
    ("shards", "queues whose shards have changed, instead of jobs"),
    ("schedules", "schedules that were declared, changed or removed, instead of jobs"),
    ("redrives", "redrives that begin or resume, instead of jobs"),
    ("bulks", "bulk actions that begin or resume, instead of jobs"),
    ("upstreams", "what happens to upstreams: event, how long in us, which, instead of jobs"),
    ("features", "features whose state may have changed, instead of jobs"),
)


class Keys:
    """The names of one queue's keys."""

    __slots__ = ("prefix",)

    def __init__(self, namespace: str, queue: str) -> None:
        self.prefix = f"{namespace}:{{{queue}}}:"

    def __call__(self, name: str) -> str:
        return self.prefix + name


def table() -> str:
    """The catalogue as Markdown, one row for each key."""
    rows = [f"| `{key.name}` | {key.type} | {key.holds} | {key.bound} |" for key in CATALOGUE]
    return "\n".join(["| key | type | holds | bound |", "|---|---|---|---|", *rows])


def channel_table() -> str:
    """The channels as Markdown."""
    rows = [f"| `{name}` | {holds} |" for name, holds in CHANNELS]
    return "\n".join(["| channel | tells about |", "|---|---|", *rows])


def channel(namespace: str, name: str) -> str:
    """A pub/sub channel, shared by all queues of a namespace."""
    if name not in dict(CHANNELS):
        raise ValueError(f"channel must be one of the catalogue, got {name!r}")
    return f"{namespace}:{name}"


def read_message(message: bytes) -> tuple[str, str]:
    """The queue and the job that a message is about."""
    _, _, rest = message.decode().partition("{")
    queue, _, job = rest.partition("}:")
    return queue, job


def reader_for(on_job: Callable[[str, str], None]) -> Callable[[bytes], None]:
    """Hands on what messages are about."""
    return lambda message: on_job(*read_message(message))
