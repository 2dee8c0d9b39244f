"""Tables, figures and self-contained HTML pages. This package knows nothing of routers.

The parts are plain values (:class:`~routecast.show.figures.Figure`, :class:`~routecast.show.tables.Table`,
:class:`~routecast.show.page.Page`). A room makes them in its ``views``; :func:`~routecast.show.drawing.draw` renders
SVG, :func:`~routecast.show.page.render_page` HTML, :func:`~routecast.show.tables.terminal_table` a terminal's table.
"""
