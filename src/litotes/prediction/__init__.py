"""Texts in, labels out: one text, a table, a folder of tables, a data frame."""
