"""Reports: figures, tables and one self-contained HTML page made of them.

The parts are plain values (:class:`~routecast.report.figures.Figure`, :class:`~routecast.report.tables.Table`,
:class:`~routecast.report.page.Page`), made by whoever has results to show and rendered here:
:func:`~routecast.report.drawing.draw` for SVG, :func:`~routecast.report.page.render_page` for HTML (where
``look/figures.js`` makes the SVG lively), and by the command line for a terminal.
"""
