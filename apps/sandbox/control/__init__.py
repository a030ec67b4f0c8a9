"""What a program in another process can have the sandbox do, and see of it: all that a test can.

Of every service:

    GET    /sandbox/environment               what a program must be told to use them
    GET    /sandbox/counts                    requests by service, operation and outcome
    PUT    /sandbox/webhooks                  where news are told: {"whatsapp": "http://127.0.0.1:…"}
    GET    /sandbox/webhooks                  the same, and how many wait, were taken, were given up
    GET    /sandbox/SERVICE/ledger            its requests; `?after=N` those after number N, and
                                              `?operation=`, `?outcome=`, `?limit=` choose
    GET    /sandbox/SERVICE/counts            its requests by operation and outcome
    POST   /sandbox/SERVICE/faults            play one: {"kind": "status", "status": 503,
                                              "lasts": 2}; see `apps.sandbox.fault`
    DELETE /sandbox/SERVICE/faults            play none

What happens to one service is a `POST /sandbox/SERVICE/VERB` with an object; what it has is a
`GET /sandbox/SERVICE/THINGS`, of which `?after=N` leaves out the first N. The modules of this
package list them. Answers are JSON. 404 says that something is not there, 422 that it makes no
sense, 503 that too many webhooks wait: with `{"error": "one sentence"}`, and nothing has happened.

Webhooks are told in the background, and again until they are taken: see `apps.sandbox.webhook`.
"""

from apps.sandbox.control.routes import control_routes

__all__ = ["control_routes"]
