"""Tables of texts, read row by row: CSV, TSV, JSON lines and Parquet."""
