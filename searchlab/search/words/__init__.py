"""The text index: photos found by what is written about them, beside the vectors."""
