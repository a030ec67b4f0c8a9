"""CampoTech's tables, in the schema `campotech`: migrations, partitions, retention, roll-ups."""
