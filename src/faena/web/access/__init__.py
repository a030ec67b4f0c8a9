"""Who may do what: users, tokens, sessions, roles."""
