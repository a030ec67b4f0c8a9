-- Programs of the release before remember one broker for the whole database.
ALTER TABLE faena.identity DROP COLUMN broker;
