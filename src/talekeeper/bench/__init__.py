"""Benchmarks: Talekeeper beside the limit of the machine and beside its peers, in one run.

`engine` measures what one durable turn costs. Peers come with the extra `bench` and are left out where they are not installed.
"""
