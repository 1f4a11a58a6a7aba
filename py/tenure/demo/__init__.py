"""A durable code-analysis queue over real files, with accidents arranged on the way.

`python -m tenure.demo` analyses the interpreter's own standard library with two worker
processes, kills, stops and cancels some of the work, and reports from the queue itself.
"""
