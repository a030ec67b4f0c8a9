"""Invoices: a number and a CAE from the tax office, a PDF, a message to the customer."""
