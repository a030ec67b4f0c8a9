"""A whole CampoTech on loopback: servers, stand-ins of providers, API, worker pools, businesses.

The demo and the load tests play on it. Nothing outlives the program that opened it.
"""
