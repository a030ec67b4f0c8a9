"""Systems that are built on Faena's public API, and what they share.

providers    clients of the outside services that they call
sandbox      stand-ins of those services, on loopback
campotech    field service in Argentina: thirteen queues
"""
