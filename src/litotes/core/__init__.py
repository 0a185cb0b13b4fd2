"""What every other package rests on: errors, tables of names, progress, files, the machine, and the
values that flow.
"""
