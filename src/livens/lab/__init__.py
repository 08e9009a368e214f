"""The lab: an interactive page in the browser with problems, schemes, parameters and animations.

``livens lab`` serves it to this machine only. Requests are validated in `request`, computed by a worker process
(`worker`, managed by `jobs`), and served by `server`; `gallery` creates an animated thumbnail of each problem.
"""
