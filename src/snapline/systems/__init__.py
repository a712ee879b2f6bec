"""Systems under test: other streaming systems that are run, broken and judged behind one small adapter.

`registry` lists them by name. `snapline` itself is not among them: it runs through `runtime`, where
protocols are chosen; this package is for systems that Snapline knows only from outside.
"""
