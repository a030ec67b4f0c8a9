"""What all pages have around them, in Portuguese."""

from __future__ import annotations

from typing import Final

SHELL: Final[dict[str, str]] = {
    "Skip to content": "Ir para o conteúdo",
    "Menu": "Menu",
    "Main": "Principal",
    "Search": "Buscar",
    "Find a job, queue, tenant or error": "Buscar um job, fila, cliente ou erro",
    "Live": "Ao vivo",
    "Polling": "Consultando",
    "Not connected": "Sem conexão",
    "Theme": "Tema",
    "Account of {name}": "Conta de {name}",
    "Watch": "Observar",
    "Work": "Trabalho",
    "Share": "Partilha",
    "Run": "Máquina",
    "Record": "Registro",
    "Overview": "Visão geral",
    "Alerts": "Alertas",
    "Queues": "Filas",
    "Dead letters": "Cartas mortas",
    "Schedules": "Agendamentos",
    "Flows": "Fluxos",
    "Tenants": "Clientes",
    "Costs": "Custos",
    "Workers": "Workers",
    "Upstreams": "Provedores",
    "Capacity": "Capacidade",
    "Audit trail": "Auditoria",
}
