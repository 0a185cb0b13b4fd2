"""Predictions for whole tables, written so that a stopped run can be resumed.

to_file      one table becomes one file of predictions
to_folder    a table or a folder of tables becomes a folder of parts, in processes or on Ray
input        the rows and columns that are read
formats      the rows that are written: CSV, JSON lines, Parquet
resume       what an unfinished output was made from, and how much of it is safe
"""
