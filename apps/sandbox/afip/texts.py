"""What the service says with its codes: known texts where there are any, all without accents."""

from __future__ import annotations

from typing import Final

NOT_NEXT: Final = (
    "El numero o fecha del comprobante no se corresponde con el proximo a autorizar. "
    "Consultar metodo FECompUltimoAutorizado."
)
NO_DATA: Final = "No existen datos en nuestros registros para los parametros ingresados."
NO_AUTH: Final = "Campo Auth no fue ingresado o esta mal formado."

_TEXTS: Final = {
    500: "Error interno de aplicacion.",
    501: "Error interno de base de datos.",
    502: "Error interno de base de datos - Autorizador CAE - Transaccion Activa",
    10000: "La CUIT informada no se encuentra autorizada a emitir comprobantes",
    10001: "CantReg debe estar comprendido entre 1 y 9998.",
    10002: "No coincide la cantidad de registros informadas con la cantidad real enviada",
    10003: "La cantidad de registros supera el valor permitido.",
    10004: "Campo PtoVta debe estar comprendido entre 1 y 99998.",
    10005: "El punto de venta informado debe estar dado de alta y ser del tipo RECE.",
    10007: "Campo CbteTipo no se corresponde con alguno de los habilitados.",
    10013: "Para comprobantes clase A el campo DocTipo debe ser 80 (CUIT)",
    10015: "Campo DocNro invalido o no se encuentra en los padrones.",
    10016: "Campo CbteFch Debe estar comprendido  en el  rango  permitido siendo N la fecha de "
    "envio del pedido  de autorizacion",
    10017: "El campo DocNro no se encuentra en condicion activa.",
    10041: "El comprobante asociado no obra en las bases del organismo.",
    10048: "El campo ImpTotal debe ser igual a la suma de sus partes.",
    10051: "Los importes informados en AlicIVA no se corresponden con los porcentajes.",
    10063: "El receptor no se encuentra activo en IVA ni en Monotributo.",
    10070: "Si ImpNeto es mayor a 0 el objeto IVA es obligatorio.",
    10071: "Si el comprobante es tipo C el objeto IVA no debe informarse.",
    10197: "Si el comprobante es Debito o Credito, enviar estructura CbteAsoc o PeriodoAsoc.",
    10217: "El credito fiscal discriminado en el presente comprobante solo podra ser computado a "
    "efectos del Procedimiento permanente de transicion al Regimen General.",
    10237: "El importe de la nota de crédito supera el monto del comprobante asociado.",
    10245: "El campo Condicion Frente al IVA del receptor resultara obligatorio.",
    10246: "Campo Condicion Frente al IVA del receptor es obligatorio.",
}


def text_of(code: int) -> str:
    """The text of a code; accents come as the real service sends some of them: UTF-8 read as
    Latin-1."""
    return _TEXTS.get(code, f"Validacion {code}").encode().decode("latin-1")
