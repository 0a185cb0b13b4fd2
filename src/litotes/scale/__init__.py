"""Many jobs: in this process, in several, or on a Ray cluster; nothing is lost when one of them
dies.
"""
