"""What all pages have around them, in Spanish."""

from __future__ import annotations

from typing import Final

SHELL: Final[dict[str, str]] = {
    "Skip to content": "Ir al contenido",
    "Menu": "Menú",
    "Main": "Principal",
    "Search": "Buscar",
    "Find a job, queue, tenant or error": "Buscar un trabajo, cola, cliente o error",
    "Live": "En vivo",
    "Polling": "Consultando",
    "Not connected": "Sin conexión",
    "Theme": "Tema",
    "Account of {name}": "Cuenta de {name}",
    "Watch": "Mirar",
    "Work": "Trabajo",
    "Share": "Reparto",
    "Run": "Máquina",
    "Record": "Registro",
    "Overview": "Resumen",
    "Alerts": "Alertas",
    "Queues": "Colas",
    "Dead letters": "Cartas muertas",
    "Schedules": "Programaciones",
    "Flows": "Flujos",
    "Tenants": "Clientes",
    "Costs": "Costos",
    "Workers": "Workers",
    "Upstreams": "Proveedores",
    "Capacity": "Capacidad",
    "Audit trail": "Auditoría",
}
