"""Parameters, the variant registry and the places of files. Imports pydantic and YAML only."""
