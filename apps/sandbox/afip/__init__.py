"""A stand-in of AFIP (now ARCA): logins with WSAA, electronic invoices with WSFEv1.

stand_in         the service: certificates, delegations, troubles, routes
terms            what differs between environments
authority        makes certificates
der, cms         verify signed messages
access_request   what is asked of WSAA
tokens           what WSAA gives, and WSFEv1 believes
wsaa             the login
registry         who may issue, and what is known of receivers
fields, detail   read requests of WSFEv1
*_rules, rules   what a voucher must be like
register         what has a CAE, and the numbers of each series
authoriser       judges requests
wsfe*            operations and answers
"""

from apps.sandbox.afip.authority import Authority, Credential
from apps.sandbox.afip.stand_in import WSAA_PATH, WSFE_PATH, Afip
from apps.sandbox.afip.terms import Terms

__all__ = ["WSAA_PATH", "WSFE_PATH", "Afip", "Authority", "Credential", "Terms"]
