"""Animations of runs: self-contained HTML pages, images and videos.

``run.view()`` opens the page, ``run.animate("run.html")`` writes it. Other suffixes give a strip of images (png), a
video (gif, mp4) or a 3-D model (glb). The scene of the model is shown, see `livens.shapes`.

>>> import livens as lv
>>> run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=1.0)
>>> from livens.viewer import page
>>> page([run], frames=50).startswith("<!doctype html>")
True
"""

from livens.results.result import Result
from livens.viewer.display import Animation, view
from livens.viewer.export import animate
from livens.viewer.page import page

__all__ = ["Animation", "animate", "page", "view"]

Result.attach("view", view)
Result.attach("animate", animate)
