"""What the page of costs says, in Portuguese."""

from __future__ import annotations

from typing import Final

COST: Final[dict[str, str]] = {
    "Added up from the hundred dearest of each service.": (
        "Somado dos cem mais caros de cada serviço."
    ),
    "By service": "Por serviço",
    "By task": "Por tarefa",
    "Costs a day in {currency}: at most {amount}": (
        "Custos por dia em {currency}: no máximo {amount}"
    ),
    "Costs and budgets by service": "Custos e orçamentos por serviço",
    "Day": "Dia",
    "Day by day, {currency}": "Dia a dia, {currency}",
    "Dearest tasks": "Tarefas mais caras",
    "Dearest tenants": "Clientes mais caros",
    "Forecast": "Previsto",
    "Forecast to the end of the month": "Previsto até o fim do mês",
    "Forget the total budgets?": "Esquecer os orçamentos totais?",
    "Forget the totals…": "Esquecer os totais…",
    "Forget {n} {n|budget|budgets}": "Esquecer {n} {n|orçamento|orçamentos}",
    "Month": "Mês",
    "No call was made for a tenant.": "Nenhuma chamada foi feita para um cliente.",
    "No job has made a call that costs something.": "Nenhum job fez uma chamada com custo.",
    "Nothing was spent": "Nada foi gasto",
    "Reserved by calls under way": "Reservado por chamadas em andamento",
    "Service": "Serviço",
    "Show the day": "Ver o dia",
    "Spent": "Gasto",
    "The line is what the month may cost, for each of its days: {amount}.": (
        "A linha é o que o mês pode custar, por dia: {amount}."
    ),
    "Today": "Hoje",
    "Totals": "Totais",
    "Upstreams with prices are metered call by call; what they cost is shown here.": (
        "Provedores com preços são medidos chamada a chamada; aqui aparece o que custam."
    ),
    "expected": "esperado",
    "no budget": "sem orçamento",
    "reserved or foreseen": "reservado ou previsto",
    "spent": "gasto",
    "{amounts} spent.": "{amounts} gastos.",
    "{name}: {percent} of {amount} for {period} is spent: {word}.": (
        "{name}: foi gasto {percent} de {amount} para {period}: {word}."
    ),
    (
        "{n} {n|budget|budgets} of all upstreams together, which this program does not declare, "
        "{n|is|are} removed. This cannot be undone."
    ): (
        "{n|É removido|São removidos} {n} {n|orçamento|orçamentos} de todos os provedores "
        "juntos, que este programa não declara. Não pode ser desfeito."
    ),
    "January": "Janeiro",
    "February": "Fevereiro",
    "March": "Março",
    "April": "Abril",
    "May": "Maio",
    "June": "Junho",
    "July": "Julho",
    "August": "Agosto",
    "September": "Setembro",
    "October": "Outubro",
    "November": "Novembro",
    "December": "Dezembro",
}
