"""Who has access, and how people come in, in Portuguese."""

from __future__ import annotations

from typing import Final

ACCESS: Final[dict[str, str]] = {
    "Access": "Acessos",
    "Role": "Papel",
    "Name": "Nome",
    "Only this tenant (empty: all)": "Só este cliente (vazio: todos)",
    "Shows payloads, results and log lines": "Mostra conteúdos, resultados e registros",
    "One owner can sign in: nobody else could give access if that account were lost.": (
        "Só um proprietário pode entrar: sem essa conta, ninguém mais poderia dar acesso."
    ),
    "{n} owners can sign in": "{n} proprietários podem entrar",
    "{n} {n|person has|people have} not set a password yet.": (
        "{n} {n|pessoa ainda não tem|pessoas ainda não têm} senha."
    ),
    "{n} {n|token is|tokens are} no longer good.": (
        "{n} {n|token já não vale|tokens já não valem}."
    ),
    "{n} {n|token ends|tokens end} within a week.": (
        "{n} {n|token vence|tokens vencem} em uma semana."
    ),
    "Invite somebody…": "Convidar alguém…",
    "Make a token…": "Criar um token…",
    "Invite somebody": "Convidar alguém",
    "You get a link to send. Whoever opens it first sets the password.": (
        "Você recebe um link para enviar. Quem o abrir primeiro define a senha."
    ),
    "Make 1 link": "Criar 1 link",
    "Make a token": "Criar um token",
    "A program that has it may do what its role may. It is shown once.": (
        "Um programa que o tenha pode fazer o que seu papel permite. É mostrado uma só vez."
    ),
    "Good for (empty: until it is removed)": "Vale por (vazio: até ser removido)",
    "Make 1 token": "Criar 1 token",
    "People": "Pessoas",
    "sign in with a password": "entram com uma senha",
    "passwords are switched off here": "aqui não se entra com senha",
    "Sees": "Vê",
    "State": "Estado",
    "Added": "Adição",
    "all tenants": "todos os clientes",
    "payloads": "conteúdos",
    "kept out": "bloqueado",
    "invited": "convidado",
    "may sign in": "pode entrar",
    "Change…": "Alterar…",
    "Nobody signs in with a password": "Ninguém entra com senha",
    "People come by another door, such as a proxy or a provider of identities.": (
        "As pessoas entram por outra porta, como um proxy ou um provedor de identidade."
    ),
    "Payloads": "Conteúdos",
    "veiled": "ocultos",
    "shown": "visíveis",
    "Change {name}": "Alterar {name}",
    "May sign in again, with the same password.": "Poderá entrar outra vez, com a mesma senha.",
    "Sessions end at once; the account stays.": "As sessões terminam na hora; a conta fica.",
    "Let {name} in": "Deixar {name} entrar",
    "Keep {name} out": "Bloquear {name}",
    "With the link, {name} sets another password; until then the old one is good.": (
        "Com o link, {name} define outra senha; até lá vale a anterior."
    ),
    "Make 1 link for {name}": "Criar 1 link para {name}",
    "Sessions end at once; what {name} has changed stays in the audit trail.": (
        "As sessões terminam na hora; o que {name} alterou fica na auditoria."
    ),
    "Remove {name}": "Remover {name}",
    "Programs": "Programas",
    "use the API with a token": "usam a API com um token",
    "tokens are switched off here": "aqui não se aceitam tokens",
    "Tokens": "Tokens",
    "Good until": "Vale até",
    "it is removed": "ser removido",
    "no longer good": "já não vale",
    "Remove…": "Remover…",
    "There is no token": "Não há nenhum token",
    "Programs that use the API need one.": "Os programas que usam a API precisam de um.",
    "Remove the token {name}?": "Remover o token {name}?",
    "Programs that use it are refused at once.": "Os programas que o usam são recusados na hora.",
    "Remove 1 token": "Remover 1 token",
    "Set a password": "Definir senha",
    "Welcome, {name}": "Boas-vindas, {name}",
    "Set a password to come in. This link works once.": (
        "Defina uma senha para entrar. Este link serve uma só vez."
    ),
    "Password, of at least ten characters": "Senha, de pelo menos dez caracteres",
    "The same again": "A mesma outra vez",
    "Set the password": "Salvar a senha",
    "The two passwords differ.": "As duas senhas não coincidem.",
    "This password is guessed soon: take a longer one, without your name in it.": (
        "Esta senha é fácil de adivinhar: escolha uma mais longa, sem seu nome."
    ),
    "Shown once": "Mostrado uma só vez",
    "Copy it now: it is not kept, and cannot be shown again.": (
        "Copie agora: não é guardado e não pode ser mostrado outra vez."
    ),
    "Send this link to who is invited. It is open for two days, and for one use.": (
        "Envie este link a quem foi convidado. Vale dois dias e um só uso."
    ),
    "Programs send it as a bearer token.": "Os programas o enviam como token «bearer».",
    "Done": "Pronto",
    "Sign in with {name}": "Entrar com {name}",
    "or": "ou",
}
