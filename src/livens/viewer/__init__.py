"""Runs as films: a page that any browser shows, pictures and videos.

``run.view()`` opens the page, ``run.animate("run.html")`` writes it; other suffixes give a strip of pictures (png), a
film (gif, mp4) or a model for other programs (glb). What is seen is the scene of the model, see `livens.shapes`.

>>> import livens as lv
>>> run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=1.0)
>>> from livens.viewer import page
>>> page([run], frames=50).startswith("<!doctype html>")
True
"""

from livens.results.result import Result
from livens.viewer.export import animate
from livens.viewer.page import page
from livens.viewer.show import Film, view

__all__ = ["Film", "animate", "page", "view"]

Result.attach("view", view)
Result.attach("animate", animate)
