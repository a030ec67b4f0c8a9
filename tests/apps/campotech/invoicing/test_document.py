"""The PDF of an invoice says what the invoice says, and carries the code of the tax office."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import date

import pytest
import segno
from apps.campotech.invoicing.document import Document
from apps.campotech.invoicing.money import pesos
from pypdf import PdfReader

URL = "https://www.afip.gob.ar/fe/qr/?p=eyJ2ZXIiOjF9"
DOCUMENT = Document(
    issuer="Plomería Núñez",
    issuer_cuit="30500010912",
    receiver="Ana Muñoz",
    receiver_id="27123456780",
    kind="A",
    point_of_sale=4,
    number=17,
    issued=date(2026, 11, 18),
    description="Reparación de caldera",
    net_cents=10_000_000,
    vat_cents=2_100_000,
    cae="76467623843021",
    cae_expires=date(2026, 11, 28),
    qr_url=URL,
)


def text_of(document: Document) -> str:
    return PdfReader(io.BytesIO(document.render())).pages[0].extract_text()


def test_it_says_what_the_invoice_says() -> None:
    text = text_of(DOCUMENT)
    for expected in (
        "Plomería Núñez",
        "Factura A 00004-00000017",
        "18/11/2026",
        "30500010912",
        "Ana Muñoz",
        "27123456780",
        "Reparación de caldera",
        "$ 100.000,00",
        "$ 21.000,00",
        "$ 121.000,00",
        "CAE N° 76467623843021",
        "28/11/2026",
    ):
        assert expected in text


def test_only_class_a_shows_the_tax_apart() -> None:
    assert "IVA" not in text_of(replace(DOCUMENT, kind="B"))
    plain = text_of(replace(DOCUMENT, kind="C", vat_cents=0))
    assert "Neto" not in plain
    assert "$ 100.000,00" in plain


def test_the_code_leads_to_the_tax_office() -> None:
    page = PdfReader(io.BytesIO(DOCUMENT.render())).pages[0]
    links = [one.get_object()["/A"]["/URI"] for one in page["/Annots"]]
    assert links == [URL]


def test_the_code_is_drawn_as_it_is() -> None:
    page = PdfReader(io.BytesIO(DOCUMENT.render())).pages[0]
    content = page.get_contents()
    assert content is not None
    drawn = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) [\d.]+ re f", content.get_data())
    squares = [tuple(map(float, one)) for one in drawn]
    left, top, side = min(x for x, *_ in squares), max(y for _, y, _ in squares), squares[0][2]
    dark = {(round((top - y) / side), round((x - left) / side)) for x, y, _ in squares}
    wanted = segno.make(URL, error="m", micro=False).matrix
    assert dark == {
        (row, column)
        for row, cells in enumerate(wanted)
        for column, is_dark in enumerate(cells)
        if is_dark
    }


def test_the_same_invoice_has_the_same_bytes() -> None:
    assert DOCUMENT.render() == DOCUMENT.render()
    assert DOCUMENT.render() != replace(DOCUMENT, number=18).render()


@pytest.mark.parametrize("odd", ["x" * 5000, "a\nb\r\n\x00c", "日本", "<b>&", ""])
def test_hostile_names_are_only_text(odd: str) -> None:
    assert text_of(replace(DOCUMENT, receiver=odd, description=odd, issuer=odd))


@pytest.mark.parametrize(
    ("cents", "text"),
    [(0, "$ 0,00"), (5, "$ 0,05"), (123_456_789, "$ 1.234.567,89"), (-150, "-$ 1,50")],
)
def test_pesos_are_written_as_in_argentina(cents: int, text: str) -> None:
    assert pesos(cents) == text
