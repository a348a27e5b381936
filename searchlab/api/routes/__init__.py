"""The operations of the v1 API, a file for each section of the specification."""
