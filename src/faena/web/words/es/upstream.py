"""What the pages of upstreams, features and levels say, in Spanish."""

from __future__ import annotations

from typing import Final

UPSTREAM: Final[dict[str, str]] = {
    (
        "A program declares outside services with app.upstream(…): their limits, breakers and "
        "budgets are shown here."
    ): (
        "Un programa declara servicios externos con app.upstream(…): aquí se ven sus límites, "
        "interruptores y presupuestos."
    ),
    "A program declares what it does for its users with app.feature(…).": (
        "Un programa declara lo que hace por sus usuarios con app.feature(…)."
    ),
    "All calls": "Todas las llamadas",
    (
        "All that is known of it goes, but its costs stay in reports. A running program that "
        "still declares it does so again. This cannot be undone."
    ): (
        "Se borra todo lo que se sabe de él, pero sus costos quedan en los informes. Un programa "
        "en marcha que todavía lo declara lo vuelve a hacer. No se puede deshacer."
    ),
    "As tenant": "Como cliente",
    "Breaker": "Interruptor",
    "Budget": "Presupuesto",
    "Budget used up": "Presupuesto agotado",
    "Budgets": "Presupuestos",
    "Calls to {upstream} are permitted again": (
        "Las llamadas a {upstream} están permitidas de nuevo"
    ),
    "Change the panic…": "Cambiar el pánico…",
    "Closed": "Cerrado",
    "Empty: what the feature says itself.": "Vacío: las palabras propias de la función.",
    "End “{state}” by hand": "Terminar “{state}” a mano",
    (
        "Every process hears of it at once, and the banner names it. The worst source counts: it "
        "can be worse than this, never better."
    ): (
        "Todos los procesos se enteran enseguida y el aviso la nombra. Cuenta la peor fuente: "
        "puede estar peor que esto, nunca mejor."
    ),
    "Failed calls": "Llamadas fallidas",
    "Feature": "Función",
    "Features": "Funciones",
    "Features, worst first": "Funciones, lo peor primero",
    "Forget 1 feature": "Olvidar 1 función",
    "Forget 1 level": "Olvidar 1 nivel",
    "Forget 1 upstream": "Olvidar 1 proveedor",
    "Forget {feature}?": "¿Olvidar {feature}?",
    "Forget {level}?": "¿Olvidar {level}?",
    "Forget {upstream}?": "¿Olvidar {upstream}?",
    "In panic": "En pánico",
    "In panic: {reason}": "En pánico: {reason}",
    "In this state": "En este estado",
    "Instead": "En su lugar",
    "It has no budget.": "No tiene presupuesto.",
    "It has no limits.": "No tiene límites.",
    (
        "It is gone with its state, for all processes. A running program that still declares it "
        "does so again. This cannot be undone."
    ): (
        "Se borra con su estado, para todos los procesos. Un programa en marcha que todavía la "
        "declara lo vuelve a hacer. No se puede deshacer."
    ),
    "It takes calls as usual.": "Recibe llamadas como siempre.",
    "It wants no calls; they go on {time}.": "Pidió no recibir llamadas; siguen {time}.",
    "Levels": "Niveles",
    "Limit": "Límite",
    "Limit 1 feature": "Limitar 1 función",
    "Limit used up": "Límite agotado",
    "Limit {feature}?": "¿Limitar {feature}?",
    "Limit {n} {n|feature|features}": "Limitar {n} {n|función|funciones}",
    "Limits": "Límites",
    "Limits and what is left of them": "Límites y lo que queda de ellos",
    "More calls are permitted step by step.": "Se permiten más llamadas de a poco.",
    "Next probe": "Próxima prueba",
    "No call is permitted since {time}: {reason} ({who}).": (
        "No se permite ninguna llamada desde {time}: {reason} ({who})."
    ),
    (
        "No call is permitted, in any process, until it ends; {calls} ended in the last window. "
        "Jobs that need it wait and use up no attempt."
    ): (
        "No se permite ninguna llamada, en ningún proceso, hasta que termine; en la última "
        "ventana hubo {calls}. Los trabajos que lo necesitan esperan y no gastan intentos."
    ),
    "No call to {upstream} is permitted: {reason}": (
        "No se permite ninguna llamada a {upstream}: {reason}"
    ),
    "No feature": "Ninguna función",
    "No feature is limited by it.": "No limita ninguna función.",
    "No program declares an upstream.": "Ningún programa declara un proveedor.",
    "No upstream": "Ningún proveedor",
    "Open": "Abierto",
    "Outside services": "Servicios externos",
    "Panic…": "Pánico…",
    "Permit calls again": "Permitir llamadas de nuevo",
    "Probes decide whether it closes.": "Las pruebas deciden si se cierra.",
    "Probing": "Probando",
    "Rate limited": "Con freno",
    "Recovering": "Recuperándose",
    "Room again": "Hay lugar",
    "Set by hand…": "Fijar a mano…",
    "Show its limits and breaker": "Ver sus límites e interruptor",
    "Shown wherever a job waits for it.": "Se muestra donde un trabajo lo espera.",
    "Some tenants": "Algunos clientes",
    "Stop all calls to 1 upstream": "Detener todas las llamadas a 1 proveedor",
    "Stop all calls to {upstream}?": "¿Detener todas las llamadas a {upstream}?",
    "Switch off": "Desactivar",
    "Switch on…": "Activar…",
    "Switch {level} on?": "¿Activar {level}?",
    "Tenants have no breakers of their own here.": (
        "Aquí los clientes no tienen interruptores propios."
    ),
    "Tenants in trouble": "Clientes con problemas",
    "Tenants whose own breaker is not closed": "Clientes cuyo interruptor no está cerrado",
    "The breakers of all tenants are closed.": (
        "Los interruptores de todos los clientes están cerrados."
    ),
    "The budget of {amount} is used up; there is room {time}.": (
        "El presupuesto de {amount} está agotado; hay lugar {time}."
    ),
    "The limit of {limit} is used up; there is room {time}.": (
        "El límite de {limit} está agotado; hay lugar {time}."
    ),
    "The next call is the probe.": "La próxima llamada es la prueba.",
    "The next probe goes {time}.": "La próxima prueba sale {time}.",
    "The total budgets are forgotten": "Los presupuestos totales quedaron olvidados",
    "Upstream": "Proveedor",
    "Upstreams, worst first": "Proveedores, lo peor primero",
    "Users are told": "A los usuarios se les dice",
    "What it limits now": "Qué limita ahora",
    "What it says of {n} {n|feature|features} ends. This cannot be undone.": (
        "Termina lo que dice de {n} {n|función|funciones}. No se puede deshacer."
    ),
    "What was set by hand of {feature} has ended": "Terminó lo fijado a mano de {feature}",
    "all are healthy": "todas en orden",
    "all in {currency}": "todos en {currency}",
    "all processes together": "todos los procesos juntos",
    "calls should be frugal": "conviene gastar poco",
    "closed": "cerrado",
    "each tenant": "cada cliente",
    "for each tenant": "para cada cliente",
    "it opens at {part} of {n} or more": "se abre con {part} de {n} o más",
    "more than an hour": "más de una hora",
    "more than an hour ago": "hace más de una hora",
    "nearly used up": "casi agotado",
    "of tenant {tenant}": "del cliente {tenant}",
    "of {amount}": "de {amount}",
    "one for all calls": "uno para todas las llamadas",
    "one for each tenant; this is that of calls without one": (
        "uno por cliente; este es el de las llamadas sin cliente"
    ),
    "open": "abierto",
    "opened {n} {n|time|times} in a row": "se abrió {n} {n|vez|veces seguidas}",
    "probing": "probando",
    "recovering": "recuperándose",
    "reserved by calls under way": "reservado por llamadas en curso",
    "saved sets of states, for days on which less must do": (
        "conjuntos guardados de estados, para días en que hay que arreglarse con menos"
    ),
    "the next call": "la próxima llamada",
    "this month": "este mes",
    "of this tenant": "de este cliente",
    "today": "hoy",
    "used up": "agotado",
    "used up: calls stop": "agotado: se detienen las llamadas",
    "within": "dentro de lo previsto",
    "{amount} left": "quedan {amount}",
    "{failed} of {calls}": "{failed} de {calls}",
    "{failed} of {calls} calls failed, {time}.": "Fallaron {failed} de {calls} llamadas, {time}.",
    "{feature} is forgotten": "{feature} quedó olvidada",
    "{feature} is {state} by hand": "{feature} quedó fijada a mano: {state}",
    "{level} is forgotten": "{level} quedó olvidado",
    "{level} is off": "{level} está inactivo",
    "{level} is on": "{level} está activo",
    "{n} of {all} {n|is|are} limited; overall: {state}": (
        "{n} de {all} {n|limitada|limitadas}; en conjunto: {state}"
    ),
    "{n} were slow": "{n} fueron lentas",
    "{n} {n|feature is|features are} limited until it is off.": (
        "{n} {n|función queda limitada|funciones quedan limitadas} hasta desactivarlo."
    ),
    "{n} {n|tenant is|tenants are} refused calls.": (
        "A {n} {n|cliente se le niegan|clientes se les niegan} llamadas."
    ),
    "{n} {n|upstream takes|upstreams take} calls as usual.": (
        "{n} {n|proveedor recibe|proveedores reciben} llamadas como siempre."
    ),
    "{percent} of {amount} spent": "{percent} de {amount} gastado",
    "{upstream} is forgotten": "{upstream} quedó olvidado",
}
