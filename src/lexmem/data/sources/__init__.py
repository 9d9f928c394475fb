"""Text sources: packages of English prose, a user's own files, and data sets of the hub."""
