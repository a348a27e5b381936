"""Engines elsewhere that hold a copy of the rows: PostgreSQL with pgvector, and Milvus."""
