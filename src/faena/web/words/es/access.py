"""Who has access, and how people come in, in Spanish."""

from __future__ import annotations

from typing import Final

ACCESS: Final[dict[str, str]] = {
    "Access": "Accesos",
    "Role": "Rol",
    "Name": "Nombre",
    "Only this tenant (empty: all)": "Solo este cliente (vacío: todos)",
    "Shows payloads, results and log lines": "Muestra contenidos, resultados y registros",
    "One owner can sign in: nobody else could give access if that account were lost.": (
        "Un solo propietario puede entrar: si se perdiera esa cuenta, nadie más podría dar acceso."
    ),
    "{n} owners can sign in": "{n} propietarios pueden entrar",
    "{n} {n|person has|people have} not set a password yet.": (
        "{n} {n|persona aún no tiene|personas aún no tienen} contraseña."
    ),
    "{n} {n|token is|tokens are} no longer good.": "{n} {n|token ya no vale|tokens ya no valen}.",
    "{n} {n|token ends|tokens end} within a week.": (
        "{n} {n|token vence|tokens vencen} en una semana."
    ),
    "Invite somebody…": "Invitar a alguien…",
    "Make a token…": "Crear un token…",
    "Invite somebody": "Invitar a alguien",
    "You get a link to send. Whoever opens it first sets the password.": (
        "Recibirá un enlace para enviar. Quien lo abra primero elige la contraseña."
    ),
    "Make 1 link": "Crear 1 enlace",
    "Make a token": "Crear un token",
    "A program that has it may do what its role may. It is shown once.": (
        "Un programa que lo tenga puede hacer lo que permite su rol. Se muestra una sola vez."
    ),
    "Good for (empty: until it is removed)": "Vale por (vacío: hasta que se quite)",
    "Make 1 token": "Crear 1 token",
    "People": "Personas",
    "sign in with a password": "entran con una contraseña",
    "passwords are switched off here": "aquí no se entra con contraseña",
    "Sees": "Ve",
    "State": "Estado",
    "Added": "Alta",
    "all tenants": "todos los clientes",
    "payloads": "contenidos",
    "kept out": "bloqueado",
    "invited": "invitado",
    "may sign in": "puede entrar",
    "Change…": "Cambiar…",
    "Nobody signs in with a password": "Nadie entra con contraseña",
    "People come by another door, such as a proxy or a provider of identities.": (
        "Las personas entran por otra puerta, como un proxy o un proveedor de identidad."
    ),
    "Payloads": "Contenidos",
    "veiled": "velados",
    "shown": "visibles",
    "Change {name}": "Cambiar {name}",
    "May sign in again, with the same password.": (
        "Podrá entrar otra vez, con la misma contraseña."
    ),
    "Sessions end at once; the account stays.": (
        "Sus sesiones terminan enseguida; la cuenta queda."
    ),
    "Let {name} in": "Dejar entrar a {name}",
    "Keep {name} out": "Bloquear a {name}",
    "With the link, {name} sets another password; until then the old one is good.": (
        "Con el enlace, {name} elige otra contraseña; hasta entonces vale la anterior."
    ),
    "Make 1 link for {name}": "Crear 1 enlace para {name}",
    "Sessions end at once; what {name} has changed stays in the audit trail.": (
        "Sus sesiones terminan enseguida; lo que {name} cambió queda en la auditoría."
    ),
    "Remove {name}": "Quitar a {name}",
    "Programs": "Programas",
    "use the API with a token": "usan la API con un token",
    "tokens are switched off here": "aquí no se aceptan tokens",
    "Tokens": "Tokens",
    "Good until": "Vale hasta",
    "it is removed": "que se quite",
    "no longer good": "ya no vale",
    "Remove…": "Quitar…",
    "There is no token": "No hay ningún token",
    "Programs that use the API need one.": "Los programas que usan la API necesitan uno.",
    "Remove the token {name}?": "¿Quitar el token {name}?",
    "Programs that use it are refused at once.": (
        "Los programas que lo usan se rechazan enseguida."
    ),
    "Remove 1 token": "Quitar 1 token",
    "Set a password": "Elegir contraseña",
    "Welcome, {name}": "Le damos la bienvenida, {name}",
    "Set a password to come in. This link works once.": (
        "Elija una contraseña para entrar. Este enlace sirve una sola vez."
    ),
    "Password, of at least ten characters": "Contraseña, de al menos diez caracteres",
    "The same again": "La misma otra vez",
    "Set the password": "Guardar la contraseña",
    "The two passwords differ.": "Las dos contraseñas no coinciden.",
    "This password is guessed soon: take a longer one, without your name in it.": (
        "Esta contraseña se adivina pronto: elija una más larga, sin su nombre."
    ),
    "Shown once": "Se muestra una sola vez",
    "Copy it now: it is not kept, and cannot be shown again.": (
        "Cópielo ahora: no se guarda y no se puede mostrar otra vez."
    ),
    "Send this link to who is invited. It is open for two days, and for one use.": (
        "Envíe este enlace a quien invita. Vale dos días y un solo uso."
    ),
    "Programs send it as a bearer token.": "Los programas lo envían como token «bearer».",
    "Done": "Listo",
    "Sign in with {name}": "Entrar con {name}",
    "or": "o",
}
