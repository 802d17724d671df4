"""Everything that talks to the JVM."""
