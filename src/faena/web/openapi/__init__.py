"""The API's description in OpenAPI 3.1, made of what is declared."""
