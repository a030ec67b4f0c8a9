"""Dead letters, in Portuguese."""

from __future__ import annotations

from typing import Final

DEAD: Final[dict[str, str]] = {
    "A new job is made for each that died of {error}. The canary goes first; the others "
    "follow when all of it has completed.": (
        "Para cada um que morreu de {error} é criado um job novo. O canário vai primeiro; os "
        "outros seguem quando todo ele foi concluído."
    ),
    "All queues": "Todas as filas",
    "At most": "No máximo",
    "By error": "Por erro",
    "Canary": "Canário",
    "Choose": "Escolher",
    "Choose {job}": "Escolher {job}",
    "Choose a queue to decide about single jobs.": (
        "Escolha uma fila para decidir sobre jobs avulsos."
    ),
    "Dead jobs, the newest first": "Jobs mortos, o mais novo primeiro",
    "Died": "Morreu",
    "Died last": "Último morto",
    "Discard the chosen": "Descartar os escolhidos",
    "Resolve the chosen": "Resolver os escolhidos",
    "Retry the chosen as new jobs": "Tentar os escolhidos de novo como jobs novos",
    "Jobs that run out of attempts come here, with their errors.": (
        "Os jobs que ficam sem tentativas chegam aqui, com seus erros."
    ),
    "Kinds of errors": "Tipos de erros",
    "No dead job matches": "Nenhum job morto corresponde",
    "Nothing is dead": "Não há nada morto",
    "Redrive of {queue}": "Reenvio de {queue}",
    "Redrive {n} dead {n|job|jobs} of {queue}?": (
        "Reenviar {n} {n|job morto|jobs mortos} de {queue}?"
    ),
    "Redrive {n} {n|job|jobs}": "Reenviar {n} {n|job|jobs}",
    "Redrive…": "Reenviar…",
    "Stop the redrive": "Parar o reenvio",
    "Stop when more than this many die again": "Parar quando morrerem de novo mais de",
    "To decide": "Por decidir",
    "canary of {n}": "canário de {n}",
    "most to decide first": "o que mais há por decidir primeiro",
    "the oldest died {time}": "o mais antigo morreu {time}",
    "{moved} retried, {died} died again": "{moved} tentados de novo, {died} morreram de novo",
    "{n} not finished": "{n} não terminados",
    "{pending} to decide, {new} died in the last hour, {due} will be retried automatically": (
        "{pending} por decidir, {new} morreram na última hora, {due} serão tentados de novo "
        "automaticamente"
    ),
    "canary": "canário",
    "stopped": "parado",
    "done": "terminado",
    "failed": "falhou",
}
