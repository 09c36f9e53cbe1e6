"""One package or file for each agent framework, imported only when the framework is used."""
