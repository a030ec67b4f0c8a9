"""Jobs of the field: a visit to a customer, from its draft to its end."""
