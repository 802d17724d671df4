"""What the project needs around it: checks of the machine, the connectors."""
