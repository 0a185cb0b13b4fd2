"""The base of all other packages: errors, tables of names, progress, files, the machine, and the
values that flow.
"""
