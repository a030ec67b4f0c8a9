"""The QR code that every voucher shows (RG 4892): the address that it holds."""

from __future__ import annotations

import base64
import json
from typing import Final

from apps.providers.afip.answers import Authorized
from apps.providers.afip.cuit import parse_cuit
from apps.providers.afip.voucher import Voucher, decimal_text, plain

_ADDRESS: Final = "https://www.afip.gob.ar/fe/qr/?p="


def qr_url(cuit: str, voucher: Voucher, authorized: Authorized) -> str:
    """The text of the QR code of a voucher that `cuit` has issued."""
    if voucher.number != authorized.number:
        raise ValueError("authorized must be that of the voucher")
    content = "{" + ",".join(_fields(cuit, voucher, authorized.cae)) + "}"
    return _ADDRESS + base64.b64encode(content.encode("ascii")).decode("ascii")


def _fields(cuit: str, voucher: Voucher, cae: str) -> list[str]:
    """Written by hand: in JSON an amount is a number, and a float would not always be exact."""
    receiver = voucher.receiver
    fields = {
        "ver": "1",
        "fecha": json.dumps(voucher.date.isoformat()),
        "cuit": parse_cuit(cuit),
        "ptoVta": f"{voucher.point_of_sale}",
        "tipoCmp": f"{voucher.kind:d}",
        "nroCmp": f"{voucher.number}",
        "importe": decimal_text(voucher.total_cents),
        "moneda": json.dumps(voucher.currency),
        "ctz": plain(voucher.exchange_rate),
        "tipoDocRec": f"{receiver.document_kind:d}",
        "nroDocRec": f"{receiver.document_number}",
        "tipoCodAut": json.dumps("E"),
        "codAut": f"{int(cae)}",
    }
    return [f"{json.dumps(name)}:{value}" for name, value in fields.items()]
