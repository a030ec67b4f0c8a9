"""An invoice as a PDF: one page, with the code that the tax office wants to be printed."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import date
from typing import Final

import segno
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from apps.campotech.invoicing.money import pesos

_LEFT, _RIGHT = 20 * mm, A4[0] - 20 * mm
_TOP: Final = A4[1] - 20 * mm
_LINE: Final = 6 * mm
_QR: Final = 32 * mm
_LONGEST: Final = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is printed."""

    issuer: str
    issuer_cuit: str
    receiver: str
    receiver_id: str | None
    kind: str
    point_of_sale: int
    number: int
    issued: date
    description: str
    net_cents: int
    vat_cents: int
    cae: str
    cae_expires: date
    qr_url: str
    """What the code says: the address at which the tax office confirms the invoice."""

    @property
    def title(self) -> str:
        """Its name on paper: `Factura B 00004-00000017`."""
        return f"Factura {self.kind} {self.point_of_sale:05}-{self.number:08}"

    def render(self) -> bytes:
        """The PDF. The same document always has the same bytes."""
        paper = io.BytesIO()
        canvas = Canvas(paper, pagesize=A4, invariant=True)
        canvas.setTitle(self.title)
        canvas.setAuthor(self.issuer)
        y = _head(canvas, self)
        y = _lines(canvas, y, self._details())
        y = _lines(canvas, y - _LINE, self._amounts())
        _code(canvas, self)
        canvas.showPage()
        canvas.save()
        return paper.getvalue()

    def _details(self) -> list[tuple[str, str]]:
        return [
            ("Fecha de emisión", f"{self.issued:%d/%m/%Y}"),
            ("CUIT del emisor", self.issuer_cuit),
            ("Cliente", self.receiver),
            ("CUIT / DNI", self.receiver_id or "Consumidor final"),
            ("Concepto", self.description or "Servicios"),
        ]

    def _amounts(self) -> list[tuple[str, str]]:
        parts = [] if self.kind == "C" else [("Neto gravado", pesos(self.net_cents))]
        if self.kind == "A":
            parts.append(("IVA", pesos(self.vat_cents)))
        return [*parts, ("Total", pesos(self.net_cents + self.vat_cents))]


def _head(canvas: Canvas, document: Document) -> float:
    canvas.setFont("Helvetica-Bold", 16)
    canvas.drawString(_LEFT, _TOP, _short(document.issuer))
    canvas.setFont("Helvetica-Bold", 13)
    canvas.drawRightString(_RIGHT, _TOP, document.title)
    canvas.line(_LEFT, _TOP - _LINE, _RIGHT, _TOP - _LINE)
    return _TOP - 3 * _LINE


def _lines(canvas: Canvas, y: float, lines: list[tuple[str, str]]) -> float:
    for name, value in lines:
        canvas.setFont("Helvetica", 10)
        canvas.drawString(_LEFT, y, name)
        canvas.setFont("Helvetica-Bold", 10)
        canvas.drawString(_LEFT + 50 * mm, y, _short(value))
        y -= _LINE
    return y


def _code(canvas: Canvas, document: Document) -> None:
    """The code at the foot, as squares and as a link, with the CAE beside it."""
    foot = 20 * mm
    matrix = segno.make(document.qr_url, error="m", micro=False).matrix
    size = _QR / len(matrix)
    for row, cells in enumerate(matrix):
        for column, is_dark in enumerate(cells):
            if is_dark:
                canvas.rect(_LEFT + column * size, foot + _QR - (row + 1) * size, size, size, 0, 1)
    canvas.linkURL(document.qr_url, (_LEFT, foot, _LEFT + _QR, foot + _QR), relative=0)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(_LEFT + _QR + 8 * mm, foot + _LINE, f"CAE N° {document.cae}")
    expires = f"Vencimiento del CAE {document.cae_expires:%d/%m/%Y}"
    canvas.drawString(_LEFT + _QR + 8 * mm, foot, expires)


def _short(text: str) -> str:
    """One line: what is longer is cut, and characters that the font lacks become `?`."""
    plain = " ".join(text.split()).encode("cp1252", "replace").decode("cp1252")
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."
