"""Payments of invoices: what MercadoPago tells, and what is known of each payment."""
