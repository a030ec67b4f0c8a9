"""What the page of costs says, in Spanish."""

from __future__ import annotations

from typing import Final

COST: Final[dict[str, str]] = {
    "Added up from the hundred dearest of each service.": (
        "Sumado de los cien más caros de cada servicio."
    ),
    "By service": "Por servicio",
    "By task": "Por tarea",
    "Costs a day in {currency}: at most {amount}": (
        "Costos por día en {currency}: como mucho {amount}"
    ),
    "Costs and budgets by service": "Costos y presupuestos por servicio",
    "Day": "Día",
    "Day by day, {currency}": "Día a día, {currency}",
    "Dearest tasks": "Tareas más caras",
    "Dearest tenants": "Clientes más caros",
    "Forecast": "Previsto",
    "Forecast to the end of the month": "Previsto a fin de mes",
    "Forget the total budgets?": "¿Olvidar los presupuestos totales?",
    "Forget the totals…": "Olvidar los totales…",
    "Forget {n} {n|budget|budgets}": "Olvidar {n} {n|presupuesto|presupuestos}",
    "Month": "Mes",
    "No call was made for a tenant.": "No se hizo ninguna llamada para un cliente.",
    "No job has made a call that costs something.": "Ningún trabajo hizo una llamada con costo.",
    "Nothing was spent": "No se gastó nada",
    "Reserved by calls under way": "Reservado por llamadas en curso",
    "Service": "Servicio",
    "Show the day": "Ver el día",
    "Spent": "Gastado",
    "The line is what the month may cost, for each of its days: {amount}.": (
        "La línea es lo que puede costar el mes, por cada día: {amount}."
    ),
    "Today": "Hoy",
    "Totals": "Totales",
    "Upstreams with prices are metered call by call; what they cost is shown here.": (
        "Los proveedores con precios se miden llamada por llamada; aquí se ve lo que cuestan."
    ),
    "expected": "esperado",
    "no budget": "sin presupuesto",
    "reserved or foreseen": "reservado o previsto",
    "spent": "gastado",
    "{amounts} spent.": "{amounts} gastados.",
    "{name}: {percent} of {amount} for {period} is spent: {word}.": (
        "{name}: se gastó {percent} de {amount} para {period}: {word}."
    ),
    (
        "{n} {n|budget|budgets} of all upstreams together, which this program does not declare, "
        "{n|is|are} removed. This cannot be undone."
    ): (
        "Se {n|quita|quitan} {n} {n|presupuesto|presupuestos} de todos los proveedores juntos, "
        "que este programa no declara. No se puede deshacer."
    ),
    "January": "Enero",
    "February": "Febrero",
    "March": "Marzo",
    "April": "Abril",
    "May": "Mayo",
    "June": "Junio",
    "July": "Julio",
    "August": "Agosto",
    "September": "Septiembre",
    "October": "Octubre",
    "November": "Noviembre",
    "December": "Diciembre",
}
