"""Tables, figures and self-contained HTML pages; this package does not depend on models of routers.

The parts are plain values (:class:`~routecast.show.figures.Figure`, :class:`~routecast.show.tables.Table`,
:class:`~routecast.show.page.Page`), which other packages construct in their ``views``.
:func:`~routecast.show.drawing.draw` renders SVG, :func:`~routecast.show.page.render_page` HTML, and
:func:`~routecast.show.tables.terminal_table` a table for the terminal.
"""
