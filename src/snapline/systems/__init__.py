"""Systems under test: other streaming systems behind one small adapter, run, broken and judged.

`registry` has those that there are, by name. `snapline` itself is not among them: it runs through
`runtime`, where protocols are chosen; what stands here is for systems that Snapline knows only from
outside.
"""
